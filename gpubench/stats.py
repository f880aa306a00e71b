"""Pure functions on numbers: medians, order statistics, and how far a median can be trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from gpubench.result import Samples, Summary

CONFIDENCE = 0.95


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of an ascending sequence lies, linear between neighbours.

    Same rule as numpy's default: Hyndman and Fan (1996), definition 7. ValueError when empty.
    """
    if not ordered:
        raise ValueError("percentile of nothing")
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


@lru_cache(maxsize=1024)
def median_ranks(n: int, confidence: float = CONFIDENCE) -> tuple[int, int] | None:
    """Ranks (from 0) of the order statistics that bound the median of n independent samples, symmetric and exact.

    The number of samples below the median is binomial(n, 1/2), whatever the distribution; the interval between the
    order statistics r and n-1-r covers it with probability 1 - 2 P(B ≤ r) (Conover, Practical Nonparametric
    Statistics, 3.2). None where even the extremes cover less than `confidence` (n < 6 at 95 %).
    """
    total = 1 << n
    allowed = (1 - confidence) / 2
    rank = -1
    tail = ways = 1  # ways to have `rank + 1` samples below the median, and at most that many
    while rank + 1 < n // 2 and tail / total <= allowed:
        rank += 1
        ways = ways * (n - rank) // (rank + 1)
        tail += ways
    return None if rank < 0 else (rank, n - 1 - rank)


def median_interval(ordered: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """The interval that holds the median of an ascending sequence, or None where there are too few samples."""
    ranks = median_ranks(len(ordered), confidence)
    return None if ranks is None else (ordered[ranks[0]], ordered[ranks[1]])


def relative_half_width(values: Sequence[float], tick: float) -> float | None:
    """Half the median's interval over the median, with the interval never narrower than one tick of the timer.

    `tick` is in the unit of the values. None where there are too few samples or the median is not above zero.
    """
    ordered = sorted(values)
    interval = median_interval(ordered)
    if interval is None:
        return None
    middle = percentile(ordered, 0.5)
    if middle <= 0:
        return None
    return max((interval[1] - interval[0]) / 2, tick / 2) / middle


def per_call(samples: Samples) -> list[float]:
    """The time of one call in each sample, in ns."""
    return [ns / launches for ns, launches in zip(samples.gpu_ns, samples.launches, strict=True)]


def summarize(values: Sequence[float]) -> Summary:
    """The summary of times in ns, rounded to whole ns. ValueError when empty."""
    ordered = sorted(values)
    interval = median_interval(ordered)
    return Summary(
        n=len(ordered),
        median_ns=round(percentile(ordered, 0.5)),
        min_ns=round(ordered[0]),
        p10_ns=round(percentile(ordered, 0.1)),
        p90_ns=round(percentile(ordered, 0.9)),
        low_ns=None if interval is None else round(interval[0]),
        high_ns=None if interval is None else round(interval[1]),
    )
