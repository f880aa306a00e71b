"""Layers of a picture as Vega-Lite has them: data, a mark in a style of the theme, channels. Plain JSON values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.report.canvas import Scale, natural
from gpubench.report.charts.theme import steps
from gpubench.report.figures.shapes import Facts, Quantity
from gpubench.report.placing import Pixel, beneath, text_width

Layer = dict[str, Any]
Channels = dict[str, Any]
Data = list[dict[str, Any]]

NARROW = 480
"""Pixels below which a frame that is as wide as its page shows no words between its marks."""
LEGEND = 44
"""Pixels beside the words of an entry of a legend."""

POINT: Mapping[str, Any] = {"opacity": 1, "strokeWidth": 1.2}
"""How a mark of a class looks, whatever its size."""
RIM = 1.4
"""By how much of its area a mark grows for each that lies over it."""


def layer(rows: Data, mark: str, channels: Channels, *, style: str | None = None, **more: Any) -> Layer:
    """Marks of a kind, in a style, at these rows. Without a tooltip they are nothing that a screen reader stops at."""
    looks = {"type": mark, **({"style": style} if style else {}), **more}
    if "tooltip" not in channels:
        looks["aria"] = False
    return {"data": {"values": rows}, "mark": looks, "encoding": channels}


def axis(names: Mapping[float, str], title: str, **more: Any) -> dict[str, Any]:
    """An axis with these names at its ticks."""
    values = [six(value) for value in names]
    name = f"{json.dumps(list(names.values()))}[indexof({json.dumps(values)}, datum.value)]"
    return {"title": title, "values": values, "labelExpr": name, **more}


def numbers(scale: Scale) -> dict[str, Any]:
    """A scale of exactly this extent."""
    kind = "log" if scale.log else "linear"
    return {"type": kind, "domain": [six(scale.low), six(scale.high)], "nice": False, "zero": False}


def by_class(domain: Sequence[str], kind: str, shown: Sequence[str] | None = None, beside: float = 0) -> Channels:
    """The shape and the colours of marks by the field "class"; a legend of those that are `shown`, else of all, with
    that many pixels `beside` it for another."""
    key = legend(domain if shown is None else shown, kind, beside)
    if kind and shown is not None:
        key["legend"]["values"] = list(shown)
    shape = {"field": "class", "type": "nominal", "scale": {"domain": list(domain)}, **key}
    colour = by_colour(domain, kind, beside) | key
    return {"shape": shape, "stroke": colour, "fill": colour}


def by_colour(domain: Sequence[str], kind: str, beside: float = 0) -> dict[str, Any]:
    """A channel of colour by the field "class": steps of a quantity from dark to light, other names unlike each
    other."""
    ordered = len(domain) > 1 and all(natural(name)[0] == 0 for name in domain)
    scale = {"domain": list(domain), "range": steps(len(domain)) if ordered else "category"}
    return {"field": "class", "type": "nominal", "scale": scale, **legend(domain, kind, beside)}


def legend(domain: Sequence[str], kind: str, beside: float = 0) -> dict[str, Any]:
    """The legend of classes above the frame, in as many columns as it has room for, with that many pixels `beside` it
    for another, which is below it in a narrow frame; none without a name of the classes."""
    if not kind:
        return {"legend": None, "title": None}
    entry, title = max(map(text_width, domain), default=0) + LEGEND, text_width(kind)
    room = f"width - {title:.0f}" + (f" - (width < {NARROW} ? 0 : {beside:.0f})" if beside else "")
    columns = {"expr": f"max(1, floor(({room}) / {entry:.0f}))"}
    return {"legend": {"orient": "top", "titleOrient": "left", "columns": columns}, "title": kind}


def points(rows: Data, channels: Channels, spots: Sequence[Pixel], size: float) -> Layer:
    """Marks of a class each, at these pixels; one that others hide is so much larger that it shows beneath them."""
    over = beneath(spots, [row["class"] for row in rows])
    if not any(over):
        return layer(rows, "point", channels, size=size, **POINT)
    sized = [row | {"size": size * (1 + RIM * count)} for row, count in zip(rows, over, strict=True)]
    by_size = {"field": "size", "type": "quantitative", "scale": None, "legend": None}
    return layer(sized, "point", channels | {"size": by_size}, **POINT)


def with_prediction(facts: Facts, quantity: Quantity, value: float | None, called: str = "") -> Facts:
    """What is told of a mark, and what was predicted in its place, if anything was."""
    return facts if value is None else (*facts, (called or "predicted", quantity.say(value)))


def tooltip_fields(told: Sequence[Facts]) -> dict[str, str]:
    """The field of each thing that is told of any mark."""
    names = dict.fromkeys(name for facts in told for name, _ in facts)
    return {name: f"t{index}" for index, name in enumerate(names)}


def told_row(fields: Mapping[str, str], facts: Facts) -> dict[str, str]:
    """What is told of one mark, by field."""
    return {fields[name]: value for name, value in facts}


def tooltips(fields: Mapping[str, str]) -> Channels:
    """The channel that shows those fields where a reader points; none without fields."""
    shown = [{"field": field, "type": "nominal", "title": name} for name, field in fields.items()]
    return {"tooltip": shown} if shown else {}


def silent(shown: Layer) -> Layer:
    """A layer without what is told of its marks."""
    if "tooltip" not in shown["encoding"]:
        return shown
    told = {each["field"] for each in shown["encoding"]["tooltip"]}
    rows = [{name: value for name, value in row.items() if name not in told} for row in shown["data"]["values"]]
    channels = {name: channel for name, channel in shown["encoding"].items() if name != "tooltip"}
    return {"data": {"values": rows}, "mark": shown["mark"] | {"aria": False}, "encoding": channels}


def words(text: str, channels: Channels, row: dict[str, Any], *, always: bool = True, **looks: Any) -> list[Layer]:
    """A text at a row, with a rim in the colour of the ground so that it reads over marks; left out of a narrow frame
    unless it is to be there `always`."""
    rows = [row | {"text": text}]
    placed: dict[str, Any] = {"align": "left"} | looks
    if always:
        channels = channels | {"text": {"field": "text", "type": "nominal"}}
    else:  # no text, rather than one that is not seen: that would still take its room from the frame
        placed["text"] = {"expr": f"width < {NARROW} ? '' : datum.text"}
    return [layer(rows, "text", channels, style=style, **placed) for style in ("rim", "words")]


def six(value: float) -> float:
    """The value in six digits: more than a picture shows, and the same text on every machine."""
    return float(f"{value:.6g}")
