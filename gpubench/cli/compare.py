"""The compare command: two stored runs, row by row; its exit code is what a build goes by."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Annotated

import typer

from gpubench.cli import options
from gpubench.exits import Exit

WORDS_HELP = (
    f"The runs: {options.RUN_FORMS}. One: the base, compared with the latest, or the file of an A/B measurement. "
    "More than two: the last is new."
)


@options.reading
def compare(
    flags: options.Flags,
    runs: Annotated[list[str] | None, typer.Argument(metavar="[BASE]... [NEW]", help=WORDS_HELP)] = None,
    margin: options.Margin = None,
    fail_on: options.FailOn = None,
    host_mismatch: options.HostMismatch = None,
    why: Annotated[
        str | None,
        typer.Option("--why", metavar="ROW", help="All of one row: an id, or words such as n=1024."),
    ] = None,
    only_changed: options.OnlyChanged = False,
    all_rows: options.All = False,
    form: options.ComparisonForm = None,
    json: options.Json = False,
    export: options.ComparisonExport = None,
    annotate: options.Annotate = None,
    summary: options.Summary = None,
) -> Exit:
    """Two stored runs, row by row: what got slower, what is missing."""
    from gpubench.cli import outcome
    from gpubench.cli.output import form_of
    from gpubench.cli.selfcheck import say_rates
    from gpubench.cli.sides import sides_of
    from gpubench.cli.stored import begin, store_of
    from gpubench.compare.judge import MIN_HISTORY
    from gpubench.errors import UsageError
    from gpubench.report import comparison_why
    from gpubench.report.ab import deciding
    from gpubench.store.folder import holds_ab

    chosen = form_of(form, json, outcome.FORMS)
    if why is not None and chosen != "table":
        raise UsageError(f"--why is text for a reader, --format {chosen} has every row", "one of them")
    settings, screen = begin(**flags, margin=margin, fail_on=fail_on, host_mismatch=host_mismatch, annotate=annotate)
    verdicts = outcome.fail_on(settings)
    wanted = outcome.Wanted(chosen, all_rows, only_changed, export or [], summary, settings.annotate)
    outcome.check_files(wanted.exports, summary)
    if runs and len(runs) == 1 and holds_ab(Path(runs[0])):
        from gpubench.cli.ab_show import show_file

        return show_file(Path(runs[0]), settings, wanted, verdicts, screen, why)
    store = store_of(settings)
    sides = sides_of(runs or [], settings.baseline, store, screen)
    gc.freeze()  # the runs stay to the end: a search for garbage among thousands of rows takes a tenth of the command
    judged = outcome.judged(sides, settings)
    code, failing = outcome.decided(judged, verdicts)
    if why is not None:
        screen.write(comparison_why.why(judged, comparison_why.find(judged, why)))
    else:
        outcome.show(judged, wanted, failing, screen)
    outcome.write(judged, wanted, failing, screen)
    outcome.tell(judged, code, chosen, screen, "the same with" if why is None else None)
    if (command := deciding(judged)) is not None:
        screen.say(f"next  {command}   decides what two runs leave suspect")
    say_rates(store.folder, sides.new, "history" if len(sides.base) >= MIN_HISTORY else "compare", screen)
    return code
