"""The CPU as a device: torch operations, the host's clock, and buffers rotated beyond the caches."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch

from gpubench.devices import Batch, Call, Launch, cpuinfo, examine
from gpubench.devices.analogue import Analogues
from gpubench.devices.compiled import Compiled, Compiler
from gpubench.devices.cpu_load import CpuLoad, CpuWatch, Rotation
from gpubench.devices.modes import cpu_precision
from gpubench.devices.tensors import TorchTensors, tensor_error
from gpubench.devices.tracing import chrome_trace, named
from gpubench.errors import CaseError, Unsupported, UsageError
from gpubench.result import Conditions, KernelSeen, Timer
from gpubench.workload import Kernel, Workload

COLD_CACHES = 2
"""Copies of a workload are rotated until they cover this many last-level caches, so that none finds its data cached."""
MOST_COPIES = 4096
MEMORY_SHARE = 8
"""The copies together take at most one part in this many of the free memory."""
NO_COUNTERS = "the CPU has no hardware counters here"
PRODUCT = 512
"""Rows and columns of the matrices whose product shows how noisy a CPU is: a millisecond or so."""
WARM_UP_S = 0.05
TICKS_A_SAMPLE = 200
"""A sample holds enough calls to last this many ticks of the clock."""


class CpuDevice(TorchTensors):
    """The CPU torch runs on, with the threads torch was given."""

    kind = "cpu"

    def __init__(self) -> None:
        super().__init__()
        self.torch_device = torch.device("cpu")
        self._facts: dict[str, Any] = {
            "kind": self.kind,
            **_host_facts(),
            "threads": torch.get_num_threads(),
            "torch_isa": torch.backends.cpu.get_cpu_capability(),
        }
        self._clock = host_clock()
        self._analogues = Analogues()
        self._compiler = Compiler()

    def facts(self) -> dict[str, Any]:
        """See Device."""
        return dict(self._facts)

    def software(self) -> dict[str, Any]:
        """See Device."""
        return {"torch": torch.__version__, "mkldnn": torch.backends.mkldnn.is_available()}

    def free_bytes(self) -> int | None:
        """What the system, or the control group this process is in, can still give."""
        return cpuinfo.memory_facts()["memory_available_bytes"]

    def synchronize(self) -> None:
        """Nothing runs behind our back."""

    def precision(self, mode: str) -> AbstractContextManager[None]:
        """See Device."""
        return cpu_precision(mode)

    def replicas(self, workload: Workload, conditions: Conditions) -> int:
        """Copies enough to cover COLD_CACHES last-level caches where the case is cold; one where it is hot."""
        cache: int | None = self._facts.get("last_level_cache_bytes")
        if conditions.cache == "hot" or not cache or not workload.bytes:
            return 1
        copies = math.ceil(COLD_CACHES * cache / workload.bytes) + 1
        free = self.free_bytes()
        room = MOST_COPIES if free is None else free // MEMORY_SHARE // workload.bytes
        return max(1, min(copies, MOST_COPIES, room))

    def launcher(self, kernel: Kernel, suite_file: Path) -> Launch:
        """See Device: the kernel's counterpart in C++, whose row is flagged `analogue`."""
        return self._analogues.launcher(kernel, suite_file)

    def compile(self, function: Callable[..., Any], *, options: Mapping[str, Any] | None = None) -> Compiled:
        """See Device."""
        return self._compiler.compile(function, options)

    def timers(self, asked: str) -> Sequence[str]:
        """The host's clock is the only one."""
        if asked not in ("auto", "host"):
            raise UsageError(f"no timer {asked!r} on a CPU", "--timer host")
        return ("host",)

    def sampler(self, workloads: Sequence[Workload], conditions: Conditions, timer: str) -> HostSampler:
        """See Device."""
        return HostSampler(self._calls(workloads), self._clock)

    def load(self, workloads: Sequence[Workload], conditions: Conditions, timer: str) -> CpuLoad:
        """See Device."""
        return CpuLoad(self._calls(workloads), self._clock)

    def watch(self) -> CpuWatch:
        """See Device."""
        return CpuWatch()

    def _calls(self, workloads: Sequence[Workload]) -> list[Call]:
        """Their calls, ready to be timed."""
        for workload in workloads[1:]:
            if workload.output is not None:
                self.poison(
                    workload.output
                )  # touches its pages, which the first timed call would otherwise have to map
        return [workload.call for workload in workloads]

    def kernels_of(self, call: Call) -> list[KernelSeen]:
        """None: a call is host work."""
        return []

    def call_ns(self, call: Call, n: int) -> list[int]:
        """None: on a CPU the call is the work."""
        return []

    def peak_bytes(self, call: Call) -> None:
        """Not known: torch does not count a CPU's memory."""

    def calibration(self) -> dict[str, Any]:
        """See Device."""
        return {"timers": {self._clock.name: {"tick_ns": self._clock.tick_ns, "empty_ns": self._clock.empty_ns}}}

    def telemetry(self) -> dict[str, Any]:
        """Nothing yet: a CPU's clocks are not read."""
        return {}

    def counted(self, label: str) -> AbstractContextManager[None]:
        """See Device."""
        raise Unsupported(NO_COUNTERS)

    def trace(self, calls: Sequence[Call], n: int, conditions: Conditions) -> dict[str, Any]:
        """See Device. Each call is on the next copy of its buffers."""
        for call in calls:
            call()

        def work() -> None:
            for number in range(n):
                with named(f"call {number + 1}"):
                    calls[number % len(calls)]()

        return chrome_trace(work, cuda=False)

    def known_copy(self) -> tuple[Call, int]:
        """See Device."""
        raise Unsupported(NO_COUNTERS)

    def examine(self) -> dict[str, Any]:
        """See Device. The noise is that of a product of two matrices on all threads."""
        a, b = self.random((PRODUCT, PRODUCT), "float32", 1), self.random((PRODUCT, PRODUCT), "float32", 2)
        out = self.unwritten((PRODUCT, PRODUCT), "float32")
        return {"noise": examine.noise(HostSampler([lambda: torch.mm(a, b, out=out)], self._clock))}

    def case_error(self, error: BaseException) -> CaseError:
        """See Device."""
        return tensor_error(error, self.free_bytes())

    def release(self) -> None:
        """Forget what was compiled."""
        self._compiler.reset()


def _host_facts() -> dict[str, Any]:
    cpu = cpuinfo.cpu_facts()
    return {"name": cpu["model"], **cpu, "memory_bytes": cpuinfo.memory_facts()["memory_bytes"]}


def host_clock() -> Timer:
    """The host's clock as a timer: its tick, and its reading of a call that does nothing. Both in ns, measured now."""
    steps = []
    for _ in range(200):
        before = after = time.perf_counter_ns()
        while after == before:
            after = time.perf_counter_ns()
        steps.append(after - before)
    readings = []
    for _ in range(200):
        before = time.perf_counter_ns()
        _nothing()
        readings.append(time.perf_counter_ns() - before)
    return Timer("host", float(sorted(steps)[len(steps) // 2]), float(sorted(readings)[len(readings) // 2]))


def _nothing() -> None:
    pass


class HostSampler:
    """Times calls by the host's clock, each call on the next copy of its buffers."""

    def __init__(self, calls: Sequence[Call], clock: Timer) -> None:
        self.timer = Timer(clock.name, clock.tick_ns, clock.empty_ns)
        self._rotation = Rotation(calls)
        self._launches = 1

    def warm_up(self) -> float:
        """Calls for WARM_UP_S, at least three; then settle how many calls make a sample."""
        times: list[int] = []
        deadline = time.perf_counter_ns() + WARM_UP_S * 1e9
        while len(times) < 3 or time.perf_counter_ns() < deadline:
            times.append(self._rotation.time(1))
        rough = sorted(times)[len(times) // 2]
        self._launches = max(1, math.ceil(TICKS_A_SAMPLE * self.timer.tick_ns / max(rough, 1)))
        return float(rough)

    def batch(self, n: int) -> Batch:
        """See Sampler."""
        return Batch([self._rotation.time(self._launches) for _ in range(n)], [self._launches] * n, [None] * n)
