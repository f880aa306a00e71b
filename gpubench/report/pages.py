"""What ncu's other pages say of a profiled row: the figures of its sections, and the hottest lines of its kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from gpubench.report.grid import Column, Grid
from gpubench.report.words import plain
from gpubench.units import format_bytes, format_duration, format_rate, three_digits

Kernels = Sequence[Mapping[str, Any]]
COUNTED = frozenset({"block", "byte", "cycle", "register", "request", "sector", "thread", "warp"})
"""Units of ncu that are things, of which one counts several."""


def sections(kernels: Kernels, most: int) -> Iterator[RenderableType]:
    """A table for each section: a row for each metric, a column for each kernel, of which `most` are shown."""
    shown = kernels[:most]
    titles = dict.fromkeys(section["name"] for kernel in shown for section in kernel.get("sections", ()))
    for title in titles:
        figures = [_figures(kernel, title) for kernel in shown]
        numbers = [f"#{number}" for number in range(1, len(shown) + 1)] if len(shown) > 1 else ["value"]
        grid = Grid([Column(plain(title), fold=True)] + [Column(number, right=True) for number in numbers])
        for name in dict.fromkeys(name for each in figures for name in each):
            grid.add(plain(name), *(_value(each.get(name)) for each in figures))
        yield Text("")
        yield grid
    if any("sections" in kernel for kernel in shown) and not titles:
        yield Text("no sections: ncu printed none for these kernels")


def sources(kernels: Kernels, most: int) -> Iterator[RenderableType]:
    """The hottest lines of each kernel, of which `most` are shown; one line where there are none, and why."""
    for number, kernel in enumerate(kernels[:most], 1):
        lines = kernel.get("source")
        if lines is None:
            continue
        if isinstance(lines, str):
            yield Text(f"#{number} {plain(lines)}")
            continue
        titles = Column(f"#{number} hottest lines"), Column("stalls", right=True), Column("executed", right=True)
        grid = Grid([*titles, Column("text", fold=True)])
        for line in lines:
            share, executed = line["share"], line["instructions"]
            grid.add(
                f"{plain(line['file'])}:{line['line']}",
                "–" if share is None else f"{100 * share:.1f} %",
                "–" if executed is None else f"{executed:,}",
                plain(line["text"]),
            )
        yield Text("")
        yield grid


def _figures(kernel: Mapping[str, Any], title: str) -> dict[str, Mapping[str, Any]]:
    """The metrics of a kernel's section by their names."""
    found = (section for section in kernel.get("sections", ()) if section["name"] == title)
    return {figure["name"]: figure for section in found for figure in section["figures"]}


def _value(figure: Mapping[str, Any] | None) -> str:
    """A figure in the unit that suits it; ncu's own unit where we have no other word for it."""
    if figure is None:
        return ""
    value, unit = figure["value"], figure["unit"]
    if value is None:
        return "–"
    if isinstance(value, str):
        return plain(value)
    if unit == "byte":
        return format_bytes(value)
    if unit == "byte/s":
        return format_rate(value, "B/s")
    if unit in ("ns", "nsecond"):
        return format_duration(value)
    if unit in ("hz", "Hz"):
        return f"{three_digits(value / 1e6)} MHz"
    of, slash, each = plain(unit).partition("/")
    return f"{number_words(value)} {of}{'s' if of in COUNTED and value != 1 else ''}{slash}{each}".rstrip()


def number_words(value: float) -> str:
    """A whole number in full, any other in three digits or, where it has more before the point, in those."""
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 1000 else three_digits(value)
