"""Recomputation: what a chain of elementwise operations and its gradient move, and what it costs to keep less.

A pass is one reading or one writing of all elements. A chain y = f(…f(x)) of L operations whose slope follows from
their result, such as a sigmoid's s·(1 - s), and the gradient of x from that of y, in passes:

| way | forward | backward | together |
|---|---|---|---|
| saved | 1 read, L written | L read, 1 written | 2L + 2 |
| recomputed | 1 read, 1 written | 2 read, 1 written | 5 |
| compiled | 1 read, 1 written | 3 read, 1 written | 6 |
| eager | L times 1 read, 1 written | L times 2 read, 1 written | 5L |
| checkpoint | L times 1 read, 1 written | those of eager, after its forward ones again | 7L |

`saved` and `recomputed` are one kernel each way; one stores every result and reads L - 1 of them and the gradient, the
other stores y alone and reads x and the gradient. `compiled` is the min-cut of torch's compiler, which takes x and y,
as both are there anyway. `eager` is a kernel for every operation and every gradient.
The last result need not be read to be known: one operation on the one before gives it. A chain of one has nothing
between: its gradient reads the result itself, and both ways are 5 passes. The lecture's count of 8 passes is L = 3,
`saved`; against it 5 are left, which is a cut to 5/8 and not by 5/8.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpubench.model import execution

WAYS = ("saved", "recomputed", "eager", "compiled", "checkpoint")


def moves(way: str, length: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Passes that read and that write of a chain of `length` operations: forward, then backward. KeyError for a way
    that is not in WAYS. One operation that was kept has nothing before it but x, so its gradient reads the result."""
    return {
        "saved": ((1, length), (max(length, 2), 1)),
        "recomputed": ((1, 1), (2, 1)),
        "compiled": ((1, 1), (3, 1)),
        "eager": ((length, length), (2 * length, length)),
        "checkpoint": ((length, length), (3 * length, 2 * length)),
    }[way]


def passes(way: str, length: int, allocate: bool = False) -> tuple[int, int]:
    """Passes forward and backward. With `allocate` a pass that writes counts twice, as where a cache first reads the
    lines that are written, which CPUs do and GPUs do not."""
    forward, backward = (read + (2 if allocate else 1) * write for read, write in moves(way, length))
    return forward, backward


def ratio(length: int, allocate: bool = False) -> float:
    """How many times the passes of the recomputed chain the saved one has: (2L + 2)/5 from two operations on, else 1.
    Where memory is the limit it bounds what recomputation gains: 8/5 of three, 12/7 with `allocate`."""
    return sum(passes("saved", length, allocate)) / sum(passes("recomputed", length, allocate))


def operations(way: str, length: int) -> tuple[int, int]:
    """Operations of the chain done for each element, forward and backward, by the two ways that are one kernel each;
    what slopes cost is not counted. A chain that was kept does its last operation again, unless that is its only one.
    """
    return length, {"saved": int(length > 1), "recomputed": length}[way]


def special_rate(facts: Mapping[str, Any]) -> float | None:
    """Results of all special function units in one second: multiprocessors × lanes × clock. None where not known."""
    known = execution.lanes("exp2", facts)
    units, mhz = facts.get("multiprocessors"), facts.get("sm_mhz_max")
    return known["lanes"] * units * mhz * 1e6 if known and units and mhz else None


def least_s(
    way: str, length: int, elements: int, itemsize: int, special: int, bandwidth: float, rate: float | None
) -> float:
    """The least seconds of both kernels: of each the longer of its bytes over `bandwidth` (B/s) and of its results of
    the special function units over their `rate` (1/s), of which an operation takes `special`; None: not a limit."""
    both = zip(passes(way, length), operations(way, length), strict=True)
    return sum(
        max(moved * elements * itemsize / bandwidth, special * done * elements / rate if rate else 0.0)
        for moved, done in both
    )


def figures(way: str, length: int, allocate: bool = False) -> dict[str, int]:
    """What is predicted of a way: its passes, forward and backward, and where writes read first, those with them."""
    forward, backward = passes(way, length)
    found = {"passes": forward + backward, "passes_forward": forward, "passes_backward": backward}
    return found | ({"passes_with_allocation": sum(passes(way, length, allocate))} if allocate else {})


def products(length: int, segment: int | None) -> int:
    """Products of a chain of `length` matrix products and its gradients, each of the same size: one forward and two
    backward for each. With segments of `segment`, of which only the ends are kept, all but the last of each are made
    again before its gradients: (4 - 1/segment)/3 of the products, 4/3 at most."""
    again = length - length // segment if segment else 0
    return 3 * length + again
