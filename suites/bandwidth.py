"""Bandwidth: how fast do bytes come from DRAM and go back, and from the memories that are nearer?

The buffers of the streams are many times the last-level cache, so that what is measured is DRAM. A copy counts two bytes
per byte copied: one read, one written. Each stream is measured by a kernel of our own over a short search (accesses in
flight, threads a block, streaming hints), and beside it by torch's operation, the side to beat.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpubench import Axis, Suite, Workload

suite = Suite(__file__)

MIB = Axis([2048, 8192], cpu=[256], quick_cpu=[128])
"""Size of one buffer in MiB (2^20 bytes). Two sizes give a slope, free of what a start costs and of what stays cached."""
WORDS = 2**20 // 4
"""float32 numbers in a MiB."""
VECTOR, UNROLL, THREADS = Axis([16], minimum=4), Axis([1, 4], cpu=[1], quick=[4]), Axis([256, 1024], cpu=[1024], quick=[256])
HINT = Axis(["plain", "streaming"], cpu=["plain"], quick=["plain"])
BLOCKS = Axis([0], minimum=0)
"""Blocks a multiprocessor; 0: as many as the buffer has tiles."""
SEARCH = {"vector": VECTOR, "unroll": UNROLL, "threads": THREADS, "hint": HINT, "blocks": BLOCKS}
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
) -> tuple[np.int64, dict[str, Any]]:
    """Accesses of the whole buffer, and how a kernel is launched to make them."""
    accesses = mib * 2**20 // vector
    tiles = math.ceil(accesses / (threads * unroll))
    units = device.facts().get("multiprocessors") or 1
    grid = min(tiles, blocks * units) if blocks else tiles
    return np.int64(accesses), {
        "grid": grid, "block": threads, "VECTOR": vector, "UNROLL": unroll, "HINT": int(hint == "streaming"),
    }  # fmt: skip


@suite.benchmark(mib=MIB, **SEARCH)
def read(device: Any, mib: int, vector: int, unroll: int, threads: int, hint: str, blocks: int) -> Workload:
    """Read one buffer of float32; every block adds up its share."""
    import torch

    n, how = launch(device, mib, vector, unroll, threads, hint, blocks)
    source = device.random(mib * WORDS, "float32")
    sums = device.unwritten(how["grid"], "float32")
    tile = threads * unroll * vector // 4

    def partial_sums() -> Any:
        """The sum of each block's tiles: of tile t by block t modulo the grid."""
        padded = torch.nn.functional.pad(source, (0, -source.numel() % tile))
        tiles = padded.view(-1, tile).sum(1, dtype=torch.float64)
        return torch.nn.functional.pad(tiles, (0, -tiles.numel() % how["grid"])).view(-1, how["grid"]).sum(0)

    work = stream(
        sums, READ(source, sums, n, **how), partial_sums, "float64 sums", "DRAM read",
        mib * 2**20 + 4 * how["grid"], exact=False, flops=mib * WORDS - how["grid"],
    )  # fmt: skip
    work.reduction = math.ceil(mib * WORDS / how["grid"])
    return work


@suite.benchmark(mib=MIB, **SEARCH)
def write(device: Any, mib: int, vector: int, unroll: int, threads: int, hint: str, blocks: int) -> Workload:
    """Write one number into the whole of a buffer of float32."""
    import torch

    n, how = launch(device, mib, vector, unroll, threads, hint, blocks)
    target = device.unwritten(mib * WORDS, "float32")
    return stream(
        target, WRITE(target, np.float32(VALUE), n, **how), lambda: torch.full_like(target, VALUE),
        "the number written", "DRAM write", mib * 2**20, exact=True,
    )  # fmt: skip


@suite.benchmark(mib=MIB, **SEARCH)
def copy(device: Any, mib: int, vector: int, unroll: int, threads: int, hint: str, blocks: int) -> Workload:
    """Copy one buffer of float32 to another."""
    n, how = launch(device, mib, vector, unroll, threads, hint, blocks)
    source, target = device.random(mib * WORDS, "float32"), device.unwritten(mib * WORDS, "float32")
    return stream(
        target, COPY(source, target, n, **how), lambda: source, "the source", "DRAM copy", 2 * mib * 2**20, exact=True
    )


@suite.benchmark(mib=MIB, **SEARCH)
def scale(device: Any, mib: int, vector: int, unroll: int, threads: int, hint: str, blocks: int) -> Workload:
    """y = a x over buffers of float32."""
    n, how = launch(device, mib, vector, unroll, threads, hint, blocks)
    source, target = device.random(mib * WORDS, "float32"), device.unwritten(mib * WORDS, "float32")
    return stream(
        target, SCALE(source, target, np.float32(VALUE), n, **how), lambda: source.double() * VALUE,
        "float64 product", "DRAM scale", 2 * mib * 2**20, exact=False, flops=mib * WORDS,
    )  # fmt: skip


@suite.benchmark(mib=MIB, **SEARCH)
def triad(device: Any, mib: int, vector: int, unroll: int, threads: int, hint: str, blocks: int) -> Workload:
    """y = a x + z over buffers of float32: STREAM's triad."""
    n, how = launch(device, mib, vector, unroll, threads, hint, blocks)
    x, z = device.random(mib * WORDS, "float32", seed=0), device.random(mib * WORDS, "float32", seed=1)
    target = device.unwritten(mib * WORDS, "float32")
    return stream(
        target, TRIAD(x, z, target, np.float32(VALUE), n, **how), lambda: x.double() * VALUE + z.double(),
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
    facts = device.facts()
    tile = threads * unroll
    n = int(facts["last_level_cache_bytes"] * percent / 100) // (16 * tile) * tile
    grid = facts.get("multiprocessors", 1) * (2048 // threads)
    source, sums = device.random(4 * n, "float32"), device.unwritten(grid, "float32")

    def partial_sums() -> Any:
        """The sum of each block's tiles, as often as they are read."""
        import torch

        tiles = source.view(-1, 4 * tile).sum(1, dtype=torch.float64)
        return L2_PASSES * torch.nn.functional.pad(tiles, (0, -tiles.numel() % grid)).view(-1, grid).sum(0)

    return Workload(
        run=L2_READ(source, sums, np.int64(n), np.int32(L2_PASSES), grid=grid, block=threads, UNROLL=unroll),
        output=sums,
        reference=partial_sums,
        reference_name="float64 sums",
        flops=4 * n * L2_PASSES - grid,
        bytes=16 * n * L2_PASSES,
        reduction=math.ceil(4 * n * L2_PASSES / grid),
        dtype="float32",
        level="L2",
        roof="L2 read",
        primary="bytes",
    )


@suite.benchmark(blocks=Axis([2]))
def shared_read(device: Any, blocks: int) -> Workload:
    """Read shared memory over and over, 16 bytes a thread, with every multiprocessor full and no bank conflict."""
    import torch

    grid, threads, unrolled = device.facts().get("multiprocessors", 1) * blocks, 1024, 8
    source, sums = device.random(4 * threads, "float32"), device.unwritten((grid, threads), "float32")

    def of_a_thread() -> Any:
        """A thread reads the vectors a warp apart from its own on, round and round: each of its 32 equally often."""
        vectors = source.view(threads // 32, 32, 4).double()
        mine = vectors.sum((0, 2)) * (SHARED_PASSES * unrolled / (threads // 32))
        return mine.repeat(threads // 32).expand(grid, threads)

    reads = grid * threads * unrolled * SHARED_PASSES
    return Workload(
        run=SHARED_READ(source, sums, np.int32(SHARED_PASSES), grid=grid, block=threads),
        output=sums,
        reference=lambda: of_a_thread().to(torch.float64),
        reference_name="float64 sums",
        flops=4 * reads,
        bytes=16 * reads,
        reduction=4 * unrolled * SHARED_PASSES,
        dtype="float32",
        level="shared",
        roof="shared memory read",
        primary="bytes",
    )
