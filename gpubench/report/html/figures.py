"""Charts in a page: a description in Vega-Lite becomes one in Vega here, so that the page needs no compiler; under each
its figures as a table, for who cannot see it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

from gpubench.report import charts
from gpubench.report.charts import Heading, Mode
from gpubench.report.charts.theme import COLOURS, Colours
from gpubench.report.html.markup import Markup, folded, tag
from gpubench.report.words import counted

ROWS = 1_000
"""Marks of a chart that its table has; the tables of the rows have all."""


def document(pictures: Sequence[charts.Picture]) -> tuple[dict[str, Any] | None, list[tuple[Heading, Markup]]]:
    """What the page's script needs to draw these charts, light and dark, and to write their figures down (None where
    there are none); and the place of each with its heading.

    A chart is stored once, in the colours of the light page; those of the dark one take their place when it is drawn.
    """
    drawn, places = {}, []
    for index, picture in enumerate(pictures):
        description = picture.spec()
        chart = _compiled(description, "light")
        del chart["config"]
        columns, rows = figures_of(description)
        drawn[str(index)] = {"vega": chart, "columns": columns, "rows": rows[:ROWS]}
        places.append((picture.heading, _place(picture, str(index), len(rows))))
    if not drawn:
        return None, []
    configs = {mode: _compiled(_EMPTY, mode)["config"] for mode in get_args(Mode)}
    return {"charts": drawn, "config": configs, "dark": _dark()}, places


_EMPTY: Mapping[str, Any] = {"data": {"values": []}, "mark": "point"}
"""What the configuration of a mode is taken from: it is the same in every chart."""


def _compiled(description: Mapping[str, Any], mode: Mode) -> dict[str, Any]:
    """The chart as Vega, on the ground of the page."""
    import vl_convert

    config = {**charts.config(mode), "background": None}
    vega: dict[str, Any] = vl_convert.vegalite_to_vega({**description, "config": config})
    return vega


def _dark() -> dict[str, str]:
    """The colours of the light page, and which takes the place of each on the dark one."""
    light, dark = (_flat(COLOURS[mode]) for mode in ("light", "dark"))
    return dict(zip(light, dark, strict=True))


def _flat(colours: Colours) -> list[str]:
    """The colours of a theme in order."""
    single = [colours.ink, colours.soft, colours.faint, colours.roof, colours.ground, colours.band]
    return [*single, *colours.named, *colours.steps]


def _place(picture: charts.Picture, key: str, marks: int) -> Markup:
    """Where a chart is drawn, under its question, over a table of its figures, which is written when it is unfolded."""
    heading = picture.heading
    said = f"{heading.title}. {picture.alt}"
    more = f", of which the first {ROWS:,} are here" if marks > ROWS else ""
    caption = f"{heading.title}: {counted(marks, 'mark')}{more}"
    return tag(
        "figure",
        tag(
            "figcaption",
            tag("p", heading.question or heading.title, class_="asks"),
            *(tag("p", fact) for fact in heading.facts),
        ),
        tag("div", class_="chart", data_chart=key, data_name=heading.id, role="img", aria_label=said),
        folded("Figures of this chart", data_figures=key, data_caption=caption) if marks else None,
    )


def figures_of(description: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """What the marks of a chart say when they are pointed at: names, and a row of values for each. Of a chart of lines
    without marks, what stands on its axes, by class."""
    layers = list(_layers(description, None))
    said = [(_told(layer["encoding"]), data) for layer, data in layers if "tooltip" in layer["encoding"]]
    drawn = said or [(_on_axes(layer["encoding"]), data) for layer, data in layers if "stroke" in layer["encoding"]]
    columns: dict[str, None] = {}
    found: list[dict[str, str]] = []
    for fields, data in drawn:
        for value in _values(data, description):
            row = {title: str(value[name]) for name, title in fields.items() if value.get(name) is not None}
            if row:
                columns |= dict.fromkeys(row)
                found.append(row)
    unique = list({tuple(row.items()): row for row in found}.values())
    return list(columns), [[row.get(name, "") for name in columns] for row in unique]


def _layers(part: Mapping[str, Any], data: Any, encoding: Any = None) -> Iterator[tuple[Mapping[str, Any], Any]]:
    """Each single layer with its data, and its encoding with what it has from those above."""
    data = part.get("data", data)
    encoding = {**(encoding or {}), **part.get("encoding", {})}
    inner = [each for name in ("layer", "hconcat", "vconcat", "concat") for each in part.get(name, ())]
    if not inner and isinstance(part.get("spec"), Mapping):
        inner = [part["spec"]]
    for each in inner:
        yield from _layers(each, data, encoding)
    if not inner:
        yield {**part, "encoding": encoding}, data


def _told(encoding: Mapping[str, Any]) -> dict[str, str]:
    """Field → title of what a mark says."""
    said = encoding["tooltip"]
    channels = said if isinstance(said, list) else [said]
    return {str(each["field"]): str(each.get("title") or each["field"]) for each in channels}


def _on_axes(encoding: Mapping[str, Any]) -> dict[str, str]:
    """Field → title of the class of a line, and of the axes it lies on."""
    found = {}
    for name in ("stroke", "x", "y"):
        channel = encoding[name]
        axis = channel.get("axis") or {}
        found[str(channel["field"])] = str(channel.get("title") or axis.get("title") or channel["field"])
    return found


def _values(data: Any, description: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """The rows of inline data, or of a named data set."""
    if not isinstance(data, Mapping):
        return ()
    values = data.get("values", description.get("datasets", {}).get(data.get("name"), ()))
    return [value for value in values if isinstance(value, Mapping)] if isinstance(values, list) else ()
