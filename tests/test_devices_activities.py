"""From a profiler's records to times: hand-made traces, and a profiler that loses records."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpubench.devices import pacing, timers
from gpubench.devices.activities import (
    ROUNDING_NS,
    Activity,
    busy,
    counted,
    from_events,
    from_trace,
    half,
    seen,
    share,
    span,
    split,
    tick,
)
from gpubench.devices.pacing import TRIES
from gpubench.devices.records import TorchProfiler, activities_of
from gpubench.devices.timers import CuptiSampler, EventSampler, GraphSampler, probe, sampler_of
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
    with pytest.raises(TimerFailed, match="14 activity records where 3 calls make 15"):
        split(records, 3, FLUSH + HOLD, CALL)


@pytest.mark.parametrize(("records", "calls", "each"), [(16, 3, 2), (0, 3, 2), (9, 3, 0)])
def test_records_that_do_not_add_up(records: int, calls: int, each: int) -> None:
    with pytest.raises(TimerFailed, match=f"{records} activity records"):
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
    assert seen([calls]) == [
        KernelSeen("gemm", "kernel", 2, [8, 4, 1], [128, 1, 1], ns=2),
        KernelSeen("reduce", "kernel", 1, [1, 1, 1], [128, 1, 1], ns=1),
        KernelSeen("gemm", "kernel", 1, [9, 4, 1], [128, 1, 1], ns=1),
        KernelSeen("Memset (Device)", "memset", 1, None, None, ns=1),
    ]
    assert seen([[]]) == []


def test_how_long_each_kernel_took_in_the_middle_of_the_calls() -> None:
    calls = [
        [activity(0, took, 1, "gemm"), activity(took, took + 5, 2, "add"), activity(took + 5, took + 11, 3, "add")]
        for took in (30, 10, 20)
    ]
    other = [activity(0, 900, 1, "gemm"), activity(900, 901, 2, "mul")]
    assert [(each.name, each.count, each.ns) for each in seen([other, *calls])] == [("gemm", 1, 20), ("add", 2, 11)]


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
        ([704, 735, 736, 705, 735], ROUNDING_NS, 32.0),  # as an H200 gave them: no step of 32 among the distinct ones
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
    """Stands in for the source of records and the stream: every call is recorded as `each` activities of `ns` with
    `gap` after each, preceded by the flush and the hold. `losing` says which records of a session get lost."""

    name = "torch.profiler"

    def __init__(self, ns: int = 1000, gap: int = 0, each: int = CALL) -> None:
        self.ns, self.gap, self.each = ns, gap, each
        self.losing: Callable[[int, list[Activity]], list[Activity]] = lambda session, records: records
        self.records: list[Activity] = []
        self.now = self.sessions = self.node_gap = 0
        self.captured: list[int] = []
        self.slept: list[float] = []
        self.detailed: list[bool] = []

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

    def session(self, work: Callable[[], object], details: bool = True) -> list[Activity]:
        self.records = []
        self.detailed.append(details)
        work()
        self.sessions += 1
        return self.losing(self.sessions, self.records)

    def event_ns(self, call: Callable[[], object]) -> int:
        before = self.now
        call()
        return self.now - before

    def graph(self, call: Callable[[], object], copies: int) -> Any:
        """A graph of the call, in which `node_gap` ns are between two nodes."""
        self.captured.append(copies)

        def replay() -> None:
            for _ in range(copies):
                call()
                self.now += self.node_gap

        return SimpleNamespace(replay=replay)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    fake = Gpu()
    monkeypatch.setattr(timers, "_event_ns", fake.event_ns)
    monkeypatch.setattr(timers, "Graph", fake.graph)
    monkeypatch.setattr(timers.torch.cuda, "synchronize", lambda device=None: None)
    clock = SimpleNamespace(sleep=fake.slept.append, perf_counter=lambda: fake.now / 1e9)
    monkeypatch.setattr(timers, "time", clock)
    return fake


class FakeHold:
    """Holds the fake GPU's stream, and reads a clock after each call that ticks up by 10 MHz."""

    def __init__(self, gpu: Gpu, trailing: int = 0) -> None:
        self.gpu = gpu
        self.trailing = trailing
        self.calls = 0
        self.counts = True

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

    def held_ns(self) -> list[float | None]:
        return [self.seconds * 1e9 if self.counts else None] * self.calls


def cupti(gpu: Gpu, cold: bool = True, trailing: int = 0) -> CuptiSampler:
    clock = FakeHold(gpu, trailing)
    return CuptiSampler(gpu.call, gpu.flush if cold else None, Timer("cupti", 32.0), clock, gpu, flush_activities=FLUSH)


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
    assert gpu.slept == [pacing.REST_S] * 3


def test_a_long_call_is_given_a_longer_rest(gpu: Gpu) -> None:
    gpu.ns = 50_000_000
    sampler = cupti(gpu)
    rough = sampler.warm_up()
    hold_s = min(pacing.HOLD_SHARE * 0.1, pacing.HOLD_MOST_S)  # the fake's host waits for each call
    assert rough == pytest.approx(2 * 50e6 + (pacing.REST_SHARE * 0.1 + hold_s) * 1e9)
    gpu.slept.clear()
    sampler.batch(1)
    assert gpu.slept == [pytest.approx(pacing.REST_SHARE * 0.1)]


@pytest.mark.parametrize("lost", [slice(0, 1), slice(3, 4), slice(0, 5), slice(-1, None)])
def test_a_batch_that_lost_records_is_repeated(gpu: Gpu, lost: slice) -> None:
    sampler = cupti(gpu)
    sampler.warm_up()
    sampler.batch(5)
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
    sampler.batch(5)
    before = gpu.sessions
    gpu.losing = lambda session, records: records[1:]
    with pytest.raises(TimerFailed, match="24 activity records where 5 calls make 25"):
        sampler.batch(5)
    assert gpu.sessions == before + TRIES


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_records_lost_while_counting_are_noticed(gpu: Gpu, lost: int) -> None:
    """Of two calls nothing can be told: one session of them, then one that counts, which is repeated."""
    gpu.losing = lambda session, records: records[lost:] if session == 2 else records
    sampler = cupti(gpu)
    assert sampler.batch(2).gpu_ns == [2000, 2000]
    assert gpu.sessions == 3


def test_the_first_batch_tells_what_a_call_makes(gpu: Gpu) -> None:
    """No session is spent on counting, and grids are asked for once."""
    sampler = cupti(gpu)
    sampler.warm_up()
    for _ in range(3):
        assert sampler.batch(5).gpu_ns == [2000] * 5
    assert gpu.detailed == [True, False, False]
    assert sampler.timer.reason == "records add up: 2 kernels a call"


@pytest.mark.parametrize("lost", range(1, 25))
def test_a_first_batch_that_lost_its_first_records_tells_nothing(gpu: Gpu, lost: int) -> None:
    """However many: those of a whole call or of several, or one for each call."""
    gpu.losing = lambda session, records: records[lost:] if session == 1 else records
    sampler = cupti(gpu)
    assert sampler.batch(5).gpu_ns == [2000] * 5
    assert gpu.sessions == (3 if lost == 5 else 2), "one for each call leaves equal shares, of others: counted"


def test_a_call_whose_kernels_take_turns_is_counted(gpu: Gpu) -> None:
    """An algorithm that changes from call to call is no loss."""
    calls = iter(range(100))

    def turns() -> None:
        gpu.add(f"part {next(calls) // 2 % 2}", gpu.ns)

    sampler = CuptiSampler(turns, None, Timer("cupti", 32.0), FakeHold(gpu), gpu, 0)
    assert sampler.batch(5).gpu_ns == [1000] * 5


def test_a_call_without_records_is_given_up(gpu: Gpu) -> None:
    gpu.losing = lambda session, records: []
    with pytest.raises(TimerFailed, match="0 activity records of 5 calls"):
        cupti(gpu).batch(5)


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
            CuptiSampler(call, None, Timer("cupti", 1.0), FakeHold(gpu), gpu, 0).batch(5)
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
    assert sampler.timer.reason == "a pair of events around each call"


# Graphs


def graph(gpu: Gpu, cold: bool) -> GraphSampler:
    return GraphSampler(gpu.call, gpu.flush if cold else None, Timer("graph", 32.0), FakeHold(gpu))


@pytest.mark.parametrize("cold", [True, False])
def test_a_replay_is_read_as_its_calls_and_the_flushes_are_taken_away(gpu: Gpu, cold: bool) -> None:
    sampler = graph(gpu, cold)
    sampler.warm_up()
    batch = sampler.batch(3)
    copies = 20 if cold else 500  # of 52 µs and of 2 µs
    assert (batch.launches, batch.gpu_ns) == ([copies] * 3, [2000 * copies] * 3)
    assert sampler.timer.reason == f"a replay of {copies} calls"


def test_what_the_flushes_have_for_themselves_is_one_gap_a_copy(gpu: Gpu) -> None:
    """A copy of flush and call has the gaps of a copy of the flush, and those inside the call."""
    gpu.node_gap = 700
    for cold in (True, False):
        sampler = graph(gpu, cold)
        sampler.warm_up()
        batch = sampler.batch(1)
        assert batch.gpu_ns[0] / batch.launches[0] == 2000 if cold else 2700


def test_a_replay_that_is_too_short_is_captured_again_with_more_copies(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event pair reads the launch of a small call, so that the first graph is too small."""
    launch = 8000
    monkeypatch.setattr(timers, "_event_ns", lambda call: gpu.event_ns(call) + launch)
    sampler = graph(gpu, cold=False)
    sampler.warm_up()
    first, second = gpu.captured
    assert first == 100, "of 10 µs, as events say"
    assert second == pytest.approx(1e6 / (2000 + launch / 100), abs=1)


def test_a_replay_rests_for_the_whole_of_it(gpu: Gpu) -> None:
    sampler = graph(gpu, cold=True)
    sampler.warm_up()
    gpu.slept.clear()
    sampler.batch(2)
    assert gpu.slept == [pytest.approx(pacing.REST_SHARE * 20 * 52e-6)] * 4, "before each replay, of either kind"


# Sources


def test_activities_of_a_flush(gpu: Gpu) -> None:
    assert [a.name for a in activities_of(gpu, gpu.flush)] == ["fill", "sum of all"]
    gpu.losing = lambda session, records: records[2:] if session == 2 else records
    assert len(activities_of(gpu, gpu.flush)) == 2
    assert gpu.sessions == 3


class Probed(Gpu):
    """Also stands in for the tensor that is filled: 40 readings, an odd one a tick longer."""

    def fill_(self, value: float) -> None:
        self.add("tiny", 1952 + 32 * (self.now % 2))
        self.now += 1


@pytest.fixture
def probed(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> Probed:
    fake = Probed()
    clock = SimpleNamespace(sleep=fake.slept.append, perf_counter=lambda: fake.now / 1e9)
    for name, stand_in in {"_event_ns": fake.event_ns, "Graph": fake.graph, "time": clock}.items():
        monkeypatch.setattr(timers, name, stand_in)
    sources(monkeypatch, None, fake)
    monkeypatch.setattr(torch, "empty", lambda *shape, device: fake)
    return fake


class FakeSource:
    """A source of the fake GPU's records with a name of its own, whose sessions take so long, and whose clock may be
    off."""

    def __init__(
        self,
        gpu: Gpu,
        name: str,
        session_s: float = 0.0,
        failing: Callable[[int], bool] | None = None,
        pace: float = 1.0,
    ) -> None:
        self.gpu, self.name, self.session_s, self.pace = gpu, name, session_s, pace
        self.failing = failing or (lambda session: False)
        self.sessions = 0

    def session(self, work: Callable[[], object], details: bool = True) -> list[Activity]:
        self.sessions += 1
        records = self.gpu.session(work, details)
        self.gpu.now += round(self.session_s * 1e9)
        records = [
            replace(a, start_ns=round(a.start_ns * self.pace), end_ns=round(a.end_ns * self.pace)) for a in records
        ]
        return records[1:] if self.failing(self.sessions) else records

    def __call__(self) -> FakeSource:
        return self


def sources(monkeypatch: pytest.MonkeyPatch, package: FakeSource | None, profiler: Any) -> None:
    """What CuptiPython and TorchProfiler are; the first may be missing."""

    def missing() -> Any:
        raise TimerFailed("cupti-python is not installed")

    missing.name = "cupti-python"  # type: ignore[attr-defined]
    monkeypatch.setattr(timers, "CuptiPython", package or missing)
    monkeypatch.setattr(timers, "TorchProfiler", FakeSource(profiler, "torch.profiler", 0.010))


def test_the_probe_reads_ticks_and_empty_readings(probed: Probed) -> None:
    found = probe(probed.flush, FakeHold(probed))
    assert set(found.timers) == {"cupti", "graph", "event"}
    cupti, graph, event = (found.timers[name] for name in ("cupti", "graph", "event"))
    assert cupti.tick_ns == 32
    assert cupti.empty_ns in (1952, 1984)
    assert event.empty_ns is not None
    assert event.empty_ns >= 1952, "of a tiny kernel, and not of nothing"
    assert graph.empty_ns is not None
    assert 1952 <= graph.empty_ns <= 1984, "of one kernel, and not of a replay"
    assert found.flush_activities == 2
    assert found.failures == {}
    assert (found.source.name, found.refused) == ("torch.profiler", {"cupti-python": "cupti-python is not installed"})


def test_the_probe_survives_sessions_that_lose_records(probed: Probed) -> None:
    """One loss must not cost a whole run its best timer."""
    probed.losing = lambda session, records: records[1:] if session in (1, 2, 4) else records
    found = probe(probed.flush, FakeHold(probed))
    assert (found.flush_activities, found.failures) == (2, {})


def test_the_probe_says_why_cupti_does_not_work(probed: Probed) -> None:
    probed.losing = lambda session, records: []
    assert probe(probed.flush, FakeHold(probed)).failures == {"cupti": "0 activity records of 40 kernels"}

    def refused(session: int, records: list[Activity]) -> list[Activity]:
        raise RuntimeError("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES\nmore words")

    probed.losing = refused
    failures = probe(probed.flush, FakeHold(probed)).failures
    assert failures == {"cupti": "RuntimeError: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"}


def test_the_probe_says_why_graphs_do_not_work(probed: Probed, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(call: Any, copies: int) -> Any:
        raise TimerFailed("the call cannot be captured in a CUDA graph: no")

    monkeypatch.setattr(timers, "Graph", refused)
    found = probe(probed.flush, FakeHold(probed))
    assert found.failures == {"graph": "the call cannot be captured in a CUDA graph: no"}
    assert set(found.timers) == {"cupti", "event"}
    with pytest.raises(TimerFailed, match="does not work here: the call cannot be captured"):
        sampler_of(found, "graph", probed.call, None, FakeHold(probed))


@pytest.mark.parametrize(
    ("failing", "pace", "why"),
    [
        (None, 1.0, None),
        (lambda session: session < 3, 1.0, None),  # lost once
        (lambda session: True, 1.0, "39 activity records of 40 kernels"),
        (None, 2.1, "a hold of known length reads 2.10 times that: the clock is off"),
        (None, 0.5, "a hold of known length reads 0.50 times that: the clock is off"),
    ],
)
def test_the_package_is_the_source_where_its_records_are_right(
    probed: Probed, monkeypatch: pytest.MonkeyPatch, failing: Any, pace: float, why: str | None
) -> None:
    """Else torch's profiler; but that is not even started where the package works, as the two disturb each other."""
    sources(monkeypatch, FakeSource(probed, "cupti-python", 0.001, failing, pace), probed)
    found = probe(probed.flush, FakeHold(probed))
    assert found.failures == {}
    assert found.refused == ({} if why is None else {"cupti-python": why})
    assert found.source.name == ("cupti-python" if why is None else "torch.profiler")
    assert timers.TorchProfiler.sessions == 0 or why is not None  # type: ignore[attr-defined]
    assert found.session_ns >= (0.001 if why is None else 0.010) * 1e9


def test_a_clock_that_goes_off_later_is_noticed(gpu: Gpu) -> None:
    """As where a suite uses torch's profiler itself."""
    source = FakeSource(gpu, "cupti-python")
    clock = FakeHold(gpu)
    sampler = CuptiSampler(gpu.call, gpu.flush, Timer("cupti", 32.0), clock, source, flush_activities=FLUSH)
    sampler.warm_up()
    assert len(sampler.batch(3).gpu_ns) == 3
    source.pace = 2.1
    with pytest.raises(TimerFailed, match=r"reads 2\.10 times that"):
        sampler.batch(3)
    clock.counts = False  # a GPU whose holds nothing counts cannot tell
    assert len(sampler.batch(3).gpu_ns) == 3


class Event:
    """As torch's _KinetoEvent, with what it tells of a device activity."""

    def __init__(self, kind: str, name: str, start: int, ns: int, correlation: int, told: str = "") -> None:
        self.activity_type = lambda: kind
        self.name = lambda: name
        self.start_ns = lambda: start
        self.duration_ns = lambda: ns
        self.correlation_id = lambda: correlation
        self.metadata_json = lambda: told


TOLD = '"registers per thread": 168, "shared memory": 213504, "grid": [2, 66, 1], "block": [384, 1, 1]'


def test_events_say_what_a_trace_says() -> None:
    events = [
        Event("cuda_runtime", "cudaLaunchKernel", 5, 3, 7),
        Event("kernel", "gemm", 1000, 11_136, 8, TOLD),
        Event("gpu_memset", "Memset (Device)", 10, 1184, 7, '"bytes": 4'),
    ]
    assert from_events(events, details=True) == [
        Activity("Memset (Device)", "memset", 10, 1194, 7),
        Activity("gemm", "kernel", 1000, 12_136, 8, (2, 66, 1), (384, 1, 1), 168, 213504),
    ]
    quick = from_events(events, details=False)
    assert quick is not None
    assert [(a.start_ns, a.end_ns, a.grid) for a in quick] == [(10, 1194, None), (1000, 12_136, None)]
    assert from_events([], details=True) == []


def test_events_that_say_too_little() -> None:
    assert from_events([Event("kernel", "gemm", 0, 1, 1)], details=True) is None
    assert from_events([Event("kernel", "gemm", 0, 1, 1, "{}")], details=True) is None
    assert from_events([SimpleNamespace(name=lambda: "gemm")], details=False) is None


def test_what_each_call_has_of_its_own() -> None:
    records = session(4)
    assert share(records, 4, FLUSH + HOLD) == CALL
    assert share(records[:10], 2, FLUSH + HOLD) is None, "too few calls to tell"
    for lost in (0, 1, 5, 19):
        with pytest.raises(TimerFailed, match=f"{20 - lost - 1} activity records of 4 calls, which do not share them"):
            share(records[lost + 1 :], 4, FLUSH + HOLD)
    with pytest.raises(TimerFailed, match="0 activity records of 4 calls"):
        share([], 4, 1)
    assert counted(seen([records[:5]])) == "5 kernels"
    assert counted([KernelSeen("a", "kernel", 1), KernelSeen("b", "memset", 2)]) == "1 kernel and 2 memsets"


class Profiler:
    """As torch's profiler, once it has recorded: events that may say too little, and a trace that may be unreadable."""

    def __init__(self, events: list[Any], text: str | None) -> None:
        self.kineto_results = SimpleNamespace(events=lambda: events)
        self.text = text

    def __enter__(self) -> Profiler:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def export_chrome_trace(self, path: str) -> None:
        if self.text is None:
            raise OSError(28, "No space left on device")
        Path(path).write_text(self.text)


OLD = [SimpleNamespace(name=lambda: "gemm")]


def recording(monkeypatch: pytest.MonkeyPatch, *profilers: Profiler) -> None:
    made = iter(profilers)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.autograd.profiler, "profile", lambda **options: next(made))


def test_a_trace_that_cannot_be_read_back_fails_the_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, said in {None: "No space left on device", '{"traceEvents": [': "JSONDecodeError"}.items():
        recording(monkeypatch, Profiler(OLD, text))
        with pytest.raises(TimerFailed, match=f"the profiler's trace cannot be read: .*{said}"):
            TorchProfiler().session(lambda: None)


def test_a_trace_is_exported_only_where_events_say_too_little(monkeypatch: pytest.MonkeyPatch) -> None:
    recording(monkeypatch, Profiler([Event("kernel", "gemm", 0, 1, 1, TOLD)], None))
    assert [a.name for a in TorchProfiler().session(lambda: None)] == ["gemm"]
    source = TorchProfiler()
    trace = TRACE.read_text()
    recording(monkeypatch, Profiler(OLD, trace), Profiler([Event("kernel", "gemm", 0, 1, 1, TOLD)], trace))
    assert len(source.session(lambda: None)) == 4
    assert len(source.session(lambda: None)) == 4, "and is from then on"
