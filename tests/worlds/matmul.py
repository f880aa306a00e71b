"""Worlds of the matmul curve with kernels: what the model of tiles, waves and alignment is judged by."""

from __future__ import annotations

import random

from builders import GPU

from gpubench.model.kernel_facts import facts
from gpubench.model.launches import planned
from gpubench.model.matmul_time import Constants, Product, machine, time
from gpubench.result import KernelSeen
from worlds.made import Row, World

DEVICE = GPU | {"compute_capability": "9.0", "multiprocessors": 132, "sm_mhz_max": 1980, "memory_bytes": 150109880320}
WIDE = "nvjet_sm90_tst_256x128_64x4_1x1_h_bz_coopA_NNT"
NARROW = "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_nn_align1>"
SIZES = sorted({256 * multiple + step for multiple in range(4, 16) for step in (-8, -1, 0, 1, 8)})


def curve(smooth: bool = False) -> list[Row]:
    """A sweep that takes what the model says; or, of the same kernels, at one rate."""
    on = machine(DEVICE, "bfloat16")
    assert on is not None
    rows = []
    for n in SIZES:
        kernel = facts(WIDE if n % 8 == 0 else NARROW)
        product = Product(n, n, n, 2, "nn", kernel, planned(kernel, n, n, 132))
        ns = 2 * n**3 / 500e3 if smooth else time(product, on, Constants(start=4000, narrow=2.5)).ns
        seen = KernelSeen(kernel.name, grid=[product.cover.tiles, 1, 1])
        rows.append(
            Row(
                f"matmul n={n} m={n} k={n} dtype=bfloat16 layout=nn", ns / 1000,
                fields={"flops": 2 * n**3, "nbytes": 6 * n * n, "kernels": [seen]},
            )
        )  # fmt: skip
    return rows


def dealt() -> dict[str, float]:
    """The times of a curve whose rates were dealt to other sizes: it falls as often, and no model explains it."""
    rows = curve()
    slowness = [row.us / row.fields["flops"] for row in rows]
    random.Random("dealt").shuffle(slowness)
    return {row.words: row.fields["flops"] * each for row, each in zip(rows, slowness, strict=True)}


FLAT = {row.words: row.us for row in curve(smooth=True)}
WORLDS = [
    World("C01", curve(), FLAT, None, device=DEVICE, cpu=True),
    World("C01", curve(), dealt(), None, absent="PARTLY", device=DEVICE, cpu=True),
]
