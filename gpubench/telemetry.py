"""What a GPU's clock events mean, and whether one of them spoiled what lies between two snapshots. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

THROTTLES: Mapping[int, str] = {
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""Clock events, by NVML's bit, that spoil a measurement."""
REGIMES: Mapping[int, str] = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "software power cap",
    0x10: "sync boost",
    0x100: "display clocks",
}
"""Clock events that do not: a power cap under a matmul is how the GPU runs."""

BUSY_PERCENT = 10
"""A utilization from here on is somebody's work: opening a GPU alone reaches a few percent."""

SPOILING = frozenset(THROTTLES.values())

_NAMES = {**THROTTLES, **REGIMES}


def events(bits: int) -> list[str]:
    """The clock events whose bits are set, those that spoil a measurement first."""
    return [name for bit, name in _NAMES.items() if bits & bit]


def throttles(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The events that spoiled what was measured between two snapshots: those seen in either of them, and those whose
    cumulative counter advanced in between. Where a driver has no such counters, an event may be missed."""
    seen = {name for snapshot in (before, after) for name in snapshot.get("clock_events") or ()}
    started, ended = before.get("event_ns") or {}, after.get("event_ns") or {}
    advanced = {name for name, ns in ended.items() if ns > started.get(name, ns)}
    return sorted((seen | advanced) & SPOILING)


def busy(snapshot: Mapping[str, Any]) -> str | None:
    """What keeps a GPU busy that this process does not use yet, in words; None where it is idle or nothing is known."""
    words = []
    utilization, others = snapshot.get("utilization_percent"), snapshot.get("other_processes")
    if utilization is not None and utilization >= BUSY_PERCENT:
        words.append(f"utilization {utilization} %")
    if others:
        words.append("1 other process" if others == 1 else f"{others} other processes")
    return ", ".join(words) or None


def idle(snapshot: Mapping[str, Any]) -> bool:
    """Whether a GPU is known to be idle."""
    known = (snapshot.get("utilization_percent"), snapshot.get("other_processes"))
    return busy(snapshot) is None and known != (None, None)
