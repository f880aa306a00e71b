"""A GPU kept busy: groups of calls, each between two events, with some always in flight so that nothing waits.

Between two groups the SM clock is read on the GPU, in some µs of no group's time. A group is the replay of a CUDA graph
where the calls can be captured: launched one by one, small calls would leave the GPU idle most of the time, and its
clock and power would be those of an idle GPU. Large calls are replayed too, so that no row's timer hangs on how busy
the host was.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from gpubench.devices import Call, pacing
from gpubench.devices.gpm import Gpm
from gpubench.devices.graph import Graph
from gpubench.devices.nvml import Nvml
from gpubench.errors import TimerFailed
from gpubench.result import Timer
from gpubench.steady import Group

GROUP_S = 0.010
"""Device time of a group: long beside its events and the reading of the clock, short beside what is watched."""
IN_FLIGHT = 3
"""The fewest groups in flight: the host has two of them to notice that one has ended and to enqueue the next."""
AHEAD_S = 0.1
"""Work in flight, at least, in seconds: NVML is read meanwhile, and where another process reads it too that has kept an
H200 waiting for 100 ms."""
TIMERS = ("auto", "graph", "event")
"""What may be asked for: "graph" is an error of the case where it cannot be captured, "auto" goes on with events."""
WARM_CALLS = 3
"""Calls before the first is timed, and calls timed for a rough idea."""

ReadClock = Callable[[torch.Tensor], Call]
"""What makes, of two 64-bit integers on the device, a call that writes a count of SM cycles and the ns it took."""


@dataclass
class Work:
    """What is enqueued for one group: `calls` calls, as `repeats` times `enqueue`. Where `flush` is given, each call is
    flushed before and timed by a pair of events of its own. `seconds` is what the group takes, roughly."""

    enqueue: Call
    repeats: int
    calls: int
    seconds: float
    flush: Call | None = None

    @property
    def in_flight(self) -> int:
        """Such groups to keep in flight."""
        return max(IN_FLIGHT, math.ceil(AHEAD_S / self.seconds))


class CudaLoad:
    """Calls in flight on torch's current stream. See Load.

    `flush` is None where the case is hot. `timers` are those that work here, with what is known of them: "event", and
    "graph" where it does; `asked` is one of TIMERS. `hold` keeps the stream busy for so many seconds; `read_clock` is
    None where no kernel can be compiled.
    """

    def __init__(
        self,
        call: Call,
        flush: Call | None,
        timers: Mapping[str, Timer],
        hold: Callable[[float], None],
        read_clock: ReadClock | None,
        asked: str,
    ) -> None:
        self.timer = timers["event"]
        self.refused: Sequence[str] = ()
        self.in_flight = IN_FLIGHT
        self._timers = timers
        self._asked = asked
        self._call = call
        self._flush = flush
        self._hold = hold
        self._read_clock = read_clock
        self._origin = _event()
        self._slots: deque[_Slot] = deque()

    def start(self) -> None:
        """See Load."""
        work = self._planned()
        self.in_flight = work.in_flight
        self._slots = deque(_Slot(work, self._read_clock) for _ in range(self.in_flight))
        torch.cuda.synchronize()
        self._origin.record()
        for slot in self._slots:
            slot.enqueue()

    def next(self) -> Group:
        """See Load."""
        slot = self._slots[0]
        self._slots.rotate(-1)
        group = slot.read(self._origin)
        slot.enqueue()
        return group

    def stop(self) -> None:
        """See Load. The graph and the events are given back."""
        torch.cuda.synchronize()
        self._slots.clear()

    def _planned(self) -> Work:
        """How many calls make a group, and how they are enqueued; settles the timer."""
        enqueue_s, device_s = self._rough()
        calls = max(1, round(GROUP_S / max(enqueue_s, device_s)))
        if self._flush is not None:
            self.timer = replace(self._timers["event"], reason="a pair of events around each call")
            return Work(self._call, calls, calls, calls * max(enqueue_s, device_s), self._flush)
        if self._asked != "event":
            try:
                return self._replayed(device_s)
            except TimerFailed as failure:
                if self._asked == "graph":
                    raise
                self.refused = (f"graph: {failure.message}",)
        # a call that does nothing would be read as the time to enqueue it
        reason = f"a pair of events around {calls} calls"
        self.timer = replace(self._timers["event"], empty_ns=enqueue_s * 1e9, reason=reason)
        return Work(self._call, calls, calls, calls * max(enqueue_s, device_s))

    def _replayed(self, device_s: float) -> Work:
        """A group of replays of a graph. TimerFailed where the call cannot be captured."""
        if "graph" not in self._timers:
            raise TimerFailed("no CUDA graph works here")
        copies = min(max(round(GROUP_S / device_s), 1), pacing.MOST_COPIES)
        graph = Graph(self._call, copies)
        repeats = max(1, round(GROUP_S / (copies * device_s)))
        words = f"{repeats} replays of {copies} calls" if repeats > 1 else f"a replay of {copies} calls"
        self.timer = replace(self._timers["graph"], reason=words)
        return Work(graph.replay, repeats, copies * repeats, copies * repeats * device_s)

    def _rough(self) -> tuple[float, float]:
        """The host time to enqueue one call and the device time of one (with its flush), in seconds, roughly."""
        for _ in range(WARM_CALLS):
            self._once()
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(WARM_CALLS):
            self._once()
        enqueue_s = (time.perf_counter() - begun) / WARM_CALLS
        torch.cuda.synchronize()
        start, stop = _event(), _event()
        self._hold(min(2 * WARM_CALLS * enqueue_s, pacing.HOLD_MOST_S))  # until all that follows is enqueued
        start.record()
        for _ in range(WARM_CALLS):
            self._once()
        stop.record()
        stop.synchronize()
        return enqueue_s, max(_seconds(start, stop) / WARM_CALLS, 1e-7)

    def _once(self) -> None:
        if self._flush is not None:
            self._flush()
        self._call()


class _Slot:
    """One group in flight, used again and again: its events, and where the reading of the clock after it goes."""

    def __init__(self, work: Work, read_clock: ReadClock | None) -> None:
        self._work = work
        self._pairs = [(_event(), _event()) for _ in range(1 if work.flush is None else work.calls)]
        self._done = _event()
        self._reading = torch.zeros(2, dtype=torch.int64, device="cuda")
        self._seen = torch.zeros(2, dtype=torch.int64, pin_memory=True)
        self._clock = None if read_clock is None else read_clock(self._reading)

    def enqueue(self) -> None:
        """Put the calls, the reading of the clock and its copy to the host on the stream."""
        work = self._work
        if work.flush is None:
            ((start, stop),) = self._pairs
            start.record()
            for _ in range(work.repeats):
                work.enqueue()
            stop.record()
        else:
            for start, stop in self._pairs:
                work.flush()
                start.record()
                work.enqueue()
                stop.record()
        if self._clock is not None:
            self._clock()
            self._seen.copy_(self._reading, non_blocking=True)
        self._done.record()

    def read(self, origin: torch.cuda.Event) -> Group:
        """Wait for the group, and tell of it."""
        self._done.synchronize()
        spent = sum(_seconds(start, stop) for start, stop in self._pairs)
        cycles, ns = self._seen.tolist()
        mhz = 1e3 * cycles / ns if ns else None
        return Group(_seconds(origin, self._done), round(spent * 1e9), self._work.calls, mhz)


class CudaWatch:
    """What NVML tells beside the load. See Watch."""

    def __init__(self, nvml: Nvml) -> None:
        self._nvml = nvml
        self._gpm: Gpm | None = None

    def clock(self) -> float:
        """See Watch."""
        return time.perf_counter()

    def pulse(self) -> dict[str, Any]:
        """See Watch."""
        return self._nvml.pulse()

    def snapshot(self) -> dict[str, Any]:
        """See Watch."""
        return self._nvml.snapshot()

    def joules(self) -> float:
        """See Watch."""
        return self._nvml.joules()

    def gpm(self) -> dict[str, float] | None:
        """See Watch."""
        if self._gpm is None:
            self._gpm = self._nvml.gpm()
        return self._gpm.window()

    def close(self) -> None:
        """Give back what NVML keeps for GPM."""
        if self._gpm is not None:
            self._gpm.close()
            self._gpm = None


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)


def _seconds(start: torch.cuda.Event, stop: torch.cuda.Event) -> float:
    return float(start.elapsed_time(stop)) / 1e3
