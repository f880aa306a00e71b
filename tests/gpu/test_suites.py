"""Every benchmark of our suites on a GPU, in small where it has a size: its kernels compile, launch and are right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from gpubench import check  # noqa: E402
from gpubench.devices.cuda import CudaDevice  # noqa: E402
from gpubench.discovery import Library  # noqa: E402
from gpubench.workload import Kernel, Workload  # noqa: E402

SUITES = Library(Path(__file__).parents[2] / "suites").suites()
BENCHMARKS = {bench.path: bench for suite in SUITES.values() for bench in suite.benchmarks.values()}
STREAMS = [f"bandwidth/{name}" for name in ("read", "write", "copy", "scale", "triad")]
DTYPES = ["float64", "float32", "tf32", "float16", "bfloat16", "float8_e4m3", "int8"]


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice(0)


def right(device: CudaDevice, path: str, params: dict[str, Any]) -> Workload:
    """One call from poisoned outputs, checked as a run checks it."""
    workload = BENCHMARKS[path].function(device, **params)
    with device.precision(workload.precision):
        device.poison(workload.output)
        if isinstance(workload.run, Kernel):
            workload = replace(workload, run=device.launcher(workload.run, BENCHMARKS[path].file).call)
        workload.call()
        device.synchronize()
        check.judge(device.compare(workload.output, workload.reference()), workload)
    device.release()
    return workload


@pytest.mark.parametrize("path", [path for path in BENCHMARKS if path.startswith("bandwidth/") or path == "peak/fma"])
def test_the_default_points(device: CudaDevice, path: str) -> None:
    for params in BENCHMARKS[path].cases("cuda"):
        right(device, path, params | ({"mib": 64} if "mib" in params else {}))


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.parametrize("vector", [4, 8, 16])
@pytest.mark.parametrize("hint", ["plain", "streaming"])
def test_every_variant_of_a_stream(device: CudaDevice, path: str, vector: int, hint: str) -> None:
    for unroll in (1, 2, 4, 8):
        for threads, blocks in [(256, 0), (96, 1), (1024, 2)]:
            point = {"mib": 5, "vector": vector, "unroll": unroll, "threads": threads, "hint": hint, "blocks": blocks}
            right(device, path, point)


@pytest.mark.parametrize("dtype", DTYPES)
def test_matmul_in_every_dtype(device: CudaDevice, dtype: str) -> None:
    if dtype == "float8_e4m3" and torch.cuda.get_device_capability() < (8, 9):
        pytest.skip("no float8")
    for shape in ("256x256x256", "4096x4096x4096"):
        right(device, "peak/matmul", {"shape": shape, "dtype": dtype})


@pytest.mark.parametrize("dtype", DTYPES[:5])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
def test_matmul_sweep_in_every_layout(device: CudaDevice, dtype: str, layout: str) -> None:
    for n, m, k in [(256, 256, 256), (1793, 1791, 1789), (1, 1, 1), (33, 1, 7)]:
        right(device, "matmul-sweep/matmul", {"n": n, "m": m, "k": k, "dtype": dtype, "layout": layout})
