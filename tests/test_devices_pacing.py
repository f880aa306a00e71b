"""The rules of pacing and of the choice of timers, each by its bounds."""

from __future__ import annotations

import pytest

from gpubench.devices.pacing import (
    HOLD_MOST_S,
    MOST_COPIES,
    TRIES,
    WARM_UP_CALLS,
    copies,
    is_warm,
    order,
    pace,
    repeated,
)
from gpubench.errors import TimerFailed, UsageError


@pytest.mark.parametrize(
    ("call_ms", "rest_ms"),
    [(0, 0.5), (0.004, 0.5), (0.125, 0.5), (0.15, 0.6), (1.4, 5.6), (100, 400)],
)
def test_a_call_rests_half_a_millisecond_or_four_times_its_own_time(call_ms: float, rest_ms: float) -> None:
    assert pace(call_ms * 1e6, 0).rest_s == pytest.approx(rest_ms / 1e3)


@pytest.mark.parametrize(
    ("enqueue_us", "hold_us"),
    [(0, 200), (9, 200), (50, 200), (51, 204), (300, 1200), (1250, 5000), (10_000, 5000)],
)
def test_the_stream_is_held_four_times_the_enqueueing_within_bounds(enqueue_us: float, hold_us: float) -> None:
    assert pace(5000, enqueue_us * 1e-6).hold_s == pytest.approx(hold_us * 1e-6)
    assert pace(1e9, enqueue_us * 1e-6).hold_s <= HOLD_MOST_S, "however long the call takes"


@pytest.mark.parametrize(("calls", "spent_ms", "warm"), [(0, 0, False), (2, 500, False), (3, 19, False), (3, 20, True)])
def test_warm_after_enough_calls_and_enough_time(calls: int, spent_ms: float, warm: bool) -> None:
    assert is_warm(calls, spent_ms / 1e3) is warm
    assert WARM_UP_CALLS == 3


@pytest.mark.parametrize(
    ("call_us", "held"),
    [(0, 1000), (0.1, 1000), (1, 1000), (1.01, 991), (3.6, 278), (55, 19), (999, 2), (1000, 1), (100_000, 1)],
)
def test_a_replay_takes_a_millisecond_and_stays_bounded(call_us: float, held: int) -> None:
    assert copies(call_us * 1000) == held
    assert held * call_us >= 1000 or held == MOST_COPIES


@pytest.mark.parametrize("failures", range(TRIES))
def test_a_session_is_repeated_until_it_adds_up(failures: int) -> None:
    told = [TimerFailed("short")] * failures
    made = []

    def session() -> str:
        made.append(1)
        if told:
            raise told.pop()
        return "records"

    assert repeated(session) == "records"
    assert len(made) == failures + 1


def test_a_session_that_never_adds_up_is_given_up_with_its_last_words() -> None:
    made: list[int] = []

    def session() -> str:
        made.append(1)
        raise TimerFailed(f"attempt {len(made)}")

    with pytest.raises(TimerFailed, match=f"attempt {TRIES}"):
        repeated(session)


def test_other_errors_are_not_repeated() -> None:
    made: list[int] = []

    def session() -> str:
        made.append(1)
        raise MemoryError

    with pytest.raises(MemoryError):
        repeated(session)
    assert len(made) == 1


def test_the_order_of_timers() -> None:
    known = ("cupti", "graph", "event")
    assert order("auto", known, "a GPU") == known
    assert order("graph", known, "a GPU") == ("graph",)
    with pytest.raises(UsageError, match="no timer 'host' on a GPU"):
        order("host", known, "a GPU")
