"""The compare command: two stored runs, row by row; its exit code is what a build goes by."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from gpubench.cli import options
from gpubench.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpubench.cli.screen import Screen
    from gpubench.verdict import Judged, Row

OUTCOME = {
    Exit.REGRESSION: "regression",
    Exit.FAILED: "failed",
    Exit.NOTHING: "nothing to judge",
    Exit.UNDECIDED: "undecided",
    Exit.NOT_COMPARABLE: "not comparable",
}
"""What each exit code of a comparison means, in words."""
JUDGING, BUILD = "What counts", "For a build"
WORDS_HELP = f"The runs: {options.RUN_FORMS}. One: the base, compared with the latest. More than two: the last is new."


@options.reading
def compare(
    flags: options.Flags,
    runs: Annotated[list[str] | None, typer.Argument(metavar="[BASE]... [NEW]", help=WORDS_HELP)] = None,
    margin: Annotated[
        str | None,
        typer.Option("--margin", metavar="PCT", help="A loss that does not matter, 3%.", rich_help_panel=JUDGING),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            metavar="VERDICTS",
            help="What fails: regression,suspect,failed,missing ...; none.",
            rich_help_panel=JUDGING,
        ),
    ] = None,
    host_mismatch: Annotated[
        str | None,
        typer.Option(
            "--host-mismatch",
            metavar="error|warn",
            help="warn: differences between unlike devices, without a verdict.",
            rich_help_panel=JUDGING,
        ),
    ] = None,
    why: Annotated[
        str | None,
        typer.Option("--why", metavar="ROW", help="All of one row: an id, or words such as n=1024."),
    ] = None,
    only_changed: Annotated[bool, typer.Option("--only-changed", help="No row that is what it was.")] = False,
    all_rows: options.All = False,
    form: Annotated[str | None, typer.Option("--format", metavar="FORM", help="table, json, md, csv or xml.")] = None,
    json: options.Json = False,
    export: Annotated[
        list[str] | None,
        typer.Option("--export", metavar="FILE", help="Also to a file: .json .md .csv, .xml for JUnit."),
    ] = None,
    annotate: Annotated[
        str | None,
        typer.Option(
            "--annotate", metavar="github|none|auto", help="Remarks on the page of a build.", rich_help_panel=BUILD
        ),
    ] = None,
    summary: Annotated[
        str | None,
        typer.Option(
            "--summary",
            metavar="FILE",
            help="Append what changed, as Markdown; GITHUB_STEP_SUMMARY if left out.",
            rich_help_panel=BUILD,
        ),
    ] = None,
) -> Exit:
    """Two stored runs, row by row: what got slower, what is missing."""
    from gpubench import compare as comparing
    from gpubench import gate
    from gpubench.cli.output import form_of
    from gpubench.cli.sides import sides_of
    from gpubench.cli.stored import begin, store_of
    from gpubench.errors import UsageError
    from gpubench.exits import first
    from gpubench.report import comparison, comparison_forms, comparison_why

    chosen = form_of(form, json, ("table", "json", "md", "csv", "xml"))
    if why is not None and chosen != "table":
        raise UsageError(f"--why is text for a reader, --format {chosen} has every row", "one of them")
    settings, screen = begin(**flags, margin=margin, fail_on=fail_on, host_mismatch=host_mismatch, annotate=annotate)
    verdicts = gate.parse(settings.fail_on)
    _check_files(export or [], summary)
    sides = sides_of(runs or [], settings.baseline, store_of(settings), screen)
    gc.freeze()  # the runs stay to the end: a search for garbage among thousands of rows takes a tenth of the command
    judged = comparing.compare(sides.base, sides.new, settings.margin, settings.margins, settings.host_mismatch)
    shown_base = next(run for run in sides.base if run.run_id == judged.base_name)
    judged.base_name, judged.new_name = sides.base_name, sides.new_name
    judged.notes += sides.notes
    judged.details |= {"base": comparison.side(shown_base), "new": comparison.side(sides.new)}
    code, failing = first(gate.decide(judged, verdicts)), gate.failing(judged, verdicts)
    judged.details |= {"fail_on": sorted(verdicts), "exit_code": code.value}
    if why is not None:
        screen.write(comparison_why.why(judged, comparison_why.find(judged, why)))
    elif chosen == "table":
        screen.show(comparison.table(judged, all_rows, only_changed))
    else:
        screen.document(comparison_forms.render(judged, cast(Any, chosen), failing, all_rows, only_changed))
    _write(judged, export or [], summary, failing, screen)
    if settings.annotate == "github" or (settings.annotate == "auto" and os.environ.get("GITHUB_ACTIONS") == "true"):
        for line in comparison_forms.workflow_commands(judged, failing):
            screen.warn(line)
    _tell(judged, code, chosen, screen)
    return code


def _check_files(exports: Sequence[str], summary: str | None) -> None:
    """Before anything is read: a form we cannot write, a file that cannot be written."""
    from gpubench.cli.output import check_writable
    from gpubench.report import comparison_forms

    for name in exports:
        comparison_forms.form_of(name)
        check_writable("--export", name)
    if summary is not None:
        check_writable("--summary", summary)


def _write(judged: Judged, exports: Sequence[str], summary: str | None, failing: Sequence[Row], screen: Screen) -> None:
    """The files asked for. The summary of a job that cannot be written is no reason to lose the verdict."""
    from gpubench.errors import UsageError
    from gpubench.report import comparison_forms

    for name in exports:
        comparison_forms.save(judged, name, failing)
        screen.say(f"exported {name}")
    if summary is not None:
        comparison_forms.append_summary(judged, summary)
    elif named := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            comparison_forms.append_summary(judged, named)
        except UsageError as error:
            screen.warn(f"gpubench: no step summary: {error.message}")


def _tell(judged: Judged, code: Exit, form: str, screen: Screen) -> None:
    """What the exit code says, and what to type next."""
    from gpubench.gate import APART
    from gpubench.report import comparison
    from gpubench.report.words import plain

    if form != "table":
        for note in judged.notes:
            screen.warn(f"gpubench: {note}")
    worst = next((row for row in comparison.ordered(judged.rows) if row.verdict in comparison.DOUBTFUL), None)
    if code is not Exit.DONE:
        apart = {row.reason for row in judged.rows if row.verdict == APART} if code is Exit.NOT_COMPARABLE else set()
        why = f"; {plain(apart.pop())}" if len(apart) == 1 else ""
        screen.warn(f"gpubench: {OUTCOME[code]} (exit {code.value}): {comparison.summary(judged)}{why}")
    if worst is not None:
        screen.say(f"next  the same with --why '{comparison.naming(judged).words[id(worst)]}'")
