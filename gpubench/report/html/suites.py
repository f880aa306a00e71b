"""A suite's part of a report: its question, what its rows say of the claims, its charts, its rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpubench.report import table as tables
from gpubench.report.html import verdicts
from gpubench.report.html.markup import Child, Markup, folded, join, lines, table, tag
from gpubench.report.html.overview import MARKS
from gpubench.report.html.questions import Question
from gpubench.report.rows import Group, groups
from gpubench.report.words import SEPARATOR, counted, plain
from gpubench.result import FAILED, Record, Run

SHORT = 8
"""Rows of a suite that are shown without being asked for, where it has no chart."""


def by_suite(run: Run) -> dict[str, list[Group]]:
    """The benchmarks of each suite of a run, in the order in which they were measured."""
    found: dict[str, list[Group]] = {}
    for group in groups(run):
        found.setdefault(group.suite, []).append(group)
    return found


def anchor(suite: str) -> str:
    """Where a suite stands in the page."""
    return f"suite-{re.sub('[^A-Za-z0-9]+', '-', suite)}"


def section(
    run: Run,
    found: Sequence[Group],
    asked: Question,
    statements: verdicts.Statements,
    figures: Sequence[Markup],
) -> Markup:
    """The part of one suite; `found` are its benchmarks, at least one, and `figures` its charts."""
    suite = found[0].suite
    tabled = join(_block(run, block) for block in tables.blocks(found))
    count = sum(len(group.records) for group in found)
    return tag(
        "section",
        tag("h3", asked.title, id=f"{anchor(suite)}-title"),
        tag("p", asked.question, class_="question") if asked.question else None,
        *(tag("p", *_coded(text), class_="soft") for text in asked.more),
        verdicts.chips(run, suite, statements),
        *figures,
        tabled if count <= SHORT and not figures else folded(f"All {counted(count, 'row')} of this suite", tabled),
        tag("p", "Measure it here: ", tag("code", f"gpubench run {plain(suite)}"), class_="soft"),
        id=anchor(suite),
        aria_labelledby=f"{anchor(suite)}-title",
    )


def _coded(text: str) -> list[Child]:
    """A docstring's paragraph, with what stands between `backticks` as code."""
    return [tag("code", part) if index % 2 else part for index, part in enumerate(text.split("`"))]


def _block(run: Run, block: Sequence[Group]) -> Markup:
    """The rows of benchmarks that share a table."""
    rows = [(group, record) for group in block for record in group.records]
    columns = tables.columns(run, block, [record for _, record in rows])
    name = SEPARATOR.join([plain(block[0].path if len(block) == 1 else block[0].suite), *block[0].facts()])
    cells = [[tables.case_words(block, group, row), *_cells(run, group, row, columns)] for group, row in rows]
    return join([table(name, ["case", *columns], cells, tables.RIGHT), lines(tables.notes(block), class_="notes")])


def _cells(run: Run, group: Group, record: Record, columns: Sequence[str]) -> list[Child]:
    """The row's cells; a status that is a failure is told by a sign, too."""
    words: list[Child] = list(tables.cells(run, group, record, columns))
    if record.status in FAILED and "status" in columns:
        at = list(columns).index("status")
        words[at] = tag("span", f"{MARKS['bad']} {words[at]}", class_="bad")
    return words
