"""Counters for rows: one ncu process runs their cases once more, and each row gets what its own kernels counted.

Kernels are told apart by the NVTX range of their case, and their names and grids are held against what the timer saw:
counters of another kernel than the one that was timed are not attached. A profile, which is looked at by a person, says
where they differ, and is void only where no kernel is the same.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from gpubench import surroundings
from gpubench.profiling import child, ncu, pages, rawpage
from gpubench.profiling.child import Failed, Watch
from gpubench.profiling.matching import Match, match
from gpubench.profiling.metrics import Counter, Wanted
from gpubench.profiling.pages import Profile
from gpubench.profiling.rawpage import Counted
from gpubench.result import KernelSeen
from gpubench.store import jsonfile
from gpubench.suite import Case

COPY = "copy"
"""The name of the range around the copy of known bytes."""
COPY_TOLERANCE = 0.02
"""Share by which the bytes counted of that copy may be off: what its end leaves in the L2, a thirty-second of either
stream at most, is written later."""
BUDGET_S = 240.0
"""Seconds that the rows of a run may take to be counted: a pass may take four minutes where the run itself takes three
to five. ncu replays each kernel and puts memory back between, so that rows of several GB take seconds each."""
NO_TIME = "not counted: time budget (gpubench profile RUN CASE)"
"""Of the rows that the budget did not reach."""
DEVICE = "device"
"""The name under which the process inside ncu tells which device it opened."""
REST = "rest"
"""The name under which the process inside ncu tells what became of all cases that it has not told of."""
MOST_TRIES = 6
"""Starts of ncu: each time it names metrics that it does not know, they are left out."""


@dataclass(frozen=True)
class Job:
    """A row to count: its case, its suite's file, and the activities of one call as far as the timer saw them. Those
    that are `first` are counted before the others."""

    case: Case
    file: Path
    kernels: Sequence[KernelSeen] = ()
    first: bool = False


@dataclass
class Pass:
    """What a pass brought: the counters of each job, in order, and lines that the user must see."""

    counters: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    copy: dict[str, Any] | None = None
    """The copy of known bytes: `bytes` that it moves, those `counted`, and the `error` between them, a share."""


def without(reason: str) -> dict[str, Any]:
    """The counters of a row that has none: the reason."""
    return {"unavailable": {"counters": reason}}


def reason_of(counters: Mapping[str, Any]) -> str | None:
    """Why a row has no counters; None where it has some."""
    return None if "source" in counters else str(counters["unavailable"]["counters"])


def count(
    jobs: Sequence[Job],
    counters: Sequence[Counter],
    *,
    device: str,
    seed: int,
    timeout: float,
    budget: float | None = None,
    profile: Profile | None = None,
    environ: Mapping[str, str] = os.environ,
    tell: Callable[[str], None] | None = None,
    seen: Callable[[int], None] = lambda done: None,
) -> Pass:
    """Run every job once under ncu; those with cold and those with hot caches in processes of their own.

    `device` is a word for `gpubench.devices.find`; `timeout` what one case may take, in seconds: past it its process
    ends, and the cases after it have no counters. Past `budget` seconds no further case is begun, and those that are
    left are NO_TIME. With a `profile` the kernels of the one job are held against the record's less strictly, have
    further pages, and `device` says which device counted. `tell` gets the last lines that the process said, `seen` how
    many jobs are done.
    """
    found = Pass([without("not counted") for _ in jobs])
    until = None if budget is None else time.monotonic() + budget
    program = surroundings.find_ncu(environ=environ)
    if program is None:
        return _none(found, range(len(jobs)), ncu.NOT_INSTALLED)
    wanted = Wanted(counters)
    source = f"ncu {_version(program)}"
    done = 0
    for cache, chosen in _processes(jobs):
        if until is not None and time.monotonic() >= until:
            for number in chosen:
                found.counters[number] = without(NO_TIME)
            continue
        cases = [request_of(jobs[number]) for number in chosen]
        request = {"device": device, "seed": seed, "cases": cases, "until": until}
        watch, done = Watch(timeout, seen, done), done + len(chosen)
        try:
            kernels, told = _run(program, wanted, cache, request, watch, profile or Profile(), environ, tell)
        except Failed as failed:
            _none(found, chosen, str(failed))
            continue
        copy = _copy(told, kernels, wanted)
        found.copy = found.copy or copy
        for place, number in enumerate(chosen):
            mine = [kernel for kernel in kernels if kernel.label == str(place)]
            both = match(mine, jobs[number].kernels)
            reason = _mismatch(told.get(str(place), told.get(REST)), mine, both, strict=profile is None)
            common = {"source": source, "cache_control": "all" if cache == "cold" else "none", "known_copy": copy}
            found.counters[number] = without(reason) if reason else common | _of_row(mine, jobs[number], wanted)
            if profile is not None and not reason:
                found.counters[number]["device"] = told.get(DEVICE)
                _compare(found.counters[number], both)
    found.problems += _problems(found.copy)
    return found


def _processes(jobs: Sequence[Job]) -> list[tuple[Literal["cold", "hot"], list[int]]]:
    """The numbers of the jobs, a process each in the order in which they run: what ncu does with caches holds for a
    whole process. The jobs that are first are in front, and no more processes than that takes."""
    found: list[tuple[Literal["cold", "hot"], list[int]]] = []
    order: tuple[tuple[bool, Literal["cold", "hot"]], ...]
    order = (True, "hot"), (True, "cold"), (False, "cold"), (False, "hot")
    for first, cache in order:
        chosen = [n for n, job in enumerate(jobs) if job.first is first and job.case.conditions.cache == cache]
        if chosen and found and found[-1][0] == cache:
            found[-1][1].extend(chosen)
        elif chosen:
            found.append((cache, chosen))
    return found


def _none(found: Pass, chosen: Sequence[int], reason: str) -> Pass:
    line = f"no counters: {reason}; bytes are inferred from time"
    found.problems += [line] if line not in found.problems else []
    for number in chosen:
        found.counters[number] = without(reason)
    return found


def _problems(copy: Mapping[str, Any] | None) -> list[str]:
    """What is wrong with the bytes of the known copy, a line."""
    if copy is None or copy["error"] is None or abs(copy["error"]) <= COPY_TOLERANCE:
        return []
    return [f"counted bytes are off: a copy of known bytes reads {100 * copy['error']:+.1f} %"]


def request_of(job: Job) -> dict[str, Any]:
    """A job as the process that runs its case is asked for it."""
    case = job.case
    return {
        "benchmark": f"{case.suite}/{case.benchmark}",
        "file": str(job.file),
        "params": dict(case.params),
        "conditions": asdict(case.conditions),
    }


def _version(program: str) -> str:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError):
        return "of unknown version"
    return ncu.version(said.stdout) or "of unknown version"


def _run(
    program: str,
    wanted: Wanted,
    cache: Literal["cold", "hot"],
    request: dict[str, Any],
    watch: Watch,
    profile: Profile,
    environ: Mapping[str, str],
    tell: Callable[[str], None] | None,
) -> tuple[list[Counted], dict[str, Any]]:
    """The kernels that ncu counted, and what the process inside it told of each case. Failed where there are none."""
    suite = Path(request["cases"][0]["file"])
    with tempfile.TemporaryDirectory(prefix="gpubench-") as folder:
        for attempt in range(MOST_TRIES):
            place = Path(folder) / str(attempt)
            place.mkdir()
            files = {name: place / name for name in ("request.json", "told.jsonl", "ncu.csv", "said.txt", pages.REPORT)}
            common = {"told": str(files["told.jsonl"]), "parent": os.getpid(), "timeout": watch.timeout}
            files["request.json"].write_text(jsonfile.dumps(request | common))
            files["told.jsonl"].touch()
            inside = child.python("gpubench.profiling.once", files["request.json"])
            more = pages.words(profile, files[pages.REPORT], suite)
            words = ncu.command(program, wanted.metrics, cache, str(files["ncu.csv"]), inside, more)
            try:
                child.wait("ncu", words, files["said.txt"], files["told.jsonl"], watch, environ)
            finally:
                said = child.text(files["said.txt"])
                child.pass_on(said, tell)
            log, told = child.text(files["ncu.csv"]), child.messages(child.text(files["told.jsonl"]))
            if kernels := rawpage.read(log):
                if all(kernel.label is None for kernel in kernels):
                    raise Failed("ncu shows no NVTX ranges, by which cases are told apart")
                return pages.attach(profile, kernels, program, files[pages.REPORT], suite, environ), told
            if "failed" in told:
                raise Failed(str(told["failed"]))
            missing = ncu.unknown(log + said, wanted.metrics)
            if not missing:
                raise Failed(_why(log, said, told))
            wanted.drop(missing)
            if not wanted.metrics:
                break
        raise Failed("ncu knows none of the metrics: " + ", ".join(wanted.missing))


def _why(log: str, said: str, told: Mapping[str, Any]) -> str:
    """The reason why ncu counted no kernel."""
    found = ncu.failure(log) or ncu.failure(said)
    states = [str(state) for label, state in told.items() if label not in (COPY, DEVICE)]
    if found is None and states and "ok" not in states:
        found = states[0]
    spoken = [line for line in said.splitlines() if line.strip()]
    return found or (f"ncu counted no kernel: {spoken[-1].strip()[:200]}" if spoken else "ncu counted no kernel")


def _copy(told: Mapping[str, Any], kernels: Sequence[Counted], wanted: Wanted) -> dict[str, Any] | None:
    """The copy of known bytes, see Pass; None where it could not be made or DRAM bytes are not counted."""
    known = told.get(COPY)
    mine = [wanted.values(kernel.values) for kernel in kernels if kernel.label == COPY]
    if not isinstance(known, int) or not mine:
        return None
    parts = [values.get(name) for values in mine for name in ("dram_bytes_read", "dram_bytes_write")]
    moved = [part for part in parts if part is not None]
    if len(moved) != len(parts):
        return None
    return {"bytes": known, "counted": sum(moved), "error": sum(moved) / known - 1}


def _mismatch(state: Any, mine: Sequence[Counted], found: Match, strict: bool) -> str | None:
    """Why the kernels that were counted are not those of the row; None where they are, as far as can be told. Unless
    `strict`, it is enough that one of them is."""
    if state != "ok":
        return str(state or "the process under ncu ended before this case was done")
    if not mine:
        return "ncu counted no kernel of this case (copies and sets are none)"
    if found.first_difference is None or not (strict or found.strangers):
        return None
    return f"other kernels were counted than timed: {found.first_difference}"


def _of_row(mine: Sequence[Counted], job: Job, wanted: Wanted) -> dict[str, Any]:
    """The counters of a row: those of the call, and the same for each kernel; what could not be had is null, with the
    reason; activities that ncu does not count are named."""
    values = [wanted.values(kernel.values) for kernel in mine]
    kernels = [
        {"name": kernel.name, "grid": kernel.grid, "block": kernel.block, **value, **kernel.pages}
        for kernel, value in zip(mine, values, strict=True)
    ]
    found: dict[str, Any] = {**wanted.total(values), "kernels": kernels}
    if left := [f"{each.name} ({each.count} a call)" for each in job.kernels if each.kind != "kernel"]:
        found["not_counted"] = left
    absent = {name: "ncu gave no number" for name in wanted.names if name in found and found[name] is None}
    if absent:
        found["unavailable"] = absent | wanted.missing
    return found


def _compare(row: dict[str, Any], both: Match) -> None:
    """Say in the counters of a profile which kernel of the record each of its kernels is, with its number and ns a
    call, and where the two differ."""
    for kernel, recorded in zip(row["kernels"], both.recorded, strict=True):
        kernel["recorded"] = None if recorded is None else {"count": recorded.count, "ns": recorded.ns}
    if differences := list(both.differences()):
        row["differences"] = differences
