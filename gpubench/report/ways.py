"""Rows that were measured on purpose in a wrong way, beside the row that was measured right: the size of the error.

A benchmark about how to measure has an axis `way`, of which one value is "right". Its other rows are held against the
row that differs from them in nothing else, and may say in the label `trap` what is wrong with them.
"""

from __future__ import annotations

from gpubench.report.rows import RIGHT, WAY, Group, is_wrong, number
from gpubench.report.words import plain
from gpubench.result import Record
from gpubench.units import three_digits

TRAP = "trap"


def errors(group: Group) -> list[tuple[Record, float]]:
    """The wrong rows of a benchmark that have a number and a right row with one; the time that each reads over the
    right row's."""
    right = {_twin(record): record for record in group.records if record.params.get(WAY) == RIGHT}
    found = []
    for record in filter(is_wrong, group.records):
        ratio = _ratio(record, right.get(_twin(record)))
        found += [] if ratio is None else [(record, ratio)]
    return found


def error_words(group: Group, record: Record) -> str:
    """How far off a wrong row is, in three digits: 0.118×. Empty for every other row."""
    return next((f"{three_digits(ratio)}×" for wrong, ratio in errors(group) if wrong is record), "")


def lessons(group: Group) -> list[str]:
    """A line for each wrong row: what time it reads instead of the right one, and what is wrong with it."""
    lines = []
    for record, ratio in errors(group):
        why = f": {plain(record.labels[TRAP])}" if TRAP in record.labels else ""
        lines.append(f"{plain(group.benchmark)} {group.case(record)} reads {three_digits(ratio)}× the time{why}")
    return lines


def _twin(record: Record) -> tuple[object, ...]:
    """What a wrong row and its right one have in common."""
    others = sorted((name, str(value)) for name, value in record.params.items() if name != WAY)
    return record.conditions, *others


def _ratio(wrong: Record, right: Record | None) -> float | None:
    """Median time over median time; None where either is missing, or the right one is 0."""
    if right is None or number(wrong) is None or number(right) is None:
        return None
    if wrong.summary is None or right.summary is None or right.summary.median_ns <= 0:
        return None
    return wrong.summary.median_ns / right.summary.median_ns
