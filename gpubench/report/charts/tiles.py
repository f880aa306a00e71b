"""Verdicts as a picture: a mark for each claim, its shape and colour by the verdict, its name below it."""

from __future__ import annotations

from typing import Any

from gpubench.report.charts import marks
from gpubench.report.charts.marks import Channels, Data, Layer
from gpubench.report.figures.shapes import Tiles

ROW = 38
"""Pixels from one row to the next."""
COLUMNS = 10
"""Tiles in a row, by the last digit of a claim's name."""


def height(figure: Tiles) -> int:
    """How high the frame is, in pixels."""
    return ROW * max(len(figure.groups), 2)


def layers(figure: Tiles) -> list[Layer]:
    """The layers of the picture, from the ground up."""
    fields = marks.tooltip_fields([tile.facts for tile in figure.tiles])
    rows: Data = []
    for line, (_, tiles) in enumerate(figure.groups):
        for index, tile in enumerate(tiles):
            digit = tile.name[-1:]
            column = int(digit) if digit in "0123456789" else index % COLUMNS
            place: dict[str, Any] = {"x": column, "y": line, "class": tile.verdict, "text": tile.name}
            rows.append(place | marks.told_row(fields, tile.facts))
    across = {"domain": [-0.4, COLUMNS - 0.2], "nice": False}
    down = {"domain": [-0.5, max(len(figure.groups), 2) - 0.5], "nice": False, "reverse": True}
    axes: Channels = {
        "x": {"field": "x", "type": "quantitative", "scale": across, "axis": None},
        "y": {"field": "y", "type": "quantitative", "scale": down, "axis": None},
    }
    given = {tile.verdict for tile in figure.tiles}
    classes = marks.by_class(figure.verdicts, "verdict", [verdict for verdict in figure.verdicts if verdict in given])
    return [
        marks.layer(rows, "point", axes | classes | marks.tooltips(fields), size=110, opacity=1, strokeWidth=1.2),
        marks.layer(
            rows, "text", axes | {"text": {"field": "text", "type": "nominal"}}, style="tile", align="center", dy=14
        ),
    ]
