"""What is shown first of a run, under its table and as its picture: the curve of a sweep of matrix products, else a
figure of the run's own suites, else its longest sweep, else its first benchmark of so many rows. In a terminal also how
the samples of a few rows scatter."""

from __future__ import annotations

from gpubench.report import curve, figure_plot
from gpubench.report.figures import catalogue
from gpubench.report.figures.samples import samples
from gpubench.report.figures.shapes import Figure, Lines, Rows, Strips
from gpubench.report.sweep import LEAST, is_of_products, main, sweeps
from gpubench.result import Run


def plot(run: Run, width: int, height: int, colour: bool, ascii_only: bool = False) -> str | None:
    """It as text, without a final newline; None where the run has nothing to draw or the terminal is too small."""
    figure = first(run)
    if figure is not None:
        return figure_plot.plot(figure, width, height, colour, ascii_only)
    drawn = curve.curve(run, width, height, colour, ascii_only)
    scattered = None if drawn else next((each for each in samples(run) if _scatters(each)), None)
    return drawn if scattered is None else figure_plot.plot(scattered, width, height, colour, ascii_only)


def of(run: Run, id: str, width: int, height: int, ascii_only: bool = False) -> str | None:
    """The figure of that id as plain text; None where the run has none, or the terminal is too small."""
    found = next((figure for figure in catalogue.figures(run) if figure.heading.id == id), None)
    return None if found is None else figure_plot.plot(found, width, height, False, ascii_only)


def first(run: Run) -> Figure | None:
    """The figure to be shown first; None where that is the curve, or there is nothing."""
    found = main(sweeps(run))
    if found and is_of_products(found[0]):
        return None
    own, others = catalogue.split(run)
    long = [] if found else [figure for figure in others if _marks(figure) >= LEAST]
    return next((figure for figure in [*own, *long] if isinstance(figure, Lines | Rows)), None)


def _scatters(figure: Figure) -> bool:
    """Whether there is more to see than the medians, which a table says as well."""
    return isinstance(figure, Strips) and any(min(each.values) < max(each.values) for each in figure.strips)


def _marks(figure: Figure) -> int:
    if isinstance(figure, Lines):
        return sum(len(each.points) for each in figure.series if each.role == "measured")
    return len(figure.entries) if isinstance(figure, Rows) else 0
