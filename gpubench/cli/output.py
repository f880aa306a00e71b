"""What a command gives out of a run: to stdout in the form asked for, and to files."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gpubench.errors import UsageError

if TYPE_CHECKING:
    from gpubench.cli.screen import Screen
    from gpubench.result import Run
    from gpubench.store.folder import Store

FORMS = ("table", "json", "jsonl", "csv", "md")
_FILE = re.compile(r"(?!latest|ref:|@|-)")
"""What a word begins with that is read as a file."""


def form_of(form: str | None, json: bool, forms: tuple[str, ...] = FORMS) -> str:
    """The form that --format and --json ask for together; UsageError for one that is not among `forms`."""
    if json and form not in (None, "json"):
        raise UsageError(f"--json and --format {form} ask for two forms", "one of them")
    if form is not None and form not in forms:
        raise UsageError(f"--format {form!r} is not one of {', '.join(forms)}")
    return "json" if json else form or "table"


def check_exports(exports: Iterable[str], roofline: bool = False) -> None:
    """Before anything is measured: a form we cannot write, a folder that is not there or not ours to write in."""
    from gpubench.report import export

    for name in exports:
        export.check(name, export.ROOFLINE if roofline else export.RUN)
        check_writable("--export", name)


def check_writable(flag: str, name: str) -> None:
    """UsageError where a file cannot be written: its folder is not there, or not ours to write in."""
    from gpubench.store.jsonfile import shown

    path = Path(name).absolute()
    if not path.parent.is_dir():
        raise UsageError(f"{flag} {shown(Path(name))}: there is no folder {shown(path.parent)}")
    if path.is_dir():
        raise UsageError(f"{flag} {shown(Path(name))}: cannot be written: it is a folder")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"{flag} {shown(Path(name))}: cannot be written: no permission", f"another folder for {flag}")


def check_folder(folder: Path) -> None:
    """UsageError where a folder of run files, which need not exist yet, cannot be made or written in."""
    from gpubench.store.journal import ELSEWHERE
    from gpubench.store.jsonfile import shown

    there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not (there.is_dir() and os.access(there, os.W_OK)):
        why = "no permission" if there.is_dir() else "it is no folder"
        raise UsageError(f"cannot write in {shown(there)}: {why}", ELSEWHERE)


def show_run(run: Run, screen: Screen, form: str, all_rows: bool, no_plot: bool) -> None:
    """A run on stdout: the table and a plot, or one document in another form."""
    if form != "table":
        from gpubench.report.export import render

        screen.document(render(run, cast(Any, form), all_rows, screen.width))
        return
    from gpubench.cli.screen import PLOT_HEIGHT
    from gpubench.report import plots, table

    screen.show(table.table(run, all_rows))
    if not no_plot:
        plot = plots.plot(run, screen.width, PLOT_HEIGHT, screen.colour, screen.ascii)
        if plot:
            screen.write("\n" + plot)


def write_exports(run: Run, exports: Iterable[str], screen: Screen, roofline: bool = False) -> None:
    """Write the run, or its roofline, to files, each in the form of its suffix."""
    from gpubench.report import export

    for name in exports:
        (export.save_roofline if roofline else export.save)(run, Path(name))
        screen.say(f"exported {name}")


def as_word(path: Path, store: Store) -> str:
    """How a run's file is typed as RUN: not at all where it is the latest one of the user's folder, which is what
    commands take by themselves; else so that no shell and no command takes it for anything else."""
    newest = store.runs()[:1]
    if newest and newest[0].absolute() == path.absolute():
        return ""
    text = from_here(path)
    return shlex.quote(text if _FILE.match(text) else f"./{text}")


def from_here(path: Path) -> str:
    """A path for the user: from where they stand if it is below that."""
    from gpubench.store.jsonfile import shown

    try:
        return shown(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return shown(path)
