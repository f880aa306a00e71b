"""The memory hierarchy: how long does an access take at each level, and how many bytes must be under way at once?

A chase follows pointers in a random cycle through all lines of a set, one load at a time; what the set's size tells is
where its lines are. Cycles and ns are counted inside the kernel, around the steps alone: the time of a row also holds
the touching of the whole set before them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gpubench import TIMES, Axis, Effect, Estimate, Finding, Metric, RowsMissing, Skip, Suite, Workload, exactly
from gpubench.model import hierarchy

suite = Suite(__file__)

CHASE = suite.kernel("chase", defines={"CACHED": [0, 1]})
CHASE_SHARED = suite.kernel("chase_shared")
READ_SET = suite.kernel("read_set", defines={"UNROLL": [1, 2, 4, 8]})

LINE = 128
"""Bytes from one pointer to the next: a cache line, as in the .cu file."""
STEPS = 2048
"""Steps timed, of each multiprocessor: a millisecond where a step takes longest."""
THREADS = 256
"""Threads that touch the set, of a block; one of them goes on to chase."""
WHOLE_KIB = 1024
"""Up to this size each multiprocessor touches all of the set for itself, for its L1 to hold it; a larger one, which no
L1 could hold, is touched by all together."""
TOUCHES = {True: 2, False: 1}
"""How often the set is touched: twice where each multiprocessor touches all of it."""
RING = 256
"""Lines of the chase in shared memory: 32 KiB."""
ORDER_SEED = 1
"""Of the random cycle: the same in every run."""
READ_BYTES = {"cuda": 2**30, "cpu": 2**27}
"""What is read of a working set in all, in as many passes as that takes."""

KIB = Axis(
    [4, 32, 96, 128, 160, 192, 208, 232, 256, 288, 304, 512, 1024, 4096, 16384, 24576, 32768, 40960, 49152, 57344,
     65536, 81920, 131072, 262144, 524288],
    cpu=[4, 16, 32, 48, 128, 512, 2048, 8192, 32768, 131072],
    quick=[32, 128, 512, 4096, 16384, 131072, 524288],
    quick_cpu=[16, 512, 8192, 131072],
)  # fmt: skip
"""Size of a set in KiB (2^10 bytes): finest around the caches' ends."""


def cycle_through(lines: int, like: Any) -> Any:
    """A random order of all lines, on the device of the tensor `like`."""
    import torch

    generator = torch.Generator(like.device)
    generator.manual_seed(ORDER_SEED)
    return torch.randperm(lines, generator=generator, device=like.device)


def starts(order: Any, blocks: int) -> Any:
    """The numbers in the cycle at which the blocks start: as far apart as can be."""
    import torch

    return torch.arange(blocks, device=order.device) * len(order) // blocks


def timings(clocks: Any, steps: int) -> Callable[[], Sequence[Metric]]:
    """Of a step: cycles on average over the multiprocessors and of the nearest and the farthest one, and ns.

    `clocks` holds the cycles (0 where they cannot be counted) and the ns of all steps of each multiprocessor.
    """

    def metrics() -> list[Metric]:
        cycles, ns = (clocks.double() / steps).cpu().unbind(1)
        found = [Metric("latency", float(ns.mean()), "ns", "lower")]
        if float(cycles.max()) > 0:
            figures = {"cycles": cycles.mean(), "cycles_min": cycles.min(), "cycles_max": cycles.max()}
            found += [Metric(name, float(value), "cycles", "none") for name, value in figures.items()]
        return found

    return metrics


def chase_of(device: Any, lines: int, cached: bool, alone: bool = False, **fields: Any) -> Workload:
    """A chase through a set of `lines` lines by one thread of each multiprocessor; `alone` each stays at one line."""
    import numpy as np
    import torch

    facts = device.facts()
    blocks = facts.get("multiprocessors") or 1
    whole = lines * LINE <= WHOLE_KIB << 10 or blocks == 1
    passes = TOUCHES[whole]
    table = device.unwritten((lines, LINE // 8), "int64")
    order = cycle_through(lines, table)
    step = 0 if alone else 1
    table[order, 0] = table.data_ptr() + LINE * order.roll(-step)
    places = order[starts(order, blocks)]
    out, clocks = device.unwritten((blocks, 2), "int64"), device.unwritten((blocks, 2), "int64")
    arrived = device.unwritten(1, "int32").zero_()

    def ends_and_sums() -> Any:
        """From the order, not from the pointers: where each block ends, and what it adds up while it touches."""
        ends = order[(starts(order, blocks) + step * STEPS) % lines]
        if whole:
            sums = torch.full_like(ends, passes * (lines * (lines - 1) // 2))
        else:
            following = torch.empty_like(order)
            following[order] = order.roll(-step)
            shares = torch.nn.functional.pad(following, (0, -lines % (blocks * THREADS))).view(-1, blocks, THREADS)
            sums = passes * shares.sum((0, 2))
        return torch.stack([ends, sums], 1)

    return Workload(
        run=CHASE(
            table, places, out, clocks, arrived, np.int64(lines), np.int32(passes), np.int32(whole), np.int32(STEPS),
            grid=blocks, block=THREADS, CACHED=int(cached),
        ),
        output=out,
        reference=ends_and_sums,
        reference_name="the order of the lines",
        accumulate="exact",
        primary="time",
        prediction=hierarchy.chase(lines * LINE, facts, l1=cached),
        metrics=timings(clocks, STEPS),
        **fields,
    )  # fmt: skip


@suite.benchmark(kib=KIB)
def chase(device: Any, kib: int) -> Workload:
    """Chase pointers through a set of a given size: L1, then L2, then DRAM."""
    return chase_of(device, max(1, (kib << 10) // LINE), cached=True)


@suite.benchmark(kib=Axis([32, 128, 512, 4096], quick=[32, 4096], cpu=[32]))
def chase_past_l1(device: Any, kib: int) -> Workload:
    """The same with loads that the L1 does not keep: the control, in which its size must not show."""
    return chase_of(device, max(1, (kib << 10) // LINE), cached=False, labels={"control": "past the L1"})


@suite.benchmark(way=Axis(["alone", "together"]), lines=Axis([8192]))
def distance(device: Any, way: str, lines: int) -> Workload:
    """Chase past the L1: each multiprocessor at one line alone, near it or far from it; or through all lines."""
    alone = way == "alone"
    work = chase_of(device, lines, cached=False, alone=alone, labels={} if alone else {"control": "all lines"})
    work.prediction["far"] = hierarchy.latency("far L2", device.facts())
    return work


@suite.benchmark(blocks=Axis([1]))
def chase_shared(device: Any, blocks: int) -> Workload:
    """Chase offsets through 32 KiB of shared memory, one thread a block, `blocks` blocks a multiprocessor."""
    import numpy as np

    facts = device.facts()
    grid = blocks * (facts.get("multiprocessors") or 1)
    out, clocks = device.unwritten(grid, "int64"), device.unwritten((grid, 2), "int64")
    order = cycle_through(RING, out)
    following = device.unwritten(RING, "int32")
    following[order] = order.roll(-1).to(following.dtype)
    return Workload(
        run=CHASE_SHARED(following, order[starts(order, grid)], out, clocks, np.int32(STEPS), grid=grid, block=128),
        output=out,
        reference=lambda: order[(starts(order, grid) + STEPS) % RING],
        reference_name="the order of the lines",
        accumulate="exact",
        primary="time",
        level="shared",
        prediction={"level": "shared", **hierarchy.latency("shared", facts)},
        metrics=timings(clocks, STEPS),
    )


def reading(device: Any, nbytes: int, passes: int, blocks: int, threads: int, unroll: int, **fields: Any) -> Workload:
    """Read about `nbytes` of random words `passes` times with `blocks` blocks in all, 16 bytes an access."""
    import numpy as np
    import torch

    tile = threads * unroll * 4
    tiles = max(1, nbytes // (4 * tile))
    words = device.random(tile * tiles, "float32").view(torch.int32)
    out = device.unwritten(blocks, "int32")

    def sums() -> Any:
        """Turn after turn to the next block, modulo 2^32 as the kernel adds."""
        of_tiles = words.view(tiles, tile).sum(1, dtype=torch.int64)
        turns = torch.nn.functional.pad(of_tiles.repeat(passes), (0, -tiles * passes % blocks))
        total = turns.view(-1, blocks).sum(0) % 2**32
        return torch.where(total < 2**31, total, total - 2**32).to(torch.int32)

    return Workload(
        run=READ_SET(
            words, out, np.int64(tiles), np.int64(passes), np.int64(blocks), grid=blocks, block=threads, UNROLL=unroll
        ),
        output=out,
        reference=sums,
        reference_name="int64 sums",
        bytes=16 * threads * unroll * tiles * passes + 4 * blocks,
        accumulate="exact",
        dtype="int32",
        primary="bytes",
        **fields,
    )


@suite.benchmark(
    kib=Axis(
        [4096, 8192, 16384, 24576, 32768, 40960, 49152, 57344, 65536, 73728, 81920, 131072, 262144, 524288],
        cpu=[64, 256, 1024, 4096, 16384, 65536, 131072],
        quick=[4096, 16384, 65536, 262144],
        quick_cpu=[64, 1024, 65536],
    )
)
def working_set(device: Any, kib: int) -> Workload:
    """Read a set of a given size again and again, with every multiprocessor full and past the L1: L2, then DRAM."""
    facts = device.facts()
    caches = hierarchy.capacities(facts, l1=False)
    nbytes = kib << 10
    where = hierarchy.level(nbytes, caches)
    units = facts.get("multiprocessors")
    blocks = units * (facts["threads_per_multiprocessor"] // THREADS) if units else facts.get("threads") or 1
    return reading(
        device, nbytes, math.ceil(READ_BYTES[device.kind] / nbytes), blocks, THREADS, 4,
        level="L2" if where == "L2" else None, prediction={"level": where, "capacities": caches},
    )  # fmt: skip


@suite.benchmark(warps=Axis([1, 2, 4, 8, 16, 32, 64], quick=[1, 4, 64]), loads=Axis([1, 4], quick=[4]), mib=Axis([512]))
def in_flight(device: Any, warps: int, loads: int, mib: int) -> Workload:
    """Read from DRAM with few warps a multiprocessor, each thread with `loads` loads of 16 bytes under way."""
    facts = device.facts()
    units = facts.get("multiprocessors")
    if not units:
        raise Skip("no CPU counterpart: its cores decide themselves how many loads are under way")
    most = facts.get("threads_per_multiprocessor")
    if most and 32 * warps > most:
        raise Skip(f"a multiprocessor of this GPU holds {most // 32} warps")
    share = math.ceil(warps / 32)
    return reading(
        device, mib << 20, 1, share * units, 32 * warps // share, loads,
        level="DRAM", prediction=hierarchy.little(32 * 16 * warps * loads, facts),
    )  # fmt: skip


# The lecture's claims, and what an expert would add.

L2_OVER_L1, DRAM_OVER_L2, SHARED_OVER_L1 = 4, 1.6, 1.2
"""Published chases find 5 to 8 times, 1.8 to 2.6 times, and 0.7 to 0.9 times."""
CPU_STEP = 1.5
"""Each level of a CPU's caches takes two to four times as long as the one before; a busy machine hides part of it."""
DRAM_OVER_SHARED = 8
"""The lecture has 12.6 from one table; other chases of the same GPU find 16 to 19."""
HALF_WAY = 0.5
"""A set has outgrown a cache where its latency has gone half the way to the next level's. These caches do not replace
the oldest line: an H200 misses now and then below the size of its L1 and L2, and hits now and then far above."""
KNEE = 0.25
"""How far that may be from the cache's size."""
ALIKE = 0.85, 1.15
"""Sets that live in the same level."""
L2_RATE_OVER_DRAM = 1.5
"""RRZE reads 2.5 times as fast from the L2 of an H200 as from its DRAM; 1.5 is far from either's noise."""


def latency(view: Any, row: Any) -> float:
    """Of a step: cycles, or ns where they cannot be counted."""
    return float(view.metric(row, "latency" if row.metric("cycles") is None else "cycles").value)


def middle(rows: Sequence[Any], level: str, figure: Callable[[Any], float]) -> Any:
    """The row with the middle figure of the sets that live in a level alone. RowsMissing where there is none."""
    found = sorted((row for row in rows if row.prediction["level"] == level), key=figure)
    if not found:
        raise RowsMissing(f"no row {rows[0].benchmark} whose set lives in {level} alone")
    return found[len(found) // 2]


def of_level(view: Any, rows: Sequence[Any], level: str) -> float:
    """The middle latency of the sets that live in a level alone. RowsMissing where there is none."""
    return latency(view, middle(rows, level, lambda row: latency(view, row)))


def end(rows: Sequence[Any], outside: Callable[[Any], bool], size: int) -> Estimate:
    """Where a cache ends, over its size: between the last set inside and the first outside."""
    inside = 0
    for row in sorted(rows, key=lambda row: row.params["kib"]):
        nbytes = row.params["kib"] << 10
        if inside and outside(row):
            return Estimate(math.sqrt(inside * nbytes) / size, inside / size, nbytes / size)
        inside = nbytes
    raise RowsMissing(f"no row {rows[0].benchmark} beyond a cache")


def knee(view: Any, rows: Sequence[Any], near: float, far: float, size: int, share: float = HALF_WAY) -> Estimate:
    """Where a chase has gone a share of the way from a level to the next, over the size of its cache."""
    limit = near + share * (far - near)
    return end(rows, lambda row: latency(view, row) > limit, size)


@suite.claim("C14")
def closer_is_faster(view: Any) -> Finding:
    """Each level takes longer than the one before, and the steps lie where the caches end."""
    rows = view.rows("chase")
    if view.on_cpu:
        return caches_of_a_cpu(view, rows)
    past = sorted(view.rows("chase-past-l1"), key=lambda row: row.params["kib"])
    l1, l2, dram = (of_level(view, chased, level) for chased, level in ((rows, "L1"), (past, "L2"), (rows, "DRAM")))
    near = view.metric(view.one("distance", way="alone"), "cycles_min").value
    shared = latency(view, view.one("chase-shared"))
    sizes = rows[0].prediction["capacities"]
    return Finding(
        effects=(
            Effect("cycles of L2 over L1", exactly(l2 / l1), TIMES, L2_OVER_L1),
            Effect("cycles of DRAM over near L2", exactly(dram / near), TIMES, DRAM_OVER_L2),
            Effect("cycles of shared memory over L1", exactly(shared / l1), at_most=SHARED_OVER_L1),
            Effect("end of L1 over its size", knee(view, rows, l1, l2, sizes["L1"]), "1", 1 - KNEE, 1 + KNEE),
            Effect("end of L2 over its size", knee(view, rows, l2, dram, sizes["L2"]), "1", 1 - KNEE, 1 + KNEE),
            *(Effect(f"{words} of the way from L2 to DRAM, over the size of L2",
                     knee(view, rows, l2, dram, sizes["L2"], share), "1")
              for words, share in (("a quarter", 0.25), ("three quarters", 0.75))),
            *(Effect(f"{name}", exactly(value), "cycles") for name, value in
              {"shared": shared, "L1": l1, "near L2": near, "L2": l2, "DRAM": dram}.items()),
        ),
        controls=(
            Effect(
                f"{past[-1].params['kib']} over {past[0].params['kib']} KiB with loads past the L1",
                exactly(latency(view, past[-1]) / latency(view, past[0])), TIMES, *ALIKE,
            ),
        ),
        prediction={row.prediction["level"]: row.prediction["cycles"] for row in rows if "cycles" in row.prediction},
        proof="A",
    )  # fmt: skip


def caches_of_a_cpu(view: Any, rows: Sequence[Any]) -> Finding:
    """The same of the levels of a CPU of which a set was measured: compiled, timed, and not the lecture's machine."""
    levels = [level for level in (*rows[0].prediction["capacities"], "DRAM")
              if any(row.prediction["level"] == level for row in rows)]  # fmt: skip
    if len(levels) < 2:
        raise RowsMissing("no row chase of a second level")
    found = [of_level(view, rows, level) for level in levels]
    half = rows[0].prediction["capacities"][levels[0]] / 2  # what else runs takes the rest
    nearest = [latency(view, row) for row in rows if row.params["kib"] << 10 <= half]
    if len(nearest) < 2:
        raise RowsMissing(f"no two rows chase within half of {levels[0]}")
    return Finding(
        effects=tuple(
            Effect(f"ns of {level} over {before}", exactly(far / near), TIMES, CPU_STEP)
            for before, level, near, far in zip(levels, levels[1:], found, found[1:], strict=False)
        ),
        controls=(Effect(f"sets within half of {levels[0]}", exactly(max(nearest) / min(nearest)), at_most=ALIKE[1]),),
        proof="B",
        note="a CPU's caches, not the lecture's machine",
    )


@suite.claim("C16")
def global_over_shared(view: Any) -> Finding:
    """DRAM takes many times as long as shared memory; a set that the L1 holds does not."""
    view.needs_gpu("a CPU has no shared memory")
    rows = view.rows("chase")
    shared = latency(view, view.one("chase-shared"))
    l1, dram = of_level(view, rows, "L1"), of_level(view, rows, "DRAM")
    return Finding(
        effects=(Effect("cycles of DRAM over shared memory", exactly(dram / shared), TIMES, DRAM_OVER_SHARED),),
        controls=(Effect("cycles of L1 over shared memory", exactly(l1 / shared), "1", 0.5, 2),),
        prediction={row.prediction["level"]: row.prediction["cycles"] for row in rows if "cycles" in row.prediction},
        proof="A",
    )


@suite.claim("C11")
def many_at_once(view: Any) -> Finding:
    """One load takes long and many take hardly longer: while memory waits for work, the rate grows with the warps.

    What a CPU does of the same is in a run of its own: here are a GPU's figures, for information.
    """
    view.needs_gpu("its other half is a run on a GPU: one run has one device")
    loads = min(row.params["loads"] for row in view.rows("in-flight"))
    rows = view.rows("in-flight", loads=loads)
    below = [
        row for row in rows
        if row.prediction["bytes_in_flight"] <= row.prediction.get("knee_bytes", math.inf) / 2
    ]  # fmt: skip
    slope = view.slope(below, "warps")
    return Finding(
        effects=(
            Effect("slope of log rate over log warps, below the knee", Estimate(-slope.value, -slope.high, -slope.low)),
            Effect("most warps over fewest, rate", view.ratio(rows[0], rows[-1]), TIMES),
        ),
        prediction=rows[0].prediction,
        note="a GPU's half of the claim; the CPU's is a run of its own",
    )


@suite.claim("X03")
def bandwidth_by_working_set(view: Any) -> Finding:
    """Reading falls from the L2's bandwidth to DRAM's, half way where the L2 ends."""
    view.needs_gpu("a CPU's last cache is read through those of its cores: C14 has their ends")
    rows = view.rows("working-set")
    size = rows[0].prediction["capacities"]["L2"]

    def rate(row: Any) -> float:
        """Bytes a ns."""
        return float(1 / view.median(row, "bytes").value)

    def within(limit: float) -> Any:
        """The largest set of at most so many bytes."""
        fitting = [row for row in rows if row.params["kib"] << 10 <= limit]
        if not fitting:
            raise RowsMissing(f"no row working-set of at most {limit / 2**20:.0f} MiB")
        return max(fitting, key=lambda row: row.params["kib"])

    l2, dram, half, quarter = (
        middle(rows, "L2", rate), middle(rows, "DRAM", rate), within(size / 2), within(size / 4),
    )  # fmt: skip
    limit = rate(dram) + HALF_WAY * (rate(l2) - rate(dram))
    return Finding(
        effects=(
            Effect("bandwidth of L2 over DRAM", view.ratio(dram, l2, "bytes"), TIMES, L2_RATE_OVER_DRAM),
            Effect("half way from L2 to DRAM, over the size of L2", end(rows, lambda row: rate(row) <= limit, size),
                   "1", 1 - KNEE, 1 + KNEE),
        ),
        controls=(
            Effect(f"bandwidth of {quarter.params['kib']} over {half.params['kib']} KiB",
                   view.ratio(half, quarter, "bytes"), TIMES, *ALIKE),
        ),
        prediction={"L2_bytes": size},
    )  # fmt: skip
