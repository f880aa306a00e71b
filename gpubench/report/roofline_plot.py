"""The roofline drawn in a terminal: logarithmic axes, the ceilings as lines, one mark per class of points."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, log10

from gpubench.report.canvas import (
    LINE_COLOUR,
    Canvas,
    Scale,
    legend,
    log_ticks,
    margin_of,
    marks_for,
    natural,
    si,
    to_ascii,
    wrapped,
)
from gpubench.report.roofline import Point, Roofline
from gpubench.report.words import plain, short_dtype
from gpubench.units import format_rate

LEAST_WIDTH = 40
LEAST_HEIGHT = 12


def plot(found: Roofline, width: int, height: int, colour: bool, ascii_only: bool = False) -> str | None:
    """The picture, at most `width` columns wide and about `height` lines high, without a final newline.

    None where there is neither a point nor a ceiling to draw, or the terminal is too small.
    """
    peaks = [ridge.ceiling for ridge in found.compute]
    if not (found.points or (peaks and found.memory)) or width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return None
    kind, class_of = classes(found)
    names = sorted({class_of(point) for point in found.points}, key=natural)
    marks = marks_for(names, ascii_only)
    entries = [(mark, shade, name or "rows of this run") for name, (mark, shade) in marks.items()]
    footer = legend(kind, entries, width, colour) if entries else []
    footer += [line for note in found.notes for line in wrapped(note, width)]
    title = wrapped(found.title, width)
    rows = max(height - len(footer) - len(title) - 3, 6)

    scale_y = decades([point.rate for point in found.points] + [peak.value for peak in peaks], below=1.5, above=1.5)
    at_ridge = [ridge.intensity for ridge in found.compute if ridge.intensity]
    scale_x = decades([point.intensity for point in found.points] + at_ridge, below=3, above=3)
    y_ticks = {tick: si(tick) for tick in fine_ticks(scale_y, max(rows // 2, 2))}
    margin = margin_of(list(y_ticks.values()))
    canvas = Canvas(width - margin, rows, scale_x, scale_y)
    x_ticks = {tick: si(tick) for tick in fine_ticks(scale_x, max(canvas.width // 8, 2))}
    _lines(found, canvas)
    for point in found.points:
        mark, shade = marks[class_of(point)]
        canvas.mark(point.intensity, point.rate, mark, shade)
    _names(found, canvas)
    text = "\n".join([*title, "FLOP/s", *canvas.lines(y_ticks, x_ticks, "FLOP/B", colour), *footer])
    return to_ascii(text) if ascii_only else text


def classes(found: Roofline) -> tuple[str, Callable[[Point], str]]:
    """What marks stand for, and what gives a point its class: its dtype where there are several, else its label."""
    if len({point.dtype for point in found.points}) > 1:
        return "dtype", lambda point: "none named" if point.dtype is None else short_dtype(plain(point.dtype))
    return "class" if any(point.label for point in found.points) else "", lambda point: point.label


def decades(values: list[float], below: float, above: float) -> Scale:
    """A logarithmic scale with room around the values, at least one decade long."""
    low, high = min(values) / below, max(values) * above
    if high < 10 * low:
        low, high = low / 2, high * 5
    return Scale(low, high, log=True)


def fine_ticks(scale: Scale, most: int) -> list[float]:
    """Powers of ten or, where they are few and there is room, 1, 2 and 5 times powers of ten."""
    first, last = floor(log10(scale.low)), ceil(log10(scale.high))
    fine = [factor * 10.0**power for power in range(first, last + 1) for factor in (1, 2, 5)]
    inside = [tick for tick in fine if scale.low <= tick <= scale.high]
    return inside if len(inside) <= most else log_ticks(scale.low, scale.high, most)


def _lines(found: Roofline, canvas: Canvas) -> None:
    """The memory ceiling up to the highest peak, and each compute ceiling from its ridge on."""
    if found.memory:
        top = max((ridge.ceiling.value for ridge in found.compute), default=canvas.y.high)
        last = None
        for column in range(canvas.width):
            rate = found.memory.value * canvas.x.value(column / (canvas.width - 1))
            row = canvas.row(rate)
            if rate > top:
                break
            for between in range(row, row + 1 if last is None else max(last, row + 1)):
                canvas.put(column, between, "╱", LINE_COLOUR)
            last = row
    for ridge in found.compute:
        start = 0 if ridge.intensity is None else canvas.column(ridge.intensity)
        for column in range(max(start, 0), canvas.width):
            canvas.put(column, canvas.row(ridge.ceiling.value), "─", LINE_COLOUR)


def _names(found: Roofline, canvas: Canvas) -> None:
    """Write each ceiling's name and rate beside its line, where there is room."""
    for ridge in found.compute:
        words = f"{short_dtype(plain(ridge.ceiling.dtype))} {format_rate(ridge.ceiling.value, 'FLOP/s')}"
        row = canvas.row(ridge.ceiling.value)
        start = canvas.width - len(words) - 1
        if not canvas.text(start, row - 1, words, LINE_COLOUR):
            canvas.text(start, row + 1, words, LINE_COLOUR)
    if found.memory:
        words = f"DRAM {format_rate(found.memory.value, 'B/s')}"
        for column in range(len(words) + 2, canvas.width):
            row = canvas.row(found.memory.value * canvas.x.value(column / (canvas.width - 1)))
            if canvas.text(column - len(words) - 2, row, f"{words}  ", LINE_COLOUR):
                return
