"""Attention kernels: what do tiles, fusion and an online softmax gain, step by step, in kernels of our own?

Forward passes softmax(Q·Kᵀ/√d)·V in sixteen bits. The flops are those of the two products, half of them where a
position sees only those before it, whatever a kernel computes besides; the bytes are compulsory: Q, K and V read once
and the output written once. Every output is held against float64, as torch's are in the suite attention, beside which
our FlashAttention stands in two benchmarks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpubench import TIMES, Axis, Effect, Finding, RowsMissing, Skip, Suite, Workload, exactly
from gpubench.model import attention_torch, attention_traffic
from gpubench.model.attention_traffic import Shape

suite = Suite(__file__)

FORMATS = {"DIM": [64, 128], "REAL": ["float16", "bfloat16"]}
FLASH = suite.kernel("flash_forward", defines={**FORMATS, "CAUSAL": [0, 1], "SWEEPS": 1})
TWO_SWEEPS = suite.kernel("flash_forward", defines={**FORMATS, "CAUSAL": 0, "SWEEPS": 2})
KEEPING = suite.kernel("flash_forward", defines={**FORMATS, "DIM": [64], "CAUSAL": 0, "SWEEPS": 1, "KEEP": 1})
RUNGS = "attention_rungs.cu"
NAIVE_SCORES = suite.kernel("naive_scores", defines=FORMATS, source=RUNGS)
NAIVE_VALUES = suite.kernel("naive_values", defines=FORMATS, source=RUNGS)
SOFTMAX_ROWS = suite.kernel("softmax_rows", defines=FORMATS, source=RUNGS)
TILED_SCORES = suite.kernel("tiled_scores", defines=FORMATS, source=RUNGS)
TILED_VALUES = suite.kernel("tiled_values", defines=FORMATS, source=RUNGS)
OUTER_KEYS = suite.kernel("flash_outer_keys", defines=FORMATS, source=RUNGS)

ROWS, KEYS, THREADS, STAGES = 128, 64, 128, 3
"""Queries of a block, keys of a tile, threads, tiles that a block holds: as in attention_kernels.cu and its header."""
SCORE_THREADS = 256
"""Of a block of naive_scores."""
LOG2_E = 1.4426950408889634
HALF, FLOAT = 2, 4
"""Bytes of a number of sixteen bits, and of a float."""


@dataclass(frozen=True)
class Pass:
    """A forward pass that is to be made: its operands, where its output goes, and the defines of its kernels."""

    device: Any
    shape: Shape
    dtype: str
    operands: tuple[Any, Any, Any]
    out: Any

    @property
    def heads(self) -> int:
        """Heads of Q of all sequences."""
        return self.shape.batch * self.shape.heads

    @property
    def formats(self) -> dict[str, Any]:
        """The defines of every kernel."""
        return {"DIM": self.shape.d, "REAL": self.dtype}

    @property
    def exponent(self) -> Any:
        """What takes a score to an exponent of two."""
        import numpy as np

        return np.float32(LOG2_E / self.shape.d**0.5)

    @property
    def pitch(self) -> int:
        """Numbers from one query's scores to the next's: whole chunks of 16 bytes."""
        return 8 * -(-self.shape.n // 8)

    def scores(self) -> Any:
        """Room for all scores, [heads, n, pitch]."""
        return self.device.unwritten((self.heads, self.shape.n, self.pitch), self.dtype)

    def bytes(self, rows: int) -> int:
        """Of so many rows of d numbers."""
        return HALF * self.shape.d * rows


def flash(of: Pass, kernel: Any = FLASH) -> Any:
    """The fused kernel: FLASH, TWO_SWEEPS without an online softmax, or KEEPING, which stores its scores besides."""
    import numpy as np

    shape = of.shape
    logarithms = of.device.unwritten((of.heads, shape.n), "float32")
    more = {"CAUSAL": int(shape.causal)} if kernel is FLASH else {}
    sizes = np.int32(shape.n), np.int32(shape.heads // shape.kv_heads), of.exponent
    kept = (of.scores(), np.int32(of.pitch)) if kernel is KEEPING else ()
    return kernel(
        *of.operands, of.out, logarithms, *sizes, *kept, grid=of.heads * -(-shape.n // ROWS), block=THREADS,
        shared_bytes=of.bytes(ROWS + STAGES * KEYS), **of.formats, **more,
    )  # fmt: skip


def outer_keys(of: Pass) -> Any:
    """The fused kernel of the first FlashAttention: tiles of K and V outside, and all queries inside."""
    import numpy as np

    n, d = of.shape.n, of.shape.d
    rows = ROWS * -(-n // ROWS)
    state = [of.device.unwritten((of.heads, rows, numbers), "float32") for numbers in (d, 8)]
    return OUTER_KEYS(
        *of.operands, of.out, *state, np.int32(n), of.exponent, grid=of.heads, block=THREADS,
        shared_bytes=of.bytes(ROWS + 2 * KEYS), **of.formats,
    )  # fmt: skip


def unfused(of: Pass, tiled: bool) -> Any:
    """Three kernels, with the scores in memory: of products in tiles by the tensor cores, or of plain loops."""
    import numpy as np

    n, d = of.shape.n, of.shape.d
    q, k, v = of.operands
    down, scores = -(-n // ROWS), of.scores()
    sizes, scale = (np.int32(n), np.int32(of.pitch)), np.float32(d**-0.5)
    if tiled:
        multiply = TILED_SCORES(
            q, k, scores, *sizes, scale, grid=of.heads * down * -(-n // KEYS), block=THREADS,
            shared_bytes=of.bytes(ROWS + KEYS), **of.formats,
        )  # fmt: skip
        weighted = TILED_VALUES(
            scores, v, of.out, *sizes, grid=of.heads * down, block=THREADS,
            shared_bytes=2 * (of.bytes(KEYS) + HALF * ROWS * KEYS), **of.formats,
        )  # fmt: skip
    else:
        blocks = of.heads * n
        grid = blocks * -(-n // SCORE_THREADS)
        multiply = NAIVE_SCORES(q, k, scores, *sizes, scale, grid=grid, block=SCORE_THREADS, **of.formats)
        weighted = NAIVE_VALUES(scores, v, of.out, *sizes, grid=blocks, block=d, **of.formats)
    threads = min(1024, 32 * -(-n // 256))  # eight numbers each
    return multiply, SOFTMAX_ROWS(scores, *sizes, grid=of.heads * n, block=threads, **of.formats), weighted


BY = {
    "naive": lambda of: unfused(of, tiled=False),
    "tiled": lambda of: unfused(of, tiled=True),
    "two-sweeps": lambda of: flash(of, TWO_SWEEPS),
    "keeping": lambda of: flash(of, KEEPING),
    "outer-keys": outer_keys,
    "flash": flash,
}
"""The rungs: plain loops, tiles that are not fused, fused without an online softmax, fused and online with its scores
stored for a backward pass that does not compute them again, fused in the order of the first FlashAttention, and
FlashAttention."""
STORING = ("naive", "tiled", "keeping")
"""Those that need room for all scores."""


def forward(device: Any, by: str, shape: Shape, dtype: str, last: bool = False) -> Workload:
    """A forward pass by one of our kernels as a row; with `last` the last key is the greatest of nearly every query.
    Skip where the memory for its scores is not free."""
    import torch

    stored, free = attention_traffic.needed("naive", shape, HALF), device.free_bytes()
    if by in STORING and free is not None and stored > free:
        raise Skip(f"needs {stored / 1e9:.3g} GB, free {free / 1e9:.3g} GB")
    if by == "keeping" and shape.d != 64:
        raise Skip("scores are kept at d = 64 only: wider heads leave no registers for it")
    operands = attention_torch.drawn(device, shape, dtype, last)
    of = Pass(device, shape, dtype, operands, device.unwritten(tuple(operands[0].shape), dtype))
    return Workload(run=BY[by](of), output=of.out, **attention_torch.held(torch, operands, shape, dtype))


HEADS, DTYPE = Axis([16], cpu=[1]), Axis(["float16"], choices=["float16", "bfloat16"])


@suite.benchmark(
    by=Axis(list(BY)), n=Axis([1024], cpu=[64]), d=Axis([64]), batch=Axis([16], cpu=[1]), heads=HEADS, dtype=DTYPE
)
def ladder(device: Any, by: str, n: int, d: int, batch: int, heads: int, dtype: str) -> Workload:
    """Kernels of our own: plain loops, tiles, fused in two sweeps, keeping scores, the first version's order, all."""
    return forward(device, by, Shape(batch, heads, heads, n, d), dtype)


@suite.benchmark(
    n=Axis([1024, 4096], cpu=[64]), d=Axis([64, 128], cpu=[64]), mask=Axis(["none", "causal"]), group=Axis([1]),
    tokens=Axis([65536], cpu=[64]), heads=HEADS, dtype=DTYPE,
)  # fmt: skip
def ours(device: Any, n: int, d: int, mask: str, group: int, tokens: int, heads: int, dtype: str) -> Workload:
    """Our FlashAttention over lengths, as many sequences as make up the tokens; `group` query heads share keys."""
    if heads % group:
        raise Skip(f"{heads} query heads are no groups of {group}")
    shape = Shape(max(1, tokens // n), heads, heads // group, n, d, mask == "causal")
    return forward(device, "flash", shape, dtype)


OURS = "ours"
BESIDE = [OURS, "naive", "flash", "cudnn", "efficient"]
"""Our FlashAttention, torch's eager steps, and its back-ends, each pinned and read back."""
SHAPES = {"lecture": Shape(64, 16, 16, 1024, 64), "long": Shape(4, 16, 16, 4096, 128)}
"""The lecture's example, and a long one with wide heads."""


def beside(device: Any, by: str, shape: Shape, dtype: str, last: bool = False) -> Workload:
    """A forward pass by one of BESIDE as a row."""
    import torch

    if device.kind == "cpu":
        raise Skip("our kernels have no CPU counterpart to stand beside torch's")
    if by == OURS:
        return forward(device, "flash", shape, dtype, last)
    return Workload(**attention_torch.measured(torch, device, by, shape, dtype, last=last))


@suite.benchmark(by=Axis(BESIDE), shape=Axis(list(SHAPES)), dtype=DTYPE)
def beside_torch(device: Any, by: str, shape: str, dtype: str) -> Workload:
    """Our FlashAttention beside torch's eager steps and back-ends, in the lecture's example and in a longer one."""
    return beside(device, by, SHAPES[shape], dtype)


@suite.benchmark(
    by=Axis([OURS, "naive"], choices=BESIDE), greatest=Axis(["anywhere", "last"]), d=Axis([64, 128]), n=Axis([1025]),
    heads=Axis([8]), dtype=Axis(["bfloat16"], choices=["float16", "bfloat16"]),
)  # fmt: skip
def exactness(device: Any, by: str, greatest: str, d: int, n: int, heads: int, dtype: str) -> Workload:
    """How far our FlashAttention is from float64, of plain numbers and where the greatest score comes last."""
    made = beside(device, by, Shape(1, heads, heads, n, d), dtype, greatest == "last")
    made.primary = "time"
    return made


ORDERS = {"keys": "outer-keys", "queries": "flash"}
"""What is in the outer loop, and the rung that has it there."""


@suite.benchmark(
    order=Axis(list(ORDERS)), n=Axis([KEYS, 1024, 4096], cpu=[64]), tokens=Axis([32768], cpu=[64]), heads=HEADS,
    dtype=DTYPE,
)  # fmt: skip
def loop_order(device: Any, order: str, n: int, tokens: int, heads: int, dtype: str) -> Workload:
    """The same tiles with K and V in the outer loop, and with Q there, over the length; 64 keys are one tile."""
    return forward(device, ORDERS[order], Shape(max(1, tokens // n), heads, heads, n, 64), dtype)


# The lecture's claims.

WRITTEN, ORDER_BY_TIME = 3, 1.1
"""Bytes written with keys outside over those with queries there, at the longest length; its time where nothing was
counted."""
SAME = 0.8, 1.25
"""The same where one tile holds all keys: the logarithms of sums are written by one of them only."""
SLOWER, MORE = 1.1, 2
"""Time or bytes without an ingredient over those with all, one of which is enough."""
INGREDIENTS = {"the online softmax": "two-sweeps", "fusion": "tiled"}
"""What a rung is without."""
KNOWN = 0.05
"""Half of the interval of a time over its median."""
NO_COUNTERS = "no counters: inferred from time"


@suite.claim("C65")
def keys_outside(view: Any) -> Finding:
    """With keys in the outer loop the output is written once for each of their tiles."""
    view.needs_gpu("the loops are those of kernels for GPUs")
    sizes = sorted({row.params["n"] for row in view.rows("loop-order")})
    if len(sizes) < 2:
        raise RowsMissing("one length of loop-order only")
    long, short = ([view.one("loop-order", order=order, n=n) for order in ORDERS] for n in (sizes[-1], sizes[0]))
    written = [[view.counter(row, "l2_sectors_write") for row in pair] for pair in (long, short)]
    counted = not any(None in pair for pair in written)
    what = "bytes written to the L2" if counted else "time"
    at_long, at_short = [
        keys.over(queries) if counted else view.ratio(*pair)
        for pair, (keys, queries) in zip((long, short), written, strict=True)
    ]
    limit = WRITTEN if counted else ORDER_BY_TIME
    time = [Effect(f"time at {sizes[-1]}", view.ratio(*long), TIMES)] if counted else []
    return Finding(
        effects=(Effect(f"{what} with keys outside over queries, n = {sizes[-1]}", at_long, TIMES, limit), *time),
        controls=(Effect(f"{what} where a tile holds all keys, n = {sizes[0]}", at_short, "1", *SAME),),
        prediction={"written": sizes[-1] / KEYS},
        proof="A" if counted else "B",
        note="" if counted else NO_COUNTERS,
    )


@suite.claim("C71")
def each_ingredient(view: Any) -> Finding:
    """Fusion, the online softmax and recomputation, left out one at a time with the same tiles, cost time or bytes.

    What recomputation saves is what the forward pass stores without it; files made before December 2026 lack that row.
    """
    view.needs_gpu("the kernels are those of a GPU")
    full = view.one("ladder", by="flash")
    same = {**full.params, "by": None}
    effects, counted = list[Effect](), False
    rows = {what: view.one("ladder", **{**same, "by": by}) for what, by in INGREDIENTS.items()}
    keeping = view.maybe("ladder", **{**same, "by": "keeping"})
    for what, row in (rows | ({} if keeping is None else {"recomputation": keeping})).items():
        time, moved = view.ratio(row, full), [view.dram_bytes(each) for each in (row, full)]
        name = f"without {what} over with all"
        if time.low < SLOWER and None not in moved:
            counted = True
            effects.append(Effect(f"bytes {name}", moved[0].over(moved[1]), TIMES, MORE))  # type: ignore[operator]
        else:
            effects.append(Effect(f"time {name}", time, TIMES, SLOWER))
    for what, by in (("neither, nor tiles and tensor cores", "naive"), ("all, keys outside", "outer-keys")):
        other = view.maybe("ladder", **{**same, "by": by})
        effects += [] if other is None else [Effect(f"time with {what} over with all", view.ratio(other, full))]
    effects += worth(view)
    known = view.median(full)
    width = exactly((known.high - known.low) / 2 / known.value)
    return Finding(
        effects=tuple(effects),
        controls=(Effect("how well the time with all is known", width, "1", at_most=KNOWN),),
        prediction={
            "products_without_online_softmax": 3 / 2,
            "passes_without_fusion": 4,
            "bytes_without_recomputation": 1 + full.params["n"] / (4 * full.params["d"]),
        },
        proof="A" if counted else "B",
        note="" if keeping is not None else "recomputation is the backward pass's: C70",
    )


def worth(view: Any) -> list[Effect]:
    """For information: what our kernel with all of them is worth beside torch's own, in the lecture's example."""
    found = {by: view.maybe("beside-torch", by=by, shape="lecture", dtype="float16") for by in BESIDE}
    mine = found.pop(OURS)
    return [
        Effect(f"time of torch's {by} over ours", view.ratio(row, mine))
        for by, row in found.items()
        if mine is not None and row is not None
    ]
