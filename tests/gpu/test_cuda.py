"""A real GPU: its timers against kernels of known duration, its caches, its precision, and what survives a crash.

Bounds are those of an NVIDIA H200 at rest, wide enough for other data-centre GPUs of compute capability 8.0 and newer.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from gpubench.devices import Batch  # noqa: E402
from gpubench.devices.cuda import CudaDevice  # noqa: E402
from gpubench.devices.find import find  # noqa: E402
from gpubench.devices.records import activities_of  # noqa: E402
from gpubench.discovery import load_suite  # noqa: E402
from gpubench.errors import DeviceUnavailable, UsageError  # noqa: E402
from gpubench.executor import Bench, WorkerProcess  # noqa: E402
from gpubench.result import Conditions, Record  # noqa: E402
from gpubench.runner import Effort, measure  # noqa: E402
from gpubench.sampling import Stopping  # noqa: E402
from gpubench.suite import Axis, Benchmark, Case, Suite  # noqa: E402
from gpubench.workload import Workload  # noqa: E402

SUITES = Path(__file__).parents[2] / "suites"
COLD, HOT = Conditions(cache="cold"), Conditions(cache="hot")


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    """One for all tests: finding out how its timers behave takes seconds."""
    return CudaDevice.named("cuda:0")


@pytest.fixture(scope="module")
def sweep() -> Suite:
    return load_suite(SUITES / "matmul_sweep.py")


def sampled(
    device: Any, call: Callable[[], object], n: int = 20, conditions: Conditions = HOT, timer: str = "cupti"
) -> Batch:
    """n samples of a call, warmed up, as the runner takes them."""
    workload = Workload(call, None, lambda: None, "none")
    sampler = device.sampler([workload], conditions, timer)
    sampler.warm_up()
    return sampler.batch(n)


def median(batch: Batch) -> float:
    return statistics.median(batch.gpu_ns)


def mm(n: int, dtype: str = "bfloat16") -> Callable[[], object]:
    a, b = (torch.randn(n, n, device="cuda", dtype=getattr(torch, dtype)) for _ in range(2))
    c = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=c)


def row(
    device: Any, suite: Suite, effort: Effort | None = None, conditions: Conditions = COLD, **params: Any
) -> Record:
    (bench,) = suite.benchmarks.values()
    (full,) = bench.cases("cuda", asked={name: [value] for name, value in params.items()})
    *_, record = measure(bench, Case(suite.name, bench.name, full, conditions), device, effort or Effort())
    assert isinstance(record, Record)
    return record


def time_of(record: Record) -> int:
    assert record.status == "ok", record.reason
    assert record.summary is not None
    return record.summary.median_ns


# What it is


def test_facts(device: Any) -> None:
    facts = device.facts()
    assert facts["kind"] == "cuda"
    assert facts["name"] == torch.cuda.get_device_name(0)
    assert facts["uuid"].startswith(("GPU-", "MIG-"))
    assert facts["memory_bytes"] > 2**30
    assert 2**20 <= facts["last_level_cache_bytes"] < 2**30
    assert facts["multiprocessors"] > 0
    assert facts["warp_size"] == 32
    assert 0 < device.free_bytes() < facts["memory_bytes"]
    if "unavailable" not in facts:
        assert 500 < facts["sm_mhz_max"] < 5000
        assert 10 < facts["power_limit_w"] < 2000
    assert device.software()["cuda"] == torch.version.cuda


def test_telemetry(device: Any) -> None:
    now = device.telemetry()
    if "unavailable" in now:
        pytest.skip(f"NVML: {now['unavailable']}")
    assert 100 < now["sm_mhz"] <= device.facts()["sm_mhz_max"]
    assert 0 < now["power_w"] < 1.2 * device.facts()["power_limit_w"]
    assert 0 < now["temperature_c"] < 110
    assert isinstance(now["throttled"], bool)


def test_a_device_that_is_not_there() -> None:
    if torch.cuda.device_count() > 7:
        pytest.skip("there is a cuda:7 here")
    with pytest.raises(DeviceUnavailable) as caught:
        find("cuda:7")
    assert caught.value.message.startswith(f"--device cuda:7: found cuda:0 {torch.cuda.get_device_name(0)}")
    assert caught.value.hint == "--device cuda:0"


def test_a_device_by_its_uuid(device: Any) -> None:
    uuid = device.facts()["uuid"]
    for word in (uuid, uuid[:12], "cuda", "cuda:0", "auto"):
        found, notice = find(word)
        assert found.facts()["uuid"] == uuid
        assert notice is None or (word == "auto" and "busy" in notice), "the tests before may have kept it busy"
    with pytest.raises(DeviceUnavailable, match="found cuda:0"):
        find("GPU-ffffffff-ffff-ffff-ffff-ffffffffffff")


# Timers


def test_the_timer_against_a_kernel_of_known_duration(device: Any) -> None:
    """It spins a given number of SM cycles: its time is cycles / clock and a constant, over three decades."""
    cycles = [20_000, 200_000, 2_000_000]
    times = [median(sampled(device, lambda n=n: torch.cuda._sleep(n))) for n in cycles]
    ghz = (cycles[2] - cycles[1]) / (times[2] - times[1])
    print("SM clock", ghz, "GHz; constants", [ns - n / ghz for n, ns in zip(cycles, times, strict=True)])
    most = device.facts()["sm_mhz_max"]
    if most is not None:
        assert 0.97 < 1000 * ghz / most < 1.01, "after a rest the clock is at its maximum"
    for n, ns in zip(cycles, times, strict=True):
        assert abs(ns - n / ghz) <= 0.01 * n / ghz + 2000


def test_records_are_counted(device: Any) -> None:
    x, y = torch.ones(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")

    def work() -> None:
        for _ in range(7):
            x.fill_(1.0)
        y.zero_()
        y.copy_(x)

    source = device._probe.source
    source.session(work)
    found = source.session(work)
    assert len(found) == 9
    assert [a.kind for a in found[:7]] == ["kernel"] * 7
    assert {a.kind for a in found[7:]} <= {"kernel", "memset", "memcpy"}, "and zero_ is not lost"
    assert [a.correlation for a in found] == sorted({a.correlation for a in found})
    assert all(before.end_ns <= after.start_ns for before, after in pairwise(found))
    assert all(a.grid and a.block for a in found[:7])
    assert len(activities_of(source, device.flush)) >= 2


def test_a_call_of_several_kernels_is_timed_from_first_to_last(device: Any) -> None:
    def two() -> None:
        torch.cuda._sleep(100_000)
        torch.cuda._sleep(300_000)

    batch = sampled(device, two)
    alone = median(sampled(device, lambda: torch.cuda._sleep(400_000)))
    assert sum(kernel.count for kernel in batch.kernels) == 2
    assert not batch.profiled, "the stream is held while both are enqueued"
    assert abs(median(batch) - alone) < 0.02 * alone + 2000


@pytest.mark.parametrize("n", [4096, 8192])
def test_events_and_records_agree_above_100_us(device: Any, n: int) -> None:
    call = mm(n)
    by_records, by_events = median(sampled(device, call)), median(sampled(device, call, timer="event"))
    print(n, by_records, by_events)
    assert by_records > 100_000
    assert by_records <= by_events * 1.01
    assert by_events <= by_records * 1.05


def test_no_time_is_longer_than_the_wall(device: Any) -> None:
    """O20: and none so short that nobody waited for it."""
    call = mm(8192)
    measured = median(sampled(device, call))
    torch.cuda.synchronize()
    begun = time.perf_counter_ns()
    for _ in range(10):
        call()
    torch.cuda.synchronize()
    wall = (time.perf_counter_ns() - begun) / 10
    assert 0.5 * wall < measured < 1.02 * wall


def test_paced_matmuls_repeat(device: Any) -> None:
    call = mm(4096)
    one, other = median(sampled(device, call)), median(sampled(device, call))
    assert abs(one - other) < 0.01 * one


def test_time_grows_with_the_work(device: Any) -> None:
    """O20: about 8 times from one size to its double."""
    ratio = median(sampled(device, mm(8192))) / median(sampled(device, mm(4096)))
    assert 6.5 < ratio < 9.5


def test_an_unknown_timer(device: Any) -> None:
    assert list(device.timers("auto")) == ["cupti", "graph", "event"]
    with pytest.raises(UsageError, match="no timer 'host' on a GPU"):
        device.timers("host")


# Caches


def test_a_flush_covers_the_cache(device: Any) -> None:
    cache = device.facts()["last_level_cache_bytes"]
    assert device._foreign.nbytes >= 2 * cache
    assert device._clean.nbytes >= 0.99 * cache


def test_cold_is_slower_than_hot(device: Any) -> None:
    """A read of a quarter of the L2: from DRAM after a flush, from the cache without."""
    source = torch.ones(4096, device.facts()["last_level_cache_bytes"] // 4 // 4 // 4096, device="cuda")
    sums = torch.empty(4096, device="cuda")

    def read() -> None:
        torch.sum(source, dim=1, out=sums)

    cold, hot = median(sampled(device, read, conditions=COLD)), median(sampled(device, read, conditions=HOT))
    print("cold", cold, "hot", hot)
    assert cold > 1.15 * hot
    flush = sum(a.end_ns - a.start_ns for a in _flush(device))
    assert cold < hot + flush / 4, "the flush is not part of it"


def _flush(device: Any) -> list[Any]:
    return activities_of(device._probe.source, device.flush)


# Rows


def test_the_step_at_1792(device: Any, sweep: Suite) -> None:
    aligned, odd = row(device, sweep, n=1792), row(device, sweep, n=1793)
    kernels = [[(kernel.name, tuple(kernel.grid or ())) for kernel in record.kernels] for record in (aligned, odd)]
    assert all(name and grid for found in kernels for name, grid in found)
    assert kernels[0] != kernels[1]
    assert time_of(odd) > 1.5 * time_of(aligned)
    for record in (aligned, odd):
        assert record.timer is not None
        assert record.timer.name == "cupti"
        assert record.timer.reason is not None
        assert record.timer.reason.startswith("records add up: ")
        assert record.flags == []
        assert record.check is not None
        assert 0 < record.check.error < record.check.tolerance
        assert len(record.call_ns) == 20


def test_a_size_that_does_not_fit_costs_one_row(device: Any, sweep: Suite) -> None:
    """O23: and leaves the next one its memory and its time."""
    row(device, sweep, n=1024)  # cuBLAS takes its workspace once
    before = torch.cuda.memory_allocated()
    rows = [row(device, sweep, n=n) for n in (1024, 400_000, 1024)]
    assert [record.status for record in rows] == ["ok", "oom", "ok"]
    assert rows[1].reason is not None
    assert rows[1].reason.startswith("out of memory: needs 320,000,000,000 bytes, free ")
    assert abs(time_of(rows[2]) - time_of(rows[0])) < 0.05 * time_of(rows[0])
    assert torch.cuda.memory_allocated() == before


def test_an_allocation_that_fails_late_is_out_of_memory_too(device: Any) -> None:
    with pytest.raises(torch.OutOfMemoryError) as caught:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    error = device.case_error(caught.value)
    assert (error.status, error.asked) == ("oom", 1 << 50)
    assert error.free > 0


def test_float32_is_never_tf32(device: Any, sweep: Suite) -> None:
    matmul: Any = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    try:
        for found in ("none", "tf32"):
            matmul.fp32_precision = found
            exact = row(device, sweep, n=2048, dtype="float32")
            assert exact.check is not None
            assert exact.check.error < 2e-6, "TF32 leaves about 3e-4"
            assert matmul.fp32_precision == found, "what was found is put back"
            rounded = row(device, sweep, n=2048, dtype="tf32")
            assert rounded.check is not None
            assert 5e-5 < rounded.check.error < rounded.check.tolerance
            assert time_of(rounded) < time_of(exact)
            assert matmul.fp32_precision == found
    finally:
        matmul.fp32_precision = before


@pytest.mark.parametrize("dtype", ["float64", "float32", "tf32", "float16", "bfloat16"])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
def test_every_dtype_and_layout_is_right(device: Any, sweep: Suite, dtype: str, layout: str) -> None:
    record = row(device, sweep, Effort(Stopping(samples=3)), n=768, dtype=dtype, layout=layout)
    assert record.status == "ok", record.reason
    assert record.check is not None
    assert record.check.error <= record.check.tolerance


def test_a_wrong_row_is_incorrect_and_the_next_is_right(device: Any) -> None:
    x, out = torch.ones(1000, device="cuda"), torch.empty(1000, device="cuda")

    def bench(device: Any, n: int) -> Workload:
        return Workload(
            lambda: out.copy_(x) if n else None, out, lambda: x, "the source", bytes=8000, accumulate="exact"
        )

    made = Benchmark("some", "bench", bench, {"n": Axis([0, 1], minimum=0)})
    for n, status in ((1, "ok"), (0, "incorrect"), (1, "ok")):
        *_, record = measure(made, Case("some", "bench", {"n": n}, HOT), device, Effort(Stopping(samples=1)))
        assert isinstance(record, Record)
        assert record.status == status, record.reason


CRASH = '''
"""A kernel that reads beyond its input."""
from gpubench import Axis, Suite, Workload

suite = Suite(__file__)


@suite.benchmark(at=Axis([0]))
def gather(device, at):
    """Read one row."""
    import torch

    source, out = device.random((8, 8), "float32"), device.unwritten((1, 8), "float32")
    index = torch.tensor([at - 1], device=source.device)
    return Workload(
        run=lambda: torch.index_select(source, 0, index, out=out),
        output=out,
        reference=lambda: source[at - 1 : at],
        reference_name="a slice",
        bytes=64,
        accumulate="exact",
    )
'''


def test_an_illegal_access_costs_one_row(tmp_path: Path) -> None:
    (tmp_path / "crash.py").write_text(CRASH)
    suite = load_suite(tmp_path / "crash.py")
    bench = Bench({"crash/gather": suite.benchmarks["gather"]}, {"crash": tmp_path / "crash.py"})
    executor = WorkerProcess("cuda:0", bench, timeout=120)
    try:
        rows = []
        for at in (3, 1_000_000, 4):
            *_, record = executor.measure(Case("crash", "gather", {"at": at}, COLD), Effort(Stopping(samples=5)))
            assert isinstance(record, Record)
            rows.append(record)
    finally:
        executor.close()
    assert [record.status for record in rows] == ["ok", "error", "ok"], [record.reason for record in rows]
    assert rows[1].reason is not None
    assert "the CUDA context is lost" in rows[1].reason
    assert "\n" not in rows[1].reason
    assert rows[1].summary is None
