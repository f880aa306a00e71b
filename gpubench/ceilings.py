"""The measured roofs of a device: which rows give them, which are missing, and under which key they are kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpubench.plan import Library, cases, select
from gpubench.result import Ceiling, Record
from gpubench.suite import Case

PLAN = "ceilings"
"""The plan whose rows are roofs."""
NO_ROOF = {"cache-resident", "below-resolution", "implausible"}
"""Flags of a figure that is no measure of a roof."""


def key(device: Mapping[str, Any], software: Mapping[str, Any]) -> str:
    """What a kept ceiling holds for: this very device under its power limit, with this driver and torch."""
    name = device.get("uuid") or f"{device.get('name')}, {device.get('threads')} threads"
    power = device.get("power_limit_w")
    parts = [name, power and f"{power:g} W", software.get("driver"), f"torch {software.get('torch')}"]
    return ", ".join(str(part) for part in parts if part)


def from_records(records: Iterable[Record], when: str) -> list[Ceiling]:
    """The best figure of each roof among rows that were measured cold and in bursts, beyond what a cache can serve."""
    best: dict[str, tuple[float, Record]] = {}
    for record in records:
        if record.work is None or record.work.roof is None or NO_ROOF & set(record.flags):
            continue
        metric = record.metric("flops" if record.work.level is None else "bandwidth")
        asked = record.conditions
        if metric is None or asked.cache != "cold" or asked.load != "burst" or asked.data == "zeros":
            continue
        if metric.value > best.get(record.work.roof, (0.0, record))[0]:
            best[record.work.roof] = (metric.value, record)
    return [_ceiling(roof, value, record, when) for roof, (value, record) in best.items()]


def _ceiling(roof: str, value: float, record: Record, when: str) -> Ceiling:
    assert record.work is not None
    if record.work.level is not None:
        return Ceiling("bandwidth", roof, value, "B/s", record.id, when, "measured", level=record.work.level)
    return Ceiling("compute", roof, value, "FLOP/s", record.id, when, "measured", dtype=record.work.dtype)


def merged(older: Iterable[Ceiling], newer: Iterable[Ceiling]) -> list[Ceiling]:
    """All of them; of two of one name the higher, for a roof is the best that was ever seen."""
    best: dict[str, Ceiling] = {}
    for ceiling in (*older, *newer):
        if ceiling.name not in best or ceiling.value > best[ceiling.name].value:
            best[ceiling.name] = ceiling
    return list(best.values())


def missing(library: Library, kind: str, planned: Sequence[Case], have: Sequence[Ceiling]) -> list[Case]:
    """The cases to measure so that the planned ones have their roofs: bandwidth, and flops in each of their dtypes."""
    dtypes = {str(case.params["dtype"]) for case in planned if "dtype" in case.params}
    lacking = sorted(dtypes - {str(ceiling.dtype) for ceiling in have if ceiling.kind == "compute"})
    found = []
    for selected in select([PLAN], library):
        if "dtype" not in selected.benchmark.axes:
            wanted = not any(ceiling.kind == "bandwidth" for ceiling in have)
            found += cases([selected], kind) if wanted else []
        elif lacking:
            known = [dtype for dtype in lacking if dtype in selected.benchmark.axes["dtype"].choices]
            asked = type(selected)(selected.benchmark, {**selected.asked, "dtype": known})
            found += cases([asked], kind) if known else []
    return found
