"""Verdicts on two runs: plain data between `compare`, which finds them, `gate`, which decides a build, and reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from gpubench.result import Direction, Record

Verdict = Literal[
    "same",  # within the margin
    "suspect",  # worse by more than the margin, on the evidence of one run a side
    "better",  # better by more than the margin, on the same evidence
    "regression",  # worse beyond the margin and beyond what earlier runs of the baseline predict
    "improvement",  # mirrored
    "not comparable",  # another device, timer, method, mode or definition: which is in `reason`
    "invalid",  # a figure that cannot be judged: zero, negative, of another unit
    "missing",  # in the base, not in the new run
    "new",  # the other way round
    "failed",  # gave a number in the base, none now
    "fixed",  # the other way round
    "still failing",  # none on either side
    "equivalent",  # measured in pairs: surely within the margin
    "inconclusive",  # measured in pairs: neither surely within the margin nor surely beyond it
]

FAILING: frozenset[str] = frozenset({"failed", "missing", "invalid"})
"""Verdicts that say a row is not there to be judged, where it ought to be."""


@dataclass(frozen=True)
class Change:
    """One metric of a matched row. `ratio` is new/base as measured, with its interval where both sides have one; `loss`
    is ln of how much worse it got (positive: worse, whatever the metric's direction; 0 of one that is not judged)."""

    metric: str
    unit: str
    direction: Direction
    base: float
    new: float
    ratio: float
    low: float | None
    high: float | None
    loss: float
    primary: bool = False


@dataclass(frozen=True)
class Mismatch:
    """A field in which the sides of a comparison may not differ, and do, with both values in words. `host`: it is the
    device, or the clock it held, and so what `--host-mismatch` is about."""

    field: str
    base: str
    new: str
    host: bool = False

    def __str__(self) -> str:
        return f"{self.field}: {self.base} against {self.new}"


@dataclass
class Row:
    """One row of a comparison: what it is called, both sides where they are, the verdict and why."""

    id: str
    conditions: dict[str, str]
    verdict: Verdict
    reason: str | None = None
    base: Record | None = None
    new: Record | None = None
    changes: list[Change] = field(default_factory=list)
    mismatches: list[Mismatch] = field(default_factory=list)
    """Why a row is not comparable."""
    subject: list[str] = field(default_factory=list)
    """What differs between the sides and is what the comparison is about: driver, torch, commit."""
    hints: list[str] = field(default_factory=list)
    """Causes that the two files themselves suggest: another kernel, another clock, a throttle."""
    base_run: str | None = None
    """The run of the base that `base` is of; None without one, and of a row measured in pairs, which has a side's."""
    middle_of: int | None = None
    """Of how many runs of the base `base` is the middle one; None where it is the newest's."""
    paired: dict[str, Any] = field(default_factory=dict)
    """Of a row that was measured in pairs, as JSON: its blocks and what they could have shown, `gpubench.ab.judge`."""

    @property
    def change(self) -> Change | None:
        """The change of the primary metric."""
        return next((change for change in self.changes if change.primary), None)


@dataclass
class Judged:
    """A comparison: every row of either side once, and what was compared with what."""

    base_name: str
    new_name: str
    margin: float
    rows: list[Row]
    notes: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)

    def count(self, *verdicts: str) -> int:
        """How many rows have one of these verdicts."""
        return sum(row.verdict in verdicts for row in self.rows)
