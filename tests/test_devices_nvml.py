"""Telemetry with NVML absent, partial, renamed or speaking bytes: what is missing is null with a reason, no more.

INPUTS O01 (it does not start), O02 (one counter refuses), O04 (bytes or text).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from gpubench.devices.nvml import REGIMES, THROTTLES, Nvml

UUID = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"


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


class NVMLError_GpuIsLost(NVMLError):
    pass


class NVMLError_FunctionNotFound(NVMLError):
    pass


class NVMLError_NotFound(NVMLError):
    pass


def fail(error: Exception) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        raise error

    return call


class Library:
    """A healthy NVML of one GPU; a test replaces the calls it wants to see fail."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def __init__(self, **calls: Callable[..., Any] | None) -> None:
        self.inits = 0
        for name, call in calls.items():
            setattr(self, name, call)

    def nvmlInit(self) -> None:
        self.inits += 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid != UUID:
            raise NVMLError_NotFound("Not Found")
        return "handle"

    def nvmlSystemGetDriverVersion(self) -> str | bytes:
        return "580.159.03"

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: str) -> int:
        return 700_000

    def nvmlDeviceGetMaxClockInfo(self, handle: str, kind: int) -> int:
        return {1: 1980, 2: 3201}[kind]

    def nvmlDeviceGetMemoryBusWidth(self, handle: str) -> int:
        return 6144

    def nvmlDeviceGetEccMode(self, handle: str) -> list[int]:
        return [1, 0]

    def nvmlDeviceGetMigMode(self, handle: str) -> list[int]:
        return [0, 1]

    def nvmlDeviceGetPersistenceMode(self, handle: str) -> int:
        return 1

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:
        return {1: 1755, 2: 3201}[kind]

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:
        return 123_456

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:
        return 41

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> int:
        return 0x4


FACTS = {
    "driver": "580.159.03",
    "power_limit_w": 700.0,
    "sm_mhz_max": 1980,
    "memory_mhz_max": 3201,
    "memory_bus_bits": 6144,
    "ecc": True,
    "mig": False,  # the mode now, not the one after the next restart
    "persistence": True,
}
NOW = {
    "sm_mhz": 1755,
    "memory_mhz": 3201,
    "power_w": 123.456,
    "temperature_c": 41,
    "clock_event_bits": 0x4,
    "clock_events": ["software power cap"],
    "throttled": False,
}
REFUSALS = {
    "driver": "nvmlSystemGetDriverVersion",
    "power_limit_w": "nvmlDeviceGetEnforcedPowerLimit",
    "memory_bus_bits": "nvmlDeviceGetMemoryBusWidth",
    "ecc": "nvmlDeviceGetEccMode",
    "mig": "nvmlDeviceGetMigMode",
    "persistence": "nvmlDeviceGetPersistenceMode",
    "power_w": "nvmlDeviceGetPowerUsage",
    "temperature_c": "nvmlDeviceGetTemperature",
    "clock_event_bits": "nvmlDeviceGetCurrentClocksEventReasons",
}


def test_a_healthy_gpu() -> None:
    library = Library()
    nvml = Nvml(UUID, library)
    assert (nvml.reason, library.inits) == (None, 1)
    assert nvml.facts() == FACTS
    assert nvml.snapshot() == NOW


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
    nvml = Nvml(UUID, Library(nvmlInit=fail(error)))
    assert nvml.reason is not None
    assert nvml.reason.startswith("NVML: ")
    assert words in nvml.reason
    assert "\n" not in nvml.reason
    for found, known in ((nvml.facts(), FACTS), (nvml.snapshot(), NOW)):
        assert found.pop("unavailable") == {"nvml": nvml.reason}
        assert set(found) == set(known) - {"clock_events", "throttled"}
        assert set(found.values()) == {None}


def test_no_binding_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    nvml = Nvml(UUID)
    assert nvml.reason is not None
    assert nvml.reason.startswith("NVML: ModuleNotFoundError: import of pynvml halted")
    assert nvml.snapshot()["power_w"] is None


def test_the_binding_of_this_machine_never_raises() -> None:
    """There is no GPU where tests run, and NVIDIA's binding says so in its own way."""
    nvml = Nvml(UUID)
    assert (nvml.facts()["power_limit_w"] is None) == (nvml.reason is not None)


@pytest.mark.parametrize("uuid", [None, "GPU-00000000-0000-0000-0000-000000000000"])
def test_a_gpu_that_cannot_be_matched_has_no_readings(uuid: str | None) -> None:
    """Never those of device 0."""
    nvml = Nvml(uuid, Library())
    assert nvml.reason is not None
    assert nvml.snapshot()["power_w"] is None
    assert json.dumps(nvml.facts())


# O02


@pytest.mark.parametrize("name", REFUSALS)
def test_one_refused_reading_is_one_null(name: str) -> None:
    nvml = Nvml(UUID, Library(**{REFUSALS[name]: fail(NVMLError_NotSupported("Not Supported"))}))
    whole = {**FACTS, **NOW}
    found = {**nvml.facts(), **nvml.snapshot()}
    refused = {**nvml.facts().get("unavailable", {}), **nvml.snapshot().get("unavailable", {})}
    assert refused == {name: "NVMLError_NotSupported: Not Supported"}
    assert found[name] is None
    lost = {name, "unavailable"} | ({"clock_events", "throttled"} if name == "clock_event_bits" else set())
    assert {key: value for key, value in found.items() if key not in lost} == {
        key: value for key, value in whole.items() if key not in lost
    }


def test_every_reading_refused() -> None:
    calls = {call: fail(NVMLError_NotSupported("Not Supported")) for call in REFUSALS.values()}
    calls |= dict.fromkeys(["nvmlDeviceGetMaxClockInfo", "nvmlDeviceGetClockInfo"], fail(NVMLError("Unknown Error")))
    nvml = Nvml(UUID, Library(**calls))
    assert nvml.reason is None
    for found in (nvml.facts(), nvml.snapshot()):
        assert set(found.pop("unavailable")) == set(found)
        assert set(found.values()) == {None}
        assert "throttled" not in found, "unknown is not false"


def test_a_card_without_power_readings() -> None:
    """No 0 W, and nothing derived from one."""
    refuse = fail(NVMLError_NotSupported("Not Supported"))
    nvml = Nvml(UUID, Library(nvmlDeviceGetPowerUsage=refuse, nvmlDeviceGetEnforcedPowerLimit=refuse))
    assert nvml.facts()["power_limit_w"] is None
    assert nvml.snapshot()["power_w"] is None
    assert nvml.snapshot()["temperature_c"] == 41


def test_a_gpu_lost_in_the_middle_of_a_run() -> None:
    """Three readings, then none: the three stay, the fourth says why."""
    readings = iter([100_000, 200_000, 300_000])

    def power(handle: str) -> int:
        for milliwatts in readings:
            return milliwatts
        raise NVMLError_GpuIsLost("GPU is lost")

    nvml = Nvml(UUID, Library(nvmlDeviceGetPowerUsage=power))
    seen = [nvml.snapshot() for _ in range(5)]
    assert [now["power_w"] for now in seen] == [100.0, 200.0, 300.0, None, None]
    assert seen[3]["unavailable"] == {"power_w": "NVMLError_GpuIsLost: GPU is lost"}
    assert "unavailable" not in seen[2]
    assert seen[4]["sm_mhz"] == 1755


def test_a_binding_that_lacks_a_call_or_a_constant() -> None:
    library = Library(nvmlDeviceGetMigMode=None)
    del Library.NVML_TEMPERATURE_GPU
    try:
        nvml = Nvml(UUID, library)
        assert nvml.facts()["mig"] is None
        assert "TypeError" in nvml.facts()["unavailable"]["mig"]
        assert nvml.snapshot()["temperature_c"] is None
        assert nvml.snapshot()["sm_mhz"] == 1755
    finally:
        Library.NVML_TEMPERATURE_GPU = 0


# The call that was renamed


def without(name: str) -> dict[str, None]:
    return {name: None}


NEW, OLD = "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"


@pytest.mark.parametrize(
    ("calls", "bits"),
    [
        ({NEW: lambda handle: 0x8}, 0x8),
        ({NEW: None, OLD: lambda handle: 0x8}, 0x8),
        ({NEW: lambda handle: 0x8, OLD: lambda handle: 0x40}, 0x8),
        # a new binding on a driver from before the renaming
        ({NEW: fail(NVMLError_FunctionNotFound("Function Not Found")), OLD: lambda handle: 0x8}, 0x8),
    ],
)
def test_clock_events_under_either_name(calls: dict[str, Any], bits: int) -> None:
    now = Nvml(UUID, Library(**calls)).snapshot()
    assert now["clock_event_bits"] == bits
    assert (now["clock_events"], now["throttled"]) == (["hardware slowdown"], True)


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ({NEW: None}, "LookupError: this binding has no call for clock-event reasons"),
        (
            {NEW: fail(NVMLError("Unknown")), OLD: fail(NVMLError_NotSupported("Not Supported"))},
            "NVMLError_NotSupported",
        ),
    ],
)
def test_clock_events_under_neither(calls: dict[str, Any], said: str) -> None:
    now = Nvml(UUID, Library(**calls)).snapshot()
    assert now["clock_event_bits"] is None
    assert said in now["unavailable"]["clock_event_bits"]
    assert now["power_w"] == 123.456


@pytest.mark.parametrize("bit", [*THROTTLES, *REGIMES])
def test_which_clock_events_spoil_a_measurement(bit: int) -> None:
    """A power cap under a matmul is the regime, not a fault."""
    now = Nvml(UUID, Library(**{NEW: lambda handle: bit})).snapshot()
    assert now["throttled"] is (bit in THROTTLES)
    assert now["clock_events"] == [{**THROTTLES, **REGIMES}[bit]]


def test_no_clock_event_and_several() -> None:
    assert Nvml(UUID, Library(**{NEW: lambda handle: 0})).snapshot()["throttled"] is False
    now = Nvml(UUID, Library(**{NEW: lambda handle: 0x44})).snapshot()
    assert now["throttled"] is True
    assert sorted(now["clock_events"]) == ["hardware thermal slowdown", "software power cap"]


# O04


def test_bytes_and_text_are_the_same_json() -> None:
    text = Nvml(UUID, Library())
    raw = Nvml(UUID, Library(nvmlSystemGetDriverVersion=lambda: b"580.159.03"))
    assert json.dumps(raw.facts()) == json.dumps(text.facts())
    assert "b'" not in json.dumps(raw.facts())


def test_bytes_that_are_no_text_do_not_fail() -> None:
    nvml = Nvml(UUID, Library(nvmlSystemGetDriverVersion=lambda: b"580\xff"))
    assert nvml.facts()["driver"] == "580\ufffd"
