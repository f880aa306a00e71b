"""Sessions through cupti-python, with a package that stands in for it, and demangled names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import IntEnum
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from gpubench.devices.activities import Activity
from gpubench.devices.cupti import CuptiPython, demangled
from gpubench.errors import TimerFailed

FILL = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEEEEvi"


class Kind(IntEnum):
    MEMCPY = 1
    MEMSET = 2
    CONCURRENT_KERNEL = 10
    OVERHEAD = 17


def kernel(start: int, correlation: int, name: str = FILL) -> Any:
    return SimpleNamespace(
        kind=Kind.CONCURRENT_KERNEL, name=name, start=start, end=start + 1952, correlation_id=correlation,
        grid_x=8, grid_y=2, grid_z=1, block_x=128, block_y=1, block_z=1, registers_per_thread=16,
        static_shared_memory=32, dynamic_shared_memory=1024,
    )  # fmt: skip


class FakeCupti:
    """Gives what it is told to, in two buffers, to whoever registered last."""

    class cuptiError(Exception):
        pass

    ActivityKind = Kind

    def __init__(self) -> None:
        self.log: list[str] = []
        self.records: list[Any] = []
        self.failing: str | None = None
        self.completed: Callable[[list[Any]], None] = lambda records: None

    def _called(self, name: str, *arguments: object) -> None:
        self.log.append(" ".join([name, *map(str, arguments)]))
        if self.failing == name:
            raise self.cuptiError("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED")

    def activity_register_callbacks(self, requested: Callable[[], tuple[int, int]], completed: Any) -> None:
        assert requested() == (8 << 20, 0)
        self._called("register")
        self.completed = completed

    def activity_enable(self, kind: int) -> None:
        self._called("enable", int(kind))

    def activity_disable(self, kind: int) -> None:
        self._called("disable", int(kind))

    def activity_flush_all(self, flag: int) -> None:
        self._called("flush", flag)
        self.completed(self.records[:1])
        self.completed(self.records[1:])


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeCupti:
    package: Any = ModuleType("cupti")
    package.__spec__ = ModuleSpec("cupti", None)
    package.cupti = FakeCupti()
    monkeypatch.setitem(sys.modules, "cupti", package)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: package.cupti.log.append("synchronize"))
    made: FakeCupti = package.cupti
    return made


def test_a_session_registers_records_and_turns_recording_off(fake: FakeCupti) -> None:
    source = CuptiPython()
    source.session(lambda: fake.log.append("work"))
    on, off = (["enable 10", "enable 1", "enable 2"], ["disable 10", "disable 1", "disable 2"])
    assert fake.log == ["synchronize", "register", *on, "work", "synchronize", "flush 1", *off]


def test_records_become_activities_in_the_order_of_their_launches(fake: FakeCupti) -> None:
    memset = SimpleNamespace(kind=Kind.MEMSET, start=100, end=1284, correlation_id=3)
    overhead = SimpleNamespace(kind=Kind.OVERHEAD)
    fake.records = [kernel(5000, 4), overhead, memset]
    name = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int)"
    assert CuptiPython().session(lambda: None) == [
        Activity("Memset", "memset", 100, 1284, 3),
        Activity(name, "kernel", 5000, 6952, 4, (8, 2, 1), (128, 1, 1), 16, 1056),
    ]


@pytest.mark.parametrize("failing", ["register", "enable", "flush"])
def test_a_refusal_fails_the_timer(fake: FakeCupti, failing: str) -> None:
    fake.failing = failing
    with pytest.raises(TimerFailed, match=r"cupti-python: .*CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"):
        CuptiPython().session(lambda: None)
    assert ("disable 10" in fake.log) is (failing != "register"), "nothing stays turned on"


def test_recording_is_turned_off_where_the_work_fails(fake: FakeCupti) -> None:
    def work() -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        CuptiPython().session(work)
    assert fake.log[-3:] == ["disable 10", "disable 1", "disable 2"]


def test_a_record_that_cannot_be_read_is_not_passed_over(fake: FakeCupti) -> None:
    """The callback runs where nobody hears what it raises."""
    fake.records = [SimpleNamespace(kind=Kind.MEMSET, start=1, end=2)]
    with pytest.raises(TimerFailed, match="a record cannot be read: AttributeError"):
        CuptiPython().session(lambda: None)


def test_where_it_is_not_installed_or_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpubench.devices.cupti.find_spec", lambda name: None)
    with pytest.raises(TimerFailed, match="cupti-python is not installed"):
        CuptiPython()
    monkeypatch.setattr("gpubench.devices.cupti.find_spec", lambda name: ModuleSpec("cupti", None))
    monkeypatch.setitem(sys.modules, "cupti", ModuleType("cupti"))
    with pytest.raises(TimerFailed, match="cupti-python cannot be imported: ImportError"):
        CuptiPython()


@pytest.mark.parametrize("name", ["nvjet_tst_128x256", "hold", "_Znot a symbol", ""])
def test_what_is_no_symbol_stays(name: str) -> None:
    assert demangled(name) == name
