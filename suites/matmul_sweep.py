"""Matmul shape sweep: why is the rate of a square matrix product not a smooth curve of its size?

Three causes lie over each other: how many flops there are per byte, how the matrices' rows are aligned in memory (the
class of a row), and how the output's tiles fill whole waves of the GPU's units.
"""

from __future__ import annotations

from typing import Any

from gpubench import Axis, Suite, Workload
from gpubench.model import matmul as work

suite = Suite(__file__)

GRID = range(256, 4352 + 1, 64)
NEIGHBOURS = [
    256 * multiple + sign * step for multiple in range(1, 17 + 1) for step in (1, 2, 4, 8) for sign in (-1, 1)
]
WAVES = [*range(1700, 1900 + 1, 4), *range(1788, 1800 + 1)]
"""Around 1792: the lecture's A100 goes from 98 tiles of 128 × 256 to 120 at the next size, and has 108 units."""
SIZES = sorted({*GRID, *NEIGHBOURS, *WAVES})
CPU_SIZES = [size for size in SIZES if size <= 1024]
DTYPES = ["float64", "float32", "tf32", "float16", "bfloat16"]


@suite.benchmark(
    n=Axis(
        SIZES,
        cpu=CPU_SIZES,
        quick=[256, 512, 1024, 1536, 1791, 1792, 1793, 2048, 2049, 3072, 4096, 4097],
        quick_cpu=[255, 256, 257, 320, 384, 448, 511, 512, 513, 640, 768, 1024],
    ),
    m=Axis(same_as="n"),
    k=Axis(same_as="n"),
    dtype=Axis(["bfloat16"], cpu=["float32"], choices=DTYPES),
    layout=Axis(["nn"], choices=["nn", "nt", "tn"]),
)
def matmul(device: Any, n: int, m: int, k: int, dtype: str, layout: str) -> Workload:
    """The library's product of an m × k and a k × n matrix; layout says which of them is stored transposed (t).

    dtype tf32 is float32 matrices whose products are rounded to TF32 by the tensor cores.
    """
    import torch

    stored = "float32" if dtype == "tf32" else dtype
    a = device.random((k, m), stored, seed=0).t() if layout == "tn" else device.random((m, k), stored, seed=0)
    b = device.random((n, k), stored, seed=1).t() if layout == "nt" else device.random((k, n), stored, seed=1)
    c = device.unwritten((m, n), stored)
    itemsize = c.element_size()
    return Workload(
        run=lambda: torch.mm(a, b, out=c),
        output=c,
        reference=lambda: work.reference(a, b),
        reference_name=work.reference_name(dtype),
        flops=work.flops(m, n, k),
        bytes=work.bytes(m, n, k, itemsize),
        reduction=k,
        accumulate="float64" if dtype == "float64" else "float32",
        precision="tf32" if dtype == "tf32" else "ieee",
        dtype=dtype,
        roof=f"{dtype} matmul",
        labels={"alignment": f"{work.alignment(m, n, k, layout, itemsize)} B"},
    )
