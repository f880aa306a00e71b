"""Rows whose time and fate are told by the environment, so that two sides can differ.

TOY_TIMES is how many times as long a call takes; TOY_FAILS the n of the row that fails; TOY_TELL and TOY_GO as in
stepwise.py, in the process that TOY_HOLD counts down to 0 in a file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from gpubench import Axis, Suite, Workload

suite = Suite(__file__)


@suite.benchmark(n=Axis([1, 2]))
def told(device: Any, n: int) -> Workload:
    """n milliseconds, or as many times that as the environment says."""
    out = device.unwritten(n, "float32")
    times = float(os.environ.get("TOY_TIMES", "1"))
    _hold()

    def run() -> None:
        if os.environ.get("TOY_FAILS") == str(n):
            raise RuntimeError("told to fail")
        out[:] = [1.0] * n
        device.spend(1e6 * n * times)

    return Workload(run=run, output=out, reference=lambda: [1.0] * n, reference_name="ones", flops=n)


def _hold() -> None:
    """Wait where the count in the file has come to 0."""
    if "TOY_HOLD" not in os.environ:
        return
    file = Path(os.environ["TOY_HOLD"])
    left = int(file.read_text())
    file.write_text(str(left - 1))
    if left == 0:
        with open(os.environ["TOY_TELL"], "w") as tell:
            tell.write(str(os.getpid()))
        with open(os.environ["TOY_GO"]) as go:
            go.read()
