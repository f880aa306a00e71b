"""Occupancy: how many warps does a multiprocessor need, and how many of them can parallelism in each thread replace?"""

from __future__ import annotations

import math
from statistics import median
from typing import Any

from gpubench import TIMES, Axis, Effect, Finding, Metric, NotTestable, Skip, Suite, Workload, exactly
from gpubench.model import execution, hierarchy

suite = Suite(__file__)

CHAINS = suite.kernel("independent_chains", defines={"ILP": [1, 2, 4, 8]})
COPY = suite.kernel("copy_with", defines={"ILP": [1, 2, 4, 8]})

LINKS = 2048
"""Links of a chain."""
OTHER_REGISTERS = 16
"""Registers of a thread of the copy beside those that its loads fill."""
BLOCK_WARPS = 32
"""The most warps of a block."""


def grid_of(device: Any, warps: int) -> tuple[int, int]:
    """Blocks of the grid and threads of a block that put `warps` warps on each multiprocessor."""
    facts = device.facts()
    most = facts.get("threads_per_multiprocessor")
    if most and 32 * warps > most:
        raise Skip(f"a multiprocessor of this GPU holds {most // 32} warps")
    share = -(-warps // BLOCK_WARPS)
    if warps % share:
        raise Skip(f"{warps} warps are not {share} equal blocks")
    return share * (facts.get("multiprocessors") or 1), 32 * warps // share


def grouped(places: list[list[int]]) -> dict[int, list[tuple[int, int]]]:
    """Beginnings and ends of blocks by the multiprocessor they ran on."""
    found: dict[int, list[tuple[int, int]]] = {}
    for place, begin, end in places:
        found.setdefault(place, []).append((begin, end))
    return found


@suite.benchmark(
    warps=Axis([4, 8, 16, 32, 64], quick=[4, 16, 64]),
    ilp=Axis([1, 2, 4, 8], quick=[1, 4]),
)
def fma(device: Any, warps: int, ilp: int) -> Workload:
    """fp32 multiply-adds a clock with few warps a multiprocessor, each thread with `ilp` independent chains."""
    import numpy as np

    grid, threads = grid_of(device, warps)
    out, places = device.unwritten(grid * threads, "float32"), device.unwritten((grid, 3), "int64")
    links = ilp * LINKS
    expected = execution.hiding(warps, ilp, device.facts())
    enough = warps * ilp >= expected.get("enough", math.inf)

    def lanes() -> list[Metric]:
        """Of a multiprocessor, from its first block's beginning to its last one's end: of two blocks it runs the older
        one first, and the other may not even have looked at the clock until that one ended."""
        rates = []
        for blocks in grouped(places.tolist()).values():
            cycles = max(end for _, end in blocks) - min(begin for begin, _ in blocks)
            rates.append(len(blocks) * threads * links / max(1, cycles))
        return [Metric("lanes", median(rates), "1/clk", "higher")]

    return Workload(
        run=CHAINS(
            out, places, np.float32(1), np.int32(LINKS), np.int64(out.numel()), grid=grid, block=threads, ILP=ilp
        ),
        output=out,
        reference=lambda: out.new_full(out.shape, links + sum(range(ilp))),
        reference_name="the number of links",
        flops=2 * out.numel() * links,
        accumulate="exact",
        primary="flops",
        dtype="float32",
        labels={"control": "more than enough"} if enough else {},
        prediction=expected,
        metrics=lanes,
    )


@suite.benchmark(
    warps=Axis([4, 8, 16, 32, 64], quick=[4, 64]),
    ilp=Axis([1, 2, 4, 8], quick=[1, 4]),
    mib=Axis([512], cpu=[16]),
)
def copy(device: Any, warps: int, ilp: int, mib: int) -> Workload:
    """Copy a buffer in DRAM with few warps a multiprocessor, each thread with `ilp` loads of 16 bytes in flight."""
    import numpy as np

    grid, threads = grid_of(device, warps)
    registers, held = 4 * ilp + OTHER_REGISTERS, device.facts().get("registers_per_multiprocessor")
    if held and registers * 32 * warps > held:
        raise Skip(f"{warps} warps of {registers} registers a thread are more than a multiprocessor has")
    words = mib * 2**20 // 4
    source, target = device.random(words, "float32"), device.unwritten(words, "float32")
    return Workload(
        run=COPY(source, target, np.int64(words // 4), grid=grid, block=threads, ILP=ilp),
        output=target,
        reference=lambda: source,
        reference_name="the source",
        bytes=2 * mib * 2**20,
        accumulate="exact",
        primary="bytes",
        dtype="float32",
        level="DRAM",
        prediction=hierarchy.little(32 * 16 * warps * ilp, device.facts(), moved=2),
    )


LAW = 0.8, 1.2
"""Little's law leaves out how a kernel begins and ends, and that warps do not start together."""
NO_MORE = 0.9, 1.1
"""Twice the warps gain nothing where half of them are enough."""


@suite.claim("X02")
def warps_times_chains(view: Any) -> Finding:
    """Warps and parallelism within a thread replace each other: only their product counts, until the units are busy.

    At the corner itself, where both limits meet, neither holds alone; it is not judged.
    """
    view.needs_gpu("a CPU has no warps")
    few = [view.one("fma", warps=warps, ilp=ilp) for warps, ilp in ((4, 1), (4, 2), (8, 1))]
    if any("enough" not in row.prediction for row in few):
        raise NotTestable("what the units of this compute capability do a clock is not known")
    enough = few[0].prediction["enough"]
    full = max(view.rows("fma", ilp=8), key=lambda row: row.params["warps"])
    half = view.one("fma", warps=full.params["warps"] // 2, ilp=8)
    far = view.one("fma", warps=full.params["warps"], ilp=4)
    below = [row for row in few if row.params["warps"] * row.params["ilp"] < enough]
    return Finding(
        effects=(
            *(
                Effect(
                    f"results a clock over the law's, {row.params['warps']} warps × {row.params['ilp']}",
                    view.metric(row, "lanes").over(exactly(row.prediction["lanes"])), "1", *LAW,
                )
                for row in (*below, far)
            ),
            Effect(
                "time of a copy, 4 warps of 2 loads over 8 warps of 1",
                view.ratio(view.one("copy", warps=4, ilp=2), view.one("copy", warps=8, ilp=1)), "1", *LAW,
            ),
        ),
        controls=(
            Effect(
                f"results a clock with {full.params['warps']} warps over {half.params['warps']}",
                view.metric(full, "lanes").over(view.metric(half, "lanes")), TIMES, *NO_MORE,
            ),
        ),
        prediction={"enough": enough, "source": few[0].prediction.get("source")},
    )  # fmt: skip
