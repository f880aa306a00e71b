"""The process inside ncu: `python -m gpubench.profiling.once REQUEST`, started by `gpubench.profiling.counting`.

Each case is prepared, compiled, run and verified as for a measurement, by the same code; where samples would be taken,
it is called once between the marks that ncu counts by. No timer is active. What became of each case is told in a file,
a line of JSON each: {"0": "ok"}, {"1": "wrong result: …"}. First comes {"failed": why}, or {"device": which} and
{"copy": bytes}; last, where time was up, {"rest": why} for all cases that were not begun.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from gpubench.devices import Batch, Call, Device
from gpubench.discovery import load_suite
from gpubench.errors import CaseError, DeviceLost, GpubenchError, Skip
from gpubench.profiling.counting import COPY, DEVICE, NO_TIME, REST
from gpubench.profiling.rawpage import LABEL
from gpubench.result import Conditions, Record, Timer
from gpubench.runner import Effort, measure
from gpubench.sampling import Stopping
from gpubench.store import jsonfile
from gpubench.suite import Case, Suite
from gpubench.workload import Workload

Tell = Callable[[dict[str, Any]], None]


class Once:
    """A device whose sampler makes one call, marked with a label. In everything else it is the device."""

    def __init__(self, device: Device, label: str) -> None:
        self._device = device
        self.label = label
        self.marked = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def timers(self, asked: str) -> Sequence[str]:
        """None that times."""
        return ("ncu",)

    def replicas(self, workload: Workload, conditions: Conditions) -> int:
        """One."""
        return 1

    def sampler(self, workloads: Sequence[Workload], conditions: Conditions, timer: str) -> OneCall:
        """See Device."""
        return OneCall(lambda: self.mark(workloads[0].call))

    def call_ns(self, call: Call, n: int) -> list[int]:
        """Nothing is called again."""
        return []

    def telemetry(self) -> dict[str, Any]:
        """Nothing is asked of the machine either."""
        return {}

    def mark(self, call: Call) -> None:
        """Make the call inside the marks."""
        with self._device.counted(f"{LABEL}{self.label}"):
            call()
        self.marked = True


class OneCall:
    """The sampler of what is done once in place of samples. Its readings are no times."""

    def __init__(self, act: Call) -> None:
        self.timer = Timer("ncu", 1.0)
        self._act = act

    def warm_up(self) -> float:
        """Nothing: the call has been made and verified."""
        return 0.0

    def batch(self, n: int) -> Batch:
        """See Sampler."""
        self._act()
        return Batch([1] * n, [1] * n, [None] * n)


def main() -> None:
    """Serve the request in the file that the command line names."""
    answer(serve)


def answer(serve: Callable[[dict[str, Any], Tell], None]) -> None:
    """Give the request in the file that the command line names, and a way to tell what became of it."""
    faulthandler.enable()
    request = jsonfile.loads(Path(sys.argv[1]).read_bytes(), "the request")
    with open(request["told"], "ab", buffering=0) as file:

        def tell(message: dict[str, Any]) -> None:
            file.write(jsonfile.dumps(message).encode() + b"\n")

        serve(request, tell)


def serve(request: dict[str, Any], tell: Tell) -> None:
    """Count the copy of known bytes, then each case, until all are done, time is up or the device is lost.

    Ending by itself lets ncu write what it has counted. `until` is by the clock of `time.monotonic`, which processes
    of a machine share, or None; `timeout` ends the process within a case, by a thread that needs nothing of Python's;
    `parent` is the process that wants to know: without it nobody does.
    """
    device = opened(request["device"], tell)
    if device is None:
        return
    tell({DEVICE: which(device)})
    _known_copy(device, tell)
    suites: dict[str, Suite] = {}
    for number, asked in enumerate(request["cases"]):
        if not _lives(request["parent"]):
            return
        if request["until"] is not None and time.monotonic() >= request["until"]:
            tell({REST: NO_TIME})
            return
        faulthandler.dump_traceback_later(request["timeout"], exit=True)
        try:
            tell({str(number): _count(asked, str(number), device, request["seed"], suites)})
        except DeviceLost as error:
            tell({str(number): str(error)})
            return
        except GpubenchError as error:  # a suite that cannot be loaded
            tell({str(number): str(error)})
        finally:
            faulthandler.cancel_dump_traceback_later()


def opened(word: str, tell: Tell) -> Device | None:
    """The device of that word; None where it cannot be had, which is told."""
    from gpubench.devices.find import find

    try:
        device, _ = find(word)
    except GpubenchError as error:
        tell({"failed": str(error)})
        return None
    return device


def which(device: Device) -> dict[str, Any]:
    """Which device that is, for who only knows what it was called."""
    facts = device.facts()
    return {"kind": device.kind} | {name: facts.get(name) for name in ("name", "uuid", "driver")}


def _lives(pid: int) -> bool:
    """Whether one of the user's processes has this number."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _known_copy(device: Device, tell: Tell) -> None:
    try:
        call, moved = device.known_copy()
        call()
        device.synchronize()
        Once(device, COPY).mark(call)
        tell({COPY: moved})
    except (CaseError, Skip) as error:
        tell({COPY: f"no copy of known bytes: {error}"})
    finally:
        device.release()


def _count(asked: dict[str, Any], label: str, device: Device, seed: int, suites: dict[str, Suite]) -> str:
    """Count one case: "ok", or why it was not counted."""
    once = Once(device, label)
    record = record_of(asked, once, seed, suites)
    if once.marked and record.status == "ok":
        return "ok"
    return record.reason or "it is timed by a stopwatch of its own, which ncu cannot follow"


def record_of(asked: dict[str, Any], once: Once, seed: int, suites: dict[str, Suite]) -> Record:
    """What becomes of a case that is asked for, with `once` in place of its device; `suites` keeps what was loaded."""
    file = asked["file"]
    if file not in suites:
        suites[file] = load_suite(Path(file))
    suite, name = asked["benchmark"].split("/")
    conditions = replace(Conditions(**asked["conditions"]), load="burst")  # one call is no load
    case = Case(suite, name, asked["params"], conditions)
    effort = Effort(Stopping(samples=1), "ncu", seed)
    *_, record = measure(suites[file].benchmarks[name], case, cast(Device, once), effort)
    assert isinstance(record, Record)
    return record


if __name__ == "__main__":
    main()
