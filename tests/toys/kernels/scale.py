"""Kernels to compile, launch and break: no measurement of interest."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpubench import Axis, Suite, Workload

suite = Suite(__file__)

SCALE = suite.kernel("scale", defines={"REAL": ["float", "double"], "UNROLL": [1, 4]})
BLOCK = 256


@suite.benchmark(n=Axis([1000, 4096], quick=[1000]), dtype=Axis(["float32", "float64"]))
def scale(device: Any, n: int, dtype: str) -> Workload:
    """Multiply by two and a half."""
    import torch

    x, out = device.random(n, dtype), device.unwritten(n, dtype)
    c_type, scalar = {"float32": ("float", np.float32), "float64": ("double", np.float64)}[dtype]
    return Workload(
        run=SCALE(x, out, scalar(2.5), np.int64(n), grid=-(-n // (4 * BLOCK)), block=BLOCK, REAL=c_type, UNROLL=4),
        output=out,
        reference=lambda: x.to(torch.float64) * 2.5,
        reference_name="float64 product",
        flops=n,
        bytes=2 * n * x.itemsize,
        dtype=dtype,
    )
