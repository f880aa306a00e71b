"""Traps of measuring: the same work measured the right way and, on purpose, the wrong way.

Every benchmark is one trap. Its row `way=right` is timed by gpubench, its row `way=wrong` does what is often done
instead, and says in its label `trap` what is wrong with that; reports put the one time over the other, which is the
size of the error. Where the clock is the trap, work and conditions are the same; where the work or a condition is,
gpubench times both. A wrong row is nobody's best, and no row is a roof.

Each row's conditions are those that it really had, and cannot be asked otherwise: a stopwatch of a few lines flushes
nothing, and knows no load without rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from gpubench import Axis, Skip, Suite, Workload
from gpubench.model import matmul as work

suite = Suite(__file__)

VALUE = 3.0
"""What the streams scale by."""
SMALL = 2**20
"""Elements of a kernel of few microseconds on a GPU."""
LARGE = {"cuda": 2**26, "cpu": 2**23}
"""Elements of a stream beside whose time that of reading a clock is nothing; of float32, no less than the 32 MiB from
which on glibc maps fresh pages for each allocation."""
PRODUCT = {"cuda": 4096, "cpu": 512}
"""Rows and columns of a matrix product."""
CACHES = 8
"""A buffer that stays in the last-level cache takes one part in this many of it."""
REPEATS = 10
"""Readings of which the best is taken."""
REST_S = 2e-3
"""A rest that gives a GPU its highest clock back."""
HOLD_CYCLES = 1_000_000
"""Half a millisecond at 2 GHz: by then the host has enqueued the call, and the GPU does not wait for it."""

WAY = Axis(["right", "wrong"])
COLD, HOT = {"cache": "cold", "load": "burst"}, {"cache": "hot", "load": "burst"}
SUSTAINED = {"cache": "hot", "load": "sustained"}
BY_STOPWATCH = {"right": HOT, "wrong": HOT}
"""Conditions of both ways where a stopwatch is the trap."""


def trapped(workload: Workload, way: str, trap: str, timed_by: Callable[[], int] | None = None) -> Workload:
    """The workload as it is, or as the wrong way has it: what is wrong in words, and the stopwatch that is used."""
    if way == "wrong":
        workload.labels = {"trap": trap}
        workload.timed_by = timed_by
    return workload


def scaling(device: Any, n: int) -> tuple[Workload, Any]:
    """y = a x over n float32, and its x."""
    import torch

    x, y = device.random(n, "float32"), device.unwritten(n, "float32")
    return Workload(
        run=lambda: torch.mul(x, VALUE, out=y),
        output=y,
        reference=lambda: x.double() * VALUE,
        reference_name="float64 product",
        flops=n,
        bytes=8 * n,
        dtype="float32",
        primary="bytes",
    ), x


def product(device: Any, zeros: bool = False) -> Workload:
    """A square matrix product in the dtype of the device's kind."""
    import torch

    n, dtype = PRODUCT[device.kind], "float32" if device.kind == "cpu" else "bfloat16"
    a, b, c = work.operands(device, n, n, n, dtype)
    if zeros:
        a.zero_(), b.zero_()
    return Workload(run=lambda: torch.mm(a, b, out=c), **work.product(a, b, c, dtype))


def host_ns(call: Callable[[], object], wait: Callable[[], object], clock: Callable[[], int]) -> int:
    """What the host's clock reads around a call and what is waited for after it; the device is idle before."""
    begun = clock()
    call()
    wait()
    return clock() - begun


def events_ns(call: Callable[[], object], held: bool = True) -> int:
    """The time of a call between two events. `held`: the GPU begins when it is enqueued."""
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    if held:
        torch.cuda._sleep(HOLD_CYCLES)
    start.record()
    call()
    end.record()
    end.synchronize()
    ms: float = start.elapsed_time(end)
    return round(ms * 1e6)


def rested_ns(device: Any, workload: Workload) -> int:
    """One call after a rest, as well as a stopwatch of a few lines can time it."""
    if device.kind == "cpu":
        return host_ns(workload.call, at_once, time.perf_counter_ns)
    time.sleep(REST_S)
    return events_ns(workload.call)


def at_once() -> None:
    """What is waited for where a call returns when it is done, and where nothing is waited for."""


def wait_of(device: Any) -> Callable[[], object]:
    """Waits until the device is done."""
    import torch

    return at_once if device.kind == "cpu" else torch.cuda.synchronize


@suite.benchmark(way=WAY, fixed=BY_STOPWATCH)
def missing_sync(device: Any, way: str) -> Workload:
    """A matrix product by the host's clock, without waiting for the GPU."""
    if device.kind == "cpu":
        raise Skip("a CPU's call returns when it is done: there is nothing to wait for")
    workload, wait = product(device), wait_of(device)

    def enqueued_ns() -> int:
        wait()
        return host_ns(workload.call, at_once, time.perf_counter_ns)

    return trapped(workload, way, "the clock stops when the call is enqueued, not when it is done", enqueued_ns)


@suite.benchmark(way=WAY, fixed=BY_STOPWATCH)
def event_pair(device: Any, way: str) -> Workload:
    """A small kernel between two events."""
    if device.kind == "cpu":
        raise Skip("a CPU has no events: the host's clock times its calls")
    workload, _ = scaling(device, SMALL)
    trap = "the events also time the launch, which takes longer than the kernel"
    return trapped(workload, way, trap, lambda: events_ns(workload.call, held=False))


@suite.benchmark(way=WAY, fixed=BY_STOPWATCH)
def host_clock(device: Any, way: str) -> Workload:
    """A small kernel by the host's clock, waiting for it; on a CPU, a stream by the CPU time of the process."""
    if device.kind == "cpu":
        workload, _ = scaling(device, LARGE["cpu"])
        trap = "CPU time adds up the threads and leaves out the waiting"
        return trapped(workload, way, trap, lambda: host_ns(workload.call, at_once, time.process_time_ns))
    workload, _ = scaling(device, SMALL)
    wait = wait_of(device)

    def waited_ns() -> int:
        wait()
        return host_ns(workload.call, wait, time.perf_counter_ns)

    return trapped(workload, way, "the host's clock also times the launch and the waiting", waited_ns)


@suite.benchmark(way=WAY, fixed=BY_STOPWATCH)
def cold_start(device: Any, way: str) -> Workload:
    """The first call by the host's clock: it also allocates what it writes to, and maps its pages."""
    workload, x = scaling(device, LARGE[device.kind])
    wait = wait_of(device)

    def first_ns() -> int:
        import torch

        if device.kind != "cpu":
            torch.cuda.empty_cache()  # or the allocator has the memory of the time before
        wait()
        return host_ns(lambda: torch.mul(x, VALUE, out=torch.empty_like(x)), wait, time.perf_counter_ns)

    return trapped(workload, way, "the first call also allocates and maps its memory", first_ns)


@suite.benchmark(way=WAY, fixed=BY_STOPWATCH)
def best_of_many(device: Any, way: str) -> Workload:
    """A matrix product by the best of 10 readings instead of the median of all."""
    workload = product(device)

    def best_ns() -> int:
        return min(rested_ns(device, workload) for _ in range(REPEATS))

    return trapped(workload, way, f"the best of {REPEATS} readings is the luckiest, not the usual one", best_ns)


@suite.benchmark(way=WAY, fixed={"right": COLD, "wrong": HOT})
def hot_cache(device: Any, way: str) -> Workload:
    """A stream of buffers that fit the last-level cache, called again and again, as a bandwidth of DRAM.

    Nothing but the cache differs: both rows have the same call and the same timer.
    """
    cache = device.facts().get("last_level_cache_bytes")
    if not cache:
        raise Skip("the size of the last-level cache is not known")
    workload, _ = scaling(device, max(1, cache // CACHES // 4))
    if way == "wrong":
        workload.level = "DRAM"  # what it is taken for; the row is flagged `cache-resident`
    return trapped(workload, way, "the cache still holds what the call before left in it")


@suite.benchmark(way=WAY, cache=Axis(["hot"]), load=Axis(["sustained"], cpu=["burst"]))
def zeros(device: Any, way: str) -> Workload:
    """A matrix product of zeros, as the rate of any data: less power, so a higher clock where power is the limit."""
    return trapped(product(device, zeros=way == "wrong"), way, "zeros switch few transistors and draw less power")


@suite.benchmark(way=WAY, fixed={"right": SUSTAINED, "wrong": HOT})
def burst(device: Any, way: str) -> Workload:
    """A matrix product after a rest, a burst, as the rate that the GPU sustains."""
    if device.kind == "cpu":
        raise Skip("a CPU's clock falls after minutes, if at all: longer than this suite measures")
    return trapped(product(device), way, "after a rest the clock is higher than the one that lasts")
