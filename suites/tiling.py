"""Tiling: what do matrix products in float32 gain when a block keeps what it loads?

A ladder of kernels that each change one thing, up to one that is held against the library's; how many loads a tile of
T × T saves; what a tile that reaches over the edge of the matrix costs; and, apart from the ladder, the tensor cores'
rung in TF32. A prediction counts the load requests of warps to global memory, from the sizes alone.

The rows labelled `control` are those of a grid that fits the GPU at once: a row of tiles more, most of it wasted, then
costs nothing, because multiprocessors that were idle take it. On a CPU the first rungs are the orders of three loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpubench import TIMES, Axis, Effect, Finding, Suite, Workload
from gpubench.model import matmul, memory, tiling, waves

suite = Suite(__file__)

NAIVE = suite.kernel("naive")
COALESCED = suite.kernel("coalesced")
SHARED_TILE = suite.kernel("shared_tile", defines={"TILE": [32, 16, 8]})
REGISTERS_1D = suite.kernel("registers_1d")
REGISTERS_2D = suite.kernel("registers_2d")
VECTORISED = suite.kernel("vectorised")
WARP_TILE = suite.kernel(
    "warp_tile", defines={"COLUMNS": [128, 256], "DEPTH": [8, 16], "STAGES": [3]}, source="tiling_warp.cu"
)
TENSOR_TILE = suite.kernel("tensor_tile", source="tiling_tensor.cu")

FLOAT = 4
"""Bytes of a float."""
WARP_ROWS, WARP_STAGES = 128, 3
"""Rows of C a block of the warp tile makes, and pairs of tiles it holds, as in tiling_warp.cu."""
BEST = {"columns": 128, "depth": 16}
"""The warp tile that the ladder ends in, and that quantization is measured with."""
MMA_TILE = tiling.Tile(128, 128, 16)
"""What a block of the tensor cores' kernel makes, as in tiling_tensor.cu."""
MMA_BYTES = 3 * FLOAT * (128 * (16 + 4) + 16 * (128 + 8))
"""Its shared memory: three stages, their rows padded."""


@dataclass(frozen=True)
class Rung:
    """A kernel, the tile a block of it makes, its threads, and elements of one load."""

    kernel: Any
    tile: tiling.Tile
    threads: int
    vector: int = 1


RUNGS = {
    "naive": Rung(NAIVE, tiling.Tile(32, 32, 1), 1024),
    "coalesced": Rung(COALESCED, tiling.Tile(32, 32, 1), 1024),
    "shared": Rung(SHARED_TILE, tiling.Tile(32, 32, 32), 1024),
    "registers-1d": Rung(REGISTERS_1D, tiling.Tile(64, 64, 8), 512),
    "registers-2d": Rung(REGISTERS_2D, tiling.Tile(128, 128, 8), 256),
    "vectorised": Rung(VECTORISED, tiling.Tile(128, 128, 8), 256, 4),
}
"""The ladder below the warp tile."""


def product(device: Any, m: int, n: int, k: int, launch: Any, dtype: str = "float32") -> Workload:
    """A product of m × k and k × n; `launch` makes what runs it from A, B, C and their sizes."""
    import numpy as np

    a, b, c = matmul.operands(device, m, n, k, "float32")
    run = launch(a, b, c, np.int32(m), np.int32(n), np.int32(k))
    return Workload(run=run, primary="flops", **matmul.product(a, b, c, dtype))


def library(a: Any, b: Any, c: Any, *sizes: Any) -> Any:
    """torch's product."""
    import torch

    return lambda: torch.mm(a, b, out=c)


def warp_tile(tile: tiling.Tile, m: int, n: int, least_shared_bytes: int = 0) -> Any:
    """What launches the warp tile; it may be made to take more shared memory than it needs."""
    needed = FLOAT * WARP_STAGES * tile.depth * (WARP_ROWS + 4 + tile.columns)
    return lambda *arguments: WARP_TILE(
        *arguments, grid=tiling.count(m, n, tile), block=256, shared_bytes=max(needed, least_shared_bytes),
        COLUMNS=tile.columns, DEPTH=tile.depth, STAGES=WARP_STAGES,
    )  # fmt: skip


def of_tile(m: int, n: int, k: int, tile: tiling.Tile, vector: int = 1) -> dict[str, Any]:
    """The prediction of a tiled product: requests, and FLOP for a byte loaded."""
    return {
        "load_requests": tiling.requests(m, n, k, tile, vector),
        "loaded_intensity": tiling.intensity(tile, FLOAT),
    }


def untiled(rung: str, n: int) -> dict[str, Any]:
    """The prediction of a rung without tiles. Lanes below each other load 32 rows of A and one element of B; lanes
    beside each other one element of A and neighbours of B."""
    warps = n * -(-n // memory.LANES)
    of_a, of_b = (memory.strided(n, FLOAT), 1) if rung == "naive" else (1, memory.strided(1, FLOAT))
    return {
        "load_requests": tiling.untiled_requests(warps, n),
        "sectors_per_request": (of_a + of_b) / 2,
        "loaded_intensity": 2 / (2 * FLOAT),
    }


N = Axis([4096], cpu=[384], quick=[2048], quick_cpu=[256])


@suite.benchmark(
    rung=Axis([*RUNGS, "warp-tile", "library"], cpu=["naive", "coalesced", "shared", "library"]),
    n=N,
)
def ladder(device: Any, rung: str, n: int) -> Workload:
    """A product of n × n matrices in float32 by each rung of the ladder, and by the library without TF32."""
    if rung == "library":
        return product(device, n, n, n, library)
    if rung == "warp-tile":
        best = tiling.Tile(WARP_ROWS, BEST["columns"], BEST["depth"])
        return product(device, n, n, n, warp_tile(best, n, n))
    step = RUNGS[rung]
    grid = tiling.count(n, n, step.tile)
    defines = {"TILE": step.tile.depth} if rung == "shared" else {}
    work = product(
        device, n, n, n, lambda *arguments: step.kernel(*arguments, grid=grid, block=step.threads, **defines)
    )
    work.prediction = untiled(rung, n) if step.tile.depth == 1 else of_tile(n, n, n, step.tile, step.vector)
    return work


@suite.benchmark(tile=Axis([8, 16, 32], cpu=[8, 32]), n=N)
def tile_size(device: Any, tile: int, n: int) -> Workload:
    """The product by tiles of T × T in shared memory: each element is loaded n / T times."""
    square = tiling.Tile(tile, tile, tile)
    work = product(
        device, n, n, n,
        lambda *arguments: SHARED_TILE(
            *arguments, grid=tiling.count(n, n, square), block=tile * tile, TILE=tile
        ),
    )  # fmt: skip
    work.prediction = of_tile(n, n, n, square) | {"sectors_per_request": memory.rows(tile, n, FLOAT)}
    return work


@suite.benchmark(columns=Axis([BEST["columns"]]), depth=Axis([BEST["depth"]]), n=Axis([4096], cpu=[384], quick=[2048]))
def warp_tiles(device: Any, columns: int, depth: int, n: int) -> Workload:
    """The warp tile with other tiles: 128 or 256 columns, 8 or 16 deep."""
    return product(device, n, n, n, warp_tile(tiling.Tile(WARP_ROWS, columns, depth), n, n))


@suite.benchmark(grid=Axis(["one-wave", "many"]), m=Axis([256, 257, 384], cpu=[256]), k=Axis([512]))
def quantization(device: Any, grid: str, m: int, k: int) -> Workload:
    """Products of m rows by tiles of 128: row 257 takes a third row of tiles, as many as row 384 does.

    The columns are so many that tiles fill the GPU many times over, or so few that all of them fit it at once. A block
    has a multiprocessor to itself.
    """
    facts = device.facts()
    units = facts.get("multiprocessors") or 1
    tile = tiling.Tile(WARP_ROWS, BEST["columns"], BEST["depth"])
    n = tile.columns * (4 * units if grid == "many" else max(units // 4, 1))
    alone = (facts.get("shared_memory_per_multiprocessor_bytes") or 0) // 2 + 1
    work = product(device, m, n, k, warp_tile(tile, m, n, alone))
    work.labels = {"control": "one wave"} if grid == "one-wave" else {}
    work.prediction = {
        "executed_flops": tiling.executed_flops(m, n, k, tile),
        "useful_share": tiling.useful_share(m, n, tile),
        **waves.figures(tiling.count(m, n, tile), units),
    }
    return work


@suite.benchmark(by=Axis(["mma", "library"]), n=Axis([4096], cpu=[384], quick=[2048], quick_cpu=[256]))
def tensor(device: Any, by: str, n: int) -> Workload:
    """A product in TF32 by the tensor cores: mma.sync on tiles in shared memory, beside the library's."""
    if by == "library":
        return product(device, n, n, n, library, "tf32")
    return product(
        device, n, n, n,
        lambda *arguments: TENSOR_TILE(
            *arguments, grid=tiling.count(n, n, MMA_TILE), block=256, shared_bytes=MMA_BYTES
        ),
        "tf32",
    )  # fmt: skip


# The lecture's claims.

EXACT = 0.03
"""Counted requests against T: those of edges and of addresses are a few in a thousand."""
GAIN, CPU_GAIN = 1.05, 3
"""By time alone. T-fold fewer loads are no T-fold less time: both kernels do two accesses for each multiply-add, and
the caches serve the untiled one. On a CPU, blocks of three loops over the order that walks down columns."""
WIDER = 4
"""Sectors of a request: 16.5 where lanes below each other load a row each, 4 in a tile."""
SAME = 0.95, 1.05
"""The same kernel, measured twice."""
THIRD = 0.9 * 1.5, 1.1 * 1.5
"""Row 257 takes three rows of tiles where 256 takes two."""
FREE = 0.9, 1.1
"""Tiles that idle multiprocessors take."""
NO_COUNTERS = "no counters: inferred from time"


def twice(view: Any, tile: int) -> Effect:
    """The control: the ladder's tile is the same kernel as that of its size, and must take the same time."""
    pair = view.one("tile-size", tile=tile), view.one("ladder", rung="shared")
    return Effect(f"tile {tile} over the same kernel", view.ratio(*pair), TIMES, *SAME)


@suite.claim("C50")
def fewer_loads(view: Any) -> Finding:
    """With tiles of T × T an element is loaded n / T times: T times fewer requests than without."""
    untiled = view.one("ladder", rung="coalesced")
    tiled = view.rows("tile-size", n=untiled.params["n"])
    before = view.counter(untiled, "global_load_requests")
    after = {row.params["tile"]: view.counter(row, "global_load_requests") for row in tiled}
    if before is not None and None not in after.values():
        least, most = (view.counter(row, "global_store_requests") for row in (tiled[0], tiled[-1]))
        return Finding(
            effects=tuple(
                Effect(
                    f"requests over tiles of {tile}", before.over(found), TIMES, tile * (1 - EXACT), tile * (1 + EXACT)
                )
                for tile, found in after.items()
            ),
            controls=(Effect("stores, by the largest tile over the smallest", most.over(least), "1", *SAME),),
            prediction=tiled[-1].prediction,
            proof="A",
        )
    slow, gain = (view.one("ladder", rung="naive"), CPU_GAIN) if view.on_cpu else (untiled, GAIN)
    return Finding(
        effects=(Effect("time over that of the largest tile", view.ratio(slow, tiled[-1]), TIMES, gain),),
        controls=(twice(view, 32),),
        prediction=tiled[-1].prediction,
        note="blocked loops on a CPU: inferred from time" if view.on_cpu else NO_COUNTERS,
    )


@suite.claim("C51")
def larger_is_better(view: Any) -> Finding:
    """A larger tile loads less and takes less time, as far as shared memory and the units allow."""
    rows = sorted(view.rows("tile-size"), key=lambda row: row.params["tile"])
    small, large = rows[0], rows[-1]
    names = f"{small.params['tile']} over {large.params['tile']}"
    counts = [view.counter(row, "global_load_requests") for row in (small, large)]
    by_count = (
        () if None in counts else (Effect(f"requests, tiles of {names}", counts[0].over(counts[1]), TIMES, GAIN),)
    )
    return Finding(
        effects=(Effect(f"time, tiles of {names}", view.ratio(small, large), TIMES, GAIN), *by_count),
        controls=(twice(view, 32),),
        prediction={"loaded_intensity": [row.prediction["loaded_intensity"] for row in rows]},
        proof="A" if by_count else "B",
        note="" if by_count else NO_COUNTERS,
    )


@suite.claim("C52")
def tiles_coalesce(view: Any) -> Finding:
    """Lanes that would load a row each load neighbours once a tile is filled together."""
    view.needs_gpu("a CPU has no requests of 32 addresses")
    naive, tiled = view.one("ladder", rung="naive"), view.one("tile-size", tile=32)
    sectors = [view.counter(row, "sectors_per_load_request") for row in (naive, tiled)]
    by_count = None not in sectors
    return Finding(
        effects=(
            Effect("sectors a request, untiled over tiled", sectors[0].over(sectors[1]), TIMES, WIDER)
            if by_count
            else Effect("time, untiled over tiled", view.ratio(naive, tiled), TIMES, GAIN),
        ),
        controls=(twice(view, 32),),
        prediction={row.params.get("rung", "tiled"): row.prediction["sectors_per_request"] for row in (naive, tiled)},
        proof="A" if by_count else "B",
        note="" if by_count else NO_COUNTERS,
    )


@suite.claim("C53")
def the_last_tile(view: Any) -> Finding:
    """A row more than fills the tiles costs a row of tiles, where these fill the GPU many times over."""
    view.needs_gpu("the CPU's blocks are not these tiles")
    whole, more, full = (view.one("quantization", grid="many", m=m) for m in (256, 257, 384))
    few = [view.one("quantization", grid="one-wave", m=m) for m in (257, 256)]
    return Finding(
        effects=(
            Effect("time of 257 rows over 256", view.ratio(more, whole), TIMES, *THIRD),
            Effect("time of 384 rows over 257", view.ratio(full, more), "1", *FREE),
        ),
        controls=(Effect("257 rows over 256 in one wave", view.ratio(*few), TIMES, *FREE),),
        prediction={f"useful_share_{row.params['m']}": row.prediction["useful_share"] for row in (whole, more, full)},
    )
