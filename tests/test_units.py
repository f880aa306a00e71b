from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench import units
from gpubench.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60s", 60.0),
        ("200ms", 0.2),
        ("2m", 120.0),
        ("2 min", 120.0),
        ("0.5 s", 0.5),
        ("1h", 3600.0),
        ("10us", 1e-5),
        ("10µs", 1e-5),  # micro sign
        ("10μs", 1e-5),  # Greek mu
        ("5e-1s", 0.5),
        (" 3s ", 3.0),
        ("0s", 0.0),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert units.parse_duration(text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize("text", ["60", "0.5", "1e3"])
def test_a_duration_without_a_unit_says_the_units(text: str) -> None:
    with pytest.raises(UsageError, match=r"has no unit \(one of ns, us, ms, s, m, h"):
        units.parse_duration(text)


@pytest.mark.parametrize(
    "text", ["", "s", "-1s", "+1s", "nan", "infs", "1e999s", "1,5s", "1h30m", "60 parsecs", "1_0s", "１s", "60S"]
)
def test_durations_refused(text: str) -> None:
    with pytest.raises(UsageError) as error:
        units.parse_duration(text)
    assert "\n" not in str(error.value)
    assert error.value.hint


@pytest.mark.parametrize(
    ("text", "fraction"),
    [("0.5%", 0.005), ("0.005", 0.005), ("3 %", 0.03), ("5e-3", 0.005), ("0", 0.0), ("100%", 1.0), ("0.999", 0.999)],
)
def test_percentages(text: str, fraction: float) -> None:
    assert units.parse_percent(text) == fraction


@pytest.mark.parametrize("text", ["3", "1", "1.0", "nan", "inf", "-1%", "-0.1", "%", "", "1e999", "1e999%", "5pct"])
def test_percentages_refused(text: str) -> None:
    with pytest.raises(UsageError):
        units.parse_percent(text)


def test_a_bare_number_is_told_to_take_a_percent_sign() -> None:
    with pytest.raises(UsageError, match=r"\(3% if that is meant\)"):
        units.parse_percent("3")


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (0.5, "0.500 ns"),
        (62, "62.0 ns"),
        (999.4, "999 ns"),
        (999.7, "1.00 µs"),
        (3620, "3.62 µs"),
        (36_200, "36.2 µs"),
        (1_391_000, "1.39 ms"),
        (2e9, "2.00 s"),
        (59.9e9, "59.9 s"),
        (59.99e9, "1.00 min"),
        (90e9, "1.50 min"),
        (7200e9, "120 min"),
        (-3620, "-3.62 µs"),
    ],
)
def test_format_duration(ns: float, text: str) -> None:
    assert units.format_duration(ns) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (781e12, "FLOP/s", "781 TFLOP/s"),
        (66.9e12, "FLOP/s", "66.9 TFLOP/s"),
        (999.8e9, "FLOP/s", "1.00 TFLOP/s"),
        (51.3e9, "FLOP/s", "51.3 GFLOP/s"),
        (2e6, "FLOP/s", "0.00200 GFLOP/s"),
        (4.69e12, "B/s", "4690 GB/s"),
        (22.5e12, "B/s", "22500 GB/s"),
        (12.34e9, "B/s", "12.3 GB/s"),
        (1980.4, "MHz", "1980 MHz"),
        (0, "B/s", "0 GB/s"),
        (1.054e-12, "J/FLOP", "1.05 pJ/FLOP"),
        (2.2e-9, "J/B", "2200 pJ/B"),
        (0.1442, "J", "144 mJ"),
        (3.6e-5, "J", "36.0 µJ"),
        (12.0, "J", "12.0 J"),
        (691.4, "W", "691 W"),
    ],
)
def test_format_rate(value: float, unit: str, text: str) -> None:
    assert units.format_rate(value, unit) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (512, "512 B"), (1000, "1.00 kB"), (50e6, "50.0 MB"), (141e9, "141 GB")]
)
def test_format_bytes_is_decimal(value: float, text: str) -> None:
    assert units.format_bytes(value) == text


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_quantity_is_not_printed(value: float) -> None:
    with pytest.raises(ValueError, match="no quantity"):
        units.format_rate(value, "B/s")


@given(st.floats(min_value=1e-3, max_value=1e18))
def test_three_digits_are_right_and_plain(value: float) -> None:
    text = units.three_digits(value)
    assert float(text) == pytest.approx(value, rel=5.1e-3)
    assert "e" not in text.lower()
    assert len(text.replace(".", "").lstrip("0")) >= 3


@given(st.floats(min_value=1.0, max_value=1e12))
def test_a_duration_reads_back(ns: float) -> None:
    assert units.parse_duration(units.format_duration(ns)) == pytest.approx(ns / 1e9, rel=5.1e-3)


@pytest.mark.parametrize(
    ("value", "text"),
    [(16777216, "16777216"), (2048.0, "2048"), (-4096, "-4096"), (999, "999"), (8, "8.00"), (0, "0"), (1234.5, "1230")],
)
def test_whole_numbers_that_are_exact_keep_their_digits(value: float, text: str) -> None:
    assert units.exact_digits(value) == text


@pytest.mark.parametrize(
    ("percent", "words"),
    [
        (0.0, "<0.1 %"),
        (0.0999, "<0.1 %"),
        (0.1, "0.1 %"),
        (0.3, "0.3 %"),
        (9.96, "10.0 %"),
        (27.04, "27.0 %"),
        (420.0, "420 %"),
        (12_345.0, "12300 %"),
    ],
)
def test_a_half_width_is_never_in_scientific_notation(percent: float, words: str) -> None:
    assert units.format_half_width(percent) == words


@pytest.mark.parametrize(
    ("percent", "text"),
    [
        (0.0999, "<0.1 %"),
        (0.1, "0.1 %"),
        (0.34, "0.3 %"),
        (9.96, "10.0 %"),
        (27, "27.0 %"),
        (99.97, "100 %"),
        (420, "420 %"),
    ],
)
def test_a_half_width_is_as_fine_as_it_is_known(percent: float, text: str) -> None:
    assert units.format_half_width(percent) == text
