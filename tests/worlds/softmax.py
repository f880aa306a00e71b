"""Worlds of the suite softmax."""

from __future__ import annotations

from worlds.made import Row, World

PASSES = [
    Row("passes by=three-pass v=1000 rows=4000", 10),
    Row("passes by=online v=1000 rows=4000", 10),
    Row("passes by=three-pass v=100000 rows=4000", 1500, prediction={"accesses": 4}),
    Row("passes by=online v=100000 rows=4000", 1150, prediction={"accesses": 3}),
    Row("short-rows by=three-pass v=1000 rows=400000", 800),
    Row("short-rows by=online v=1000 rows=400000", 800),
    Row("top by=unfused v=100000 rows=4000", 1900),
    Row("top by=fused v=100000 rows=4000", 400),
]
READ = {"passes by=three-pass": 4.8e9, "passes by=online": 3.2e9}
COUNTED = [
    Row(row.words, row.us, prediction=row.prediction, counters={
        "dram_bytes_read": next((n for way, n in READ.items() if way in row.words), 1.6e9), "dram_bytes_write": 1.6e9,
    })
    for row in PASSES
]  # fmt: skip
TRIALS = [
    Row(f"recurrence by={by} offset={offset}", 50,
        metrics={"relative_error": 2e-7, "overflowed": float(by == "naive" and offset > 0)},
        prediction={"overflowed": float(by == "naive" and offset > 0)})
    for by in ("running", "naive") for offset in (0, 10000)
]  # fmt: skip

WORLDS = [
    World(
        "C62",
        [Row("reach v=1000 rows=64", 5, metrics={"changed_in_row": 1, "changed_elsewhere": 0})],
        {"reach v=1000 rows=64": {"changed_in_row": 0.5}},
        {"reach v=1000 rows=64": {"changed_elsewhere": 0.1}},
        proof="A",
        cpu=True,
        alone=True,
    ),
    World(
        "C66",
        PASSES,
        {"passes by=online v=100000 rows=4000": 1500},
        {"short-rows by=online v=1000 rows=400000": 600},
        cpu=True,
    ),
    World(
        "C66",
        COUNTED,
        {
            "passes by=online v=100000 rows=4000": {"dram_bytes_read": 4.8e9},
            "passes by=three-pass v=100000 rows=4000": 1150,
        },
        {"short-rows by=three-pass v=1000 rows=400000": {"dram_bytes_read": 3.2e9}},
        proof="A",
        cpu=True,
    ),
    World(
        "C67",
        TRIALS,
        {f"recurrence by=running offset={offset}": {"relative_error": 1e-3} for offset in (0, 10000)},
        {"recurrence by=naive offset=10000": {"overflowed": 0}},
        proof="A",
        cpu=True,
    ),
]
