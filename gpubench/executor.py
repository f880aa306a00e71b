"""Where cases are measured: in this process, or in a worker process that owns the device.

A worker that dies, hangs or loses its device costs one row; the next case gets a new worker.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from gpubench.devices import Device
from gpubench.errors import DeviceLost, DeviceUnavailable, GpubenchError, Timeout, UsageError
from gpubench.result import Record, RecordStatus
from gpubench.runner import Effort, Measures, Progress, measure, unmeasured
from gpubench.store import jsonfile, runfile
from gpubench.suite import Benchmark, Case

OPEN_TIMEOUT = 300.0
"""Seconds a worker may take to import torch and find its device; from a cold disk it has taken over a minute."""
LAST_WORDS = 1.0
"""Seconds to wait for what an ended worker has still to say."""
STDERR_LINES = 50
LISTEN_S = 0.2
"""The longest a signal may go unheard while the parent waits for its worker."""
OUT_OF_TURN = "the worker spoke out of turn"


class _Closed(Exception):
    """The worker closed its pipe: it has ended, or is about to."""


@dataclass(frozen=True)
class Hello:
    """What a device says of itself when it is opened; `notice` is one line the user must see, or None."""

    facts: Mapping[str, Any]
    software: Mapping[str, Any]
    notice: str | None = None


class Executor(Measures, Protocol):
    """Measures one case at a time, on the device that `hello` describes."""

    hello: Hello

    def calibrate(self) -> dict[str, Any]:
        """What the device measures of its timers once a run; empty where it cannot."""

    def close(self) -> None:
        """End what was started; safe to call twice."""


@dataclass
class Bench:
    """The benchmarks an executor can be asked for, by suite/benchmark, and the file of each suite."""

    benchmarks: Mapping[str, Benchmark]
    files: Mapping[str, Path]
    definitions: dict[str, str] = field(default_factory=dict)

    def definition(self, case: Case) -> str:
        """The definition of a case's benchmark, computed once."""
        path = f"{case.suite}/{case.benchmark}"
        if path not in self.definitions:
            self.definitions[path] = self.benchmarks[path].definition
        return self.definitions[path]


class InProcess:
    """Measures in this process: for tests, notebooks and debuggers. Nothing survives a crash, no case times out.

    UsageError for a timer the device does not have.
    """

    def __init__(self, device: Device, bench: Bench, timer: str = "auto", notice: str | None = None) -> None:
        self.device = device
        self.bench = bench
        device.timers(timer)
        self.hello = Hello(device.facts(), device.software(), notice)

    def definition(self, case: Case) -> str:
        """See Executor."""
        return self.bench.definition(case)

    def calibrate(self) -> dict[str, Any]:
        """See Executor."""
        return self.device.calibration()

    def measure(self, case: Case, effort: Effort) -> Iterator[Progress | Record]:
        """See Executor."""
        benchmark = self.bench.benchmarks[f"{case.suite}/{case.benchmark}"]
        try:
            yield from measure(benchmark, case, self.device, effort)
        except DeviceLost as error:
            yield unmeasured(case, self.definition(case), "error", str(error))
            raise

    def close(self) -> None:
        """Nothing was started."""


class WorkerProcess:
    """Measures in a worker, `python -m gpubench.worker`, over JSON lines on its standard input and output.

    `timeout` is what one case may take, in seconds; `package` a folder in which the worker finds this gpubench, where
    it is not to find what else lies beside it. The worker runs in a session of its own, so that Ctrl-C reaches only the
    parent, and ends by itself when the parent is gone.
    """

    def __init__(
        self,
        device: str,
        bench: Bench,
        timeout: float,
        *,
        timer: str = "auto",
        python: str = sys.executable,
        echo: bool = False,
        environment: Mapping[str, str] | None = None,
        package: Path | None = None,
    ) -> None:
        self.device = device
        self.bench = bench
        self.timeout = timeout
        self.timer = timer
        self.python = python
        self.echo = echo
        self.environment = environment
        self.package = package
        self._worker: _Worker | None = None
        self.hello = self._open()

    def definition(self, case: Case) -> str:
        """See Executor."""
        return self.bench.definition(case)

    def calibrate(self) -> dict[str, Any]:
        """See Executor. A worker that dies of it is replaced by the first case."""
        worker = self._worker or self._again()
        try:
            worker.send({"calibrate": True})
            found = worker.receive(time.monotonic() + self.timeout).get("calibration", {})
        except (_Closed, OSError, Timeout):
            self._end()
            return {}
        return found if isinstance(found, dict) else {}

    def measure(self, case: Case, effort: Effort) -> Iterator[Progress | Record]:
        """See Executor. DeviceLost where no new worker can be started."""
        worker = self._worker or self._again()
        deadline = time.monotonic() + self.timeout
        status: RecordStatus
        try:
            worker.send(self._request(case, effort))
            while True:
                answer = worker.receive(deadline)
                if "progress" in answer:
                    yield Progress(**answer["progress"])
                elif "record" in answer:
                    yield runfile.record_from_json(answer["record"], where="what the worker sent")
                    return
                else:
                    raise DeviceLost(str(answer.get("lost", OUT_OF_TURN)))
        except Timeout:
            status, reason = "timeout", f"no answer within {self.timeout:g} s"
        except (_Closed, OSError):
            status, reason = "error", worker.epitaph()
        except (DeviceLost, UsageError) as error:
            status, reason = "error", str(error)
        self._end()
        yield unmeasured(case, self.definition(case), status, reason)

    def examine(self) -> dict[str, Any]:
        """What the device's own process finds out by using it, see Device. DeviceLost where that ends it."""
        worker = self._worker or self._again()
        try:
            worker.send({"examine": True})
            answer = worker.receive(time.monotonic() + self.timeout)
            if "examined" in answer:
                return dict(answer["examined"])
            reason = str(answer.get("lost", OUT_OF_TURN))
        except Timeout:
            reason = f"no answer within {self.timeout:g} s"
        except (_Closed, OSError):
            reason = worker.epitaph()
        self._end()
        raise DeviceLost(f"the device could not be examined: {reason}", "gpubench doctor --debug")

    def close(self) -> None:
        """End the worker."""
        self._end()

    def _request(self, case: Case, effort: Effort) -> dict[str, Any]:
        return {
            "measure": f"{case.suite}/{case.benchmark}",
            "file": str(self.bench.files[case.suite]),
            "params": dict(case.params),
            "conditions": asdict(case.conditions),
            "effort": asdict(effort),
        }

    def _again(self) -> _Worker:
        """A new worker in place of one that ended."""
        try:
            self._open()
        except GpubenchError as error:
            raise DeviceLost(f"no new worker after the last one ended: {error.message}", error.hint) from error
        assert self._worker is not None
        return self._worker

    def _open(self) -> Hello:
        worker = self._worker = _Worker(self.python, self.echo, self.environment, self.package)
        try:
            worker.send({"open": self.device, "timer": self.timer})
            answer = worker.receive(time.monotonic() + OPEN_TIMEOUT)
            if "hello" in answer:
                return Hello(**answer["hello"])
            kind = UsageError if answer.get("usage") else DeviceUnavailable
            raise kind(str(answer.get("failed", OUT_OF_TURN)), str(answer.get("hint", "")))
        except BaseException as error:  # Ctrl-C too leaves no process behind
            reason = worker.epitaph() if isinstance(error, _Closed | OSError) else str(error)
            self._end()
            if isinstance(error, _Closed | OSError | Timeout):
                raise DeviceUnavailable(f"the worker did not start: {reason}", "gpubench info --debug") from error
            raise

    def _end(self) -> None:
        if self._worker is not None:
            self._worker.kill()
            self._worker = None


class _Worker:
    """The process, its two pipes and the threads that drain them."""

    def __init__(
        self, python: str, echo: bool, environment: Mapping[str, str] | None, package: Path | None = None
    ) -> None:
        env = with_our_package(os.environ if environment is None else environment, package)
        self.process = subprocess.Popen(
            # -P: a file of the user's does not stand in for a module; -u: nothing that was printed is lost
            [python, "-P", "-u", "-m", "gpubench.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            start_new_session=True,
        )
        self.lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.stderr: deque[str] = deque(maxlen=STDERR_LINES)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.threads = [
            threading.Thread(target=self._drain_stdout, args=(self.process.stdout,), daemon=True),
            threading.Thread(target=self._drain_stderr, args=(self.process.stderr, echo), daemon=True),
        ]
        for thread in self.threads:
            thread.start()

    def _drain_stdout(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            if line.endswith(b"\n"):  # else its writer ended in the middle of it
                self.lines.put(line)
        self.lines.put(None)

    def _drain_stderr(self, pipe: IO[bytes], echo: bool) -> None:
        for raw in pipe:
            line = raw.decode(errors="replace").rstrip()
            self.stderr.append(line)
            if echo:
                sys.stderr.write(line + "\n")

    def send(self, message: Mapping[str, Any]) -> None:
        """Write one message. OSError where the worker is gone."""
        assert self.process.stdin is not None
        self.process.stdin.write(jsonfile.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self, deadline: float) -> dict[str, Any]:
        """The next message; Timeout past the deadline, _Closed where the pipe closed, UsageError for what is none."""
        line = self._next_line(deadline)
        if line is None:
            raise _Closed
        message = jsonfile.loads(line, where="what the worker sent")
        if not isinstance(message, dict):
            raise UsageError(OUT_OF_TURN)
        return message

    def _next_line(self, deadline: float) -> bytes | None:
        """The next line, None at the end. The wait is taken in short pieces: a signal that arrives just before a thread
        falls asleep does not wake it, and Ctrl-C would be heard only when the worker next speaks."""
        while True:
            left = deadline - time.monotonic()
            try:
                return self.lines.get(timeout=min(max(left, 0), LISTEN_S))
            except queue.Empty:
                if left <= LISTEN_S:
                    raise Timeout("no answer in time") from None

    def epitaph(self) -> str:
        """Why it ended, in one line: its signal or exit status and the last words it said."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=LAST_WORDS)
        for thread in self.threads:
            thread.join(timeout=LAST_WORDS)
        words = _last_words(self.stderr)
        return f"the worker ended ({_how(self.process.returncode)})" + (f": {words}" if words else "")

    def kill(self) -> None:
        """End it now, with everything it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        with contextlib.suppress(OSError):
            self.process.stdin.close()  # type: ignore[union-attr]
        for thread, pipe in zip(self.threads, (self.process.stdout, self.process.stderr), strict=True):
            thread.join(timeout=0.1)
            if pipe is not None and not thread.is_alive():  # something that escaped may hold the other end open
                pipe.close()


def with_our_package(environment: Mapping[str, str], package: Path | None = None) -> dict[str, str]:
    """The environment for another Python that must find this very gpubench, installed or not: in the folder `package`,
    else where it is."""
    root = str(package or Path(__file__).resolve().parent.parent)
    return dict(environment) | {"PYTHONPATH": os.pathsep.join(filter(None, [root, environment.get("PYTHONPATH", "")]))}


def _how(code: int | None) -> str:
    """A process's end in words."""
    if code is None:
        return "its pipe closed"
    if code < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-code).name
    return f"exit status {code}"


def _last_words(lines: Sequence[str]) -> str:
    """The line of a stderr that says most: a fatal error of the interpreter, else the last one that is not empty."""
    fatal = [line for line in lines if line.startswith("Fatal Python error")]
    spoken = [line for line in lines if line.strip()]
    chosen = fatal[0] if fatal else spoken[-1] if spoken else ""
    return chosen.strip()[:300]
