"""Peaks: how many flops a second do the arithmetic units give, and how many the library's best matrix product?"""

from __future__ import annotations

from typing import Any

from gpubench import TIMES, Axis, Effect, Estimate, Finding, Suite, Unsupported, Workload
from gpubench.model import matmul as work

suite = Suite(__file__)

FORMATS = {"fp32": 0, "fp64": 1, "fp16x2": 2, "bf16x2": 3, "int32": 4}
"""Formats of the chains and the TYPE each is in peak.cu."""
ARITHMETIC = {"fp32": "float32", "fp64": "float64", "fp16x2": "float16", "bf16x2": "bfloat16", "int32": "int32"}
CHAINS, LINKS, ROUNDS = 8, 128, 100
"""As in peak.cu: chains a thread, links of a chain before it starts again, and how often it does."""
FMA_CHAINS = suite.kernel("fma_chains", defines={"TYPE": list(FORMATS.values())})

STORED = {"tf32": "float32", "float8_e4m3": "bfloat16", "int8": "float32"}
"""What the data of a dtype is drawn in, where that is not the dtype itself."""
DTYPES = ["float64", "float32", "tf32", "float16", "bfloat16", "float8_e4m3", "int8"]


@suite.benchmark(
    format=Axis(list(FORMATS), cpu=["fp32", "fp64"], quick=["fp32"], quick_cpu=["fp32"]),
    threads=Axis([512], cpu=[64]),
    blocks=Axis([4], cpu=[256]),
)
def fma(device: Any, format: str, threads: int, blocks: int) -> Workload:
    """Chains of multiply-adds in registers: the peak of the units that are not for matrices.

    An int32 one counts 2 too. What it writes is there to be checked; no bytes are counted.
    """
    import numpy as np

    grid = blocks * (device.facts().get("multiprocessors") or 1)
    n = grid * threads
    counts = device.unwritten(n, "float32")
    lanes = 2 if format.endswith("x2") else 1
    arguments = counts, np.float32(1), np.int32(ROUNDS), np.int64(n)
    return Workload(
        run=FMA_CHAINS(*arguments, grid=grid, block=threads, TYPE=FORMATS[format]),
        output=counts,
        reference=lambda: counts.new_full(counts.shape, lanes * ROUNDS * (CHAINS * LINKS + sum(range(CHAINS)))),
        reference_name="the number of links",
        flops=2 * lanes * n * CHAINS * LINKS * ROUNDS,
        accumulate="exact",
        dtype=ARITHMETIC[format],
        roof=f"{format} FMA",
    )


@suite.benchmark(
    shape=Axis(
        ["4096x4096x4096", "4096x4096x12288", "8192x4096x8192", "8192x8192x8192"],
        cpu=["768x768x768", "1024x1024x1024", "1024x1024x4096"],
        quick=["4096x4096x12288"],
        quick_cpu=["1024x1024x1024"],
    ),
    dtype=Axis(["bfloat16"], cpu=["float32"], choices=DTYPES),
)
def matmul(device: Any, shape: str, dtype: str) -> Workload:
    """The library's product of an m × k and a k × n matrix, of the m×n×k that suit libraries: the ceiling of matmuls.

    tf32 is float32 matrices whose products are rounded to TF32. float8 is scaled_mm with unit scales and fast
    accumulation into bfloat16, int8 is int_mm into int32; both want their right side stored transposed.
    """
    import torch

    m, n, k = map(int, shape.split("x"))
    stored = STORED.get(dtype, dtype)
    transposed = dtype in ("float8_e4m3", "int8")
    a, b = device.random((m, k), stored, seed=0), device.random((n, k) if transposed else (k, n), stored, seed=1)
    common: dict[str, Any] = {
        "flops": work.flops(m, n, k), "reduction": k, "dtype": dtype, "roof": f"{dtype} matmul", "primary": "flops",
        "reference_name": work.reference_name(dtype),
    }  # fmt: skip
    if dtype == "int8":
        a, b = ((32 * x).clamp_(-127, 127).to(torch.int8) for x in (a, b))
        c = torch.empty((m, n), dtype=torch.int32, device=a.device)
        return Workload(
            run=lambda: torch._int_mm(a, b.t(), out=c), output=c, reference=lambda: work.reference(a, b.t()),
            bytes=work.bytes(m, n, k, 1) + 3 * m * n, accumulate="exact", **common,
        )  # fmt: skip
    if dtype == "float8_e4m3":
        if device.kind != "cuda" or torch.cuda.get_device_capability() < (8, 9):
            raise Unsupported("float8 matrix products need compute capability 8.9 or newer")
        a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
        c = device.unwritten((m, n), "bfloat16")
        unit = torch.ones((), device=a.device)
        return Workload(
            run=lambda: torch._scaled_mm(
                a, b.t(), scale_a=unit, scale_b=unit, out_dtype=torch.bfloat16, use_fast_accum=True, out=c
            ),
            output=c, reference=lambda: work.reference(a.float(), b.float().t()),
            bytes=work.bytes(m, n, k, 1) + m * n, **common,
        )  # fmt: skip
    c = device.unwritten((m, n), stored)
    return Workload(
        run=lambda: torch.mm(a, b, out=c), output=c, reference=lambda: work.reference(a, b),
        bytes=work.bytes(m, n, k, c.element_size()), accumulate="float64" if dtype == "float64" else "float32",
        precision="tf32" if dtype == "tf32" else "ieee", **common,
    )  # fmt: skip


# The lecture's claims.

MATRIX_GAIN = 10
"""Matrix units over the ordinary ones: 16 on an A100 and 15 on an H100 by their maker's figures, 13 as measured."""
ORDINARY = 0.5, 1.2
"""Where the library's product runs on the ordinary units too, it has their rate at most."""
NO_UNITS = "this run is of a CPU: its matrix units, if any, are not the lecture's"
TENSOR_RIDGE = 100
"""FLOP/B from which on a GPU with matrix units is no longer limited by memory: 139 and more since 2017."""


def product_over(view: Any, dtype: str, other: Any) -> Any:
    """The rate of the best product in a dtype over that of another row."""
    return view.ratio(other, view.fastest("matmul", dtype=dtype), per="flops")


def ordinary(view: Any) -> Effect:
    """The control: a product in float32, which the matrix units do not do, gains nothing over chains of FMAs."""
    gain = product_over(view, "float32", view.fastest("fma", format="fp32"))
    return Effect("rate of a float32 product over fp32 FMA", gain, "1", *ORDINARY)


@suite.claim("C04")
def one_of_many(view: Any) -> Finding:
    """What one core, or one multiprocessor, adds to the rate of the whole; the years are not measured."""
    whole = view.median(view.fastest("fma", format="fp32"), per="flops")
    rate = Estimate(*(1 / ns for ns in (whole.value, whole.high, whole.low)))
    fact, name = ("physical_cores", "core") if view.on_cpu else ("multiprocessors", "multiprocessor")
    units = view.facts.get(fact)
    one = [Effect(f"rate of one {name} of {units}", rate.times(1 / units), "GFLOP/s")] if units else []
    return Finding(
        effects=(Effect("rate of fp32 FMA", rate, "GFLOP/s"), *one), note="one machine is one point of the trend"
    )


@suite.claim("C25")
def matrix_units(view: Any) -> Finding:
    """Matrix products run at ten times the rate of ordinary arithmetic, or more."""
    view.needs_gpu(NO_UNITS)
    chains = view.fastest("fma", format="fp32")
    halves = view.maybe("fma", format="bf16x2")
    gain = product_over(view, "bfloat16", chains)
    shown = [] if halves is None else [Effect("rate over bf16x2 FMA", product_over(view, "bfloat16", halves), TIMES)]
    return Finding(
        effects=(Effect("rate of bf16 products over fp32 FMA", gain, TIMES, MATRIX_GAIN), *shown),
        controls=(ordinary(view),),
    )


@suite.claim("C27", "C23")
def ridge(view: Any) -> Finding:
    """This GPU's own ridge: the FLOP that it could do in the time a byte takes, by the roofs measured here."""
    view.needs_gpu(NO_UNITS)
    copy = view.ceiling("DRAM copy")
    own, plain = (view.ceiling(name).over(copy) for name in ("bfloat16 matmul", "fp32 FMA"))
    return Finding(
        effects=(Effect("FLOP of a bf16 product for a byte", own, "FLOP/B", TENSOR_RIDGE),),
        controls=(Effect("FLOP of fp32 FMA for a byte", plain, "FLOP/B", 0, TENSOR_RIDGE),),
        note="the trend over years is the catalogue's, and not measured",
    )
