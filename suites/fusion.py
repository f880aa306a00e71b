"""Fusion: what does it save to do several operations in one kernel, and does torch.compile do it?

Run one by one, operations ship every intermediate result to memory and back; fused, the result of one is the input of
the next in a register. Each expression runs as torch runs it (`eager`), compiled by torch.compile for the shapes of its
row (`compiled`), and some as a kernel written by hand (`kernel`). Bytes are those of the fused form, which every way
must move; predictions say what each way does move. Compiling is not in a row's time: a compiled row has its seconds as
`compile_time`. The product of two matrices is the control, as there is nothing in it to fuse. On a CPU a kernel is a
loop over all elements: inductor writes it in C++, and the kernels by hand have counterparts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gpubench import TIMES, Axis, Effect, Estimate, Finding, RowsMissing, Skip, Suite, Workload, exactly
from gpubench.model import fusion
from gpubench.model import matmul as product

suite = Suite(__file__)

LENGTHS = [1, 2, 3, 4, 6, 8, 16]
VECTOR, BLOCK = 4, 256
"""Elements that a thread takes, as in fusion.cu; threads of a block."""
FACTOR, TERM = 0.9375, 0.0625
"""Of the chain's products and sums: its values stay near 1."""
DROPPED = 0.1
"""The share of elements that dropout drops."""
DEVIATIONS = 6
"""By how many standard deviations the share that was dropped may be off; it is more once in a billion calls."""
CUBIC, ROOT = 0.044715, math.sqrt(2 / math.pi)
"""Of GELU in its form with tanh (Hendrycks and Gimpel, arXiv:1606.08415)."""
EPSILON = 1e-5
"""Added to the variance of a layer norm, as torch does."""
ROUNDINGS = {"gelu": 9, "layer-norm": 9, "bias-residual-dropout": 3, "mlp": 11}
"""Operations of an expression, each of which rounds to the format of its tensors."""

CHAIN = suite.kernel("chain", defines={"LINKS": LENGTHS})
SINE_COSINE = suite.kernel("sin2_cos2")

WAYS = Axis(["eager", "compiled", "kernel"])
BY_TORCH = Axis(["eager", "compiled"])
DTYPE = Axis(["bfloat16"], cpu=["float32"], choices=["float32", "float16", "bfloat16"])
SIDE = Axis([4096], cpu=[512], minimum=2)


def way(device: Any, by: str, function: Callable[..., Any], *tensors: Any) -> dict[str, Any]:
    """What runs a function of tensors eager or compiled, and tells of the compiler where there is one."""
    if by != "compiled":
        return {"run": lambda: function(*tensors), "output": None}
    compiled = device.compile(function)
    return {"run": lambda: compiled(*tensors), "output": None, "metrics": compiled.metrics}


def predicted(
    device: Any, by: str, n: int, reads: tuple[int, ...], itemsize: int = 4, short: int = 0, **more: Any
) -> dict[str, Any]:
    """What the model says of n elements: of operations one by one, or fused (over one input, if it is not told)."""
    fused = {} if by in ("eager", "one") else {"inputs": 1} | more
    return fusion.figures(n, itemsize, reads, device.facts(), short=short, **fused)


def by_hand(device: Any, kernel: Any, x: Any, *scalars: Any, **defines: int) -> dict[str, Any]:
    """What runs a kernel of fusion.cu on all of x."""
    import numpy as np

    n = x.numel()
    if n % VECTOR:
        raise Skip(f"a thread takes {VECTOR} elements, and {n} are not whole {VECTOR}s")
    y = device.unwritten(n, "float32")
    grid = -(-n // (VECTOR * BLOCK))
    return {"run": kernel(x, y, *scalars, np.int64(n), grid=grid, block=BLOCK, **defines), "output": y}


def links(k: int) -> Callable[[Any], Any]:
    """k operations in a row: a product, a sum, a product, …"""

    def linked(x: Any) -> Any:
        for link in range(k):
            x = x + TERM if link % 2 else x * FACTOR
        return x

    return linked


@suite.benchmark(
    by=WAYS,
    k=Axis(LENGTHS, cpu=[1, 4], quick=[1, 4], quick_cpu=[4]),
    n=Axis([2**26], cpu=[2**21], minimum=1),
)
def chain(device: Any, by: str, k: int, n: int) -> Workload:
    """k operations on every element, each a product or a sum."""
    import numpy as np

    if by == "kernel" and k not in LENGTHS:
        raise Skip(f"the kernel is compiled for k of {', '.join(map(str, LENGTHS))}")
    x, function = device.random(n, "float32"), links(k)
    scalars = np.float32(FACTOR), np.float32(TERM)
    run = by_hand(device, CHAIN, x, *scalars, LINKS=k) if by == "kernel" else way(device, by, function, x)
    return Workload(
        **run,
        reference=lambda: function(x.double()),
        reference_name="float64 chain",
        flops=k * n,
        bytes=8 * n,
        reduction=k,
        dtype="float32",
        level="DRAM",
        primary="bytes",
        labels={"control": "one operation"} if k == 1 else {},
        prediction=predicted(device, by, n, fusion.chain(k), instructions=(k, k)),
    )


def angles(device: Any, n: int) -> Any:
    """n float32 between -π and π: far from where sine and cosine take a slow path."""
    return device.random(n, "float32").clamp_(-math.pi, math.pi)


def sine_cosine(x: Any) -> Any:
    """The lecture's example, in its words."""
    import torch

    return torch.sin(x) ** 2 + torch.cos(x) ** 2


@suite.benchmark(by=WAYS, n=Axis([2**29], cpu=[2**21], quick=[2**26], minimum=1))
def sin2_cos2(device: Any, by: str, n: int) -> Workload:
    """sin² + cos² of every element: five operations."""
    x = angles(device, n)
    run = by_hand(device, SINE_COSINE, x) if by == "kernel" else way(device, by, sine_cosine, x)
    return Workload(
        **run,
        reference=lambda: x.new_ones(x.shape),
        reference_name="1",
        bytes=8 * n,
        dtype="float32",
        level="DRAM",
        prediction=predicted(device, by, n, fusion.SIN2_COS2, instructions=fusion.trigonometric(2)),
    )


def cosine(x: Any) -> Any:
    """One operation."""
    return x.cos()


def cosine_of_cosine(x: Any) -> Any:
    """Two."""
    return x.cos().cos()


@suite.benchmark(by=Axis(["one", "eager", "compiled"]), n=Axis([2**26], cpu=[2**21], minimum=1))
def cos_cos(device: Any, by: str, n: int) -> Workload:
    """The cosine of the cosine, and one cosine alone."""
    x, cosines = angles(device, n), 1 if by == "one" else 2
    function = cosine if by == "one" else cosine_of_cosine

    return Workload(
        **way(device, by, function, x),
        reference=lambda: function(x.double()),
        reference_name="float64 cosine",
        bytes=8 * n,
        reduction=cosines,
        dtype="float32",
        level="DRAM",
        prediction=predicted(device, by, n, fusion.chain(cosines), instructions=fusion.trigonometric(cosines)),
    )


def gelu_in_steps(x: Any) -> Any:
    """GELU as the published code of GPT-2 has it, one operation after the other."""
    import torch

    return 0.5 * x * (1 + torch.tanh(ROOT * (x + CUBIC * x * x * x)))


def layer_norm_in_steps(x: Any, weight: Any, bias: Any) -> Any:
    """The layer norm of each row, one operation after the other."""
    import torch

    centred = x - x.mean(-1, keepdim=True)
    variance = (centred * centred).mean(-1, keepdim=True)
    return centred * torch.rsqrt(variance + EPSILON) * weight + bias


def dropped(x: Any, bias: Any, residual: Any) -> Any:
    """A bias, dropout and the residual, as at the end of a layer in training."""
    from torch.nn.functional import dropout

    return residual + dropout(x + bias, DROPPED)


def perceptron(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
    """Two linear layers with GELU between."""
    import torch

    return torch.addmm(b2, gelu_in_steps(torch.addmm(b1, x, w1)), w2)


def operation(device: Any, by: str, name: str, function: Callable[..., Any], *tensors: Any, **more: Any) -> Workload:
    """An expression of a model, eager or compiled, whose result is as large as the first of its tensors, all of one
    dtype. `more` are further fields of the workload."""
    dtype = str(tensors[0].dtype).removeprefix("torch.")
    fields = {
        "reference": lambda: function(*(tensor.double() for tensor in tensors)),
        "reference_name": "float64, in the same steps",
        "bytes": sum(tensor.nbytes for tensor in tensors) + tensors[0].nbytes,
        "reduction": ROUNDINGS[name],
        "accumulate": dtype,
        "dtype": dtype,
        "level": "DRAM",
        **way(device, by, function, *tensors),
        **more,
    }
    return Workload(**fields)


@suite.benchmark(by=BY_TORCH, n=Axis([2**26], cpu=[2**21], minimum=1), dtype=DTYPE)
def gelu(device: Any, by: str, n: int, dtype: str) -> Workload:
    """GELU in its form with tanh, written out in nine operations."""
    x = device.random(n, dtype)
    prediction = predicted(device, by, n, fusion.GELU, x.element_size())
    return operation(device, by, "gelu", gelu_in_steps, x, prediction=prediction)


@suite.benchmark(by=BY_TORCH, rows=Axis([16384], cpu=[4096], minimum=1), width=SIDE, dtype=DTYPE)
def layer_norm(device: Any, by: str, rows: int, width: int, dtype: str) -> Workload:
    """A layer norm, written out: two means over a row, and what is done to every element."""
    x = device.random((rows, width), dtype, seed=0)
    weight, bias = device.random(width, dtype, seed=1), device.random(width, dtype, seed=2)
    prediction = predicted(device, by, x.numel(), fusion.LAYER_NORM, x.element_size(), fusion.LAYER_NORM_SHORT)
    return operation(device, by, "layer-norm", layer_norm_in_steps, x, weight, bias, prediction=prediction)


@suite.benchmark(by=BY_TORCH, rows=Axis([16384], cpu=[4096], minimum=1), width=SIDE, dtype=DTYPE)
def bias_residual_dropout(device: Any, by: str, rows: int, width: int, dtype: str) -> Workload:
    """What ends a layer in training: a bias, dropout, and the residual."""
    x, residual = (device.random((rows, width), dtype, seed=seed) for seed in (0, 1))
    bias = device.random(width, dtype, seed=2)
    draws = {"inputs": 2, "instructions": fusion.PHILOX, "unit": "int32"}
    prediction = predicted(device, by, x.numel(), fusion.DROPPED, x.element_size(), **draws)
    work = operation(device, by, "bias-residual-dropout", dropped, x, bias, residual, prediction=prediction)
    run, made = work.run, []

    def kept() -> Any:
        made[:] = [run()]
        return made[0]

    work.run = kept
    work.reference = lambda: expected(made[0], x, bias, residual)
    work.reference_name = "float64, with the places that the result dropped"
    return work


def expected(out: Any, x: Any, bias: Any, residual: Any) -> Any:
    """What a layer's end should be: which elements were dropped is taken from the result, as it is random, and their
    share is judged here. All NaN where it is not DROPPED, which fails the check. `tiny` is the share of elements that
    are too small beside their residual to tell."""
    whole = (x.double() + bias.double()) / (1 - DROPPED)
    gone = (out.double() - residual.double()).abs() < (whole / 2).abs()
    n, share = gone.numel(), float(gone.double().mean())
    tiny = float((whole.abs() <= 2 * residual.double().abs() * 2.0**-7).double().mean())
    allowed = DEVIATIONS * math.sqrt(DROPPED * (1 - DROPPED) / n) + tiny
    if abs(share - DROPPED) > allowed:
        return whole.fill_(math.nan)
    return residual.double() + whole.masked_fill_(gone, 0.0)


@suite.benchmark(by=BY_TORCH, rows=Axis([8192], cpu=[256], minimum=1), width=Axis([1024], cpu=[128]), dtype=DTYPE)
def mlp(device: Any, by: str, rows: int, width: int, dtype: str) -> Workload:
    """Two linear layers with GELU, written out, between."""
    hidden = 4 * width
    x = device.random((rows, width), dtype, seed=0)
    w1 = device.random((width, hidden), dtype, seed=1).div_(math.sqrt(width))
    w2 = device.random((hidden, width), dtype, seed=2).div_(math.sqrt(hidden))
    b1, b2 = device.random(hidden, dtype, seed=3), device.random(width, dtype, seed=4)
    between = predicted(device, by, rows * hidden, fusion.GELU, x.element_size())
    return operation(
        device, by, "mlp", perceptron, x, w1, b1, w2, b2,
        flops=2 * product.flops(rows, hidden, width),
        reduction=ROUNDINGS["mlp"] + (hidden if dtype == "float32" else 0),  # else sums are in a wider format
        level=None,
        prediction={"products": 2, "between": between},
    )  # fmt: skip


@suite.benchmark(by=BY_TORCH, n=SIDE, dtype=DTYPE)
def matmul(device: Any, by: str, n: int, dtype: str) -> Workload:
    """The product of two matrices alone: nothing to fuse."""
    import torch

    a, b = device.random((n, n), dtype, seed=0), device.random((n, n), dtype, seed=1)
    return Workload(
        **way(device, by, torch.mm, a, b),
        reference=lambda: product.reference(a, b),
        reference_name=product.reference_name(dtype),
        flops=product.flops(n, n, n),
        bytes=product.bytes(n, n, n, a.element_size()),
        reduction=n,
        dtype=dtype,
        labels={"control": "nothing to fuse"},
    )


# The lecture's claims.

IN_PROPORTION = 0.85, 1.15
"""The slope of the logarithm of the gain over that of the length."""
LONGEST = 6
"""From here on the arithmetic of a long chain may be what takes the time."""
NO_GAIN, CPU_NO_GAIN = (0.9, 1.1), (0.75, 1.35)
"""One operation, eager over compiled: the same work by two kernels, and on a CPU by two compilers' loops."""
CPU_GAIN = 1.5
"""Of four operations on a CPU, at most 4: a part of them is found in the caches, and pages are mapped."""
ALMOST_FREE = 1.15
"""A second cosine in the same kernel."""
EAGER_BYTES = 42, 46
"""Of an element: 11 passes of 4 bytes, within 2 bytes."""
BYTES_SAVED = 5
"""At least; it is 11 passes over 2."""
TIME_SAVED, CPU_TIME_SAVED = 3, 2
"""Of 5.5 that the bytes allow: on a GPU two accurate functions come near the rate of instructions."""
MOST, TWICE = 3, 2
"""Of the four expressions of models, and what they gain."""
PRODUCT, CPU_PRODUCT = (0.95, 1.1), (0.8, 1.25)
"""A product alone, eager over compiled: the same kernel of the library. A CPU's clock and other users move it more."""
STREAMS = 2**31
"""Bytes of a tensor from which on what is counted at the DRAM is what the kernels ask for: what is still in the L2 at
their end is a small part."""
CHAINS = ("gelu", "layer-norm", "bias-residual-dropout", "mlp")
NO_COUNTERS = "no counters of long streams: the bytes are inferred from time"


def gain(view: Any, benchmark: str, **wanted: Any) -> Estimate:
    """The time of a benchmark's eager row over that of the compiled one."""
    return view.ratio(*(view.one(benchmark, by=by, **wanted) for by in ("eager", "compiled")))


def product_alone(view: Any) -> Effect:
    """The control: a product of matrices gains nothing by being compiled."""
    return Effect("a product alone, eager over compiled", gain(view, "matmul"), TIMES,
                  *(CPU_PRODUCT if view.on_cpu else PRODUCT))  # fmt: skip


def launched(row: Any) -> Estimate:
    """Kernels of one call. RowsMissing where the timer saw none."""
    if not row.kernels:
        raise RowsMissing(f"the timer of {row.id} saw no kernels")
    return exactly(sum(kernel.count for kernel in row.kernels if kernel.kind == "kernel"))


def bytes_each(view: Any, row: Any) -> Estimate | None:
    """Bytes that an element took from and to DRAM, as counted; None without counters, and for short streams."""
    moved, n = view.dram_bytes(row), row.params["n"]
    return None if moved is None or 4 * n < STREAMS else exactly(moved.value / n)


@suite.claim("C40")
def unfused_through_memory(view: Any) -> Finding:
    """A chain of k operations takes k times as long one by one as fused, as long as memory is the limit."""
    first = Effect("one operation, eager over compiled", gain(view, "chain", k=1), TIMES,
                   *(CPU_NO_GAIN if view.on_cpu else NO_GAIN))  # fmt: skip
    *_, k = lengths = sorted({row.params["k"] for row in view.rows("chain", by="eager")})
    if view.on_cpu:
        several = Effect(f"{k} operations, eager over compiled", gain(view, "chain", k=k), TIMES, CPU_GAIN)
        return Finding((several,), (first,), view.one("chain", by="eager", k=k).prediction, note="loops on a CPU")
    eager, compiled = (
        [row for row in view.rows("chain", by=by) if row.params["k"] <= LONGEST] for by in ("eager", "compiled")
    )
    slow, fast = view.slope(eager, "k"), view.slope(compiled, "k")
    slope = Estimate(slow.value - fast.value, slow.low - fast.high, slow.high - fast.low)
    second = view.ratio(*(view.one("cos-cos", by=by) for by in ("compiled", "one")))
    return Finding(
        effects=(
            Effect("slope of the gain over the length", slope, "1", *IN_PROPORTION),
            Effect("two cosines in one kernel over one", second, "1", at_most=ALMOST_FREE),
            *(Effect(f"{k} operations, eager over compiled", gain(view, "chain", k=k)) for k in lengths),
        ),
        controls=(first,),
        prediction=eager[-1].prediction,
    )


@suite.claim("C41")
def five_kernels(view: Any) -> Finding:
    """sin, a square, cos, a square and a sum: five kernels that make 11 passes."""
    view.needs_gpu("a CPU launches no kernels")
    row, alone = view.one("sin2-cos2", by="eager"), view.one("cos-cos", by="one")
    moved = bytes_each(view, row)
    counted = () if moved is None else (Effect("bytes an element", moved, "B", *EAGER_BYTES),)
    return Finding(
        effects=(Effect("kernels", launched(row), "1", 5, 5), *counted),
        controls=(Effect("kernels of one cosine", launched(alone), "1", 1, 1),),
        prediction=row.prediction,
        proof="A" if counted else "B",
        note="" if counted else NO_COUNTERS,
    )


@suite.claim("C42")
def compiled_to_one(view: Any) -> Finding:
    """Compiled, it is one kernel that reads once and writes once."""
    eager, compiled = (view.one("sin2-cos2", by=by) for by in ("eager", "compiled"))
    count = view.metric(compiled, "kernels_written") if view.on_cpu else launched(compiled)
    saved = CPU_TIME_SAVED if view.on_cpu else TIME_SAVED
    before, after = (bytes_each(view, row) for row in (eager, compiled))
    both = before is not None and after is not None
    counted = [Effect("bytes saved", before.over(after), TIMES, BYTES_SAVED)] if both else []
    hand = view.maybe("sin2-cos2", by="kernel")
    return Finding(
        effects=(
            Effect("loops" if view.on_cpu else "kernels", count, "1", 1, 1),
            Effect("time, eager over compiled", view.ratio(eager, compiled), TIMES, saved),
            *counted,
            *([] if hand is None else [Effect("compiled over a kernel by hand", view.ratio(compiled, hand))]),
        ),
        controls=(product_alone(view),),
        prediction=compiled.prediction,
        proof="A" if counted else "B",
        note="loops on a CPU" if view.on_cpu else "" if counted else NO_COUNTERS,
    )


@suite.claim("C43")
def compile_is_a_must(view: Any) -> Finding:
    """Three of four chains of models take half the time compiled; what that costs is so many calls' gain."""
    gains = sorted(((name, gain(view, name)) for name in CHAINS), key=lambda each: -each[1].value)
    least = gains[MOST - 1]
    return Finding(
        effects=(
            Effect(f"the {MOST} that gain most, at least ({least[0]})", least[1], TIMES, TWICE),
            *(Effect(f"{name}, eager over compiled", found) for name, found in gains),
            *(effect for name in CHAINS for effect in worth(view, name)),
        ),
        controls=(product_alone(view),),
        note="loops on a CPU" if view.on_cpu else "",
    )


def worth(view: Any, benchmark: str) -> list[Effect]:
    """For information: the seconds of the compiled row's first call, and how many calls it takes to save them."""
    eager, compiled = (view.one(benchmark, by=by) for by in ("eager", "compiled"))
    spent = view.metric(compiled, "compile_time")
    found = view.metric(compiled, "compile_cached").value
    calls = fusion.break_even(spent.value, *(view.median(row).value for row in (eager, compiled)))
    first = Effect(f"{benchmark}, first call{' (found compiled on disk)' if found else ''}", spent, "s")
    return [first] if calls is None else [first, Effect(f"{benchmark}, calls that save as much", exactly(calls))]
