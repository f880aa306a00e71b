"""The curve of a run's longest sweep: its rows by class, the measured ceiling, the largest falls; of matrix products
also the sizes at which a wave is added, and of each row why it is as fast as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpubench.errors import UsageError
from gpubench.report import curve as plot
from gpubench.report.canvas import Scale, linear_ticks
from gpubench.report.charts.frame import HEIGHT, WIDTH, Frame, Spot
from gpubench.report.charts.marks import Layer
from gpubench.report.charts.picture import Picture
from gpubench.report.closing import WORTH_SAYING
from gpubench.report.figures import products
from gpubench.report.figures.shapes import Facts, Heading, say
from gpubench.report.placing import SIZE, beside, covered, text_width
from gpubench.report.sweep import LEAST as LONG
from gpubench.report.sweep import Sweep, drops, is_of_products, main, sweeps
from gpubench.report.words import SEPARATOR, counted, device_name, plain
from gpubench.result import Run
from gpubench.units import three_digits

ID = "curve"
LEAST = 2
"""Rows a curve needs."""
DROPS = 2
"""Falls that are named in a picture at most."""
EDGES = 12
"""Edges of waves that are drawn at most: more would be a hatching."""
OTHERS = 4
"""Sweeps up to which those that are not drawn are named."""
QUESTION = "How does the rate change from one size to the next?"
OF_PRODUCTS = "Which sizes of a matrix product are fast, and which fall off a cliff?"


def worth(run: Run) -> bool:
    """Whether the curve of a run is more than its figures show: that of matrix products by alignment."""
    found = main(sweeps(run, LEAST))
    return bool(found) and is_of_products(found[0])


def heading(run: Run) -> Heading | None:
    """What the curve of a run is called; None where it has none."""
    found = main(sweeps(run, LEAST))
    if not found:
        return None
    sweep = found[0]
    extent = f"{counted(len(sweep.records), 'row')}, {plain(sweep.axis)} from {sweep.values[0]} to {sweep.values[-1]}"
    others = [plot.not_drawn(found)] if 1 < len(found) <= OTHERS else []
    facts = [SEPARATOR.join([*plot.facts(sweep), extent]), *others]
    question = OF_PRODUCTS if is_of_products(sweep) else QUESTION
    return Heading(ID, plain(sweep.group.suite), plain(sweep.group.path), question, tuple(facts))


def picture(run: Run) -> Picture:
    """The picture of it. UsageError where no benchmark has two rows along one integer axis."""
    found, named = main(sweeps(run, LEAST)), heading(run)
    if not found or named is None:
        problem = "no curve in this run: it takes two rows with a number along one integer axis"
        raise UsageError(problem, "gpubench roofline RUN --export FILE")
    sweep = found[0]
    roof = plot.roof_over(run, sweep)
    top = max(*sweep.rates, roof or 0.0) or 1.0
    factor, unit = plot.unit_of(sweep, top)
    frame = _frame(sweep, top / factor, unit)
    kind, class_of = plot.classes_of(sweep)
    spots = [(float(value), rate / factor) for value, rate in zip(sweep.values, sweep.rates, strict=True)]
    edges, why = products.edges(run, sweep), products.why(run, sweep)
    layers = _edges(frame, edges) if len(edges) <= EDGES and len(spots) >= LONG else []
    if roof is not None:
        layers += _roof(frame, roof / factor, spots)
    fall_lines, fall_words = _drops(frame, sweep, spots)
    layers += fall_lines
    names = [class_of[id(record)] or plain(sweep.group.benchmark) for record in sweep.records]
    layers.append(frame.points(spots, names, kind, _told(sweep, why)))
    layers += fall_words
    return Picture(named, _alt(sweep, roof), device_name(run), layers)


def _frame(sweep: Sweep, top: float, unit: str) -> Frame:
    x, x_names = plot.x_axis(sweep.values, 10)
    if not x.log:
        room = (x.high - x.low) / 60
        x = Scale(max(x.low - room, 0), x.high + room)
    y = Scale(0, 1.08 * top)
    return Frame(x, y, x_names, {tick: f"{tick:g}" for tick in linear_ticks(0, y.high, 9)}, sweep.axis, unit)


def _told(sweep: Sweep, why: Mapping[str, str]) -> list[Facts]:
    """What is to be said of each row."""
    told = []
    for record, value, rate in zip(sweep.records, sweep.values, sweep.rates, strict=True):
        labels = [(name, label) for name, label in record.labels.items()]
        reason = [("why", why[record.id])] if record.id in why else []
        told.append(((sweep.axis, str(value)), ("rate", say(rate, sweep.unit)), *labels, *reason))
    return told


def _alt(sweep: Sweep, roof: float | None) -> str:
    best = max(range(len(sweep.rates)), key=lambda index: sweep.rates[index])
    words = [
        f"{counted(len(sweep.rates), 'mark')} of {plain(sweep.group.path)} over {plain(sweep.axis)} from "
        f"{sweep.values[0]} to {sweep.values[-1]}.",
        f"The highest is {say(sweep.rates[best], sweep.unit)} at {sweep.values[best]}.",
        *([f"The ceiling measured here is {say(roof, sweep.unit)}."] if roof is not None else []),
        *(
            f"From {before} to {after} the rate falls by {ratio:.1f} times."
            for before, after, ratio in drops(sweep)[:1]
        ),
    ]
    return " ".join(words)


def _edges(frame: Frame, edges: Sequence[tuple[float, str]]) -> list[Layer]:
    """Upright lines where a wave is added, with the numbers of waves at the foot of those that have room."""
    layers = []
    free = -1.0
    for at, words in edges:
        layers.append(frame.line([(at, frame.y.low), (at, frame.y.high)], "edge"))
        left = frame.pixel((at, 0))[0]
        if left > free and left + text_width(words) < WIDTH:
            layers += frame.words((at, frame.y.low), words, always=False, dx=3, dy=-8, fontSize=10)
            free = left + text_width(words)
    return layers


def _roof(frame: Frame, at: float, spots: Sequence[Spot]) -> list[Layer]:
    """The ceiling of a curve, named at the end where fewer marks are in the way."""
    words = f"ceiling measured here: {three_digits(at)} {frame.y_title}"
    marks = [frame.pixel(spot) for spot in spots]
    width, y = text_width(words), frame.pixel((frame.x.low, at))[1] - 11
    right = covered(marks, WIDTH - width, y, width) < covered(marks, 0, y, width)
    spot, align, dx = ((frame.x.high, at), "right", -6) if right else ((frame.x.low, at), "left", 6)
    line = frame.line([(frame.x.low, at), (frame.x.high, at)], "roof")
    return [line, *frame.words(spot, words, align=align, dx=dx, dy=-11)]


def _drops(frame: Frame, sweep: Sweep, spots: Sequence[Spot]) -> tuple[list[Layer], list[Layer]]:
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
        lines.append(frame.line([start, end], "fall"))
        spot = (frame.x.value(left / WIDTH), frame.y.value(1 - y / HEIGHT))
        words += frame.words(spot, text, always=False)
    return lines, words
