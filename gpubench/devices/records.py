"""Where activity records come from: a session of torch.profiler, or one of CUPTI itself where its Python package is.

Both give CUPTI's records. A session costs what it takes to start and stop a profiler and to read what it recorded, so
what is needed once a case (grids, registers) is asked for once.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, Protocol

import torch

from gpubench.devices import Call
from gpubench.devices.activities import Activity, from_events, from_trace, one_of_two
from gpubench.devices.tensors import first_line
from gpubench.errors import TimerFailed


class Source(Protocol):
    """Records what the device does."""

    name: str

    def session(self, work: Call, details: bool = True) -> list[Activity]:
        """The device work of a call and of everything it waits for, in the order it was launched; with grid, block and
        the like if `details`. TimerFailed where it cannot be read back."""


class TorchProfiler:
    """torch's profiler. Its events are read in memory, and from an exported trace where this torch says too little."""

    name = "torch.profiler"

    def __init__(self) -> None:
        self._by_events = True

    def session(self, work: Call, details: bool = True) -> list[Activity]:
        """See Source."""
        torch.cuda.synchronize()
        with _profiler(details) as profiler:
            work()
            torch.cuda.synchronize()
        if self._by_events:
            found = from_events(profiler.kineto_results.events(), details)
            if found is not None:
                return found
            self._by_events = False
        return _exported(profiler)


def _profiler(details: bool) -> Any:
    """A session of what torch.profiler.profile drives, without what that adds: names of ranks, tables of events."""
    configuration: Any = torch._C._profiler._ExperimentalConfig  # not typed
    try:
        experimental = configuration(expose_kineto_event_metadata=details)
    except TypeError:  # older than the option: the trace has the details
        experimental = configuration()
    profile: Any = torch.autograd.profiler.profile  # not typed
    return profile(use_cpu=False, use_device="cuda", use_kineto=True, experimental_config=experimental)


def _exported(profiler: Any) -> list[Activity]:
    with tempfile.TemporaryDirectory(prefix="gpubench-") as folder:
        path = Path(folder) / "trace.json"
        try:
            profiler.export_chrome_trace(str(path))
            return from_trace(json.loads(path.read_text(errors="replace")))
        except (OSError, ValueError) as error:
            raise TimerFailed(f"the profiler's trace cannot be read: {first_line(error)}") from error


def activities_of(source: Source, call: Call) -> list[Activity]:
    """What one call does on the device, from sessions that hold two. TimerFailed where none adds up."""
    return one_of_two(lambda: source.session(lambda: (call(), call())))
