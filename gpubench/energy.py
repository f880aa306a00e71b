"""Energy of calls made back to back, from a counter that advances in steps; what it is per flop and per byte. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpubench.result import Metric, Record

ENERGY_S = 1.5
"""Calls run at least this long for their energy: the counter is read over a second or more."""
LEAST_WINDOW_S = 1.0
"""Between the first and the last step of the counter that count; a step may lie a tenth of a second after the last."""
HOT = "hot, back to back"
"""What an energy holds for, whatever the row's conditions are: flushes and rests are nobody's energy per call."""
STREAMED = "back to back, over data that no cache holds"
"""What the energy of a cold row holds for where its calls find as little in the caches without a flush."""


@dataclass
class Meter:
    """Average power, between two moments at which the counter was seen to step.

    A counter that is only refreshed now and then says nothing of the moment it is read at, but much of the moment it
    changes. `see` is to be called often: a step is known as well as the moments lie close.
    """

    _last: float | None = None
    _first_step: tuple[float, float] | None = None
    _last_step: tuple[float, float] | None = None

    def see(self, t_s: float, joules: float) -> None:
        """The counter at a time in seconds. One that falls has been started anew: what was seen before is forgotten."""
        if self._last is not None and joules != self._last:
            self._last_step = (t_s, joules)
            if self._first_step is None or joules < self._last:
                self._first_step = self._last_step
        self._last = joules

    @property
    def window_s(self) -> float:
        """The time between the first step and the last."""
        return 0.0 if not (self._first_step and self._last_step) else self._last_step[0] - self._first_step[0]

    @property
    def watts(self) -> float | None:
        """The average power in the window; None below LEAST_WINDOW_S."""
        if self._first_step is None or self._last_step is None or self.window_s < LEAST_WINDOW_S:
            return None
        return (self._last_step[1] - self._first_step[1]) / self.window_s


def is_of_hot_calls(record: Record) -> bool:
    """Whether the energy of a cold row is that of calls which may have found their data in a cache."""
    energy: Mapping[str, Any] = record.telemetry.get("energy") or {}
    return record.conditions.cache == "cold" and energy.get("conditions") == HOT


def metrics(record: Record) -> list[Metric]:
    """The figures of a row from what it keeps as its energy; none where it could not be measured. A cold row has none
    per byte where its energy is that of hot calls: its bytes came from memory, theirs may have come from a cache."""
    energy: Mapping[str, Any] = record.telemetry.get("energy") or {}
    work, joules, watts = record.work, energy.get("joules_per_call"), energy.get("power_w")
    if joules is None or watts is None:
        return []
    found = [Metric("energy", joules, "J", "lower"), Metric("power", watts, "W", "none")]
    if work is not None and work.flops:
        found.append(Metric("energy_per_flop", joules / work.flops, "J/FLOP", "lower"))
    if work is not None and work.bytes and not is_of_hot_calls(record):
        found.append(Metric("energy_per_byte", joules / work.bytes, "J/B", "lower"))
    return found
