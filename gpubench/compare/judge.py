"""Figures of two matched rows: can they be judged, how did each change, and what is the verdict on the row.

With one run of the base, a difference beyond the margin is `suspect` or `better`: how far a run strays from the next is
not known. With MIN_HISTORY runs of it or more it is, and a difference beyond the margin of the middle one of them *and*
beyond what they predict is a `regression` or an `improvement`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gpubench.result import Direction, Metric, Record
from gpubench.stats import per_call, percentile, prediction_interval, ratio_interval, tick_per_call, trusted_median
from gpubench.suite import record_id
from gpubench.units import format_half_width
from gpubench.verdict import Change, Verdict

MIN_HISTORY = 5
"""Values of a row in as many runs of the base say how far one run strays from the next."""
ROUNDING = 1e-9
"""A loss of exactly the margin is within it, whatever the last bit of a logarithm says."""
EDITED = 1e-6
"""Share by which a row's time may differ from the median of its own samples."""
SHARE = "1"
"""The unit of a share of a yardstick, which repeats another metric of its row and is not judged beside it."""
SIGNS = {"lower": 1, "higher": -1, "none": 0}
"""What more of a figure is, by the direction that is better: worse, or better, or neither, as of what is not judged."""
RATES = frozenset({"FLOP/s", "B/s"})
"""Units of so much work over the time of one call."""
SAME: tuple[Verdict, None] = ("same", None)
WORST_FIRST: tuple[Verdict, ...] = ("regression", "suspect", "improvement", "better", "same")


@dataclass(frozen=True)
class Evidence:
    """What a row is judged by: its margin, a fraction; the same row of the base's runs, of which the middle one is the
    base of its changes where they are enough; and what there is where they are too few, in words."""

    margin: float
    earlier: Sequence[Record]
    instead: str

    @property
    def limit(self) -> float:
        """The margin on the scale of a loss."""
        return math.log1p(self.margin) + ROUNDING


def margin_of(record: Record, common: float, special: Mapping[str, float]) -> float:
    """The margin of a row: that of the last of `special` which fits its suite, suite/benchmark or id, as a name or a
    glob; else the common one."""
    return special[fitting[-1]] if (fitting := patterns_of(record, special)) else common


def patterns_of(record: Record, patterns: Collection[str]) -> list[str]:
    """Which patterns of margins mean a row, by its suite, suite/benchmark or id, as names or globs."""
    if not patterns:
        return []
    id_ = record_id(record.suite, record.benchmark, record.params, record.conditions)
    names = (record.suite, f"{record.suite}/{record.benchmark}", id_)
    return [each for each in patterns if any(name == each or fnmatchcase(name, each) for name in names)]


def invalid(base: Record, new: Record) -> str | None:
    """Why the figures of two rows cannot be judged; None if they can."""
    if ("implausible" in base.flags) != ("implausible" in new.flags):
        return f"implausible in the {'base' if 'implausible' in base.flags else 'new run'}, and only there"
    headline = base.primary
    if headline is None or new.primary is None:
        return f"no primary figure in the {'base' if headline is None else 'new run'}"
    pairs = _pairs(base, new)
    names = {old.name for old, _ in pairs}
    for metric, side in ((headline, "new run"), (new.primary, "base")):
        if metric.name not in names:
            return f"{metric.name}: not in the {side}"
    for old, now in pairs:
        if (old.primary or (_is_judged(old) and _is_judged(now))) and (reason := _unlike(old, now)):
            return f"{old.name}: {reason}"
    for record, side in ((base, "base"), (new, "new run")):
        if not _own_median(record):
            return f"time: in the {side} not the median of the row's own samples"
    return None


def headline(record: Record) -> float:
    """The primary figure of a row that can be judged, on the scale of losses."""
    figure = record.primary
    assert figure is not None
    return _badness(figure.value, figure.direction)


def changes(base: Record, new: Record) -> list[Change]:
    """A change for each metric that both rows have and that has one."""
    sides = trusted_median(base), trusted_median(new)
    times = None if sides[0] is None or sides[1] is None else ratio_interval(sides[0], sides[1])
    headline = base.primary
    return [_change(old, now, times, old is headline) for old, now in _pairs(base, new) if _unlike(old, now) is None]


def judge(changes: Sequence[Change], new: Record, evidence: Evidence) -> tuple[Verdict, str | None]:
    """The worst verdict on the metrics of a row and why, the primary one first among equals."""
    found = []
    for change in sorted(filter(_is_judged, changes), key=lambda change: not change.primary):
        verdict, reason = _judge(change, _tick(new), evidence)
        found.append((verdict, reason if reason is None or change.primary else f"{change.metric}: {reason}"))
    return min(found, key=lambda each: WORST_FIRST.index(each[0]))


def _judge(change: Change, tick: float, evidence: Evidence) -> tuple[Verdict, str | None]:
    """The verdict on one metric. `tick` is how far, on the scale of losses, the next run may always lie off."""
    limit, earlier = evidence.limit, _earlier(evidence.earlier, change)
    beyond = abs(change.loss) > limit
    margin = f"the margin of {100 * evidence.margin:g} %"
    if len(earlier) < MIN_HISTORY:
        return (_undecided(change.loss), f"beyond {margin}, on the evidence of {evidence.instead}") if beyond else SAME
    low, high = prediction_interval(earlier, tick)
    half = (high - low) / 2
    drift = _badness(change.new, change.direction) - (low + high) / 2
    predicted = f"what {len(earlier)} runs of the base predict (±{format_half_width(100 * math.expm1(half))})"
    if abs(drift) <= max(half, limit):
        reason = f"beyond {margin} of the base's middle run, but not beyond {predicted}"
        return (_undecided(change.loss), reason) if beyond else SAME
    if beyond and (drift > 0) == (change.loss > 0):
        return ("regression" if drift > 0 else "improvement"), f"beyond {margin} and beyond {predicted}"
    # The mean of the base's runs lies off their middle one; or this metric is not the one which that is the middle of.
    return _undecided(drift), f"beyond {predicted}, but not beyond {margin} of the middle one of them"


def _undecided(loss: float) -> Verdict:
    return "suspect" if loss > 0 else "better"


def _earlier(history: Iterable[Record], change: Change) -> list[float]:
    """A metric of the base's runs on the scale of losses; only values that can be judged."""
    found = (record.metric(change.metric) for record in history)
    return [
        _badness(metric.value, metric.direction)
        for metric in found
        if metric is not None
        and (metric.unit, metric.direction) == (change.unit, change.direction)
        and _is_positive(metric.value)
    ]


def _tick(record: Record) -> float:
    """By how much a row's time differs from one a tick of the timer shorter, on the scale of losses: equal code whose
    time lies between two ticks reads as the one here and as the other there."""
    middle = record.summary.median_ns if record.summary is not None else 0
    share = tick_per_call(record) / middle if middle > 0 else 0.0
    return -math.log1p(-min(share, 0.5)) + ROUNDING * bool(share)  # of two ticks the shorter is one


def _pairs(base: Record, new: Record) -> list[tuple[Metric, Metric]]:
    """Metrics that both rows have, in the base's order."""
    others = {metric.name: metric for metric in new.metrics}
    return [(metric, others[metric.name]) for metric in base.metrics if metric.name in others]


def _is_judged(metric: Metric | Change) -> bool:
    return metric.primary or (metric.unit != SHARE and metric.direction != "none")


def _unlike(base: Metric, new: Metric) -> str | None:
    if base.unit != new.unit:
        return f"{base.unit} against {new.unit}, which are not the same unit"
    if base.direction != new.direction:
        return f"{base.direction} is better in the base, {new.direction} in the new run"
    if base.direction not in SIGNS or (base.primary and base.direction == "none"):
        return f"{base.direction!r} does not say which way is better"
    for metric, side in ((base, "base"), (new, "new run")):
        if not _is_positive(metric.value):
            return f"{metric.value!r} in the {side}, expected a finite number above 0"
    return None


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _own_median(record: Record) -> bool:
    """Whether a row's time is the median of its samples, where it has both: a file may have been edited by hand."""
    time, samples = record.metric("time"), record.samples
    if time is None or time.unit != "ns" or not samples.gpu_ns:
        return True
    middle = percentile(sorted(per_call(samples)), 0.5)
    return abs(time.value - middle) <= 0.5 + EDITED * middle


def _change(base: Metric, new: Metric, times: tuple[float, float, float] | None, primary: bool) -> Change:
    ratio = new.value / base.value
    low = high = None
    if times is not None and base.unit in RATES:
        low, high = ratio * times[1] / times[2], ratio * times[1] / times[0]
    elif times is not None and base.name == "time":
        low, high = ratio * times[0] / times[1], ratio * times[2] / times[1]
    loss = _badness(new.value, new.direction) - _badness(base.value, base.direction)
    return Change(base.name, base.unit, base.direction, base.value, new.value, ratio, low, high, loss, primary)


def _badness(value: float, direction: Direction) -> float:
    """ln of a figure, with the sign that makes more worse."""
    return SIGNS[direction] * math.log(value)
