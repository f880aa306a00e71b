"""What NVML says of one GPU, matched by UUID. Nothing here is needed to measure: what cannot be read is None, with a
reason beside it, and one failed reading leaves the others intact."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

THROTTLES = {
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""Clock-event reasons that spoil a measurement."""
REGIMES = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "software power cap",
    0x10: "sync boost",
    0x100: "display clocks",
}
"""Clock-event reasons that do not: a power cap under a matmul is how the GPU runs."""

EVENT_CALLS = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")


class Nvml:
    """A GPU as NVML sees it. `reason` says why there is nothing to see, or is None."""

    def __init__(self, uuid: str | None, library: Any = None) -> None:
        self.reason: str | None = None
        self._handle: Any = None
        self._nvml = library
        try:
            if self._nvml is None:
                import pynvml

                self._nvml = pynvml
            self._nvml.nvmlInit()
            if uuid is None:
                raise LookupError("torch does not tell the GPU's UUID")
            self._handle = self._nvml.nvmlDeviceGetHandleByUUID(uuid)
        except Exception as error:  # whatever NVML, its binding or a stand-in for it raises: telemetry is optional
            self.reason = f"NVML: {_words(error)}"

    def facts(self) -> dict[str, Any]:
        """What does not change while a run lasts."""
        nvml = self._nvml
        return self._read(
            {
                "driver": lambda h: _text(nvml.nvmlSystemGetDriverVersion()),
                "power_limit_w": lambda h: nvml.nvmlDeviceGetEnforcedPowerLimit(h) / 1000,
                "sm_mhz_max": lambda h: nvml.nvmlDeviceGetMaxClockInfo(h, nvml.NVML_CLOCK_SM),
                "memory_mhz_max": lambda h: nvml.nvmlDeviceGetMaxClockInfo(h, nvml.NVML_CLOCK_MEM),
                "memory_bus_bits": lambda h: nvml.nvmlDeviceGetMemoryBusWidth(h),
                "ecc": lambda h: bool(nvml.nvmlDeviceGetEccMode(h)[0]),
                "mig": lambda h: bool(nvml.nvmlDeviceGetMigMode(h)[0]),
                "persistence": lambda h: bool(nvml.nvmlDeviceGetPersistenceMode(h)),
            }
        )

    def snapshot(self) -> dict[str, Any]:
        """What it is doing now. NVML's clock is polled and its power an average: neither belongs to one kernel."""
        nvml = self._nvml
        now = self._read(
            {
                "sm_mhz": lambda h: nvml.nvmlDeviceGetClockInfo(h, nvml.NVML_CLOCK_SM),
                "memory_mhz": lambda h: nvml.nvmlDeviceGetClockInfo(h, nvml.NVML_CLOCK_MEM),
                "power_w": lambda h: nvml.nvmlDeviceGetPowerUsage(h) / 1000,
                "temperature_c": lambda h: nvml.nvmlDeviceGetTemperature(h, nvml.NVML_TEMPERATURE_GPU),
                "clock_event_bits": lambda h: _event_bits(nvml, h),
            }
        )
        bits = now.get("clock_event_bits")
        if bits is not None:
            names = {**THROTTLES, **REGIMES}
            now["clock_events"] = [name for bit, name in names.items() if bits & bit]
            now["throttled"] = any(bits & bit for bit in THROTTLES)
        return now

    def _read(self, readings: dict[str, Callable[[Any], Any]]) -> dict[str, Any]:
        """Each reading or None, and under "unavailable" why."""
        if self.reason is not None:
            return {**dict.fromkeys(readings), "unavailable": {"nvml": self.reason}}
        values: dict[str, Any] = {}
        refused: dict[str, str] = {}
        for name, read in readings.items():
            try:
                values[name] = read(self._handle)
            except Exception as error:  # as above: one refused counter is one null
                values[name] = None
                refused[name] = _words(error)
        if refused:
            values["unavailable"] = refused
        return values


def _event_bits(nvml: Any, handle: Any) -> int:
    """The bits under either name of the call, renamed in driver 535: a binding may know one the driver lacks."""
    reads = [read for name in EVENT_CALLS if (read := getattr(nvml, name, None)) is not None]
    if not reads:
        raise LookupError("this binding has no call for clock-event reasons")
    for read in reads[:-1]:
        with suppress(Exception):
            return int(read(handle))
    return int(reads[-1](handle))


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0] if str(error) else type(error).__name__
