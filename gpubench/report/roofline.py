"""The roofline of a run: its measured ceilings, and where each row stands under them. As data, table, Markdown, JSON.

The model and its source are in `gpubench.model.roofline`; the picture is drawn by `gpubench.report.roofline_plot`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gpubench.model import roofline as model
from gpubench.report.rows import Group, best_ceiling, dtype_of, groups, is_trusted, spread
from gpubench.report.words import (
    SEPARATOR,
    conditions_words,
    counted,
    device_name,
    markdown_row,
    plain,
    short_dtype,
)
from gpubench.result import Ceiling, Run
from gpubench.units import format_rate, three_digits

if TYPE_CHECKING:
    from rich.console import RenderableType

ROWS = 24

Column = tuple[str, bool]
"""A column's title, and whether it is aligned to the right."""

_POINT_COLUMNS: tuple[Column, ...] = (
    ("case", False),
    ("FLOP/B", True),
    ("rate", True),
    ("bound by", False),
    ("of roof", True),
    ("class", False),
)
_CEILING_COLUMNS: tuple[Column, ...] = (("ceiling", False), ("rate", True), ("ridge", True), ("source", False))


@dataclass(frozen=True)
class Point:
    """A row under its roof. `intensity` in FLOP/B, `rate` and `attainable` in FLOP/s. `bound` is None where one of the
    two ceilings is missing; `attainable` is then by the other alone, and None where both are."""

    id: str
    case: str
    intensity: float
    rate: float
    bound: model.Bound | None
    attainable: float | None
    percent: float | None
    dtype: str | None
    label: str
    trusted: bool


@dataclass(frozen=True)
class Ridge:
    """A compute ceiling and the intensity, in FLOP/B, at which it meets the memory ceiling (None without one)."""

    ceiling: Ceiling
    intensity: float | None


@dataclass(frozen=True)
class Roofline:
    """All that a roofline shows. `memory` is the highest DRAM ceiling, `compute` the highest of each dtype; `ceilings`
    are all that were measured. `notes` are lines to read beside it; `unplaced` counts rows without flops or number."""

    run_id: str
    device: str
    facts: tuple[str, ...]
    ceilings: tuple[Ceiling, ...]
    memory: Ceiling | None
    compute: tuple[Ridge, ...]
    points: tuple[Point, ...]
    unplaced: int
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        """The heading: roofline · device · conditions."""
        return SEPARATOR.join(["roofline", self.device, *self.facts])


def view(run: Run) -> Roofline:
    """The roofline of a run, from its records and the ceilings it holds."""
    memory = best_ceiling(run, "bandwidth", level="DRAM")
    dtypes = dict.fromkeys(ceiling.dtype for ceiling in run.ceilings if ceiling.kind == "compute" and ceiling.dtype)
    peaks = {dtype: peak for dtype in dtypes if (peak := best_ceiling(run, "compute", dtype=dtype))}
    found = groups(run)
    points = [point for group in found for point in _points(run, group, len(found) > 1, peaks)]
    compute = tuple(
        Ridge(peak, model.ridge(peak.value, memory.value) if memory else None)
        for peak in sorted(peaks.values(), key=lambda peak: -peak.value)
    )
    conditions = conditions_words(*(record.conditions for record in run.records))
    return Roofline(
        run.run_id,
        device_name(run),
        (conditions,) if conditions else (),
        tuple(run.ceilings),
        memory,
        compute,
        tuple(points),
        len(run.records) - len(points),
        _notes(points, memory, peaks),
    )


def _points(run: Run, group: Group, several: bool, peaks: dict[str, Ceiling]) -> list[Point]:
    """The rows of a benchmark, each under the roofs of its dtype and of the memory level whose bytes it counts."""
    points = []
    for record in group.records:
        metric = record.metric("flops") if record.status == "ok" else None
        if metric is None or record.work is None or record.work.bytes <= 0 or metric.value <= 0:
            continue
        intensity = model.intensity(record.work.flops, record.work.bytes)
        dtype = dtype_of(record)
        peak = peaks.get(dtype) if dtype is not None else None
        memory = best_ceiling(run, "bandwidth", level=record.work.level or "DRAM")
        roof = _roof(intensity, peak, memory)
        points.append(
            Point(
                record.id,
                f"{plain(group.benchmark)} {group.case(record)}" if several else group.case(record),
                intensity,
                metric.value,
                model.bound(intensity, peak.value, memory.value) if peak and memory else None,
                roof,
                100 * metric.value / roof if roof else None,
                dtype,
                group.label(record),
                is_trusted(record),
            )
        )
    return points


def _roof(intensity: float, peak: Ceiling | None, memory: Ceiling | None) -> float | None:
    if peak and memory:
        return model.attainable(intensity, peak.value, memory.value)
    if memory:
        return intensity * memory.value
    return peak.value if peak else None


def _notes(points: Sequence[Point], memory: Ceiling | None, peaks: dict[str, Ceiling]) -> tuple[str, ...]:
    notes = []
    if not memory and not peaks:
        notes.append("no ceilings in this run: gpubench roofline --measure")
    elif not memory:
        notes.append("no DRAM bandwidth ceiling: points are held against the compute ceiling alone")
    missing = dict.fromkeys(point.dtype for point in points if point.dtype not in peaks)
    if memory and missing:
        names = ", ".join("rows without a dtype" if name is None else short_dtype(plain(name)) for name in missing)
        notes.append(f"no compute ceiling for {names}: held against the bandwidth alone (–)")
    if not points:
        notes.append("no row has flops, bytes and a rate: nothing to place under the ceilings")
    return tuple(notes)


def shown_points(found: Roofline, limit: int = ROWS) -> list[Point]:
    """At most `limit` points, in their order: the best and the worst share of the roof, the best of each class and
    dtype, then evenly spread."""
    order = sorted(
        (index for index, point in enumerate(found.points) if point.trusted and point.percent is not None),
        key=lambda index: -(found.points[index].percent or 0.0),
    )
    kinds = {(found.points[index].dtype, found.points[index].label): index for index in reversed(order)}
    first = list(dict.fromkeys([*order[:1], *order[-1:], *kinds.values()]))[:limit]
    taken = set(first)
    rest = [index for index in range(len(found.points)) if index not in taken]
    return [found.points[index] for index in sorted([*first, *spread(rest, limit - len(first))])]


def table(found: Roofline, all_rows: bool = False) -> RenderableType:
    """Heading, ceilings, points (at most ROWS unless `all_rows`) and notes, for `Console.print`."""
    from rich.console import Group as Renderables
    from rich.text import Text

    from gpubench.report import grid

    parts: list[RenderableType] = [Text(found.title, style="bold")]
    for columns, rows in _sections(found, all_rows):
        lines = grid.Grid([grid.Column(title, right, fold=not right) for title, right in columns])
        for row in rows:
            lines.add(*row)
        parts += [lines, Text("")]
    footer = [*found.notes, *_hidden(found, all_rows)]
    return Renderables(*parts, *map(Text, footer)) if footer else Renderables(*parts[:-1])


def markdown(found: Roofline, all_rows: bool = False) -> str:
    """The same as a GitHub document, with a final newline."""
    lines = [f"## {markdown_row([found.title])[2:-2]}", ""]
    for columns, rows in _sections(found, all_rows):
        lines += [markdown_row([title for title, _ in columns])]
        lines += ["|" + "|".join("--:" if right else "---" for _, right in columns) + "|"]
        lines += [*map(markdown_row, rows), ""]
    for note in (*found.notes, *_hidden(found, all_rows)):
        lines += [markdown_row([note])[2:-2], ""]
    return "\n".join(lines)


def to_json(found: Roofline) -> dict[str, Any]:
    """The same as JSON values: rates in SI base units, None for what is not known."""
    return {
        "run_id": found.run_id,
        "device": found.device,
        "ceilings": [asdict(ceiling) for ceiling in found.ceilings],
        "memory": found.memory.name if found.memory else None,
        "compute": [
            {
                "name": ridge.ceiling.name,
                "dtype": ridge.ceiling.dtype,
                "value": ridge.ceiling.value,
                "unit": ridge.ceiling.unit,
                "ridge_flop_per_byte": ridge.intensity,
            }
            for ridge in found.compute
        ],
        "points": [
            {
                "id": point.id,
                "intensity_flop_per_byte": point.intensity,
                "rate_flop_per_s": point.rate,
                "attainable_flop_per_s": point.attainable,
                "percent_of_attainable": point.percent,
                "bound": point.bound,
                "dtype": point.dtype,
                "class": point.label or None,
            }
            for point in found.points
        ],
        "unplaced": found.unplaced,
        "notes": list(found.notes),
    }


def _sections(found: Roofline, all_rows: bool) -> list[tuple[list[Column], list[list[str]]]]:
    """The two tables, columns and rows, without columns that are empty and without a table that has no row."""
    points = found.points if all_rows else shown_points(found)
    ridges = {id(ridge.ceiling): ridge.intensity for ridge in found.compute}
    ceilings = [
        [
            plain(ceiling.name),
            format_rate(ceiling.value, ceiling.unit),
            "" if (at := ridges.get(id(ceiling))) is None else f"{three_digits(at)} FLOP/B",
            f"{ceiling.source} {plain(ceiling.measured_at)[:10]}",
        ]
        for ceiling in sorted(found.ceilings, key=lambda ceiling: (ceiling.kind, -ceiling.value))
    ]
    rows = [
        [
            point.case,
            three_digits(point.intensity),
            format_rate(point.rate, "FLOP/s"),
            point.bound or "–",
            "" if point.percent is None else f"{point.percent:.0f} %",
            point.label,
        ]
        for point in points
    ]
    sections = [_filled(_CEILING_COLUMNS, ceilings), _filled(_POINT_COLUMNS, rows)]
    return [(columns, lines) for columns, lines in sections if lines]


def _filled(columns: Sequence[Column], rows: list[list[str]]) -> tuple[list[Column], list[list[str]]]:
    keep = [place for place in range(len(columns)) if any(row[place] for row in rows)]
    return [columns[place] for place in keep], [[row[place] for place in keep] for row in rows]


def _hidden(found: Roofline, all_rows: bool) -> list[str]:
    lines = []
    if not all_rows and len(found.points) > ROWS:
        lines.append(f"{counted(len(found.points) - ROWS, 'more point')}: --all")
    if found.unplaced and found.points:
        lines.append(f"{counted(found.unplaced, 'row')} without flops or without a number: not placed")
    return lines
