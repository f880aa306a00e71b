"""The matrix products of a run, each with the time that the model predicts: constants fitted to the run's own rows.

A row is a product where its parameters say which, its flops agree, and its kernels' names and grids show how it was
computed. The constants belong to one dtype under one set of conditions; with too few rows they are where a fit begins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Literal

from gpubench.model import matmul as work
from gpubench.model import matmul_fit, matmul_time
from gpubench.model.kernel_facts import Facts, facts
from gpubench.model.launches import cover, is_persistent
from gpubench.model.matmul_time import Constants, Machine, Product, Time
from gpubench.result import Conditions, Record, Run

DOUBTFUL = frozenset({"implausible", "below-resolution", "throttled", "fallback"})
"""Flags of rows that nothing is fitted to."""

Kind = tuple[str, Conditions]
"""A dtype and conditions."""
Order = Literal["mnk", "mkn"]
"""How a benchmark writes a shape: m×n×k, or m×k×n as who multiplies weights by activations does."""
Orders = dict[tuple[str, str], Order]
"""The order of each benchmark that does not write m×n×k, by suite and name."""


@dataclass
class Fitted:
    """The products of one run by the ids of their rows."""

    run: Run
    products: dict[str, Product] = field(default_factory=dict)
    _constants: dict[Kind, tuple[Constants, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        found_orders = orders(self.run)
        for record in self.run.records:
            order = found_orders.get((record.suite, record.benchmark), "mnk")
            found = product(record, self.run.device.get("multiprocessors"), order)
            if found is not None:
                self.products[record.id] = found

    def rows(self, kind: Kind) -> list[tuple[Product, float]]:
        """Products of that kind with their medians in ns, by size: what constants are fitted to."""
        found = [
            (self.products[record.id], float(record.summary.median_ns))
            for record in self.run.records
            if record.id in self.products
            and record.summary is not None
            and record.summary.median_ns > 0
            and not DOUBTFUL & set(record.flags)
            and _kind(record) == kind
        ]
        return sorted(found, key=lambda row: row[0].flops)

    def machine(self, record: Record) -> Machine | None:
        """The run's device for the row's dtype."""
        return matmul_time.machine(self.run.device, _kind(record)[0])

    def constants(self, record: Record) -> tuple[Constants, int]:
        """The constants for the row's kind, and the number of rows they are fitted to: 0 where they are not."""
        kind, on = _kind(record), self.machine(record)
        if kind not in self._constants:
            rows = self.rows(kind)
            enough = on is not None and len(rows) >= matmul_fit.LEAST
            self._constants[kind] = (matmul_fit.fit(rows, on), len(rows)) if enough and on else (matmul_time.BEGIN, 0)
        return self._constants[kind]

    def time(self, record: Record) -> Time | None:
        """The predicted time of a row, None where it is no product or the device's rate is not known."""
        on = self.machine(record)
        if record.id not in self.products or on is None:
            return None
        return matmul_time.time(self.products[record.id], on, self.constants(record)[0])


def product(record: Record, multiprocessors: int | None, order: Order = "mnk") -> Product | None:
    """A row's product as its kernels show it, None where it is none or its kernels are not known. How its operands are
    stored its parameters say, or its kernel's name."""
    dims, dtype = shape(record, order), _kind(record)[0]
    if dims is None or not multiprocessors:
        return None
    launches = [(kernel.name, kernel.kind, kernel.grid) for kernel in record.kernels]
    stored = record.params.get("layout") or _stored(record)
    return matmul_time.seen(*dims, dtype, str(stored), launches, multiprocessors)


def _stored(record: Record) -> str:
    """The layout that a name tells of. cuBLAS computes with columns first: what it calls its first operand is our
    second one, and the other way round."""
    told = (facts(kernel.name, kernel.kind).layout for kernel in record.kernels)
    first = next((layout[:2].lower() for layout in told if layout), "nn")
    return {"tn": "nt", "nt": "tn"}.get(first, "nn")


def orders(run: Run) -> Orders:
    """The benchmarks that write their shapes m×k×n: more of their launches cover the product so. Flops and bytes are
    the same either way, and a benchmark writes all its shapes alike."""
    multiprocessors = run.device.get("multiprocessors")
    fits: Counter[tuple[str, str]] = Counter()
    for record in run.records:
        if isinstance(record.params.get("shape"), str):
            other, usual = (product(record, multiprocessors, order) is not None for order in ("mkn", "mnk"))
            fits[record.suite, record.benchmark] += other - usual
    return {name: "mkn" for name, more in fits.items() if more > 0}


Sense = Literal["grid", "tile", "family", "unknown"]
"""What a name is known for: of a product a tile that gives its grid in every row whose sizes are known or that has a
block for each multiprocessor, or a tile that no row can tell of; of anything else a family, or that a suite declares
it; nothing."""
KNOWN: frozenset[Sense] = frozenset({"grid", "tile", "family"})


def recognised(runs: Iterable[Run], own: Collection[str] = ()) -> dict[str, Sense]:
    """The names of all kernels of some runs, and what each is known for. `own` are the names that suites declare."""
    found: dict[str, set[Sense]] = {}
    for run in runs:
        multiprocessors, by = int(run.device.get("multiprocessors") or 0), orders(run)
        for record in run.records:
            dims = shape(record, by.get((record.suite, record.benchmark), "mnk"))
            sizes = [dims[:2]] if dims is not None else _sizes(record)
            known = [facts(kernel.name, kernel.kind, own) for kernel in record.kernels]
            alone = sum(kernel.count for kernel, of in zip(record.kernels, known, strict=True) if _tiled(of)) == 1
            for kernel, of in zip(record.kernels, known, strict=True):
                senses = found.setdefault(kernel.name, set())
                if not of.known:
                    senses.add("unknown")
                elif not _tiled(of):
                    senses.add("family")
                elif sizes and alone:
                    fits = any(cover(of, m, n, kernel.grid or (), multiprocessors) for m, n in sizes)
                    senses.add("grid" if fits else "unknown")
                else:
                    senses.add("grid" if is_persistent(of, kernel.grid or (), multiprocessors) else "tile")
    order: tuple[Sense, ...] = ("unknown", "grid", "tile", "family")
    return {name: next(sense for sense in order if sense in senses) for name, senses in found.items()}


def _sizes(record: Record) -> list[tuple[int, int]]:
    """Rows and columns that a product may have whose parameters have other names: of any three whole numbers that
    multiply to its flops, in any order."""
    numbers = [value for value in record.params.values() if isinstance(value, int) and value > 0]
    flops = record.work.flops if record.work is not None else 0
    found = [three for three in permutations(numbers, 3) if work.flops(*three) == flops]
    return [(m, n) for m, n, _ in found]


def _tiled(kernel: Facts) -> bool:
    return kernel.role == "product"


def shape(record: Record, order: Order = "mnk") -> tuple[int, int, int] | None:
    """m, n and k of a row that is one product: by those parameters, by a shape in that order, or square; None where the
    row's flops are not those of it."""
    params = record.params
    names: str = "mnk"
    if isinstance(params.get("shape"), str):
        parts = str(params["shape"]).split("x")
        sizes: Sequence[object] = [int(part) if part.isdecimal() else part for part in parts]
        names = order
    else:
        sizes = [params.get(name, params.get("n")) for name in "mnk"]
    whole = dict(zip(names, (size for size in sizes if isinstance(size, int) and size > 0), strict=False))
    if len(sizes) != 3 or len(whole) != 3 or record.work is None:
        return None
    m, n, k = (whole[name] for name in "mnk")
    return (m, n, k) if record.work.flops == work.flops(m, n, k) else None


def _kind(record: Record) -> Kind:
    dtype = (record.work.dtype if record.work is not None else None) or record.params.get("dtype", "")
    return str(dtype), record.conditions
