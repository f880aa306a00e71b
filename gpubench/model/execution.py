"""How a multiprocessor executes: warps and their fill, what its units do a clock, how much parallelism hides a latency.

Rates are per clock and multiprocessor. `facts` are the facts of a device as a run file holds them; what is not known of
its compute capability is left out, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

from gpubench.model import catalog

WARP = 32
"""Threads of a warp, on every GPU of NVIDIA's (CUDA C++ Programming Guide, "SIMT Architecture")."""
FMA_CYCLES = 4
"""From a multiply-add to one that needs its result, from compute capability 7.0 on: CUDA C++ Programming Guide,
"Multiprocessor Level"; Jia et al., arXiv:1804.06826."""
SPECIAL_LANES = 16
"""Results of the special function units (reciprocal, its square root, exp2, log2, sine, cosine), compute
capabilities 7.0 to 12.0: CUDA C++ Best Practices Guide, "Arithmetic Instructions"."""
SPECIAL = ("exp2", "rsqrt")
"""What those units are measured by."""

MATRIX: Mapping[str, frozenset[str]] = {
    "mma.sync": frozenset({"7.0", "7.5", "8.0", "8.6", "8.9", "12.0"}),
    "wgmma": frozenset({"9.0"}),
}
"""The compute capabilities whose matrix units reach their full rate by an instruction (PTX ISA); by any other they give
at most that."""


def fill(threads: int, warp: int = WARP) -> dict[str, Any]:
    """What a block of `threads` costs where instructions are issued without a pause: its warps, started or full, and
    which share of their lanes works."""
    warps = ceil(threads / warp)
    return {"warps": warps, "fill": threads / (warp * warps)}


def lanes(unit: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Operations of a unit ("fp32" and "int32" multiply-adds, "exp2", "rsqrt") a clock: `lanes` and their source. Empty
    where not known."""
    known = catalog.architectures().get(str(facts.get("compute_capability")))
    if known is None:
        return {}
    if unit in SPECIAL:
        capability = float(str(facts["compute_capability"]))
        source = "NVIDIA, CUDA C++ Best Practices Guide, 'Arithmetic Instructions'"
        return {"lanes": SPECIAL_LANES, "source": source} if 7 <= capability <= 12 else {}
    return {"lanes": known.rates[unit] // 2, "source": known.source} if unit in known.rates else {}


def matrix(instruction: str, dtype: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The full rate of the matrix units in a dtype, in FLOP a clock, and whether the instruction reaches it ("equal")
    or not ("at most"). Empty where not known, and where products of that compute capability differ."""
    capability = str(facts.get("compute_capability"))
    known, chip = catalog.architectures().get(capability), catalog.lookup(facts)
    if known is None:
        return {}
    rates = known.rates if chip is None else chip.rates
    unit = catalog.unit_of(dtype, rates)
    if unit is None or not unit.startswith("tensor_") or (chip is None and unit in known.varies):
        return {}
    reaches = capability in MATRIX[instruction]
    return {"flop_per_clock": rates[unit], "bound": "equal" if reaches else "at most", "source": known.source}


def hiding(warps: int, ilp: int, facts: Mapping[str, Any]) -> dict[str, Any]:
    """fp32 multiply-adds a clock of `warps` warps with `ilp` independent chains each, as `lanes`: Little's law with a
    latency of FMA_CYCLES, at most what the units do. `enough` warps × chains keep them busy. Empty where not known."""
    most = lanes("fp32", facts)
    if not most or float(str(facts["compute_capability"])) < 7:
        return {}
    return {
        "lanes": min(most["lanes"], warps * ilp * WARP / FMA_CYCLES),
        "enough": FMA_CYCLES * most["lanes"] / WARP,
        "source": f"Little's law with {FMA_CYCLES} cycles; {most['source']}",
    }
