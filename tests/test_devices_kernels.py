"""The door of CuPy, with a CuPy and a CUDA that are played: what is asked of them, and what each failure costs."""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from gpubench.devices import kernels as door
from gpubench.devices.kernels import Kernels, prepare_cache
from gpubench.errors import KernelError, Skip, Unsupported
from gpubench.workload import Kernel

CPU = torch.device("cpu")
INSTALL = r"\(pip install 'gpubench-suite\[cuda13\]'\)$"


class CompileException(Exception):
    """CuPy's."""

    def get_message(self) -> str:
        return str(self.args[0])


class NVRTCError(RuntimeError):
    """CuPy's."""


class Entry:
    """Plays RawKernel."""

    def __init__(self, cupy: FakeCupy) -> None:
        self.kernel = SimpleNamespace(ptr=4711)
        self.max_threads_per_block = 768
        self.num_regs = 80
        self.shared_size_bytes = 128
        self.max_dynamic_shared_size_bytes = 48 * 1024


class FakeCupy:
    """Plays the module; each attribute that a test sets to an exception is raised where CuPy would."""

    def __init__(self) -> None:
        self.launched: list[tuple[Any, ...]] = []
        self.modules: list[dict[str, Any]] = []
        self.programs: list[tuple[str, ...]] = []
        self.compiling: Callable[[], None] = lambda: None
        self.runtime_version = 13020
        self.nvrtc_version: Any = (13, 0)
        self.entry = Entry(self)
        nvrtc = SimpleNamespace(
            NVRTCError=NVRTCError,
            getVersion=self.version,
            createProgram=lambda *given: given,
            compileProgram=lambda program, options: (self.programs.append(options), self.compiling()),
            getCUBIN=lambda program: b"cubin",
            getProgramLog=lambda program: "nvrtc: error: invalid value for --gpu-architecture (-arch)",
            destroyProgram=lambda program: None,
        )
        self.cuda = SimpleNamespace(
            Device=lambda index: SimpleNamespace(use=lambda: None),
            driver=SimpleNamespace(launchKernel=lambda *given: self.launched.append(given)),
            compiler=SimpleNamespace(CompileException=CompileException),
            get_cuda_path=lambda: "/toolkit",
            nvrtc=nvrtc,
            runtime=SimpleNamespace(runtimeGetVersion=lambda: self.runtime_version),
        )

    def version(self) -> tuple[int, int]:
        if isinstance(self.nvrtc_version, Exception):
            raise self.nvrtc_version
        return self.nvrtc_version

    def RawModule(self, **given: Any) -> Any:
        self.modules.append(given | {"existed": Path(given["path"]).read_bytes()} if "path" in given else given)
        return SimpleNamespace(compile=self.compiling, get_function=self.get_function)

    def get_function(self, name: str) -> Entry:
        if name == "absent":
            raise RuntimeError("CUDA_ERROR_NOT_FOUND: named symbol not found")
        return self.entry


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeCupy:
    fake = FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.setattr(door, "find_spec", lambda name: name)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    properties = SimpleNamespace(shared_memory_per_block_optin=232448)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda index: 77, raising=False)
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", "0")
    return fake


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "toy.cu").write_text("text\n")
    return tmp_path / "toy.py"


def kernel(name: str = "scale", *args: Any, block: Any = 256, **more: Any) -> Kernel:
    return Kernel(name, args or (torch.zeros(4),), (2, 3), block, **more)


def test_a_launch_goes_to_torchs_stream_with_torchs_pointers(cupy: FakeCupy, suite: Path) -> None:
    x = torch.zeros(4)
    launch = Kernels(CPU).launcher(kernel("scale", x, np.int64(-4), np.float32(0.5), shared_bytes=16), suite)
    assert launch.flags == ()
    assert cupy.launched == []
    launch.call()
    ((function, *sizes, shared, stream, at, extra),) = cupy.launched
    assert (function, sizes, shared, stream, extra) == (4711, [2, 3, 1, 256, 1, 1], 16, 77, 0)
    places = (ctypes.c_void_p * 3).from_address(at)
    assert ctypes.c_uint64.from_address(places[0]).value == x.data_ptr()
    assert ctypes.c_int64.from_address(places[1]).value == -4
    assert ctypes.c_float.from_address(places[2]).value == 0.5


def test_a_launch_asks_torch_for_its_stream_each_time(
    cupy: FakeCupy, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(torch._C, "_cuda_getCurrentRawStream")
    handles = iter((5, 6))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=next(handles)))
    launch = Kernels(CPU).launcher(kernel(), suite)
    launch.call()
    launch.call()
    assert [given[8] for given in cupy.launched] == [5, 6]


def test_a_launch_keeps_its_tensors(cupy: FakeCupy, suite: Path) -> None:
    held = torch.zeros(4)
    before = sys.getrefcount(held)
    launch = Kernels(CPU).launcher(kernel("scale", held), suite)
    assert sys.getrefcount(held) > before
    del launch
    assert sys.getrefcount(held) == before


def test_a_program_is_compiled_once(cupy: FakeCupy, suite: Path) -> None:
    kernels = Kernels(CPU)
    for name, unroll in (("scale", 1), ("other", 1), ("scale", 1), ("scale", 2)):
        kernels.launcher(kernel(name, defines={"UNROLL": unroll}), suite)
    assert [module["options"][-1] for module in cupy.modules] == ["-DUNROLL=1", "-DUNROLL=2"]


def test_source_for_this_architecture_goes_through_a_cubin(cupy: FakeCupy, suite: Path) -> None:
    Kernels(CPU).launcher(kernel(arch="sm_90a"), suite)
    ((options),) = cupy.programs
    assert options[-1] == "-arch=sm_90a"
    assert "-I/toolkit/include" in options
    ((module),) = cupy.modules
    assert module["existed"] == b"cubin"
    assert not Path(module["path"]).exists()


@pytest.mark.parametrize("arch", ["sm_100a", "sm_80", "sm_9"])
def test_source_for_another_architecture_is_unsupported(cupy: FakeCupy, suite: Path, arch: str) -> None:
    with pytest.raises(Unsupported, match=f"^kernel scale needs {arch}, this is sm_90$"):
        Kernels(CPU).launcher(kernel(arch=arch), suite)


def test_an_nvrtc_too_old_for_the_architecture_is_a_skip(cupy: FakeCupy, suite: Path) -> None:
    def refuse() -> None:
        raise NVRTCError("NVRTC_ERROR_INVALID_OPTION")

    cupy.compiling = refuse
    with pytest.raises(Skip, match=r"^toy\.cu: NVRTC 13\.0 does not know sm_90a$"):
        Kernels(CPU).launcher(kernel(arch="sm_90a"), suite)


def test_a_compile_error_is_one_line_and_a_log(cupy: FakeCupy, suite: Path, caplog: pytest.LogCaptureFixture) -> None:
    words = 'toy.cu(12): error: identifier "y" is undefined\n  x[0]=y;\n       ^\n\n1 error detected'

    def refuse() -> None:
        raise CompileException(words)

    cupy.compiling = refuse
    with caplog.at_level(logging.WARNING), pytest.raises(KernelError) as error:
        Kernels(CPU).launcher(kernel(), suite)
    assert str(error.value) == 'toy.cu:12: identifier "y" is undefined (--debug shows the compiler\'s log)'
    assert error.value.log == words
    assert words in caplog.text


def test_a_name_that_is_not_in_the_source(cupy: FakeCupy, suite: Path) -> None:
    with pytest.raises(KernelError, match=r'^toy\.cu: no extern "C" __global__ absent in it: .*named symbol not found'):
        Kernels(CPU).launcher(kernel("absent"), suite)


def test_a_cache_that_fills_up_while_compiling_is_left_alone(cupy: FakeCupy, suite: Path) -> None:
    def full() -> None:
        if os.environ["CUPY_CACHE_IN_MEMORY"] != "1":
            raise OSError(28, "No space left on device")

    cupy.compiling = full
    Kernels(CPU).launcher(kernel(), suite)
    assert os.environ["CUPY_CACHE_IN_MEMORY"] == "1"


def test_shared_memory_beyond_48_kib_is_asked_for(cupy: FakeCupy, suite: Path) -> None:
    kernels = Kernels(CPU)
    kernels.launcher(kernel(shared_bytes=48 * 1024 - 128), suite)
    assert cupy.entry.max_dynamic_shared_size_bytes == 48 * 1024
    kernels.launcher(kernel(shared_bytes=100_000), suite)
    assert cupy.entry.max_dynamic_shared_size_bytes == 100_000
    kernels.launcher(kernel(shared_bytes=60_000), suite)  # a launch made before still needs its own
    assert cupy.entry.max_dynamic_shared_size_bytes == 100_000
    with pytest.raises(Unsupported, match="scale needs 232449 bytes of shared memory a block, this GPU has 232448"):
        kernels.launcher(kernel(shared_bytes=232448 - 127), suite)


def test_a_block_its_registers_do_not_allow_is_refused(cupy: FakeCupy, suite: Path) -> None:
    with pytest.raises(KernelError, match="a block of 769 threads; its 80 registers a thread allow 768"):
        Kernels(CPU).launcher(kernel(block=769), suite)


@pytest.mark.parametrize(
    ("arg", "words"),
    [
        (lambda: torch.zeros(4, 4).T, "args[0] is a tensor that is not contiguous"),
        (lambda: torch.empty(4, device="meta"), "args[0] is a tensor on meta; the kernel runs on cpu"),
        (lambda: [1.0], "args[0] is a list; it takes a tensor or a NumPy scalar"),
    ],
)
def test_arguments_that_are_refused(cupy: FakeCupy, suite: Path, arg: Any, words: str) -> None:
    with pytest.raises(KernelError) as error:
        Kernels(CPU).launcher(kernel("scale", arg()), suite)
    assert words in str(error.value)
    assert cupy.launched == []


def refused(suite: Path, words: str) -> None:
    """The same one line for every case, however often it is asked."""
    kernels = Kernels(CPU)
    for _ in range(2):
        with pytest.raises(Skip, match=words) as skip:
            kernels.launcher(kernel(), suite)
        assert "\n" not in skip.value.reason


def test_no_cupy(cupy: FakeCupy, suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "find_spec", lambda name: None)
    refused(suite, "^CuPy is not installed " + INSTALL)


def test_a_cupy_that_cannot_be_imported(cupy: FakeCupy, suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    refused(suite, "^CuPy cannot be imported: ModuleNotFoundError: .* " + INSTALL)


@pytest.mark.parametrize("version", [12090, 14000])
def test_a_cupy_of_another_cuda(cupy: FakeCupy, suite: Path, version: int) -> None:
    cupy.runtime_version = version
    refused(suite, f"^CuPy is built for CUDA {version // 1000}, torch for CUDA 13 " + INSTALL)


@pytest.mark.parametrize(
    "error", [RuntimeError("libnvrtc.so.13: cannot open\nlong story"), OSError("no"), ImportError("no")]
)
def test_no_nvrtc(cupy: FakeCupy, suite: Path, error: Exception) -> None:
    cupy.nvrtc_version = error
    refused(suite, f"^NVRTC cannot be loaded: {type(error).__name__}: " + r"[^\n]* " + INSTALL)


def test_a_usable_cache_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", "0")
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "deep/cache"))
    assert prepare_cache() is None
    assert os.environ["CUPY_CACHE_DIR"] == str(tmp_path / "deep/cache")
    monkeypatch.delenv("CUPY_CACHE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert prepare_cache() is None
    assert os.listdir(tmp_path / ".cupy/kernel_cache") == []
    assert os.environ["CUPY_CACHE_IN_MEMORY"] == "0"


@pytest.mark.parametrize("where", ["CUPY_CACHE_DIR", "HOME"])
def test_a_cache_that_cannot_be_used_is_not(where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", "0")
    monkeypatch.setenv("CUPY_CACHE_DIR", "placeholder")  # so that what the door sets is undone
    monkeypatch.delenv("CUPY_CACHE_DIR")
    (tmp_path / "file").touch()
    monkeypatch.setenv(where, str(tmp_path / "file/below"))
    line = prepare_cache()
    assert line == "CuPy's cache folder cannot be used (Not a directory): raw kernels are compiled anew in each run"
    assert os.environ["CUPY_CACHE_DIR"] == tempfile.gettempdir()
    assert os.environ["CUPY_CACHE_IN_MEMORY"] == "1"
    assert prepare_cache() is None


def test_a_read_only_cache_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(**options: Any) -> Any:  # root may write anywhere, so the refusal is played
        raise PermissionError(13, "Permission denied")

    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", "0")
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert "(Permission denied)" in (prepare_cache() or "")
