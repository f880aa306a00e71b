"""Counters for rows: one ncu process runs their cases once more, and each row gets what its own kernels counted.

Kernels are told apart by the NVTX range of their case, and their names and grids are held against what the timer saw:
counters of another kernel than the one that was timed are not attached.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter as Tally
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from gpubench import jsonfile, surroundings
from gpubench.executor import LISTEN_S, OPEN_TIMEOUT, with_our_package
from gpubench.profiling import ncu, rawpage
from gpubench.profiling.metrics import Counter, Wanted
from gpubench.profiling.rawpage import Counted
from gpubench.result import KernelSeen
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
REST = "rest"
"""The name under which the process inside ncu tells what became of all cases that it has not told of."""
ENDING_S = 60.0
"""Seconds that ncu may take to write what it counted, once the process inside it has ended."""
MOST_TRIES = 6
"""Starts of ncu: each time it names metrics that it does not know, they are left out."""
MOST_BYTES = 2**28
"""Of what ncu may write."""


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


@dataclass(frozen=True)
class _Watch:
    """How a process under ncu is followed: `timeout` is what a case may take, in seconds, and `seen` gets the number of
    cases done, those `before` this process among them, several times a second."""

    timeout: float
    seen: Callable[[int], None]
    before: int = 0


class _Failed(Exception):
    """Nothing was counted; the message is the reason."""


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
    environ: Mapping[str, str] = os.environ,
    tell: Callable[[str], None] | None = None,
    seen: Callable[[int], None] = lambda done: None,
) -> Pass:
    """Run every job once under ncu; those with cold and those with hot caches in processes of their own.

    `device` is a word for `gpubench.devices.find`; `timeout` what one case may take, in seconds: past it its process
    ends, and the cases after it have no counters. Past `budget` seconds no further case is begun, and those that are
    left are NO_TIME. `tell` gets the last lines that the process said, `seen` how many jobs are done.
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
        cases = [_request(jobs[number]) for number in chosen]
        request = {"device": device, "seed": seed, "cases": cases, "until": until}
        watch, done = _Watch(timeout, seen, done), done + len(chosen)
        try:
            kernels, told = _run(program, wanted, cache, request, watch, environ, tell)
        except _Failed as failed:
            _none(found, chosen, str(failed))
            continue
        copy = _copy(told, kernels, wanted)
        found.copy = found.copy or copy
        for place, number in enumerate(chosen):
            mine = [kernel for kernel in kernels if kernel.label == str(place)]
            reason = _mismatch(told.get(str(place), told.get(REST)), mine, jobs[number].kernels)
            common = {"source": source, "cache_control": "all" if cache == "cold" else "none", "known_copy": copy}
            found.counters[number] = without(reason) if reason else common | _of_row(mine, jobs[number], wanted)
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


def _request(job: Job) -> dict[str, Any]:
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
    watch: _Watch,
    environ: Mapping[str, str],
    tell: Callable[[str], None] | None,
) -> tuple[list[Counted], dict[str, Any]]:
    """The kernels that ncu counted, and what the process inside it told of each case. _Failed where there are none."""
    with tempfile.TemporaryDirectory(prefix="gpubench-") as folder:
        for attempt in range(MOST_TRIES):
            place = Path(folder) / str(attempt)
            place.mkdir()
            files = {name: place / name for name in ("request.json", "told.jsonl", "ncu.csv", "said.txt")}
            more = {"told": str(files["told.jsonl"]), "parent": os.getpid(), "timeout": watch.timeout}
            files["request.json"].write_text(jsonfile.dumps(request | more))
            files["told.jsonl"].touch()
            child = [sys.executable, "-P", "-u", "-m", "gpubench.profiling.once", str(files["request.json"])]
            words = ncu.command(program, wanted.metrics, cache, str(files["ncu.csv"]), child)
            try:
                _wait(words, files["said.txt"], files["told.jsonl"], watch, environ)
            finally:
                said = _text(files["said.txt"])
                if tell is not None:
                    for line in said.splitlines()[-20:]:
                        tell(line)
            log, told = _text(files["ncu.csv"]), _told(_text(files["told.jsonl"]))
            if kernels := rawpage.read(log):
                if all(kernel.label is None for kernel in kernels):
                    raise _Failed("ncu shows no NVTX ranges, by which cases are told apart")
                return kernels, told
            if "failed" in told:
                raise _Failed(str(told["failed"]))
            missing = ncu.unknown(log + said, wanted.metrics)
            if not missing:
                raise _Failed(_why(log, said, told))
            wanted.drop(missing)
            if not wanted.metrics:
                break
        raise _Failed("ncu knows none of the metrics: " + ", ".join(wanted.missing))


def _wait(words: Sequence[str], said: Path, told: Path, watch: _Watch, environ: Mapping[str, str]) -> None:
    """Run a command to its end, in a session of its own, with what it says in a file. _Failed where it cannot be
    started, or where the file `told` does not grow for longer than a case and writing may take; killed then, as by
    Ctrl-C."""
    env = with_our_package(environ) | {"LC_ALL": "C.UTF-8"}  # no thousands separators in ncu's numbers
    with open(said, "wb") as sink:
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env=env, start_new_session=True
            )
        except OSError as error:
            raise _Failed(f"ncu cannot be started: {error.strerror}") from error
        size, done, deadline = 0, 0, time.monotonic() + max(OPEN_TIMEOUT, watch.timeout + ENDING_S)
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(LISTEN_S)
                    return
                if told.stat().st_size != size:
                    size, deadline = told.stat().st_size, time.monotonic() + watch.timeout + ENDING_S
                    done = sum(label.isdigit() for label in _told(_text(told)))
                watch.seen(watch.before + done)
                if time.monotonic() > deadline:
                    raise _Failed(f"ncu was given up: a case took longer than {watch.timeout:g} s (--timeout)")
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _why(log: str, said: str, told: Mapping[str, Any]) -> str:
    """The reason why ncu counted no kernel."""
    found = ncu.failure(log) or ncu.failure(said)
    states = [str(state) for label, state in told.items() if label != COPY]
    if found is None and states and "ok" not in states:
        found = states[0]
    spoken = [line for line in said.splitlines() if line.strip()]
    return found or (f"ncu counted no kernel: {spoken[-1].strip()[:200]}" if spoken else "ncu counted no kernel")


def _text(path: Path) -> str:
    """What is in a file, of at most MOST_BYTES; nothing where there is none."""
    try:
        with open(path, "rb") as file:
            return file.read(MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""


def _told(text: str) -> dict[str, Any]:
    """Label → "ok", the bytes of the copy, or why a case gave nothing. A last line cut short was not told."""
    found: dict[str, Any] = {}
    for line in text.split("\n")[:-1]:
        found |= jsonfile.loads(line.encode(), "what was told from under ncu")
    return found


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


def _mismatch(state: Any, mine: Sequence[Counted], seen: Sequence[KernelSeen]) -> str | None:
    """Why the kernels that were counted are not those of the row; None where they are, as far as can be told."""
    if state != "ok":
        return str(state or "the process under ncu ended before this case was done")
    if not mine:
        return "ncu counted no kernel of this case (copies and sets are none)"
    timed = [kernel for kernel in seen if kernel.kind == "kernel"]
    if not timed:
        return None
    expected: Tally[tuple[str, tuple[int, ...]]] = Tally()
    for kernel in timed:  # several whose names differ in template arguments only are one here
        expected[base_name(kernel.name), _tuple(kernel.grid)] += kernel.count
    counted = Tally((base_name(kernel.name), _tuple(kernel.grid)) for kernel in mine)
    if expected == counted:
        return None
    other = next(iter((counted - expected) or (expected - counted)))
    verb = "counted" if other in counted - expected else "timed"
    return f"other kernels were counted than timed: {other[0]} with grid {list(other[1])} was only {verb}"


def _tuple(grid: Sequence[int] | None) -> tuple[int, ...]:
    return tuple(grid or ())


def base_name(name: str) -> str:
    """A kernel's own name, without return type, namespaces, template arguments and parameters.

    Two tools that demangle one symbol do not write it alike; this part they do.
    """
    plain = re.sub(r"\(anonymous namespace\)::|<unnamed>::", "", name)
    words = re.split(r"[<(]", plain, maxsplit=1)[0].split()
    return words[-1].split("::")[-1] if words else name


def _of_row(mine: Sequence[Counted], job: Job, wanted: Wanted) -> dict[str, Any]:
    """The counters of a row: those of the call, and the same for each kernel; what could not be had is null, with the
    reason; activities that ncu does not count are named."""
    values = [wanted.values(kernel.values) for kernel in mine]
    kernels = [
        {"name": kernel.name, "grid": kernel.grid, "block": kernel.block, **value}
        for kernel, value in zip(mine, values, strict=True)
    ]
    found: dict[str, Any] = {**wanted.total(values), "kernels": kernels}
    if left := [f"{each.name} ({each.count} a call)" for each in job.kernels if each.kind != "kernel"]:
        found["not_counted"] = left
    absent = {name: "ncu gave no number" for name in wanted.names if name in found and found[name] is None}
    if absent:
        found["unavailable"] = absent | wanted.missing
    return found
