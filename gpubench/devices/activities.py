"""From a profiler's trace to the time of each call: pure functions, matched by correlation id and never by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from gpubench.errors import TimerFailed
from gpubench.result import KernelSeen

ROUNDING_NS = 2
"""What the decimals of a trace may add to or take from a duration: one ns at either end."""
KINDS = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
"""Categories of a trace that are work of the device, and our names for them."""


@dataclass(frozen=True)
class Activity:
    """One piece of device work. Times in ns on the trace's own clock; `correlation` counts a process's launches."""

    name: str
    kind: str
    start_ns: int
    end_ns: int
    correlation: int
    grid: tuple[int, ...] | None = None
    block: tuple[int, ...] | None = None
    registers: int | None = None
    shared_bytes: int | None = None


def from_trace(trace: Mapping[str, Any]) -> list[Activity]:
    """The device work in a Chrome trace of torch.profiler, in the order it was launched.

    A trace holds microseconds with three decimals; a reading is rounded back to whole ns.
    """
    found = []
    for event in trace.get("traceEvents", ()):
        kind = KINDS.get(event.get("cat", ""))
        if kind is None or "dur" not in event:
            continue
        details = event.get("args", {})
        start = round(event["ts"] * 1000)
        grid, block = details.get("grid"), details.get("block")
        found.append(
            Activity(
                name=event["name"],
                kind=kind,
                start_ns=start,
                end_ns=start + round(event["dur"] * 1000),
                correlation=int(details.get("correlation", 0)),
                grid=tuple(grid) if grid else None,
                block=tuple(block) if block else None,
                registers=details.get("registers per thread"),
                shared_bytes=details.get("shared memory"),
            )
        )
    return sorted(found, key=lambda activity: (activity.correlation, activity.start_ns))


def split(activities: Sequence[Activity], calls: int, before: int, each: int, after: int = 0) -> list[list[Activity]]:
    """The activities of each timed call: every call has `each` of its own, `before` ahead of them and `after` behind.

    TimerFailed where the records do not add up: some were lost, or calls differ.
    """
    size = before + each + after
    wanted = calls * size
    if each < 1 or len(activities) != wanted:
        raise TimerFailed(f"cupti gave {len(activities)} activity records where {calls} calls make {wanted}")
    return [list(activities[start + before : start + before + each]) for start in range(0, wanted, size)]


def half(activities: Sequence[Activity]) -> list[Activity]:
    """The activities of one call, from those of two. TimerFailed where the calls differ, as where some were lost."""
    middle = len(activities) // 2
    one, other = activities[:middle], activities[middle:]
    if not one or [*map(_identity, one)] != [*map(_identity, other)]:
        raise TimerFailed(f"cupti gave {len(activities)} activity records for two calls, which do not pair")
    return list(one)


def span(activities: Sequence[Activity]) -> int:
    """First start to last end, in ns."""
    return max(a.end_ns for a in activities) - min(a.start_ns for a in activities)


def busy(activities: Sequence[Activity]) -> int:
    """The union of the activities, in ns: what is left of the span without its gaps."""
    total, reached = 0, 0
    for activity in sorted(activities, key=lambda a: a.start_ns):
        start = max(activity.start_ns, reached)
        total += max(activity.end_ns - start, 0)
        reached = max(reached, activity.end_ns)
    return total


def seen(activities: Sequence[Activity]) -> list[KernelSeen]:
    """What one call ran, each distinct activity once with its count, in order of first launch."""
    counts = Counter(_identity(activity) for activity in activities)
    first: dict[tuple[Any, ...], Activity] = {}
    for activity in activities:
        first.setdefault(_identity(activity), activity)
    return [
        KernelSeen(
            name=activity.name,
            kind=activity.kind,
            count=counts[identity],
            grid=None if activity.grid is None else list(activity.grid),
            block=None if activity.block is None else list(activity.block),
            registers=activity.registers,
            shared_bytes=activity.shared_bytes,
        )
        for identity, activity in first.items()
    ]


def tick(readings: Sequence[int], rounding: int = 0) -> float:
    """The timer's tick in ns: the least step between distinct readings, 1 where they do not differ.

    Each reading may be off by `rounding` ns: a step of at most that is no tick, and the tick is the middle one of the
    steps that lie within twice the rounding of the least.
    """
    ordered = sorted(readings)
    steps = sorted(after - before for before, after in pairwise(ordered) if after - before > rounding)
    alike = [step for step in steps if step <= steps[0] + 2 * rounding]
    return float(alike[len(alike) // 2]) if alike else 1.0


def _identity(activity: Activity) -> tuple[Any, ...]:
    return (activity.name, activity.kind, activity.grid, activity.block)
