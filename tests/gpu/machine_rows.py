"""What the tests of the machine's suites share: their benchmarks, and one row of one of them on a real GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpubench.discovery import Library
from gpubench.result import Conditions, Record
from gpubench.runner import Effort, measure
from gpubench.sampling import Stopping
from gpubench.suite import Benchmark, Case

SUITES = Library(Path(__file__).parents[2] / "suites").suites()


def benchmarks(*names: str) -> dict[str, Benchmark]:
    """Every benchmark of these suites, by its path."""
    return {bench.path: bench for name in names for bench in SUITES[name].benchmarks.values()}


def row(device: Any, path: str, /, **params: Any) -> Record:
    """One row, of few samples; parameters that are not given are the first of their quick values."""
    suite, name = path.split("/")
    bench = SUITES[suite].benchmarks[name]
    full = next(iter(bench.cases("cuda", quick=True, asked={name: [value] for name, value in params.items()})))
    effort = Effort(Stopping(samples=10))
    *_, record = measure(bench, Case(bench.suite, bench.name, full, Conditions()), device, effort)
    assert isinstance(record, Record)
    print(path, params, record.reason, [(metric.name, metric.value) for metric in record.metrics])
    return record
