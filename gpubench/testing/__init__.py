"""A device that is not there: FakeDevice and FakeNvml, for our tests and for authors of suites."""

from gpubench.testing.device import FakeDevice
from gpubench.testing.nvml import FAKE_ANSWERS, FAKE_FIELDS, FakeGpu, FakeNvml, FakeNvmlError
from gpubench.testing.timers import FakeSampler

__all__ = ["FAKE_ANSWERS", "FAKE_FIELDS", "FakeDevice", "FakeGpu", "FakeNvml", "FakeNvmlError", "FakeSampler"]
