"""The suite softmax on a GPU: right at every length, as fast as its bytes, and its claims' figures."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)
pytest.importorskip("cupy")

from machine_rows import SUITES, row  # noqa: E402

from gpubench.devices.cuda import CudaDevice  # noqa: E402

SUITE = SUITES["softmax"]
KERNELS = ["three-pass", "online", "cached"]


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice.named("cuda:0")


def good(device: Any, path: str, **params: Any) -> Any:
    """A row that must be right."""
    record = row(device, path, **params)
    assert (record.status, record.reason) == ("ok", None)
    assert record.summary is not None
    return record


def ns(device: Any, path: str, **params: Any) -> float:
    return float(good(device, path, **params).summary.median_ns)


@pytest.mark.parametrize("v", [1, 63, 1000, 1025, 30_001])
@pytest.mark.parametrize("by", KERNELS)
def test_every_way_is_right_at_any_length(device: Any, by: str, v: int) -> None:
    good(device, "softmax/passes", by=by, v=v, rows=37)


@pytest.mark.parametrize("by", KERNELS[:2])
def test_a_row_that_is_long_and_odd(device: Any, by: str) -> None:
    good(device, "softmax/passes", by=by, v=100_003, rows=37)


@pytest.mark.parametrize("v", [5, 63, 1025, 100_003])
@pytest.mark.parametrize("by", ["fused", "unfused", "library"])
def test_the_five_greatest_are_right_at_any_length(device: Any, by: str, v: int) -> None:
    good(device, "softmax/top", by=by, v=v, rows=37)


def test_more_elements_than_32_bits_count(device: Any) -> None:
    """The last rows lie beyond 2^31 elements."""
    if torch.cuda.mem_get_info(device.torch_device)[0] < 60 << 30:
        pytest.skip("needs 60 GiB of memory")
    for by in KERNELS:
        good(device, "softmax/passes", by=by, v=10_000, rows=220_000)


@pytest.mark.parametrize("by", KERNELS)
def test_rows_that_are_hard(device: Any, by: str) -> None:
    """Offsets, a maximum in the last element, -inf before all others, and nothing but -inf, as torch has them."""
    workload = SUITE.benchmarks["passes"].function(device, by=by, v=1001, rows=4)
    x, y = workload.run.args[:2]
    x[0] += 1e4
    x[1, -1] = 50
    x[2, :1000] = -torch.inf
    x[3] = -torch.inf
    device.launcher(workload.run, SUITE.file).call()
    torch.testing.assert_close(y.double(), torch.softmax(x.double(), 1), rtol=1e-5, atol=1e-30, equal_nan=True)


def test_a_row_that_shared_memory_does_not_hold_is_unsupported(device: Any) -> None:
    record = row(device, "softmax/passes", by="cached", v=1_000_000, rows=2)
    assert record.status == "unsupported"
    assert "shared memory" in str(record.reason)


@pytest.mark.parametrize("v", [1000, 10_000, 30_000])
def test_a_row_that_is_kept_streams_as_a_copy_does(device: Any, v: int) -> None:
    """85 % of what a copy of as many bytes reaches, where both are far larger than the caches."""
    elements = 400_000_000
    copy = ns(device, "bandwidth/copy", mib=elements * 4 >> 20, unroll=1, threads=256, hint="plain")
    kept = ns(device, "softmax/passes", by="cached", v=v, rows=elements // v)
    assert copy / kept >= 0.85


def test_a_pass_less_where_rows_do_not_fit_the_cache(device: Any) -> None:
    times = [ns(device, "softmax/passes", by=by, v=100_000, rows=4000) for by in ("three-pass", "online")]
    assert times[0] / times[1] >= 1.15
    short = [ns(device, "softmax/short-rows", by=by, v=1000, rows=400_000) for by in ("three-pass", "online")]
    assert short[0] / short[1] <= 1.05


def test_fused_the_greatest_cost_a_read(device: Any) -> None:
    unfused, fused = (ns(device, "softmax/top", by=by, v=100_000, rows=4000) for by in ("unfused", "fused"))
    assert unfused / fused >= 3.5


def test_the_recurrence_is_exact_and_its_control_overflows(device: Any) -> None:
    for offset in (0, 10000):
        found = good(device, "softmax/recurrence", by="running", offset=offset)
        assert found.metric("relative_error").value <= 1e-5
        naive = good(device, "softmax/recurrence", by="naive", offset=offset)
        assert naive.metric("overflowed").value == float(offset > 0)


def test_one_element_reaches_its_row(device: Any) -> None:
    found = good(device, "softmax/reach")
    assert (found.metric("changed_in_row").value, found.metric("changed_elsewhere").value) == (1, 0)
