"""When a load is flat, and what its series keeps."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from gpubench.steady import FLAT_S, LEAST_GROUPS, LEAST_S, MOST_POINTS, MOST_S, Group, Series, flat, settled

GROUP_NS = 10_000_000


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
    steady = groups(3, lambda t: 1e5)
    assert settled([]) is None
    first = next(count for count in range(1, len(steady)) if settled(steady[:count]) is not None)
    assert settled(steady[:first]) is True
    assert steady[first - 1].end_s == pytest.approx(LEAST_S, abs=0.02)


def test_a_rate_that_still_falls_is_not_flat() -> None:
    falling = groups(3, lambda t: 1e5 * (1 + 0.02 * t))
    assert settled(falling) is None
    assert settled(groups(3, lambda t: 1e5 * (1 + 0.002 * t))) is True, "0.1 % between the halves of a second"


def test_a_clock_that_still_falls_is_not_flat_though_the_rate_is() -> None:
    assert settled(groups(3, lambda t: 1e5, lambda t: 1980 - 40 * t)) is None
    assert settled(groups(3, lambda t: 1e5, lambda t: None)) is True, "no clock, no say"


def test_what_came_before_the_last_second_does_not_count() -> None:
    stepped = groups(4, lambda t: 1e5 if t < 1.2 else 1.3e5)
    moment = next(group.end_s for index, group in enumerate(stepped) if settled(stepped[: index + 1]))
    assert moment == pytest.approx(1.2 + 0.75 * FLAT_S, abs=0.08), "once most of the older half is after the step"


def test_a_load_that_never_settles_is_measured_all_the_same() -> None:
    restless = groups(11, lambda t: 1e5 * (1 + 0.02 * t))
    first = next(index for index, group in enumerate(restless) if settled(restless[: index + 1]) is not None)
    assert settled(restless[: first + 1]) is False
    assert restless[first].end_s == pytest.approx(MOST_S, abs=0.02)


def test_single_outliers_do_not_matter() -> None:
    spiky = groups(3, lambda t: 3e5 if round(t * 1000) % 170 < 10 else 1e5)
    assert settled(spiky) is True


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
