"""Worlds of the transformer block, of the roofline's slope, and of what one core adds."""

from __future__ import annotations

from worlds.machine import PEAK
from worlds.made import Row, World

COPY, FMA, PRODUCTS = 4.14e12, 60e12, 800e12
"""The roofs that every world has, in B/s and FLOP/s."""


def shares(products: float, unknown: float = 0.0) -> dict[str, float]:
    return {"product_time_share": products, "unknown_time_share": unknown}


def part(name: str, flops: float, nbytes: float, share: float) -> Row:
    """An operation that takes the time of the roof over it, at this share of it."""
    us = 1e6 * max(flops / PRODUCTS, nbytes / COPY) / share
    return Row(f"operation part={name}", us, fields={"flops": int(flops), "nbytes": int(nbytes)})


FLOP_SHARE = {"product_flop_share": 0.995}
BLOCKS = [
    Row("block model=gpt2-medium passes=both by=eager", 3000, shares(0.75), prediction=FLOP_SHARE),
    Row("block model=gpt2-medium passes=both by=compiled", 2500, shares(0.9), prediction=FLOP_SHARE),
    Row("operation part=up", 300, shares(0.99)),
]
PARTS = [
    part("up", 1e12, 1e9, 0.8), part("scores", 1e11, 1e9, 0.7), part("gelu", 2e9, 1e9, 0.9),
    part("layer-norm", 2e9, 1e9, 0.8), part("residual", 1e8, 1e9, 0.9), part("decode", 1e9, 1e9, 0.9),
]  # fmt: skip

N = 2**26
STREAM = [
    Row(f"repeated links={k}", 1e6 * max(8 * N / COPY, 2 * k * N / FMA), fields={"flops": 2 * k * N, "nbytes": 8 * N})
    for k in (2**power for power in range(11))
]
REGISTERS = [Row(f"registers links={k}", 20 * k) for k in (32, 64, 128, 256)]
SIDES = [
    Row("product kind=dense", 2750, fields={"flops": 2 * 4096**3, "nbytes": 2 * 10**8}),
    Row("product kind=sparse", 25, fields={"flops": 2 * 10**7, "nbytes": 8 * 10**7}),
]

WORLDS = [
    World(
        "C26",
        BLOCKS,
        {"block model=gpt2-medium passes=both by=eager": shares(0.99)},
        {"operation part=up": shares(0.5)},
        absent="PARTLY",
    ),
    World("C28", PARTS, {"operation part=scores": 1000}, {"operation part=up": 9999}, absent="PARTLY"),
    World(
        "C29",
        STREAM + REGISTERS + SIDES,
        {row.words: 1000 for row in STREAM},
        {row.words: 1000 for row in REGISTERS},
        absent="PARTLY",
        cpu=True,
    ),
    World("C04", PEAK, {}, None, verdict="INFO", absent="INFO", cpu=True),
]
