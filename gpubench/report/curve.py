"""The curve of a sweep, drawn in a terminal: x the axis, y the rate, one mark per class."""

from __future__ import annotations

from gpubench.report.canvas import (
    LINE_COLOUR,
    Canvas,
    Scale,
    binary_ticks,
    clip,
    legend,
    linear_ticks,
    log_ticks,
    margin_of,
    marks_for,
    natural,
    prefix,
    si,
    to_ascii,
)
from gpubench.report.rows import ceiling_of, dtype_of, varying_labels
from gpubench.report.sweep import Sweep, sweeps
from gpubench.report.words import SEPARATOR, conditions_words, device_name, plain, short_dtype
from gpubench.result import Record, Run

LEAST_WIDTH = 30
LEAST_HEIGHT = 9
_FIXED_PREFIX = {"ns": (1.0, ""), "B/s": (1e9, "G")}
"""Units always written the same way, as in tables."""


def curve(run: Run, width: int, height: int, colour: bool, ascii_only: bool = False) -> str | None:
    """The run's longest sweep as a plot at most `width` columns wide and about `height` lines high, no final newline.

    None where no benchmark has enough rows along one integer axis, or the terminal is too small. With `ascii_only`
    every character is plain ASCII.
    """
    found = sweeps(run)
    if not found or width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return None
    sweep = found[0]
    keys = varying_labels(sweep.records) or tuple(sweep.records[0].labels)[:1]
    classes = {id(record): _class(record, keys) for record in sweep.records}
    marks = marks_for(sorted(set(classes.values()), key=natural), ascii_only)
    ceiling = ceiling_of(run, sweep.records[0])
    top = max(sweep.rates)
    roof = ceiling.value if ceiling is not None and top > 0.4 * ceiling.value else None

    entries = [(mark, shade, name or plain(sweep.group.benchmark)) for name, (mark, shade) in marks.items()]
    if roof is not None:
        entries.append(("╌", LINE_COLOUR, "ceiling measured here"))
    footer = legend(SEPARATOR.join(map(plain, keys)), entries, width, colour)
    if len(found) > 1:
        footer.append(clip(_others(found), width))
    body = _plot(sweep, classes, marks, roof, width, max(height - len(footer) - 1, 6), colour)
    text = "\n".join([clip(_title(run, sweep), width), *body, *footer])
    return to_ascii(text) if ascii_only else text


def _class(record: Record, keys: tuple[str, ...]) -> str:
    return SEPARATOR.join(plain(record.labels[key]) for key in keys if key in record.labels)


def _title(run: Run, sweep: Sweep) -> str:
    dtype = dtype_of(sweep.records[0])
    held = {name: value for name, value in sweep.group.constant.items() if name != "dtype"}
    words = [f"{name}={value}" for name, value in held.items()]
    words += [other for other in sweep.others if not other.startswith("dtype=")]
    parts = [sweep.group.path, device_name(run), *([short_dtype(dtype)] if dtype else []), *words]
    return SEPARATOR.join([*parts, conditions_words(sweep.records[0].conditions)])


def _others(found: list[Sweep]) -> str:
    names = [SEPARATOR.join([sweep.group.path, *sweep.others]) for sweep in found[1:]]
    return f"not drawn: {'; '.join(names)}"


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
    factor, letter = _FIXED_PREFIX.get(sweep.unit) or prefix(top)
    ticks = linear_ticks(0, top / factor, max(rows // 3 + 1, 2))
    y = Scale(0, max(top / factor, ticks[-1]))
    y_names = {tick: f"{tick:g}" for tick in ticks}
    x = _x_scale(values)
    canvas = Canvas(width - margin_of(list(y_names.values())), rows, x, y)
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
    most = max(canvas.width // 9, 2)
    x_ticks = log_ticks(x.low, x.high, most, base=2) if x.log else binary_ticks(int(x.low), int(x.high), most)
    x_names = {tick: f"{tick:.0f}" if tick < 1e6 else _binary(tick) for tick in x_ticks}
    return [f"{letter}{sweep.unit}", *canvas.lines(y_names, x_names, plain(sweep.axis)[:20], colour)]


def _x_scale(values: list[int]) -> Scale:
    """Logarithmic where most of the values crowd at the low end, as in a sweep of powers of two."""
    low, high = values[0], values[-1]
    return Scale(low, high, log=low > 0 and values[len(values) // 2] * 8 < high)


def _binary(value: float) -> str:
    """A power of two with a short name: 2^20. Any other value with its SI prefix."""
    exponent = int(value).bit_length() - 1
    return f"2^{exponent}" if value == 2**exponent else si(value)
