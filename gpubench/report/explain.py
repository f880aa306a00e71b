"""Explanations as text and as JSON values: one row, or the falls of a run's curves.

The rules are in `gpubench.explain`, `reasons` and `drops`; here they get the roofs and the sweeps of the run.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gpubench.explain import drops, limits
from gpubench.explain import rows as explain
from gpubench.explain.fitted import Fitted, recognised
from gpubench.explain.reason import Rated, Roof
from gpubench.explain.rows import Explanation, Neighbour
from gpubench.model import catalog
from gpubench.report.rows import best_ceiling, dtype_of, number
from gpubench.report.sweep import Sweep, sweeps
from gpubench.report.words import SEPARATOR, conditions_words, counted, device_name, plain
from gpubench.result import Ceiling, Record, Run
from gpubench.units import format_duration, format_rate, three_digits

if TYPE_CHECKING:
    from rich.console import RenderableType

SHOWN = 10
"""Falls of a curve that are listed, and kernel names without a meaning."""
ONE_WAY = 0.9
"""The share of DRAM's bytes from which they are reads alone, or writes."""
WIDEST = 90
"""Columns of a paragraph: longer lines are hard to read."""


def explanation(run: Run, record: Record, own: Collection[str] = (), fitted: Fitted | None = None) -> Explanation:
    """Why a row has its time, under the roofs of its run. `own` are the names of suites' own kernels; `fitted` is the
    run's, for who explains many of its rows."""
    return explain.explanation(run, record, fitted or Fitted(run), _roofs(run, record), own)


def _roofs(run: Run, record: Record) -> explain.Roofs:
    """The run's ceilings over a row, that named by its work first; where it has none, what the device's facts say."""
    work = record.work
    level = work.level if work is not None else None
    named = next((each for each in run.ceilings if work is not None and each.name == work.roof), None)
    memory: Roof | None = named if named is not None and named.level == "DRAM" else _dram(run, record) or _pins(run)
    own = named if named is not None and named.level == level else None
    of_level = memory if level == "DRAM" else own or (best_ceiling(run, "bandwidth", level=level) if level else None)
    compute = named if named is not None and named.kind == "compute" else None
    return explain.Roofs(_compute(run, record, compute), memory, of_level, best_ceiling(run, "bandwidth", level="L2"))


def _compute(run: Run, record: Record, named: Ceiling | None) -> Roof | None:
    """The best product of that dtype; a row that is past it, as no library is, is held against the units themselves."""
    dtype, rate = dtype_of(record), record.metric("flops")
    found = named or (best_ceiling(run, "compute", dtype=dtype) if dtype is not None else None)
    past = found is not None and rate is not None and rate.value > limits.PAST * found.value
    return _silicon(record) or found if past else found or _silicon(record)


def _dram(run: Run, record: Record) -> Roof | None:
    """DRAM's ceiling for reads, for writes or for both, by what was counted; else the highest."""
    parts = [record.counters.get(name) for name in ("dram_bytes_read", "dram_bytes_write")]
    if all(isinstance(part, int | float) for part in parts) and sum(parts) > 0:  # type: ignore[arg-type]
        reads = parts[0] / sum(parts)  # type: ignore[operator, arg-type]
        kind = "read" if reads > ONE_WAY else "write" if reads < 1 - ONE_WAY else "copy"
        found = next((each for each in run.ceilings if each.name == f"DRAM {kind}"), None)
        if found is not None:
            return found
    return best_ceiling(run, "bandwidth", level="DRAM")


def _silicon(record: Record) -> Roof | None:
    """The units' rate at the clock held, as the record has it beside a headline in FLOP/s."""
    yardsticks = record.prediction.get("yardsticks")
    figure = yardsticks.get("silicon") if isinstance(yardsticks, dict) else None
    if not isinstance(figure, dict) or figure.get("unit") != "FLOP/s" or not figure.get("value"):
        return None
    return Rated("what its units can", float(figure["value"]))


def _pins(run: Run) -> Roof | None:
    figure = catalog.memory_bound(run.device)
    return None if figure is None else Rated("what DRAM's pins carry", figure.value)


def table(run: Run, found: Explanation, width: int) -> RenderableType:
    """A heading, the reasons as a paragraph, the figures, the best neighbour, and what to change."""
    from rich.console import Group as Renderables
    from rich.text import Text

    from gpubench.report.grid import Column, Grid

    record = found.record
    heading = SEPARATOR.join([plain(record.id), device_name(run), conditions_words(record.conditions)])
    parts: list[RenderableType] = [Text(heading, style="bold"), Text(_wrapped(paragraph(found), width)), Text("")]
    if found.figures:
        grid = Grid([Column("figure"), Column("value", fold=True), Column("of", fold=True)])
        for row in found.figures:
            grid.add(*map(plain, row))
        parts += [grid, Text("")]
    if found.neighbour is not None:
        parts.append(Text(_wrapped(f"best neighbour: {neighbour_words(found.neighbour)}", width)))
    parts += [Text(_wrapped(f"to change: {plain(change)}", width)) for change in found.changes]
    return Renderables(*parts)


def paragraph(found: Explanation) -> str:
    """The reasons in sentences."""
    if not found.reasons:
        return "Nothing in this record says more than its figures."
    return " ".join(plain(f"{reason.kind}: {reason.words}.") for reason in found.reasons)


def neighbour_words(found: Neighbour) -> str:
    """`n=1800 m=1800 k=1800, 514 TFLOP/s, 4.89 times; a larger problem that ends sooner, in 22.7 µs`."""
    changed = " ".join(f"{name}={plain(value)}" for name, value in found.changed.items())
    metric, summary = number(found.record), found.record.summary
    rate = f", {format_rate(metric.value, metric.unit)}" if metric is not None and metric.unit != "ns" else ""
    ends = "" if summary is None else format_duration(summary.median_ns)
    larger = f"; a larger problem that ends sooner, in {ends}" if found.sooner else f" ({ends})"
    return f"{changed}{rate}, {three_digits(found.times)} times as good{larger}"


def to_json(run: Run, found: Explanation) -> dict[str, Any]:
    """The same as JSON values."""
    neighbour = found.neighbour
    return {
        "run_id": run.run_id,
        "record": found.record.id,
        "reasons": [asdict(reason) for reason in found.reasons],
        "figures": [dict(zip(("name", "value", "of"), row, strict=True)) for row in found.figures],
        "neighbour": None if neighbour is None else {
            "record": neighbour.record.id, "changed": dict(neighbour.changed), "times": neighbour.times,
            "sooner": neighbour.sooner,
        },
        "change": list(found.changes),
    }  # fmt: skip


# The curve.


@dataclass(frozen=True)
class Falls:
    """The falls of one sweep, the largest first: of all its rows, and of those alone that are aligned to 16 bytes."""

    sweep: Sweep
    every: tuple[drops.Drop, ...]
    aligned: tuple[drops.Drop, ...]


@dataclass(frozen=True)
class Curves:
    """The sweeps of a run that fall anywhere, and the kernel names of the run: how many, and which say nothing."""

    found: tuple[Falls, ...]
    names: int
    unknown: tuple[str, ...]
    fitted: str


def curves(run: Run, own: Collection[str] = ()) -> Curves:
    """The falls of all sweeps of products in a run."""
    fitted = Fitted(run)
    found = []
    for sweep in sweeps(run):
        products = [record for record in sweep.records if record.id in fitted.products]
        if len(products) < 2:
            continue
        every = drops.of(sweep.records, fitted)
        found.append(Falls(sweep, tuple(every), tuple(drops.of(drops.aligned(products, fitted), fitted))))
    names = recognised([run], own)
    rows = fitted.constants(found[0].sweep.records[0])[1] if found else 0
    said = f"constants fitted to {rows} rows" if rows else "constants not fitted: too few rows"
    return Curves(tuple(found), len(names), tuple(name for name, sense in names.items() if sense == "unknown"), said)


def curve_table(run: Run, curves: Curves, all_rows: bool = False) -> RenderableType:
    """For each sweep its largest falls, with cause and size."""
    from rich.console import Group as Renderables
    from rich.text import Text

    parts: list[RenderableType] = []
    for falls in curves.found:
        sweep = falls.sweep
        heading = SEPARATOR.join([sweep.group.path, device_name(run), *sweep.others])
        parts.append(Text(plain(heading), style="bold"))
        for title, found in (("all rows", falls.every), ("rows aligned to 16 B alone", falls.aligned)):
            causes = [drop.cause for drop in found]
            count = SEPARATOR.join(f"{each} {causes.count(each)}" for each in dict.fromkeys(causes))
            parts.append(Text(f"{title}: {counted(len(found), 'fall')}" + (f" ({count})" if found else "")))
            if found:
                parts += [_falls(sweep.axis, found if all_rows else found[:SHOWN]), Text("")]
    if not curves.found:
        parts.append(Text("no sweep of matrix products in this run"))
    parts += [Text(line) for line in _remarks(curves)]
    return Renderables(*parts)


def _falls(axis: str, found: Sequence[drops.Drop]) -> RenderableType:
    from gpubench.report.grid import Column, Grid

    grid = Grid([
        Column(axis), Column("fall", right=True), Column("model", right=True), Column("cause"),
        Column("what changed", fold=True),
    ])  # fmt: skip
    for drop in found:
        ends = [str(record.params[axis]) for record in (drop.before, drop.after)]
        grid.add(
            "→".join(ends), f"{three_digits(drop.times)}×",
            "–" if drop.predicted is None else f"{three_digits(drop.predicted)}×", " + ".join(drop.causes),
            plain(_parts(drop)),
        )  # fmt: skip
    return grid


def _parts(drop: drops.Drop) -> str:
    words = [f"{three_digits(part.times)}× {part.words}" for part in drop.worth_a_word]
    if drop.left_over is not None and drop.cause == "unknown":
        words.append(f"{three_digits(drop.left_over)}× not explained")
    return "; ".join(words) or "these kernels are not known"


def _remarks(curves: Curves) -> list[str]:
    known = curves.names - len(curves.unknown)
    lines = [f"{known} of {counted(curves.names, 'kernel name')} recognised; {curves.fitted}"]
    return lines + [f"unknown: {plain(name)}" for name in curves.unknown[:SHOWN]]


def curve_json(run: Run, curves: Curves) -> dict[str, Any]:
    """The same as JSON values, every fall."""
    return {
        "run_id": run.run_id,
        "kernel_names": curves.names,
        "unknown_names": list(curves.unknown),
        "sweeps": [
            {
                "benchmark": falls.sweep.group.path, "axis": falls.sweep.axis, "held": list(falls.sweep.others),
                "falls": [_drop_json(drop) for drop in falls.every],
                "falls_aligned": [_drop_json(drop) for drop in falls.aligned],
            }
            for falls in curves.found
        ],
    }  # fmt: skip


def _drop_json(drop: drops.Drop) -> dict[str, Any]:
    return {
        "before": drop.before.id, "after": drop.after.id, "times": drop.times, "predicted": drop.predicted,
        "cause": drop.cause, "causes": list(drop.causes), "parts": [asdict(part) for part in drop.parts],
        "left_over": drop.left_over,
    }  # fmt: skip


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(text, min(width, WIDEST), break_long_words=False, break_on_hyphens=False)
