"""A chain of as much work as a test chooses: a kernel that got slower.

Each step waits for the one before it and none touches memory, so a call takes the latency of its steps and whoever
shares the processor's units, caches or memory changes that little. TOY_WORK is how many hundredths of the usual number
a call makes. What a row says of itself does not change with it.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from gpubench import Axis, Suite, Workload

suite = Suite(__file__)

WORKED = suite.kernel("worked")


@suite.benchmark(n=Axis([250_000, 350_000]))
def worked(device: Any, n: int) -> Workload:
    """y ← y/2 + 1, n times by one thread: a fraction of a millisecond, so that most calls end before a busy machine
    turns to something else. It ends at 2, however often."""
    out = device.unwritten(1, "float64")
    steps = n * int(os.environ.get("TOY_WORK", "100")) // 100
    return Workload(
        run=WORKED(out, np.int64(steps), grid=1, block=1),
        output=out,
        reference=lambda: out.new_full((1,), 2.0),
        reference_name="the fixed point",
        flops=2 * n,
        dtype="float64",
    )
