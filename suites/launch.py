"""Launch: what does it cost to start a kernel, and from which size on is that no longer what an operation costs?

Kernels and operations are enqueued many in a row, then waited for; a row's time is that of one of them. The stopwatch
is the host's clock around all of them: where the host enqueues more slowly than the device works, it shows the host.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from gpubench import TIMES, Axis, Effect, Finding, Suite, Unsupported, Workload

suite = Suite(__file__)

STEP = suite.kernel("next_of_chain")
LAUNCHES, OPERATIONS = 1000, 200
"""Kernels of a chain, and torch's operations of one: enough that the wait at the end does not count."""


def one_of(device: Any, call: Callable[[], object], count: int) -> Callable[[], int]:
    """A stopwatch: ns of one of the `count` launches that a call makes, with the wait for the last."""

    def timed() -> int:
        device.synchronize()
        begun = time.perf_counter_ns()
        call()
        device.synchronize()
        return max(1, (time.perf_counter_ns() - begun) // count)

    return timed


def replayed(call: Callable[[], object], device: Any) -> Callable[[], object]:
    """The device work of a call as a CUDA graph, to be launched as a whole."""
    import torch

    call()  # whatever is done once only is done
    device.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


@suite.benchmark(way=Axis(["stream", "graph"], cpu=["stream"]), n=Axis([1, 1024], quick=[1]))
def kernels(device: Any, way: str, n: int) -> Workload:
    """Start a kernel of `n` threads that write 4 bytes each: launched one by one, or as nodes of a CUDA graph."""
    import numpy as np

    if way == "graph" and device.kind != "cuda":
        raise Unsupported("graphs are CUDA's")
    x = device.unwritten(n, "int32")
    launches = [
        device.launcher(STEP(x, np.int32(k), np.int32(n), grid=-(-n // 256), block=min(n, 256)), suite.file)
        for k in range(LAUNCHES)
    ]
    calls = [launch.call for launch in launches]

    def chain() -> None:
        for launch in calls:
            launch()

    call = replayed(chain, device) if way == "graph" else chain
    return Workload(
        run=call,
        output=x,
        reference=lambda: x.new_full(x.shape, LAUNCHES),
        reference_name="the number of launches",
        accumulate="exact",
        primary="time",
        labels={"analogue": "a parallel region"} if "analogue" in launches[0].flags else {},
        prediction={"order": ["graph", "stream"]},
        timed_by=one_of(device, call, LAUNCHES),
    )


@suite.benchmark(
    n=Axis(
        [2**power for power in range(8, 25, 2)],
        cpu=[2**power for power in range(8, 21, 2)],
        quick=[2**8, 2**16, 2**24],
        quick_cpu=[2**8, 2**16],
    ),
    count=Axis([OPERATIONS], cpu=[20]),
)
def operations(device: Any, n: int, count: int) -> Workload:
    """torch's add of two vectors of `n` float32, `count` in a row: flat while the launch is what costs."""
    import torch

    x, y = device.random(n, "float32", seed=0), device.random(n, "float32", seed=1)
    out = device.unwritten(n, "float32")

    def call() -> None:
        for _ in range(count):
            torch.add(x, y, out=out)

    return Workload(
        run=call,
        output=out,
        reference=lambda: x.double() + y.double(),
        reference_name="float64 sum",
        flops=n,
        primary="time",
        dtype="float32",
        timed_by=one_of(device, call, count),
    )


@suite.benchmark(
    n=Axis([2**power for power in range(8, 25, 4)], cpu=[2**20], quick=[2**8, 2**16, 2**24], quick_cpu=[2**20])
)
def operation(device: Any, n: int) -> Workload:
    """The same add alone, as the device sees it: its time without the launch, and beside it the host's call."""
    import torch

    x, y = device.random(n, "float32", seed=0), device.random(n, "float32", seed=1)
    out = device.unwritten(n, "float32")
    return Workload(
        run=lambda: torch.add(x, y, out=out),
        output=out,
        reference=lambda: x.double() + y.double(),
        reference_name="float64 sum",
        flops=n,
        bytes=12 * n,
        primary="time",
        dtype="float32",
        labels={"control": "without the launch"},
    )


# What an expert would add.

NODE = 1.5
"""Published are 2.5 us of a launch and 1.3 us of a node of a graph, which is 1.9 times; hosts differ."""
LONG = 0.9, 1.25
"""An add of 2^24 elements moves 200 MB. Alone it begins with a clean L2 and ends with results there that are still to
be written; in a row each also writes those of the one before. Were they half an L2 of 60 MB: 1.2 times the bytes."""
FLAT = 0.9, 1.1
"""The host enqueues one operation as fast as another, to what its clock and its neighbours make of it."""
GROWN = 3
"""2^24 elements take an H200 40 us at its bandwidth, and five to ten launches take as long."""
DEVICE_SEES = 1.1
"""What 2^16 elements take more than 2^8 without the launch: the bytes of 256 times as many."""
SMALL, MEDIUM, LARGE = 2**8, 2**16, 2**24
NOTHING_IS_LAUNCHED = "a CPU's operation is a call, not a launch"


@suite.claim("X04")
def graphs_start_faster(view: Any) -> Finding:
    """A small kernel costs less as a node of a graph than as a launch; a long operation has nothing to gain."""
    view.needs_gpu(NOTHING_IS_LAUNCHED)
    nodes = view.rows("kernels", way="graph")
    row, alone = view.one("operations", n=LARGE), view.one("operation", n=LARGE)
    return Finding(
        effects=tuple(
            Effect(f"time as a launch over as a node, n={node.params['n']}",
                   view.ratio(view.one("kernels", way="stream", n=node.params["n"]), node), TIMES, NODE)
            for node in nodes
        ),
        controls=(Effect(f"{LARGE} elements, one of a row over alone", view.ratio(row, alone), TIMES, *LONG),),
        prediction=nodes[0].prediction,
    )  # fmt: skip


@suite.claim("X05")
def small_operations_are_flat(view: Any) -> Finding:
    """Small operations take the same whatever their size; large ones do not, nor small ones without the launch."""
    view.needs_gpu(NOTHING_IS_LAUNCHED)
    small, medium, large = (view.one("operations", n=n) for n in (SMALL, MEDIUM, LARGE))
    device = view.ratio(view.one("operation", n=MEDIUM), view.one("operation", n=SMALL))
    return Finding(
        effects=(
            Effect(f"time of {MEDIUM} over {SMALL} elements", view.ratio(medium, small), "1", *FLAT),
            Effect(f"time of {LARGE} over {SMALL} elements", view.ratio(large, small), TIMES, GROWN),
        ),
        controls=(Effect(f"the same of {MEDIUM} over {SMALL} without the launch", device, TIMES, DEVICE_SEES),),
    )
