"""The baseline commands: copies of run files kept beside the project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gpubench.cli import options
from gpubench.cli.help import GroupedCommand, GroupedCommands

if TYPE_CHECKING:
    from gpubench.result import Run
    from gpubench.store.baseline import Baseline

app = typer.Typer(help="Copies of run files to keep with the repository.", cls=GroupedCommands, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name: letters, digits, . _ and -, such as main.")]


@app.command("save", cls=GroupedCommand)
@options.reading
def save(
    flags: options.Flags,
    name: Name,
    runs: Annotated[list[str] | None, typer.Argument(metavar="RUN", help=f"The runs: {options.RUN_WORDS}.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="In place of the runs of this device.")] = False,
    add: Annotated[
        bool, typer.Option("--add", help="Beside them: from five runs on, their spread tells a regression.")
    ] = False,
) -> None:
    """Keep copies of runs under a name.

    One run of a device tells what is suspect, five what is a regression.
    """
    from gpubench.cli.output import from_here
    from gpubench.cli.stored import baselines_of, begin, find, store_of
    from gpubench.errors import UsageError
    from gpubench.store.baseline import check_name
    from gpubench.store.folder import read_run

    check_name(name)
    if replace and add:
        raise UsageError("--replace and --add contradict each other", "one of them")
    settings, screen = begin(**flags)
    words: list[str | None] = [*runs] if runs else [None]
    found = [read_run(find(word, store_of(settings), screen)) for word in words]
    for path in baselines_of(settings).save(name, found, replace, add):
        screen.say(f"saved {from_here(path)}")
    for run in found:
        if without := sum(record.status != "ok" for record in run.records):
            screen.warn(f"gpubench: {without} of {len(run.records)} rows of run {run.run_id} have no number")
    screen.say(f"next  gpubench check --baseline {name} · gpubench compare @{name}")


@app.command("list", cls=GroupedCommand)
def list_(json: options.JsonOnly = False, no_color: options.NoColor = False, debug: options.Debug = False) -> None:
    """The baselines kept here."""
    from gpubench.cli.stored import baselines_of, begin

    settings, _ = begin(no_color=no_color, debug=debug)
    _print(baselines_of(settings).all(), json, no_color)


@app.command("show", cls=GroupedCommand)
def show(
    name: Name, json: options.JsonOnly = False, no_color: options.NoColor = False, debug: options.Debug = False
) -> None:
    """The runs kept under a name."""
    from gpubench.cli.stored import baselines_of, begin

    settings, _ = begin(no_color=no_color, debug=debug)
    _print(baselines_of(settings).named(name.removeprefix("@")), json, no_color)


@app.command("rm", cls=GroupedCommand)
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="NAME, or NAME/FINGERPRINT for one device alone.")],
    quiet: options.Quiet = False,
    no_color: options.NoColor = False,
    debug: options.Debug = False,
) -> None:
    """Delete the runs kept under a name."""
    from gpubench.cli.output import from_here
    from gpubench.cli.stored import baselines_of, begin
    from gpubench.errors import NothingMeasured

    settings, screen = begin(quiet=quiet, no_color=no_color, debug=debug)
    try:
        gone = baselines_of(settings).remove(name)
    except NothingMeasured as error:
        raise NothingMeasured(error.message, "gpubench baseline list") from None
    for path in gone:
        screen.say(f"deleted {from_here(path)}")


def _print(found: list[Baseline], json: bool, no_color: bool) -> None:
    from gpubench.cli.screen import Screen
    from gpubench.errors import UsageError
    from gpubench.report import baselines as report
    from gpubench.store.baseline import read

    screen = Screen(no_color)
    kept: list[report.Kept] = []
    for one in found:
        for path in one.paths:
            run: Run | str
            try:
                run = read(path)
            except UsageError as error:
                run = error.message
            kept.append(report.Kept(one.name, one.fingerprint, path.name, run))
    if json:
        from gpubench.store.jsonfile import dumps

        screen.document(dumps(report.to_json(kept), indent=1))
    else:
        screen.show(report.table(kept))
