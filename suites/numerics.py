"""Numerics: what does a number format lose where numbers are added, and where they are too large or too small?

Errors are metrics of a row, and its time is beside the point: nothing here depends on the caches, so that every row is
measured hot. A CPU finds the same figures, but for those of tensor cores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil, isqrt, log2
from typing import Any, Literal

from gpubench import TIMES, Axis, Effect, Estimate, Finding, Metric, Suite, Unsupported, Workload, exactly
from gpubench.model import matmul as work
from gpubench.model import numerics

suite = Suite(__file__)

HOT = Axis(["hot"])
NUMBERS = {"float16": "Float16", "bfloat16": "Bfloat16", "float32": "float"}
"""Formats in which ones are added, and the type of each in numerics.cu."""
ADD_ONES = suite.kernel("add_ones", defines={"NUMBER": list(NUMBERS.values())})
PIECES, STALL_PIECES, CHECKED = 80, 64, 32
"""Pieces that a sum of ones is made in; those of them that reach the number where it should stop; and those which every
arithmetic gets right, and which are checked."""


@suite.benchmark(dtype=Axis(list(NUMBERS)), cache=HOT)
def accumulate(device: Any, dtype: str) -> Workload:
    """Ones added one by one in a format, until long after it has no number for the next sum.

    The sum is made in pieces side by side, each beginning with the number that the piece before it must end with: as
    long as it does, they are one sum. The first that falls short is where it stops.
    """
    import numpy as np

    piece = numerics.stall(dtype) // STALL_PIECES
    sums = device.unwritten(PIECES, "float32").fill_(float("nan"))
    return Workload(
        run=ADD_ONES(sums, np.float32(1), np.int32(piece), np.int32(PIECES), grid=1, block=128, NUMBER=NUMBERS[dtype]),
        output=sums[:CHECKED],
        reference=lambda: piece * (1 + sums.new_tensor(range(CHECKED)).double()),
        reference_name="the number of ones, up to half of where it should stop",
        flops=PIECES * piece,
        accumulate="exact",
        primary="time",
        prediction={"stalls_at": numerics.stall(dtype)},
        metrics=lambda: stalled(sums.tolist(), piece, dtype),
    )


def stalled(sums: Sequence[float], piece: int, dtype: str) -> list[Metric]:
    """Where a sum made in pieces stops: at what the first piece that falls short of its ones comes to. And how far it
    is from the number of all ones then, in units in the last place of that number."""
    short = (end for number, end in enumerate(sums, 1) if end != number * piece)
    stop, ones = next(short, sums[-1]), piece * len(sums)
    unit = numerics.FORMATS[dtype].eps * 2 ** int(log2(ones))
    return [Metric("stalls_at", stop, "1", "higher"), Metric("ulps", (ones - stop) / unit, "1", "lower")]


@suite.benchmark(
    dtype=Axis(["float16", "bfloat16"], choices=list(NUMBERS)),
    how=Axis(["library", "in-pairs"]),
    n=Axis([10_000]),
    cache=HOT,
)
def sum_ones(device: Any, dtype: str, how: str, n: int) -> Workload:
    """The library's sum of n ones of a format, which it adds up in float32; or theirs in pairs, in the format itself.

    In pairs, as the threads of a warp add up, a sum loses nothing for much longer: both sides grow alike.
    """
    import torch

    ones = device.unwritten(n, dtype).fill_(1)
    in_pairs = how == "in-pairs"
    add = (lambda: numerics.pairwise(ones)) if in_pairs else (lambda: torch.sum(ones, dim=0, keepdim=True))
    return Workload(
        run=add,
        output=None,
        reference=lambda: torch.full((1,), n, dtype=torch.float64),
        reference_name="the number of ones",
        flops=n - 1,
        bytes=ones.nbytes,
        reduction=ceil(log2(n)) if in_pairs and n > 1 else n,
        accumulate=dtype if in_pairs else "float32",
        primary="time",
        metrics=lambda: [Metric("sum", float(add()), "1", "none")],
    )


REACH = 128
"""Arguments from -REACH to REACH: exp of either is beyond the range of float32."""
FEWER = "vanishes_at", "nonzero_from", "holes"
"""Figures of exp's range that are better the lower they are; of the others, the higher."""
SURE = 0.9
"""The share of the way to either end in which results are checked."""


@suite.benchmark(dtype=Axis(list(numerics.FORMATS)), steps=Axis([128]), cache=HOT)
def exp_range(device: Any, dtype: str, steps: int) -> Workload:
    """exp over a grid of `steps` arguments a unit, rounded to the format: where it overflows and where it vanishes.

    The arguments are in the format too, which may have fewer numbers than the grid; of float8 they are in float32.
    """
    import torch

    n = 2 * REACH * steps + 1
    narrow = {"float8_e4m3": torch.float8_e4m3fn, "float8_e5m2": torch.float8_e5m2}.get(dtype)
    x = device.unwritten(n, "float32" if narrow else dtype)
    x.copy_(torch.arange(n, dtype=torch.float64).div_(steps).sub_(REACH))
    out = torch.empty_like(x, dtype=narrow)
    ends = numerics.exp_ends(dtype)
    sure = slice(*(int((x < SURE * ends[end]).sum()) for end in ("underflow", "overflow")))

    def exponential() -> None:
        if narrow:
            out.copy_(torch.exp(x))
        else:
            torch.exp(x, out=out)

    return Workload(
        run=exponential,
        output=out[sure],
        reference=lambda: x[sure].double().exp(),
        reference_name="float64 exp",
        flops=n,
        bytes=x.nbytes + out.nbytes,
        primary="time",
        prediction={**ends, "largest": numerics.FORMATS[dtype].largest},
        metrics=lambda: [
            Metric(name, value, "1", "lower" if name in FEWER else "higher")
            for name, value in numerics.reached(x.double(), out.double()).items()
        ],
    )


PLAIN, CANCELLING = ["relu", "tanh", "add", "mul"], ["gelu", "matmul"]
"""Operations, and those that add numbers of opposite sign: where these cancel, what is left is no more exact than they
were, whatever it is written in."""


@suite.benchmark(
    op=Axis([*PLAIN, *CANCELLING]),
    dtype=Axis(["float16", "bfloat16"]),
    n=Axis([2**20], cpu=[2**14], minimum=4),
    cache=HOT,
)
def pointwise_error(device: Any, op: str, dtype: str, n: int) -> Workload:
    """One operation on n numbers of sixteen bits, against float64 on the same numbers, in units in the last place.

    matmul is the product of two square matrices of as many numbers.
    """
    import torch

    side = isqrt(n)
    shape = (side, side) if op == "matmul" else (n,)
    x, y = (device.random(shape, dtype, seed=seed) for seed in (0, 1))
    operation: Callable[[Any, Any], Any] = {
        "relu": lambda x, y: torch.relu(x),
        "tanh": lambda x, y: torch.tanh(x),
        "add": torch.add,
        "mul": torch.mul,
        "gelu": lambda x, y: torch.nn.functional.gelu(x),
        "matmul": torch.mm,
    }[op]
    reference = cache(lambda: operation(x.double(), y.double()))
    tensors = 3 if op in ("add", "mul", "matmul") else 2
    return Workload(
        run=lambda: operation(x, y),
        output=None,
        reference=reference,
        reference_name=f"float64 {op}",
        flops=work.flops(side, side, side) if op == "matmul" else 0,
        bytes=tensors * x.nbytes,
        reduction=side if op == "matmul" else 1,
        precision="fp32-sums" if op == "matmul" else "ieee",
        primary="time",
        labels={"cancels": "yes" if op in CANCELLING else "no"},
        metrics=lambda: last_places(operation(x, y), reference(), dtype),
    )


def last_places(out: Any, right: Any, dtype: str) -> list[Metric]:
    """The largest error in units in the last place: of the right result, and of no smaller a number than the root of
    the mean square of all."""
    typical = float(right.square().mean().sqrt())
    found = {"ulps": numerics.ulps(out, right, dtype), "ulps_of_rms": numerics.ulps(out, right, dtype, typical)}
    return [Metric(name, value, "1", "lower") for name, value in found.items()]


@dataclass(frozen=True)
class Arithmetic:
    """How a product is computed: dtypes of operands and output, and the accumulator and the mode of its Workload."""

    stored: str
    output: str
    accumulate: str = "float32"
    precision: Literal["ieee", "tf32", "fp32-sums", "fp16-sums"] = "fp32-sums"


ARITHMETIC: Mapping[str, Arithmetic] = {
    "float32": Arithmetic("float32", "float32"),
    "tf32": Arithmetic("float32", "float32", precision="tf32"),
    "bfloat16": Arithmetic("bfloat16", "bfloat16"),
    "float16": Arithmetic("float16", "float16"),
    "float16-fp32-out": Arithmetic("float16", "float32", "tensor-float32"),
    "float16-fp16-accum": Arithmetic("float16", "float16", "float16", "fp16-sums"),
    "float8_e4m3": Arithmetic("float8_e4m3", "float32", "tensor-float8"),
    "float8_e4m3-fast-accum": Arithmetic("float8_e4m3", "float32", "tensor-float8"),
}
"""Written in sixteen bits, an output hides what its sum lost; in float32 it shows the accumulator itself."""
ON_CPU = ["float32", "bfloat16", "float16"]
"""Those that a CPU has."""


def matrices(device: Any, m: int, n: int, k: int, arithmetic: str, ones: bool = False) -> tuple[Any, Any]:
    """The operands [m, k] and [n, k] of a product, which takes the second transposed. Unsupported where the device has
    no such arithmetic."""
    import torch

    stored = ARITHMETIC[arithmetic].stored
    if device.kind != "cuda" and arithmetic == "float16-fp32-out":
        raise Unsupported("torch writes products of float16 as float32 on a GPU only")
    if stored == "float8_e4m3" and (device.kind != "cuda" or torch.cuda.get_device_capability() < (8, 9)):
        raise Unsupported("float8 matrix products need compute capability 8.9 or newer")
    if stored == "float8_e4m3" and (n % 16 or k % 16):
        raise Unsupported(f"float8 matrix products need n and k that are multiples of 16, not {n} and {k}")
    drawn = "bfloat16" if stored == "float8_e4m3" else stored
    made = (device.unwritten(shape, drawn).fill_(1) if ones else device.random(shape, drawn, seed=seed)
            for seed, shape in enumerate(((m, k), (n, k))))  # fmt: skip
    a, b = (x.to(torch.float8_e4m3fn) for x in made) if stored == "float8_e4m3" else made
    return a, b


def product(device: Any, a: Any, b: Any, arithmetic: str) -> dict[str, Any]:
    """The fields of a Workload that computes a · bᵀ in one of ARITHMETIC: all but the reference and what it shows."""
    import torch

    how = ARITHMETIC[arithmetic]
    (m, k), n = a.shape, b.shape[0]
    c = device.unwritten((m, n), how.output)
    unit = torch.ones((), device=a.device)

    def multiply() -> None:
        if how.stored == "float8_e4m3":
            torch._scaled_mm(
                a, b.t(), scale_a=unit, scale_b=unit, out_dtype=torch.float32,
                use_fast_accum=arithmetic.endswith("fast-accum"), out=c,
            )  # fmt: skip
        elif how.output != how.stored:
            torch.mm(a, b.t(), out_dtype=c.dtype, out=c)
        else:
            torch.mm(a, b.t(), out=c)

    short = arithmetic == "float16-fp16-accum"  # some GPUs are twice as fast with it as their figure for float16
    return {
        "run": multiply, "output": c, "flops": work.flops(m, n, k), "bytes": a.nbytes + b.nbytes + c.nbytes,
        "reduction": k, "accumulate": how.accumulate, "precision": how.precision, "primary": "time",
        "dtype": None if short else "tf32" if arithmetic == "tf32" else how.stored,
    }  # fmt: skip


@suite.benchmark(
    arithmetic=Axis(list(ARITHMETIC), cpu=ON_CPU),
    k=Axis([4**power for power in range(3, 9)], quick=[64, 4096, 16384]),
    n=Axis([2048], cpu=[32], quick_cpu=[16]),
    cache=HOT,
)
def matmul_error(device: Any, arithmetic: str, k: int, n: int) -> Workload:
    """The product of an n × k and a k × n matrix against float64: its error, as the number of terms grows."""
    a, b = matrices(device, n, n, k, arithmetic)
    fields = product(device, a, b, arithmetic)
    reference = cache(lambda: a.double() @ b.double().t())

    def error() -> list[Metric]:
        right = reference()
        return [Metric("error", float((fields["output"].double() - right).norm() / (right.norm() or 1)), "1", "lower")]

    return Workload(
        reference=reference,
        reference_name=work.reference_name(ARITHMETIC[arithmetic].stored),
        prediction=numerics.matmul_error(arithmetic, k, device.facts()),
        metrics=error,
        **fields,
    )


@suite.benchmark(
    arithmetic=Axis([*ON_CPU, "float16-fp16-accum"], cpu=ON_CPU, choices=list(ARITHMETIC)),
    k=Axis([4096]),
    n=Axis([1024], cpu=[32]),
    cache=HOT,
)
def ones_product(device: Any, arithmetic: str, k: int, n: int) -> Workload:
    """The product of two matrices of ones: every element is k, which a sum in float32 hits exactly."""
    import torch

    fields = product(device, *matrices(device, n, n, k, arithmetic, ones=True), arithmetic)
    c = fields["output"]
    return Workload(
        reference=lambda: torch.full((n, n), k, dtype=torch.float64, device=c.device),
        reference_name="the number of ones",
        labels={"control": "nothing to round"},
        metrics=lambda: [Metric("largest_error", float((c.double() - k).abs().max()), "1", "lower")],
        **fields,
    )


# The lecture's claims.

WORDS = {
    "float16": "FP16", "bfloat16": "BF16", "float32": "FP32", "float8_e4m3": "FP8 E4M3", "float8_e5m2": "FP8 E5M2",
}  # fmt: skip
K = 16384
EXACTER = 4
"""The error with sums in FP32 is that of rounding the output once, 2e-4; with sums in FP16 it is 20 times that."""
ROUNDED = 2
"""How many times the error that their roundings explain sums in FP16 may have: 1.1 on an H200, a wrong result any."""
ULPS = 2
"""Rounding to nearest costs half a unit in the last place, a function that is not correctly rounded in float32 no more;
two are the limit for any operation that is said to be safe."""


def must_be(name: str, found: Estimate, value: float) -> Effect:
    """A figure that has one right value."""
    return Effect(name, found, "1", value, value)


@suite.claim("C36")
def sums_in_float32(view: Any) -> Finding:
    """Tensor cores add products of FP16 in FP32: their error is far below that of sums in FP16."""
    view.needs_gpu("a CPU has no tensor cores")
    short, full = (view.one("matmul-error", arithmetic=how, k=K) for how in ("float16-fp16-accum", "float16"))
    fp8 = [view.maybe("matmul-error", arithmetic=how, k=K) for how in ("float8_e4m3-fast-accum", "float8_e4m3")]
    shown = [view.metric(row, "error") for row in fp8 if row is not None]
    explained = short.prediction.get("error")
    lost = [] if not explained else [view.metric(short, "error").times(1 / explained)]
    return Finding(
        effects=(
            Effect(
                f"error of FP16 sums over FP32 sums at K = {K}",
                view.metric(short, "error").over(view.metric(full, "error")), TIMES, EXACTER,
            ),
            Effect("time with FP32 sums over FP16 sums", view.ratio(full, short)),
            *([Effect("error of FP8 with fast accumulation over without", shown[0].over(shown[1]))]
              if len(shown) == 2 else []),
        ),
        controls=(
            *(
                must_be(
                    f"error of a sum of 4096 ones of {WORDS[how]}",
                    view.metric(view.one("ones-product", arithmetic=how, k=4096), "largest_error"), 0,
                )
                for how in ("float16", "bfloat16")
            ),
            *(Effect("error of FP16 sums over that of their roundings", each, "1", None, ROUNDED) for each in lost),
        ),
        prediction={how: row.prediction.get("error") for how, row in (("FP16 sums", short), ("FP32 sums", full))},
        proof="A",
    )  # fmt: skip


@suite.claim("C37")
def safe_in_16_bits(view: Any) -> Finding:
    """Products and pointwise operations are as exact as their format; a long sum in it is not."""

    def worst(ops: Sequence[str], dtype: str, metric: str) -> Estimate:
        return exactly(max(view.metric(view.one("pointwise-error", op=op, dtype=dtype), metric).value for op in ops))

    effects: list[Effect] = []
    for dtype in ("float16", "bfloat16"):
        plain, cancelling = (f"{', '.join(ops)} in {WORDS[dtype]}" for ops in (PLAIN, CANCELLING))
        effects += [
            Effect(f"{plain}, last places", worst(PLAIN, dtype, "ulps"), "1", None, ULPS),
            Effect(f"{cancelling}, last places of all", worst(CANCELLING, dtype, "ulps_of_rms"), "1", None, ULPS),
            Effect(f"{cancelling}, last places of each", worst(CANCELLING, dtype, "ulps")),
        ]
    long = view.metric(view.one("accumulate", dtype="float16"), "ulps")
    return Finding(
        effects=tuple(effects),
        controls=(Effect("ones added one by one in FP16, last places", long, "1", 10 * ULPS),),
        proof="A",
        note="where terms cancel, what is left is no more exact than they were",
    )


@suite.claim("C38")
def sums_stall(view: Any) -> Finding:
    """A sum of ones stops at 2^p, p being the digits of the format it is added up in."""
    rows = {dtype: view.one("accumulate", dtype=dtype) for dtype in NUMBERS}
    library, in_pairs = (view.one("sum-ones", dtype="float16", how=how, n=10_000) for how in ("library", "in-pairs"))
    return Finding(
        effects=(
            *(
                must_be(f"a sum of ones stops in {WORDS[dtype]}", view.metric(row, "stalls_at"), numerics.stall(dtype))
                for dtype, row in rows.items()
            ),
            Effect("10000 ones of FP16 added in pairs, in FP16", view.metric(in_pairs, "sum")),
        ),
        controls=(must_be("10000 ones of FP16 added by the library, in FP32", view.metric(library, "sum"), 10_000),),
        prediction={WORDS[dtype]: numerics.stall(dtype) for dtype in rows},
        proof="A",
        note="in pairs, as the threads of a warp add, sums stop far later",
    )


def between(view: Any, row: Any, end: str, inner: str, outer: str) -> Effect:
    """Where exp leaves a format lies between two arguments; its limits are the predicted place, a step either way."""
    dtype = row.params["dtype"]
    low, high = sorted(view.metric(row, name).value for name in (inner, outer))
    expected, step = numerics.exp_ends(dtype)[end], high - low
    name = f"{end} of exp in {WORDS[dtype]}"
    return Effect(name, Estimate((low + high) / 2, low, high), "1", expected - step, expected + step)


@suite.claim("C39")
def range_of_exp(view: Any) -> Finding:
    """exp overflows and vanishes where the largest and the least number of a format say; FP16 has little room."""
    rows = {dtype: view.one("exp-range", dtype=dtype) for dtype in numerics.FORMATS}
    wide, narrow = {dtype: rows[dtype] for dtype in NUMBERS}, ("float8_e4m3", "float8_e5m2")
    return Finding(
        effects=(
            *(between(view, row, "overflow", "finite_to", "overflows_at") for row in wide.values()),
            between(view, rows["float16"], "underflow", "nonzero_from", "vanishes_at"),
            *(
                must_be(
                    f"largest result in {WORDS[dtype]}", view.metric(rows[dtype], "largest"),
                    numerics.FORMATS[dtype].largest,
                )
                for dtype in narrow
            ),
        ),
        controls=tuple(
            must_be(f"results lost between the ends in {WORDS[dtype]}", view.metric(row, "holes"), 0)
            for dtype, row in wide.items()
        ),
        prediction={f"overflow in {WORDS[dtype]}": numerics.exp_ends(dtype)["overflow"] for dtype in wide},
        proof="A",
    )  # fmt: skip
