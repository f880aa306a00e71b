"""The banks of shared memory: how many turns a warp's access takes.

32 banks of 4 bytes, each of which serves one word a clock; lanes that ask for the same word share it (CUDA C++
Programming Guide, "Shared Memory", compute capability 5.0 on).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import gcd

BANKS = 32
WARP = 32


def turns(words: Iterable[int]) -> int:
    """Turns an access takes whose lanes ask for these words (32-bit ones, by number): the most different words of one
    bank."""
    return max(Counter(word % BANKS for word in set(words)).values(), default=0)


def ways(stride: int) -> int:
    """Turns of a warp whose lanes read words `stride` apart: gcd(stride, 32), and 1 where all read the same word."""
    return gcd(stride, BANKS) if stride else 1


def column_ways(pitch: int) -> int:
    """Turns of a warp that reads a column of a tile in shared memory with `pitch` words to a row."""
    return turns(lane * pitch for lane in range(WARP))
