"""A figure drawn in a terminal: lines as marks on a canvas, rows as bars; what was predicted as dots beside them."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.report.canvas import (
    ASCII_MARKS,
    COLOURS,
    LINE_COLOUR,
    MARKS,
    Canvas,
    Scale,
    clip,
    legend,
    margin_of,
    natural,
    paint,
    to_ascii,
)
from gpubench.report.figures.axes import across, around, upwards
from gpubench.report.figures.shapes import MOST, Entry, Figure, Lines, Point, Rows
from gpubench.report.words import SEPARATOR

LEAST_WIDTH, LEAST_HEIGHT = 40, 9
NAME = 30
"""Columns that the name of a row may take."""
VALUE = 14
"""Columns that its value takes."""
COLOUR = 33
"""Of bars, in the palette of 256 colours."""


def plot(figure: Figure, width: int, height: int, colour: bool, ascii_only: bool = False) -> str | None:
    """The figure at most `width` columns wide and about `height` lines high, no final newline. None where the terminal
    is too small, or the figure is of a form that only a picture shows."""
    if width < LEAST_WIDTH or height < LEAST_HEIGHT or not isinstance(figure, Lines | Rows):
        return None
    if isinstance(figure, Lines):
        body = _lines(figure, width, height, colour, ascii_only)
    else:
        body = _rows(figure, width, height, colour, ascii_only)
    facts = [clip(fact, width) for fact in figure.heading.facts]
    text = "\n".join([clip(figure.heading.title, width), *body, *facts])
    return to_ascii(text) if ascii_only else text


def _lines(figure: Lines, width: int, height: int, colour: bool, ascii_only: bool) -> list[str]:
    shown = [each for each in figure.series if each.points]
    names = sorted({each.name for each in shown}, key=natural)[:MOST]
    marks = ASCII_MARKS if ascii_only else MARKS
    chars = {name: (marks[index], COLOURS[index]) for index, name in enumerate(names)}
    entries = [(*chars[name], name) for name in names if name and len(names) > 1]
    if any(each.role == "predicted" for each in shown):
        entries.append(("·", LINE_COLOUR, "predicted"))
    levels = [level for level in figure.levels if level.words]
    entries += [("╌" if level.axis == "y" else "│", LINE_COLOUR, level.words) for level in levels]
    footer = legend(figure.kind if len(names) > 1 else "", entries, width, colour) if entries else []
    rows = max(height - len(footer) - len(figure.heading.facts) - 4, 6)

    points = [point for each in shown for point in each.points]
    values = [*(point.y for point in points), *(level.at for level in levels if level.axis == "y")]
    y = (upwards if figure.points else around)(figure.y, values, max(rows // 3 + 1, 2))
    columns = width - margin_of(list(y.ticks.values()))
    x = across(figure.x, [point.x for point in points], max(columns // 10, 2))
    canvas = Canvas(columns, rows, x.scale, y.scale)
    for level in levels:
        if level.axis == "y":
            for column in range(columns):
                canvas.put(column, canvas.row(level.at), "╌", LINE_COLOUR)
        elif 0 <= x.scale.at(level.at) <= 1:
            for row in range(rows):
                canvas.put(canvas.column(level.at), row, "│", LINE_COLOUR)
    for each in shown:
        if each.role == "predicted":
            _dots(canvas, each.points)
    for each in shown:
        if each.role == "measured" and each.name in chars:
            for point in each.points:
                canvas.mark(point.x, point.y, *chars[each.name])
    return [y.title, *canvas.lines(y.ticks, x.ticks, x.title[: columns // 2], colour), *footer]


def _dots(canvas: Canvas, points: Sequence[Point]) -> None:
    """Dots along the line through the points, which are in order of x."""
    for before, after in zip(points, [*points[1:], points[-1]], strict=True):
        start, end = canvas.column(before.x), canvas.column(after.x)
        for column in range(start, end + 1):
            share = (column - start) / (end - start) if end > start else 0.0
            low, high = canvas.y.at(before.y), canvas.y.at(after.y)
            canvas.put(column, canvas.row(canvas.y.value(low + share * (high - low))), "·", LINE_COLOUR)


def _rows(figure: Rows, width: int, height: int, colour: bool, ascii_only: bool) -> list[str]:
    from rich.cells import cell_len, set_cell_size

    entries = figure.entries[: max(height - 3 - len(figure.heading.facts), 1)]
    values = [value for each in entries for value in (each.value, each.predicted) if value is not None]
    scale = (around if figure.band else upwards)(figure.x, values, 2).scale
    names = [SEPARATOR.join(word for word in (entry.name, entry.kind) if word) for entry in entries]
    margin = min(max(map(cell_len, names), default=0), NAME, width // 3)
    room = width - margin - VALUE - 3
    lines = []
    for name, entry in zip(names, entries, strict=True):
        bar = _bar(entry, scale, room, "#" if ascii_only else "█")
        value = figure.x.say(entry.value)
        drawn = paint(bar, COLOUR) if colour else bar
        lines.append(f"{set_cell_size(clip(name, margin), margin)} │{drawn} {value:>{VALUE}}".rstrip())
    if left := len(figure.entries) - len(entries):
        lines.append(f"{left} more")
    about = figure.x.name if figure.x.name != figure.heading.title else ""
    words = "; ".join(word for word in (about, f"│ {figure.predicted}" if figure.predicted else "") if word)
    return [*([clip(words, width)] if words else []), *lines]


def _bar(entry: Entry, scale: Scale, room: int, full: str) -> str:
    """A bar from the left, or a mark alone where the axis does not begin at zero; a line for what was predicted."""
    end = min(max(round(scale.at(entry.value) * (room - 1)), 0), room - 1)
    cells = [full if column <= end and scale.low == 0 else " " for column in range(room)]
    cells[end] = full
    if entry.predicted is not None:
        cells[min(max(round(scale.at(entry.predicted) * (room - 1)), 0), room - 1)] = "│"
    return "".join(cells)
