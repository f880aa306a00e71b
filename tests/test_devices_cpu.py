"""The CPU as a device: copies beyond the caches, samples of enough ticks, and a sampler that rotates."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch

from gpubench.devices import cpu as cpu_module
from gpubench.devices import cpu_load
from gpubench.devices.cpu import (
    COLD_CACHES,
    MEMORY_SHARE,
    MOST_COPIES,
    TICKS_A_SAMPLE,
    CpuDevice,
    HostSampler,
    host_clock,
)
from gpubench.devices.cpu_load import CpuLoad
from gpubench.errors import OutOfMemory, UsageError
from gpubench.result import Conditions, Timer
from gpubench.workload import Workload

MIB = 2**20
COLD, HOT = Conditions(cache="cold"), Conditions(cache="hot")


@pytest.fixture(scope="module")
def device() -> CpuDevice:
    return CpuDevice()


def moving(nbytes: int) -> Workload:
    return Workload(lambda: None, None, lambda: None, "none", bytes=nbytes)


class Machine(CpuDevice):
    """A CPU with the cache and the free memory of the test."""

    def __init__(self, cache: int | None, free: int | None) -> None:
        super().__init__()
        self._facts["last_level_cache_bytes"] = cache
        self.free = free

    def free_bytes(self) -> int | None:
        return self.free


def test_facts_are_of_this_machine(device: CpuDevice) -> None:
    facts = device.facts()
    assert facts["kind"] == "cpu"
    assert facts["threads"] == torch.get_num_threads()
    assert facts["memory_bytes"] > 2**28
    assert facts["name"]
    facts["name"] = "another"
    assert device.facts()["name"] != "another"
    assert device.software()["torch"] == torch.__version__


@pytest.mark.parametrize(
    ("cache", "free", "nbytes", "conditions", "copies"),
    [
        (32 * MIB, 2**40, 64 * MIB, COLD, 2),
        (32 * MIB, 2**40, MIB, COLD, 65),
        (32 * MIB, 2**40, 3 * MIB, COLD, 23),  # 22 cover 64 MiB, and the one in use is not among them
        (32 * MIB, 2**40, 2**40, COLD, 1),
        (32 * MIB, None, MIB, COLD, 65),
        (32 * MIB, 2**40, MIB, HOT, 1),
        (None, 2**40, MIB, COLD, 1),
        (32 * MIB, 2**40, 0, COLD, 1),
        (32 * MIB, 2**40, 12, COLD, MOST_COPIES),
        (32 * MIB, 80 * MIB, MIB, COLD, 10),
        (32 * MIB, 1, MIB, COLD, 1),
        (32 * MIB, 0, MIB, COLD, 1),
    ],
)
def test_copies(cache: int | None, free: int | None, nbytes: int, conditions: Conditions, copies: int) -> None:
    machine = Machine(cache, free)
    assert machine.replicas(moving(nbytes), conditions) == copies


@pytest.mark.parametrize("nbytes", [1000, MIB, 7 * MIB + 3, 63 * MIB, 64 * MIB, 65 * MIB])
@pytest.mark.parametrize("cache", [256 * 1024, 32 * MIB])
def test_between_two_uses_of_a_copy_the_caches_are_replaced(nbytes: int, cache: int) -> None:
    copies = Machine(cache, None).replicas(moving(nbytes), COLD)
    assert (copies - 1) * nbytes >= COLD_CACHES * cache or copies == MOST_COPIES


def test_copies_leave_most_of_the_memory_free() -> None:
    machine = Machine(10**9, 8 * 10**8)
    assert machine.replicas(moving(10**7), COLD) * 10**7 * MEMORY_SHARE <= 8 * 10**8


def test_the_host_clock_is_the_only_timer(device: CpuDevice) -> None:
    assert device.timers("auto") == device.timers("host") == ("host",)
    with pytest.raises(UsageError, match=r"no timer 'cupti' on a CPU \(--timer host\)"):
        device.timers("cupti")
    assert device.call_ns(lambda: None, 20) == []


def test_ten_terabytes_are_out_of_memory(device: CpuDevice) -> None:
    """O23 on a CPU."""
    with pytest.raises(OutOfMemory) as caught:
        device.unwritten((1_600_000, 1_600_000), "float32")
    assert caught.value.asked == 10_240_000_000_000
    assert caught.value.free is not None
    error = device.case_error(MemoryError("x"))
    assert isinstance(error, OutOfMemory)
    assert error.free is not None


def test_the_tick_of_the_host_clock() -> None:
    clock = host_clock()
    assert clock.name == "host"
    assert 0 < clock.tick_ns < 1e6
    assert clock.empty_ns is not None
    assert 0 <= clock.empty_ns < 1e6


class Time:
    """time.perf_counter_ns of the test; calls move it."""

    def __init__(self) -> None:
        self.now = 0

    def perf_counter_ns(self) -> int:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    fake = Time()
    monkeypatch.setattr(cpu_module, "time", fake)
    monkeypatch.setattr(cpu_load, "time", fake)
    monkeypatch.setattr(cpu_module, "WARM_UP_S", 1e-6)
    return fake


def spending(clock: Time, ns: int, log: list[int] | None = None, number: int = 0) -> Callable[[], None]:
    def call() -> None:
        clock.now += ns
        if log is not None:
            log.append(number)

    return call


def test_calls_rotate_through_all_copies(clock: Time) -> None:
    log: list[int] = []
    sampler = HostSampler([spending(clock, 10_000_000, log, number) for number in range(3)], Timer("host", 40.0, 90.0))
    assert sampler.warm_up() == 10_000_000
    assert len(log) >= 3
    assert sampler.batch(7).gpu_ns == [10_000_000] * 7
    assert log == [i % 3 for i in range(len(log))]


@pytest.mark.parametrize("ns", [1, 30, 999, 7999])
def test_a_sample_holds_enough_calls_for_its_ticks(clock: Time, ns: int) -> None:
    log: list[int] = []
    sampler = HostSampler([spending(clock, ns, log, number) for number in range(3)], Timer("host", 40.0))
    sampler.warm_up()
    log.clear()
    batch = sampler.batch(5)
    (launches,) = set(batch.launches)
    assert launches * ns >= TICKS_A_SAMPLE * 40 > (launches - 1) * ns
    assert batch.gpu_ns == [launches * ns] * 5
    assert len(log) == 5 * launches
    assert all((after - before) % 3 == 1 for before, after in pairwise(log)), "no copy is skipped"


def test_a_long_call_is_a_sample(clock: Time) -> None:
    sampler = HostSampler([spending(clock, 8000)], Timer("host", 40.0))
    sampler.warm_up()
    assert sampler.batch(2).launches == [1, 1]


def test_a_call_too_short_for_the_clock_to_see_does_not_divide_by_zero(clock: Time) -> None:
    def stopped() -> None:
        stopped.calls += 1  # type: ignore[attr-defined]
        if stopped.calls % 5 == 0:  # type: ignore[attr-defined]
            clock.now += 1000

    stopped.calls = 0  # type: ignore[attr-defined]
    sampler = HostSampler([stopped], Timer("host", 40.0))
    assert sampler.warm_up() == 0
    assert sampler.batch(1).launches == [TICKS_A_SAMPLE * 40]


def test_a_load_is_groups_of_calls_without_a_rest(clock: Time) -> None:
    log: list[int] = []
    load = CpuLoad([spending(clock, 1_500_000, log, number) for number in range(2)], Timer("host", 40.0, 90.0))
    load.start()
    begun = clock.now
    groups = [load.next() for _ in range(3)]
    assert {(group.gpu_ns, group.launches, group.sm_mhz) for group in groups} == {(10_500_000, 7, None)}
    assert [group.end_s for group in groups] == pytest.approx([0.0105, 0.021, 0.0315])
    assert clock.now - begun == 3 * 10_500_000, "nothing but calls"
    assert log == [i % 2 for i in range(len(log))]


def test_a_call_longer_than_a_group_is_one(clock: Time) -> None:
    load = CpuLoad([spending(clock, 25_000_000)], Timer("host", 40.0))
    load.start()
    assert load.next().launches == 1


def test_no_clock_beside_a_cpu_sample(clock: Time) -> None:
    sampler = HostSampler([spending(clock, 10**8)], Timer("host", 40.0, 90.0))
    sampler.warm_up()
    batch = sampler.batch(3)
    assert batch.sm_mhz == [None] * 3
    assert (batch.kernels, batch.profiled) == ([], False)
    assert sampler.timer == Timer("host", 40.0, 90.0)


def test_the_pages_of_fresh_copies_are_touched_before_they_are_timed(device: CpuDevice) -> None:
    def made() -> tuple[Workload, Any]:
        out = torch.zeros(4)
        return Workload(lambda: None, out, lambda: None, "none"), out

    (first, checked), (second, fresh) = made(), made()
    device.sampler([first, second], COLD, "host")
    assert fresh.isnan().all()
    assert not checked.isnan().any()
