"""The catalogue: what the makers of GPUs promise, and what the silicon can do at a clock. The data is gpus.yaml.

Two peaks, never mixed. A *datasheet* peak belongs to a product and to the clock each of its units is rated at. A
*silicon* peak is multiprocessors × operations per clock × a clock; it needs the compute capability alone. All are
dense. Rates are in FLOP/s (an FMA is 2; integer operations count alike), bandwidths in B/s. What is not known is None:
a GPU that is not in the catalogue has no datasheet, and no other GPU's.

`facts` are the facts of a device as a run file holds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from gpubench.node import Node

FILE = Path(__file__).with_name("gpus.yaml")

UNITS: Mapping[str, tuple[str, ...]] = {
    "float64": ("tensor_fp64", "fp64"),
    "float32": ("fp32",),
    "tf32": ("tensor_tf32",),
    "float16": ("tensor_fp16", "fp16"),
    "bfloat16": ("tensor_bf16", "bf16"),
    "float8_e4m3": ("tensor_fp8",),
    "float8_e4m3fn": ("tensor_fp8",),
    "float8_e5m2": ("tensor_fp8",),
    "float4_e2m1fn_x2": ("tensor_fp4",),
    "int8": ("tensor_int8",),
    "int32": ("int32",),
}
"""The units that compute in a dtype: matrix units first, then CUDA cores."""

LEAST_MEMORY, MOST_MEMORY = 0.85, 1.02
"""What a device reports of its memory, over the size on its box: ECC and the driver take some. A slice has less."""
TRANSFERS = 2
"""Transfers per cycle of the memory clock, in the way NVIDIA's driver counts it for every kind of memory."""

SHARED_BYTES = 128
"""What the shared memory of a multiprocessor gives a clock, since Maxwell: 32 banks of 4 bytes (CUDA C++ Programming
Guide)."""


@dataclass(frozen=True)
class Figure:
    """A number, its unit (FLOP/s, B/s) and where it is from."""

    value: float
    unit: Literal["FLOP/s", "B/s"]
    source: str


@dataclass(frozen=True)
class Architecture:
    """A compute capability. `rates` are the most operations per clock and multiprocessor of each unit; products may do
    half of those in `varies`. `sparse` is the factor that 2:4 sparsity may add, 1 where the chip has none."""

    name: str
    rates: Mapping[str, int]
    varies: frozenset[str]
    sparse: int
    source: str


@dataclass(frozen=True)
class Chip:
    """A product: what its maker says. Of a TPU only a few fields are known; nothing maps to one.

    `peaks` are FLOP/s by unit, `clocks` the MHz a unit is rated at (`cores`, `tensor` or one unit), `rates` operations
    per clock and multiprocessor. `sparse` is the factor 2:4 sparsity may add; no figure here has it.
    """

    name: str
    kind: Literal["gpu", "tpu"]
    year: int
    peaks: Mapping[str, float]
    bandwidth: float
    memory_gib: tuple[float, ...]
    source: str
    devices: tuple[str, ...] = ()
    architecture: str | None = None
    capability: str | None = None
    multiprocessors: int | None = None
    rates: Mapping[str, int] = field(default_factory=dict)
    clocks: Mapping[str, float] = field(default_factory=dict)
    memory_kind: str | None = None
    memory_mhz: float | None = None
    memory_bits: int | None = None
    l2_mib: float | None = None
    power_w: float | None = None
    die: str | None = None
    process: str | None = None
    transistors: float | None = None
    sparse: int = 1

    def clock_mhz(self, unit: str) -> float | None:
        """The clock that the datasheet peak of a unit is for; None where the maker does not say."""
        return self.clocks.get(unit, self.clocks.get("tensor" if unit.startswith("tensor_") else "cores"))

    def datasheet(self, what: str, matrix: bool = True) -> Figure | None:
        """The datasheet's figure for a dtype or for "DRAM"; None where it has none."""
        if what == "DRAM":
            return Figure(self.bandwidth, "B/s", self.source)
        unit = unit_of(what, self.rates or self.peaks, matrix)
        peak = None if unit is None else self.peaks.get(unit)
        return None if peak is None else Figure(peak, "FLOP/s", self.source)


def unit_of(dtype: str, rates: Mapping[str, float], matrix: bool = True) -> str | None:
    """The unit that computes in a dtype on a chip with these rates: a matrix unit if it has one, else (or without
    `matrix`) the CUDA cores; None where there is none."""
    units = [unit for unit in UNITS.get(dtype, ()) if unit in rates and (matrix or not unit.startswith("tensor_"))]
    return units[0] if units else None


def lookup(facts: Mapping[str, Any]) -> Chip | None:
    """The product a device is; None for one that is not in the catalogue and for a slice (MIG, vGPU) of one that is.

    The name must be one of the product's own, whole; what else is known of the device must fit.
    """
    chip = _by_device().get(str(facts.get("name")))
    if chip is None or facts.get("mig"):
        return None
    for name, wanted in (("compute_capability", chip.capability), ("multiprocessors", chip.multiprocessors)):
        if facts.get(name) not in (None, wanted):
            return None
    memory = facts.get("memory_bytes")
    shares = [memory / (gib * 2**30) for gib in chip.memory_gib] if memory else []
    return chip if not shares or any(LEAST_MEMORY <= share <= MOST_MEMORY for share in shares) else None


def absence(facts: Mapping[str, Any]) -> str | None:
    """Why a GPU has no datasheet here, in a few words; None where it has one or is no GPU."""
    if facts.get("kind") != "cuda" or lookup(facts) is not None:
        return None
    if facts.get("mig"):
        return "a slice of a GPU (MIG) has no datasheet"
    name = facts.get("name") or "a GPU without a name"
    if name in _by_device():
        return f"this {name} has not the multiprocessors or the memory of that product"
    return f"{name} is not in the catalogue"


def rates(capability: str | None) -> Mapping[str, int]:
    """The most operations per clock and multiprocessor of each unit of a compute capability; empty where not known."""
    known = architectures().get(capability or "")
    return {} if known is None else known.rates


def silicon(facts: Mapping[str, Any], dtype: str, sm_mhz: float, matrix: bool = True) -> Figure | None:
    """What the device's multiprocessors can do in a dtype at a clock.

    None for a compute capability that is not known, and for a unit whose rate depends on a product that is not.
    """
    known = architectures().get(str(facts.get("compute_capability")))
    if known is None:
        return None
    chip = lookup(facts)
    have = known.rates if chip is None else chip.rates
    unit = unit_of(dtype, have, matrix)
    if unit is None or (chip is None and unit in known.varies):
        return None
    return _at_clock(facts, have[unit], sm_mhz)


def compute_bound(facts: Mapping[str, Any], dtype: str) -> Figure | None:
    """What no kernel can exceed in a dtype: the fastest rate of the architecture at the highest clock of the device."""
    have, sm_mhz = rates(facts.get("compute_capability")), facts.get("sm_mhz_max")
    able = [have[unit] for unit in UNITS.get(dtype, ()) if unit in have]
    return _at_clock(facts, max(able), sm_mhz) if able and sm_mhz else None


def memory_bound(facts: Mapping[str, Any]) -> Figure | None:
    """What the memory's pins can carry at the highest memory clock, from the clock and the bus the driver reports."""
    mhz, bits = facts.get("memory_mhz_max"), facts.get("memory_bus_bits")
    if not mhz or not bits:
        return None
    return Figure(TRANSFERS * mhz * 1e6 * bits / 8, "B/s", f"{bits} bit × {mhz:g} MHz × {TRANSFERS}")


def shared_memory(facts: Mapping[str, Any], sm_mhz: float) -> Figure | None:
    """What the shared memories of a device's multiprocessors carry at a clock; None for one older than Maxwell."""
    count, capability = facts.get("multiprocessors"), str(facts.get("compute_capability"))
    if not count or sm_mhz <= 0 or capability not in architectures() or float(capability) < 5:
        return None
    source = f"{count} multiprocessors × {SHARED_BYTES} B a clock × {sm_mhz:g} MHz"
    return Figure(count * SHARED_BYTES * sm_mhz * 1e6, "B/s", source)


def _at_clock(facts: Mapping[str, Any], rate: int, sm_mhz: float) -> Figure | None:
    count = facts.get("multiprocessors")
    if not count or sm_mhz <= 0:
        return None
    source = f"{count} multiprocessors × {rate} FLOP a clock × {sm_mhz:g} MHz"
    return Figure(count * rate * sm_mhz * 1e6, "FLOP/s", source)


# The file.


@dataclass(frozen=True)
class _Catalog:
    architectures: Mapping[str, Architecture]
    chips: tuple[Chip, ...]


def architectures() -> Mapping[str, Architecture]:
    """All compute capabilities that are known, by their number: "9.0"."""
    return _read().architectures


def chips() -> Sequence[Chip]:
    """All products, in the order of the file."""
    return _read().chips


@cache
def _by_device() -> Mapping[str, Chip]:
    return {device: chip for chip in chips() for device in chip.devices}


@cache
def _read() -> _Catalog:
    from gpubench import yamlfile

    root = yamlfile.load(FILE).mapping("a mapping", ("sources", "architectures", "dies", "chips", "tpus"))
    sources = _texts(root["sources"])
    known = {
        capability: _architecture(node, sources)
        for capability, node in root["architectures"].mapping("compute capabilities").items()
    }
    dies = root["dies"].mapping("dies")
    gpus = [_gpu(name, node, known, dies, sources) for name, node in root["chips"].mapping("chips").items()]
    tpus = [_tpu(name, node, sources) for name, node in root["tpus"].mapping("TPUs").items()]
    return _Catalog(known, (*gpus, *tpus))


def _architecture(node: Node, sources: Mapping[str, str]) -> Architecture:
    fields = node.mapping("an architecture", ("name", "rates", "varies", "sparse", "source"))
    return Architecture(
        _text(fields["name"]),
        _integers(fields["rates"]),
        frozenset(map(_text, fields["varies"].items())) if "varies" in fields else frozenset(),
        int(_number(fields["sparse"])) if "sparse" in fields else 1,
        sources[_text(fields["source"])],
    )


def _gpu(
    name: str,
    node: Node,
    known: Mapping[str, Architecture],
    dies: Mapping[str, Node],
    sources: Mapping[str, str],
) -> Chip:
    fields = node.mapping("a GPU", ("devices", "part", "memory", "clock", "rates", "tera", "source"))
    part = fields["part"].mapping("a part", ("die", "multiprocessors", "year", "power_w", "l2_mib"))
    memory = fields["memory"].mapping("a memory", ("gib", "kind", "gb_s", "mhz", "bits"))
    die = dies[_text(part["die"])].mapping("a die", ("capability", "process", "transistors", "multiprocessors"))
    capability = _text(die["capability"])
    architecture = known[capability]
    return Chip(
        name,
        "gpu",
        int(_number(part["year"])),
        {unit: tera * 1e12 for unit, tera in _numbers(fields["tera"]).items()},
        _number(memory["gb_s"]) * 1e9,
        tuple(map(_number, memory["gib"].items())),
        sources[_text(fields["source"])],
        devices=tuple(map(_text, fields["devices"].items())),
        architecture=architecture.name,
        capability=capability,
        multiprocessors=int(_number(part["multiprocessors"])),
        rates={**architecture.rates, **(_integers(fields["rates"]) if "rates" in fields else {})},
        clocks=_numbers(fields["clock"]) if "clock" in fields else {},
        memory_kind=_text(memory["kind"]),
        memory_mhz=_number(memory["mhz"]) if "mhz" in memory else None,
        memory_bits=int(_number(memory["bits"])) if "bits" in memory else None,
        l2_mib=_number(part["l2_mib"]) if "l2_mib" in part else None,
        power_w=_number(part["power_w"]),
        die=_text(part["die"]),
        process=_text(die["process"]),
        transistors=_number(die["transistors"]) * 1e9,
        sparse=architecture.sparse,
    )


def _tpu(name: str, node: Node, sources: Mapping[str, str]) -> Chip:
    fields = node.mapping("a TPU", ("year", "process", "power_w", "gib", "gb_s", "tera", "source"))
    return Chip(
        name,
        "tpu",
        int(_number(fields["year"])),
        {unit: tera * 1e12 for unit, tera in _numbers(fields["tera"]).items()},
        _number(fields["gb_s"]) * 1e9,
        (_number(fields["gib"]),),
        sources[_text(fields["source"])],
        power_w=_number(fields["power_w"]) if "power_w" in fields else None,
        process=_text(fields["process"]) if "process" in fields else None,
    )


def _text(node: Node) -> str:
    return node.scalar("a text")


def _number(node: Node) -> float:
    return float(node.scalar("a number"))


def _texts(node: Node) -> dict[str, str]:
    return {name: _text(value) for name, value in node.mapping("texts").items()}


def _numbers(node: Node) -> dict[str, float]:
    return {name: _number(value) for name, value in node.mapping("numbers").items()}


def _integers(node: Node) -> dict[str, int]:
    return {name: int(value) for name, value in _numbers(node).items()}
