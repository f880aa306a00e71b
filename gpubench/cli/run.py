"""`gpubench run`: the flags, and the story of a run from words to a saved file."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gpubench.cli import options
from gpubench.cli.options import CONDITIONS, EFFORT, OUTPUT
from gpubench.exits import Exit


def run(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORD", help="Plans, suites, suite/benchmark, globs, files. None: the plan quick."),
    ] = None,
    param: options.Params = None,
    dtype: options.Dtype = None,
    device: options.Device = None,
    cache: options.Cache = None,
    load: options.Load = None,
    data: options.Data = None,
    seed: options.Seed = None,
    timer: options.Timer = None,
    ceilings: Annotated[
        str | None,
        typer.Option(metavar="stored|measure|none", help="Where roofs come from.", rich_help_panel=CONDITIONS),
    ] = None,
    counters: Annotated[
        bool,
        typer.Option("--counters", help="Count bytes and requests in a further pass (ncu).", rich_help_panel=EFFORT),
    ] = False,
    energy: Annotated[
        bool, typer.Option("--energy", help="Energy too, of calls back to back.", rich_help_panel=EFFORT)
    ] = False,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="Measure in this process.", rich_help_panel=CONDITIONS)
    ] = False,
    quick: options.Quick = False,
    samples: options.Samples = None,
    max_noise: options.MaxNoise = None,
    max_time: options.MaxTime = None,
    case_time: options.CaseTime = None,
    timeout: options.Timeout = None,
    dry_run: options.DryRun = False,
    tag: options.Tags = None,
    output: options.Output = None,
    export: Annotated[
        list[str] | None,
        typer.Option("--export", metavar="FILE", help=options.EXPORT_HELP, rich_help_panel=OUTPUT),
    ] = None,
    results: options.Results = None,
    form: options.Form = None,
    json: options.Json = False,
    all_rows: options.All = False,
    no_plot: options.NoPlot = False,
    plain: options.Plain = False,
    opened: Annotated[
        bool, typer.Option("--open", help="Report the run beside its file, in a browser.", rich_help_panel=OUTPUT)
    ] = False,
    host_name: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Keep this name of the machine with the run.", rich_help_panel=OUTPUT),
    ] = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    no_color: options.NoColor = False,
    debug: options.Debug = False,
) -> Exit:
    """Measure, show, save. Words are plans, suites, suite/benchmark, globs or files; no word is the plan quick."""
    from gpubench.cli.output import FORMS, form_of
    from gpubench.cli.session import Request, measure

    flags: dict[str, Any] = {
        "device": device, "cache": cache, "load": load, "data": data, "seed": seed, "timer": timer,
        "ceilings": ceilings, "counters": counters, "energy": energy, "in_process": in_process, "quick": quick,
        "samples": samples, "max_noise": max_noise, "max_time": max_time, "case_time": case_time, "timeout": timeout,
        "tags": tag, "results": results, "no_plot": no_plot, "plain": plain, "quiet": quiet, "verbose": verbose,
        "no_color": no_color, "debug": debug,
    }  # fmt: skip
    asked = [*(param or []), *([] if dtype is None else [f"dtype={dtype}"])]
    request = Request(
        words=words or [],
        params=asked,
        flags=flags,
        dry_run=dry_run,
        output=output,
        exports=export or [],
        form=form_of(form, json, ("table", "json") if dry_run else FORMS),
        all_rows=all_rows,
        host_name=host_name,
        opened=opened,
    )
    return measure(request)
