"""The process that makes a trace: `python -m gpubench.profiling.traced REQUEST`, started by `gpubench.profiling.trace`.

The case is prepared, compiled, run and verified as for a measurement; where samples would be taken, its calls are
traced by torch's profiler. A process of its own, since none takes right samples after that.
"""

from __future__ import annotations

import faulthandler
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpubench.devices import Device
from gpubench.errors import DeviceLost, GpubenchError
from gpubench.profiling.once import Once, OneCall, Tell, answer, opened, record_of, which
from gpubench.profiling.timeline import Timeline, document, spent, timeline
from gpubench.result import Conditions
from gpubench.store import jsonfile
from gpubench.workload import Workload

MOST_SPENT = 50
"""Names that are told of what took the time, those that took the most first."""


class Traced(Once):
    """A device whose sampler traces so many calls, on as many copies of the buffers as are sampled."""

    def __init__(self, device: Device, calls: int) -> None:
        super().__init__(device, "trace")
        self._calls = calls
        self.found: Timeline | None = None

    def replicas(self, workload: Workload, conditions: Conditions) -> int:
        """As for samples: they keep caches cold where nothing is flushed."""
        return self._device.replicas(workload, conditions)

    def sampler(self, workloads: Sequence[Workload], conditions: Conditions, timer: str) -> OneCall:
        """See Device."""
        calls = [workload.call for workload in workloads]

        def act() -> None:
            self.found = timeline(self._device.trace(calls, self._calls, conditions))

        return OneCall(act)


def serve(request: dict[str, Any], tell: Tell) -> None:
    """Trace the case of a request into its file `trace`: {"0": "ok"}, or why not, after {"trace": what is in it}."""
    device = opened(request["device"], tell)
    if device is None:
        return
    faulthandler.dump_traceback_later(request["timeout"], exit=True)
    try:
        tell({"0": _trace(request, device, tell)})
    except (DeviceLost, GpubenchError) as error:
        tell({"0": str(error)})
    finally:
        faulthandler.cancel_dump_traceback_later()


def _trace(request: dict[str, Any], device: Device, tell: Tell) -> str:
    traced = Traced(device, request["calls"])
    record = record_of(request["case"], traced, request["seed"], {})
    found = traced.found
    if found is None or record.status != "ok":
        return record.reason or "it is timed by a stopwatch of its own, which has no call to trace"
    if not found.events:
        return "torch's profiler recorded nothing"
    if device.kind == "cuda" and not any(event.works for event in found.events):
        return "torch's profiler recorded no kernel: CUPTI may be held by another profiler (nsys, ncu)"
    facts = {"torch": device.software().get("torch"), **request["facts"]}
    whole = document(found, facts, str(device.facts().get("name", "")))
    Path(request["trace"]).write_text(jsonfile.dumps(whole), encoding="utf-8")
    took = spent(found.events)
    most = [asdict(each) for each in took[:MOST_SPENT]]
    whole_ns = sum(each.ns for each in took)
    tell({"trace": {
        "device": which(device), "events": len(found.events), "left_out": found.left_out,
        "names": len(took), "ns": whole_ns, "spent": most,
    }})  # fmt: skip
    return "ok"


def main() -> None:
    """Serve the request in the file that the command line names."""
    answer(serve)


if __name__ == "__main__":
    main()
