"""The memory hierarchy of a device: which level a working set lives in, what an access costs there, and how many bytes
must be in flight to keep the memory busy.

Sizes are in bytes, latencies in cycles of a multiprocessor's clock. `facts` are the facts of a device as a run file
holds them. What is not known of a compute capability is left out, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpubench.model import catalog

L1_BYTES: Mapping[str, int] = {
    "7.0": 128 << 10, "7.5": 96 << 10, "8.0": 192 << 10, "8.6": 128 << 10, "8.9": 128 << 10, "9.0": 256 << 10,
    "10.0": 256 << 10, "12.0": 128 << 10,
}  # fmt: skip
"""The cache that L1 and shared memory of a multiprocessor divide between them: CUDA C++ Programming Guide, "Compute
Capabilities", Unified Data Cache."""

BEYOND = 4
"""A set of this many times a cache is hardly served by it: at random, a quarter of the accesses at most still hit."""


@dataclass(frozen=True)
class Latency:
    """What published pointer chases found of one access, from their least to their most, in cycles."""

    least: float
    most: float
    source: str


_LUO = "Luo et al., arXiv:2402.13499 and arXiv:2501.12084"
_RRZE = "RRZE-HPC/gpu-benches, gpu-latency"

LATENCIES: Mapping[str, Mapping[str, Latency]] = {
    "8.0": {
        "shared": Latency(23, 29, f"Abdelkhalik et al., arXiv:2208.11174; {_LUO}"),
        "L1": Latency(33, 38, f"{_LUO}; {_RRZE}"),
        "L2": Latency(200, 262, f"{_LUO}; {_RRZE}"),
        "far L2": Latency(357, 400, f"{_LUO}; {_RRZE}"),
        "DRAM": Latency(466, 623, f"{_LUO}; {_RRZE}"),
    },
    "9.0": {
        "shared": Latency(29, 29, _LUO),
        "L1": Latency(32, 41, f"{_LUO}; {_RRZE}"),
        "L2": Latency(258, 281, f"{_LUO}; {_RRZE}"),
        "far L2": Latency(410, 520, f"{_LUO}; {_RRZE}"),
        "DRAM": Latency(478, 744, f"{_LUO}; {_RRZE}"),
    },
}
"""By compute capability and level. "L2" is the half of the cache beside the multiprocessor, where it has two halves."""


def capacities(facts: Mapping[str, Any], l1: bool = True) -> dict[str, int]:
    """The caches of a device, nearest first: a GPU's "L1" of one multiprocessor (where `l1`) and "L2"; a CPU's own, of
    one instance. Without those whose size is not known."""
    if facts.get("kind") == "cpu":
        return {name: size["bytes"] for name, size in (facts.get("caches") or {}).items()}
    sizes = {"L1": L1_BYTES.get(str(facts.get("compute_capability"))) if l1 else None}
    sizes["L2"] = facts.get("last_level_cache_bytes")
    return {name: size for name, size in sizes.items() if size}


def level(nbytes: int, caches: Mapping[str, int]) -> str:
    """Where a working set lives: the nearest cache that holds it, "DRAM" where none does. A set that is larger than the
    cache before that one, but not BEYOND times as large, lives in both: "L1 and L2"."""
    before = None
    for name, size in caches.items():
        if nbytes <= size:
            break
        before = name
    else:
        name = "DRAM"
    return f"{before} and {name}" if before is not None and nbytes < BEYOND * caches[before] else name


def chase(nbytes: int, facts: Mapping[str, Any], l1: bool = True) -> dict[str, Any]:
    """What a chase through a set of `nbytes` is to find: its level, the sizes the levels end at, and the published
    latency in cycles where the set lives in one level alone and the compute capability is known."""
    caches = capacities(facts, l1)
    where = level(nbytes, caches)
    return {"level": where, "capacities": caches, **latency(where, facts)}


def latency(where: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The published latency of a level as JSON values; empty where it is not known."""
    known = LATENCIES.get(str(facts.get("compute_capability")), {}).get(where)
    return {} if known is None else {"cycles": [known.least, known.most], "source": known.source}


def little(nbytes: int, facts: Mapping[str, Any], moved: int = 1) -> dict[str, Any]:
    """The bandwidth of DRAM with `nbytes` of loads in flight on each multiprocessor, in B/s: bytes in flight over
    latency (J. Little: "A proof for the queuing formula L = λW", Operations Research 9(3), 1961), at most what the
    memory's pins carry. `moved` bytes are counted for each that is loaded: 2 where it is stored too. `knee_bytes` in
    flight a multiprocessor are where the two meet. Without the figures that are not known."""
    found: dict[str, Any] = {"bytes_in_flight": nbytes}
    known = LATENCIES.get(str(facts.get("compute_capability")), {}).get("DRAM")
    count, sm_mhz, pins = facts.get("multiprocessors"), facts.get("sm_mhz_max"), catalog.memory_bound(facts)
    if known is None or not count or not sm_mhz or pins is None:
        return found
    seconds = known.least / (sm_mhz * 1e6)
    return found | {
        "bandwidth": min(moved * nbytes * count / seconds, pins.value),
        "knee_bytes": pins.value * seconds / count / moved,
        "source": f"Little's law with {known.least:g} cycles at {sm_mhz:g} MHz ({known.source}); {pins.source}",
    }
