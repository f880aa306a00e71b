"""From a profiler's records to the time of each call: pure functions, matched by correlation id and never by name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from gpubench.devices import Batch
from gpubench.devices.pacing import repeated
from gpubench.errors import TimerFailed
from gpubench.result import KernelSeen

ROUNDING_NS = 2
"""What the decimals of a trace may add to or take from a duration: one ns at either end."""
KINDS = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
"""Categories of a trace that are work of the device, and our names for them."""
AGREE = 0.05
"""How far the record of a hold may be from what the GPU counted: its start and its end are 1 % of the shortest."""
GAPS = 0.10
"""Gaps between the activities of a call above this share of its span mark the row `profiled`."""
ALIKE_FROM = 3
"""Calls of a session from which on the share of each can be told from the records alone."""


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
        start = round(event["ts"] * 1000)
        end = start + round(event["dur"] * 1000)
        found.append(_activity(event["name"], kind, start, end, event.get("args", {})))
    return in_order(found)


def from_events(events: Iterable[Any], details: bool) -> list[Activity] | None:
    """The device work among torch's `_KinetoEvent`s, in the order it was launched, with grids and the like where
    `details` asks for them. None where this torch says too little of an event: then its trace must be read."""
    found: list[Activity] = []
    for event in events:
        if not hasattr(event, "activity_type"):
            return None
        kind = KINDS.get(event.activity_type())
        if kind is None:
            continue
        text = event.metadata_json() if details else ""
        if details and not text:
            return None
        try:
            told = json.loads("{" + text + "}") | {"correlation": event.correlation_id()}
        except ValueError:
            return None
        start = event.start_ns()
        found.append(_activity(event.name(), kind, start, start + event.duration_ns(), told))
    return in_order(found)


def _activity(name: str, kind: str, start_ns: int, end_ns: int, told: Mapping[str, Any]) -> Activity:
    """With what a trace tells of it besides."""
    grid, block = told.get("grid"), told.get("block")
    return Activity(
        name=name,
        kind=kind,
        start_ns=start_ns,
        end_ns=end_ns,
        correlation=int(told.get("correlation", 0)),
        grid=tuple(grid) if grid else None,
        block=tuple(block) if block else None,
        registers=told.get("registers per thread"),
        shared_bytes=told.get("shared memory"),
    )


def in_order(found: Iterable[Activity]) -> list[Activity]:
    """Activities in the order they were launched."""
    return sorted(found, key=lambda activity: (activity.correlation, activity.start_ns))


def split(activities: Sequence[Activity], calls: int, before: int, each: int, after: int = 0) -> list[list[Activity]]:
    """The activities of each timed call: every call has `each` of its own, `before` ahead of them and `after` behind.

    TimerFailed where the records do not add up: some were lost, or calls differ.
    """
    size = before + each + after
    wanted = calls * size
    if each < 1 or len(activities) != wanted:
        raise TimerFailed(f"{len(activities)} activity records where {calls} calls make {wanted}")
    return [list(activities[start + before : start + before + each]) for start in range(0, wanted, size)]


def share(activities: Sequence[Activity], calls: int, before: int, after: int = 0) -> int | None:
    """How many activities each call has of its own, from a session in which all calls left the same records; None
    where they did not, or are too few to tell. Some that were lost shift those that follow, among which the hold comes
    once a call. TimerFailed where they cannot be shared out."""
    size, over = divmod(len(activities), calls)
    each = size - before - after
    if over or each < 1:
        raise TimerFailed(f"{len(activities)} activity records of {calls} calls, which do not share them evenly")
    identities = [_identity(activity) for activity in activities]
    return each if calls >= ALIKE_FROM and identities == identities[:size] * calls else None


def half(activities: Sequence[Activity]) -> list[Activity]:
    """The activities of one call, from those of two. TimerFailed where the calls differ, as where some were lost."""
    middle = len(activities) // 2
    one, other = activities[:middle], activities[middle:]
    if not one or [*map(_identity, one)] != [*map(_identity, other)]:
        raise TimerFailed(f"{len(activities)} activity records of two calls, which do not pair")
    return list(one)


def one_of_two(session: Callable[[], list[Activity]]) -> list[Activity]:
    """The activities of one call, from a session of two, repeated until they pair. TimerFailed where none does."""
    return repeated(lambda: half(session()))


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


def seen(calls: Sequence[Sequence[Activity]]) -> list[KernelSeen]:
    """What the last of these calls ran, each distinct activity once with its count, in order of first launch; and how
    long it took, in the middle of the calls. A call that ran others has no say in that."""
    last = calls[-1]
    counts = Counter(map(_identity, last))
    first: dict[tuple[Any, ...], Activity] = {}
    for activity in last:
        first.setdefault(_identity(activity), activity)
    alike = [call for call in calls if Counter(map(_identity, call)) == counts]
    durations: dict[tuple[Any, ...], list[int]] = {identity: [] for identity in first}
    for call in alike:
        spent: Counter[tuple[Any, ...]] = Counter()
        for activity in call:
            spent[_identity(activity)] += activity.end_ns - activity.start_ns
        for identity, ns in spent.items():
            durations[identity].append(ns)
    return [
        KernelSeen(
            name=activity.name,
            kind=activity.kind,
            count=counts[identity],
            grid=None if activity.grid is None else list(activity.grid),
            block=None if activity.block is None else list(activity.block),
            registers=activity.registers,
            shared_bytes=activity.shared_bytes,
            ns=round(median(durations[identity])),
        )
        for identity, activity in first.items()
    ]


def counted(kernels: Sequence[KernelSeen]) -> str:
    """What one call ran, in words: "2 kernels and 1 memset"."""
    kinds: Counter[str] = Counter()
    for kernel in kernels:
        kinds[kernel.kind] += kernel.count
    return " and ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in kinds.items())


def tick(readings: Sequence[int], rounding: int = 0) -> float:
    """The timer's tick in ns: the least step between distinct readings, 1 where they do not differ.

    Each reading may be off by `rounding` ns: a step of at most that is no tick, and the tick is what all readings are
    nearest to whole multiples of, from the least step to twice the rounding above it.
    """
    ordered = sorted(readings)
    steps = [after - before for before, after in pairwise(ordered) if after - before > rounding]
    if not steps:
        return 1.0

    def misfit(step: int) -> int:
        return sum(abs(reading - round(reading / step) * step) for reading in ordered)

    return float(min(range(min(steps), min(steps) + 2 * rounding + 1), key=misfit))


def _identity(activity: Activity) -> tuple[Any, ...]:
    return (activity.name, activity.kind, activity.grid, activity.block)


def agree(holds: Sequence[Activity], told_ns: Sequence[float | None]) -> None:
    """Whether records of kernels of known length say how long these were, by their middle ratio. TimerFailed where they
    do not: once torch's profiler has been at work in a process, records that CUPTI gives to others have another clock
    (on an H200 2.1 times too long)."""
    if told_ns and len(holds) != len(told_ns):
        raise TimerFailed(f"{len(holds)} activity records of {len(told_ns)} holds")
    ratios = sorted(span([hold]) / told for hold, told in zip(holds, told_ns, strict=False) if told)
    if ratios and abs(ratios[len(ratios) // 2] - 1) > AGREE:
        raise TimerFailed(f"a hold of known length reads {ratios[len(ratios) // 2]:.2f} times that: the clock is off")


class Reader:
    """Reads batches out of sessions of activity records, each repeated until its records add up.

    In a session every call has `before` records ahead of it, of which the last is the hold, and `after` behind it. How
    many are its own is told by the first session in which all calls left the same, else by `count`. `held_ns` gives the
    lengths of the holds of the last session as the GPU counted them, in ns, None where it did not.
    """

    def __init__(
        self,
        before: int,
        after: int,
        count: Callable[[], int],
        held_ns: Callable[[], Sequence[float | None]] = list,
    ) -> None:
        self._held_ns = held_ns
        self._before = before
        self._after = after
        self._count = count
        self._each: int | None = None
        self._kernels: list[KernelSeen] | None = None

    def batch(self, session: Callable[[bool], list[Activity]], n: int) -> Batch:
        """The times of n calls, without clocks. `session` makes them and says what was recorded, with details if told
        so. TimerFailed where the records of pacing.TRIES sessions do not add up."""

        def attempt() -> list[list[Activity]]:
            records = session(self._kernels is None)
            if self._each is None:
                self._each = share(records, n, self._before, self._after) or self._count()
            calls = split(records, n, self._before, self._each, self._after)
            size = self._before + self._each + self._after
            agree(records[self._before - 1 :: size], self._held_ns())
            return calls

        calls = repeated(attempt)
        if self._kernels is None:
            self._kernels = seen(calls)
        spans = [span(call) for call in calls]
        gaps = sorted(1 - busy(call) / whole if whole else 0.0 for call, whole in zip(calls, spans, strict=True))
        return Batch(spans, [1] * n, [None] * n, self._kernels, profiled=gaps[n // 2] > GAPS)

    @property
    def reason(self) -> str:
        """Why the records are believed, in words, once a batch was read."""
        return f"records add up: {counted(self._kernels or [])} a call"
