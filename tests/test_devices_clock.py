"""The clock beside a batch, with kernels that only note their arguments: which launches are made, which are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from gpubench.devices import Launch
from gpubench.devices.clock import ROWS, TICKS, SmClock
from gpubench.workload import Kernel

TICK_NS = 32


class FakeKernels:
    """Launches as they were made; running one writes what the kernel of that name would, on a GPU of 2 GHz."""

    def __init__(self) -> None:
        self.made: list[Kernel] = []
        self.held: list[int] = []

    def launcher(self, kernel: Kernel, file: Path) -> Launch:
        assert file.with_suffix(".cu").is_file()
        self.made.append(kernel)
        return Launch(lambda: self._run(kernel.name, *kernel.args))

    def _run(self, name: str, out: Any, argument: Any) -> None:
        if name == "tick":
            out[0] = TICK_NS
        elif name == "hold":
            self.held.append(int(argument[0]))
            out[0], out[1] = 2 * argument[0], argument[0]
        else:
            out[0], out[1] = argument.item(), argument.item() // 2


@pytest.fixture
def kernels() -> FakeKernels:
    return FakeKernels()


@pytest.fixture
def clock(kernels: FakeKernels) -> SmClock:
    made: Any = kernels
    return SmClock(made, torch.device("cpu"))


def batch(clock: SmClock, calls: int, seconds: float = 200e-6) -> list[float | None]:
    clock.start(calls, seconds)
    for call in range(calls):
        clock.before(call)
        clock.after(call)
    return clock.mhz()


def test_each_call_has_the_clock_of_both_sides(kernels: FakeKernels, clock: SmClock) -> None:
    assert clock.tick_ns == TICK_NS
    assert batch(clock, 3) == [2000.0] * 3
    assert kernels.held == [200_000, TICKS * TICK_NS] * 3


def test_launches_are_made_once_for_all_batches(kernels: FakeKernels, clock: SmClock) -> None:
    """Two a call of the longest batch so far, whatever the hold: making one costs 100 µs."""
    before = len(kernels.made)
    made = []
    for calls, seconds in [(20, 200e-6), (20, 300e-6), (10, 200e-6), (25, 200e-6), (ROWS, 200e-6), (ROWS, 1e-3)]:
        assert batch(clock, calls, seconds) == [2000.0] * calls
        assert kernels.held[-2] == round(seconds * 1e9)
        made.append(len(kernels.made) - before)
    assert made == [40, 40, 40, 50, 2 * ROWS, 2 * ROWS]


def test_a_batch_of_more_calls_than_there_is_room_for(clock: SmClock) -> None:
    assert batch(clock, ROWS + 1) == [2000.0] * (ROWS + 1)
    assert batch(clock, 2) == [2000.0] * 2


def test_a_call_whose_clock_was_not_read_has_none(clock: SmClock) -> None:
    """And not that of the batch before."""
    batch(clock, 2)
    clock.start(2, 200e-6)
    clock.before(0)
    clock.after(0)
    clock.before(1)
    assert clock.mhz() == [2000.0, None]


def test_a_hold_is_never_too_short_to_be_a_reading(kernels: FakeKernels, clock: SmClock) -> None:
    batch(clock, 1, 0.0)
    assert kernels.held == [TICKS * TICK_NS] * 2


def test_a_hold_on_no_calls_account(kernels: FakeKernels, clock: SmClock) -> None:
    made = len(kernels.made)
    for seconds in (200e-6, 5e-3):
        clock.hold(seconds)
    assert kernels.held == [200_000, 5_000_000]
    assert len(kernels.made) == made


def test_kernels_of_known_duration(clock: SmClock) -> None:
    for spinning, told in [(clock.spin_cycles(3000), [3000, 1500]), (clock.spin_ns(700), [1400, 700])]:
        spinning.call()
        assert spinning.readings[:2].tolist() == told
    out = torch.zeros(2, dtype=torch.int64)
    clock.reading(out)()
    assert out.tolist() == [2 * TICKS * TICK_NS, TICKS * TICK_NS]
