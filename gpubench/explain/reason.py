"""What the rules of an explanation look at and what they say: a row with what lies over it, and a reason in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from gpubench.model.matmul_time import Product, Time
from gpubench.result import KernelSeen, Record

Kind = Literal[
    "no figure", "trap", "start-bound", "launch-bound", "product", "compute-bound", "bandwidth-bound", "L2-resident",
    "instruction-bound", "latency-bound", "neither roof", "kernels", "gaps", "more bytes", "idle lanes", "divergent",
    "uncoalesced", "bank conflicts", "one address", "misaligned", "waves", "may spill", "clock", "compiled",
    "recompiled", "fall-back", "own stopwatch", "in doubt",
]  # fmt: skip


@dataclass(frozen=True)
class Reason:
    """One reason: its kind, what is so in words, and what would change it (empty: nothing, or nothing known)."""

    kind: Kind
    words: str
    change: str = ""


class Roof(Protocol):
    """A rate that a row is held against, in B/s or FLOP/s: a measured ceiling, or a device's own figure."""

    @property
    def name(self) -> str:
        """What it is the rate of, in words that follow "90 % of"."""

    @property
    def value(self) -> float:
        """In B/s or FLOP/s."""


@dataclass(frozen=True)
class Rated:
    """A roof that nobody measured in this run: what pins and units can, by the device's facts."""

    name: str
    value: float


@dataclass(frozen=True)
class Case:
    """What a rule may look at: a row, the facts of its device, the roofs over it (of its arithmetic, of DRAM, of the
    memory it uses, of the L2) and, of a product, how its launch covers it and the time predicted."""

    record: Record
    device: Mapping[str, Any]
    compute: Roof | None = None
    memory: Roof | None = None
    level: Roof | None = None
    product: Product | None = None
    time: Time | None = None
    siblings: Sequence[Record] = ()
    """The other rows of the same benchmark with a figure."""
    l2: Roof | None = None

    @property
    def ns(self) -> float:
        """The row's median."""
        return float(self.record.summary.median_ns) if self.record.summary is not None else 0.0

    @property
    def longest(self) -> KernelSeen | None:
        """The kernel that takes most of the call; None where that is not known."""
        kernels = [kernel for kernel in self.record.kernels if kernel.kind == "kernel"]
        if len(kernels) == 1:
            return kernels[0]
        timed = [kernel for kernel in kernels if kernel.ns is not None]
        return max(timed, key=lambda kernel: kernel.ns or 0, default=None) if len(timed) == len(kernels) else None


Rule = Callable[[Case], Iterator[Reason]]
