"""FakeDevice: a device with a scripted clock, for our tests and for the authors of suites.

Nothing on it takes time: a workload says how long it takes by calling `device.spend(ns)`. Tensors are plain lists.
It is reached on the command line as `--device fake`, and its rows say so: nothing here can pass for a measurement.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from gpubench.devices import Batch, Call, Comparison, Launch
from gpubench.errors import CaseError, DeviceLost, OutOfMemory, Unsupported, UsageError
from gpubench.result import Conditions, KernelSeen, Timer
from gpubench.workload import Kernel, Workload

ITEMSIZE = {"float64": 8, "float32": 4, "tf32": 4, "float16": 2, "bfloat16": 2}


class FakeDevice:
    """A device whose clock moves only when a workload calls `spend`.

    `memory` is what it claims to have, in bytes; `tick_ns` its timer's tick; `noise(i)` a factor on sample i; `kernels`
    are functions that stand in for raw kernels, by name, each called with the kernel's arguments.
    """

    kind = "fake"

    def __init__(
        self,
        memory: int = 10**9,
        tick_ns: float = 1.0,
        noise: Callable[[int], float] = lambda sample: 1.0,
        cache_bytes: int = 10**6,
        kernels: Mapping[str, Callable[..., object]] | None = None,
    ) -> None:
        self.memory = memory
        self.tick_ns = tick_ns
        self.noise = noise
        self.cache_bytes = cache_bytes
        self.kernels = dict(kernels or {})
        self.launched: list[Kernel] = []
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

    def timers(self, asked: str) -> Sequence[str]:
        """One timer, the scripted clock."""
        if asked not in ("auto", "fake"):
            raise UsageError(f"no timer {asked!r} on the fake device", "--timer auto")
        return ("fake",)

    def sampler(self, workloads: Sequence[Workload], conditions: Conditions, timer: str) -> FakeSampler:
        """A sampler that reads the scripted clock."""
        return FakeSampler(self, workloads)

    def call_ns(self, call: Call, n: int) -> list[int]:
        """Nothing: a fake call is host work."""
        return []

    def telemetry(self) -> dict[str, Any]:
        """A steady machine."""
        return {"sm_mhz": 1000, "throttled": False}

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


class FakeSampler:
    """Reads the scripted clock around each call."""

    def __init__(self, device: FakeDevice, workloads: Sequence[Workload]) -> None:
        self.device = device
        self.workloads = workloads
        self.timer = Timer("fake", device.tick_ns)
        self.taken = 0

    def warm_up(self) -> float:
        """One call."""
        before = self.device.clock_ns
        self.workloads[0].call()
        return self.device.clock_ns - before

    def batch(self, n: int) -> Batch:
        """n readings, each rounded to the tick."""
        readings = []
        for _ in range(n):
            before = self.device.clock_ns
            self.workloads[self.taken % len(self.workloads)].call()
            spent = (self.device.clock_ns - before) * self.device.noise(self.taken)
            readings.append(round(round(spent / self.device.tick_ns) * self.device.tick_ns))
            self.taken += 1
        return Batch(readings, [1] * n, [1000.0] * n, [KernelSeen("fake_kernel", grid=[1, 1, 1], block=[1, 1, 1])])
