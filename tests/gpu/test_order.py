"""The order of cases changes nothing on a GPU: not a precision's time, nor the time or the peak of memory of a size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from gpubench.devices.cuda import CudaDevice  # noqa: E402
from gpubench.discovery import load_suite  # noqa: E402
from gpubench.result import Conditions, Record  # noqa: E402
from gpubench.runner import Effort, measure  # noqa: E402
from gpubench.suite import Case, Suite  # noqa: E402

SUITES = Path(__file__).parents[2] / "suites"
ALIKE = 0.015
"""How far two medians of one case in one process may lie apart: noise, and the place its memory got."""

SMALL = 1 << 20
"""What the timers keep from the first case on, and less than any workspace."""
WORKSPACE = 64 << 20
"""What torch and its libraries may keep of the memory for themselves, from the first matrix product on."""


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice.named("cuda:0")


def row(device: CudaDevice, suite: Suite, name: str, **params: Any) -> Record:
    axes = suite.benchmarks[name].axes
    full = {axis: params[axis] if axis in params else params[axes[axis].same_as] for axis in axes}
    *_, record = measure(suite.benchmarks[name], Case(suite.name, name, full, Conditions()), device, Effort())
    assert isinstance(record, Record)
    assert record.status == "ok", record.reason
    return record


def median_ns(record: Record) -> int:
    assert record.summary is not None
    return record.summary.median_ns


def test_float32_is_the_same_before_and_after_tf32(device: CudaDevice) -> None:
    suite = load_suite(SUITES / "matmul_sweep.py")
    before, between, after = (
        row(device, suite, "matmul", n=2048, dtype=dtype, layout="nn") for dtype in ("float32", "tf32", "float32")
    )
    print([median_ns(each) for each in (before, between, after)])
    assert median_ns(after) == pytest.approx(median_ns(before), rel=ALIKE)
    assert median_ns(between) < median_ns(before) / 2, "tf32 runs on other units"
    assert [k.name for k in after.kernels] == [k.name for k in before.kernels]


def test_a_small_attention_is_the_same_after_a_large_one(device: CudaDevice) -> None:
    suite = load_suite(SUITES / "sustained.py")
    common = {"heads": 16, "d": 64, "dtype": "bfloat16", "seconds": 3}
    few, many = {"batch": 2, "n": 1024}, {"batch": 16, "n": 8192}

    def of_three() -> tuple[float, Record]:
        """The middle one of three: a kernel of 25 µs differs by 1 % from one place of its memory to the next."""
        rows = sorted((row(device, suite, "attention", **few, **common) for _ in range(3)), key=median_ns)
        return median_ns(rows[1]), rows[1]

    row(device, suite, "attention", **few, **common)  # after which the timers have what they keep
    before, small = of_three()
    large = row(device, suite, "attention", **many, **common)
    after, again = of_three()
    print(before, after, [each.telemetry["peak_bytes"] for each in (small, large, again)])
    assert after == pytest.approx(before, rel=ALIKE)
    assert again.telemetry["peak_bytes"] == small.telemetry["peak_bytes"]
    tensors = 4 * 2 * 16 * 1024 * 64 * 2
    assert tensors <= small.telemetry["peak_bytes"] < tensors + WORKSPACE, "its own, not the large one's"
    assert large.telemetry["peak_bytes"] > 8 * 8 * tensors, "64 times the elements"


def test_what_a_library_works_in_is_counted_where_it_works_and_nowhere_else(device: CudaDevice) -> None:
    products, streams = load_suite(SUITES / "matmul_sweep.py"), load_suite(SUITES / "fusion.py")
    peaks: dict[str, list[int]] = {"product": [], "stream": []}
    for _ in range(3):
        product = row(device, products, "matmul", n=2048, dtype="bfloat16", layout="nn")
        stream = row(device, streams, "sin2-cos2", n=2**24, by="kernel")
        peaks["product"].append(product.telemetry["peak_bytes"])
        peaks["stream"].append(stream.telemetry["peak_bytes"])
    print(peaks)
    assert all(2 * 4 * 2**24 <= peak <= 2 * 4 * 2**24 + SMALL for peak in peaks["stream"]), "an input and an output"
    assert peaks["product"][1] == peaks["product"][2]
    assert 3 * 2 * 2048**2 <= peaks["product"][1] < 3 * 2 * 2048**2 + WORKSPACE
