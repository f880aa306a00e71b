"""Compile every kernel the suites declare, for every architecture, on any machine: `make kernels`.

    scripts/kernels.py [FOLDER]     the suites of another folder
    scripts/kernels.py --variants   a line for each variant

Prints for each kernel and architecture, over its variants, the registers of a thread, the static shared memory of a
block and what is spilled to local memory. Fails where one does not compile, where one spills that SPILLS does not list,
and where a .cu file holds a kernel that no suite declares, as nobody would have compiled that one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from gpubench.devices.nvrtc import CUPY_OPTIONS, VERBOSE, Program, Resources, first_error, program, resources
from gpubench.discovery import Library, built_in
from gpubench.errors import GpubenchError

ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")
"""Of kernels that name none: A100, H100 and H200, B200, RTX 50."""
PROCESSES = 2
SPILLS: frozenset[str] = frozenset()
"""Kernels that may spill, as this program prints them: "bandwidth.cu read[UNROLL=16] sm_80"."""
DEVICES = Path(__file__).parents[1] / "gpubench/devices"
"""Where our own .cu files are; they have no variants."""


@dataclass(frozen=True)
class Variant:
    """One entry of one program; `name` is what is printed. None is every entry of the file."""

    entry: str | None
    name: str
    program: Program
    arch: str


def variants(folder: Path) -> Iterator[Variant]:
    """Everything that is to be compiled for the suites of a folder."""
    for suite in Library(folder).suites().values():
        for kernel in suite.kernels:
            for defines in kernel.variants():
                inside = ",".join(f"{name}={value}" for name, value in defines.items())
                made = program(suite.file.with_name(kernel.source), defines, kernel.arch, kernel.options)
                for arch in (kernel.arch,) if kernel.arch else ARCHITECTURES:
                    yield Variant(kernel.name, kernel.name + (f"[{inside}]" if inside else ""), made, arch)


def own(folder: Path) -> Iterator[Variant]:
    """Our own kernels, beside the code that launches them."""
    for file in sorted(folder.glob("*.cu")):
        for arch in ARCHITECTURES:
            yield Variant(None, "", program(file, {}), arch)


def compile_one(job: tuple[Program, str]) -> tuple[bool, str]:
    """Whether a program compiles for an architecture, and NVRTC's log."""
    from cuda.bindings import nvrtc
    from cuda.pathfinder import find_nvidia_header_directory

    source, arch = job
    headers = find_nvidia_header_directory("cudart")
    words = [*source.options, *CUPY_OPTIONS, VERBOSE, f"-arch={arch}", *([f"-I{headers}"] if headers else [])]
    failed, made = nvrtc.nvrtcCreateProgram(source.text.encode(), source.name.encode(), 0, [], [])
    if failed:
        raise RuntimeError(f"NVRTC: {failed}")
    (failed,) = nvrtc.nvrtcCompileProgram(made, len(words), [word.encode() for word in words])
    _, size = nvrtc.nvrtcGetProgramLogSize(made)
    text = b" " * size
    nvrtc.nvrtcGetProgramLog(made, text)
    nvrtc.nvrtcDestroyProgram(made)
    return not failed, text.rstrip(b"\0").decode(errors="replace")


Rows = dict[tuple[str, str], dict[str, dict[str, Resources]]]
"""By file and entry, then by architecture, then by the variant's name."""


def judge(chosen: list[Variant], logs: dict[tuple[Program, str], tuple[bool, str]]) -> tuple[Rows, list[str]]:
    """What each variant uses, and the complaints."""
    rows: Rows = {}
    complaints: dict[str, None] = {}  # in order, each once
    declared: dict[str, set[str]] = {}
    seen: dict[str, set[str]] = {}
    spilling = set()
    for variant in chosen:
        compiled, log = logs[variant.program, variant.arch]
        file = variant.program.name
        if not compiled:
            complaints[f"{first_error(log)} ({' '.join([variant.name, variant.arch]).strip()})"] = None
            continue
        found = resources(log)
        seen.setdefault(file, set()).update(found)
        wanted = [variant.entry] if variant.entry else sorted(found)
        declared.setdefault(file, set()).update(wanted)
        for entry in wanted:
            name = f"{file} {variant.name or entry}"
            if entry not in found:
                complaints[f'{file}: no extern "C" __global__ {entry} in it'] = None
                continue
            rows.setdefault((file, entry), {}).setdefault(variant.arch, {})[name] = found[entry]
            if found[entry].spill_bytes:
                spilling.add(f"{name} {variant.arch}")
    for name in sorted(spilling - SPILLS):
        complaints[f"{name}: spills registers to local memory (fewer values alive, or list it in SPILLS)"] = None
    for name in sorted(SPILLS - spilling):
        complaints[f"{name}: listed in SPILLS and does not spill"] = None
    for file, entries in seen.items():
        for entry in sorted(entries - declared[file]):
            complaints[f"{file}: {entry} is declared by no suite (suite.kernel)"] = None
    return rows, list(complaints)


def table(rows: Rows, each: bool) -> list[str]:
    """A row for each kernel, or for each of its variants; a column for each architecture."""
    columns = sorted({arch for row in rows.values() for arch in row}, key=lambda arch: (len(arch.rstrip("af")), arch))
    cells = [["registers, shared memory, spills", *columns]]
    for (file, entry), row in rows.items():
        names = list(dict.fromkeys(name for variants in row.values() for name in variants))
        groups = {name: [name] for name in names} if each else {f"{file} {entry}{_count(names)}": names}
        for title, members in groups.items():
            used = [
                [row[arch][name] for name in members if name in row[arch]] if arch in row else [] for arch in columns
            ]
            cells.append([title, *map(cell, used)])
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns) + 1)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def _count(names: list[str]) -> str:
    return f" ({len(names)} variants)" if len(names) > 1 else ""


def cell(used: list[Resources]) -> str:
    """Registers, and static shared memory and spilled bytes where there are some: the range over variants."""
    if not used:
        return ""
    registers = _range([one.registers for one in used])
    shared, spilled = [one.shared_bytes for one in used], [one.spill_bytes for one in used]
    return (
        registers
        + (f" {_range(shared)} B" if any(shared) else "")
        + (f" spill {_range(spilled)}" if any(spilled) else "")
    )


def _range(values: list[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low}–{high}"


def main() -> int:
    """Compile, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="the suites to compile; ours by default")
    parser.add_argument("--variants", action="store_true", help="a line for each variant")
    asked = parser.parse_args()
    folder = asked.folder or built_in()
    begun = time.monotonic()
    try:
        chosen = [*variants(folder), *(own(DEVICES) if asked.folder is None else ())]
    except GpubenchError as error:
        print(error, file=sys.stderr)
        return 1
    jobs = list(dict.fromkeys((variant.program, variant.arch) for variant in chosen))
    with ProcessPoolExecutor(min(PROCESSES, max(len(jobs), 1)), mp_context=get_context("spawn")) as pool:
        logs = dict(zip(jobs, pool.map(compile_one, jobs, chunksize=4), strict=True))
    rows, complaints = judge(chosen, logs)
    unused = {file.name for file in folder.glob("*.cu")} - {variant.program.name for variant in chosen}
    complaints += [f"{name}: no suite declares a kernel of it (suite.kernel)" for name in sorted(unused)]
    print("\n".join(table(rows, asked.variants)))
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print(f"{len(jobs)} compilations in {time.monotonic() - begun:.0f} s, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
