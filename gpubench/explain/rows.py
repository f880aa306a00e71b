"""An explanation of one row: its reasons, the figures they rest on, its best neighbour, and what to change.

A pure function of a run file's values; the roofs over the row are given to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpubench.explain import drops, limits, reasons
from gpubench.explain.fitted import Fitted, shape
from gpubench.explain.reason import Case, Rated, Reason, Roof
from gpubench.model.kernel_facts import Facts, facts, short_name
from gpubench.result import WAY, Param, Record, Run
from gpubench.stats import percentile
from gpubench.telemetry import held_mhz
from gpubench.units import format_bytes, format_duration, format_rate, three_digits

NEAR = 0.04
"""The share by which a neighbour's sizes may be larger or smaller, or 64 elements where that is more."""
STEP = 64
BETTER = 1.03
"""A neighbour's rate over the row's from which it is worth to be named."""
KERNELS = 4
"""Kernels with a line of their own."""


@dataclass(frozen=True)
class Neighbour:
    """A row beside this one that does better: which parameters differ, and by what factor its headline is better.
    `sooner` says that a larger problem ends sooner than the row's own."""

    record: Record
    changed: Mapping[str, Param]
    times: float
    sooner: bool


@dataclass(frozen=True)
class Explanation:
    """All there is to say of a row. `figures` are names, values and where they are from."""

    record: Record
    reasons: tuple[Reason, ...]
    figures: tuple[tuple[str, str, str], ...]
    neighbour: Neighbour | None

    @property
    def changes(self) -> tuple[str, ...]:
        """What to change, by the order of the reasons; each once."""
        return tuple(dict.fromkeys(reason.change for reason in self.reasons if reason.change))


@dataclass(frozen=True)
class Roofs:
    """The roofs over a row: of its dtype, of DRAM, of the memory it uses, and of the L2."""

    compute: Roof | None = None
    memory: Roof | None = None
    level: Roof | None = None
    l2: Roof | None = None


def explanation(
    run: Run, record: Record, fitted: Fitted, roofs: Roofs | None = None, own: Collection[str] = ()
) -> Explanation:
    """Why this row of the run has its time. `own` are the names of suites' own kernels."""
    siblings = [
        row for row in run.records
        if (row.suite, row.benchmark) == (record.suite, record.benchmark)
        and row is not record and row.summary is not None and row.status == "ok"
    ]  # fmt: skip
    over = roofs or Roofs()
    case = Case(
        record, run.device, over.compute, over.memory, over.level, fitted.products.get(record.id), fitted.time(record),
        siblings, over.l2,
    )  # fmt: skip
    found = tuple(reasons.of(case))
    return Explanation(record, found, tuple(_figures(case, fitted, own)), best_neighbour(record, siblings))


def best_neighbour(record: Record, siblings: Sequence[Record]) -> Neighbour | None:
    """The row with the best headline among those like this one: of the same conditions, sizes that all change by one
    ratio and hardly, or one other parameter changed. None where none is better."""
    found = []
    if record.params.get(WAY, "right") == "wrong":
        return None  # its time is no time of its work
    for row in siblings:
        times = _better(record, row)
        changed = {name: value for name, value in row.params.items() if record.params.get(name) != value}
        if times is None or times < BETTER or row.conditions != record.conditions or not _near(record, changed):
            continue
        if not _same_task(record, row, changed):
            continue
        larger = shape(record) is not None and changed.keys() <= set("mnk")
        larger = larger and all(int(value) > int(record.params[name]) for name, value in changed.items())
        found.append(Neighbour(row, changed, times, larger and _sooner(record, row)))
    return max(found, key=lambda each: each.times, default=None)


def _same_task(record: Record, row: Record, changed: Mapping[str, Param]) -> bool:
    """Whether the other row is one to take in place of this one. Rates may be compared between sizes; times only of the
    same work, or of another way (`by`, `way`) to the same result. Where a name makes for other work, as a sparse
    product for a dense one, the better rate must be the shorter time as well."""
    mine, other = record.work, row.work
    same = mine is not None and other is not None and (mine.flops, mine.bytes) == (other.flops, other.bytes)
    sizes = all(isinstance(value, int) for value in changed.values())
    known = mine is not None and mine.flops + mine.bytes > 0
    if changed.keys() <= {"by", WAY} or (same and (known or not sizes)):
        return True
    rate = record.primary is not None and record.primary.unit != "ns"
    return rate and (sizes or _sooner(record, row))


def _better(record: Record, row: Record) -> float | None:
    """How many times better the row's headline is."""
    mine, other = record.primary, row.primary
    if mine is None or other is None or mine.name != other.name or min(mine.value, other.value) <= 0:
        return None
    if record.work is not None and row.work is not None and record.work.dtype != row.work.dtype:
        return None  # another format is another problem
    if {"implausible", "below-resolution"} & {*row.flags} or row.params.get(WAY, "right") == "wrong":
        return None
    return other.value / mine.value if mine.direction == "higher" else mine.value / other.value


def _sooner(record: Record, row: Record) -> bool:
    mine, other = record.summary, row.summary
    return mine is not None and other is not None and other.median_ns < mine.median_ns


def _near(record: Record, changed: Mapping[str, Param]) -> bool:
    """One name changed; or sizes, be they written 1024x512x64, that all change by as much, and hardly."""
    if not changed or not changed.keys() <= record.params.keys():
        return False
    pairs = [(record.params[name], value) for name, value in changed.items()]
    sizes = [(_sizes(old), _sizes(new)) for old, new in pairs]
    if not all(old and len(old) == len(new) for old, new in sizes):
        return len(pairs) == 1
    steps = [(old, new) for olds, news in sizes for old, new in zip(olds, news, strict=True) if old != new]
    return len({new - old for old, new in steps}) == 1 and all(
        abs(new - old) <= max(STEP, NEAR * old) for old, new in steps
    )


def _sizes(value: Param) -> list[int]:
    """The whole numbers that a value is, or that it holds with an x between; none of a name."""
    if isinstance(value, int):
        return [value]
    parts = value.split("x")
    return [int(part) for part in parts] if len(parts) > 1 and all(part.isdecimal() for part in parts) else []


def _figures(case: Case, fitted: Fitted, own: Collection[str]) -> Iterator[tuple[str, str, str]]:
    record, work = case.record, case.record.work
    if case.ns > 0:
        yield "time", format_duration(case.ns), "measured, the median"
    headline = record.primary
    if headline is not None and headline.unit in ("FLOP/s", "B/s"):
        roof = case.compute if headline.unit == "FLOP/s" else case.level or case.memory
        how = "by the device's facts" if isinstance(roof, Rated) else "measured here"
        share = f"{100 * headline.value / roof.value:.0f} % of {roof.name}, {how}" if roof else ""
        yield "rate", format_rate(headline.value, headline.unit), share
    if work is not None and work.flops and work.bytes:
        side = limits.bound(case)
        limit = f"under the roof of {side}" if side else "of the algorithm"
        yield "intensity", f"{three_digits(work.flops / work.bytes)} FLOP/B", limit
    moved = limits.dram_bytes(record)
    if work is not None and work.bytes:
        counted = "compulsory" if moved is None else f"compulsory; DRAM moved {format_bytes(moved)}, counted"
        yield "bytes", format_bytes(work.bytes), counted
    if held := held_mhz(record):
        most = case.device.get("sm_mhz_max")
        yield "SM clock", f"{held:.0f} MHz", f"of {most:g} at the most" if most else ""
    if record.call_ns:
        yield "call", format_duration(percentile(sorted(record.call_ns), 0.5)), "to enqueue, on the host"
    if peak := record.telemetry.get("peak_bytes"):
        yield "memory", format_bytes(peak), "at the most in one call"
    yield from _of_product(case, fitted)
    longest = sorted(record.kernels, key=lambda kernel: -(kernel.ns or 0))  # in their order where no times are known
    for kernel in longest[:KERNELS]:
        sizes = " of ".join("×".join(map(str, size)) for size in (kernel.grid, kernel.block) if size)
        words = said(facts(kernel.name, kernel.kind, own))
        took = format_duration(kernel.ns) if kernel.ns is not None else ""
        more = [took, sizes, f"{kernel.registers} registers" if kernel.registers else ""]
        yield "kernel", f"{kernel.count}× {short_name(kernel.name)}", f"{words} {', '.join(filter(None, more))}"
    if len(record.kernels) > KERNELS:
        yield "kernels", f"{len(record.kernels) - KERNELS} more", ""
    yield from _predicted(record)


def _of_product(case: Case, fitted: Fitted) -> Iterator[tuple[str, str, str]]:
    product, time = case.product, case.time
    if product is None:
        return
    cover = product.cover
    how = "persistent" if cover.persistent else f"{cover.splits} slices of K" if cover.splits > 1 else "a block each"
    yield "tiles", f"{cover.tiles} of {drops.tile_words(product)}", f"{how}, {cover.orientation} first"
    yield "waves", str(cover.turns), f"on {cover.multiprocessors} multiprocessors, {100 * cover.idle:.0f} % idle"
    yield "beyond edges", f"{100 * (product.waste - 1):.0f} %", "computed for nothing, of the useful work"
    yield "alignment", f"{product.alignment} B", drops.kernel_words(product)
    yield "L2 reuse", f"{three_digits(product.l2_intensity)} FLOP/B", f"clusters of {_times(product.facts.cluster)}"
    if time is not None:
        rows = fitted.constants(case.record)[1]
        of = f"model, constants fitted to {rows} rows" if rows else "model, constants not fitted: too few rows"
        yield "predicted", format_duration(time.ns), of


def _predicted(record: Record) -> Iterator[tuple[str, str, str]]:
    """What the suite itself predicted, beside what was counted under the same name."""
    for name, value in record.prediction.items():
        predicted = _plain(value)
        metric = record.metric(name)
        counted = metric.value if metric is not None else record.counters.get(name)
        if predicted is not None and isinstance(counted, int | float):
            yield name.replace("_", " "), three_digits(counted), f"predicted {predicted}"


def _plain(value: object) -> str | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return three_digits(value)
    if isinstance(value, list) and len(value) == 2 and all(isinstance(each, int | float) for each in value):
        return " to ".join(map(three_digits, value))
    return None


def said(kernel: Facts) -> str:
    """What a kernel's name says, in a few words: `cuBLAS wgmma 256×128, 64 deep, 4 stages`."""
    parts = [kernel.maker or kernel.family, kernel.path or "", _times(kernel.tile) if kernel.tile else ""]
    words = " ".join(part for part in parts if part)
    more = [
        f"{kernel.depth} deep" if kernel.depth else "", f"{kernel.stages} stages" if kernel.stages else "",
        f"aligned to {kernel.alignment} element{'s' * (kernel.alignment > 1)}"
        if kernel.alignment and kernel.tile else "",
        f"computes {kernel.operations}" if kernel.operations else "",
    ]  # fmt: skip
    return ", ".join([words, *(part for part in more if part)]) + ";" * bool(words)


def _times(pair: tuple[int, int]) -> str:
    return "×".join(map(str, pair))
