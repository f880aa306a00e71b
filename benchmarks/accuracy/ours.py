"""gpubench's own readings, by the path its users take: a worker process, default settings, one case after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from statistics import median

from accuracy.results import Row
from accuracy.works import SUITE, Tool, Work
from gpubench.discovery import load_suite
from gpubench.executor import Bench, WorkerProcess
from gpubench.result import Conditions, Record
from gpubench.runner import Effort
from gpubench.stats import per_call, percentile
from gpubench.suite import Case

TIMEOUT = 120.0
"""Seconds one case may take."""
TIMERS = {"gpubench graph": "graph", "gpubench event": "event"}
"""The timer asked for, where it is not the one gpubench chooses."""


def open_worker(device: str) -> WorkerProcess:
    """A fresh worker for the work of the suite. DeviceUnavailable where there is no such device."""
    suite = load_suite(SUITE)
    benchmarks = {f"{suite.name}/{name}": benchmark for name, benchmark in suite.benchmarks.items()}
    return WorkerProcess(device, Bench(benchmarks, {suite.name: SUITE}), TIMEOUT)


def measured(worker: WorkerProcess, tool: Tool, works: Sequence[Work], repeats: int) -> Iterator[Row]:
    """A row for each work, of so many repeats each. A case that fails once makes the row absent, with its reason."""
    effort = Effort(timer=TIMERS.get(tool.name, "auto"))
    for work in works:
        row = Row(tool.name, work.name)
        case = Case("timed-work", work.benchmark, dict(work.params), Conditions(cache=tool.cache))  # type: ignore[arg-type]
        for _ in range(repeats):
            begun = time.perf_counter()
            *_, record = worker.measure(case, effort)
            spent = time.perf_counter() - begun
            assert isinstance(record, Record)
            if record.status != "ok":
                row = Row(tool.name, work.name, absent=record.reason or record.status)
                break
            put(record, spent, row)
        yield row


def put(record: Record, spent: float, row: Row) -> None:
    """Add a record's median to a row, with what it cost: of the wall time `spent`, in s, all but allocating the data,
    compiling and checking, which belong to the case and not to timing it."""
    row.readings_ns.append(percentile(sorted(per_call(record.samples)), 0.5))
    other = sum(ns or 0 for ns in (record.setup_ns, record.compile_ns, record.check_ns)) / 1e9
    row.costs_s.append(spent - other)
    clocks = [mhz for mhz in record.samples.sm_mhz if mhz is not None]
    if clocks:
        row.sm_mhz.append(median(clocks))
    cycles = record.metric("cycles")
    if cycles is not None:
        row.cycles.append(round(cycles.value))
    assert record.timer is not None
    row.tick_ns = record.timer.tick_ns / record.samples.launches[-1]
    row.note = f"{record.timer.name}: {record.timer.reason}" if "fallback" in record.flags else record.timer.name


def fresh(device: str, tool: Tool, works: Sequence[Work]) -> Iterator[Row]:
    """One reading of each work in a process of its own."""
    worker = open_worker(device)
    try:
        yield from measured(worker, tool, works, 1)
    finally:
        worker.close()
