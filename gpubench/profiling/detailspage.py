"""The details page of ncu as CSV: a line for each metric of each section of each kernel, and lines of rules between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpubench.profiling.metrics import Value
from gpubench.profiling.rawpage import number, rows

NEEDED = ("ID", "Section Name", "Metric Name", "Metric Unit", "Metric Value")
OWN = "Command line profiler metrics"
"""The section in which ncu lists what --metrics asked for: it is in the raw page already."""
MOST_METRICS = 1000
"""Of one kernel. All of ncu's sections together have some hundreds."""
LONGEST = 120
"""Characters of a name or a value."""


@dataclass(frozen=True)
class Figure:
    """One metric as ncu labels it: a number in ncu's base unit, or a word; None where it has neither."""

    name: str
    value: Value | str
    unit: str


@dataclass
class Section:
    """A section by the title that ncu gives it."""

    name: str
    figures: list[Figure] = field(default_factory=list)


def read(text: str) -> dict[str, list[Section]]:
    """The sections of each kernel, by the ID that ncu gave it, in the order of the page.

    Lines that are none of the table, lines cut short and lines of rules do not count.
    """
    found: dict[str, dict[str, Section]] = {}
    sizes: dict[str, int] = {}
    header: list[str] = []
    for row in rows(text):
        if row[0] == "ID":
            header = row if all(title in row for title in NEEDED) else []
            continue
        if not header or len(row) < header.index("Metric Value") + 1:
            continue
        cells = dict(zip(header, row, strict=False))
        kernel, title = cells["ID"], cells["Section Name"][:LONGEST]
        sizes[kernel] = sizes.get(kernel, 0) + 1
        if not cells["Metric Name"] or title == OWN or sizes[kernel] > MOST_METRICS:
            continue
        sections = found.setdefault(kernel, {})
        sections.setdefault(title, Section(title)).figures.append(_figure(cells))
    return {kernel: list(sections.values()) for kernel, sections in found.items()}


def _figure(cells: Mapping[str, str]) -> Figure:
    text = cells["Metric Value"].strip()
    value: Value | str = number(text)
    if value is None and text and text.lower() not in ("n/a", "nan", "inf", "-inf"):
        value = text[:LONGEST]  # such as CachePreferNone
    return Figure(cells["Metric Name"][:LONGEST], value, cells["Metric Unit"][:LONGEST])
