"""Commands that read: list, show, roofline, info, schema. None of them measures but `roofline --measure` and `info`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpubench.cli import options
from gpubench.cli.stored import baselines_of, begin, find, read, store_of
from gpubench.exits import Exit

if TYPE_CHECKING:
    from pathlib import Path

    from gpubench.claims.statements import Statement
    from gpubench.discovery import Library
    from gpubench.result import Run
    from gpubench.store.folder import Store
    from gpubench.suite import Suite


@options.reading
def show(
    flags: options.Flags,
    run: options.RunWord = None,
    form: options.Form = None,
    json: options.Json = False,
    all_rows: options.All = False,
    no_plot: options.NoPlot = False,
    export: options.Export = None,
) -> None:
    """The table and the plot of a stored run again."""
    from gpubench.cli import output

    chosen = output.form_of(form, json)
    settings, screen = begin(**flags, no_plot=no_plot)
    output.check_exports(export or [])
    found = read(find(run, store_of(settings), screen), screen)
    output.write_exports(found, export or [], screen)
    output.show_run(found, screen, chosen, all_rows, settings.no_plot)


@options.reading
def roofline(
    flags: options.Flags,
    run: options.RunWord = None,
    measure: Annotated[bool, typer.Option("--measure", help="Measure the ceilings first.")] = False,
    device: options.Device = None,
    form: Annotated[str | None, typer.Option("--format", metavar="FORM", help="table, json or md.")] = None,
    json: options.Json = False,
    all_rows: options.All = False,
    no_plot: options.NoPlot = False,
    export: Annotated[
        list[str] | None,
        typer.Option("--export", metavar="FILE", help="Also to a file: .svg .png .html .md .json"),
    ] = None,
) -> Exit:
    """Points and ceilings of a run. Measures the ceilings if nothing is stored yet, or with --measure."""
    from gpubench.cli.output import check_exports, form_of, write_exports
    from gpubench.cli.screen import PLOT_HEIGHT
    from gpubench.report import roofline as report
    from gpubench.report import roofline_plot

    chosen = form_of(form, json, ("table", "json", "md"))
    settings, screen = begin(**flags, no_plot=no_plot, device=device)
    check_exports(export or [], roofline=True)
    store, code = store_of(settings), Exit.DONE
    path = find(run, store, screen) if run is not None or store.runs() else None
    if measure or path is None:
        from gpubench.cli import session

        screen.say("measuring the ceilings of this device")
        request = session.Request(["ceilings"], [], {**flags, "device": device, "ceilings": "measure"}, silent=True)
        code = session.measure(request)
        if code in (Exit.SIGINT, Exit.SIGTERM):
            return code
    found = read(path or find(None, store, screen), screen)
    if measure:
        found = _under_kept_ceilings(found, store)
    write_exports(found, export or [], screen, roofline=True)
    view = report.view(found)
    if chosen == "json":
        from gpubench.store.jsonfile import dumps

        screen.document(dumps(report.to_json(view), indent=1))
    elif chosen == "md":
        screen.document(report.markdown(view, all_rows))
    else:
        screen.show(report.table(view, all_rows))
        if not settings.no_plot:
            plot = roofline_plot.plot(view, screen.width, PLOT_HEIGHT, screen.colour, screen.ascii)
            if plot:
                screen.write(f"\n{plot}")
    return code


def list_(
    pattern: Annotated[str | None, typer.Argument(metavar="PATTERN", help="Names to show: a glob or a part.")] = None,
    json: options.JsonOnly = False,
    no_color: options.NoColor = False,
    debug: options.Debug = False,
) -> None:
    """Suites, benchmarks, axes and their values, plans, claims."""
    from gpubench.discovery import Library
    from gpubench.errors import UsageError
    from gpubench.report import listing

    _, screen = begin(no_color=no_color, debug=debug)
    library = Library()
    suites, plans = _matching(library.suites(), library.plans(), pattern)
    shown = json or pattern is not None  # else six dozen lines that `gpubench claims` says better
    claims = _claims(library, suites, pattern) if shown else []
    for line in library.warnings:
        screen.warn(f"gpubench: {line}")
    if not suites and not plans and not claims:
        raise UsageError(f"nothing is called {pattern!r}{_near(library, pattern)}", "gpubench list")
    if json:
        from gpubench.store.jsonfile import dumps

        screen.document(dumps(listing.to_json(suites, plans, claims), indent=1))
    else:
        screen.show(listing.table(suites, plans, claims))


def info(
    device: options.Device = None,
    paths: Annotated[bool, typer.Option("--paths", help="Every folder gpubench writes.")] = False,
    json: options.JsonOnly = False,
    results: options.Results = None,
    no_color: options.NoColor = False,
    debug: options.Debug = False,
) -> None:
    """Device, driver, libraries, clocks, limits. --paths lists every folder gpubench writes."""
    import os

    from gpubench import environment
    from gpubench.executor import Bench, WorkerProcess
    from gpubench.report import info as report

    settings, screen = begin(results=results, no_color=no_color, debug=debug, device=device)
    facts: dict[str, Any]
    if paths:
        folder, baselines = store_of(settings).folder, baselines_of(settings).folder
        facts = {"paths": {"results": folder, "ceilings": folder / "ceilings", "baselines": baselines}}
        facts["paths"] = {name: str(path) for name, path in facts["paths"].items()}
    else:
        worker = WorkerProcess(settings.device, Bench({}, {}), settings.timeout, echo=settings.debug)
        try:
            hello = worker.hello
        finally:
            worker.close()
        if hello.notice:
            screen.warn(f"gpubench: {hello.notice}")
        device_facts = dict(hello.facts)
        now = device_facts.pop("at_opening", None)
        facts = {
            "device": device_facts,
            **({} if now is None else {"now": now}),
            "software": dict(hello.software),
            "libraries": environment.libraries(),
            "host": environment.host(),
            "tool": environment.tool(),
            "environment": environment.watched_variables(os.environ),
        }
    if json:
        from gpubench.store.jsonfile import dumps

        screen.document(dumps(report.to_json(facts), indent=1))
    else:
        screen.show(report.table(facts))


def schema() -> None:
    """The JSON Schema of a run file."""
    from gpubench.store import runfile
    from gpubench.store.jsonfile import dumps

    typer.echo(dumps(runfile.schema(), indent=1))


def _under_kept_ceilings(run: Run, store: Store) -> Run:
    """The run under the ceilings kept of its very device, perhaps younger than its own. Its file stays as it is."""
    from dataclasses import replace

    from gpubench import ceilings

    kept, _ = store.ceilings(ceilings.key(run.device, run.software))
    return replace(run, ceilings=ceilings.merged(run.ceilings, kept))


def _claims(library: Library, suites: dict[str, Suite], pattern: str | None) -> list[Statement]:
    """The claims that a pattern is the id of, or that a suite it matches as a whole settles; without a pattern, all."""
    claims = library.claims()
    if pattern is None:
        return list(claims.values())
    if (one := claims.get(pattern.upper())) is not None:
        return [one]
    whole = {name for name, suite in suites.items() if suite.benchmarks == library.suite(name).benchmarks}
    return [claim for claim in claims.values() if claim.suite in whole]


def _matching(
    suites: dict[str, Suite], plans: dict[str, Path], pattern: str | None
) -> tuple[dict[str, Suite], dict[str, Path]]:
    """Those that a pattern is the name of; else those whose names it matches, and of other suites the benchmarks that
    it matches."""
    if pattern is None:
        return suites, plans
    import copy
    from fnmatch import fnmatchcase

    wanted = pattern.replace("_", "-")
    if wanted not in suites and wanted not in plans and not any(sign in wanted for sign in "*?["):
        wanted = f"*{wanted}*"
    found = {}
    for name, suite in suites.items():
        whole = fnmatchcase(name, wanted)
        kept = {key: each for key, each in suite.benchmarks.items() if whole or fnmatchcase(each.path, wanted)}
        if kept:
            found[name] = copy.copy(suite)
            found[name].benchmarks = kept
    return found, {name: path for name, path in plans.items() if fnmatchcase(name, wanted)}


def _near(library: Library, pattern: str | None) -> str:
    """The name that was probably meant, to stand at the end of a message."""
    from gpubench.nearest import did_you_mean

    benchmarks = [each.path for suite in library.suites().values() for each in suite.benchmarks.values()]
    return did_you_mean(pattern or "", [*library.names(), *library.plans()]) or did_you_mean(pattern or "", benchmarks)
