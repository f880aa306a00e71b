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
    dtype: Annotated[str | None, typer.Option(metavar="NAME", help="The same as -p dtype=NAME.")] = None,
    device: options.Device = None,
    cache: Annotated[
        str | None, typer.Option(metavar="cold|hot", help="The caches before each call.", rich_help_panel=CONDITIONS)
    ] = None,
    load: Annotated[
        str | None,
        typer.Option(metavar="burst|sustained", help="With rests between samples, or not.", rich_help_panel=CONDITIONS),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="normal|uniform|zeros", help="What the inputs hold.", rich_help_panel=CONDITIONS),
    ] = None,
    seed: Annotated[
        str | None, typer.Option(metavar="N", help="The seed of the inputs.", rich_help_panel=CONDITIONS)
    ] = None,
    timer: Annotated[
        str | None,
        typer.Option(metavar="auto|cupti|graph|event|host", help="What takes the samples.", rich_help_panel=CONDITIONS),
    ] = None,
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
    quick: Annotated[
        bool, typer.Option("--quick", help="Each axis's quick values, 0.2 s a case.", rich_help_panel=EFFORT)
    ] = False,
    samples: Annotated[str | None, typer.Option(metavar="N", help="Exactly N a case.", rich_help_panel=EFFORT)] = None,
    max_noise: Annotated[
        str | None, typer.Option(metavar="PCT", help="Stop at this noise (0.5%).", rich_help_panel=EFFORT)
    ] = None,
    max_time: Annotated[
        str | None, typer.Option(metavar="TIME", help="For the run; the rest is skipped.", rich_help_panel=EFFORT)
    ] = None,
    case_time: Annotated[
        str | None, typer.Option(metavar="TIME", help="For one case's samples (500ms).", rich_help_panel=EFFORT)
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(metavar="TIME", help="Give a case up after this (120s).", rich_help_panel=EFFORT)
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="The cases and the time they may take; run nothing.")
    ] = False,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Kept with the run; repeatable.", rich_help_panel=OUTPUT)
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Save here, replacing it.", rich_help_panel=OUTPUT),
    ] = None,
    export: Annotated[
        list[str] | None,
        typer.Option("--export", metavar="FILE", help=options.EXPORT_HELP, rich_help_panel=OUTPUT),
    ] = None,
    results: options.Results = None,
    form: options.Form = None,
    json: options.Json = False,
    all_rows: options.All = False,
    no_plot: options.NoPlot = False,
    plain: Annotated[bool, typer.Option("--plain", help="Plain lines, no live view.", rich_help_panel=OUTPUT)] = False,
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
    from gpubench.cli.output import form_of
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
        form=form_of(form, json),
        all_rows=all_rows,
        host_name=host_name,
    )
    return measure(request)
