"""What can be measured, as `gpubench list` shows it: suites, their benchmarks and axes, and the plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpubench.report.words import counted, plain
from gpubench.result import Param
from gpubench.suite import Axis, Benchmark, Suite

if TYPE_CHECKING:
    from rich.console import RenderableType

FEW = 6
"""Values of an axis that are listed one by one."""


def table(suites: Mapping[str, Suite], plans: Mapping[str, Path]) -> RenderableType:
    """Benchmarks, each with its axes; then the plans. For `Console.print`."""
    from rich.console import Group as Renderables
    from rich.text import Text

    from gpubench.report.grid import Column, Grid

    if not suites and not plans:
        return Text("nothing to list")
    parts: list[RenderableType] = []
    if suites:
        grid = Grid([Column("benchmark"), Column("what it measures, and the default values of its axes", fold=True)])
        for benchmark in (benchmark for suite in suites.values() for benchmark in suite.benchmarks.values()):
            grid.add(plain(benchmark.path), plain(benchmark.doc), style="bold")
            for name, axis in benchmark.axes.items():
                grid.add(f"  -p {plain(name)}=", axis_words(axis))
        parts += [grid, Text("")]
    if plans:
        grid = Grid([Column("plan"), Column("file", fold=True)])
        for name, path in plans.items():
            grid.add(plain(name), plain(path))
        parts += [grid, Text("")]
    return Renderables(*parts[:-1])


def axis_words(axis: Axis) -> str:
    """An axis's default values, shortened: 256…4352 (250 values); with those of a CPU where they differ."""
    if axis.same_as is not None:
        return f"as {plain(axis.same_as)}"
    words = _values(axis.values) if axis.values else ""
    if axis.cpu != axis.values:
        words = f"{words}; on a CPU {_values(axis.cpu)}".removeprefix("; ")
    more = [choice for choice in axis.choices if choice not in (*axis.values, *axis.cpu)]
    return f"{words}; or {_values(more)}" if more else words


def to_json(suites: Mapping[str, Suite], plans: Mapping[str, Path]) -> dict[str, Any]:
    """The same as JSON values, with every default value of every axis."""
    return {
        "suites": [
            {"name": suite.name, "benchmarks": [_benchmark(benchmark) for benchmark in suite.benchmarks.values()]}
            for suite in suites.values()
        ],
        "plans": [{"name": name, "file": str(path)} for name, path in plans.items()],
    }


def _benchmark(benchmark: Benchmark) -> dict[str, Any]:
    return {
        "name": benchmark.path,
        "doc": benchmark.doc,
        "axes": [
            {"name": name, "same_as": axis.same_as}
            if axis.same_as is not None
            else {
                "name": name,
                "values": list(axis.values),
                "cpu": list(axis.cpu),
                "quick": list(axis.quick),
                "quick_cpu": list(axis.quick_cpu),
                "choices": list(axis.choices) or None,
            }
            for name, axis in benchmark.axes.items()
        ],
    }


def _values(values: Sequence[Param]) -> str:
    if len(values) <= FEW or any(isinstance(value, str) for value in values):
        return ", ".join(plain(value) for value in values)
    numbers = [value for value in values if isinstance(value, int)]
    return f"{min(numbers)}…{max(numbers)} ({counted(len(values), 'value')})"
