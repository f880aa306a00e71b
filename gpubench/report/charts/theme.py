"""How a picture looks, on a light and on a dark ground, as a configuration of Vega-Lite beside the description.

Marks have the styles of `config`, and classes without an order its palette. Only steps of a quantity are coloured in
the description itself, for a light ground; `on` exchanges them. A class is told by the shape of its mark as well as by
its colour, a prediction by its dashes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gpubench.report.placing import SIZE

Mode = Literal["light", "dark"]

FONT = "Helvetica, Arial, Liberation Sans, sans-serif"
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
DASHES = [5, 3]
"""Of what was predicted, in pixels drawn and left out."""
PATTERNS = [[1, 0], [7, 2], [2, 2], [8, 2, 2, 2], [4, 4], [1, 3], [10, 4], [4, 1]]
"""Dashes of classes of lines without marks."""


@dataclass(frozen=True)
class Colours:
    """Ink for words, soft for what is beside them, faint for the grid, roof for ceilings, ground behind all, band for a
    stretch of an axis; `named` for classes without an order, `steps` for those that have one."""

    ink: str
    soft: str
    faint: str
    roof: str
    ground: str
    band: str
    named: tuple[str, ...]
    steps: tuple[str, ...]


COLOURS: Mapping[Mode, Colours] = {
    "light": Colours(
        "#1f2328", "#59636e", "#eceef1", "#3d444d", "#ffffff", "#dfe3e8",
        ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#b07c00", "#000000", "#7a7a7a"),
        ("#0d0887", "#4c02a1", "#7e03a8", "#a92395", "#cc4778", "#e16462", "#ee7b51", "#f39a3f"),
    ),
    "dark": Colours(
        "#e6edf3", "#9198a1", "#262c36", "#b6bec8", "#0d1117", "#2d333d",
        ("#4aa3df", "#f28e4a", "#2fc79b", "#e59cc6", "#9ad4f5", "#e6b64a", "#ffffff", "#a0a6ad"),
        ("#8f5bd6", "#a763d0", "#c065c0", "#d56aa8", "#e3768a", "#ee8a6c", "#f6a556", "#f8cf52"),
    ),
}  # fmt: skip
"""Classes without an order: the palette of Okabe and Ito, without its yellow, the orange darker on a light ground, and
all lighter on a dark one. Steps: the scheme plasma without its yellow end, and without its dark one."""


def steps(count: int) -> list[str]:
    """The colours of that many steps on a light ground, from the first to the last of the palette."""
    choices = COLOURS["light"].steps
    return [choices[min(index * (len(choices) - 1) // max(count - 1, 1), len(choices) - 1)] for index in range(count)]


def on(mode: Mode, spec: Any) -> Any:
    """A description with the steps' colours for a ground of that mode."""
    if mode == "light":
        return spec
    if isinstance(spec, dict):
        return {key: on(mode, value) for key, value in spec.items()}
    if isinstance(spec, list):
        return [on(mode, value) for value in spec]
    light, other = COLOURS["light"].steps, COLOURS[mode].steps
    return other[light.index(spec)] if isinstance(spec, str) and spec in light else spec


def config(mode: Mode = "light") -> dict[str, Any]:
    """The configuration to draw a description with on a ground of that mode."""
    colours = COLOURS[mode]
    text = {"labelFontSize": SIZE, "titleFontSize": SIZE, "titleFontWeight": "normal"}
    ink = {"labelColor": colours.ink, "titleColor": colours.ink}
    soft = {"gridColor": colours.faint, "tickColor": colours.soft, "domainColor": colours.soft}
    return {
        "background": colours.ground,
        "font": FONT,
        "padding": 12,
        "view": {"stroke": None},
        "axis": {**text, **ink, **soft, "labelPadding": 5},
        "axisY": {"ticks": False, "domain": False},
        "legend": {
            **text,
            **ink,
            "offset": 25,
            "columnPadding": 18,
            "titlePadding": 10,
            "symbolSize": 64,
            "clipHeight": 12,
            "padding": 5,
            "labelLimit": 300,
        },
        "title": {
            "anchor": "start",
            "frame": "bounds",
            "fontSize": 16,
            "fontWeight": "bold",
            "color": colours.ink,
            "subtitleColor": colours.soft,
            "subtitleFontSize": 13,
            "subtitlePadding": 5,
            "offset": 14,
        },
        "range": {
            "category": list(colours.named),
            "symbol": list(SHAPES),
        },
        "style": styles(colours),
    }


def styles(colours: Colours) -> dict[str, Any]:
    """What marks look like, by the name of their style."""
    words = {"fontSize": SIZE, "baseline": "middle"}
    return {
        "roof": {"color": colours.roof, "strokeWidth": 1.5},
        "fall": {"color": colours.ink, "strokeWidth": 1},
        "ridge": {"color": colours.soft, "strokeWidth": 1, "strokeDash": [4, 3]},
        "edge": {"color": colours.soft, "strokeWidth": 1, "strokeDash": [1, 3]},
        "band": {"color": colours.band, "fillOpacity": 0.6},
        "bar": {"color": colours.named[0], "fillOpacity": 0.35},
        "interval": {"color": colours.named[1], "strokeWidth": 6, "strokeOpacity": 0.8},
        "error": {"color": colours.soft, "strokeWidth": 1},
        "foretold": {"color": colours.ink, "strokeWidth": 2},
        "sample": {"color": colours.named[0], "strokeWidth": 1, "strokeOpacity": 0.35},
        "median": {"color": colours.ink, "strokeWidth": 2},
        "words": {**words, "color": colours.ink},
        "rim": {**words, "color": colours.ground, "stroke": colours.ground, "strokeWidth": 4, "strokeJoin": "round"},
        "tile": {**words, "fontSize": 11, "color": colours.ink},
    }
