"""The pass after a run that was asked for --counters: its rows once more under ncu, with no timer active."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpubench.cli.screen import Screen
from gpubench.cli.signals import Terminated, undisturbed
from gpubench.discovery import Library
from gpubench.exits import Exit
from gpubench.profiling import counting, metrics
from gpubench.report.words import counted
from gpubench.result import Record, Run
from gpubench.settings import Settings
from gpubench.store import RunWriter
from gpubench.suite import Case
from gpubench.units import format_bytes

NO_CUDA = "the CPU has no hardware counters here"


def count_rows(writer: RunWriter, library: Library, settings: Settings, screen: Screen) -> list[Exit]:
    """Give the rows that have a number their counters, or the reason why they have none, in one line for the user.

    None of that changes what the run says or its exit code. Neither does an interruption change the run: it is whole,
    without counters, and only the exit code is the signal's.
    """
    rows = [index for index, record in enumerate(writer.run.records) if record.status == "ok"]
    if not rows:
        return []
    try:
        found = _count(writer.run, [writer.run.records[index] for index in rows], library, settings, screen)
    except (KeyboardInterrupt, Terminated) as signal:
        screen.warn("gpubench: interrupted while counting: the run is complete, without counters")
        return [Exit.SIGINT if isinstance(signal, KeyboardInterrupt) else Exit.SIGTERM]
    with undisturbed():
        for index, counters in zip(rows, found.counters, strict=True):
            writer.add_counters(index, counters)
    for line in found.problems:
        screen.warn(f"gpubench: {line}")
    bare = [reason for each in found.counters if (reason := counting.reason_of(each)) is not None]
    if bare and not any(bare[0] in line for line in found.problems):
        screen.warn(f"gpubench: {counted(len(bare), 'row')} without counters, such as: {bare[0]}")
    if words := copy_words(found.copy):
        screen.say(f"counters of {counted(len(rows) - len(bare), 'row')}; {words}")
    return []


def _count(run: Run, records: list[Record], library: Library, settings: Settings, screen: Screen) -> counting.Pass:
    device = run.device
    if device.get("kind") == "cpu":
        reason = counting.without(NO_CUDA)
        return counting.Pass([reason] * len(records), [f"no counters: {NO_CUDA}"])
    screen.say(f"counting: {counted(len(records), 'row')} once more under ncu")
    word = f"cuda:{device['index']}" if device.get("kind") == "cuda" else settings.device
    return counting.count(
        [job(record, library) for record in records],
        metrics.chosen(None, None),
        device=word,
        seed=settings.seed,
        timeout=settings.timeout,
        tell=teller(screen, settings),
    )


def job(record: Record, library: Library) -> counting.Job:
    """What it takes to run a row's case once more."""
    case = Case(record.suite, record.benchmark, record.params, record.conditions)
    return counting.Job(case, library.suite(record.suite).file, record.kernels)


def teller(screen: Screen, settings: Settings) -> Callable[[str], None] | None:
    """Where the last words of a process under ncu go: to the user who asked for --debug."""
    return screen.warn if settings.debug else None


def copy_words(copy: dict[str, Any] | None) -> str:
    """How well bytes are counted, as the copy of known bytes shows; empty without one."""
    if copy is None:
        return ""
    known, seen = format_bytes(copy["bytes"]), format_bytes(copy["counted"])
    return f"a copy of {known} counts as {seen} ({100 * copy['error']:+.2f} %)"
