"""The straight line: prepare, check, sample, record. And the loop over the cases of a plan.

`measure` runs where the device is; `run` runs in the parent and knows only an executor. Both yield events; saving,
progress and printing are loops around them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from gpubench import check, energy, telemetry, yardstick
from gpubench.errors import CaseError, DeviceLost, Skip, TimerFailed, UsageError
from gpubench.result import Flag, Metric, Record, RecordStatus, Samples, Timer, Work
from gpubench.sampling import OWN, Sampled, Stopping, Stopwatch, Tally, sample
from gpubench.stats import per_call, percentile, relative_half_width, summarize
from gpubench.sustained import LEAST_MEASURED_S, Sustained, consumption
from gpubench.workload import sound, sound_metrics

if TYPE_CHECKING:
    from gpubench.devices import Device
    from gpubench.suite import Benchmark, Case
    from gpubench.workload import Workload

CALLS_TIMED, CALLS_LEAST, CALLS_NS = 20, 3, 1e8
"""Calls whose host time is taken, one after the other, for `call_ns`: fewer, but not below the least, where the device
would work longer than so many ns on them."""
TICKS = 30
"""A reading of fewer ticks of its timer than this is below its resolution."""
EMPTY_READINGS = {"graph": 10, "event": 10}
"""Timers that also read a launch, or the gap between two nodes of a graph: a call that reads under this many times what
a tiny kernel does is below their resolution."""
RESIDENT = 4
"""A stream of fewer bytes than this many last-level caches is partly served by the cache, whatever was flushed."""


@dataclass(frozen=True)
class Effort:
    """How hard to measure: when to stop, with which timer, from which seed, and whether to measure energy too."""

    stopping: Stopping = field(default_factory=Stopping)
    timer: str = "auto"
    seed: int = 0
    energy: bool = False


@dataclass(frozen=True)
class Started:
    """A case begins: number `index` of `total`, from 1."""

    case: Case
    index: int
    total: int


@dataclass(frozen=True)
class Progress:
    """A case goes on: n samples so far, their median and half-width in ns, the SM clock where it was read. While a load
    warms up there are none, but the latest time of a call and, in `warming_s`, for how long it has gone on."""

    id: str
    n: int
    median_ns: float
    half_width_ns: float | None
    sm_mhz: float | None
    warming_s: float | None = None


Event = Started | Progress | Record


class Measures(Protocol):
    """Whoever measures one case at a time: see `gpubench.executor`."""

    def definition(self, case: Case) -> str:
        """The hash of the benchmark the case belongs to."""

    def measure(self, case: Case, effort: Effort) -> Iterator[Progress | Record]:
        """The case's progress and, last, its Record."""


def run(
    cases: Iterable[Case],
    executor: Measures,
    effort: Effort,
    max_time: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Event]:
    """Measure the cases one after the other. Past `max_time` seconds the rest become rows `skipped: time budget`."""
    cases = list(cases)
    started = clock()
    for index, case in enumerate(cases, 1):
        if max_time is not None and clock() - started >= max_time:
            yield unmeasured(case, executor.definition(case), "skipped", "time budget")
            continue
        yield Started(case, index, len(cases))
        yield from executor.measure(case, effort)


def unmeasured(case: Case, definition: str, status: RecordStatus, reason: str) -> Record:
    """The row of a case that gave no number."""
    return Record(case.id, case.suite, case.benchmark, definition, dict(case.params), case.conditions, status, reason)


def measure(benchmark: Benchmark, case: Case, device: Device, effort: Effort) -> Iterator[Progress | Record]:
    """One case on one device: its progress and, always last, its Record.

    Raises DeviceLost, and UsageError for a timer that this device does not have.
    """
    record = unmeasured(case, benchmark.definition, "ok", "")
    record.reason = None
    try:
        yield from _measure(benchmark, case, device, effort, record)
    except Skip as skip:
        _void(record, skip.status, skip.reason)
    except (DeviceLost, UsageError):
        raise
    except CaseError as error:
        _void(record, error.status, str(error))
    except (Exception, SystemExit) as error:
        problem = device.case_error(error)
        _void(record, problem.status, str(problem))
    finally:
        device.release()
    yield record


def _void(record: Record, status: str, reason: str) -> None:
    """Turn a row into one without a number, whatever it had so far."""
    record.status = status  # type: ignore[assignment]
    record.reason = reason
    record.samples, record.summary, record.metrics, record.call_ns = Samples(), None, [], []
    record.flags, record.stopped_by, record.telemetry = [], None, {}


def _measure(benchmark: Benchmark, case: Case, device: Device, effort: Effort, record: Record) -> Iterator[Progress]:
    clock = time.perf_counter_ns
    device.configure(case.conditions.data, effort.seed)
    begun = clock()
    workload = sound(benchmark.function(device, **case.params))
    device.synchronize()
    record.setup_ns = clock() - begun
    record.work = Work(workload.flops, workload.bytes, workload.dtype, workload.level, workload.roof)
    record.labels = dict(workload.labels)
    record.prediction = dict(workload.prediction)
    with device.precision(workload.precision):
        if workload.output is not None:
            device.poison(workload.output)
        begun = clock()
        workload = _callable(workload, benchmark, device, record)
        returned = workload.call()
        device.synchronize()
        record.compile_ns = clock() - begun
        begun = clock()
        seen = device.compare(_output(workload, returned), workload.reference())
        del returned
        record.check_ns = clock() - begun
        record.check = check.judge(seen, workload)
        before = device.telemetry()
        copies = [workload]
        for number in range(1, device.replicas(workload, case.conditions)):
            device.configure(case.conditions.data, effort.seed + number)
            copies.append(_callable(benchmark.function(device, **case.params), benchmark, device, record))
        yield from _sample(device, copies, case, effort, record)
        further = [] if workload.metrics is None else sound_metrics(workload.metrics())
        if workload.of_kernels is not None and record.kernels:
            further += sound_metrics(workload.of_kernels(record.kernels))
        record.call_ns = device.call_ns(workload.call, _calls_timed(record))
        after = device.telemetry()
        wanted = effort.energy or case.conditions.load == "sustained"
        if wanted and workload.timed_by is None and "energy" not in record.telemetry:
            record.telemetry |= _energy_alone(device, workload, case)
        record.telemetry |= {"before": before, "after": after, "peak_bytes": device.peak_bytes(workload.call)}
        record.telemetry |= _clock_events(record, before, after)
    facts = device.facts()
    _judge(record, workload, facts.get("last_level_cache_bytes"), effort.stopping)
    record.metrics += [*energy.metrics(record), *further]
    _hold(record, yardstick.hold(record, facts))


def _clock_events(record: Record, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What the clock events between two snapshots, just around the samples, mean for these."""
    found: dict[str, Any] = {}
    if spoiled := telemetry.throttles(before, after):
        found["throttles"] = spoiled
    if record.conditions.load == "burst" and any(record.samples.sm_mhz):
        middle = percentile(sorted(record.samples.gpu_ns), 0.5)
        if unread := telemetry.unread_clock(before, after, middle):
            found[telemetry.SM_CLOCK] = unread
    return found


def _output(workload: Workload, returned: object) -> Any:
    """What a call left: in the output that it was given, or as what it returned."""
    output = returned if workload.output is None else workload.output
    if output is None:
        raise CaseError(f"the call returned nothing, and the workload of {workload.reference_name} names no output")
    return output


def _energy_alone(device: Device, workload: Workload, case: Case) -> dict[str, Any]:
    """Energy and activity of calls back to back, which no sample depends on: a failure here is said and costs no row.
    DeviceLost where the device went with it. Nothing is flushed between them, and the record says so, unless the caches
    hold too little of the data for that to matter."""
    try:
        alone = device.load([workload], replace(case.conditions, cache="hot"), "auto")
        found = consumption(alone, device.watch())
        if "conditions" in found["energy"] and _streams(workload, device.facts().get("last_level_cache_bytes")):
            found["energy"]["conditions"] = energy.STREAMED
        return found
    except DeviceLost:
        raise
    except Exception as error:
        why = str(error if isinstance(error, CaseError) else device.case_error(error))
        return {"energy": {"joules_per_call": None, "power_w": None, "unavailable": why}}


def _callable(workload: Workload, benchmark: Benchmark, device: Device, record: Record) -> Workload:
    """The workload with its kernels, where it has any, compiled, loaded and made one call; the row gets their flags."""
    if callable(workload.run):
        return workload
    kernels = workload.run if isinstance(workload.run, tuple) else (workload.run,)
    launches = [device.launcher(kernel, benchmark.file) for kernel in kernels]
    record.flags = list(dict.fromkeys([*record.flags, *(flag for launch in launches for flag in launch.flags)]))
    if len(launches) == 1:
        return replace(workload, run=launches[0].call)
    calls = [launch.call for launch in launches]

    def call() -> None:
        for enqueue in calls:
            enqueue()

    return replace(workload, run=call)


def _sample(
    device: Device, copies: Sequence[Workload], case: Case, effort: Effort, record: Record
) -> Iterator[Progress]:
    """Fill the record with the samples of the first timer whose records add up, or of the suite's own stopwatch;
    under a sustained load with those of the load."""
    refused: list[str] = []
    own = copies[0].timed_by
    if own is None and case.conditions.load == "sustained":
        yield from _sustain(device, copies, case, effort, record)
        return
    for name in device.timers(effort.timer) if own is None else [OWN]:
        try:
            sampler = device.sampler(copies, case.conditions, name) if own is None else Stopwatch(own)
            yield from _fill(record, case, sample(sampler, effort.stopping))
            record.timer = replace(sampler.timer, reason=_reason(sampler.timer, effort.timer, refused))
            record.flags += ["fallback"] if refused else []
            return
        except TimerFailed as failure:
            refused.append(f"{name}: {failure.message}")
    raise CaseError("no timer's records add up: " + "; ".join(refused))


def _calls_timed(record: Record) -> int:
    """How many calls of a sampled row have their host time taken: all their work is waited for."""
    middle = percentile(sorted(per_call(record.samples)), 0.5)
    return max(CALLS_LEAST, min(CALLS_TIMED, int(CALLS_NS / max(middle, 1.0))))


def _reason(timer: Timer, asked: str, refused: Sequence[str]) -> str:
    """Why a timer took the samples, in words: what was refused before it, and what it says of its own readings."""
    if timer.name == OWN:
        return "the suite's own stopwatch"
    own = timer.reason or ("the first that works here" if asked == "auto" else "asked for")
    return f"{'; '.join(refused)}; so {timer.name}: {own}" if refused else own


def _sustain(
    device: Device, copies: Sequence[Workload], case: Case, effort: Effort, record: Record
) -> Iterator[Progress]:
    """Fill the record with the samples of a load without rest, at least as long as the workload asks for. No timer of a
    load sees kernels: they are asked for before it starts."""
    kernels = device.kernels_of(copies[0].call)
    load = device.load(copies, case.conditions, effort.timer)
    sampler = Sustained(load, device.watch(), metered=case.conditions.cache == "hot")
    least = max(effort.stopping.least, copies[0].least_s, LEAST_MEASURED_S)
    for group in sampler.warming():
        yield Progress(case.id, 0, group.call_ns, None, group.sm_mhz, group.end_s)
    yield from _fill(record, case, sample(sampler, replace(effort.stopping, least=least), sampler.clock))
    record.kernels = kernels
    record.timer = replace(sampler.timer, reason=_reason(sampler.timer, effort.timer, sampler.refused))
    record.flags += ["fallback"] if sampler.refused else []
    record.telemetry = sampler.telemetry()


def _fill(record: Record, case: Case, steps: Iterator[Tally | Sampled]) -> Iterator[Progress]:
    """Pass on how sampling stands, and put what it leaves into the record."""
    for step in steps:
        if isinstance(step, Sampled):
            record.samples, record.kernels, record.stopped_by = step.samples, step.kernels, step.stopped_by
            record.flags += ["profiled"] if step.profiled else []
        else:
            yield Progress(case.id, step.n, step.median_ns, step.half_width_ns, step.sm_mhz)


def _judge(record: Record, workload: Workload, cache_bytes: int | None, stopping: Stopping) -> None:
    """Summary, metrics and flags of a sampled row. `cache_bytes`: the last-level cache, None if not known."""
    values = per_call(record.samples)
    record.summary = summarize(values)
    middle = percentile(sorted(values), 0.5)
    assert record.timer is not None
    tick = record.timer.tick_ns / record.samples.launches[-1]
    flags: list[Flag] = []
    if middle < _resolution_ns(record.timer, tick):
        flags.append("below-resolution")
    width = relative_half_width(values, tick)
    if width is not None and width > stopping.max_noise and width * middle > tick:
        flags.append("noisy")  # an interval of one tick either way is as narrow as this timer can show
    if workload.level == "DRAM" and cache_bytes is not None and not _streams(workload, cache_bytes):
        flags.append("cache-resident")
    if record.telemetry.get("throttles"):
        flags.append("throttled")
    record.flags += flags
    record.metrics = _metrics(workload, middle)


def _streams(workload: Workload, cache_bytes: int | None) -> bool:
    """Whether a call needs so many bytes that hardly any of them are still in the last-level cache when the next one
    asks for them; False where the cache is not known."""
    return cache_bytes is not None and workload.bytes >= RESIDENT * cache_bytes


def _hold(record: Record, held: yardstick.Held) -> None:
    """Put what a row was held against into it."""
    record.metrics += held.metrics
    record.prediction |= held.prediction
    record.flags += ["implausible"] if held.implausible else []


def _resolution_ns(timer: Timer, tick_ns: float) -> float:
    """The shortest call that a timer can be trusted with; `tick_ns` is its tick, shared out among a sample's calls."""
    return max(TICKS * tick_ns, EMPTY_READINGS.get(timer.name, 0) * (timer.empty_ns or 0.0))


def _metrics(workload: Workload, median_ns: float) -> list[Metric]:
    """Time and, where it is above zero, the rates of one call."""
    headline = workload.headline
    if median_ns <= 0:
        return [Metric("time", median_ns, "ns", "lower", primary=True)]
    metrics = [Metric("time", median_ns, "ns", "lower", primary=headline == "time")]
    if workload.flops:
        rate = workload.flops / median_ns * 1e9
        metrics.append(Metric("flops", rate, "FLOP/s", "higher", primary=headline == "flops"))
    if workload.bytes:
        rate = workload.bytes / median_ns * 1e9
        metrics.append(Metric("bandwidth", rate, "B/s", "higher", primary=headline == "bytes"))
    return metrics
