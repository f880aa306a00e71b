"""Products of small matrices, of which a call makes as many as a test chooses: a kernel that got slower.

TOY_WORK is how many hundredths of the usual number a call makes. What a row says of itself does not change with it.
"""

from __future__ import annotations

import os
from typing import Any

from gpubench import Axis, Suite, Workload

suite = Suite(__file__)
USUAL = 20
"""Products a call makes: a fraction of a millisecond in all, so that most calls end before a busy machine turns to
something else, and the median is of those."""


@suite.benchmark(n=Axis([1024, 2048], cpu=[64, 80, 96, 112]))
def products(device: Any, n: int) -> Workload:
    """One product of two square matrices, again and again."""
    import torch

    a, b = device.random((n, n), "float32", 0), device.random((n, n), "float32", 1)
    out = device.unwritten((n, n), "float32")
    times = USUAL * int(os.environ.get("TOY_WORK", "100")) // 100

    def run() -> None:
        for _ in range(times):
            torch.mm(a, b, out=out)

    return Workload(
        run=run,
        output=out,
        reference=lambda: a.double() @ b.double(),
        reference_name="float64",
        flops=2 * n**3 * USUAL,
        dtype="float32",
    )
