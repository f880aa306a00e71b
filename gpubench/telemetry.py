"""What a GPU's clock events mean, whether one of them spoiled what lies between two snapshots, and what is known of the
clock that a row was measured at. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.result import Record
from gpubench.stats import percentile

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

LIMITS: Mapping[str, str] = {
    "software power cap": "power cap",
    "hardware power brake": "power cap",
    "software thermal slowdown": "thermal",
    "hardware thermal slowdown": "thermal",
    "hardware slowdown": "hardware slowdown",
}
"""What it means for a sustained rate that a clock event was on. The last one does not tell heat from power."""
COUNTED = [name for name in LIMITS if name != "hardware slowdown"]
"""The events that a driver may count the time of."""
LIMITED = 0.05
"""From this share of the time on an event is what sets the rate; below it is an episode."""

SM_CLOCK = "sm_clock"
"""The key of a row's telemetry that says why the clock beside its samples is not known to be that within them."""
OUTLASTS_NS = 300_000
"""Within a longer call a power cap may lower the clock, and let go before it is read again: an H200's products of 8192
in bfloat16, of 1.2 to 1.4 ms, took 12 % less time for zeros, at the same clock before and after the call. A choice: the
reading before a call spans 0.2 ms, and is as good as one within a call of about that length."""

SPOILING = frozenset(THROTTLES.values())

_NAMES = {**THROTTLES, **REGIMES}


def events(bits: int) -> list[str]:
    """The clock events whose bits are set, those that spoil a measurement first."""
    return [name for bit, name in _NAMES.items() if bits & bit]


def throttles(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The events that spoiled what was measured between two snapshots: those seen in either of them, and those whose
    cumulative counter advanced in between. Where a driver has no such counters, an event may be missed."""
    return sorted(_between(before, after) & SPOILING)


def _between(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    """All events seen in either snapshot, and those whose cumulative counter advanced in between."""
    seen = {name for snapshot in (before, after) for name in snapshot.get("clock_events") or ()}
    started, ended = before.get("event_ns") or {}, after.get("event_ns") or {}
    return seen | {name for name, ns in ended.items() if ns > started.get(name, ns)}


def unread_clock(before: Mapping[str, Any], after: Mapping[str, Any], sample_ns: float) -> str | None:
    """Why the SM clock read before and after each sample of a burst, of so many ns, need not be the one within it, for
    the row's SM_CLOCK: a power cap was on between two snapshots, and a sample takes over OUTLASTS_NS. Else None."""
    caps = sorted(name for name in _between(before, after) if LIMITS.get(name) == "power cap")
    if not caps or sample_ns <= OUTLASTS_NS:
        return None
    return f"read beside calls of {sample_ns / 1e6:.3g} ms, and not within them: {', '.join(caps)}"


def beside_mhz(record: Record) -> float:
    """The SM clock read on the GPU beside a row's samples: their median, 0 where none could be read."""
    known = sorted(mhz for mhz in record.samples.sm_mhz if mhz)
    return percentile(known, 0.5) if known else 0.0


def held_mhz(record: Record) -> float:
    """The SM clock that a row was measured at, 0 where it is not known."""
    return 0.0 if SM_CLOCK in record.telemetry else beside_mhz(record)


@dataclass(frozen=True)
class Limit:
    """What held the clock of a sustained load down: `by` is "power cap", "thermal", "hardware slowdown" or "none";
    `shares` the share of the time each event was on, of those that were on at all. `may_miss`: some event is known from
    polls only."""

    by: str
    shares: dict[str, float]
    may_miss: bool


def limit(
    before: Mapping[str, Any], after: Mapping[str, Any], elapsed_ns: float, polled: Sequence[Sequence[str] | None]
) -> Limit | None:
    """What limited a load between two snapshots: each event by the driver's cumulative counter, where it has one, else
    by the share of the polls meanwhile that saw it (None: a poll that read nothing). The event with the largest share
    decides, if that is LIMITED or more. None where there is neither."""
    started, ended = before.get("event_ns") or {}, after.get("event_ns") or {}
    counters = [name for name in LIMITS if name in started and name in ended and elapsed_ns > 0]
    seen = [set(names) for names in polled if names is not None]
    if not counters and not seen:
        return None
    shares = {name: sum(name in names for names in seen) / len(seen) for name in LIMITS} if seen else {}
    shares |= {name: min(max(ended[name] - started[name], 0) / elapsed_ns, 1.0) for name in counters}
    shares = {name: round(share, 4) for name, share in shares.items() if share > 0}
    largest = max(shares, key=shares.__getitem__, default=None)
    by = "none" if largest is None or shares[largest] < LIMITED else LIMITS[largest]
    return Limit(by, shares, may_miss=not set(COUNTED) <= set(counters))


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
