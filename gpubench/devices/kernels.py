"""The door of CuPy: raw kernels of a suite, compiled by NVRTC and launched on torch's stream with torch's pointers.

torch owns the memory; CuPy only compiles, loads and launches. Whatever is wrong with CuPy or NVRTC is found once and
costs the cases that need them one line.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy
import torch

from gpubench.devices import Launch
from gpubench.devices.nvrtc import CUPY_OPTIONS, Program, first_error, program
from gpubench.devices.tensors import first_line
from gpubench.errors import KernelError, Skip, Unsupported
from gpubench.workload import Kernel

SHARED_BYTES = 48 << 10
"""Shared memory a block can have without asking; more is the kernel's attribute to set."""
CACHE = "~/.cupy/kernel_cache"
"""Where CuPy keeps what it has compiled, unless CUPY_CACHE_DIR names a folder."""

log = logging.getLogger("gpubench.kernels")


class Kernels:
    """The raw kernels of one GPU, each compiled once for one text and one set of defines."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._modules: dict[Program, Any] = {}
        self._refusal: str | None = None

    def launcher(self, kernel: Kernel, suite_file: Path) -> Launch:
        """See Device. The arguments are kept alive by the launch."""
        self._suits(kernel)
        cupy = self._cupy()
        file = suite_file.with_name(kernel.source or f"{suite_file.stem}.cu")
        entry = self._entry(kernel, program(file, kernel.defines, kernel.arch, kernel.options))
        self._fits(kernel, entry)
        values = [_value(kernel, index, arg, self._device) for index, arg in enumerate(kernel.args)]
        places = numpy.array([value.ctypes.data for value in values], dtype=numpy.uintp)
        keep = kernel, values, places  # tensors must outlive their addresses, and so must the arguments
        sizes = (*kernel.grid, *kernel.block, kernel.shared_bytes)  # type: ignore[misc]
        launch, function, stream = cupy.cuda.driver.launchKernel, entry.kernel.ptr, _stream_of(self._device)
        at = places.ctypes.data

        def call(keep: object = keep) -> None:
            launch(function, *sizes, stream(), at, 0)

        return Launch(call)

    def versions(self) -> dict[str, str]:
        """The versions of CuPy and NVRTC, or under "failure" why kernels cannot be compiled."""
        try:
            cupy = self._cupy()
        except Skip as skip:
            return {"failure": skip.reason}
        return {"cupy": str(cupy.__version__), "nvrtc": ".".join(map(str, cupy.cuda.nvrtc.getVersion()))}

    def _suits(self, kernel: Kernel) -> None:
        """Unsupported where the kernel is written for another architecture."""
        here = "sm_{}{}".format(*torch.cuda.get_device_capability(self._device))
        if kernel.arch is not None and kernel.arch.rstrip("af") != here:
            raise Unsupported(f"kernel {kernel.name} needs {kernel.arch}, this is {here}")

    def _cupy(self) -> Any:
        """CuPy, ready to compile. Skip with the same reason each time where it is not."""
        if self._refusal is None:
            try:
                return self._probed
            except Skip as skip:
                self._refusal = skip.reason  # not the exception itself: its frames hold the tensors of the case
        raise Skip(self._refusal)

    @cached_property
    def _probed(self) -> Any:
        major = (torch.version.cuda or "").split(".")[0]
        install = f"pip install 'gpubench-suite[cuda{major}]'"
        if find_spec("cupy") is None:
            raise Skip(f"CuPy is not installed ({install})")
        prepare_cache()
        try:
            import cupy
        except Exception as error:  # a broken installation may raise anything
            raise Skip(f"CuPy cannot be imported: {first_line(error)} ({install})") from error
        built = str(cupy.cuda.runtime.runtimeGetVersion() // 1000)
        if built != major:
            raise Skip(f"CuPy is built for CUDA {built}, torch for CUDA {major} ({install})")
        try:
            cupy.cuda.nvrtc.getVersion()
        except Exception as error:
            raise Skip(f"NVRTC cannot be loaded: {first_line(error)} ({install})") from error
        cupy.cuda.Device(self._device.index).use()
        return cupy

    def _entry(self, kernel: Kernel, source: Program) -> Any:
        """The entry of a program, compiled and loaded, as CuPy's RawKernel."""
        if source not in self._modules:
            self._modules[source] = self._load(source)
        try:
            return self._modules[source].get_function(kernel.name)
        except RuntimeError as error:  # CUDADriverError
            raise KernelError(
                f'{source.name}: no extern "C" __global__ {kernel.name} in it: {first_line(error)}'
            ) from error

    def _load(self, source: Program) -> Any:
        cupy = self._probed
        try:
            try:
                return _module(cupy, source)
            except OSError:  # the cache's folder is full, or gone since it was looked at
                os.environ["CUPY_CACHE_IN_MEMORY"] = "1"
                return _module(cupy, source)
        except cupy.cuda.compiler.CompileException as error:
            words = error.get_message()
        except cupy.cuda.nvrtc.NVRTCError as error:
            words = str(error)
        if source.arch is not None and "--gpu-architecture" in words:
            version = ".".join(map(str, cupy.cuda.nvrtc.getVersion()))
            raise Skip(f"{source.name}: NVRTC {version} does not know {source.arch}")
        log.warning("%s: the compiler's log\n%s", source.name, words)  # reaches the user with --debug
        raise KernelError(first_error(words), "--debug shows the compiler's log", words)

    def _fits(self, kernel: Kernel, entry: Any) -> None:
        """Refuse before the launch what would fail in it, and raise the limit of shared memory where that is needed."""
        threads = kernel.block[0] * kernel.block[1] * kernel.block[2]  # type: ignore[index]
        if threads > entry.max_threads_per_block:
            raise KernelError(
                f"kernel {kernel.name}: a block of {threads} threads; "
                f"its {entry.num_regs} registers a thread allow {entry.max_threads_per_block}"
            )
        wanted = entry.shared_size_bytes + kernel.shared_bytes
        properties: Any = torch.cuda.get_device_properties(self._device)
        most = properties.shared_memory_per_block_optin
        if wanted > most:
            raise Unsupported(
                f"kernel {kernel.name} needs {wanted} bytes of shared memory a block, this GPU has {most}"
            )
        if wanted > SHARED_BYTES and kernel.shared_bytes > entry.max_dynamic_shared_size_bytes:
            entry.max_dynamic_shared_size_bytes = kernel.shared_bytes


def _stream_of(device: torch.device) -> Callable[[], int]:
    """What gives the handle of torch's current stream: of ours a launch takes 15 µs by public ways, 5 µs by these."""
    short = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # what torch's own compiled code calls
    if short is None:
        return lambda: torch.cuda.current_stream(device).cuda_stream
    return partial(short, device.index)


def _module(cupy: Any, source: Program) -> Any:
    """The program as a loaded RawModule. One for a named architecture goes through a cubin: CuPy names only its own."""
    if source.arch is None:
        module = cupy.RawModule(code=source.text, options=source.options)
        module.compile()
        return module
    nvrtc = cupy.cuda.nvrtc
    made = nvrtc.createProgram(source.text, source.name, (), ())
    try:
        nvrtc.compileProgram(made, (*source.options, *_include(cupy), *CUPY_OPTIONS, f"-arch={source.arch}"))
        cubin = nvrtc.getCUBIN(made)
    except nvrtc.NVRTCError as error:
        raise cupy.cuda.compiler.CompileException(
            nvrtc.getProgramLog(made) or str(error), source.text, source.name, source.options
        ) from error
    finally:
        nvrtc.destroyProgram(made)
    with tempfile.TemporaryDirectory(prefix="gpubench-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        module = cupy.RawModule(path=str(path))
        module.compile()
    return module


def _include(cupy: Any) -> tuple[str, ...]:
    """CUDA's own headers (cuda_fp16.h and such), where CuPy looks for them too."""
    toolkit = cupy.cuda.get_cuda_path()
    return (f"-I{toolkit}/include",) if toolkit else ()


def _value(kernel: Kernel, index: int, arg: Any, device: torch.device) -> Any:
    """An argument as an array of one, whose memory the driver reads: the address of a tensor, or a NumPy scalar."""
    if isinstance(arg, numpy.generic):
        return numpy.array([arg])
    where = f"kernel {kernel.name}: args[{index}]"
    if not isinstance(arg, torch.Tensor):
        raise KernelError(f"{where} is a {type(arg).__name__}; it takes a tensor or a NumPy scalar")
    if arg.device != device:
        raise KernelError(f"{where} is a tensor on {arg.device}; the kernel runs on {device}")
    if not arg.is_contiguous():
        raise KernelError(f"{where} is a tensor that is not contiguous; a kernel sees its memory, not its strides")
    return numpy.array([arg.data_ptr()], dtype=numpy.uintp)


def prepare_cache() -> str | None:
    """One line for the user where CuPy cannot keep what it compiles; it is then told to keep nothing.

    To be called before CuPy's import, which fails on a folder that cannot be made.
    """
    try:
        folder = Path(os.environ.get("CUPY_CACHE_DIR", CACHE)).expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return None
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home folder
        os.environ["CUPY_CACHE_DIR"] = tempfile.gettempdir()
        os.environ["CUPY_CACHE_IN_MEMORY"] = "1"
        reason = getattr(error, "strerror", None) or "no home folder"
        return f"CuPy's cache folder cannot be used ({reason}): raw kernels are compiled anew in each run"
