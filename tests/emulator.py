"""Runs the text of a raw kernel without a GPU: compiled as C++ against emulator.h, one thread after the other.

It shows what a kernel computes and which accesses it makes, never how fast. Kernels in PTX are beyond it, but for the
PTX of suites/include, which emulator_machine.h and its like stand in for.
"""

from __future__ import annotations

import atexit
import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gpubench.devices.analogue import COMPILERS
from gpubench.workload import Kernel

HEADERS = (
    "emulator.h",
    *(f"emulator_{part}.h" for part in ("machine", "async", "tensor", "narrow", "halves")),
)
COMPILER = next(filter(None, map(shutil.which, COMPILERS)), None)


@dataclass(frozen=True)
class Counts:
    """What a launch did, as far as the kernel says so: bytes of hinted accesses, and fused multiply-adds."""

    loaded: int
    stored: int
    fused: int


def emulate(kernel: Kernel, folder: Path, entries: tuple[str, ...]) -> Counts:
    """Launch a kernel of a file in `folder`, which has these entries. Tensors are written in place."""
    assert kernel.grid[1:] == kernel.block[1:] == (1, 1)
    library = _built(kernel, folder, entries)
    values = [_value(arg) for arg in kernel.args]
    given = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    counts = {name: ctypes.c_longlong.in_dll(library, name) for name in ("loaded", "stored", "fused")}
    for count in counts.values():
        count.value = 0
    library[f"emulate_{kernel.name}"](kernel.grid[0], kernel.block[0], given)
    return Counts(**{name: count.value for name, count in counts.items()})


def build(kernels: Iterable[tuple[Kernel, Path, tuple[str, ...]]]) -> None:
    """Compile what launches of these will need, on all cores: a launch alone compiles one after the other."""
    _header()
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda each: _built(*each), kernels))


def _built(kernel: Kernel, folder: Path, entries: tuple[str, ...]) -> ctypes.CDLL:
    assert kernel.source is not None
    return _library(folder / kernel.source, tuple(kernel.defines.items()), entries)


@cache
def _library(source: Path, defines: tuple[tuple[str, Any], ...], entries: tuple[str, ...]) -> ctypes.CDLL:
    emulated = "".join(f"EMULATE({entry})\n" for entry in entries)
    with tempfile.TemporaryDirectory() as folder:
        text, made = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
        text.write_text(f'#include "{_header()}"\n#include "{source}"\n{emulated}')
        macros = [f"-D{name}={value}" for name, value in defines]
        _compile(text, made, "-shared", f"-I{source.parent / 'include'}", *macros)
        return ctypes.CDLL(str(made))


@cache
def _header() -> Path:
    """The headers of the emulator in one, and beside it what the compiler has made of them: they take most of the time
    of a compilation. GCC reads them again wherever a macro of a kernel bears on them."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    header = folder / "emulated.h"
    header.write_text("".join(f'#include "{Path(__file__).with_name(name)}"\n' for name in HEADERS))
    _compile(header, header.with_suffix(".h.gch"), "-xc++-header")
    return header


def _compile(text: Path, made: Path, *options: str) -> None:
    assert COMPILER is not None
    subprocess.run([COMPILER, "-std=c++17", "-O1", "-w", "-fPIC", *options, text, "-o", made], check=True)


def _value(arg: Any) -> Any:
    if isinstance(arg, np.generic):
        return np.ctypeslib.as_ctypes_type(arg.dtype)(arg.item())
    assert arg.is_contiguous()
    return ctypes.c_void_p(arg.data_ptr())
