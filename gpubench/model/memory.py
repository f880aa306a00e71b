"""Memory accesses of a warp: how many 32-byte sectors one load or store of 32 lanes moves.

A request is one load or store instruction of one warp. The GPU serves it in sectors of 32 bytes: "the concurrent
accesses of the threads of a warp will coalesce into a number of transactions equal to the number of 32-byte
transactions necessary to service all of the threads of the warp" (CUDA C++ Best Practices Guide, "Coalesced Access to
Global Memory"). What the caches make of neighbouring requests is not in these figures.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import comb

SECTOR = 32
"""Bytes that move together between a multiprocessor, its caches and DRAM."""
LANES = 32
"""Lanes of a warp."""


def sectors(addresses: Iterable[int], itemsize: int) -> int:
    """The distinct sectors of one request whose lanes access `itemsize` bytes each at these addresses, in bytes."""
    return len({part for at in addresses for part in range(at // SECTOR, (at + itemsize - 1) // SECTOR + 1)})


def strided(stride: int, itemsize: int, offset: int = 0) -> int:
    """Sectors of a request whose lane i accesses element offset + i·stride: 4·min(stride, 8) for aligned floats."""
    return sectors((itemsize * (offset + lane * stride) for lane in range(LANES)), itemsize)


def rows(width: int, pitch: int, itemsize: int) -> float:
    """Sectors of a request on average, over a matrix with rows `pitch` elements apart of which each row's first `width`
    are accessed, in order, 32 elements a request. `width` divides 32 or is a multiple of it."""
    requests = max(width // LANES, 1) * SECTOR  # after 32 rows any pitch is back at the same place in a sector
    places = [divmod(request * LANES + lane, width) for request in range(requests) for lane in range(LANES)]
    at = [itemsize * (row * pitch + column) for row, column in places]
    return sum(sectors(at[first : first + LANES], itemsize) for first in range(0, len(at), LANES)) / requests


def gather(window: int, itemsize: int) -> float:
    """Sectors of a request on average, where the elements of each aligned window of `window` are permuted at random.

    32 consecutive elements of the output come from whole windows if these are no longer than that; else from 32 places
    of one window: of its S sectors, each of e elements, the expected number hit is the hypergeometric
    S·(1 - C(window - e, 32) / C(window, 32)). `window` divides 32 or is a multiple of it.
    """
    each = SECTOR // itemsize
    if window <= LANES:
        return float(-(-LANES * itemsize // SECTOR))
    return window / each * (1 - comb(window - each, LANES) / comb(window, LANES))


def useful_share(useful: float, *moved: float) -> float:
    """Bytes asked for by a warp's requests over the bytes of the sectors they move: `useful` over the sum of `moved`
    sectors. The rate of what is useful cannot exceed this share of what the memory gives."""
    return useful / (SECTOR * sum(moved))


def strided_share(stride: int, itemsize: int, section: int) -> float:
    """Useful bytes over bytes moved where one item in `stride` is wanted of a memory that moves whole sections of
    `section` bytes: 1 / min(stride, items of a section)."""
    return 1 / min(stride, section // itemsize)
