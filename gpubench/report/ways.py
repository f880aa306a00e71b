"""Rows that were measured on purpose in a wrong way, beside the row that was measured right: the size of the error.

A benchmark about how to measure has an axis `way` of "right" and "wrong". A wrong row is held against the right one
that differs from it in nothing else, and may say in the label `trap` what is wrong with it. Where a condition is what
is wrong, it tells all wrong rows of the benchmark from all right ones, and is no difference.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.report.rows import Group, is_wrong, number
from gpubench.report.words import plain
from gpubench.result import CONDITIONS, RIGHT, WAY, Record
from gpubench.units import three_digits

TRAP = "trap"


def errors(group: Group) -> list[tuple[Record, float]]:
    """The wrong rows of a benchmark that have a number and a right row with one; the time that each reads over the
    right row's."""
    right = [record for record in group.records if record.params.get(WAY) == RIGHT]
    wrong = [record for record in group.records if is_wrong(record)]
    shared = [name for name in CONDITIONS if _values(name, right) & _values(name, wrong)]
    twins = {_twin(record, shared): record for record in right}
    found = []
    for record in wrong:
        ratio = _ratio(record, twins.get(_twin(record, shared)))
        found += [] if ratio is None else [(record, ratio)]
    return found


def error_words(group: Group, record: Record) -> str:
    """How far off a wrong row is, in three digits: 0.118×. Empty for every other row."""
    if not is_wrong(record):
        return ""
    return next((f"{three_digits(ratio)}×" for wrong, ratio in errors(group) if wrong is record), "")


def lessons(group: Group) -> list[str]:
    """A line for each wrong row: what time it reads instead of the right one, and what is wrong with it."""
    lines = []
    for record, ratio in errors(group):
        why = f": {plain(record.labels[TRAP])}" if TRAP in record.labels else ""
        lines.append(f"{plain(group.benchmark)} {group.case(record)} reads {three_digits(ratio)}× the time{why}")
    return lines


def _values(condition: str, records: Sequence[Record]) -> set[str]:
    return {record.conditions.by_name[condition] for record in records}


def _twin(record: Record, shared: Sequence[str]) -> tuple[object, ...]:
    """What a wrong row and its right one have in common: parameters, and the conditions that the two ways share."""
    others = sorted((name, str(value)) for name, value in record.params.items() if name != WAY)
    return *(record.conditions.by_name[name] for name in shared), *others


def _ratio(wrong: Record, right: Record | None) -> float | None:
    """Median time over median time; None where either is missing, or the right one is 0."""
    if right is None or number(wrong) is None or number(right) is None:
        return None
    if wrong.summary is None or right.summary is None or right.summary.median_ns <= 0:
        return None
    return wrong.summary.median_ns / right.summary.median_ns
