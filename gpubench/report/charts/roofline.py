"""The roofline: the roofs measured of each dtype and memory level on logarithmic axes, their ridges, the rows under
them, by suite where there are several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpubench.errors import UsageError
from gpubench.report import roofline as report
from gpubench.report.canvas import Scale, natural, prefix, si
from gpubench.report.charts.frame import HEIGHT, WIDTH, Frame
from gpubench.report.charts.marks import NARROW, Layer
from gpubench.report.charts.picture import Picture
from gpubench.report.figures.shapes import MOST, Facts, Heading
from gpubench.report.placing import SIZE, stairs, text_width, together
from gpubench.report.roofline_plot import classes, decades, fine_ticks
from gpubench.report.rows import best_ceiling, groups
from gpubench.report.words import SEPARATOR, counted, plain, short_dtype
from gpubench.result import Ceiling, Run
from gpubench.units import format_rate, three_digits

ID = "roofline"
QUESTION = "What limits each row, the memory or the arithmetic, and how near to its limit does it come?"
OTHERS = "others"
"""The mark of the suites that have none of their own."""

Drawn = tuple[list[Layer], list[Layer]]
"""Lines that marks may lie over, and words that may not be covered."""

NAMED_SUITES = MOST - 1
"""Suites with a mark of their own: the others share one."""
SUITES_SAID = 6
"""Suites that are named above the picture."""
STAIR = 1.4 * SIZE
"""Pixels from the name of a ridge to the one above it."""


def heading(run: Run) -> Heading | None:
    """What the roofline of a run is called; None where it has none, or no roof: without one nothing limits a row."""
    found = report.view(run)
    return _heading(run, found) if _shows(found) and (found.memory or found.compute) else None


def picture(run: Run) -> Picture:
    """The picture of it. UsageError where there is neither a row nor a pair of roofs to draw."""
    found = report.view(run)
    if not _shows(found):
        raise UsageError("no roofline in this run: no row has flops and bytes, and it holds no ceilings")
    frame, factor = _frame(found)
    kind, names = _classes(run, found)
    spots = [(point.intensity, point.rate / factor) for point in found.points]
    parts = [_slopes(frame, run, factor), _roofs(frame, found, factor), _ridges(frame, found, factor)]
    layers = [line for lines, _ in parts for line in lines]
    if spots:
        domain = [*sorted({*names} - {OTHERS}, key=natural), *([OTHERS] if OTHERS in names else [])]
        layers.append(frame.points(spots, names, kind, [_told(point) for point in found.points], domain))
    layers += [text for _, words in parts for text in words]
    return Picture(_heading(run, found), _alt(found), found.device, layers)


def _shows(found: report.Roofline) -> bool:
    return bool(found.points or (found.compute and found.memory))


def _heading(run: Run, found: report.Roofline) -> Heading:
    suites = list(dict.fromkeys(plain(record.suite) for record in run.records))
    said = suites if len(suites) <= SUITES_SAID else [counted(len(suites), "suite")]
    roofs = ["roofs measured on this device"] if run.ceilings else []
    words = SEPARATOR.join([*said, *found.facts, counted(len(found.points), "row"), *roofs])
    return Heading(ID, None, "roofline", QUESTION, (words, *found.notes))


def _frame(found: report.Roofline) -> tuple[Frame, float]:
    """The axes, and what a rate is divided by on the upright one."""
    peaks = [ridge.ceiling.value for ridge in found.compute]
    at_ridges = [ridge.intensity for ridge in found.compute if ridge.intensity]
    x = decades([*(point.intensity for point in found.points), *at_ridges], below=2.5, above=2)
    rates = decades([*(point.rate for point in found.points), *peaks], below=1.6, above=1.6)
    factor, letter = prefix(rates.high / 10)
    y = Scale(rates.low / factor, rates.high / factor, log=True)
    x_names = {tick: f"{tick:g}" if tick < 1e4 else si(tick) for tick in fine_ticks(x, 12)}
    y_names = {tick: f"{tick:g}" for tick in fine_ticks(y, 12)}
    return Frame(x, y, x_names, y_names, "arithmetic intensity, FLOP/B", f"{letter}FLOP/s"), factor


def _classes(run: Run, found: report.Roofline) -> tuple[str, list[str]]:
    """What marks stand for, and the class of each point: its suite where there are several, else its dtype or label."""
    suite_of = {record.id: plain(record.suite) for record in run.records}
    suites = Counter(suite_of[point.id] for point in found.points)
    if len(suites) > 1:
        named = {name for name, _ in suites.most_common(MOST if len(suites) <= MOST else NAMED_SUITES)}
        names = [suite_of[point.id] for point in found.points]
        return "suite", [name if name in named else OTHERS for name in names]
    kind, class_of = classes(found)
    keys = {group.classes for group in groups(run) if group.classes}
    if kind == "class" and len(keys) == 1:
        kind = SEPARATOR.join(map(plain, keys.pop()))
    return kind, [class_of(point) or "no class" for point in found.points]


def _told(point: report.Point) -> Facts:
    """What is to be said of a row."""
    facts = [
        ("row", point.id),
        ("rate", format_rate(point.rate, "FLOP/s")),
        ("intensity", f"{three_digits(point.intensity)} FLOP/B"),
    ]
    if point.percent is not None:
        facts.append(("of its roof", f"{point.percent:.0f} %"))
    if point.bound is not None:
        facts.append(("limited by", point.bound))
    return tuple(facts)


def _alt(found: report.Roofline) -> str:
    roofs = [
        f"{short_dtype(plain(ridge.ceiling.dtype))} {format_rate(ridge.ceiling.value, 'FLOP/s')}"
        + ("" if ridge.intensity is None else f" from {three_digits(ridge.intensity)} FLOP/B on")
        for ridge in found.compute
    ]
    near = [point.percent for point in found.points if point.percent is not None and point.trusted]
    words = [
        f"{counted(len(found.points), 'row')} by arithmetic intensity and rate.",
        *([f"Roofs: {', '.join(roofs)}."] if roofs else []),
        *([f"DRAM {format_rate(found.memory.value, 'B/s')}."] if found.memory else []),
        *([f"The rows reach {min(near):.0f} to {max(near):.0f} % of their roof."] if near else []),
    ]
    return " ".join(words)


def _slopes(frame: Frame, run: Run, factor: float) -> Drawn:
    """The best bandwidth of each memory level, up to the highest peak, its name along the line; not in a narrow frame,
    where the names of several would lie over each other."""
    levels = dict.fromkeys(ceiling.level for ceiling in run.ceilings if ceiling.kind == "bandwidth" and ceiling.level)
    dtypes = dict.fromkeys(ceiling.dtype for ceiling in run.ceilings if ceiling.kind == "compute" and ceiling.dtype)
    peaks = [peak.value / factor for dtype in dtypes if (peak := best_ceiling(run, "compute", dtype=dtype))]
    top = max(peaks, default=frame.y.high)
    lines, named = [], []
    for index, level in enumerate(levels):
        ceiling = best_ceiling(run, "bandwidth", level=level)
        if ceiling is None:
            continue
        slope = ceiling.value / factor
        left, right = max(frame.x.low, frame.y.low / slope), min(frame.x.high, top / slope)
        if left >= right:
            continue
        start, end = (left, left * slope), (right, right * slope)
        lines.append(frame.line([start, end], "roof"))
        words = f"{level} {format_rate(ceiling.value, 'B/s')}"
        named += frame.words(
            frame.between(start, end, 0.6 - 0.15 * (index % 4)),
            words,
            always=len(levels) == 1,
            align="center",
            angle=frame.along(start, end),
            dy=-9,
        )
    return lines, named


def _roofs(frame: Frame, found: report.Roofline, factor: float) -> Drawn:
    """The peak of each dtype from its ridge on, named at the right; peaks closer than a line of text share one."""
    ends = [(frame.x.high, ridge.ceiling.value / factor) for ridge in found.compute]
    lines = [
        frame.line([(ridge.intensity or frame.x.low, end[1]), end], "roof")
        for ridge, end in zip(found.compute, ends, strict=True)
    ]
    named = []
    for group in together([frame.pixel(end)[1] for end in ends], 1.5 * SIZE):
        words = _peaks([found.compute[index].ceiling for index in group])
        named += frame.words(ends[group[0]], words, always=False, align="right", dx=-4, dy=-9)
    return lines, named


def _peaks(peaks: Sequence[Ceiling]) -> str:
    """Dtypes with their rates, a unit that several share once: `int8 952 · bf16 824 TFLOP/s`."""
    told = [(short_dtype(plain(peak.dtype)), *format_rate(peak.value, "FLOP/s").rsplit(" ", 1)) for peak in peaks]
    units = [unit for *_, unit in told]
    ends = [f" {unit}" if unit != after else "" for unit, after in zip(units, [*units[1:], None], strict=True)]
    return SEPARATOR.join(f"{dtype} {rate}{end}" for (dtype, rate, _), end in zip(told, ends, strict=True))


def _ridges(frame: Frame, found: report.Roofline, factor: float) -> Drawn:
    """A line down from each ridge, and its intensity at the foot of it: names that would lie over the next line are a
    step of a stair, at which that line ends."""
    ridges = sorted((ridge.intensity, ridge.ceiling.value / factor) for ridge in found.compute if ridge.intensity)
    across = [frame.pixel((at, frame.y.low))[0] for at, _ in ridges]
    groups = together(across, SIZE / 2)
    values = [", ".join(dict.fromkeys(three_digits(ridges[index][0]) for index in group)) for group in groups]
    words = [f"ridge {value} FLOP/B" if index == 0 else value for index, value in enumerate(values)]
    widths = [text_width(text) * WIDTH / NARROW for text in words]  # the narrower the frame, the wider its words
    lines: list[Layer] = []
    named: list[Layer] = []
    for group, text, step in zip(groups, words, stairs([across[each[-1]] for each in groups], widths), strict=True):
        foot = frame.y.value((step * STAIR + SIZE / 2) / HEIGHT) if step else frame.y.low
        lines += [frame.line([ridges[index], (ridges[index][0], foot)], "ridge") for index in group]
        spot = (ridges[group[-1]][0], frame.y.low)
        named += frame.words(spot, text, always=False, dx=6, dy=-12 - STAIR * step)
    return lines, named
