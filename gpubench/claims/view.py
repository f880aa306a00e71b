"""View: what the rule of a claim sees of a run. It reads the rows of one suite, and keeps which of them it read.

Intervals are 95 % percentile intervals of the bootstrap of each row's median (Efron and Tibshirani: "An Introduction to
the Bootstrap", 1993), the rows being independent of each other. Seeds are the rows' own names, so that a file judged
twice says the same twice.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from gpubench.finding import Estimate, NotTestable, RowsMissing, exactly
from gpubench.result import USUAL, Param, Record, Run
from gpubench.stats import bootstrap_medians, central, per_call, percentile, tick_per_call

Rows = Record | Sequence[Record]
Per = Literal["bytes", "flops"] | None


class View:
    """The rows of a suite in a run. Rules get nothing else: no device, no clock, no other file.

    `draws` keeps the resampled medians of rows by id; views of one run may share it, as they draw the same. `asked`
    gets the ids of the rows whose counters a rule asks for, whether there are any or not.
    """

    def __init__(
        self, run: Run, suite: str, draws: dict[str, list[float]] | None = None, asked: set[str] | None = None
    ) -> None:
        self.suite = suite
        self.facts: Mapping[str, Any] = run.device
        self.used: dict[str, Record] = {}
        """The rows that were read, by id."""
        self._records = [record for record in run.records if record.suite == suite]
        self._ceilings = {ceiling.name: ceiling.value for ceiling in run.ceilings}
        self._draws = {} if draws is None else draws
        self._asked = set() if asked is None else asked

    @property
    def on_cpu(self) -> bool:
        """Whether the device is a CPU."""
        return self.facts.get("kind") == "cpu"

    def needs_gpu(self, why: str) -> None:
        """NotTestable on a CPU, with what a CPU lacks."""
        if self.on_cpu:
            raise NotTestable(why)

    def rows(self, benchmark: str, **wanted: Param) -> list[Record]:
        """The rows of a benchmark with these parameters that have a number, in their order, under one set of
        conditions: the usual ones where there are any.

        RowsMissing where there is none, or NotTestable where this device cannot have one.
        """
        named = [
            record
            for record in self._records
            if record.benchmark == benchmark and wanted.items() <= record.params.items()
        ]
        good = [record for record in named if record.summary is not None and "implausible" not in record.flags]
        if not good:
            raise _absence(f"{self.suite}/{benchmark}", wanted, named)
        asked = USUAL if any(record.conditions == USUAL for record in good) else good[0].conditions
        chosen = [record for record in good if record.conditions == asked]
        self.used |= {record.id: record for record in chosen}
        return chosen

    def one(self, benchmark: str, **wanted: Param) -> Record:
        """The row of a benchmark with these parameters; of several, the last."""
        return self.rows(benchmark, **wanted)[-1]

    def fastest(self, benchmark: str, **wanted: Param) -> Record:
        """The row of a benchmark with these parameters that has the most flops in its time; of several, the first."""
        return min(self.rows(benchmark, **wanted), key=_ns_of_a_flop)

    def maybe(self, benchmark: str, **wanted: Param) -> Record | None:
        """The same where there is one, for what is shown and not judged."""
        try:
            return self.one(benchmark, **wanted)
        except (NotTestable, RowsMissing):
            return None

    def median(self, rows: Rows, per: Per = None) -> Estimate:
        """The median of a row in ns, or the mean of the medians of several; `per` divides each by the row's bytes or
        flops, which makes it the inverse of a rate."""
        return self._estimate(_many(rows), lambda medians: sum(medians) / len(medians), per)

    def ratio(self, over: Rows, under: Rows, per: Per = None) -> Estimate:
        """The time of some rows over that of others, each the mean of their medians; with `per`, time per byte or
        flop."""
        top, bottom = _many(over), _many(under)

        share, size = len(bottom) / len(top), len(top)

        def quotient(medians: Sequence[float]) -> float:
            return share * sum(medians[:size]) / sum(medians[size:])

        return self._estimate([*top, *bottom], quotient, per)

    def slope(self, rows: Sequence[Record], by: str) -> Estimate:
        """The slope of the logarithm of time over that of a parameter, by least squares.

        RowsMissing below three different values.
        """
        places = [math.log(float(record.params[by])) for record in rows]
        if len(set(places)) < 3:
            raise RowsMissing(f"a slope over {by} needs three values")
        middle = math.fsum(places) / len(places)
        weights = [place - middle for place in places]
        scale = math.fsum(weight * weight for weight in weights)

        def fitted(medians: Sequence[float]) -> float:
            logs = map(math.log, medians)
            return float(sum(map(operator.mul, weights, logs)) / scale)

        return self._estimate(rows, fitted)

    def metric(self, record: Record, name: str) -> Estimate:
        """A figure that the kernel itself counted, in one call. RowsMissing where the row has none of that name."""
        found = record.metric(name)
        if found is None:
            raise RowsMissing(f"{record.id} has no {name}")
        return exactly(found.value)

    def counter(self, record: Record, name: str) -> Estimate | None:
        """What the hardware counted of a row; None without counters."""
        self._asked.add(record.id)
        value = record.counters.get(name)
        return exactly(float(value)) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def dram_bytes(self, record: Record) -> Estimate | None:
        """The bytes that DRAM moved in one call, read and written, as counted; None without counters."""
        read, written = (self.counter(record, f"dram_bytes_{way}") for way in ("read", "write"))
        return None if read is None or written is None else exactly(read.value + written.value)

    def ceiling(self, name: str) -> Estimate:
        """A measured roof of this device, in B/s or FLOP/s; RowsMissing where the run has none of that name."""
        if name not in self._ceilings:
            raise RowsMissing(f"no ceiling {name}")
        return exactly(self._ceilings[name])

    def _estimate(
        self, rows: Sequence[Record], figure: Callable[[Sequence[float]], float], per: Per = None
    ) -> Estimate:
        """A figure of the rows' medians, between the limits of its interval.

        It is never narrower than half a tick of the timer on each row, taken to the side that moves it most.
        """
        scales = [_work(record, per) for record in rows]
        medians = [percentile(sorted(per_call(record.samples)), 0.5) for record in rows]
        if not rows or min(medians) <= 0:
            raise RowsMissing(f"no time above zero in {rows[0].id if rows else self.suite}")

        drawn = ([one / scale for one in self._drawn(record)] for record, scale in zip(rows, scales, strict=True))
        low, high = central(sorted(map(figure, zip(*drawn, strict=True))))
        value = figure([median / scale for median, scale in zip(medians, scales, strict=True)])
        width = 1.0
        for record, median in zip(rows, medians, strict=True):
            width += tick_per_call(record) / 2 / median
        return Estimate(value, min(low, value / width), max(high, value * width))

    def _drawn(self, record: Record) -> list[float]:
        if record.id not in self._draws:
            self._draws[record.id] = bootstrap_medians(per_call(record.samples), record.id)
        return self._draws[record.id]


def _many(rows: Rows) -> list[Record]:
    return [rows] if isinstance(rows, Record) else list(rows)


def _work(record: Record, per: Per) -> float:
    """What a row's time is divided by."""
    if per is None:
        return 1.0
    done = getattr(record.work, per, 0)
    if not done:
        raise RowsMissing(f"{record.id} counts no {per}")
    return float(done)


def _absence(path: str, wanted: Mapping[str, Param], named: Sequence[Record]) -> Exception:
    """Why there is no row: this device has none, or the row failed, or nobody asked for it."""
    which = " ".join([path, *(f"{name}={value}" for name, value in wanted.items())])
    if not named:
        return RowsMissing(f"no row {which}")
    worst = named[0]
    reason = worst.reason or ", ".join(worst.flags)
    if worst.status == "unsupported" or reason.startswith("no CPU counterpart"):
        return NotTestable(reason)
    return RowsMissing(f"{which} is {worst.status}{': ' + reason if reason else ''}")


def _ns_of_a_flop(record: Record) -> float:
    """The time that a row takes for each of its flops."""
    assert record.summary is not None
    assert record.work is not None
    return record.summary.median_ns / record.work.flops
