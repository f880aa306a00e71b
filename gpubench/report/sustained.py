"""What a load without rest leaves of a rate: sustained beside burst, both clocks, the power, and what set the limit."""

from __future__ import annotations

from gpubench.report.rows import Group, groups, number
from gpubench.report.words import plain
from gpubench.result import Metric, Record, Run
from gpubench.telemetry import held_mhz
from gpubench.units import format_duration, format_rate, three_digits


def limit_words(record: Record) -> str:
    """What limited a sustained row: power cap, thermal, none; with a mark where it was polled and may have been missed.
    Empty where nothing is known."""
    limited = record.telemetry.get("limited_by") if number(record) is not None else None
    if not limited:
        return ""
    detail = record.telemetry.get("limit")
    polled = isinstance(detail, dict) and detail.get("may_miss")
    return f"{plain(limited)}{' (polled)' if polled else ''}"


def sustained_lines(run: Run) -> list[str]:
    """One line for each sustained row that has a burst row beside it, alike in everything else."""
    return [_line(group, burst, row) for group in groups(run) for burst, row in pairs(group)]


def pairs(group: Group) -> list[tuple[Record, Record]]:
    """The burst row and the sustained row of each case that was measured under both loads and gave a number in both."""
    burst = {_case(record): record for record in group.records if _counts(record, "burst")}
    return [
        (burst[_case(record)], record)
        for record in group.records
        if _counts(record, "sustained") and _case(record) in burst
    ]


def _counts(record: Record, load: str) -> bool:
    return record.conditions.load == load and number(record) is not None


def _case(record: Record) -> tuple[object, ...]:
    return tuple(record.params.items()), record.conditions.cache, record.conditions.data


def _line(group: Group, burst: Record, row: Record) -> str:
    before, after = number(burst), number(row)
    assert before is not None
    assert after is not None
    figures, unit = _figures(after, before)
    ratio = f" ({three_digits(after.value / before.value)}×)" if before.value > 0 else ""
    clocks = [_clock(record) for record in (row, burst)]
    power, limit = row.metric("power"), limit_words(row)
    facts = [
        f"{figures} {unit}{ratio}",
        *([f"SM {clocks[0]} of {clocks[1]} MHz"] if all(clocks) else []),
        *([f"{power.value:.0f} W"] if power is not None else []),
    ]
    return f"sustained {plain(group.benchmark)} {group.params(row)}: {', '.join(facts)}{f': {limit}' if limit else ''}"


def _figures(after: Metric, before: Metric) -> tuple[str, str]:
    """656 of 777 and their unit; with a unit each, where theirs differ."""
    words = [
        format_duration(metric.value) if metric.unit == "ns" else format_rate(metric.value, plain(metric.unit))
        for metric in (after, before)
    ]
    (first, unit), (second, other) = (each.split(" ", 1) for each in words)
    return (f"{first} of {second}", unit) if unit == other else (f"{words[0]} of {second}", other)


def _clock(record: Record) -> str:
    """The clock of a row in MHz; empty where it is not known."""
    mhz = held_mhz(record)
    return f"{mhz:.0f}" if mhz else ""
