"""The suite numerics on a GPU: the lecture's constants, and errors as the model has them."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)
pytest.importorskip("cupy")

from machine_rows import SUITES, row  # noqa: E402

from gpubench.claims import judge as claims  # noqa: E402
from gpubench.devices.cuda import CudaDevice  # noqa: E402
from gpubench.discovery import Library  # noqa: E402
from gpubench.result import Record, Run  # noqa: E402

SUITE = SUITES["numerics"]
CAPABILITY = torch.cuda.get_device_capability()
SMALL = {
    "numerics/pointwise-error": {"n": 2**16},
    "numerics/ones-product": {"n": 256},
}


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice.named("cuda:0")


def figure(device: Any, name: str, path: str, **params: Any) -> float:
    record = row(device, path, **params)
    assert record.status == "ok", record.reason
    metric = record.metric(name)
    assert metric is not None
    return metric.value


@pytest.mark.parametrize(("dtype", "stop"), [("float16", 2048), ("bfloat16", 256), ("float32", 2**24)])
def test_a_sum_of_ones_stops(device: Any, dtype: str, stop: int) -> None:
    assert figure(device, "stalls_at", "numerics/accumulate", dtype=dtype) == stop


@pytest.mark.parametrize("how", ["library", "in-pairs"])
def test_other_sums_do_not(device: Any, how: str) -> None:
    assert figure(device, "sum", "numerics/sum-ones", dtype="float16", how=how) == 10_000


@pytest.mark.parametrize("k", [64, 4096, 16384, 65536])
@pytest.mark.parametrize("arithmetic", SUITE.benchmarks["matmul-error"].axes["arithmetic"].values)
def test_errors_are_those_of_the_model(device: Any, arithmetic: str, k: int) -> None:
    """Within a half where rounding an operand or the output is most of it. Sums lose less where a product is split."""
    record = row(device, "numerics/matmul-error", arithmetic=arithmetic, k=k, n=512)
    if arithmetic.startswith("float8") and CAPABILITY < (8, 9):
        assert record.status == "unsupported"
        return
    assert (record.status, record.reason) == ("ok", None)
    if "error" not in record.prediction:
        return
    found, model = record.metric("error").value, record.prediction
    if model["output"] + model["operands"] > model["sums"]:
        assert found == pytest.approx(model["error"], rel=0.5)
    else:
        assert 0 < found < 4 * model["error"]


def test_sums_in_float16_lose_more_than_sums_in_float32(device: Any) -> None:
    """Modes are held while a row is measured, in either order."""
    errors = [
        figure(device, "error", "numerics/matmul-error", arithmetic=arithmetic, k=16384)
        for arithmetic in ("float16", "float16-fp16-accum", "float16")
    ]
    assert errors[0] == errors[2]
    assert errors[1] > 4 * errors[0]
    assert torch.backends.cuda.matmul.allow_fp16_accumulation is False


def test_the_claims_of_the_suite_hold(device: Any) -> None:
    """On few numbers: the cases that the rules read."""
    records: list[Record] = []
    for bench in SUITE.benchmarks.values():
        for case in bench.cases("cuda", quick=True):
            if bench.name != "matmul-error" or case["k"] == 16384:
                records.append(row(device, bench.path, **(case | SMALL.get(bench.path, {}))))
    run = Run("", "complete", "", None, {}, [], {}, [], {}, {}, {}, device.facts(), {}, {}, records=records)
    statements = Library(SUITE.file.parent).claims().values()
    found = claims.in_run(run, statements, {"numerics": SUITE})
    assert {claim["id"]: (claim["verdict"], claim["reason"]) for claim in found} == dict.fromkeys(
        ("C36", "C37", "C38", "C39"), ("HOLDS", None)
    )
