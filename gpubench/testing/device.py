"""FakeDevice and FakeNvml: a device with a scripted clock and a scripted NVML, for our tests and for authors of suites.

Nothing on the device takes time: a workload says how long it takes by calling `device.spend(ns)`. Tensors are plain
lists. It is reached on the command line as `--device fake`, and its rows say so: nothing here can pass for a
measurement.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from gpubench.devices import Call, Comparison, Launch, pacing
from gpubench.errors import CaseError, DeviceLost, OutOfMemory, TimerFailed, Unsupported
from gpubench.result import Conditions, KernelSeen, Metric, Timer
from gpubench.steady import Group
from gpubench.testing.timers import SAMPLERS, FakeSampler
from gpubench.workload import Kernel, Workload

ITEMSIZE = {"float64": 8, "float32": 4, "tf32": 4, "float16": 2, "bfloat16": 2, "int32": 4, "int64": 8}


class FakeDevice:
    """A device whose clock moves only when a workload calls `spend`.

    `memory` is what it claims to have, in bytes; `tick_ns` its timer's tick; `noise(i)` a factor on sample i; `kernels`
    are functions that stand in for raw kernels, by name, each called with the kernel's arguments. Under a sustained
    load of so many seconds it runs at the share `clock(seconds)` of its full clock, and draws `watts`; None: no counter
    of energy. `timers` are what it has, best first, of gpubench.testing.timers; the next so many sessions of activity
    records are `losing` their first one (math.inf: all); `refused` says why a timer does not work.
    """

    kind = "fake"

    def __init__(
        self,
        memory: int = 10**9,
        tick_ns: float = 1.0,
        noise: Callable[[int], float] = lambda sample: 1.0,
        cache_bytes: int = 10**6,
        kernels: Mapping[str, Callable[..., object]] | None = None,
        clock: Callable[[float], float] = lambda seconds: 1.0,
        watts: float | None = None,
        timers: Sequence[str] = ("fake",),
        losing: float = 0,
        refused: Mapping[str, str] | None = None,
    ) -> None:
        self.known_timers = tuple(timers)
        self.losing = losing
        self.refused = dict(refused or {})
        self.rests: list[float] = []
        self.clock = clock
        self.watts = watts
        self.memory = memory
        self.tick_ns = tick_ns
        self.noise = noise
        self.cache_bytes = cache_bytes
        self.kernels = dict(kernels or {})
        self.launched: list[Kernel] = []
        self.labels: list[str] = []
        self.clock_ns = 0.0
        self.used = 0
        self.seed = 0
        self.data = "normal"
        self.releases = 0
        self.lost = False
        self.mode = "ieee"

    def spend(self, ns: float) -> None:
        """Move the clock: what a fake kernel does."""
        self.clock_ns += ns

    def facts(self) -> dict[str, Any]:
        """Made-up facts, marked as such."""
        return {
            "kind": self.kind,
            "name": "Fake device",
            "uuid": "FAKE-0",
            "memory_bytes": self.memory,
            "last_level_cache_bytes": self.cache_bytes,
        }

    def software(self) -> dict[str, Any]:
        """None: nothing stands between us and the fake."""
        return {}

    def configure(self, data: str, seed: int) -> None:
        """Set the distribution and the seed."""
        self.data, self.seed = data, seed

    def random(self, shape: Sequence[int] | int, dtype: str, seed: int = 0) -> list[float]:
        """A flat list of numbers."""
        n = self._take(shape, dtype)
        if self.data == "zeros":
            return [0.0] * n
        source = random.Random(f"{self.seed}/{seed}")
        draw = source.random if self.data == "uniform" else lambda: source.gauss(0, 1)
        return [draw() for _ in range(n)]

    def free_bytes(self) -> int:
        """What it claims to have, less what was taken."""
        return self.memory - self.used

    def unwritten(self, shape: Sequence[int] | int, dtype: str) -> list[float]:
        """A flat list, to be written."""
        return [0.0] * self._take(shape, dtype)

    def _take(self, shape: Sequence[int] | int, dtype: str) -> int:
        n = shape if isinstance(shape, int) else math.prod(shape)
        asked = n * ITEMSIZE[dtype]
        if self.used + asked > self.memory:
            raise OutOfMemory(asked, self.memory - self.used)
        self.used += asked
        return n

    def poison(self, output: list[float]) -> None:
        """Fill with NaN."""
        output[:] = [math.nan] * len(output)

    def compare(self, output: list[float], reference: list[float]) -> Comparison:
        """Compare two flat lists."""
        errors = [0.0 if out == ref else abs(out - ref) for out, ref in zip(output, reference, strict=True)]
        errors = [math.inf if math.isnan(error) else error for error in errors]
        worst = max(range(len(errors)), key=errors.__getitem__) if errors else 0
        return Comparison(
            elements=len(output),
            error_norm=math.sqrt(sum(error * error for error in errors)),
            reference_norm=math.sqrt(sum(ref * ref for ref in reference if math.isfinite(ref))),
            worst=errors[worst] if errors else 0.0,
            where=(worst,),
            got=output[worst] if errors else 0.0,
            expected=reference[worst] if errors else 0.0,
            eps=2.0**-23,
        )

    def synchronize(self) -> None:
        """Nothing runs behind our back."""

    def precision(self, mode: str) -> AbstractContextManager[None]:
        """Only ieee."""
        if mode != "ieee":
            raise Unsupported(f"the fake device has no {mode}")
        return nullcontext()

    def replicas(self, workload: Workload, conditions: Conditions) -> int:
        """One: it has no caches to fool."""
        return 1

    def launcher(self, kernel: Kernel, suite_file: Path) -> Launch:
        """The function that stands in for the kernel; each call is kept in `launched`."""
        stand_in = self.kernels.get(kernel.name)
        if stand_in is None:
            raise Unsupported(f"the fake device has no kernel {kernel.name!r}")

        def call() -> None:
            self.launched.append(kernel)
            stand_in(*kernel.args)

        return Launch(call)

    def compile(self, function: Callable[..., Any], *, options: Mapping[str, Any] | None = None) -> FakeCompiled:
        """The function itself, whose first call plays the part of the one that compiles."""
        return FakeCompiled(function)

    def timers(self, asked: str) -> Sequence[str]:
        """Those it was given; all of them read the scripted clock."""
        return pacing.order(asked, self.known_timers, "the fake device")

    def sampler(self, workloads: Sequence[Workload], conditions: Conditions, timer: str) -> FakeSampler:
        """A sampler that reads the scripted clock, as the timer of that name would."""
        if timer in self.refused:
            raise TimerFailed(self.refused[timer])
        return SAMPLERS[timer](self, workloads)

    def load(self, workloads: Sequence[Workload], conditions: Conditions, timer: str) -> FakeLoad:
        """A load on the scripted clock."""
        return FakeLoad(self, workloads)

    def watch(self) -> FakeWatch:
        """What the script says of power and energy."""
        return FakeWatch(self)

    def kernels_of(self, call: Call) -> list[KernelSeen]:
        """None: nobody sees what a fake call runs."""
        return []

    def call_ns(self, call: Call, n: int) -> list[int]:
        """Nothing: a fake call is host work."""
        return []

    def peak_bytes(self, call: Call) -> int:
        """What was taken."""
        call()
        return self.used

    def calibration(self) -> dict[str, Any]:
        """Its timer's tick."""
        return {"timers": {"fake": {"tick_ns": self.tick_ns, "empty_ns": 0.0}}}

    def telemetry(self) -> dict[str, Any]:
        """A steady machine."""
        return {"sm_mhz": 1000, "throttled": False}

    def counted(self, label: str) -> AbstractContextManager[None]:
        """A context that counts nothing; its label is kept in `labels`."""
        self.labels.append(label)
        return nullcontext()

    def trace(self, calls: Sequence[Call], n: int, conditions: Conditions) -> dict[str, Any]:
        """What torch's profiler would write of calls that are a launch and a kernel each, on the scripted clock."""
        events: list[dict[str, Any]] = []
        for number in range(n):
            begun = self.clock_ns / 1000
            calls[number % len(calls)]()
            took = self.clock_ns / 1000 - begun
            host, gpu = {"ph": "X", "pid": 4711, "tid": 4712}, {"ph": "X", "pid": 0, "tid": 7}
            args = {"correlation": number + 1, "stream": 7, "device": 0, "grid": [1, 1, 1], "block": [32, 1, 1]}
            events += [
                {**host, "cat": "user_annotation", "name": f"call {number + 1}", "ts": begun, "dur": took},
                {**host, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": begun, "dur": 0.0, "args": args},
                {**gpu, "cat": "kernel", "name": "fake_kernel(float*)", "ts": begun, "dur": took, "args": args},
            ]
        return {"host_name": "fake-host", "traceName": "/tmp/fake/trace.json", "traceEvents": events}

    def known_copy(self) -> tuple[Call, int]:
        """A call that is said to move a thousand bytes."""
        return lambda: self.spend(1000), 1000

    def examine(self) -> dict[str, Any]:
        """Nothing: it has no noise but the one scripted."""
        return {}

    def case_error(self, error: BaseException) -> CaseError:
        """Its own words; a ConnectionError plays the part of a lost device."""
        if isinstance(error, ConnectionError):
            self.lost = True
            raise DeviceLost(f"fake device lost: {error}")
        return CaseError(f"{type(error).__name__}: {error}")

    def release(self) -> None:
        """Give back everything."""
        self.used = 0
        self.releases += 1


class FakeCompiled:
    """A function as it is, which counts its first call as a graph and a kernel."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.graphs = 0

    def __call__(self, *args: Any) -> Any:
        """Call it."""
        self.graphs = 1
        return self.function(*args)

    def metrics(self) -> list[Metric]:
        """No time is spent on compiling; one kernel is written."""
        return [
            Metric("compile_time", 0.0, "s", "lower"),
            Metric("compile_cached", 0.0, "1", "lower"),
            Metric("kernels_written", float(self.graphs), "1", "lower"),
        ]


class FakeLoad:
    """Groups of calls on the scripted clock, each as long as the device's clock makes it."""

    GROUP_NS = 10_000_000

    def __init__(self, device: FakeDevice, workloads: Sequence[Workload]) -> None:
        self.device = device
        self.workloads = workloads
        self.timer = Timer("fake", device.tick_ns)
        self.refused: Sequence[str] = [f"graph: {device.refused['graph']}"] if "graph" in device.refused else []
        self.launches = 1
        self.begun_ns = 0.0
        self.stopped = False

    def start(self) -> None:
        """One call, which says how many make a group."""
        before = self.device.clock_ns
        self.workloads[0].call()
        self.launches = max(1, round(self.GROUP_NS / max(self.device.clock_ns - before, 1.0)))
        self.begun_ns = self.device.clock_ns

    def next(self) -> Group:
        """A group: one call is made and stands for all of them."""
        before = self.device.clock_ns
        share = self.device.clock((before - self.begun_ns) / 1e9)
        self.workloads[0].call()
        took = (self.device.clock_ns - before) * self.launches / share
        self.device.clock_ns = before + took
        return Group((self.device.clock_ns - self.begun_ns) / 1e9, round(took), self.launches, 1000.0 * share)

    def stop(self) -> None:
        """Nothing is in flight."""
        self.stopped = True


class FakeWatch:
    """What the script says; its seconds are the device's."""

    def __init__(self, device: FakeDevice) -> None:
        self.device = device

    def clock(self) -> float:
        """The scripted clock."""
        return self.device.clock_ns / 1e9

    def pulse(self) -> dict[str, Any]:
        """The power."""
        return {"power_w": self.device.watts}

    def snapshot(self) -> dict[str, Any]:
        """A steady machine."""
        return self.device.telemetry()

    def joules(self) -> float:
        """Power times the scripted time, as a counter that is refreshed ten times a second."""
        if self.device.watts is None:
            raise LookupError("the fake device counts no energy")
        return self.device.watts * math.floor(self.clock() * 10) / 10

    def gpm(self) -> dict[str, float] | None:
        """See Watch."""
        raise LookupError("the fake device has no GPM")

    def close(self) -> None:
        """Nothing is held."""
