"""The door of cupti-python: activity records from CUPTI itself, without a profiler in between.

CUPTI hands its records to whoever registered for them last, and a session here registers anew. But torch's profiler
also gives CUPTI another clock, for good: once it has run in a process, the times here are wrong. See activities.agree.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch

from gpubench.devices import Call
from gpubench.devices.activities import Activity, in_order
from gpubench.devices.tensors import first_line
from gpubench.errors import TimerFailed

BUFFER_BYTES = 8 << 20
"""Room for the records of one session; CUPTI asks for another buffer where it does not suffice."""
FLUSH_FORCED = 1
"""CUPTI_ACTIVITY_FLAG_FLUSH_FORCED: hand over buffers that are not full, too."""
UNKNOWN_NAME = "unknown"


class CuptiPython:
    """Sessions through the package cupti-python. TimerFailed where it is not installed or CUPTI refuses."""

    name = "cupti-python"

    def __init__(self) -> None:
        if find_spec("cupti") is None:
            raise TimerFailed("cupti-python is not installed")
        try:
            from cupti import cupti
        except Exception as error:  # a broken installation may raise anything
            raise TimerFailed(f"cupti-python cannot be imported: {first_line(error)}") from error
        kinds = cupti.ActivityKind
        self._cupti: Any = cupti
        self._kinds: dict[int, str] = {
            int(kinds.CONCURRENT_KERNEL): "kernel",
            int(kinds.MEMCPY): "memcpy",
            int(kinds.MEMSET): "memset",
        }

    def session(self, work: Call, details: bool = True) -> list[Activity]:
        """See Source; the details are always there."""
        found: list[Activity] = []
        failures: list[str] = []

        def completed(records: Iterable[Any]) -> None:
            """On a thread of CUPTI's, which drops what is raised; the records are gone when this returns."""
            try:
                found.extend(self._activity(record) for record in records if int(record.kind) in self._kinds)
            except Exception as error:
                failures.append(first_line(error))

        torch.cuda.synchronize()
        try:
            self._cupti.activity_register_callbacks(lambda: (BUFFER_BYTES, 0), completed)
            try:
                for kind in self._kinds:
                    self._cupti.activity_enable(kind)
                work()
                torch.cuda.synchronize()
                self._cupti.activity_flush_all(FLUSH_FORCED)
            finally:
                for kind in self._kinds:
                    self._cupti.activity_disable(kind)
        except self._cupti.cuptiError as error:
            raise TimerFailed(f"cupti-python: {first_line(error)}") from error
        if failures:
            raise TimerFailed(f"cupti-python: a record cannot be read: {failures[0]}")
        return in_order(found)

    def _activity(self, record: Any) -> Activity:
        kind = self._kinds[int(record.kind)]
        start, end, correlation = int(record.start), int(record.end), int(record.correlation_id)
        if kind != "kernel":
            return Activity(kind.capitalize(), kind, start, end, correlation)
        return Activity(
            demangled(record.name or UNKNOWN_NAME),
            kind,
            start,
            end,
            correlation,
            grid=(record.grid_x, record.grid_y, record.grid_z),
            block=(record.block_x, record.block_y, record.block_z),
            registers=record.registers_per_thread,
            shared_bytes=record.static_shared_memory + record.dynamic_shared_memory,
        )


@cache
def demangled(name: str) -> str:
    """A C++ symbol as it is written, as torch's profiler gives it; any other name as it is."""
    if not name.startswith("_Z"):
        return name
    try:
        library = ctypes.CDLL("libstdc++.so.6")
    except OSError:
        return name
    demangle = library.__cxa_demangle
    demangle.restype = ctypes.c_void_p
    status = ctypes.c_int()
    address = demangle(name.encode(), None, None, ctypes.byref(status))
    if not address:
        return name
    text = ctypes.string_at(address).decode(errors="replace")
    library.free(ctypes.c_void_p(address))
    return text
