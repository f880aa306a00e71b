"""What lies between two snapshots: spoiled by heat or by the hardware, or just the way the GPU runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from builders import make_record

from gpubench.telemetry import (
    OUTLASTS_NS,
    REGIMES,
    SM_CLOCK,
    THROTTLES,
    Limit,
    beside_mhz,
    busy,
    events,
    held_mhz,
    idle,
    limit,
    throttles,
    unread_clock,
)

CAP, SW, HW, BRAKE = (
    "software power cap",
    "software thermal slowdown",
    "hardware thermal slowdown",
    "hardware power brake",
)


def snapshot(*seen: str, **ns: int) -> dict[str, Any]:
    names = {"cap": CAP, "sw": SW, "hw": HW, "brake": BRAKE}
    return {"clock_events": list(seen), "event_ns": {names[name]: value for name, value in ns.items()}}


@pytest.mark.parametrize(
    ("before", "after", "spoiled"),
    [
        (snapshot(sw=5, hw=7), snapshot(sw=5, hw=7), []),
        (snapshot(sw=5, hw=7), snapshot(sw=6, hw=7), [SW]),
        (snapshot(sw=5, hw=7), snapshot(sw=6, hw=8), [HW, SW]),
        (snapshot(brake=0), snapshot(brake=1), [BRAKE]),
        (snapshot(cap=0, hw=0), snapshot(CAP, cap=10**9, hw=0), []),
        (snapshot(HW), snapshot(), [HW]),
        (snapshot(), snapshot(HW, CAP), [HW]),
        (snapshot(HW, hw=1), snapshot(HW, hw=2), [HW]),
        (snapshot(hw=9), snapshot(hw=0), []),
        (snapshot(), snapshot(hw=10**12), []),
        (snapshot(hw=1), snapshot(), []),
        ({}, {}, []),
        ({"clock_events": None, "event_ns": None}, {"event_ns": None}, []),
    ],
    ids=[
        "nothing happened",
        "one counter advanced",
        "two counters advanced",
        "power brake",
        "a power cap is the regime",
        "seen before",
        "seen after",
        "seen and counted is one event",
        "the driver was loaded again",
        "no counter before",
        "no counter after",
        "a CPU",
        "nothing could be read",
    ],
)
def test_what_spoiled_a_measurement(before: dict[str, Any], after: dict[str, Any], spoiled: list[str]) -> None:
    assert throttles(before, after) == spoiled


def test_events_of_bits() -> None:
    assert events(0) == []
    assert events(0x44) == [HW, CAP]
    assert events(0x200) == [], "a bit that has no name"
    everything = sum([*THROTTLES, *REGIMES])
    assert events(everything) == [*THROTTLES.values(), *REGIMES.values()]


@pytest.mark.parametrize(
    ("utilization", "others", "why", "free"),
    [
        (0, 0, None, True),
        (9, 0, None, True),
        (10, 0, "utilization 10 %", False),
        (0, 1, "1 other process", False),
        (97, 2, "utilization 97 %, 2 other processes", False),
        (None, 0, None, True),
        (0, None, None, True),
        (None, 3, "3 other processes", False),
        (None, None, None, False),
    ],
)
def test_busy_and_idle(utilization: int | None, others: int | None, why: str | None, free: bool) -> None:
    now = {"utilization_percent": utilization, "other_processes": others}
    assert (busy(now), idle(now)) == (why, free)


# What limited a load

FULL = {CAP: 0, SW: 0, HW: 0, BRAKE: 0}


def limited(
    ended: dict[str, int], polled: Sequence[Sequence[str] | None] = (), started: Mapping[str, int] = FULL
) -> Limit | None:
    return limit({"event_ns": started}, {"event_ns": {**started, **ended}}, 10e9, polled)


@pytest.mark.parametrize(
    ("ended", "by"),
    [
        ({}, "none"),
        ({CAP: 9_000_000_000}, "power cap"),
        ({BRAKE: 600_000_000}, "power cap"),
        ({SW: 5_000_000_000}, "thermal"),
        ({HW: 5_000_000_000, CAP: 1_000_000_000}, "thermal"),
        ({HW: 1_000_000_000, CAP: 5_000_000_000}, "power cap"),
        ({CAP: 499_000_000}, "none"),  # below LIMITED: an episode
        ({CAP: 500_000_000}, "power cap"),
    ],
)
def test_counters_say_what_limited_a_load(ended: dict[str, int], by: str) -> None:
    found = limited(ended)
    assert found is not None
    assert (found.by, found.may_miss) == (by, False)
    assert found.shares == {name: ns / 10e9 for name, ns in ended.items()}


def test_polls_say_it_where_a_driver_does_not_count_and_may_miss() -> None:
    polled = [[CAP], [CAP, SW], None, [], [CAP]]
    found = limit({}, {}, 10e9, polled)
    assert found == Limit("power cap", {CAP: 0.75, SW: 0.25}, may_miss=True)
    assert limit({}, {}, 10e9, [[], []]) == Limit("none", {}, may_miss=True)
    assert limit({}, {}, 10e9, [["hardware slowdown"]]) == Limit("hardware slowdown", {"hardware slowdown": 1.0}, True)


def test_a_driver_may_count_some_events_only() -> None:
    found = limited({CAP: 0}, [[SW]], started={CAP: 0})
    assert found == Limit("thermal", {SW: 1.0}, may_miss=True)


def test_a_counter_beats_the_polls() -> None:
    found = limited({}, [[CAP]])
    assert found == Limit("none", {}, may_miss=False)


def test_a_counter_is_one_that_was_read_before_and_after_a_time() -> None:
    assert limit({}, {"event_ns": {CAP: 9}}, 10e9, [[SW]]) == Limit("thermal", {SW: 1.0}, may_miss=True)
    assert limit({"event_ns": FULL}, {"event_ns": FULL}, 0.0, []) is None
    found = limited({CAP: 11_000_000_000})
    assert found is not None
    assert found.shares == {CAP: 1.0}, "an event is on for no longer than all the time"


def test_nothing_was_read() -> None:
    assert limit({}, {}, 10e9, [None, None]) is None
    assert limit({"event_ns": None}, {"event_ns": None}, 10e9, []) is None


@pytest.mark.parametrize(
    ("before", "after", "caps"),
    [
        (snapshot(cap=5), snapshot(cap=5), None),
        (snapshot(cap=5), snapshot(cap=6), CAP),
        (snapshot(), snapshot(CAP), CAP),
        (snapshot(brake=0, cap=0), snapshot(brake=1, cap=1), f"{BRAKE}, {CAP}"),
        (snapshot(sw=1), snapshot(HW, sw=2), None),
        (snapshot(cap=9), snapshot(cap=0), None),
        ({}, {}, None),
    ],
)
def test_a_clock_beside_a_long_call_under_a_power_cap_is_not_known_to_be_that_within(
    before: dict[str, Any], after: dict[str, Any], caps: str | None
) -> None:
    why = None if caps is None else f"read beside calls of 1.4 ms, and not within them: {caps}"
    assert unread_clock(before, after, 1_400_000) == why
    assert unread_clock(before, after, OUTLASTS_NS) is None


def test_the_clock_held_is_that_beside_the_samples_unless_it_is_not_known_within_them() -> None:
    record = make_record()
    record.samples.sm_mhz = [None, 1980.0, 0.0, 1740.0, 1755.0]
    assert held_mhz(record) == beside_mhz(record) == 1755.0
    record.telemetry[SM_CLOCK] = "read beside"
    assert (held_mhz(record), beside_mhz(record)) == (0.0, 1755.0)
    record.samples.sm_mhz = [None]
    assert beside_mhz(record) == 0.0
