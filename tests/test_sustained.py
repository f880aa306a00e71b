"""A sustained load on scripted clocks: what is warm-up, what is a sample, what limits, what is spent."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from gpubench.devices import Batch
from gpubench.sampling import Sampled, Stopping, sample
from gpubench.steady import FLAT_S, LEAST_S, MOST_S, Group
from gpubench.sustained import GPM_S, Sustained, consumption
from gpubench.testing.device import FakeDevice, FakeLoad, FakeWatch
from gpubench.workload import Workload

CALL_NS = 200_000


class Watch(FakeWatch):
    """A watch that reads more than the fake device has. `event_ns` counts a power cap that is always on."""

    def __init__(self, device: FakeDevice, events: tuple[str, ...] = (), counted: bool = False) -> None:
        super().__init__(device)
        self.events = list(events)
        self.counted = counted
        self.polls = 0
        self.asked_at: list[float] = []
        self.closed = 0

    def pulse(self) -> dict[str, Any]:
        self.polls += 1
        return {"power_w": 650.0, "clock_events": self.events}

    def snapshot(self) -> dict[str, Any]:
        return {"event_ns": {"software power cap": round(0.9 * self.device.clock_ns)}} if self.counted else {}

    def gpm(self) -> dict[str, float] | None:
        self.asked_at.append(self.clock())
        return None if len(self.asked_at) == 1 else {"sm_activity": 0.9 if len(self.asked_at) % 2 else 0.8}

    def close(self) -> None:
        self.closed += 1


def fake(clock: Callable[[float], float] = lambda seconds: 1.0, watts: float | None = None) -> FakeDevice:
    return FakeDevice(clock=clock, watts=watts)


def load_of(device: FakeDevice, ns: float = CALL_NS) -> FakeLoad:
    return FakeLoad(device, [Workload(lambda: device.spend(ns), None, lambda: None, "none")])


def falling(seconds: float) -> float:
    """A clock that falls for two seconds and holds then."""
    return 1 - 0.25 * min(seconds, 2) / 2


def test_the_warm_up_ends_when_rate_and_clock_are_flat() -> None:
    device = fake(falling)
    sampler = Sustained(load_of(device), FakeWatch(device), metered=True)
    rough = sampler.warm_up()
    assert rough == pytest.approx(CALL_NS * 50 / 0.75, rel=0.01), "the time of a group: what one sample costs"
    batch = sampler.batch(5)
    assert set(batch.launches) == {50}
    assert batch.sm_mhz == [750.0] * 5
    found = sampler.telemetry()
    assert found["warm_up"]["flat"] is True
    assert 2 + 0.8 * FLAT_S < found["warm_up"]["seconds"] < 2 + FLAT_S
    assert found["series"]["sm_mhz"][0] > 970


def test_a_steady_device_warms_up_for_the_least_time() -> None:
    device = fake()
    sampler = Sustained(load_of(device), FakeWatch(device), metered=False)
    sampler.warm_up()
    assert sampler.telemetry()["warm_up"] == {"seconds": pytest.approx(LEAST_S, abs=0.02), "flat": True}


def test_who_has_followed_the_warm_up_does_not_wait_again() -> None:
    device = fake()
    sampler = Sustained(load_of(device), FakeWatch(device), metered=False)
    assert list(sampler.warming())
    warm_ns = device.clock_ns
    assert sampler.warm_up() == pytest.approx(CALL_NS * 50)
    assert device.clock_ns == warm_ns


def test_one_that_never_settles_says_so() -> None:
    device = fake(lambda seconds: 1 / (1 + 0.05 * seconds))
    sampler = Sustained(load_of(device), FakeWatch(device), metered=False)
    sampler.warm_up()
    assert sampler.telemetry()["warm_up"] == {"seconds": pytest.approx(MOST_S, abs=0.05), "flat": False}


def test_sampling_lasts_as_long_as_it_was_asked_to() -> None:
    device = fake(watts=400.0)
    load = load_of(device)
    sampler = Sustained(load, FakeWatch(device), metered=True)
    steps = list(sample(sampler, Stopping(least=20.0, case_time=0.5), sampler.clock))
    last = steps[-1]
    assert isinstance(last, Sampled)
    spent = sum(last.samples.gpu_ns) / 1e9
    assert 20 <= spent < 20.5, "and not much longer: the last batch is as long as what is left"
    assert len(steps) < 30, "batches of up to two seconds"
    found = sampler.telemetry()
    assert load.stopped
    assert len(found["series"]["t_ms"]) == pytest.approx(10 * (20 + LEAST_S), abs=5)
    assert found["energy"]["power_w"] == pytest.approx(400, rel=0.01)
    assert found["energy"]["joules_per_call"] == pytest.approx(400 * CALL_NS / 1e9, rel=0.01)
    assert found["energy"]["calls"] == (len(last.samples.gpu_ns) - 1) * 50


@pytest.mark.parametrize(
    ("events", "counted", "limit"),
    [
        ((), True, ("power cap", {"software power cap": 0.9}, True)),
        (("software thermal slowdown",), False, ("thermal", {"software thermal slowdown": 1.0}, True)),
        ((), False, ("none", {}, True)),
    ],
)
def test_what_limited_it(events: tuple[str, ...], counted: bool, limit: tuple[str, Any, bool]) -> None:
    device = fake()
    sampler = Sustained(load_of(device), Watch(device, events, counted), metered=False)
    sampler.warm_up()
    sampler.batch(100)
    found = sampler.telemetry()
    assert (found["limited_by"], found["limit"]["shares"], found["limit"]["may_miss"]) == limit


def test_what_was_seen_while_it_warmed_up_did_not_limit_it() -> None:
    device = fake()
    watch = Watch(device, ("software thermal slowdown",))
    sampler = Sustained(load_of(device), watch, metered=False)
    sampler.warm_up()
    watch.events = []
    sampler.batch(100)
    found = sampler.telemetry()
    assert (found["limited_by"], found["limit"]["shares"]) == ("none", {})


def test_a_timer_that_a_load_refused_is_told_once_it_has_started() -> None:
    device = FakeDevice(refused={"graph": "the call cannot be captured"})
    sampler = Sustained(load_of(device), FakeWatch(device), metered=False)
    sampler.warm_up()
    assert sampler.refused == ["graph: the call cannot be captured"]


def test_without_any_reading_there_is_no_verdict() -> None:
    device = fake()
    sampler = Sustained(load_of(device), FakeWatch(device), metered=False)
    sampler.warm_up()
    sampler.batch(50)
    found = sampler.telemetry()
    assert (found["limited_by"], found["limit"]) == (None, None)
    assert "energy" not in found, "a load that is not the calls alone is not metered"


def test_the_device_is_asked_once_a_point() -> None:
    device = fake()
    watch = Watch(device)
    sampler = Sustained(load_of(device), watch, metered=False)
    sampler.warm_up()
    sampler.batch(100)
    assert watch.polls == pytest.approx(10 * (LEAST_S + 1), abs=1)
    assert watch.asked_at == []
    sampler.telemetry()
    assert watch.closed == 1


def test_units_are_asked_for_whole_windows() -> None:
    device = fake(watts=100.0)
    watch = Watch(device)
    sampler = Sustained(load_of(device), watch, metered=True)
    sampler.warm_up()
    sampler.batch(350)
    gpm = sampler.telemetry()["gpm"]
    assert all(after - before >= GPM_S for before, after in pairwise(watch.asked_at))
    assert gpm == {"sm_activity": pytest.approx((0.8 + 0.9 + 0.8) / 3, abs=1e-4), "windows": 3, "window_s": GPM_S}


def test_a_mean_of_units_is_that_of_the_windows_that_name_them() -> None:
    device = fake(watts=100.0)
    windows = iter([{"sm_activity": 0.5, "tensor_activity": 0.75}, {"sm_activity": 0.75}])

    class Partial(FakeWatch):
        def gpm(self) -> dict[str, float] | None:
            return next(windows, None)

    found = consumption(load_of(device), Partial(device))["gpm"]
    assert found == {"sm_activity": 0.625, "tensor_activity": 0.75, "windows": 2, "window_s": GPM_S}


def test_a_load_without_a_counter_of_energy_says_so_and_is_not_made_again_for_it() -> None:
    device = fake()
    sampler = Sustained(load_of(device), FakeWatch(device), metered=True)
    sampler.warm_up()
    sampler.batch(5)
    assert sampler.telemetry()["energy"]["unavailable"] == "the fake device counts no energy"


def test_consumption_of_calls_alone() -> None:
    device = fake(watts=250.0)
    load = load_of(device)
    found = consumption(load, FakeWatch(device))
    assert load.stopped
    assert found["energy"]["power_w"] == pytest.approx(250, rel=0.01)
    assert found["energy"]["window_s"] >= 1
    assert found["gpm"] == {"unavailable": "the fake device has no GPM"}


def test_consumption_that_fails_leaves_nothing_in_flight() -> None:
    device = fake(watts=300.0)
    load, watch = load_of(device), Watch(device)

    def broken() -> Group:
        raise RuntimeError("out of memory")

    load.next = broken  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="out of memory"):
        consumption(load, watch)
    assert (load.stopped, watch.closed) == (True, 1)


def test_consumption_of_long_calls() -> None:
    device = fake(watts=250.0)
    found = consumption(load_of(device, ns=2e9), FakeWatch(device))
    assert found["energy"]["joules_per_call"] == pytest.approx(500, rel=0.05)


def test_a_counter_that_refuses_is_asked_once() -> None:
    device = fake()
    asked: list[int] = []

    class Refusing(FakeWatch):
        def joules(self) -> float:
            asked.append(1)
            raise LookupError("Not Supported")

    found = consumption(load_of(device), Refusing(device))
    assert found["energy"] == {"joules_per_call": None, "power_w": None, "unavailable": "Not Supported"}
    assert asked == [1]


def test_a_batch_has_no_kernels() -> None:
    device = fake()
    sampler = Sustained(load_of(device), FakeWatch(device), metered=True)
    sampler.warm_up()
    batch = sampler.batch(1)
    assert isinstance(batch, Batch)
    assert (batch.kernels, batch.profiled) == ([], False)
