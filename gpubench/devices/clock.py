"""Holding the stream before a call, and reading the SM clock on the GPU on both sides of it.

NVML's clock is polled and belongs to no kernel; this one is the cycle counter of one multiprocessor against the global
timer, over at least TICKS of its ticks (METHOD: half a percent), just before and just after the call.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy
import torch

from gpubench.devices import Call
from gpubench.devices.kernels import Kernels
from gpubench.workload import Kernel

TICKS = 200
"""Ticks of the global timer that a reading spans: the error of either end is below one tick."""
TURNS = 1000
"""Ticks that the length of one is taken from."""
CYCLES_PER_S = 2.0e9
"""Of torch's spinning kernel, whose unit is cycles of the SM clock: an order of magnitude is all that is needed."""


class Hold(Protocol):
    """Keeps the stream busy before each call of a batch. Each `before` is one activity, each `after` is `trailing`."""

    trailing: int

    def hold(self, seconds: float) -> None:
        """Keep the stream busy for about so long, on no call's account."""

    def start(self, calls: int, seconds: float) -> None:
        """A batch begins: its calls are numbered from 0, each held for so long."""

    def before(self, call: int) -> None:
        """Enqueue what comes before a call."""

    def after(self, call: int) -> None:
        """Enqueue what comes after it."""

    def mhz(self) -> list[float | None]:
        """The SM clock of each call of the batch, None where it cannot be read."""


class Spin:
    """torch's spinning kernel: holds the stream, reads nothing. For a GPU without CuPy."""

    trailing = 0

    def __init__(self) -> None:
        self._calls = 0
        self._seconds = 0.0

    def hold(self, seconds: float) -> None:
        """See Hold."""
        torch.cuda._sleep(int(seconds * CYCLES_PER_S))

    def start(self, calls: int, seconds: float) -> None:
        """See Hold."""
        self._calls, self._seconds = calls, seconds

    def before(self, call: int) -> None:
        """See Hold."""
        self.hold(self._seconds)

    def after(self, call: int) -> None:
        """See Hold."""

    def mhz(self) -> list[float | None]:
        """See Hold."""
        return [None] * self._calls


class SmClock:
    """The kernels of clock.cu: the hold itself is the reading before the call. `tick_ns` is the global timer's tick.

    Raises Skip where kernels cannot be compiled.
    """

    trailing = 1

    def __init__(self, kernels: Kernels, device: torch.device) -> None:
        self._kernels = kernels
        self._device = device
        self._batch: list[tuple[Call, Call]] = []
        self._readings = torch.zeros((0, 2, 2), dtype=torch.int64, device=device)
        least = torch.zeros(1, dtype=torch.int64, device=device)
        self._launch("tick", least, numpy.int32(TURNS))()
        self.tick_ns = float(least.item())

    def hold(self, seconds: float) -> None:
        """See Hold."""
        unread = torch.empty(2, dtype=torch.int64, device=self._device)
        self._launch("hold", unread, numpy.uint64(seconds * 1e9))()

    def start(self, calls: int, seconds: float) -> None:
        """See Hold. The readings of the batch before are gone."""
        self._readings = torch.zeros((calls, 2, 2), dtype=torch.int64, device=self._device)
        held, least = numpy.uint64(max(seconds * 1e9, TICKS * self.tick_ns)), numpy.uint64(TICKS * self.tick_ns)
        self._batch = [
            (self._launch("hold", one[0], held), self._launch("hold", one[1], least)) for one in self._readings
        ]

    def before(self, call: int) -> None:
        """See Hold."""
        self._batch[call][0]()

    def after(self, call: int) -> None:
        """See Hold."""
        self._batch[call][1]()

    def mhz(self) -> list[float | None]:
        """See Hold: the mean of the clock before and after each call. The batch's memory is given back."""
        readings = self._readings.tolist()
        self._batch, self._readings = [], self._readings.new_empty((0, 2, 2))
        return [
            None if 0 in (before[1], after[1]) else 500 * (before[0] / before[1] + after[0] / after[1])
            for before, after in readings
        ]

    def _launch(self, name: str, *arguments: object) -> Call:
        return self._kernels.launcher(Kernel(name, arguments, grid=1, block=1), Path(__file__)).call
