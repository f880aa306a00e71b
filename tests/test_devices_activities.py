"""From a profiler's records to times: hand-made traces, and a profiler that loses records."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpubench.devices import timers
from gpubench.devices.activities import ROUNDING_NS, Activity, busy, from_trace, half, seen, span, split, tick
from gpubench.devices.timers import TRIES, CuptiSampler, EventSampler, activities_of, probe
from gpubench.errors import TimerFailed
from gpubench.result import KernelSeen, Timer

TRACE = Path(__file__).parent / "golden" / "torch-trace.json"


def activity(start: int, end: int, correlation: int = 0, name: str = "kernel", grid: Any = (1, 1, 1)) -> Activity:
    return Activity(name, "kernel", start, end, correlation, grid, (128, 1, 1))


# Traces


def test_a_trace_of_torch() -> None:
    """Device work only, in the order of its launches, in whole nanoseconds."""
    found = from_trace(json.loads(TRACE.read_text()))
    assert [(a.name, a.kind, a.end_ns - a.start_ns, a.correlation) for a in found] == [
        ("Memset (Device)", "memset", 1184, 101),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT", "kernel", 11136, 102),
        ("splitKreduce_kernel", "kernel", 3616, 103),
        ("Memcpy DtoD (Device -> Device)", "memcpy", 126399, 104),
    ]
    assert found[1].start_ns == 5467892318304
    assert (found[1].grid, found[1].block) == ((2, 66, 1), (384, 1, 1))
    assert (found[1].registers, found[1].shared_bytes) == (168, 213504)
    assert (found[0].grid, found[0].block, found[0].registers) == (None, None, None)
    assert span(found) == 5467892334944 + 126399 - 5467892315007
    assert busy(found) == 1184 + 11136 + 3616 + 126399


def test_a_trace_without_device_work() -> None:
    assert from_trace({"traceEvents": []}) == from_trace({}) == []
    host = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1.0, "dur": 2.0}
    assert from_trace({"traceEvents": [host, {"ph": "i", "cat": "kernel", "name": "no duration", "ts": 1.0}]}) == []


def test_a_kernel_is_known_by_its_category_and_not_its_name() -> None:
    """A filter by name would lose `zero_`, which is a memset, and would take a host call named like a kernel."""
    events = [
        {"ph": "X", "cat": "cuda_runtime", "name": "gemm_kernel", "ts": 1.0, "dur": 9.0, "args": {"correlation": 1}},
        {"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "ts": 2.0, "dur": 1.0, "args": {"correlation": 1}},
    ]
    assert [a.kind for a in from_trace({"traceEvents": events})] == ["memset"]


# Splitting

FLUSH, HOLD, CALL = 2, 1, 2


def session(calls: int, before: int = FLUSH + HOLD, each: int = CALL) -> list[Activity]:
    """What a whole session records: of each call, what prepares it and then itself."""
    size = before + each
    return [
        activity(100 * i, 100 * i + 50, i, f"activity {i % size}", grid=(1 + i % size, 1, 1))
        for i in range(calls * size)
    ]


def test_each_call_gets_its_own_activities() -> None:
    calls = split(session(3), 3, FLUSH + HOLD, CALL)
    assert [[a.correlation for a in call] for call in calls] == [[3, 4], [8, 9], [13, 14]]
    assert split(session(2, before=0, each=1), 2, 0, 1) == [[a] for a in session(2, before=0, each=1)]


@pytest.mark.parametrize("lost", [0, 1, 4, 14])
def test_one_lost_record_fails_the_session(lost: int) -> None:
    """Without a count, the records after the first lost one would be read as those of other calls."""
    records = session(3)
    del records[lost]
    with pytest.raises(TimerFailed, match="cupti gave 14 activity records where 3 calls make 15"):
        split(records, 3, FLUSH + HOLD, CALL)


@pytest.mark.parametrize(("records", "calls", "each"), [(16, 3, 2), (0, 3, 2), (9, 3, 0)])
def test_records_that_do_not_add_up(records: int, calls: int, each: int) -> None:
    with pytest.raises(TimerFailed, match=f"gave {records} activity records"):
        split(session(4)[:records], calls, FLUSH + HOLD, each)


def test_half_of_two_calls() -> None:
    records = session(2, before=0, each=3)
    assert half(records) == records[:3]


@pytest.mark.parametrize("lost", [(0,), (5,), (0, 1), (0, 3, 4), (0, 1, 2, 3, 4, 5)])
def test_half_of_two_calls_of_which_some_is_lost(lost: tuple[int, ...]) -> None:
    """Two lost of six leave an even number: only what they are tells."""
    records = [record for i, record in enumerate(session(2, before=0, each=3)) if i not in lost]
    with pytest.raises(TimerFailed, match="do not pair"):
        half(records)


# Times


@pytest.mark.parametrize(
    ("times", "whole", "union"),
    [
        ([(5, 9)], 4, 4),
        ([(0, 10), (10, 30)], 30, 30),
        ([(0, 10), (15, 30)], 30, 25),
        ([(0, 10), (5, 30)], 30, 30),  # overlap counts once
        ([(0, 30), (5, 10)], 30, 30),  # one inside the other
        ([(0, 30), (5, 10), (8, 12), (40, 50)], 50, 40),
        ([(15, 30), (0, 10)], 30, 25),  # on another stream, launched first
        ([(0, 0)], 0, 0),
        ([(7, 7), (9, 9)], 2, 0),
    ],
)
def test_span_and_busy_by_hand(times: list[tuple[int, int]], whole: int, union: int) -> None:
    activities = [activity(start, end) for start, end in times]
    assert (span(activities), busy(activities)) == (whole, union)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), min_size=1, max_size=12))
def test_span_and_busy_by_counting(pairs: list[tuple[int, int]]) -> None:
    activities = [activity(start, start + length) for start, length in pairs]
    covered = {ns for start, length in pairs for ns in range(start, start + length)}
    assert busy(activities) == len(covered)
    assert busy(activities) <= span(activities)
    shuffled = activities[:]
    random.Random(0).shuffle(shuffled)
    assert (span(shuffled), busy(shuffled)) == (span(activities), busy(activities))


def test_what_a_call_ran_with_counts() -> None:
    calls = [
        activity(0, 1, 1, "gemm", (8, 4, 1)),
        activity(1, 2, 2, "reduce"),
        activity(2, 3, 3, "gemm", (8, 4, 1)),
        activity(3, 4, 4, "gemm", (9, 4, 1)),
        Activity("Memset (Device)", "memset", 4, 5, 5),
    ]
    assert seen(calls) == [
        KernelSeen("gemm", "kernel", 2, [8, 4, 1], [128, 1, 1]),
        KernelSeen("reduce", "kernel", 1, [1, 1, 1], [128, 1, 1]),
        KernelSeen("gemm", "kernel", 1, [9, 4, 1], [128, 1, 1]),
        KernelSeen("Memset (Device)", "memset", 1, None, None),
    ]
    assert seen([]) == []


@pytest.mark.parametrize(
    ("readings", "rounding", "expected"),
    [
        ([], 0, 1.0),
        ([7, 7, 7], 0, 1.0),
        ([64, 0, 160], 0, 64.0),
        ([160, 96, 128, 96], 0, 32.0),
        ([1952, 1953, 1951], ROUNDING_NS, 1.0),  # one value, rounded
        ([1952, 1953, 1984, 2016, 2017], ROUNDING_NS, 32.0),
        ([1952, 1953, 1983, 2015, 2048, 2079], ROUNDING_NS, 32.0),  # each up to one ns off
    ],
)
def test_the_tick_of_readings(readings: list[int], rounding: int, expected: float) -> None:
    assert tick(readings, rounding) == expected


@given(st.integers(8, 1000), st.lists(st.integers(0, 30), min_size=30, max_size=60), st.randoms(use_true_random=False))
def test_rounding_does_not_hide_the_tick(step: int, counts: list[int], source: random.Random) -> None:
    if not any(count + 1 in counts for count in counts):
        return
    readings = [step * count + source.choice([-1, 0, 1]) for count in counts]
    assert abs(tick(readings, ROUNDING_NS) - step) <= ROUNDING_NS


# A sampler, with a profiler that loses records


class Gpu:
    """Stands in for the profiler and the stream: every call is recorded as `each` activities of `ns` with `gap` after
    each, preceded by the flush and the hold. `losing` says which records of a session get lost."""

    def __init__(self, ns: int = 1000, gap: int = 0, each: int = CALL) -> None:
        self.ns, self.gap, self.each = ns, gap, each
        self.losing: Callable[[int, list[Activity]], list[Activity]] = lambda session, records: records
        self.records: list[Activity] = []
        self.now = self.sessions = 0
        self.slept: list[float] = []

    def add(self, name: str, ns: int) -> None:
        self.records.append(activity(self.now, self.now + ns, len(self.records), name, (len(name), 1, 1)))
        self.now += ns + self.gap

    def call(self) -> None:
        for number in range(self.each):
            self.add(f"part {number}", self.ns)

    def flush(self) -> None:
        self.add("fill", 30_000)
        self.add("sum of all", 20_000)

    def hold(self, seconds: float) -> None:
        self.add("spin", round(seconds * 1e9))

    def profile(self, work: Callable[[], object]) -> list[Activity]:
        self.records = []
        work()
        self.sessions += 1
        return self.losing(self.sessions, self.records)

    def event_ns(self, call: Callable[[], object]) -> int:
        before = self.now
        call()
        return self.now - before


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    fake = Gpu()
    monkeypatch.setattr(timers, "profile", fake.profile)
    monkeypatch.setattr(timers, "_event_ns", fake.event_ns)
    monkeypatch.setattr(timers.torch.cuda, "synchronize", lambda device=None: None)
    clock = SimpleNamespace(sleep=fake.slept.append, perf_counter=lambda: 0.0)
    monkeypatch.setattr(timers, "time", clock)
    return fake


class FakeHold:
    """Holds the fake GPU's stream, and reads a clock after each call that ticks up by 10 MHz."""

    def __init__(self, gpu: Gpu, trailing: int = 0) -> None:
        self.gpu = gpu
        self.trailing = trailing
        self.calls = 0

    def hold(self, seconds: float) -> None:
        self.gpu.hold(seconds)

    def start(self, calls: int, seconds: float) -> None:
        self.calls, self.seconds = calls, seconds

    def before(self, call: int) -> None:
        self.gpu.hold(self.seconds)

    def after(self, call: int) -> None:
        for _ in range(self.trailing):
            self.gpu.hold(1e-6)

    def mhz(self) -> list[float | None]:
        return [1000.0 + 10 * call if self.trailing else None for call in range(self.calls)]


def cupti(gpu: Gpu, cold: bool = True, trailing: int = 0) -> CuptiSampler:
    clock = FakeHold(gpu, trailing)
    return CuptiSampler(gpu.call, gpu.flush if cold else None, Timer("cupti", 32.0), clock, flush_activities=FLUSH)


def test_the_clock_read_beside_a_call_is_no_part_of_it(gpu: Gpu) -> None:
    sampler = cupti(gpu, trailing=1)
    sampler.warm_up()
    batch = sampler.batch(4)
    assert batch.gpu_ns == [2000] * 4
    assert batch.sm_mhz == [1000.0, 1010.0, 1020.0, 1030.0]
    assert sum(record.name == "spin" for record in gpu.records) == 8


@pytest.mark.parametrize("cold", [True, False])
def test_a_sample_is_the_call_alone(gpu: Gpu, cold: bool) -> None:
    """Neither the flush nor the hold is part of its time."""
    sampler = cupti(gpu, cold)
    sampler.warm_up()
    batch = sampler.batch(7)
    assert batch.gpu_ns == [2000] * 7
    assert batch.launches == [1] * 7
    assert batch.sm_mhz == [None] * 7
    assert not batch.profiled
    assert [(kernel.name, kernel.count) for kernel in batch.kernels] == [("part 0", 1), ("part 1", 1)]
    assert sum(record.name == "fill" for record in gpu.records) == (7 if cold else 0)
    assert sum(record.name == "spin" for record in gpu.records) == 7


def test_every_sample_is_rested_for(gpu: Gpu) -> None:
    sampler = cupti(gpu)
    sampler.warm_up()
    gpu.slept.clear()
    sampler.batch(3)
    assert gpu.slept == [timers.REST_S] * 3


def test_a_long_call_is_given_a_longer_rest(gpu: Gpu) -> None:
    gpu.ns = 50_000_000
    sampler = cupti(gpu)
    rough = sampler.warm_up()
    assert rough == pytest.approx(2 * 50e6 + (timers.REST_SHARE * 0.1 + timers.HOLD_S) * 1e9)
    gpu.slept.clear()
    sampler.batch(1)
    assert gpu.slept == [pytest.approx(timers.REST_SHARE * 0.1)]


@pytest.mark.parametrize("lost", [slice(0, 1), slice(3, 4), slice(0, 5), slice(-1, None)])
def test_a_batch_that_lost_records_is_repeated(gpu: Gpu, lost: slice) -> None:
    sampler = cupti(gpu)
    sampler.warm_up()
    before = gpu.sessions

    def losing(session: int, records: list[Activity]) -> list[Activity]:
        if session == before + 1:
            del records[lost]
        return records

    gpu.losing = losing
    assert sampler.batch(5).gpu_ns == [2000] * 5
    assert gpu.sessions == before + 2


def test_a_timer_that_always_loses_records_is_given_up(gpu: Gpu) -> None:
    sampler = cupti(gpu)
    sampler.warm_up()
    before = gpu.sessions
    gpu.losing = lambda session, records: records[1:]
    with pytest.raises(TimerFailed, match="cupti gave 24 activity records where 5 calls make 25"):
        sampler.batch(5)
    assert gpu.sessions == before + TRIES


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_records_lost_while_counting_are_noticed(gpu: Gpu, lost: int) -> None:
    gpu.losing = lambda session, records: records[lost:] if session == 1 else records
    sampler = cupti(gpu)
    sampler.warm_up()
    assert gpu.sessions == 2
    assert sampler.batch(2).gpu_ns == [2000, 2000]


def test_a_call_without_records_is_given_up(gpu: Gpu) -> None:
    gpu.losing = lambda session, records: []
    with pytest.raises(TimerFailed, match="cupti gave 0 activity records"):
        cupti(gpu).warm_up()


def test_failed_sessions_keep_no_tensor(gpu: Gpu) -> None:
    """O23: an exception kept in a frame of its own traceback is a cycle that holds the case's memory."""
    import gc
    import weakref

    class Tensor:
        pass

    def attempt() -> weakref.ref[Tensor]:
        tensor = Tensor()

        def call() -> None:
            _ = tensor
            gpu.call()

        gpu.losing = lambda session, records: records[1:]
        with pytest.raises(TimerFailed):
            CuptiSampler(call, None, Timer("cupti", 1.0), FakeHold(gpu), 0).warm_up()
        return weakref.ref(tensor)

    gc.collect()
    gc.disable()
    try:
        assert attempt()() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(("gap", "profiled"), [(0, False), (200, False), (300, True)])
def test_gaps_over_a_tenth_of_the_span_mark_the_row(gpu: Gpu, gap: int, profiled: bool) -> None:
    gpu.gap = gap
    sampler = cupti(gpu)
    sampler.warm_up()
    batch = sampler.batch(3)
    assert batch.gpu_ns == [2000 + gap] * 3
    assert batch.profiled is profiled


def test_the_event_timer_times_the_call_alone(gpu: Gpu) -> None:
    sampler = EventSampler(gpu.call, gpu.flush, Timer("event", 32.0, 5000.0), FakeHold(gpu))
    sampler.warm_up()
    assert sampler.batch(4).gpu_ns == [2000] * 4


def test_activities_of_a_flush(gpu: Gpu) -> None:
    assert [a.name for a in activities_of(gpu.flush)] == ["fill", "sum of all"]
    gpu.losing = lambda session, records: records[2:] if session == 2 else records
    assert len(activities_of(gpu.flush)) == 2
    assert gpu.sessions == 3


class Probed(Gpu):
    """Also stands in for the tensor that is filled: 40 readings, an odd one a tick longer."""

    def fill_(self, value: float) -> None:
        self.add("tiny", 1952 + 32 * (self.now % 2))
        self.now += 1


@pytest.fixture
def probed(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> Probed:
    fake = Probed()
    for name, stand_in in {"profile": fake.profile, "_event_ns": fake.event_ns}.items():
        monkeypatch.setattr(timers, name, stand_in)
    monkeypatch.setattr(torch, "empty", lambda *shape, device: fake)
    return fake


def test_the_probe_reads_ticks_and_empty_readings(probed: Probed) -> None:
    found = probe(probed.flush, FakeHold(probed))
    assert found.cupti.name == "cupti"
    assert found.cupti.tick_ns == 32
    assert found.cupti.empty_ns in (1952, 1984)
    assert found.event.empty_ns is not None
    assert found.event.empty_ns >= 1952, "of a tiny kernel, and not of nothing"
    assert found.flush_activities == 2
    assert found.cupti_failure is None


def test_the_probe_survives_sessions_that_lose_records(probed: Probed) -> None:
    """One loss must not cost a whole run its best timer."""
    probed.losing = lambda session, records: records[1:] if session in (1, 2, 4) else records
    found = probe(probed.flush, FakeHold(probed))
    assert (found.flush_activities, found.cupti_failure) == (2, None)


def test_the_probe_says_why_cupti_does_not_work(probed: Probed) -> None:
    probed.losing = lambda session, records: []
    assert probe(probed.flush, FakeHold(probed)).cupti_failure == (
        "cupti does not work here: cupti gave 0 activity records for 40 kernels"
    )

    def refused(session: int, records: list[Activity]) -> list[Activity]:
        raise RuntimeError("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES\nmore words")

    probed.losing = refused
    assert probe(probed.flush, FakeHold(probed)).cupti_failure == (
        "cupti does not work here: RuntimeError: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
    )


def test_a_trace_that_cannot_be_read_back_fails_the_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Profiler:
        def __init__(self, text: str | None) -> None:
            self.text = text

        def __enter__(self) -> Profiler:
            return self

        def __exit__(self, *error: object) -> None:
            pass

        def export_chrome_trace(self, path: str) -> None:
            if self.text is None:
                raise OSError(28, "No space left on device")
            Path(path).write_text(self.text)

    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    for text, said in {None: "No space left on device", '{"traceEvents": [': "JSONDecodeError"}.items():
        monkeypatch.setattr(torch.profiler, "profile", lambda text=text, **options: Profiler(text))
        with pytest.raises(TimerFailed, match=f"cupti's trace cannot be read: .*{said}"):
            timers.profile(lambda: None)
    monkeypatch.setattr(torch.profiler, "profile", lambda **options: Profiler(TRACE.read_text()))
    assert len(timers.profile(lambda: None)) == 4
