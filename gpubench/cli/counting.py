"""The pass after a run that was asked for --counters: its rows once more under ncu, with no timer active."""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import Any

from gpubench.cli.live import bar
from gpubench.cli.screen import Screen
from gpubench.cli.signals import Terminated, undisturbed
from gpubench.discovery import Library
from gpubench.exits import Exit
from gpubench.profiling import counting, metrics
from gpubench.report.words import counted
from gpubench.result import Record, Run
from gpubench.settings import Settings
from gpubench.store.folder import RunWriter
from gpubench.suite import Case
from gpubench.units import format_bytes

EVERY_S = 10.0
"""Seconds between two plain lines of how far the pass is."""
NO_CUDA = "the CPU has no hardware counters here"


def count_rows(
    writer: RunWriter, asked: Container[str], library: Library, settings: Settings, screen: Screen
) -> list[Exit]:
    """Give the rows that have a number their counters, or the reason why they have none, in one line for the user. The
    rows whose ids are `asked` for come first.

    None of that changes what the run says or its exit code. Neither does an interruption change the run: it is whole,
    without counters, and only the exit code is the signal's.
    """
    rows = [index for index, record in enumerate(writer.run.records) if record.status == "ok"]
    if not rows:
        return []
    jobs = [job(record, library, record.id in asked) for record in map(writer.run.records.__getitem__, rows)]
    try:
        found = _count(writer.run, jobs, settings, screen)
    except (KeyboardInterrupt, Terminated) as signal:
        screen.warn("gpubench: interrupted while counting: the run is complete, without counters")
        return [Exit.SIGINT if isinstance(signal, KeyboardInterrupt) else Exit.SIGTERM]
    with undisturbed():
        for index, counters in zip(rows, found.counters, strict=True):
            writer.add_counters(index, counters)
    for line in found.problems:
        screen.warn(f"gpubench: {line}")
    without = [reason for each in found.counters if (reason := counting.reason_of(each)) is not None]
    bare = [reason for reason in without if reason != counting.NO_TIME]
    if bare and not any(bare[0] in line for line in found.problems):
        screen.warn(f"gpubench: {counted(len(bare), 'row')} without counters, such as: {bare[0]}")
    late = len(without) - len(bare)
    words = filter(None, [f"{late} not counted: time budget" if late else "", copy_words(found.copy)])
    if late or found.copy:
        screen.say("; ".join([f"counters of {counted(len(rows) - len(without), 'row')}", *words]))
    return []


def _count(run: Run, jobs: list[counting.Job], settings: Settings, screen: Screen) -> counting.Pass:
    device = run.device
    if device.get("kind") == "cpu":
        reason = counting.without(NO_CUDA)
        return counting.Pass([reason] * len(jobs), [f"no counters: {NO_CUDA}"])
    screen.say(f"counting: {counted(len(jobs), 'row')} once more under ncu")
    word = f"cuda:{device['index']}" if device.get("kind") == "cuda" else settings.device
    with following(len(jobs), settings, screen) as seen:
        return counting.count(
            jobs,
            metrics.chosen(None, None),
            device=word,
            seed=settings.seed,
            timeout=settings.timeout,
            budget=counting.BUDGET_S,
            tell=teller(screen, settings),
            seen=seen,
        )


@contextmanager
def following(
    total: int, settings: Settings, screen: Screen, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[int], None]]:
    """How far the pass is, for who measures is not told each row: a bar where stderr is a terminal that can redraw, a
    plain line every EVERY_S elsewhere. What it gives is to be called with the number of rows done, several times a
    second."""
    if screen.quiet or settings.plain or settings.verbose or not screen.redraws:
        begun = said = clock()

        def line(done: int) -> None:
            nonlocal said
            if (now := clock()) - said >= EVERY_S:
                said = now
                screen.say(f"counting: {done} of {counted(total, 'row')}, {said - begun:.0f} s")

        yield line
        return
    with bar(screen) as shown:
        most = f"at most {counting.BUDGET_S / 60:.0f} min"
        task = shown.add_task("", total=total, suite="counting", left=most)
        yield lambda done: shown.update(task, completed=done)


def job(record: Record, library: Library, first: bool = False) -> counting.Job:
    """What it takes to run a row's case once more."""
    case = Case(record.suite, record.benchmark, record.params, record.conditions)
    return counting.Job(case, library.suite(record.suite).file, record.kernels, first)


def teller(screen: Screen, settings: Settings) -> Callable[[str], None] | None:
    """Where the last words of a process under ncu go: to the user who asked for --debug."""
    return screen.warn if settings.debug else None


def copy_words(copy: dict[str, Any] | None) -> str:
    """How well bytes are counted, as the copy of known bytes shows; empty without one."""
    if copy is None:
        return ""
    known, seen = format_bytes(copy["bytes"]), format_bytes(copy["counted"])
    return f"a copy of {known} counts as {seen} ({100 * copy['error']:+.2f} %)"
