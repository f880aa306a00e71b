"""Sweeps inside a run: the rows of one benchmark along one integer axis, everything else held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from gpubench.report.rows import Group, groups, is_trusted, number
from gpubench.result import Record, Run

LEAST = 8
"""Rows from which on a sweep is worth a plot."""
NEIGHBOUR = 4
"""Sizes at most this far apart are neighbours: they differ in alignment and tiling, hardly in the amount of work."""
FAR = 4
"""Sizes of which one is more than this many times the other are no neighbours: what lies between them is not known."""


@dataclass(frozen=True)
class Sweep:
    """Rows with a number along `axis`, by increasing value; `others` are the values held that differ between the
    sweeps of its benchmark, for a heading."""

    group: Group
    axis: str
    others: tuple[str, ...]
    records: Sequence[Record]

    @property
    def values(self) -> list[int]:
        """The axis value of each row."""
        return [int(record.params[self.axis]) for record in self.records]

    @property
    def rates(self) -> list[float]:
        """The headline figure of each row, in SI base units."""
        return [metric.value for record in self.records if (metric := number(record)) is not None]

    @property
    def unit(self) -> str:
        """The unit of the rates."""
        metric = number(self.records[0])
        assert metric is not None
        return metric.unit


def sweeps(run: Run, least: int = LEAST) -> list[Sweep]:
    """The run's sweeps of at least that many rows, the longest first. A row is in at most one of them per axis."""
    long = [group for group in groups(run) if len(group.records) >= least]
    found = [sweep for group in long for axis in group.varying for sweep in _along(group, axis, least)]
    return sorted(found, key=lambda sweep: -len(sweep.records))


def main(found: Sequence[Sweep]) -> list[Sweep]:
    """The sweeps with the one to be drawn first: the longest of matrix products, else the longest of all."""
    return sorted(found, key=lambda sweep: not is_of_products(sweep))


def is_of_products(sweep: Sweep) -> bool:
    """Whether a sweep is one of matrix products: their rows say how they are aligned, and fall where that changes."""
    return sweep.unit == "FLOP/s" and "alignment" in sweep.records[0].labels


def _along(group: Group, axis: str, least: int) -> list[Sweep]:
    held = [name for name in group.varying if name != axis]
    parts: dict[tuple[object, ...], dict[int, Record]] = {}
    for record in group.records:
        value, metric = record.params.get(axis), number(record)
        if isinstance(value, int) and metric is not None:
            same = (metric.unit, record.conditions, *(record.params.get(name) for name in held))
            parts.setdefault(same, {}).setdefault(value, record)
    found = []
    for key, rows in parts.items():
        if len(rows) < least:
            continue
        ordered = [rows[value] for value in sorted(rows)]
        others = [f"{name}={value}" for name, value in zip(held, key[2:], strict=True)]
        found.append(Sweep(group, axis, (*others, *group.under(ordered[0])), ordered))
    return found


def largest_drop(sweep: Sweep) -> tuple[int, int, float] | None:
    """The neighbours between which the rate falls most, and by what factor; None where it never falls."""
    return next(iter(drops(sweep)), None)


def drops(sweep: Sweep) -> list[tuple[int, int, float]]:
    """The neighbours between which the rate falls, and by what factor, the largest fall first.

    Neighbours are rows next to each other and at most NEIGHBOUR apart or, where no two are, FAR times as large.
    Rows whose number is not to be trusted, and figures for which lower is better, take no part.
    """
    rows = []
    for record in sweep.records:
        metric = number(record)
        if metric is None or metric.direction == "lower" or not is_trusted(record):
            continue
        if metric.value > 0:
            rows.append((int(record.params[sweep.axis]), metric.value))
    pairs = list(pairwise(rows))
    near = [(left, right) for left, right in pairs if right[0] - left[0] <= NEIGHBOUR] or [
        (left, right) for left, right in pairs if right[0] <= FAR * left[0]
    ]
    falls = [(left[0], right[0], left[1] / right[1]) for left, right in near if left[1] > right[1]]
    return sorted(falls, key=lambda fall: -fall[2])
