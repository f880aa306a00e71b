"""Softmax of rows, exp(x - max) / Σ exp(x - max): how often each way of it touches an element, which of these accesses
reach DRAM, and the recurrence by which maximum and sum are carried along.

Ways and recurrence are those of M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax",
arXiv:1805.02867. Nothing here knows a tensor: a row is a sequence of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from math import exp, inf
from typing import Any, NamedTuple

ACCESSES: Mapping[str, int] = {"three-pass": 4, "online": 3, "cached": 2, "fused": 1}
"""Accesses to memory an element, by the way of it. Maximum, sum and result are three reads and a write; maximum and sum
together save a read, a row that is kept nearby saves two. Of the greatest few of the result, fused, nothing but the row
is read, and a few numbers are written."""

LARGEST_EXPONENT = 88.72
"""exp of more than this is above the largest float32, 3.4e38."""


def bytes(rows: int, v: int, itemsize: int) -> int:
    """Compulsory bytes: each element read once and written once."""
    return 2 * rows * v * itemsize


def top_bytes(rows: int, v: int, k: int, itemsize: int) -> int:
    """Compulsory bytes of the k greatest of each row and their places (8 bytes each): each element is read once."""
    return rows * (v * itemsize + k * (itemsize + 8))


def traffic(way: str, rows_in_flight: int, v: int, itemsize: int, cache: int | None) -> dict[str, Any]:
    """The accesses of a way an element, and how many of them reach DRAM, at least and at most.

    Between two reads of an element, its multiprocessor and the others read their own rows: `rows_in_flight` rows of v
    elements pass by the last-level `cache`. The first read and the write reach DRAM in any case. Without the figures
    that the size of the cache is needed for, where it is None.
    """
    accesses, nbytes = ACCESSES[way], rows_in_flight * v * itemsize
    found: dict[str, Any] = {"accesses": accesses, "bytes_in_flight": nbytes}
    if cache is None:
        return found
    once = min(accesses, ACCESSES["cached"])
    return found | {"dram_accesses": [once + (accesses - once) * share for share in missed(nbytes, cache)]}


def read_again(written: Mapping[str, Any], nbytes: int, cache: int | None) -> dict[str, Any]:
    """The traffic of a way whose result, of `nbytes` in all, is read by the next kernel: an access more."""
    found = dict(written) | {"accesses": written["accesses"] + 1}
    if cache is None:
        return found
    shares = missed(nbytes, cache)
    return found | {
        "dram_accesses": [before + share for before, share in zip(written["dram_accesses"], shares, strict=True)]
    }


def missed(nbytes: int, cache: int) -> tuple[float, float]:
    """The share of reads that a cache does not serve, at least and at most, where `nbytes` are read between two reads
    of the same, and up to as many written: none where all that fits. Where what is read does not fit alone, a cache
    that replaces its lines at random keeps cache/nbytes of it at most, and one that replaces the oldest keeps none."""
    return max(0.0, 1 - cache / nbytes), float(2 * nbytes > cache)


class Partial(NamedTuple):
    """Of some elements of a row: their maximum, and Σ exp(x - maximum). Between 1 and their number, unless there are
    none, or none above -inf."""

    maximum: float
    sum: float


NOTHING = Partial(-inf, 0.0)
"""Of no element."""


def merged(a: Partial, b: Partial) -> Partial:
    """Of the elements of both: each sum is brought to the common maximum. Associative and commutative, but for
    rounding; NOTHING changes nothing (arXiv:1805.02867, section 3.1)."""
    maximum = max(a.maximum, b.maximum)
    if maximum == -inf:
        return NOTHING
    return Partial(maximum, a.sum * exp(a.maximum - maximum) + b.sum * exp(b.maximum - maximum))


def carried(row: Iterable[float]) -> Partial:
    """Of a row, element by element: an element alone is its own maximum, with the sum 1."""
    return reduce(merged, (Partial(x, 1.0) for x in row), NOTHING)


def overflows(offset: float) -> bool:
    """Whether float32 cannot hold the exponentials of numbers around `offset`, if their maximum is not taken off."""
    return offset > LARGEST_EXPONENT
