"""Attention: what does it cost to store all its scores, and what does FlashAttention gain that stores none?

Attention by its definition, in torch's eager steps, against torch's own kernels, each pinned and read back: a row that
asks for `flash` and does not get it is `unsupported`. Its forward pass alone, and with the gradient of Q, K and V. The
flops are those of the two products, 4·batch·heads·n²·d forward, half of that with a causal mask, 3.5 times as many with
the gradient, for every way alike; the bytes are the operands'. On a CPU `flash` is torch's kernel for CPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpubench import TIMES, Axis, Effect, Estimate, Finding, Metric, RowsMissing, Skip, Suite, Workload, exactly
from gpubench.model import attention_torch as ways
from gpubench.model import attention_traffic as model
from gpubench.model import kernel_names
from gpubench.model.attention_traffic import Shape

suite = Suite(__file__)

DTYPES = ["float32", "float16", "bfloat16"]
BY = [*model.NAIVE, *ways.BACKENDS]
LECTURE = Shape(batch=64, heads=16, kv_heads=16, n=1024, d=64)
"""GPT-2 medium as the paper has it (arXiv:2205.14135, figure 2, left), in float16."""
PAPER = {"paper_naive_bytes": 40.3e9, "paper_flash_bytes": 4.4e9, "paper_naive_ms": 41.7, "paper_flash_ms": 7.3}
"""The same on an A100, forward and backward."""
ONE_TILE = Shape(batch=1024, heads=16, kv_heads=16, n=64, d=64)
"""As many positions, in sequences that a tile holds: a pass over the scores is no more than one over Q."""
SHAPES: dict[str, dict[str, Any]] = {
    "d64": {}, "causal": {"causal": True}, "d128": {"d": 128}, "d128-causal": {"d": 128, "causal": True},
    "gqa": {"kv_heads": 4}, "gqa-causal": {"kv_heads": 4, "causal": True},
}  # fmt: skip
"""What the others differ in from d64, which has 16 heads of 64 numbers."""
CACHE = Axis(["cold"], cpu=["hot"])
"""A CPU's caches do not decide over attention, and cold ones need dozens of copies of the operands."""
DTYPE = Axis(["float16"], cpu=["float32"], choices=DTYPES)
SWEPT: dict[str, Axis] = {
    "by": Axis(["naive", "flash", "cudnn"], cpu=["naive", "flash"], choices=BY),
    "n": Axis([1024, 2048, 4096, 8192, 16384], cpu=[512, 1024, 2048], quick=[1024, 2048, 4096]),
    "tokens": Axis([16384], cpu=[2048]),
    "heads": Axis([16], cpu=[1]),
    "kv_heads": Axis(same_as="heads"),
    "d": Axis([64]),
    "causal": Axis(["no"], choices=["no", "yes"]),
    "dtype": DTYPE,
    "cache": CACHE,
}
"""Axes of the sweeps over the length: as many positions (tokens) and heads at each."""


def attend(device: Any, by: str, shape: Shape, dtype: str, backward: bool = False, last: bool = False) -> Workload:
    """Attention by one way; of both passes the row has what autograd keeps between them beside Q, K and V."""
    import torch

    made = Workload(**ways.measured(torch, device, by, shape, dtype, backward, last))

    def kept() -> list[Metric]:
        q, k, v = (operand.requires_grad_() for operand in ways.drawn(device, shape, dtype, last))
        function, _ = ways.chosen(torch, by, q, k, v, shape.causal)
        found = ways.kept_bytes(torch, lambda: function(q, k, v), (q, k, v))
        return [Metric("kept_bytes", float(found), "B", "lower")]

    made.metrics = kept if backward else None
    return made


def sequences(tokens: int, heads: int, kv_heads: int, n: int, d: int, causal: str) -> Shape:
    """So many positions as sequences of n. Skip where they are no whole number of them, or heads no whole groups."""
    if tokens % n:
        raise Skip(f"{tokens} positions are no whole number of sequences of {n}")
    if heads % kv_heads:
        raise Skip(f"{heads} heads of Q are no whole groups for {kv_heads} of K")
    return Shape(tokens // n, heads, kv_heads, n, d, causal == "yes")


@suite.benchmark(**SWEPT | {"n": Axis([512, *SWEPT["n"].values], cpu=SWEPT["n"].cpu, quick=SWEPT["n"].quick)})
def forward(
    device: Any, by: str, n: int, tokens: int, heads: int, kv_heads: int, d: int, causal: str, dtype: str
) -> Workload:
    """The forward pass over the length, of as many positions each time."""
    return attend(device, by, sequences(tokens, heads, kv_heads, n, d, causal), dtype)


@suite.benchmark(**SWEPT)
def forward_backward(
    device: Any, by: str, n: int, tokens: int, heads: int, kv_heads: int, d: int, causal: str, dtype: str
) -> Workload:
    """The forward pass and the gradients of Q, K and V over the length."""
    return attend(device, by, sequences(tokens, heads, kv_heads, n, d, causal), dtype, backward=True)


@suite.benchmark(
    by=Axis(["naive", "flash", "cudnn", "efficient"], cpu=["naive", "flash"], choices=BY),
    shape=Axis(list(SHAPES), cpu=["d64", "gqa-causal"], quick=["d64", "gqa-causal"]),
    n=Axis([4096], cpu=[256], quick=[2048]),
    dtype=DTYPE,
    cache=CACHE,
)
def shapes(device: Any, by: str, shape: str, n: int, dtype: str) -> Workload:
    """The forward pass of one sequence with a causal mask, with wider heads, and with keys that four heads share."""
    usual = {"batch": 1, "heads": 16, "kv_heads": 16, "n": n, "d": 64}
    return attend(device, by, Shape(**usual | SHAPES[shape]), dtype)


@suite.benchmark(by=Axis(BY, quick=["naive-separate", "flash"]), passes=Axis(["forward", "both"]))
def gpt2_medium(device: Any, by: str, passes: str) -> Workload:
    """The lecture's example: batch 64, 16 heads, 1024 positions, 64 numbers a head, float16."""
    return whole(device, by, LECTURE, passes == "both")


@suite.benchmark(by=Axis(["naive-separate", "flash"], choices=BY))
def one_tile(device: Any, by: str) -> Workload:
    """As many positions in sequences of 64, both passes: the control, where scores are as few as queries."""
    made = whole(device, by, ONE_TILE, True)
    made.labels["control"] = "one tile"
    return made


def whole(device: Any, by: str, shape: Shape, backward: bool) -> Workload:
    """A shape of the lecture's size in float16."""
    if device.kind == "cpu":
        raise Skip("a call takes a CPU many seconds; forward-backward has shorter ones")
    return attend(device, by, shape, "float16", backward)


@suite.benchmark(
    by=Axis(["naive", "tiled", "flash", "cudnn", "efficient", "math"], cpu=["naive", "tiled", "flash"]),
    greatest=Axis(["anywhere", "last"]),
    heads=Axis([8], cpu=[1]),
    n=Axis([1024], cpu=[256]),
    dtype=Axis(["bfloat16", "float32"], choices=DTYPES),
    cache=CACHE,
)
def exactness(device: Any, by: str, greatest: str, heads: int, n: int, dtype: str) -> Workload:
    """How far the forward pass is from float64, of plain numbers and where the greatest score comes last. `tiled` is
    the algorithm in torch's steps; its row has the error that it makes without rescaling."""
    import torch

    shape, last = Shape(1, heads, heads, n, 64), greatest == "last"
    made = attend(device, by, shape, dtype, last=last)
    made.primary = "time"

    def without_rescaling() -> list[Metric]:
        q, k, v = ways.drawn(device, shape, dtype, last)
        wrong = ways.error(ways.tiled(torch, rescale=False)(q, k, v), ways.exact(torch, q, k, v, shape.causal))
        return [Metric("error_without_rescaling", wrong, "1", "none")]

    made.metrics = without_rescaling if by == "tiled" else None
    return made


# The lecture's claims.

EXACT, ALIKE, FLOAT32 = 1.5, 2.0, 1e-5
"""The error of a way that stores no scores over that of eager steps in the same sixteen bits, of plain numbers and
where the greatest comes last; and in float32."""
WRONG = 0.05
"""The error without rescaling: ten times what sixteen bits explain, or the numbers would show no error of a kernel."""
COPIED = 0.02
"""How far the counted bytes of a copy of known bytes may be off, as where counters are taken."""
SQUARE, LINEAR, NOT_SQUARE = (1.9, 2.1), (0.9, 1.1), 1.3
"""Slopes over the length for each head: scores beside some operands; operands alone; and those with some read twice."""
LONG = 1024
"""Shorter ones move too few bytes to be counted well: a pass over the scores is not many times the L2."""
FEWER, MOST, FASTER = 4, 4.4e9, 2
"""Bytes and time of eager steps over flash, and the bytes of flash. The paper has 9.2, 4.4 GB and 5.7 on an A100, whose
arithmetic is slower beside its memory."""
CLOSED = 1.5
"""The time of eager steps over flash where scores are as few as queries."""
WRITTEN = 0.125
"""Of a pass over the scores, what a kernel may write or keep that stores none: O is a sixteenth in the example."""
STORED = 1.9
"""The same of eager steps, which write scores and weights."""
SECTOR = 32
"""Bytes."""
NO_COUNTERS = "no counters: bytes are not judged"
ON_GPU = "which kernels a call ran is seen on a GPU only"
Figure = Callable[[Any], float | None]


def value(found: Estimate | None) -> float | None:
    """The figure alone; None where there is none."""
    return None if found is None else found.value


def launched(row: Any, *families: str) -> int:
    """Kernels of these families in a call, by default all. RowsMissing where no timer saw them."""
    if not row.kernels:
        raise RowsMissing(f"{row.id}: no timer saw its kernels")
    kernels = [kernel for kernel in row.kernels if kernel.kind == "kernel"]
    return sum(each.count for each in kernels if not families or kernel_names.family(each.name) in families)


def slope(rows: Sequence[Any], figure: Figure) -> Estimate | None:
    """The slope over the length of a figure for each head, of which there are fewer the longer it is; None where it is
    not known of every row."""
    points = [(row.params["n"], figure(row)) for row in rows]
    if any(value is None for _, value in points):
        return None
    found = model.slope((n, value * n) for n, value in points if value is not None)
    return None if found is None else exactly(found)


def over_naive(view: Any, greatest: str, limit: float) -> list[Effect]:
    """Errors over those of eager steps, of every way but those, in BF16."""
    rows = view.rows("exactness", dtype="bfloat16", greatest=greatest)
    found = {row.params["by"]: row.check.error for row in rows if row.check is not None}
    tiled = {by: error for by, error in found.items() if by not in ("naive", "math")}
    if "naive" not in found or not tiled:
        raise RowsMissing(f"no errors of eager steps and of another way, greatest={greatest}")
    name = "error of {} over naive, BF16"
    return [Effect(name.format(by), exactly(error / found["naive"]), "1", at_most=limit) for by, error in tiled.items()]


def unscaled(view: Any) -> Effect:
    """What goes wrong without rescaling."""
    row = view.one("exactness", by="tiled", greatest="last", dtype="bfloat16")
    return Effect("error without rescaling", view.metric(row, "error_without_rescaling"), "1", WRONG)


def copied(row: Any) -> list[Effect]:
    """How well bytes were counted with a row; nothing where they were not."""
    error = (row.counters.get("known_copy") or {}).get("error")
    return [] if error is None else [Effect("error of counted bytes", exactly(abs(error)), "1", at_most=COPIED)]


@suite.claim("C61")
def two_products(view: Any) -> Finding:
    """Attention by its definition is two products with a softmax between, and four more in its gradient."""
    view.needs_gpu(ON_GPU)
    once, both = (view.one("gpt2-medium", by="naive", passes=passes) for passes in ("forward", "both"))
    gradient = launched(both, "matmul") - launched(once, "matmul")
    return Finding(
        effects=(
            Effect("products forward", exactly(launched(once, "matmul")), "1", 2, 2),
            Effect("softmaxes forward", exactly(launched(once, "softmax")), "1", 1, 1),
        ),
        controls=(Effect("products of the gradient", exactly(gradient), "1", 4, 4),),
        prediction={"forward": 2, "gradient": 4, "gradient_with_recomputation": 5},
        proof="A",
    )


@suite.claim("C63")
def exact_and_linear(view: Any) -> Finding:
    """A way that stores no scores is as exact, and its bytes of DRAM do not grow with the square of the length.

    Keys and values of a head stay in the L2, so that the theorem's square shows in the bytes that leave that.
    """
    effects, controls = over_naive(view, "anywhere", EXACT), [unscaled(view)]
    limits: dict[str, tuple[float | None, float]] = {"naive": SQUARE, "flash": (None, NOT_SQUARE)}
    note = "a CPU counts no bytes: errors alone are judged" if view.on_cpu else ""
    for by, (least, most) in {} if view.on_cpu else limits.items():
        rows = [row for row in view.rows("forward", by=by) if row.params["n"] >= LONG]
        found = slope(rows, lambda row: value(view.dram_bytes(row)))
        if found is None:
            note = NO_COUNTERS
        else:
            effects.append(Effect(f"slope of bytes over the length, {by}", found, "1", least, most))
            controls += copied(rows[-1])
        from_l2 = slope(rows, lambda row: value(view.counter(row, "l2_sectors_read")))
        if by == "flash" and from_l2 is not None:
            effects.append(Effect(f"slope of bytes read from the L2, {by}", from_l2, "1", *SQUARE))
    return Finding(
        effects=tuple(effects),
        controls=tuple(controls),
        prediction={"slope_naive": 2, "slope_flash": 1, "slope_flash_from_l2": 2},
        proof="A",
        note=note,
    )


@suite.claim("C64")
def the_example(view: Any) -> Finding:
    """The lecture's example moves a fraction of the bytes, and takes a fraction of the time."""
    view.needs_gpu("the example is about the bytes of a GPU's DRAM")
    plain, flash = (view.one("gpt2-medium", by=by, passes="both") for by in ("naive-separate", "flash"))
    effects = [Effect("time of naive-separate over flash", view.ratio(plain, flash), TIMES, FASTER)]
    for by in ("naive", "naive-masked", "cudnn", "efficient", "math"):
        other = view.maybe("gpt2-medium", by=by, passes="both")
        if other is not None:
            effects.append(Effect(f"time of naive-separate over {by}", view.ratio(plain, other)))
    gap = view.ratio(*(view.one("one-tile", by=by) for by in ("naive-separate", "flash")))
    stored, moved = value(view.dram_bytes(plain)), value(view.dram_bytes(flash))
    proof, note = ("B", NO_COUNTERS)
    if stored is not None and moved is not None:
        each, note = by_kernel(plain)
        proof = "A"
        effects += [
            Effect("bytes of naive-separate over flash", exactly(stored / moved), TIMES, FEWER),
            Effect("bytes of flash", exactly(moved), "B", at_most=MOST),
            Effect("bytes of naive-separate", exactly(stored), "B"),
            *each,
        ]
    predicted = {f"{by}_bytes": row.prediction.get("bytes") for by, row in (("naive", plain), ("flash", flash))}
    predicted["naive_by_definition_bytes"] = plain.prediction.get("bytes_by_definition")
    return Finding(
        effects=tuple(effects),
        controls=(Effect("time of the same where a tile holds a sequence", gap, "1", at_most=CLOSED), *copied(plain)),
        prediction=predicted | PAPER,
        proof=proof,  # type: ignore[arg-type]
        note=note,
    )


def by_kernel(row: Any) -> tuple[list[Effect], str]:
    """Counted bytes of each kernel of the example over compulsory ones; and where they are a tenth more, what is known
    of the kernel: its name, its grid, and what it read of and wrote to the L2."""
    made = model.steps(row.params["by"], LECTURE, backward=True)
    effects, words = list[Effect](), list[str]()
    for step, kernel, ratio in model.beside_steps(row.counters.get("kernels", ()), made, LECTURE, itemsize=2):
        if ratio is None:
            continue
        effects.append(Effect(f"bytes counted over compulsory, {step}", exactly(ratio), "1"))
        if ratio > 1.1:
            sectors = [kernel.get(f"l2_sectors_{way}") or 0 for way in ("read", "write")]
            through = " and ".join(f"{SECTOR * count / 1e9:.3g} GB" for count in sectors)
            words.append(f"{step} {ratio:.2f}: {kernel['name'][:60]} grid {kernel.get('grid')}, L2 {through}")
    return effects, "; ".join(words)


@suite.claim("C68")
def rescaled_is_exact(view: Any) -> Finding:
    """Partial results that are rescaled give the exact output, wherever the greatest score comes."""
    wide = [row for row in view.rows("exactness", dtype="float32", greatest="last") if row.params["by"] != "naive"]
    return Finding(
        effects=(
            *over_naive(view, "last", ALIKE),
            *(
                Effect(f"error of {row.params['by']}, float32", exactly(row.check.error), "1", at_most=FLOAT32)
                for row in wide
                if row.check is not None
            ),
        ),
        controls=(unscaled(view),),
        prediction={"float32": FLOAT32, "over_naive": ALIKE},
        proof="A",
    )


@suite.claim("C69")
def one_kernel(view: Any) -> Finding:
    """The forward pass of flash is one kernel that stores no scores."""
    view.needs_gpu(ON_GPU)
    flash, plain = (view.one("gpt2-medium", by=by, passes="forward") for by in ("flash", "naive"))
    called = sum(kernel.count for kernel in flash.kernels if ways.named("flash", kernel.name))
    what, stored = "bytes written", [value(view.counter(row, "dram_bytes_write")) for row in (flash, plain)]
    if None in stored:
        peaks = [row.telemetry.get("peak_bytes") for row in (flash, plain)]
        what, stored = (
            "bytes held beside the operands",
            [None if peak is None else peak - flash.work.bytes for peak in peaks],
        )
    of_scores = [exactly(value / (2 * LECTURE.scores)) for value in stored if value is not None]
    if len(of_scores) < 2:
        raise RowsMissing(f"{flash.id}: neither counters nor peak memory")
    return Finding(
        effects=(
            Effect("kernels of flash forward", exactly(launched(flash)), "1", 1, 1),
            Effect("those that are called so", exactly(called), "1", 1, 1),
            Effect(f"{what} by flash over all scores", of_scores[0], "1", at_most=WRITTEN),
        ),
        controls=(
            Effect("kernels of eager steps", exactly(launched(plain)), "1", 4),
            Effect(f"{what} by eager steps over all scores", of_scores[1], "1", STORED),
        ),
        prediction={"kernels": 1},
        proof="A",
    )


@suite.claim("C70")
def recomputed_by_tiles(view: Any) -> Finding:
    """Between its passes flash keeps nothing that grows with the square of the length."""
    figures: dict[str, Figure] = {
        "bytes kept between the passes": lambda row: view.metric(row, "kept_bytes").value,
        "peak memory": lambda row: row.telemetry.get("peak_bytes"),
    }
    effects, controls = list[Effect](), list[Effect]()
    for by, (least, most), found in (("flash", LINEAR, effects), ("naive", SQUARE, controls)):
        rows = view.rows("forward-backward", by=by)
        for name, figure in figures.items():
            grown = slope(rows, figure)
            if grown is not None:
                found.append(Effect(f"slope of {name} over the length, {by}", grown, "1", least, most))
    if not effects or not controls:
        raise RowsMissing("a slope over the length needs three lengths of flash and of naive")
    return Finding(
        effects=tuple(effects),
        controls=tuple(controls),
        prediction={"slope_naive": 2, "slope_flash": 1, "products_of_gradient_over_naive": 5 / 4},
        proof="A",
    )
