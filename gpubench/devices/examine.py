"""What `gpubench doctor` learns of a device by using it: how much samples differ that should be equal."""

from __future__ import annotations

from typing import Any

from gpubench.devices import Sampler
from gpubench.stats import percentile

SAMPLES = 50
"""Samples the noise is taken from."""


def noise(sampler: Sampler) -> dict[str, Any]:
    """The spread of samples of one call: median, first and last tenth, each in ns of one call."""
    sampler.warm_up()
    batch = sampler.batch(SAMPLES)
    values = sorted(ns / launches for ns, launches in zip(batch.gpu_ns, batch.launches, strict=True))
    low, middle, high = (percentile(values, part) for part in (0.1, 0.5, 0.9))
    return {"timer": sampler.timer.name, "samples": len(values), "median_ns": middle, "p10_ns": low, "p90_ns": high}
