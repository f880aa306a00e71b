"""A figure of any benchmark: lines along its longest integer axis, or its rows beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpubench.report.figures.pick import facts, interval, measured, metric, param, predicted, series
from gpubench.report.figures.shapes import MOST, Entry, Figure, Heading, Lines, Quantity, Rows, Series
from gpubench.report.rows import Group, number, spread
from gpubench.report.words import counted, plain, short_dtype
from gpubench.result import Record

LEAST = 3
"""Rows with a number that a figure takes: two are told sooner than drawn."""
STEPS = 3
"""Values of an integer axis from which on it makes a line."""
LONG = 36
"""Letters from which on the name of a row is cut in a picture: text then stands without the name of its axis."""
ENTRIES = 64
"""Marks that are shown of rows without such an axis."""
NAMES = {"time": "time", "flops": "rate", "bandwidth": "bandwidth"}
"""Metrics by what they are called on an axis."""


def of(group: Group) -> Figure | None:
    """The figure of a benchmark's rows; None where fewer than LEAST gave a number in the same unit."""
    rows = [row for row in measured(group.records) if number(row) is not None]
    headline = number(rows[0]) if rows else None
    if headline is None:
        return None
    alike = headline.name, headline.unit
    rows = [row for row in rows if (found := number(row)) and (found.name, found.unit) == alike]
    if len(rows) < LEAST:
        return None
    quantity = Quantity(NAMES.get(headline.name, plain(headline.name).replace("_", " ")), _unit(headline.unit))
    axis = _axis(group, rows)
    facts_of_all = tuple(group.facts()[:3])
    heading = Heading(
        group.path, plain(group.suite), f"{plain(group.suite)}: {plain(group.benchmark)}",
        _question(plain(group.benchmark), quantity, axis),
        (", ".join(facts_of_all),) if facts_of_all else (),
    )  # fmt: skip
    if axis:
        return _lines(group, rows, axis, heading, quantity, headline.name)
    return _rows(group, rows, heading, quantity)


def _axis(group: Group, rows: Sequence[Record]) -> str | None:
    """The integer parameter with the most values, three at the least."""
    counts = {
        name: len({row.params[name] for row in rows if isinstance(row.params.get(name), int)}) for name in group.varying
    }
    best = max(counts, key=lambda name: counts[name], default=None)
    return best if best is not None and counts[best] >= STEPS else None


def _lines(
    group: Group, rows: Sequence[Record], axis: str, heading: Heading, quantity: Quantity, name: str
) -> Lines | None:
    kinds: dict[str, list[Record]] = {}
    others = [other for other in group.varying if other != axis]
    for row in rows:
        one = len(others) == 1 and not group.conditions
        words = [_value(other, row, not one, bare=one) for other in others] + group.under(row)
        kinds.setdefault(" ".join(words), []).append(row)
    found: list[Series] = []
    for named, of_kind in list(kinds.items())[:MOST]:
        shown = series(of_kind, named, param(axis), metric(name), quantity)
        found += shown
        if shown:
            found += series(of_kind, named, param(axis), predicted(name), quantity, "predicted")
    if len(kinds) > MOST:
        left = counted(len(kinds) - MOST, "more line")
        heading = replace(heading, facts=(*heading.facts, f"not drawn: {left}"))
    if not found:
        return None
    kind = "" if len(kinds) == 1 else others[0] if len(others) == 1 else "rows"
    return Lines(heading, Quantity(plain(axis)), quantity, found, plain(kind))


def _rows(group: Group, rows: Sequence[Record], heading: Heading, quantity: Quantity) -> Rows:
    counts = {name: len({row.params.get(name) for row in rows}) for name in group.varying}
    classes = min((name for name in counts if counts[name] <= MOST), key=lambda name: counts[name], default=None)
    by_condition = len(counts) < 2 and bool(group.conditions)
    if len(counts) < 2:
        classes = None
    named = [name for name in group.varying if name != classes]
    chosen = [rows[index] for index in spread(range(len(rows)), ENTRIES)]
    whole = [_words(group, row, named, by_condition, len(named) > 1) for row in chosen]
    short = [_words(group, row, named, by_condition, False) for row in chosen]
    fits = max(map(len, whole)) <= LONG or len(set(short)) < len(set(whole))
    entries = []
    for row, words in zip(chosen, whole if fits else short, strict=True):
        value = number(row)
        assert value is not None
        low, high = interval(row, value.value, quantity.unit)
        kind = short_dtype(plain(row.params.get(classes, ""))) if classes else ""
        if by_condition:
            kind = ", ".join(row.conditions.by_name[name] for name in group.conditions)
        told = facts(row, quantity.name, value.value, quantity.unit)
        entries.append(Entry(words, value.value, low, high, None, kind, told))
    if len(chosen) < len(rows):
        more = f"not drawn: {counted(len(rows) - len(chosen), 'more row')}"
        heading = replace(heading, facts=(*heading.facts, more))
    told_apart = ", ".join(group.conditions) if by_condition else plain(classes or "")
    return Rows(heading, quantity, entries, told_apart)


def _words(group: Group, row: Record, names: Sequence[str], by_condition: bool, named: bool) -> str:
    """What a row is called beside the others: by these parameters, and by its conditions unless these are its class."""
    words = [_value(name, row, named) for name in names]
    return " ".join([*words, *([] if by_condition else group.under(row))]) or plain(row.benchmark)


def _value(name: str, row: Record, named: bool, bare: bool = False) -> str:
    """A parameter's value; `named` with its name, as a number always is that is not to be `bare`."""
    value = row.params.get(name)
    words = short_dtype(plain(value))
    return f"{plain(name)}={words}" if named or (isinstance(value, int) and not bare) else words


def _question(benchmark: str, quantity: Quantity, axis: str | None) -> str:
    """What the rows of a benchmark answer, along an axis or beside each other."""
    if axis:
        return f"How does the {quantity.name} of {benchmark} change with {plain(axis)}?"
    if quantity.unit == "ns":
        return f"How long does each case of {benchmark} take?"
    if quantity.unit in ("FLOP/s", "B/s"):
        return f"How fast is each case of {benchmark}?"
    return f"What is the {quantity.name} of each case of {benchmark}?"


def _unit(unit: str) -> str:
    """The unit of a metric on an axis."""
    return "" if unit == "1" else unit
