"""A timeline of calls by torch's profiler: operations, runtime calls, and, on a GPU, its kernels and copies.

To be had in a process that takes no samples: once the profiler has run in one, records that CUPTI gives to others have
another clock (see cupti).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from gpubench.devices import Call
from gpubench.devices.tensors import first_line
from gpubench.errors import CaseError

LARGEST = 2**28
"""Bytes of a profiler's own trace that are read."""


def chrome_trace(work: Call, cuda: bool) -> dict[str, Any]:
    """The Chrome trace, as torch's profiler writes it, of a call and of everything that it waits for. CaseError where
    it cannot be read back."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if cuda:
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as profiler, _nvtx_as_ranges():
        work()
    with tempfile.TemporaryDirectory(prefix="gpubench-") as folder:
        path = Path(folder) / "trace.json"
        try:
            profiler.export_chrome_trace(str(path))
            if path.stat().st_size > LARGEST:
                raise CaseError(f"the profiler's trace is larger than {LARGEST:,} bytes", "fewer --calls")
            found = json.loads(path.read_text(errors="replace"), strict=False)
        except (OSError, ValueError, RuntimeError) as error:
            raise CaseError(f"the profiler's trace cannot be read: {first_line(error)}") from error
    return dict(found)


@contextmanager
def named(name: str) -> Iterator[None]:
    """A range of that name in the trace, around what runs inside."""
    with torch.profiler.record_function(name):
        yield


@contextmanager
def _nvtx_as_ranges() -> Iterator[None]:
    """Ranges that a suite opens by torch.cuda.nvtx are ranges of the trace too: torch's profiler sees none of NVTX."""
    nvtx: Any = torch.cuda.nvtx
    push: Callable[[str], object] = nvtx.range_push
    pop: Callable[[], object] = nvtx.range_pop
    opened: list[Any] = []

    def range_push(msg: str) -> object:
        depth = push(msg)
        opened.append(torch.profiler.record_function(msg))
        opened[-1].__enter__()
        return depth

    def range_pop() -> object:
        if opened:
            opened.pop().__exit__(None, None, None)
        return pop()

    nvtx.range_push, nvtx.range_pop = range_push, range_pop
    try:
        yield
    finally:
        nvtx.range_push, nvtx.range_pop = push, pop
