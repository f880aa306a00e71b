"""In place of the suite of this name on the fake device: products of which nothing but the time is real.

Rows that are not aligned to 16 bytes take seven times as long; a size of TOY_FAILS is wrong.
"""

from __future__ import annotations

import os
from typing import Any

from gpubench import Axis, Suite, Workload
from gpubench.model import matmul as work

suite = Suite(__file__)


@suite.benchmark(
    n=Axis([64]),
    m=Axis(same_as="n"),
    k=Axis(same_as="n"),
    dtype=Axis(["bfloat16"], choices=["float32", "bfloat16"]),
    layout=Axis(["nn"], choices=["nn", "nt", "tn"]),
)
def matmul(device: Any, n: int, m: int, k: int, dtype: str, layout: str) -> Workload:
    """A list of two numbers, in the time of a product."""
    x, out = device.random(2, dtype), device.unwritten(2, dtype)
    fails = int(os.environ.get("TOY_FAILS", "0")) in (n, m, k)
    aligned = work.alignment(m, n, k, layout, 2) >= 16

    def run() -> None:
        out[:] = [0.0, 0.0] if fails else x
        device.spend(max(1, work.flops(m, n, k) // (700 if aligned else 100)))

    return Workload(
        run=run, output=out, reference=lambda: list(x), reference_name="itself", flops=work.flops(m, n, k), dtype=dtype
    )
