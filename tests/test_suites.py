"""Every benchmark of every suite at its smallest point: bytes, flops and reference by brute force, on torch's CPU."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpubench.discovery import Library
from gpubench.errors import Unsupported, WrongResult
from gpubench.plan import cases, select
from gpubench.workload import Workload

FOLDER = Path(__file__).parent.parent / "suites"
STEMS = sorted(path.stem for path in FOLDER.glob("*.py"))

SMALLEST: dict[str, list[dict[str, Any]]] = {
    "bandwidth/copy": [{"mib": 1}, {"mib": 3}],
    "bandwidth/read": [{"mib": 1}, {"mib": 3}],
    "bandwidth/write": [{"mib": 1}, {"mib": 3}],
    "matmul-sweep/matmul": [
        {"n": n, "m": m, "k": k, "dtype": dtype, "layout": layout}
        for n, m, k in [(1, 1, 1), (5, 3, 4), (8, 2, 16)]
        for dtype in ["float64", "float32", "tf32", "float16", "bfloat16"]
        for layout in ["nn", "nt", "tn"]
    ],
    "peak/matmul": [
        {"n": n, "dtype": dtype} for n in [1, 6] for dtype in ["float64", "float32", "tf32", "float16", "bfloat16"]
    ],
}
"""Points small enough to count by hand. A new benchmark needs its own line."""

ITEMSIZE = {"float64": 8, "float32": 4, "tf32": 4, "float16": 2, "bfloat16": 2}


LIBRARY = Library(FOLDER)
SUITES = LIBRARY.suites()
BENCHMARKS = {bench.path: bench for suite in SUITES.values() for bench in suite.benchmarks.values()}
POINTS = [
    pytest.param(path, params, id=f"{path}[{','.join(map(str, params.values()))}]")
    for path, points in SMALLEST.items()
    for params in points
]


class Recorder:
    """A device that keeps what a benchmark asked it for: inputs and outputs, in order."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def random(self, *args: Any, **options: Any) -> Any:
        self.inputs.append(self.device.random(*args, **options))
        return self.inputs[-1]

    def unwritten(self, *args: Any, **options: Any) -> Any:
        self.outputs.append(self.device.unwritten(*args, **options))
        return self.outputs[-1]


@pytest.fixture(scope="module")
def cpu() -> Iterator[Any]:
    from gpubench.devices.cpu import CpuDevice

    device = CpuDevice()
    yield device
    device.release()


def build(
    cpu: Any, path: str, params: dict[str, Any], data: str = "normal", seed: int = 7
) -> tuple[Workload, Recorder]:
    cpu.configure(data, seed)
    recorder = Recorder(cpu)
    return BENCHMARKS[path].function(recorder, **params), recorder


def ran(cpu: Any, workload: Workload) -> np.ndarray:
    """The output after one call, in double precision, from a poisoned buffer."""
    cpu.poison(workload.output)
    workload.run()
    cpu.synchronize()
    return doubles(workload.output)


def doubles(tensor: Any) -> np.ndarray:
    return tensor.double().numpy()


def by_loops(inputs: list[np.ndarray], path: str, params: dict[str, Any]) -> tuple[np.ndarray, int]:
    """What a benchmark ought to write, and the additions and multiplications it takes, counted one by one."""
    if path == "bandwidth/copy":
        return inputs[0], 0
    if path == "bandwidth/write":
        return np.full(params["mib"] * 2**18, 3.0), 0
    if path == "bandwidth/read":
        rows = inputs[0]
        return np.array([math.fsum(row) for row in rows]), sum(len(row) - 1 for row in rows)
    a, b = inputs
    layout = params.get("layout", "nn")
    a, b = (a.T if layout == "tn" else a), (b.T if layout == "nt" else b)
    out, flops = np.zeros((a.shape[0], b.shape[1])), 0
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for p in range(a.shape[1]):
                out[i, j] += a[i, p] * b[p, j]
                flops += 2
    return out, flops


def test_every_benchmark_has_its_smallest_points() -> None:
    assert set(SMALLEST) == set(BENCHMARKS)
    for path, points in SMALLEST.items():
        assert all(set(point) == set(BENCHMARKS[path].axes) for point in points), path


@pytest.mark.parametrize(("path", "params"), POINTS)
def test_flops_bytes_and_reference_by_brute_force(cpu: Any, path: str, params: dict[str, Any]) -> None:
    workload, recorder = build(cpu, path, params)
    assert workload.output is recorder.outputs[0]
    assert len(recorder.outputs) == 1
    expected, flops = by_loops([doubles(tensor) for tensor in recorder.inputs], path, params)
    assert workload.flops == flops
    storages = {
        tensor.untyped_storage().data_ptr(): tensor.numel() * tensor.element_size()
        for tensor in (*recorder.inputs, *recorder.outputs)
    }
    assert workload.bytes == sum(storages.values())
    assert (type(workload.flops), type(workload.bytes)) == (int, int)
    np.testing.assert_allclose(doubles(workload.reference()), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("path", "params"), POINTS)
def test_a_call_writes_the_whole_output_right(cpu: Any, path: str, params: dict[str, Any]) -> None:
    from gpubench import check

    workload, _ = build(cpu, path, params)
    out = ran(cpu, workload)
    assert not np.isnan(out).any()
    seen = cpu.compare(workload.output, workload.reference())
    check.judge(seen, workload)


@pytest.mark.parametrize(("path", "params"), POINTS)
def test_one_wrong_element_is_found(cpu: Any, path: str, params: dict[str, Any]) -> None:
    from gpubench import check

    workload, _ = build(cpu, path, params)
    ran(cpu, workload)
    flat = workload.output.view(-1)
    flat[-1] = -flat[-1] - 1
    seen = cpu.compare(workload.output, workload.reference())
    with pytest.raises(WrongResult):
        check.judge(seen, workload)


@pytest.mark.parametrize("path", SMALLEST)
def test_the_seed_decides_the_values(cpu: Any, path: str) -> None:
    params = SMALLEST[path][-1]
    first, again, other = (ran(cpu, build(cpu, path, params, seed=seed)[0]) for seed in (1, 1, 2))
    assert (first == again).all()
    assert path == "bandwidth/write" or (first != other).any()


@pytest.mark.parametrize("data", ["uniform", "zeros"])
@pytest.mark.parametrize("path", SMALLEST)
def test_other_data_pass_the_check_too(cpu: Any, path: str, data: str) -> None:
    from gpubench import check

    workload, _ = build(cpu, path, SMALLEST[path][-1], data=data)
    ran(cpu, workload)
    seen = cpu.compare(workload.output, workload.reference())
    check.judge(seen, workload)


@pytest.mark.parametrize("path", ["matmul-sweep/matmul", "peak/matmul"])
def test_the_two_operands_differ(cpu: Any, path: str) -> None:
    params = {"n": 4, "m": 4, "k": 4, "dtype": "float32", "layout": "nn"}
    _, recorder = build(cpu, path, {name: params[name] for name in BENCHMARKS[path].axes})
    a, b = recorder.inputs
    assert (doubles(a) != doubles(b)).any()


@pytest.mark.parametrize(("path", "params"), POINTS)
def test_what_a_workload_says_of_itself(cpu: Any, path: str, params: dict[str, Any]) -> None:
    workload, _ = build(cpu, path, params)
    if path.startswith("bandwidth/"):
        assert workload.roof == f"DRAM {path.split('/')[1]}"
        assert (workload.level, workload.dtype, workload.headline) == ("DRAM", "float32", "bytes")
        return
    dtype = params["dtype"]
    assert (workload.dtype, workload.headline, workload.level) == (dtype, "flops", None)
    assert workload.precision == ("tf32" if dtype == "tf32" else "ieee")
    assert workload.accumulate == ("float64" if dtype == "float64" else "float32")
    assert workload.reduction == params.get("k", params["n"])
    assert workload.output.element_size() == ITEMSIZE[dtype]
    assert workload.roof == (f"{dtype} matmul" if path == "peak/matmul" else None)


@pytest.mark.parametrize(
    ("n", "m", "k", "dtype", "layout", "label"),
    [
        (1024, 1024, 1024, "bfloat16", "nn", "256 B"),
        (8, 8, 8, "bfloat16", "nn", "16 B"),
        (9, 8, 8, "bfloat16", "nn", "2 B"),  # rows of B and C
        (9, 8, 8, "float32", "nt", "4 B"),  # rows of C
        (8, 9, 8, "float32", "nn", "32 B"),  # m is no row's length unless A is stored transposed
        (8, 9, 8, "float32", "tn", "4 B"),
        (8, 8, 9, "float32", "tn", "32 B"),  # k is no row's length in tn
        (1, 1, 1, "float64", "nn", "8 B"),
    ],
)
def test_the_class_is_the_alignment_of_the_rows(
    cpu: Any, n: int, m: int, k: int, dtype: str, layout: str, label: str
) -> None:
    params = {"n": n, "m": m, "k": k, "dtype": dtype, "layout": layout}
    workload, recorder = build(cpu, "matmul-sweep/matmul", params)
    strides = [tensor.stride(0) * tensor.element_size() for tensor in (*recorder.inputs, *recorder.outputs)]
    assert math.gcd(256, *strides) == int(label.split()[0])
    assert workload.labels == {"alignment": label}


def test_a_cpu_has_no_tf32(cpu: Any) -> None:
    workload, _ = build(cpu, "peak/matmul", {"n": 1, "dtype": "tf32"})
    with pytest.raises(Unsupported, match="tf32"), cpu.precision(workload.precision):
        pass


def sizes(path: str, kind: str, quick: bool = False) -> list[Any]:
    return [case["n"] for case in BENCHMARKS[path].cases(kind, quick)]


def test_matmul_sweep_has_the_sizes_of_its_description() -> None:
    asked = set(range(256, 4353, 64)) | set(range(1700, 1901, 4)) | set(range(1788, 1801))
    for multiple in range(256, 4353, 256):
        for step in (1, 2, 4, 8):
            asked |= {multiple - step, multiple + step}
    found = sizes("matmul-sweep/matmul", "cuda")
    assert found == sorted(asked)
    assert len(found) >= 200
    assert {1791, 1792, 1793} <= set(found)
    on_cpu = sizes("matmul-sweep/matmul", "cpu")
    assert on_cpu == [n for n in found if n <= 1024]
    assert on_cpu[-1] == 1024


def test_quick_sizes_are_few_and_keep_the_cliff() -> None:
    gpu, cpu = (sizes("matmul-sweep/matmul", kind, quick=True) for kind in ("cuda", "cpu"))
    assert len(gpu) <= 12
    assert {1791, 1792, 1793} <= set(gpu)
    assert len(cpu) <= 12
    assert {255, 256, 257, 511, 512, 513} <= set(cpu)
    assert max(cpu) <= 1024


@pytest.mark.parametrize(("kind", "dtype"), [("cuda", "bfloat16"), ("cpu", "float32")])
@pytest.mark.parametrize("quick", [False, True])
def test_default_cases(kind: str, dtype: str, quick: bool) -> None:
    for path, bench in BENCHMARKS.items():
        cases = list(bench.cases(kind, quick))
        assert cases, path
        assert len({tuple(case.values()) for case in cases}) == len(cases), path
        for case in cases:
            assert list(case) == list(bench.axes)
            assert case.get("dtype", dtype) == dtype
            assert case.get("layout", "nn") == "nn"
            assert case.get("m", case.get("n")) == case.get("k", case.get("n")) == case.get("n")


def test_every_benchmark_has_a_first_line() -> None:
    for path, bench in BENCHMARKS.items():
        assert bench.doc.endswith("."), path


def test_a_suite_is_named_after_its_file() -> None:
    assert set(SUITES) == {stem.replace("_", "-") for stem in STEMS}


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
def test_the_quick_plan_takes_the_quick_values(kind: str) -> None:
    plan = LIBRARY.plan("quick")
    assert plan.values["quick"] is True
    rows = cases(select(["quick"], LIBRARY), kind, quick=True)
    wanted = [
        case
        for path in ("matmul-sweep/matmul", "bandwidth/copy", "bandwidth/read", "bandwidth/write")
        for case in BENCHMARKS[path].cases(kind, quick=True)
    ]
    assert [row.params for row in rows] == wanted
    assert len(rows) <= 15


@pytest.mark.parametrize(("kind", "dtype"), [("cuda", "bfloat16"), ("cpu", "float32")])
def test_the_ceilings_plan_has_every_roof(cpu: Any, kind: str, dtype: str) -> None:
    rows = cases(select(["ceilings"], LIBRARY), kind)
    assert len(rows) <= 5
    small = {"mib": 1, "n": 2}
    roofs = set()
    for row in rows:
        params = {name: small.get(name, value) for name, value in row.params.items()}
        roofs.add(build(cpu, f"{row.suite}/{row.benchmark}", params)[0].roof)
    assert roofs == {"DRAM copy", "DRAM read", "DRAM write", f"{dtype} matmul"}


def test_suites_load_without_torch_and_numpy() -> None:
    lines = ["import importlib.util, sys"]
    for stem in STEMS:
        lines += [
            f"spec = importlib.util.spec_from_file_location('{stem}', {str(FOLDER / stem) + '.py'!r})",
            "module = importlib.util.module_from_spec(spec)",
            "sys.modules[spec.name] = module",
            "spec.loader.exec_module(module)",
            "assert module.suite.benchmarks",
        ]
    lines.append("print(sorted({'torch', 'numpy', 'cupy', 'pydantic', 'rich', 'yaml'} & set(sys.modules)))")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True, cwd=FOLDER.parent
    )
    assert done.stdout.strip() == "[]"
