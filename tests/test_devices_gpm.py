"""The counter of energy and GPM: there, refused, absent, on a MIG instance. A fake speaks NVML's side."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from gpubench.devices.gpm import METRICS
from gpubench.devices.nvml import Nvml
from gpubench.testing import FakeGpu, FakeNvml, FakeNvmlError

UUID = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"


class Hopper(FakeNvml):
    """A GPU that has GPM: sample number i was taken after i seconds, and the units were busy 90, 40, … percent."""

    def __init__(self, *gpus: FakeGpu, refused: tuple[int, ...] = (), **calls: Any) -> None:
        super().__init__(*gpus, **calls)
        self.now = 0
        self.live = 0
        self.refused = refused
        self.windows: list[tuple[int, int]] = []

    def c_nvmlGpmMetricsGet_t(self) -> Any:
        return SimpleNamespace(metrics=[SimpleNamespace(metricId=0, nvmlReturn=-1, value=-1.0) for _ in range(477)])

    def _nvmlGpmQueryDeviceSupport(self, gpu: FakeGpu) -> Any:
        return SimpleNamespace(isSupportedDevice=1)

    def _nvmlGpmSampleAlloc(self) -> Any:
        self.live += 1
        return SimpleNamespace(taken=None)

    def _nvmlGpmSampleGet(self, gpu: FakeGpu, sample: Any) -> Any:
        self.now += 1
        sample.taken = self.now
        return sample

    def _nvmlGpmMetricsGet(self, asked: Any) -> Any:
        assert asked.version == 1
        self.windows.append((asked.sample1.taken, asked.sample2.taken))
        shares = dict(zip(METRICS.values(), (90.0, 40.0, 72.5, 11.0), strict=True))
        for metric in asked.metrics[: asked.numMetrics]:
            metric.nvmlReturn = 3 if metric.metricId in self.refused else 0
            metric.value = shares[metric.metricId]
        return asked

    def _nvmlGpmSampleFree(self, sample: Any) -> None:
        self.live -= 1


def test_activity_is_that_between_two_calls() -> None:
    library = Hopper()
    gpm = Nvml(UUID, library).gpm()
    assert gpm.window() is None
    expected = {"sm_activity": 0.9, "sm_occupancy": 0.4, "tensor_activity": 0.725, "dram_bandwidth": 0.11}
    assert [gpm.window(), gpm.window()] == [pytest.approx(expected)] * 2
    assert library.windows == [(1, 2), (2, 3)], "windows that follow each other, oldest first"
    gpm.close()
    assert library.live == 0


def test_a_metric_that_is_not_a_number_is_left_out() -> None:
    class Torn(Hopper):
        def _nvmlGpmMetricsGet(self, asked: Any) -> Any:
            super()._nvmlGpmMetricsGet(asked).metrics[0].value = math.nan
            return asked

    gpm = Nvml(UUID, Torn()).gpm()
    gpm.window()
    assert gpm.window() == pytest.approx({"sm_occupancy": 0.4, "tensor_activity": 0.725, "dram_bandwidth": 0.11})


def test_samples_that_cannot_be_given_back_cost_nothing() -> None:
    def refuse(sample: Any) -> None:
        raise FakeNvmlError("Invalid Argument")

    gpm = Nvml(UUID, Hopper(nvmlGpmSampleFree=refuse)).gpm()
    gpm.close()


def test_a_metric_that_is_refused_is_left_out() -> None:
    gpm = Nvml(UUID, Hopper(refused=(METRICS["tensor_activity"],))).gpm()
    gpm.window()
    assert "tensor_activity" not in (gpm.window() or {})


@pytest.mark.parametrize(
    ("library", "words"),
    [
        (FakeNvml(nvmlGpmQueryDeviceSupport=lambda gpu: SimpleNamespace(isSupportedDevice=0)), "has no GPM"),
        (FakeNvml(nvmlGpmQueryDeviceSupport=lambda gpu: FakeNvmlError("Function Not Found")), "Function Not Found"),
        (FakeNvml(nvmlGpmQueryDeviceSupport=None), "nvmlGpmQueryDeviceSupport"),
        (FakeNvml(nvmlInit=lambda: FakeNvmlError("Driver Not Loaded")), "Driver Not Loaded"),
    ],
)
def test_why_there_is_no_gpm(library: FakeNvml, words: str) -> None:
    with pytest.raises(LookupError, match=words):
        Nvml(UUID, library).gpm()


def test_a_reading_that_fails_is_no_failure_of_the_case() -> None:
    gpm = Nvml(UUID, Hopper(nvmlGpmSampleGet=lambda gpu, sample: FakeNvmlError("No Permission"))).gpm()
    with pytest.raises(LookupError, match="No Permission"):
        gpm.window()


def test_joules() -> None:
    gpu = FakeGpu(answers={"GetTotalEnergyConsumption": 123_456_789})
    assert Nvml(UUID, FakeNvml(gpu)).joules() == pytest.approx(123_456.789)


@pytest.mark.parametrize(
    ("answers", "words"),
    [({}, "Not Supported"), ({"GetTotalEnergyConsumption": 0}, "means nothing")],
)
def test_why_there_is_no_energy(answers: dict[str, Any], words: str) -> None:
    with pytest.raises(LookupError, match=words):
        Nvml(UUID, FakeNvml(FakeGpu(answers=answers))).joules()


def test_the_whole_gpu_s_energy_is_no_instance_s() -> None:
    instance = FakeGpu(uuid="MIG-1")
    gpu = FakeGpu(instances=[instance], answers={"GetTotalEnergyConsumption": 5000, "GetMigMode": [1, 1]})
    for read in (Nvml("MIG-1", Hopper(gpu)).joules, Nvml("MIG-1", Hopper(gpu)).gpm):
        with pytest.raises(LookupError, match="MIG"):
            read()


def test_a_pulse_is_a_small_part_of_a_snapshot() -> None:
    gpu = FakeGpu(answers={"GetCurrentClocksEventReasons": 0x4})
    library = FakeNvml(gpu)
    assert Nvml(UUID, library).pulse() == {
        "power_w": 128.383,
        "temperature_c": 41,
        "clock_events": ["software power cap"],
    }
    refusing = FakeGpu(answers={"GetTemperature": FakeNvmlError("Not Supported")}, fields={})
    found = Nvml(UUID, FakeNvml(refusing)).pulse()
    assert (found["power_w"], found["temperature_c"]) == (None, None)
    assert set(found["unavailable"]) == {"power_w", "temperature_c"}
