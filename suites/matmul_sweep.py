"""Matmul shape sweep: why is the rate of a square matrix product not a smooth curve of its size?

Three causes lie over each other: how many flops there are per byte, how the matrices' rows are aligned in memory (the
class of a row), and how the output's tiles fill whole waves of the GPU's units.
"""

from __future__ import annotations

from typing import Any

from gpubench import TIMES, Axis, Effect, Estimate, Finding, RowsMissing, Suite, Workload, exactly
from gpubench.model import matmul as work
from gpubench.model import matmul_fit, matmul_time

suite = Suite(__file__)

GRID = range(256, 4352 + 1, 64)
NEIGHBOURS = [
    256 * multiple + sign * step for multiple in range(1, 17 + 1) for step in (1, 2, 4, 8) for sign in (-1, 1)
]
WAVES = [*range(1700, 1900 + 1, 4), *range(1788, 1800 + 1)]
"""Around 1792: the lecture's A100 goes from 98 tiles of 128 × 256 to 120 at the next size, and has 108 units."""
SIZES = sorted({*GRID, *NEIGHBOURS, *WAVES})
CPU_SIZES = [size for size in SIZES if size <= 1024]
DTYPES = ["float64", "float32", "tf32", "float16", "bfloat16"]


@suite.benchmark(
    n=Axis(
        SIZES,
        cpu=CPU_SIZES,
        quick=[256, 512, 1024, 1536, 1791, 1792, 1793, 2048, 2049, 3072, 4096, 4097],
        quick_cpu=[255, 256, 257, 320, 384, 448, 511, 512, 513, 640, 768, 1024],
    ),
    m=Axis(same_as="n"),
    k=Axis(same_as="n"),
    dtype=Axis(["bfloat16"], cpu=["float32"], choices=DTYPES),
    layout=Axis(["nn"], choices=["nn", "nt", "tn"]),
)
def matmul(device: Any, n: int, m: int, k: int, dtype: str, layout: str) -> Workload:
    """The library's product of an m × k and a k × n matrix; layout says which of them is stored transposed (t).

    dtype tf32 is float32 matrices whose products are rounded to TF32 by the tensor cores.
    """
    import torch

    stored = "float32" if dtype == "tf32" else dtype
    a = device.random((k, m), stored, seed=0).t() if layout == "tn" else device.random((m, k), stored, seed=0)
    b = device.random((n, k), stored, seed=1).t() if layout == "nt" else device.random((k, n), stored, seed=1)
    c = device.unwritten((m, n), stored)
    itemsize = c.element_size()
    return Workload(
        run=lambda: torch.mm(a, b, out=c),
        output=c,
        reference=lambda: work.reference(a, b),
        reference_name=work.reference_name(dtype),
        flops=work.flops(m, n, k),
        bytes=work.bytes(m, n, k, itemsize),
        reduction=k,
        accumulate="float64" if dtype == "float64" else "float32",
        precision="tf32" if dtype == "tf32" else "ieee",
        dtype=dtype,
        roof=f"{dtype} matmul",
        labels={"alignment": f"{work.alignment(m, n, k, layout, itemsize)} B"},
    )


# The lecture's claims.

DROP, DROPS = 1.05, 3
"""A local drop is a rate that falls by more than this from one size to the next; three of them are no accident."""
STEP, ALIKE = 1.2, 1.25
"""Rows aligned to 16 bytes against odd sizes beside them, by rate; and sizes that are both multiples of 8."""
OFTEN = 0.8
"""The share of the prime sizes that are slower."""
EXPLAINED, BY_CHANCE, SHUFFLES = 0.7, 0.2, 3
"""The share of the variance of log FLOP/s that the model must explain of sizes it has not seen, and what its constants
may of rates without order."""


def by_size(view: Any) -> dict[int, Any]:
    """The square rows of one dtype and layout by n."""
    rows = view.rows("matmul")
    first = {name: rows[0].params[name] for name in ("dtype", "layout")}
    square = [row for row in view.rows("matmul", **first) if len({row.params[name] for name in "mnk"}) == 1]
    return {row.params["n"]: row for row in sorted(square, key=lambda row: row.params["n"])}


def drops(view: Any, rows: dict[int, Any]) -> Effect:
    """How many sizes are slower than the size before by more than DROP: for certain, as measured, and perhaps."""
    if len(rows) < 10:
        raise RowsMissing("ten sizes at least are a curve")
    pairs = list(zip(rows.values(), list(rows.values())[1:], strict=False))
    found = [view.ratio(after, before, per="flops") for before, after in pairs]
    sure, seen, maybe = (sum(value > DROP for value in values) for values in (
        (each.low for each in found), (each.value for each in found), (each.high for each in found)
    ))  # fmt: skip
    return Effect("local drops of more than 5 %", Estimate(seen, sure, maybe), "1", DROPS)


def quiet(view: Any, rows: dict[int, Any]) -> Effect:
    """The control: the median of a row is known far better than a drop is large."""
    found = sorted((each.high - each.low) / 2 / each.value for each in map(view.median, rows.values()))
    middle = found[len(found) // 2]
    return Effect(
        "half-width of a row's median, in the middle", Estimate(middle, middle, middle), "1", 0, (DROP - 1) / 2
    )


@suite.claim("C24")
def it_undulates(view: Any) -> Finding:
    """The rate of a square product falls again and again as the matrix grows."""
    rows = by_size(view)
    return Finding(effects=(drops(view, rows),), controls=(quiet(view, rows),))


@suite.claim("C01")
def not_monotone(view: Any) -> Finding:
    """The curve falls again and again, and a model of tiles, waves, alignment and bytes accounts for most of it."""
    rows = by_size(view)
    found = drops(view, rows)
    products = by_kernel(view, rows)
    on = matmul_time.machine(view.facts, str(next(iter(rows.values())).params["dtype"]))
    if on is None or len(products) < matmul_fit.LEAST:
        note = f"drops are counted; what explains them takes {matmul_fit.LEAST} sizes and the kernels that ran"
        return Finding(effects=(Effect(found.name, found.found),), note=note)
    left = matmul_fit.left_out(products, on)
    share = matmul_fit.explained(left.model, left.level)
    explained = Estimate(share, *matmul_fit.interval(left.model, left.level, "C01"))
    dealt = sorted(matmul_fit.shuffled(products, on, f"C01 {turn}") for turn in range(SHUFFLES))
    return Finding(
        effects=(
            found,
            Effect("log-variance that the model explains, blocks of sizes left out", explained, "1", EXPLAINED),
            Effect("the same of alignment classes and a smooth curve",
                   exactly(matmul_fit.explained(left.classes, left.level))),
        ),
        controls=(
            quiet(view, rows),
            Effect("the same of rates dealt to other sizes, all seen",
                   Estimate(dealt[len(dealt) // 2], dealt[0], dealt[-1]), "1", at_most=BY_CHANCE),
        ),
        prediction={"constants": len(matmul_time.BEGIN.values), "sizes": len(products)},
    )  # fmt: skip


def by_kernel(view: Any, rows: dict[int, Any]) -> list[tuple[matmul_time.Product, float]]:
    """The rows whose kernels the model knows, with their medians in ns, by size."""
    units = int(view.facts.get("multiprocessors") or 0)
    found = []
    for n, row in rows.items():
        launches = [(kernel.name, kernel.kind, kernel.grid) for kernel in row.kernels]
        seen = matmul_time.seen(n, n, n, row.params["dtype"], row.params["layout"], launches, units)
        if seen is not None:
            found.append((seen, view.median(row).value))
    return found


@suite.claim("C57")
def by_divisibility(view: Any) -> Finding:
    """Odd sizes are slower than the multiples of 8 beside them."""
    rows = by_size(view)
    odd = [(row, rows[n + side]) for n, row in rows.items() for side in (-1, 1) if n % 2 and (n + side) % 64 == 0
           and n + side in rows]  # fmt: skip
    even = [(rows[n + side], row) for n, row in rows.items() for side in (-8, 8) if n % 64 == 0 and n + side in rows]
    return Finding(
        effects=(Effect("time per flop of odd sizes over multiples of 64", _pairs(view, odd), TIMES, STEP),),
        controls=(Effect("multiples of 8 over multiples of 64", _pairs(view, even), "1", 1 / ALIKE, ALIKE),),
    )


@suite.claim("C55")
def no_primes(view: Any) -> Finding:
    """A prime size is slower than the next multiple of 64."""
    rows = by_size(view)
    primes = [(row, rows[above]) for n, row in rows.items() if _is_prime(n) and (above := -(-n // 64) * 64) in rows]
    if not primes:
        raise RowsMissing("no prime size beside a multiple of 64")
    found = [view.ratio(row, above, per="flops") for row, above in primes]
    low, value, high = (sum(limit > STEP for limit in limits) / len(found) for limits in (
        [each.low for each in found], [each.value for each in found], [each.high for each in found]
    ))  # fmt: skip
    name = f"share of {len(found)} prime sizes that are slower by a fifth"
    return Finding(effects=(Effect(name, Estimate(value, low, high), "1", OFTEN),), controls=(quiet(view, rows),))


def _pairs(view: Any, pairs: list[tuple[Any, Any]]) -> Estimate:
    """The middle one of the ratios of pairs of rows, by time per flop, with the limits of its own."""
    if not pairs:
        raise RowsMissing("no sizes beside each other")
    found = sorted((view.ratio(over, under, per="flops") for over, under in pairs), key=lambda each: each.value)
    return found[len(found) // 2]


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % factor for factor in range(2, int(n**0.5) + 1))
