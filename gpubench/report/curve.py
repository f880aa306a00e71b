"""The curve of a sweep, drawn in a terminal: x the axis, y the rate, one mark per class."""

from __future__ import annotations

from gpubench.report.canvas import (
    LINE_COLOUR,
    Canvas,
    Scale,
    binary_ticks,
    legend,
    linear_ticks,
    log_ticks,
    margin_of,
    marks_for,
    natural,
    prefix,
    si,
    to_ascii,
    wrapped,
)
from gpubench.report.rows import ceiling_of, dtype_of, varying_labels
from gpubench.report.sweep import Sweep, main, sweeps
from gpubench.report.words import SEPARATOR, conditions_words, device_name, plain, short_dtype
from gpubench.result import Run

LEAST_WIDTH = 30
LEAST_HEIGHT = 9
_FIXED_PREFIX = {"ns": (1.0, ""), "B/s": (1e9, "G")}
"""Units always written the same way, as in tables."""


def curve(run: Run, width: int, height: int, colour: bool, ascii_only: bool = False) -> str | None:
    """The run's longest sweep as a plot at most `width` columns wide and about `height` lines high, no final newline.

    None where no benchmark has enough rows along one integer axis, or the terminal is too small. With `ascii_only`
    every character is plain ASCII.
    """
    found = main(sweeps(run))
    if not found or width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return None
    sweep = found[0]
    kind, classes = classes_of(sweep)
    marks = marks_for(sorted(set(classes.values()), key=natural), ascii_only)
    roof = roof_over(run, sweep)

    entries = [(mark, shade, name or plain(sweep.group.benchmark)) for name, (mark, shade) in marks.items()]
    if roof is not None:
        entries.append(("╌", LINE_COLOUR, "ceiling measured here"))
    footer = legend(kind, entries, width, colour)
    if len(found) > 1:
        footer += wrapped(not_drawn(found), width)
    title = wrapped(SEPARATOR.join([sweep.group.path, device_name(run), *facts(sweep)]), width)
    body = _plot(sweep, classes, marks, roof, width, max(height - len(footer) - len(title), 6), colour)
    text = "\n".join([*title, *body, *footer])
    return to_ascii(text) if ascii_only else text


def classes_of(sweep: Sweep) -> tuple[str, dict[int, str]]:
    """What tells the classes of a sweep's rows apart, and the class of each row by the `id()` of its record."""
    keys = varying_labels(sweep.records) or tuple(sweep.records[0].labels)[:1]
    names = {
        id(record): SEPARATOR.join(plain(record.labels[key]) for key in keys if key in record.labels)
        for record in sweep.records
    }
    return SEPARATOR.join(map(plain, keys)), names


def roof_over(run: Run, sweep: Sweep) -> float | None:
    """The measured ceiling to draw over a sweep, in its unit; None where there is none, or far above every row."""
    ceiling = ceiling_of(run, sweep.records[0])
    return ceiling.value if ceiling is not None and max(sweep.rates) > 0.4 * ceiling.value else None


def facts(sweep: Sweep) -> list[str]:
    """What all rows of a sweep share, for a heading: dtype, parameters held, conditions."""
    dtype = dtype_of(sweep.records[0])
    held = {name: value for name, value in sweep.group.constant.items() if name != "dtype"}
    words = [f"{name}={value}" for name, value in held.items()]
    told = {"dtype", *sweep.group.conditions}
    words += [other for other in sweep.others if other.partition("=")[0] not in told]
    return [*([short_dtype(dtype)] if dtype else []), *words, conditions_words(sweep.records[0].conditions)]


def not_drawn(found: list[Sweep]) -> str:
    """One line that names the sweeps after the first."""
    names = [SEPARATOR.join([sweep.group.path, *sweep.others]) for sweep in found[1:]]
    return f"not drawn: {'; '.join(names)}"


def unit_of(sweep: Sweep, top: float) -> tuple[float, str]:
    """What to divide the rates of a sweep by for an axis up to `top`, and the unit they are then in."""
    factor, letter = _FIXED_PREFIX.get(sweep.unit) or prefix(top)
    return factor, letter + sweep.unit


def x_axis(values: list[int], most: int) -> tuple[Scale, dict[float, str]]:
    """The scale over the sorted values of an axis, and at most `most` ticks on it with their names.

    Ticks are powers of two or multiples of one. The scale is logarithmic where most of the values crowd at the low end,
    as in a sweep of powers of two.
    """
    low, high = values[0], values[-1]
    scale = Scale(low, high, log=low > 0 and values[len(values) // 2] * 8 < high)
    ticks = log_ticks(low, high, most, base=2) if scale.log else binary_ticks(low, high, most)
    return scale, {tick: f"{tick:.0f}" if tick < 1e6 else _binary(tick) for tick in ticks}


def _plot(
    sweep: Sweep,
    classes: dict[int, str],
    marks: dict[str, tuple[str, int]],
    roof: float | None,
    width: int,
    height: int,
    colour: bool,
) -> list[str]:
    rows = height - 3  # the unit above, the frame and the tick names below
    values, rates = sweep.values, sweep.rates
    top = max(*rates, roof or 0.0) or 1.0
    factor, unit = unit_of(sweep, top)
    ticks = linear_ticks(0, top / factor, max(rows // 3 + 1, 2))
    y = Scale(0, max(top / factor, ticks[-1]))
    y_names = {tick: f"{tick:g}" for tick in ticks}
    columns = width - margin_of(list(y_names.values()))
    x, x_names = x_axis(values, max(columns // 9, 2))
    canvas = Canvas(columns, rows, x, y)
    if roof is not None:
        row = canvas.row(roof / factor)
        for column in range(canvas.width):
            canvas.put(column, row, "╌", LINE_COLOUR)
    crowd = {name: sum(1 for other in classes.values() if other == name) for name in marks}
    for record, value, rate in sorted(
        zip(sweep.records, values, rates, strict=True), key=lambda point: -crowd[classes[id(point[0])]]
    ):
        mark, shade = marks[classes[id(record)]]
        canvas.mark(value, rate / factor, mark, shade)
    return [unit, *canvas.lines(y_names, x_names, plain(sweep.axis)[:20], colour)]


def _binary(value: float) -> str:
    """A power of two with a short name: 2^20. Any other value with its SI prefix."""
    exponent = int(value).bit_length() - 1
    return f"2^{exponent}" if value == 2**exponent else si(value)
