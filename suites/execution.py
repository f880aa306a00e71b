"""Execution: how does a grid run on the machine, and what does each of its units do a clock?

Where blocks go, how wide a warp is and what a half-empty one costs, how long a word takes from one thread to another,
and what a multiprocessor does a clock, from cycles that the kernels count themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from gpubench import TIMES, Axis, Effect, Finding, Metric, Suite, Unsupported, Workload, exactly
from gpubench.model import execution

suite = Suite(__file__)

UNITS = {"fp32": 0, "int32": 1, "exp2": 2, "rsqrt": 3}
"""Units of the chains and the UNIT each is in execution.cu."""
FORMATS = {"float16": (0, 0x3C003C00), "bfloat16": (1, 0x3F803F80)}
"""Formats of the matrix units: their TYPE, and two numbers 1 in 32 bits."""
LINKS = 4096
"""Links of a chain: an fp32 chain that counts them is exact."""
MMA_LINKS, WGMMA_LINKS = 1024, 512
MMA_SUMS, MMA_FLOPS, WGMMA_FLOPS = 8, 2 * 16 * 8 * 16, 2 * 64 * 256 * 16
"""Independent sums of a warp, and what one instruction does."""
ROUNDS = 1000
"""Times a word goes there and back."""

AT_HOME = suite.kernel("blocks_at_home")
LANES = suite.kernel("lanes_of_warps")
CHAINS = suite.kernel("chains", defines={"UNIT": list(UNITS.values()), "CHAINS": [1, 4]})
PING_PONG_SHARED = suite.kernel("ping_pong_shared")
PING_PONG_CLUSTER = suite.kernel("ping_pong_cluster", source="execution_cluster.cu")
PING_PONG_GLOBAL = suite.kernel("ping_pong_global", defines={"FENCED": [0, 1]})
PATHS: dict[str, tuple[Any, dict[str, int]]] = {
    "shared": (PING_PONG_SHARED, {}),
    "cluster": (PING_PONG_CLUSTER, {}),
    "global": (PING_PONG_GLOBAL, {"FENCED": 0}),
    "fenced": (PING_PONG_GLOBAL, {"FENCED": 1}),
}
"""Ways of a word, nearest first, with kernel and defines; `fenced` is global memory with release and acquire."""
MMA = suite.kernel("mma_chains", defines={"TYPE": [0, 1]}, source="execution_tensor.cu")
WGMMA = suite.kernel("wgmma_chains", defines={"TYPE": [0, 1]}, source="execution_wgmma.cu", arch="sm_90a")


def multiprocessors(device: Any) -> int:
    """Of the device; one where it has none."""
    return int(device.facts().get("multiprocessors") or 1)


@suite.benchmark(blocks=Axis([1, 10240], quick=[10240]), threads=Axis([128]))
def blocks(device: Any, blocks: int, threads: int) -> Workload:
    """Which multiprocessors the blocks of a grid run on; the threads of one exchange words in its shared memory."""
    import torch

    on, out = device.unwritten((blocks, threads), "int32"), device.unwritten((blocks, threads), "int32")
    opposite = torch.arange(threads - 1, -1, -1, dtype=out.dtype, device=out.device)

    def metrics() -> list[Metric]:
        distinct = on.sort(1).values.diff(dim=1).ne(0).sum(1).max() + 1 if threads > 1 else 1
        return [
            Metric("multiprocessors", float(on.unique().numel()), "1", "higher"),
            Metric("multiprocessors_of_a_block", float(distinct), "1", "lower"),
        ]

    units = device.facts().get("multiprocessors")
    return Workload(
        run=AT_HOME(on, out, grid=blocks, block=threads),
        output=out,
        reference=lambda: opposite.expand(blocks, threads),
        reference_name="the threads in reverse",
        accumulate="exact",
        primary="time",
        labels={"control": "one block"} if blocks == 1 else {},
        prediction={"multiprocessors": min(units, blocks), "multiprocessors_of_a_block": 1} if units else {},
        metrics=metrics,
    )


@suite.benchmark(threads=Axis([1024]))
def warp(device: Any, threads: int) -> Workload:
    """How many lanes a warp has: every thread's lane, against its number modulo the warp's size."""
    import torch

    out = device.unwritten(threads, "int32")
    width = device.facts().get("warp_size") or execution.WARP
    return Workload(
        run=LANES(out, grid=1, block=threads),
        output=out,
        reference=lambda: torch.arange(threads, dtype=out.dtype, device=out.device) % width,
        reference_name=f"threads modulo {width}",
        accumulate="exact",
        primary="time",
        prediction={"warp_width": min(width, threads)},
        metrics=lambda: [Metric("warp_width", float(out.max()) + 1, "1", "higher")],
    )


def links_of_chains(device: Any, unit: str, chains: int, grid: int, threads: int, **fields: Any) -> Workload:
    """Chains of one unit's operations, and what each multiprocessor does of them a clock if it runs one block."""
    import numpy as np

    out, clocks = device.unwritten(grid * threads, "float32"), device.unwritten((grid, 2), "int64")
    links = chains * LINKS
    return Workload(
        run=CHAINS(
            out, clocks, np.int32(1), np.int32(0), np.int32(LINKS), np.int64(out.numel()),
            grid=grid, block=threads, UNIT=UNITS[unit], CHAINS=chains,
        ),
        output=out,
        reference=lambda: out.new_full(out.shape, links + sum(range(chains))),
        reference_name="the number of links",
        accumulate="float32" if unit in execution.SPECIAL else "exact",  # exp2 and the root may be off by a rounding
        reduction=LINKS,
        primary="time",
        dtype="int32" if unit == "int32" else "float32",
        **{"metrics": per_clock(clocks, "lanes", "1/clk", threads * links)} | fields,
    )  # fmt: skip


def per_clock(clocks: Any, name: str, unit: str, done: int) -> Callable[[], Sequence[Metric]]:
    """What the middle block did a clock, of `done` in all."""
    return lambda: [Metric(name, done / float(clocks[:, 0].double().median()), unit, "higher")]


@suite.benchmark(
    threads=Axis([1, 16, 31, 32, 33, 48, 63, 64, 65, 96, 97, 128, 256, 512, 1024], quick=[1, 32, 33, 64]),
    blocks=Axis([16]),
)
def fill(device: Any, threads: int, blocks: int) -> Workload:
    """What a block of so many threads costs where the schedulers are always busy: a step at every 32."""
    return links_of_chains(
        device, "fp32", 4, blocks * multiprocessors(device), threads, metrics=None,
        labels={} if threads % execution.WARP else {"control": "whole warps"}, prediction=execution.fill(threads),
    )  # fmt: skip


@suite.benchmark(unit=Axis(list(UNITS), quick=["fp32", "exp2"]))
def rate(device: Any, unit: str) -> Workload:
    """Operations of a unit a clock and multiprocessor: multiply-adds of fp32 and int32, special functions."""
    return links_of_chains(
        device, unit, 4, multiprocessors(device), 1024, prediction=execution.lanes(unit, device.facts())
    )


@suite.benchmark(unit=Axis(["fp32"], choices=list(UNITS)))
def dependent(device: Any, unit: str) -> Workload:
    """One thread, one chain: how long an operation takes before the next can use its result."""
    import numpy as np

    out, clocks = device.unwritten(1, "float32"), device.unwritten((1, 2), "int64")

    def metrics() -> list[Metric]:
        cycles, ns = (clocks[0].double() / LINKS).tolist()
        found = [Metric("latency", ns, "ns", "lower")]
        return [*found, Metric("cycles", cycles, "cycles", "none")] if cycles > 0 else found

    return Workload(
        run=CHAINS(
            out, clocks, np.int32(1), np.int32(0), np.int32(LINKS), np.int64(1),
            grid=1, block=1, UNIT=UNITS[unit], CHAINS=1,
        ),
        output=out,
        reference=lambda: out.new_full((1,), LINKS),
        reference_name="the number of links",
        accumulate="float32" if unit in execution.SPECIAL else "exact",
        reduction=LINKS,
        primary="time",
        dtype="int32" if unit == "int32" else "float32",
        prediction={"cycles": execution.FMA_CYCLES} if unit == "fp32" and device.kind == "cuda" else {},
        metrics=metrics,
    )  # fmt: skip


def matrix_rate(device: Any, kernel: Any, instruction: str, dtype: str, links: int, flops: int, sums: int) -> Workload:
    """Instructions of the matrix units, in blocks of whole groups of `sums` numbers a thread."""
    import numpy as np

    grid = multiprocessors(device)
    threads = 512 if instruction == "mma.sync" else 256
    type_, ones = FORMATS[dtype]
    out, clocks = device.unwritten(grid * threads, "float32"), device.unwritten((grid, 2), "int64")
    return Workload(
        run=kernel(
            out, clocks, np.uint32(ones), np.int32(links), np.int64(out.numel()), grid=grid, block=threads, TYPE=type_
        ),
        output=out,
        reference=lambda: out.new_full(out.shape, 16 * sums * links),
        reference_name="the number of products",
        flops=grid * flops * links,
        accumulate="exact",
        primary="flops",
        dtype=dtype,
        labels={"instruction": instruction},
        prediction=execution.matrix(instruction, dtype, device.facts()),
        metrics=per_clock(clocks, "flop_per_clock", "FLOP/clk", flops * links),
    )


@suite.benchmark(dtype=Axis(["float16", "bfloat16"], quick=["bfloat16"]))
def mma_sync(device: Any, dtype: str) -> Workload:
    """FLOPs of the matrix units a clock and multiprocessor by mma.sync, which a warp gives."""
    warps = 512 // execution.WARP
    return matrix_rate(device, MMA, "mma.sync", dtype, MMA_LINKS, warps * MMA_SUMS * MMA_FLOPS, 4 * MMA_SUMS)


@suite.benchmark(dtype=Axis(["float16", "bfloat16"], quick=["bfloat16"]))
def wgmma(device: Any, dtype: str) -> Workload:
    """FLOPs of the matrix units a clock and multiprocessor by wgmma, which four warps give together."""
    return matrix_rate(device, WGMMA, "wgmma", dtype, WGMMA_LINKS, 2 * WGMMA_FLOPS, 128)


@suite.benchmark(path=Axis(list(PATHS), quick=["shared", "cluster", "global"]))
def ping_pong(device: Any, path: str) -> Workload:
    """How long a word takes from one thread to another: of one block, of one cluster, of any two blocks."""
    import numpy as np

    capability = float(device.facts().get("compute_capability") or math.inf)
    if path == "cluster" and capability < 9:
        raise Unsupported("clusters need compute capability 9.0 or newer")
    out, on = device.unwritten(2, "int32"), device.unwritten(2, "int32")
    clocks, boxes = device.unwritten((1, 2), "int64"), device.unwritten(512, "int32").zero_()

    def metrics() -> list[Metric]:
        cycles, ns = (clocks[0].double() / (2 * ROUNDS)).tolist()
        return [
            Metric("cycles", cycles, "cycles", "none"),
            Metric("latency", ns, "ns", "lower"),
            Metric("multiprocessors", float(on.unique().numel()), "1", "lower"),
        ]

    kernel, defines = PATHS[path]
    grid = 1 if path == "shared" else 2
    return Workload(
        run=kernel(out, on, clocks, boxes, np.int32(ROUNDS), grid=grid, block=64, **defines),
        output=out,
        reference=lambda: out.new_tensor([2 * ROUNDS, 2 * ROUNDS - 1]),
        reference_name="the last words",
        accumulate="exact",
        primary="time",
        prediction={"order": list(PATHS)},
        metrics=metrics,
    )


# The lecture's claims.

NEAR = 0.9, 1.1
"""Rates of the units against the tables of their maker: the start and the end of a chain are not full."""
SEVERAL = 2
"""Two warps take twice as long as one; the start of a block is part of both."""
STEP_OF_WARPS = 1.8
"""33 threads are two warps, and cost nearly twice what 32 do."""
FLAT = 0.95, 1.05
"""Threads that fill up a warp cost nothing."""
FARTHER = 3
"""A word by way of the L2 takes hundreds of cycles, one through shared memory some tens."""
NO_WARPS = "a CPU has neither warps nor multiprocessors"


@suite.claim("C12")
def census(view: Any) -> Finding:
    """As many multiprocessors run blocks as the driver reports, which is fewer than the full die has."""
    view.needs_gpu(NO_WARPS)
    many, single = view.one("blocks", blocks=10240), view.one("blocks", blocks=1)
    units = view.facts["multiprocessors"]
    return Finding(
        effects=(Effect("multiprocessors that ran blocks", view.metric(many, "multiprocessors"), "1", units, units),),
        controls=(Effect("multiprocessors that ran one block", view.metric(single, "multiprocessors"), "1", 1, 1),),
        prediction=many.prediction,
        proof="A",
    )


@suite.claim("C13")
def units_of_a_multiprocessor(view: Any) -> Finding:
    """Each kind of unit does a clock what its maker's table says for this compute capability."""
    view.needs_gpu(NO_WARPS)
    effects = []
    for row in view.rows("rate"):
        wanted, found = row.prediction.get("lanes"), view.metric(row, "lanes")
        limits = NEAR if wanted else (None, None)
        effects.append(Effect(f"{row.params['unit']} results a clock", found, "1/clk", *(_of(limits, wanted))))
    for benchmark in ("mma-sync", "wgmma"):
        row = view.maybe(benchmark)
        if row is not None:
            wanted = row.prediction.get("flop_per_clock")
            limits = NEAR if wanted and row.prediction["bound"] == "equal" else (None, None)
            name = f"{row.params['dtype']} by {row.labels['instruction']}"
            effects.append(Effect(name, view.metric(row, "flop_per_clock"), "FLOP/clk", *_of(limits, wanted)))
    alone = view.metric(view.one("dependent", unit="fp32"), "cycles")
    return Finding(
        effects=tuple(effects),
        controls=(
            Effect("one thread's results a clock, each waiting for the last", exactly(1).over(alone), at_most=0.5),
        ),
        prediction={row.params["unit"]: row.prediction.get("lanes") for row in view.rows("rate")},
        proof="A",
    )


def _of(shares: tuple[float | None, float | None], whole: float | None) -> list[float | None]:
    """Shares of a figure; None where there is neither."""
    return [None if share is None or whole is None else share * whole for share in shares]


@suite.claim("C17")
def one_instruction_many_lanes(view: Any) -> Finding:
    """32 lanes cost what one does, because one instruction is for all of them; two warps are two instructions."""
    view.needs_gpu(NO_WARPS)
    one, full, two = (view.one("fill", threads=threads) for threads in (1, 32, 64))
    lanes = view.counter(full, "threads_per_instruction")
    by_count = () if lanes is None else (Effect("threads of an instruction of a full warp", lanes, "1", 28.8, 32),)
    return Finding(
        effects=(Effect("time of 32 threads over one", view.ratio(full, one), "1", *FLAT), *by_count),
        controls=(Effect("time of 64 threads over 32", view.ratio(two, full), TIMES, STEP_OF_WARPS),),
        prediction={"threads_per_instruction": 32},
        proof="A" if by_count else "B",
    )


@suite.claim("C18")
def at_home(view: Any) -> Finding:
    """All threads of a block run on one multiprocessor and share its memory; the blocks of a grid are spread."""
    view.needs_gpu(NO_WARPS)
    many = view.one("blocks", blocks=10240)
    return Finding(
        effects=(
            Effect("most multiprocessors of a block", view.metric(many, "multiprocessors_of_a_block"), "1", 1, 1),
        ),
        controls=(Effect("multiprocessors of all blocks", view.metric(many, "multiprocessors"), "1", SEVERAL),),
        prediction=many.prediction,
        proof="A",
    )


@suite.claim("C19")
def thirty_two(view: Any) -> Finding:
    """A warp is 32 threads wide, and a block pays for whole warps: the 33rd thread costs as much as 32 more."""
    view.needs_gpu(NO_WARPS)
    one, full, more, two = (view.one("fill", threads=threads) for threads in (1, 32, 33, 64))
    width = view.metric(view.one("warp"), "warp_width")
    return Finding(
        effects=(
            Effect("lanes of a warp", width, "1", 32, 32),
            Effect("time of 33 threads over 32", view.ratio(more, full), TIMES, STEP_OF_WARPS),
            Effect("time of 64 threads over 33", view.ratio(two, more), "1", *FLAT),
        ),
        controls=(Effect("time of 32 threads over one", view.ratio(full, one), "1", *FLAT),),
        prediction=more.prediction,
    )


@suite.claim("C21")
def across_blocks(view: Any) -> Finding:
    """A word takes longest by way of global memory; blocks of a cluster have a shorter way."""
    view.needs_gpu("threads of a CPU have no shared memory of a block")
    shared, across = view.one("ping-pong", path="shared"), view.one("ping-pong", path="global")
    near, far = (view.metric(row, "cycles") for row in (shared, across))
    effects = [Effect("cycles by global memory over shared", far.over(near), TIMES, FARTHER)]
    cluster = view.maybe("ping-pong", path="cluster")
    if cluster is not None:
        between = view.metric(cluster, "cycles")
        effects += [
            Effect("cycles by a cluster over shared", between.over(near), TIMES, 1),
            Effect("cycles by global memory over a cluster", far.over(between), TIMES, 1),
        ]
    return Finding(
        effects=tuple(effects),
        controls=(
            Effect("multiprocessors, through shared memory", view.metric(shared, "multiprocessors"), "1", 1, 1),
            Effect("multiprocessors, through global memory", view.metric(across, "multiprocessors"), "1", 2, 2),
        ),
        prediction=across.prediction,
        proof="A",
    )
