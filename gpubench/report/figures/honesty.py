"""Figures of what a number is worth: how wrong a way to measure reads, how far off a narrow format computes."""

from __future__ import annotations

from collections.abc import Iterator

from gpubench.report.figures.pick import group, measured, metric, param, predicted, series
from gpubench.report.figures.shapes import Entry, Figure, Heading, Level, Lines, Quantity, Rows, Series
from gpubench.report.rows import groups
from gpubench.report.ways import TRAP, errors
from gpubench.report.words import plain, short_dtype
from gpubench.result import Run


def traps(run: Run) -> Iterator[Figure]:
    """The time that each wrong way to measure reads over the right one's."""
    found = [(each, record, ratio) for each in groups(run) for record, ratio in errors(each) if ratio > 0]
    entries = [
        Entry(plain(record.benchmark), ratio, facts=(("reads", f"{ratio:.3g}× the right time"),
                                                     ("wrong", plain(record.labels.get(TRAP, "")))))
        for _, record, ratio in found
    ]  # fmt: skip
    if entries:
        heading = Heading(
            "traps", plain(found[0][0].suite), "wrong ways to measure", "How far off is each wrong way to measure?",
        )  # fmt: skip
        quantity = Quantity("time read over the right one", "×", log=True)
        yield Rows(heading, quantity, entries, levels=[Level(1.0, "right", "x")])


def rounding(run: Run) -> Iterator[Figure]:
    """The error of a product by the length of its sums, for each arithmetic, over the model."""
    each = group(run, "numerics/matmul-error")
    rows = measured(each.records if each else ())
    error = Quantity("relative error", "", log=True)
    found: list[Series] = []
    for arithmetic in dict.fromkeys(str(row.params.get("arithmetic")) for row in rows):
        alike = [row for row in rows if str(row.params.get("arithmetic")) == arithmetic]
        found += series(alike, short_dtype(arithmetic), param("k"), metric("error"), error)
        found += series(alike, short_dtype(arithmetic), param("k"), predicted("error"), error, "predicted")
    if found:
        yield Lines(
            Heading("rounding", "numerics", "error of a product by the length of its sums",
                    "How far off is each arithmetic, and does it get worse with the length of the sums?"),
            Quantity("terms in a sum, k", "", log=True), error, found, "arithmetic",
        )  # fmt: skip
