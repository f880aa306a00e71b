"""Energy from a counter that advances in steps."""

from __future__ import annotations

import math

import pytest

from gpubench.energy import LEAST_WINDOW_S, Meter, metrics
from gpubench.result import Work


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


def test_a_counter_that_falls_begins_anew() -> None:
    meter = Meter()
    for now, joules in [(0.0, 5e6), (0.1, 5e6 + 50), (0.2, 10.0), (0.3, 40.0), (1.5, 400.0)]:
        meter.see(now, joules)
    assert meter.watts == pytest.approx((400 - 10) / 1.3)


def test_per_flop_and_per_byte_where_the_row_has_them() -> None:
    energy = {"joules_per_call": 2.0, "power_w": 100.0}
    found = {metric.name: (metric.value, metric.unit) for metric in metrics(energy, Work(flops=4, bytes=8))}
    assert found == {
        "energy": (2.0, "J"),
        "power": (100.0, "W"),
        "energy_per_flop": (0.5, "J/FLOP"),
        "energy_per_byte": (0.25, "J/B"),
    }
    assert [metric.name for metric in metrics(energy, Work(flops=0, bytes=0))] == ["energy", "power"]
    assert not any(metric.primary for metric in metrics(energy, Work(flops=4, bytes=8)))


def test_nothing_where_it_could_not_be_measured() -> None:
    assert metrics({"joules_per_call": None, "power_w": None, "unavailable": "why"}, Work(4, 8)) == []
    assert metrics({}, None) == []
