"""Waves: what does a grid pay for one block more than the GPU has places?

Blocks are made so large that each has a multiprocessor to itself. A prediction is the number of turns, from the number
of blocks and of multiprocessors; a timeline of where and when each block ran shows whether there were as many. Rows
labelled `control` have a block less than fills the turn, which saves nothing. On a CPU the same work is dealt out to
threads in equal chunks.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from gpubench import TIMES, Axis, Effect, Finding, Metric, Skip, Suite, Workload
from gpubench.model import matmul as work
from gpubench.model import tiling, waves

suite = Suite(__file__)

EQUAL_BLOCKS = suite.kernel("equal_blocks")
WARP_TILE = suite.kernel("warp_tile", defines={"COLUMNS": [128], "DEPTH": [16], "STAGES": [3]}, source="tiling_warp.cu")
STEP, THREADS = 16, 128
"""Links of a chain in one trip, and threads of a block, as in waves.cu and waves.cpp."""
TILE = tiling.Tile(128, 128, 16)
"""What a block of the matrix product makes, as in tiling_warp.cu."""
LECTURE_TILE = tiling.Tile(256, 128, 1)
"""The tile of the lecture's example; the library chooses its own, which its kernels' names tell."""

FULL = Axis([1, 2, 3, 4], quick=[1, 2])
"""Turns that are full."""
EXTRA = Axis([-1, 0, 1], minimum=-(2**31))
"""Blocks more than that, or less."""


def places(device: Any) -> int:
    """Multiprocessors of a GPU, threads of a CPU."""
    facts = device.facts()
    return facts.get("multiprocessors") or facts.get("threads") or 1


def alone(device: Any) -> int:
    """Bytes of shared memory that two blocks of a multiprocessor cannot both have; 0 where there is none."""
    whole = device.facts().get("shared_memory_per_multiprocessor_bytes")
    return whole // 2 + 1 if whole else 0


def labels(extra: int) -> dict[str, str]:
    """A turn that is not quite full costs what a full one does."""
    return {"control": "same wave"} if extra < 0 else {}


@suite.benchmark(full=FULL, extra=EXTRA, trips=Axis([4096], cpu=[2048]))
def blocks(device: Any, full: int, extra: int, trips: int) -> Workload:
    """Equal blocks, as many as fill the multiprocessors `full` times, and `extra` more; each is a chain of FMAs."""
    import numpy as np
    import torch

    slots = places(device)
    grid = full * slots + extra
    if grid < 1:
        raise Skip(f"{full} x {slots} blocks and {extra} are none")
    counts = device.unwritten((grid, THREADS), "float32")
    timeline = torch.zeros((grid, 3), dtype=torch.int64, device=counts.device)

    def counted() -> Any:
        """The number of the lane plus the links of the chain."""
        lanes = torch.arange(THREADS, device=counts.device) % 32
        return (lanes + STEP * trips).double().expand(grid, THREADS)

    return Workload(
        run=EQUAL_BLOCKS(
            counts, timeline, np.float32(1), np.int32(trips), np.int32(grid),
            grid=grid, block=THREADS, shared_bytes=alone(device),
        ),
        output=counts,
        reference=counted,
        reference_name="the number of links",
        flops=2 * STEP * trips * THREADS * grid,
        accumulate="exact",
        dtype="float32",
        primary="time",
        labels=labels(extra),
        prediction=waves.figures(grid, slots),
        metrics=lambda: seen(timeline.tolist(), slots),
    )  # fmt: skip


def seen(timeline: list[list[int]], slots: int) -> list[Metric]:
    """What the timeline of the last call shows: `waves`, the most blocks one place ran; `places` that ran any; and the
    share of places and time, from the first start to the last end, in which none ran."""
    turns = Counter(place for place, _, _ in timeline)
    most = max(turns.values())
    whole = max(end for _, _, end in timeline) - min(begin for _, begin, _ in timeline)
    busy = sum(end - begin for _, begin, end in timeline)
    last = sum(count == most for count in turns.values())
    return [
        Metric("waves", most, "1", "lower"),
        Metric("places", len(turns), "1", "higher"),
        Metric("idle_share_last_wave", 1 - last / slots, "1", "lower"),
        *([Metric("idle_share", 1 - busy / (whole * slots), "1", "lower")] if whole > 0 else []),
    ]


@suite.benchmark(full=Axis([1, 2, 3], quick=[1]), extra=Axis([0, 1], minimum=-(2**31)), k=Axis([2048]))
def matmul(device: Any, full: int, extra: int, k: int) -> Workload:
    """A product whose tiles of 128 rows fill the multiprocessors `full` times, with `extra` rows more.

    The matrix has one column of tiles, so that only the number of rows changes: every row stays aligned.
    """
    import numpy as np

    slots = places(device)
    m, n = TILE.rows * slots * full + extra, TILE.columns
    if m < 1:
        raise Skip(f"{full} x {slots} tiles and {extra} rows are none")
    a, b, c = work.operands(device, m, n, k, "float32")
    tiles = tiling.count(m, n, TILE)
    staged = 4 * 3 * TILE.depth * (TILE.rows + 4 + TILE.columns)
    return Workload(
        run=WARP_TILE(
            a, b, c, np.int32(m), np.int32(n), np.int32(k),
            grid=tiles, block=256, shared_bytes=max(staged, alone(device)),
        ),
        primary="flops",
        labels=labels(extra),
        prediction=waves.figures(tiles, slots) | {"useful_share": tiling.useful_share(m, n, TILE)},
        **work.product(a, b, c, "float32"),
    )  # fmt: skip


@suite.benchmark(
    n=Axis(
        [1792, 1793, 2048, 2049, 2816, 2817, 3584, 3585],
        cpu=[256, 257, 512, 513], quick=[1792, 1793, 2048, 2049], quick_cpu=[256, 257],
    ),
    dtype=Axis(["bfloat16"], cpu=["float32"], choices=["bfloat16", "float16", "float32"]),
)  # fmt: skip
def library(device: Any, n: int, dtype: str) -> Workload:
    """The library's product of n × n matrices, to be reported: it picks its tiles, and an odd n breaks alignment too.

    The prediction counts the waves that the lecture's tile of 256 × 128 would take on this GPU.
    """
    import torch

    a, b, c = work.operands(device, n, n, n, dtype)
    units = device.facts().get("multiprocessors")
    return Workload(
        run=lambda: torch.mm(a, b, out=c),
        primary="flops",
        labels={"verdict": "report only"},
        prediction=waves.figures(tiling.count(n, n, LECTURE_TILE), units) if units else {},
        **work.product(a, b, c, dtype),
    )


# The lecture's claims.

ANOTHER = 1.9, 2.1
"""A block more than fills a turn takes another turn; a grid's start is a few per cent of one."""
TILE_STEP = 2 * 0.85, 2 * 1.15
"""The same of tiles: a tile with one row in it stores less than a whole one."""
FREE = 0.95, 1.05
"""A block less saves nothing."""
COUNTED = 1e-3
"""Shares of whole places, compared as floating-point numbers."""
NO_BLOCKS = "a CPU has no multiprocessors; its rows deal the same work out to threads"


@suite.claim("C58")
def a_wave_more(view: Any) -> Finding:
    """One block more than fits costs a whole turn; so does one row more, in a product whose tiles are pinned."""
    view.needs_gpu(NO_BLOCKS)
    less, full, more = (view.one("blocks", full=1, extra=extra) for extra in (-1, 0, 1))
    tiles = [view.one("matmul", full=1, extra=extra) for extra in (1, 0)]
    library = [view.maybe("library", n=n) for n in (1793, 1792)]
    shown = [] if None in library else [Effect("the library, 1793 over 1792", view.ratio(*library), TIMES)]
    return Finding(
        effects=(
            Effect("time of a block more than fits over as many as fit", view.ratio(more, full), TIMES, *ANOTHER),
            Effect("time of a row more than fits, tiles pinned", view.ratio(*tiles), TIMES, *TILE_STEP),
            *shown,
        ),
        controls=(Effect("a block less", view.ratio(less, full), TIMES, *FREE),),
        prediction=more.prediction,
    )


@suite.claim("C59")
def an_idle_wave(view: Any) -> Finding:
    """In the last turn only the blocks that are left run: the timeline shows the places that are empty."""
    view.needs_gpu(NO_BLOCKS)
    full, more = (view.one("blocks", full=1, extra=extra) for extra in (0, 1))
    wanted = more.prediction
    idle = wanted["idle_share_last_wave"]
    return Finding(
        effects=(
            Effect("turns", view.metric(more, "waves"), "1", wanted["waves"], wanted["waves"]),
            Effect(
                "share of places idle in the last", view.metric(more, "idle_share_last_wave"), "1",
                idle - COUNTED, idle + COUNTED,
            ),
        ),
        controls=(
            Effect("idle where all fit at once", view.metric(full, "idle_share_last_wave"), "1", 0, COUNTED),
            Effect("places that ran a block", view.metric(full, "places"), "1", wanted["slots"], wanted["slots"]),
        ),
        prediction=wanted,
        proof="A",
    )  # fmt: skip
