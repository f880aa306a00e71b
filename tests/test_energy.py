"""Energy from a counter that advances in steps."""

from __future__ import annotations

import math
from typing import Any

import pytest
from builders import make_record

from gpubench.energy import HOT, LEAST_WINDOW_S, STREAMED, Meter, is_of_hot_calls, metrics
from gpubench.result import Cache, Conditions, Record, Work


def read(watts: float, seconds: float, every: float = 0.01, refresh: float = 0.1, from_s: float = 0.037) -> Meter:
    """A counter that is refreshed every so often, read every so often."""
    meter = Meter()
    for number in range(round(seconds / every)):
        now = from_s + number * every
        meter.see(now, watts * math.floor(now / refresh + 1e-9) * refresh)
    return meter


def test_power_is_taken_between_steps_of_the_counter() -> None:
    meter = read(700, 1.5)
    assert meter.watts == pytest.approx(700, rel=0.01), "an end that fell between two steps would be off by 7 %"
    assert meter.window_s == pytest.approx(1.4, abs=0.02)


def test_a_second_at_least() -> None:
    assert read(700, LEAST_WINDOW_S).watts is None
    assert read(0, 2).watts is None, "a counter that stands still counts nothing"
    assert Meter().watts is None
    meter = Meter()
    for now, joules, watts in [(0.0, 1.0, None), (1.0, 2.0, None), (1.75, 4.0, None), (2.0, 5.0, 3.0)]:
        meter.see(now, joules)
        assert meter.watts == watts, "the step at 1 s is the first that is known"


def test_a_counter_that_falls_begins_anew() -> None:
    meter = Meter()
    for now, joules in [(0.0, 5e6), (0.1, 5e6 + 50), (0.2, 10.0), (0.3, 40.0), (1.5, 400.0)]:
        meter.see(now, joules)
    assert meter.watts == pytest.approx((400 - 10) / 1.3)


def row(work: Work | None, cache: Cache = "hot", **energy: Any) -> Record:
    """A row that needs `work` and keeps this of its energy."""
    asked = Conditions(cache=cache)
    return make_record(work=work, conditions=asked, telemetry={"energy": energy} if energy else {})


def test_per_flop_and_per_byte_where_the_row_has_them() -> None:
    energy = {"joules_per_call": 2.0, "power_w": 100.0, "conditions": HOT}
    found = {
        metric.name: (metric.value, metric.unit, metric.direction) for metric in metrics(row(Work(4, 8), **energy))
    }
    assert found == {
        "energy": (2.0, "J", "lower"),
        "power": (100.0, "W", "none"),
        "energy_per_flop": (0.5, "J/FLOP", "lower"),
        "energy_per_byte": (0.25, "J/B", "lower"),
    }
    assert [metric.name for metric in metrics(row(Work(0, 0), **energy))] == ["energy", "power"]
    assert not any(metric.primary for metric in metrics(row(Work(4, 8), **energy)))


def test_a_byte_of_hot_calls_is_none_of_a_cold_row() -> None:
    energy = {"joules_per_call": 2.0, "power_w": 100.0}
    warm, streaming = (row(Work(4, 8), "cold", **energy, conditions=each) for each in (HOT, STREAMED))
    assert [is_of_hot_calls(each) for each in (warm, streaming)] == [True, False]
    assert not is_of_hot_calls(row(Work(4, 8), "hot", **energy, conditions=HOT)), "it says so itself"
    assert not is_of_hot_calls(row(Work(4, 8), "cold")), "what has no energy has none of hot calls"
    assert [metric.name for metric in metrics(warm)] == ["energy", "power", "energy_per_flop"]
    assert [metric.name for metric in metrics(streaming)][-1] == "energy_per_byte"


def test_nothing_where_it_could_not_be_measured() -> None:
    assert metrics(row(Work(4, 8), joules_per_call=None, power_w=None, unavailable="why")) == []
    assert metrics(row(Work(4, 8), joules_per_call=2.0, power_w=None)) == []
    assert metrics(row(None)) == []
