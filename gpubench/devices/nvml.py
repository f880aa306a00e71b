"""What NVML says of one GPU, matched by UUID or PCI address, never by index: CUDA numbers GPUs otherwise than NVML.

Nothing here is needed to measure: what cannot be read is None, with a reason beside it under "unavailable", and one
refused reading leaves the others intact. NVML is only read, never told to change anything. A snapshot takes 0.5 ms on
an H200, four fifths of it for the counters of clock events; the facts take 7 ms, once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, cast

from gpubench.devices.gpm import Gpm
from gpubench.telemetry import THROTTLES, events

NOT_AVAILABLE = (2**32 - 1, 2**64 - 1)
"""What NVML returns, besides an error, for a number it does not have."""
POWER_INSTANT, POWER_AVERAGE, MEMORY_TEMPERATURE = 186, 185, 82
"""Numbers of field values. They are NVML's interface, known to a driver or refused by it; an older binding has no names
for some of them."""
EVENT_FIELDS = {
    "software power cap": 74,
    "software thermal slowdown": 269,
    "hardware thermal slowdown": 270,
    "hardware power brake": 271,
}
"""Counters of the time spent under a clock event, in ns since the driver was loaded. Each takes 0.1 ms to read."""
SLOWDOWN = 1
"""The temperature threshold at which the hardware slows the clocks."""
COMPUTE_MODES = {0: "default", 2: "prohibited", 3: "exclusive process"}
ON_MIG = "not supported on MIG"
EVENT_CALLS = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
TEMPERATURE_CALLS = ("nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV")
SUCCESS = 0

Readings = dict[str, Callable[[], Any]]


class Nvml:
    """A GPU as NVML sees it. `reason` says why there is nothing to see, or is None.

    `uuid` is the GPU's or the MIG instance's; `pci`, such as 00000000:06:00.0, is tried where no UUID matches.
    `in_use` says whether this process uses the GPU by now. On a MIG instance the clocks and limits are those of the
    GPU it is a part of; what cannot be told apart for one instance is None.
    """

    def __init__(self, uuid: str | None, library: Any = None, *, pci: str | None = None, in_use: bool = True) -> None:
        self.reason: str | None = None
        self._nvml = library
        self._in_use = in_use
        self._gpu: Any = None
        self._own: Any = None
        self._mig = False
        try:
            if self._nvml is None:
                self._nvml = _library()
            self._nvml.nvmlInit()
            self._own = _handle(self._nvml, uuid, pci)
            instance = _is_instance(self._nvml, self._own)
            self._gpu = self._nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self._own) if instance else self._own
            self._mig = instance or _mig_mode(self._nvml, self._gpu)
        except Exception as error:  # whatever NVML, its binding or a stand-in for it raises: telemetry is optional
            self.reason = f"NVML: {_words(error)}"

    @property
    def uuid(self) -> str | None:
        """GPU-… or MIG-…, as nvidia-smi lists it, or None where NVML does not tell."""
        with suppress(Exception):
            return _text(self._nvml.nvmlDeviceGetUUID(self._own)) or None
        return None

    def facts(self) -> dict[str, Any]:
        """What does not change while a run lasts."""
        nvml, gpu = self._nvml, self._gpu
        return self._read(
            {
                "driver": lambda: _text(nvml.nvmlSystemGetDriverVersion()),
                "vbios": lambda: _text(nvml.nvmlDeviceGetVbiosVersion(gpu)),
                "power_limit_w": lambda: _watts(nvml.nvmlDeviceGetEnforcedPowerLimit(gpu)),
                "power_limit_default_w": lambda: _watts(nvml.nvmlDeviceGetPowerManagementDefaultLimit(gpu)),
                "power_limit_min_w": lambda: _watts(nvml.nvmlDeviceGetPowerManagementLimitConstraints(gpu)[0]),
                "power_limit_max_w": lambda: _watts(nvml.nvmlDeviceGetPowerManagementLimitConstraints(gpu)[1]),
                "sm_mhz_max": lambda: _positive(nvml.nvmlDeviceGetMaxClockInfo(gpu, nvml.NVML_CLOCK_SM)),
                "memory_mhz_max": lambda: _positive(nvml.nvmlDeviceGetMaxClockInfo(gpu, nvml.NVML_CLOCK_MEM)),
                "sm_mhz_application": lambda: _positive(nvml.nvmlDeviceGetApplicationsClock(gpu, nvml.NVML_CLOCK_SM)),
                "memory_mhz_application": lambda: _positive(
                    nvml.nvmlDeviceGetApplicationsClock(gpu, nvml.NVML_CLOCK_MEM)
                ),
                "memory_bus_bits": lambda: _positive(nvml.nvmlDeviceGetMemoryBusWidth(gpu)),
                "bar1_bytes": lambda: _positive(nvml.nvmlDeviceGetBAR1MemoryInfo(gpu).bar1Total),
                "pcie_generation_max": lambda: _positive(nvml.nvmlDeviceGetMaxPcieLinkGeneration(gpu)),
                "pcie_width_max": lambda: _positive(nvml.nvmlDeviceGetMaxPcieLinkWidth(gpu)),
                "slowdown_c": lambda: _positive(nvml.nvmlDeviceGetTemperatureThreshold(gpu, SLOWDOWN)),
                "ecc": lambda: bool(_number(nvml.nvmlDeviceGetEccMode(gpu)[0])),
                "mig": lambda: bool(_number(nvml.nvmlDeviceGetMigMode(gpu)[0])) or self._mig,
                "persistence": lambda: bool(_number(nvml.nvmlDeviceGetPersistenceMode(gpu))),
                "compute_mode": lambda: COMPUTE_MODES[nvml.nvmlDeviceGetComputeMode(gpu)],
            }
        )

    def snapshot(self) -> dict[str, Any]:
        """What the GPU is doing now: cheap enough to stand before and after each case.

        NVML's clock is polled, and none of this belongs to one kernel. `power_w` is instantaneous, `power_average_w`
        over about a second. `event_ns` are cumulative, one per event that the driver counts; where it does not
        count all that spoil a measurement, `may_miss` is true. `other_processes` are those that use this GPU beside
        this one.
        """
        nvml, gpu, own = self._nvml, self._gpu, self._own
        readings: Readings = {
            "sm_mhz": lambda: _positive(nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)),
            "memory_mhz": lambda: _positive(nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM)),
            "power_w": lambda: _watts(_field(nvml, self._alone(gpu), POWER_INSTANT)),
            "power_average_w": self._average_power,
            "temperature_c": lambda: _number(_renamed(nvml, TEMPERATURE_CALLS, gpu, nvml.NVML_TEMPERATURE_GPU)),
            "memory_temperature_c": lambda: _positive(_field(nvml, gpu, MEMORY_TEMPERATURE)),
            "utilization_percent": lambda: _percent(nvml.nvmlDeviceGetUtilizationRates(self._alone(gpu)).gpu),
            "memory_used_bytes": lambda: _used(nvml, self._alone(own)),
            "other_processes": self._others,
            "ecc_uncorrected": lambda: _number(nvml.nvmlDeviceGetTotalEccErrors(gpu, 1, 0)),
            "clock_event_mask": lambda: _number(_renamed(nvml, EVENT_CALLS, gpu)),
            "event_ns": lambda: _event_ns(nvml, gpu),
        }
        now = self._read(readings)
        bits, counted = now["clock_event_mask"], now["event_ns"] or {}
        if bits is not None:
            now["clock_events"] = events(bits)
            now["throttled"] = any(bits & bit for bit in THROTTLES)
            now["may_miss"] = not all(name in counted for name in EVENT_FIELDS if name in THROTTLES.values())
        return now

    def survey(self) -> dict[str, Any]:
        """A snapshot, and what changes seldom: errors of the memory, the link to the host, processes under MPS."""
        nvml, gpu = self._nvml, self._gpu
        return _merged(
            self.snapshot(),
            self._read(
                {
                    "ecc_corrected": lambda: _number(nvml.nvmlDeviceGetTotalEccErrors(gpu, 0, 0)),
                    "ecc_uncorrected_ever": lambda: _number(nvml.nvmlDeviceGetTotalEccErrors(gpu, 1, 1)),
                    "remapped_rows": lambda: _remapped(nvml.nvmlDeviceGetRemappedRows(gpu)),
                    "pcie_generation": lambda: _positive(nvml.nvmlDeviceGetCurrPcieLinkGeneration(gpu)),
                    "pcie_width": lambda: _positive(nvml.nvmlDeviceGetCurrPcieLinkWidth(gpu)),
                    "mps_processes": lambda: len(nvml.nvmlDeviceGetMPSComputeRunningProcesses(gpu)),
                }
            ),
        )

    def pulse(self) -> dict[str, Any]:
        """What changes from one moment to the next, of a snapshot: power, temperature, clock events."""
        nvml, gpu = self._nvml, self._gpu
        readings: Readings = {
            "power_w": lambda: _watts(_field(nvml, self._alone(gpu), POWER_INSTANT)),
            "temperature_c": lambda: _number(_renamed(nvml, TEMPERATURE_CALLS, gpu, nvml.NVML_TEMPERATURE_GPU)),
            "clock_events": lambda: events(_number(_renamed(nvml, EVENT_CALLS, gpu))),
        }
        return self._read(readings)

    def joules(self) -> float:
        """The GPU's counter of energy, since the driver was loaded. LookupError says why there is none."""
        nvml, gpu = self._nvml, self._gpu
        found = self._read(
            {"energy": lambda: _positive(nvml.nvmlDeviceGetTotalEnergyConsumption(self._alone(gpu))) / 1000}
        )
        return float(_had(found, "energy"))

    def gpm(self) -> Gpm:
        """The activity of the GPU's units, see Gpm. LookupError says why it cannot be had."""
        found = self._read({"gpm": lambda: Gpm(self._nvml, self._alone(self._gpu))})
        return cast(Gpm, _had(found, "gpm"))

    def _average_power(self) -> float:
        """Of the field, else of the call that is older than it."""
        gpu = self._alone(self._gpu)
        with suppress(Exception):
            return _watts(_field(self._nvml, gpu, POWER_AVERAGE))
        return _watts(self._nvml.nvmlDeviceGetPowerUsage(gpu))

    def _alone(self, handle: Any) -> Any:
        """The handle, where what is read by it is this device's own; the whole GPU's figures are no instance's."""
        if self._mig and handle is self._gpu:
            raise LookupError(ON_MIG)
        return handle

    def _others(self) -> int:
        """How many processes use this device, without this one, which a container may show under another number."""
        pids = [process.pid for process in self._nvml.nvmlDeviceGetComputeRunningProcesses(self._alone(self._own))]
        if os.getpid() in pids or not self._in_use:
            return len(set(pids) - {os.getpid()})
        if not pids:
            raise LookupError("processes are not shown here, not even this one")
        return len(pids) - 1

    def _read(self, readings: Readings) -> dict[str, Any]:
        """Each reading or None, and under "unavailable" why."""
        if self.reason is not None:
            return {**dict.fromkeys(readings), "unavailable": {"nvml": self.reason}}
        values: dict[str, Any] = {}
        refused: dict[str, str] = {}
        for name, read in readings.items():
            try:
                values[name] = read()
            except Exception as error:  # as above: one refused counter is one null
                values[name] = None
                refused[name] = ON_MIG if self._mig and _is_unsupported(error) else _words(error)
        if refused:
            values["unavailable"] = refused
        return values


def _had(found: dict[str, Any], name: str) -> Any:
    """The one value that was read, or a LookupError with the reason."""
    if found[name] is None:
        raise LookupError(" ".join(found["unavailable"].values()))
    return found[name]


def inventory(library: Any = None) -> list[str]:
    """The UUIDs of all GPUs of this machine and of their MIG instances, hidden by CUDA_VISIBLE_DEVICES or not; those of
    a GPU's instances follow it. A GPU that does not answer is passed over; empty where NVML does not start."""
    found: list[str] = []
    with suppress(Exception):
        nvml = _library() if library is None else library
        nvml.nvmlInit()
        for index in range(nvml.nvmlDeviceGetCount()):
            with suppress(Exception):
                gpu = nvml.nvmlDeviceGetHandleByIndex(index)
                found.append(_text(nvml.nvmlDeviceGetUUID(gpu)))
                found += _instances(nvml, gpu)
    return found


def _instances(nvml: Any, gpu: Any) -> list[str]:
    found: list[str] = []
    if _mig_mode(nvml, gpu):
        for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
            with suppress(Exception):  # a place without an instance
                found.append(_text(nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index))))
    return found


def _library() -> Any:
    import pynvml

    return pynvml


def _handle(nvml: Any, uuid: str | None, pci: str | None) -> Any:
    """The GPU or MIG instance with that UUID, else the GPU at that address. CUDA tells an instance's UUID bare."""
    if uuid is None and pci is None:
        raise LookupError("torch tells neither the GPU's UUID nor its PCI address")
    refusals: list[Exception] = []
    named = [] if uuid is None else [uuid, f"MIG-{uuid.removeprefix('GPU-')}"]
    for name in dict.fromkeys(named):
        try:
            return nvml.nvmlDeviceGetHandleByUUID(name)
        except Exception as error:  # not found, in the words of whichever binding this is
            refusals.append(error)
    if pci is not None:
        return nvml.nvmlDeviceGetHandleByPciBusId(pci)
    raise refusals[0]


def _is_instance(nvml: Any, handle: Any) -> bool:
    """Whether a handle is a MIG instance's. A driver that knows none says so by an error."""
    with suppress(Exception):
        return bool(_number(nvml.nvmlDeviceIsMigDeviceHandle(handle)))
    return False


def _mig_mode(nvml: Any, gpu: Any) -> bool:
    """Whether the GPU is divided. A driver or a GPU without MIG says so by an error."""
    with suppress(Exception):
        return bool(nvml.nvmlDeviceGetMigMode(gpu)[0] == 1)
    return False


def _renamed(nvml: Any, names: Sequence[str], *args: Any) -> Any:
    """A call that has had several names: a binding may know one that the driver lacks."""
    calls = [call for name in names if (call := getattr(nvml, name, None)) is not None]
    if not calls:
        raise LookupError(f"this binding has no {names[0]}")
    for call in calls[:-1]:
        with suppress(Exception):
            return call(*args)
    return calls[-1](*args)


def _fields(nvml: Any, handle: Any, numbers: Collection[int]) -> dict[int, int | None]:
    """Field values by number; None for one that is refused."""
    members = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}
    return {
        each.fieldId: getattr(each.value, members[each.valueType]) if each.nvmlReturn == SUCCESS else None
        for each in nvml.nvmlDeviceGetFieldValues(handle, list(numbers))
    }


def _field(nvml: Any, handle: Any, number: int) -> int:
    value = _fields(nvml, handle, [number]).get(number)
    if value is None:
        raise LookupError("Not Supported")
    return value


def _event_ns(nvml: Any, handle: Any) -> dict[str, int]:
    """The counters the driver has; LookupError where it has none."""
    values = _fields(nvml, handle, EVENT_FIELDS.values())
    found = {name: values.get(number) for name, number in EVENT_FIELDS.items()}
    counted = {name: int(ns) for name, ns in found.items() if ns is not None and ns not in NOT_AVAILABLE}
    if not counted:
        raise LookupError("Not Supported")
    return counted


def _remapped(rows: Sequence[int]) -> dict[str, int]:
    """Rows of memory that were replaced: after errors that were corrected and others; a pending replacement needs a
    reset of the GPU, one that failed a new GPU."""
    return dict(zip(("correctable", "uncorrectable", "pending", "failure"), map(_number, rows), strict=True))


def _used(nvml: Any, handle: Any) -> int:
    """What processes use, of a driver that can tell it from what it keeps itself; else both together. Some drivers
    answer 0 of 0 bytes where there is no memory of the GPU's own."""
    try:
        memory = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    except Exception:  # the binding or the driver knows only the first version
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    _positive(memory.total)
    return _number(memory.used)


def _number(value: Any) -> int:
    """An integer that is one; LookupError for what stands for none."""
    plain = getattr(value, "value", value)
    if plain is None or plain in NOT_AVAILABLE:
        raise LookupError("NVML has no value for it")
    return int(plain)


def _positive(value: Any) -> int:
    """An integer above 0: some drivers answer 0 for what they do not support."""
    number = _number(value)
    if number <= 0:
        raise LookupError(f"NVML says {number}, which means nothing")
    return number


def _percent(value: Any) -> int:
    number = _number(value)
    if number > 100:
        raise LookupError(f"NVML says {number} %")
    return number


def _watts(milliwatts: Any) -> float:
    return _positive(milliwatts) / 1000


def _merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    refused = {**first.pop("unavailable", {}), **second.pop("unavailable", {})}
    return {**first, **second, **({"unavailable": refused} if refused else {})}


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _is_unsupported(error: BaseException) -> bool:
    return "Not Supported" in str(error) or "NotSupported" in type(error).__name__


def _words(error: BaseException) -> str:
    if isinstance(error, LookupError) and error.args and not isinstance(error, KeyError | IndexError):
        return str(error)
    return f"{type(error).__name__}: {error}".splitlines()[0] if str(error) else type(error).__name__
