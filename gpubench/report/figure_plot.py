"""A figure drawn in a terminal: lines as marks on a canvas, rows as bars, samples as strips of dots, tiles as marks
beside their names; what was predicted as dots or a line."""

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
    wrapped,
)
from gpubench.report.figures.axes import across, around, upwards
from gpubench.report.figures.shapes import MOST, Entry, Figure, Lines, Point, Rows, Strips, Tiles
from gpubench.report.words import SEPARATOR, plain

LEAST_WIDTH, LEAST_HEIGHT = 40, 9
NAME = 30
"""Columns that the name of a strip may take."""
BAR = 16
"""Columns that bars keep where names are long."""
VALUE = 14
"""Columns that its value takes."""
TILE = 6
"""Columns that the name of a tile may take."""
COLOUR = 33
"""Of bars, in the palette of 256 colours."""


def plot(figure: Figure, width: int, height: int, colour: bool, ascii_only: bool = False) -> str | None:
    """The figure at most `width` columns wide and about `height` lines high, no final newline. None where the terminal
    is too small."""
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return None
    facts = [line for fact in figure.heading.facts for line in wrapped(fact, width)]
    title = wrapped(figure.heading.title, width)
    rows = height - len(title) - len(facts)
    if isinstance(figure, Lines):
        body = _lines(figure, width, rows, colour, ascii_only)
    elif isinstance(figure, Rows):
        body = _rows(figure, width, rows, colour, ascii_only)
    elif isinstance(figure, Strips):
        body = _strips(figure, width, rows, colour)
    else:
        body = _tiles(figure, width, colour, ascii_only)
    text = "\n".join([*title, *body, *facts])
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
    rows = max(height - len(footer) - 3, 6)

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
    entries = figure.entries[: max(height - 2, 1)]
    levels = [level for level in figure.levels if level.words]
    values = [value for each in entries for value in (each.value, each.predicted) if value is not None]
    scale = (around if figure.band else upwards)(figure.x, [*values, *(level.at for level in levels)], 2).scale
    kinds = [f"{SEPARATOR}{entry.kind}" if entry.name and entry.kind else entry.kind for entry in entries]
    longest = max((cells(entry.name + kind) for entry, kind in zip(entries, kinds, strict=True)), default=0)
    most = width // 3 if longest <= width // 3 else max(width // 3, min(width // 2, width - VALUE - 3 - BAR))
    shortest = min((most - cells(kind) for kind in kinds), default=most)
    called = _cut([entry.name for entry in entries], max(shortest, most // 3))
    names = [clip(name + kind, most) for name, kind in zip(called, kinds, strict=True)]
    margin = max(map(cells, names), default=0)
    room = width - margin - VALUE - 3
    walls = [_place(scale, level.at, room) for level in levels]
    lines = []
    for name, entry in zip(names, entries, strict=True):
        bar = _bar(entry, scale, room, "#" if ascii_only else "█", walls)
        value = figure.x.say(entry.value)
        drawn = paint(bar, COLOUR) if colour else bar
        lines.append(f"{name}{' ' * (margin - cells(name))} │{drawn} {value:>{VALUE}}".rstrip())
    if left := len(figure.entries) - len(entries):
        lines.append(f"{left} more")
    about = figure.x.name if figure.x.name != figure.heading.title else ""
    told = [about, f"│ {figure.predicted}" if figure.predicted else "", *(f"┊ {level.words}" for level in levels)]
    words = "; ".join(filter(None, told))
    return [*([clip(words, width)] if words else []), *lines]


def _cut(names: Sequence[str], most: int) -> list[str]:
    """The names in that many columns, cut at their end or, where two would then be the same, at their beginning."""
    ends = [clip(name, most) for name in names]
    if len(set(ends)) == len(set(names)):
        return ends
    return [_tail(name, most) for name in names]


def _tail(name: str, most: int) -> str:
    """The end of a name that does not fit."""
    name = plain(name)
    begin = next(at for at in range(len(name) + 1) if cells(name[at:]) + (at > 0) <= most)
    return f"…{name[begin:]}" if begin else name


def _bar(entry: Entry, scale: Scale, room: int, full: str, walls: Sequence[int]) -> str:
    """A bar from the left, or a mark alone where the axis does not begin at zero; lines for what was predicted and for
    values with a name."""
    end = _place(scale, entry.value, room)
    line = [full if column <= end and scale.low == 0 else " " for column in range(room)]
    for wall in walls:
        line[wall] = "┊"
    line[end] = full
    if entry.predicted is not None:
        line[_place(scale, entry.predicted, room)] = "│"
    return "".join(line)


def _place(scale: Scale, value: float, room: int) -> int:
    """The column of a value."""
    return min(max(round(scale.at(value) * (room - 1)), 0), room - 1)


def _strips(figure: Strips, width: int, height: int, colour: bool) -> list[str]:
    strips = figure.strips[: max(height - 4, 1)]
    names = _cut([strip.name for strip in strips], min(NAME, 2 * width // 5))
    margin = max(map(cells, names), default=0)
    room = width - margin - 2
    x = around(figure.x, [value for strip in strips for value in strip.values], max(room // 8, 2))
    canvas = Canvas(room, len(strips), x.scale, Scale(0, max(len(strips) - 1, 1)))
    for row, strip in enumerate(strips):
        for value in strip.values:
            canvas.put(canvas.column(value), row, "·", COLOURS[0])
        if strip.low is not None and strip.high is not None:
            for column in range(canvas.column(strip.low), canvas.column(strip.high) + 1):
                canvas.put(column, row, "━", COLOURS[1])
        canvas.put(canvas.column(strip.median), row, "│", None)
    framed = canvas.lines({}, x.ticks, "", colour)
    beside = [*names, *[""] * (len(framed) - len(names))]
    lines = [f"{name}{' ' * (margin - cells(name))}{line}".rstrip() for name, line in zip(beside, framed, strict=True)]
    left = len(figure.strips) - len(strips)
    return [clip(x.title, width), *lines, *([f"{left} more"] if left else [])]


def _tiles(figure: Tiles, width: int, colour: bool, ascii_only: bool) -> list[str]:
    """Each tile with the mark of its verdict, in rows by the groups."""
    given = {tile.verdict for tile in figure.tiles}
    marks = ASCII_MARKS if ascii_only else MARKS
    chars = {verdict: (marks[index % len(marks)], COLOURS[index % len(COLOURS)])
             for index, verdict in enumerate(figure.verdicts)}  # fmt: skip
    size = min(max((cells(tile.name) for tile in figure.tiles), default=0), TILE) + 3
    most = max(width // size, 1)
    lines = []
    for _, tiles in figure.groups:
        for begin in range(0, len(tiles), most):
            line = ""
            for tile in tiles[begin : begin + most]:
                mark, shade = chars[tile.verdict]
                name = clip(tile.name, TILE)
                line += f"{paint(mark, shade) if colour else mark} {name}{' ' * (size - 2 - cells(name))}"
            lines.append(line.rstrip())
    entries = [(*chars[verdict], verdict) for verdict in figure.verdicts if verdict in given]
    return [*lines, *legend("verdict", entries, width, colour)]


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    from rich.cells import cell_len

    return cell_len(text)
