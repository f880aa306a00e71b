"""Clusters: what does a block pay for the shared memory of another block of its cluster?

Blocks of a cluster run at the same time and reach into each other's shared memory (distributed shared memory), from
compute capability 9.0 on.
"""

from __future__ import annotations

from typing import Any

from gpubench import TIMES, Axis, Effect, Finding, Metric, NotTestable, Suite, Unsupported, Workload, exactly
from gpubench.model import hierarchy

suite = Suite(__file__)

DEFINES = {"CLUSTER": [2, 4, 8], "HOME": [0, 1]}
CHASE = suite.kernel("chase_ring", defines=DEFINES)
COPY = suite.kernel("copy_ring", defines=DEFINES)

WORDS = 4096
"""32-bit words of a block's shared memory, as in the .cu file."""
STEPS, PASSES, THREADS = 2048, 128, 1024
ORDER_SEED = 1
"""Of the random cycle: the same in every run."""

SIZES = Axis([2, 4, 8], quick=[2])
WHERE = Axis(["next", "home"], quick=["next"])
"""Whose shared memory is read: the next block's, or the block's own."""
CONTROL = {"next": {}, "home": {"control": "its own shared memory"}}


def grid_of(device: Any, cluster: int) -> int:
    """A block for each multiprocessor, in whole clusters. Unsupported where the device has none."""
    facts = device.facts()
    if float(facts.get("compute_capability") or 0) < 9:
        raise Unsupported("clusters need a GPU of compute capability 9.0 or newer")
    return cluster * max(1, facts["multiprocessors"] // cluster)


@suite.benchmark(cluster=SIZES, where=WHERE)
def latency(device: Any, cluster: int, where: str) -> Workload:
    """Chase places through the shared memory of the next block of the cluster, one thread a block."""
    import numpy as np
    import torch

    grid = grid_of(device, cluster)
    out, clocks = device.unwritten(grid, "int32"), device.unwritten((grid, 2), "int64")
    generator = torch.Generator(out.device)
    generator.manual_seed(ORDER_SEED)
    order = torch.randperm(WORDS, generator=generator, device=out.device).to(out.dtype)
    following = torch.empty_like(order)
    following[order.long()] = order.roll(-1)

    def ends() -> Any:
        """From each block's number in the ring, STEPS places on in the order."""
        place = torch.empty_like(order)
        place[order.long()] = torch.arange(WORDS, dtype=order.dtype, device=order.device)
        starts = torch.arange(grid, device=order.device) % WORDS
        return order[(place[starts].long() + STEPS) % WORDS]

    def metrics() -> list[Metric]:
        cycles, ns = (clocks.double().mean(0) / STEPS).tolist()
        return [Metric("cycles", cycles, "cycles", "none"), Metric("latency", ns, "ns", "lower")]

    return Workload(
        run=CHASE(following, out, clocks, np.int32(STEPS), grid=grid, block=128, CLUSTER=cluster, HOME=home(where)),
        output=out,
        reference=ends,
        reference_name="the order of the places",
        accumulate="exact",
        primary="time",
        labels=CONTROL[where],
        prediction={"order": ["shared", "cluster", "L2"]},
        metrics=metrics,
    )


@suite.benchmark(cluster=SIZES, where=WHERE)
def bandwidth(device: Any, cluster: int, where: str) -> Workload:
    """Read the shared memory of the next block of the cluster, 16 bytes an access, every multiprocessor at once."""
    import numpy as np
    import torch

    grid = grid_of(device, cluster)
    words = device.random(WORDS, "float32").view(torch.int32)
    out, clocks = device.unwritten((grid, THREADS), "int32"), device.unwritten((grid, 2), "int64")

    def rate() -> list[Metric]:
        """Of a block, by its own clock: clusters that find no place at first do not count."""
        taken = float(clocks[:, 0].double().median())
        return [Metric("bytes_per_clock", 64 * THREADS * PASSES / taken, "B/clk", "higher")]

    def sums() -> Any:
        """Of each thread's four vectors and those that follow, `PASSES` of each, in the block it reads."""
        vectors = words.long().view(-1, 4).sum(1)
        thread = torch.arange(THREADS, device=words.device)[:, None] + torch.arange(PASSES, device=words.device)
        quarter = WORDS // 16
        own = sum(vectors[(thread + quarter * part) % len(vectors)].sum(1) for part in range(4))
        rank = (torch.arange(grid, device=words.device) + 1 - home(where)) % cluster
        total = (own + PASSES * 16 * rank[:, None]) % 2**32
        return torch.where(total < 2**31, total, total - 2**32).to(out.dtype)

    return Workload(
        run=COPY(words, out, clocks, np.int32(PASSES), grid=grid, block=THREADS, CLUSTER=cluster, HOME=home(where)),
        output=out,
        reference=sums,
        reference_name="int64 sums",
        bytes=64 * grid * THREADS * PASSES,
        accumulate="exact",
        primary="bytes",
        dtype="int32",
        level="shared",
        labels=CONTROL[where],
        prediction={"order": ["cluster", "shared"]},
        metrics=rate,
    )


def home(where: str) -> int:
    """The define HOME of a place."""
    return int(where == "home")


# What an expert would add.

OVER_ITS_OWN = 3
"""Published chases find 180 cycles for another block's shared memory and 29 for a block's own."""
ALIKE = 0.9, 1.1
"""A cluster has one network, however many of its blocks there are."""


@suite.claim("X08")
def nearer_than_l2(view: Any) -> Finding:
    """Another block's shared memory is nearer than the L2 and farther than a block's own, in clusters of any size."""
    view.needs_gpu("a CPU has no clusters")
    pair, eight = (view.one("latency", cluster=cluster, where="next") for cluster in (2, 8))
    next_one, own = (view.metric(row, "cycles") for row in (pair, view.one("latency", cluster=2, where="home")))
    published = hierarchy.latency("L2", view.facts)
    if not published:
        raise NotTestable("the latency of this GPU's L2 is not known to the model")
    return Finding(
        effects=(
            Effect("cycles of the next block's over the least of L2", next_one.over(exactly(published["cycles"][0])),
                   at_most=1),
            Effect("cycles of the next block's over its own", next_one.over(own), TIMES, OVER_ITS_OWN),
        ),
        controls=(
            Effect("clusters of 8 over those of 2", view.metric(eight, "cycles").over(next_one), TIMES, *ALIKE),
        ),
        prediction={"L2": published},
        proof="A",
    )  # fmt: skip
