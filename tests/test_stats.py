"""Order statistics: exactly, by brute force, against numpy, and by simulation of what the interval promises."""

from __future__ import annotations

import math
import random
import statistics
import time
from dataclasses import replace
from fractions import Fraction

import builders
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench import stats
from gpubench.result import Samples, Timer
from gpubench.stats import (
    effective_count,
    median_interval,
    median_ranks,
    per_call,
    percentile,
    relative_half_width,
    summarize,
    t_quantile,
    t_shift,
    t_tail,
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


def test_a_trimmed_mean_by_hand() -> None:
    values = [8.0, 0.0, 100.0, 1.0, 3.0, 2.0]
    assert stats.trimmed_mean(values, 0.2) == 3.5, "one of six from either end: a fifth is no more than that"
    assert stats.trimmed_mean(values, 0.1) == 19.0
    with pytest.raises(ValueError, match="nothing"):
        stats.trimmed_mean([], 0.1)


def test_the_interval_is_that_of_the_confidence_asked_for() -> None:
    ordered = [float(value) for value in range(100)]
    assert median_interval(ordered, 0.5) == median_ranks(100, 0.5) != median_ranks(100)
    assert median_interval(ordered, 0.99) == median_ranks(100, 0.99)
    assert median_interval([1.0, 2.0, 3.0], 0.5) == (1.0, 3.0)
    assert median_interval(ordered, 0.5, count=5) == (29, 70), "the middles of the second and the fourth fifth"
    assert median_interval([1.0, 2.0, 3.0, 4.0, 5.0], count=3) is None


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
def test_order_matters_to_the_interval_alone(values: list[int], source: random.Random) -> None:
    shuffled = values[:]
    source.shuffle(shuffled)
    assert replace(summarize(shuffled), low_ns=None, high_ns=None) == replace(
        summarize(values), low_ns=None, high_ns=None
    )
    assert summarize(values[::-1]) == summarize(values), "nor does the direction of time"


def noise(correlation: float, n: int, runs: int, seed: int = 7) -> list[list[float]]:
    """Runs of n samples of median 0, each sample so much like the one before it: a first-order autoregression."""
    source = np.random.default_rng(seed)
    values = source.normal(size=(runs, n))
    for place in range(1, n):
        values[:, place] = correlation * values[:, place - 1] + math.sqrt(1 - correlation**2) * values[:, place]
    return [[float(value) for value in run] for run in values]


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
@pytest.mark.parametrize(("n", "runs"), [(130, 300), (300, 150)])
def test_the_interval_covers_the_median_of_neighbours_that_are_alike(correlation: float, n: int, runs: int) -> None:
    """At the counts of samples that a sustained row has."""
    found = [median_interval(sorted(values), count=effective_count(values)) for values in noise(correlation, n, runs)]
    assert sum(interval is not None and interval[0] <= 0 <= interval[1] for interval in found) / runs >= 0.92


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_the_bootstrap_is_as_wide_as_the_interval(correlation: float) -> None:
    drawn = ranked = 0.0
    for values in noise(correlation, 1000, 12):
        interval = median_interval(sorted(values), count=effective_count(values))
        assert interval is not None
        low, high = stats.central(sorted(stats.bootstrap_medians(values, "a")))
        drawn, ranked = drawn + high - low, ranked + interval[1] - interval[0]
    assert drawn == pytest.approx(ranked, rel=0.15)


def test_without_a_correction_neighbours_that_are_alike_would_be_believed() -> None:
    runs = noise(0.9, 130, 100)
    intervals = [median_interval(sorted(values)) for values in runs]
    assert sum(interval[0] <= 0 <= interval[1] for interval in intervals if interval) < 0.5 * len(runs)


@pytest.mark.parametrize("n", [10, 20, 40, 140])
def test_independent_samples_are_worth_what_they_are(n: int) -> None:
    """One row in a hundred is widened by chance; the spread of its values has no say."""
    source = np.random.default_rng(n)
    for values in (
        source.normal(size=(500, n)),
        source.exponential(size=(500, n)),
        source.integers(3, size=(500, n)),
    ):
        counts = [effective_count([float(value) for value in run]) for run in values]
        assert sum(count < n for count in counts) / len(counts) < 0.025


def test_the_worth_of_correlated_samples_is_that_of_theory() -> None:
    """Of a normal autoregression, signs k apart correlate by 2/π asin(ρ^k) (Sheppard, 1899)."""
    for correlation in (0.5, 0.8):
        truth = 1 + 4 / math.pi * sum(math.asin(correlation**k) for k in range(1, 200))
        counts = [effective_count(values) for values in noise(correlation, 2000, 30)]
        assert statistics.median(counts) == pytest.approx(2000 / truth, rel=0.15)


def test_the_interval_of_fewer_is_that_of_as_many_shares_of_the_samples() -> None:
    for n in range(6, 300):
        ordered = [float(value) for value in range(n)]
        assert median_interval(ordered, count=n) == median_interval(ordered) == median_ranks(n)
    assert median_interval([float(value) for value in range(100)], count=10) == (14, 85)  # ranks 1 and 8 of 10
    assert median_interval([float(value) for value in range(100)], count=5) == (0, 99)


def test_slow_swings_under_fast_noise_are_seen() -> None:
    """A clock that steps once a second, under noise as large: each sample tells little of the next, all of a second."""
    source = random.Random(1)
    values = [source.gauss(0, 1) + (1 if place // 80 % 2 else -1) for place in range(800)]
    assert effective_count(values) < 60


def test_a_row_of_equals_and_a_row_that_only_rises() -> None:
    assert effective_count([5.0] * 30) == 30
    assert effective_count([]) == 0
    assert effective_count([5.0] * 29 + [6.0]) == 30
    assert effective_count([5.0] * 512 + [6.0]) == 513, "pairs that are all equal, and one sample left over"
    rising = [float(value) for value in range(40)]
    assert effective_count(rising) < 6
    assert median_interval(rising, count=effective_count(rising)) == (0, 39), "all that is known is the range"


def test_samples_are_worth_no_more_than_they_are() -> None:
    """Neighbours that are alike across the pairs that are summed, and opposite within them."""
    above = [True, False, False, True] * 255 + [True, True, False, False]
    high, low = iter([*range(257, 513), *range(1, 257)]), iter([*range(-256, 0), *range(-512, -256)])
    values = [float(next(high if up else low)) for up in above]
    assert stats._alike(values)
    assert effective_count(values) == len(values)


def test_ten_thousand_samples_are_looked_through_in_no_time() -> None:
    (values,) = noise(0.99, 10_000, 1)
    begun = time.perf_counter()
    assert effective_count(values) < 400
    assert time.perf_counter() - begun < 0.5  # of 0.015 s: every lag of every sample would be 50 million products


def test_a_correlated_row_is_wider_everywhere() -> None:
    """The summary, the rule that stops and the bootstrap: the same samples in an order without memory, and with it."""
    remembering = [1e6 + 1e3 * value for value in noise(0.9, 200, 1)[0]]
    shuffled = random.Random(3).sample(remembering, len(remembering))
    wide, narrow = summarize(remembering), summarize(shuffled)
    assert wide.low_ns is not None
    assert narrow.low_ns is not None
    assert wide.high_ns is not None
    assert narrow.high_ns is not None
    assert wide.high_ns - wide.low_ns > 2 * (narrow.high_ns - narrow.low_ns)
    assert (relative_half_width(remembering, 0) or 0) > 2 * (relative_half_width(shuffled, 0) or 1)
    spreads = [statistics.pstdev(stats.bootstrap_medians(values, "a")) for values in (remembering, shuffled)]
    assert spreads[0] > 2 * spreads[1]


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
    found = summarize([50.4, 90.0, 20.0, 110.0, 40.0, 80.0, 60.6, 10.0, 100.0, 30.0, 70.0])
    assert (found.n, found.median_ns, found.min_ns) == (11, 61, 10)
    assert (found.p10_ns, found.p90_ns) == (20, 100)
    assert (found.low_ns, found.high_ns) == (20, 100)  # 11 samples: ranks 1 and 9
    with pytest.raises(ValueError, match="nothing"):
        summarize([])


def test_time_per_call_is_of_one_launch() -> None:
    assert per_call(Samples([100, 300], [10, 3], [0, 0], [None, None])) == [10.0, 100.0]
    with pytest.raises(ValueError, match="shorter"):
        per_call(Samples([100, 300], [10], [0, 0], [None, None]))


@pytest.mark.parametrize(
    ("degrees", "probability", "value"),
    [(4, 0.975, 2.776), (7, 0.975, 2.365), (19, 0.975, 2.093), (9, 0.995, 3.250), (4, 0.5, 0.0), (10**6, 0.975, 1.960)],
)
def test_t_quantiles_are_those_of_the_tables(degrees: int, probability: float, value: float) -> None:
    assert stats.t_quantile(degrees, probability) == pytest.approx(value, abs=5e-4)


def test_a_prediction_interval_is_that_of_the_textbook() -> None:
    # Hahn and Meeker, Statistical Intervals, 4.7: n = 5, mean 50.10, s = 1.31; 95 % for one more: 46.1 to 54.1
    values = [51.4, 49.5, 48.7, 49.3, 51.6]
    assert stats.prediction_interval(values) == pytest.approx((46.1, 54.1), abs=0.05)


def test_a_prediction_is_no_narrower_than_is_asked() -> None:
    assert stats.prediction_interval([2.0] * 5, 0.1) == pytest.approx((1.9, 2.1))
    assert stats.prediction_interval([2.0] * 5) == (2.0, 2.0)
    wide = [1.0, 2.0, 3.0]
    assert stats.prediction_interval(wide, 0.1) == stats.prediction_interval(wide)


@pytest.mark.parametrize("values", [[], [1.0]])
def test_nothing_is_predicted_from_fewer_than_two_values(values: list[float]) -> None:
    with pytest.raises(ValueError, match="two values"):
        stats.prediction_interval(values)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20), st.floats(-1e3, 1e3))
def test_a_prediction_moves_with_its_values_and_mirrors_with_them(values: list[float], shift: float) -> None:
    low, high = stats.prediction_interval(values)
    assert stats.prediction_interval([value + shift for value in values]) == pytest.approx(
        (low + shift, high + shift), abs=1e-8
    )
    assert stats.prediction_interval([-value for value in values]) == pytest.approx((-high, -low), abs=1e-9)


ESTIMATES = st.tuples(st.floats(1e-3, 1), st.floats(1, 1e3), st.floats(1e3, 1e6))


@given(ESTIMATES, ESTIMATES)
def test_the_interval_of_a_ratio_holds_it_and_swaps_with_its_sides(
    base: tuple[float, float, float], new: tuple[float, float, float]
) -> None:
    low, ratio, high = stats.ratio_interval(base, new)
    assert low <= ratio <= high
    assert stats.ratio_interval(new, base) == pytest.approx((1 / high, 1 / ratio, 1 / low))
    widest = (new[0] / base[2] * (1 - 1e-9), new[2] / base[0] * (1 + 1e-9))
    assert widest[0] <= low
    assert high <= widest[1]


def test_the_interval_of_a_ratio_to_something_known_is_that_of_the_other_side() -> None:
    assert stats.ratio_interval((2.0, 2.0, 2.0), (9.0, 10.0, 12.0)) == pytest.approx((4.5, 5.0, 6.0))


def test_a_median_is_known_no_better_than_a_tick_of_a_call() -> None:
    row = builders.make_record(time_ns=1000, half=0.001, timer=Timer("event", 500.0))
    assert stats.tick_per_call(row) == 500.0
    assert stats.trusted_median(row) == (750.0, 1000.0, 1250.0)
    row.samples.launches = [10] * 11
    assert stats.tick_per_call(row) == 50.0
    assert stats.trusted_median(row) == (975.0, 1000.0, 1025.0)
    assert stats.trusted_median(builders.make_record(time_ns=1000, half=0.3)) == (700.0, 1000.0, 1300.0)


def test_a_median_without_an_interval_is_not_trusted() -> None:
    assert stats.trusted_median(builders.make_record(half=None)) is None
    assert stats.trusted_median(builders.make_record(time_ns=0)) is None
    assert stats.trusted_median(builders.make_record(status="error")) is None
    assert stats.tick_per_call(builders.make_record(timer=None)) == 0.0


@pytest.mark.parametrize("count", [1, 2, 7, 12, 31, 50])
def test_the_bootstrap_of_a_median_is_that_of_resamples(count: int):
    """Drawn by ranks, against resamples that are made: the same distribution."""
    source = random.Random(5)
    values = [float(number) for number in source.sample(range(count), count)]  # in order they would be a trend
    made = [statistics.median(source.choices(values, k=count)) for _ in range(4000)]
    drawn = [value for seed in "abcd" for value in stats.bootstrap_medians(values, seed)]
    spread = statistics.pstdev(made)
    assert statistics.fmean(drawn) == pytest.approx(statistics.fmean(made), abs=0.1 * spread)
    assert statistics.pstdev(drawn) == pytest.approx(spread, rel=0.08)


def test_a_bootstrap_is_repeatable_and_of_something():
    assert stats.bootstrap_medians([1, 2, 3], "a") == stats.bootstrap_medians([3, 1, 2], "a")
    assert stats.bootstrap_medians([1, 2, 3], "a") != stats.bootstrap_medians([1, 2, 3], "b")
    with pytest.raises(ValueError, match="nothing"):
        stats.bootstrap_medians([], "a")


def test_the_central_share_is_the_same_from_both_ends():
    values = [float(number) for number in range(1, 1001)]
    assert stats.central(values) == (26, 975)
    assert stats.central(sorted(1 / value for value in values)) == (1 / 975, 1 / 26)
    assert stats.central([5.0]) == (5, 5)


def test_the_tail_of_t_is_where_its_quantile_says() -> None:
    for degrees in (1, 9, 49):
        assert t_tail(degrees, t_quantile(degrees, 0.975)) == pytest.approx(0.025)
        assert t_tail(degrees, -t_quantile(degrees, 0.975)) == pytest.approx(0.975)
    assert t_tail(9, math.inf) == 0


def test_a_shift_is_seen_with_the_power_asked_for() -> None:
    """The mean of ten normal values, so many standard errors off."""
    source, critical = random.Random(1), t_quantile(9, 0.975)
    shift = t_shift(9, critical, 0.8)
    seen = 0
    for _ in range(4000):
        values = [source.gauss(shift / math.sqrt(10), 1) for _ in range(10)]
        seen += statistics.mean(values) / (statistics.stdev(values) / math.sqrt(10)) > critical
    assert seen / 4000 == pytest.approx(0.8, abs=0.02)
    assert t_shift(9, critical, 0.9) > shift
