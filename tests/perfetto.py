"""What ui.perfetto.dev wants of a trace in JSON, as far as it can be said without it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any


def check(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The complete events of a trace whose structure is right; AssertionError where it is not."""
    assert set(document) == {"displayTimeUnit", "otherData", "traceEvents"}
    events = document["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert {event["ph"] for event in events} <= {"X", "M", "s", "f"}
    for event in events:
        assert isinstance(event["name"], str)
        assert all(isinstance(event[key], int) for key in ("pid", "tid")), event
        assert event["ts"] >= 0
    _named(events, slices)
    _nested(slices)
    _arrows(events, slices)
    return slices


def _named(events: list[dict[str, Any]], slices: list[dict[str, Any]]) -> None:
    """Each process and each thread has one name, and a place."""
    given = [(event["name"], event["pid"], event["tid"]) for event in events if event["ph"] == "M"]
    assert len(set(given)) == len(given)
    for event in slices:
        for what in ("process_name", "process_sort_index"):
            assert (what, event["pid"], 0) in given
        for what in ("thread_name", "thread_sort_index"):
            assert (what, event["pid"], event["tid"]) in given


def _nested(slices: list[dict[str, Any]]) -> None:
    """Those of one thread contain each other or are apart. Compared in whole ns."""
    threads = defaultdict(list)
    for event in slices:
        start = round(event["ts"] * 1000)
        threads[event["pid"], event["tid"]].append((start, start + round(event["dur"] * 1000)))
    for spans in threads.values():
        stack: list[int] = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while stack and stack[-1] <= start:
                stack.pop()
            assert not stack or end <= stack[-1], "an event sticks out of the one that it begins in"
            stack.append(end)


def _arrows(events: list[dict[str, Any]], slices: list[dict[str, Any]]) -> None:
    """Each has two ends, both at the start of an event."""
    ends = defaultdict(list)
    for event in events:
        if event["ph"] in "sf":
            ends[event["id"]].append(event)
    starts = {(event["pid"], event["tid"], event["ts"]) for event in slices}
    for pair in ends.values():
        assert [event["ph"] for event in pair] == ["s", "f"]
        assert pair[1]["bp"] == "e"
        assert all((event["pid"], event["tid"], event["ts"]) in starts for event in pair)
