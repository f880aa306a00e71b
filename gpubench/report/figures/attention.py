"""Figures of attention by the number of positions: time, memory, bytes between the GPU and its memory."""

from __future__ import annotations

from collections.abc import Iterator

from gpubench.report.figures.pick import Value, counter, group, measured, metric, param, predicted, series
from gpubench.report.figures.shapes import Figure, Heading, Lines, Quantity, Series
from gpubench.result import Record, Run

POSITIONS = Quantity("positions N", "", log=True)
PASSES = {"forward": ("forward", "the forward pass"),
          "forward-backward": ("forward and backward", "the forward and the backward pass")}  # fmt: skip
"""What is measured, for a title and for a question."""


def attention(run: Run) -> Iterator[Figure]:
    """For the forward pass, and for both, where they were measured."""
    for benchmark, (words, passes) in PASSES.items():
        each = group(run, f"attention/{benchmark}")
        rows = measured(each.records if each else ())
        facts = tuple(each.facts()) if each else ()
        ending = "" if benchmark == "forward" else "-backward"
        for id, quantity, value, foretold, question in (
            ("time", Quantity("time", "ns"), metric("time"), None,
             f"How does the time of {passes} grow with the positions, and what does not writing the scores save?"),
            ("memory", Quantity("peak memory", "B"), _peak, None,
             f"How much memory does {passes} of attention need, each way of computing it?"),
            ("traffic", Quantity("bytes read and written in DRAM", "B"),
             counter("dram_bytes_read", "dram_bytes_write"), predicted("bytes"),
             f"How many bytes does {passes} move between GPU and memory, and does the model foresee them?"),
        ):  # fmt: skip
            found = _series(rows, quantity, value, foretold)
            if found:
                heading = Heading(
                    f"attention-{id}{ending}", "attention", f"attention, {words}: {quantity.name}", question,
                    (", ".join(facts),) if facts else (),
                )  # fmt: skip
                yield Lines(heading, POSITIONS, quantity, found, "way")


def _series(rows: list[Record], quantity: Quantity, value: Value, foretold: Value | None) -> list[Series]:
    """A series for each way of computing it, the model's beside it; nothing where no way has two rows."""
    found: list[Series] = []
    for by in dict.fromkeys(str(row.params.get("by")) for row in rows):
        alike = [row for row in rows if row.params.get("by") == by]
        shown = series(alike, by, param("n"), value, quantity)
        found += shown
        if shown and foretold is not None:
            found += series(alike, by, param("n"), foretold, quantity, "predicted")
    return found


def _peak(row: Record) -> float | None:
    found = row.telemetry.get("peak_bytes")
    return float(found) if isinstance(found, int | float) and found > 0 else None
