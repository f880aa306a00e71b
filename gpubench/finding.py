"""What the rule of a claim finds in a run: named effects, controls, a prediction. Plain data, for authors of suites.

A rule measures and says what would count; which verdict follows from that is decided in `gpubench.claims.judge` alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Proof = Literal["A", "B", "C"]
"""A: by a counter or a count of the kernel's own. B: by time alone. C: by arithmetic alone."""

TIMES = "×"
"""The unit of a ratio that is 1 where there is no effect."""


@dataclass(frozen=True)
class Estimate:
    """A figure between the limits of its 95 % interval; a count has no width."""

    value: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether it can be judged: three finite numbers in order."""
        return all(map(math.isfinite, (self.value, self.low, self.high))) and self.low <= self.value <= self.high

    def times(self, by: float) -> Estimate:
        """It times a number above 0."""
        return Estimate(self.value * by, self.low * by, self.high * by)

    def over(self, other: Estimate) -> Estimate:
        """The ratio of two figures above 0, each anywhere between its limits."""
        return Estimate(self.value / other.value, self.low / other.high, self.high / other.low)


def exactly(value: float) -> Estimate:
    """A figure without an interval: a count, or a single reading."""
    return Estimate(value, value, value)


@dataclass(frozen=True)
class Effect:
    """A named figure, and the limits between which its whole interval must lie. Without limits it is for information.

    `unit` is SI, or TIMES for a ratio with `at_least`: that may hold in part.
    """

    name: str
    found: Estimate
    unit: str = "1"
    at_least: float | None = None
    at_most: float | None = None

    @property
    def judged(self) -> bool:
        """Whether it has a limit."""
        return self.at_least is not None or self.at_most is not None


@dataclass(frozen=True)
class Finding:
    """Everything a verdict is made of.

    `effects` are what is claimed, `controls` where nothing may happen, or where something must: one that fails makes
    the others worthless. `prediction` is what the model says of device and parameters. `note` is a remark for the
    reader.
    """

    effects: tuple[Effect, ...]
    controls: tuple[Effect, ...] = ()
    prediction: Mapping[str, Any] = field(default_factory=dict)
    proof: Proof = "B"
    note: str = ""


class NotTestable(Exception):
    """This device cannot show it: the message says why."""


class RowsMissing(Exception):
    """The run lacks rows that a rule needs: the message says which."""


Rule = Callable[[Any], Finding]
"""A pure function of a `gpubench.claims.view.View`."""
