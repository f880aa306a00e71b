"""A size that does not fit the fake device's memory beside one that does."""

from __future__ import annotations

from typing import Any

from gpubench import Axis, Suite, Workload

suite = Suite(__file__)


@suite.benchmark(n=Axis([4, 10**9]))
def zeros(device: Any, n: int) -> Workload:
    """A workload of n floats."""
    out = device.unwritten(n, "float32")

    def run() -> None:
        out[:] = [0.0] * n
        device.spend(1000)

    return Workload(run=run, output=out, reference=lambda: [0.0] * n, reference_name="zeros", bytes=4 * n)
