"""The story of an A/B measurement: from sides to processes, from blocks to a saved file, a table and an exit code."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from gpubench import environment
from gpubench.ab import measure as ab
from gpubench.ab import sides
from gpubench.ab.paired import LEAST_BLOCKS, MOST_BLOCKS
from gpubench.ab.sides import Side
from gpubench.cli import outcome
from gpubench.cli.ab_show import show
from gpubench.cli.ab_view import view
from gpubench.cli.live import terminal_restored
from gpubench.cli.output import from_here
from gpubench.cli.screen import Screen
from gpubench.cli.session import (
    Request,
    asked_params,
    effort_of,
    head,
    recover,
    warn_if_busy,
    what_of,
)
from gpubench.cli.signals import Terminated, undisturbed
from gpubench.discovery import Library
from gpubench.errors import DeviceLost, DeviceUnavailable, NotComparable, NothingMeasured, UsageError
from gpubench.executor import Bench, WorkerProcess
from gpubench.exits import Exit, first
from gpubench.keys import Whole
from gpubench.plan import Selected, cases, plan_among, select
from gpubench.report.words import counted, plain
from gpubench.result import Run, RunStatus
from gpubench.runner import Effort
from gpubench.settings import Settings, find_project, resolve
from gpubench.store.abfile import BASE, SIDES, AbRun, Block, SideFacts, SideName, SideRecord
from gpubench.store.folder import RunWriter, Store, default_folder
from gpubench.suite import Case

FOLDER = "ab"
"""The folder of A/B measurements, inside that of run files: `latest` stays a run."""
FLAGS: Mapping[SideName, str] = {"base": "--base", "new": "--new"}


@dataclass
class Wish:
    """What the command line asked for, not yet understood: `measured` is what is measured, as for a run."""

    measured: Request
    sides: Mapping[SideName, Sequence[str]]
    blocks: str | None
    wanted: outcome.Wanted


def measure(wish: Wish) -> Exit:
    """Measure both sides, save, judge, show."""
    request = wish.measured
    chosen = {name: sides.parse(FLAGS[name], wish.sides[name]) for name in SIDES}
    planned = blocks_of(wish.blocks)
    library, project = Library(), find_project(Path.cwd())
    settings = resolve(request.flags, plan_among(request.words, library, project), os.environ, Path.cwd())
    verdicts = outcome.fail_on(settings)
    selected = select(request.words, library, asked_params(request), project)
    outcome.check_files(wish.wanted.exports, wish.wanted.summary)
    screen = Screen(settings.no_color, settings.quiet)
    for line in library.warnings if request.silent else (*library.warnings, *settings.warnings):
        screen.warn(f"gpubench: {line}")
    with ExitStack() as stack:
        stand = Stand(settings, selected, library, chosen, settings.device, stack)
        found = _begun(request, stand, planned, screen)
        wanted = cases(selected, str(found.device["kind"]), settings.quick, settings.conditions)
        if request.only is not None:
            wanted = [case for case in wanted if case.id in request.only]
        found.cases = [case.id for case in wanted]
        if request.dry_run:
            return _dry(wanted, found, settings, screen)
        if not wanted:
            raise NothingMeasured("no case is selected", "gpubench list")
        warn_if_busy(str(found.device["kind"]), screen)
        store = Store((settings.results or default_folder()) / FOLDER)
        recover(store, screen)
        what = what_of(request.words, project)
        path = Path(request.output) if request.output is not None else store.new_path(found, what)
        if request.begun is not None:
            request.begun(found, path)
        writer = RunWriter(path, found, replace=request.output is not None)
        codes = Session(settings, screen, stand, writer, found).run(wanted)
    screen.say(f"saved {from_here(path)}" if found.records else "nothing was measured, nothing is saved")
    if request.silent or (codes and not found.records):
        return first(codes)
    shown = replace(wish.wanted, annotate=settings.annotate)  # which a file or a variable may say
    return show(found, path, settings, shown, verdicts, screen, broken_off=codes)


def blocks_of(text: str | None) -> int:
    """The number of blocks that --blocks asks for; UsageError below what a verdict needs."""
    if text is None:
        return ab.BLOCKS
    try:
        return int(Whole(LEAST_BLOCKS, MOST_BLOCKS).read(text))
    except UsageError as error:
        raise UsageError(f"--blocks: {error.message}", "a verdict needs 8 at least") from None


def time_for(settings: Settings, planned: int) -> float | None:
    """Seconds for all blocks: what somebody gave, or, as a plan's `max_time` is that of one run, so much for each side
    of each."""
    scale = len(SIDES) * planned if settings.of_plan("max_time") else 1
    return None if settings.max_time is None else scale * settings.max_time


@dataclass
class Stand:
    """Starts processes of either side, all on one device: the word that names it is its UUID once that is known."""

    settings: Settings
    selected: Sequence[Selected]
    library: Library
    sides: Mapping[SideName, Side]
    device: str
    stack: ExitStack
    benches: dict[SideName, Bench] = field(default_factory=dict)
    kernels: dict[SideName, dict[str, str]] = field(default_factory=dict)
    package: Path = field(init=False)

    def __post_init__(self) -> None:
        self.package = self.stack.enter_context(sides.package())
        benchmarks = {each.benchmark.path: each.benchmark for each in self.selected}
        suites = [self.library.suite(name) for name in sorted({each.benchmark.suite for each in self.selected})]
        for name in SIDES:
            files, self.kernels[name] = self.stack.enter_context(sides.files(self.sides[name], suites))
            self.benches[name] = Bench(benchmarks, files)

    def opened(self, name: SideName) -> WorkerProcess:
        """A fresh process of a side. DeviceUnavailable says which side it is that does not start, if it is as somebody
        said."""
        side = self.sides[name]
        try:
            return WorkerProcess(
                self.device,
                self.benches[name],
                self.settings.timeout,
                timer=self.settings.timer,
                python=side.python,
                echo=self.settings.debug,
                environment=side.environment,
                package=None if side.python == sys.executable else self.package,
            )
        except (DeviceUnavailable, UsageError) as error:
            of_side = f"{FLAGS[name]}: " if side.said else ""
            raise type(error)(f"{of_side}{error.message}", error.hint) from error


def _begun(request: Request, stand: Stand, planned: int, screen: Screen) -> AbRun:
    """The measurement without its rows, after a first process of either side: what does not start, or is on another
    device, is known before anything is measured."""
    settings, facts = stand.settings, dict[SideName, SideFacts]()
    run: Run | None = None
    said: set[str] = set()
    for name in SIDES:
        with closing(stand.opened(name)) as executor:
            hello, side = executor.hello, stand.sides[name]
            if hello.notice and hello.notice not in said:
                screen.warn(f"gpubench: {hello.notice}")
                said.add(hello.notice)
            run = run or head(request, settings, executor)
            ab.check_same_device(run, name, executor)
        about = dict(hello.facts), dict(hello.software)
        own = environment.fingerprint(*about, side.environment)
        facts[name] = SideFacts(side.what, stand.kernels[name], *about, own)
        if name == BASE:
            stand.device = (
                str(hello.facts.get("uuid") or "cuda") if hello.facts["kind"] == "cuda" else hello.facts["kind"]
            )
    assert run is not None
    if not any(side.said for side in stand.sides.values()):
        screen.say("both sides are as they are: an A/A measurement, in which nothing should differ")
    return AbRun(
        **{each.name: getattr(run, each.name) for each in fields(Run) if each.name not in ("schema", "records")},
        base=facts["base"],
        new=facts["new"],
        planned=planned,
        order_seed=secrets.randbits(32),
        margin=settings.margin,
        margins=dict(settings.margins or {}),
    )


@dataclass
class Session:
    """A measurement under way."""

    settings: Settings
    screen: Screen
    stand: Stand
    writer: RunWriter
    found: AbRun
    blocks: list[Block] = field(default_factory=list)

    def run(self, planned: Sequence[Case]) -> list[Exit]:
        """Measure, and close the file whatever happens in between; the exit codes of what broke it off."""
        status: RunStatus = "complete"
        codes: list[Exit] = []
        try:
            self._measure(planned, effort_of(self.settings))
        except KeyboardInterrupt:
            status, codes = "interrupted", [Exit.SIGINT]
        except Terminated:
            status, codes = "interrupted", [Exit.SIGTERM]
        except (DeviceLost, DeviceUnavailable, NotComparable) as error:
            apart = isinstance(error, NotComparable)
            status, codes = "partial", [Exit.NOT_COMPARABLE if apart else Exit.FAILED]
            self.screen.warn(f"gpubench: {error}")
        except BaseException:
            self._close("partial")
            raise
        self._close(status)
        if status == "interrupted":
            terminal_restored()
            used = sum(block.unused is None for block in self.blocks)
            self.screen.warn(f"gpubench: interrupted after {used} of {counted(self.found.planned, 'block')}")
        return codes

    def _measure(self, planned: Sequence[Case], effort: Effort) -> None:
        most_s = time_for(self.settings, self.found.planned)
        events = ab.run(self.found, planned, effort, self.stand.opened, most_s)
        with view(self.screen, self.found.planned, len(planned), self.settings) as seen, closing(events):
            for event in events:
                with undisturbed():
                    self._keep(event)
                seen.event(event)

    def _keep(self, event: ab.Event) -> None:
        """Save what is to be saved, before it is shown."""
        match event:
            case SideRecord():
                self.writer.add(event)
            case ab.BlockBegun(block):
                self.writer.update(blocks=[*self.blocks, block])
            case ab.BlockEnded(block):
                self.blocks.append(block)
                self.writer.update(blocks=list(self.blocks))
            case ab.Ended(why):
                self.writer.update(ending=why)

    def _close(self, status: RunStatus) -> None:
        with undisturbed(forget=True):
            self.writer.close(status, environment.now())


def _dry(planned: Sequence[Case], found: AbRun, settings: Settings, screen: Screen) -> Exit:
    """The cases, and how many processes measure each."""
    if not planned:
        raise NothingMeasured("no case is selected", "gpubench list")
    for case in planned:
        screen.write(plain(case.id))
    each = (
        ""
        if settings.samples
        else f", at most {2 * found.planned * len(planned) * settings.case_time:.3g} s of samples"
    )
    screen.say(f"{counted(len(planned), 'case')} in {2 * found.planned} processes{each}; starts and checks come on top")
    return Exit.DONE
