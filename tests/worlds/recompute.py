"""Worlds of the suite recompute."""

from __future__ import annotations

from typing import Any

from worlds.made import Row, World

N = 2**28
WAYS = {"saved": 8, "recomputed": 5, "compiled": 6, "eager": 15, "checkpoint": 21}
"""Passes of three sigmoids."""


def dram(bytes_each: float) -> dict[str, Any]:
    """Counters of a row that moves so many bytes an element."""
    return {"dram_bytes_read": N * bytes_each / 2, "dram_bytes_write": N * bytes_each / 2}


def peak(nbytes: int) -> dict[str, Any]:
    return {"telemetry": {"peak_bytes": nbytes}}


def sigmoid(by: str) -> str:
    return f"sigmoids by={by} n={N}"


def chain(by: str, length: int) -> str:
    return f"chain by={by} length={length} n=67108864"


COPY = f"copy n={N}"
TIMED = [*[Row(sigmoid(by), 250 * passes) for by, passes in WAYS.items()], Row(COPY, 500)]
COUNTED = [
    *[Row(sigmoid(by), 250 * passes, counters=dram(4 * passes)) for by, passes in WAYS.items()],
    Row(COPY, 500, counters=dram(8)),
]
CHAINS = [
    *[
        Row(chain(by, length), 60 * (passes if by == "saved" else 5), fields=peak(passes + 1 if by == "saved" else 4))
        for by in ("saved", "recomputed")
        for length, passes in ((1, 5), (2, 6), (4, 10), (8, 18))
    ],
]
STACKS = [
    Row("products by=saved m=8192", 2400, fields=peak(512)),
    Row("products by=checkpoint m=8192", 3000, fields=peak(416)),
    Row("block-checkpoint by=saved depth=8", 3000, fields=peak(900)),
    Row("block-checkpoint by=checkpoint depth=8", 3500, fields=peak(400)),
]

WORLDS = [
    World("C44", TIMED, {sigmoid("saved"): 1250}, {sigmoid("recomputed"): 2000}),
    World("C44", COUNTED, {sigmoid("saved"): dram(20)}, {COPY: dram(12)}, proof="A"),
    World("C45", TIMED + CHAINS, {sigmoid("saved"): 1250}, {chain("saved", 1): 600}, cpu=True),
    World(
        "C45",
        COUNTED + CHAINS,
        {sigmoid("saved"): dram(20)},
        {chain("saved", 1): 600},
        absent="PARTLY",
        proof="A",
        cpu=True,
    ),
    World(
        "C46",
        CHAINS + STACKS,
        {chain("saved", 4): 300, chain("saved", 8): 300},
        {"products by=checkpoint m=8192": 2400},
        absent="PARTLY",
        cpu=True,
    ),
]
