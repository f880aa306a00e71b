"""From torch's trace to one that can be shown: what is taken over, and that a viewer can open it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from perfetto import check

from gpubench.devices import FLUSH
from gpubench.profiling import timeline as module
from gpubench.profiling.timeline import Spent, document, spent, timeline
from gpubench.store import jsonfile

GOLDEN = json.loads((Path(__file__).parent / "golden/torch-trace.json").read_text())


def host(name: str, ts: float, dur: float, cat: str = "cpu_op", tid: int = 4021, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 4021, "tid": tid, "ts": ts, "dur": dur, "args": args}


def kernel(name: str, ts: float, dur: float, launch: int = 0, stream: int = 7, device: int = 0) -> dict[str, Any]:
    args = {"correlation": launch, "stream": stream, "device": device}
    return {"ph": "X", "cat": "kernel", "name": name, "pid": device, "tid": stream, "ts": ts, "dur": dur, "args": args}


def launch(ts: float, number: int) -> dict[str, Any]:
    return host("cudaLaunchKernel", ts, 1.0, "cuda_runtime", correlation=number)


def made(*events: dict[str, Any]) -> dict[str, Any]:
    found = document(timeline({"traceEvents": list(events)}), {}, "NVIDIA H200")
    return jsonfile.loads(jsonfile.dumps(found), "trace")


def test_a_trace_of_a_gpu() -> None:
    found = document(timeline(GOLDEN), {"record": "a/b[n=1]"}, "NVIDIA H200")
    slices = check(found)
    assert [(event["cat"], event["ts"], event["dur"]) for event in slices] == [
        ("cuda_runtime", 0.0, 4.207),
        ("cuda_runtime", 9.382, 151.2),
        ("gpu_memset", 13.889, 1.184),
        ("kernel", 17.186, 11.136),
        ("kernel", 28.994, 3.616),
        ("gpu_memcpy", 33.826, 126.399),
    ]
    assert slices[3]["args"]["grid"] == [2, 66, 1]
    names = {(e["pid"], e["tid"], e["args"]["name"]) for e in found["traceEvents"] if e["name"].endswith("_name")}
    assert names == {
        (1, 0, "host"), (1, 1, "thread 1"), (2, 0, "GPU 0: NVIDIA H200"), (2, 1, "stream 7"),
    }  # fmt: skip
    arrows = [(event["ph"], event["pid"], event["ts"]) for event in found["traceEvents"] if event["ph"] in "sf"]
    assert arrows == [("s", 1, 0.0), ("f", 2, 13.889)]
    assert found["otherData"] == {"record": "a/b[n=1]"}


def test_nothing_of_the_host_is_shown() -> None:
    told = {
        "host_name": "secret-host",
        "traceName": "/home/secret/trace.json",
        "traceEvents": [
            host("aten::add", 1.0, 2.0, kernel_file="/tmp/secret/x.py", **{"Ev Idx": 3}),
            host("load /home/secret/data/weights.bin, ~/secret/a.b", 4.0, 1.0),
            host("std::ratio<1/2>::operator/(int)", 6.0, 1.0),
            {"ph": "M", "name": "process_name", "pid": 4021, "tid": 0, "ts": 0, "args": {"name": "/usr/bin/secret"}},
        ],
    }
    text = jsonfile.dumps(document(timeline(told), {}, ""))
    assert "secret" not in text
    assert "4021" not in text
    assert '"load weights.bin, a.b"' in text
    assert "std::ratio<1/2>::operator/(int)" in text


def test_a_launch_of_several_kernels_has_an_arrow_to_each_and_unknown_launches_none() -> None:
    found = made(launch(0, 5), kernel("a", 10, 2, 5), kernel("b", 12, 2, 5), kernel("c", 15, 2, 9), kernel("d", 20, 2))
    check(found)
    ends = [(event["id"], event["ts"]) for event in found["traceEvents"] if event["ph"] == "f"]
    assert ends == [(1, 10.0), (2, 12.0)]


def test_kernels_of_one_stream_that_run_at_a_time_are_rows() -> None:
    found = made(kernel("a", 0, 10), kernel("b", 8, 10), kernel("c", 9, 20), kernel("d", 18, 1), kernel("e", 40, 1))
    check(found)
    rows = {event["name"]: event["tid"] for event in found["traceEvents"] if event["ph"] == "X"}
    assert rows == {"a": 1, "b": 2, "c": 3, "d": 1, "e": 1}
    names = [event["args"]["name"] for event in found["traceEvents"] if event["name"] == "thread_name"]
    assert names == ["stream 7", "stream 7, 2 at a time", "stream 7, 3 at a time"]


def test_what_rounding_adds_is_taken_off() -> None:
    found = made(
        host("outer", 0.0, 10.0), host("inner", 5.0, 5.002), host("next", 9.999, 3.0), host("first", 9.999, 2.0),
        kernel("a", 0.0, 4.0), kernel("b", 3.999, 1.0),
    )  # fmt: skip
    slices = {event["name"]: event for event in check(found)}
    assert slices["inner"]["dur"] == 5.0
    assert {event["tid"] for event in slices.values()} == {1}
    assert [(slices[name]["ts"], slices[name]["dur"]) for name in ("next", "first")] == [(10.0, 2.999), (10.0, 1.999)]
    assert (slices["b"]["ts"], slices["b"]["dur"]) == (4.0, 0.999)
    assert slices["a"]["tid"] == slices["b"]["tid"]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30), st.booleans()), max_size=30))
def test_whatever_overlaps_can_be_opened(spans: list[tuple[int, int, bool]]) -> None:
    events = [
        kernel("k", start / 1000, length / 1000) if works else host("h", start / 1000, length / 1000)
        for start, length, works in spans
    ]
    found = made(*events)
    assert len(check(found)) == len(events)


def test_gpus_and_threads_are_apart_and_ranges_have_a_line_of_their_own() -> None:
    found = made(
        host("call 1", 0, 20, "user_annotation"), host("backward", 2, 3, tid=77), launch(1, 5), kernel("a", 2, 3, 5),
        kernel("b", 3, 3, device=1), kernel("c", 4, 3, stream=20),
    )  # fmt: skip
    check(found)
    processes = [event["args"]["name"] for event in found["traceEvents"] if event["name"] == "process_name"]
    assert processes == ["host", "GPU 0: NVIDIA H200", "GPU 1: NVIDIA H200"]
    lanes = [
        (event["pid"], event["tid"], event["args"]["name"])
        for event in found["traceEvents"]
        if event["name"] == "thread_name"
    ]
    assert lanes == [
        (1, 1, "thread 1"), (1, 2, "thread 2"), (2, 1, "stream 7 ranges"), (2, 2, "stream 7"), (2, 3, "stream 20"),
        (3, 1, "stream 7"),
    ]  # fmt: skip


def test_a_range_on_the_gpu_holds_what_other_threads_launched() -> None:
    """torch's own ends with the last kernel of the thread that opened it: of a step, before the backward pass."""
    theirs = {**kernel("call 1", 10, 5), "cat": "gpu_user_annotation"}
    backward = {**launch(6, 3), "tid": 77}
    slices = check(made(
        host("call 1", 0, 9, "user_annotation"), host("part", 1, 3, "user_annotation"), theirs, launch(2, 2), backward,
        kernel("forward", 10, 5, 2), kernel("backward", 20, 7, 3), kernel("aside", 21, 2, 3, stream=20),
        host("call 2", 10, 9, "user_annotation"), launch(11, 4), kernel("next", 30, 1, 4),
    ))  # fmt: skip
    found = [(e["name"], e["tid"], e["ts"], e["dur"]) for e in slices if e["cat"] == "gpu_user_annotation"]
    assert found == [
        ("call 1", 1, 10.0, 17.0),
        ("part", 1, 10.0, 5.0),
        ("call 1", 3, 21.0, 2.0),
        ("call 2", 1, 30.0, 1.0),
    ]


def test_an_estimate_of_occupancy_that_is_none_is_not_taken_over() -> None:
    told = kernel("k", 0, 1)
    told["args"] |= {"est. achieved occupancy %": 0, "warps per SM": 12.0}
    (found,) = timeline({"traceEvents": [told]}).events
    assert found.arguments.keys() == {"correlation", "stream", "device", "warps per SM"}


@pytest.mark.parametrize(
    "raw",
    [
        "text", None, {"ph": "X"}, {**host("a", 0, 1), "cat": "overhead"}, {**host("a", 0, 1), "tid": "Spans"},
        {**host("a", 0, 1), "name": 5}, host("a", math.nan, 1), host("a", 0, math.inf), host("a", 0, -1),
        {**host("a", 0, 1), "dur": "long"}, {**host("a", 0, 1), "ph": "i"},
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_left_out(raw: Any) -> None:
    assert timeline({"traceEvents": [raw, host("good", 3, 1)]}).events[0].name == "good"
    assert timeline({"traceEvents": raw}).events == []
    assert timeline({}).events == []


def test_arguments_are_finite_numbers() -> None:
    odd = {**kernel("a", 0, 1), "args": {"bytes": math.inf, "stream": True, "grid": [1, "x"], "block": [32, 1, 1]}}
    (event,) = timeline({"traceEvents": [odd]}).events
    assert event.arguments == {"block": [32, 1, 1]}
    strange = {**kernel("a", 0, 1), "args": "none"}
    assert timeline({"traceEvents": [strange]}).events[0].arguments == {}


def test_a_long_trace_is_cut_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_EVENTS", 3)
    events = [launch(0, 1), launch(1, 2), kernel("a", 5, 1, 1), kernel("b", 7, 1, 2)]
    found = timeline({"traceEvents": events[::-1]})
    assert ([event.name for event in found.events], found.left_out) == (
        ["cudaLaunchKernel", "cudaLaunchKernel", "a"], 1,
    )  # fmt: skip
    check(document(found, {}, "x"))
    (long,) = timeline({"traceEvents": [host("n" * 5000, 0, 1)]}).events
    assert len(long.name) == module.LONGEST


def test_what_took_the_time_of_a_gpu_is_its_work_without_the_flush() -> None:
    found = timeline(
        {
            "traceEvents": [
                host(FLUSH, 0, 5, "user_annotation"), launch(1, 1), host("call 1", 6, 5, "user_annotation"),
                host("aten::mm", 6, 4), launch(7, 2), launch(8, 3), kernel("fill", 10, 100, 1), kernel("mm", 110, 7, 2),
                kernel("mm", 120, 8, 3), {**kernel("Memset", 130, 1), "cat": "gpu_memset"},
            ]
        }
    )  # fmt: skip
    assert spent(found.events) == [Spent("mm", "kernel", 2, 15_000), Spent("Memset", "gpu_memset", 1, 1_000)]


def test_what_took_the_time_of_a_host_is_without_what_is_nested() -> None:
    events = [
        host("call 1", 0, 100, "user_annotation"), host("outer", 0, 50), host("inner", 10, 30), host("leaf", 15, 10),
        host("inner", 60, 5), host("elsewhere", 12, 20, tid=9),
    ]  # fmt: skip
    assert [(each.name, each.count, each.ns) for each in spent(timeline({"traceEvents": events}).events)] == [
        ("inner", 2, 25_000), ("outer", 1, 20_000), ("elsewhere", 1, 20_000), ("leaf", 1, 10_000),
    ]  # fmt: skip
    assert spent([]) == []
