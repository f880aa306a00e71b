"""Runs the text of a raw kernel without a GPU: compiled as C++ against emulator.h, one thread after the other.

It shows what a kernel computes and which accesses it makes, never how fast. Kernels in PTX are beyond it, but for the
PTX of suites/include, which emulator_machine.h and its like stand in for.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
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
OPTIONS = ("-std=c++17", "-O1", "-w", "-fPIC")
KEPT = Path(__file__).parents[1] / ".pytest_cache" / "emulator"
"""What was built, by a digest of all that went into it: for the other process of a run, and for the next run.
`make clean` removes it."""


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
    includes, macros = source.parent / "include", [f"-D{name}={value}" for name, value in defines]
    read = [text for path in (source, *sorted(includes.glob("*"))) for text in (path.name, path.read_text())]
    kept = KEPT / f"{_digest(_header().parent.name, *read, emulated, *macros)}.so"
    if not kept.exists():
        with tempfile.TemporaryDirectory() as folder:
            text, made = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
            text.write_text(f'#include "{_header()}"\n#include "{source}"\n{emulated}')
            _compile(text, made, "-shared", f"-I{includes}", *macros)
            _keep(made, kept)
    return ctypes.CDLL(str(kept))


@cache
def _header() -> Path:
    """The headers of the emulator in one, and beside it what the compiler has made of them: they take most of the time
    of a compilation. GCC reads them again wherever a macro of a kernel bears on them."""
    assert COMPILER is not None
    version = subprocess.run([COMPILER, "-v"], stderr=subprocess.PIPE, text=True, check=True).stderr
    paths = [Path(__file__).with_name(name) for name in HEADERS]
    texts = [text for path in paths for text in (str(path), path.read_text())]
    folder = KEPT / _digest(version, *OPTIONS, *texts)
    folder.mkdir(parents=True, exist_ok=True)
    header, made = folder / "emulated.h", folder / "emulated.h.gch"
    if not made.exists():
        with tempfile.TemporaryDirectory() as own:
            text = Path(own) / header.name
            text.write_text("".join(f'#include "{path}"\n' for path in paths))
            _compile(text, Path(own) / made.name, "-xc++-header")
            _keep(text, header)
            _keep(Path(own) / made.name, made)
    return header


def _digest(*parts: str) -> str:
    """Of all that a build is made from: the same digest, the same build."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _keep(made: Path, kept: Path) -> None:
    """Move a file to its place at once: another process may build the same, or already use it."""
    with tempfile.TemporaryDirectory(dir=KEPT) as folder:
        os.replace(shutil.copy(made, folder), kept)


def _compile(text: Path, made: Path, *options: str) -> None:
    assert COMPILER is not None
    subprocess.run([COMPILER, *OPTIONS, *options, text, "-o", made], check=True)


def _value(arg: Any) -> Any:
    if isinstance(arg, np.generic):
        return np.ctypeslib.as_ctypes_type(arg.dtype)(arg.item())
    assert arg.is_contiguous()
    return ctypes.c_void_p(arg.data_ptr())
