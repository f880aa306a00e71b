"""From the trace that torch's profiler writes to one that can be shown to anybody: pure functions on events.

The result is the Trace Event Format that ui.perfetto.dev and chrome://tracing open: complete events with microseconds
from the first one on, an arrow from each launch to what it launched, and names for processes and threads. Only what is
listed here is taken over: no host, no path, no number of a process.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpubench.devices import FLUSH

RANGES, LAUNCHES = ("user_annotation",), ("cuda_runtime", "cuda_driver")
ON_HOST = ("cpu_op", *RANGES, *LAUNCHES)
ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
"""Categories of torch's profiler that are taken over."""
GPU_RANGES = ("gpu_user_annotation",)
"""The category of ranges on the GPU, which are ours: torch's own end with the kernels of the thread that opened them,
so that a backward pass, which has a thread of its own, would be in none."""
ARGUMENTS = (
    "correlation", "stream", "device", "grid", "block", "registers per thread", "shared memory", "bytes",
    "memory bandwidth (GB/s)", "blocks per SM", "warps per SM",
)  # fmt: skip
"""What an event says besides, as far as it is a number or a list of numbers. Not its estimate of occupancy: that is 0 %
of kernels with more than 48 KiB of shared memory, such as those of cuBLAS."""
MOST_EVENTS = 100_000
"""Events of a trace, those that come first: some 25 MB. Perfetto opens more, but a call of that many launches is seen
as well in its beginning."""
LONGEST = 1000
"""Characters of a name."""
ROUNDING_NS = 2
"""What reading a trace's decimals may add to the end of an event or take from its start: one ns each."""
HOST = 1
FIRST_GPU = 2
"""Numbers of the processes of a trace: the host, and from there on the GPUs."""

_FOLDERS = re.compile(r"(?<![\w.:~/])~?/(?:[^/\s\"'()<>,;:]+/)+")


@dataclass(frozen=True)
class Event:
    """One piece of work. `start` and `length` are ns, the first from the trace's first event on; `lane` is a thread of
    the host, or a stream of the GPU `gpu`, and `row` counts what overlaps there; `launch` counts launches, 0 where
    there is none."""

    name: str
    kind: str
    start: int
    length: int
    lane: int
    gpu: int | None = None
    row: int = 0
    launch: int = 0
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def works(self) -> bool:
        """Whether the GPU works in it."""
        return self.kind in ON_GPU


@dataclass(frozen=True)
class Timeline:
    """The events of a trace by their start, and how many were left out behind them."""

    events: Sequence[Event]
    left_out: int = 0


@dataclass(frozen=True)
class Spent:
    """All events of one name: how many, and their ns without what is nested in them."""

    name: str
    kind: str
    count: int
    ns: int


def timeline(trace: Mapping[str, Any]) -> Timeline:
    """The events of torch's trace that are shown. What is not as it should be is left out."""
    raw = trace.get("traceEvents")
    found = [event for each in (raw if isinstance(raw, list) else ()) if (event := _event(each)) is not None]
    found += _gpu_ranges(found)
    found.sort(key=lambda event: (event.start, -event.length))
    begun = found[0].start if found else 0
    kept = [replace(event, start=event.start - begun) for event in found[:MOST_EVENTS]]
    return Timeline(_untangled(kept), len(found) - len(kept))


def document(shown: Timeline, facts: Mapping[str, Any], gpu: str) -> dict[str, Any]:
    """The trace as a JSON value. `facts` say what was traced; `gpu` is the GPU's name."""
    lanes = _lanes(shown.events)
    events = [_complete(event, lanes) for event in shown.events]
    return {
        "displayTimeUnit": "ns",
        "otherData": dict(facts),
        "traceEvents": [*_names(lanes, gpu), *events, *_arrows(shown.events, lanes)],
    }


def spent(events: Iterable[Event]) -> list[Spent]:
    """What took the time, the most first: the GPU's work where there is any, but for the flush of its caches, else the
    host's operations."""
    events = list(events)
    flushing = _flushing(events)
    working = [event for event in events if event.works and event.launch not in flushing]
    working = working or [event for event in events if event.kind == "cpu_op"]
    nested = _nested(working)
    totals: dict[tuple[str, str], list[int]] = {}
    for event, inside in zip(working, nested, strict=True):
        total = totals.setdefault((event.name, event.kind), [0, 0])
        total[0] += 1
        total[1] += event.length - inside
    found = [Spent(name, kind, count, ns) for (name, kind), (count, ns) in totals.items()]
    return sorted(found, key=lambda each: -each.ns)


def _flushing(events: Sequence[Event]) -> set[int]:
    """The launches made within a flush of the caches, on whatever thread: nothing else is done at that time."""
    launched = _Launched(events)
    flushes = (event for event in events if event.name == FLUSH and event.kind in RANGES)
    return {launch for flush in flushes for launch in launched.within(flush)}


class _Launched:
    """The launches of a trace by their time."""

    def __init__(self, events: Iterable[Event]) -> None:
        found = sorted((event.start, event.launch) for event in events if event.kind in LAUNCHES and event.launch)
        self._starts = [start for start, _ in found]
        self._numbers = [launch for _, launch in found]

    def within(self, span: Event) -> Sequence[int]:
        """Those made while a range of the host was open, on whatever thread."""
        first, last = bisect_left(self._starts, span.start), bisect_right(self._starts, span.start + span.length)
        return self._numbers[first:last]


def _gpu_ranges(events: Sequence[Event]) -> list[Event]:
    """Each range of the host once more on every stream that works for it: from the first to the last piece of work that
    was launched while it was open."""
    work: dict[int, list[Event]] = {}
    for event in events:
        if event.works and event.launch:
            work.setdefault(event.launch, []).append(event)
    launched = _Launched(events)
    found = []
    for span in (event for event in events if event.kind in RANGES):
        by_stream: dict[tuple[int | None, int], list[Event]] = {}
        for launch in launched.within(span):
            for event in work.get(launch, ()):
                by_stream.setdefault((event.gpu, event.lane), []).append(event)
        for (gpu, stream), each in by_stream.items():
            start = min(event.start for event in each)
            length = max(event.start + event.length for event in each) - start
            found.append(Event(span.name, GPU_RANGES[0], start, length, stream, gpu))
    return found


def _event(raw: Any) -> Event | None:
    """An event in ns of the profiler's clock; None for what is not shown or makes no sense."""
    if not isinstance(raw, Mapping) or raw.get("ph") != "X":
        return None
    kind, name, lane = raw.get("cat"), raw.get("name"), raw.get("tid")
    start, length = _number(raw.get("ts")), _number(raw.get("dur"))
    if kind not in (*ON_HOST, *ON_GPU) or not isinstance(name, str) or not isinstance(lane, int):
        return None
    if start is None or length is None or length < 0:
        return None
    told = raw.get("args")
    arguments = {key: told[key] for key in ARGUMENTS if _plain(told.get(key))} if isinstance(told, Mapping) else {}
    launch = arguments.get("correlation", 0)
    return Event(
        name=_FOLDERS.sub("", name)[:LONGEST],
        kind=kind,
        start=round(start * 1000),
        length=round(length * 1000),
        lane=lane,
        gpu=_gpu(raw, arguments) if kind in ON_GPU else None,
        launch=launch if isinstance(launch, int) else 0,
        arguments=arguments,
    )


def _gpu(raw: Mapping[str, Any], arguments: Mapping[str, Any]) -> int:
    number = arguments.get("device", raw.get("pid"))
    return number if isinstance(number, int) and number >= 0 else 0


def _number(value: Any) -> float | None:
    """A finite number; torch writes some as text."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) else None


def _plain(value: Any) -> bool:
    """Whether it is a finite number, or a list of some."""
    if isinstance(value, list):
        return bool(value) and all(_plain(each) for each in value) and len(value) <= 3
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


Lane = tuple[int, int, bool, int]
"""A GPU (HOST_LANE: none), a thread or a stream, whether it is for work and not for the GPU's ranges, and the row."""
HOST_LANE = -1


def _lane(event: Event) -> Lane:
    return HOST_LANE if event.gpu is None else event.gpu, event.lane, event.kind not in GPU_RANGES, event.row


class _Row:
    """What has been put into a row: the ends of those that are open, and before what nothing more can begin."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._free = 0

    def put(self, event: Event) -> Event | None:
        """Put in an event that begins no earlier than those before it; as it is then, None where it does not fit."""
        while self._ends and self._ends[-1] <= event.start + ROUNDING_NS:
            self._free = max(self._free, self._ends.pop())
        late = max(self._free - event.start, 0)
        event = replace(event, start=event.start + late, length=max(event.length - late, 0))
        if self._ends:
            sticks = event.start + event.length - self._ends[-1]
            if event.works or sticks > ROUNDING_NS:
                return None
            event = replace(event, length=event.length - max(sticks, 0))
        self._ends.append(event.start + event.length)
        self._free = event.start
        return event


def _untangled(events: Iterable[Event]) -> list[Event]:
    """The same such that the events of a row contain each other or are apart, as a viewer wants them: what a reading's
    rounding adds is taken off, and what overlaps by more, as kernels that run at a time in one stream do, is a row
    below. The GPU's work contains none of its own."""
    found: list[Event] = []
    rows_of: dict[Lane, list[_Row]] = {}
    for event in events:
        rows = rows_of.setdefault(_lane(event), [])
        for number, row in enumerate([*rows, _Row()]):
            placed = row.put(event)
            if placed is not None:
                rows[number : number + 1] = [row]
                found.append(replace(placed, row=number))
                break
    return found


def _lanes(events: Iterable[Event]) -> dict[Lane, tuple[int, int]]:
    """The process and the thread of each lane, by numbers of our own: threads of the host in the order in which they
    begin, streams by their number, each below its ranges."""
    lanes = list(dict.fromkeys(map(_lane, events)))
    ordered = [lane for lane in lanes if lane[0] == HOST_LANE] + sorted(lane for lane in lanes if lane[0] != HOST_LANE)
    found: dict[Lane, tuple[int, int]] = {}
    for lane in ordered:
        process = HOST if lane[0] == HOST_LANE else FIRST_GPU + lane[0]
        found[lane] = process, 1 + sum(other == process for other, _ in found.values())
    return found


def _names(lanes: Mapping[Lane, tuple[int, int]], gpu: str) -> list[dict[str, Any]]:
    """What processes and threads are called, and in which order they stand: the host first."""
    found = []
    for process in sorted({process for process, _ in lanes.values()}):
        name = "host" if process == HOST else f"GPU {process - FIRST_GPU}: {gpu}"
        found += [_meta("process_name", process, 0, name=name)]
        found += [_meta("process_sort_index", process, 0, sort_index=process)]
    for (device, number, works, row), (process, thread) in lanes.items():
        below = f", {row + 1} at a time" if row else ""
        name = f"thread {thread}" if device == HOST_LANE else f"stream {number}" + ("" if works else " ranges")
        found += [_meta("thread_name", process, thread, name=name + below)]
        found += [_meta("thread_sort_index", process, thread, sort_index=thread)]
    return found


def _meta(kind: str, process: int, thread: int, **arguments: Any) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "ts": 0, "args": arguments}


def _complete(event: Event, lanes: Mapping[Lane, tuple[int, int]]) -> dict[str, Any]:
    process, thread = lanes[_lane(event)]
    times = {"ts": event.start / 1000, "dur": event.length / 1000}
    found = {"ph": "X", "cat": event.kind, "name": event.name, "pid": process, "tid": thread, **times}
    return found | ({"args": dict(event.arguments)} if event.arguments else {})


def _arrows(events: Sequence[Event], lanes: Mapping[Lane, tuple[int, int]]) -> list[dict[str, Any]]:
    """A pair of events for each piece of the GPU's work whose launch is there: several for the launch of a graph."""
    launches: dict[int, Event] = {}
    for event in events:
        if event.kind in LAUNCHES and event.launch:
            launches.setdefault(event.launch, event)
    found: list[dict[str, Any]] = []
    for event in events:
        if event.works and event.launch in launches:
            common = {"cat": "launch", "name": "launch", "id": len(found) // 2 + 1}
            for phase, end in (("s", launches[event.launch]), ("f", event)):
                process, thread = lanes[_lane(end)]
                place = {"pid": process, "tid": thread, "ts": end.start / 1000}
                found.append({"ph": phase, **common, **place} | ({"bp": "e"} if phase == "f" else {}))
    return found


def _nested(events: Sequence[Event]) -> list[int]:
    """Of each event, in order of their starts, the ns of those directly within it on the same lane."""
    inside = [0] * len(events)
    open_: dict[Lane, list[int]] = {}
    for index, event in enumerate(events):
        stack = open_.setdefault(_lane(event), [])
        while stack and events[stack[-1]].start + events[stack[-1]].length <= event.start:
            stack.pop()
        if stack:
            inside[stack[-1]] += event.length
        stack.append(index)
    return inside
