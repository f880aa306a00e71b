"""The axes of a figure: scale, ticks and the unit that they are written in, from the values to be shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from gpubench.report.canvas import Scale, linear_ticks, log_ticks, prefix, si
from gpubench.report.figures.shapes import Quantity, say
from gpubench.report.roofline_plot import fine_ticks

SPAN = 40.0
"""A vertical axis is logarithmic where the highest value is this many times the lowest, unless its figure says."""
CROWDED = 8
"""A horizontal one, where the highest is over this many times the middle one; or that many times the lowest, each STEP
times the one before."""
STEP = 1.5
ROOM = 1.08
"""How far an axis reaches beyond the highest value."""
SHORTEST = 4.0
"""A logarithmic axis across is at least from a value to this many times it: so there is a power of two on it."""
WIDE = 1e4
"""A logarithmic axis over more than this has the unit at each tick, with the prefix that suits it."""
PREFIXED = frozenset({"ns", "B", "B/s", "FLOP/s"})
"""Base units that are written with a prefix."""
_TIME = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


@dataclass(frozen=True)
class Axis:
    """A scale over values in base units; its ticks with their names; the title with the unit that these are in."""

    scale: Scale
    ticks: dict[float, str]
    title: str


def across(quantity: Quantity, values: Sequence[float], most: int) -> Axis:
    """The horizontal axis over these values, at least one, with room at both ends and at most about `most` ticks."""
    low, high = min(values), max(values)
    ordered = sorted(set(values))
    log = quantity.log
    if log is None:
        crowded = ordered[len(ordered) // 2] * CROWDED < high
        grows = high >= CROWDED * low and all(after >= STEP * before for before, after in pairwise(ordered))
        log = low > 0 and high > low and (crowded or grows)
    if log and low > 0:
        room = max((high / low) ** 0.03, 1.08, (SHORTEST * low / high) ** 0.5)
        return _log(quantity, Scale(low / room, high * room, log=True), most, binary=quantity.unit not in PREFIXED)
    pad = (high - low) / 40 or abs(low) / 4 or 1.0
    begin = max(low - pad, 0.0) if low > 0 else low - pad
    axis = _linear(quantity, Scale(begin, high + pad), most)
    if quantity.unit or not all(float(value).is_integer() for value in values):
        return axis
    whole = {tick: name for tick, name in axis.ticks.items() if float(name).is_integer()}  # counts have no halves
    return replace(axis, ticks=whole or axis.ticks)


def upwards(quantity: Quantity, values: Sequence[float], most: int) -> Axis:
    """The vertical axis over these values, at least one: from zero, or logarithmic where they are far apart."""
    low, high = min(values), max(values)
    log = quantity.log
    if log is None:
        log = low > 0 and high > SPAN * low
    if log and low > 0:
        room = max((high / low) ** 0.05, 1.15)
        low, high = low / room, high * room
        if high < 10 * low:
            middle = (low * high) ** 0.5
            low, high = middle / 10**0.5, middle * 10**0.5
        return _log(quantity, Scale(low, high, log=True), most, binary=False)
    top = ROOM * max(high, 0.0) or 1.0
    return _linear(quantity, Scale(min(0.0, ROOM * low), top), most)


def around(quantity: Quantity, values: Sequence[float], most: int) -> Axis:
    """A horizontal axis of differences or ratios, as near to the values as they allow."""
    low, high = min(values), max(values)
    pad = (high - low) * 0.06 or abs(low) * 0.05 or 1.0
    return _linear(quantity, Scale(low - pad, high + pad), most)


def unit_of(unit: str, top: float) -> tuple[float, str]:
    """What to divide values in a base unit by on an axis up to `top`, and the unit that they are then in."""
    if unit == "ns":
        return next((each for each in _TIME if top >= each[0]), _TIME[-1])
    if unit == "B/s":
        return 1e9, "GB/s"
    if unit in PREFIXED:
        factor, letter = prefix(top)
        return factor, letter + unit
    return 1.0, unit


def titled(name: str, unit: str) -> str:
    """The title of an axis: its quantity and, where it has one, the unit."""
    return f"{name}, {unit}" if unit else name


def _linear(quantity: Quantity, scale: Scale, most: int) -> Axis:
    factor, unit = unit_of(quantity.unit, max(abs(scale.low), abs(scale.high)))
    ticks = linear_ticks(scale.low / factor, scale.high / factor, max(most, 2))
    return Axis(scale, {tick * factor: f"{tick:.6g}" for tick in ticks}, titled(quantity.name, unit))


def _log(quantity: Quantity, scale: Scale, most: int, binary: bool) -> Axis:
    if quantity.unit == "iB":
        return Axis(scale, {tick: say(tick, "iB") for tick in log_ticks(scale.low, scale.high, most, 2)}, quantity.name)
    if binary:
        ticks = log_ticks(scale.low, scale.high, most, base=2)
        return Axis(scale, {tick: _power(tick) for tick in ticks}, titled(quantity.name, quantity.unit))
    ticks = fine_ticks(scale, most)
    if quantity.unit in PREFIXED and scale.high > WIDE * scale.low:
        return Axis(scale, {tick: _with_unit(tick, quantity.unit) for tick in ticks}, quantity.name)
    factor, unit = unit_of(quantity.unit, scale.high / 10)
    return Axis(scale, {tick: _short(tick / factor) for tick in ticks}, titled(quantity.name, unit))


def _with_unit(value: float, unit: str) -> str:
    factor, letters = unit_of(unit, value)
    return f"{value / factor:.3g} {letters}"


def _short(value: float) -> str:
    """A round value without a unit: 0.05, 200, 50 k; far below one as a power of ten."""
    if 0 < abs(value) < 1e-4:
        return f"{value:.0e}".replace("e-0", "e-")
    return f"{value:.6g}" if abs(value) < 1e5 else si(value)


def _power(value: float) -> str:
    """A power of two: 1024, 2^20."""
    return f"{value:.0f}" if value < 1e6 else f"2^{int(value).bit_length() - 1}"
