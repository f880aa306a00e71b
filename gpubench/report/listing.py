"""What can be measured, as `gpubench list` shows it: suites, their benchmarks and axes, and the plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpubench.claims.statements import Statement
from gpubench.report.words import counted, plain
from gpubench.result import CONDITIONS, WAY, Param
from gpubench.suite import Axis, Benchmark, Suite

if TYPE_CHECKING:
    from rich.console import RenderableType

FEW = 6
"""Values of an axis that are listed one by one."""


def table(suites: Mapping[str, Suite], plans: Mapping[str, Path], claims: Sequence[Statement] = ()) -> RenderableType:
    """Benchmarks, each with its axes; then the plans, and the claims. For `Console.print`."""
    from rich.console import Group as Renderables
    from rich.text import Text

    from gpubench.report.grid import Column, Grid

    if not suites and not plans and not claims:
        return Text("nothing to list")
    parts: list[RenderableType] = []
    if suites:
        grid = Grid([Column("benchmark"), Column("what it measures; its axes and defaults", fold=True)])
        for benchmark in (benchmark for suite in suites.values() for benchmark in suite.benchmarks.values()):
            grid.add(plain(benchmark.path), plain(benchmark.doc), style="bold")
            for name, axis in {**benchmark.axes, **benchmark.conditions}.items():
                grid.add(f"  -p {plain(name)}=", axis_words(axis))
            for ways, held in _fixed(benchmark):
                grid.add(f"  {WAY}={plain(ways)}", f"always {plain(held)}")
        grid.add("every benchmark", "is measured under conditions, the first of each by default", style="bold")
        for name, values in CONDITIONS.items():
            grid.add(f"  -p {name}=", ", ".join(values))
        parts += [grid, Text("")]
    if plans:
        grid = Grid([Column("plan"), Column("what it runs", fold=True)])
        for name, path in plans.items():
            grid.add(plain(name), plain(purpose(path)))
        parts += [grid, Text("")]
    if claims:
        grid = Grid([Column("claim"), Column("what the lecture says", fold=True), Column("suite", fold=True)])
        for claim in claims:
            grid.add(plain(claim.id), plain(claim.claim), plain(_settled_by(claim)))
        parts += [grid, Text("")]
    return Renderables(*parts[:-1])


def purpose(plan: Path) -> str:
    """The first sentence of the comment at the head of a plan's file; the file's path where there is none."""
    try:
        text = plan.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = ""
    head = takewhile(lambda line: line.startswith("#"), text.splitlines())
    words = " ".join(line.removeprefix("#").strip() for line in head)
    return f"{words.partition('. ')[0].rstrip('.')}." if words else str(plan)


def _fixed(benchmark: Benchmark) -> list[tuple[str, str]]:
    """Which ways always have which conditions, those that have the same together."""
    found: dict[str, list[str]] = {}
    for way, held in benchmark.fixed.items():
        found.setdefault(", ".join(f"{name}={value}" for name, value in held.items()), []).append(way)
    return [(", ".join(ways), held) for held, ways in found.items()]


def axis_words(axis: Axis) -> str:
    """An axis's default values, shortened: 256…4352 (250 values); with those of a CPU where they differ."""
    if axis.same_as is not None:
        return f"as {plain(axis.same_as)}"
    words = _values(axis.values) if axis.values else ""
    if axis.cpu != axis.values:
        words = f"{words}; on a CPU {_values(axis.cpu)}".removeprefix("; ")
    more = [choice for choice in axis.choices if choice not in (*axis.values, *axis.cpu)]
    return f"{words}; or {_values(more)}" if more else words


def _settled_by(claim: Statement) -> str:
    """What settles a claim: a suite, other claims, or nothing."""
    drawn_from = ", ".join(each for ids in claim.families.values() for each in ids)
    return claim.suite or drawn_from or "not testable"


def to_json(suites: Mapping[str, Suite], plans: Mapping[str, Path], claims: Sequence[Statement] = ()) -> dict[str, Any]:
    """The same as JSON values, with every default value of every axis. `conditions` are at the top what every benchmark
    takes, the default first, and in a benchmark what its suite declares; `fixed` is what its ways always have."""
    return {
        "conditions": [{"name": name, "values": list(values)} for name, values in CONDITIONS.items()],
        "suites": [
            {"name": suite.name, "benchmarks": [_benchmark(benchmark) for benchmark in suite.benchmarks.values()]}
            for suite in suites.values()
        ],
        "plans": [{"name": name, "doc": purpose(path), "file": str(path)} for name, path in plans.items()],
        "claims": [asdict(claim) for claim in claims],
    }


def _benchmark(benchmark: Benchmark) -> dict[str, Any]:
    return {
        "name": benchmark.path,
        "doc": benchmark.doc,
        "axes": [_axis(name, axis) for name, axis in benchmark.axes.items()],
        "conditions": [_axis(name, axis) for name, axis in benchmark.conditions.items()],
        "fixed": {way: dict(held) for way, held in benchmark.fixed.items()},
    }


def _axis(name: str, axis: Axis) -> dict[str, Any]:
    if axis.same_as is not None:
        return {"name": name, "same_as": axis.same_as}
    return {
        "name": name,
        "values": list(axis.values),
        "cpu": list(axis.cpu),
        "quick": list(axis.quick),
        "quick_cpu": list(axis.quick_cpu),
        "choices": list(axis.choices) or None,
    }


def _values(values: Sequence[Param]) -> str:
    if len(values) <= FEW or any(isinstance(value, str) for value in values):
        return ", ".join(plain(value) for value in values)
    numbers = [value for value in values if isinstance(value, int)]
    return f"{min(numbers)}…{max(numbers)} ({counted(len(values), 'value')})"
