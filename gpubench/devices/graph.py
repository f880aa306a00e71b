"""Calls captured in a CUDA graph: many copies, launched by one replay, so that the host's launches are not timed.

Capture is torch's, on a side stream. A call that waits for the device, uses memory that cannot be had while capturing,
or works on a stream of its own cannot be captured: TimerFailed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch

from gpubench.devices import Call
from gpubench.devices.tensors import first_line
from gpubench.errors import TimerFailed

EMPTY = "The CUDA Graph is empty"
"""What torch warns of where nothing was captured."""


class Graph:
    """So many copies of a call, captured and replayed once; `replay` enqueues them all on the current stream."""

    def __init__(self, call: Call, copies: int) -> None:
        self._side = torch.cuda.Stream()
        self._pool = torch.cuda.graph_pool_handle()
        self._graph = torch.cuda.CUDAGraph()
        self._side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._side):
            call()  # whatever happens only once, on this stream: workspaces, modules
            torch.cuda.synchronize()
            with _capturing(self._graph, self._pool):
                for _ in range(copies):
                    call()
        torch.cuda.current_stream().wait_stream(self._side)
        self.replay()  # the first one loads it
        torch.cuda.synchronize()

    def replay(self) -> None:
        """Enqueue all copies."""
        self._graph.replay()


@contextmanager
def _capturing(graph: Any, pool: Any) -> Iterator[None]:
    """Capture what the body enqueues on the current stream. TimerFailed where that fails, with everything that torch
    keeps of a capture put back: random numbers would fail from then on, and memory not be given back."""
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    before = generator.clone_state()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            graph.capture_begin(pool=pool)
            try:
                yield
            except BaseException:
                with suppress(RuntimeError):  # of the same cause: the one under way says more
                    graph.capture_end()
                raise
            graph.capture_end()
        except RuntimeError as error:
            _abandon(generator, before, pool)
            raise TimerFailed(f"the call cannot be captured in a CUDA graph: {first_line(error)}") from error
        except BaseException:
            _abandon(generator, before, pool)
            raise
    if any(EMPTY in str(warning.message) for warning in warned):
        raise TimerFailed("the call cannot be captured in a CUDA graph: it works on a stream of its own")


def _abandon(generator: Any, before: Any, pool: Any) -> None:
    """Put back what a capture that failed leaves behind; what it did not leave raises and is passed over."""
    generator.graphsafe_set_state(before)
    device = torch.cuda.current_device()
    with suppress(Exception):
        torch._C._cuda_endAllocateToPool(device, pool)
    with suppress(Exception):
        torch._C._cuda_releasePool(device, pool)
    with suppress(RuntimeError):  # the error of the capture, which CUDA reports once more
        torch.cuda.synchronize()
