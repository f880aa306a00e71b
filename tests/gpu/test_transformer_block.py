"""The transformer block and the intensities on a GPU: right in both styles, both passes, compiled and not."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)
pytest.importorskip("cupy")

from machine_rows import row  # noqa: E402

from gpubench.devices.cuda import CudaDevice  # noqa: E402


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice.named("cuda:0")


def measured(device: Any, path: str, **params: Any) -> Any:
    """A row that must be right."""
    record = row(device, path, **params)
    assert (record.status, record.reason) == ("ok", None)
    assert record.summary is not None
    return record


def figure(record: Any, name: str) -> float:
    metric = record.metric(name)
    assert metric is not None, f"{record.id} has no {name}"
    return float(metric.value)


@pytest.mark.parametrize("model", ["gpt2-medium", "llama3-8b"])
def test_a_block_with_its_gradient(device: Any, model: str) -> None:
    record = measured(device, "transformer-block/block", model=model, by="eager", passes="both")
    assert all(kernel.ns is not None for kernel in record.kernels)
    assert 0.5 <= figure(record, "product_time_share") <= 0.98
    assert figure(record, "unknown_time_share") <= 0.02
    assert record.prediction["product_flop_share"] >= 0.97
    assert any("flash" in kernel.name for kernel in record.kernels)


def test_a_compiled_block_is_right_and_takes_less(device: Any) -> None:
    eager, compiled = (
        measured(device, "transformer-block/block", model="gpt2-medium", by=by, passes="forward")
        for by in ("eager", "compiled")
    )
    assert compiled.summary.median_ns < 1.02 * eager.summary.median_ns
    assert sum(kernel.count for kernel in compiled.kernels) < sum(kernel.count for kernel in eager.kernels)


def test_parts_reach_the_roof_over_them(device: Any) -> None:
    product = measured(device, "transformer-block/operation", part="up", model="llama3-8b")
    assert figure(product, "product_time_share") >= 0.95
    for part in ("scores", "gelu", "layer-norm", "residual", "decode"):
        measured(device, "transformer-block/operation", part=part, model="llama3-8b")


def test_the_time_is_flat_and_then_grows_with_the_links(device: Any) -> None:
    times = {k: measured(device, "intensity/repeated", links=k).summary.median_ns for k in (1, 4, 8, 256, 1024)}
    assert times[8] / times[1] <= 1.1
    assert 3.6 <= times[1024] / times[256] <= 4.4
    plain = {k: measured(device, "intensity/registers", links=k).summary.median_ns for k in (32, 256)}
    assert 7 <= plain[256] / plain[32] <= 8.5
    dense, sparse = (measured(device, "intensity/product", kind=kind) for kind in ("dense", "sparse"))
    assert figure(dense, "flops") >= 10 * figure(sparse, "flops")
