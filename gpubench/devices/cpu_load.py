"""A CPU kept busy: groups of calls one after the other, on the next copy of their buffers each, without a rest."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from gpubench.devices import Call, cpuinfo
from gpubench.result import Timer
from gpubench.steady import Group

GROUP_S = 0.010
"""A group takes at least this long, or one call."""
WARM_CALLS = 3
"""Calls before the first group; the last of them says how many make one."""


class Rotation:
    """Calls made in turn, each on its own copy of the buffers."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls
        self._next = 0

    def time(self, launches: int) -> int:
        """The time of the next so many calls, in ns."""
        first, count = self._next, len(self._calls)
        calls = [self._calls[(first + i) % count] for i in range(launches)]
        self._next = (first + launches) % count
        before = time.perf_counter_ns()
        for call in calls:
            call()
        return time.perf_counter_ns() - before


class CpuLoad:
    """Calls on the CPU, which are over when they return: none is in flight. See Load."""

    def __init__(self, calls: Sequence[Call], timer: Timer) -> None:
        self.timer = timer
        self.refused: Sequence[str] = ()
        self._rotation = Rotation(calls)
        self._launches = 1
        self._begun_ns = 0

    def start(self) -> None:
        """See Load."""
        took = [self._rotation.time(1) for _ in range(WARM_CALLS)]
        self._launches = max(1, math.ceil(GROUP_S * 1e9 / max(took[-1], 1)))
        self._begun_ns = time.perf_counter_ns()

    def next(self) -> Group:
        """See Load."""
        spent = self._rotation.time(self._launches)
        return Group((time.perf_counter_ns() - self._begun_ns) / 1e9, spent, self._launches)

    def stop(self) -> None:
        """Nothing is in flight."""


class CpuWatch:
    """What the operating system tells beside the load. See Watch."""

    def clock(self) -> float:
        """See Watch."""
        return time.perf_counter()

    def pulse(self) -> dict[str, Any]:
        """See Watch."""
        return cpuinfo.pulse()

    def snapshot(self) -> dict[str, Any]:
        """Nothing: a CPU counts no clock events."""
        return {}

    def joules(self) -> float:
        """See Watch: there is none that a user may read."""
        raise LookupError("no counter of energy is read on a CPU")

    def gpm(self) -> dict[str, float] | None:
        """See Watch."""
        raise LookupError("a CPU has no GPM")

    def close(self) -> None:
        """Nothing is held."""
