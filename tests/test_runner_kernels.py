"""A raw kernel in place of a callable, from the benchmark to the row: on the fake device and, in C++, on the CPU."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpubench import Suite, Workload
from gpubench.devices.analogue import COMPILERS
from gpubench.discovery import load_suite
from gpubench.result import Conditions, Record
from gpubench.runner import Effort, measure
from gpubench.sampling import Stopping
from gpubench.suite import Case
from gpubench.testing import FakeDevice

TOYS = Path(__file__).parent / "toys/kernels"
QUICK = Effort(Stopping(samples=10))
suite = Suite(__file__)
ADD = suite.kernel("add")
TWICE = suite.kernel("twice", defines={"FACTOR": [2, 3]})


@suite.benchmark()
def one(device: Any) -> Workload:
    """One kernel."""
    out = device.unwritten(3, "float32")
    return Workload(ADD(out, np.float32(1), grid=1, block=3), out, lambda: [1.0] * 3, "ones")


@suite.benchmark()
def two(device: Any) -> Workload:
    """Two kernels, the second on what the first wrote."""
    out = device.unwritten(3, "float32")
    launches = (ADD(out, np.float32(1), grid=1, block=3), TWICE(out, grid=1, block=3, FACTOR=3))
    return Workload(launches, out, lambda: [3.0] * 3, "threes")


def fake() -> FakeDevice:
    device = FakeDevice()

    def add(out: list[float], value: Any) -> None:
        device.spend(1000)
        out[:] = [float(value)] * len(out)

    def twice(out: list[float]) -> None:
        device.spend(500)
        out[:] = [3 * value for value in out]

    device.kernels = {"add": add, "twice": twice}
    return device


def row(benchmark: Any, device: Any, **params: Any) -> Record:
    case = Case(benchmark.suite, benchmark.name, params, Conditions(cache="hot"))
    record = list(measure(benchmark, case, device, QUICK))[-1]
    assert isinstance(record, Record)
    return record


@pytest.mark.parametrize(("name", "ns"), [("one", 1000), ("two", 1500)])
def test_kernels_are_launched_in_order_and_timed_together(name: str, ns: int) -> None:
    device = fake()
    record = row(suite.benchmarks[name], device)
    assert (record.status, record.reason, record.flags) == ("ok", None, [])
    assert record.summary is not None
    assert record.summary.median_ns == ns
    names = ["add"] if name == "one" else ["add", "twice"]
    assert [kernel.name for kernel in device.launched] == names * (len(device.launched) // len(names))
    assert dict(device.launched[-1].defines) == ({} if name == "one" else {"FACTOR": 3})


def test_a_flag_of_each_kernel_and_copy_is_one_of_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    device = fake()
    plain = device.launcher
    monkeypatch.setattr(device, "launcher", lambda *asked: replace(plain(*asked), flags=("analogue",)))
    monkeypatch.setattr(device, "replicas", lambda *asked: 3)
    assert row(suite.benchmarks["two"], device).flags == ["analogue"]


def test_a_kernel_the_device_has_not_is_unsupported() -> None:
    record = row(suite.benchmarks["one"], FakeDevice())
    assert (record.status, record.reason) == ("unsupported", "the fake device has no kernel 'add'")


needs_compiler = pytest.mark.skipif(not any(map(shutil.which, COMPILERS)), reason="needs a C++ compiler")


@needs_compiler
def test_a_cpu_runs_the_analogue_and_says_so() -> None:
    from gpubench.devices.cpu import CpuDevice

    toy = load_suite(TOYS / "scale.py")
    record = row(toy.benchmarks["scale"], CpuDevice(), n=4096, dtype="float32")
    assert (record.status, record.reason) == ("ok", None)
    assert record.flags.count("analogue") == 1
    assert record.check is not None
    assert record.check.elements == 4096
    assert record.compile_ns is not None
    assert record.compile_ns > 1_000_000  # the compiler is not free


def test_a_cpu_without_an_analogue_skips(tmp_path: Path) -> None:
    from gpubench.devices.cpu import CpuDevice

    shutil.copy(TOYS / "scale.py", tmp_path)
    shutil.copy(TOYS / "scale.cu", tmp_path)
    toy = load_suite(tmp_path / "scale.py")
    record = row(toy.benchmarks["scale"], CpuDevice(), n=1000, dtype="float32")
    assert (record.status, record.reason) == ("skipped", "no CPU counterpart of scale")
    assert record.summary is None
