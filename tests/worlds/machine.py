"""Worlds of the suites of the machine, and of the matmul curve."""

from __future__ import annotations

from typing import Any

from worlds.made import Row, World


def lanes(active: float) -> dict[str, Any]:
    return {"prediction": {"threads_per_instruction": active}}


def read(sectors: float) -> dict[str, Any]:
    return {"prediction": {"read_sectors_per_request": sectors}}


def counted(sectors: float, predicted: float) -> dict[str, Any]:
    return {"counters": {"sectors_per_load_request": sectors}, **read(predicted)}


def level(where: str, cycles: float) -> dict[str, Any]:
    sizes = {"L1": 256 << 10, "L2": 50 << 20}
    return {"metrics": {"cycles": cycles, "cycles_min": cycles}, "prediction": {"level": where, "capacities": sizes}}


SPLITS = [
    Row(f"lane-split k={k}", 1000 if k in (0, 32) else 2000, **lanes(32 if k in (0, 32) else 16)) for k in range(33)
]
MEMORY = [Row(f"memory-bound k={k}", 1000) for k in (0, 16)]
SWITCH = [Row(f"switch n={n}", 100 * n, **lanes(32 / n)) for n in (1, 2, 4, 8, 16, 32)]
BOUNDARY = [Row("boundary by=warp", 1000, **lanes(32)), Row("boundary by=lane", 2000, **lanes(16))]
ORDERS = [Row(f"permuted-copy order={order}", 1000, **read(4)) for order in ("straight", "shuffled")]
STRIDES = [
    Row(f"strided-read stride={s} mib=512", 1000 * min(s, 8), **read(min(4 * s, 32))) for s in (1, 2, 4, 8, 16, 32, 64)
]
OFFSETS = [Row(f"offset-copy offset={o}", 1000, **read(5 if o % 8 else 4)) for o in (0, 1, 8)]
GATHERS = [
    Row(f"gather window={window}", us, **read(8))
    for window, us in (("identity", 1000), ("32B", 1000), ("128B", 1050), ("whole", 7000))
]
TILES = [
    Row(f"tiles width={w} skew={s}", us, prediction={"read_sectors_per_request": read_sectors, "useful_share": share})
    for w, s, us, read_sectors, share in (
        (8, 0, 1000, 4, 1), (8, 1, 1300, 7.5, 8 / 11.5), (32, 0, 1000, 4, 1), (32, 1, 1110, 4.875, 8 / 8.875),
    )
]  # fmt: skip
FILL = [Row(f"fill threads={t}", {1: 1000, 32: 1000, 33: 1950, 64: 1960}[t]) for t in (1, 32, 33, 64)]
BLOCKS = [
    Row("blocks blocks=1", metrics={"multiprocessors": 1, "multiprocessors_of_a_block": 1}),
    Row("blocks blocks=10240", metrics={"multiprocessors": 132, "multiprocessors_of_a_block": 1}),
]
CHASE = [
    *[Row(f"chase kib={kib}", **level("L1", 33)) for kib in (4, 128, 232)],
    Row("chase kib=288", **level("L1 and L2", 200)),
    *[Row(f"chase kib={kib}", **level("L2", 270)) for kib in (1024, 16384, 49152)],
    Row("chase kib=57344", **level("L2 and DRAM", 500)),
    *[Row(f"chase kib={kib}", **level("DRAM", 680)) for kib in (262144, 524288)],
    *[Row(f"chase-past-l1 kib={kib}", **level("L2", 265)) for kib in (32, 512, 4096)],
    Row("chase-shared blocks=1", metrics={"cycles": 29}),
    Row("distance way=alone lines=8192", **level("L2", 260)),
]
LADDER = [
    Row("ladder rung=naive n=4096", 9000, prediction={"sectors_per_request": 16.5}),
    Row("ladder rung=coalesced n=4096", 3000),
    Row("ladder rung=shared n=4096", 2000),
    *[Row(f"tile-size tile={t} n=4096", {8: 3500, 16: 2500, 32: 2000}[t],
          prediction={"loaded_intensity": t / 4, "sectors_per_request": 4}) for t in (8, 16, 32)],
]  # fmt: skip
COUNTED_LADDER = [
    Row(row.words, row.us, counters={
        "global_load_requests": 32 * 10**6 // {"8": 8, "16": 16, "32": 32}.get(row.words.split("=")[1].split()[0], 1),
        "global_store_requests": 1000,
        "sectors_per_load_request": 16.5 if "naive" in row.words else 4,
    }, prediction=row.prediction)
    for row in LADDER
]  # fmt: skip
QUANTIZED = [
    Row(f"quantization grid={g} m={m}", {256: 1000, 257: 1500, 384: 1510}[m] if g == "many" else 1000,
        prediction={"useful_share": 0.67}) for g in ("many", "one-wave") for m in (256, 257, 384)
]  # fmt: skip
TURN = {"waves": 2, "idle_share_last_wave": 131 / 132, "slots": 132}
WAVES = [
    Row("blocks full=1 extra=-1", 1000),
    Row("blocks full=1 extra=0", 1000, metrics={"waves": 1, "idle_share_last_wave": 0, "places": 132}),
    Row("blocks full=1 extra=1", 2000, metrics={"waves": 2, "idle_share_last_wave": 131 / 132}, prediction=TURN),
    Row("matmul full=1 extra=0", 1000),
    Row("matmul full=1 extra=1", 1900),
]


def product(dtype: str, rate: float) -> Row:
    return Row(f"matmul shape=x dtype={dtype}", 1e12 / rate, fields={"flops": 10**9})


def chains(kind: str, rate: float) -> Row:
    return Row(f"fma format={kind}", 1e12 / rate, fields={"flops": 10**9})


PEAK = [product("bfloat16", 800e6), product("float32", 50e6), chains("fp32", 60e6)]
STREAMS = [Row(f"{name} mib=1", us, fields={"nbytes": 10**6}) for name, us in
           {"shared-read": 100, "l2-read": 400, "read": 800, "copy": 850}.items()]  # fmt: skip


def curve(odd: float = 4.0, eights: float = 1.0, half: float = 0.003) -> list[Row]:
    """A square sweep whose odd sizes take `odd` times as long a flop as those of 64, and multiples of 8 `eights`."""
    sizes = sorted({256 * k + step for k in range(1, 6) for step in (-8, -1, 0, 1, 8)})
    rows = []
    for n in sizes:
        us = 1e-4 * n**3 / 1000 * (odd if n % 2 else eights if n % 64 else 1)
        rows.append(
            Row(f"matmul n={n} m={n} k={n} dtype=bfloat16 layout=nn", us, fields={"flops": 2 * n**3, "half": half})
        )
    return rows


SIZES = {row.words: row.us for row in curve(odd=1)}
UNITS = [
    *[Row(f"rate unit={u}", metrics={"lanes": n}, prediction={"lanes": n}) for u, n in (("fp32", 128), ("exp2", 16))],
    Row("dependent unit=fp32", metrics={"cycles": 4}),
    Row(
        "mma-sync dtype=bfloat16",
        metrics={"flop_per_clock": 2500},
        prediction={"flop_per_clock": 4096, "bound": "at most"},
        fields={"labels": {"instruction": "mma.sync"}},
    ),
    Row(
        "wgmma dtype=bfloat16",
        metrics={"flop_per_clock": 4000},
        prediction={"flop_per_clock": 4096, "bound": "equal"},
        fields={"labels": {"instruction": "wgmma"}},
    ),
]
PINGS = [
    Row(f"ping-pong path={path}", metrics={"cycles": cycles, "multiprocessors": places})
    for path, cycles, places in (("shared", 40, 1), ("cluster", 190, 2), ("global", 700, 2))
]
FLIGHT = [
    Row(f"in-flight warps={w} loads=4", 64000 / w, prediction={"bytes_in_flight": 2048 * w, "knee_bytes": 2**20})
    for w in (1, 2, 4, 8)
]
CPU_SIZES = {"capacities": {"L1": 32 << 10, "L2": 1 << 20}}
CPU_CHASE = [
    Row(f"chase kib={kib}", metrics={"latency": ns}, prediction={"level": where, **CPU_SIZES})
    for kib, ns, where in ((4, 1.2, "L1"), (16, 1.2, "L1"), (32, 1.9, "L1"), (512, 4, "L2"), (262144, 90, "DRAM"))
]

WORLDS = [
    World(
        "C31",
        SPLITS + MEMORY,
        {f"lane-split k={k}": 1000 for k in range(1, 32)},
        {"memory-bound k=16": 1900},
        absent="PARTLY",
    ),
    World("C32", SWITCH + SPLITS, {f"switch n={n}": 100 for n in (2, 4, 8, 16, 32)}, {"lane-split k=32": 2000}),
    World("C33", SPLITS + BOUNDARY, {"boundary by=warp": 1900}, {"boundary by=lane": 1000}),
    World(
        "C47",
        STRIDES + ORDERS,
        {row.words: 1000 for row in STRIDES},
        {"permuted-copy order=shuffled": 3000},
        absent="PARTLY",
        cpu=True,
    ),
    World(
        "C48",
        STRIDES + ORDERS + OFFSETS,
        {"permuted-copy order=shuffled": 2000},
        {"strided-read stride=8 mib=512": 1000},
    ),
    World(
        "C49",
        [Row("walk along=row", 4000, **read(32)), Row("walk along=column", **read(4)), *ORDERS],
        {"walk along=row": 1000},
        {"permuted-copy order=shuffled": 3000},
        cpu=True,
    ),
    World("C20", GATHERS, {"gather window=whole": 1000}, {"gather window=128B": 3000}, cpu=True),
    World(
        "C54",
        TILES + OFFSETS,
        {"tiles width=8 skew=1": 1000, "tiles width=32 skew=1": 1000},
        {"offset-copy offset=8": 1300},
    ),
    World(
        "C12",
        BLOCKS,
        {"blocks blocks=10240": {"multiprocessors": 108}},
        {"blocks blocks=1": {"multiprocessors": 2}},
        proof="A",
        alone=True,
    ),
    World(
        "C13",
        UNITS,
        {
            "rate unit=fp32": {"lanes": 64},
            "rate unit=exp2": {"lanes": 4},
            "wgmma dtype=bfloat16": {"flop_per_clock": 9},
        },
        {"dependent unit=fp32": {"cycles": 1}},
        proof="A",
    ),
    World("C17", FILL, {"fill threads=32": 2000, "fill threads=64": 4000}, {"fill threads=64": 1000}),
    World(
        "C18",
        BLOCKS,
        {"blocks blocks=10240": {"multiprocessors_of_a_block": 2}},
        {"blocks blocks=10240": {"multiprocessors": 1}},
        proof="A",
        alone=True,
    ),
    World(
        "C19",
        [Row("warp threads=1024", metrics={"warp_width": 32}), *FILL],
        {"fill threads=33": 1000},
        {"fill threads=1": 500},
        absent="PARTLY",
    ),
    World(
        "C21",
        PINGS,
        {"ping-pong path=global": {"cycles": 41}, "ping-pong path=cluster": {"cycles": 40}},
        {"ping-pong path=global": {"multiprocessors": 1}},
        absent="PARTLY",
        proof="A",
    ),
    World(
        "C14",
        CHASE,
        {f"chase-past-l1 kib={kib}": {"cycles": 100} for kib in (32, 512, 4096)},
        {"chase-past-l1 kib=4096": {"cycles": 900}},
        absent="PARTLY",
        proof="A",
        cpu=True,
    ),
    World(
        "C16",
        CHASE,
        {f"chase kib={kib}": {"cycles": 29} for kib in (262144, 524288)},
        {f"chase kib={kib}": {"cycles": 300} for kib in (4, 128, 232)},
        proof="A",
    ),
    World("C11", FLIGHT, {row.words: 1000 for row in FLIGHT}, None, verdict="INFO", absent="INFO", alone=True),
    World("C50", LADDER, {"ladder rung=coalesced n=4096": 2000}, {"ladder rung=shared n=4096": 3000}, cpu=True),
    World(
        "C50",
        COUNTED_LADDER,
        {"ladder rung=coalesced n=4096": {"global_load_requests": 10**6}},
        {"tile-size tile=32 n=4096": {"global_store_requests": 9}},
        proof="A",
        cpu=True,
    ),
    World("C51", LADDER, {"tile-size tile=8 n=4096": 2000}, {"ladder rung=shared n=4096": 3000}, cpu=True),
    World("C52", LADDER, {"ladder rung=naive n=4096": 2000}, {"ladder rung=shared n=4096": 3000}),
    World(
        "C52",
        COUNTED_LADDER,
        {"ladder rung=naive n=4096": {"sectors_per_load_request": 4}},
        {"ladder rung=shared n=4096": 3000},
        proof="A",
    ),
    World(
        "C53",
        QUANTIZED,
        {"quantization grid=many m=257": 1000, "quantization grid=many m=384": 1500},
        {"quantization grid=one-wave m=257": 1500},
    ),
    World(
        "C58", WAVES, {"blocks full=1 extra=1": 1000, "matmul full=1 extra=1": 1000}, {"blocks full=1 extra=-1": 500}
    ),
    World(
        "C59",
        WAVES,
        {"blocks full=1 extra=1": {"waves": 1, "idle_share_last_wave": 0}},
        {"blocks full=1 extra=0": {"places": 100}},
        proof="A",
    ),
    World("C15", STREAMS, {"shared-read mib=1": 800}, {"copy mib=1": 2000}),
    World("C25", PEAK, {"matmul shape=x dtype=bfloat16": 1e12 / 60e6}, {"matmul shape=x dtype=float32": 1e3}),
    World("C24", curve(), SIZES, None, cpu=True),
    World("C01", curve(), SIZES, None, verdict="INFO", absent="INFO", cpu=True, alone=True),
    World("C57", curve(), SIZES, {row.words: row.us for row in curve(eights=3)}, cpu=True),
    World("C55", curve(), SIZES, None, cpu=True),
]
