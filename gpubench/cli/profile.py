"""`gpubench profile`: one case of a stored run under the hardware profiler, or traced."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpubench.cli import options
from gpubench.cli.row import row_of, without_run
from gpubench.cli.stored import begin, find, read, store_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpubench.cli.screen import Screen
    from gpubench.discovery import Library
    from gpubench.profiling.metrics import Counter
    from gpubench.profiling.pages import Profile
    from gpubench.result import Record, Run
    from gpubench.settings import Settings
    from gpubench.store.folder import Store

FOLDER = "profiles"
"""The folder of profiles, inside that of run files: there `latest` stays the last run that was measured."""
NEEDS_NONE = "gpubench doctor; --trace FILE.json needs no counters"
ELSEWHERE = "--device cuda:0 counts on that one"
NOT_ON_A_CPU = "the CPU has no hardware counters here; of a CPU's row there is a timeline only"


@options.reading
def profile(
    flags: options.Flags,
    run: options.RunWord = None,
    case: options.CaseWords = None,
    param: options.RowParams = None,
    counters: Annotated[
        str | None, typer.Option("--metrics", metavar="A,B", help="What to count, our names or ncu's.")
    ] = None,
    counter_set: Annotated[
        str | None, typer.Option("--set", metavar="default|memory|all", help="A set of counters.")
    ] = None,
    section: Annotated[
        list[str] | None, typer.Option("--section", metavar="NAME", help="A section of ncu too; repeatable.")
    ] = None,
    source: Annotated[bool, typer.Option("--source", help="The lines of the source where warps stall, too.")] = False,
    trace: Annotated[
        str | None, typer.Option("--trace", metavar="FILE.json", help="Instead, a timeline for ui.perfetto.dev.")
    ] = None,
    calls: Annotated[str | None, typer.Option("--calls", metavar="N", help="Calls to trace (1).")] = None,
    device: Annotated[
        str | None,
        typer.Option("--device", "-d", metavar="DEVICE", help="Another GPU than the run's: cuda:N or a UUID."),
    ] = None,
    timeout: Annotated[str | None, typer.Option(metavar="TIME", help="Give up after this (120s).")] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Save here, replacing it.")
    ] = None,
    json: options.JsonOnly = False,
) -> None:
    """A row once more under ncu, or traced: what its kernels do."""
    from gpubench.discovery import Library
    from gpubench.errors import UsageError
    from gpubench.profiling import metrics, pages
    from gpubench.profiling import trace as tracing
    from gpubench.store.folder import Store

    chosen = metrics.chosen(counters, counter_set)
    closer = pages.chosen(section or [], source)
    others = {"--metrics": counters, "--set": counter_set, "--section": section, "--source": source, "-o": output}
    if trace is None and calls is not None:
        raise UsageError("--calls is about a trace", "--trace FILE.json --calls N")
    if trace is not None and (flag := next((flag for flag, value in others.items() if value), None)):
        raise UsageError(f"--trace and {flag}: a trace counts nothing", "two commands")
    number = 0 if trace is None else tracing.check(trace, calls)
    settings, screen = begin(**flags, timeout=timeout)
    store, (run, words) = store_of(settings), without_run(run, case or [])
    base = read(find(run, store, screen), screen)
    record = row_of(base, words, param or [])
    if trace is None and base.device.get("kind") == "cpu":
        raise UsageError(NOT_ON_A_CPU, "gpubench profile RUN CASE --trace FILE.json")
    if device in ("auto", "cpu"):
        raise UsageError(f"--device {device}: the run's own GPU is meant, or name another", "--device cuda:0")
    if record.status != "ok":
        raise UsageError(f"{record.id} is {record.status}: nothing to profile")
    library = Library()
    _check_same(record, library)
    row = _Row(base, record, library, settings, screen, json, device)
    if trace is not None:
        _trace(row, trace, number)
    else:
        _count(row, chosen, closer, Store(store.folder / FOLDER), output)


@dataclass(frozen=True)
class _Row:
    """The row that is meant, and what is known about how to show it."""

    run: Run
    record: Record
    library: Library
    settings: Settings
    screen: Screen
    json: bool
    elsewhere: str | None
    """The device to use in place of the run's own, as the user said it."""

    @property
    def device(self) -> str:
        """The word for the device: by default the very one of the run."""
        kind = self.run.device.get("kind")
        return self.elsewhere or (str(self.run.device.get("uuid") or "auto") if kind == "cuda" else str(kind))

    @property
    def seed(self) -> int:
        """The seed of the run's data."""
        return int(self.run.settings.get("seed", {}).get("value", 0))


def _count(row: _Row, chosen: Sequence[Counter], closer: Profile, folder: Store, output: str | None) -> None:
    """Count, save a run file of the row, and show it."""
    from gpubench.cli.counting import job, teller
    from gpubench.cli.output import check_folder, check_writable, from_here
    from gpubench.errors import DeviceUnavailable
    from gpubench.profiling import counting
    from gpubench.store.folder import RunWriter

    screen = row.screen
    begun = _head(row)
    path = Path(output) if output is not None else folder.new_path(begun, row.record.benchmark)
    if output is not None:
        check_writable("--output", output)
    else:
        check_folder(folder.folder)
    found = counting.count(
        [job(row.record, row.library)],
        chosen,
        device=row.device,
        seed=row.seed,
        timeout=row.settings.timeout,
        profile=closer,
        tell=teller(screen, row.settings),
    )
    (begun.records[0].counters,) = found.counters
    if (reason := counting.reason_of(begun.records[0].counters)) is not None:
        hint = ELSEWHERE if row.elsewhere is None and row.device in reason else NEEDS_NONE
        raise DeviceUnavailable(f"no counters: {reason}", hint)
    RunWriter(path, begun, replace=output is not None).close("complete")
    for line in found.problems:
        screen.warn(f"gpubench: {line}")
    if row.json:
        from gpubench.store.jsonfile import dumps
        from gpubench.store.runfile import record_to_json

        screen.document(dumps(record_to_json(begun.records[0]), indent=1))
    else:
        from gpubench.report import profile as report

        screen.show(report.table(begun, begun.records[0]))
    screen.say(f"saved {from_here(path)}")


def _trace(row: _Row, file: str, calls: int) -> None:
    """Trace, write the file, and show what took the time."""
    from gpubench.cli.counting import job, teller
    from gpubench.cli.output import check_writable, from_here
    from gpubench.profiling import trace
    from gpubench.report import trace as report
    from gpubench.report.words import counted

    check_writable("--trace", file)
    path, screen = Path(file), row.screen
    found = trace.write(
        path,
        job(row.record, row.library),
        calls=calls,
        device=row.device,
        seed=row.seed,
        timeout=row.settings.timeout,
        tell=teller(screen, row.settings),
    )
    if row.json:
        from gpubench.store.jsonfile import dumps

        screen.document(dumps({"record": row.record.id, "trace": from_here(path), **found}, indent=1))
    else:
        screen.show(report.table(row.run, row.record, found))
    screen.say(f"wrote {from_here(path)}: {counted(found['events'], 'event')}; open it in https://ui.perfetto.dev")


def _check_same(record: Record, library: Library) -> None:
    """UsageError where the benchmark is not what it was when the row was measured."""
    from gpubench.errors import UsageError

    path = f"{record.suite}/{record.benchmark}"
    benchmark = library.suite(record.suite).benchmarks.get(record.benchmark)
    if benchmark is None or benchmark.definition != record.definition:
        what = "is not there any more" if benchmark is None else "has changed since that run"
        raise UsageError(f"{path} {what}: its kernels would be others", f"gpubench run {path}")


def _head(row: _Row) -> Run:
    """The run of one row, derived from another: that row as it was measured, on that device, to be given counters; they
    may be of another device, which is then named."""
    import sys
    from dataclasses import replace

    from gpubench import environment

    begun = environment.now()
    base, record = row.run, row.record
    derived = {"run_id": base.run_id, "record": record.id} | ({"device": row.elsewhere} if row.elsewhere else {})
    return replace(
        base,
        run_id=environment.run_id(begun),
        status="partial",
        started_at=begun,
        ended_at=None,
        tool=environment.tool() | {"derived_from": derived},
        argv=["gpubench", *environment.safe_argv(sys.argv[1:])],
        claims=[],
        records=[replace(record, counters={})],
    )
