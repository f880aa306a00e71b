"""How calls are paced and which timer takes them: pure rules, which every device with a choice of timers follows.

A call of a burst case rests first, so that the clock returns to its maximum, and is held back on the device until the
host has enqueued all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from gpubench.errors import TimerFailed, UsageError

REST_S = 0.0005
"""Rest before each call, at least. On an H200, 0.2 to 4 ms gave the same times and clocks for calls of 3 to 180 µs."""
REST_SHARE = 4.0
"""A long call is given a rest of this many times its own time: a GPU at its power limit needs a fifth of the load."""
HOLD_S = 200e-6
"""The stream is held at least this long: after a rest, Python's path to the first launch takes up to 100 µs."""
HOLD_SHARE = 4.0
"""A call is given this many times the host time it takes to enqueue; a timer that records every launch slows it."""
HOLD_MOST_S = 5e-3
"""The stream is held no longer than this, however long a call takes to enqueue."""
WARM_UP_S = 0.02
"""Calls are made for so long before the first sample, and never fewer than WARM_UP_CALLS."""
WARM_UP_CALLS = 3
TRIES = 3
"""A batch whose records do not add up is repeated, at most this often in all, before the timer is given up."""
REPLAY_S = 1e-3
"""A replay of a graph takes at least so long: what its start and its end cost is then below 1 % of it."""
MOST_COPIES = 1000
"""A graph holds no more copies: capturing and loading them takes time."""

T = TypeVar("T")


@dataclass(frozen=True)
class Pace:
    """What comes before each call, in seconds: a rest of the device, then a hold of the stream."""

    rest_s: float = REST_S
    hold_s: float = HOLD_S


def pace(call_ns: float, enqueue_s: float) -> Pace:
    """The pace of a call that takes so long on the device, and so long to be enqueued."""
    rest_s = max(REST_S, REST_SHARE * call_ns / 1e9)
    return Pace(rest_s, min(max(HOLD_S, HOLD_SHARE * enqueue_s), HOLD_MOST_S))


def is_warm(calls: int, spent_s: float) -> bool:
    """Whether so many calls over so many seconds have warmed up caches, clocks and just-in-time compilers."""
    return calls >= WARM_UP_CALLS and spent_s >= WARM_UP_S


def copies(call_ns: float) -> int:
    """How many copies of a call one graph holds, so that its replay takes REPLAY_S and it stays bounded. In a cold case
    `call_ns` includes the flush that each copy comes with."""
    return min(max(math.ceil(REPLAY_S * 1e9 / max(call_ns, 1.0)), 1), MOST_COPIES)


def repeated(session: Callable[[], T]) -> T:
    """A session whose records add up, of at most TRIES; the last one's TimerFailed where none does."""
    for _ in range(TRIES - 1):
        with suppress(TimerFailed):  # and kept by no name: its frames hold the tensors of the case
            return session()
    return session()


def order(asked: str, known: Sequence[str], where: str) -> Sequence[str]:
    """The timers to try, best first: all of `known` for "auto", else the one asked for. UsageError, in which `where`
    names the device, for one that is not known."""
    if asked == "auto":
        return tuple(known)
    if asked not in known:
        raise UsageError(f"no timer {asked!r} on {where}", "--timer auto")
    return (asked,)
