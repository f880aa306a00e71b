"""Worlds of what an expert would add about memory and launches. Figures of an H200."""

from __future__ import annotations

from typing import Any

from builders import GPU

from worlds.made import Row, World

H200 = GPU | {"multiprocessors": 132, "compute_capability": "9.0"}
L2_KIB = 61440


def working_set(kib: int, rate: float) -> Row:
    """Read at `rate` TB/s."""
    where = "L2" if kib <= L2_KIB else "L2 and DRAM" if kib < 4 * L2_KIB else "DRAM"
    prediction = {"level": where, "capacities": {"L2": L2_KIB << 10}}
    return Row(f"working-set kib={kib}", 1000 / rate, prediction=prediction, fields={"nbytes": 10**9})


SETS = [
    working_set(kib, rate)
    for kib, rate in (
        (8192, 9.0), (16384, 8.8), (24576, 8.7), (57344, 6.8), (65536, 6.8), (73728, 6.0), (131072, 4.8),
        (262144, 4.7), (524288, 4.5),
    )
]  # fmt: skip
NO_L2 = {row.words: 1000 / 4.6 for row in SETS}
QUARTER_FASTER = {"working-set kib=8192": 1000 / 12}

STARTS = [
    *[Row(f"kernels way=stream n={n}", 4.2) for n in (1, 1024)],
    *[Row(f"kernels way=graph n={n}", 1.3) for n in (1, 1024)],
]
ROW = [Row(f"operations n={n} count=200", us) for n, us in ((2**8, 7), (2**16, 6.8), (2**24, 50.1))]
ALONE = [Row(f"operation n={n}", us) for n, us in ((2**8, 1.12), (2**16, 1.63), (2**24, 44.5))]


def chased(cluster: int, where: str, cycles: float) -> Row:
    return Row(f"latency cluster={cluster} where={where}", metrics={"cycles": cycles})


RING = [chased(2, "next", 194.7), chased(8, "next", 195.9), chased(2, "home", 33.7)]
FAR: dict[str, Any] = {f"latency cluster={cluster} where=next": {"cycles": 600} for cluster in (2, 8)}

WORLDS = [
    World("X03", SETS, NO_L2, QUARTER_FASTER),
    World(
        "X04",
        [*STARTS, ROW[-1], ALONE[-1]],
        {f"kernels way=graph n={n}": 4.2 for n in (1, 1024)},
        {ROW[-1].words: 70},
    ),
    World(
        "X05",
        [*ROW, *ALONE],
        {"operations n=256 count=200": 1, "operations n=65536 count=200": 20, "operations n=16777216 count=200": 1},
        {"operation n=65536": 1.12},
    ),
    World(
        "X08",
        RING,
        FAR | {"latency cluster=2 where=home": {"cycles": 600}},
        {"latency cluster=8 where=next": {"cycles": 240}},
        device=H200,
        proof="A",
    ),
]
