"""The straight line on a fake device: its order, its statuses, what a row keeps and what it must not keep."""

from __future__ import annotations

import math
import random
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from gpubench.devices import Batch
from gpubench.errors import DeviceLost, Skip, TimerFailed, Unsupported, UsageError
from gpubench.executor import Bench, InProcess
from gpubench.result import FAILED, Conditions, KernelSeen, Metric, Record, Samples, Timer
from gpubench.runner import CALLS_LEAST, CALLS_TIMED, RESIDENT, Effort, Progress, Started, measure, run
from gpubench.sampling import Stopping
from gpubench.store import runfile
from gpubench.suite import Axis, Benchmark, Case
from gpubench.sustained import LEAST_MEASURED_S
from gpubench.testing import FakeDevice, FakeSampler
from gpubench.testing.timers import SAMPLERS
from gpubench.workload import Workload

QUICK = Effort(Stopping(case_time=0.05))
NS = 10_000


class Logged(FakeDevice):
    """A fake device that keeps what is asked of it, in order, and whose parts can be replaced."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.log: list[str] = []
        self.telemetries: list[Any] = []
        self.samplers: dict[str, Callable[[Sequence[Workload]], FakeSampler]] = {}
        self.calls_ns: list[int] | Exception = []
        self.copies = 1

    def configure(self, data: str, seed: int) -> None:
        self.log.append(f"configure {data} {seed}")
        super().configure(data, seed)

    def poison(self, output: list[float]) -> None:
        self.log.append("poison")
        super().poison(output)

    def compare(self, output: list[float], reference: list[float]) -> Any:
        self.log.append("compare")
        return super().compare(output, reference)

    def synchronize(self) -> None:
        self.log.append("synchronize")

    def precision(self, mode: str) -> AbstractContextManager[None]:
        inner = super().precision(mode)

        @contextmanager
        def held() -> Iterator[None]:
            self.log.append(f"precision {mode}")
            with inner:
                try:
                    yield
                finally:
                    self.log.append("precision restored")

        return held()

    def replicas(self, workload: Workload, conditions: Conditions) -> int:
        return self.copies

    def timers(self, asked: str) -> Sequence[str]:
        return tuple(self.samplers) if self.samplers and asked == "auto" else super().timers(asked)

    def sampler(self, workloads: Sequence[Workload], conditions: Conditions, timer: str) -> FakeSampler:
        self.log.append(f"sampler {timer} of {len(workloads)}")
        made = self.samplers.get(timer, lambda workloads: FakeSampler(self, workloads))
        return made(workloads)

    def call_ns(self, call: Any, n: int) -> list[int]:
        self.log.append(f"call_ns {n}")
        if isinstance(self.calls_ns, Exception):
            raise self.calls_ns
        return self.calls_ns

    def telemetry(self) -> dict[str, Any]:
        self.log.append("telemetry")
        found = self.telemetries.pop(0) if self.telemetries else super().telemetry()
        if isinstance(found, Exception):
            raise found
        return found

    def release(self) -> None:
        self.log.append("release")
        super().release()


def double(device: FakeDevice, n: int) -> Workload:
    """Write twice the input: n ns · NS a call."""
    x, out = device.random(n, "float32"), device.unwritten(n, "float32")
    log = getattr(device, "log", [])
    log.append("prepare")

    def call() -> None:
        log.append("run")
        device.spend(NS * n)
        out[:] = [2 * value for value in x]

    def reference() -> list[float]:
        log.append("reference")
        return [2 * value for value in x]

    return Workload(call, out, reference, "twice", flops=n, bytes=8 * n, labels={"parity": "even"}, dtype="float32")


def benchmark(function: Callable[..., Workload], name: str = "bench") -> Benchmark:
    return Benchmark("suite", name, function, {"n": Axis([1])})


def case(n: int = 4, name: str = "bench", **conditions: Any) -> Case:
    return Case("suite", name, {"n": n}, Conditions(**conditions))


def row(
    function: Callable[..., Workload] = double,
    device: FakeDevice | None = None,
    effort: Effort = QUICK,
    n: int = 4,
    **conditions: Any,
) -> Record:
    device = device or Logged()
    released = device.releases
    *progress, record = measure(benchmark(function), case(n, **conditions), device, effort)
    assert all(isinstance(step, Progress) for step in progress)
    assert isinstance(record, Record)
    assert device.releases == released + 1
    assert runfile.record_from_json(runfile.record_to_json(record), "row") == record, "every row can be saved"
    return record


def changed(workload: Workload, **fields: Any) -> Workload:
    for name, value in fields.items():
        setattr(workload, name, value)
    return workload


# The line


def test_the_straight_line() -> None:
    device = Logged()
    record = row(device=device, effort=Effort(Stopping(samples=2), seed=5), data="uniform")
    assert device.log == [
        "configure uniform 5",
        "prepare",
        "synchronize",
        "precision ieee",
        "poison",
        "run",
        "synchronize",
        "reference",
        "compare",
        "telemetry",
        "sampler fake of 1",
        *["run"] * 3,  # one to warm up
        f"call_ns {CALLS_TIMED}",
        "telemetry",
        "run",  # for its peak of memory
        "precision restored",
        "release",
    ]
    assert record.status == "ok"
    assert record.reason is None


def test_what_an_ok_row_holds() -> None:
    device = Logged()
    device.calls_ns = [700, 800]
    device.telemetries = [{"sm_mhz": 1}, {"sm_mhz": 2}]
    begun = time.perf_counter_ns()
    record = row(device=device)
    spent = time.perf_counter_ns() - begun
    assert record.id == "suite/bench[n=4]"
    assert (record.suite, record.benchmark, record.params) == ("suite", "bench", {"n": 4})
    assert record.conditions == Conditions()
    assert record.definition == benchmark(double).definition
    assert record.work is not None
    assert asdict(record.work) == {"flops": 4, "bytes": 32, "dtype": "float32", "level": None, "roof": None}
    assert record.labels == {"parity": "even"}
    assert record.check is not None
    assert (record.check.error, record.check.elements, record.check.reference) == (0.0, 4, "twice")
    assert record.summary is not None
    assert (record.summary.median_ns, record.summary.low_ns, record.summary.high_ns) == (4 * NS, 4 * NS, 4 * NS)
    assert record.stopped_by == "precision"
    assert record.timer == Timer("fake", 1.0, reason="the first that works here")
    assert record.call_ns == [700, 800]
    assert record.telemetry == {"before": {"sm_mhz": 1}, "after": {"sm_mhz": 2}, "peak_bytes": 32}
    assert [kernel.name for kernel in record.kernels] == ["fake_kernel"]
    parts = [record.setup_ns or 0, record.compile_ns or 0, record.check_ns or 0]
    assert min(parts) > 0
    assert sum(parts) < spent
    assert record.flags == []
    assert {
        metric.name: (metric.value, metric.unit, metric.direction, metric.primary) for metric in record.metrics
    } == {
        "time": (4 * NS, "ns", "lower", False),
        "flops": (4 / (4 * NS) * 1e9, "FLOP/s", "higher", True),
        "bandwidth": (32 / (4 * NS) * 1e9, "B/s", "higher", False),
    }


@pytest.mark.parametrize(
    ("fields", "primary"),
    [
        ({}, "flops"),
        ({"flops": 0}, "bandwidth"),
        ({"flops": 0, "bytes": 0}, "time"),
        ({"primary": "bytes"}, "bandwidth"),
        ({"primary": "time"}, "time"),
    ],
)
def test_one_metric_is_the_headline(fields: dict[str, Any], primary: str) -> None:
    record = row(lambda device, n: changed(double(device, n), **fields))
    assert [metric.name for metric in record.metrics if metric.primary] == [primary]


def test_figures_a_kernel_counted_join_the_row_after_the_samples() -> None:
    def counted(device: FakeDevice, n: int) -> Workload:
        workload = double(device, n)
        return changed(workload, metrics=lambda: [Metric("cycles", workload.output[0], "cycles", "lower")])

    record = row(counted)
    assert [metric.name for metric in record.metrics][-1] == "cycles"
    assert record.metrics[-1].value != 0, "asked after the last call, of what it wrote"
    assert [metric.name for metric in record.metrics if metric.primary] == ["flops"]


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        (Metric("cycles", math.nan, "cycles", "lower"), "metric 'cycles' is nan; expected a finite number"),
        (Metric("cycles", -math.inf, "cycles", "lower"), "metric 'cycles' is -inf; expected a finite number"),
        (Metric("cycles", [1.0], "cycles", "lower"), "metric 'cycles' is [1.0]; expected a finite number"),  # type: ignore[arg-type]
        (Metric("speed", 1.0, "1/s", "higher", primary=True), "metric 'speed' is primary"),
    ],
)
@pytest.mark.parametrize("field", ["metrics", "of_kernels"])
def test_a_figure_that_no_run_file_can_hold_costs_its_row(metric: Metric, words: str, field: str) -> None:
    def spoiled(device: FakeDevice, n: int) -> Workload:
        return changed(double(device, n), **{field: lambda *_: [metric]})

    record = row(spoiled, FakeDevice(timers=("cupti",)))
    assert record.status == "error"
    assert words in (record.reason or "")
    no_number(record)
    assert runfile.record_from_json(runfile.record_to_json(record), "here") == record


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"prediction": {"time_ns": math.inf}}, "prediction 'time_ns' holds inf, which no run file can hold"),
        ({"prediction": {"by": {"L2": [1, math.nan]}}}, "prediction 'by' holds nan"),
        ({"prediction": {"by": {2: 1.0}}}, "prediction 'by' holds 2"),
        ({"prediction": {"by": {1, 2}}}, "prediction 'by' holds {1, 2}"),
        ({"labels": {"alignment": 16}}, "label 'alignment' is 16; expected text"),
        ({"flops": 1.5}, "flops is 1.5; expected a whole number, 0 or more"),
        ({"bytes": -8}, "bytes is -8; expected a whole number, 0 or more"),
    ],
)
def test_so_does_a_workload_that_holds_one_before_anything_is_timed(fields: dict[str, Any], words: str) -> None:
    record = row(lambda device, n: changed(double(device, n), **fields))
    assert record.status == "error"
    assert words in (record.reason or "")
    no_number(record)


def test_what_is_no_workload_costs_its_row() -> None:
    record = row(lambda device, n: None)  # type: ignore[arg-type, return-value]
    assert record.status == "error"
    assert "a benchmark returns a Workload, and this one returned None" in (record.reason or "")


def test_figures_from_the_kernels_that_the_timer_saw() -> None:
    def with_kernels(device: FakeDevice, n: int) -> Workload:
        workload = double(device, n)
        return changed(workload, of_kernels=lambda seen: [Metric("kernels", float(len(seen)), "1", "lower")])

    record = row(with_kernels, FakeDevice(timers=("cupti",)))
    assert [(metric.name, metric.value) for metric in record.metrics][-1] == ("kernels", 1.0)
    assert record.summary is not None
    assert record.kernels[0].ns == record.summary.median_ns
    unseen = row(with_kernels, FakeDevice(timers=("graph",)))
    assert unseen.metric("kernels") is None, "that timer sees none"


def test_an_output_may_be_what_the_call_returns() -> None:
    def returning(device: FakeDevice, n: int, wrong: float = 0.0, nothing: bool = False) -> Workload:
        workload = double(device, n)
        doubled, out = workload.call, workload.output

        def call() -> object:
            doubled()
            out[0] += wrong
            return None if nothing else out

        return changed(workload, run=call, output=None)

    assert row(lambda device, n: returning(device, n)).status == "ok"
    assert row(lambda device, n: returning(device, n, wrong=1.0)).status == "incorrect"
    empty = row(lambda device, n: returning(device, n, nothing=True))
    assert empty.status == "error"
    assert "returned nothing" in str(empty.reason)


def test_what_was_returned_for_the_check_is_gone_before_the_next_call() -> None:
    class Tensor(list[float]):
        pass

    born: list[weakref.ref[Tensor]] = []
    alive: list[bool] = []

    def returning(device: FakeDevice, n: int) -> Workload:
        workload = double(device, n)
        doubled, out = workload.call, workload.output

        def call() -> Tensor:
            doubled()
            alive.extend(made() is not None for made in born)
            born.append(weakref.ref(made := Tensor(out)))
            return made

        return changed(workload, run=call, output=None)

    assert row(returning, effort=Effort(Stopping(samples=1))).status == "ok"
    assert alive[:1] == [False]


def test_a_row_has_its_own_peak_of_memory_whatever_came_before() -> None:
    device = Logged()
    peaks = [row(device=device, n=n).telemetry["peak_bytes"] for n in (4, 1000, 4)]
    assert peaks == [2 * 4 * n for n in (4, 1000, 4)], "an input and an output of float32 each"


def test_a_suite_may_bring_its_own_stopwatch() -> None:
    device = Logged()
    record = row(lambda device, n: changed(double(device, n), timed_by=lambda: 77), device)
    assert record.timer == Timer("own", 1.0, reason="the suite's own stopwatch")
    assert set(record.samples.gpu_ns) == {77}
    assert record.check is not None, "its output is checked like any other"


def test_no_load_is_measured_for_a_row_by_its_own_stopwatch() -> None:
    """Calls back to back draw another power than whatever that stopwatch does."""
    device = Logged(watts=300.0)
    record = row(lambda device, n: changed(double(device, n), timed_by=lambda: 77), device, load="sustained")
    assert set(record.samples.gpu_ns) == {77}
    assert "energy" not in record.telemetry


def test_a_row_about_time_asks_for_it_under_a_sustained_load() -> None:
    def asking(device: Any, n: int) -> Workload:
        return changed(double(device, n), least_s=5.0)

    assert measured_s(row(asking, load="sustained")) >= 5
    assert LEAST_MEASURED_S <= measured_s(row(double, load="sustained")) < LEAST_MEASURED_S + 0.5
    asked = Effort(Stopping(case_time=0.05, least=4.0))
    assert 4 <= measured_s(row(double, effort=asked, load="sustained")) < 4.5
    assert measured_s(row(asking)) < 0.01, "a burst has no such time"


def measured_s(record: Record) -> float:
    """The scripted time that the samples took."""
    return sum(record.samples.gpu_ns) / 1e9


CAPPED = [{"event_ns": {"software power cap": ns}} for ns in (0, *[200] * 9)]
"""Of a power cap that came on after the first snapshot."""


@pytest.mark.parametrize(
    ("n", "telemetries", "load", "said"),
    [
        (400_000 // NS, CAPPED, "burst", "read beside calls of 0.4 ms, and not within them: software power cap"),
        (200_000 // NS, CAPPED, "burst", None),
        (400_000 // NS, CAPPED[:1] * 9, "burst", None),
        (400_000 // NS, CAPPED, "sustained", None),
    ],
)
def test_the_clock_beside_a_long_burst_under_a_power_cap_is_said_to_be_no_more(
    n: int, telemetries: list[Any], load: Any, said: str | None
) -> None:
    device = Logged()
    device.telemetries = list(telemetries)
    record = row(device=device, n=n, load=load, cache="hot")
    assert record.telemetry.get("sm_clock") == said
    assert all(record.samples.sm_mhz), "the readings stay"


def test_the_clock_of_a_replay_is_beside_all_its_calls() -> None:
    device = Logged()
    device.samplers = {"graph": lambda workloads: SAMPLERS["graph"](device, workloads)}
    device.telemetries = list(CAPPED)
    record = row(device=device, cache="hot")
    assert record.samples.launches[0] > 1
    assert "sm_clock" in record.telemetry, "40 µs a call, but a sample is of many"


def test_of_a_clock_that_was_not_read_nothing_is_said() -> None:
    device = Logged()
    device.telemetries = list(CAPPED)
    record = row(lambda device, n: changed(double(device, n), timed_by=lambda: 400_000), device)
    assert set(record.samples.sm_mhz) == {None}
    assert "sm_clock" not in record.telemetry


def test_the_snapshots_lie_around_the_samples_and_not_around_the_load_for_energy() -> None:
    device = Logged(watts=500.0)
    watched = device.watch
    device.watch = lambda: device.log.append("load") or watched()  # type: ignore[func-returns-value,method-assign]
    assert row(device=device, effort=replace(QUICK, energy=True)).status == "ok"
    assert [step for step in device.log if step in ("telemetry", "load")] == ["telemetry", "telemetry", "load"]


@pytest.mark.parametrize(("n", "calls"), [(4, CALLS_TIMED), (1000, 10), (20_000, CALLS_LEAST)])
def test_the_host_time_of_long_calls_is_taken_of_fewer(n: int, calls: int) -> None:
    device = Logged()
    assert row(device=device, effort=Effort(Stopping(samples=2)), n=n).status == "ok"
    assert f"call_ns {calls}" in device.log


def test_what_a_sustained_row_holds() -> None:
    device = Logged(clock=lambda seconds: 1.0 if seconds < 0.8 else 0.75, watts=500.0)
    record = row(device=device, load="sustained", cache="hot")
    assert record.status == "ok"
    assert record.timer is not None
    assert record.timer.name == "fake"
    assert set(record.samples.launches) == {250}
    assert set(record.samples.sm_mhz) == {750.0}, "the fall of the clock is in the series, not in the samples"
    assert record.summary is not None
    assert record.summary.median_ns == pytest.approx(4 * NS / 0.75, abs=1)
    series = record.telemetry["series"]
    assert (series["sm_mhz"][0], series["sm_mhz"][-1]) == (1000.0, 750.0)
    assert series["measured_from_ms"] == pytest.approx(1e3 * record.telemetry["warm_up"]["seconds"], abs=1)
    assert record.telemetry["warm_up"]["flat"] is True
    assert {"before", "after", "limited_by"} <= record.telemetry.keys()
    joules = 500 * 4 * NS / 0.75 / 1e9
    assert metric_of(record, "power") == pytest.approx(500, rel=0.01)
    assert metric_of(record, "energy") == pytest.approx(joules, rel=0.01)
    assert metric_of(record, "energy_per_flop") == pytest.approx(joules / 4, rel=0.01)
    assert metric_of(record, "energy_per_byte") == pytest.approx(joules / 32, rel=0.01)
    assert [metric.name for metric in record.metrics if metric.primary] == ["flops"]


def metric_of(record: Record, name: str) -> float:
    metric = record.metric(name)
    assert metric is not None
    return metric.value


@pytest.mark.parametrize("load", ["burst", "sustained"])
def test_energy_of_a_cold_row_is_that_of_the_calls_alone(load: str) -> None:
    loads: list[Conditions] = []

    class Watched(Logged):
        def load(self, workloads: Any, conditions: Conditions, timer: str) -> Any:
            loads.append(conditions)
            return super().load(workloads, conditions, timer)

    record = row(device=Watched(watts=300.0), effort=replace(QUICK, energy=True), cache="cold", load=load)
    assert loads[-1].cache == "hot"
    assert record.telemetry["energy"]["conditions"] == "hot, back to back"
    assert metric_of(record, "power") == pytest.approx(300, rel=0.01)
    assert record.metric("energy_per_flop") is not None
    assert record.metric("energy_per_byte") is None, "32 bytes that the caches hold"


def test_a_cold_row_of_more_bytes_than_caches_hold_has_an_energy_of_each() -> None:
    def streaming(device: Any, n: int) -> Workload:
        return changed(double(device, n), bytes=RESIDENT * device.facts()["last_level_cache_bytes"])

    record = row(streaming, Logged(watts=300.0), replace(QUICK, energy=True))
    assert record.telemetry["energy"]["conditions"] == "back to back, over data that no cache holds"
    assert record.metric("energy_per_byte") is not None
    assert "conditions" not in row(streaming, effort=replace(QUICK, energy=True)).telemetry["energy"], "there is none"


def test_a_sustained_row_has_the_kernels_of_a_call_and_tells_of_its_warm_up() -> None:
    class Seeing(Logged):
        def kernels_of(self, call: Any) -> list[KernelSeen]:
            call()
            return [KernelSeen("gemm")]

    device = Seeing()
    *events, record = list(measure(benchmark(double), case(load="sustained"), device, Effort(Stopping())))
    assert isinstance(record, Record)
    assert record.kernels == [KernelSeen("gemm")]
    warming = [event.warming_s for event in events if isinstance(event, Progress) and event.warming_s is not None]
    assert warming == pytest.approx([0.1 * (number + 1) for number in range(len(warming))], abs=0.02)
    assert warming[-1] == pytest.approx(record.telemetry["warm_up"]["seconds"], abs=0.11)
    after = [event for event in events if isinstance(event, Progress) and event.warming_s is None]
    assert min(event.n for event in after) > 0


def test_an_energy_that_fails_costs_no_sample() -> None:
    class Full(Logged):
        def load(self, *asked: Any) -> Any:
            raise MemoryError("no room for a graph")

    record = row(device=Full(watts=300.0), effort=replace(QUICK, energy=True))
    assert record.status == "ok"
    assert record.samples.gpu_ns
    assert record.telemetry["energy"]["unavailable"] == "MemoryError: no room for a graph"
    assert record.metric("energy") is None


@pytest.mark.parametrize("error", [ConnectionError("fell off the bus"), DeviceLost("fell off the bus")])
def test_a_device_that_is_lost_over_its_energy_is_lost(error: Exception) -> None:
    class Gone(Logged):
        def load(self, *asked: Any) -> Any:
            raise error

    with pytest.raises(DeviceLost):
        list(measure(benchmark(double), case(), Gone(watts=300.0), replace(QUICK, energy=True)))


def test_energy_is_measured_where_it_was_asked_for_and_said_to_be_missing_where_it_is() -> None:
    assert "energy" not in row(device=Logged(watts=300.0)).telemetry
    record = row(effort=replace(QUICK, energy=True))
    assert record.telemetry["energy"]["unavailable"] == "the fake device counts no energy"
    assert record.telemetry["gpm"] == {"unavailable": "the fake device has no GPM"}
    assert record.metric("energy") is None


def test_so_many_samples_are_so_many_groups() -> None:
    record = row(device=Logged(watts=90.0), effort=Effort(Stopping(samples=7)), load="sustained", cache="hot")
    assert len(record.samples.gpu_ns) == 7
    assert metric_of(record, "power") == pytest.approx(90, rel=0.01), "too short for its energy, which is taken apart"
    assert record.stopped_by == "samples"


def test_a_load_that_fails_leaves_no_series() -> None:
    def failing(device: Logged, n: int) -> Workload:
        workload = double(device, n)

        def metrics() -> Any:
            raise RuntimeError("broken")

        return changed(workload, metrics=metrics)

    record = row(failing, load="sustained")
    assert (record.status, record.telemetry) == ("error", {})


def test_progress_carries_the_samples_so_far() -> None:
    *progress, _ = measure(benchmark(double), case(), FakeDevice(), Effort(Stopping(samples=60)))
    assert [(step.n, step.median_ns) for step in progress if isinstance(step, Progress)] == [
        (20, 4 * NS),
        (40, 4 * NS),
        (60, 4 * NS),
    ]
    assert all(step.sm_mhz == 1000.0 and step.half_width_ns == 0.5 for step in progress if isinstance(step, Progress))


def test_copies_have_inputs_of_their_own_and_are_prepared_after_the_check() -> None:
    device = Logged()
    device.copies = 3
    row(device=device, effort=Effort(Stopping(samples=1), seed=10))
    wanted = ["prepare", "compare", "configure", "sampler"]
    assert [line for line in device.log if line.split()[0] in wanted] == [
        "configure normal 10",
        "prepare",
        "compare",
        "configure normal 11",
        "prepare",
        "configure normal 12",
        "prepare",
        "sampler fake of 3",
    ]


# Rows without a number


def no_number(record: Record) -> None:
    assert record.samples == Samples()
    assert (record.summary, record.stopped_by) == (None, None)
    assert record.metrics == record.call_ns == record.flags == []
    assert record.reason


def raising(error: BaseException) -> Callable[..., Workload]:
    def function(device: FakeDevice, n: int) -> Workload:
        raise error

    return function


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (Skip("no such size here"), "skipped", "no such size here"),
        (Unsupported("fp8 needs compute capability 8.9"), "unsupported", "fp8 needs compute capability 8.9"),
        (ValueError("bad\x00 shape"), "error", "ValueError: bad\x00 shape"),
        (RuntimeError(), "error", "RuntimeError: "),
        (AssertionError("no"), "error", "AssertionError: no"),
        (SystemExit(3), "error", "SystemExit: 3"),
    ],
)
def test_what_a_benchmark_raises_is_the_status(error: BaseException, status: str, reason: str) -> None:
    record = row(raising(error))
    assert (record.status, record.reason) == (status, reason)
    assert (record.status in FAILED) == (status == "error")
    no_number(record)
    assert (record.work, record.check, record.timer) == (None, None, None)


def test_out_of_memory_says_what_was_asked_and_what_was_free() -> None:
    record = row(device=Logged(memory=1000), n=200)
    assert (record.status, record.reason) == ("oom", "out of memory: needs 800 bytes, free 200 bytes")
    no_number(record)


def test_memory_is_free_again_after_each_row() -> None:
    """O23: a size that does not fit costs its own row, not the next one's."""
    device = FakeDevice(memory=1000)
    statuses = []
    for n in (100, 200, 100):
        *_, record = measure(benchmark(double), case(n), device, QUICK)
        assert isinstance(record, Record)
        statuses.append(record.status)
    assert statuses == ["ok", "oom", "ok"]


def wrong(device: FakeDevice, n: int) -> Workload:
    return changed(double(device, n), run=lambda: None)


def test_a_wrong_result_has_no_time() -> None:
    device = Logged()
    record = row(wrong, device)
    assert record.status == "incorrect"
    assert record.reason is not None
    assert record.reason.startswith("wrong result: at [0] got nan, expected")
    assert not any(line.startswith(("sampler", "call_ns")) for line in device.log)
    assert device.log[-2:] == ["precision restored", "release"]
    no_number(record)


def test_what_is_written_only_once_is_wrong() -> None:
    """The output is poisoned after the benchmark prepared it, so what was there before does not count."""

    def prepared(device: FakeDevice, n: int) -> Workload:
        workload = double(device, n)
        workload.run()
        return changed(workload, run=lambda: None)

    assert row(prepared).status == "incorrect"


def test_a_precision_the_device_lacks_is_unsupported() -> None:
    record = row(lambda device, n: changed(double(device, n), precision="tf32"))
    assert (record.status, record.reason) == ("unsupported", "the fake device has no tf32")
    no_number(record)


def test_a_failure_after_sampling_takes_the_numbers_with_it() -> None:
    device = Logged()
    device.calls_ns = RuntimeError("launch failed")
    record = row(device=device)
    assert (record.status, record.reason) == ("error", "RuntimeError: launch failed")
    no_number(record)


def test_a_failure_at_the_very_end_takes_the_numbers_with_it() -> None:
    device = Logged()
    device.calls_ns = [700]
    device.telemetries = [{}, RuntimeError("unreadable")]
    record = row(device=device)
    assert (record.status, record.reason) == ("error", "RuntimeError: unreadable")
    no_number(record)


def test_a_failure_while_sampling_takes_the_samples_with_it() -> None:
    calls = iter(range(1000))

    def failing(device: FakeDevice, n: int) -> Workload:
        workload = double(device, n)
        inner = workload.run

        def call() -> None:
            if next(calls) > 30:
                raise ValueError("boom")
            inner()

        return changed(workload, run=call)

    record = row(failing, effort=Effort(Stopping(samples=100)))
    assert (record.status, record.reason) == ("error", "ValueError: boom")
    no_number(record)


@pytest.mark.parametrize("error", [DeviceLost("gone"), ConnectionError("gone"), UsageError("no such timer")])
def test_a_lost_device_and_a_wrong_request_are_not_rows(error: Exception) -> None:
    device = Logged()
    with pytest.raises((DeviceLost, UsageError)):
        list(measure(benchmark(raising(error)), case(), device, QUICK))
    assert device.releases == 1


def test_an_interrupt_releases_and_goes_on_up() -> None:
    device = Logged()
    with pytest.raises(KeyboardInterrupt):
        list(measure(benchmark(raising(KeyboardInterrupt())), case(), device, QUICK))
    assert device.log[-1] == "release"


def test_a_consumer_that_stops_listening_releases_the_device() -> None:
    device = Logged()
    events = measure(benchmark(double), case(), device, Effort(Stopping(samples=100)))
    next(events)
    assert device.releases == 0
    events.close()  # type: ignore[attr-defined]
    assert device.log[-2:] == ["precision restored", "release"]


def test_tensors_of_a_failed_row_are_gone_when_the_device_is_released() -> None:
    """O23: an exception that is kept keeps the frames, and with them the tensors, of the case that raised it."""
    import gc

    class Tensor(list[float]):
        pass

    alive: list[bool] = []
    born: list[weakref.ref[Tensor]] = []

    class Device(Logged):
        def unwritten(self, shape: Any, dtype: str) -> Tensor:
            born.append(weakref.ref(tensor := Tensor(super().unwritten(shape, dtype))))
            return tensor

        def release(self) -> None:
            alive.append(born[-1]() is not None)
            super().release()

    gc.disable()
    try:
        for function in (double, wrong, lambda device, n: changed(double(device, n), reference=lambda: [0, *[1 / 0]])):
            row(function, Device())
    finally:
        gc.enable()
    assert alive == [False] * 3


# Timers


class Broken(FakeSampler):
    def batch(self, n: int) -> Batch:
        raise TimerFailed("records are missing")


def test_the_next_timer_is_used_and_the_row_says_so() -> None:
    device = Logged()
    device.samplers = {
        "best": lambda workloads: Broken(device, workloads),
        "good": lambda workloads: FakeSampler(device, workloads),
    }
    record = row(device=device)
    assert record.status == "ok"
    assert record.flags == ["fallback"]
    assert record.timer is not None
    assert record.timer.reason == "best: records are missing; so fake: the first that works here"
    assert [line for line in device.log if line.startswith("sampler")] == ["sampler best of 1", "sampler good of 1"]


def test_a_timer_that_cannot_even_start_is_passed_over() -> None:
    device = Logged()

    def absent(workloads: Sequence[Workload]) -> FakeSampler:
        raise TimerFailed("does not work here")

    device.samplers = {"best": absent, "good": lambda workloads: FakeSampler(device, workloads)}
    record = row(device=device)
    assert (record.status, record.flags) == ("ok", ["fallback"])


class Late(FakeSampler):
    """Fails after samples were taken."""

    def batch(self, n: int) -> Batch:
        if self.taken:
            raise TimerFailed("the second batch is short")
        return super().batch(n)


def test_no_sample_of_a_timer_that_failed_is_kept() -> None:
    device = Logged()
    device.samplers = {
        "best": lambda workloads: Late(device, workloads),
        "good": lambda workloads: FakeSampler(device, workloads),
    }
    record = row(device=device, effort=Effort(Stopping(samples=40)))
    assert len(record.samples.gpu_ns) == 40
    assert set(record.samples.block) == {0, 1}


def test_no_timer_left_is_an_error_that_names_them_all() -> None:
    device = Logged()
    device.samplers = {"best": lambda w: Broken(device, w), "good": lambda w: Late(device, w)}
    record = row(device=device, effort=Effort(Stopping(samples=40)))
    assert record.status == "error"
    assert record.reason == "no timer's records add up: best: records are missing; good: the second batch is short"
    no_number(record)


def test_a_timer_the_device_does_not_have_is_a_wrong_request() -> None:
    with pytest.raises(UsageError, match="no timer 'cupti' on the fake device"):
        list(measure(benchmark(double), case(), FakeDevice(), Effort(timer="cupti")))


# Flags


def taking(ns: float) -> Callable[..., Workload]:
    def function(device: FakeDevice, n: int) -> Workload:
        workload = double(device, n)
        out = workload.output
        values = workload.reference()

        def call() -> None:
            device.spend(ns)
            out[:] = values

        return changed(workload, run=call, flops=10, bytes=0)

    return function


def test_a_noisy_row_is_flagged_and_kept() -> None:
    device = Logged(noise=lambda i: 1.0 if i % 2 else 2.0)
    record = row(device=device)
    assert record.flags == ["noisy"]
    assert record.status == "ok"
    assert record.stopped_by in ("settled", "budget")


def test_noise_is_what_is_above_the_noise_that_was_asked_for() -> None:
    device = Logged(noise=lambda i: 1.0 if i % 2 else 1.04)
    assert row(device=device, effort=Effort(Stopping(samples=20, max_noise=0.015))).flags == ["noisy"]
    assert row(device=device, effort=Effort(Stopping(samples=20, max_noise=0.03))).flags == []


def test_a_tick_either_way_is_not_noise() -> None:
    """Readings of 3200 and 3264 ns have a half-width of 1 %, which is one tick."""

    def flags(swing: float) -> Sequence[str]:
        device = Logged(noise=lambda i: 1.0 if i % 2 else 1 + swing, tick_ns=32)
        return row(taking(3200), device, Effort(Stopping(samples=40))).flags

    assert list(flags(0.02)) == []
    assert list(flags(0.04)) == ["noisy"]


@pytest.mark.parametrize(("ticks", "flagged"), [(29, True), (30, False), (31, False)])
def test_below_thirty_ticks_is_below_resolution(ticks: int, flagged: bool) -> None:
    record = row(taking(100 * ticks), Logged(tick_ns=100))
    assert ("below-resolution" in record.flags) is flagged
    assert "noisy" not in record.flags, "a tick is not noise"


@pytest.mark.parametrize(("times", "flagged"), [(9.9, True), (10.1, False)])
def test_below_ten_empty_readings_of_an_event_pair_is_below_its_resolution(times: float, flagged: bool) -> None:
    """Method rule 5: the tick of an event pair is fine; what it cannot tell apart is the launch."""

    class Events(FakeSampler):
        def __init__(self, device: FakeDevice, workloads: Sequence[Workload]) -> None:
            super().__init__(device, workloads)
            self.timer = Timer("event", 1.0, empty_ns=5000.0)

    device = Logged()
    device.samplers = {"event": lambda workloads: Events(device, workloads)}
    record = row(taking(5000 * times), device)
    assert record.flags == (["below-resolution"] if flagged else [])


def test_a_time_of_zero_gives_no_rate() -> None:
    record = row(taking(0), effort=Effort(Stopping(samples=20)))
    assert record.status == "ok"
    assert record.flags == ["below-resolution"]
    assert [(metric.name, metric.value, metric.primary) for metric in record.metrics] == [("time", 0.0, True)]


def test_a_clock_that_goes_backwards_is_an_error() -> None:
    record = row(device=Logged(noise=lambda i: -1.0))
    assert record.status == "error"
    assert record.reason == "no timer's records add up: fake: it read -40000 ns: it goes backwards"
    no_number(record)


def test_one_sample_has_a_time_and_no_interval() -> None:
    """O13: what one sample cannot tell is unknown: neither zero, nor noise."""
    record = row(effort=Effort(Stopping(samples=1)))
    assert record.summary is not None
    assert (record.summary.n, record.summary.low_ns, record.summary.high_ns) == (1, None, None)
    assert record.summary.median_ns == 4 * NS
    assert (record.flags, record.stopped_by) == ([], "samples")


@pytest.mark.parametrize(
    ("level", "nbytes", "flagged"),
    [("DRAM", 3_999_999, True), ("DRAM", 4_000_000, False), (None, 1000, False)],
)
def test_a_stream_that_the_cache_can_serve_is_flagged(level: str | None, nbytes: int, flagged: bool) -> None:
    device = Logged(cache_bytes=10**6)
    record = row(lambda device, n: changed(double(device, n), level=level, bytes=nbytes), device)
    assert record.flags == (["cache-resident"] if flagged else [])


def test_a_cache_that_is_not_known_flags_nothing() -> None:
    device = Logged(cache_bytes=None)  # type: ignore[arg-type]
    assert row(lambda device, n: changed(double(device, n), level="DRAM", bytes=8), device).flags == []


@pytest.mark.parametrize("throttled", [("before",), ("after",), ()])
def test_a_throttled_row_is_flagged_and_kept(throttled: tuple[str, ...]) -> None:
    device = Logged()
    hot = {"clock_events": ["hardware thermal slowdown"]}
    device.telemetries = [hot if when in throttled else {} for when in ("before", "after")]
    record = row(device=device)
    assert record.flags == (["throttled"] if throttled else [])
    assert record.telemetry.get("throttles") == (["hardware thermal slowdown"] if throttled else None)
    assert record.summary is not None


def test_gaps_mark_a_row_profiled() -> None:
    class Gappy(FakeSampler):
        def batch(self, n: int) -> Batch:
            batch = super().batch(n)
            batch.profiled = True
            return batch

    device = Logged()
    device.samplers = {"fake": lambda workloads: Gappy(device, workloads)}
    assert row(device=device).flags == ["profiled"]


def test_a_single_odd_reading_does_not_move_the_median() -> None:
    device = Logged(noise=lambda i: 1000.0 if i == 7 else 1.0)
    record = row(device=device)
    assert record.summary is not None
    assert record.summary.median_ns == 4 * NS
    assert max(record.samples.gpu_ns) == 4000 * NS, "and is kept"


# Many cases


def bench() -> Bench:
    functions = {"good": double, "wrong": wrong, "skip": raising(Skip("not here")), "lost": raising(ConnectionError())}
    return Bench(
        {f"suite/{name}": benchmark(function, name) for name, function in functions.items()},
        {"suite": Path(__file__)},
    )


def test_a_bad_case_is_one_row() -> None:
    executor = InProcess(FakeDevice(memory=10_000), bench())
    cases = [case(4, "good"), case(4, "wrong"), case(4000, "good"), case(4, "skip"), case(8, "good")]
    events = list(run(cases, executor, QUICK))
    records = [event for event in events if isinstance(event, Record)]
    assert [record.status for record in records] == ["ok", "incorrect", "oom", "skipped", "ok"]
    assert [(event.index, event.total, event.case) for event in events if isinstance(event, Started)] == [
        (index, 5, planned) for index, planned in enumerate(cases, 1)
    ]
    assert [record.id for record in records] == [planned.id for planned in cases]


def test_a_lost_device_ends_an_in_process_run() -> None:
    events = run([case(4, "good"), case(4, "lost"), case(8, "good")], InProcess(FakeDevice(), bench()), QUICK)
    seen = []

    def listen() -> None:
        seen.extend(event for event in [next(events)] if isinstance(event, Record))

    with pytest.raises(DeviceLost):  # noqa: PT012
        while True:
            listen()
    assert [(record.id, record.status, record.reason) for record in seen] == [
        ("suite/good[n=4]", "ok", None),
        ("suite/lost[n=4]", "error", "fake device lost: "),
    ]


def test_past_the_time_allowed_the_rest_is_skipped() -> None:
    ticks = iter([0.0, 0.0, 4.9, 5.0, 6.0])
    cases = [case(n, "good") for n in (1, 2, 3, 4)]
    events = list(run(cases, InProcess(FakeDevice(), bench()), QUICK, max_time=5.0, clock=lambda: next(ticks)))
    records = [event for event in events if isinstance(event, Record)]
    assert [(record.status, record.reason) for record in records] == [
        ("ok", None),
        ("ok", None),
        ("skipped", "time budget"),
        ("skipped", "time budget"),
    ]
    assert all(record.definition for record in records)
    assert len([event for event in events if isinstance(event, Started)]) == 2


def test_the_order_of_cases_changes_nothing() -> None:
    cases = [case(n, name) for n in (1, 2, 5, 9) for name in ("good", "wrong", "skip")] + [case(4000, "good")]

    def rows(order: list[Case]) -> dict[str, dict[str, Any]]:
        executor = InProcess(FakeDevice(memory=10_000), bench())
        records = [event for event in run(order, executor, QUICK) if isinstance(event, Record)]
        found = {}
        for record in records:
            record.setup_ns = record.compile_ns = record.check_ns = None
            found[record.id] = asdict(record)
        return found

    shuffled = cases[:]
    random.Random(1).shuffle(shuffled)
    assert shuffled != cases
    assert rows(shuffled) == rows(cases) == rows(cases[::-1])


def test_same_seed_same_data_and_other_seed_other_data() -> None:
    seen: list[tuple[float, ...]] = []

    def keeping(device: FakeDevice, n: int) -> Workload:
        workload = double(device, n)
        seen.append(tuple(workload.reference()))
        return workload

    for seed in (1, 1, 2):
        row(keeping, effort=Effort(Stopping(samples=1), seed=seed))
    assert seen[0] == seen[1] != seen[2]
    row(keeping, data="zeros")
    assert seen[-1] == (0.0,) * 4


def test_fake_comparisons_know_infinities() -> None:
    device = FakeDevice()
    same = device.compare([math.inf, 1.0], [math.inf, 1.0])
    assert (same.error_norm, same.reference_norm) == (0.0, 1.0)
    assert device.compare([math.nan], [math.nan]).worst == math.inf


def test_an_unknown_timer_is_refused_before_anything_is_measured() -> None:
    with pytest.raises(UsageError, match="no timer 'host'"):
        InProcess(FakeDevice(), bench(), timer="host")
