"""Parts of A/B measurements for tests: scripted processes, the loop that saves, files made by hand."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import builders

from gpubench.ab import measure as ab
from gpubench.discovery import load_suite
from gpubench.executor import Bench, InProcess
from gpubench.result import Conditions, Record, Run
from gpubench.runner import Effort
from gpubench.sampling import Stopping
from gpubench.stats import per_call, summarize
from gpubench.store.abfile import AbRun, Block, SideFacts, SideName, SideRecord, sided
from gpubench.suite import Case
from gpubench.testing import FakeDevice

OK = Path(__file__).parent / "toys" / "ok.py"
SUITE = load_suite(OK)
BENCH = Bench({each.path: each for each in SUITE.benchmarks.values()}, {SUITE.name: OK})
CASES = [Case("ok", "double", {"n": n, "dtype": "float32"}, Conditions()) for n in (1, 2, 3)]
EFFORT = Effort(Stopping(samples=11))
HOT = {"clock_events": ["software thermal slowdown"]}


class Device(FakeDevice):
    """A fake device whose telemetry is what a test says, and which may lose its device in one case."""

    def __init__(self, *, said: dict[str, Any] | None = None, breaks: int | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.said = said or {}
        self.breaks = breaks
        self.rows = 0

    def telemetry(self) -> dict[str, Any]:
        return {**super().telemetry(), **self.said}

    def configure(self, data: str, seed: int) -> None:
        self.rows += 1
        if self.rows == self.breaks:
            raise RuntimeError("an illegal address")
        super().configure(data, seed)


def noisy(factor: float, seed: object, spread: float = 0.002) -> Callable[[int], float]:
    """A process whose samples take `factor` as long, with noise of its own and of every sample."""
    source = random.Random(str(seed))
    own = factor * (1 + source.gauss(0, spread))
    return lambda sample: own * (1 + source.gauss(0, spread))


class Processes:
    """Starts scripted processes. `device` makes that of a side's n-th process; what was started is kept."""

    def __init__(self, device: Callable[[SideName, int], FakeDevice]) -> None:
        self.device = device
        self.started: list[SideName] = []
        self.closed = 0

    def __call__(self, side: SideName) -> InProcess:
        process = InProcess(self.device(side, self.started.count(side)), BENCH)
        self.started.append(side)
        process.close = self._close  # type: ignore[method-assign]
        return process

    def _close(self) -> None:
        self.closed += 1


def two_sides(new: float = 1.0, base: float = 1.0, seed: int = 0, **options: Any) -> Processes:
    """Processes of which those of either side take so many times as long."""
    factor = {"base": base, "new": new}
    return Processes(lambda side, n: Device(noise=noisy(factor[side], (seed, side, n)), **options))


def begun(planned: int = 10, seed: int = 0, **fields: Any) -> AbRun:
    """A measurement before its first block."""
    head = builders.make_run([], run_id="20260712-101500-ab", status="partial", ended_at=None)
    own = {"device": FakeDevice().facts(), "margin": 0.03, "cases": [case.id for case in CASES], "planned": planned}
    names = [name for name in Run.__dataclass_fields__ if name not in ("schema", "records")]
    return AbRun(**({name: getattr(head, name) for name in names} | own | {"order_seed": seed} | fields))


def follow(found: AbRun, processes: Processes, cases: Sequence[Case] = CASES, **options: Any) -> AbRun:
    """The measurement to its end, kept as the command keeps it."""
    for event in ab.run(found, cases, EFFORT, processes, **options):
        keep(found, event)
    found.status = "complete"
    return found


def keep(found: AbRun, event: ab.Event) -> None:
    """What the command saves of an event."""
    match event:
        case SideRecord():
            found.records.append(event)
        case ab.BlockBegun(block):
            found.blocks.append(block)
        case ab.BlockEnded(block):
            found.blocks[-1] = block
        case ab.Ended(why):
            found.ending = why


def by_hand(
    ratios: Sequence[float], base_ns: int = 1_000_000, planned: int | None = None, mhz: float | None = None, **new: Any
) -> AbRun:
    """A measurement of one row, whose blocks have these ratios of new over base; `new` are fields of the new side's
    records."""
    made = begun(len(ratios) if planned is None else planned, cases=[], status="complete", ending="all blocks")
    made.base, made.new = SideFacts(), SideFacts(["env:SLOW=1"])
    for number, ratio in enumerate(ratios):
        made.blocks.append(Block(number, number, "base" if number % 2 == 0 else "new"))
        for side, time_ns in (("base", base_ns), ("new", round(base_ns * ratio))):
            row = record(time_ns, mhz, **(new if side == "new" else {}))
            made.records.append(sided(row, side, number))  # type: ignore[arg-type]
    made.cases = list(dict.fromkeys(each.id for each in made.records))
    return made


def record(time_ns: int, mhz: float | None = None, **fields: Any) -> Record:
    """A row of eleven samples that scatter a little about its time."""
    made = builders.make_record(params={"n": 64}, time_ns=time_ns, flops=10**9, **fields)
    if made.status == "ok":
        made.samples.gpu_ns = [time_ns + step for step in range(-5, 6)]
        made.samples.sm_mhz = [mhz] * 11
        made.summary = summarize(per_call(made.samples))
    return made
