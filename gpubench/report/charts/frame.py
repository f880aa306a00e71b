"""The frame of most pictures: two axes of numbers, and the layers that are drawn on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.report.canvas import Scale, natural
from gpubench.report.charts import marks
from gpubench.report.charts.marks import Channels, Layer, six
from gpubench.report.charts.theme import DASHES, PATTERNS
from gpubench.report.figures.shapes import Facts, Role
from gpubench.report.placing import Pixel

WIDTH, HEIGHT = 760, 380
"""Of the frame, in CSS pixels; with its margins a picture is about 830 wide, as a README shows it."""
ROLES: tuple[Role, ...] = ("measured", "predicted")
FEW = 100
"""Marks from which on none is larger because others lie over it: in a cloud that would say something else."""
MANY = 300
"""Marks from which on they are smaller."""
ABOVE = {"titleAngle": 0, "titleAlign": "left", "titleBaseline": "bottom", "titleX": -30, "titleY": -11}
"""The title of a vertical axis is above it, to be read without turning one's head."""

Spot = tuple[float, float]
"""A place in a picture: x and y in the units of its axes."""


@dataclass(frozen=True)
class Frame:
    """Two axes of numbers. `names` are the ticks of each with what to write there."""

    x: Scale
    y: Scale
    x_names: Mapping[float, str]
    y_names: Mapping[float, str]
    x_title: str
    y_title: str

    def line(self, spots: Sequence[Spot], style: str) -> Layer:
        """A line through the spots, in a style of the theme."""
        return marks.layer([_row(spot) for spot in spots], "line", self._axes(), style=style)

    def rules(self, spans: Sequence[tuple[Spot, float]], style: str) -> Layer:
        """Upright lines from each spot to another y."""
        rows = [_row(spot) | {"to": six(to)} for spot, to in spans]
        return marks.layer(rows, "rule", self._axes() | {"y2": {"field": "to"}}, style=style)

    def traces(self, lines: Sequence[tuple[str, Sequence[Spot]]], kind: str) -> Layer:
        """A line for each name, without marks: told by its dashes as well as by its colour."""
        rows = [_row(spot) | {"class": name} for name, spots in lines for spot in spots]
        domain = [name for name, _ in lines]
        patterns = [PATTERNS[index % len(PATTERNS)] for index in range(len(domain))]
        dashes = {"field": "class", "type": "nominal", "scale": {"domain": domain, "range": patterns}}
        key = marks.legend(domain, kind)
        if kind:
            key["legend"] |= {"symbolType": "stroke", "symbolSize": 400, "symbolStrokeWidth": 1.6}
        colour = marks.by_colour(domain, kind) | key
        return marks.layer(rows, "line", self._axes() | {"stroke": colour, "strokeDash": dashes | key}, strokeWidth=1.4)

    def paths(
        self, lines: Sequence[tuple[str, Role, Sequence[Spot]]], domain: Sequence[str], kind: str, beside: float
    ) -> Layer:
        """A line for each name and role. A name is told by colour, as that of its marks; a role by dashes, with a key
        where it is given pixels `beside` the legend of names."""
        rows = [_row(spot) | {"class": name, "role": role} for name, role, spots in lines for spot in spots]
        key = {"orient": "top", "symbolType": "stroke", "symbolSize": 400, "symbolStrokeWidth": 1.6}
        dashes = {
            "field": "role",
            "type": "nominal",
            "scale": {"domain": list(ROLES), "range": [[1, 0], DASHES]},
            "legend": key if beside else None,
            "title": None,
        }
        channels = self._axes() | {"stroke": marks.by_colour(domain, kind, beside), "strokeDash": dashes}
        return marks.layer(rows, "line", channels, strokeWidth=1.6)

    def points(
        self,
        spots: Sequence[Spot],
        names: Sequence[str],
        kind: str,
        told: Sequence[Facts] = (),
        domain: Sequence[str] = (),
        beside: float = 0,
    ) -> Layer:
        """A mark at each spot, its shape and colour by its class, what is `told` of it where a reader points, and a
        legend unless `kind`, the name of the classes, is empty; the rarer classes lie on top. `domain` are the classes
        where lines in the same picture have others too, and `beside` the pixels that the legend of those takes."""
        crowd = Counter(names)
        facts = told or [()] * len(spots)
        order = sorted(zip(spots, names, facts, strict=True), key=lambda point: -crowd[point[1]])
        fields = marks.tooltip_fields(facts)
        rows = [_row(spot) | {"class": name} | marks.told_row(fields, each) for spot, name, each in order]
        classes = marks.by_class(domain or sorted(crowd, key=natural), kind, beside=beside)
        channels = self._axes() | classes | marks.tooltips(fields)
        if len(rows) >= FEW:
            return marks.layer(rows, "point", channels, size=34 if len(rows) < MANY else 22, **marks.POINT)
        return marks.points(rows, channels, [self.pixel(spot) for spot, _, _ in order], 34)

    def words(self, spot: Spot, text: str, *, always: bool = True, **looks: Any) -> list[Layer]:
        """A text beside a spot, with a rim; left out of a narrow frame unless it is to be there `always`."""
        return marks.words(text, self._axes(), _row(spot), always=always, **looks)

    def pixel(self, spot: Spot) -> Pixel:
        """Where a spot lies in a frame of the usual size, in pixels from its upper left corner."""
        return WIDTH * self.x.at(spot[0]), HEIGHT * (1 - self.y.at(spot[1]))

    def along(self, start: Spot, end: Spot) -> dict[str, str]:
        """The angle of a text along a line, in a frame of any size."""
        across = self.x.at(end[0]) - self.x.at(start[0])
        up = self.y.at(end[1]) - self.y.at(start[1])
        return {"expr": f"-atan2(height * {up:.6g}, width * {across:.6g}) * 180 / PI"}

    def between(self, start: Spot, end: Spot, share: float) -> Spot:
        """The spot at a share of the way from one to another."""
        x = (1 - share) * self.x.at(start[0]) + share * self.x.at(end[0])
        y = (1 - share) * self.y.at(start[1]) + share * self.y.at(end[1])
        return self.x.value(x), self.y.value(y)

    def _axes(self) -> Channels:
        x = {"field": "x", "type": "quantitative", "scale": marks.numbers(self.x)}
        y = {"field": "y", "type": "quantitative", "scale": marks.numbers(self.y)}
        return {
            "x": x | {"axis": marks.axis(self.x_names, self.x_title)},
            "y": y | {"axis": marks.axis(self.y_names, self.y_title, **ABOVE)},
        }


def _row(spot: Spot) -> dict[str, Any]:
    return {"x": six(spot[0]), "y": six(spot[1])}
