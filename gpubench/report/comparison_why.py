"""All that is known of one row of a comparison: both sides' figures, kernels, clocks, telemetry, and the verdict."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from gpubench.compare.judge import margin_of
from gpubench.errors import UsageError
from gpubench.nearest import did_you_mean
from gpubench.report import comparison
from gpubench.report.table import time_words
from gpubench.report.words import conditions_words, counted, plain
from gpubench.result import KernelSeen, Record
from gpubench.stats import percentile
from gpubench.telemetry import SM_CLOCK
from gpubench.units import format_duration, three_digits
from gpubench.verdict import Judged, Row

SAID = 5
"""Rows named where a word means several."""
WIDTH = 12
TENTHS = 10
"""Of fewer samples a tenth is none: their p10 and p90 would be made up of the extremes."""


def find(judged: Judged, word: str) -> Row:
    """The one row that a word means: its id, or words that it has and no other: `n=1793`, `matmul n=1793 hot`.

    UsageError where no row or more than one is meant.
    """
    rows = [row for row in judged.rows if word in (row.id, comparison.where(row))] or [
        row for row in judged.rows if word in {record.id for record in (row.base, row.new) if record is not None}
    ]
    if not rows and (wanted := set(re.findall(r"[^\s(),]+", word))):
        rows = [row for row in judged.rows if wanted <= _words(row)]
    names = comparison.naming(judged).words
    if len(rows) == 1:
        return rows[0]
    if not rows:
        near = did_you_mean(word, [*names.values(), *(row.id for row in judged.rows[:1000])])
        raise UsageError(f"--why {word!r}: no such row{near}", "an id, or words such as n=1024")
    listed = ", ".join(comparison.where(row) for row in rows[:SAID])
    more = f" and {len(rows) - SAID} more" if len(rows) > SAID else ""
    raise UsageError(f"--why {word!r} is {len(rows)} rows: {listed}{more}", "more words leave one")


def _words(row: Row) -> set[str]:
    """What a row may be called by: its parameters, suite, benchmark, path and conditions, of either side."""
    words: set[str] = set()
    for record in (row.base, row.new):
        if record is not None:
            asked = record.conditions.by_name
            words |= {record.suite, record.benchmark, f"{record.suite}/{record.benchmark}", *asked.values()}
            words |= {f"{name}={value}" for name, value in (record.params | asked).items()}
    return words


def why(judged: Judged, row: Row) -> str:
    """The long text of one row, with a final newline; without markup, and with nothing in it that moves a cursor."""
    lines = [comparison.where(row), *_item("verdict", _verdict(judged, row))]
    if row.middle_of is not None:
        lines += _item("base", f"the middle one of {row.middle_of} runs, {row.base_run}")
    for change in row.changes:
        figures = [comparison.quantity(value, change.unit) for value in (change.base, change.new)]
        better = "not judged" if change.direction == "none" else f"{change.direction} is better"
        parts = f"{figures[0]} → {figures[1]}", comparison.change_words(change), better
        primary = ", decides the verdict" if change.primary else ""
        lines += _item(change.metric, f"{'  '.join(part for part in parts if part)}{primary}")
    for title, words in _FACTS.items():
        lines += _both(title, row, words)
    for title, texts in (("differs", row.subject), ("hint", row.hints)):
        for text in texts:
            lines += _item(title, text)
    return "\n".join(lines) + "\n"


def _verdict(judged: Judged, row: Row) -> str:
    reason = f": {row.reason}" if row.reason else ""
    return f"{row.verdict}{reason} (margin {comparison.percent(_margin(judged, row))})"


def _margin(judged: Judged, row: Row) -> float:
    """The margin of a row, which may be one of its own."""
    record = row.new or row.base
    return judged.margin if record is None else margin_of(record, judged.margin, judged.details.get("margins") or {})


def _item(title: str, text: str) -> list[str]:
    return [f"{plain(title):<{WIDTH}} {plain(text)}"]


def _both(title: str, row: Row, words: Callable[[Record], list[str]]) -> list[str]:
    """What each side says, or once where both say the same; nothing where neither says anything."""
    said = {name: words(record) for name, record in (("base", row.base), ("new", row.new)) if record is not None}
    sides = {"both": said["base"]} if len(said) == 2 and said["base"] == said["new"] else said
    lines = [f"{name:<5}{plain(text)}" for name, texts in sides.items() for text in texts]
    return [f"{title if number == 0 else '':<{WIDTH}} {line}" for number, line in enumerate(lines)]


def _status(record: Record) -> list[str]:
    reason = f": {record.reason}" if record.reason else ""
    flags = f", {', '.join(record.flags)}" if record.flags else ""
    return [f"{record.status}{reason}{flags}"]


def _time(record: Record) -> list[str]:
    summary = record.summary
    if summary is None or record.status != "ok":
        return []
    spread = f"p10 {format_duration(summary.p10_ns)}, p90 {format_duration(summary.p90_ns)}"
    if summary.n < TENTHS:
        spread = "too few for p10 and p90"
    stopped = f", stopped by {record.stopped_by}" if record.stopped_by else ""
    return [f"{time_words(record)}, {counted(summary.n, 'sample')}, {spread}{stopped}"]


def _clock(record: Record) -> list[str]:
    known = sorted(mhz for mhz in record.samples.sm_mhz if mhz is not None)
    if not known:
        return []
    middle, least, most = percentile(known, 0.5), known[0], known[-1]
    beside = f"; {record.telemetry[SM_CLOCK]}" if SM_CLOCK in record.telemetry else ""
    return [f"{middle:.0f} MHz, {least:.0f} to {most:.0f} in {counted(len(known), 'sample')}{beside}"]


def _kernels(record: Record) -> list[str]:
    return [_kernel(kernel) for kernel in record.kernels]


def _kernel(kernel: KernelSeen) -> str:
    shape = [
        f"{name} {'×'.join(map(str, size))}" for name, size in (("grid", kernel.grid), ("block", kernel.block)) if size
    ]
    extra = [f"{kernel.registers} registers"] if kernel.registers is not None else []
    extra += [format_duration(kernel.ns)] if kernel.ns is not None else []
    return ", ".join([f"{kernel.count}× " * (kernel.count != 1) + kernel.name, *shape, *extra])


def _timer(record: Record) -> list[str]:
    timer = record.timer
    if timer is None:
        return []
    return [f"{timer.name}, tick {three_digits(timer.tick_ns)} ns" + (f": {timer.reason}" if timer.reason else "")]


def _telemetry(record: Record) -> list[str]:
    after = record.telemetry.get("after")
    return [text] if isinstance(after, dict) and (text := _snapshot(after)) else []


def _snapshot(facts: Mapping[str, Any]) -> str:
    units = {"temperature_c": "°C", "power_w": "W", "sm_mhz": "MHz (SM)", "memory_mhz": "MHz (memory)"}
    values = [f"{facts[key]:g} {unit}" for key, unit in units.items() if isinstance(facts.get(key), int | float)]
    events = facts.get("clock_events")
    return ", ".join([*values, *(map(str, events) if isinstance(events, list) else ())])


def _conditions(record: Record) -> list[str]:
    return [f"{conditions_words(record.conditions)}, definition {record.definition}"]


_FACTS: Mapping[str, Callable[[Record], list[str]]] = {
    "status": _status,
    "median": _time,
    "SM clock": _clock,
    "kernels": _kernels,
    "timer": _timer,
    "telemetry": _telemetry,
    "asked for": _conditions,
    "labels": lambda record: [f"{name} {value}" for name, value in record.labels.items()],
}
"""What each side is asked, by the title it stands under."""
