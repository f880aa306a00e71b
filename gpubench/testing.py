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
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
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

    def calibration(self) -> dict[str, Any]:
        """Its timer's tick."""
        return {"timers": {"fake": {"tick_ns": self.tick_ns, "empty_ns": 0.0}}}

    def telemetry(self) -> dict[str, Any]:
        """A steady machine."""
        return {"sm_mhz": 1000, "throttled": False}

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


class FakeNvmlError(Exception):
    """What FakeNvml raises, with NVML's words."""


FAKE_FIELDS: dict[int, int] = {186: 128_383, 185: 85_912, 82: 42, 74: 0, 269: 0, 270: 0, 271: 0}
"""Power now and on average in mW, temperature of the memory, counters of clock events in ns."""
FAKE_ANSWERS: dict[str, Any] = {
    "GetVbiosVersion": "96.00.A5.00.1A",
    "GetEnforcedPowerLimit": 700_000,
    "GetPowerManagementDefaultLimit": 700_000,
    "GetPowerManagementLimitConstraints": [200_000, 700_000],
    "GetPowerUsage": 85_912,
    "GetClockInfo": lambda kind: {1: 1755, 2: 3201}[kind],
    "GetMaxClockInfo": lambda kind: {1: 1980, 2: 3201}[kind],
    "GetApplicationsClock": lambda kind: {1: 1980, 2: 3201}[kind],
    "GetMemoryBusWidth": 6144,
    "GetMemoryInfo": lambda version=1: SimpleNamespace(
        total=150_754_820_096, free=149_421_162_496, used=688_717_824 if version == 2 else 1_333_657_600
    ),
    "GetBAR1MemoryInfo": SimpleNamespace(bar1Total=274_877_906_944),
    "GetMaxPcieLinkGeneration": 5,
    "GetMaxPcieLinkWidth": 16,
    "GetCurrPcieLinkGeneration": 5,
    "GetCurrPcieLinkWidth": 16,
    "GetTemperature": 41,
    "GetTemperatureThreshold": 89,
    "GetUtilizationRates": SimpleNamespace(gpu=3, memory=0),
    "GetComputeRunningProcesses": [],
    "GetMPSComputeRunningProcesses": [],
    "GetTotalEccErrors": 0,
    "GetRemappedRows": (0, 0, 0, 0),
    "GetEccMode": [1, 1],
    "GetMigMode": [0, 0],
    "GetPersistenceMode": 1,
    "GetComputeMode": 0,
    "GetCurrentClocksEventReasons": 0,
}
"""What a healthy GPU answers."""


@dataclass(eq=False)
class FakeGpu:
    """One GPU or MIG instance of FakeNvml. `answers` replace those of a healthy GPU, by the name of the call without
    nvmlDevice: a value, a function of the call's further arguments, or an exception to be raised. `fields` are the
    field values by number, refused where they are missing; `instances` the MIG instances, of which `parent` is this."""

    uuid: str = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
    pci: str = "00000000:06:00.0"
    answers: dict[str, Any] = field(default_factory=dict)
    fields: dict[int, int] = field(default_factory=lambda: dict(FAKE_FIELDS))
    instances: list[FakeGpu] = field(default_factory=list)
    parent: FakeGpu | None = None

    def __post_init__(self) -> None:
        for instance in self.instances:
            instance.parent = self


class FakeNvml:
    """NVIDIA's binding with GPUs that do not exist. `text` is str, or bytes as old bindings had it; `calls` replace
    whole calls by their full names, None for one that this binding lacks. `called` counts the calls by name."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU, nvmlMemory_v2 = 1, 2, 0, 2

    def __init__(
        self,
        *gpus: FakeGpu,
        driver: str = "580.159.03",
        text: type[str] | type[bytes] = str,
        **calls: Callable[..., Any] | None,
    ) -> None:
        self.gpus = list(gpus) or [FakeGpu()]
        self.driver = driver
        self.text = text
        self.called: dict[str, int] = {}
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml") or self._calls.get(name, ...) is None:
            raise AttributeError(name)
        return partial(self._call, name, self._calls.get(name) or getattr(self, f"_{name}", None))

    def _call(self, name: str, known: Callable[..., Any] | None, *args: Any, **options: Any) -> Any:
        self.called[name] = self.called.get(name, 0) + 1
        if known is None:
            known = partial(self._answer, name.removeprefix("nvmlDevice"))
        value = known(*args, **options)
        if isinstance(value, Exception):
            raise value
        return value.encode() if self.text is bytes and isinstance(value, str) else value

    def _answer(self, name: str, gpu: FakeGpu, *args: Any, **options: Any) -> Any:
        healthy = FAKE_ANSWERS if gpu.parent is None else {}
        answer = gpu.answers.get(name, healthy.get(name, FakeNvmlError("Not Supported")))
        return answer(*args, **options) if callable(answer) else answer

    def _nvmlInit(self) -> None:
        """It starts."""

    def _nvmlSystemGetDriverVersion(self) -> str:
        return self.driver

    def _nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def _nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:
        return self.gpus[index]

    def _nvmlDeviceGetHandleByUUID(self, uuid: str) -> FakeGpu | Exception:
        handles = [*self.gpus, *(instance for gpu in self.gpus for instance in gpu.instances)]
        return next((each for each in handles if each.uuid == uuid), FakeNvmlError("Not Found"))

    def _nvmlDeviceGetHandleByPciBusId(self, pci: str) -> FakeGpu | Exception:
        return next((gpu for gpu in self.gpus if gpu.pci == pci), FakeNvmlError("Not Found"))

    def _nvmlDeviceGetUUID(self, gpu: FakeGpu) -> Any:
        return gpu.answers.get("GetUUID", gpu.uuid)

    def _nvmlDeviceIsMigDeviceHandle(self, gpu: FakeGpu) -> int:
        return int(gpu.parent is not None)

    def _nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, gpu: FakeGpu) -> FakeGpu | Exception:
        return gpu.parent or FakeNvmlError("Invalid Argument")

    def _nvmlDeviceGetMaxMigDeviceCount(self, gpu: FakeGpu) -> int:
        return 7

    def _nvmlDeviceGetMigDeviceHandleByIndex(self, gpu: FakeGpu, index: int) -> FakeGpu | Exception:
        return gpu.instances[index] if index < len(gpu.instances) else FakeNvmlError("Not Found")

    def _nvmlDeviceGetFieldValues(self, gpu: FakeGpu, numbers: Sequence[int]) -> Any:
        answer = gpu.answers.get("GetFieldValues")
        if answer is not None:
            return answer(numbers) if callable(answer) else answer
        return [
            SimpleNamespace(
                fieldId=number,
                nvmlReturn=0 if number in gpu.fields else 3,
                valueType=3,
                value=SimpleNamespace(ullVal=gpu.fields.get(number, 0)),
            )
            for number in numbers
        ]
