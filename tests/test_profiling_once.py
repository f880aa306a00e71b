"""The process inside ncu: what is marked, once, and what it tells of a case that is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import FAULTS, OK

from gpubench.devices import find
from gpubench.errors import DeviceUnavailable, OutOfMemory
from gpubench.profiling import once
from gpubench.suite import Suite
from gpubench.testing import FakeDevice
from gpubench.workload import Workload


def case(file: str = OK, benchmark: str = "ok/double", **params: Any) -> dict[str, Any]:
    conditions = {"cache": "cold", "load": "sustained", "data": "normal"}
    return {"benchmark": benchmark, "file": file, "params": params, "conditions": conditions}


def served(monkeypatch: pytest.MonkeyPatch, device: FakeDevice, *cases: dict[str, Any]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(find, "find", lambda word: (device, None))
    once.serve({"device": "fake", "seed": 3, "cases": list(cases)}, told.append)
    return told


def test_each_case_is_marked_once_after_the_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    device = FakeDevice()
    told = served(monkeypatch, device, case(n=1, dtype="float32"), case(n=2, dtype="float32"))
    assert told == [{"copy": 1000}, {"0": "ok"}, {"1": "ok"}]
    assert device.labels == ["gpubench-copy", "gpubench-0", "gpubench-1"]
    assert device.seed == 3
    assert device.clock_ns == 2 * 1000 + 3 * 1000 + 3 * 2000  # each case is called to be verified, marked, and sized
    assert device.used == 0


def test_a_case_that_is_not_right_is_not_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, skipped, fine = (case(FAULTS, "faults/fault", how=how, when="run") for how in ("wrong", "skip", "none"))
    device = FakeDevice()
    told = served(monkeypatch, device, wrong, skipped, fine)
    assert told[1]["0"].startswith("wrong result: at [3]")
    assert told[2:] == [{"1": "no [/bold] today"}, {"2": "ok"}]
    assert device.labels == ["gpubench-copy", "gpubench-2"]


def test_a_device_that_is_lost_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [case(FAULTS, "faults/fault", how=how, when="run") for how in ("lost", "none")]
    told = served(monkeypatch, FakeDevice(), *cases)
    assert told[1:] == [{"0": "fake device lost: fell off the bus"}]


def test_a_suite_that_cannot_be_loaded_costs_its_own_cases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = served(monkeypatch, FakeDevice(), case(str(tmp_path / "no.py"), n=1), case(n=1, dtype="float32"))
    assert "no such file" in told[1]["0"]
    assert told[2] == {"1": "ok"}


def test_a_device_that_cannot_be_opened_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(word: str) -> None:
        raise DeviceUnavailable(f"--device {word}: no CUDA device")

    told: list[dict[str, Any]] = []
    monkeypatch.setattr(find, "find", refuse)
    once.serve({"device": "cuda:7", "seed": 0, "cases": [case(n=1)]}, told.append)
    assert told == [{"failed": "--device cuda:7: no CUDA device"}]


def test_a_copy_that_does_not_fit_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    class Small(FakeDevice):
        def known_copy(self) -> tuple[Callable[[], object], int]:
            raise OutOfMemory(2, 1)

    told = served(monkeypatch, Small(), case(n=1, dtype="float32"))
    assert told == [{"copy": "no copy of known bytes: out of memory: needs 2 bytes, free 1 bytes"}, {"0": "ok"}]


def test_a_row_with_a_stopwatch_of_its_own_is_not_counted() -> None:
    suite = Suite(__file__)

    @suite.benchmark()
    def watched(device: Any) -> Workload:
        """Timed by itself."""
        out = device.unwritten(1, "float32")

        def run() -> None:
            out[0] = 1.0

        return Workload(run=run, output=out, reference=lambda: [1.0], reference_name="one", timed_by=lambda: 5)

    device = FakeDevice()
    name = f"{suite.name}/watched"
    assert "stopwatch" in once._count(case(__file__, name), "0", device, 0, {__file__: suite})
    assert device.labels == []


def test_the_whole_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request, told = tmp_path / "request.json", tmp_path / "told"
    asked = {"device": "fake", "seed": 0, "cases": [case(n=1, dtype="float32")], "told": str(told)}
    request.write_text(json.dumps(asked))
    monkeypatch.setattr("sys.argv", ["once", str(request)])
    once.main()
    assert told.read_text() == '{"copy":1000}\n{"0":"ok"}\n'
