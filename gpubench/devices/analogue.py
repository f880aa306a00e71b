"""What stands in for a raw kernel on a CPU: a function of the same name in a .cpp file beside the suite.

    extern "C" void scale(const float* x, float* out, long long n)

It takes the kernel's arguments in the kernel's order, and neither grid nor block: how it divides the work (OpenMP) is
its own matter. The kernel's defines are set for it too. It is another program than the kernel, so its row is flagged
`analogue`, and a reference is never timed in its place.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy
import torch

from gpubench.devices import Launch
from gpubench.errors import KernelError, Skip
from gpubench.workload import Define, Kernel

COMPILERS = ("c++", "g++", "clang++")
OPTIONS = ("-std=c++17", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC")
COMPILE_S = 300.0
"""A compiler that takes longer is given up."""


class Analogues:
    """The analogues of one process, each compiled once for one text and one set of defines."""

    def __init__(self) -> None:
        self._libraries: dict[tuple[Path, str, tuple[tuple[str, Define], ...]], ctypes.CDLL] = {}

    def launcher(self, kernel: Kernel, suite_file: Path) -> Launch:
        """See Device. Skip where there is no counterpart or no compiler, KernelError where it does not compile."""
        file = suite_file.with_name(kernel.source or suite_file.name).with_suffix(".cpp")
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            raise Skip(f"no CPU counterpart of {kernel.name}") from None
        values = [_argument(kernel, index, arg) for index, arg in enumerate(kernel.args)]
        key = (file, text, tuple(kernel.defines.items()))
        if key not in self._libraries:
            self._libraries[key] = compiled(file, kernel.defines)
        library = self._libraries[key]
        function = _entry(library, kernel.name)
        if function is None:
            raise Skip(f"no CPU counterpart of {kernel.name} in {file.name}")
        function.restype = None
        _use_threads(library)

        def call(keep: Kernel = kernel) -> None:  # its tensors must outlive their addresses
            function(*values)

        return Launch(call, ("analogue",))


def compiled(file: Path, defines: Mapping[str, Define]) -> ctypes.CDLL:
    """A C++ file as a loaded library. The file it was loaded from is gone again when this returns."""
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise Skip(f"no C++ compiler ({', '.join(COMPILERS)})")
    with tempfile.TemporaryDirectory(prefix="gpubench-") as folder:
        made = Path(folder) / "analogue.so"
        macros = [f"-D{name}={value}" for name, value in defines.items()]
        command = [compiler, *OPTIONS, f"-I{file.parent / 'include'}", *macros, str(file), "-o", str(made)]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=COMPILE_S,
                env=os.environ | {"LC_ALL": "C"},
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise KernelError(f"{file.name}: {Path(compiler).name} cannot be run: {error}") from error
        if done.returncode:
            raise KernelError(f"{first_error(done.stderr) or f'{file.name}: does not compile'}", log=done.stderr)
        try:
            return ctypes.CDLL(str(made))
        except OSError as error:  # such as a temporary folder mounted noexec
            raise KernelError(f"{file.name}: compiled, but cannot be loaded: {error}") from error


def first_error(log: str) -> str | None:
    """The first error of a C++ compiler as "file:line: what", without folders."""
    placed = re.search(r"^(.*?):(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", log, re.MULTILINE)
    if placed:
        return f"{Path(placed[1]).name}:{placed[2]}: {placed[3].strip()}"
    return next((line.strip() for line in log.splitlines() if "error" in line), None)


class _Place(ctypes.Structure):
    """Where an address lies, as dladdr tells it (Dl_info)."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def _entry(library: ctypes.CDLL, name: str) -> Any:
    """The library's own function of that name; None where it has none.

    The loader goes on to the libraries it is linked with, and would find the C library's `read`.
    """
    try:
        function = library[name]
    except AttributeError:
        return None
    if sys.platform == "win32":  # its loader looks nowhere else
        return function
    place = _Place()
    ctypes.CDLL(None).dladdr(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(place))
    return function if place.file == os.fsencode(library._name) else None


def _use_threads(library: ctypes.CDLL) -> None:
    """Have it use as many threads as torch does. A library without OpenMP has nothing to set."""
    if hasattr(library, "omp_set_num_threads"):
        library.omp_set_num_threads(ctypes.c_int(torch.get_num_threads()))


def _argument(kernel: Kernel, index: int, arg: Any) -> Any:
    """An argument as ctypes passes it: the address of a tensor, a NumPy scalar as the C type of its dtype."""
    where = f"kernel {kernel.name}: args[{index}]"
    if isinstance(arg, numpy.generic):
        dtype: Any = arg.dtype
        try:
            return numpy.ctypeslib.as_ctypes_type(dtype)(arg.item())
        except NotImplementedError:
            raise KernelError(f"{where} is a {dtype}, which C++ has no type for") from None
    if not isinstance(arg, torch.Tensor):
        raise KernelError(f"{where} is a {type(arg).__name__}; it takes a tensor or a NumPy scalar")
    if not arg.is_contiguous():
        raise KernelError(f"{where} is a tensor that is not contiguous; a kernel sees its memory, not its strides")
    return ctypes.c_void_p(arg.data_ptr())
