"""Raw kernels on a GPU: right results, right stream, right refusals, and whatever the environment does to CuPy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)
pytest.importorskip("cupy")

from gpubench.devices.cuda import CudaDevice  # noqa: E402
from gpubench.devices.kernels import Kernels  # noqa: E402
from gpubench.discovery import load_suite  # noqa: E402
from gpubench.errors import KernelError, Skip, Unsupported  # noqa: E402
from gpubench.result import Conditions, Record  # noqa: E402
from gpubench.runner import Effort, measure  # noqa: E402
from gpubench.suite import Case  # noqa: E402
from gpubench.workload import Kernel  # noqa: E402

ROOT = Path(__file__).parents[2]
TOYS = ROOT / "tests/toys/kernels"
CAPABILITY = torch.cuda.get_device_capability()
HERE = "sm_{}{}".format(*CAPABILITY)
DEVICE = torch.device("cuda", 0)

SOURCE = """
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void fill(unsigned char* out, unsigned char value, long long n) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) out[i] = value;
}

extern "C" __global__ void mirror(const float* x, float* out, int n) {
    extern __shared__ float held[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) held[i] = x[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = held[n - 1 - i];
}

extern "C" __global__ void scalars(double* out, bool b, unsigned char u8, short i16, int i32, long long i64,
                                   __half f16, float f32, double f64) {
    const double seen[] = {(double)b, (double)u8, (double)i16, (double)i32, (double)i64,
                           (double)__half2float(f16), (double)f32, f64};
    for (int i = 0; i < 8; i++) out[i] = seen[i];
}

extern "C" __global__ void __launch_bounds__(256) bounded(float* out) { out[threadIdx.x] = 1; }

extern "C" __global__ void value(int* out) { out[0] = VALUE; }
"""
HOPPER = """
#include <cuda_bf16.h>
extern "C" __global__ void fence(float* out) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    out[threadIdx.x] = __bfloat162float(__float2bfloat16(2.0f));
}
"""


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(DEVICE)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "toy.cu").write_text(SOURCE)
    return tmp_path / "toy.py"


def launch(kernels: Kernels, suite: Path, name: str, *args: Any, grid: Any = 1, block: Any = 128, **more: Any) -> None:
    defines = {"VALUE": 1} | more.pop("defines", {})
    kernels.launcher(Kernel(name, args, grid, block, defines=defines, **more), suite).call()


def zeros(n: int, dtype: Any = torch.float32) -> Any:
    return torch.zeros(n, dtype=dtype, device=DEVICE)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_benchmark_of_a_raw_kernel_is_a_row(dtype: str) -> None:
    toy = load_suite(TOYS / "scale.py")
    case = Case("scale", "scale", {"n": 4_000_001, "dtype": dtype}, Conditions())
    record = list(measure(toy.benchmarks["scale"], case, CudaDevice(0), Effort()))[-1]
    assert isinstance(record, Record)
    assert (record.status, record.reason) == ("ok", None)
    assert "analogue" not in record.flags
    assert record.compile_ns
    assert record.check is not None
    assert record.check.elements == 4_000_001
    (seen,) = record.kernels
    assert seen.name == "scale"
    assert seen.block == [256, 1, 1]
    assert seen.registers


def test_64_bit_indices_reach_the_last_element(kernels: Kernels, suite: Path) -> None:
    n = 2**31 + 1024
    out = zeros(n, torch.uint8)
    launch(kernels, suite, "fill", out, np.uint8(7), np.int64(n), grid=1024, block=256)
    assert out[-1].item() == 7
    assert int(out.sum(dtype=torch.int64)) == 7 * n


def test_shared_memory_beyond_48_kib(kernels: Kernels, suite: Path) -> None:
    n = 96 * 1024 // 4
    x, out = torch.arange(n, dtype=torch.float32, device=DEVICE), zeros(n)
    launch(kernels, suite, "mirror", x, out, np.int32(n), block=1024, shared_bytes=4 * n)
    assert torch.equal(out, x.flip(0))
    small = 1024
    launch(kernels, suite, "mirror", x, out, np.int32(small), block=1024, shared_bytes=4 * small)
    assert torch.equal(out[:small], x[:small].flip(0))


def test_more_shared_memory_than_there_is_is_unsupported(kernels: Kernels, suite: Path) -> None:
    with pytest.raises(Unsupported, match="mirror needs 1048576 bytes of shared memory a block, this GPU has"):
        launch(kernels, suite, "mirror", zeros(1), zeros(1), np.int32(1), shared_bytes=1 << 20)


def test_scalars_arrive_as_what_they_are(kernels: Kernels, suite: Path) -> None:
    given = [
        np.bool_(True),
        np.uint8(200),
        np.int16(-3),
        np.int32(-70_000),
        np.int64(2**40),
        np.float16(0.5),
        np.float32(2.25),
        np.float64(1 / 3),
    ]
    out = zeros(8, torch.float64)
    launch(kernels, suite, "scalars", out, *given, block=1)
    assert out.tolist() == [float(value) for value in given]


def test_each_set_of_defines_is_its_own_program(kernels: Kernels, suite: Path) -> None:
    out = zeros(1, torch.int32)
    for value in (3, 4, 3):
        launch(kernels, suite, "value", out, block=1, defines={"VALUE": value})
        assert out.item() == value


def test_a_changed_header_is_compiled_again(kernels: Kernels, tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "toy.cu").write_text(
        '#include "one.cuh"\nextern "C" __global__ void value(int* out) { out[0] = ONE; }\n'
    )
    out = zeros(1, torch.int32)
    for value in (1, 2):
        (tmp_path / "include/one.cuh").write_text(f"#define ONE {value}\n")
        launch(kernels, tmp_path / "toy.py", "value", out, block=1)
        assert out.item() == value


def test_launches_follow_torchs_current_stream(kernels: Kernels, suite: Path) -> None:
    n = 1 << 20
    x, out = zeros(n, torch.uint8), zeros(n, torch.uint8)
    ready = kernels.launcher(Kernel("fill", (x, np.uint8(5), np.int64(n)), 64, 256, defines={"VALUE": 1}), suite)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)  # a launch on any other stream would overtake this
        x.zero_()
        ready.call()
        out.copy_(x)
    assert not side.query()
    side.synchronize()
    assert int(out.sum(dtype=torch.int64)) == 5 * n


def test_launches_can_be_captured(kernels: Kernels, suite: Path) -> None:
    out = zeros(256, torch.uint8)
    ready = kernels.launcher(Kernel("fill", (out, np.uint8(9), np.int64(256)), 1, 256, defines={"VALUE": 1}), suite)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ready.call()
    assert int(out.sum()) == 0
    graph.replay()
    assert out.tolist() == [9] * 256


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (lambda: (zeros(64).reshape(8, 8).T, zeros(64)), "args[0] is a tensor that is not contiguous"),
        (lambda: (zeros(64), zeros(64).cpu()), "args[1] is a tensor on cpu"),
        (lambda: ([1.0, 2.0], zeros(64)), "args[0] is a list"),
    ],
)
def test_arguments_that_are_refused(kernels: Kernels, suite: Path, args: Any, words: str) -> None:
    with pytest.raises(KernelError) as error:
        launch(kernels, suite, "mirror", *args(), np.int32(64), shared_bytes=1024)
    assert words in str(error.value)


def test_a_block_its_registers_do_not_allow(kernels: Kernels, suite: Path) -> None:
    out = zeros(512)
    launch(kernels, suite, "bounded", out, block=256)
    with pytest.raises(KernelError, match=r"a block of 512 threads; its .* registers a thread allow 256"):
        launch(kernels, suite, "bounded", out, block=512)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('extern "C" __global__ void value(int* out) {\n    out[0] = nowhere;\n}\n', 'toy.cu:2: identifier "nowhere"'),
        ('\n\n#include "nowhere.cuh"\n', 'toy.cu:3: cannot open source file "nowhere.cuh"'),
        ("__global__ void other(int* out) {}\n", 'toy.cu: no extern "C" __global__ value in it'),
    ],
)
@pytest.mark.parametrize("arch", [None, HERE])
def test_a_kernel_that_does_not_compile(tmp_path: Path, text: str, words: str, arch: str | None) -> None:
    (tmp_path / "toy.cu").write_text(text)
    with pytest.raises(KernelError) as error:
        launch(Kernels(DEVICE), tmp_path / "toy.py", "value", zeros(1, torch.int32), arch=arch)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert "no extern" in words or words.rsplit(" ", 1)[1] in error.value.log


def test_source_for_one_architecture(tmp_path: Path) -> None:
    (tmp_path / "toy.cu").write_text(HOPPER)
    out = zeros(128)
    if CAPABILITY == (9, 0):
        launch(Kernels(DEVICE), tmp_path / "toy.py", "fence", out, arch="sm_90a")
        assert out.tolist() == [2.0] * 128
    else:
        with pytest.raises(Unsupported, match=f"needs sm_90a, this is {HERE}"):
            launch(Kernels(DEVICE), tmp_path / "toy.py", "fence", out, arch="sm_90a")
    with pytest.raises(Unsupported, match=f"needs sm_70, this is {HERE}"):
        launch(Kernels(DEVICE), tmp_path / "toy.py", "fence", out, arch="sm_70")


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_a_kernel_runs_on_the_gpu_it_was_made_for(suite: Path) -> None:
    before = torch.cuda.current_device()
    device = CudaDevice(1)
    try:
        out = torch.zeros(256, dtype=torch.uint8, device=device.torch_device)
        ready = Kernel("fill", (out, np.uint8(3), np.int64(256)), 1, 256, defines={"VALUE": 1})
        device.launcher(ready, suite).call()
        assert out.tolist() == [3] * 256
        with pytest.raises(KernelError, match=r"args\[0\] is a tensor on cuda:0; the kernel runs on cuda:1"):
            device.launcher(Kernel("fill", (zeros(1),), 1, 1, defines={"VALUE": 1}), suite)
    finally:
        torch.cuda.set_device(before)


ALONE = """
import sys
from pathlib import Path
import numpy as np, torch
from gpubench.devices.find import find
from gpubench.workload import Kernel
device, notice = find("cuda")
for arch in (None, sys.argv[2]):
    out = torch.zeros(1, dtype=torch.int32, device="cuda")
    kernel = Kernel("value", (out,), 1, 1, defines={"VALUE": 5}, arch=arch)
    device.launcher(kernel, Path(sys.argv[1])).call()
    assert out.item() == 5
print(notice)
"""


def alone(suite: Path, **environment: str) -> subprocess.Popen[str]:
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"} | environment
    return subprocess.Popen(
        [sys.executable, "-c", ALONE, str(suite), HERE],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_odd_environments(suite: Path, tmp_path: Path) -> None:
    empty, accents = tmp_path / "cache", tmp_path / "été"
    accents.mkdir()
    (accents / "toy.cu").write_text(SOURCE)
    (accents / "include").mkdir()
    blocked = str(suite.with_suffix(".cu") / "below-a-file")
    runs = {
        "usable": [alone(suite, CUPY_CACHE_DIR=str(empty)), alone(suite, CUPY_CACHE_DIR=str(empty))],  # in parallel
        "no home": [alone(suite, HOME=blocked)],
        "cache below a file": [alone(suite, CUPY_CACHE_DIR=blocked)],
        "stray toolkit": [alone(suite, CUDA_PATH="/nonexistent", CUPY_CACHE_DIR=str(tmp_path / "a"))],
        "accents": [alone(accents / "toy.py", TMPDIR=str(accents), CUPY_CACHE_DIR=str(accents / "cache"))],
    }
    told = {}
    for name, processes in runs.items():
        for process in processes:
            out, err = process.communicate(timeout=300)
            assert process.returncode == 0, f"{name}: {err}"
            told[name] = out.strip().splitlines()[-1]
    warned = {name for name, line in told.items() if "cache folder cannot be used" in line}
    assert warned == {"no home", "cache below a file"}
    assert not any(str(tmp_path) in line for line in told.values())
    assert list(empty.glob("*.cubin"))


def test_what_is_wrong_with_cupy_is_one_line_each_time(monkeypatch: pytest.MonkeyPatch, suite: Path) -> None:
    refused = Kernels(DEVICE)
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr("gpubench.devices.kernels.find_spec", lambda name: None)
    for _ in range(2):
        with pytest.raises(Skip, match=r"CuPy is not installed \(pip install 'gpubench-suite\[cuda\d+\]'\)"):
            launch(refused, suite, "value", zeros(1, torch.int32))
