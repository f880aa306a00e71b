"""The timers of FakeDevice: what a GPU's timers make of a call, on a scripted clock and by the same rules and code.

The rests that they give are kept in the device's `rests`, and take no time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpubench.devices import Batch, pacing
from gpubench.devices.activities import Activity, Reader, one_of_two
from gpubench.result import KernelSeen, Timer
from gpubench.workload import Workload

if TYPE_CHECKING:
    from gpubench.testing import FakeDevice

EMPTY_NS = {"cupti": 2_000.0, "graph": 1_500.0, "event": 5_000.0}
"""What each timer is said to read of an empty kernel, in ns."""
HOLD_NS = 200_000
"""How long the kernel takes that holds the stream before each call."""


class FakeSampler:
    """Reads the scripted clock around each call."""

    name = "fake"

    def __init__(self, device: FakeDevice, workloads: Sequence[Workload]) -> None:
        self.device = device
        self.workloads = workloads
        self.timer = Timer(self.name, device.tick_ns, EMPTY_NS.get(self.name))
        self.taken = 0

    def warm_up(self) -> float:
        """One call."""
        before = self.device.clock_ns
        self.workloads[0].call()
        return self.device.clock_ns - before

    def batch(self, n: int) -> Batch:
        """n readings, each rounded to the tick."""
        kernels = [KernelSeen("fake_kernel", grid=[1, 1, 1], block=[1, 1, 1])]
        return Batch([self.read() for _ in range(n)], [1] * n, [1000.0] * n, kernels)

    def read(self, copies: int = 1) -> int:
        """One reading of so many calls, of which one is made and stands for all."""
        before = self.device.clock_ns
        self.workloads[self.taken % len(self.workloads)].call()
        spent = (self.device.clock_ns - before) * copies * self.device.noise(self.taken)
        self.taken += 1
        return round(round(spent / self.device.tick_ns) * self.device.tick_ns)


class Paced(FakeSampler):
    """Rests before each call."""

    pace = pacing.Pace()

    def warm_up(self) -> float:
        """See FakeSampler; the rest is set by the time of a call."""
        rough = super().warm_up()
        self.pace = pacing.pace(rough, 0.0)
        return rough

    def read(self, copies: int = 1) -> int:
        """See FakeSampler."""
        self.device.rests.append(self.pace.rest_s)
        return super().read(copies)


class FakeEvent(Paced):
    """A reading by events."""

    name = "event"


class FakeGraph(Paced):
    """Each sample is a replay of as many copies as a graph would hold."""

    name = "graph"
    copies = 1

    def warm_up(self) -> float:
        """See Paced."""
        rough = super().warm_up()
        self.copies = pacing.copies(rough)
        self.pace = pacing.pace(rough * self.copies, 0.0)
        return rough

    def batch(self, n: int) -> Batch:
        """See FakeSampler."""
        self.timer = replace(self.timer, reason=f"a replay of {self.copies} calls")
        return Batch([self.read(self.copies) for _ in range(n)], [self.copies] * n, [1000.0] * n)


class FakeCupti(Paced):
    """Each call is an activity record, behind that of the kernel that holds the stream. Sessions lose their first
    record as long as the device is `losing`."""

    name = "cupti"

    def __init__(self, device: FakeDevice, workloads: Sequence[Workload]) -> None:
        super().__init__(device, workloads)
        self._reader = Reader(1, 0, lambda: len(one_of_two(lambda: self._session(2, held=False))))

    def batch(self, n: int) -> Batch:
        """See CuptiSampler."""
        batch = self._reader.batch(lambda details: self._session(n), n)
        self.timer = replace(self.timer, reason=self._reader.reason)
        return replace(batch, sm_mhz=[1000.0] * n)

    def _session(self, calls: int, held: bool = True) -> list[Activity]:
        records: list[Activity] = []
        now = 0
        for _ in range(calls):
            for name, ns in ([("hold", HOLD_NS)] if held else []) + [("fake_kernel", self.read())]:
                records.append(Activity(name, "kernel", now, now + ns, len(records), (1, 1, 1), (1, 1, 1)))
                now += ns
        if self.device.losing > 0:
            self.device.losing -= 1
            del records[0]
        return records


SAMPLERS: dict[str, Callable[[FakeDevice, Sequence[Workload]], FakeSampler]] = {
    made.name: made for made in (FakeSampler, FakeCupti, FakeGraph, FakeEvent)
}
"""By the names of their timers."""
