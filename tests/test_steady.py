"""When a load is flat, and what its series keeps."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from gpubench.steady import FLAT, FLAT_S, LEAST_GROUPS, LEAST_S, MOST_POINTS, MOST_S, Group, Series, flat, settled
from gpubench.sustained import LEAST_MEASURED_S

GROUP_NS = 10_000_000
RECORDED = json.loads((Path(__file__).parent / "golden" / "h200-warm-up.json").read_text())
"""Series of three loads of 20 s and more on an H200 that became warm meanwhile: of `results/reference/h200`."""


def groups(
    seconds: float, call_ns: Callable[[float], float], mhz: Callable[[float], float | None] = lambda t: 1980.0
) -> list[Group]:
    """Groups of 100 calls, from the start of a load to so many seconds of it."""
    found: list[Group] = []
    now = 0.0
    while now < seconds:
        spent = round(100 * call_ns(now))
        now += spent / 1e9
        found.append(Group(now, spent, 100, mhz(now)))
    return found


def test_equal_groups_are_flat_but_never_before_their_time() -> None:
    equal = groups(5, lambda t: 1e5)
    assert settled([]) is None
    first = next(count for count in range(1, len(equal)) if settled(equal[:count]) is not None)
    assert settled(equal[:first]) is True
    assert equal[first - 1].end_s == pytest.approx(LEAST_S, abs=0.02)


def test_a_rate_that_still_falls_is_not_flat() -> None:
    falling = groups(6, lambda t: 1e5 * (1 + 0.004 * t))
    assert settled(falling) is None, "0.8 % between the halves"
    assert settled(groups(6, lambda t: 1e5 * (1 + 0.001 * t))) is True, "0.2 % between the halves"


def test_a_clock_that_still_falls_is_not_flat_though_the_rate_is() -> None:
    assert settled(groups(6, lambda t: 1e5, lambda t: 1980 - 40 * t)) is None
    assert settled(groups(6, lambda t: 1e5, lambda t: None)) is True, "no clock, no say"


def test_what_came_before_the_latest_stretch_does_not_count() -> None:
    stepped = groups(8, lambda t: 1e5 if t < 3 else 1.3e5)
    moment = next(group.end_s for index, group in enumerate(stepped) if settled(stepped[: index + 1]))
    assert moment == pytest.approx(3 + FLAT_S, abs=0.3), "once no more of the older half than is trimmed lies before"


@pytest.mark.parametrize("period", [0.6, 0.8, 1.0, 1.2])
def test_a_clock_that_swings_about_one_level_is_flat(period: float) -> None:
    swinging = groups(6, lambda t: 1e5 if t % period < 0.6 * period else 1.02e5)
    assert settled(swinging) is True


def recorded(name: str) -> list[Group]:
    columns = RECORDED[name]
    rows = zip(columns["t_ms"], columns["call_ns"], columns["sm_mhz"], strict=True)
    return [Group(t_ms / 1e3, round(1000 * call_ns), 1000, mhz) for t_ms, call_ns, mhz in rows]


def off(points: list[Group], since: float, seconds: float) -> float:
    """How far the median of so many seconds lies from that of what is left after the tenth."""
    stays = statistics.median(group.call_ns for group in points if group.end_s > 10)
    return statistics.median(group.call_ns for group in points if since < group.end_s <= since + seconds) / stays - 1


@pytest.mark.parametrize("name", RECORDED)
def test_what_is_measured_after_a_recorded_warm_up_is_what_stays(name: str) -> None:
    points = recorded(name)
    moment = next(group.end_s for index, group in enumerate(points) if settled(points[: index + 1]))
    assert LEAST_S <= moment < 6
    assert abs(off(points, moment, LEAST_MEASURED_S)) < FLAT


def test_a_shorter_warm_up_and_measurement_of_the_same_loads_do_not_do() -> None:
    """1.5 s each, as it once was."""
    assert max(abs(off(recorded(name), 1.5, 1.5)) for name in RECORDED) > 0.007


def test_a_load_that_never_settles_is_measured_all_the_same() -> None:
    restless = groups(11, lambda t: 1e5 * (1 + 0.02 * t))
    first = next(index for index in range(len(restless)) if settled(restless[: index + 1]) is not None)
    assert settled(restless[: first + 1]) is False
    assert restless[first].end_s == pytest.approx(MOST_S, abs=0.02)


def test_single_outliers_do_not_matter() -> None:
    spiky = groups(6, lambda t: 3e5 if round(t * 1000) % 170 < 10 else 1e5)
    assert settled(spiky) is True


def test_a_single_slow_group_of_one_half_does_not_count() -> None:
    assert settled(groups(6, lambda t: 3e5 if 5.004 < t < 5.014 else 1e5)) is True, "it makes a bare mean 1 % longer"


def test_it_is_the_time_of_a_call_that_holds_not_that_of_a_group() -> None:
    sizes = [10 if number < 6 else 20 for number in range(12)]
    assert flat([Group(0.5 * (number + 1), 1000 * calls, calls) for number, calls in enumerate(sizes)])
    assert not flat([Group(0.5 * (number + 1), 20_000, calls) for number, calls in enumerate(sizes)])


def test_a_clock_that_only_one_half_knows_has_no_say() -> None:
    assert settled(groups(6, lambda t: 1e5, lambda t: None if t < 4.2 else 1980.0)) is True


def test_the_least_time_is_enough() -> None:
    halves = [Group(0.5 * (number + 1), GROUP_NS, 100) for number in range(round(LEAST_S / 0.5))]
    assert settled(halves) is True
    assert settled(halves[:-1]) is None


def test_long_calls_are_compared_by_number_not_by_time() -> None:
    slow = [Group(2.0 * (i + 1), 2_000_000_000, 1, 1500.0) for i in range(LEAST_GROUPS)]
    assert not flat(slow[:-1])
    assert flat(slow)
    assert settled(slow[:-1]) is False, "five calls of two seconds are ten seconds"


def test_a_point_stands_for_a_tenth_of_a_second() -> None:
    series = Series()
    for group in groups(1.0, lambda t: 1e5, lambda t: 1980 if t < 0.5 else 1500):
        series.add(group)
        if series.due:
            series.close({"power_w": 690.5, "clock_events": ["software power cap"], "unavailable": {"x": "y"}})
        if group.end_s == pytest.approx(0.5):
            series.measuring()
    columns = series.columns()
    assert len(columns["t_ms"]) == 10
    assert columns["t_ms"] == pytest.approx([100 * (i + 1) for i in range(10)], abs=10)
    assert set(columns["call_ns"]) == {1e5}
    assert (columns["sm_mhz"][0], columns["sm_mhz"][-1]) == (1980, 1500)
    assert set(columns["power_w"]) == {690.5}
    assert columns["events"][0] == ["software power cap"]
    assert columns["measured_from_ms"] == 500
    assert [point["t_ms"] > 500 for point in series.measured] == [True] * 5
    assert "temperature_c" not in columns, "nothing is invented"


def test_what_was_read_once_is_none_elsewhere() -> None:
    series = Series()
    for told in ({"temperature_c": 40}, {}):
        series.add(Group(0.2 * (len(series.points) + 1), GROUP_NS, 1))
        series.close(told)
    assert series.columns()["temperature_c"] == [40, None]
    assert series.columns()["measured_from_ms"] is None


def test_a_point_is_due_once_another_tenth_has_ended() -> None:
    series = Series()
    assert not series.due, "nothing has ended yet"
    for end_s in (0.05, 0.2, 0.25, 0.3):
        series.add(Group(end_s, GROUP_NS, 1))
        if series.due:
            series.close({})
    assert series.columns()["t_ms"] == [200, 300], "0.3 s are three tenths, though 0.3 / 0.1 is a little less than 3"


def test_a_clock_that_some_groups_lack_is_the_mean_of_the_others() -> None:
    series = Series()
    for mhz in (1500.0, None, 1600.0):
        series.add(Group(0.1, GROUP_NS, 1, mhz))
    series.close({})
    assert series.columns()["sm_mhz"] == [1550.0]


def test_the_measurement_begins_with_the_last_group_of_the_warm_up() -> None:
    series = Series()
    series.add(Group(0.1, GROUP_NS, 1))
    series.close({})
    series.measuring()
    assert series.columns()["measured_from_ms"] == 100
    assert series.measured == [], "the point that ends there is warm-up"
    series.add(Group(0.15, GROUP_NS, 1))
    series.measuring()
    assert series.columns()["measured_from_ms"] == 150


def test_a_long_series_is_thinned_out_evenly() -> None:
    series = Series()
    for number in range(2000):
        series.add(Group(0.1 * (number + 1), GROUP_NS, 1))
        series.close({})
    times = series.columns()["t_ms"]
    assert len(times) == MOST_POINTS
    assert (times[0], times[-1]) == (100, 200_000)
    steps = {after - before for before, after in pairwise(times)}
    assert steps <= {500, 600}
