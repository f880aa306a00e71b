"""A raw kernel's counterpart on the CPU: compiled by the system's compiler, flagged, or skipped in words."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gpubench.devices import analogue
from gpubench.devices.analogue import Analogues, first_error
from gpubench.errors import KernelError, Skip
from gpubench.workload import Kernel

TOYS = Path(__file__).parent / "toys/kernels"
SOURCE = """
#include "two.cuh"
extern "C" void scalars(double* out, bool b, unsigned char u8, short i16, int i32, long long i64, float f32,
                        double f64) {
    const double seen[] = {(double)b, (double)u8, (double)i16, (double)i32, (double)i64, (double)f32, f64};
    for (int i = 0; i < 7; i++) out[i] = TWO * seen[i] + OFFSET;
}
extern "C" void no_openmp(float* out) { out[0] = 1; }
"""
THREADS = """
#include <omp.h>
extern "C" void threads(int* out) {
#pragma omp parallel
#pragma omp single
    out[0] = omp_get_num_threads();
}
"""

if not any(map(shutil.which, analogue.COMPILERS)):
    pytest.skip("needs a C++ compiler", allow_module_level=True)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "include").mkdir()
    (tmp_path / "include/two.cuh").write_text("#define TWO 2\n")
    (tmp_path / "toy.cpp").write_text(SOURCE)
    return tmp_path / "toy.py"


def kernel(name: str, *args: Any, **more: Any) -> Kernel:
    return Kernel(name, args, 1, 1, defines={"OFFSET": 1} | more.pop("defines", {}), **more)


def test_it_runs_with_the_kernels_arguments_and_defines() -> None:
    n = 1001
    x, out = torch.randn(n, dtype=torch.float64), torch.zeros(n, dtype=torch.float64)
    made = Kernel("scale", (x, out, np.float64(2.5), np.int64(n)), 1, 1, defines={"REAL": "double", "UNROLL": 1})
    launch = Analogues().launcher(made, TOYS / "scale.py")
    assert launch.flags == ("analogue",)
    launch.call()
    assert torch.equal(out, 2.5 * x)


def test_scalars_arrive_as_what_they_are(suite: Path) -> None:
    given = [np.bool_(True), np.uint8(200), np.int16(-3), np.int32(-70_000), np.int64(2**40)]
    given += [np.float32(2.25), np.float64(1 / 3)]
    out = torch.zeros(7, dtype=torch.float64)
    Analogues().launcher(kernel("scalars", out, *given), suite).call()
    assert out.tolist() == [2 * float(value) + 1 for value in given]


def test_one_text_and_one_set_of_defines_is_compiled_once(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[dict[str, Any]] = []
    real = analogue.compiled
    monkeypatch.setattr(
        analogue, "compiled", lambda file, defines: compiled.append(dict(defines)) or real(file, defines)
    )
    analogues = Analogues()
    for offset in (1, 1, 2):
        analogues.launcher(kernel("no_openmp", torch.zeros(1), defines={"OFFSET": offset}), suite)
    assert compiled == [{"OFFSET": 1}, {"OFFSET": 2}]


def test_it_leaves_no_file_behind(suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    Analogues().launcher(kernel("no_openmp", torch.zeros(1)), suite).call()
    assert {path.name for path in tmp_path.iterdir()} == {"include", "toy.cpp"}


def test_a_kernel_in_another_source_has_its_analogue_beside_that(suite: Path) -> None:
    suite.with_name("other.cpp").write_text('extern "C" void one(float* out) { out[0] = 7; }\n')
    out = torch.zeros(1)
    Analogues().launcher(kernel("one", out, source="other.cu"), suite).call()
    assert out.item() == 7


def test_no_counterpart_is_a_skip(suite: Path) -> None:
    with pytest.raises(Skip, match=r"^no CPU counterpart of nowhere in toy\.cpp$"):
        Analogues().launcher(kernel("nowhere", torch.zeros(1)), suite)
    with pytest.raises(Skip, match=r"^no CPU counterpart of no_openmp$"):
        Analogues().launcher(kernel("no_openmp", torch.zeros(1)), suite.with_name("nothing.py"))


@pytest.mark.parametrize("name", ["read", "write", "abs", "memcpy", "omp_get_num_threads"])
def test_a_function_of_another_library_is_no_counterpart(suite: Path, name: str) -> None:
    """This one is linked with OpenMP and the C library, where the loader goes on looking."""
    suite.with_suffix(".cpp").write_text(THREADS)
    with pytest.raises(Skip, match=rf"^no CPU counterpart of {name} in toy\.cpp$"):
        Analogues().launcher(kernel(name, torch.zeros(1)), suite)


@pytest.mark.parametrize("name", ["read", "write", "abs"])
def test_a_counterpart_may_have_the_name_of_another_librarys_function(suite: Path, name: str) -> None:
    suite.with_suffix(".cpp").write_text(f'extern "C" void {name}(float* out) {{ out[0] = 7; }}\n')
    out = torch.zeros(1)
    Analogues().launcher(kernel(name, out), suite).call()
    assert out.item() == 7


def test_no_compiler_is_a_skip(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(suite.parent))
    with pytest.raises(Skip, match=r"no C\+\+ compiler \(c\+\+, g\+\+, clang\+\+\)"):
        Analogues().launcher(kernel("no_openmp", torch.zeros(1)), suite)


def test_a_source_that_does_not_compile_names_its_line(suite: Path) -> None:
    suite.with_suffix(".cpp").write_text('extern "C" void broken(float* out) {\n    out[0] = nowhere;\n}\n')
    with pytest.raises(KernelError, match=r"^toy\.cpp:2: .*nowhere") as error:
        Analogues().launcher(kernel("broken", torch.zeros(1)), suite)
    assert "nowhere" in error.value.log


@pytest.mark.parametrize(
    ("arg", "words"),
    [
        (np.float16(1), "args[0] is a float16, which C++ has no type for"),
        (torch.zeros(4, 4).T, "args[0] is a tensor that is not contiguous"),
        ([1.0], "args[0] is a list; it takes a tensor or a NumPy scalar"),
    ],
)
def test_arguments_that_are_refused(suite: Path, arg: Any, words: str) -> None:
    with pytest.raises(KernelError) as error:
        Analogues().launcher(kernel("no_openmp", arg), suite)
    assert words in str(error.value)


@pytest.mark.skipif(sys.platform != "linux", reason="OpenMP's library is found by its name on Linux")
def test_it_uses_torchs_threads(tmp_path: Path) -> None:
    (tmp_path / "toy.cpp").write_text(THREADS)
    out = torch.zeros(1, dtype=torch.int32)
    before = torch.get_num_threads()
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            Analogues().launcher(Kernel("threads", (out,), 1, 1), tmp_path / "toy.py").call()
            assert out.item() == threads
    finally:
        torch.set_num_threads(before)


def test_the_first_error_in_one_line() -> None:
    assert (
        first_error("/a b/toy.cpp: In function\n/a b/toy.cpp:3:5: error: no such thing\n") == "toy.cpp:3: no such thing"
    )
    assert first_error("toy.cpp:1:10: fatal error: no.h: No such file\n") == "toy.cpp:1: no.h: No such file"
    assert first_error("ld: error: something\n") == "ld: error: something"
    assert first_error("") is None
