"""Cases that a test holds still: each tells its number and process through a FIFO and goes on only when told to.

TOY_TELL and TOY_GO name two FIFOs. The third case opens the first, writes its process id, and waits for the end of
the second, so that a test acts at a known point of the run without sleeping.
"""

from __future__ import annotations

import os
from typing import Any

from gpubench import Axis, Suite, Workload

suite = Suite(__file__)
HELD = 3


@suite.benchmark(n=Axis([1, 2, 3, 4, 5]))
def held(device: Any, n: int) -> Workload:
    """The third of five cases waits to be told to go on."""
    out = device.unwritten(n, "float32")

    def run() -> None:
        out[:] = [1.0] * n
        device.spend(1000 * n)

    if n == HELD:
        with open(os.environ["TOY_TELL"], "w") as tell:
            tell.write(str(os.getpid()))
        with open(os.environ["TOY_GO"]) as go:
            go.read()
    return Workload(run=run, output=out, reference=lambda: [1.0] * n, reference_name="ones", flops=n)
