"""Rows of the fake device whose time a test chooses, for each process that measures them.

TOY_FACTORS is a list of factors, one for each process that measures: `1 1.1` has the second take a tenth longer, and
those after it as well. TOY_COUNT names a file in which each process leaves a byte. With TOY_ROW only the row of that n
heeds the factor. TOY_FAIL is the number of a process, from 1, in which that row fails.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

from gpubench import Axis, Suite, Workload

suite = Suite(__file__)


@cache
def process() -> int:
    """The number of this process among those that measure, from 1."""
    count = Path(os.environ["TOY_COUNT"])
    with count.open("ab") as file:
        file.write(b".")
    return count.stat().st_size


def factor() -> float:
    """By how much this process is slower."""
    factors = os.environ["TOY_FACTORS"].split()
    return float(factors[min(process(), len(factors)) - 1])


@suite.benchmark(n=Axis([1, 2, 3, 4]))
def paced(device: Any, n: int) -> Workload:
    """A hundred microseconds times n, times the factor of this process."""
    out = device.unwritten(n, "float32")
    heeds = os.environ.get("TOY_ROW", str(n)) == str(n)
    if heeds and os.environ.get("TOY_FAIL") == str(process()):
        raise RuntimeError("planted")
    time_ns = round(100_000 * n * (factor() if heeds else 1))

    def run() -> None:
        out[:] = [1.0] * n
        device.spend(time_ns)

    return Workload(run=run, output=out, reference=lambda: [1.0] * n, reference_name="ones", bytes=4 * n)


@suite.benchmark(n=Axis([1]))
def other(device: Any, n: int) -> Workload:
    """A row that no factor touches."""
    out = device.unwritten(n, "float32")

    def run() -> None:
        out[:] = [1.0] * n
        device.spend(50_000)

    return Workload(run=run, output=out, reference=lambda: [1.0] * n, reference_name="ones", bytes=4 * n)
