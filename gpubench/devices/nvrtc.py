"""What NVRTC is given for a kernel, and what it answers: options, text, resources, errors. No library is loaded here.

The device compiles through CuPy (`gpubench.devices.kernels`), `make kernels` through NVIDIA's own bindings, without a
device; both take their options from here, so that what is checked is what is measured.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpubench.errors import KernelError
from gpubench.workload import Define

OPTIONS = ("--std=c++17", "-lineinfo")
CUPY_OPTIONS = ("-ftz=true", "--device-as-default-execution-space")
"""What CuPy adds of its own accord: float32 denormals are flushed to zero."""
VERBOSE = "--ptxas-options=-v"
"""Makes the assembler report what each entry uses."""
HEADERS = "include"
"""The folder of shared device code (.cuh) beside the suites."""


@dataclass(frozen=True)
class Program:
    """A .cu file as the compiler gets it. Equal programs compile to the same code."""

    name: str
    text: str
    options: tuple[str, ...]
    arch: str | None


def program(file: Path, defines: Mapping[str, Define], arch: str | None = None, options: Sequence[str] = ()) -> Program:
    """The program of a source file. Lines keep their numbers and the file its name, for errors and for profilers.

    The first line holds a hash of the shared headers: CuPy finds kernels it compiled before by the text alone.
    KernelError where the file cannot be read.
    """
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise KernelError(
            f"{file.name}: {error.strerror or error}", "a kernel's source lies beside its suite"
        ) from error
    folder = file.parent / HEADERS
    include = (f"-I{folder}",) if folder.is_dir() else ()
    return Program(
        file.name,
        f'// {_hash(folder)}\n#line 1 "{file.name}"\n{text}',
        (*OPTIONS, *include, *(f"-D{name}={value}" for name, value in defines.items()), *options),
        arch,
    )


def _hash(folder: Path) -> str:
    """Of the names and texts of the shared headers."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.cuh")):
        digest.update(f"{file.relative_to(folder)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Resources:
    """What one entry uses: registers a thread, static shared memory a block, and in local memory, a thread, its stack
    frame and what it spills (stores and loads together); all in bytes."""

    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_bytes: int


def resources(log: str) -> dict[str, Resources]:
    """Of each entry, from the log of a compilation with VERBOSE."""
    found = {}
    for section in log.split("Compiling entry function ")[1:]:
        entry = re.match(r"'([^']+)'", section)
        frame = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", section)
        registers = re.search(r"Used (\d+) registers", section)
        if entry and frame and registers:
            shared = re.search(r"(\d+) bytes smem", section)
            stack, stores, loads = map(int, frame.groups())
            found[entry[1]] = Resources(int(registers[1]), int(shared[1]) if shared else 0, stack, stores + loads)
    return found


def first_error(log: str) -> str:
    """The first error of a log as "file:line: what"; without a place where the compiler names none."""
    placed = re.search(r"^(.*)\((\d+)\): (?:catastrophic )?error(?: #\S+)?: (.*)$", log, re.MULTILINE)
    if placed:
        return f"{Path(placed[1]).name}:{placed[2]}: {placed[3].strip()}"
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[0] if lines else "it says nothing")
