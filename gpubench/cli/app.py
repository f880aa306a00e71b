"""The Typer application: which commands there are, in which groups help shows them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

import typer

from gpubench import __version__
from gpubench.cli import (
    ab,
    advise,
    baseline,
    check,
    claims,
    compare,
    doctor,
    explain,
    profile,
    read,
    report,
    run,
    selfcheck,
)
from gpubench.cli.help import GroupedCommand, GroupedCommands
from gpubench.errors import UsageError
from gpubench.exits import Exit
from gpubench.nearest import nearest

COMPLETION = "_GPUBENCH_COMPLETE"
"""The variable by which a shell asks for completions."""
START, UNDERSTAND, DECIDE, MORE = "Start", "Understand", "Decide", "More"

WELCOME = """gpubench finds out what a GPU really does, says why, and says when it got slower.
  gpubench run            measure a few things in a minute, show and save them
  gpubench run matmul-sweep && gpubench roofline
  gpubench list           what can be measured
  gpubench --help         every command"""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gpubench {__version__}")
        raise typer.Exit


def root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find out what a GPU really does, why, and when it got slower."""
    if context.invoked_subcommand is None:
        typer.echo(WELCOME)


COMMANDS: dict[str, tuple[str, Callable[..., Any] | typer.Typer]] = {
    "run": (START, run.run),
    "roofline": (START, read.roofline),
    "list": (START, read.list_),
    "doctor": (START, doctor.doctor),
    "info": (START, read.info),
    "show": (UNDERSTAND, read.show),
    "claims": (UNDERSTAND, claims.claims),
    "explain": (UNDERSTAND, explain.explain),
    "advise": (UNDERSTAND, advise.advise),
    "profile": (UNDERSTAND, profile.profile),
    "report": (UNDERSTAND, report.report),
    "compare": (DECIDE, compare.compare),
    "ab": (DECIDE, ab.ab),
    "check": (DECIDE, check.check),
    "baseline": (DECIDE, baseline.app),
    "selfcheck": (MORE, selfcheck.app),
    "schema": (MORE, read.schema),
}


def application(names: Iterable[str]) -> typer.Typer:
    """The application with these commands."""
    made = typer.Typer(
        name="gpubench",
        help="Find out what a GPU really does, why, and when it got slower.",
        no_args_is_help=False,
        add_completion=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,
        cls=GroupedCommands,
    )
    made.callback(invoke_without_command=True)(root)
    for name in names:
        group, what = COMMANDS[name]
        if isinstance(what, typer.Typer):
            made.add_typer(what, name=name, rich_help_panel=group)
        else:
            made.command(name, cls=GroupedCommand, rich_help_panel=group)(what)
    return made


app = application(COMMANDS)


def call(arguments: Sequence[str]) -> Exit:
    """Run one command; its exit code. UsageError for a wrong command, flag or argument, in the form of our own.

    Typer's own `main` is for completion alone: it turns a broken pipe and Ctrl-C into exit codes of its own.
    """
    if COMPLETION in os.environ:
        typer.main.get_command(app).main(prog_name="gpubench")
    # Typer reads the parameters of every command there is, which takes as long as drawing a table.
    command = typer.main.get_command(application(arguments[:1]) if arguments and arguments[0] in COMMANDS else app)
    try:
        with command.make_context("gpubench", list(arguments)) as context:
            code = command.invoke(context)
    except typer.Exit as leave:
        return Exit(leave.exit_code)
    except _refusal() as error:
        raise _told(error, arguments) from None
    return Exit(code) if isinstance(code, int) else Exit.DONE


def _refusal() -> type[Exception]:
    """What Typer raises for a wrong command line: the class below which its BadParameter stands. It was click's own
    until Typer took click in; both are called ClickException."""
    return next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def _told(error: Any, arguments: Sequence[str]) -> UsageError:
    """Typer's complaint as one line of ours, with the help that answers it."""
    text = error.format_message()
    if hasattr(error, "possibilities"):  # of a wrong option, all those that begin alike
        name = nearest(error.option_name, error.possibilities or ())
        text = error.message + (f"; did you mean {name}?" if name else "")
    context = getattr(error, "ctx", None)
    path = "gpubench" if context is None else context.command_path
    if path == "gpubench" and arguments[0] in COMMANDS:
        path = f"gpubench {arguments[0]}"
    return UsageError(f"{text[:1].lower()}{text[1:]}".rstrip("."), f"{path} --help")
