"""Made-up machines, one for each rule of the suites: with its effect, without it, and with a control that fails.

A world is the time in µs of each row (and what its kernel or the hardware counted) on a machine where the claim holds;
what changes it names the rows that another world differs in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builders import GPU, make_ceilings, make_record, make_run

from gpubench import Metric
from gpubench.claims import judge as claims
from gpubench.discovery import Library
from gpubench.result import Ceiling, Record
from gpubench.suite import Suite

LIBRARY = Library(Path(__file__).parents[2] / "suites")
STATEMENTS = LIBRARY.claims()
SUITES = LIBRARY.suites()
RULES = {claim: suite for suite in SUITES.values() for claim in suite.claims}


@dataclass
class Row:
    """One row of a world: `words` are its benchmark and parameters, as on the command line."""

    words: str
    us: float = 1000
    metrics: Mapping[str, float] = field(default_factory=dict)
    counters: Mapping[str, float] = field(default_factory=dict)
    prediction: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)

    def record(self, suite: str) -> Record:
        benchmark, *named = self.words.split()
        params: dict[str, int | str] = {}
        for word in named:
            name, value = word.split("=")
            params[name] = int(value) if value.lstrip("-").isdigit() else value
        made = make_record(suite, benchmark, params=params, time_ns=round(1000 * self.us), **self.fields)
        made.metrics += [Metric(name, value, "1", "lower") for name, value in self.metrics.items()]
        made.counters, made.prediction = dict(self.counters), dict(self.prediction)
        return made


@dataclass
class World:
    """Rows, and the verdict of the claims on them."""

    claim: str
    rows: list[Row]
    without: dict[str, Any]
    """What differs by row, where the effect is not there: a time, or metrics, or counters, or another Row."""
    broken: dict[str, Any] | None
    """The same, where a control fails; None for claims that are information only."""
    verdict: str = "HOLDS"
    absent: str = "ABSENT"
    device: Mapping[str, Any] = field(default_factory=lambda: GPU | {"multiprocessors": 132})
    proof: str = "B"
    cpu: bool = False
    """Whether the claim has a counterpart on a CPU."""
    alone: bool = False
    """Whether its first row is enough for a verdict."""

    def judged(self, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
        suite: Suite = RULES[self.claim]
        changed = [_changed(row, (changes or {}).get(row.words)) for row in self.rows]
        assert set(changes or {}) <= {row.words for row in self.rows}
        run = make_run([row.record(suite.name) for row in changed], device=dict(self.device))
        run.ceilings = [*make_ceilings(), *FP32]
        (found,) = claims.in_run(run, [STATEMENTS[self.claim]], {suite.name: suite})
        return found


FP32 = [
    Ceiling("compute", "fp32 FMA", 60e12, "FLOP/s", "peak/fma[]", "2026-07-12T10:15:00Z", "stored", dtype="float32")
]


def _changed(row: Row, change: Any) -> Row:
    if change is None:
        return row
    if isinstance(change, Row):
        return change
    if isinstance(change, Mapping):
        counted = "metrics" if row.metrics else "counters"
        return Row(row.words, row.us, **{
            "metrics": row.metrics, "counters": row.counters, "prediction": row.prediction, "fields": row.fields,
            counted: {**getattr(row, counted), **change},
        })  # fmt: skip
    return Row(row.words, change, row.metrics, row.counters, row.prediction, row.fields)
