"""The timers of a CUDA device: CUPTI's activity records through torch.profiler, and pairs of events.

Both time one call at a time, after a rest that lets the SM clock return to its maximum ("burst") and, where the case is
cold, after a flush of the L2 cache. Then a kernel that only spins holds the stream while the call is enqueued, so that
the device does not wait for the host between the call's own kernels. Neither is part of the call's time.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch

from gpubench.devices import Batch, Call
from gpubench.devices.activities import ROUNDING_NS, Activity, busy, from_trace, half, seen, span, split, tick
from gpubench.devices.clock import Hold
from gpubench.devices.tensors import first_line
from gpubench.errors import TimerFailed
from gpubench.result import Timer

REST_S = 0.002
"""Rest before each call; 2 ms of it keep an H200 at its maximum clock where back-to-back matmuls lose a quarter."""
REST_SHARE = 4.0
"""A long call is given a rest of this many times its own time: a GPU at its power limit needs a fifth of the load."""
GAPS = 0.10
"""Gaps between the activities of a call above this share of its span mark the row `profiled`."""
TRIES = 3
"""A batch whose records do not add up is repeated, at most this often in all, before the timer is given up."""
WARM_UP_S = 0.02
"""Device time of warm-up calls, at least; never fewer than WARM_UP_CALLS."""
WARM_UP_CALLS = 3
MOST_WARM_UPS = 200
PROBES = 40
"""Readings of a tiny kernel that a timer's tick is taken from."""
HOLD_S = 200e-6
"""The stream is held at least this long: after a rest, Python's path to the first launch takes up to 100 µs."""
HOLD_SHARE = 4.0
"""A call is given this many times the host time it takes to enqueue; a timer that records every launch slows it."""
HOLD_MOST_S = 5e-3

T = TypeVar("T")


def profile(work: Call) -> list[Activity]:
    """The device work of a call and of everything it waits for, by CUPTI. TimerFailed where it cannot be read back."""
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True) as profiler:
        work()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory(prefix="gpubench-") as folder:
        path = Path(folder) / "trace.json"
        try:
            profiler.export_chrome_trace(str(path))
            return from_trace(json.loads(path.read_text(errors="replace")))
        except (OSError, ValueError) as error:
            raise TimerFailed(f"cupti's trace cannot be read: {first_line(error)}") from error


@dataclass
class Probe:
    """What is known of the timers of one device, measured once: CUPTI's tick and its reading of a tiny kernel, the same
    of an event pair, and the activities one flush makes. `cupti_failure` says why CUPTI does not work, or is None."""

    cupti: Timer
    event: Timer
    flush_activities: int
    cupti_failure: str | None = None


def probe(flush: Call, clock: Hold) -> Probe:
    """Measure both timers with a kernel that writes one element."""
    tiny = torch.empty(1, device="cuda")

    def held_event() -> int:
        clock.hold(HOLD_S)
        return _event_ns(lambda: tiny.fill_(1.0))

    def fills() -> None:
        for _ in range(PROBES):
            tiny.fill_(1.0)

    def counted() -> list[Activity]:
        activities = profile(fills)
        if len(activities) != PROBES:
            raise TimerFailed(f"cupti gave {len(activities)} activity records for {PROBES} kernels")
        return activities

    event_readings = sorted(held_event() for _ in range(PROBES))
    event = Timer("event", tick(event_readings), float(event_readings[PROBES // 2]))
    try:
        profile(fills)  # the profiler's first session costs seconds and may lose records
        durations = sorted(a.end_ns - a.start_ns for a in _repeated(counted))
        cupti = Timer("cupti", tick(durations, ROUNDING_NS), float(durations[PROBES // 2]))
        return Probe(cupti, event, len(activities_of(flush)))
    except TimerFailed as error:
        failure = error.message
    except RuntimeError as error:
        failure = first_line(error)
    return Probe(Timer("cupti", 1.0), event, 0, f"cupti does not work here: {failure}")


def activities_of(call: Call) -> list[Activity]:
    """What one call does on the device, from sessions that hold two. TimerFailed where none adds up."""

    return _repeated(lambda: half(profile(lambda: (call(), call()))))


def _repeated(session: Callable[[], list[T]]) -> list[T]:
    """A session whose records add up, of at most TRIES; the last one's TimerFailed where none does."""
    for _ in range(TRIES - 1):
        with suppress(TimerFailed):  # and kept by no name: its frames hold the tensors of the case
            return session()
    return session()


def _event_ns(call: Call) -> int:
    """One call between two events, in ns."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    call()
    end.record()
    end.synchronize()
    return round(float(start.elapsed_time(end)) * 1e6)


class CudaSampler:
    """What both timers share: warming up, resting, flushing, holding. `flush` is None where the case is hot."""

    def __init__(self, call: Call, flush: Call | None, timer: Timer, clock: Hold) -> None:
        self._clock = clock
        self.timer = timer
        self._call = call
        self._flush = flush
        self._rest_s = REST_S
        self._hold_s = HOLD_S

    def warm_up(self) -> float:
        """Flush and call for WARM_UP_S of device time, then set the rest by the time of one call."""
        readings: list[int] = []
        enqueue: list[float] = []
        while len(readings) < WARM_UP_CALLS or sum(readings) < WARM_UP_S * 1e9:
            begun = time.perf_counter()
            self._call()
            enqueue.append(time.perf_counter() - begun)
            torch.cuda.synchronize()
            self._clear()
            self._clock.hold(self._hold_s)
            readings.append(_event_ns(self._call))
            if len(readings) >= MOST_WARM_UPS:
                break
        rough = float(sorted(readings)[len(readings) // 2])
        self._rest_s = max(REST_S, REST_SHARE * rough / 1e9)
        self._hold_s = min(max(HOLD_S, HOLD_SHARE * min(enqueue)), HOLD_MOST_S)
        return rough + (self._rest_s + self._hold_s) * 1e9

    def _clear(self) -> None:
        """Flush where the case is cold."""
        if self._flush is not None:
            self._flush()

    def _paced(self, call: Call, calls: int) -> None:
        """For each of so many calls, after the clock was started: rest, flush, hold, call, read the clock, wait."""
        for number in range(calls):
            time.sleep(self._rest_s)
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
        self._clock.start(n, self._hold_s)
        self._paced(lambda: readings.append(_event_ns(self._call)), n)
        return Batch(readings, [1] * n, self._clock.mhz())


class CuptiSampler(CudaSampler):
    """Times each call by the activity records of its kernels, copies and sets: first start to last end.

    `flush_activities` is how many records one flush makes; how many one call makes is counted while warming up.
    """

    def __init__(self, call: Call, flush: Call | None, timer: Timer, clock: Hold, flush_activities: int) -> None:
        super().__init__(call, flush, timer, clock)
        self._before = (flush_activities if flush is not None else 0) + 1  # and the kernel that holds the stream
        self._each = 0

    def warm_up(self) -> float:
        """See CudaSampler; and count the activities of one call, from a session that holds two."""
        rough = super().warm_up()
        self._each = len(activities_of(self._call))
        return rough

    def batch(self, n: int) -> Batch:
        """See Sampler. TimerFailed where the records do not add up in TRIES sessions."""

        def session() -> list[list[Activity]]:
            self._clock.start(n, self._hold_s)  # outside the session: what it does leaves records of its own
            activities = profile(lambda: self._paced(self._call, n))
            return split(activities, n, self._before, self._each, self._clock.trailing)

        calls = _repeated(session)
        spans = [span(call) for call in calls]
        gaps = sorted(1 - busy(call) / whole if whole else 0.0 for call, whole in zip(calls, spans, strict=True))
        return Batch(spans, [1] * n, self._clock.mhz(), seen(calls[-1]), profiled=gaps[n // 2] > GAPS)
