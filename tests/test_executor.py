"""The parent's side of the pipe, against workers that misbehave as real ones have: each is a few lines of Python."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from gpubench.discovery import load_suite
from gpubench.errors import DeviceLost, DeviceUnavailable, UsageError
from gpubench.executor import Bench, InProcess, WorkerProcess
from gpubench.result import Conditions, Record
from gpubench.runner import Effort
from gpubench.suite import Case
from gpubench.testing import FakeDevice

OK = Path(__file__).parent / "toys" / "ok.py"
CASE = Case("ok", "double", {"n": 1, "dtype": "float32"}, Conditions())
HELLO = json.dumps({"hello": {"facts": {"kind": "fake"}, "software": {}, "notice": None}})


@pytest.fixture(scope="module")
def bench() -> Bench:
    suite = load_suite(OK)
    return Bench({each.path: each for each in suite.benchmarks.values()}, {suite.name: OK})


def impostor(folder: Path, *lines: str) -> str:
    """An interpreter that, whatever it is asked to run, does these lines; `say` writes to the parent."""
    path = folder / "python"
    says = "def say(text, end='\\n'):\n    sys.stdout.write(text + end); sys.stdout.flush()\n"
    body = "\n".join(lines)
    path.write_text(f"#!{sys.executable}\nimport os, signal, sys\nHELLO = {HELLO!r}\n{says}\n{body}\n")
    path.chmod(0o755)
    return str(path)


def one_row(executor: WorkerProcess) -> Record:
    """The single event of a case that gave no number."""
    (record,) = executor.measure(CASE, Effort())
    executor.close()
    assert isinstance(record, Record)
    assert (record.id, record.metrics, record.samples.gpu_ns) == (CASE.id, [], [])
    return record


@pytest.mark.parametrize(
    ("line", "status", "reason"),
    [
        ('say(\'{"record": {"id": "ok/dou\', end=\'\'); os._exit(7)', "error", "the worker ended (exit status 7)"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "error", "the worker ended (SIGKILL)"),
        (
            "print('out of luck', file=sys.stderr); os._exit(1)",
            "error",
            "the worker ended (exit status 1): out of luck",
        ),
        (
            "say('not JSON'); signal.pause()",
            "error",
            "what the worker sent: not JSON at line 1, column 1: expecting value",
        ),
        ("say('[1]'); signal.pause()", "error", "the worker spoke out of turn"),
        ("say(HELLO); signal.pause()", "error", "the worker spoke out of turn"),
        ("say('{\"record\": {}}'); signal.pause()", "error", "what the worker sent"),
        ('say(\'{"lost": "gone"}\'); signal.pause()', "error", "gone"),
        ("signal.pause()", "timeout", "no answer within 0.3 s"),
    ],
    ids=["half a line", "killed", "last words", "not JSON", "no object", "out of turn", "no record", "lost", "silent"],
)
def test_a_worker_that_misbehaves_costs_one_row(tmp_path: Path, bench: Bench, line: str, status: str, reason: str):
    python = impostor(tmp_path, "input(); say(HELLO); input()", line)
    record = one_row(WorkerProcess("fake", bench, 0.3 if status == "timeout" else 30, python=python))
    assert record.status == status
    assert record.reason is not None
    assert record.reason.startswith(reason)


@pytest.mark.parametrize(
    ("line", "kind", "words"),
    [
        ("os._exit(3)", DeviceUnavailable, "the worker did not start: the worker ended (exit status 3)"),
        ('say(\'{"failed": "no such device", "hint": "cpu"}\')', DeviceUnavailable, "no such device (cpu)"),
        ('say(\'{"failed": "no such timer", "usage": true}\')', UsageError, "no such timer"),
        ("say('{}')", DeviceUnavailable, "the worker spoke out of turn"),
    ],
    ids=["ended", "no device", "usage", "out of turn"],
)
def test_a_worker_that_does_not_open_its_device(
    tmp_path: Path, bench: Bench, line: str, kind: type[Exception], words: str
):
    python = impostor(tmp_path, "input()", line)
    with pytest.raises(kind) as caught:
        WorkerProcess("fake", bench, 30, python=python)
    assert str(caught.value).startswith(words)


def test_no_new_worker_after_the_last_one_is_a_device_lost(tmp_path: Path, bench: Bench):
    mark = tmp_path / "second"
    first = f'if os.path.exists({str(mark)!r}): say(\'{{"failed": "it is gone"}}\'); sys.exit()'
    python = impostor(tmp_path, "input()", first, f"open({str(mark)!r}, 'w'); say(HELLO); input(); os._exit(3)")
    executor = WorkerProcess("fake", bench, 30, python=python)
    assert one_row(executor).reason == "the worker ended (exit status 3)"
    with pytest.raises(DeviceLost, match="no new worker after the last one ended: it is gone"):
        list(executor.measure(CASE, Effort()))


def test_a_device_lost_in_this_process_names_its_case_first(bench: Bench):
    class Lost(FakeDevice):
        def configure(self, data: str, seed: int) -> None:
            raise DeviceLost("fell off the bus")

    events = InProcess(Lost(), bench).measure(CASE, Effort())
    record = next(events)
    assert isinstance(record, Record)
    assert (record.id, record.status, record.reason) == (CASE.id, "error", "fell off the bus")
    with pytest.raises(DeviceLost):
        next(events)


def test_close_may_be_called_twice(bench: Bench):
    executor = WorkerProcess("fake", bench, 30)
    *_, record = executor.measure(CASE, Effort())
    assert isinstance(record, Record)
    assert record.status == "ok"
    executor.close()
    executor.close()


def test_what_a_device_measures_of_its_timers_reaches_the_parent(bench: Bench) -> None:
    device = FakeDevice(tick_ns=4.0)
    assert InProcess(device, bench).calibrate() == {"timers": {"fake": {"tick_ns": 4.0, "empty_ns": 0.0}}}
    executor = WorkerProcess("fake", bench, timeout=30)
    try:
        assert executor.calibrate() == FakeDevice().calibration()
        assert [record.status for record in executor.measure(CASE, Effort()) if isinstance(record, Record)] == ["ok"]
    finally:
        executor.close()


def test_a_worker_that_dies_of_it_is_replaced(tmp_path: Path, bench: Bench) -> None:
    python = impostor(tmp_path, "input(); say(HELLO)", "input(); os._exit(9)")
    executor = WorkerProcess("fake", bench, timeout=5, python=python)
    assert executor.calibrate() == {}
    executor.python = sys.executable
    try:
        assert [record.status for record in executor.measure(CASE, Effort()) if isinstance(record, Record)] == ["ok"]
    finally:
        executor.close()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("os._exit(3)", "the worker ended (exit status 3)"),
        ('say(\'{"lost": "gone"}\')', "gone"),
        ("say('{}')", "the worker spoke out of turn"),
        ("signal.pause()", "no answer within 0.3 s"),
    ],
    ids=["ended", "lost", "out of turn", "silent"],
)
def test_a_device_that_does_not_survive_being_examined(tmp_path: Path, bench: Bench, line: str, reason: str):
    python = impostor(tmp_path, "input(); say(HELLO); input()", line)
    executor = WorkerProcess("fake", bench, 0.3 if "pause" in line else 30, python=python)
    with pytest.raises(DeviceLost) as caught:
        executor.examine()
    executor.close()
    assert caught.value.message == f"the device could not be examined: {reason}"


def test_a_device_is_examined_and_measured_by_one_worker(bench: Bench):
    executor = WorkerProcess("fake", bench, 30)
    assert executor.examine() == {}
    *_, record = executor.measure(CASE, Effort())
    assert isinstance(record, Record)
    assert record.status == "ok"
    executor.close()
