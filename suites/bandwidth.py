"""Bandwidth: how fast do bytes come from DRAM and go back, and from the memories that are nearer?

The buffers of the streams are many times the last-level cache, so that what is measured is DRAM. A copy counts two
bytes per byte copied: one read, one written. Each stream is measured by a kernel of our own over a short search
(accesses in flight, threads a block, streaming hints), and beside it by torch's operation, the side to beat.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gpubench import TIMES, Axis, Effect, Finding, Skip, Suite, Workload

suite = Suite(__file__)

MIB = Axis([2048, 8192], cpu=[256], quick_cpu=[128])
"""Size of one buffer in MiB (2^20 bytes). Two of them give a slope, free of a start's cost and of what stays cached."""
WORDS = 2**20 // 4
"""float32 numbers in a MiB."""


def search(unroll: int, threads: int, hint: str) -> dict[str, Axis]:
    """The axes of a stream's search. The values given are the quick ones: the best, or near it, on the GPUs seen.

    vector: bytes of one access. unroll: accesses of a thread in flight. blocks: blocks a multiprocessor; 0 as many as
    the buffer has tiles.
    """
    return {
        "vector": Axis([16], minimum=4),
        "unroll": Axis([1, 4], cpu=[1], quick=[unroll]),
        "threads": Axis([256, 1024], cpu=[1024], quick=[threads]),
        "hint": Axis(["plain", "streaming"], cpu=["plain"], quick=[hint]),
        "blocks": Axis([0], minimum=0),
    }


DEFINES = {"VECTOR": [4, 8, 16], "UNROLL": [1, 2, 4, 8], "HINT": [0, 1]}

READ = suite.kernel("stream_read", defines=DEFINES)
WRITE = suite.kernel("stream_write", defines=DEFINES)
COPY = suite.kernel("stream_copy", defines=DEFINES)
SCALE = suite.kernel("stream_scale", defines=DEFINES)
TRIAD = suite.kernel("stream_triad", defines=DEFINES)
L2_READ = suite.kernel("l2_read", defines={"UNROLL": [4, 8]})
SHARED_READ = suite.kernel("shared_read")

ROWS = 4096
"""Rows that torch sums a buffer in: enough to occupy every unit of a GPU, few enough that their sums cost nothing."""
VALUE = 3.0
"""What a write writes and a scale scales by: not zero, which a driver may set in another way."""
L2_PASSES, SHARED_PASSES = 128, 512


def stream(
    output: Any, run: Any, reference: Callable[[], Any], name: str, roof: str, nbytes: int, exact: bool, flops: int = 0
) -> Workload:
    """A workload that streams through DRAM and is judged by bytes."""
    return Workload(
        run=run,
        output=output,
        reference=reference,
        reference_name=name,
        flops=flops,
        bytes=nbytes,
        accumulate="exact" if exact else "float32",
        dtype="float32",
        level="DRAM",
        roof=roof,
        primary="bytes",
    )


def launch(
    device: Any, mib: int, vector: int, unroll: int, threads: int, hint: str, blocks: int
) -> tuple[Any, Any, dict[str, Any]]:
    """A kernel's last arguments, VALUE and the accesses that cover the buffer, and how it is launched to make them."""
    import numpy as np

    accesses = mib * 2**20 // vector
    tiles = math.ceil(accesses / (threads * unroll))
    units = device.facts().get("multiprocessors") or 1
    grid = min(tiles, blocks * units) if blocks else tiles
    return np.float32(VALUE), np.int64(accesses), {
        "grid": grid, "block": threads, "VECTOR": vector, "UNROLL": unroll, "HINT": int(hint == "streaming"),
    }  # fmt: skip


def whole_warps(threads: int) -> None:
    """A sum over a block takes blocks of whole warps."""
    if threads % 32:
        raise Skip(f"blocks of {threads} threads are not whole warps of 32")


def sums_of_tiles(x: Any, tile: int) -> Any:
    """The float64 sum of each `tile` neighbouring elements; the last tile may be cut short."""
    import torch

    whole = x.numel() // tile * tile
    sums = x[:whole].view(-1, tile).sum(1, dtype=torch.float64)
    return torch.cat([sums, x[whole:].sum(0, keepdim=True, dtype=torch.float64)]) if whole < x.numel() else sums


def sums_of_blocks(tiles: Any, grid: int) -> Any:
    """The sum of each block's tiles: tile t is block t modulo the grid's."""
    import torch

    return torch.nn.functional.pad(tiles, (0, -tiles.numel() % grid)).view(-1, grid).sum(0)


@suite.benchmark(mib=MIB, **search(4, 1024, "plain"))
def read(device: Any, mib: int, vector: int, unroll: int, threads: int, hint: str, blocks: int) -> Workload:
    """Read one buffer of float32; every block adds up its share."""
    import numpy as np

    whole_warps(threads)
    _, n, how = launch(device, mib, vector, unroll, threads, hint, blocks)
    grid, tile, words = how["grid"], threads * unroll, threads * unroll * vector // 4
    source, sums = device.random(mib * WORDS, "float32"), device.unwritten(grid, "float32")
    work = stream(
        sums, READ(source, sums, n, np.int64(tile), np.int64(grid), **how),
        lambda: sums_of_blocks(sums_of_tiles(source, words), grid), "float64 sums", "DRAM read",
        mib * 2**20 + 4 * grid, exact=False, flops=mib * WORDS - grid,
    )  # fmt: skip
    work.reduction = words * math.ceil(mib * WORDS / words / grid)
    return work


@suite.benchmark(mib=MIB, **search(1, 256, "streaming"))
def write(device: Any, mib: int, vector: int, unroll: int, threads: int, hint: str, blocks: int) -> Workload:
    """Write one number into the whole of a buffer of float32."""
    import torch

    value, n, how = launch(device, mib, vector, unroll, threads, hint, blocks)
    target = device.unwritten(mib * WORDS, "float32")
    return stream(
        target, WRITE(target, value, n, **how), lambda: torch.full_like(target, VALUE),
        "the number written", "DRAM write", mib * 2**20, exact=True,
    )  # fmt: skip


@suite.benchmark(mib=MIB, **search(1, 256, "plain"))
def copy(device: Any, mib: int, vector: int, unroll: int, threads: int, hint: str, blocks: int) -> Workload:
    """Copy one buffer of float32 to another."""
    _, n, how = launch(device, mib, vector, unroll, threads, hint, blocks)
    source, target = device.random(mib * WORDS, "float32"), device.unwritten(mib * WORDS, "float32")
    return stream(
        target, COPY(source, target, n, **how), lambda: source, "the source", "DRAM copy", 2 * mib * 2**20, exact=True
    )


@suite.benchmark(mib=MIB, **search(1, 256, "plain"))
def scale(device: Any, mib: int, vector: int, unroll: int, threads: int, hint: str, blocks: int) -> Workload:
    """y = a x over buffers of float32."""
    value, n, how = launch(device, mib, vector, unroll, threads, hint, blocks)
    source, target = device.random(mib * WORDS, "float32"), device.unwritten(mib * WORDS, "float32")
    return stream(
        target, SCALE(source, target, value, n, **how), lambda: source.double() * VALUE,
        "float64 product", "DRAM scale", 2 * mib * 2**20, exact=False, flops=mib * WORDS,
    )  # fmt: skip


@suite.benchmark(mib=MIB, **search(1, 1024, "plain"))
def triad(device: Any, mib: int, vector: int, unroll: int, threads: int, hint: str, blocks: int) -> Workload:
    """y = a x + z over buffers of float32: STREAM's triad."""
    value, n, how = launch(device, mib, vector, unroll, threads, hint, blocks)
    x, z = device.random(mib * WORDS, "float32", seed=0), device.random(mib * WORDS, "float32", seed=1)
    target = device.unwritten(mib * WORDS, "float32")
    return stream(
        target, TRIAD(x, z, target, value, n, **how), lambda: x.double() * VALUE + z.double(),
        "float64 triad", "DRAM triad", 3 * mib * 2**20, exact=False, flops=2 * mib * WORDS,
    )  # fmt: skip


@suite.benchmark(mib=MIB)
def torch_copy(device: Any, mib: int) -> Workload:
    """torch's copy_ of one buffer of float32 to another."""
    source, target = device.random(mib * WORDS, "float32"), device.unwritten(mib * WORDS, "float32")
    return stream(
        target, lambda: target.copy_(source), lambda: source, "the source", "DRAM copy", 2 * mib * 2**20, exact=True
    )


@suite.benchmark(mib=MIB)
def torch_sum(device: Any, mib: int) -> Workload:
    """torch's sum of each of the 4096 rows of a buffer of float32: a read."""
    import torch

    columns = mib * WORDS // ROWS
    source = device.random((ROWS, columns), "float32")
    sums = device.unwritten(ROWS, "float32")
    work = stream(
        sums, lambda: torch.sum(source, dim=1, out=sums), lambda: torch.sum(source, dim=1, dtype=torch.float64),
        "float64 sum", "DRAM read", mib * 2**20 + 4 * ROWS, exact=False, flops=ROWS * (columns - 1),
    )  # fmt: skip
    work.reduction = columns
    return work


@suite.benchmark(mib=MIB)
def torch_fill(device: Any, mib: int) -> Workload:
    """torch's fill_ of a buffer of float32: a write."""
    import torch

    target = device.unwritten(mib * WORDS, "float32")
    return stream(
        target, lambda: target.fill_(VALUE), lambda: torch.full_like(target, VALUE), "the number written",
        "DRAM write", mib * 2**20, exact=True,
    )  # fmt: skip


@suite.benchmark(mib=MIB)
def torch_zero(device: Any, mib: int) -> Workload:
    """torch's zero_ of a buffer of float32: the driver's memset, on a GPU."""
    import torch

    target = device.unwritten(mib * WORDS, "float32")
    return stream(
        target, target.zero_, lambda: torch.zeros_like(target), "zeros", "DRAM write", mib * 2**20, exact=True
    )


@suite.benchmark(mib=MIB)
def torch_triad(device: Any, mib: int) -> Workload:
    """torch's add with a factor over buffers of float32: a triad."""
    import torch

    x, z = device.random(mib * WORDS, "float32", seed=0), device.random(mib * WORDS, "float32", seed=1)
    target = device.unwritten(mib * WORDS, "float32")
    return stream(
        target, lambda: torch.add(z, x, alpha=VALUE, out=target), lambda: x.double() * VALUE + z.double(),
        "float64 triad", "DRAM triad", 3 * mib * 2**20, exact=False, flops=2 * mib * WORDS,
    )  # fmt: skip


@suite.benchmark(percent=Axis([50, 75]), unroll=Axis([8], minimum=4), threads=Axis([256, 1024], quick=[256]))
def l2_read(device: Any, percent: int, unroll: int, threads: int) -> Workload:
    """Read a buffer that takes up part of the L2 cache, 128 times in one kernel; the L1 keeps nothing of it."""
    import numpy as np

    whole_warps(threads)
    facts = device.facts()
    cache = facts.get("last_level_cache_bytes")
    if not cache:
        raise Skip("the size of the L2 cache is not known")
    tile = threads * unroll
    tiles = max(1, cache * percent // 100 // (16 * tile))
    grid = facts.get("multiprocessors", 1) * (facts.get("threads_per_multiprocessor", 2048) // threads)
    source, sums = device.random(4 * tile * tiles, "float32"), device.unwritten(grid, "float32")
    turns = tiles * L2_PASSES
    return Workload(
        run=L2_READ(source, sums, np.int32(tiles), np.int32(L2_PASSES), grid=grid, block=threads, UNROLL=unroll),
        output=sums,
        reference=lambda: sums_of_blocks(sums_of_tiles(source, 4 * tile).repeat(L2_PASSES), grid),
        reference_name="float64 sums",
        flops=4 * tile * turns - min(grid, turns),
        bytes=16 * tile * turns,
        reduction=4 * tile * math.ceil(turns / grid),
        dtype="float32",
        level="L2",
        roof="L2 read",
        primary="bytes",
    )


@suite.benchmark(blocks=Axis([2]))
def shared_read(device: Any, blocks: int) -> Workload:
    """Read shared memory over and over, 16 bytes a thread, with every multiprocessor full and no bank conflict."""
    import numpy as np

    grid, threads, unrolled = device.facts().get("multiprocessors", 1) * blocks, 1024, 8
    source, sums = device.random(4 * threads, "float32"), device.unwritten((grid, threads), "float32")

    def of_threads() -> Any:
        """A thread reads the vectors a warp apart from its own on, round and round: each of its 32 equally often."""
        warps = threads // 32
        lanes = source.view(warps, 32, 4).double().sum((0, 2))
        return (lanes * (SHARED_PASSES * unrolled / warps)).repeat(warps).expand(grid, threads)

    reads = grid * threads * unrolled * SHARED_PASSES
    return Workload(
        run=SHARED_READ(source, sums, np.int32(SHARED_PASSES), grid=grid, block=threads),
        output=sums,
        reference=of_threads,
        reference_name="float64 sums",
        flops=4 * reads - grid * threads,
        bytes=16 * reads,
        reduction=4 * unrolled * SHARED_PASSES,
        dtype="float32",
        level="shared",
        roof="shared memory read",
        primary="bytes",
    )


# The lecture's claims.

NEARER = 5, 16
"""Shared memory over DRAM: 7 to 8 on an H200, 12.5 on an A100, by their makers' figures."""
ALIKE = 0.7, 1.3
"""Two streams through the same memory."""


@suite.claim("C15")
def on_chip(view: Any) -> Finding:
    """Shared memory gives several times the bytes of DRAM. What either costs cannot be measured."""
    view.needs_gpu("a CPU has no shared memory")
    fastest = {
        name: min(view.rows(name), key=lambda row: row.summary.median_ns / row.work.bytes)
        for name in ("shared-read", "l2-read", "read", "copy")
    }
    dram = fastest["read"]
    ratio = view.ratio(dram, fastest["shared-read"], per="bytes")
    return Finding(
        effects=(
            Effect("rate of shared memory over DRAM", ratio, TIMES, *NEARER),
            Effect("rate of L2 over DRAM", view.ratio(dram, fastest["l2-read"], per="bytes"), TIMES),
        ),
        controls=(Effect("rate of a copy over a read", view.ratio(dram, fastest["copy"], per="bytes"), "1", *ALIKE),),
        note="the price of either memory is not tested",
    )
