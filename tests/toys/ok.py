"""Five rows that succeed on the fake device: run i takes n microseconds of its scripted clock."""

from __future__ import annotations

from typing import Any

from gpubench import Axis, Suite, Workload

suite = Suite(__file__)


@suite.benchmark(n=Axis([1, 2, 3, 4, 5], quick=[1, 2]), dtype=Axis(["float32"], choices=["float32", "float64"]))
def double(device: Any, n: int, dtype: str) -> Workload:
    """Twice n numbers, a microsecond each."""
    x = device.random(n, dtype)
    out = device.unwritten(n, dtype)

    def run() -> None:
        out[:] = [2 * value for value in x]
        device.spend(1000 * n)

    return Workload(
        run=run, output=out, reference=lambda: [value + value for value in x], reference_name="sum", bytes=8 * n
    )
