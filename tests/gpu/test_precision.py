"""The suite precision on a GPU: right, refused with a rule, and as fast as the format promises."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)
pytest.importorskip("cupy")

from machine_rows import benchmarks, row  # noqa: E402

from gpubench.devices.cuda import CudaDevice  # noqa: E402
from gpubench.result import Record  # noqa: E402

BENCHMARKS = benchmarks("precision")
UNITS = BENCHMARKS["precision/units"].axes["unit"].values
SHAPES = BENCHMARKS["precision/shapes"].axes["shape"].values
HOPPER = torch.cuda.get_device_capability() >= (9, 0)


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice.named("cuda:0")


def good(device: Any, path: str, **params: Any) -> Record:
    record = row(device, path, **params)
    assert (record.status, record.reason) == ("ok", None)
    assert "implausible" not in record.flags
    return record


def ns(record: Record) -> float:
    assert record.summary is not None
    return record.summary.median_ns


def rate(record: Record) -> float:
    metric = record.metric("flops")
    assert metric is not None
    return metric.value


def test_each_halving_of_the_bits_is_faster(device: Any) -> None:
    formats = ["float32", "tf32", "bfloat16", *(["float8_e4m3"] if HOPPER else ["int8"])]
    rates = [rate(good(device, "precision/matmul", n=4096, dtype=dtype)) for dtype in formats]
    assert all(narrow > 1.4 * wide for wide, narrow in itertools.pairwise(rates)), rates


@pytest.mark.parametrize("dtype", ["float8_e4m3", "int8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_is_measured_or_refused_with_its_rule(device: Any, shape: str, dtype: str) -> None:
    record = row(device, "precision/shapes", shape=shape, dtype=dtype)
    assert record.status in ("ok", "unsupported"), record.reason
    if record.status == "unsupported":
        assert record.reason
    if shape in ("17x17x17", "100x100x100"):
        assert "multiples of" in (record.reason or "")
    if shape == "8352x4096x1536" and (HOPPER or dtype == "int8"):
        assert record.status == "ok"


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_measured_in_bfloat16(device: Any, shape: str) -> None:
    good(device, "precision/shapes", shape=shape, dtype="bfloat16")


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3", "int8"])
@pytest.mark.parametrize("weights", ["dense", "cusparselt", "cutlass"])
def test_sparse_weights_are_right_or_refused(device: Any, weights: str, dtype: str) -> None:
    record = row(device, "precision/sparse", shape="4096x4096x4096", dtype=dtype, weights=weights)
    assert record.status in ("ok", "unsupported"), record.reason
    if weights == "dense" and (HOPPER or dtype != "float8_e4m3"):
        assert record.status == "ok"


@pytest.mark.parametrize("unit", UNITS)
def test_chains_count_their_links(device: Any, unit: str) -> None:
    record = good(device, "precision/units", unit=unit)
    promised = record.prediction.get("flop_per_clock")
    if promised and record.prediction.get("bound", "equal") == "equal" and unit == "fp32":
        count, mhz = (device.facts()[name] for name in ("multiprocessors", "sm_mhz_max"))
        assert rate(record) > 0.8 * promised * count * mhz * 1e6


def test_the_matrix_units_beat_packed_halves(device: Any) -> None:
    halves, products = (rate(good(device, "precision/units", unit=unit)) for unit in ("fp16x2", "mma-fp16"))
    assert products > 2.5 * halves


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e4m3", "int8"])
def test_a_stream_takes_as_long_as_its_bytes(device: Any, dtype: str) -> None:
    wide, narrow = (good(device, "precision/relu", n=1 << 28, dtype=name) for name in ("float32", dtype))
    assert wide.work is not None
    assert narrow.work is not None
    per_byte = ns(narrow) / narrow.work.bytes / (ns(wide) / wide.work.bytes)
    assert 0.85 < per_byte < 1.2
