"""`gpubench profile`: one case of a stored run under the hardware profiler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gpubench.cli import options
from gpubench.cli.stored import begin, find, read, row_of, store_of

if TYPE_CHECKING:
    from gpubench.discovery import Library
    from gpubench.result import Record, Run

FOLDER = "profiles"
"""The folder of profiles, inside that of run files: there `latest` stays the last run that was measured."""


@options.reading
def profile(
    flags: options.Flags,
    run: options.RunWord = None,
    case: options.CaseWord = None,
    param: options.Params = None,
    counters: Annotated[
        str | None, typer.Option("--metrics", metavar="A,B", help="What to count, our names or ncu's.")
    ] = None,
    counter_set: Annotated[
        str | None, typer.Option("--set", metavar="default|memory|all", help="A set of counters.")
    ] = None,
    timeout: Annotated[str | None, typer.Option(metavar="TIME", help="Give up after this (120s).")] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Save here, replacing it.")
    ] = None,
    json: options.JsonOnly = False,
) -> None:
    """A row once more under ncu: what its kernels read and execute."""
    from pathlib import Path

    from gpubench.cli.counting import NO_CUDA, job, teller
    from gpubench.cli.output import check_writable, from_here
    from gpubench.discovery import Library
    from gpubench.errors import DeviceUnavailable, UsageError
    from gpubench.profiling import counting, metrics
    from gpubench.store import RunWriter, Store

    chosen = metrics.chosen(counters, counter_set)
    settings, screen = begin(**flags, timeout=timeout)
    store = store_of(settings)
    base = read(find(run, store, screen), screen)
    record = row_of(base, case, param or [])
    if base.device.get("kind") == "cpu":
        raise UsageError(f"{NO_CUDA}; gpubench profile needs a CUDA device")
    if record.status != "ok":
        raise UsageError(f"{record.id} is {record.status}: nothing to profile")
    library = Library()
    _check_same(record, library)
    begun = _head(base, record)
    folder = Store(store.folder / FOLDER)
    path = Path(output) if output is not None else folder.new_path(begun, record.benchmark)
    if output is not None:
        check_writable("--output", output)
    found = counting.count(
        [job(record, library)],
        chosen,
        device=_device(base),
        seed=int(base.settings.get("seed", {}).get("value", 0)),
        timeout=settings.timeout,
        tell=teller(screen, settings),
    )
    (begun.records[0].counters,) = found.counters
    if (reason := counting.reason_of(begun.records[0].counters)) is not None:
        raise DeviceUnavailable(f"no counters: {reason}", "gpubench doctor")
    RunWriter(path, begun, replace=output is not None).close("complete")
    for line in found.problems:
        screen.warn(f"gpubench: {line}")
    if json:
        from gpubench.jsonfile import dumps
        from gpubench.runfile import record_to_json

        screen.document(dumps(record_to_json(begun.records[0]), indent=1))
    else:
        from gpubench.report import profile as report

        screen.show(report.table(begun, begun.records[0]))
    screen.say(f"saved {from_here(path)}")


def _check_same(record: Record, library: Library) -> None:
    """UsageError where the benchmark is not what it was when the row was measured."""
    from gpubench.errors import UsageError

    path = f"{record.suite}/{record.benchmark}"
    benchmark = library.suite(record.suite).benchmarks.get(record.benchmark)
    if benchmark is None or benchmark.definition != record.definition:
        what = "is not there any more" if benchmark is None else "has changed since that run"
        raise UsageError(f"{path} {what}: its kernels would be others", f"gpubench run {path}")


def _head(base: Run, record: Record) -> Run:
    """The run of one row, derived from another: that row as it was measured, on that device, to be given counters."""
    import secrets
    import sys
    from dataclasses import replace
    from datetime import UTC, datetime

    from gpubench import environment

    now = datetime.now(UTC)
    return replace(
        base,
        run_id=f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(4)}",
        status="partial",
        started_at=now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        ended_at=None,
        tool=environment.tool() | {"derived_from": {"run_id": base.run_id, "record": record.id}},
        argv=["gpubench", *environment.safe_argv(sys.argv[1:])],
        claims=[],
        records=[replace(record, counters={})],
    )


def _device(base: Run) -> str:
    """The word for the very device of a run."""
    kind = base.device.get("kind")
    return str(base.device.get("uuid") or "auto") if kind == "cuda" else str(kind)
