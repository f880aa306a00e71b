"""Telemetry with NVML absent, partial, renamed, divided or speaking bytes: what is missing is null with a reason.

INPUTS O01 (it does not start), O02 (one counter refuses), O03 (no memory of its own), O04 (bytes or text), O05 (which
GPU), O06 (MIG).
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from gpubench.devices import nvml as nvml_module
from gpubench.devices.nvml import EVENT_FIELDS, Nvml, inventory
from gpubench.telemetry import REGIMES, THROTTLES
from gpubench.testing import FAKE_ANSWERS, FAKE_FIELDS, FakeGpu, FakeNvml, FakeNvmlError

UUID = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"
PCI = "00000000:06:00.0"


class NVMLError(Exception):
    """As NVIDIA's binding has it: one class per return code, its words from the library."""


class NVMLError_LibraryNotFound(NVMLError):
    pass


class NVMLError_LibRmVersionMismatch(NVMLError):
    pass


class NVMLError_DriverNotLoaded(NVMLError):
    pass


class NVMLError_NotSupported(NVMLError):
    pass


REFUSED = NVMLError_NotSupported("Not Supported")
REFUSED_WORDS = "NVMLError_NotSupported: Not Supported"


def fail(error: Exception) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        raise error

    return call


def one(fields: dict[int, int] | None = None, **answers: Any) -> Nvml:
    """A healthy GPU that answers otherwise here and there; `fields` are set, or refused where None is set."""
    given = {number: value for number, value in {**FAKE_FIELDS, **(fields or {})}.items() if value is not None}
    return Nvml(UUID, FakeNvml(FakeGpu(answers=answers, fields=given)))


FACTS = {
    "driver": "580.159.03",
    "vbios": "96.00.A5.00.1A",
    "power_limit_w": 700.0,
    "power_limit_default_w": 700.0,
    "power_limit_min_w": 200.0,
    "power_limit_max_w": 700.0,
    "sm_mhz_max": 1980,
    "memory_mhz_max": 3201,
    "sm_mhz_application": 1980,
    "memory_mhz_application": 3201,
    "memory_bus_bits": 6144,
    "bar1_bytes": 274_877_906_944,
    "pcie_generation_max": 5,
    "pcie_width_max": 16,
    "slowdown_c": 89,
    "ecc": True,
    "mig": False,
    "persistence": True,
    "compute_mode": "default",
}
NOW = {
    "sm_mhz": 1755,
    "memory_mhz": 3201,
    "power_w": 128.383,
    "power_average_w": 85.912,
    "temperature_c": 41,
    "memory_temperature_c": 42,
    "utilization_percent": 3,
    "memory_used_bytes": 688_717_824,
    "other_processes": 0,
    "ecc_uncorrected": 0,
    "clock_event_mask": 0,
    "event_ns": dict.fromkeys(EVENT_FIELDS, 0),
    "clock_events": [],
    "throttled": False,
    "may_miss": False,
}
SELDOM = {
    "ecc_corrected": 0,
    "ecc_uncorrected_ever": 0,
    "remapped_rows": {"correctable": 0, "uncorrectable": 0, "pending": 0, "failure": 0},
    "pcie_generation": 5,
    "pcie_width": 16,
    "mps_processes": 0,
}
FROM_EVENTS = {"clock_events", "throttled", "may_miss"}
CALLS = {
    "vbios": "GetVbiosVersion",
    "power_limit_w": "GetEnforcedPowerLimit",
    "power_limit_default_w": "GetPowerManagementDefaultLimit",
    "memory_bus_bits": "GetMemoryBusWidth",
    "bar1_bytes": "GetBAR1MemoryInfo",
    "pcie_generation_max": "GetMaxPcieLinkGeneration",
    "pcie_width_max": "GetMaxPcieLinkWidth",
    "slowdown_c": "GetTemperatureThreshold",
    "ecc": "GetEccMode",
    "mig": "GetMigMode",
    "persistence": "GetPersistenceMode",
    "compute_mode": "GetComputeMode",
    "temperature_c": "GetTemperature",
    "utilization_percent": "GetUtilizationRates",
    "memory_used_bytes": "GetMemoryInfo",
    "other_processes": "GetComputeRunningProcesses",
    "clock_event_mask": "GetCurrentClocksEventReasons",
    "remapped_rows": "GetRemappedRows",
    "pcie_generation": "GetCurrPcieLinkGeneration",
    "pcie_width": "GetCurrPcieLinkWidth",
    "mps_processes": "GetMPSComputeRunningProcesses",
}
"""Readings that depend on one call alone."""


@pytest.fixture(autouse=True)
def _own_process_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAKE_ANSWERS, "GetComputeRunningProcesses", [SimpleNamespace(pid=os.getpid())])


def everything(nvml: Nvml) -> dict[str, Any]:
    """All readings, and under "unavailable" all refusals."""
    facts, now = nvml.facts(), nvml.survey()
    return {**facts, **now, "unavailable": {**facts.get("unavailable", {}), **now.get("unavailable", {})}}


def test_a_healthy_gpu() -> None:
    nvml = one()
    assert nvml.reason is None
    assert nvml.facts() == FACTS
    assert nvml.snapshot() == NOW
    assert nvml.survey() == NOW | SELDOM
    assert json.dumps(everything(nvml), allow_nan=False)


def test_a_snapshot_costs_a_dozen_calls_and_no_slow_one() -> None:
    """Of an H200's calls, energy takes 3 ms, clock limits 1 ms, BAR1 and modes 0.2 ms, a counter 0.1 ms."""
    library = FakeNvml()
    nvml = Nvml(UUID, library)
    library.called.clear()
    nvml.snapshot()
    assert sum(library.called.values()) <= 12
    slow = ("Max", "Applications", "Energy", "BAR1", "Mode", "Limit")
    assert not [name for name in library.called if any(word in name for word in slow)]
    assert len(EVENT_FIELDS) == 4


# O01


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (NVMLError_LibraryNotFound("NVML Shared Library Not Found"), "NVML Shared Library Not Found"),
        (NVMLError_LibRmVersionMismatch("RM has detected an NVML/RM version mismatch."), "version mismatch"),
        (NVMLError_DriverNotLoaded("Driver Not Loaded"), "NVMLError_DriverNotLoaded: Driver Not Loaded"),
        (OSError("libnvidia-ml.so.1: cannot open shared object file"), "OSError: libnvidia-ml.so.1"),
        (AttributeError("a binding of somebody else's"), "AttributeError"),
        (NVMLError(), "NVMLError"),
        (RuntimeError("first line\nsecond line"), "RuntimeError: first line"),
    ],
)
def test_an_nvml_that_does_not_start(error: Exception, words: str) -> None:
    nvml = Nvml(UUID, FakeNvml(nvmlInit=fail(error)))
    assert nvml.reason is not None
    assert nvml.reason.startswith("NVML: ")
    assert words in nvml.reason
    assert "\n" not in nvml.reason
    for found, known in ((nvml.facts(), FACTS), (nvml.snapshot(), NOW), (nvml.survey(), NOW | SELDOM)):
        assert found.pop("unavailable") == {"nvml": nvml.reason}
        assert set(found) == set(known) - FROM_EVENTS
        assert set(found.values()) == {None}
    assert inventory(FakeNvml(nvmlInit=fail(error))) == []


def test_no_binding_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    nvml = Nvml(UUID)
    assert nvml.reason is not None
    assert nvml.reason.startswith("NVML: ModuleNotFoundError: import of pynvml halted")
    assert nvml.snapshot()["power_w"] is None
    assert inventory() == []


def test_the_binding_of_this_machine_never_raises() -> None:
    """There is no GPU where tests run, and NVIDIA's binding says so in its own way."""
    nvml = Nvml(UUID)
    assert (nvml.facts()["power_limit_w"] is None) == (nvml.reason is not None)


def test_the_calls_and_numbers_used_are_those_of_the_binding() -> None:
    """A misspelled call would be a null for ever, with a reason nobody reads."""
    pynvml = pytest.importorskip("pynvml")
    library = FakeNvml(FakeGpu(UUID))
    nvml = Nvml(UUID, library)
    everything(nvml)
    inventory(library)
    assert [name for name in library.called if not hasattr(pynvml, name)] == []
    assert {pynvml.NVML_FI_DEV_POWER_INSTANT, pynvml.NVML_FI_DEV_POWER_AVERAGE, pynvml.NVML_FI_DEV_MEMORY_TEMP} == {
        nvml_module.POWER_INSTANT,
        nvml_module.POWER_AVERAGE,
        nvml_module.MEMORY_TEMPERATURE,
    }
    assert EVENT_FIELDS == {
        "software power cap": pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP,
        "software thermal slowdown": pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN,
        "hardware thermal slowdown": pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN,
        "hardware power brake": pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
    }
    assert [bit for bit in (*THROTTLES, *REGIMES) if not bit & pynvml.nvmlClocksEventReasonAll] == []
    assert (pynvml.NVML_VOLATILE_ECC, pynvml.NVML_AGGREGATE_ECC) == (0, 1)
    assert (pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED) == (0, 1)


# O02


NUMBERS = [name for name, call in CALLS.items() if isinstance(FAKE_ANSWERS[call], int)]


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        *((name, REFUSED) for name in CALLS),
        *((name, lambda *args: None) for name in NUMBERS),
        *((name, 2**32 - 1) for name in NUMBERS),
        *((name, 2**64 - 1) for name in NUMBERS),
    ],
)
def test_one_refused_reading_is_one_null(name: str, answer: Any) -> None:
    whole = FACTS | NOW | SELDOM
    found = everything(one(**{CALLS[name]: answer}))
    refused = found.pop("unavailable")
    assert list(refused) == [name]
    if answer is REFUSED:
        assert "Not Supported" in refused[name]
    assert found[name] is None
    lost = {name} | (FROM_EVENTS if name == "clock_event_mask" else set())
    assert {key: value for key, value in found.items() if key not in lost} == {
        key: value for key, value in whole.items() if key not in lost
    }


def test_every_reading_refused() -> None:
    nvml = Nvml(UUID, FakeNvml(FakeGpu(answers=dict.fromkeys([*FAKE_ANSWERS, "GetFieldValues"], fail(REFUSED)))))
    assert nvml.reason is None
    for found in (nvml.facts(), nvml.survey()):
        refused = found.pop("unavailable")
        assert set(refused) == set(found) - {"driver"}
        assert {value for name, value in found.items() if name != "driver"} == {None}
        assert "throttled" not in found, "unknown is not false"


@pytest.mark.parametrize("zero", [0, REFUSED, 2**32 - 1, ctypes.c_uint(2**32 - 1)])
def test_a_card_without_power_readings(zero: Any) -> None:
    """No 0 W, and nothing derived from one."""
    limit = zero if isinstance(zero, Exception) else lambda: zero
    fields: dict[int, Any] = {186: None, 185: None} if isinstance(zero, Exception) else {186: 0, 185: 0}
    found = everything(one(fields, GetPowerUsage=limit, GetEnforcedPowerLimit=limit))
    assert [found[name] for name in ("power_w", "power_average_w", "power_limit_w")] == [None] * 3
    assert set(found["unavailable"]) == {"power_w", "power_average_w", "power_limit_w"}
    assert found["temperature_c"] == 41


def test_power_of_a_driver_without_the_newer_field() -> None:
    """What it has is an average on most GPUs: it does not pass for instantaneous."""
    now = one({186: None, 185: None}).snapshot()  # type: ignore[dict-item]
    assert (now["power_w"], now["power_average_w"]) == (None, 85.912)
    assert now["unavailable"] == {"power_w": "Not Supported"}


def test_a_gpu_lost_in_the_middle_of_a_run() -> None:
    """Three readings, then none: the three stay, the fourth says why."""
    readings: Iterator[int] = iter([100_000, 200_000, 300_000])

    def fields(numbers: list[int]) -> Any:
        for milliwatts in readings if 186 in numbers else iter([0]):
            value = SimpleNamespace(ullVal=milliwatts)
            return [SimpleNamespace(fieldId=number, nvmlReturn=0, valueType=3, value=value) for number in numbers]
        raise NVMLError("GPU is lost")

    nvml = one(GetFieldValues=fields)
    seen = [nvml.snapshot() for _ in range(5)]
    assert [now["power_w"] for now in seen] == [100.0, 200.0, 300.0, None, None]
    assert seen[3]["unavailable"]["power_w"] == "NVMLError: GPU is lost"
    assert "power_w" not in seen[2]["unavailable"]
    assert seen[4]["sm_mhz"] == 1755


def test_a_binding_that_lacks_a_call_or_a_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = Nvml(UUID, FakeNvml(nvmlDeviceGetPersistenceMode=None))
    monkeypatch.delattr(FakeNvml, "NVML_TEMPERATURE_GPU")
    assert nvml.facts()["persistence"] is None
    assert "AttributeError" in nvml.facts()["unavailable"]["persistence"]
    assert nvml.snapshot()["temperature_c"] is None
    assert nvml.snapshot()["sm_mhz"] == 1755


@pytest.mark.parametrize(
    ("name", "call", "answer"),
    [
        ("utilization_percent", "GetUtilizationRates", SimpleNamespace(gpu=2**32 - 1)),
        ("utilization_percent", "GetUtilizationRates", SimpleNamespace(gpu=250)),
        ("sm_mhz", "GetClockInfo", lambda kind: {1: 0, 2: 3201}[kind]),
        ("sm_mhz_max", "GetMaxClockInfo", lambda kind: {1: 2**32 - 1, 2: 3201}[kind]),
        ("pcie_width", "GetCurrPcieLinkWidth", 0),
        ("ecc_uncorrected", "GetTotalEccErrors", lambda kind, ever: 2**64 - 1 if (kind, ever) == (1, 0) else 0),
        ("compute_mode", "GetComputeMode", 17),
        ("remapped_rows", "GetRemappedRows", (0, 0, 0, 2**32 - 1)),
        ("bar1_bytes", "GetBAR1MemoryInfo", SimpleNamespace(bar1Total=0)),
    ],
)
def test_values_that_stand_for_none(name: str, call: str, answer: Any) -> None:
    found = everything(one(**{call: answer}))
    assert found[name] is None
    assert list(found["unavailable"]) == [name]


# O03


@pytest.mark.parametrize(
    "memory",
    [REFUSED, lambda version=1: SimpleNamespace(total=0, free=0, used=0)],
    ids=["refused", "0 of 0 bytes"],
)
def test_memory_of_a_gpu_that_has_none_of_its_own(memory: Any) -> None:
    now = one(GetMemoryInfo=memory).snapshot()
    assert now["memory_used_bytes"] is None
    assert "memory_used_bytes" in now["unavailable"]
    assert now["power_w"] == 128.383


def test_memory_of_a_binding_or_a_driver_with_the_first_version_only() -> None:
    used = SimpleNamespace(total=10, free=3, used=7)
    assert one(GetMemoryInfo=lambda: used).snapshot()["memory_used_bytes"] == 7
    assert one(GetMemoryInfo=lambda version=1: used if version == 1 else fail(REFUSED)()).snapshot()[
        "memory_used_bytes"
    ] == 7  # fmt: skip


# The calls that were renamed


NEW, OLD = "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"


@pytest.mark.parametrize(
    ("calls", "bits"),
    [
        ({NEW: lambda gpu: 0x8}, 0x8),
        ({NEW: None, OLD: lambda gpu: 0x8}, 0x8),
        ({NEW: lambda gpu: 0x8, OLD: lambda gpu: 0x40}, 0x8),
        # a new binding on a driver from before the renaming
        ({NEW: fail(NVMLError("Function Not Found")), OLD: lambda gpu: 0x8}, 0x8),
    ],
)
def test_clock_events_under_either_name(calls: dict[str, Any], bits: int) -> None:
    now = Nvml(UUID, FakeNvml(**calls)).snapshot()
    assert now["clock_event_mask"] == bits
    assert (now["clock_events"], now["throttled"]) == (["hardware slowdown"], True)


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ({NEW: None, OLD: None}, f"this binding has no {NEW}"),
        ({NEW: fail(NVMLError("Unknown")), OLD: fail(REFUSED)}, REFUSED_WORDS),
    ],
)
def test_clock_events_under_neither(calls: dict[str, Any], said: str) -> None:
    now = Nvml(UUID, FakeNvml(**calls)).snapshot()
    assert now["clock_event_mask"] is None
    assert now["unavailable"] == {"clock_event_mask": said}
    assert not FROM_EVENTS & set(now)
    assert now["power_w"] == 128.383


def test_the_temperature_under_either_name() -> None:
    new = Nvml(UUID, FakeNvml(nvmlDeviceGetTemperature=None, nvmlDeviceGetTemperatureV=lambda gpu, sensor: 55))
    assert new.snapshot()["temperature_c"] == 55


# Clock events


@pytest.mark.parametrize("bit", [*THROTTLES, *REGIMES])
def test_which_clock_events_spoil_a_measurement(bit: int) -> None:
    """A power cap under a matmul is the regime, not a fault."""
    now = one(GetCurrentClocksEventReasons=bit).snapshot()
    assert now["throttled"] is (bit in THROTTLES)
    assert now["clock_events"] == [{**THROTTLES, **REGIMES}[bit]]


def test_no_clock_event_and_several() -> None:
    assert one().snapshot()["throttled"] is False
    now = one(GetCurrentClocksEventReasons=0x44).snapshot()
    assert now["throttled"] is True
    assert now["clock_events"] == ["hardware thermal slowdown", "software power cap"]


@pytest.mark.parametrize(
    ("missing", "may_miss"),
    [([], False), ([74], False), ([269], True), ([270, 271], True), ([74, 269, 270, 271], True)],
)
def test_a_driver_that_does_not_count_an_event_may_miss_it(missing: list[int], may_miss: bool) -> None:
    now = one(dict.fromkeys(missing)).snapshot()  # type: ignore[arg-type]
    assert now["may_miss"] is may_miss
    counted = {name: 0 for name, number in EVENT_FIELDS.items() if number not in missing}
    assert now["event_ns"] == (counted or None)


def test_field_values_of_every_type() -> None:
    """The library says which member of its union holds the value."""

    def fields(kind: int, member: str) -> Any:
        def answer(numbers: list[int]) -> Any:
            value = SimpleNamespace(**{member: 1000})
            return [SimpleNamespace(fieldId=number, nvmlReturn=0, valueType=kind, value=value) for number in numbers]

        return answer

    for kind, member in enumerate(["dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal"]):
        assert one(GetFieldValues=fields(kind, member)).snapshot()["power_w"] == 1.0


# O04


def test_bytes_and_text_are_the_same_json() -> None:
    text, raw = (Nvml(UUID, FakeNvml(text=kind)) for kind in (str, bytes))
    assert json.dumps(everything(raw)) == json.dumps(everything(text))
    assert "b'" not in json.dumps(everything(raw))
    assert inventory(FakeNvml(text=bytes)) == inventory(FakeNvml()) == [UUID]


def test_bytes_that_are_no_text_do_not_fail() -> None:
    nvml = Nvml(UUID, FakeNvml(nvmlSystemGetDriverVersion=lambda: b"580\xff"))
    assert nvml.facts()["driver"] == "580\ufffd"


# O05


FOUR = [FakeGpu(f"GPU-{n}0000000-0000-0000-0000-000000000000", f"00000000:0{n}:00.0") for n in range(4)]
for _n, _gpu in enumerate(FOUR):
    _gpu.fields[186] = 1000 * (100 + _n)


@pytest.mark.parametrize("shown", [[2], [3, 1], [1, 0], [0, 1, 2, 3]])
def test_a_cuda_ordinal_is_matched_by_uuid(shown: list[int]) -> None:
    """What CUDA shows under a mask, in its order; NVML shows all, in its own."""
    seen = [Nvml(FOUR[n].uuid, FakeNvml(*FOUR)).snapshot()["power_w"] for n in shown]
    assert seen == [100.0 + n for n in shown]


def test_a_gpu_without_a_uuid_is_matched_by_its_pci_address() -> None:
    assert Nvml(None, FakeNvml(*FOUR), pci=FOUR[2].pci).snapshot()["power_w"] == 102.0
    other = "GPU-99999999-0000-0000-0000-000000000000"
    assert Nvml(other, FakeNvml(*FOUR), pci=FOUR[3].pci).snapshot()["power_w"] == 103.0


@pytest.mark.parametrize(
    ("uuid", "pci", "said"),
    [
        (None, None, "NVML: torch tells neither the GPU's UUID nor its PCI address"),
        ("GPU-00000000-0000-0000-0000-000000000001", None, "NVML: FakeNvmlError: Not Found"),
        (None, "00000000:99:00.0", "NVML: FakeNvmlError: Not Found"),
        ("GPU-8932f937", "00000000:99:00.0", "NVML: FakeNvmlError: Not Found"),
    ],
)
def test_a_gpu_that_cannot_be_matched_has_no_readings(uuid: str | None, pci: str | None, said: str) -> None:
    """Never those of device 0."""
    nvml = Nvml(uuid, FakeNvml(), pci=pci)
    assert nvml.reason == said
    assert nvml.snapshot()["power_w"] is None
    assert json.dumps(nvml.facts())


# O06


def divided() -> tuple[FakeNvml, FakeGpu]:
    """A GPU with two MIG instances behind one that refuses to be listed; the second instance."""
    memory = SimpleNamespace(total=20, free=13, used=7)
    answers = {"GetMemoryInfo": lambda version=1: memory, "GetComputeRunningProcesses": [], "GetUUID": None}
    instances = [FakeGpu(f"MIG-{n}9c850dc-3a47-5e3b-b1b7-4ea63d7a1d0d", "", dict(answers), {}) for n in (7, 8)]
    for instance in instances:
        instance.answers["GetUUID"] = instance.uuid
    whole = FakeGpu(UUID, PCI, {"GetMigMode": [1, 1]}, instances=instances)
    return FakeNvml(FakeGpu("GPU-1", "", {"GetUUID": FakeNvmlError("GPU is lost")}), whole), instances[1]


@pytest.mark.parametrize("bare", [False, True], ids=["MIG-", "bare"])
def test_an_instance_has_its_own_memory_and_the_clocks_of_its_gpu(bare: bool) -> None:
    """torch tells the UUID without what it begins with."""
    library, instance = divided()
    nvml = Nvml(instance.uuid.replace("MIG-", "GPU-") if bare else instance.uuid, library, in_use=False)
    assert nvml.reason is None
    assert (nvml.facts()["mig"], nvml.facts()["sm_mhz_max"], nvml.facts()["power_limit_w"]) == (True, 1980, 700.0)
    now = nvml.snapshot()
    assert (now["memory_used_bytes"], now["sm_mhz"], now["other_processes"]) == (7, 1755, 0)
    for name in ("utilization_percent", "power_w", "power_average_w"):
        assert now[name] is None
        assert now["unavailable"][name] == "not supported on MIG"


def test_the_figures_of_a_divided_gpu_are_no_instances() -> None:
    library, _ = divided()
    nvml = Nvml(None, library, pci=PCI)
    assert nvml.facts()["mig"] is True
    now = nvml.snapshot()
    for name in ("utilization_percent", "power_w", "power_average_w", "memory_used_bytes", "other_processes"):
        assert (now[name], now["unavailable"][name]) == (None, "not supported on MIG")
    assert now["sm_mhz"] == 1755


def test_an_inventory_lists_instances_and_passes_over_what_does_not_answer() -> None:
    library, _ = divided()
    assert [uuid[:5] for uuid in inventory(library)] == ["GPU-8", "MIG-7", "MIG-8"]


# Who else uses it


@pytest.mark.parametrize(
    ("pids", "in_use", "others"),
    [
        ([os.getpid()], True, 0),
        ([os.getpid(), 1, 2], True, 2),
        ([1, 2], True, 1),  # in a container: this process is one of them, under the host's number
        ([os.getpid(), 1], False, 1),
        ([1, 2], False, 2),
        ([], False, 0),
        ([], True, None),
    ],
)
def test_processes_beside_this_one(pids: list[int], in_use: bool, others: int | None) -> None:
    processes = [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in pids]
    gpu = FakeGpu(answers={"GetComputeRunningProcesses": processes})
    now = Nvml(UUID, FakeNvml(gpu), in_use=in_use).snapshot()
    assert now["other_processes"] == others
    assert ("other_processes" in now.get("unavailable", {})) == (others is None)
