"""Figures of kernels: divergence, tiling, formats, fusion, occupancy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpubench.report.figures.pick import (
    Value,
    counter,
    facts,
    foretold,
    group,
    interval,
    measured,
    metric,
    param,
    predicted,
    series,
)
from gpubench.report.figures.shapes import Entry, Figure, Heading, Level, Lines, Quantity, Rows, Series
from gpubench.report.rows import best_ceiling
from gpubench.report.words import plain, short_dtype
from gpubench.result import Record, Run

TIMES = Quantity("time over that of one path", "×")
SECTOR = 32
"""Bytes of a sector."""


def divergence(run: Run) -> Iterator[Figure]:
    """Time by the lanes that take another path, and by the number of paths, over what the instructions predict."""
    for path, axis, id, title, question in (
        ("lane-split", "k", "divergence", "time by lanes on another path",
         "What does a warp pay when some of its lanes take another path?"),
        ("switch", "n", "divergence-switch", "time by number of paths",
         "What does each further path through a warp cost?"),
    ):  # fmt: skip
        each = group(run, f"divergence/{path}")
        rows = measured(each.records if each else ())
        first = next((row for row in rows if predicted("relative_time")(row) == 1), None)
        if first is None:
            continue
        found = series(rows, "a warp", param(axis), _over(first), TIMES)
        found += series(rows, "a warp", param(axis), predicted("relative_time"), TIMES, "predicted")
        x = Quantity("lanes that take the other path" if axis == "k" else "paths through a warp")
        yield Lines(Heading(id, "divergence", title, question, ("predicted: the instructions that are issued",)),
                    x, TIMES, found)  # fmt: skip


def tiling(run: Run) -> Iterator[Figure]:
    """The rate of each rung of the ladder of kernels, and the bytes that its loads ask for over the model."""
    each = group(run, "tiling/ladder")
    rows = measured(each.records if each else ())
    rate = Quantity("rate", "FLOP/s", log=True)
    if rows:
        roof = best_ceiling(run, "compute", dtype="float32")
        levels = [Level(roof.value, "fp32 ceiling", "x")] if roof is not None else []
        yield Rows(
            Heading("tiling", "tiling", "matrix products from naive to library",
                    "How much of the machine does each step of tiling win back?"),
            rate, _entries(rows, "rung", metric("flops"), rate), levels=levels,
        )  # fmt: skip
    loaded = Quantity("bytes that loads ask for", "B", log=True)
    counted = [row for row in rows if _loaded(row) is not None and _foretold(row) is not None]
    if counted:
        yield Rows(
            Heading("tiling-loads", "tiling", "bytes asked for by each kernel",
                    "Does each kernel load as little as its tiles allow?",
                    ("counted in sectors of 32 B by the hardware", "upright line: as its tiles predict")),
            loaded, _entries(counted, "rung", _loaded, loaded, _foretold), predicted="predicted",
        )  # fmt: skip
    each = group(run, "tiling/tile-size")
    sizes = measured(each.records if each else ())
    found = series(sizes, "tiled", param("tile"), metric("flops"), rate)
    if len(sizes) > 1 and found:
        yield Lines(
            Heading("tile-size", "tiling", "rate by size of tile", "What does a larger tile buy?"),
            Quantity("side of a tile", "", log=True), Quantity("rate", "FLOP/s", log=False), found,
        )  # fmt: skip


def formats(run: Run) -> Iterator[Figure]:
    """The rate of a product in each format, over the datasheet."""
    each = group(run, "precision/matmul") or group(run, "peak/matmul")
    rows = measured(each.records if each else ())
    rate = Quantity("rate", "FLOP/s", log=False)
    best: dict[str, Record] = {}
    for row in sorted(rows, key=lambda row: metric("flops")(row) or 0.0):
        best[str(row.params.get("dtype"))] = row
    if len(best) > 1:
        chosen = sorted(best.values(), key=lambda row: metric("flops")(row) or 0.0)
        sheet = any(datasheet(row) is not None for row in chosen)
        question = "How much faster is each narrower format"
        fastest = f"the fastest of each: {'; '.join(_shapes(chosen))}"
        yield Rows(
            Heading("formats", chosen[0].suite, "matrix products by number format",
                    f"{question}, and how near to its datasheet does it come?" if sheet else f"{question}?",
                    (fastest, *(["upright line: the datasheet's figure"] if sheet else []))),
            rate, _entries(chosen, "dtype", metric("flops"), rate, datasheet), predicted="datasheet" if sheet else "",
        )  # fmt: skip


def fusion(run: Run) -> Iterator[Figure]:
    """Time of a chain of pointwise operations by its length, by who runs it, over the bytes that must move."""
    each = group(run, "fusion/chain")
    rows = measured(each.records if each else ())
    time = Quantity("time", "ns")
    found: list[Series] = []
    for by in dict.fromkeys(str(row.params.get("by")) for row in rows):
        alike = [row for row in rows if row.params.get("by") == by]
        found += series(alike, by, param("k"), metric("time"), time)
        found += series(alike, by, param("k"), predicted("memory_ns"), time, "predicted")
    if found:
        yield Lines(
            Heading("fusion", "fusion", "time of a chain of operations",
                    "What does it cost that each operation goes through memory, and what does fusing them save?",
                    foretold(found, "predicted: the bytes that must move at the memory's full speed")),
            Quantity("operations in the chain"), time, found, "run by",
        )  # fmt: skip


def occupancy(run: Run) -> Iterator[Figure]:
    """Operations a clock by warps, for each number of independent operations in a thread, over Little's law."""
    each = group(run, "occupancy/fma")
    rows = measured(each.records if each else ())
    lanes = Quantity("operations a clock on a multiprocessor", "")
    found: list[Series] = []
    for ilp in dict.fromkeys(row.params.get("ilp") for row in rows):
        alike = [row for row in rows if row.params.get("ilp") == ilp]
        name = f"{ilp} at once in a thread"
        found += series(alike, name, param("warps"), metric("lanes"), lanes)
        found += series(alike, name, param("warps"), predicted("lanes"), lanes, "predicted")
    if found:
        yield Lines(
            Heading("occupancy", "occupancy", "arithmetic by warps on a multiprocessor",
                    "How many warps does it take to hide the time of an operation?"),
            Quantity("warps on a multiprocessor", "", log=True), lanes, found, "operations",
        )  # fmt: skip


def datasheet(row: Record) -> float | None:
    """The datasheet's figure for the row's rate."""
    yardsticks = row.prediction.get("yardsticks")
    found = yardsticks.get("datasheet") if isinstance(yardsticks, dict) else None
    value = found.get("value") if isinstance(found, dict) else None
    return float(value) if isinstance(value, int | float) else None


def _shapes(rows: Sequence[Record]) -> list[str]:
    return list(
        dict.fromkeys(
            f"{name} {plain(row.params[name])}" for row in rows for name in ("shape", "n") if name in row.params
        )
    )


def _over(first: Record) -> Value:
    """A row's time over that of the first, for the same flops."""

    def value(row: Record) -> float | None:
        if row.summary is None or first.summary is None or first.summary.median_ns <= 0:
            return None
        work = row.work.flops / first.work.flops if row.work and first.work and first.work.flops else 1.0
        return row.summary.median_ns / first.summary.median_ns / work if work else None

    return value


def _loaded(row: Record) -> float | None:
    sectors = counter("global_load_sectors")(row)
    return None if not sectors else SECTOR * sectors


def _foretold(row: Record) -> float | None:
    requests, sectors = predicted("load_requests")(row), predicted("sectors_per_request")(row)
    return None if requests is None or sectors is None else SECTOR * requests * sectors


def _entries(
    rows: Sequence[Record], axis: str, value: Value, quantity: Quantity, foretold: Value | None = None
) -> list[Entry]:
    """A mark for each row that has a value, named by one parameter."""
    found = []
    for row in rows:
        at = value(row)
        if at is not None:
            low, high = interval(row, at, quantity.unit)
            name = short_dtype(plain(row.params.get(axis, row.benchmark)))
            before = foretold(row) if foretold is not None else None
            found.append(Entry(name, at, low, high, before, "", facts(row, quantity.name, at, quantity.unit)))
    return found
