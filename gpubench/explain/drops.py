"""Why a curve of matrix products falls from one size to the next: the fall split into causes by the model.

The predicted time of a product is its flops at the full rate times a few factors. Between two rows each factor changes
by a ratio, and those multiply to the predicted change; the SM clock that each row was held at is another. What they do
not account for is left over. A fall has a cause where the largest of them is most of it, and is "unknown" else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from gpubench.explain.fitted import Fitted
from gpubench.model.matmul_time import Factor, Product
from gpubench.result import Record
from gpubench.stats import ratio_interval, trusted_median
from gpubench.telemetry import held_mhz
from gpubench.units import three_digits

Cause = Literal[
    "alignment", "another kernel", "L2 reuse", "tile waste", "waves", "memory", "split-K", "start", "clock", "unknown"
]

FALL = 1.05
"""A fall in the rate by less is none: clocks and placement move medians by a few per cent."""
MOST = 0.4
"""The share of a fall, as a logarithm, that its cause accounts for at the least."""
LEFT_OVER = 0.5
"""The share of a fall that may be left over; beyond that its cause is unknown."""
AS_MUCH = 0.6
"""The share of the first cause, as a logarithm, from which the second is a cause as well: the two cannot be told apart
by so little."""
WORTH_A_WORD = 0.15
"""The share of a fall from which a cause beside the first is named."""
ALIGNED = 16
"""Bytes: what TMA and the widest loads of threads ask of rows."""

_OF_FACTOR: Mapping[Factor, Cause] = {
    "instructions": "alignment", "loads": "alignment", "sectors": "alignment", "L2 reuse": "L2 reuse",
    "tile waste": "tile waste", "waves": "waves", "memory": "memory", "split-K": "split-K", "start": "start",
}  # fmt: skip
"""The cause that a factor is part of. Instructions and loads change with the kernel, and that with the alignment."""


@dataclass(frozen=True)
class Part:
    """A cause, how many times as long a flop takes by it, and what changed, in words."""

    cause: Cause
    times: float
    words: str


@dataclass(frozen=True)
class Drop:
    """A fall of the rate by the factor `times` from one row to the next; `predicted` is the model's, None where it has
    none. `parts` are what it is made of, the largest first, with those that go the other way; `left_over` what they do
    not account for."""

    before: Record
    after: Record
    times: float
    predicted: float | None
    parts: tuple[Part, ...]
    left_over: float | None

    @property
    def cause(self) -> Cause:
        """The part that is most of the fall; "unknown" where none is, or too much is left over."""
        if not self.parts or self.left_over is None:
            return "unknown"
        whole = math.log(self.times)
        if abs(math.log(self.left_over)) > LEFT_OVER * whole or math.log(self.parts[0].times) < MOST * whole:
            return "unknown"
        return self.parts[0].cause

    @property
    def causes(self) -> tuple[Cause, ...]:
        """The cause, and the second part where that is nearly as large."""
        if self.cause == "unknown":
            return ("unknown",)
        first, *others = self.parts
        near = [part.cause for part in others[:1] if math.log(part.times) >= AS_MUCH * math.log(first.times)]
        return (first.cause, *near)

    @property
    def worth_a_word(self) -> tuple[Part, ...]:
        """The parts that account for a good share of the fall."""
        least = WORTH_A_WORD * math.log(self.times)
        return tuple(part for part in self.parts if math.log(part.times) >= least)


def of(records: Sequence[Record], fitted: Fitted) -> list[Drop]:
    """The falls between neighbours of a sweep, of rows in order, the largest first: those of more than FALL that the
    intervals of both medians leave no doubt of."""
    found = [between(before, after, fitted) for before, after in pairwise(records) if _falls(before, after)]
    return sorted(found, key=lambda drop: -drop.times)


def aligned(records: Iterable[Record], fitted: Fitted) -> list[Record]:
    """The rows whose matrices are aligned to ALIGNED bytes: a curve of its own, without the cliffs."""
    return [
        record for record in records
        if record.id in fitted.products and fitted.products[record.id].alignment >= ALIGNED
    ]  # fmt: skip


def _falls(before: Record, after: Record) -> bool:
    medians, works = [trusted_median(row) for row in (before, after)], [before.work, after.work]
    if None in medians or None in works or not all(work is not None and work.flops for work in works):
        return False
    low = ratio_interval(medians[0], medians[1])[0]  # type: ignore[arg-type]
    return low * works[0].flops / works[1].flops > 1 and ratio(before, after) > FALL  # type: ignore[union-attr]


def ratio(before: Record, after: Record) -> float:
    """How many times as long a flop takes in the second row."""
    sides = []
    for record in (before, after):
        assert record.summary is not None
        assert record.work is not None
        sides.append(record.summary.median_ns / record.work.flops)
    return sides[1] / sides[0]


def between(before: Record, after: Record, fitted: Fitted) -> Drop:
    """The fall from one row to another, of rows with medians and flops, and its parts."""
    times = ratio(before, after)
    predicted = [fitted.time(record) for record in (before, after)]
    first, second = predicted
    if first is None or second is None:
        return Drop(before, after, times, None, (), None)
    products = fitted.products[before.id], fitted.products[after.id]
    changes: dict[Cause, float] = {}
    for factor, value in second.factors.items():
        cause = _OF_FACTOR[factor]
        if cause == "alignment" and products[0].alignment == products[1].alignment:
            cause = "another kernel"
        changes[cause] = changes.get(cause, 1.0) * value / first.factors[factor]
    clocks = held_mhz(before), held_mhz(after)
    if min(clocks) > 0:
        changes["clock"] = clocks[0] / clocks[1]
    words = {"clock": f"SM clock {clocks[0]:.0f} → {clocks[1]:.0f} MHz", **_words(*products)}
    parts = [Part(cause, change, words[cause]) for cause, change in changes.items()]
    return Drop(
        before, after, times, second.ns / after.work.flops / (first.ns / before.work.flops),  # type: ignore[union-attr]
        tuple(sorted(parts, key=lambda part: -part.times)), times / math.prod(changes.values()),
    )  # fmt: skip


def _words(before: Product, after: Product) -> dict[str, str]:
    """What changed, for each cause."""
    sides = before, after
    kernels = _arrow(*(kernel_words(side) for side in sides))
    covers = before.cover, after.cover
    waves = _arrow(*(str(cover.turns) for cover in covers))
    tiles = _arrow(*(f"{cover.tiles}" + f"×{cover.splits}" * (cover.splits > 1) for cover in covers))
    idle = _arrow(*(f"{100 * cover.idle:.0f} %" for cover in covers))
    aligned = f"rows aligned to {_arrow(*(f'{side.alignment} B' for side in sides))}"
    if before.tma and after.tma:  # the kernel is of one kind: what changes is how its tiles are read
        beside = ", which begin beside sectors of 32 B" * any(after.beside_sectors)
        read = _arrow(*(f"{three_digits(side.l2_intensity)} FLOP/B" for side in sides))
        aligned += f"{beside}; tiles take {read} from the L2"
    else:
        aligned += f": {kernels}"
    return {
        "alignment": aligned,
        "another kernel": kernels,
        "L2 reuse": f"{_arrow(*map(_reuse, sides))}",
        "tile waste": f"{_arrow(*(f'{100 * (side.waste - 1):.0f} %' for side in sides))} computed beyond the matrix, "
        f"tiles of {_arrow(*map(tile_words, sides))}",
        "waves": f"{waves} {'wave' if waves == '1' else 'waves'} on {covers[0].multiprocessors} multiprocessors "
        f"({tiles} tiles of {_arrow(*map(tile_words, sides))}, {idle} idle)",
        "memory": f"compulsory bytes against {_arrow(*(three_digits(side.flops / 1e9) for side in sides))} GFLOP",
        "split-K": f"K in {_arrow(*(str(cover.splits) for cover in covers))} slices, whose sums are written and added",
        "start": "the launch, the first loads and the last stores weigh more",
    }


def kernel_words(product: Product) -> str:
    """What kind of kernel computes a product, and how it is fed: `cuBLAS wgmma, fed by TMA`."""
    facts = product.facts
    kind = f"{facts.maker} {facts.path or ''}".strip()
    if product.tma:
        return f"{kind}, fed by TMA"
    return f"{kind}, loads of {product.load_bytes} B"


def tile_words(product: Product) -> str:
    """A tile as its kernel's name has it."""
    return "×".join(map(str, product.facts.tile or ()))


def _reuse(product: Product) -> str:
    cluster = "×".join(map(str, product.facts.cluster))
    return f"{tile_words(product)} in clusters of {cluster} ({three_digits(product.l2_intensity)} FLOP/B from the L2)"


def _arrow(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"
