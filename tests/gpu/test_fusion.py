"""torch.compile and the suite fusion on a GPU: all shapes compiled, one kernel of five, failures that cost one row."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)
pytest.importorskip("cupy")
pytest.importorskip("triton")

from machine_rows import row  # noqa: E402

from gpubench.devices.cuda import CudaDevice  # noqa: E402

N = 2**24


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice.named("cuda:0")


def good(device: Any, benchmark: str, **params: Any) -> Any:
    record = row(device, f"fusion/{benchmark}", **params)
    assert (record.status, record.reason) == ("ok", None)
    return record


def launched(record: Any) -> int:
    return sum(kernel.count for kernel in record.kernels if kernel.kind == "kernel")


def test_twelve_shapes_and_two_dtypes_are_all_compiled(device: CudaDevice) -> None:
    def function(x: Any) -> Any:
        return torch.sin(x) ** 2 + torch.cos(x) ** 2

    for n in range(1000, 1012):
        for dtype in (torch.float32, torch.bfloat16):
            x = torch.rand(n, dtype=dtype, device="cuda")
            compiled = device.compile(function)
            assert torch.allclose(compiled(x).float(), torch.ones(n, device="cuda"), atol=0.02)
            assert (compiled.graphs, compiled.kernels) == (1, 1)
    device.release()


def test_five_kernels_become_one(device: CudaDevice) -> None:
    rows = {by: good(device, "sin2-cos2", by=by, n=N) for by in ("eager", "compiled", "kernel")}
    assert {by: launched(record) for by, record in rows.items()} == {"eager": 5, "compiled": 1, "kernel": 1}
    assert rows["eager"].summary.median_ns > 2.5 * rows["compiled"].summary.median_ns
    assert rows["compiled"].metric("compile_time").value > 0


def test_a_chain_gains_what_it_no_longer_moves(device: CudaDevice) -> None:
    times = {by: good(device, "chain", by=by, k=4, n=N).summary.median_ns for by in ("eager", "compiled", "kernel")}
    assert times["eager"] > 2.5 * times["compiled"]
    assert 0.7 < times["kernel"] / times["compiled"] < 1.4


@pytest.mark.parametrize("by", ["eager", "compiled"])
@pytest.mark.parametrize("name", ["gelu", "layer-norm", "bias-residual-dropout", "mlp", "matmul"])
def test_expressions_of_models_are_right(device: CudaDevice, name: str, by: str) -> None:
    smaller = {"gelu": {"n": N}, "mlp": {"rows": 1024}, "matmul": {"n": 1024}}.get(name, {"rows": 1024})
    good(device, name, by=by, **smaller)


@pytest.mark.parametrize(
    "variables",
    [{"CC": "/nowhere/cc", "TRITON_CACHE_DIR": "{tmp}/t"}, {"TORCHINDUCTOR_CACHE_DIR": "{file}/folder"}],
    ids=["no compiler", "no folder"],
)
def test_a_compiler_that_fails_costs_its_row_and_no_other(tmp_path: Path, variables: dict[str, str]) -> None:
    (tmp_path / "file").write_text("")
    given = {name: value.format(tmp=tmp_path, file=tmp_path / "file") for name, value in variables.items()}
    words = ["run", "fusion/chain", "-p", "by=eager,compiled", "-p", "k=2", "-p", f"n={N}", "--ceilings", "none"]
    environment = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "i")} | given
    done = subprocess.run(
        [sys.executable, "-m", "gpubench", *words, "-o", str(tmp_path / "run.json"), "--samples", "10"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    rows = {record["params"]["by"]: record for record in json.loads((tmp_path / "run.json").read_text())["records"]}
    assert rows["eager"]["status"] == "ok", done.stderr
    assert rows["compiled"]["status"] in ("error", "skipped")
    assert "torch.compile" in rows["compiled"]["reason"]
    assert str(tmp_path) not in rows["compiled"]["reason"]
