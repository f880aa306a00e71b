"""Figures of memory: latency and bandwidth by working set, strides, bytes in flight, bank conflicts."""

from __future__ import annotations

from collections.abc import Iterator

from gpubench.report.figures.pick import Value, foretold, group, level, measured, metric, param, predicted, series
from gpubench.report.figures.shapes import Figure, Heading, Level, Lines, Quantity, Series
from gpubench.report.words import counted, plain
from gpubench.result import Record, Run

KIB = 1024.0
SIZE = Quantity("working set", "iB", log=True)
RATE = Quantity("useful bandwidth", "B/s")
ROOFS = {"DRAM": "DRAM", "L2": "L2", "shared": "shared memory"}


def latency(run: Run) -> Iterator[Figure]:
    """The time of one dependent load by the size of what is walked through, over what is published of each level."""
    cycles = Quantity("latency", "cycles", log=True)
    found: list[Series] = []
    capacities: dict[str, float] = {}
    for path, name in (("chase", "through every cache"), ("chase-past-l1", "past the L1")):
        rows = measured(each.records if (each := group(run, f"memory-hierarchy/{path}")) else ())
        found += series(rows, name, param("kib", KIB), metric("cycles"), cycles)
        if path == "chase":
            found += series(rows, name, param("kib", KIB), _middle("cycles"), cycles, "predicted")
            capacities = _capacities(rows)
    if found:
        yield Lines(
            Heading(
                "latency-ladder", "memory-hierarchy", "latency by working set",
                "How many cycles does a load take, and where does each level of the memory end?",
                foretold(found, "predicted: the middle of what is published for the level that holds the set"),
            ),
            SIZE, cycles, found, "loads", _walls(capacities),
        )  # fmt: skip


def working_set(run: Run) -> Iterator[Figure]:
    """The bandwidth of reading a buffer again and again, by its size."""
    each = group(run, "memory-hierarchy/working-set")
    rows = measured(each.records if each else ())
    rate = Quantity("bandwidth", "B/s")
    found = series(rows, "read again and again", param("kib", KIB), metric("bandwidth"), rate)
    if found:
        roofs = [
            Level(value, f"{words} ceiling") for name, words in ROOFS.items()
            if name != "shared" and (value := level(run, name)) is not None
        ]  # fmt: skip
        yield Lines(
            Heading(
                "bandwidth-by-working-set", "memory-hierarchy", "bandwidth by working set",
                "How fast is a buffer read that fits a cache, and what is left where it does not?",
            ),
            SIZE, rate, found, "", [*roofs, *_walls(_capacities(rows))],
        )  # fmt: skip


def in_flight(run: Run) -> Iterator[Figure]:
    """Bandwidth by the bytes that a multiprocessor has asked for and not got, over Little's law."""
    each = group(run, "memory-hierarchy/in-flight")
    rows = measured(each.records if each else ())
    x, rate = Quantity("bytes in flight on a multiprocessor", "iB", log=True), Quantity("bandwidth", "B/s")
    found: list[Series] = []
    for loads in dict.fromkeys(row.params.get("loads") for row in rows):
        alike = [row for row in rows if row.params.get("loads") == loads]
        words = counted(int(loads), "load") if isinstance(loads, int) else plain(loads)
        found += series(alike, f"{words} a thread", predicted("bytes_in_flight"), metric("bandwidth"), rate)
    law = series(rows, "Little's law", predicted("bytes_in_flight"), predicted("bandwidth"), rate, "predicted")
    found += _once(law)
    if found:
        yield Lines(
            Heading(
                "bytes-in-flight", "memory-hierarchy", "bandwidth by bytes in flight",
                "How much must be asked for at once until the memory has no pause?",
            ),
            x, rate, found, "loads",
        )  # fmt: skip


def strides(run: Run) -> Iterator[Figure]:
    """Useful bandwidth by the stride between the addresses of neighbours, over the share of a sector that is used."""
    found: list[Series] = []
    for path, name in (("strided-read", "read"), ("strided-write", "write")):
        each = group(run, f"coalescing/{path}")
        rows = measured(each.records if each else ())
        first = next((metric("bandwidth")(row) for row in rows if row.params.get("stride") == 1), None)
        found += series(rows, name, param("stride"), metric("bandwidth"), RATE)
        if first is not None:
            found += series(rows, name, param("stride"), _share(first), RATE, "predicted")
    if found:
        yield Lines(
            Heading(
                "stride", "coalescing", "bandwidth by stride",
                "What does a warp pay when its 32 addresses are not neighbours?",
                foretold(found, "predicted: bandwidth at stride 1 times the share of each 32 B sector that is used"),
            ),
            Quantity("stride, in floats", "", log=True), RATE, found, "access",
        )  # fmt: skip


def offsets(run: Run) -> Iterator[Figure]:
    """Bandwidth of a copy by how far it begins beside a sector."""
    each = group(run, "coalescing/offset-copy")
    rows = measured(each.records if each else ())
    first = next((metric("bandwidth")(row) for row in rows if row.params.get("offset") == 0), None)
    found = series(rows, "copy", param("offset"), metric("bandwidth"), RATE)
    if found and first is not None:
        found += series(rows, "copy", param("offset"), lambda row: first, RATE, "predicted")
        yield Lines(
            Heading(
                "offset", "coalescing", "bandwidth by offset",
                "Does a copy that begins beside a sector lose anything?",
                ("predicted: nothing is lost",),
            ),
            Quantity("offset, in floats"), RATE, found,
        )  # fmt: skip


def bank_conflicts(run: Run) -> Iterator[Figure]:
    """Cycles of a load from shared memory by the stride of its addresses, over the number of words in one bank."""
    each = group(run, "bank-conflicts/stride")
    rows = measured(each.records if each else ())
    cycles = Quantity("time of a load", "cycles")
    found = series(rows, "a warp's load", param("stride"), metric("cycles"), cycles)
    if found:
        found += series(rows, "a warp's load", param("stride"), predicted("cycles"), cycles, "predicted")
        yield Lines(
            Heading(
                "bank-conflicts", "bank-conflicts", "shared memory by stride",
                "Which strides make the lanes of a warp wait for one bank of shared memory?",
            ),
            Quantity("stride, in words of 4 B"), cycles, found,
        )  # fmt: skip


def _middle(name: str) -> Value:
    """The middle of a predicted stretch."""

    def value(row: Record) -> float | None:
        found = row.prediction.get(name)
        if isinstance(found, list) and len(found) == 2 and all(isinstance(each, int | float) for each in found):
            return float(sum(found)) / 2
        return None

    return value


def _share(full: float) -> Value:
    share = predicted("useful_share")
    return lambda row: None if (part := share(row)) is None else full * part


def _capacities(rows: list[Record]) -> dict[str, float]:
    """What each cache holds, in bytes, as the rows' prediction says."""
    found = next((row.prediction.get("capacities") for row in rows), None)
    return {plain(name): float(size) for name, size in found.items()} if isinstance(found, dict) else {}


def _walls(capacities: dict[str, float]) -> list[Level]:
    return [Level(size, f"{name}: {SIZE.say(size)}", "x") for name, size in capacities.items()]


def _once(found: list[Series]) -> list[Series]:
    """Series with one point for each x."""
    return [Series(each.name, list({point.x: point for point in each.points}.values()), each.role) for each in found]
