"""Series out of the rows of a run: which rows, what of each, under which name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import isfinite

from gpubench.report.figures.shapes import Facts, Point, Quantity, Role, Series, say
from gpubench.report.rows import Group, best_ceiling, groups, is_wrong
from gpubench.report.words import plain
from gpubench.result import Record, Run
from gpubench.units import format_duration, format_half_width

Value = Callable[[Record], float | None]
"""What is shown of a row, in base units; None where the row has none."""


def group(run: Run, path: str) -> Group | None:
    """The rows of suite/benchmark, None where the run has none."""
    return next((each for each in groups(run) if each.path == path), None)


def measured(rows: Iterable[Record]) -> list[Record]:
    """The rows that gave a number and were not measured in a wrong way on purpose."""
    return [row for row in rows if row.status == "ok" and row.summary is not None and not is_wrong(row)]


def metric(name: str) -> Value:
    """The metric of that name."""

    def value(record: Record) -> float | None:
        found = record.metric(name)
        return found.value if found is not None and isfinite(found.value) else None

    return value


def predicted(name: str) -> Value:
    """The prediction of that name, where it is a number."""

    def value(record: Record) -> float | None:
        found = record.prediction.get(name)
        return _number(found)

    return value


def counter(*names: str) -> Value:
    """The sum of hardware counters."""

    def value(record: Record) -> float | None:
        found = [_number(record.counters.get(name)) for name in names]
        return None if None in found else sum(each for each in found if each is not None)

    return value


def param(name: str, times: float = 1) -> Value:
    """An axis of the benchmark, in a unit of that many base units."""

    def value(record: Record) -> float | None:
        found = _number(record.params.get(name))
        return None if found is None else times * found

    return value


def series(
    rows: Sequence[Record], name: str, x: Value, y: Value, quantity: Quantity, role: Role = "measured"
) -> list[Series]:
    """The rows as a series by increasing x, those that have both values; nothing where no row has."""
    found = [(at, value, row) for row in rows if (at := x(row)) is not None and (value := y(row)) is not None]
    points = [point(row, at, value, quantity, role) for at, value, row in sorted(found, key=lambda each: each[0])]
    return [Series(plain(name), points, role)] if points else []


def point(row: Record, x: float, value: float, quantity: Quantity, role: Role = "measured") -> Point:
    """A row's mark, with its interval where the value follows from the time."""
    if role == "predicted":
        return Point(x, value)
    low, high = interval(row, value, quantity.unit)
    return Point(x, value, low, high, facts(row, quantity.name, value, quantity.unit))


def interval(row: Record, value: float, unit: str) -> tuple[float | None, float | None]:
    """The interval of a time, or of a rate that follows from it: as far from the value as that of the median time."""
    summary = row.summary
    if unit not in ("ns", "B/s", "FLOP/s") or summary is None or summary.low_ns is None or summary.high_ns is None:
        return None, None
    if min(summary.low_ns, summary.median_ns) <= 0:
        return None, None
    if unit == "ns":
        return value * summary.low_ns / summary.median_ns, value * summary.high_ns / summary.median_ns
    return value * summary.median_ns / summary.high_ns, value * summary.median_ns / summary.low_ns


def facts(row: Record, name: str, value: float, unit: str) -> Facts:
    """What is to be said of a row's mark."""
    summary = row.summary
    told = [("row", case_words(row)), (name, say(value, unit))]
    if summary is not None and unit != "ns":
        told.append(("time", format_duration(summary.median_ns)))
    if summary is not None and summary.low_ns is not None and summary.high_ns is not None and summary.median_ns > 0:
        half = format_half_width(50 * (summary.high_ns - summary.low_ns) / summary.median_ns)
        told.append(("median known to", f"± {half}, {summary.n} samples"))
    if row.flags:
        told.append(("marked", ", ".join(row.flags)))
    return tuple(told)


def case_words(row: Record) -> str:
    """A row by its benchmark, its parameters and its unusual conditions."""
    params = {name: value for name, value in row.params.items() if not (name in "mk" and value == row.params.get("n"))}
    words = [plain(row.benchmark), *(f"{plain(name)}={plain(value)}" for name, value in params.items())]
    return " ".join([*words, *(f"{name}={value}" for name, value in row.conditions.unusual.items())])


def in_group(found: Group, row: Record, several: bool, conditions: bool = True) -> str:
    """A row by what tells it apart from the other rows of its benchmark, under the benchmark's name where a figure has
    `several`; unless told otherwise, by its conditions too."""
    words = [*([found.params(row)] if found.varying else []), *(found.under(row) if conditions else [])]
    return " ".join([*([plain(row.benchmark)] if several or not words else []), *words])


def foretold(found: Iterable[Series], words: str) -> tuple[str, ...]:
    """The words about what was predicted, where something was."""
    return (words,) if any(each.role == "predicted" for each in found) else ()


def level(run: Run, name: str) -> float | None:
    """The best bandwidth measured of a memory level, in B/s."""
    found = best_ceiling(run, "bandwidth", level=name)
    return found.value if found is not None else None


def _number(found: object) -> float | None:
    """A finite number, None for anything else."""
    number = isinstance(found, int | float) and not isinstance(found, bool)
    return float(found) if number and isfinite(found) else None  # type: ignore[arg-type]
