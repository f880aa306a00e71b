"""The process that makes a trace: what it tells where there is none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from command import FAULTS, OK
from perfetto import check

from gpubench.devices import find
from gpubench.errors import DeviceUnavailable
from gpubench.profiling import traced
from gpubench.result import Conditions
from gpubench.testing import FakeDevice

SUITE = """
from gpubench import Suite, Workload

suite = Suite(__file__)

@suite.benchmark()
def watched(device):
    out = device.unwritten(1, "float32")

    def run():
        out[0] = 1.0

    return Workload(run=run, output=out, reference=lambda: [1.0], reference_name="one", timed_by=lambda: 5)
"""


class Blind(FakeDevice):
    """A device whose traces hold what the test says."""

    def __init__(self, events: list[Any], kind: str = "fake") -> None:
        super().__init__()
        self.events, self.kind = events, kind

    def trace(self, calls: Any, n: int, conditions: Conditions) -> dict[str, Any]:
        return {"traceEvents": self.events}


def served(
    monkeypatch: pytest.MonkeyPatch, folder: Path, device: FakeDevice, file: str, benchmark: str, **params: Any
) -> dict[str, Any]:
    monkeypatch.setattr(find, "find", lambda word: (device, None))
    conditions = {"cache": "cold", "load": "sustained", "data": "normal"}
    case = {"benchmark": benchmark, "file": file, "params": params, "conditions": conditions}
    request = {
        "device": "fake", "seed": 3, "case": case, "calls": 2, "timeout": 60.0, "parent": os.getpid(),
        "trace": str(folder / "trace.json"), "facts": {"record": "x"},
    }  # fmt: skip
    told: dict[str, Any] = {}
    traced.serve(request, told.update)
    assert (folder / "trace.json").exists() is (told.get("0") == "ok")
    return told


def test_a_trace_and_what_is_told_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    device = FakeDevice()
    told = served(monkeypatch, tmp_path, device, OK, "ok/double", n=2, dtype="float32")
    spent = [{"name": "fake_kernel(float*)", "kind": "kernel", "count": 2, "ns": 4000}]
    which = {"kind": "fake", "name": "Fake device", "uuid": "FAKE-0", "driver": None}
    summary = {"device": which, "events": 8, "left_out": 0, "names": 1, "ns": 4000, "spent": spent}
    assert told == {"trace": summary, "0": "ok"}
    document = json.loads((tmp_path / "trace.json").read_text())
    assert len(check(document)) == 8, "two calls: range, launch and kernel, and the range on the GPU"
    assert document["otherData"] == {"torch": None, "record": "x"}
    assert (device.seed, device.used) == (3, 0)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"how": "wrong", "when": "run"}, "wrong result: at [3]"),
        ({"how": "skip", "when": "run"}, "no [/bold] today"),
        ({"how": "lost", "when": "run"}, "fake device lost: fell off the bus"),
    ],
)
def test_a_case_that_is_not_right_is_not_traced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, params: dict[str, str], said: str
) -> None:
    assert str(served(monkeypatch, tmp_path, FakeDevice(), FAULTS, "faults/fault", **params)["0"]).startswith(said)


def test_a_row_with_a_stopwatch_of_its_own_is_not_traced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "stopwatch.py"
    file.write_text(SUITE)
    assert "stopwatch" in served(monkeypatch, tmp_path, FakeDevice(), str(file), "stopwatch/watched")["0"]


def test_a_suite_that_cannot_be_loaded_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = served(monkeypatch, tmp_path, FakeDevice(), str(tmp_path / "no.py"), "no/thing")
    assert "no such file" in told["0"]


def test_a_trace_without_events_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said = served(monkeypatch, tmp_path, Blind([]), OK, "ok/double", n=1, dtype="float32")["0"]
    assert said == "torch's profiler recorded nothing"


def test_a_gpu_of_which_no_kernel_is_seen_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 1}
    said = served(monkeypatch, tmp_path, Blind([event], "cuda"), OK, "ok/double", n=1, dtype="float32")["0"]
    assert "recorded no kernel" in said


def test_a_device_that_cannot_be_opened_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(word: str) -> None:
        raise DeviceUnavailable(f"--device {word}: no CUDA device")

    told: dict[str, Any] = {}
    monkeypatch.setattr(find, "find", refuse)
    traced.serve({"device": "cuda:7"}, told.update)
    assert told == {"failed": "--device cuda:7: no CUDA device"}
