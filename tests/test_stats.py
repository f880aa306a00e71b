"""Order statistics: exactly, by brute force, against numpy, and by simulation of what the interval promises."""

from __future__ import annotations

import math
import random
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.result import Samples
from gpubench.stats import (
    median_interval,
    median_ranks,
    per_call,
    percentile,
    relative_half_width,
    summarize,
)

times = st.lists(st.integers(1, 10**9), min_size=1, max_size=80)


def covered(n: int, rank: int) -> Fraction:
    """The chance that the median lies between the order statistics rank and n-1-rank: of all 2^n equally likely ways in
    which n samples fall below or above it, those with more than `rank` on either side."""
    return Fraction(sum(math.comb(n, below) for below in range(rank + 1, n - rank)), 2**n)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_the_ranks_are_the_tightest_that_cover(confidence: float) -> None:
    for n in range(121):
        ranks = median_ranks(n, confidence)
        if ranks is None:
            assert n < 2 or covered(n, 0) < confidence, n
            continue
        low, high = ranks
        assert 0 <= low < high < n
        assert low + high == n - 1
        assert covered(n, low) >= confidence, n
        if low + 1 < n - 2 - low:
            assert covered(n, low + 1) < confidence, n


def test_six_samples_are_the_fewest_with_an_interval() -> None:
    assert [median_ranks(n) is None for n in range(8)] == [True] * 6 + [False] * 2
    assert median_ranks(6) == (0, 5)
    assert median_interval([1.0, 2.0, 3.0, 4.0, 5.0]) is None
    assert median_interval([]) is None


def test_ranks_of_ten_thousand_samples_come_at_once() -> None:
    median_ranks.cache_clear()
    begun = time.perf_counter()
    assert median_ranks(10_000) == (4901, 5098)  # 5000 ± 1.96 · 50
    assert time.perf_counter() - begun < 1  # was 12 s with a fresh binomial coefficient for every rank


@pytest.mark.parametrize("n", [6, 7, 10, 11, 20, 41])
@pytest.mark.parametrize("shape", ["exponential", "normal", "two humps"])
def test_the_interval_covers_the_median_in_95_of_100_runs(n: int, shape: str) -> None:
    runs = 20_000
    source = np.random.default_rng(n)
    values, median = {
        "exponential": (source.exponential(size=(runs, n)), math.log(2)),
        "normal": (source.normal(size=(runs, n)), 0.0),
        "two humps": (source.normal(size=(runs, n)) + 20 * (source.random((runs, n)) < 0.5), 10.0),
    }[shape]
    ordered = np.sort(values, axis=1)
    ranks = median_ranks(n)
    assert ranks is not None
    seen = np.mean((ordered[:, ranks[0]] <= median) & (median <= ordered[:, ranks[1]]))
    promised = float(covered(n, ranks[0]))
    assert promised >= 0.95
    assert abs(seen - promised) < 4 * math.sqrt(promised * (1 - promised) / runs)


@given(times, st.floats(0, 1))
def test_percentiles_are_numpys(values: list[int], share: float) -> None:
    ordered = sorted(values)
    assert percentile(ordered, share) == pytest.approx(float(np.percentile(ordered, 100 * share)), rel=1e-9)


def test_percentiles_of_few() -> None:
    assert percentile([7.0], 0.9) == 7.0
    assert percentile([1.0, 3.0], 0.5) == 2.0
    assert percentile([1.0, 3.0], 0.0) == 1.0
    assert percentile([1.0, 3.0], 1.0) == 3.0
    with pytest.raises(ValueError, match="nothing"):
        percentile([], 0.5)


def test_half_width_by_hand() -> None:
    values = [100.0, 101, 102, 103, 104, 106]  # n = 6: the interval is the whole range
    assert relative_half_width(values, tick=0) == pytest.approx(3 / 102.5)
    assert relative_half_width(values[:5], tick=0) is None


def test_half_width_is_never_below_half_a_tick() -> None:
    assert relative_half_width([1000.0] * 50, tick=32) == 16 / 1000
    assert relative_half_width([1000.0] * 50, tick=0) == 0


@pytest.mark.parametrize("middle", [0.0, -5.0])
def test_half_width_of_a_median_that_is_not_above_zero_is_unknown(middle: float) -> None:
    assert relative_half_width([middle] * 30, tick=32) is None


@given(times, st.sampled_from([0.125, 8.0, 1024.0]), st.integers(0, 100))
def test_units_do_not_matter(values: list[int], factor: float, tick: int) -> None:
    """By powers of two, which round nothing."""
    scaled = [factor * value for value in values]
    assert relative_half_width(scaled, factor * tick) == relative_half_width(values, tick)
    assert percentile(sorted(scaled), 0.5) == factor * percentile(sorted(values), 0.5)
    interval, wider = median_interval(sorted(values)), median_interval(sorted(scaled))
    assert (interval is None) == (wider is None)
    if interval is not None:
        assert wider == (factor * interval[0], factor * interval[1])


@given(times, st.randoms(use_true_random=False))
def test_order_does_not_matter(values: list[int], source: random.Random) -> None:
    shuffled = values[:]
    source.shuffle(shuffled)
    assert summarize(shuffled) == summarize(values)
    assert relative_half_width(shuffled, 1) == relative_half_width(values, 1)


@given(times)
def test_a_summary_is_in_order(values: list[int]) -> None:
    found = summarize(values)
    assert found.n == len(values)
    assert found.min_ns <= found.p10_ns <= found.median_ns <= found.p90_ns <= max(values)
    assert (found.low_ns is None) == (found.high_ns is None) == (len(values) < 6)
    if found.low_ns is not None:
        assert found.high_ns is not None
        assert found.min_ns <= found.low_ns <= found.median_ns <= found.high_ns


def test_summary_by_hand() -> None:
    found = summarize([50.4, 10.0, 20.0, 40.0, 30.0, 60.6, 70.0, 80.0, 90.0, 100.0, 110.0])
    assert (found.n, found.median_ns, found.min_ns) == (11, 61, 10)
    assert (found.p10_ns, found.p90_ns) == (20, 100)
    assert (found.low_ns, found.high_ns) == (20, 100)  # 11 samples: ranks 1 and 9
    with pytest.raises(ValueError, match="nothing"):
        summarize([])


def test_time_per_call_is_of_one_launch() -> None:
    assert per_call(Samples([100, 300], [10, 3], [0, 0], [None, None])) == [10.0, 100.0]
    with pytest.raises(ValueError, match="shorter"):
        per_call(Samples([100, 300], [10], [0, 0], [None, None]))
