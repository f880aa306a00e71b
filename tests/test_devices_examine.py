"""How much equal samples differ, of a scripted clock and of this CPU."""

from __future__ import annotations

import pytest

from gpubench.devices.cpu import CpuDevice
from gpubench.devices.examine import SAMPLES, noise
from gpubench.result import Conditions
from gpubench.testing import FakeDevice
from gpubench.workload import Workload


def test_noise_of_a_scripted_clock() -> None:
    """Every tenth sample is late, of every five one is early."""
    device = FakeDevice(noise=lambda i: 2.0 if i % 10 == 0 else 0.9 if i % 5 == 1 else 1.0)
    work = Workload(lambda: device.spend(1000), None, lambda: None, "none")
    found = noise(device.sampler([work], Conditions(), "fake"))
    assert found == {
        "timer": "fake",
        "samples": SAMPLES,
        "median_ns": 1000,
        "p10_ns": 900,
        "p90_ns": pytest.approx(1000, rel=0.11),
    }


def test_noise_of_this_cpu() -> None:
    found = CpuDevice().examine()["noise"]
    assert found["timer"] == "host"
    assert 1e3 < found["p10_ns"] <= found["median_ns"] <= found["p90_ns"] < 1e10
