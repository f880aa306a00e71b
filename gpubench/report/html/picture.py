"""A page of one picture: what a mark is, where a reader points; light and dark; the run itself inside."""

from __future__ import annotations

from gpubench.report.charts import Picture
from gpubench.report.html import figures, overview
from gpubench.report.html.page import Page, Section
from gpubench.report.html.run import file_name
from gpubench.report.words import SEPARATOR
from gpubench.result import Run
from gpubench.store import runfile


def page(run: Run, picture: Picture) -> bytes:
    """The file."""
    drawings, placed = figures.document([picture])
    sections = [Section("picture", picture.heading.title, place) for _, place in placed]
    title = SEPARATOR.join([picture.heading.title, picture.device])
    return Page(title, overview.head(run), sections, drawings, [runfile.encode(run)], [file_name(run)]).html()
