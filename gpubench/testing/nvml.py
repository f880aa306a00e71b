"""FakeNvml: NVIDIA's management library with GPUs that do not exist, see gpubench.testing.device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any


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
