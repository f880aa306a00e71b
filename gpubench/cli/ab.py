"""The ab command: two things that can be run now, measured against each other."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gpubench.cli import options
from gpubench.cli.options import EFFORT
from gpubench.exits import Exit

SIDES_PANEL = "The two sides"
SIDE_HELP = "python=PATH, env:NAME=VALUE, kernel=FILE.cu; repeatable. As it is if left out."


@options.reading
def ab(
    flags: options.Flags,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="WORD...", help="Plans, suites, suite/benchmark, globs, files.")
    ] = None,
    base: Annotated[
        list[str] | None,
        typer.Option("--base", metavar="SIDE", help=f"The base: {SIDE_HELP}", rich_help_panel=SIDES_PANEL),
    ] = None,
    new: Annotated[
        list[str] | None,
        typer.Option("--new", metavar="SIDE", help=f"The new side: {SIDE_HELP}", rich_help_panel=SIDES_PANEL),
    ] = None,
    blocks: Annotated[
        str | None,
        typer.Option(metavar="N", help="Blocks, a process of each side in each (10).", rich_help_panel=EFFORT),
    ] = None,
    param: options.Params = None,
    dtype: options.Dtype = None,
    device: options.Device = None,
    cache: options.Cache = None,
    load: options.Load = None,
    data: options.Data = None,
    seed: options.Seed = None,
    timer: options.Timer = None,
    quick: options.Quick = False,
    samples: options.Samples = None,
    max_noise: options.MaxNoise = None,
    max_time: options.MaxTime = None,
    case_time: options.CaseTime = None,
    timeout: options.Timeout = None,
    margin: options.Margin = None,
    fail_on: options.FailOn = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="The cases and the processes; run nothing.")] = False,
    tag: options.Tags = None,
    output: options.Output = None,
    only_changed: options.OnlyChanged = False,
    all_rows: options.All = False,
    form: options.ComparisonForm = None,
    json: options.Json = False,
    export: options.ComparisonExport = None,
    annotate: options.Annotate = None,
    summary: options.Summary = None,
    plain: options.Plain = False,
    verbose: options.Verbose = False,
) -> Exit:
    """Two sides that can be run now, in turn, in fresh processes."""
    from gpubench.cli import outcome
    from gpubench.cli.ab_session import Wish, measure
    from gpubench.cli.output import form_of
    from gpubench.cli.session import Request
    from gpubench.errors import UsageError

    if not words:
        raise UsageError("nothing is said to be measured", "gpubench ab --new SIDE matmul-sweep")
    given: dict[str, Any] = {
        "device": device, "cache": cache, "load": load, "data": data, "seed": seed, "timer": timer, "quick": quick,
        "samples": samples, "max_noise": max_noise, "max_time": max_time, "case_time": case_time, "timeout": timeout,
        "tags": tag, "margin": margin, "fail_on": fail_on, "annotate": annotate, "plain": plain, "verbose": verbose,
        **flags,
    }  # fmt: skip
    asked = [*(param or []), *([] if dtype is None else [f"dtype={dtype}"])]
    chosen = form_of(form, json, outcome.FORMS)
    wanted = outcome.Wanted(chosen, all_rows, only_changed, export or [], summary, "auto")
    request = Request(words, asked, given, dry_run=dry_run, output=output)
    return measure(Wish(request, {"base": base or [], "new": new or []}, blocks, wanted))
