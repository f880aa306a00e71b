"""Which timer a row has, and why: a fake GPU with the three timers of a real one, whose records get lost."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gpubench.devices.pacing import TRIES
from gpubench.result import Conditions, Load, Record
from gpubench.runner import Effort, measure
from gpubench.sampling import Stopping
from gpubench.suite import Axis, Benchmark, Case
from gpubench.testing import FakeDevice
from gpubench.workload import Workload

GPU = ("cupti", "graph", "event")


def row(
    device: FakeDevice, ns: float = 100_000, timer: str = "auto", samples: int | None = 20, load: Load = "burst"
) -> Record:
    """A row of one kernel that takes so long."""

    def bench(device: Any, n: int) -> Workload:
        out = device.unwritten(1, "float32")

        def call() -> None:
            device.spend(ns)
            out[0] = 1.0

        return Workload(call, out, lambda: [1.0], "one", bytes=4, accumulate="exact")

    made = Benchmark("some", "bench", bench, {"n": Axis([1])})
    effort = Effort(Stopping(samples=samples), timer=timer)
    *_, record = measure(made, Case("some", "bench", {"n": 1}, Conditions(cache="hot", load=load)), device, effort)
    assert isinstance(record, Record)
    assert record.status == "ok", record.reason
    return record


def chosen(record: Record) -> tuple[str, str | None, list[str]]:
    assert record.timer is not None
    return record.timer.name, record.timer.reason, record.flags


def test_the_first_timer_and_why() -> None:
    record = row(FakeDevice(timers=GPU))
    assert chosen(record) == ("cupti", "records add up: 1 kernel a call", [])
    assert record.samples.gpu_ns == [100_000] * 20
    assert [(kernel.name, kernel.count) for kernel in record.kernels] == [("fake_kernel", 1)]


@pytest.mark.parametrize("losing", range(1, TRIES))
def test_a_batch_that_lost_a_record_is_repeated_without_a_word(losing: int) -> None:
    device = FakeDevice(timers=GPU, losing=losing)
    record = row(device)
    assert chosen(record) == ("cupti", "records add up: 1 kernel a call", [])
    assert record.samples.gpu_ns == [100_000] * 20
    assert device.losing == 0
    assert len(device.rests) == 20 * (losing + 1)


def test_a_record_lost_later_repeats_that_batch_alone() -> None:
    device = FakeDevice(timers=GPU, noise=lambda sample: lose(device, sample))

    def lose(device: FakeDevice, sample: int) -> float:
        device.losing = 1 if sample == 25 else device.losing  # in the second batch
        return 1.0

    record = row(device, samples=40)
    assert chosen(record) == ("cupti", "records add up: 1 kernel a call", [])
    assert record.samples.gpu_ns == [100_000] * 40
    assert len(device.rests) == 60, "20, 20 in vain, and 20"


def test_records_that_never_add_up_leave_it_to_the_graph() -> None:
    record = row(FakeDevice(timers=GPU, losing=math.inf))
    name, reason, flags = chosen(record)
    assert (name, flags) == ("graph", ["fallback"])
    assert (
        reason
        == "cupti: 39 activity records of 20 calls, which do not share them evenly; so graph: a replay of 10 calls"
    )
    assert record.samples.launches == [10] * 20
    assert record.summary is not None
    assert record.summary.median_ns == 100_000


def test_a_call_that_cannot_be_captured_is_left_to_events() -> None:
    record = row(FakeDevice(timers=GPU, losing=math.inf, refused={"graph": "the call cannot be captured"}))
    name, reason, flags = chosen(record)
    assert (name, flags) == ("event", ["fallback"])
    assert reason is not None
    assert reason.startswith("cupti: 39 activity records of 20 calls")
    assert reason.endswith("; graph: the call cannot be captured; so event: the first that works here")


def test_a_load_that_cannot_be_captured_is_a_fall_back_too() -> None:
    record = row(FakeDevice(refused={"graph": "the call cannot be captured"}), load="sustained")
    assert chosen(record) == (
        "fake",
        "graph: the call cannot be captured; so fake: the first that works here",
        ["fallback"],
    )
    assert chosen(row(FakeDevice(), load="sustained"))[2] == []


def test_a_timer_that_was_asked_for_is_no_fall_back() -> None:
    assert chosen(row(FakeDevice(timers=GPU), timer="event")) == ("event", "asked for", [])
    assert chosen(row(FakeDevice(timers=GPU), timer="graph")) == ("graph", "a replay of 10 calls", [])


@pytest.mark.parametrize(
    ("timer", "ns", "marked"),
    [
        ("cupti", 29, True),
        ("cupti", 31, False),
        ("graph", 14_900, True),
        ("graph", 15_100, False),
        ("event", 49_000, True),
        ("event", 51_000, False),
    ],
)
def test_each_timer_has_its_resolution(timer: str, ns: float, marked: bool) -> None:
    """30 ticks for records; ten readings of an empty kernel where a launch, or a gap in a graph, is read too."""
    assert ("below-resolution" in row(FakeDevice(timers=GPU), ns, timer).flags) is marked


@pytest.mark.parametrize(
    ("timer", "ns", "rest_s"),
    [("cupti", 5000, 0.0005), ("cupti", 1_500_000, 0.006), ("event", 1_500_000, 0.006), ("graph", 100_000, 0.004)],
)
def test_every_sample_is_rested_for(timer: str, ns: float, rest_s: float) -> None:
    """A replay counts as a whole: it loads the device as long as one call of its length."""
    device = FakeDevice(timers=GPU)
    row(device, ns, timer)
    assert device.rests == [pytest.approx(rest_s)] * 20


def test_the_tick_is_shared_out_among_the_calls_of_a_replay() -> None:
    record = row(FakeDevice(timers=GPU, tick_ns=1000, losing=math.inf), ns=20_000)
    assert record.samples.launches == [50] * 20
    assert "below-resolution" not in record.flags
