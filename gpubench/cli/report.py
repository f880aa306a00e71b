"""`gpubench report`: one run, or several compared, as one file to look at and to pass around."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpubench.cli import options
from gpubench.cli.stored import begin, find, read, store_of

if TYPE_CHECKING:
    from gpubench.cli.screen import Screen
    from gpubench.result import Run
    from gpubench.settings import Settings
    from gpubench.store.folder import Store

HTML = ".html"
WORDS_HELP = f"The run: {options.RUN_WORDS}; the file of ab. Several: a comparison, of which the last is new."


@options.reading
def report(
    flags: options.Flags,
    runs: Annotated[list[str] | None, typer.Argument(metavar="RUN", help=WORDS_HELP)] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="The report: .html .md .csv .xml, .svg .png of one run."),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    """One file to pass around: verdict, charts, every row."""
    from gpubench.cli.output import check_writable
    from gpubench.cli.sides import held
    from gpubench.errors import UsageError
    from gpubench.store.folder import holds_ab

    if output is None:
        raise UsageError("a report needs a file", "gpubench report latest -o report.html")
    settings, screen = begin(**flags)
    words, path, store = runs or [], Path(output), store_of(settings)
    check_writable("--output", output)
    if len(words) == 1 and holds_ab(Path(words[0])):
        _measured_in_pairs(Path(words[0]), settings, screen, path)
    elif len(words) > 1 or (words and held(words[0]) is not None):
        _compared(words, settings, store, screen, path)
    else:
        _form_of_run(path)
        write_run(read(find(words[0] if words else None, store, screen), screen), path)
    screen.say(f"saved {output}")
    if show:
        open_in_browser(path, screen)


def write_run(run: Run, path: Path) -> None:
    """Write the report of one run, in the form of the file's suffix."""
    from gpubench.claims.judge import stored
    from gpubench.report import export, junit
    from gpubench.store.jsonfile import write_atomic

    form = _form_of_run(path)
    stored(run, "this run")
    if form == HTML:
        from gpubench.discovery import Library
        from gpubench.report.html import questions
        from gpubench.report.html import run as page

        library = Library()
        there = set(library.names())
        names = dict.fromkeys(record.suite for record in run.records)
        asked = {name: questions.read(name, library.suite(name).file if name in there else None) for name in names}
        write_atomic(path, page.report(run, library.claims(), asked))
    elif form == ".xml":
        write_atomic(path, junit.junit(run).encode())
    elif form == ".md":
        write_atomic(path, export.report_markdown(run).encode())
    else:
        export.save(run, path)


def beside(run: Run, file: Path, screen: Screen) -> None:
    """Write the report of a run that was just measured beside its file, and show it: `run --open`."""
    from gpubench.cli.output import from_here

    path = file.with_name(f"{file.name.removesuffix('.gz').removesuffix('.json')}{HTML}")
    write_run(run, path)
    screen.say(f"saved {from_here(path)}")
    open_in_browser(path, screen)


def open_in_browser(path: Path, screen: Screen) -> None:
    """Show a file in the user's browser. Where there is none, as in a build or on a remote machine, say where it is."""
    import os
    import sys
    import webbrowser

    has_screen = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    shown = False
    if has_screen and not os.environ.get("CI"):
        try:
            shown = webbrowser.open(path.absolute().as_uri())
        except (OSError, webbrowser.Error):
            shown = False
    if not shown:
        screen.say(f"no browser here: open {path}")


def _form_of_run(path: Path) -> str:
    """The suffix of a report of one run; UsageError, naming the known ones, for any other."""
    from gpubench.errors import UsageError
    from gpubench.report import export
    from gpubench.store.jsonfile import shown

    known = list(dict.fromkeys([HTML, ".xml", *export.RUN]))
    form = next((each for each in known if path.name.lower().endswith(each) and len(path.name) > len(each)), None)
    if form is None:
        raise UsageError(f"{shown(path)}: no report of that form", f"a name ending in {', '.join(known)}")
    if form in (HTML, ".svg", ".png"):
        from gpubench.report import charts

        charts.check_installed()
    return form


def _compared(words: list[str], settings: Settings, store: Store, screen: Screen, path: Path) -> None:
    """Write the report of a comparison, in the form of the file's suffix."""
    from gpubench.cli import outcome
    from gpubench.cli.sides import sides_of
    from gpubench.report import comparison_forms
    from gpubench.store.jsonfile import write_atomic

    form = _form_of_comparison(path)
    sides = sides_of(words, settings.baseline, store, screen)
    judged = outcome.judged(sides, settings)
    _, failing = outcome.decided(judged, outcome.fail_on(settings))
    if form == HTML:
        from gpubench.report.html import comparison as page

        write_atomic(path, page.report(judged, sides.base, sides.new))
    else:
        comparison_forms.save(judged, str(path), failing)


def _measured_in_pairs(file: Path, settings: Settings, screen: Screen, path: Path) -> None:
    """Write the report of an A/B measurement, judged as `compare` judges its file."""
    from gpubench.ab import judge as abjudge
    from gpubench.cli import outcome
    from gpubench.cli.ab_show import margin_given
    from gpubench.report import comparison_forms
    from gpubench.store.abfile import AbRun
    from gpubench.store.folder import read_measured
    from gpubench.store.jsonfile import write_atomic

    form = _form_of_comparison(path)
    found = read_measured(file)
    assert isinstance(found, AbRun)
    if found.status != "complete":
        screen.warn(f"gpubench: this measurement is {found.status}: {len(found.blocks)} of {found.planned} blocks")
    judged = abjudge.judged(found, margin_given(settings))
    _, failing = outcome.decided(judged, outcome.fail_on(settings))
    if form == HTML:
        from gpubench.report.html import paired as page

        write_atomic(path, page.report(judged, found))
    else:
        comparison_forms.save(judged, str(path), failing)


def _form_of_comparison(path: Path) -> str:
    """The suffix of a report of a comparison; UsageError, naming the known ones, for any other."""
    from gpubench.errors import UsageError
    from gpubench.report import charts, comparison_forms
    from gpubench.store.jsonfile import shown

    suffix, known = path.suffix.lower(), [HTML, *comparison_forms.SUFFIXES]
    if suffix not in known:
        raise UsageError(f"{shown(path)}: no comparison of that form", f"a name ending in {', '.join(known)}")
    if suffix == HTML:
        charts.check_installed()
    return suffix
