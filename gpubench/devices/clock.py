"""Holding the stream before a call, and reading the SM clock on the GPU on both sides of it.

NVML's clock is polled and belongs to no kernel; this one is the cycle counter of one multiprocessor against the global
timer, over at least TICKS of its ticks (METHOD: half a percent), just before and just after the call.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy
import torch

from gpubench.devices import Call
from gpubench.devices.kernels import Kernels
from gpubench.workload import Kernel

TICKS = 200
"""Ticks of the global timer that a reading spans: the error of either end is below one tick."""
ROWS = 200
"""Calls of one batch that readings are kept for from the start; more are given room when they come."""
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

    def held_ns(self) -> list[float | None]:
        """How long each hold of the batch was by the GPU's own clock, in ns; None where it was not counted."""


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

    def held_ns(self) -> list[float | None]:
        """See Hold."""
        return [None] * self._calls


class SmClock:
    """The kernels of clock.cu: the hold itself is the reading before the call. `tick_ns` is the global timer's tick.

    Launches are made once and kept: a pair per call of the longest batch so far, whose readings and lengths lie at
    fixed addresses. Raises Skip where kernels cannot be compiled.
    """

    trailing = 1

    def __init__(self, kernels: Kernels, device: torch.device) -> None:
        self._kernels = kernels
        self._device = device
        self._calls = 0
        self._pairs: list[tuple[Call, Call]] = []
        self._readings = torch.zeros((ROWS, 2, 2), dtype=torch.int64, device=device)
        self._held_ns, self._least_ns = torch.zeros((2, 1), dtype=torch.int64, device=device)
        least = torch.zeros(1, dtype=torch.int64, device=device)
        self._launch("tick", least, numpy.int32(TURNS))()
        self.tick_ns = float(least.item())
        self._least_ns.fill_(int(TICKS * self.tick_ns))
        self._alone = self.spin_ns(0)

    def hold(self, seconds: float) -> None:
        """See Hold."""
        self._alone.readings[2].fill_(round(seconds * 1e9))
        self._alone.call()

    def start(self, calls: int, seconds: float) -> None:
        """See Hold. The readings of the batch before are gone."""
        if calls > len(self._readings):
            self._readings = self._readings.new_zeros((calls, 2, 2))
            self._pairs.clear()
        self._calls = calls
        self._readings.zero_()
        self._held_ns.fill_(int(max(seconds * 1e9, TICKS * self.tick_ns)))
        for one in self._readings[len(self._pairs) : calls]:
            pair = (self._launch("hold", one[0], self._held_ns), self._launch("hold", one[1], self._least_ns))
            self._pairs.append(pair)

    def before(self, call: int) -> None:
        """See Hold."""
        self._pairs[call][0]()

    def after(self, call: int) -> None:
        """See Hold."""
        self._pairs[call][1]()

    def reading(self, out: torch.Tensor) -> Call:
        """A call that writes one reading, by itself, to two 64-bit integers: cycles, and the ns they took."""
        return self._launch("hold", out, self._least_ns)

    def mhz(self) -> list[float | None]:
        """See Hold: the mean of the clock before and after each call."""
        return [
            None if 0 in (before[1], after[1]) else 500 * (before[0] / before[1] + after[0] / after[1])
            for before, after in self._readings[: self._calls].tolist()
        ]

    def held_ns(self) -> list[float | None]:
        """See Hold."""
        return [before[1] or None for before, _ in self._readings[: self._calls].tolist()]

    def spin_ns(self, ns: int) -> Spinning:
        """A kernel that spins for at least `ns` of the global timer, from one of its ticks to another."""
        told = torch.tensor([0, 0, ns], dtype=torch.int64, device=self._device)
        return Spinning(self._launch("hold", told, told[2:]), told)

    def spin_cycles(self, cycles: int) -> Spinning:
        """A kernel that spins for at least `cycles` of the SM clock, and not at all for 0."""
        told = torch.zeros(2, dtype=torch.int64, device=self._device)
        return Spinning(self._launch("cycles", told, numpy.int64(cycles)), told)

    def _launch(self, name: str, *arguments: object) -> Call:
        return self._kernels.launcher(Kernel(name, arguments, grid=1, block=1), Path(__file__)).call


@dataclass(frozen=True)
class Spinning:
    """A kernel of known duration: `call` enqueues it, and then `readings` holds how long it span, first in cycles of
    the SM clock, then in ns of the global timer."""

    call: Call
    readings: torch.Tensor
