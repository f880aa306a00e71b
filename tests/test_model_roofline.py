"""The roofline model: exact at, below and above the ridge."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.model import roofline

positive = st.floats(min_value=1e-3, max_value=1e18)


def test_intensity_is_flops_per_byte() -> None:
    assert roofline.intensity(12, 4) == 3.0
    assert roofline.intensity(0, 4) == 0.0


@pytest.mark.parametrize(("flops", "nbytes"), [(1, 0), (1, -4), (-1, 4)])
def test_intensity_refuses_what_has_no_ratio(flops: int, nbytes: int) -> None:
    with pytest.raises(ValueError, match="bytes > 0"):
        roofline.intensity(flops, nbytes)


@pytest.mark.parametrize(
    ("intensity", "rate", "bound"),
    [
        (0.0, 0.0, "memory"),
        (1.0, 10.0, "memory"),
        (9.99, 99.9, "memory"),
        (10.0, 100.0, "compute"),
        (50.0, 100.0, "compute"),
    ],
)
def test_roof_of_peak_100_and_bandwidth_10(intensity: float, rate: float, bound: str) -> None:
    assert roofline.ridge(100, 10) == 10
    assert roofline.attainable(intensity, 100, 10) == pytest.approx(rate)
    assert roofline.bound(intensity, 100, 10) == bound


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_a_ceiling_that_is_no_number_is_refused(bad: float) -> None:
    for call in (
        lambda: roofline.ridge(bad, 1),
        lambda: roofline.ridge(1, bad),
        lambda: roofline.attainable(1, bad, 1),
    ):
        with pytest.raises(ValueError, match="positive"):
            call()


@given(positive, positive, positive)
def test_the_roof_is_under_both_lines_and_touches_one(intensity: float, peak: float, bandwidth: float) -> None:
    roof = roofline.attainable(intensity, peak, bandwidth)
    assert roof <= peak
    assert roof <= intensity * bandwidth
    assert roof in (peak, intensity * bandwidth)
