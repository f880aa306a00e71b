"""Traces by torch's profiler on a CPU, and ranges of NVTX in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from perfetto import check

from gpubench.devices import tracing
from gpubench.devices.cpu import CpuDevice
from gpubench.errors import CaseError
from gpubench.profiling.timeline import document, timeline
from gpubench.result import Conditions


def names(trace: dict[str, Any]) -> list[str]:
    return [event["name"] for event in check(document(timeline(trace), {}, ""))]


def test_calls_are_made_on_one_copy_after_the_other_each_once_before() -> None:
    made: list[int] = []
    x = torch.ones(8)

    def call(number: int) -> None:
        made.append(number)
        torch.neg(x)

    calls = [lambda number=number: call(number) for number in range(2)]
    trace = CpuDevice().trace(calls, 3, Conditions())
    assert made == [0, 1, 0, 1, 0]
    assert names(trace) == ["call 1", "aten::neg", "call 2", "aten::neg", "call 3", "aten::neg"]


def test_ranges_of_nvtx_are_ranges_of_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(torch.cuda.nvtx, "range_push", lambda msg: told.append(msg))
    monkeypatch.setattr(torch.cuda.nvtx, "range_pop", lambda: told.append("pop"))
    push, pop = torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop

    def work() -> None:
        with torch.cuda.nvtx.range("outer"):
            torch.cuda.nvtx.range_push("inner")
            torch.ones(1)
            torch.cuda.nvtx.range_pop()
        torch.cuda.nvtx.range_pop()  # one too many is the suite's mistake, and passed on

    found = names(tracing.chrome_trace(work, cuda=False))
    assert found[:3] == ["outer", "inner", "aten::ones"]
    assert told == ["outer", "inner", "pop", "pop", "pop"]
    assert (torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop) == (push, pop)


def test_a_failure_within_is_passed_on_and_leaves_nvtx_as_it_was() -> None:
    push = torch.cuda.nvtx.range_push

    def work() -> None:
        raise ValueError("planted")

    with pytest.raises(ValueError, match="planted"):
        tracing.chrome_trace(work, cuda=False)
    assert torch.cuda.nvtx.range_push is push


def test_a_trace_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "LARGEST", 10)
    with pytest.raises(CaseError, match="larger than 10 bytes"):
        tracing.chrome_trace(lambda: None, cuda=False)


def test_a_trace_that_cannot_be_read_back_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def export(self: Any, path: str) -> None:
        Path(path).write_text('{"traceEvents": [')

    monkeypatch.setattr(torch.profiler.profile, "export_chrome_trace", export)
    with pytest.raises(CaseError, match="the profiler's trace cannot be read"):
        tracing.chrome_trace(lambda: None, cuda=False)
