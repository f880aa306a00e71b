"""The story of a run: from words to cases, from cases to rows, from rows to a saved file, a table and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from gpubench import ceilings, doctor, environment, surroundings
from gpubench.claims import judge as claims
from gpubench.cli.counting import count_rows
from gpubench.cli.live import terminal_restored, view
from gpubench.cli.output import as_word, check_exports, check_folder, from_here, show_run, write_exports
from gpubench.cli.screen import Screen
from gpubench.cli.signals import Terminated, undisturbed
from gpubench.discovery import Library
from gpubench.errors import DeviceLost, GpubenchError, NothingMeasured, UsageError
from gpubench.executor import Bench, Executor, InProcess, WorkerProcess
from gpubench.exits import Exit, first
from gpubench.keys import KEYS
from gpubench.params import parse_params
from gpubench.plan import DEFAULT_PLAN, Plan, Selected, cases, plan_among, select
from gpubench.report.closing import closing_lines
from gpubench.report.words import SEPARATOR, counted, device_name, plain
from gpubench.result import CONDITIONS, QUICK, Ceiling, Param, Record, Run, RunStatus
from gpubench.runner import Effort, run
from gpubench.sampling import Stopping
from gpubench.settings import Settings, find_project, resolve
from gpubench.steady import LEAST_S
from gpubench.store.folder import RunWriter, Store, default_folder
from gpubench.store.jsonfile import dumps
from gpubench.suite import Case
from gpubench.sustained import LEAST_MEASURED_S

Rows = Generator[Record, None, None]


@dataclass
class Request:
    """What the command line asked for, not yet understood."""

    words: list[str]
    params: list[str]
    flags: Mapping[str, Any]
    dry_run: bool = False
    output: str | None = None
    exports: Sequence[str] = ()
    form: str = "table"
    all_rows: bool = False
    host_name: str | None = None
    opened: bool = False
    """Whether to write a report beside the run's file and open it."""
    silent: bool = False
    """Save, but show nothing: the caller will."""
    falls_back: bool = True
    """Whether `auto` settles for the CPU where there is no CUDA device."""
    chosen: Sequence[Selected] | None = None
    """Rows to measure that no words and -p can say: sizes that belong together. `words` then only name the run."""
    only: Collection[str] | None = None
    """Ids of the rows to measure, where it is not every one."""
    begun: Callable[[Run, Path], None] | None = None
    """Told of the run, which fills as rows are measured, and of its file, before anything is measured; may refuse."""


def measure(request: Request) -> Exit:
    """Measure, show, save."""
    library = Library()
    project = find_project(Path.cwd())
    settings = resolve(request.flags, plan_among(request.words, library, project), os.environ, Path.cwd())
    selected = request.chosen or select(request.words, library, asked_params(request), project)
    check_exports(request.exports)
    screen = Screen(settings.no_color, settings.quiet)
    for line in library.warnings if request.silent else (*library.warnings, *settings.warnings):
        screen.warn(f"gpubench: {line}")
    store = Store(settings.results or default_folder())
    if not request.dry_run:
        check_folder(store.folder if request.output is None else Path(request.output).parent)
    device = "cuda" if settings.device == "auto" and not request.falls_back else settings.device
    with _executor(settings, device, [*selected, *select([ceilings.PLAN], library)]) as executor:
        if executor.hello.notice:
            screen.warn(f"gpubench: {executor.hello.notice}")
        kind = str(executor.hello.facts["kind"])
        planned = cases(selected, kind, settings.quick, settings.conditions)
        if request.only is not None:
            planned = [case for case in planned if case.id in request.only]
        if request.dry_run:
            return _dry(planned, settings, screen, request.form)
        warn_if_busy(kind, screen)
        recover(store, screen)
        begun = head(request, settings, executor)
        what = what_of(request.words, project)
        path = Path(request.output) if request.output is not None else store.new_path(begun, what)
        if request.begun is not None:
            request.begun(begun, path)
        writer = RunWriter(path, begun, replace=request.output is not None)
        if settings.verbose:
            _explain(settings, begun, screen)
        code = Session(settings, screen, library, store, executor, writer).run(planned)
    if not request.silent:
        _show(begun, writer, request, settings, screen)
    return code


def asked_params(request: Request) -> dict[str, tuple[Param, ...]]:
    """Every -p, by axis. A condition's flag is one too: --cache hot is -p cache=hot, and outranks a plan's values."""
    params = parse_params(request.params)
    for name in CONDITIONS:
        if (value := request.flags.get(name)) is not None:
            if name in params:
                raise UsageError(f"both --{name} and -p {name} are given", f"one list: -p {name}=VALUE,VALUE")
            params[name] = (str(value),)
    return params


@dataclass
class Session:
    """A run under way: everything that is open while cases are measured."""

    settings: Settings
    screen: Screen
    library: Library
    store: Store
    executor: Executor
    writer: RunWriter

    @property
    def effort(self) -> Effort:
        """How hard to measure."""
        return effort_of(self.settings)

    def run(self, planned: Sequence[Case]) -> Exit:
        """Measure the cases and close the file, whatever happens in between; the exit code."""
        status: RunStatus = "complete"
        codes: list[Exit] = []
        try:
            calibration = self.executor.calibrate()
            self.writer.update(device={**self.writer.run.device, "calibration": calibration})
            self.writer.update(ceilings=self._ceilings(planned))
            with closing(self._measure(planned, self.effort, self.settings.max_time)) as records:
                for record in records:
                    with undisturbed():
                        self.writer.add(record)
            self._keep_own_ceilings(planned)
            asked = self._judge()
            if self.settings.counters:
                codes = self._count(asked)
        except KeyboardInterrupt:
            status, codes = self._stopped, [Exit.SIGINT]
        except Terminated:
            status, codes = self._stopped, [Exit.SIGTERM]
        except DeviceLost as error:
            status, codes = "partial", [Exit.FAILED]
            self.screen.warn(f"gpubench: {error}")
        except BaseException:
            self._close(self.writer.run.status)
            raise
        self._close(status)
        if status == "interrupted":
            terminal_restored()
            done = len(self.writer.run.records)
            self.screen.warn(f"gpubench: interrupted after {done} of {len(planned)} cases")
        return first([*codes, *outcome(self.writer.run.records, planned)])

    @property
    def _stopped(self) -> RunStatus:
        """The status of a run that a signal ends: one that is whole, and only being counted, stays complete."""
        return "complete" if self.writer.run.status == "complete" else "interrupted"

    def _count(self, asked: set[str]) -> list[Exit]:
        """The rows' counters, and what the claims are with them; the exit codes. The file is whole before: nothing that
        happens while ncu runs takes anything from it."""
        self.executor.close()  # its memory is needed, and its context is not to be counted
        with undisturbed():
            self.writer.settle("complete", environment.now())
        codes = count_rows(self.writer, asked, self.library, self.settings, self.screen)
        if not codes:
            self._judge()
        return codes

    def _judge(self) -> set[str]:
        """Say what the rows mean for the claims that their suites are about. The ids of the rows whose counters the
        rules asked for."""
        asked = set[str]()
        suites = {record.suite: self.library.suite(record.suite) for record in self.writer.run.records}
        if any(suite.claims for suite in suites.values()):
            with undisturbed():
                self.writer.update(claims=claims.in_run(self.writer.run, self.library.claims().values(), suites, asked))
        return asked

    def _close(self, status: RunStatus) -> None:
        """Write the file in peace: a second Ctrl-C must not take what the first one left."""
        with undisturbed(forget=True):
            self.writer.close(status, environment.now())
            self.executor.close()

    def _measure(self, planned: Sequence[Case], effort: Effort, max_time: float | None) -> Rows:
        with view(self.screen, len(planned), self.settings) as seen:
            for event in run(planned, self.executor, effort, max_time):
                if isinstance(event, Record):
                    yield event  # it is saved before it is shown
                seen.event(event)

    @property
    def _has_roofs(self) -> bool:
        """Whether ceilings are wanted of this device at all."""
        return self.settings.ceilings != "none" and self.executor.hello.facts["kind"] != "fake"

    def _ceilings(self, planned: Sequence[Case]) -> list[Ceiling]:
        """The roofs stored of this device, and those that had to be measured now."""
        if not self._has_roofs:
            return []
        hello = self.executor.hello
        stored, problem = self.store.ceilings(ceilings.key(hello.facts, hello.software))
        if problem:
            self.screen.warn(f"gpubench: {problem}")
        known = [] if self.settings.ceilings == "measure" else stored
        todo = ceilings.missing(self.library, str(hello.facts["kind"]), planned, known, hello.facts)
        todo = [case for case in todo if case.id not in {each.id for each in planned}]
        if not todo:
            return known
        self.screen.say(f"measuring the ceilings of this device first ({len(todo)} cases)")
        budget = cast(float, self.library.plan(ceilings.PLAN).values.get("case_time", self.settings.case_time))
        effort = replace(self.effort, stopping=Stopping(self.settings.max_noise, budget))
        found = self._roofs(self._measure(todo, effort, None), todo, effort)
        self._keep(found)
        return ceilings.merged(known, found)

    def _keep_own_ceilings(self, planned: Sequence[Case]) -> None:
        """Rows of this run that are roofs join its ceilings, and the store's."""
        if not self._has_roofs:
            return
        own = self._roofs(self.writer.run.records, planned, self.effort)
        if own:
            best = ceilings.merged(self.writer.run.ceilings, own)
            self.writer.update(ceilings=best)
            self._keep(best)

    def _roofs(self, records: Iterable[Record], measured: Sequence[Case], effort: Effort) -> list[Ceiling]:
        """The roofs among rows, each measured a second time: the best of many rows is partly the luckiest."""
        cache = self.executor.hello.facts.get("last_level_cache_bytes")
        found = ceilings.from_records(records, environment.now(), cache)
        again = ceilings.winners(found, measured)
        return ceilings.settled(
            found, ceilings.from_records(self._measure(again, effort, None), environment.now(), cache)
        )

    def _keep(self, found: Sequence[Ceiling]) -> None:
        """Keep roofs for the next run; a store that cannot be written costs a warning."""
        hello = self.executor.hello
        try:
            if found:
                self.store.keep_ceilings(ceilings.key(hello.facts, hello.software), found)
        except UsageError as error:
            self.screen.warn(f"gpubench: the ceilings are not kept: {error.message}")


def effort_of(settings: Settings) -> Effort:
    """How hard settings ask to measure."""
    stopping = Stopping(settings.max_noise, settings.case_time, settings.samples)
    return Effort(stopping, settings.timer, settings.seed, settings.energy)


def outcome(records: Iterable[Record], planned: Sequence[Case]) -> list[Exit]:
    """What the rows say about the run: failed where a case that ought to give a number did not, nothing where none did.

    Running out of memory is a failure only where the size was asked for by hand.
    """
    records = list(records)
    by_hand = {case.id for case in planned if case.by_hand}
    failed = [
        record
        for record in records
        if record.status in ("incorrect", "error", "timeout") or (record.status == "oom" and record.id in by_hand)
    ]
    codes = [Exit.FAILED] if failed else []
    if not any(record.status == "ok" for record in records):
        codes.append(Exit.NOTHING)
    return codes


@contextmanager
def _executor(settings: Settings, word: str, selected: Sequence[Selected]) -> Iterator[Executor]:
    """Whoever measures these benchmarks on the device that a word means."""
    benchmarks = {each.benchmark.path: each.benchmark for each in selected}
    bench = Bench(benchmarks, {each.benchmark.suite: each.benchmark.file for each in selected})
    executor: Executor
    if settings.in_process:
        from gpubench.devices.find import find

        device, notice = find(word)
        executor = InProcess(device, bench, settings.timer, notice)
    else:
        executor = WorkerProcess(word, bench, settings.timeout, timer=settings.timer, echo=settings.debug)
    try:
        yield executor
    finally:
        executor.close()


def warn_if_busy(kind: str, screen: Screen) -> None:
    """Before a CPU is measured that has other work: its rows will show that work."""
    load, cores = surroundings.load(), os.cpu_count()
    if kind == "cpu" and load is not None and cores and doctor.busy(kind, load, cores):
        screen.warn(f"gpubench: this machine is busy (load average {load:.1f} on {cores} cores): expect noisy rows")


def head(request: Request, settings: Settings, executor: Executor) -> Run:
    """The run without its rows."""
    hello = executor.hello
    facts, software = dict(hello.facts), dict(hello.software)
    if hello.notice:
        facts["notice"] = hello.notice
    begun = environment.now()
    return Run(
        run_id=environment.run_id(begun),
        status="partial",
        started_at=begun,
        ended_at=None,
        tool=environment.tool(),
        argv=["gpubench", *environment.safe_argv(sys.argv[1:])],
        settings=settings.origins(),
        tags=[*settings.tags, *([QUICK] if settings.quick and QUICK not in settings.tags else [])],
        vcs=environment.vcs(Path.cwd()),
        ci=environment.ci(os.environ),
        host=environment.host(request.host_name),
        device=facts,
        software={"python": sys.version.split()[0], **software},
        fingerprint=environment.fingerprint(facts, software, os.environ),
    )


def what_of(words: Sequence[str], project: Plan | None) -> str:
    """What was asked for, for the name of a file: the words, or without any what the project's file runs."""
    asked = words or ([] if project is None else [*project.include, *project.run])
    return " ".join(Path(word).stem if word.endswith((".py", ".yaml")) else word for word in asked) or DEFAULT_PLAN


def recover(store: Store, screen: Screen) -> None:
    """Fold what dead runs left behind into run files, and say so."""
    for journal in store.orphans():
        try:
            saved = store.recover(journal)
        except GpubenchError as error:
            screen.warn(f"gpubench: {error}")
            continue
        if saved is not None:
            screen.say(f"recovered an unfinished run: {from_here(saved)}")


def _word(path: Path) -> str:
    """How a run's file is typed as RUN behind commands that are not told of --results, nor of a plan's `results`."""
    variable = KEYS["results"].variable
    usual = resolve({}, None, {variable: os.environ.get(variable, "")}, Path.cwd())
    return as_word(path, Store(usual.results or default_folder()))


def _dry(planned: Sequence[Case], settings: Settings, screen: Screen, form: str) -> Exit:
    """The cases, and at most how long their samples take; at least, where a load is sustained as long as it takes."""
    if not planned:
        raise NothingMeasured("no case is selected", "gpubench list")
    sustained = sum(case.conditions.load == "sustained" for case in planned)
    whole = len(planned) * settings.case_time + sustained * (LEAST_S + LEAST_MEASURED_S)
    seconds = None if settings.samples else min(whole, settings.max_time or float("inf"))
    if form == "json":
        screen.document(dumps({"cases": [case.id for case in planned], "samples_s": seconds}, indent=1))
        return Exit.DONE
    for case in planned:
        screen.write(plain(case.id))
    bound = "least" if sustained else "most"
    effort = f"{settings.samples} samples each" if seconds is None else f"at {bound} {seconds:.3g} s of samples"
    screen.say(f"{counted(len(planned), 'case')}, {effort}; set-up and checks come on top")
    return Exit.DONE


def _explain(settings: Settings, begun: Run, screen: Screen) -> None:
    """The device, and every setting that is not the default, with its origin."""
    versions = [f"{name} {version}" for name, version in begun.software.items() if version]
    screen.say(SEPARATOR.join([device_name(begun), *versions]))
    for name, setting in settings.resolved.items():
        if setting.origin != "default":
            screen.say(f"{name} = {setting.value} ({setting.origin})")


def _show(run_: Run, writer: RunWriter, request: Request, settings: Settings, screen: Screen) -> None:
    """Exports to their files, the result to stdout, the closing lines to stderr."""
    try:
        write_exports(run_, request.exports, screen)
    finally:  # an export that cannot be written hides neither the result nor where it is saved
        show_run(run_, screen, request.form, request.all_rows, settings.no_plot)
        place = from_here(writer.path) if run_.records else "nothing"
        for line in closing_lines(run_, place, _word(writer.path), request.words):
            screen.say(line)
    if request.opened and run_.records:
        from gpubench.cli.report import beside

        beside(run_, writer.path, screen)
