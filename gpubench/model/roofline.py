"""The roofline: the rate a device can give a workload of known arithmetic intensity.

S. Williams, A. Waterman, D. Patterson: "Roofline: an insightful visual performance model for multicore architectures",
Communications of the ACM 52(4), 2009, doi:10.1145/1498765.1498785. Intensity is in FLOP/B (an FMA is 2 FLOP; bytes are
the compulsory bytes of the algorithm), rates are in FLOP/s, bandwidths in B/s.
"""

from __future__ import annotations

from math import isfinite
from typing import Literal

Bound = Literal["memory", "compute"]


def intensity(flops: float, nbytes: float) -> float:
    """Arithmetic intensity in FLOP/B. ValueError where no byte moves: the ratio has no meaning there."""
    if nbytes <= 0 or flops < 0:
        raise ValueError(f"intensity needs flops >= 0 and bytes > 0, not {flops} and {nbytes}")
    return flops / nbytes


def attainable(intensity: float, peak: float, bandwidth: float) -> float:
    """The roof over an intensity, in FLOP/s: min(peak, intensity · bandwidth)."""
    _positive(peak=peak, bandwidth=bandwidth)
    return min(peak, intensity * bandwidth)


def ridge(peak: float, bandwidth: float) -> float:
    """The intensity, in FLOP/B, from which on the peak and no longer the memory is the limit."""
    _positive(peak=peak, bandwidth=bandwidth)
    return peak / bandwidth


def bound(intensity: float, peak: float, bandwidth: float) -> Bound:
    """Which roof is over an intensity: "memory" left of the ridge, "compute" from the ridge on."""
    return "memory" if intensity < ridge(peak, bandwidth) else "compute"


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not (isfinite(value) and value > 0):
            raise ValueError(f"{name} must be a positive number, not {value}")
