"""Coalescing: what does a warp pay when its 32 addresses are not neighbours?

Every kernel accesses floats, one a lane, and moves the same useful bytes in every row of its table; the buffers are
many times the last-level cache. A prediction says how many 32-byte sectors a request moves, and which share of them is
useful: where no cache helps, the rate of a row cannot exceed that share of the memory's. Rows labelled `control` are
those whose pattern must lose nothing. A CPU has neither warps nor sectors: its rows move lines of 64 bytes.
"""

from __future__ import annotations

import math
from typing import Any

from gpubench import TIMES, Axis, Effect, Finding, Skip, Suite, Workload
from gpubench.model import memory

suite = Suite(__file__)

MIB = Axis([512], cpu=[64])
"""Size of one buffer of float32 in MiB (2^20 bytes)."""
GPU_MIB = Axis([512], cpu=[1])
"""The same where a CPU has nothing to measure."""
WORDS = 2**20 // 4
"""float32 numbers in a MiB."""
BLOCK, UNROLL = 256, 8
"""Threads of a block, and accesses of a thread, as in coalescing.cu."""
TILE = BLOCK * UNROLL
FLOAT = 4
"""Bytes of a float."""
LINE = 64
"""Bytes a CPU's core fetches at a time."""
VALUE = 3.0

STRIDED_READ = suite.kernel("strided_read")
STRIDED_WRITE = suite.kernel("strided_write")
OFFSET_COPY = suite.kernel("offset_copy")
PERMUTED_COPY = suite.kernel("permuted_copy")
WALK_ROWS = suite.kernel("walk_rows")
WALK_COLUMNS = suite.kernel("walk_columns")
GATHER = suite.kernel("gather")
TILE_COPY = suite.kernel("tile_copy")


def control(nothing_lost: bool, why: str) -> dict[str, str]:
    """The label of a row in which the effect must vanish."""
    return {"control": why} if nothing_lost else {}


def copied(run: Any, output: Any, reference: Any, nbytes: int) -> Workload:
    """A workload that writes what it read."""
    return Workload(
        run=run, output=output, reference=reference, reference_name="the elements copied", bytes=nbytes,
        accumulate="exact", dtype="float32", level="DRAM", primary="bytes",
    )  # fmt: skip


def of_copy(read: float, useful: int = 2 * memory.LANES) -> dict[str, Any]:
    """The prediction of a copy whose warps read so many sectors a request and write whole ones: sectors of a request,
    and the share of them that the `useful` floats are."""
    written = memory.strided(1, FLOAT)
    return {
        "read_sectors_per_request": read,
        "write_sectors_per_request": written,
        "useful_share": memory.useful_share(FLOAT * useful, read, written),
    }


def passes(mib: int, stride: int) -> int:
    """Accesses of a pass with this stride over the buffer. Skip where they are not whole tiles."""
    if stride & (stride - 1):
        raise Skip(f"a stride is a power of two, not {stride}")
    each = mib * WORDS // stride
    if each % TILE:
        raise Skip(f"a pass of stride {stride} over {mib} MiB is not whole tiles of {TILE} accesses")
    return each


def of_stride(device: Any, stride: int, direction: str) -> dict[str, Any]:
    """The prediction of strided accesses: on a GPU by sectors of a request, on a CPU by lines."""
    if device.kind == "cpu":
        return {"useful_share": memory.strided_share(stride, FLOAT, LINE)}
    sectors = memory.strided(stride, FLOAT)
    return {
        f"{direction}_sectors_per_request": sectors,
        "useful_share": memory.strided_share(stride, FLOAT, memory.SECTOR),
    }


STRIDE = Axis([1, 2, 4, 8, 16, 32, 64], cpu=[1, 4, 16], quick=[1, 2, 8, 32], quick_cpu=[1, 16])


@suite.benchmark(stride=STRIDE, mib=MIB)
def strided_read(device: Any, stride: int, mib: int) -> Workload:
    """Read every float of a buffer once, each request with a stride, pass after pass."""
    import numpy as np

    each = passes(mib, stride)
    n = mib * WORDS
    source, sums = device.random(n, "float32"), device.unwritten(n // TILE, "float32")
    wanted = sorted(range(stride), key=lambda offset: (offset % 16, offset))

    def of_tiles() -> Any:
        """The float64 sum of each tile: a pass is a column of the buffer, seen as rows of `stride` floats."""
        columns = source.view(each, stride)
        return columns[:, wanted].t().double().reshape(-1, TILE).sum(1)

    return Workload(
        run=STRIDED_READ(
            source, sums, np.int64(TILE), np.int64(each), np.int64(stride), grid=n // TILE, block=BLOCK
        ),
        output=sums,
        reference=of_tiles,
        reference_name="float64 sums",
        flops=n - n // TILE,
        bytes=FLOAT * (n + n // TILE),
        reduction=TILE,
        dtype="float32",
        level="DRAM",
        primary="bytes",
        labels=control(stride == 1, "neighbours"),
        prediction=of_stride(device, stride, "read"),
    )  # fmt: skip


@suite.benchmark(stride=STRIDE, mib=MIB)
def strided_write(device: Any, stride: int, mib: int) -> Workload:
    """Write every float of a buffer once, each request with a stride, pass after pass."""
    import numpy as np
    import torch

    each = passes(mib, stride)
    target = device.unwritten(mib * WORDS, "float32")
    run = STRIDED_WRITE(
        target, np.float32(VALUE), np.int64(TILE), np.int64(each), np.int64(stride),
        grid=mib * WORDS // TILE, block=BLOCK,
    )  # fmt: skip
    work = copied(run, target, lambda: torch.full_like(target, VALUE), FLOAT * mib * WORDS)
    work.reference_name = "the number written"
    work.labels = control(stride == 1, "neighbours")
    work.prediction = of_stride(device, stride, "write")
    return work


@suite.benchmark(offset=Axis([0, 1, 2, 4, 7, 8, 9, 16, 31], quick=[0, 1, 8, 31], minimum=0), mib=GPU_MIB)
def offset_copy(device: Any, offset: int, mib: int) -> Workload:
    """Copy a buffer from an offset in floats on: aligned to a sector of 8, or a request takes one more."""
    import numpy as np

    n = mib * WORDS
    source, target = device.random(n + offset, "float32"), device.unwritten(n, "float32")
    run = OFFSET_COPY(source, target, np.int64(n), np.int64(offset), grid=math.ceil(n / TILE), block=BLOCK)
    work = copied(run, target, lambda: source[offset:], 2 * FLOAT * n)
    sectors = memory.strided(1, FLOAT, offset)
    work.labels = control(sectors == memory.strided(1, FLOAT), "aligned")
    work.prediction = of_copy(sectors)
    return work


ORDERS = {"straight": (1, 0), "reversed": (31, 31), "shuffled": (13, 7), "broadcast": (0, 0)}
"""Lane l reads the element of lane (factor · l + shift) modulo 32."""


@suite.benchmark(order=Axis(list(ORDERS)), mib=GPU_MIB)
def permuted_copy(device: Any, order: str, mib: int) -> Workload:
    """Copy with the 32 addresses of a warp in another order, which costs nothing, or all of one element."""
    import numpy as np
    import torch

    factor, shift = ORDERS[order]
    n = mib * WORDS
    source, target = device.random(n, "float32"), device.unwritten(n, "float32")
    lanes = [(factor * lane + shift) % memory.LANES for lane in range(memory.LANES)]

    def moved() -> Any:
        """Rows of 32, their elements in that order."""
        return source.view(-1, memory.LANES)[:, torch.tensor(lanes, device=source.device)].flatten()

    read = FLOAT * n * len(set(lanes)) // memory.LANES
    run = PERMUTED_COPY(
        source, target, np.int64(n), np.int32(factor), np.int32(shift), grid=math.ceil(n / TILE), block=BLOCK
    )
    work = copied(run, target, moved, read + FLOAT * n)
    work.labels = control(order in ("reversed", "shuffled"), "same sectors")
    read_sectors = memory.sectors([FLOAT * lane for lane in lanes], FLOAT)
    work.prediction = of_copy(read_sectors, len(set(lanes)) + memory.LANES)
    return work


LENGTH = 64
"""Elements that one thread adds up."""


@suite.benchmark(along=Axis(["row", "column"]), n=Axis([16384], cpu=[4096]))
def walk(device: Any, along: str, n: int) -> Workload:
    """Sum pieces of an n × n matrix, each thread along a row (its neighbours a row away) or down a column.

    On a CPU a core walks alone, and the row is the walk that finds its neighbours in the line it has.
    """
    import numpy as np

    if n % LENGTH:
        raise Skip(f"n = {n} is not whole pieces of {LENGTH}")
    source, sums = device.random((n, n), "float32"), device.unwritten((n // LENGTH, n), "float32")

    def of_pieces() -> Any:
        """The float64 sum of each piece, [piece][row] or [piece][column]."""
        if along == "row":
            return source.double().view(n, n // LENGTH, LENGTH).sum(2).t()
        return source.double().view(n // LENGTH, LENGTH, n).sum(1)

    good = along == ("row" if device.kind == "cpu" else "column")
    stride = 1 if good else n
    return Workload(
        run=(WALK_ROWS if along == "row" else WALK_COLUMNS)(
            source, sums, np.int32(n), np.int32(n), np.int32(LENGTH),
            grid=math.ceil(n / BLOCK) * (n // LENGTH), block=BLOCK,
        ),
        output=sums,
        reference=of_pieces,
        reference_name="float64 sums",
        flops=n * n - sums.numel(),
        bytes=FLOAT * (n * n + sums.numel()),
        reduction=LENGTH,
        dtype="float32",
        level="DRAM",
        primary="bytes",
        labels=control(good, "neighbours"),
        prediction=of_stride(device, stride, "read"),
    )  # fmt: skip


WINDOWS = {"identity": 1, "32B": 8, "128B": 32, "4096B": 1024, "whole": None}
"""Elements of the window inside which a gather's sources are permuted; None is the whole buffer."""


@suite.benchmark(window=Axis(list(WINDOWS)), mib=MIB)
def gather(device: Any, window: str, mib: int) -> Workload:
    """y[i] = x[p[i]], where p permutes the elements of each window at random.

    The permutations are drawn from a seed of their own: which addresses are read does not depend on the data of a run.
    """
    import numpy as np
    import torch

    n = mib * WORDS
    source, target = device.random(n, "float32"), device.unwritten(n, "float32")
    size = WINDOWS[window] or n
    draw = torch.Generator(source.device)
    draw.manual_seed(0)
    places: Any = torch.arange(n, dtype=torch.int32, device=source.device)
    if size == n:
        places = torch.randperm(n, generator=draw, device=source.device, dtype=torch.int32)
    elif size > 1:
        keys = torch.rand((n // size, size), generator=draw, device=source.device)
        places = (keys.argsort(1) + torch.arange(0, n, size, device=source.device)[:, None]).flatten().int()
    work = copied(
        GATHER(source, places, target, np.int64(n), grid=math.ceil(n / TILE), block=BLOCK), target,
        lambda: source[places.long()], 3 * FLOAT * n,
    )  # fmt: skip
    work.labels = control(size <= memory.LANES, "same sectors")
    if device.kind != "cpu":
        read, dense = memory.gather(size, FLOAT), memory.strided(1, FLOAT)
        work.prediction = {
            "read_sectors_per_request": (read + dense) / 2,  # one request for the index, one for the element
            "gather_sectors_per_request": read,
            "write_sectors_per_request": dense,
            "useful_share": memory.useful_share(3 * memory.LANES * FLOAT, read, dense, dense),
        }
    return work


@suite.benchmark(width=Axis([8, 32], minimum=8), skew=Axis([0, 1], minimum=0), mib=Axis([256], cpu=[1]))
def tiles(device: Any, width: int, skew: int, mib: int) -> Workload:
    """Copy tiles whose rows are `width` floats; with a skew of 1 every row starts one float later in its sector.

    Rows lie 4 · width + skew floats apart, so that the buffer is four times as long as what is wanted of it (`mib`).
    """
    import numpy as np

    if width not in (8, 16, 32):
        raise Skip(f"a row is 8, 16 or 32 floats, not {width}")
    n, pitch = mib * WORDS, 4 * width + skew
    source, target = device.random((n // width, pitch), "float32"), device.unwritten(n, "float32")
    run = TILE_COPY(
        source, target, np.int64(n), np.int32(width), np.int64(pitch), grid=math.ceil(n / TILE), block=BLOCK
    )
    work = copied(run, target, lambda: source[:, :width].flatten(), 2 * FLOAT * n)
    work.labels = control(skew % 8 == 0, "aligned")
    work.prediction = of_copy(memory.rows(width, pitch, FLOAT))
    return work


# The lecture's claims.

HALF = 1 / 0.6, 1 / 0.42
"""A stride of 2 moves twice the sectors for each float that is wanted."""
SECTOR_LOST = 5
"""From a stride of 8 on, one float of a sector of 8 is wanted: useful bandwidth falls to a fifth or less."""
PLATEAU = 2.2
"""Beyond it nothing more is lost but what DRAM fetches at once: two sectors at most."""
LINE_LOST = 2
"""On a CPU, one float of a line of 16; what it fetches ahead hides the rest."""
ALIKE = 0.9, 1.1
"""The same sectors in another order."""
ALIGNED = 0.95, 1.05
"""A copy that starts a whole sector later."""
EXACT = 0.01
"""Counted sectors against predicted ones: requests at the end of a buffer are few in a thousand."""
WALK = 1.5
"""Caches keep part of what a walk along rows fetches, but not all of it."""
SCATTERED, WINDOW = 4, 1.15
"""A gather from anywhere moves up to 8 times the bytes; one inside 128 bytes moves what the identity moves."""
TILE_NEAR = 0.1
"""Predicted sectors of a tile's rows, against counted ones."""
TILE_SLOWER = 0.5
"""By time alone, the share of the predicted rise that must show. What the copy stores is part of it and stays as it is,
and DRAM that fetches two sectors at once has fetched some of the skewed rows' sectors anyway."""
BY_TIME = "no counters: inferred from time"


def counted(view: Any, *rows: Any, near: float = EXACT) -> tuple[Effect, ...]:
    """The counted sectors of a load request of rows against those predicted; nothing without counters."""
    found = [(row, view.counter(row, "sectors_per_load_request")) for row in rows]
    return tuple(
        Effect(
            f"sectors a request, {', '.join(f'{name}={value}' for name, value in row.params.items() if name != 'mib')}",
            sectors, "1", wanted * (1 - near), wanted * (1 + near),
        )
        for row, sectors in found
        if sectors is not None and (wanted := row.prediction["read_sectors_per_request"])
    )  # fmt: skip


def proved(effects: tuple[Effect, ...], by_count: tuple[Effect, ...], **fields: Any) -> Finding:
    """A finding by count where there are counters, else by time."""
    proof: dict[str, Any] = {"proof": "A"} if by_count else {"proof": "B", "note": BY_TIME}
    return Finding(effects=(*effects, *by_count), **fields, **proof)


def shuffled(view: Any) -> Effect:
    """The control: the same sectors in another order cost nothing, nor does the same line of a CPU."""
    if view.on_cpu:
        windows = [view.one("gather", window=window) for window in ("32B", "identity")]
        return Effect("a gather inside 32 bytes over in order", view.ratio(*windows), TIMES, *ALIKE)
    orders = [view.one("permuted-copy", order=order) for order in ("shuffled", "straight")]
    return Effect("shuffled lanes over straight ones", view.ratio(*orders), TIMES, *ALIKE)


def beyond_the_sector(view: Any, last: Any, eight: Any) -> tuple[Effect, ...]:
    """What is lost beyond a stride of a sector: in bytes where they were counted, else in time. Time says more than how
    much a request brings: requests that lie far apart find fewer rows of DRAM open."""
    read = [view.counter(row, "dram_bytes_read") for row in (last, eight)]
    words, time = f"at a stride of {last.params['stride']} over 8", view.ratio(last, eight)
    if None in read:
        return (Effect(f"time {words}", time, at_most=PLATEAU),)
    return Effect(f"bytes from DRAM {words}", read[0].over(read[1]), at_most=PLATEAU), Effect(f"time {words}", time)


@suite.claim("C47")
def a_whole_sector(view: Any) -> Finding:
    """One float wanted of a sector costs the sector: time rises with the stride up to 8 floats (a CPU's line: 16)."""
    rows = {row.params["stride"]: row for row in view.rows("strided-read")}
    one, last = view.one("strided-read", stride=1), rows[max(rows)]
    if view.on_cpu:
        line = view.one("strided-read", stride=16)
        lost = Effect("time at a stride of 16 over 1", view.ratio(line, one), TIMES, LINE_LOST)
        return proved((lost,), (), controls=(shuffled(view),), prediction=line.prediction)
    eight = view.one("strided-read", stride=8)
    return proved(
        (
            Effect("time at a stride of 2 over 1", view.ratio(view.one("strided-read", stride=2), one), TIMES, *HALF),
            Effect("time at a stride of 8 over 1", view.ratio(eight, one), TIMES, SECTOR_LOST),
            *beyond_the_sector(view, last, eight),
        ),
        counted(view, *rows.values()),
        controls=(shuffled(view),),
        prediction=eight.prediction,
    )


@suite.claim("C48")
def one_request(view: Any) -> Finding:
    """Addresses of one line are one request of 4 sectors in any order, and of 5 where they start inside a sector."""
    view.needs_gpu("a CPU has no warps whose addresses are gathered into a request")
    straight, mixed = (view.one("permuted-copy", order=order) for order in ("straight", "shuffled"))
    aligned, late = view.one("offset-copy", offset=0), view.one("offset-copy", offset=1)
    stride = [view.one("strided-read", stride=stride) for stride in (8, 1)]
    by_count = counted(view, straight, mixed, aligned, late)
    by_time = Effect("time of shuffled lanes over straight ones", view.ratio(mixed, straight), "1", *ALIKE)
    return proved(
        () if by_count else (by_time,),
        (*by_count, Effect("time at an offset of 1 over 0", view.ratio(late, aligned), TIMES)) if by_count else (),
        controls=(Effect("other sectors do cost: a stride of 8 over 1", view.ratio(*stride), TIMES, 2),),
        prediction=late.prediction,
    )


@suite.claim("C49")
def along_and_across(view: Any) -> Finding:
    """Threads beside each other must read beside each other: a walk along rows is slow, down columns is fast.

    A core of a CPU walks alone: there the walk along the row is the fast one.
    """
    good, bad = ("row", "column") if view.on_cpu else ("column", "row")
    fast, slow = view.one("walk", along=good), view.one("walk", along=bad)
    return proved(
        (Effect(f"time by {bad} over by {good}", view.ratio(slow, fast), TIMES, WALK),),
        counted(view, fast, slow),
        controls=(shuffled(view),),
        prediction=slow.prediction,
    )


@suite.claim("C20")
def scattered(view: Any) -> Finding:
    """A gather from anywhere is many times as slow as one in order; inside 128 bytes it is not."""
    identity, window, whole = (view.one("gather", window=window) for window in ("identity", "128B", "whole"))
    return proved(
        (Effect("time of a gather from anywhere over one in order", view.ratio(whole, identity), TIMES, SCATTERED),),
        counted(view, identity, window),
        controls=(Effect("inside 128 bytes over in order", view.ratio(window, identity), at_most=WINDOW),),
        prediction=whole.prediction,
    )


@suite.claim("C54")
def a_sector_more(view: Any) -> Finding:
    """Rows of a tile that start inside a sector take one sector more: nearly two for one, or five for four."""
    view.needs_gpu("a CPU has no requests of 32 addresses")
    pairs = [[view.one("tiles", width=width, skew=skew) for skew in (1, 0)] for width in (8, 32)]
    by_count = counted(view, *(row for pair in pairs for row in pair), near=TILE_NEAR)
    expected = [skewed.prediction["read_sectors_per_request"] / straight.prediction["read_sectors_per_request"]
                for skewed, straight in pairs]  # fmt: skip
    slower = [straight.prediction["useful_share"] / skewed.prediction["useful_share"] for skewed, straight in pairs]
    times = [
        Effect(
            f"time of skewed rows over aligned ones, {4 * skewed.params['width']} B",
            view.ratio(skewed, straight), TIMES, None if by_count else 1 + TILE_SLOWER * (factor - 1),
        )
        for (skewed, straight), factor in zip(pairs, slower, strict=True)
    ]  # fmt: skip
    start = [view.one("offset-copy", offset=offset) for offset in (8, 0)]
    return proved(
        tuple(times),
        by_count,
        controls=(Effect("a copy one whole sector later", view.ratio(*start), TIMES, *ALIGNED),),
        prediction={"sectors_skewed_over_aligned": expected},
    )
