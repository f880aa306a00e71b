"""Facts of the CPU and its memory, read from the files of a Linux kernel; elsewhere what Python knows, the rest None.

Every function takes `root`, the folder that holds `proc` and `sys`, so that a test can plant another machine. A virtual
machine may report its host's caches whole: what is reported is what is recorded.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from gpubench.devices import cgroup

ROOT = Path("/")
CPUS = "sys/devices/system/cpu"

X86_ISA = (
    "sse4_2", "avx", "avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16",
    "amx_tile", "amx_int8", "amx_bf16", "amx_fp16",
)  # fmt: skip
ARM_ISA = {
    "asimd": "neon",
    "asimdhp": "fp16",
    "asimddp": "dotprod",
    "bf16": "bf16",
    "i8mm": "i8mm",
    "sve": "sve",
    "sve2": "sve2",
    "svebf16": "sve_bf16",
    "sme": "sme",
    "sme2": "sme2",
}
"""The kernel's names of the arithmetic a matrix product uses, and ours."""

ARM_CORES = {
    ("0x41", "0xd03"): "Arm Cortex-A53",
    ("0x41", "0xd08"): "Arm Cortex-A72",
    ("0x41", "0xd0b"): "Arm Cortex-A76",
    ("0x41", "0xd0c"): "Arm Neoverse-N1",
    ("0x41", "0xd40"): "Arm Neoverse-V1",
    ("0x41", "0xd42"): "Arm Cortex-A78AE",
    ("0x41", "0xd49"): "Arm Neoverse-N2",
    ("0x41", "0xd4f"): "Arm Neoverse-V2",
    ("0x41", "0xd84"): "Arm Neoverse-V3",
    ("0x41", "0xd8e"): "Arm Neoverse-N3",
    ("0xc0", "0xac3"): "Ampere-1",
}
"""(implementer, part) of MIDR_EL1 to a name, as in util-linux's lscpu-arm.c; a core not here keeps its numbers."""

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def cpu_facts(root: Path = ROOT, affinity: Collection[int] | None = None) -> dict[str, Any]:
    """What the CPU is, as far as this process may use it.

    `affinity` are the numbers of the logical CPUs this process may run on, asked of the system where it is None. Keys:
    `model`, `architecture`, `logical_cores_total`, `logical_cores` and `physical_cores` (those usable),
    `quota_cores` (CPU time a container may spend, in cores; None: no limit), `caches`, `last_level_cache_bytes` (all
    instances beside usable cores together), `isa`, `governor` and `hypervisor` (whether this is a virtual machine,
    where the CPU says so). What cannot be read is None.
    """
    cpus = _usable(affinity)
    first = next(iter(_processors(root)), {})
    caches = cache_facts(root, cpus)
    return {
        "model": _model(first),
        "architecture": platform.machine(),
        "logical_cores_total": _count(_read(root / CPUS / "online")) or os.cpu_count(),
        "logical_cores": len(cpus) or None,
        "physical_cores": _physical(root, cpus),
        "quota_cores": cgroup.cpu_quota(root),
        "caches": caches,
        "last_level_cache_bytes": _last_level(caches),
        "isa": _isa(first),
        "governor": _governor(root, cpus),
        "hypervisor": "hypervisor" in first["flags"].split() if "flags" in first else None,
    }


def cache_facts(root: Path, cpus: Collection[int]) -> dict[str, dict[str, int]] | None:
    """The caches beside the given logical CPUs: {"L1d": {"bytes": of one instance, "instances", "total_bytes"}, …}.

    Instances that differ in size (big and little cores) show the largest. None where the system does not tell.
    """
    sizes: dict[str, dict[str, int]] = {}
    for cpu in sorted(cpus):
        for index in sorted((root / CPUS / f"cpu{cpu}" / "cache").glob("index[0-9]*")):
            level, kind, size = _read(index / "level"), _read(index / "type"), _bytes(_read(index / "size"))
            if level is None or kind is None or not size or kind == "Instruction":
                continue
            name = f"L{level}d" if kind == "Data" and level == "1" else f"L{level}"
            sizes.setdefault(name, {})[_read(index / "shared_cpu_list") or str(cpu)] = size
    return {
        name: {"bytes": max(found.values()), "instances": len(found), "total_bytes": sum(found.values())}
        for name, found in sorted(sizes.items())
    } or None


def memory_facts(root: Path = ROOT) -> dict[str, int | None]:
    """`memory_bytes`, and `memory_available_bytes`: what can be had now without swapping. Both within the limits of a
    container; None if unknown."""
    limits = cgroup.memory_limits(root)
    total = _meminfo(root, "MemTotal") or _physical_memory(root)
    return {
        "memory_bytes": _least([total, *(limit for limit, _ in limits)]),
        "memory_available_bytes": _least(
            [_meminfo(root, "MemAvailable"), *(max(limit - used, 0) for limit, used in limits)]
        ),
    }


def pulse(root: Path = ROOT, affinity: Collection[int] | None = None) -> dict[str, Any]:
    """What changes from one moment to the next: `core_mhz`, the mean over usable cores of what the kernel says of their
    clocks, and `temperature_c`, the highest of the zones that are the processor's. None where the system does not tell,
    as in most virtual machines."""
    clocks = [_read(root / CPUS / f"cpu{cpu}" / "cpufreq/scaling_cur_freq") for cpu in _usable(affinity)]
    khz = [int(clock) for clock in clocks if clock is not None and clock.isdecimal()]
    zones = sorted((root / "sys/class/thermal").glob("thermal_zone*"))
    heat = [_read(zone / "temp") for zone in zones if _is_processor(_read(zone / "type"))]
    celsius = [int(value) / 1000 for value in heat if value is not None and value.isdecimal()]
    return {
        "core_mhz": round(sum(khz) / len(khz) / 1000, 1) if khz else None,
        "temperature_c": max(celsius, default=None),
    }


def _is_processor(zone: str | None) -> bool:
    """Whether a thermal zone of that type is the processor's: x86_pkg_temp, cpu-thermal, cpu0-thermal."""
    return zone == "x86_pkg_temp" or re.fullmatch(r"cpu\d*[-_]thermal", zone or "") is not None


def _meminfo(root: Path, name: str) -> int | None:
    found = re.search(rf"^{name}:\s+(\d+) kB$", _read(root / "proc/meminfo") or "", re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _least(values: list[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)


def _usable(affinity: Collection[int] | None) -> list[int]:
    if affinity is not None:
        return sorted(affinity)
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 0))


def _physical_memory(root: Path) -> int | None:
    """Where there is no /proc: the pages the C library reports of this very machine."""
    if root != ROOT or "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return None
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _processors(root: Path) -> Iterator[dict[str, str]]:
    """The blocks of /proc/cpuinfo, one per logical CPU."""
    for block in (_read(root / "proc/cpuinfo") or "").split("\n\n"):
        pairs = (line.split(":", 1) for line in block.splitlines() if ":" in line)
        fields = {key.strip(): value.strip() for key, value in pairs}
        if "processor" in fields:
            yield fields


def _number(fields: dict[str, str]) -> int | None:
    return int(fields["processor"]) if fields["processor"].isdecimal() else None


def _model(first: dict[str, str]) -> str | None:
    if "model name" in first:
        return re.sub(r"\s+", " ", first["model name"])
    if "CPU part" in first:
        core = (first.get("CPU implementer", "?").lower(), first["CPU part"].lower())
        return ARM_CORES.get(core, f"Arm core, implementer {core[0]} part {core[1]}")
    return platform.processor() or None


def _isa(first: dict[str, str]) -> list[str] | None:
    if "flags" in first:
        flags = set(first["flags"].split())
        return [name for name in X86_ISA if name in flags]
    if "Features" in first:
        features = set(first["Features"].split())
        return [ours for theirs, ours in ARM_ISA.items() if theirs in features]
    return None


def _physical(root: Path, cpus: Collection[int]) -> int | None:
    """Cores behind the given logical CPUs: those that share one are each other's siblings."""
    siblings = {_read(root / CPUS / f"cpu{cpu}" / "topology/thread_siblings_list") for cpu in cpus}
    if siblings and None not in siblings:
        return len(siblings)
    cores = {
        (fields.get("physical id"), fields["core id"])
        for fields in _processors(root)
        if _number(fields) in cpus and "core id" in fields
    }
    return len(cores) or None


def _governor(root: Path, cpus: Collection[int]) -> str | None:
    """The frequency governor; several, joined by commas, where cores differ; None where the kernel has no say."""
    found = {_read(root / CPUS / f"cpu{cpu}" / "cpufreq/scaling_governor") for cpu in cpus}
    return ", ".join(sorted(governor for governor in found if governor)) or None


def _last_level(caches: dict[str, dict[str, int]] | None) -> int | None:
    return caches[max(caches)]["total_bytes"] if caches else None


def _count(cpu_list: str | None) -> int:
    """How many CPUs a list such as 0-3,8 names."""
    count = 0
    for part in (cpu_list or "").split(","):
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if found:
            count += int(found[2] or found[1]) - int(found[1]) + 1
    return count


def _bytes(size: str | None) -> int | None:
    """32K, 48M: as sysfs writes sizes."""
    found = re.fullmatch(r"(\d+)([KMG]?)", size or "")
    return int(found[1]) * UNITS[found[2]] if found else None


def _read(path: Path) -> str | None:
    """The text of a file without the white space around it; None if it is empty or cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None
