"""`make kernels`: every declared variant compiled by NVRTC for every architecture, here without a device."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings.nvrtc")

ROOT = Path(__file__).parents[1]
TOYS = ROOT / "tests/toys/kernels"
DECLARE = """
from gpubench import Axis, Suite, Workload
suite = Suite(__file__)
{}

@suite.benchmark(n=Axis([1]))
def toy(device, n):
    \"\"\"None.\"\"\"
"""
SPILLY = """
extern "C" __global__ void __launch_bounds__(1024) spilly(float* out, const float* in) {
    float v[100];
#pragma unroll
    for (int i = 0; i < 100; i++) v[i] = in[i * threadIdx.x];
    __syncthreads();
    float s = 0;
#pragma unroll
    for (int i = 0; i < 100; i++) s = s * v[99 - i] + v[i];
    out[threadIdx.x] = s;
}
"""
HOPPER = """
extern "C" __global__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
"""


def kernels(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "scripts/kernels.py", str(folder), *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )


def toy(folder: Path, declared: str, text: str) -> Path:
    (folder / "toy.py").write_text(DECLARE.format(declared))
    (folder / "toy.cu").write_text(text)
    return folder


def test_every_variant_is_compiled_for_every_architecture() -> None:
    done = kernels(TOYS, "--variants")
    assert done.returncode == 0, done.stderr
    head, *rows, total = done.stdout.splitlines()
    assert head.split()[-4:] == ["sm_80", "sm_90", "sm_100", "sm_120"]
    assert [row.split()[1] for row in rows] == [
        f"scale[REAL={real},UNROLL={unroll}]" for real in ("float", "double") for unroll in (1, 4)
    ]
    assert all(int(registers) > 0 for row in rows for registers in row.split()[2:])
    assert total.startswith("16 compilations in ")
    assert total.endswith(", 0 complaints")


def test_variants_are_summed_up() -> None:
    done = kernels(TOYS)
    assert done.stdout.splitlines()[1].split()[:5] == ["scale.cu", "scale", "(4", "variants)", "10–22"]


def test_an_error_names_its_line_in_the_file_that_has_it(tmp_path: Path) -> None:
    for name in ("scale.py", "scale.cu"):
        shutil.copy(TOYS / name, tmp_path)
    (tmp_path / "include").mkdir()
    (tmp_path / "include/grid.cuh").write_text("\n\n__device__ long long first(int each) { return nowhere; }\n")
    done = kernels(tmp_path)
    assert done.returncode == 1
    assert (
        'grid.cuh:3: identifier "nowhere" is undefined (scale[REAL=float,UNROLL=1] sm_80)' in done.stderr.splitlines()
    )


def test_a_spill_fails(tmp_path: Path) -> None:
    done = kernels(toy(tmp_path, 'SPILLY = suite.kernel("spilly", arch="sm_90")', SPILLY))
    assert done.returncode == 1
    assert "toy.cu spilly sm_90: spills registers to local memory" in done.stderr
    assert " spill " in done.stdout


def test_source_for_one_architecture_is_compiled_for_that(tmp_path: Path) -> None:
    done = kernels(toy(tmp_path, 'FENCE = suite.kernel("fence", arch="sm_90a")', HOPPER))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].split()[-1] == "sm_90a"
    done = kernels(toy(tmp_path, 'FENCE = suite.kernel("fence")', HOPPER))
    assert done.returncode == 1
    assert "sm_80" in done.stderr


def test_a_kernel_nobody_declares_is_a_complaint(tmp_path: Path) -> None:
    text = 'extern "C" __global__ void one() {}\nextern "C" __global__ void two() {}\n'
    toy(tmp_path, 'ONE = suite.kernel("one", arch="sm_90")\nGONE = suite.kernel("gone", arch="sm_90")', text)
    (tmp_path / "other.cu").write_text(text)
    done = kernels(tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        'toy.cu: no extern "C" __global__ gone in it',
        "toy.cu: two is declared by no suite (suite.kernel)",
        "other.cu: no suite declares a kernel of it (suite.kernel)",
    ]


def test_a_missing_source_is_one_line(tmp_path: Path) -> None:
    toy(tmp_path, 'ONE = suite.kernel("one", source="absent.cu")', "")
    done = kernels(tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert done.stderr.startswith("absent.cu: No such file")
