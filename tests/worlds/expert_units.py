"""Worlds of what an expert would add: banks, warps against chains, atomics, special functions. Figures of an H200."""

from __future__ import annotations

from worlds.made import Row, World


def fma(warps: int, ilp: int, lanes: float) -> Row:
    law = min(128, 8 * warps * ilp)
    return Row(f"fma warps={warps} ilp={ilp}", 10, metrics={"lanes": lanes}, prediction={"lanes": law, "enough": 16})


def rate(operation: str, results: float, units: int) -> Row:
    return Row(f"throughput operation={operation}", metrics={"results": results}, prediction={"lanes": units})


STRIDES = [Row(f"stride stride={s}", metrics={"cycles": s + 0.013}) for s in (1, 2, 4, 8, 16, 32)]
CLEAN = Row("stride stride=33", metrics={"cycles": 1.013})
TRANSPOSES = [
    Row(f"transpose pitch={pitch} order={order} n=4096", us)
    for pitch, order, us in (
        (32, "transposed", 92.5),
        (33, "transposed", 55.6),
        (32, "copied", 52.5),
        (33, "copied", 52.3),
    )
]
CHAINS = [
    fma(4, 1, 27.8), fma(4, 2, 55), fma(8, 1, 54.9), fma(64, 4, 121.4), fma(32, 8, 124.1), fma(64, 8, 124.3),
]  # fmt: skip
COPIES = [Row("copy warps=4 ilp=2 mib=512", 594), Row("copy warps=8 ilp=1 mib=512", 542)]
ATOMICS = [
    Row(f"count addresses={addresses} blocks=8", us) for addresses, us in ((1, 12676), (2**18, 21.9), (2**20, 23.2))
]
MIX = [rate("fma", 121, 128), *(rate(f"{name}-fast", 15.9, 16) for name in ("divide", "sqrt", "exp"))]
FEWER = [rate("fma", 61, 64), *MIX[1:]]
"""Of a multiprocessor with half the units for multiply-adds: a quarter is right there, an eighth is not."""

WORLDS = [
    World(
        "X01",
        [*STRIDES, CLEAN, *TRANSPOSES],
        {row.words: {"cycles": 1.013} for row in STRIDES} | {"transpose pitch=32 order=transposed n=4096": 55.6},
        {"stride stride=33": {"cycles": 2}},
    ),
    World(
        "X01",
        [*STRIDES, CLEAN, *TRANSPOSES],
        {"transpose pitch=32 order=transposed n=4096": 55.6},
        {"transpose pitch=32 order=copied n=4096": 70},
        absent="PARTLY",
    ),
    World(
        "X02",
        CHAINS + COPIES,
        {row.words: {"lanes": lanes} for row, lanes in zip(CHAINS, (128, 128, 128, 32), strict=False)}
        | {"copy warps=4 ilp=2 mib=512": 942},
        {"fma warps=64 ilp=8": {"lanes": 248}},
    ),
    World(
        "X02",
        CHAINS + COPIES,
        {"copy warps=4 ilp=2 mib=512": 942},
        {"fma warps=32 ilp=8": {"lanes": 62}},
        absent="PARTLY",
    ),
    World(
        "X06",
        ATOMICS,
        {"count addresses=1 blocks=8": 23.2},
        {"count addresses=262144 blocks=8": 60},
    ),
    World(
        "X07",
        MIX,
        {f"throughput operation={name}-fast": {"results": 121} for name in ("divide", "sqrt", "exp")},
        {"throughput operation=fma": {"results": 96}},
        proof="A",
    ),
    World(
        "X07",
        FEWER,
        {row.words: {"results": 8} for row in FEWER[1:]},
        {"throughput operation=fma": {"results": 121}},
        absent="PARTLY",
        proof="A",
    ),
]
