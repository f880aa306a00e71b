"""Worlds of the number formats."""

from __future__ import annotations

from worlds.made import Row, World

WORK = {"flops": 10**9}


def product(dtype: str, rate: float) -> Row:
    """A product at so many FLOP a µs."""
    return Row(f"matmul n=8192 dtype={dtype}", 1e9 / rate, fields=WORK)


def unit(name: str, rate: float) -> Row:
    return Row(f"units unit={name}", 1e9 / rate, fields=WORK)


PRODUCTS = [
    product(dtype, 1e3 * rate)
    for dtype, rate in (
        ("float32", 51), ("tf32", 420), ("float16", 800), ("bfloat16", 830), ("float8_e4m3", 1580), ("float64", 25),
    )
]  # fmt: skip
UNITS = [
    unit(name, 1e3 * rate)
    for name, rate in (
        ("fp32", 64), ("fp16x2", 100), ("dp4a", 130), ("mma-fp16", 600), ("mma-tf32", 300), ("mma-int8", 1200),
    )
]  # fmt: skip


def weights(kind: str, us: float, shape: str = "8x8x8", dtype: str = "bfloat16") -> Row:
    return Row(f"sparse shape={shape} dtype={dtype} weights={kind}", us, fields=WORK)


SPARSE = [
    weights("dense", 1000), weights("unpruned", 1030), weights("cusparselt", 560), weights("cutlass", 900),
    weights("dense", 100, "8x8x1"), weights("cusparselt", 300, "8x8x1"),
    weights("dense", 1000, dtype="float8_e4m3"), weights("cusparselt", 800, dtype="float8_e4m3"),
]  # fmt: skip
RELU = [
    Row(f"relu n={n} dtype={dtype}", us, fields={"nbytes": 2 * size * n})
    for dtype, size in (("float32", 4), ("float16", 2), ("bfloat16", 2), ("float8_e4m3", 1))
    for n, us in ((1024, 2), (2**29, 250 * size))
]
COUNTED = [
    Row(
        row.words,
        row.us,
        counters={"dram_bytes_read": size / 2, "dram_bytes_write": 0.98 * size / 2},
        fields=row.fields,
    )
    for row in RELU
    for size in (row.fields["nbytes"],)
]
NOT_LESS = {row.words: 1000 for row in RELU if "n=1024" not in row.words}

WORLDS = [
    World(
        "C06",
        PRODUCTS + UNITS + SPARSE,
        {"matmul n=8192 dtype=float8_e4m3": 1e9 / 64e3},
        {"matmul n=8192 dtype=float32": 1.0},
    ),
    World(
        "C07",
        PRODUCTS,
        {f"matmul n=8192 dtype={dtype}": 1e9 / 420e3 for dtype in ("bfloat16", "float16", "float8_e4m3")},
        {"matmul n=8192 dtype=float16": 1e9 / 400e3},
    ),
    World(
        "C08",
        UNITS + PRODUCTS,
        {"units unit=mma-fp16": 1e9 / 100e3},
        {"matmul n=8192 dtype=float32": 1.0},
    ),
    World(
        "C10",
        SPARSE,
        {row.words: 1000 for row in SPARSE if "=cu" in row.words},
        {"sparse shape=8x8x8 dtype=bfloat16 weights=unpruned": 1500},
    ),
    World("C34", RELU, NOT_LESS, {"relu n=1024 dtype=float32": 4}, cpu=True),
    World(
        "C34",
        COUNTED,
        {row.words: {"dram_bytes_read": 2 * row.fields["nbytes"]} for row in COUNTED if "n=1024" not in row.words},
        {"relu n=1024 dtype=float32": 4},
        proof="A",
        cpu=True,
    ),
    World("C35", RELU, NOT_LESS, {"relu n=1024 dtype=float32": 4}, cpu=True),
]
