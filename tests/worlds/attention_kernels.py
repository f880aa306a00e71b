"""Worlds of the suite attention-kernels, whose kernels are our own."""

from __future__ import annotations

from worlds.made import Row, World


def order(which: str, n: int, us: float, written: float | None = None) -> Row:
    counters = {} if written is None else {"l2_sectors_write": written}
    return Row(f"loop-order order={which} n={n}", us, counters=counters)


TIMED = [order("keys", 128, 100), order("queries", 128, 100), order("keys", 4096, 900), order("queries", 4096, 300)]
COUNTED = [
    order("keys", 128, 100, 1000), order("queries", 128, 100, 1030),
    order("keys", 4096, 900, 32000), order("queries", 4096, 300, 1030),
]  # fmt: skip


def rung(by: str, us: float, nbytes: float | None = None) -> Row:
    counters = {} if nbytes is None else {"dram_bytes_read": nbytes, "dram_bytes_write": nbytes}
    return Row(f"ladder by={by} n=1024 d=64", us, counters=counters)


LADDER = [rung("flash", 1000), rung("two-sweeps", 1300), rung("tiled", 2500), rung("naive", 30000)]
KEEPING = rung("keeping", 1800)
MOVED = [rung("flash", 1000, 1e8), rung("two-sweeps", 1300, 1e8), rung("tiled", 1040, 1e9)]
BESIDE = [
    Row(f"beside-torch by={by} shape=lecture dtype=float16", us)
    for by, us in (("ours", 1000), ("naive", 2000), ("flash", 600))
]

WORLDS = [
    World("C65", TIMED, {TIMED[2].words: 300}, {TIMED[0].words: 200}),
    World(
        "C65",
        COUNTED,
        {COUNTED[2].words: {"l2_sectors_write": 1030}},
        {COUNTED[0].words: {"l2_sectors_write": 9000}},
        proof="A",
    ),
    World("C71", LADDER, {LADDER[1].words: 1000, LADDER[2].words: 1000}, None),
    World("C71", [*LADDER, KEEPING], {row.words: 1000 for row in (*LADDER[1:3], KEEPING)}, None),
    World("C71", MOVED, {MOVED[1].words: 1000, MOVED[2].words: rung("tiled", 1000, 1e8)}, None, proof="A"),
]
