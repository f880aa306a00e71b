"""The samples of a few rows, each over its median: how far they scatter, and whether they jump."""

from __future__ import annotations

from collections.abc import Iterator

from gpubench.report.figures.pick import in_group, measured
from gpubench.report.figures.shapes import Figure, Heading, Quantity, Strip, Strips
from gpubench.report.rows import groups, select, spread
from gpubench.report.words import counted
from gpubench.result import Record, Run
from gpubench.units import format_duration

ROWS = 12
"""Rows whose samples are shown."""
MOST = 200
"""Samples of one row that are shown; of more, evenly chosen ones with both ends."""
LEAST = 3
"""Samples that a row needs."""


def samples(run: Run) -> Iterator[Figure]:
    """Of the rows that a table would show first, those with the widest scatter among them."""
    rows = [row for row in measured(run.records) if len(row.samples.gpu_ns) >= LEAST and _calls(row)]
    if not rows:
        return
    first = select(groups(run), ROWS // 3)
    widest = sorted(rows, key=lambda row: -_width(row))
    chosen = {id(row) for row in rows if id(row) in first}
    for row in widest:
        if len(chosen) < ROWS:
            chosen.add(id(row))
    shown = [row for row in rows if id(row) in chosen][:ROWS]
    of = {id(row): found for found in groups(run) for row in found.records}
    several = len({of[id(row)].path for row in shown}) > 1
    strips = [_strip(in_group(of[id(row)], row, several), row) for row in shown]
    heading = Heading(
        "samples", None, "samples of single rows",
        "How far do the samples of a row scatter around the median that is shown of it?",
        (f"{len(shown)} of {len(rows)} rows, those with the widest scatter among them" if len(shown) < len(rows)
         else counted(len(rows), "row"),
         "long line: the median; thick bar: its interval; small marks: samples"),
    )  # fmt: skip
    yield Strips(heading, Quantity("time of a call over the row's median", "×"), strips)


def _strip(name: str, row: Record) -> Strip:
    summary = row.summary
    assert summary is not None
    middle = summary.median_ns
    calls = sorted(_calls(row))
    kept = [calls[index] for index in spread(range(len(calls)), MOST)]
    bounds = [None if bound is None else bound / middle for bound in (summary.low_ns, summary.high_ns)]
    told = [("row", row.id), ("median", format_duration(middle)), ("samples", str(summary.n))]
    if row.stopped_by:
        told.append(("stopped by", row.stopped_by))
    return Strip(name, [call / middle for call in kept], 1.0, bounds[0], bounds[1], tuple(told))


def _calls(row: Record) -> list[float]:
    """The time of one call of each sample; nothing where the median is no time to divide by."""
    if row.summary is None or row.summary.median_ns <= 0:
        return []
    return [ns / calls for ns, calls in zip(row.samples.gpu_ns, row.samples.launches, strict=False) if calls > 0]


def _width(row: Record) -> float:
    """What lies between the tenth and the ninetieth of a hundred samples, over the median."""
    summary = row.summary
    return 0.0 if summary is None else (summary.p90_ns - summary.p10_ns) / summary.median_ns
