"""The suite recompute on a GPU: right by every way, in as many kernels as predicted, faster and smaller where said."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)
pytest.importorskip("cupy")

from machine_rows import row  # noqa: E402

from gpubench.devices.cuda import CudaDevice  # noqa: E402

N = 2**26
"""Elements: 256 MiB a pass."""


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice.named("cuda:0")


def right(device: Any, path: str, **params: Any) -> Any:
    """A row that must be right, and not of a CPU's counterpart."""
    record = row(device, f"recompute/{path}", **params)
    assert (record.status, record.reason) == ("ok", None)
    assert "analogue" not in record.flags
    return record


def ns(record: Any) -> float:
    return float(record.summary.median_ns)


@pytest.mark.parametrize(
    ("by", "launched"), [("saved", 2), ("recomputed", 2), ("eager", 6), ("compiled", 2), ("checkpoint", 9)]
)
def test_three_sigmoids_by_every_way(device: Any, by: str, launched: int) -> None:
    record = right(device, "sigmoids", by=by, n=2**24)
    assert sum(kernel.count for kernel in record.kernels) == launched
    if by in ("saved", "recomputed"):
        assert record.check.error <= 1e-6


def test_computing_again_is_faster_and_smaller(device: Any) -> None:
    kept, again = (right(device, "sigmoids", by=by, n=N) for by in ("saved", "recomputed"))
    copied = right(device, "copy", n=N)
    assert 1.35 <= ns(kept) / ns(again) <= 1.8
    assert 6.8 <= 2 * ns(kept) / ns(copied) <= 9.2
    assert again.telemetry["peak_bytes"] < kept.telemetry["peak_bytes"]


@pytest.mark.parametrize(("length", "least", "most"), [(1, 0.9, 1.1), (4, 1.5, 2.4), (8, 2.2, 4.2)])
def test_the_gain_grows_with_the_length(device: Any, length: int, least: float, most: float) -> None:
    kept, again = (right(device, "chain", by=by, length=length, n=N) for by in ("saved", "recomputed"))
    assert least <= ns(kept) / ns(again) <= most


def test_eager_moves_fifteen_passes(device: Any) -> None:
    eager, copied = right(device, "sigmoids", by="eager", n=N), right(device, "copy", n=N)
    assert 13 <= 2 * ns(eager) / ns(copied) <= 17


@pytest.mark.parametrize(("path", "least"), [("products", 1.15), ("block-checkpoint", 1.0)])
def test_checkpoints_cost_time_and_save_memory(device: Any, path: str, least: float) -> None:
    plain, less = (right(device, path, by=by) for by in ("saved", "checkpoint"))
    assert ns(less) / ns(plain) >= least
    assert less.telemetry["peak_bytes"] <= 0.95 * plain.telemetry["peak_bytes"]
