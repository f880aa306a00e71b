"""The matrix products of a run, each with the time that the model predicts: constants fitted to the run's own rows.

A row is a product where its parameters say which, its flops agree, and its kernels' names and grids show how it was
computed. The constants belong to one dtype under one set of conditions; with too few rows they are where a fit begins.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from gpubench.model import matmul as work
from gpubench.model import matmul_fit, matmul_time
from gpubench.model.kernel_facts import facts
from gpubench.model.launches import cover
from gpubench.model.matmul_time import Constants, Machine, Product, Time
from gpubench.result import Conditions, Record, Run

DOUBTFUL = frozenset({"implausible", "below-resolution", "throttled", "fallback"})
"""Flags of rows that nothing is fitted to."""

Kind = tuple[str, Conditions]
"""A dtype and conditions."""


@dataclass
class Fitted:
    """The products of one run by the ids of their rows."""

    run: Run
    products: dict[str, Product] = field(default_factory=dict)
    _constants: dict[Kind, tuple[Constants, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for record in self.run.records:
            found = product(record, self.run.device.get("multiprocessors"))
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


def product(record: Record, multiprocessors: int | None) -> Product | None:
    """A row's product as its kernels show it, None where it is none or its kernels are not known."""
    dims, dtype = shape(record), _kind(record)[0]
    if dims is None or not multiprocessors:
        return None
    launches = [(kernel.name, kernel.kind, kernel.grid) for kernel in record.kernels]
    return matmul_time.seen(*dims, dtype, str(record.params.get("layout", "nn")), launches, multiprocessors)


def recognised(run: Run, own: Collection[str] = ()) -> dict[str, bool]:
    """The names of all kernels of a run, and whether each is recognised: it has a family, or a suite declares it
    (`own`); and a product has a tile that reproduces its grid in every row whose sizes are known."""
    multiprocessors = int(run.device.get("multiprocessors") or 0)
    found: dict[str, bool] = {}
    for record in run.records:
        dims = shape(record)
        for kernel in record.kernels:
            known = facts(kernel.name, kernel.kind, own)
            fits = known.known and (
                known.role != "product"
                or dims is None
                or cover(known, dims[0], dims[1], kernel.grid or (), multiprocessors) is not None
            )
            found[kernel.name] = found.get(kernel.name, True) and fits
    return found


def shape(record: Record) -> tuple[int, int, int] | None:
    """m, n and k of a row that is one product: by those parameters, by a shape m×n×k, or square; None where the row's
    flops are not those of it."""
    params = record.params
    if isinstance(params.get("shape"), str):
        parts = str(params["shape"]).split("x")
        sizes: Sequence[object] = [int(part) if part.isdecimal() else part for part in parts]
    else:
        sizes = [params.get(name, params.get("n")) for name in "mnk"]
    whole = [size for size in sizes if isinstance(size, int) and size > 0]
    if len(sizes) != 3 or len(whole) != 3 or record.work is None:
        return None
    m, n, k = whole
    return (m, n, k) if record.work.flops == work.flops(m, n, k) else None


def _kind(record: Record) -> Kind:
    dtype = (record.work.dtype if record.work is not None else None) or record.params.get("dtype", "")
    return str(dtype), record.conditions
