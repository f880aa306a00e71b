"""Warm up, then sample until steady or out of budget, and say which rule stopped it.

METHOD is raised whenever a change here or in a device's timing makes figures differ from those taken before: rows of
different methods are not comparable.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpubench.devices import Batch, Sampler
from gpubench.errors import TimerFailed
from gpubench.result import KernelSeen, Samples, Timer
from gpubench.stats import per_call, percentile, relative_half_width

METHOD = 1

OWN = "own"
"""The name of a suite's own stopwatch."""
MIN_SAMPLES = 10
FIRST_BATCH = 20
FIRST_BATCH_S = 0.1
"""A first batch takes no longer than this, as far as MIN_SAMPLES allow: long calls are mostly quiet ones."""
LEAST_BATCH = 5
SPARE = 1.2
"""A batch is this many times what the target seems to need, as an interval does not always narrow as it should."""
MOST_A_BATCH = 200
"""What a timer must hold and read back for one batch stays bounded."""
MAX_SAMPLES = 10_000
STALLED = 0.9
"""Noise has stopped improving when twice the samples leave more than this share of the half-width; independent samples
would leave 1/√2 of it."""
STALLED_FROM = 80
"""Samples below which noise is not yet called settled."""


@dataclass(frozen=True)
class Stopping:
    """When to stop: `samples` exactly that many; else `max_noise` (relative half-width of the median's 95 % interval)
    reached, or noise no longer improving, or `case_time` seconds spent; but never before `least` seconds."""

    max_noise: float = 0.005
    case_time: float = 0.5
    samples: int | None = None
    least: float = 0.0

    def rule(self, values: list[float], tick_ns: float, spent: float) -> str | None:
        """The rule that says stop, or None to go on. `values` are ns per call in the order taken."""
        n = len(values)
        if self.samples is not None:
            return "samples" if n >= self.samples else None
        if n >= MAX_SAMPLES:
            return "count"
        if n < MIN_SAMPLES or spent < self.least:
            return None
        width = relative_half_width(values, tick_ns)
        if width is not None and width <= self.max_noise:
            return "precision"
        if spent >= self.case_time:
            return "budget"
        bare = relative_half_width(values, 0.0)
        if width is not None and bare is not None and bare < width:
            return "settled"  # narrower than the timer can show: more samples read the same ticks
        if n >= STALLED_FROM and width is not None:
            before = relative_half_width(values[: n // 2], tick_ns)
            if before is not None and width > STALLED * before:
                return "settled"
        return None

    def next_batch(self, taken: int, call_ns: float, spent: float, width: float | None = None) -> int:
        """How many samples to take next, so that batches grow but none runs far past the budget, nor far past what the
        target seems to need: `width` is the relative half-width so far, which falls as 1/√n."""
        if self.samples is not None:
            return min(taken or FIRST_BATCH, MOST_A_BATCH, self.samples - taken)
        wanted = min(taken or FIRST_BATCH, MOST_A_BATCH)
        if not taken and call_ns > 0:
            wanted = max(min(wanted, int(FIRST_BATCH_S * 1e9 / call_ns)), MIN_SAMPLES)
        if width is not None and self.max_noise > 0 and spent >= self.least:
            needed = math.ceil(taken * ((width / self.max_noise) ** 2 - 1) * SPARE)
            wanted = min(wanted, max(needed, LEAST_BATCH))
        left = max(max(self.case_time, self.least) - spent, 0.0)
        affordable = int(left * 1e9 / call_ns) if call_ns > 0 else wanted
        floor = MIN_SAMPLES - taken if taken < MIN_SAMPLES else 1
        return max(min(wanted, affordable), floor)


@dataclass
class Sampled:
    """What sampling leaves: all samples, the kernels of a call, and the rule that fired."""

    samples: Samples
    kernels: list[KernelSeen]
    profiled: bool
    stopped_by: str


@dataclass(frozen=True)
class Tally:
    """How sampling stands, for the live view: n samples, median and half-width in ns, SM clock where read."""

    n: int
    median_ns: float
    half_width_ns: float | None
    sm_mhz: float | None


class Stopwatch:
    """A sampler that asks a suite's own stopwatch, see Workload.timed_by: whatever that says is the reading."""

    WARM_UPS = 3

    def __init__(self, timed_by: Callable[[], int]) -> None:
        self.timer = Timer(OWN, 1.0)
        self._timed_by = timed_by

    def warm_up(self) -> float:
        """See Sampler."""
        return float(min(self._timed_by() for _ in range(self.WARM_UPS)))

    def batch(self, n: int) -> Batch:
        """See Sampler."""
        return Batch([self._timed_by() for _ in range(n)], [1] * n, [None] * n)


def sample(
    sampler: Sampler, stopping: Stopping, clock: Callable[[], float] = time.perf_counter
) -> Iterator[Tally | Sampled]:
    """Warm up, then yield a Tally after each batch and, last, the Sampled.

    TimerFailed where the sampler raises it, and for a timer that goes backwards.
    """
    rough_ns = sampler.warm_up()
    samples = Samples()
    kernels: list[KernelSeen] = []
    profiled = False
    started = clock()
    block = 0
    width: float | None = None
    while True:
        spent = clock() - started
        taken = len(samples.gpu_ns)
        pace_ns = spent * 1e9 / taken if taken else rough_ns
        batch = sampler.batch(stopping.next_batch(taken, pace_ns, spent, width))
        if min(batch.gpu_ns) < 0:
            raise TimerFailed(f"it read {min(batch.gpu_ns)} ns: it goes backwards")
        kernels = kernels or batch.kernels
        profiled = profiled or batch.profiled
        samples.gpu_ns += batch.gpu_ns
        samples.launches += batch.launches
        samples.sm_mhz += batch.sm_mhz
        samples.block += [block] * len(batch.gpu_ns)
        block += 1
        values = per_call(samples)
        tick = sampler.timer.tick_ns / max(batch.launches[-1], 1)
        width = relative_half_width(values, tick)
        yield _tally(values, width, batch.sm_mhz[-1])
        rule = stopping.rule(values, tick, clock() - started)
        if rule is not None:
            yield Sampled(samples, kernels, profiled, rule)
            return


def _tally(values: list[float], width: float | None, sm_mhz: float | None) -> Tally:
    middle = percentile(sorted(values), 0.5)
    return Tally(len(values), middle, None if width is None else width * middle, sm_mhz)
