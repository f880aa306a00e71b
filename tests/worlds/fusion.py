"""Worlds of the suite fusion."""

from __future__ import annotations

from typing import Any

from gpubench.result import KernelSeen
from worlds.made import Row, World


def kernels(count: int) -> dict[str, Any]:
    return {"fields": {"kernels": [KernelSeen("one", count=count)]}}


def pair(benchmark: str, eager_us: float, compiled_us: float, values: str = "n=4096") -> list[Row]:
    spent = {"compile_time": 3.0, "compile_cached": 0.0}
    return [
        Row(f"{benchmark} by=eager {values}", eager_us),
        Row(f"{benchmark} by=compiled {values}", compiled_us, metrics=spent),
    ]


PRODUCT = pair("matmul", 178, 178)
CHAINS = [
    *[row for k in (1, 2, 3, 4, 6, 8, 16) for row in pair("chain", 125 * k, 125 + k // 16, f"k={k} n=67108864")],
    Row("cos-cos by=one n=67108864", 125, **kernels(1)),
    Row("cos-cos by=compiled n=67108864", 130, **kernels(1)),
]  # fmt: skip
LONG = "n=536870912"
SINES = [
    Row(f"sin2-cos2 by=eager {LONG}", 5600, **kernels(5)),
    Row(f"sin2-cos2 by=compiled {LONG}", 1170, **kernels(1)),
    Row(f"sin2-cos2 by=kernel {LONG}", 1100, **kernels(1)),
    CHAINS[-2],
    *PRODUCT,
]
MOVED = {"eager": 22e9, "compiled": 2.1e9, "kernel": 2.1e9}
COUNTED = [
    Row(row.words, row.us, fields=row.fields, counters={"dram_bytes_read": read, "dram_bytes_write": 2.1e9})
    if (read := next((n for way, n in MOVED.items() if f"sin2-cos2 by={way}" in row.words), None)) else row
    for row in SINES
]  # fmt: skip
MODELS = [
    *pair("gelu", 900, 70),
    *pair("layer-norm", 700, 80),
    *pair("bias-residual-dropout", 400, 180),
    *pair("mlp", 600, 400),
    *PRODUCT,
]

WORLDS = [
    World(
        "C40",
        CHAINS,
        {f"chain by=compiled k={k} n=67108864": 120 * k for k in (2, 3, 4, 6)}
        | {"cos-cos by=compiled n=67108864": 250},
        {"chain by=compiled k=1 n=67108864": 100},
        cpu=True,
    ),
    World(
        "C41",
        COUNTED,
        {f"sin2-cos2 by=eager {LONG}": {"dram_bytes_read": 2.1e9}},
        {CHAINS[-2].words: Row(CHAINS[-2].words, 125, **kernels(2))},
        absent="PARTLY",
        proof="A",
    ),
    World(
        "C42",
        COUNTED,
        {f"sin2-cos2 by=compiled {LONG}": {"dram_bytes_read": 21e9, "dram_bytes_write": 2.5e9}},
        {"matmul by=compiled n=4096": 120},
        absent="PARTLY",
        proof="A",
        cpu=True,
    ),
    World(
        "C43",
        MODELS,
        {"gelu by=compiled n=4096": 900, "layer-norm by=compiled n=4096": 700, "mlp by=compiled n=4096": 600},
        {"matmul by=compiled n=4096": 120},
        cpu=True,
    ),
]
