"""Facts of a device, its software and its host, as `gpubench info` shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from gpubench.report.words import plain
from gpubench.units import format_bytes, format_duration

if TYPE_CHECKING:
    from rich.console import RenderableType

_UNITS = {"mhz": "MHz", "w": "W", "c": "°C", "bits": "bit", "percent": "%"}
"""The last word of a fact's name that is a unit, and how it is written."""
UNIT_WORDS = ("bytes", "ns", *_UNITS)
REASONS, WHOLE = "unavailable", "nvml"
"""Where facts say why some of them are None, by name; and the name under which they say it of all of them."""


@dataclass(frozen=True)
class _Unknown:
    """A fact that could not be had, and why where that is known."""

    reason: object


def table(facts: Mapping[str, Any]) -> RenderableType:
    """Two columns, a heading per section: `facts` is {section: {name: value}}, deeper levels become longer names."""
    from rich.console import Group as Renderables
    from rich.text import Text

    from gpubench.report.grid import Column, Grid

    grid = Grid([Column("fact"), Column("value", fold=True)])
    for section, value in facts.items():
        if not isinstance(value, Mapping):
            grid.add(*_words(str(section), value))
            continue
        grid.add(plain(section), "", style="bold")
        for fact, words in lines(value):
            grid.add(f"  {fact}", words)
    return grid if facts else Renderables(Text("no facts"))


def lines(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The facts of a section in words, deeper levels under longer names: `power limit`, `700 W`."""
    return [_words(name, value) for name, value in _flat(facts)]


def to_json(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts as JSON values: what JSON cannot hold becomes text, a number that is not finite None."""
    return {str(name): _json(value) for name, value in facts.items()}


def _flat(facts: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Names and values, deeper levels after the name they are below. What is None becomes _Unknown with the reason that
    stands under "unavailable" beside it."""
    refused = facts.get(REASONS)
    reasons: Mapping[str, Any] = refused if isinstance(refused, Mapping) else {}
    for name, value in facts.items():
        path = f"{before} {name}".strip()
        if isinstance(value, Mapping) and value:
            if name != REASONS:
                below, unit = _unit_apart(path)
                yield from _flat({f"{inner}{unit}": each for inner, each in value.items()}, below)
        elif value is None:
            yield path, _Unknown(reasons.get(name) or reasons.get(WHOLE))
        else:
            yield path, value


def _unit_apart(path: str) -> tuple[str, str]:
    """The unit that all values below a name share, with the _ before it, and the name without it."""
    rest, _, last = path.rpartition("_")
    return (rest, f"_{last}") if rest and last in UNIT_WORDS else (path, "")


def _unit_last(name: str) -> str:
    """sm_mhz_max → sm_max_mhz: so that it is found."""
    return re.sub(r"_mhz_(\w+)$", r"_\1_mhz", name)


def _words(name: str, value: Any) -> tuple[str, str]:
    """A fact's name in words and its value with a unit, where the last word of the name is one."""
    *rest, last = re.split("[_ ]", _unit_last(name))
    number = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    if number and rest and last in UNIT_WORDS:
        return plain(" ".join(rest)), _quantity(value, last)
    if isinstance(value, _Unknown) and rest and last in UNIT_WORDS:
        return plain(" ".join(rest)), _value(value)
    return plain(name.replace("_", " ")), _value(value)


def _quantity(value: float, unit: str) -> str:
    if unit == "bytes":
        return format_bytes(value)
    return format_duration(value) if unit == "ns" else f"{round(value, 1):g} {_UNITS[unit]}"


def _value(value: Any) -> str:
    if isinstance(value, _Unknown):
        return "unknown" if value.reason is None else f"unknown: {plain(value.reason)}"
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return "none"
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return ", ".join(map(_value, value)) or "none"
    return plain(value)


def _json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_json(inner) for inner in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value) if isinstance(value, PurePath) else repr(value)
