"""The selfcheck commands: how often gpubench's own verdicts are wrong on this machine."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from gpubench.cli import options
from gpubench.cli.help import GroupedCommand, GroupedCommands
from gpubench.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Literal

    from gpubench.cli.screen import Screen
    from gpubench.executor import Executor, Hello
    from gpubench.result import Run
    from gpubench.selfcheck.measure import Planned
    from gpubench.selfcheck.pool import Pool
    from gpubench.store.calibration import Equal, Rule, Slower

    Check = Literal["aa", "inject"]

app = typer.Typer(
    help="How often our own verdicts are wrong on this machine.", cls=GroupedCommands, rich_markup_mode=None
)

PROCESSES, MOST_PROCESSES = 40, 1000
Processes = Annotated[
    str | None, typer.Option("--processes", metavar="N", help="Processes the pool is to have: 40, or from 16 on.")
]
Budget = Annotated[
    str | None, typer.Option("--budget", metavar="TIME", help="Start no process after so long, such as 8m.")
]


@app.command("aa", cls=GroupedCommand)
@options.reading
def aa(
    flags: options.Flags,
    processes: Processes = None,
    budget: Budget = None,
    device: options.Device = None,
    json: options.JsonOnly = False,
) -> Exit:
    """Equal code compared with itself: how often it is called different."""
    return _check("aa", flags, processes, budget, device, json)


@app.command("inject", cls=GroupedCommand)
@options.reading
def inject(
    flags: options.Flags,
    processes: Processes = None,
    budget: Budget = None,
    device: options.Device = None,
    json: options.JsonOnly = False,
) -> Exit:
    """Real extra work, 3 and 5 %: how often it is found."""
    return _check("inject", flags, processes, budget, device, json)


def _check(
    check: Check, flags: options.Flags, processes: str | None, budget: str | None, device: str | None, json: bool
) -> Exit:
    """Grow the pool as far as asked, judge it, keep what was found, show it."""
    import time
    from contextlib import closing

    from gpubench.cli.output import from_here
    from gpubench.cli.stored import begin, store_of
    from gpubench.discovery import Library
    from gpubench.executor import WorkerProcess
    from gpubench.report import selfcheck as report
    from gpubench.selfcheck import measure as selfcheck
    from gpubench.selfcheck.splits import left_out

    settings, screen = begin(**flags, device=device)
    wanted, seconds = _asked(processes, budget)
    until = time.monotonic() + seconds
    folder, bench = store_of(settings).folder, selfcheck.bench(Library())

    def start(word: str) -> Executor:
        return WorkerProcess(word, bench, settings.timeout, timer=settings.timer, echo=settings.debug)

    with closing(start(settings.device)) as first:
        hello = first.hello
        if hello.notice:
            screen.warn(f"gpubench: {hello.notice}")
        kind = str(hello.facts["kind"])
        word = str(hello.facts["uuid"]) if kind == "cuda" else kind  # those that follow are on this very device
        rows = selfcheck.planned(bench, kind)
        pool = selfcheck.pool_of(folder, first, rows)
        with _following(pool, wanted, screen) as told:
            code = _grow(selfcheck.grow(pool, rows, wanted, first, lambda: start(word), until), told)
    if code is not Exit.DONE:
        screen.warn(f"gpubench: interrupted: {len(pool.runs)} processes are kept, the same command goes on")
        return code
    found = _judge(check, pool, rows)
    name, kept = _keep(folder, hello, found)
    if json:
        from gpubench.store.jsonfile import dumps

        screen.document(dumps(report.to_json(check, name, found, from_here(pool.path)), indent=1))
    else:
        screen.show(report.table(found, name))
    if without := left_out(pool.runs):
        screen.warn(f"gpubench: left out, as not every process has a figure of it: {', '.join(without)}")
    for promise in report.promises(found):
        if promise.rate is None:
            screen.warn(f"gpubench: {promise.what}: not judged, no row took just so much longer")
        elif not promise.kept:
            rate = f"{promise.what}: {report.percent(promise.rate)}"
            screen.warn(f"gpubench: {rate}, promised {promise.limits}")
    screen.say(f"kept {from_here(kept)}, from {from_here(pool.path)}")
    return Exit.DONE


def _grow(growing: Iterator[Run], told: Callable[[], None]) -> Exit:
    """Let a pool grow, telling of each process; the exit code of the signal that ended that, if one did."""
    from gpubench.cli.signals import Terminated

    try:
        for _ in growing:
            told()
    except KeyboardInterrupt:
        return Exit.SIGINT
    except Terminated:
        return Exit.SIGTERM
    return Exit.DONE


def _judge(check: Check, pool: Pool, rows: Planned) -> Equal | Slower:
    """What a pool says. NothingMeasured where it is too small."""
    from gpubench import environment
    from gpubench.errors import NothingMeasured
    from gpubench.selfcheck.splits import LEAST_PROCESSES, equal_code, more_work

    if len(pool.runs) < LEAST_PROCESSES:
        few = f"{len(pool.runs)} processes so far, {LEAST_PROCESSES} at least"
        raise NothingMeasured(f"nothing to judge: {few}", "the same command goes on")
    return (
        equal_code(pool.runs, environment.now())
        if check == "aa"
        else more_work(pool.runs, rows.more, environment.now())
    )


def _keep(folder: Path, hello: Hello, found: Equal | Slower) -> tuple[str, Path]:
    """Keep what was found of a device, for `compare` and `ab` to tell: the device's name, and the file."""
    from gpubench import ceilings
    from gpubench.store.calibration import Calibration, Equal, keep

    name = str(hello.facts.get("name") or hello.facts["kind"])
    entry = Calibration(name, aa=found) if isinstance(found, Equal) else Calibration(name, inject=found)
    return name, keep(folder, ceilings.key(hello.facts, hello.software), entry)


def say_rates(folder: Path, run: Run, rule: Rule, screen: Screen) -> None:
    """Tell, in a line, how often this rule was wrong on a run's device, where a self-check has found out."""
    from gpubench import ceilings
    from gpubench.errors import UsageError
    from gpubench.report.selfcheck import sentence
    from gpubench.report.words import device_word
    from gpubench.store import calibration

    try:
        kept = calibration.read(folder, ceilings.key(run.device, run.software))
    except UsageError as error:
        screen.warn(f"gpubench: {error}")
        return
    said = None if kept is None or kept.aa is None else sentence(kept.aa, rule, device_word(run))
    if said is not None:
        screen.say(said)


def _asked(processes: str | None, budget: str | None) -> tuple[int, float]:
    """The processes that a pool is to have, and the seconds for it. UsageError for what cannot be taken."""
    from gpubench.errors import UsageError
    from gpubench.keys import Seconds, Whole
    from gpubench.selfcheck.splits import LEAST_PROCESSES

    sides = f"{LEAST_PROCESSES} at least: two sides of {LEAST_PROCESSES // 2}"
    try:
        count = PROCESSES if processes is None else Whole(LEAST_PROCESSES, MOST_PROCESSES).read(processes)
    except UsageError as error:
        raise UsageError(f"--processes: {error.message}", sides) from None
    try:
        return count, float("inf") if budget is None else Seconds().read(budget)
    except UsageError as error:
        raise UsageError(f"--budget: {error.message}", error.hint) from None


@contextmanager
def _following(pool: Pool, wanted: int, screen: Screen) -> Iterator[Callable[[], None]]:
    """How far the pool has grown, told once for each process: a bar where stderr is a terminal that can redraw, a line
    elsewhere."""
    import time

    from gpubench.cli.live import bar, left

    had, begun = len(pool.runs), time.monotonic()
    if had:
        screen.say(f"going on with {had} processes of {pool.path.name}")
    if screen.quiet or not screen.redraws:

        def line() -> None:
            done = len(pool.runs)
            words = left((time.monotonic() - begun) / (done - had) * (wanted - done))
            screen.say(f"[{done}/{wanted}] {len(pool.runs[-1].records)} rows in a fresh process, {words}")

        yield line
        return
    with bar(screen) as shown:
        task = shown.add_task("", total=wanted, completed=had, suite="processes", left="")

        def move() -> None:
            done = len(pool.runs)
            shown.update(task, completed=done, left=left((time.monotonic() - begun) / (done - had) * (wanted - done)))

        yield move
