"""Marks in named rows as a picture, with what was predicted and the interval of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.report.canvas import natural
from gpubench.report.charts import marks
from gpubench.report.charts.marks import Channels, Data, Layer, six, with_prediction
from gpubench.report.figures.axes import Axis, around, upwards
from gpubench.report.figures.shapes import Entry, Facts, Rows

ROW = 24
"""Pixels from one row to the next."""
WIDTH = 580
"""Of the frame, in CSS pixels: the names have the rest."""
NAME = 250
"""Pixels that the name of a row may take."""
TICKS = 8
FOOT = {"value": {"expr": "height - 12"}}
"""Where words stand that belong to a place of the axis: at the foot of the frame."""


def height(figure: Rows) -> int:
    """How high the frame is, in pixels; a line more where something has its name at the foot."""
    named = any(level.words for level in figure.levels) or figure.band is not None
    return ROW * max(len(figure.names) + named, 2) + ROW // 2


def layers(figure: Rows) -> list[Layer]:
    """The layers of the picture, from the ground up."""
    entries = figure.entries
    values = [
        value for each in entries for value in (each.value, each.predicted, each.low, each.high) if value is not None
    ]
    values += [level.at for level in figure.levels] + list(figure.band[:2] if figure.band else ())
    across = around(figure.x, values, TICKS) if figure.band else upwards(figure.x, values, TICKS)
    room = [""] if height(figure) > ROW * max(len(figure.names), 2) + ROW // 2 else []
    bench = _Bench(across, [*figure.names, *room])
    kinds = sorted({entry.kind for entry in entries}, key=natural)
    drawn: list[Layer] = []
    if figure.band:
        drawn += bench.band(*figure.band)
    for level in figure.levels:
        drawn += bench.wall(level.at, level.words)
    if not any(kinds) and across.scale.low == 0:
        drawn.append(bench.bars(entries))
    if spans := [each for each in entries if each.low is not None and each.high is not None and each.high > each.low]:
        drawn.append(bench.spans(spans))
    if foretold := [entry for entry in entries if entry.predicted is not None]:
        drawn.append(bench.ticks(foretold))
    told = [with_prediction(each.facts, figure.x, each.predicted, figure.predicted) for each in entries]
    return [*drawn, bench.marks(entries, told, figure.classes or kinds, kinds, figure.kind if any(kinds) else "")]


@dataclass(frozen=True)
class _Bench:
    """A horizontal axis of numbers over named rows."""

    axis: Axis
    names: Sequence[str]

    def bars(self, entries: Sequence[Entry]) -> Layer:
        """A bar from zero for each entry."""
        rows = [{"x": six(entry.value), "name": entry.name, "zero": 0} for entry in entries]
        return marks.layer(rows, "bar", self._axes() | {"x2": {"field": "zero"}}, style="bar", height=ROW - 8)

    def spans(self, entries: Sequence[Entry]) -> Layer:
        """The interval of each entry."""
        rows: Data = [{"x": six(each.low or 0.0), "to": six(each.high or 0.0), "name": each.name} for each in entries]
        return marks.layer(rows, "rule", self._axes() | {"x2": {"field": "to"}}, style="error")

    def ticks(self, entries: Sequence[Entry]) -> Layer:
        """What was predicted of each entry: a short line across its row."""
        rows = [{"x": six(entry.predicted or 0.0), "name": entry.name} for entry in entries]
        return marks.layer(rows, "tick", self._axes(), style="foretold", size=ROW - 6, thickness=2)

    def marks(
        self, entries: Sequence[Entry], told: Sequence[Facts], domain: Sequence[str], shown: Sequence[str], kind: str
    ) -> Layer:
        """A mark for each entry, with what is told of it, of a class of the domain; the legend has those shown."""
        fields = marks.tooltip_fields(told)
        rows = [
            {"x": six(entry.value), "name": entry.name, "class": entry.kind} | marks.told_row(fields, facts)
            for entry, facts in zip(entries, told, strict=True)
        ]
        channels = self._axes() | marks.by_class(domain, kind, shown) | marks.tooltips(fields)
        line = {name: ROW * index for index, name in enumerate(self.names)}
        spots = [(WIDTH * self.axis.scale.at(entry.value), float(line[entry.name])) for entry in entries]
        return marks.points(rows, channels, spots, 60)

    def band(self, low: float, high: float, words: str) -> list[Layer]:
        """A stretch of the axis, with its name at the foot of it."""
        row = {"x": six(low), "to": six(high)}
        stretch = marks.layer([row], "rect", {"x": self._x(), "x2": {"field": "to"}}, style="band")
        return [stretch, *marks.words(words, {"x": self._x(), "y": FOOT}, {"x": six(low)}, dx=4)]

    def wall(self, at: float, words: str) -> list[Layer]:
        """An upright line, its name at the foot of it."""
        line = marks.layer([{"x": six(at)}], "rule", {"x": self._x()}, style="roof")
        right = self.axis.scale.at(at) > 0.7
        side: dict[str, Any] = {"align": "right", "dx": -5} if right else {"align": "left", "dx": 5}
        return [line, *(marks.words(words, {"x": self._x(), "y": FOOT}, {"x": six(at)}, **side) if words else [])]

    def _x(self) -> Channels:
        title = marks.axis(self.axis.ticks, self.axis.title)
        return {"field": "x", "type": "quantitative", "scale": marks.numbers(self.axis.scale), "axis": title}

    def _axes(self) -> Channels:
        return {"x": self._x(), "y": named(self.names, NAME)}


def named(names: Sequence[str], width: int) -> Channels:
    """A vertical axis of names, from the top."""
    look = {"title": None, "labelLimit": width, "grid": False, "domain": False, "ticks": False}
    return {"field": "name", "type": "nominal", "scale": {"domain": list(names)}, "sort": None, "axis": look}
