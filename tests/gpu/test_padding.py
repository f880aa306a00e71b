"""The suite padding on a GPU: every product is right, an odd one is slow by another kernel, a training step runs."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from machine_rows import SUITES, benchmarks, row  # noqa: E402

from gpubench.devices.cuda import CudaDevice  # noqa: E402

BENCHMARKS = benchmarks("padding")
HOPPER = torch.cuda.get_device_capability() == (9, 0)
SMALL = {"batch": 2, "sequence": 256, "layers": 1}
KERNEL = SUITES["padding"].claims["C56"].__globals__["kernel"]


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice.named("cuda:0")


def right(device: Any, path: str, **params: Any) -> Any:
    record = row(device, path, **params)
    assert (record.status, record.reason) == ("ok", None)
    return record


def products() -> list[Any]:
    return [
        pytest.param(path, params, id=f"{path}[{','.join(map(str, params.values()))}]")
        for path, bench in BENCHMARKS.items()
        for params in bench.cases("cuda", quick=True)
        if path != "padding/train-step"
    ]


@pytest.mark.parametrize(("path", "params"), products())
def test_every_quick_product_is_right(device: Any, path: str, params: dict[str, Any]) -> None:
    record = right(device, path, **params)
    assert record.kernels
    assert "misaligned" in record.prediction


@pytest.mark.parametrize("which", ["m", "n", "k"])
def test_a_row_that_loses_its_alignment_is_slow(device: Any, which: str) -> None:
    even, odd = (right(device, "padding/operand", which=which, off=off) for off in (0, 1))
    times = odd.metric("time").value / even.metric("time").value
    print(which, times, KERNEL(odd), KERNEL(even))
    if which == "m":
        assert times < 1.1
    else:
        assert times > 1.2


def test_the_output_layer_of_an_odd_vocabulary_takes_another_kernel(device: Any) -> None:
    odd, even = (right(device, "padding/vocabulary", product="forward", vocab=vocab) for vocab in (50257, 50304))
    assert odd.work.flops < even.work.flops
    assert odd.metric("time").value > even.metric("time").value
    if HOPPER:
        assert odd.metric("time").value > 3 * even.metric("time").value
        assert "align1" in KERNEL(odd)
        assert KERNEL(even).startswith("nvjet")


@pytest.mark.parametrize("mode", ["eager", "compiled-unpadded"])
def test_a_small_training_step(device: Any, mode: str) -> None:
    record = right(device, "padding/train-step", mode=mode, **SMALL)
    assert (record.metric("compile_time") is None) == (mode == "eager")
    assert record.telemetry["peak_bytes"] > 4 * 4 * 50257 * 768  # the embedding, its gradient and two moments
