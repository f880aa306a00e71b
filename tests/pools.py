"""Pools of fake processes: the same rows in each, each process as fast as a seeded factor says."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from builders import make_record, make_run
from command import OK

from gpubench.discovery import load_suite
from gpubench.executor import Bench, InProcess
from gpubench.result import Run
from gpubench.selfcheck import measure as selfcheck
from gpubench.selfcheck.splits import More
from gpubench.testing import FakeDevice

ROW, LONGER, MORE = "s/b[n=1]", {0.03: "s/b[n=2]", 0.05: "s/b[n=3]"}, ((1, 1.0), (2, 1.03), (3, 1.05))
LONGER_ROWS = [More(name, ROW, share) for share, name in LONGER.items()]
WORKS = (
    selfcheck._Work("ok/double", {"n": 100}, {"n": 100}, "n"),
    selfcheck._Work("ok/double", {"n": 7}, {"n": 7}),
)


def runs(noise: float, count: int = 20, seed: int = 1, **fields: Any) -> list[Run]:
    """A row of 1 ms, rows with 3 and 5 % more of it, and one apart, in so many processes."""
    source = random.Random(seed)

    def time(share: float) -> int:
        return round(1e6 * share * math.exp(source.gauss(0, noise)))

    return [
        make_run(
            [make_record("s", "b", params={"n": n}, time_ns=time(share), **fields) for n, share in (*MORE, (4, 2.0))],
            run_id=f"p{number}",
            started_at=f"2026-11-30T00:{number:02}:00Z",
        )
        for number in range(count)
    ]


def bench() -> Bench:
    """The toy's benchmark, as the parent of a worker knows it."""
    benchmark = load_suite(Path(OK)).benchmarks["double"]
    return Bench({benchmark.path: benchmark}, {benchmark.suite: benchmark.file})


def processes(noise: float, closed: list[int] | None = None) -> Callable[..., InProcess]:
    """Starts one process after the other, each with a speed of its own; the numbers of those closed are kept."""
    source = random.Random(2)
    started = 0

    class Process(InProcess):
        def __init__(self, number: int) -> None:
            speed = math.exp(source.gauss(0, noise))
            super().__init__(FakeDevice(noise=lambda sample: speed, tick_ns=1.0), bench())
            self.number = number

        def close(self) -> None:
            if closed is not None and self.number not in closed:
                closed.append(self.number)

    def start(*words: object, **options: object) -> InProcess:
        nonlocal started
        started += 1
        return Process(started)

    return start
