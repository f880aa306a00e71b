"""Peak arithmetic: how many flops a second does this device give its best customer, a large matrix product?"""

from __future__ import annotations

from typing import Any

from gpubench import Axis, Suite, Workload
from gpubench.model import matmul as work

suite = Suite(__file__)

DTYPES = ["float64", "float32", "tf32", "float16", "bfloat16"]


@suite.benchmark(
    n=Axis([4096, 8192], cpu=[1024, 1536]),
    dtype=Axis(["bfloat16"], cpu=["float32"], choices=DTYPES),
)
def matmul(device: Any, n: int, dtype: str) -> Workload:
    """The library's product of two n × n matrices, both row by row in memory: the ceiling of matmuls of that dtype.

    dtype tf32 is float32 matrices whose products are rounded to TF32 by the tensor cores.
    """
    import torch

    stored = "float32" if dtype == "tf32" else dtype
    a = device.random((n, n), stored, seed=0)
    b = device.random((n, n), stored, seed=1)
    c = device.unwritten((n, n), stored)
    return Workload(
        run=lambda: torch.mm(a, b, out=c),
        output=c,
        reference=lambda: a.double() @ b.double(),
        reference_name="float64 matmul",
        flops=work.flops(n, n, n),
        bytes=work.bytes(n, n, n, c.element_size()),
        reduction=n,
        accumulate="float64" if dtype == "float64" else "float32",
        precision="tf32" if dtype == "tf32" else "ieee",
        dtype=dtype,
        roof=f"{dtype} matmul",
    )
