"""The suites on branches, addresses, tiles and waves, on a GPU: right, at every size, and as the machine is."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)
pytest.importorskip("cupy")

from machine_rows import benchmarks, row  # noqa: E402

from gpubench.devices.cuda import CudaDevice  # noqa: E402

BENCHMARKS = benchmarks("coalescing", "divergence", "tiling", "waves")
RUNGS = BENCHMARKS["tiling/ladder"].axes["rung"].values


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice.named("cuda:0")


def ns(device: Any, path: str, **params: Any) -> float:
    """The median time of a row that must be right."""
    record = row(device, path, **params)
    assert (record.status, record.reason) == ("ok", None)
    assert record.summary is not None
    return record.summary.median_ns


def cases() -> list[Any]:
    return [
        pytest.param(path, params, id=f"{path}[{','.join(map(str, params.values()))}]")
        for path, bench in BENCHMARKS.items()
        for params in bench.cases("cuda", quick=True)
    ]


@pytest.mark.parametrize(("path", "params"), cases())
def test_every_quick_case_is_right(device: Any, path: str, params: dict[str, Any]) -> None:
    record = row(device, path, **params)
    assert (record.status, record.reason) == ("ok", None)
    assert "analogue" not in record.flags
    assert record.check is not None


@pytest.mark.parametrize("n", [1000, 1025])
@pytest.mark.parametrize("rung", RUNGS)
def test_every_rung_is_right_where_tiles_reach_over_the_edge(device: Any, rung: str, n: int) -> None:
    ns(device, "tiling/ladder", rung=rung, n=n)


@pytest.mark.parametrize("n", [1000, 1025])
def test_tiles_of_other_sizes_are_right_there_too(device: Any, n: int) -> None:
    for tile in (8, 16, 32):
        ns(device, "tiling/tile-size", tile=tile, n=n)
    for columns in (128, 256):
        for depth in (8, 16):
            ns(device, "tiling/warp-tiles", columns=columns, depth=depth, n=n)
    ns(device, "tiling/tensor", by="mma", n=n)


def test_the_ladder_rises_to_the_library(device: Any) -> None:
    times = [ns(device, "tiling/ladder", rung=rung, n=4096) for rung in RUNGS]
    for lower, upper, rung in zip(times, times[1:-1], RUNGS[1:], strict=False):
        assert lower >= 1.02 * upper, rung
    assert times[-2] <= times[-1] / 0.8
    errors = {}
    for rung in ("warp-tile", "library"):
        check = row(device, "tiling/ladder", rung=rung, n=4096).check
        assert check is not None
        errors[rung] = check.error
    assert errors["warp-tile"] <= 2 * errors["library"]


def test_a_split_warp_takes_twice_as_long_and_a_split_block_does_not(device: Any) -> None:
    one = ns(device, "divergence/lane-split", k=0)
    assert all(1.8 <= ns(device, "divergence/lane-split", k=k) / one <= 2.2 for k in (1, 16, 31))
    assert ns(device, "divergence/boundary", by="warp") <= 1.1 * one
    assert ns(device, "divergence/switch", n=32) >= 20 * ns(device, "divergence/switch", n=1)
    whole, split = (ns(device, "divergence/memory-bound", k=k) for k in (0, 16))
    assert split <= 1.1 * whole


def test_sectors_are_paid_for(device: Any) -> None:
    stride = {s: ns(device, "coalescing/strided-read", stride=s) for s in (1, 2, 8)}
    assert stride[1] / stride[2] <= 0.65
    assert stride[1] / stride[8] <= 0.2
    identity, near, far = (ns(device, "coalescing/gather", window=window) for window in ("identity", "128B", "whole"))
    assert near <= 1.15 * identity
    assert far >= 4 * identity


def test_a_block_too_many_costs_a_wave(device: Any) -> None:
    exact, over = (row(device, "waves/blocks", full=1, extra=extra) for extra in (0, 1))
    assert exact.summary is not None
    assert over.summary is not None
    assert 1.9 <= over.summary.median_ns / exact.summary.median_ns <= 2.1
    for record in (exact, over):
        found = {metric.name: metric.value for metric in record.metrics}
        assert found["waves"] == record.prediction["waves"]
        assert found["idle_share_last_wave"] == pytest.approx(record.prediction["idle_share_last_wave"])
