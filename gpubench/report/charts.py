"""Pictures of a run, drawn by Vega-Lite from one description: the curve of a sweep, the roofline. SVG and PNG, offline.

A picture has a white ground of its own, so that it reads the same on a light and on a dark page. A class is told by
the shape of its mark as well as by its colour, and the colours are told apart by colour-blind readers.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import atan2, degrees, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpubench.errors import UsageError
from gpubench.jsonfile import write_atomic
from gpubench.report import curve as plot
from gpubench.report import roofline as report
from gpubench.report.canvas import Scale, linear_ticks, natural, prefix, si
from gpubench.report.closing import WORTH_SAYING
from gpubench.report.placing import SIZE, Pixel, beside, covered, rows, text_width, together, wrapped
from gpubench.report.roofline_plot import classes, decades, fine_ticks
from gpubench.report.rows import best_ceiling, groups
from gpubench.report.sweep import Sweep, drops, sweeps
from gpubench.report.words import SEPARATOR, counted, device_name, plain, short_dtype
from gpubench.result import Run
from gpubench.units import format_rate, three_digits

if TYPE_CHECKING:
    import altair

WIDTH, HEIGHT = 760, 380
"""Of the frame, in CSS pixels; with its margins a picture is about 830 wide, as a README shows it."""
PNG_SCALE = 2
LEAST = 2
"""Rows a curve needs."""
DROPS = 2
"""Drops that are named in a picture at most."""

FONT = "Helvetica, Arial, Liberation Sans, sans-serif"
INK, SOFT, FAINT, ROOF, GROUND = "#1f2328", "#59636e", "#eceef1", "#3d444d", "#ffffff"
SHAPES = ("circle", "square", "triangle-up", "diamond")
"""Filled for the first classes, hollow for the next, as in a terminal."""
ORDERED = ("#0d0887", "#4c02a1", "#7e03a8", "#a92395", "#cc4778", "#e16462", "#ee7b51", "#f39a3f")
"""Plasma without its yellow end: classes that are steps of a quantity."""
NAMED = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#7a7a7a")
"""The palette of Okabe and Ito without its yellow: classes without an order."""

Spot = tuple[float, float]
"""A place in a picture: x and y in the units of its axes."""


def check_installed() -> None:
    """UsageError, with the command that installs them, where the libraries that draw are missing."""
    missing = [name for name in ("altair", "vl_convert") if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"pictures need {' and '.join(missing)}, not installed here", "pip install altair vl-convert-python"
        )


def curve(run: Run) -> altair.LayerChart:
    """The run's longest sweep: its rows by class, the measured ceiling, the largest drops.

    UsageError where no benchmark has two rows along one integer axis.
    """
    found = sweeps(run, LEAST)
    if not found:
        problem = "no curve in this run: it takes two rows with a number along one integer axis"
        raise UsageError(problem, "gpubench roofline RUN --export FILE")
    check_installed()
    sweep = found[0]
    roof = plot.roof_over(run, sweep)
    top = max(*sweep.rates, roof or 0.0) or 1.0
    factor, unit = plot.unit_of(sweep, top)
    x, x_names = plot.x_axis(sweep.values, 10)
    if not x.log:
        room = (x.high - x.low) / 60
        x = Scale(max(x.low - room, 0), x.high + room)
    y = Scale(0, 1.08 * top / factor)
    y_names = {tick: f"{tick:g}" for tick in linear_ticks(0, y.high, 9)}
    frame = Frame(x, y, x_names, y_names, sweep.axis, unit)

    kind, class_of = plot.classes_of(sweep)
    spots = [(float(value), rate / factor) for value, rate in zip(sweep.values, sweep.rates, strict=True)]
    layers = []
    if roof is not None:
        layers += _roof(frame, roof / factor, spots)
    fall_lines, fall_words = _drops(frame, sweep, spots)
    layers += fall_lines
    names = [class_of[id(record)] or plain(sweep.group.benchmark) for record in sweep.records]
    layers.append(frame.points(spots, names, kind))
    layers += fall_words
    extent = f"{counted(len(spots), 'row')}, {sweep.axis} from {sweep.values[0]} to {sweep.values[-1]}"
    lines = [SEPARATOR.join([*plot.facts(sweep), extent]), *([plot.not_drawn(found)] if len(found) > 1 else [])]
    return frame.chart(layers, SEPARATOR.join([sweep.group.path, device_name(run)]), lines)


def roofline(run: Run) -> altair.LayerChart:
    """The run's measured roofs on logarithmic axes, their ridges, and its rows under them by class.

    UsageError where there is neither a row nor a pair of roofs to draw.
    """
    found = report.view(run)
    if not (found.points or (found.compute and found.memory)):
        raise UsageError("no roofline in this run: no row has flops and bytes, and it holds no ceilings")
    check_installed()
    peaks = [ridge.ceiling.value for ridge in found.compute]
    at_ridges = [ridge.intensity for ridge in found.compute if ridge.intensity]
    x = decades([*(point.intensity for point in found.points), *at_ridges], below=2.5, above=2)
    rates = decades([*(point.rate for point in found.points), *peaks], below=1.6, above=1.6)
    factor, letter = prefix(rates.high / 10)
    y = Scale(rates.low / factor, rates.high / factor, log=True)
    x_names = {tick: f"{tick:g}" if tick < 1e4 else si(tick) for tick in fine_ticks(x, 12)}
    y_names = {tick: f"{tick:g}" for tick in fine_ticks(y, 12)}
    frame = Frame(x, y, x_names, y_names, "arithmetic intensity, FLOP/B", f"{letter}FLOP/s")

    kind, class_of = classes(found)
    keys = {group.classes for group in groups(run) if group.classes}
    if kind == "class" and len(keys) == 1:
        kind = SEPARATOR.join(map(plain, keys.pop()))
    spots = [(point.intensity, point.rate / factor) for point in found.points]
    layers = [*_slopes(frame, run, factor), *_roofs(frame, found, factor)]
    if spots:
        layers.append(frame.points(spots, [class_of(point) or "no class" for point in found.points], kind))
    layers += _ridges(frame, found, factor)
    suites = dict.fromkeys(plain(record.suite) for record in run.records)
    roofs = ["roofs measured on this device"] if run.ceilings else []
    lines = [SEPARATOR.join([*suites, *found.facts, counted(len(spots), "row"), *roofs]), *found.notes]
    return frame.chart(layers, SEPARATOR.join(["roofline", found.device]), lines)


def save(chart: altair.LayerChart, path: Path) -> None:
    """Write a chart as SVG or, where the name ends in .png, as PNG with two pixels to a CSS pixel."""
    if path.suffix.lower() == ".png":
        image = io.BytesIO()
        chart.save(image, format="png", scale_factor=PNG_SCALE)
        write_atomic(path, image.getvalue())
    else:
        text = io.StringIO()
        chart.save(text, format="svg")
        write_atomic(path, text.getvalue().encode())


@dataclass(frozen=True)
class Frame:
    """The axes of a picture, and the layers that are drawn on them.

    No text of a run file gets by `plain`: a control character in it would abort the whole process when it is drawn.
    """

    x: Scale
    y: Scale
    x_names: dict[float, str]
    y_names: dict[float, str]
    x_title: str
    y_title: str

    def line(self, spots: Sequence[Spot], colour: str, *, width: float = 1.5, dashed: bool = False) -> altair.Chart:
        """A line through the spots."""
        base = self._base([_row(spot) for spot in spots])
        style: dict[str, Any] = {"strokeDash": [4, 3]} if dashed else {}
        drawn: altair.Chart = base.mark_line(color=colour, strokeWidth=width, aria=False, **style)
        return drawn

    def points(self, spots: Sequence[Spot], names: Sequence[str], kind: str) -> altair.Chart:
        """A mark at each spot, its shape and colour by its class, and a legend unless `kind`, its name, is empty; the
        rarer classes lie on top."""
        import altair

        crowd = Counter(names)
        order = sorted(zip(spots, names, strict=True), key=lambda point: -crowd[point[1]])
        domain = sorted(crowd, key=natural)
        steps = all(natural(name)[0] == 0 for name in domain)
        colours = _spread(ORDERED if steps else NAMED, len(domain), steps)
        shapes = [SHAPES[index % len(SHAPES)] for index in range(len(domain))]
        fills = [GROUND if index // len(SHAPES) % 2 else colour for index, colour in enumerate(colours)]
        legend = (
            altair.Legend(orient="top", titleOrient="left", symbolSize=64, columns=self._columns(kind, domain))
            if kind
            else None
        )

        def by_class(channel: Any, values: list[str]) -> Any:
            return channel("class:N", scale=altair.Scale(domain=domain, range=values), legend=legend, title=kind)

        base = self._base([_row(spot) | {"class": name} for spot, name in order])
        drawn: altair.Chart = base.mark_point(size=34, opacity=1, strokeWidth=1.2).encode(
            shape=by_class(altair.Shape, shapes),
            stroke=by_class(altair.Stroke, colours),
            fill=by_class(altair.Fill, fills),
        )
        return drawn

    def words(self, spot: Spot, text: str, *, align: str = "left", **mark: float) -> list[altair.Chart]:
        """A text beside a spot, with a rim in the colour of the ground so that it reads over marks."""
        base = self._base([_row(spot) | {"text": plain(text)}]).encode(text="text:N")
        style: dict[str, Any] = {"align": align, "baseline": "middle", "fontSize": SIZE} | mark
        rim = base.mark_text(fill=GROUND, stroke=GROUND, strokeWidth=4, strokeJoin="round", aria=False, **style)
        return [rim, base.mark_text(fill=INK, **style)]

    def pixel(self, spot: Spot) -> Pixel:
        """Where a spot lies in the frame, in pixels from its upper left corner."""
        return WIDTH * self.x.at(spot[0]), HEIGHT * (1 - self.y.at(spot[1]))

    def chart(self, layers: Sequence[altair.Chart], title: str, lines: Sequence[str]) -> altair.LayerChart:
        """The picture of these layers, the first one at the bottom, under a title and further lines."""
        import altair

        text: dict[str, Any] = {"labelFontSize": SIZE, "titleFontSize": SIZE, "titleFontWeight": "normal"}
        ink: dict[str, Any] = {"labelColor": INK, "titleColor": INK}
        heading = altair.TitleParams(
            text=wrapped(title, WIDTH + 40, 16, 1)[0],
            subtitle=[part for line in lines for part in wrapped(line, WIDTH + 40, 13, 2)],
            anchor="start",
            frame="bounds",
            fontSize=16,
            fontWeight="bold",
            color=INK,
            subtitleColor=SOFT,
            subtitleFontSize=13,
            subtitlePadding=5,
            offset=14,
        )
        whole: altair.LayerChart = (
            altair.layer(*layers)
            .properties(width=WIDTH, height=HEIGHT, title=heading, background=GROUND, padding=12)
            .configure(font=FONT)
            .configure_view(stroke=None)
            .configure_axis(**text, **ink, gridColor=FAINT, tickColor=SOFT, domainColor=SOFT, labelPadding=5)
            .configure_axisY(ticks=False, domain=False)
            .configure_legend(**text, **ink, offset=26, columnPadding=14, titlePadding=10)
        )
        return whole

    def _base(self, rows: list[dict[str, Any]]) -> altair.Chart:
        import altair

        y_axis = _axis(self.y_names, titleAngle=0, titleAlign="left", titleBaseline="bottom", titleX=-30, titleY=-7)
        return altair.Chart(altair.InlineData(values=rows)).encode(
            x=altair.X("x:Q", scale=_scale(self.x), title=plain(self.x_title), axis=_axis(self.x_names)),
            y=altair.Y("y:Q", scale=_scale(self.y), title=plain(self.y_title), axis=y_axis),
        )

    def _columns(self, kind: str, domain: Sequence[str]) -> int:
        """How many entries of a legend fit side by side."""
        return max(int((WIDTH - text_width(kind)) / (max(map(text_width, domain)) + 40)), 1)


def _row(spot: Spot) -> dict[str, Any]:
    """Six digits: more than a picture shows, and the same text on every machine."""
    return {"x": float(f"{spot[0]:.6g}"), "y": float(f"{spot[1]:.6g}")}


def _scale(scale: Scale) -> altair.Scale:
    import altair

    return altair.Scale(type="log" if scale.log else "linear", domain=[scale.low, scale.high], nice=False, zero=False)


def _axis(names: dict[float, str], **more: Any) -> altair.Axis:
    import altair

    values = list(names)
    name = f"{json.dumps(list(names.values()))}[indexof({json.dumps(values)}, datum.value)]"
    return altair.Axis(values=values, labelExpr=name, **more)


def _spread(choices: Sequence[str], count: int, evenly: bool) -> list[str]:
    """`count` of the choices: from the first to the last where `evenly` is set, else in turn."""
    last = len(choices) - 1
    return [choices[index * last // max(count - 1, 1) if evenly else index % (last + 1)] for index in range(count)]


def _roof(frame: Frame, at: float, spots: Sequence[Spot]) -> list[altair.Chart]:
    """The ceiling of a curve, named at the end where fewer marks are in the way."""
    words = f"ceiling measured here: {three_digits(at)} {frame.y_title}"
    marks = [frame.pixel(spot) for spot in spots]
    width, y = text_width(words), frame.pixel((frame.x.low, at))[1] - 11
    right = covered(marks, WIDTH - width, y, width) < covered(marks, 0, y, width)
    spot, align, dx = ((frame.x.high, at), "right", -6) if right else ((frame.x.low, at), "left", 6)
    line = frame.line([(frame.x.low, at), (frame.x.high, at)], ROOF)
    return [line, *frame.words(spot, words, align=align, dx=dx, dy=-11)]


def _drops(frame: Frame, sweep: Sweep, spots: Sequence[Spot]) -> tuple[list[altair.Chart], list[altair.Chart]]:
    """Lines along the largest falls, and their words beside them."""
    rate = dict(spots)
    chosen: list[tuple[int, int, float]] = []
    for drop in drops(sweep):
        apart = all(abs(frame.x.at(drop[0]) - frame.x.at(other[0])) > 0.3 for other in chosen)
        if drop[2] >= WORTH_SAYING and apart and len(chosen) < DROPS:
            chosen.append(drop)
    marks = [frame.pixel(spot) for spot in spots]
    lines, words = [], []
    for before, after, ratio in chosen:
        start, end = (float(before), rate[before]), (float(after), rate[after])
        text = f"{before} → {after}: {ratio:.1f}× slower"
        width = text_width(text)
        left, y = beside(frame.pixel(start), frame.pixel(end), width, marks, WIDTH)
        marks += [(left + step * SIZE / 2, y) for step in range(int(2 * width / SIZE))]
        lines.append(frame.line([start, end], INK, width=1))
        spot = (frame.x.value(left / WIDTH), frame.y.value(1 - y / HEIGHT))
        words += frame.words(spot, text)
    return lines, words


def _slopes(frame: Frame, run: Run, factor: float) -> list[altair.Chart]:
    """The best bandwidth of each memory level, up to the highest peak, its name along the line."""
    levels = dict.fromkeys(ceiling.level for ceiling in run.ceilings if ceiling.kind == "bandwidth" and ceiling.level)
    dtypes = dict.fromkeys(ceiling.dtype for ceiling in run.ceilings if ceiling.kind == "compute" and ceiling.dtype)
    peaks = [peak.value / factor for dtype in dtypes if (peak := best_ceiling(run, "compute", dtype=dtype))]
    top = max(peaks, default=frame.y.high)
    layers = []
    for level in levels:
        ceiling = best_ceiling(run, "bandwidth", level=level)
        if ceiling is None:
            continue
        slope = ceiling.value / factor
        left, right = max(frame.x.low, frame.y.low / slope), min(frame.x.high, top / slope)
        if left >= right:
            continue
        layers.append(frame.line([(left, left * slope), (right, right * slope)], ROOF))
        middle = sqrt(left * right)
        (x0, y0), (x1, y1) = frame.pixel((left, left * slope)), frame.pixel((right, right * slope))
        angle = round(degrees(atan2(y1 - y0, x1 - x0)) % 360, 1)
        words = f"{level} {format_rate(ceiling.value, 'B/s')}"
        layers += frame.words((middle, middle * slope), words, align="center", angle=angle, dy=-9)
    return layers


def _roofs(frame: Frame, found: report.Roofline, factor: float) -> list[altair.Chart]:
    """The peak of each dtype from its ridge on, named at the right; peaks closer than a line of text share one."""
    ends = [(frame.x.high, ridge.ceiling.value / factor) for ridge in found.compute]
    names = [
        f"{short_dtype(str(ridge.ceiling.dtype))} {format_rate(ridge.ceiling.value, 'FLOP/s')}"
        for ridge in found.compute
    ]
    layers = [
        frame.line([(ridge.intensity or frame.x.low, end[1]), end], ROOF)
        for ridge, end in zip(found.compute, ends, strict=True)
    ]
    for group in together([frame.pixel(end)[1] for end in ends], 1.5 * SIZE):
        words = SEPARATOR.join(names[index] for index in group)
        layers += frame.words(ends[group[0]], words, align="right", dx=-4, dy=-9)
    return layers


def _ridges(frame: Frame, found: report.Roofline, factor: float) -> list[altair.Chart]:
    """A line down from each ridge, and its intensity at the foot of it."""
    ridges = sorted((ridge.intensity, ridge.ceiling.value / factor) for ridge in found.compute if ridge.intensity)
    feet = [(at, frame.y.low) for at, _ in ridges]
    layers = [frame.line([ridge, foot], SOFT, width=1, dashed=True) for ridge, foot in zip(ridges, feet, strict=True)]
    groups = together([frame.pixel(foot)[0] for foot in feet], SIZE / 2)
    values = [dict.fromkeys(three_digits(ridges[index][0]) for index in group) for group in groups]
    words = [f"ridge {', '.join(each)} FLOP/B" for each in values]
    first = [feet[group[0]] for group in groups]
    places = rows([frame.pixel(foot)[0] for foot in first], [text_width(text) for text in words])
    for foot, text, row in zip(first, words, places, strict=True):
        layers += frame.words(foot, text, dx=6, dy=-12 - 1.4 * SIZE * row)
    return layers
