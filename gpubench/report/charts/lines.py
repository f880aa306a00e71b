"""Series over a number as a picture: marks and lines by class, predictions dashed, capacities and ceilings named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpubench.report.canvas import natural
from gpubench.report.charts.frame import HEIGHT, WIDTH, Frame, Spot
from gpubench.report.charts.marks import Layer, with_prediction
from gpubench.report.figures.axes import across, around, upwards
from gpubench.report.figures.shapes import MOST, Level, Lines, Series
from gpubench.report.placing import SIZE, rows, text_width

TICKS = 9
ROLES = 220
"""Pixels of the legend that tells what was measured from what was predicted."""
SHORT = 0.03
"""Half of the line of a single prediction, as a share of the frame's width."""


def layers(figure: Lines) -> list[Layer]:
    """The layers of the picture, from the ground up."""
    series = [each for each in figure.series if each.points]
    points = [point for each in series for point in each.points]
    at_y = [level.at for level in figure.levels if level.axis == "y"]
    values = [*(point.y for point in points), *at_y]
    horizontal = across(figure.x, [point.x for point in points], TICKS)
    vertical = upwards(figure.y, values, TICKS) if figure.points else around(figure.y, values, TICKS)
    frame = Frame(horizontal.scale, vertical.scale, horizontal.ticks, vertical.ticks, horizontal.title, vertical.title)
    names = sorted({each.name for each in series}, key=natural)[:MOST]
    shown = [each for each in series if each.name in names]
    measured = [each for each in shown if each.role == "measured"]
    kind = figure.kind if len(names) > 1 else ""
    drawn: list[Layer] = [*_walls(frame, figure.levels), *_roofs(frame, figure.levels)]
    if not figure.points:
        drawn.append(frame.traces([(each.name, [(point.x, point.y) for point in each.points]) for each in shown], kind))
        return drawn
    long = [(each.name, each.role, _spots(frame, each)) for each in shown]
    beside = ROLES if len({each.role for each in shown}) > 1 else 0
    drawn.append(frame.paths(long, names, kind, beside))
    foretold = {(each.name, point.x): point.y for each in shown if each.role != "measured" for point in each.points}
    marks = [(each.name, point) for each in measured for point in each.points]
    errors = [
        ((point.x, point.low), point.high)
        for _, point in marks
        if point.low is not None and point.high is not None and point.high > point.low
    ]
    if errors:
        drawn.append(frame.rules(errors, "error"))
    if marks:
        spots = [(point.x, point.y) for _, point in marks]
        told = [with_prediction(point.facts, figure.y, foretold.get((name, point.x))) for name, point in marks]
        drawn.append(frame.points(spots, [name for name, _ in marks], kind, told, names, beside))
    return drawn


def _spots(frame: Frame, series: Series) -> list[Spot]:
    """Where the line of a series goes; a prediction of a single value is a short line through it, as it has no mark."""
    spots = [(point.x, point.y) for point in series.points]
    if series.role == "measured" or len(spots) > 1:
        return spots
    at = frame.x.at(spots[0][0])
    return [(frame.x.value(place), spots[0][1]) for place in (at - SHORT, at + SHORT)]


def _walls(frame: Frame, levels: Sequence[Level]) -> list[Layer]:
    """Upright lines at the named values of x, their names at the top of them, none over another."""
    found = sorted(
        (level for level in levels if level.axis == "x" and 0 <= frame.x.at(level.at) <= 1), key=lambda each: each.at
    )
    drawn: list[Layer] = []
    lefts = [frame.pixel((level.at, frame.y.low))[0] for level in found]
    places = rows(lefts, [text_width(level.words) for level in found])
    for level, left, row in zip(found, lefts, places, strict=True):
        top = (level.at, frame.y.high)
        drawn.append(frame.line([(level.at, frame.y.low), top], "edge"))
        right = left + text_width(level.words) + 8 > WIDTH
        side: dict[str, Any] = {"align": "right", "dx": -5} if right else {"align": "left", "dx": 5}
        drawn += frame.words(top, level.words, always=False, dy=8 + 1.4 * SIZE * row, **side)
    return drawn


def _roofs(frame: Frame, levels: Sequence[Level]) -> list[Layer]:
    """Level lines at the named values of y, their names above them at the right."""
    drawn: list[Layer] = []
    for level in levels:
        if level.axis != "y" or not 0 <= frame.y.at(level.at) <= 1:
            continue
        end = (frame.x.high, level.at)
        drawn.append(frame.line([(frame.x.low, level.at), end], "roof"))
        below = (1 - frame.y.at(level.at)) * HEIGHT < SIZE
        drawn += frame.words(end, level.words, align="right", dx=-4, dy=9 if below else -9)
    return drawn
