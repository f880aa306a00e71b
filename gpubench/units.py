"""Quantities in words: what a user types, read strictly; what a table shows, in three significant digits.

Decimal SI throughout (MB = 10^6 bytes). Bandwidths are always in GB/s and arithmetic in GFLOP/s or TFLOP/s, so that the
rows of one column can be compared at a glance.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_EVEN, Context, Decimal

from gpubench.errors import UsageError

SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
"""What a unit of time a user may type is in seconds."""

ENERGIES = {
    "J": {"µ": 1e-6, "m": 1e-3, "": 1.0},
    "J/FLOP": {"p": 1e-12},
    "J/B": {"p": 1e-12},
}
"""Units of energy and the prefixes they are shown with. Per flop and per byte always in pJ, so that rows compare."""

_NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_DURATION = re.compile(rf"({_NUMBER})\s*([a-zµμ]*)")
_PERCENT = re.compile(rf"({_NUMBER})\s*(%?)")
_THREE = Context(prec=3, rounding=ROUND_HALF_EVEN)


def parse_duration(text: str) -> float:
    """Seconds of `60s`, `200ms`, `2m`, `0.5 s` or `1h`; UsageError where the unit is missing or unknown."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is not a duration", "such as 60s, 200ms or 2m")
    number, unit = found[1], found[2].replace("μ", "µ")  # the Greek letter for the micro sign
    if unit not in SECONDS:
        problem = f"has no unit {unit!r}" if unit else "has no unit"
        raise UsageError(f"the duration {text!r} {problem}", "one of ns, us, ms, s, m, h, such as 60s")
    seconds = float(number) * SECONDS[unit]
    if math.isinf(seconds):
        raise UsageError(f"the duration {text!r} is not finite", "such as 60s")
    return seconds


def parse_percent(text: str) -> float:
    """The fraction that `0.5%` or `0.005` means; without % it must be below 1, so that 3 is never read as 300 %."""
    found = _PERCENT.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is not a percentage", "such as 0.5% or 0.005")
    value = float(found[1])
    if found[2]:
        value = float(Decimal(found[1]) / 100) if math.isfinite(value) else value
    elif value >= 1:
        raise UsageError(f"{text!r} is neither a percentage nor a fraction below 1", f"{found[1]}% if that is meant")
    if math.isinf(value):
        raise UsageError(f"the percentage {text!r} is not finite", "such as 0.5%")
    return value


def three_digits(value: float) -> str:
    """A finite number in three significant digits, never in scientific notation: 0.0312, 3.60, 36.2, 4690."""
    rounded = _THREE.create_decimal(repr(float(value)))
    if not rounded.is_finite():
        raise ValueError(f"{value} is no quantity")
    if not rounded:
        return "0"
    places = max(0, 2 - rounded.adjusted())
    return f"{rounded:.{places}f}"


def exact_digits(value: float) -> str:
    """A number that is known exactly: a whole one of four digits or more in all of them, any other in three."""
    return f"{value:.0f}" if abs(value) >= 1000 and float(value).is_integer() else three_digits(value)


def format_half_width(percent: float) -> str:
    """The half-width of an interval, in % of what it is about: `<0.1 %`, `0.3 %`, `27.0 %`, `420 %`."""
    return f"{'<0.1' if percent < 0.1 else f'{percent:.1f}' if percent < 10 else three_digits(percent)} %"


def format_duration(ns: float) -> str:
    """A time in ns in the unit that suits it: `62.0 ns`, `3.62 µs`, `1.39 ms`, `2.00 s`, `1.50 min`."""
    return _scaled(ns, [(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s"), (60e9, "min")])


def format_rate(value: float, unit: str) -> str:
    """A rate in SI base units: `781 TFLOP/s` of FLOP/s, `4690 GB/s` of B/s (always GB/s); an energy with its prefix:
    `1.05 pJ/FLOP` of J/FLOP, `144 mJ` of J; other units as they are."""
    if unit == "B/s":
        return f"{three_digits(value / 1e9)} GB/s"
    if unit == "FLOP/s":
        return _scaled(value, [(1e9, "GFLOP/s"), (1e12, "TFLOP/s")])
    if unit in ENERGIES:
        return _scaled(value, [(size, letter + unit) for letter, size in ENERGIES[unit].items()])
    return f"{three_digits(value)} {unit}"


def format_bytes(value: float) -> str:
    """An amount of memory, decimal: `512 B`, `50.3 MB`, `141 GB`."""
    if abs(value) < 1000 and value == int(value):
        return f"{int(value)} B"
    return _scaled(value, [(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")])


def _scaled(value: float, units: list[tuple[float, str]]) -> str:
    """In the largest unit that leaves a 1 before the point, judged after rounding: 999.7 ns is 1.00 µs."""
    fitting = [(size, unit) for size, unit in units if abs(float(three_digits(value / size))) >= 1]
    size, unit = fitting[-1] if fitting else units[0]
    return f"{three_digits(value / size)} {unit}"
