"""Samples as a picture: a strip of short lines for each row, with the median and its interval."""

from __future__ import annotations

from gpubench.report.charts import marks
from gpubench.report.charts.marks import Channels, Layer, six
from gpubench.report.charts.rows import named
from gpubench.report.figures.axes import around
from gpubench.report.figures.shapes import Strips

ROW = 30
"""Pixels from one row to the next."""
NAME = 280
"""Pixels that the name of a row may take."""


def height(figure: Strips) -> int:
    """How high the frame is, in pixels."""
    return ROW * max(len(figure.strips), 2)


def layers(figure: Strips) -> list[Layer]:
    """The layers of the picture, from the ground up."""
    named_strips = [(f"{index + 1}. {strip.name}", strip) for index, strip in enumerate(figure.strips)]
    across = around(figure.x, [value for strip in figure.strips for value in strip.values], 8)
    ticks = marks.axis(across.ticks, across.title)
    axes: Channels = {
        "x": {"field": "x", "type": "quantitative", "scale": marks.numbers(across.scale), "axis": ticks},
        "y": named([name for name, _ in named_strips], NAME),
    }
    every = [
        {"x": value, "name": name} for name, strip in named_strips for value in dict.fromkeys(map(six, strip.values))
    ]
    fields = marks.tooltip_fields([strip.facts for strip in figure.strips])
    middles = [
        {"x": six(strip.median), "name": name} | marks.told_row(fields, strip.facts) for name, strip in named_strips
    ]
    intervals = [
        {"x": six(strip.low), "to": six(strip.high), "name": name}
        for name, strip in named_strips
        if strip.low is not None and strip.high is not None
    ]
    return [
        marks.layer(every, "tick", axes, style="sample", size=ROW - 12, thickness=1),
        marks.layer(intervals, "rule", axes | {"x2": {"field": "to"}}, style="interval"),
        marks.layer(middles, "tick", axes | marks.tooltips(fields), style="median", size=ROW - 6, thickness=2),
    ]
