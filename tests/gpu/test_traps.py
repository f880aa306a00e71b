"""How far off the wrong ways of the suite `traps` are on a GPU, and products of every data pattern."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from gpubench import check  # noqa: E402
from gpubench.devices.cuda import CudaDevice  # noqa: E402
from gpubench.discovery import Library  # noqa: E402
from gpubench.errors import Skip  # noqa: E402
from gpubench.model import catalog  # noqa: E402
from gpubench.plan import Selected, cases  # noqa: E402
from gpubench.result import Record  # noqa: E402
from gpubench.runner import Effort, measure  # noqa: E402
from gpubench.telemetry import unread_clock  # noqa: E402

SUITES = Library(Path(__file__).parents[2] / "suites").suites()
PATTERN = SUITES["data-pattern"].benchmarks["matmul"]


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice(0)


def row(device: CudaDevice, name: str, way: str) -> Record:
    bench = SUITES["traps"].benchmarks[name]
    (case,) = cases([Selected(bench, {"way": [way]})], "cuda")
    *_, record = measure(bench, case, device, Effort())
    assert isinstance(record, Record)
    assert (record.status, record.reason) == ("ok", None)
    return record


def time_ns(record: Record) -> int:
    assert record.summary is not None
    return record.summary.median_ns


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("missing-sync", 0.0, 0.5),
        ("event-pair", 1.5, 20.0),
        ("host-clock", 1.5, 100.0),
        ("hot-cache", 0.2, 0.9),
        ("cold-start", 1.05, 1000.0),  # what mapping costs is the host's: 1.13 and 7.3 on H200s of two days
        ("best-of-many", 0.7, 1.02),
        ("zeros", 0.6, 1.02),
        ("burst", 0.6, 1.02),
    ],
)
def test_a_wrong_way_is_off_to_the_side_it_is_said_to_be(
    device: CudaDevice, name: str, least: float, most: float
) -> None:
    right, wrong = row(device, name, "right"), row(device, name, "wrong")
    assert right.timer is not None
    assert right.timer.name != "own"
    assert least < time_ns(wrong) / time_ns(right) < most


def test_the_rate_of_a_call_that_was_not_waited_for_cannot_be(device: CudaDevice) -> None:
    """Where the architecture's peak is known."""
    flags = row(device, "missing-sync", "wrong").flags
    assert ("implausible" in flags) == (catalog.compute_bound(device.facts(), "bfloat16") is not None)


def test_only_the_cache_is_wrong_about_a_hot_cache(device: CudaDevice) -> None:
    right, wrong = row(device, "hot-cache", "right"), row(device, "hot-cache", "wrong")
    assert (right.conditions.cache, wrong.conditions.cache) == ("cold", "hot")
    assert right.timer is not None
    assert wrong.timer is not None
    assert right.timer.name == wrong.timer.name


def test_a_bandwidth_of_dram_from_the_cache_is_flagged(device: CudaDevice) -> None:
    assert "cache-resident" in row(device, "hot-cache", "wrong").flags


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "tf32", "float64"])
@pytest.mark.parametrize("pattern", PATTERN.axes["pattern"].values)
def test_the_product_of_every_pattern_is_right(device: CudaDevice, pattern: str, dtype: Any) -> None:
    device.configure("normal", 5)
    try:
        workload = PATTERN.function(device, pattern=pattern, n=2048, dtype=dtype)
    except Skip:
        assert (pattern, dtype) == ("denormal", "float64")
        return
    device.poison(workload.output)
    with device.precision(workload.precision):
        workload.call()
    device.synchronize()
    check.judge(device.compare(workload.output, workload.reference()), workload)
    device.release()


def test_the_clock_beside_long_products_is_called_held_only_where_no_power_cap_was_on(device: CudaDevice) -> None:
    (case,) = cases([Selected(PATTERN, {"pattern": ["normal"], "n": [8192], "load": ["burst"]})], "cuda")
    *_, record = measure(PATTERN, case, device, Effort())
    assert isinstance(record, Record)
    assert record.status == "ok"
    seen = record.telemetry["before"], record.telemetry["after"]
    assert record.telemetry.get("sm_clock") == unread_clock(*seen, time_ns(record))
    assert any(record.samples.sm_mhz)
