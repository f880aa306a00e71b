"""Facts of a device, its software and its host, as `gpubench info` shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from gpubench.report.words import plain
from gpubench.units import format_bytes, format_duration

if TYPE_CHECKING:
    from rich.console import RenderableType

_UNITS = {"mhz": "MHz", "w": "W", "c": "°C", "bits": "bit", "percent": "%"}
"""The last word of a fact's name that is a unit, and how it is written."""


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
        for name, inner in _flat(value):
            fact, words = _words(name, inner)
            grid.add(f"  {fact}", words)
    return grid if facts else Renderables(Text("no facts"))


def to_json(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts as JSON values: what JSON cannot hold becomes text, a number that is not finite None."""
    return {str(name): _json(value) for name, value in facts.items()}


def _flat(facts: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in facts.items():
        path = f"{before} {name}".strip()
        if isinstance(value, Mapping) and value:
            yield from _flat(value, path)
        else:
            yield path, value


def _words(name: str, value: Any) -> tuple[str, str]:
    """A fact's name in words and its value with a unit, where the last word of the name is one."""
    *rest, last = name.split("_")
    number = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    if number and rest and last in ("bytes", "ns", *_UNITS):
        return plain(" ".join(rest)), _quantity(value, last)
    return plain(name.replace("_", " ")), _value(value)


def _quantity(value: float, unit: str) -> str:
    if unit == "bytes":
        return format_bytes(value)
    return format_duration(value) if unit == "ns" else f"{value:g} {_UNITS[unit]}"


def _value(value: Any) -> str:
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
