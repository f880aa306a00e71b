"""The base's runs as a history: the rows in them that a row of the new run can be held against, and the middle one.

Any one run may be an exception, the newest as much as another. With MIN_HISTORY runs that have a figure of a row, the
middle one stands for it: a row as it was measured, where an average would be one that nobody measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpubench.compare import comparable, judge
from gpubench.compare.judge import MIN_HISTORY
from gpubench.errors import UsageError
from gpubench.result import Conditions, Record, Run
from gpubench.suite import name_of

Key = tuple[str, Conditions]


@dataclass(frozen=True)
class Past:
    """A row of the base, and the run it is of."""

    record: Record
    run: Run


@dataclass(frozen=True)
class History:
    """The rows of the base's runs by key, the oldest first; none where the runs are too few to predict anything."""

    rows: Mapping[Key, Sequence[Past]]

    def like(self, new: Record) -> list[Past]:
        """What a row of the new run can be held against: had alike, with figures that can be judged."""
        return [
            past
            for past in self.rows.get(key_of(new), ())
            if past.record.status == "ok"
            and not comparable.row_mismatches(past.record, new)
            and judge.invalid(past.record, new) is None
        ]


def history(runs: Sequence[Run]) -> History:
    """Of runs in the order they were started. UsageError where one of them holds a row twice."""
    found: dict[Key, list[Past]] = {}
    if len(runs) >= MIN_HISTORY:
        for run in runs:
            for key, record in by_key(run).items():
                found.setdefault(key, []).append(Past(record, run))
    return History(found)


def middle(known: Sequence[Past]) -> Past:
    """The one whose headline figure is the median of theirs: of an even number, and of equal figures, the newest of
    those in the middle. `known` is what `History.like` gives, the oldest first."""
    figures = [judge.headline(past.record) for past in known]
    ordered, last = sorted(figures), len(known) - 1
    inner = ordered[last // 2], ordered[len(known) // 2]
    return next(past for past, figure in zip(reversed(known), reversed(figures), strict=True) if figure in inner)


def key_of(record: Record) -> Key:
    """Suite, benchmark, parameters and the conditions asked for."""
    return name_of(record), record.conditions


def by_key(run: Run) -> dict[Key, Record]:
    """A run's rows. UsageError where it holds one twice."""
    found: dict[Key, Record] = {}
    for record in run.records:
        if found.setdefault(key_of(record), record) is not record:
            raise UsageError(f"{run.run_id}: {record.id} is in it twice")
    return found
