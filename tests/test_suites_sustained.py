"""The suite `sustained` on a CPU, small: right, checked, measured under both loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpubench import check
from gpubench.devices.cpu import CpuDevice
from gpubench.discovery import Library
from gpubench.errors import WrongResult
from gpubench.plan import cases, select

LIBRARY = Library(Path(__file__).parent.parent / "suites")
ATTENTION = LIBRARY.suite("sustained").benchmarks["attention"]
SMALL: dict[str, Any] = {"batch": 2, "heads": 3, "n": 16, "d": 8, "dtype": "float32", "seconds": 3}


@pytest.fixture(scope="module")
def cpu() -> CpuDevice:
    return CpuDevice()


@pytest.mark.parametrize("data", ["normal", "uniform", "zeros"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_attention_is_right(cpu: CpuDevice, dtype: str, data: str) -> None:
    cpu.configure(data, 7)
    workload = ATTENTION.function(cpu, **{**SMALL, "dtype": dtype})
    cpu.poison(workload.output)
    workload.call()
    check.judge(cpu.compare(workload.output, workload.reference()), workload)
    assert workload.least_s == 3


def test_an_output_that_no_call_wrote_and_one_wrong_element_are_found(cpu: CpuDevice) -> None:
    cpu.configure("normal", 7)
    workload = ATTENTION.function(cpu, **SMALL)
    cpu.poison(workload.output)
    with pytest.raises(WrongResult):
        check.judge(cpu.compare(workload.output, workload.reference()), workload)
    workload.call()
    workload.output[0][1, 2, 3, 4] += 1
    with pytest.raises(WrongResult):
        check.judge(cpu.compare(workload.output, workload.reference()), workload)


def test_each_case_is_measured_hot_under_both_loads() -> None:
    planned = cases(select(["sustained"], LIBRARY), "cuda")
    assert {case.conditions.cache for case in planned} == {"hot"}
    assert [case.conditions.load for case in planned] == ["burst", "sustained"] * 3
    assert [(case.benchmark, case.params["n"]) for case in planned[::2]] == [
        ("matmul", 4096),
        ("matmul", 8192),
        ("attention", 2048),
    ]
    assert {case.params["seconds"] for case in planned} == {20}
