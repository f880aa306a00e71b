"""Each trap's wrong way lacks what it is said to lack, and nothing else.

On a scripted GPU: a host that launches kernels, and a device that runs them in order some time later. torch computes on
the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from machine import SUITES, globals_of

from gpubench.devices.cpu import CpuDevice
from gpubench.errors import Skip
from gpubench.plan import Selected, cases
from gpubench.result import Conditions
from gpubench.runner import Effort, measure
from gpubench.sampling import Stopping
from gpubench.suite import Case
from gpubench.workload import Workload

SUITE = SUITES["traps"]
GLOBALS = globals_of("traps/zeros")
LAUNCH, RECORD, ALLOCATE = 5_000, 1_000, 300_000
"""Host time in ns of a kernel's launch, of an event, and of memory that the allocator does not have."""
ONLY_ON_A_GPU = ("missing-sync", "event-pair", "burst")
BY_GPUBENCH = ("hot-cache", "zeros", "burst")
"""Traps in which the work or a condition is wrong, and gpubench times both ways."""


class ScriptedGpu:
    """`host` is what the host's clock says, `device` when the device will be done, both in ns; each kernel takes what
    `kernel` says."""

    kind = "cuda"

    def __init__(self) -> None:
        self.host = self.device = self.slept = self.flops = 0
        self.kernel: Callable[[], int] = lambda: 180_000
        self.memory = 0
        self.cpu = CpuDevice()

    def facts(self) -> dict[str, Any]:
        return {"last_level_cache_bytes": 2**16}

    def random(self, shape: Any, dtype: str, seed: int = 0) -> Any:
        return self.cpu.random(shape, dtype, seed)

    def unwritten(self, shape: Any, dtype: str) -> Any:
        return self.cpu.unwritten(shape, dtype)

    def launch(self, ns: int) -> None:
        self.host += LAUNCH
        self.device = max(self.device, self.host) + ns

    def synchronize(self) -> None:
        self.host = max(self.host, self.device)

    def sleep(self, seconds: float) -> None:
        self.host += round(seconds * 1e9)
        self.slept += 1

    def empty_cache(self) -> None:
        self.memory = 0

    def empty_like(self, x: Any) -> Any:
        self.host += 0 if self.memory else ALLOCATE
        self.memory = 1
        return x.clone()

    def event(self, enable_timing: bool = False) -> Any:
        assert enable_timing
        made = SimpleNamespace(at=0)

        def record() -> None:
            self.host += RECORD
            self.device = made.at = max(self.device, self.host)

        def synchronize() -> None:
            self.host = max(self.host, made.at)

        made.record, made.synchronize = record, synchronize
        made.elapsed_time = lambda end: (end.at - made.at) / 1e6
        return made


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> ScriptedGpu:
    scripted = ScriptedGpu()

    def kernel(name: str) -> None:
        real = getattr(torch, name)

        def enqueue(*args: Any, **options: Any) -> Any:
            scripted.launch(scripted.kernel())
            return real(*args, **options)

        monkeypatch.setattr(torch, name, enqueue)

    kernel("mm")
    kernel("mul")
    monkeypatch.setattr(torch, "empty_like", scripted.empty_like)
    monkeypatch.setattr(torch.cuda, "synchronize", scripted.synchronize)
    monkeypatch.setattr(torch.cuda, "empty_cache", scripted.empty_cache)
    monkeypatch.setattr(torch.cuda, "Event", scripted.event)
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: scripted.launch(cycles // 2))
    clock = SimpleNamespace(perf_counter_ns=lambda: scripted.host, sleep=scripted.sleep)
    monkeypatch.setitem(GLOBALS, "time", clock)
    monkeypatch.setitem(GLOBALS["PRODUCT"], "cuda", 8)
    monkeypatch.setitem(GLOBALS["LARGE"], "cuda", 64)
    monkeypatch.setitem(GLOBALS, "SMALL", 32)
    return scripted


def wrong(device: Any, name: str) -> Workload:
    return SUITE.benchmarks[name].function(device, way="wrong")


def readings(device: Any, name: str, count: int = 3) -> list[int]:
    timed_by = wrong(device, name).timed_by
    assert timed_by is not None
    return [timed_by() for _ in range(count)]


@pytest.mark.parametrize("name", SUITE.benchmarks)
def test_the_right_way_is_gpubenchs_own_and_both_do_the_same_work(gpu: ScriptedGpu, name: str) -> None:
    right, other = SUITE.benchmarks[name].function(gpu, way="right"), wrong(gpu, name)
    assert (right.timed_by, right.labels) == (None, {})
    assert list(other.labels) == ["trap"]
    assert (other.timed_by is None) == (name in BY_GPUBENCH)
    assert (right.flops, right.bytes, right.dtype) == (other.flops, other.bytes, other.dtype)
    assert (right.roof, other.roof) == (None, None)
    assert SUITE.benchmarks[name].axes["way"].values == ("right", "wrong")


def test_without_waiting_only_the_launch_is_read_however_often(gpu: ScriptedGpu) -> None:
    assert set(readings(gpu, "missing-sync", 2000)) == {LAUNCH}


def test_events_around_a_small_kernel_read_its_launch_too(gpu: ScriptedGpu) -> None:
    gpu.kernel = lambda: 2_000
    assert readings(gpu, "event-pair") == [LAUNCH + 2_000] * 3


def test_the_hosts_clock_reads_launch_and_kernel(gpu: ScriptedGpu) -> None:
    gpu.kernel = lambda: 2_000
    assert readings(gpu, "host-clock") == [LAUNCH + 2_000] * 3


def test_what_is_taken_for_a_bandwidth_of_dram_fits_the_cache(gpu: ScriptedGpu) -> None:
    workload = wrong(gpu, "hot-cache")
    assert workload.level == "DRAM"
    assert workload.bytes <= gpu.facts()["last_level_cache_bytes"] // 4
    assert SUITE.benchmarks["hot-cache"].function(gpu, way="right").level is None


def test_the_first_call_allocates_each_time(gpu: ScriptedGpu) -> None:
    assert readings(gpu, "cold-start") == [ALLOCATE + LAUNCH + 180_000] * 3


def test_the_best_of_many_is_the_least(gpu: ScriptedGpu) -> None:
    times = [100_000 + 1_000 * (number % GLOBALS["REPEATS"]) for number in range(3 * GLOBALS["REPEATS"])]
    gpu.kernel = iter(times).__next__
    assert readings(gpu, "best-of-many") == [100_000] * 3


def test_each_reading_of_the_best_of_many_follows_a_rest(gpu: ScriptedGpu) -> None:
    readings(gpu, "best-of-many", 2)
    assert gpu.slept == 2 * GLOBALS["REPEATS"]


def test_zeros_are_the_only_wrong_thing_about_zeros(gpu: ScriptedGpu) -> None:
    for way, any_bits in (("right", True), ("wrong", False)):
        workload = SUITE.benchmarks["zeros"].function(gpu, way=way)
        workload.call()
        assert bool(workload.output.any()) is any_bits


def conditions(name: str, kind: str = "cuda", usual: Any = None) -> dict[Any, tuple[str, ...]]:
    """Cache and load of each way, as a plan measures it."""
    found = cases([Selected(SUITE.benchmarks[name])], kind, conditions=usual)
    assert len(found) == 2
    return {case.params["way"]: (case.conditions.cache, case.conditions.load) for case in found}


@pytest.mark.parametrize("usual", [{}, {"cache": "cold", "load": "sustained"}, {"cache": "hot", "load": "burst"}])
def test_a_row_has_the_conditions_that_its_way_really_has_whatever_is_asked(usual: dict[str, str]) -> None:
    for name in SUITE.benchmarks:
        if name not in BY_GPUBENCH:
            assert conditions(name, usual=usual) == dict.fromkeys(["right", "wrong"], ("hot", "burst")), name
    assert conditions("hot-cache", usual=usual) == {"right": ("cold", "burst"), "wrong": ("hot", "burst")}
    assert conditions("burst", usual=usual) == {"right": ("hot", "sustained"), "wrong": ("hot", "burst")}


def test_zeros_are_wrong_under_any_conditions() -> None:
    assert conditions("zeros") == dict.fromkeys(["right", "wrong"], ("hot", "sustained"))
    assert conditions("zeros", "cpu") == dict.fromkeys(["right", "wrong"], ("hot", "burst"))
    asked = {"cache": "cold", "load": "burst"}
    assert conditions("zeros", usual=asked) == dict.fromkeys(["right", "wrong"], ("cold", "burst"))


@pytest.mark.parametrize("way", ["right", "wrong"])
@pytest.mark.parametrize("name", ONLY_ON_A_GPU)
def test_what_cannot_go_wrong_on_a_cpu_is_skipped_with_the_reason(name: str, way: str) -> None:
    with pytest.raises(Skip, match="a CPU"):
        SUITE.benchmarks[name].function(CpuDevice(), way=way)


def test_a_cache_of_unknown_size_is_no_trap() -> None:
    device = CpuDevice()
    device._facts["last_level_cache_bytes"] = None
    with pytest.raises(Skip, match="not known"):
        wrong(device, "hot-cache")


def test_cpu_time_is_what_a_cpu_reads_by_the_wrong_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GLOBALS["LARGE"], "cpu", 64)
    monkeypatch.setitem(GLOBALS, "time", SimpleNamespace(process_time_ns=iter([10, 50]).__next__))
    assert readings(CpuDevice(), "host-clock", 1) == [40]


@pytest.mark.parametrize("name", [name for name in SUITE.benchmarks if name not in ONLY_ON_A_GPU])
def test_a_wrong_row_of_a_cpu_has_the_clock_it_is_said_to_have(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(GLOBALS["LARGE"], "cpu", 2**12)
    monkeypatch.setitem(GLOBALS["PRODUCT"], "cpu", 16)
    case = Case("traps", name, {"way": "wrong"}, Conditions(cache="hot"))  # of one copy each, which is quick
    *_, record = measure(SUITE.benchmarks[name], case, CpuDevice(), Effort(Stopping(samples=3)))
    assert (record.status, record.reason) == ("ok", None)
    assert record.timer.name == ("host" if name in BY_GPUBENCH else "own")
    assert record.labels["trap"]
    if name == "hot-cache":
        assert "cache-resident" in record.flags
