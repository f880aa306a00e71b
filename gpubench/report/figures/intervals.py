"""The changes that a comparison found, each with its interval, over the margin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import exp

from gpubench.report.figures.shapes import Entry, Heading, Level, Quantity, Rows, say
from gpubench.report.rows import groups_of
from gpubench.report.words import counted, plain, unplaced
from gpubench.verdict import Change, Judged, Row

ROWS = 40
"""Rows that are shown at most: those that changed most."""
VERDICTS = (
    "equivalent", "regression", "improvement", "inconclusive", "same", "suspect", "not comparable", "better",
)  # fmt: skip
"""Verdicts on a change, in the order of the palette: each looks alike in every picture."""
WORSE = Quantity("worse (right) or better (left) than the base", "%")


def intervals(judged: Judged) -> Rows | None:
    """The rows by how much worse they got, in %: a time that much longer, a rate that is lower by the same factor. None
    where no row has a change that is judged."""
    found = [(row, row.change) for row in judged.rows if row.change is not None]
    rows = [(row, change) for row, change in found if change is not None and change.direction != "none"]
    if not rows:
        return None
    widest = sorted(rows, key=lambda each: -abs(each[1].loss))[:ROWS]
    kept = {id(row) for row, _ in widest}
    left = len(rows) - len(kept)
    base_name, new_name = unplaced(judged.base_name, judged.new_name)
    heading = Heading(
        "comparison", None, "new against base", "Which rows changed, by how much, and is that more than the margin?",
        (f"{plain(new_name)} against {plain(base_name)}",
         *([f"not drawn: {counted(left, 'row')} that changed less"] if left else [])),
    )  # fmt: skip
    names = _names([row for row, _ in rows])
    entries = [_entry(names[id(row)], row, change) for row, change in rows if id(row) in kept]
    margin = 100 * judged.margin
    band = (100 * (1 / (1 + judged.margin) - 1), margin, f"margin ± {margin:.3g} %")
    return Rows(heading, WORSE, entries, "verdict", levels=[Level(0.0, "", "x")], band=band, classes=VERDICTS)


def _entry(name: str, row: Row, change: Change) -> Entry:
    low, high = _worse(change)
    told = [("row", plain(row.id)), ("base", say(change.base, change.unit)), ("new", say(change.new, change.unit)),
            ("verdict", row.verdict)]  # fmt: skip
    if row.reason:
        told.append(("reason", plain(row.reason)))
    return Entry(name, 100 * (exp(change.loss) - 1), low, high, None, row.verdict, tuple(told))


def _worse(change: Change) -> tuple[float | None, float | None]:
    """The interval of the ratio as % worse, its lower end first."""
    if change.low is None or change.high is None or min(change.low, change.high) <= 0:
        return None, None
    ends = [change.low, change.high] if change.direction == "lower" else [1 / change.high, 1 / change.low]
    return 100 * (ends[0] - 1), 100 * (ends[1] - 1)


def _names(rows: Sequence[Row]) -> dict[int, str]:
    """What each row is called, by its `id()`: by what varies among the rows, with the benchmark where there are
    several; by its own id where that names two."""
    records = {id(record): row for row in rows if (record := row.new or row.base) is not None}
    found = groups_of(record for row in rows if (record := row.new or row.base) is not None)
    names = {}
    for group in found:
        several = group.path if len({each.suite for each in found}) > 1 else group.benchmark
        for record in group.records:
            words = [several] if len(found) > 1 else []
            names[id(records[id(record)])] = plain(" ".join([*words, group.case(record)]))
    twice = {name for name, count in Counter(names.values()).items() if count > 1}
    return {id(row): plain(row.id) if (name := names.get(id(row))) is None or name in twice else name for row in rows}
