"""The suite attention on a GPU: what ran is what was asked for, in as much memory as predicted, and faster."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from machine_rows import row  # noqa: E402

from gpubench.devices.cuda import CudaDevice  # noqa: E402
from gpubench.model import attention_torch, attention_traffic, kernel_names  # noqa: E402
from gpubench.model.attention_traffic import Shape  # noqa: E402


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice.named("cuda:0")


def right(device: Any, path: str, **params: Any) -> Any:
    """A row that must be right."""
    record = row(device, f"attention/{path}", **params)
    assert (record.status, record.reason) == ("ok", None)
    return record


def families(record: Any) -> list[str]:
    """The families of a call's kernels, each as often as it ran."""
    return sorted(
        kernel_names.family(kernel.name)
        for kernel in record.kernels
        if kernel.kind == "kernel"
        for _ in range(kernel.count)
    )


def ns(record: Any) -> float:
    return float(record.summary.median_ns)


@pytest.mark.parametrize("by", ["flash", "cudnn", "efficient"])
def test_a_back_end_is_known_by_its_operator_and_by_its_kernels(device: Any, by: str) -> None:
    record = row(device, "attention/forward", by=by, n=1024)
    if record.status == "unsupported":
        pytest.skip(str(record.reason))
    assert (record.status, record.labels["ran"]) == ("ok", by)
    assert [attention_torch.named(by, kernel.name) for kernel in record.kernels if kernel.kind == "kernel"] == [True]


@pytest.mark.parametrize(
    ("by", "passes", "products", "softmaxes", "pointwise"),
    [
        ("naive", "forward", 2, 1, 1), ("naive-separate", "forward", 2, 1, 1), ("naive-masked", "forward", 2, 1, 2),
        ("naive", "both", 6, 2, 3), ("naive-separate", "both", 6, 2, 3), ("naive-masked", "both", 6, 2, 5),
    ],
)  # fmt: skip
def test_eager_attention_is_the_steps_of_the_model(
    device: Any, by: str, passes: str, products: int, softmaxes: int, pointwise: int
) -> None:
    record = right(device, "gpt2-medium", by=by, passes=passes)
    seen = families(record)
    assert seen == ["matmul"] * products + ["pointwise"] * pointwise + ["softmax"] * softmaxes
    steps = attention_traffic.steps(by, Shape(64, 16, 16, 1024, 64), passes == "both")
    assert seen == sorted(step.family for step in steps)


@pytest.mark.parametrize(("by", "passes"), [("naive", "both"), ("naive-separate", "forward"), ("flash", "both")])
def test_the_peak_of_memory_is_what_was_predicted(device: Any, by: str, passes: str) -> None:
    record = right(device, "gpt2-medium", by=by, passes=passes)
    needed = attention_traffic.needed(by, Shape(64, 16, 16, 1024, 64), 2, passes == "both")
    assert 0.8 * needed <= record.telemetry["peak_bytes"] <= 1.25 * needed


def test_what_autograd_keeps_is_given_back(device: Any) -> None:
    """Two gigabytes and a half a row, which the next one would find still there."""
    rows = [right(device, "gpt2-medium", by="naive", passes="both") for _ in range(2)]
    first, second = (record.telemetry["peak_bytes"] for record in rows)
    assert second == pytest.approx(first, rel=0.01)


def test_flash_is_faster_on_the_lecture_s_example_and_not_in_one_tile(device: Any) -> None:
    plain, flash = (right(device, "gpt2-medium", by=by, passes="both") for by in ("naive-separate", "flash"))
    assert ns(plain) / ns(flash) >= 2
    plain, flash = (right(device, "one-tile", by=by) for by in ("naive-separate", "flash"))
    assert ns(plain) / ns(flash) <= 1.5


@pytest.mark.parametrize("shape", ["causal", "d128", "gqa", "gqa-causal"])
@pytest.mark.parametrize("by", ["naive", "flash"])
def test_other_shapes(device: Any, by: str, shape: str) -> None:
    right(device, "shapes", by=by, shape=shape, n=1024)


def test_float32_is_refused_by_flash_with_its_reason(device: Any) -> None:
    record = row(device, "attention/exactness", by="flash", dtype="float32")
    assert record.status == "unsupported"
    assert "float" in str(record.reason).lower() or "half" in str(record.reason).lower()


def test_what_no_gpu_can_hold_is_skipped_with_both_figures(device: Any) -> None:
    record = row(device, "attention/forward", by="naive", n=2**20, tokens=2**20)
    assert record.status == "skipped"
    assert str(record.reason).startswith("needs 7.04e+04 GB, free ")


@pytest.mark.parametrize("greatest", ["anywhere", "last"])
def test_errors_are_no_larger_than_those_of_eager_steps(device: Any, greatest: str) -> None:
    found = {
        by: right(device, "exactness", by=by, greatest=greatest, dtype="bfloat16").check.error
        for by in ("naive", "tiled", "flash")
    }
    assert max(found["tiled"], found["flash"]) <= 1.5 * found["naive"]
