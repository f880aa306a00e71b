"""A load without rest on a GPU: what it leaves of a rate, what the series holds, and what a call costs in joules."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from gpubench.devices.cuda import CudaDevice  # noqa: E402
from gpubench.devices.nvml import Nvml  # noqa: E402
from gpubench.discovery import load_suite  # noqa: E402
from gpubench.energy import HOT as HOT_CALLS  # noqa: E402
from gpubench.result import Conditions, Record  # noqa: E402
from gpubench.runner import Effort, measure  # noqa: E402
from gpubench.sampling import Stopping  # noqa: E402
from gpubench.steady import MOST_S, Group  # noqa: E402
from gpubench.suite import Benchmark, Case, Suite  # noqa: E402
from gpubench.sustained import LEAST_MEASURED_S  # noqa: E402
from gpubench.workload import Workload  # noqa: E402

HOT, COLD = Conditions(cache="hot", load="sustained"), Conditions(cache="cold", load="sustained")
VERDICTS = ("power cap", "thermal", "hardware slowdown", "none")


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice.named("cuda:0")


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_suite(Path(__file__).parents[2] / "suites" / "sustained.py")


@pytest.fixture(scope="module")
def both(device: CudaDevice, suite: Suite) -> tuple[Record, Record]:
    """A bf16 matmul of 4096 with rests and without, three seconds long."""
    return row(device, suite, replace(HOT, load="burst")), row(device, suite, HOT)


def row(
    device: CudaDevice, suite: Suite, conditions: Conditions, effort: Effort | None = None, n: int = 4096
) -> Record:
    params = {"n": n, "dtype": "bfloat16", "seconds": 3}
    case = Case("sustained", "matmul", params, conditions)
    *_, record = measure(suite.benchmarks["matmul"], case, device, effort or Effort())
    assert isinstance(record, Record)
    assert record.status == "ok", record.reason
    return record


def value(record: Record, name: str) -> float:
    metric = record.metric(name)
    assert metric is not None, (name, record.telemetry.get("energy"))
    return metric.value


def clock(record: Record) -> float:
    known = [mhz for mhz in record.samples.sm_mhz if mhz is not None]
    assert len(known) == len(record.samples.sm_mhz), "every group has its clock"
    return statistics.median(known)


def mm(n: int) -> Callable[[], object]:
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    c = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=c)


def groups(
    device: Any, call: Callable[[], object], conditions: Conditions, count: int = 50, timer: str = "auto"
) -> Any:
    """So many groups of a load, and the load."""
    load = device.load([Workload(call, None, lambda: None, "none")], conditions, timer)
    load.start()
    found: list[Group] = [load.next() for _ in range(count + load.in_flight)][load.in_flight :]
    load.stop()
    return found, load


def test_a_load_without_rest_is_no_faster_and_its_clock_no_higher(both: tuple[Record, Record]) -> None:
    burst, sustained = both
    assert value(sustained, "flops") <= 1.02 * value(burst, "flops")
    assert 300 < clock(sustained) <= 1.01 * clock(burst)
    assert sustained.telemetry["limited_by"] in VERDICTS


def test_the_series_covers_the_time(both: tuple[Record, Record]) -> None:
    sustained = both[1]
    series, warm_up = sustained.telemetry["series"], sustained.telemetry["warm_up"]
    assert series["measured_from_ms"] == pytest.approx(1e3 * warm_up["seconds"], abs=2)
    assert warm_up["seconds"] <= MOST_S + 0.1
    assert series["t_ms"][-1] - series["measured_from_ms"] >= 2800
    steps = [after - before for before, after in zip(series["t_ms"], series["t_ms"][1:], strict=False)]
    assert max(steps) < 250
    assert None not in series["sm_mhz"]
    assert 10 < statistics.median(series["power_w"]) < 2000
    assert sum(sustained.samples.gpu_ns) / 1e9 > 0.97 * 3, "the device hardly ever waited"


def test_samples_are_groups_of_some_ms(both: tuple[Record, Record]) -> None:
    sustained = both[1]
    assert sustained.timer is not None
    assert sustained.timer.name == "graph"
    assert "replay" in (sustained.timer.reason or "")
    assert 4e6 < statistics.median(sustained.samples.gpu_ns) < 25e6
    assert len(set(sustained.samples.launches)) == 1
    assert "below-resolution" not in sustained.flags


def test_energy_is_power_times_time(both: tuple[Record, Record]) -> None:
    sustained = both[1]
    if sustained.telemetry["energy"].get("unavailable"):
        pytest.skip(sustained.telemetry["energy"]["unavailable"])
    series = sustained.telemetry["series"]
    measured = [w for t, w in zip(series["t_ms"], series["power_w"], strict=True) if t > series["measured_from_ms"]]
    expected = statistics.mean(measured) * value(sustained, "time") / 1e9
    assert value(sustained, "energy") == pytest.approx(expected, rel=0.3)
    assert value(sustained, "power") == pytest.approx(statistics.mean(measured), rel=0.15)
    assert 1e-14 < value(sustained, "energy_per_flop") < 1e-10


def test_units_are_as_busy_as_a_matmul_makes_them(both: tuple[Record, Record]) -> None:
    gpm = both[1].telemetry["gpm"]
    if "unavailable" in gpm:
        pytest.skip(gpm["unavailable"])
    assert gpm["windows"] >= 1
    assert 0.7 < gpm["sm_activity"] <= 1
    assert 0.3 < gpm["tensor_activity"] <= 1
    assert 0 <= gpm["dram_bandwidth"] < 1


def test_a_sustained_row_has_the_kernels_of_its_burst_row(both: tuple[Record, Record]) -> None:
    burst, sustained = both
    if not burst.kernels:
        pytest.skip("no activity records here")
    assert [(kernel.name, kernel.grid) for kernel in sustained.kernels] == [
        (kernel.name, kernel.grid) for kernel in burst.kernels
    ]


def test_bytes_of_a_cold_row_have_an_energy_where_no_cache_holds_them(device: CudaDevice) -> None:
    def negative(device: CudaDevice, mib: int) -> Workload:
        x = device.random(mib << 18, "float32")
        y = device.unwritten(mib << 18, "float32")
        return Workload(
            run=lambda: torch.neg(x, out=y), output=y, reference=lambda: -x, reference_name="-x", bytes=2 * x.nbytes
        )

    found = {}
    for mib in (4, 1024):
        case = Case("suite", "negative", {"mib": mib}, Conditions())
        *_, found[mib] = measure(Benchmark("suite", "negative", negative, {}), case, device, Effort(energy=True))
        assert isinstance(found[mib], Record)
        assert found[mib].status == "ok", found[mib].reason
    if found[1024].telemetry["energy"].get("unavailable"):
        pytest.skip(found[1024].telemetry["energy"]["unavailable"])
    assert found[4].metric("energy_per_byte") is None
    assert found[4].telemetry["energy"]["conditions"] == HOT_CALLS
    assert 1e-11 < value(found[1024], "energy_per_byte") < 1e-9, "an H200: some 500 W for 4 TB/s"


def test_energy_of_a_burst_row_is_asked_for(device: CudaDevice, suite: Suite) -> None:
    effort = Effort(energy=True)
    record = row(device, suite, Conditions(cache="cold"), effort)
    energy = record.telemetry["energy"]
    if energy.get("unavailable"):
        pytest.skip(energy["unavailable"])
    assert energy["conditions"] == "hot, back to back"
    assert energy["window_s"] >= 1
    assert value(record, "energy") > 0
    assert record.timer is not None
    assert record.timer.name == "cupti", "the samples are the row's own"


def test_the_counter_of_energy_advances(device: CudaDevice) -> None:
    nvml = Nvml(device.facts()["uuid"])
    try:
        before = nvml.joules()
    except LookupError as error:
        pytest.skip(str(error))
    call, until = mm(4096), time.monotonic() + 1
    while time.monotonic() < until:
        for _ in range(20):
            call()
        torch.cuda.synchronize()
    assert 10 < nvml.joules() - before < 3000


def test_a_small_call_is_replayed_and_keeps_the_device_busy(device: CudaDevice) -> None:
    x = torch.zeros(1024, device="cuda")
    found, load = groups(device, lambda: x.add_(1.0), HOT)
    assert load.timer.name == "graph"
    assert statistics.median(group.call_ns for group in found) < 5000
    assert found[0].launches > 500
    spent = sum(group.gpu_ns for group in found[1:]) / 1e9
    assert spent > 0.9 * (found[-1].end_s - found[0].end_s)


def test_every_call_of_a_group_is_made(device: CudaDevice) -> None:
    x = torch.zeros(1, device="cuda")
    load = device.load([Workload(lambda: x.add_(1.0), None, lambda: None, "none")], HOT, "auto")
    load.start()
    before = float(x)
    made = sum(load.next().launches for _ in range(4))
    load.stop()
    assert float(x) - before == pytest.approx(made, rel=1e-6), "as many were in flight at the start as at the end"


def test_a_call_that_cannot_be_captured_goes_on_with_events_and_says_so(device: CudaDevice) -> None:
    x = torch.zeros(1 << 20, device="cuda")

    def waiting() -> None:
        x.add_(1.0)
        float(x[0])

    found, load = groups(device, waiting, HOT, count=5)
    assert load.timer.name == "event"
    assert ["captured" in reason for reason in load.refused] == [True]
    assert found[0].call_ns > 0
    torch.randn(8, device="cuda")  # the generator works still
    assert row_of_events(device) == "event"


def row_of_events(device: CudaDevice) -> str:
    _, load = groups(device, mm(1024), HOT, count=2, timer="event")
    return str(load.timer.name)


def test_cold_calls_are_timed_one_by_one_and_their_flushes_are_not(device: CudaDevice) -> None:
    quarter = torch.zeros(int(device.facts()["last_level_cache_bytes"]) // 16, device="cuda")
    out = torch.empty((), device="cuda")

    def read() -> None:
        torch.sum(quarter, dim=0, out=out)

    cold, load = groups(device, read, COLD)
    hot, _ = groups(device, read, HOT)
    assert load.timer.name == "event"
    warm, flushed = (statistics.median(group.call_ns for group in each) for each in (hot, cold))
    assert flushed > warm
    spent = sum(group.gpu_ns for group in cold[1:]) / 1e9
    assert spent < 0.8 * (cold[-1].end_s - cold[0].end_s), "the rest is flushes"


def test_a_timer_that_cannot_read_a_load_is_an_unsupported_row(device: CudaDevice, suite: Suite) -> None:
    case = Case("sustained", "matmul", {"n": 256, "dtype": "bfloat16", "seconds": 1}, HOT)
    *_, record = measure(suite.benchmarks["matmul"], case, device, Effort(Stopping(samples=1), timer="cupti"))
    assert isinstance(record, Record)
    assert record.status == "unsupported"
    assert "cupti" in (record.reason or "")


def test_attention(device: CudaDevice, suite: Suite) -> None:
    params = {"batch": 4, "heads": 8, "n": 1024, "d": 64, "dtype": "bfloat16", "seconds": 1}
    *_, record = measure(
        suite.benchmarks["attention"], Case("sustained", "attention", params, HOT), device, Effort(Stopping())
    )
    assert isinstance(record, Record)
    assert record.status == "ok", record.reason
    assert sum(record.samples.gpu_ns) / 1e9 > 0.9 * LEAST_MEASURED_S
