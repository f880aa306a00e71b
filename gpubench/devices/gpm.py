"""What the units of a GPU did over a stretch of time, by NVML's GPM: Hopper and later, counted by the hardware.

It holds for the whole GPU and for everything that ran on it meanwhile. NVML's library and the GPU's handle are passed
in: `gpubench.devices.nvml` alone imports the binding.
"""

from __future__ import annotations

from contextlib import suppress
from math import isfinite
from typing import Any

METRICS = {"sm_activity": 2, "sm_occupancy": 3, "tensor_activity": 5, "dram_bandwidth": 10}
"""GPM's numbers of what is asked for, which are NVML's interface: multiprocessors that were busy, warps active of those
possible, time of the tensor cores, DRAM bandwidth used of the highest there is. All come in percent."""
SUCCESS = 0
VERSION = 1
"""Of the structure that metrics are asked by."""


class Gpm:
    """The counters of one GPU, read from one moment to the next. LookupError where the GPU or the driver has none."""

    def __init__(self, nvml: Any, gpu: Any) -> None:
        if not nvml.nvmlGpmQueryDeviceSupport(gpu).isSupportedDevice:
            raise LookupError("this GPU has no GPM (Hopper and later have)")
        self._nvml = nvml
        self._gpu = gpu
        self._samples = [nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()]
        self._taken = 0

    def window(self) -> dict[str, float] | None:
        """Each of METRICS, as a share from 0 to 1, since this was last called; None the first time. A metric that this
        GPU does not have is left out. LookupError says why there is nothing."""
        older, newer = self._samples
        try:
            self._nvml.nvmlGpmSampleGet(self._gpu, newer)
            self._samples = [newer, older]
            self._taken += 1
            return None if self._taken < 2 else self._between(older, newer)
        except Exception as error:  # whatever the binding raises: this is optional
            raise LookupError(f"GPM: {error}") from error

    def _between(self, older: Any, newer: Any) -> dict[str, float]:
        nvml = self._nvml
        asked = nvml.c_nvmlGpmMetricsGet_t()
        asked.version, asked.numMetrics = VERSION, len(METRICS)
        asked.sample1, asked.sample2 = older, newer
        for index, number in enumerate(METRICS.values()):
            asked.metrics[index].metricId = number
        nvml.nvmlGpmMetricsGet(asked)
        answers = zip(METRICS, asked.metrics, strict=False)
        known = ((name, answer.value) for name, answer in answers if answer.nvmlReturn == SUCCESS)
        return {name: value / 100 for name, value in known if isfinite(value)}  # no run file holds a NaN

    def close(self) -> None:
        """Give the samples back."""
        for sample in self._samples:
            with suppress(Exception):  # optional, as above: it must not cost the row whose activity was read
                self._nvml.nvmlGpmSampleFree(sample)
        self._samples = []
