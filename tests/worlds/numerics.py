"""Worlds of the suite numerics: what its rows find, on a GPU that adds products in float32."""

from __future__ import annotations

from worlds.made import Row, World

STALLS = [
    Row(f"accumulate dtype={dtype}", metrics={"stalls_at": at, "ulps": at / 8})
    for dtype, at in (("float16", 2048), ("bfloat16", 256), ("float32", 2**24))
]
SUMS = [Row(f"sum-ones dtype=float16 how={how} n=10000", metrics={"sum": 10_000}) for how in ("library", "in-pairs")]
ENDS = [
    Row(
        f"exp-range dtype={dtype} steps=128",
        metrics={
            "vanishes_at": vanishes, "nonzero_from": vanishes + step, "finite_to": finite,
            "overflows_at": finite + step, "largest": largest, "holes": 0,
        },
    )
    for dtype, vanishes, finite, step, largest in (
        ("float16", -17.335, 11.086, 0.008, 65250), ("bfloat16", -93, 88.5, 0.5, 2.67e38),
        ("float32", -103.975, 88.719, 0.008, 3.389e38), ("float8_e4m3", -6.94, 6.137, 0.008, 448),
        ("float8_e5m2", -11.79, 11.023, 0.008, 57344),
    )
]  # fmt: skip
OPERATIONS = [
    Row(f"pointwise-error op={op} dtype={dtype} n=64", metrics={"ulps": each, "ulps_of_rms": 0.5})
    for dtype in ("float16", "bfloat16")
    for op, each in (("relu", 0), ("tanh", 0.5), ("add", 0.5), ("mul", 0.5), ("gelu", 7.6), ("matmul", 4))
]
ERRORS = [
    Row(f"matmul-error arithmetic={how} k=16384 n=2048", us, metrics={"error": error}, prediction={"error": error})
    for how, error, us in (
        ("float16", 2e-4, 200), ("float16-fp16-accum", 4.3e-3, 200), ("float8_e4m3", 4e-4, 110),
        ("float8_e4m3-fast-accum", 4.3e-3, 100),
    )
]  # fmt: skip
ONES = [
    Row(f"ones-product arithmetic={how} k=4096 n=1024", metrics={"largest_error": 0}) for how in ("float16", "bfloat16")
]

WORLDS = [
    World(
        "C36",
        ERRORS + ONES,
        {"matmul-error arithmetic=float16-fp16-accum k=16384 n=2048": {"error": 2e-4}},
        {"ones-product arithmetic=float16 k=4096 n=1024": {"largest_error": 8}},
        proof="A",
    ),
    World(
        "C36",
        ERRORS + ONES,
        {"matmul-error arithmetic=float16-fp16-accum k=16384 n=2048": {"error": 2e-4}},
        {"matmul-error arithmetic=float16-fp16-accum k=16384 n=2048": {"error": 0.2}},
        proof="A",
    ),
    World(
        "C37",
        OPERATIONS + STALLS,
        {row.words: {"ulps": 3, "ulps_of_rms": 3} for row in OPERATIONS},
        {"accumulate dtype=float16": {"ulps": 1}},
        proof="A",
        cpu=True,
    ),
    World(
        "C38",
        STALLS + SUMS,
        {"accumulate dtype=float16": {"stalls_at": 4096}, "accumulate dtype=bfloat16": {"stalls_at": 320},
         "accumulate dtype=float32": {"stalls_at": 2**25}},
        {"sum-ones dtype=float16 how=library n=10000": {"sum": 2048}},
        proof="A",
        cpu=True,
    ),
    World(
        "C39",
        ENDS,
        {"exp-range dtype=float16 steps=128": {"finite_to": 88.719, "overflows_at": 88.727}},
        {"exp-range dtype=bfloat16 steps=128": {"holes": 3}},
        absent="PARTLY",
        proof="A",
        cpu=True,
    ),
]  # fmt: skip
