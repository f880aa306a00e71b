"""Pure functions on numbers: medians, order statistics, and how far a median, or a ratio of two, can be trusted."""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from gpubench.result import Record, Samples, Summary

CONFIDENCE = 0.95
DRAWS = 1000
"""Resamples of a bootstrap: the 2.5 % limits are then known to about a half percent of probability."""
ALIKE_Z = 2.326
"""Neighbours are called alike from so many deviations on, which happens to one of 100 rows of independent samples: few
intervals are widened for nothing, and two of three rows of 40 samples that correlate by 0.5 are found out."""
BLOCKS = 512
"""Correlations are taken between so many sums of neighbouring samples at most: those of 10 000 cost milliseconds."""
PASSES = 3
"""How often a correlation is corrected for what the correlations themselves cost it; more change nothing."""


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


def trimmed_mean(values: Sequence[float], share: float) -> float:
    """The mean of what is left without that share of the least and of the largest values. ValueError when empty."""
    if not values:
        raise ValueError("the mean of nothing")
    cut = math.floor(share * len(values))
    kept = sorted(values)[cut : len(values) - cut]
    return math.fsum(kept) / len(kept)


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


def median_interval(
    ordered: Sequence[float], confidence: float = CONFIDENCE, count: int | None = None
) -> tuple[float, float] | None:
    """The interval that holds the median of an ascending sequence, or None where there are too few samples.

    `count` is how many independent samples these are worth, all of them if not given: the ranks are those of so many,
    spread over the samples there are. Where so few have no interval, it is from the least sample to the largest, and
    its confidence is lower.
    """
    n = len(ordered)
    if median_ranks(n, confidence) is None:
        return None
    worth = n if count is None else count
    ranks = median_ranks(worth, confidence)
    # the middle of that rank's share of the samples, in whole numbers: of n it is the rank itself
    cut = 0 if ranks is None else max(((2 * ranks[0] + 1) * n - worth) // (2 * worth), 0)
    return ordered[cut], ordered[n - 1 - cut]


def effective_count(values: Sequence[float]) -> int:
    """How many independent samples would know the median as well as these, given in the order they were taken: all of
    them, unless neighbours are alike beyond chance (see `_alike`).

    The median of n samples strays as the share of them above it does, whose variance is that of independent samples
    times 1 + 2 Σ r(k), with r(k) the correlation of being above between samples k apart. The sum ends where r(k) is
    lost in its own noise, 1/√n (after Geyer: Practical Markov Chain Monte Carlo, Statistical Science 7, 1992, 3.3).
    """
    if not _alike(values):
        return len(values)
    middle = percentile(sorted(values), 0.5)
    above = [(value > middle) - (value < middle) for value in values]
    size = math.ceil(len(above) / BLOCKS)
    sums = [sum(above[at : at + size]) for at in range(0, len(above) - size + 1, size)]
    n, power = len(sums), sum(each * each for each in sums)
    if not power:
        return len(values)
    once = power / (n * size) / (sum(each * each for each in above) / len(above))  # the variance within blocks
    inflation = 1.0
    found: list[float] = []
    for _ in range(PASSES):
        total = 1.0
        for lag in range(1, n // 2 + 1):
            if len(found) < lag:
                found.append(sum(map(operator.mul, sums[lag:], sums)) / power * n / (n - lag))
            # taken about the samples' own median, each correlation is low by the variance of that
            correlation = found[lag - 1] + inflation / n
            if correlation <= 1 / math.sqrt(n):
                break
            total += 2 * correlation
        inflation = total
    return max(1, min(len(values), int(len(values) / (once * inflation))))


def _alike(values: Sequence[float]) -> bool:
    """Whether neighbours are alike beyond chance: the rank version of von Neumann's ratio is lower than independent
    values give, whatever their distribution (Bartels, Journal of the American Statistical Association 77, 1982)."""
    n = len(values)
    ranks = _doubled_ranks(values)
    spread = sum(rank * rank for rank in ranks)
    if not spread:
        return False
    steps = sum((after - before) ** 2 for before, after in pairwise(ranks))
    return 2 - steps / spread > ALIKE_Z * math.sqrt(20 / (5 * n + 7))


def _doubled_ranks(values: Sequence[float]) -> list[int]:
    """Twice the rank of each value less the mean rank, equal values sharing theirs: whole numbers that sum to 0."""
    n = len(values)
    order = sorted(range(n), key=values.__getitem__)
    ranks = [0] * n
    first = 0
    while first < n:
        last, value = first, values[order[first]]
        while last + 1 < n and values[order[last + 1]] == value:
            last += 1
        for place in order[first : last + 1]:
            ranks[place] = first + last + 1 - n
        first = last + 1
    return ranks


def relative_half_width(values: Sequence[float], tick: float) -> float | None:
    """Half the median's interval over the median, with the interval never narrower than one tick of the timer.

    `values` are in the order taken, `tick` in their unit. None where there are too few samples or the median is not
    above zero.
    """
    ordered = sorted(values)
    interval = median_interval(ordered, count=effective_count(values))
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
    """The summary of times in ns, in the order taken, rounded to whole ns. ValueError when empty."""
    ordered = sorted(values)
    interval = median_interval(ordered, count=effective_count(values))
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


def t_tail(degrees: int, value: float) -> float:
    """The probability with which Student's t with so many degrees of freedom exceeds the value."""
    from scipy.special import stdtr

    return float(stdtr(degrees, -value))


@lru_cache(maxsize=4096)
def t_shift(degrees: int, critical: float, power: float) -> float:
    """How many standard errors a mean must lie off for its t to exceed the critical value with that probability: the
    parameter of the non-central t (Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 2, chapter 31).
    """
    from scipy.special import nctdtrinc

    return float(nctdtrinc(degrees, 1 - power, critical))


def prediction_interval(
    values: Sequence[float], least_half: float = 0.0, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Where one more value of a normal population lies, after n ≥ 2 of them: mean ± t(n-1) · s · √(1 + 1/n).

    (Hahn and Meeker, Statistical Intervals, 4.7.) The half-width never falls below `least_half`: of values that are
    whole ticks of a timer all may be equal and the next be another. ValueError below two values.
    """
    n = len(values)
    if n < 2:
        raise ValueError("a prediction needs two values at least")
    mean = math.fsum(values) / n
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    half = max(t_quantile(n - 1, (1 + confidence) / 2) * deviation * math.sqrt(1 + 1 / n), least_half)
    return mean - half, mean + half


def bootstrap_medians(values: Sequence[float], seed: str) -> list[float]:
    """The medians of DRAWS resamples of the values, drawn with replacement, each of as many as the values, in the order
    they were taken, are independent samples worth.

    A resample of ordered values is one of their ranks, whose order statistics are those of uniform numbers: the median
    of an odd count is one beta variate, that of an even one follows from two (David and Nagaraja, Order Statistics,
    2.5), so that no resample has to be made. ValueError when empty.
    """
    ordered = sorted(values)
    n = len(ordered)
    if not n:
        raise ValueError("a bootstrap of nothing")
    size = effective_count(values)
    source = random.Random(seed)
    rank = (size + 1) // 2  # of the lower middle value, from 1
    medians = []
    for _ in range(DRAWS):
        place = source.betavariate(rank, size - rank + 1)
        middle = ordered[min(int(n * place), n - 1)]
        if size % 2 == 0:
            after = 1 - (1 - place) * source.random() ** (1 / (size - rank))
            middle = (middle + ordered[min(int(n * after), n - 1)]) / 2
        medians.append(middle)
    return medians


def central(ordered: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The limits between which the middle share of an ascending sequence lies, both being values of it, as many from
    either end: the reciprocals of the values have the reciprocal limits."""
    cut = math.floor(len(ordered) * (1 - confidence) / 2)
    return ordered[cut], ordered[-1 - cut]
