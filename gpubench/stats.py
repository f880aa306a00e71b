"""Pure functions on numbers: medians, order statistics, and how far a median, or a ratio of two, can be trusted."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import lru_cache

from gpubench.result import Record, Samples, Summary

CONFIDENCE = 0.95
DRAWS = 1000
"""Resamples of a bootstrap: the 2.5 % limits are then known to about a half percent of probability."""


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


def tick_per_call(record: Record) -> float:
    """The timer's tick in ns of one call, shared out among the calls of a sample; 0 where it is not known."""
    launches = record.samples.launches
    return record.timer.tick_ns / launches[-1] if record.timer is not None and launches else 0.0


def trusted_median(record: Record) -> tuple[float, float, float] | None:
    """The median of one call in ns between the limits of its 95 % interval, which is never narrower than a tick of the
    timer. None where there are too few samples for an interval, or nothing above 0."""
    summary = record.summary
    if summary is None or summary.low_ns is None or summary.high_ns is None:
        return None
    middle, half = float(summary.median_ns), tick_per_call(record) / 2
    low, high = min(summary.low_ns, middle - half), max(summary.high_ns, middle + half)
    return (low, middle, high) if 0 < low <= middle <= high else None


def ratio_interval(base: tuple[float, float, float], new: tuple[float, float, float]) -> tuple[float, float, float]:
    """new/base between the limits of its interval, each side being an estimate above 0 between its own limits.

    The interval has the confidence that those of the sides have.
    The distances from each estimate to its own limits are combined as the square root of the sum of their squares, on
    the scale of logarithms and each side for itself (MOVER: Zou and Donner, Construction of confidence intervals about
    effect measures, Statistics in Medicine 27, 2008); so swapping the sides gives the reciprocal.
    """
    down = math.hypot(math.log(new[1] / new[0]), math.log(base[2] / base[1]))
    up = math.hypot(math.log(new[2] / new[1]), math.log(base[1] / base[0]))
    ratio = new[1] / base[1]
    return ratio * math.exp(-down), ratio, ratio * math.exp(up)


@lru_cache(maxsize=1024)
def t_quantile(degrees: int, probability: float) -> float:
    """The value that Student's t with so many degrees of freedom stays below with that probability."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


def prediction_interval(
    values: Sequence[float], least_deviation: float = 0.0, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Where one more value of a normal population lies, after n ≥ 2 of them: mean ± t(n-1) · s · √(1 + 1/n).

    (Hahn and Meeker, Statistical Intervals, 4.7.) `least_deviation` is what s never falls below: values that are whole
    ticks of a timer may all be equal and yet not be known better than that. ValueError below two values.
    """
    n = len(values)
    if n < 2:
        raise ValueError("a prediction needs two values at least")
    mean = math.fsum(values) / n
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = t_quantile(n - 1, (1 + confidence) / 2) * max(deviation, least_deviation) * math.sqrt(1 + 1 / n)
    return mean - half, mean + half


def bootstrap_medians(values: Sequence[float], seed: str) -> list[float]:
    """The medians of DRAWS resamples of the values, each as large as they are and drawn with replacement.

    A resample of ordered values is one of their ranks, whose order statistics are those of uniform numbers: the median
    of an odd count is one beta variate, that of an even one follows from two (David and Nagaraja, Order Statistics,
    2.5), so that no resample has to be made. ValueError when empty.
    """
    ordered = sorted(values)
    n = len(ordered)
    if not n:
        raise ValueError("a bootstrap of nothing")
    source = random.Random(seed)
    rank = (n + 1) // 2  # of the lower middle value, from 1
    medians = []
    for _ in range(DRAWS):
        place = source.betavariate(rank, n - rank + 1)
        middle = ordered[min(int(n * place), n - 1)]
        if n % 2 == 0:
            after = 1 - (1 - place) * source.random() ** (1 / (n - rank))
            middle = (middle + ordered[min(int(n * after), n - 1)]) / 2
        medians.append(middle)
    return medians


def central(ordered: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The limits between which the middle share of an ascending sequence lies, both being values of it, as many from
    either end: the reciprocals of the values have the reciprocal limits."""
    cut = math.floor(len(ordered) * (1 - confidence) / 2)
    return ordered[cut], ordered[-1 - cut]
