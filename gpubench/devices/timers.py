"""The timers of a CUDA device: CUPTI's activity records, replays of a CUDA graph, and pairs of events.

All make calls after a rest that lets the SM clock return to its maximum ("burst") and, where the case is cold, after a
flush of the L2 cache. Then a kernel that only spins holds the stream while the call is enqueued, so that the device
does not wait for the host between the call's own kernels. None of this is part of the call's time.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch

from gpubench.devices import Batch, Call, pacing
from gpubench.devices.activities import ROUNDING_NS, Activity, Reader, agree, tick
from gpubench.devices.clock import Hold
from gpubench.devices.cupti import CuptiPython
from gpubench.devices.graph import Graph
from gpubench.devices.pacing import Pace, repeated
from gpubench.devices.records import Source, TorchProfiler, activities_of
from gpubench.devices.tensors import first_line
from gpubench.errors import TimerFailed
from gpubench.result import Timer

TIMERS = ("cupti", "graph", "event")
"""Best first: records hold the kernels alone, a replay also the gaps between them, a pair of events a launch too."""
PROBES = 40
"""Readings of a tiny kernel that a timer's tick is taken from."""
REPLAYS = 11
"""Replays of tiny kernels that the graph timer's empty reading is taken from, as any call's is."""


@dataclass
class Probe:
    """What is known of the timers of one device, measured once: the tick of each and its reading of a tiny kernel, the
    activities one flush makes, and in `failures` which timers do not work and why. `source` is where records come from,
    `session_ns` what a session of PROBES kernels takes there, `refused` why a better source was not to be had."""

    timers: dict[str, Timer]
    failures: dict[str, str]
    source: Source
    flush_activities: int = 0
    session_ns: float = 0.0
    refused: dict[str, str] = field(default_factory=dict)


def probe(flush: Call, clock: Hold) -> Probe:
    """Measure all timers with a kernel that writes one element."""
    tiny = torch.empty(1, device="cuda")

    def fill() -> None:
        tiny.fill_(1.0)

    def held() -> int:
        clock.hold(pacing.HOLD_S)
        return _event_ns(fill)

    found = Probe({}, {}, TorchProfiler())
    try:
        found.timers["cupti"] = _probe_records(found, fill, clock)
        found.flush_activities = len(activities_of(found.source, flush))
    except (TimerFailed, RuntimeError) as error:
        found.failures["cupti"] = _words(error)
    readings = sorted(held() for _ in range(PROBES))
    event_tick = tick(readings)
    found.timers["event"] = Timer("event", event_tick, float(readings[PROBES // 2]))
    try:
        sampler = GraphSampler(fill, None, Timer("graph", event_tick), clock)
        sampler.warm_up()
        batch = sampler.batch(REPLAYS)
        found.timers["graph"] = replace(
            sampler.timer, empty_ns=sorted(batch.gpu_ns)[REPLAYS // 2] / batch.launches[0], reason=None
        )
    except (TimerFailed, RuntimeError) as error:
        found.failures["graph"] = _words(error)
    return found


def _words(error: TimerFailed | RuntimeError) -> str:
    return error.message if isinstance(error, TimerFailed) else first_line(error)


def _probe_records(found: Probe, fill: Call, clock: Hold) -> Timer:
    """The first source whose records of known kernels are right. TimerFailed where no source's are.

    CUPTI's own package comes first: its sessions cost half as much, and torch's profiler takes seconds to start once.
    The two do not share a process: after torch's profiler, the records of the other have another clock.
    """

    def fills() -> None:
        for _ in range(PROBES):
            fill()

    def figures(source: Source) -> Timer:
        begun = time.perf_counter()
        activities = source.session(fills, details=False)
        found.session_ns = (time.perf_counter() - begun) * 1e9
        if len(activities) != PROBES:
            raise TimerFailed(f"{len(activities)} activity records of {PROBES} kernels")
        clock.start(1, pacing.HOLD_S)
        agree(source.session(lambda: clock.before(0), details=False), clock.held_ns())
        durations = sorted(a.end_ns - a.start_ns for a in activities)
        return Timer("cupti", tick(durations, ROUNDING_NS), float(durations[PROBES // 2]))

    for make in (CuptiPython, TorchProfiler):
        try:
            found.source = make()
            found.source.session(fills)  # a first session may take seconds and lose records
            return repeated(lambda: figures(found.source))
        except (TimerFailed, RuntimeError) as error:
            found.refused[make.name] = _words(error)
    raise TimerFailed(found.refused[TorchProfiler.name])


def _event_ns(call: Call) -> int:
    """One call between two events, in ns."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    call()
    end.record()
    end.synchronize()
    return round(float(start.elapsed_time(end)) * 1e6)


class CudaSampler(ABC):
    """What all timers share: warming up, resting, flushing, holding. `flush` is None where the case is hot."""

    def __init__(self, call: Call, flush: Call | None, timer: Timer, clock: Hold) -> None:
        self._clock = clock
        self.timer = timer
        self._call = call
        self._flush = flush
        self._pace = Pace()

    def warm_up(self) -> float:
        """See Sampler: the time of one sample in ns, with the rest and the hold before it."""
        rough = self._settle(self._call)
        return rough + (self._pace.rest_s + self._pace.hold_s) * 1e9

    def _settle(self, call: Call) -> float:
        """Flush and call until warm, and set the pace by what a call takes: that time in ns, roughly."""
        readings: list[int] = []
        enqueue: list[float] = []
        begun = time.perf_counter()
        while not pacing.is_warm(len(readings), time.perf_counter() - begun):
            called = time.perf_counter()
            call()
            enqueue.append(time.perf_counter() - called)
            torch.cuda.synchronize()
            self._clear()
            self._clock.hold(self._pace.hold_s)
            readings.append(_event_ns(call))
        rough = float(sorted(readings)[len(readings) // 2])
        self._pace = pacing.pace(rough, min(enqueue))
        return rough

    @abstractmethod
    def batch(self, n: int) -> Batch:
        """See Sampler."""

    def _clear(self) -> None:
        """Flush where the case is cold."""
        if self._flush is not None:
            self._flush()

    def _paced(self, call: Call, calls: int) -> None:
        """For each of so many calls, after the clock was started: rest, flush, hold, call, read the clock, wait."""
        for number in range(calls):
            time.sleep(self._pace.rest_s)
            self._clear()
            self._clock.before(number)
            call()
            self._clock.after(number)
            torch.cuda.synchronize()


class EventSampler(CudaSampler):
    """Times each call between two events. For calls of some tens of µs and more: below that it reads the launch."""

    def batch(self, n: int) -> Batch:
        """See Sampler."""
        readings: list[int] = []
        self._clock.start(n, self._pace.hold_s)
        self._paced(lambda: readings.append(_event_ns(self._call)), n)
        self.timer = replace(self.timer, reason="a pair of events around each call")
        return Batch(readings, [1] * n, self._clock.mhz())


class GraphSampler(CudaSampler):
    """Times replays of a CUDA graph of many copies of the call between two events: one sample is one replay.

    Where the case is cold, each copy follows a flush, and from each replay that of as many flushes alone is taken away,
    measured right after it. What is left of a call then has one gap between two nodes of a graph in it, as it has where
    the case is hot, and so has the reading of a tiny kernel that is kept as `empty_ns`: some 1 µs on an H200.
    TimerFailed where the call cannot be captured.
    """

    def __init__(self, call: Call, flush: Call | None, timer: Timer, clock: Hold) -> None:
        super().__init__(call, flush, timer, clock)
        self._copies = 1
        self._graph: Graph | None = None
        self._flushes: Graph | None = None

    def warm_up(self) -> float:
        """See CudaSampler; and capture the call, again where the first graph shows that its replay is too short."""
        took = self._capture(pacing.copies(self._settle(self._flushed)))
        if took < pacing.REPLAY_S * 1e9:
            took = self._capture(pacing.copies(took / self._copies))
        replays = 1
        if self._flush is not None:
            self._flushes = Graph(self._flush, self._copies)
            replays = 2
        return replays * (took + (self._pace.rest_s + self._pace.hold_s) * 1e9)

    def _capture(self, copies: int) -> float:
        """Capture so many copies, and set the pace by their replay: what it takes in ns, roughly."""
        self._copies = copies
        self._graph = Graph(self._flushed, copies)
        return self._settle(self._graph.replay)

    def _flushed(self) -> None:
        """What one copy is of."""
        self._clear()
        self._call()

    def batch(self, n: int) -> Batch:
        """See Sampler."""
        assert self._graph is not None
        readings = []
        self._clock.start(n, self._pace.hold_s)
        for number in range(n):
            time.sleep(self._pace.rest_s)
            self._clock.before(number)
            whole = _event_ns(self._graph.replay)
            self._clock.after(number)
            torch.cuda.synchronize()
            if self._flushes is not None:
                time.sleep(self._pace.rest_s)
                self._clock.hold(self._pace.hold_s)
                whole -= _event_ns(self._flushes.replay)
            readings.append(whole)
        self.timer = replace(self.timer, reason=f"a replay of {self._copies} calls")
        return Batch(readings, [self._copies] * n, self._clock.mhz())


class CuptiSampler(CudaSampler):
    """Times each call by the activity records of its kernels, copies and sets: first start to last end.

    `flush_activities` is how many records one flush makes.
    """

    def __init__(
        self, call: Call, flush: Call | None, timer: Timer, clock: Hold, source: Source, flush_activities: int
    ) -> None:
        super().__init__(call, flush, timer, clock)
        self._source = source
        before = (flush_activities if flush is not None else 0) + 1  # and the kernel that holds the stream
        self._reader = Reader(before, clock.trailing, lambda: len(activities_of(source, call)), clock.held_ns)

    def batch(self, n: int) -> Batch:
        """See Sampler. TimerFailed where the records do not add up in pacing.TRIES sessions."""

        def session(details: bool) -> list[Activity]:
            self._clock.start(n, self._pace.hold_s)  # outside the session: what it does leaves records of its own
            return self._source.session(lambda: self._paced(self._call, n), details)

        batch = self._reader.batch(session, n)
        self.timer = replace(self.timer, reason=self._reader.reason)
        return replace(batch, sm_mhz=self._clock.mhz())


MAKERS: dict[str, Callable[[Call, Call | None, Timer, Hold], CudaSampler]] = {
    "graph": GraphSampler,
    "event": EventSampler,
}


def sampler_of(known: Probe, name: str, call: Call, flush: Call | None, clock: Hold) -> CudaSampler:
    """What times a call with one of TIMERS. TimerFailed where that does not work on this device."""
    if name in known.failures:
        raise TimerFailed(f"does not work here: {known.failures[name]}")
    timer = known.timers[name]
    if name == "cupti":
        return CuptiSampler(call, flush, timer, clock, known.source, known.flush_activities)
    return MAKERS[name](call, flush, timer, clock)
