"""What is left behind where a call cannot be captured in a graph: nothing."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gpubench.devices.graph import EMPTY, Graph
from gpubench.errors import TimerFailed


class Cuda:
    """Stands in for torch's captures: a call that waits while one is under way spoils it, as CUDA has it."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.capturing = self.spoiled = self.empty = False
        self.random = "capturing"

    def call(self) -> None:
        self.log.append("captured" if self.capturing else "call")

    def waits(self) -> None:
        self.log.append("waits")
        if self.capturing:
            self.spoiled = True
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing\nmore words")

    def capture_begin(self, pool: object) -> None:
        self.capturing = True

    def capture_end(self) -> None:
        self.capturing = False
        if self.spoiled:
            raise RuntimeError("CUDA error: operation failed due to a previous error during capture")
        if self.empty:
            warnings.warn(f"{EMPTY}. This usually means …", stacklevel=1)

    def replay(self) -> None:
        self.log.append("replay")

    def clone_state(self) -> str:
        return "as it was"

    def graphsafe_set_state(self, state: str) -> None:
        self.random = state


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    fake = Cuda()
    stream = SimpleNamespace(wait_stream=lambda other: None)
    stand_ins: dict[str, Any] = {
        "Stream": lambda: stream,
        "stream": lambda side: nullcontext(),
        "current_stream": lambda: stream,
        "current_device": lambda: 0,
        "graph_pool_handle": lambda: (0, 7),
        "CUDAGraph": lambda: fake,
        "default_generators": (fake,),
        "synchronize": lambda: None,
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)
    for name in ("endAllocateToPool", "releasePool"):
        monkeypatch.setattr(
            torch._C, f"_cuda_{name}", lambda device, pool, name=name: fake.log.append(name), raising=False
        )
    return fake


def test_copies_are_captured_after_a_call_and_replayed_once(cuda: Cuda) -> None:
    graph = Graph(cuda.call, 3)
    assert cuda.log == ["call", "captured", "captured", "captured", "replay"]
    graph.replay()
    assert cuda.log[-2:] == ["replay", "replay"]
    assert cuda.random == "capturing", "a capture that succeeded keeps its own state"


def test_a_capture_that_fails_puts_everything_back(cuda: Cuda) -> None:
    """Else random numbers fail from then on ("Offset increment outside graph capture"), and memory is kept."""
    with pytest.raises(TimerFailed) as caught:
        Graph(cuda.waits, 3)
    assert caught.value.message == (
        "the call cannot be captured in a CUDA graph: "
        "RuntimeError: CUDA error: operation not permitted when stream is capturing"
    )
    assert cuda.log == ["waits", "waits", "endAllocateToPool", "releasePool"]
    assert (cuda.capturing, cuda.random) == (False, "as it was")


def test_a_capture_that_is_found_spoiled_at_its_end(cuda: Cuda) -> None:
    def hidden() -> None:
        cuda.spoiled = cuda.capturing

    with pytest.raises(TimerFailed, match="operation failed due to a previous error during capture"):
        Graph(hidden, 1)
    assert (cuda.capturing, cuda.random) == (False, "as it was")


def test_an_error_of_the_call_itself_goes_on_up(cuda: Cuda) -> None:
    def broken() -> None:
        if cuda.capturing:
            raise KeyError("mine")

    with pytest.raises(KeyError):
        Graph(broken, 1)
    assert (cuda.capturing, cuda.random) == (False, "as it was")


def test_a_call_of_which_nothing_was_captured(cuda: Cuda) -> None:
    cuda.empty = True
    with pytest.raises(TimerFailed, match="it works on a stream of its own"):
        Graph(cuda.call, 2)
