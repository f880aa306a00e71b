"""`gpubench check`: the one line a build calls. Measure, compare with the project's baseline, measure again what looks
slower, and say by the exit code whether the build passes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpubench.cli import options
from gpubench.cli.options import JUDGING
from gpubench.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Collection

    from gpubench.cli.checked import Checked
    from gpubench.cli.outcome import Wanted
    from gpubench.cli.screen import Screen
    from gpubench.cli.session import Request
    from gpubench.result import Run
    from gpubench.verdict import Judged, Row


@options.reading
def check(
    flags: options.Flags,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="WORD", help="What to measure; else run: of gpubench.yaml, else the plan ci."),
    ] = None,
    device: options.Device = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The baseline (main).", rich_help_panel=JUDGING),
    ] = None,
    margin: options.Margin = None,
    fail_on: options.FailOn = None,
    host_mismatch: options.HostMismatch = None,
    confirm: Annotated[
        str | None,
        typer.Option(metavar="auto|none", help="Measure again what looks slower.", rich_help_panel=JUDGING),
    ] = None,
    base: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SIDE", help="The base to measure it against, python=PATH ..., as for ab.", rich_help_panel=JUDGING
        ),
    ] = None,
    samples: options.Samples = None,
    max_noise: options.MaxNoise = None,
    max_time: options.MaxTime = None,
    case_time: options.CaseTime = None,
    timeout: options.Timeout = None,
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
    """For a build: measure, compare with the baseline, gate."""
    from gpubench.ab import sides
    from gpubench.cli import outcome
    from gpubench.cli.checked import Checked
    from gpubench.cli.confirming import INTERRUPTED, measured
    from gpubench.cli.output import form_of
    from gpubench.cli.session import Request
    from gpubench.cli.stored import baselines_of, begin
    from gpubench.errors import GpubenchError

    chosen = form_of(form, json, outcome.FORMS)
    measuring: dict[str, Any] = {
        "device": device, "samples": samples, "max_noise": max_noise, "max_time": max_time, "case_time": case_time,
        "timeout": timeout, "tags": tag, "plain": plain, "verbose": verbose, **flags,
        "ceilings": "none",  # no verdict needs them, and a machine of a build keeps none
    }  # fmt: skip
    judging = {
        "baseline": baseline, "margin": margin, "fail_on": fail_on, "host_mismatch": host_mismatch,
        "confirm": confirm, "base": base, "annotate": annotate,
    }  # fmt: skip
    settings, screen = begin(**measuring, **judging)
    verdicts = outcome.fail_on(settings)
    sides.parse(outcome.source(settings, "base"), settings.base)  # wrong ones are known before anything is measured
    wanted = outcome.Wanted(chosen, all_rows, only_changed, export or [], summary, settings.annotate)
    outcome.check_files(wanted.exports, summary)
    chosen_words, names = asked(words or [])
    checked = Checked(settings, baselines_of(settings), chosen_words, device, names)
    request = Request(chosen_words, [], measuring, output=output, silent=True, falls_back=False, begun=checked.begin)
    try:
        code = measured(request)
        if code in INTERRUPTED:
            checked.say_saved(screen)
            return code
        return _gate(checked, request, wanted, verdicts, screen)
    except GpubenchError as error:
        outcome.refuse(error, wanted, screen)
        raise


def asked(words: list[str]) -> tuple[list[str], set[str] | None]:
    """What to measure, and the suites and benchmarks (suite/benchmark) whose rows are asked of the baseline: all of
    them, unless the words are neither none nor a plan. What a plan or a suite no longer has of the baseline is lost."""
    from gpubench.cli.checked import PLAN
    from gpubench.discovery import Library
    from gpubench.plan import plan_among, select
    from gpubench.settings import find_project

    library, project = Library(), find_project(Path.cwd())
    if not words:
        return ([] if project is not None and (project.run or project.include) else [PLAN]), None
    if plan_among(words, library, project) is not None:
        return words, None
    whole = {word: word.endswith(".py") or "/" not in word for word in words}
    chosen = [(each.benchmark, whole[word]) for word in words for each in select([word], library)]
    return words, {benchmark.suite if entire else benchmark.path for benchmark, entire in chosen}


def _gate(checked: Checked, request: Request, wanted: Wanted, verdicts: Collection[str], screen: Screen) -> Exit:
    """Judge, confirm, show; the build's exit code."""
    from gpubench import confirm
    from gpubench.cli import confirming, outcome
    from gpubench.cli.output import from_here
    from gpubench.errors import GpubenchError

    run, path = checked.runs[0]
    judged = outcome.judged(checked.sides(run), checked.settings)
    code, failing = _decided(judged, run, verdicts)
    ids = confirm.doubtful(failing) if checked.settings.confirm == "auto" else []
    if ids:
        way = confirming.in_pairs if checked.settings.base else confirming.in_processes
        try:
            stopped, judged = way(checked, request, judged, ids, screen)
        except GpubenchError:  # a base that does not start takes nothing of what was found
            outcome.show(judged, wanted, failing, screen)
            outcome.write(judged, wanted, failing, screen)
            checked.say_saved(screen)
            raise
        if stopped is not None:
            checked.say_saved(screen)
            return stopped
        code, failing = _decided(judged, run, verdicts)
    outcome.show(judged, wanted, failing, screen)
    outcome.write(judged, wanted, failing, screen)
    checked.say_saved(screen)
    again = f"gpubench compare {checked.pairs or f'@{checked.baseline} {from_here(path)}'}"
    outcome.tell(judged, code, wanted.form, screen, again)
    _advise(checked, judged, screen)
    return code


def _decided(judged: Judged, run: Run, verdicts: Collection[str]) -> tuple[Exit, list[Row]]:
    """The exit code and the rows that fail the build. A run that lost its device has failed, whatever a build fails on:
    nobody knows of the rows that it did not reach."""
    from gpubench.cli import outcome

    return outcome.decided(judged, verdicts, [] if run.status == "complete" else [Exit.FAILED])


def _advise(checked: Checked, judged: Judged, screen: Screen) -> None:
    """What would decide where the runs of the base cannot; others of it, where what is measured is another now."""
    from gpubench.cli.output import from_here
    from gpubench.compare.judge import MIN_HISTORY

    if any(_is_another_now(row) for row in judged.rows):
        run = "RUN" if checked.partly else from_here(checked.runs[0][1])
        then = "of all that it holds" if checked.partly else f"{MIN_HISTORY - 1} more with --add tell a regression"
        screen.say(f"next  gpubench baseline save {checked.baseline} {run} --replace   if that was meant; {then}")
    if not judged.count("suspect"):
        return
    ways = ["--base python=PATH measures against the base itself"]
    if len(checked.base) < MIN_HISTORY:
        save = f"gpubench baseline save {checked.baseline} RUN --add"
        ways.insert(0, f"{MIN_HISTORY} runs of the base tell a regression (here {len(checked.base)}; {save})")
    screen.say(f"next  {', or '.join(ways)}")


def _is_another_now(row: Row) -> bool:
    """Whether a row was lost by a change of what is measured, which no other run brings back: its benchmark is gone or
    another one, or gpubench measures in another way."""
    gone = row.verdict == "missing" and row.new is None
    return gone or any(each.field in ("definition", "method") for each in row.mismatches)
