"""`gpubench explain`: why a row of a stored run has its time, or why its curve falls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gpubench.cli import options
from gpubench.cli.row import row_of, without_run
from gpubench.cli.stored import begin, find, read, store_of

if TYPE_CHECKING:
    from gpubench.result import Run


@options.reading
def explain(
    flags: options.Flags,
    run: options.RunWord = None,
    case: options.CaseWords = None,
    param: options.RowParams = None,
    curve: Annotated[
        bool, typer.Option("--curve", help="The falls of the run's curves of matrix products, with their causes.")
    ] = False,
    all_rows: Annotated[bool, typer.Option("--all", help="With --curve: every fall, not the ten largest.")] = False,
    json: options.JsonOnly = False,
) -> None:
    """Why a row has its time, and what to change."""
    from gpubench.errors import UsageError
    from gpubench.report import explain as report
    from gpubench.store.jsonfile import dumps

    run, words = without_run(run, case or [])
    if curve and (words or param):
        raise UsageError("--curve is about all rows, CASE and -p about one", "gpubench explain RUN --curve")
    settings, screen = begin(**flags)
    found = read(find(run, store_of(settings), screen), screen)
    if curve:
        curves = report.curves(found, _own_kernels(found))
        if json:
            screen.document(dumps(report.curve_json(found, curves), indent=1))
        else:
            screen.show(report.curve_table(found, curves, all_rows))
        return
    row = report.explanation(found, row_of(found, words, param or []), _own_kernels(found))
    if json:
        screen.document(dumps(report.to_json(found, row), indent=1))
    else:
        screen.show(report.table(found, row, screen.width))


def _own_kernels(run: Run) -> set[str]:
    """The names of the kernels that the run's suites declare; a suite that is not here any more declares none."""
    from gpubench.discovery import Library

    library = Library()
    there = {record.suite for record in run.records} & set(library.names())
    return {kernel.name for name in there for kernel in library.suite(name).kernels}
