"""The measured roofs of a device: which rows give them, which are missing, and under which key they are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from gpubench.model import precision
from gpubench.plan import Library, Selected, cases, select
from gpubench.result import USUAL, Ceiling, Record
from gpubench.suite import Case

PLAN = "ceilings"
"""The plan whose rows are roofs."""
NO_ROOF = {"cache-resident", "below-resolution", "implausible"}
"""Flags of a figure that is no measure of a roof."""
SMALL, LARGE = 16, 64
"""A roof of DRAM is the slope between streams of at least so many last-level caches: the end of what is written may
stay in a cache, and a start costs the same however long the stream is."""
LUCK = 0.03
"""What the best of a search may owe to luck. On a quiet H200 it was at most 0.5 %; on a busy CPU a second measurement
has been seen at half the first."""
SIZE = "mib"
"""The axis along which two rows of one stream differ."""


@dataclass(frozen=True)
class _Figure:
    """A candidate for a roof; `small` is the other row where it is a slope."""

    value: float
    record: Record
    small: Record | None = None


def key(device: Mapping[str, Any], software: Mapping[str, Any]) -> str:
    """What a kept ceiling holds for: this very device under its power limit, with this driver and torch."""
    name = device.get("uuid") or f"{device.get('name')}, {device.get('threads')} threads"
    power = device.get("power_limit_w")
    parts = [name, power and f"{power:g} W", software.get("driver"), f"torch {software.get('torch')}"]
    return ", ".join(str(part) for part in parts if part)


def from_records(records: Iterable[Record], when: str, cache_bytes: int | None = None) -> list[Ceiling]:
    """The best figure of each roof among rows that were measured cold and in bursts, beyond what a cache can serve.

    `cache_bytes` is the last-level cache of the device; where two rows of a stream are long enough beside it, the best
    slope is the roof of DRAM, else the best rate.
    """
    rates: dict[str, list[Record]] = {}
    for record in records:
        if record.work is not None and record.work.roof is not None and _counts(record):
            rates.setdefault(record.work.roof, []).append(record)
    found = []
    for roof, rows in rates.items():
        figures = list(_slopes(rows, cache_bytes)) or [_Figure(_rate(row), row) for row in rows]
        found.append(_ceiling(roof, max(figures, key=lambda figure: figure.value), when))
    return found


def _counts(record: Record) -> bool:
    """Whether a row can say anything of a roof."""
    asked = record.conditions
    usual = asked.cache == "cold" and asked.load == "burst" and asked.data != "zeros"
    return usual and not NO_ROOF & set(record.flags) and _rate(record) > 0


def _rate(record: Record) -> float:
    metric = record.metric("flops" if record.work is None or record.work.level is None else "bandwidth")
    return 0.0 if metric is None else metric.value


def _slopes(rows: Sequence[Record], cache_bytes: int | None) -> Iterator[_Figure]:
    """The slope of each stream that was measured at two sizes of which both are long enough."""
    if cache_bytes is None:
        return
    streams: dict[tuple[Any, ...], list[Record]] = {}
    for row in rows:
        if row.work is not None and row.work.level == "DRAM" and SIZE in row.params:
            same = tuple(sorted((name, value) for name, value in row.params.items() if name != SIZE))
            streams.setdefault((row.benchmark, same), []).append(row)
    for sizes in streams.values():
        ordered = sorted(sizes, key=_bytes)
        small, large = ordered[0], ordered[-1]
        more_bytes, more_ns = _bytes(large) - _bytes(small), _ns(large) - _ns(small)
        if (
            _bytes(small) >= SMALL * cache_bytes
            and _bytes(large) >= LARGE * cache_bytes
            and min(more_bytes, more_ns) > 0
        ):
            yield _Figure(more_bytes / more_ns * 1e9, large, small)


def _bytes(record: Record) -> int:
    return 0 if record.work is None else record.work.bytes


def _ns(record: Record) -> float:
    metric = record.metric("time")
    return 0.0 if metric is None else metric.value


def _ceiling(roof: str, figure: _Figure, when: str) -> Ceiling:
    row = figure.record
    assert row.work is not None
    if row.work.level is None:
        return Ceiling("compute", roof, figure.value, "FLOP/s", row.id, when, "measured", dtype=row.work.dtype)
    slope = None if figure.small is None else figure.small.id
    level = row.work.level
    return Ceiling("bandwidth", roof, figure.value, "B/s", row.id, when, "measured", level=level, slope_from=slope)


def winners(found: Iterable[Ceiling], measured: Iterable[Case]) -> list[Case]:
    """The cases whose rows are roofs: the best of a search is partly luck, so they are measured once more."""
    wanted = {name for ceiling in found for name in (ceiling.record, ceiling.slope_from)}
    return [case for case in measured if case.id in wanted]


def settled(first: Iterable[Ceiling], second: Iterable[Ceiling]) -> list[Ceiling]:
    """Each roof by its second measurement, unless that fell short of the first by more than luck explains: then
    something disturbed it, and the first stands."""
    again = {ceiling.name: ceiling for ceiling in second}
    return [
        again[ceiling.name]
        if ceiling.name in again and again[ceiling.name].value > (1 - LUCK) * ceiling.value
        else ceiling
        for ceiling in first
    ]


def merged(older: Iterable[Ceiling], newer: Iterable[Ceiling]) -> list[Ceiling]:
    """All of them; of two of one name the higher, for a roof is the best that was ever seen."""
    best: dict[str, Ceiling] = {}
    for ceiling in (*older, *newer):
        if ceiling.name not in best or ceiling.value > best[ceiling.name].value:
            best[ceiling.name] = ceiling
    return list(best.values())


def missing(
    library: Library,
    kind: str,
    planned: Sequence[Case],
    have: Sequence[Ceiling],
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> list[Case]:
    """The cases to measure so that the planned ones have their roofs: bandwidth, and flops in each of their dtypes but
    those that a CPU with these `facts` emulates, whose roof would take it minutes and be none.

    They are cold, in bursts and of the usual data, whatever the planned ones are and their suites declare.
    """
    usual = USUAL.by_name
    quick = bool(library.plan(PLAN).values.get("quick"))
    dtypes = {str(case.params["dtype"]) for case in planned if "dtype" in case.params}
    dtypes = {dtype for dtype in dtypes if not precision.emulated(dtype, facts)}
    lacking = sorted(dtypes - {str(ceiling.dtype) for ceiling in have if ceiling.kind == "compute"})
    found = []
    for selected in select([PLAN], library):
        axes = selected.benchmark.axes
        if "dtype" not in axes:
            wanted = not any(ceiling.kind == "bandwidth" for ceiling in have)
            found += cases([selected], kind, quick, usual) if wanted else []
        elif known := [dtype for dtype in lacking if dtype in axes["dtype"].choices]:
            asked = Selected(selected.benchmark, {**selected.asked, "dtype": known})
            found += cases([asked], kind, quick, usual)
    return found
