"""The process inside ncu: what is marked, once, and what it tells of a case that is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command import FAULTS, LIMIT, OK, ROOT

from gpubench.devices import find
from gpubench.errors import DeviceUnavailable, OutOfMemory
from gpubench.profiling import once
from gpubench.profiling.counting import NO_TIME
from gpubench.suite import Suite
from gpubench.testing import FakeDevice
from gpubench.workload import Workload

WHICH = {"kind": "fake", "name": "Fake device", "uuid": "FAKE-0", "driver": None}


def case(file: str = OK, benchmark: str = "ok/double", **params: Any) -> dict[str, Any]:
    conditions = {"cache": "cold", "load": "sustained", "data": "normal"}
    return {"benchmark": benchmark, "file": file, "params": params, "conditions": conditions}


def request(*cases: dict[str, Any], **more: Any) -> dict[str, Any]:
    common = {"device": "fake", "seed": 3, "until": None, "timeout": LIMIT, "parent": os.getpid()}
    return {**common, "cases": list(cases), **more}


def served(
    monkeypatch: pytest.MonkeyPatch, device: FakeDevice, *cases: dict[str, Any], **more: Any
) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(find, "find", lambda word: (device, None))
    once.serve(request(*cases, **more), told.append)
    assert told.pop(0) == {"device": WHICH}, "which device it is comes first"
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
    once.serve(request(case(n=1), device="cuda:7"), told.append)
    assert told == [{"failed": "--device cuda:7: no CUDA device"}]


def test_a_copy_that_does_not_fit_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    class Small(FakeDevice):
        def known_copy(self) -> tuple[Callable[[], object], int]:
            raise OutOfMemory(2, 1)

    told = served(monkeypatch, Small(), case(n=1, dtype="float32"))
    assert told == [{"copy": "no copy of known bytes: out of memory: needs 2 bytes, free 1 bytes"}, {"0": "ok"}]


def test_no_case_is_begun_once_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([9.0, 9.9, 10.0, 10.1])
    monkeypatch.setattr(once, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    device = FakeDevice()
    told = served(monkeypatch, device, *(case(n=n, dtype="float32") for n in (1, 2, 3, 4)), until=10.0)
    assert told[1:] == [{"0": "ok"}, {"1": "ok"}, {"rest": NO_TIME}]
    assert device.labels == ["gpubench-copy", "gpubench-0", "gpubench-1"]


def test_no_case_is_begun_for_a_parent_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    parent = subprocess.Popen(["true"])
    parent.wait()
    assert served(monkeypatch, FakeDevice(), case(n=1, dtype="float32"), parent=parent.pid) == [{"copy": 1000}]


def test_a_case_that_hangs_ends_the_process_and_no_other_case(tmp_path: Path) -> None:
    asked, told = tmp_path / "request.json", tmp_path / "told"
    hanging = case(FAULTS, "faults/fault", how="hang", when="run")
    asked.write_text(json.dumps(request(hanging, timeout=0.1, told=str(told))))
    words = [sys.executable, "-P", "-m", "gpubench.profiling.once", str(asked)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(words, env=env, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert ended.returncode == 1
    assert "Timeout (0:00:00.100000)!" in ended.stderr
    assert [json.loads(line) for line in told.read_text().splitlines()] == [{"device": WHICH}, {"copy": 1000}]


def test_the_time_of_a_case_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Any] = []
    guard = SimpleNamespace(
        dump_traceback_later=lambda timeout, exit: steps.append((timeout, exit)),
        cancel_dump_traceback_later=lambda: steps.append("off"),
    )
    monkeypatch.setattr(once, "faulthandler", guard)
    served(monkeypatch, FakeDevice(), case(n=1, dtype="float32"), case("no.py", n=1), timeout=7.0)
    assert steps == [(7.0, True), "off"] * 2


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
    asked, told = tmp_path / "request.json", tmp_path / "told"
    asked.write_text(json.dumps(request(case(n=1, dtype="float32"), told=str(told))))
    monkeypatch.setattr("sys.argv", ["once", str(asked)])
    once.main()
    assert [json.loads(line) for line in told.read_text().splitlines()] == [
        {"device": WHICH}, {"copy": 1000}, {"0": "ok"},
    ]  # fmt: skip
