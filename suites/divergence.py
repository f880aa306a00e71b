"""Divergence: what does a warp pay when its lanes take different paths?

Every path is a chain of multiply-adds in registers, so that time counts instructions, and every row executes as many
useful ones per thread. Rows labelled `control` are those in which nothing may be lost: one path, a branch on the
boundary of warps, data in order, or a kernel that waits for memory anyway.

A CPU has no warps. Its `data-branch` shows branches guessed wrongly, another mechanism behind the same question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpubench import TIMES, Axis, Effect, Finding, Suite, Workload
from gpubench.model import divergence

suite = Suite(__file__)

WARP = 32
"""Lanes of a warp, on every GPU of CUDA."""
STEP = 16
"""Links of a path in one trip, as in divergence.cu."""
CPU_STEP = 1
"""The same in divergence.cpp: in longer paths a core hides that it guessed wrongly."""
TRIPS, SWITCH_TRIPS, MEMORY_TRIPS = 512, 256, 4
"""Trips of a path; of one of up to 32; and of one that a load and a store of 16 bytes hide."""
BLOCK = 256

LANE_SPLIT = suite.kernel("lane_split")
BOUNDARY_SPLIT = suite.kernel("boundary_split")
SWITCH_PATHS = suite.kernel("switch_paths")
MEMORY_SPLIT = suite.kernel("memory_split")
DATA_BRANCH = suite.kernel("data_branch")


def links(kernel: Any, out: Any, paths: Sequence[int], adds: Sequence[float], trips: int, *arguments: Any) -> Workload:
    """A workload of chains: lane i takes path `paths[i]`, whose links add `adds[path]` each."""
    import numpy as np

    n = out.numel()

    def counted() -> Any:
        """What the links of its path add to the number of its lane."""
        lanes = out.new_tensor([lane + STEP * trips * adds[path] for lane, path in enumerate(paths)])
        return lanes.repeat(n // WARP)

    return Workload(
        run=kernel(out, *arguments, np.int64(n), grid=n // BLOCK, block=BLOCK),
        output=out,
        reference=counted,
        reference_name="the number of links",
        flops=2 * STEP * trips * n,
        accumulate="exact",
        dtype="float32",
        prediction=divergence.warp(paths, [STEP * trips] * len(adds)),
    )


def full(device: Any) -> Any:
    """An output for as many threads as the GPU holds at once."""
    facts = device.facts()
    blocks = (facts.get("threads_per_multiprocessor") or 8 * BLOCK) // BLOCK
    return device.unwritten((facts.get("multiprocessors") or 1) * blocks * BLOCK, "float32")


def control(nothing_lost: bool, why: str) -> dict[str, str]:
    """The label of a row in which the effect must vanish."""
    return {"control": why} if nothing_lost else {}


@suite.benchmark(k=Axis([0, 1, 2, 4, 8, 16, 24, 31, 32], quick=[0, 1, 16, 31, 32], minimum=0))
def lane_split(device: Any, k: int) -> Workload:
    """Lanes below k of each warp take one path, the others another of equal length: an if and its else."""
    import numpy as np

    work = links(
        LANE_SPLIT, full(device), [int(lane >= k) for lane in range(WARP)], [1, -2], TRIPS,
        np.float32(1), np.int32(TRIPS), np.int32(k),
    )  # fmt: skip
    work.labels = control(k == 0 or k >= WARP, "one path")
    return work


@suite.benchmark(by=Axis(["lane", "warp"]))
def boundary(device: Any, by: str) -> Workload:
    """Half the threads take each of two paths: every other lane, or every other warp, for which it is free."""
    import numpy as np

    shift = {"lane": 0, "warp": 5}[by]
    out = full(device)
    work = links(
        BOUNDARY_SPLIT, out, [(lane >> shift) & 1 for lane in range(WARP)], [1, -2], TRIPS,
        np.float32(1), np.int32(TRIPS), np.int32(shift),
    )  # fmt: skip
    if by == "warp":
        even = work.reference

        def both() -> Any:
            """The warps of even number count ones upwards, those of odd number twos downwards."""
            pairs = even().view(-1, 2, WARP)
            pairs[:, 1] -= 3 * STEP * TRIPS
            return pairs.flatten()

        work.reference = both
    work.labels = control(by == "warp", "whole warps")
    return work


@suite.benchmark(n=Axis([1, 2, 4, 8, 16, 32], quick=[1, 4, 32]))
def switch(device: Any, n: int) -> Workload:
    """A switch of n paths of equal length: lane i takes path i modulo n."""
    import numpy as np

    work = links(
        SWITCH_PATHS, full(device), [lane % n for lane in range(WARP)], range(1, WARP + 1), SWITCH_TRIPS,
        np.float32(1), np.int32(SWITCH_TRIPS), np.int32(n),
    )  # fmt: skip
    work.labels = control(n == 1, "one path")
    return work


@suite.benchmark(k=Axis([0, 16, 32], quick=[0, 16], minimum=0), mib=Axis([512], cpu=[16]))
def memory_bound(device: Any, k: int, mib: int) -> Workload:
    """The split of lanes again, in a kernel that reads and writes a buffer: the paths hide behind memory."""
    import numpy as np
    import torch

    source, target = device.random(mib * 2**18, "float32"), device.unwritten(mib * 2**18, "float32")
    accesses = mib * 2**16

    def added() -> Any:
        """Four numbers a thread, plus what the path of its lane adds."""
        lanes = torch.arange(WARP, device=source.device)
        sums = torch.where(lanes < k, MEMORY_TRIPS, -2 * MEMORY_TRIPS).double()
        return (source.view(-1, WARP, 4).double() + sums[:, None]).flatten()

    return Workload(
        run=MEMORY_SPLIT(
            source, target, np.float32(1), np.int32(MEMORY_TRIPS), np.int32(k), np.int64(accesses),
            grid=accesses // BLOCK, block=BLOCK,
        ),
        output=target,
        reference=added,
        reference_name="float64 sum",
        flops=8 * MEMORY_TRIPS * accesses,
        bytes=2 * mib * 2**20,
        reduction=MEMORY_TRIPS,
        dtype="float32",
        level="DRAM",
        primary="bytes",
        labels={"control": "memory-bound"},
        prediction={"relative_time": 1.0},
    )  # fmt: skip


@suite.benchmark(
    order=Axis(["sorted", "random"]), trips=Axis([TRIPS], cpu=[1]), blocks=Axis([8], cpu=[4096], quick_cpu=[1024])
)
def data_branch(device: Any, order: str, trips: int, blocks: int) -> Workload:
    """A branch on the sign of an element, half of them negative, in order or at random.

    The signs are drawn from a seed of their own: whatever the data of a run, half of them are negative.
    """
    import numpy as np
    import torch

    links = trips * (CPU_STEP if device.kind == "cpu" else STEP)
    n = (device.facts().get("multiprocessors") or 1) * blocks * BLOCK
    out = device.unwritten(n, "float32")
    signs = torch.ones(n, device=out.device)
    signs[: n // 2] = -1
    if order == "random":
        draw = torch.Generator(out.device)
        draw.manual_seed(0)
        signs = signs[torch.randperm(n, generator=draw, device=out.device)]

    def counted() -> Any:
        """The number of the lane plus what the links of the path taken add."""
        lanes = torch.arange(n, device=out.device) % WARP
        return lanes + torch.where(signs < 0, links, -2 * links).double()

    paths = [lane % 2 if order == "random" else 0 for lane in range(WARP)]
    return Workload(
        run=DATA_BRANCH(signs, out, np.float32(1), np.int32(trips), np.int64(n), grid=n // BLOCK, block=BLOCK),
        output=out,
        reference=counted,
        reference_name="the number of links",
        flops=2 * links * n,
        accumulate="exact",
        dtype="float32",
        labels=control(order == "sorted", "sorted"),
        prediction=divergence.warp(paths, [links] * 2) if device.kind == "cuda" else {},
    )


# The lecture's claims.

TWICE = 1.8, 2.2
"""Both paths take twice the time of one; a loop's own instructions and the branch are a tenth of that at most."""
ALIKE = 1.05
"""Rows in which as much is executed: placement and clocks move medians by less."""
EVERY_PATH = 20
"""n = 32 paths take 32 times as long; what all lanes do together takes away a third at most."""
PROPORTIONAL = 0.9, 1.1
"""The slope of log time over log n."""
HIDDEN = 0.9, 1.1
"""Where memory is what the kernel waits for, both paths fit into the wait."""
NO_WARPS = "a CPU has no warps; data-branch shows what a branch costs there, by another mechanism"


def active(view: Any, row: Any) -> tuple[Effect, ...]:
    """The lanes active in an instruction against those predicted; nothing without counters."""
    wanted, found = row.prediction["threads_per_instruction"], view.counter(row, "threads_per_instruction")
    if found is None:
        return ()
    return (Effect("lanes active in an instruction", found, at_least=0.9 * wanted, at_most=1.1 * wanted),)


@suite.claim("C31")
def both_paths_in_turn(view: Any) -> Finding:
    """Lanes that take two paths cost the time of both, however many take which; a wait for memory hides it."""
    view.needs_gpu(NO_WARPS)
    half, none = view.one("lane-split", k=16), view.one("lane-split", k=0)
    split = [row for row in view.rows("lane-split") if 0 < row.params["k"] < WARP]
    split.sort(key=lambda row: row.summary.median_ns)
    lanes = active(view, half)
    return Finding(
        effects=(
            Effect("time of 16 lanes split off over none", view.ratio(half, none), TIMES, *TWICE),
            Effect("slowest split over fastest", view.ratio(split[-1], split[0]), at_most=ALIKE),
            *lanes,
        ),
        controls=(
            Effect(
                "the same split where memory is waited for",
                view.ratio(view.one("memory-bound", k=16), view.one("memory-bound", k=0)), TIMES, *HIDDEN,
            ),
        ),
        prediction=half.prediction,
        proof="A" if lanes else "B",
    )  # fmt: skip


@suite.claim("C32")
def as_many_times_as_paths(view: Any) -> Finding:
    """A switch of n paths takes n times as long: in the worst case one lane in 32 works."""
    view.needs_gpu(NO_WARPS)
    worst, one = view.one("switch", n=32), view.one("switch", n=1)
    lanes = active(view, worst)
    least, most = PROPORTIONAL
    return Finding(
        effects=(
            Effect("slope of log time over log paths", view.slope(view.rows("switch"), "n"), "1", least, most),
            Effect("time of 32 paths over one", view.ratio(worst, one), TIMES, EVERY_PATH),
            *lanes,
        ),
        controls=(
            Effect(
                "all lanes on the other path over all on the one",
                view.ratio(view.one("lane-split", k=WARP), view.one("lane-split", k=0)), TIMES, 2 - ALIKE, ALIKE,
            ),
        ),
        prediction=worst.prediction,
        proof="A" if lanes else "B",
    )  # fmt: skip


@suite.claim("C33")
def free_between_warps(view: Any) -> Finding:
    """Where whole warps take either path, nothing is lost; every other lane costs both paths."""
    view.needs_gpu(NO_WARPS)
    warps = view.one("boundary", by="warp")
    pure = [view.one("lane-split", k=0), view.one("lane-split", k=WARP)]
    lanes = active(view, warps)
    return Finding(
        effects=(
            Effect("time by whole warps over the mean of both paths", view.ratio(warps, pure), at_most=ALIKE),
            *lanes,
        ),
        controls=(Effect("time by lanes over that", view.ratio(view.one("boundary", by="lane"), pure), TIMES, *TWICE),),
        prediction=warps.prediction,
        proof="A" if lanes else "B",
    )
