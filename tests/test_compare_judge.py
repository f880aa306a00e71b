from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from comparisons import MIRROR, history, judged, only, rate, record, run, spoilt, verdicts
from hypothesis import given, settings
from hypothesis import strategies as st

from gpubench.compare import judge
from gpubench.compare.judge import MIN_HISTORY
from gpubench.result import Metric, Record, Run, Samples, Summary, Timer

TIMES = st.integers(1, 10**7)


@pytest.mark.parametrize("make", [record, rate])
@pytest.mark.parametrize(
    ("new_ns", "verdict"),
    [
        (100_000, "same"),
        (103_000, "same"),  # the margin itself is within it
        (103_001, "suspect"),
        (130_000, "suspect"),
        (97_088, "same"),
        (97_087, "better"),  # a base 3 % above it, seen from the new run
        (50_000, "better"),
    ],
)
def test_the_margin_is_how_much_longer_a_time_may_be(make: Callable[[int], Record], new_ns: int, verdict: str) -> None:
    assert only(make(100_000), make(new_ns)).verdict == verdict


def test_a_rate_that_fell_is_a_loss_and_one_that_rose_a_gain() -> None:
    fell, rose = only(rate(400), rate(500)), only(rate(500), rate(400))
    assert (fell.verdict, rose.verdict) == ("suspect", "better")
    assert fell.change is not None
    assert (fell.change.metric, fell.change.direction) == ("flops", "higher")
    assert fell.change.ratio == pytest.approx(0.8)
    assert fell.change.loss == pytest.approx(math.log(1.25))
    assert [change.direction for change in fell.changes] == ["lower", "higher"]


def test_metrics_that_disagree_are_judged_each_and_the_worst_counts() -> None:
    """Time better, bandwidth worse in one row."""

    def row(time_ns: float, bandwidth: float) -> Record:
        metrics = [Metric("time", time_ns, "ns", "lower", True), Metric("bandwidth", bandwidth, "B/s", "higher")]
        return record(metrics=metrics, samples=Samples())

    found = only(row(100.0, 4e12), row(90.0, 3e12))
    assert found.verdict == "suspect"
    assert found.reason is not None
    assert found.reason.startswith("bandwidth: ")
    assert [change.loss > 0 for change in found.changes] == [False, True]


def test_a_share_of_a_yardstick_is_shown_and_not_judged() -> None:
    share = Metric("of_silicon", 0.5, "1", "higher")
    base = rate()
    base.metrics.append(share)
    new = rate()
    new.metrics.append(replace(share, value=0.3))
    found = only(base, new)
    assert found.verdict == "same"
    assert [change.metric for change in found.changes] == ["time", "flops", "of_silicon"]
    assert found.changes[2].low is None


def test_a_margin_of_nothing_finds_any_difference_and_none_where_there_is_none() -> None:
    assert only(rate(100_000), rate(100_001), margin=0.0).verdict == "suspect"
    assert only(rate(), rate(), margin=0.0).verdict == "same"


# Figures that cannot be judged


@pytest.mark.parametrize("value", [0, 0.0, -0.0, -1, None, "1.2", True, math.nan, math.inf, -math.inf, [1]])
def test_a_value_that_is_none_is_invalid_on_either_side_and_on_both(value: Any) -> None:
    good, bad = spoilt(), spoilt(value)
    for base, new in ((bad, good), (good, bad), (bad, bad)):
        found = only(base, new)
        assert found.verdict == "invalid"
        assert found.reason is not None
        assert "time: " in found.reason
        assert repr(value) in found.reason
        assert found.changes == []
    beside = judged(run(bad, rate(n=1)), run(good, rate(200_000, n=1), run_id="new"))
    assert verdicts(beside) == {"n=64": "invalid", "n=1": "suspect"}


def test_a_value_that_is_not_there_is_invalid() -> None:
    good, bad = spoilt(), record(metrics=[])
    assert only(bad, good).reason == "no primary figure in the base"
    assert only(good, bad).reason == "no primary figure in the new run"
    assert only(bad, bad).verdict == "invalid"
    other = record(metrics=[Metric("latency", 1.0, "ns", "lower", True)])
    assert only(good, other).reason == "time: not in the new run"


@pytest.mark.parametrize(
    ("base", "new"), [("s", "ms"), ("us", "B/s"), ("GiB/s", "GB/s"), ("ns", "foo"), ("ns", "NS"), ("ns", "")]
)
def test_units_that_are_not_the_same_are_never_compared(base: str, new: str) -> None:
    found = only(spoilt(1.5, base), spoilt(500.0, new))
    assert found.verdict == "invalid"
    assert f"{base} against {new}" in str(found.reason)


def powered(watts: float, direction: Any = "none") -> Record:
    """A time of 100 ns at so much power."""
    return record(
        metrics=[Metric("time", 100.0, "ns", "lower", True), Metric("power", watts, "W", direction)], samples=Samples()
    )


def test_a_metric_beside_the_headline_that_is_another_on_the_other_side_is_invalid() -> None:
    def row(*metrics: Metric) -> Record:
        return record(metrics=[Metric("time", 100.0, "ns", "lower", True), *metrics], samples=Samples())

    bandwidth = Metric("bandwidth", 4e12, "B/s", "higher")
    assert only(row(bandwidth), row(bandwidth)).verdict == "same"
    for other in (
        replace(bandwidth, unit="GB/s"),
        replace(bandwidth, direction="lower"),
        replace(bandwidth, value=0.0),
    ):
        found = only(row(bandwidth), row(other))
        assert found.verdict == "invalid"
        assert str(found.reason).startswith("bandwidth: ")


def test_a_headline_that_the_other_side_does_not_have_is_invalid() -> None:
    time, score = Metric("time", 100.0, "ns", "lower"), Metric("score", 5.0, "1", "higher", True)
    old = record(metrics=[replace(time, primary=True)], samples=Samples())
    new = record(metrics=[time, score], samples=Samples())
    assert only(old, new).reason == "score: not in the base"
    assert only(new, old).reason == "score: not in the new run"


@pytest.mark.parametrize("watts", [350.0, 1400.0])
def test_a_figure_that_is_no_merit_is_shown_and_not_judged(watts: float) -> None:
    found = only(powered(700.0), powered(watts))
    assert (found.verdict, found.reason) == ("same", None)
    assert [(change.metric, change.ratio, change.loss) for change in found.changes][1:] == [("power", watts / 700, 0)]
    assert only(powered(700.0), powered(0.0)).verdict == "same", "nor does it spoil a row that it cannot be had of"


def test_a_file_that_still_called_it_better_lower_can_be_compared() -> None:
    found = only(powered(350.0, "lower"), powered(700.0))
    assert found.verdict == "same"
    assert [change.metric for change in found.changes] == ["time"]


def test_a_headline_must_say_which_way_is_better() -> None:
    assert only(spoilt(direction="none"), spoilt(direction="none")).verdict == "invalid"


def test_a_direction_that_is_unknown_or_differs_is_not_guessed() -> None:
    assert only(spoilt(), spoilt()).verdict == "same"
    assert only(spoilt(), spoilt(direction="higher")).verdict == "invalid"
    assert only(spoilt(direction="sideways"), spoilt(direction="sideways")).verdict == "invalid"


def test_very_large_and_very_small_values_are_judged() -> None:
    for value in (1e-300, 5e-324, 1e300, 1.7e308):
        assert only(spoilt(value, samples=Samples()), spoilt(value, samples=Samples())).verdict == "same"
    huge = only(spoilt(5e-324, samples=Samples()), spoilt(1.7e308, samples=Samples()))
    assert huge.verdict == "suspect"


def test_a_time_that_is_not_the_median_of_its_samples_was_edited_by_hand() -> None:
    edited = replace(record(), metrics=[Metric("time", 90_000.0, "ns", "lower", True)])
    found = only(record(), edited)
    assert found.verdict == "invalid"
    assert found.reason == "time: in the new run not the median of the row's own samples"
    assert only(edited, record()).verdict == "invalid"
    for value, verdict in ((100_000.4, "same"), (100_002.0, "invalid"), (99_998.0, "invalid")):
        found = only(record(), replace(record(), metrics=[Metric("time", value, "ns", "lower", True)]))
        assert (found.verdict, value) == (verdict, value)
    long = record(5_000_000_000)
    for value, verdict in ((5_000_004_000.0, "same"), (5_000_006_000.0, "invalid")):
        found = only(long, replace(long, metrics=[Metric("time", value, "ns", "lower", True)]))
        assert (found.verdict, value) == (verdict, value)
    assert only(spoilt(100.0, "µs"), spoilt(100.0, "µs")).verdict == "same", "of another unit nobody can tell"


def test_a_rate_that_cannot_be_is_no_gain() -> None:
    flagged = rate(10_000, flags=["implausible"])
    assert only(rate(), flagged).verdict == "invalid"
    assert only(flagged, rate()).verdict == "invalid"
    assert only(flagged, flagged).verdict == "same"


# Intervals


def test_one_sample_has_no_interval_and_says_so() -> None:
    summary = Summary(1, 100_000, 100_000, 100_000, 100_000, None, None)
    single = rate(samples=Samples([100_000], [1], [0], [None]), summary=summary)
    slower = replace(
        rate(103_500), samples=Samples([103_500], [1], [0], [None]), summary=replace(summary, median_ns=103_500)
    )
    found = only(single, slower)
    assert found.verdict == "suspect"
    assert found.change is not None
    assert (found.change.low, found.change.high) == (None, None)
    assert "too few samples for an interval (base 1, new 1): judged by the margin alone" in found.hints
    assert only(single, single).verdict == "same"


def test_the_ratio_lies_in_its_interval_and_that_of_a_rate_mirrors_that_of_its_time() -> None:
    found = only(rate(100_000, half=0.01), rate(110_000, half=0.02))
    of_time, of_rate = found.changes
    assert of_time.low is not None
    assert of_time.high is not None
    assert of_time.low < 1.1 < of_time.high
    assert of_time.high / 1.1 == pytest.approx(math.exp(math.hypot(math.log(1.02), math.log(1 / 0.99))))
    assert (of_rate.low, of_rate.high) == pytest.approx((1 / of_time.high, 1 / of_time.low))


def test_a_bandwidth_has_the_interval_of_its_time_and_a_latency_beside_it_has_none() -> None:
    def row(time_ns: int, half: float, size: float) -> Record:
        found = record(time_ns, half=half)
        found.metrics += [
            Metric("bandwidth", size / time_ns, "B/s", "higher"),
            Metric("latency", 10.0, "ns", "lower"),
        ]
        return found

    of_time, bandwidth, latency = only(row(100_000, 0.01, 1e15), row(110_000, 0.02, 2e15)).changes
    assert of_time.low is not None
    assert of_time.high is not None
    assert (bandwidth.low, bandwidth.high) == pytest.approx((2 / of_time.high, 2 / of_time.low))
    assert (latency.low, latency.high) == (None, None)


# History


def test_with_fewer_than_five_runs_a_loss_is_suspect_and_never_a_regression() -> None:
    for count in range(1, MIN_HISTORY):
        found = only(history([100_000] * count), rate(200_000))
        assert found.verdict == "suspect"
        assert ("one run a side" if count == 1 else "fewer than 5 runs") in str(found.reason)


def test_with_five_runs_a_loss_beyond_what_they_predict_is_a_regression() -> None:
    steady = history([100_000, 100_300, 99_800, 100_100, 99_900])
    assert only(steady, rate(105_000)).verdict == "regression"
    assert only(steady, rate(95_000)).verdict == "improvement"
    assert only(steady, rate(102_000)).verdict == "same"
    assert "5 runs of the base predict (±0.6 %)" in str(only(steady, rate(105_000)).reason)


def test_the_interval_of_a_base_that_strays_leaves_it_undecided() -> None:
    straying = history([100_000, 108_000, 93_000, 105_000, 96_000, 100_000])
    found = only(straying, rate(106_000))
    assert found.verdict == "suspect"
    assert "but not beyond what 6 runs" in str(found.reason)
    assert only(straying, rate(94_000)).verdict == "better"
    assert only(straying, rate(150_000)).verdict == "regression"


def test_a_loss_in_small_steps_is_seen() -> None:
    """Neither step is beyond the margin, and both together are."""
    assert only(history([100_000] * 8 + [102_000]), rate(104_500)).verdict == "regression"
    assert only(history([100_000] * 8 + [98_000]), rate(95_800)).verdict == "improvement"


def test_a_newest_run_that_is_itself_an_exception_hides_no_loss() -> None:
    runs = history([100_000] * 27 + [110_000])
    assert only(runs, rate(105_500)).verdict == "regression"
    assert only(history([100_000] * 27 + [91_000]), rate(95_000)).verdict == "improvement"


@pytest.mark.parametrize("newest", [96_000, 104_000])
def test_a_newest_run_that_is_an_exception_makes_none_of_the_next(newest: int) -> None:
    for count in (MIN_HISTORY - 1, 27):
        found = only(history([100_000, 100_100, 99_900, 100_050] + [100_000] * (count - 4) + [newest]), rate(100_000))
        assert (found.verdict, found.middle_of) == ("same", count + 1)


def test_a_change_that_was_meant_shows_until_the_runs_before_it_are_replaced() -> None:
    """Kept beside the old runs, a new level is one of their exceptions."""
    found = only(history([100_000] * 5 + [110_000]), rate(110_000))
    assert found.verdict == "suspect"
    assert found.reason is not None
    assert found.reason.startswith("beyond the margin of 3 % of the base's middle run, but not beyond what 6 runs")
    assert only(history([110_000] * 5), rate(110_000)).verdict == "same"


def test_a_loss_on_the_mean_that_is_within_the_margin_of_the_middle_run_is_undecided() -> None:
    lopsided = [100_000] * 11 + [97_000] * 10
    found = only(history(lopsided), rate(102_900))
    assert found.verdict == "suspect"
    assert "but not beyond the margin of 3 % of the middle one of them" in str(found.reason)
    assert only(history([round(1e10 / each) for each in lopsided]), rate(97_185)).verdict == "better"
    assert only(history(lopsided), rate(101_000)).verdict == "same"


STRAYING, STEADY = (100, 108, 93, 105, 96, 100), (100, 100.1, 99.9, 100.2, 99.8, 100)


@pytest.mark.parametrize(
    ("times", "latencies", "now", "verdict"),
    [
        (STRAYING, STEADY, (106, 110), "regression"),
        (STEADY, STRAYING, (90, 106), "suspect"),
        (STEADY, STRAYING, (100, 94), "better"),
        (STRAYING, STEADY, (94, 90), "improvement"),
        (STEADY, STEADY, (90, 110), "regression"),
    ],
)
def test_of_the_verdicts_on_the_metrics_the_worst_counts(
    times: tuple[float, ...], latencies: tuple[float, ...], now: tuple[float, float], verdict: str
) -> None:
    def row(time_ns: float, latency: float) -> Record:
        metrics = [Metric("time", time_ns, "ns", "lower", True), Metric("latency", latency, "ns", "lower")]
        return record(metrics=metrics, samples=Samples())

    runs = history([0] * 6)
    for each, *values in zip(runs, times, latencies, strict=True):
        each.records = [row(*values)]
    assert only(runs, row(*now)).verdict == verdict


def late(*latencies: tuple[float, Any], time_ns: float = 100.0) -> list[Run]:
    """Runs of one row whose time is always the same, with a latency beside it and which way that is better."""
    runs = history([0] * len(latencies))
    for each, (latency, direction) in zip(runs, latencies, strict=True):
        metrics = [Metric("time", time_ns, "ns", "lower", True), Metric("latency", latency, "ns", direction)]
        each.records = [record(metrics=metrics, samples=Samples())]
    return runs


def test_a_metric_better_than_the_middle_run_s_and_worse_than_predicted_is_undecided() -> None:
    """Of equal times the newest run's is the middle one."""
    now = late((106, "lower"))[0].records[0]
    found = only(late(*[(100, "lower")] * 27, (110, "lower")), now)
    assert found.verdict == "suspect"
    assert "but not beyond the margin of 3 % of the middle one of them" in str(found.reason)
    mirrored = late((1e4 / 106, "lower"))[0].records[0]
    assert only(late(*[(100, "lower")] * 27, (1e4 / 110, "lower")), mirrored).verdict == "better"


def test_nothing_is_predicted_of_runs_whose_metric_was_no_merit_yet() -> None:
    now = late((150, "lower"))[0].records[0]
    found = only(late(*[(100, "none")] * 3, *[(100, "lower")] * 3), now)
    assert found.verdict == "suspect"
    assert str(found.reason).startswith("latency: beyond the margin of 3 %, on the evidence of")


def test_a_headline_that_is_a_share_is_judged() -> None:
    def row(share: float) -> Record:
        return record(metrics=[Metric("of_peak", share, "1", "higher", True)], samples=Samples())

    assert only(row(0.5), row(0.4)).verdict == "suspect"


def test_a_metric_is_held_against_the_run_that_is_the_middle_one_by_the_headline() -> None:
    def row(time_ns: float, latency: float) -> Record:
        metrics = [Metric("time", time_ns, "ns", "lower", True), Metric("latency", latency, "ns", "lower")]
        return record(metrics=metrics, samples=Samples())

    runs = history([0] * 5)
    for each, values in zip(runs, [(101, 50), (99, 51), (100, 49), (103, 40), (97, 60)], strict=True):
        each.records = [row(*values)]
    found = only(runs, row(100, 49))
    assert (found.base_run, found.verdict) == ("run-2", "same")
    assert [(change.base, change.new) for change in found.changes] == [(100, 100), (49, 49)]


def test_equal_whole_ticks_are_not_known_better_than_a_tick() -> None:
    coarse = {"timer": Timer("event", 5_000.0)}
    assert only(history([100_000] * 5, **coarse), rate(103_100, **coarse)).verdict == "suspect"
    assert only(history([100_000] * 5), rate(103_100)).verdict == "regression"


@pytest.mark.parametrize("runs", [5, 20, 100])
def test_the_next_tick_is_no_regression_however_many_runs_had_the_same(runs: int) -> None:
    """21 ticks and 22, or 20: equal code whose time lies between two ticks reads as the one and as the other."""
    found = {ticks: only(history([672] * runs), rate(32 * ticks)) for ticks in (20, 21, 22, 23)}
    assert [row.verdict for row in found.values()] == ["better", "same", "suspect", "regression"]
    assert "(±4.8 %)" in str(found[22].reason)


def test_the_tick_is_a_share_of_the_median_of_what_is_judged() -> None:
    row = record(100_000)
    row.samples.launches[:] = [4] * len(row.samples.launches)
    row.timer = Timer("event", 8_000.0)
    row.summary = Summary(11, 100_000, 50_000, 60_000, 200_000, 90_000, 110_000)
    assert judge._tick(row) == pytest.approx(-math.log(1 - 0.02), abs=2e-9)


def test_a_time_of_a_single_tick_is_judged() -> None:
    assert only(history([32] * 5), rate(32)).verdict == "same"
    assert only(history([32] * 5), rate(64)).verdict == "suspect"
    assert only(history([32] * 5), rate(96)).verdict == "regression"


# Properties


@settings(max_examples=60, deadline=None)
@given(TIMES, TIMES, st.integers(1, 1000), st.integers(0, 12))
def test_the_unit_of_time_changes_nothing(old: int, now: int, scale: int, runs: int) -> None:
    earlier = [old * (1000 + day % 3) for day in range(runs)] + [old * 1000]
    plain = only(history(earlier, timer=None), rate(now * 1000, timer=None))
    scaled = only(history([each * scale for each in earlier], timer=None), rate(now * 1000 * scale, timer=None))
    assert plain.verdict == scaled.verdict
    assert plain.reason == scaled.reason


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(99_000, 101_000), min_size=5, max_size=10), st.integers(1, 10**6), st.data())
def test_with_history_mirrored_runs_have_the_mirrored_verdict(earlier: list[int], now: int, data: Any) -> None:
    """A rate that is the reciprocal of a time: what is a loss of the one is a gain of the other."""

    def upside_down(record: Record) -> Record:
        metrics = [
            replace(each, direction="higher" if each.direction == "lower" else "lower") for each in record.metrics
        ]
        return replace(record, metrics=metrics)

    runs = history(earlier)
    found = only(runs, rate(now)).verdict
    for each in runs:
        each.records = [upside_down(each.records[0])]
    assert only(runs, upside_down(rate(now))).verdict == MIRROR.get(found, found)
