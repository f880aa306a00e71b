"""Verdicts on paired measurements: K blocks, each with one median of the base and one of the new side, taken back to
back; what their ratios say of every row, with one error rate for all rows together.

Of a row's K ratios the mean of ln(new/base) has a t interval with K-1 degrees of freedom. The margin δ = ln(1 + margin)
is the user's and never widens:

    REGRESSION     the lower bound, corrected for the number of rows, is beyond δ         IMPROVEMENT  mirrored
    EQUIVALENT     the interval at 1 - 2·alpha (two one-sided tests; 90 % for alpha = 5 %) is within ±δ,
                   and the row is quiet enough: the half-width of its 95 % interval is at most δ/2
    INCONCLUSIVE   neither: what it could have seen, and how many blocks would decide
    INVALID        a figure that is not finite or not above 0

The bounds are those of two-sided intervals at Holm's levels (Holm, A simple sequentially rejective multiple test
procedure, Scandinavian Journal of Statistics 6, 1979): the chance that any of the rows is called changed though it is
not, in either direction, is at most alpha. Two looks at growing data spend LOOKS of it: their sum is the alpha of one.
Equivalence: Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gpubench.compare.judge import ROUNDING, SIGNS
from gpubench.result import Direction
from gpubench.stats import CONFIDENCE, t_quantile, t_shift, t_tail

Decision = Literal["regression", "improvement", "equivalent", "inconclusive", "invalid"]

ALPHA = 0.05
"""The chance, for all rows together, that any is called changed though it is not; of one look."""
LOOKS = (0.01, 0.04)
"""What the first and the second look at growing data spend of ALPHA: whoever looks once only passes ALPHA."""
LEAST_BLOCKS = 8
"""Below it a t interval leans on the shape of the distribution, and its quantiles make nothing decidable."""
POWER = 0.9
"""With which probability an effect of the size called detectable is found."""
QUIET = 0.5
"""Of the margin: a row that is not known to so much by its own repetitions cannot be called equivalent."""
MOST_BLOCKS = 1000
"""More blocks than this are not advised: nobody waits for them."""
LARGEST = 700.0
"""A logarithm whose exponential a float still holds."""


@dataclass(frozen=True)
class Paired:
    """One row's medians, block by block: `base[i]` and `new[i]` were measured back to back, in one unit.

    `tick`: what the timer counts in, in that unit and shared out among a sample's calls (0: not known). `margin`: this
    row's own, a fraction, in place of the common one.
    """

    id: str
    base: Sequence[float]
    new: Sequence[float]
    direction: Direction = "lower"
    tick: float = 0.0
    margin: float | None = None


@dataclass(frozen=True)
class PairedVerdict:
    """What is said of one row. Ratios are new/base of the figure itself, whichever way is better; None where invalid.

    `low` to `high` is the 95 % interval of `ratio`, `surely_low` to `surely_high` the one that was judged, corrected
    for the number of rows, at the confidence 1 - `level`. `half_width`: of the 95 % interval, on the scale of
    logarithms. `detectable`: the smallest change, as a fraction, that would have been found with the probability POWER.
    `needed`: blocks in all with which this mean and this spread would decide; None where decided, or where MOST_BLOCKS
    do not.
    """

    id: str
    verdict: Decision
    reason: str
    margin: float
    blocks: int
    level: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    surely_low: float | None = None
    surely_high: float | None = None
    half_width: float | None = None
    detectable: float | None = None
    needed: int | None = None


@dataclass(frozen=True)
class _Mean:
    """The mean of a row's ln(new/base), the standard deviation over its blocks, and that of what whole ticks of the
    timer hide from all blocks alike; `sign` makes more of it worse."""

    row: Paired
    margin: float
    mean: float
    deviation: float
    rounding: float
    sign: int

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.error_of(len(self.row.base))

    def error_of(self, blocks: int) -> float:
        """That of so many blocks, which see no finer what all of them round alike."""
        return math.hypot(self.deviation / math.sqrt(blocks), self.rounding)

    @property
    def is_coarse(self) -> bool:
        """Whether the timer's ticks hide more than noise does."""
        return self.rounding > self.deviation / math.sqrt(len(self.row.base))

    @property
    def degrees(self) -> int:
        return len(self.row.base) - 1

    @property
    def limit(self) -> float:
        return math.log1p(self.margin) + ROUNDING

    @property
    def excess(self) -> float:
        """How far the mean lies beyond the margin, in either direction; below 0 within it."""
        return abs(self.mean) - self.limit

    @property
    def chance(self) -> float:
        """The two-sided probability of a mean so far beyond the margin where the truth is at the margin."""
        if self.error == 0:
            return 0.0 if self.excess > 0 else 1.0
        return min(1.0, 2 * t_tail(self.degrees, self.excess / self.error))

    def half(self, level: float) -> float:
        """The half-width of the two-sided interval at the confidence 1 - level."""
        return t_quantile(self.degrees, 1 - level / 2) * self.error


def judge(rows: Sequence[Paired], *, margin: float, alpha: float = ALPHA) -> list[PairedVerdict]:
    """The verdict on every row, in their order, with the error rate `alpha` for all of them together.

    `margin` is how much worse a figure may be, a fraction: a time 1 + margin times as long, a rate 1/(1 + margin) times
    as high; 0 asks whether there is any difference, and then nothing is equivalent. A row that cannot be judged takes
    no part in the correction. ValueError for a margin below 0, an alpha that is none, or sides of unequal length.
    """
    if not 0 < alpha < 1 or not all(0 <= _margin(row, margin) < math.inf for row in rows):
        raise ValueError("judge: alpha is between 0 and 1, a margin at least 0")
    faults = [_fault(row) for row in rows]
    means = {
        place: _mean(row, _margin(row, margin))
        for place, (row, fault) in enumerate(zip(rows, faults, strict=True))
        if fault is None and len(row.base) >= LEAST_BLOCKS
    }
    levels, beyond = _holm({place: mean.chance for place, mean in means.items()}, alpha)
    verdicts = []
    for place, (row, fault) in enumerate(zip(rows, faults, strict=True)):
        if place in means:
            verdicts.append(_verdict(means[place], levels[place], beyond[place], alpha))
        else:
            few = f"{len(row.base)} blocks; {LEAST_BLOCKS} at least"
            decision: Decision = "inconclusive" if fault is None else "invalid"
            needed = LEAST_BLOCKS if fault is None else None
            own = _margin(row, margin)
            verdicts.append(PairedVerdict(row.id, decision, fault or few, own, len(row.base), needed=needed))
    return verdicts


def settle(first: Sequence[PairedVerdict], second: Sequence[PairedVerdict]) -> list[PairedVerdict]:
    """The verdicts after a second look: what the first decided stands, the rest is the second's. Rows go by their id;
    one that the first look did not have is the second's."""
    decided = {each.id: each for each in first if each.verdict in DECIDED}
    return [each if each.verdict == "invalid" else decided.get(each.id, each) for each in second]


DECIDED: frozenset[Decision] = frozenset({"regression", "improvement", "equivalent"})
"""Verdicts after which no more blocks are needed."""


def _margin(row: Paired, common: float) -> float:
    return common if row.margin is None else row.margin


def _fault(row: Paired) -> str | None:
    """Why a row cannot be judged; None if it can."""
    if len(row.base) != len(row.new):
        raise ValueError(f"{row.id}: {len(row.base)} blocks of the base, {len(row.new)} of the new side")
    if row.direction == "none":
        return "neither more nor less of it is better"
    for values, side in ((row.base, "base"), (row.new, "new side")):
        for value in values:
            if not 0 < value < math.inf:
                return f"{value!r} in the {side}, expected a finite number above 0"
    return None


def _mean(row: Paired, margin: float) -> _Mean:
    """Medians in whole ticks are rounded, each side's by a standard deviation of tick/√12. Where the blocks differ by
    less than a tick they round the same way, and their mean is as wrong as each of them; noise of a tick shakes that
    off (dither: Widrow and Kollár, Quantization Noise, 2008). Between the two, linear: held by simulation."""
    differences = [math.log(new) - math.log(base) for base, new in zip(row.base, row.new, strict=True)]
    count = len(differences)
    mean = math.fsum(differences) / count
    deviation = math.sqrt(math.fsum((each - mean) ** 2 for each in differences) / (count - 1))
    ticks = row.tick / min(row.base), row.tick / min(row.new)
    alike = max(0.0, 1 - deviation / max(ticks)) if max(ticks) > 0 else 0.0
    return _Mean(row, margin, mean, deviation, alike * math.hypot(*ticks) / math.sqrt(12), SIGNS[row.direction])


def _holm(chances: Mapping[int, float], alpha: float) -> tuple[dict[int, float], dict[int, bool]]:
    """The level at which each is tested, and whether it passes: the r-th smallest of m at alpha/(m - r + 1), as long as
    those before it passed; those after it are tested at the level of the first that did not."""
    levels, passed = dict[int, float](), dict[int, bool]()
    going, level, left = True, alpha, len(chances)
    for place in sorted(chances, key=chances.__getitem__):
        if going:
            level = alpha / left
            going = chances[place] < level
            left -= 1
        levels[place], passed[place] = level, going
    return levels, passed


def _verdict(mean: _Mean, level: float, beyond: bool, alpha: float) -> PairedVerdict:
    half, sure = mean.half(1 - CONFIDENCE), mean.half(level)
    quiet = half <= QUIET * mean.limit
    within = mean.excess + mean.half(2 * alpha) < 0
    worse = mean.sign * mean.mean > 0
    verdict: Decision
    reason, needed = "", None
    if beyond:
        verdict = "regression" if worse else "improvement"
        reason = f"{'worse' if worse else 'better'} by more than the margin of {100 * mean.margin:g} %"
    elif within and quiet:
        verdict, reason = "equivalent", f"within the margin of {100 * mean.margin:g} %"
    else:
        verdict, needed = "inconclusive", _needed(mean, level, alpha)
        what = "in too few ticks of the timer" if mean.is_coarse else "too noisy"
        reason = f"{what} to be called equivalent" if within else "the interval crosses the margin"
    return PairedVerdict(
        id=mean.row.id,
        verdict=verdict,
        reason=reason,
        margin=mean.margin,
        blocks=len(mean.row.base),
        level=level,
        ratio=_ratio(mean.mean),
        low=_ratio(mean.mean - half),
        high=_ratio(mean.mean + half),
        surely_low=_ratio(mean.mean - sure),
        surely_high=_ratio(mean.mean + sure),
        half_width=half,
        detectable=_detectable(mean, level),
        needed=needed,
    )


def _ratio(logarithm: float) -> float:
    """The ratio of a logarithm; of one that no float holds, the largest or the smallest told."""
    return math.exp(max(-LARGEST, min(logarithm, LARGEST)))


def _detectable(mean: _Mean, level: float) -> float:
    """The smallest change that blocks of this spread would have shown beyond the margin with the probability POWER."""
    shift = t_shift(mean.degrees, t_quantile(mean.degrees, 1 - level / 2), POWER)
    return _ratio(math.log1p(mean.margin) + shift * mean.error) - 1


def _needed(mean: _Mean, level: float, alpha: float) -> int | None:
    """With how many blocks this mean and this spread would decide; None where MOST_BLOCKS do not.

    The interval shrinks with every block, so the least number is found by halving.
    """

    def decides(count: int) -> bool:
        error = mean.error_of(count)
        if mean.excess > 0:
            return t_quantile(count - 1, 1 - level / 2) * error < mean.excess
        quiet = t_quantile(count - 1, (1 + CONFIDENCE) / 2) * error <= QUIET * mean.limit
        return quiet and t_quantile(count - 1, 1 - alpha) * error < -mean.excess

    few, many = len(mean.row.base), MOST_BLOCKS
    if not decides(many):
        return None
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if decides(middle) else (middle, many)
    return many
