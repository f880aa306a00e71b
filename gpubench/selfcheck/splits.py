"""A pool of processes split at random into two sides, again and again, and judged as if each were a comparison.

Both sides ran the same code, so whatever is called different is wrong; or one side did a known share of work more, and
whatever is not found is missed. The splits are drawn from a fixed seed: the same pool gives the same rates. They share
processes and are not independent of each other: their shares are right on average, and stray more than their number
would say.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import hypot

from gpubench import __version__
from gpubench.ab.paired import LEAST_BLOCKS, Paired, judge
from gpubench.compare.judge import MIN_HISTORY
from gpubench.compare.runs import MARGIN, compare
from gpubench.errors import NothingMeasured
from gpubench.result import Record, Run
from gpubench.stats import percentile, relative_half_width, tick_per_call
from gpubench.store.calibration import CHANGED, Equal, Injected, Outcome, Rule, Slower

SPLITS = 200
BLOCKS = 10
"""Processes a side, as `ab` has blocks."""
LEAST_PROCESSES = 2 * LEAST_BLOCKS
SEED = "gpubench selfcheck"
MARGINS = (MARGIN, 0.0)
"""The margin of a user, and none: without one every verdict of a change is the interval's own error."""
INJECTED = ((MARGIN, 0.01), (0.05, MARGIN), (MARGIN, MARGIN))
"""More work, as a fraction, and the margin it is judged at: beyond it, beyond it, and just at it."""


@dataclass(frozen=True)
class More:
    """A row whose work is that of the row `of` and so much more, a fraction."""

    id: str
    of: str
    share: float


@dataclass(frozen=True)
class _Column:
    """One row in every process of a pool."""

    times: list[float]
    tick: float

    @property
    def middle(self) -> float:
        return percentile(sorted(self.times), 0.5)

    @property
    def half_width(self) -> float:
        """Half the 95 % interval of the median, over the median."""
        width = relative_half_width(self.times, self.tick)
        assert width is not None, "a pool has processes enough"
        return width


def equal_code(runs: Sequence[Run], at: str, splits: int = SPLITS) -> Equal:
    """What each rule says of processes that ran the same code. ValueError below LEAST_PROCESSES, NothingMeasured where
    no row has a figure in all of them."""
    columns = _columns(runs)
    if not columns:
        raise NothingMeasured(f"no row has a figure in each of the {len(runs)} processes", "gpubench doctor")
    counts: dict[tuple[Rule, float], Counter[str]] = {}
    alarmed: Counter[tuple[Rule, float]] = Counter()
    intervals = held = 0

    def count(rule: Rule, margin: float, verdicts: Sequence[str]) -> None:
        counts.setdefault((rule, margin), Counter()).update(verdicts)
        alarmed[rule, margin] += any(verdict in CHANGED for verdict in verdicts)

    for base, new in _sides(len(runs), splits):
        rows = [_paired(row, column, base, column, new) for row, column in columns.items()]
        for margin in MARGINS:
            found = judge(rows, margin=margin)
            count("ab", margin, [each.verdict for each in found])
            count("history", margin, _compared([runs[place] for place in base], runs[new[0]], columns, margin))
        ends = [(each.low, each.high) for each in found if each.low is not None and each.high is not None]
        intervals += len(ends)
        held += sum(low <= 1 <= high for low, high in ends)
        count("compare", MARGIN, _compared([runs[base[0]]], runs[new[0]], columns, MARGIN))
    return Equal(
        at=at,
        gpubench=__version__,
        processes=len(runs),
        blocks=_blocks(len(runs)),
        splits=splits,
        rows=list(columns),
        intervals=intervals,
        held=held,
        outcomes=[
            Outcome(rule, margin, dict(verdicts), splits, alarmed[rule, margin])
            for (rule, margin), verdicts in counts.items()
        ],
    )


def more_work(runs: Sequence[Run], rows: Sequence[More], at: str, splits: int = SPLITS) -> Slower:
    """How often more work is found, and at the margin itself called a regression. As `equal_code` otherwise."""
    columns = _columns(runs)
    known = [row for row in rows if row.id in columns and row.of in columns]
    if not known:
        raise NothingMeasured(f"no longer row has a figure in each of the {len(runs)} processes", "gpubench doctor")
    found: Counter[tuple[str, float]] = Counter()
    for base, new in _sides(len(runs), splits):
        for share, margin in INJECTED:
            chosen = [row for row in known if row.share == share]
            pairs = [_paired(row.id, columns[row.of], base, columns[row.id], new) for row in chosen]
            for verdict in judge(pairs, margin=margin):
                found[verdict.id, margin] += verdict.verdict == "regression"
    injected = [
        Injected(
            row=row.of,
            more=share,
            margin=margin,
            measured=columns[row.id].middle / columns[row.of].middle - 1,
            found=found[row.id, margin],
            of=splits,
            unsure=hypot(columns[row.id].half_width, columns[row.of].half_width),
        )
        for share, margin in INJECTED
        for row in known
        if row.share == share
    ]
    return Slower(at, __version__, len(runs), _blocks(len(runs)), splits, injected)


def left_out(runs: Sequence[Run]) -> list[str]:
    """The ids of rows that some process has no figure of."""
    columns = _columns(runs)
    return sorted({record.id for run in runs for record in run.records} - columns.keys())


def _blocks(processes: int) -> int:
    if processes < LEAST_PROCESSES:
        raise ValueError(f"{processes} processes, {LEAST_PROCESSES} at least")
    return min(BLOCKS, processes // 2)


def _sides(processes: int, splits: int) -> Iterator[tuple[list[int], list[int]]]:
    """Places of the processes of either side, in a random order."""
    blocks = _blocks(processes)
    source = random.Random(SEED)
    for _ in range(splits):
        chosen = source.sample(range(processes), 2 * blocks)
        yield chosen[:blocks], chosen[blocks:]


def _columns(runs: Sequence[Run]) -> dict[str, _Column]:
    """The rows that have a figure in every run, by id, in the order of the first run's ids."""
    by_id = [{record.id: record for record in run.records} for run in runs]
    found = {}
    for name in sorted(by_id[0]) if by_id else ():
        records = [rows.get(name) for rows in by_id]
        times = [_time(record) for record in records if record is not None]
        whole = [time for time in times if time is not None]
        if len(whole) == len(runs):
            ticks = [tick_per_call(record) for record in records if record is not None]
            found[name] = _Column(whole, max(ticks))
    return found


def _time(record: Record) -> float | None:
    """The median of a row, in ns; None where it has none above 0."""
    if record.status != "ok" or record.summary is None or record.summary.median_ns <= 0:
        return None
    return float(record.summary.median_ns)


def _paired(name: str, old: _Column, base: Sequence[int], now: _Column, new: Sequence[int]) -> Paired:
    """A row's blocks: the processes of the base in one column, those of the new side in the other."""
    return Paired(
        name, [old.times[place] for place in base], [now.times[place] for place in new], tick=max(old.tick, now.tick)
    )


def _compared(bases: Sequence[Run], new: Run, columns: dict[str, _Column], margin: float) -> list[str]:
    """The verdicts of `compare` on the rows that all runs have."""
    assert len(bases) == 1 or len(bases) >= MIN_HISTORY
    return [row.verdict for row in compare(bases, new, margin).rows if row.id in columns]
