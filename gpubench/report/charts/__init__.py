"""Pictures of a run, from one description each, in Vega-Lite: for a page, as SVG, PNG and interactive HTML. Offline.

    charts.available(run)             headings: .id, .suite (None: of the whole run), .title, .question, .facts
    charts.draw(run, id)              a picture: .heading, .alt (in words), .spec() (the description)
    charts.pictures(run)              all of them, quicker than one by one
    charts.comparison(judged, name)   the changes of a comparison, each with its interval
    charts.config("light" | "dark")   the colours, sizes and fonts to draw a description with

A description holds its data, has no title, and is as wide as its container; `Picture.whole` is one with a title.
"""

from __future__ import annotations

from typing import Any

from gpubench.errors import UsageError
from gpubench.report import plots
from gpubench.report.charts import curve as _curve
from gpubench.report.charts import lines, rows, strips, tiles
from gpubench.report.charts import roofline as _roofline
from gpubench.report.charts.picture import Picture, check_installed, save
from gpubench.report.charts.theme import Mode, config
from gpubench.report.figures.catalogue import figures
from gpubench.report.figures.intervals import intervals
from gpubench.report.figures.shapes import Figure, Heading, Lines, Rows, Strips
from gpubench.report.words import device_name, plain
from gpubench.result import Run
from gpubench.verdict import Judged

__all__ = [
    "Heading",
    "Mode",
    "Picture",
    "available",
    "check_installed",
    "comparison",
    "config",
    "curve",
    "draw",
    "first",
    "of",
    "pictures",
    "roofline",
    "save",
    "spec",
]


def available(run: Run) -> list[Heading]:
    """The pictures there are of a run: its curve, its roofline, its claims, those of its suites in their order, its
    samples."""
    special = [heading for heading in (_main(run), _roofline.heading(run)) if heading is not None]
    return [*special, *(figure.heading for figure in figures(run))]


def draw(run: Run, id: str) -> Picture:
    """One of them. UsageError where the run has no picture of that id, or the libraries that draw are missing."""
    if id == _curve.ID:
        return curve(run)
    if id == _roofline.ID:
        return roofline(run)
    figure = next((figure for figure in figures(run) if figure.heading.id == id), None)
    if figure is None:
        known = ", ".join(heading.id for heading in available(run))
        raise UsageError(f"no picture {plain(id)!r} of this run", f"one of {known}" if known else "")
    return of(figure, device_name(run))


def pictures(run: Run) -> list[Picture]:
    """All of them, in that order."""
    special = [(_main(run), curve), (_roofline.heading(run), roofline)]
    drawn = [picture(run) for heading, picture in special if heading is not None]
    return [*drawn, *(of(figure, device_name(run)) for figure in figures(run))]


def spec(run: Run, id: str) -> dict[str, Any]:
    """Its description for a page."""
    return draw(run, id).spec()


def curve(run: Run) -> Picture:
    """The run's main sweep: its rows by class, the measured ceiling, the largest falls."""
    return _curve.picture(run)


def first(run: Run) -> Picture:
    """The picture to be shown first of a run: as under its table. UsageError where there is nothing to draw."""
    figure = plots.first(run)
    return curve(run) if figure is None else of(figure, device_name(run))


def roofline(run: Run) -> Picture:
    """The run's measured roofs, their ridges, and its rows under them."""
    return _roofline.picture(run)


def comparison(judged: Judged, device: str) -> Picture | None:
    """The changes of a comparison, each with its interval, over the margin; None where none is judged."""
    found = intervals(judged)
    return None if found is None else of(found, plain(device))


def of(figure: Figure, device: str) -> Picture:
    """The picture of a figure."""
    if isinstance(figure, Lines):
        return Picture(figure.heading, figure.alt, device, lines.layers(figure))
    if isinstance(figure, Rows):
        return Picture(figure.heading, figure.alt, device, rows.layers(figure), rows.height(figure), rows.WIDTH)
    if isinstance(figure, Strips):
        return Picture(figure.heading, figure.alt, device, strips.layers(figure), strips.height(figure), rows.WIDTH)
    return Picture(figure.heading, figure.alt, device, tiles.layers(figure), tiles.height(figure))


def _main(run: Run) -> Heading | None:
    """The heading of the run's curve, None where the figures of suites show it already."""
    return _curve.heading(run) if _curve.worth(run) else None
