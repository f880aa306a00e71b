"""The peers, each called as published, with default settings; and the stamps, a referee without profiler or event.

Runs in a process of its own in which no profiler was ever started: one that records launches makes them slower.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from statistics import median
from typing import Any

from accuracy.results import Row
from accuracy.works import SUITE, Tool, Work

Call = Callable[[], object]
Reading = Callable[[Call], float]
"""What a tool says of one call, in ns."""

PAIRS, WARM_UPS = 100, 10
"""Calls timed by the plain loops, and before them."""
CUPYX_REPEATS = 20
"""As in the examples of CuPy's documentation; the default of 10 000 would time one large matmul for 15 s."""
TRAIN_NS, MOST_CALLS = 20e6, 500
"""A train of calls that long brings the SM clock to where a tool that calls back to back has it."""
CLOCKS = 3
"""Readings of the clock at the end of a train."""
STAMPED = 20
"""Calls between two stamps each."""
REST_S, REST_SHARE, HOLD_S = 0.002, 4.0, 1e-3
"""A rest before each stamped call, at least, and as a multiple of its time; how long the stream is held for it."""


class Absent(Exception):
    """A tool is not here; the message says why."""


def do_bench(call: Call) -> float:
    """triton.testing.do_bench, in ns."""
    from triton.testing import do_bench

    return float(do_bench(call)) * 1e6


def do_bench_cudagraph(call: Call) -> float:
    """triton.testing.do_bench_cudagraph, in ns."""
    from triton.testing import do_bench_cudagraph

    return float(do_bench_cudagraph(call)) * 1e6


def torch_timer(call: Call) -> float:
    """torch.utils.benchmark.Timer.blocked_autorange, in ns."""
    from torch.utils.benchmark import Timer

    return float(Timer("f()", globals={"f": call}).blocked_autorange().median) * 1e9


def cupyx_benchmark(call: Call) -> float:
    """cupyx.profiler.benchmark, on the stream torch uses too, in ns."""
    from cupyx.profiler import benchmark

    return float(benchmark(call, n_repeat=CUPYX_REPEATS).gpu_times.mean()) * 1e9


def event_pairs(call: Call) -> float:
    """What people write: a pair of events around each call, one synchronize at the end, in ns."""
    import torch

    for _ in range(WARM_UPS):
        call()
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(PAIRS)]
    for start, end in pairs:
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    return float(median(start.elapsed_time(end) for start, end in pairs)) * 1e6


def perf_counter(call: Call) -> float:
    """What people write first: the host's clock around a call and a synchronize, in ns."""
    import torch

    for _ in range(WARM_UPS):
        call()
    torch.cuda.synchronize()
    times = []
    for _ in range(PAIRS):
        begun = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begun)
    return median(times) * 1e9


READINGS: dict[str, tuple[Reading, str, str]] = {
    "triton do_bench": (do_bench, "triton", "triton"),
    "triton cudagraph": (do_bench_cudagraph, "triton", "triton"),
    "torch Timer": (torch_timer, "torch", "torch"),
    "cupyx": (cupyx_benchmark, "cupyx", "cupy"),
    "event pairs": (event_pairs, "torch", "torch"),
    "perf_counter": (perf_counter, "torch", "torch"),
}
"""Of each peer the function, the module it needs, and the distribution (or the start of its name) it comes in."""


def version_of(distribution: str) -> str:
    """Its installed version; CuPy's distributions end in the CUDA version they are built for."""
    for name in (distribution, *(f"cupy-cuda{major}x" for major in (12, 13) if distribution == "cupy")):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "unknown version"


class Bench:
    """A GPU with gpubench's own tools for what is not timing: data, compiled kernels, the flush and the SM clock."""

    def __init__(self, device: str) -> None:
        import torch

        from gpubench.devices.clock import SmClock
        from gpubench.devices.find import find
        from gpubench.devices.kernels import Kernels
        from gpubench.discovery import load_suite

        self.device: Any = find(device)[0]
        self.suite = load_suite(SUITE)
        place = torch.device("cuda", torch.cuda.current_device())
        self.clock = SmClock(Kernels(place), place)

    def workload(self, work: Work) -> tuple[Call, Any]:
        """A work as a callable that was called once, and its Workload."""
        from gpubench.workload import Kernel

        self.device.release()
        workload = self.suite.benchmarks[work.benchmark].function(self.device, **work.params)
        call = workload.run
        if isinstance(call, Kernel):
            call = self.device.launcher(call, SUITE).call
        assert not isinstance(call, tuple)  # the suite has no work of several kernels
        call()
        self.device.synchronize()
        return call, workload

    def clock_behind(self, call: Call, reading_ns: float) -> float:
        """The SM clock in MHz at the end of a train of calls, on the same stream."""
        self.clock.start(CLOCKS, 0.0)
        for _ in range(max(1, min(MOST_CALLS, round(TRAIN_NS / max(reading_ns, 1.0))))):
            call()
        for number in range(CLOCKS):
            self.clock.before(number)
        for number in range(CLOCKS):
            self.clock.after(number)
        self.device.synchronize()
        return median(mhz for mhz in self.clock.mhz() if mhz is not None)

    def stamps(self, call: Call, cold: bool) -> tuple[float, float]:
        """The global timer's time between a stamp before and one after a call, in ns, median of STAMPED paced calls;
        and the SM clock beside them in MHz."""
        import torch

        declared = next(kernel for kernel in self.suite.kernels if kernel.name == "stamp")
        at = torch.zeros((STAMPED, 2), dtype=torch.int64, device="cuda")
        stamps = [
            [self.device.launcher(declared(one[side : side + 1], grid=1, block=1), SUITE).call for side in (0, 1)]
            for one in at
        ]
        begun = time.perf_counter()
        call()
        self.device.synchronize()
        rest = max(REST_S, REST_SHARE * (time.perf_counter() - begun))
        self.clock.start(STAMPED, HOLD_S)
        for number, (before, after) in enumerate(stamps):
            time.sleep(rest)
            if cold:
                self.device.flush()
            self.clock.before(number)
            before()
            call()
            after()
            self.clock.after(number)
            self.device.synchronize()
        clocks = [mhz for mhz in self.clock.mhz() if mhz is not None]
        return median(end - start for start, end in at.tolist()), median(clocks)

    def row(self, tool: Tool, work: Work, repeats: int) -> Row:
        """So many readings of one work by a peer, or by the stamps. Absent where the tool is not here or fails."""
        row = Row(tool.name, work.name)
        try:
            read = None if tool.name.startswith("stamps") else reading(tool.name)
            call, workload = self.workload(work)
            for _ in range(repeats):
                begun = time.perf_counter()
                if read is None:
                    ns, mhz = self.stamps(call, tool.cache == "cold")
                    row.sm_mhz.append(mhz)
                else:
                    ns = read(call)
                row.costs_s.append(time.perf_counter() - begun)
                row.readings_ns.append(ns)
                if workload.metrics is not None:
                    row.cycles.append(round(workload.metrics()[0].value))
            if read is None:
                row.tick_ns = self.clock.tick_ns
            else:
                row.sm_mhz.append(self.clock_behind(call, median(row.readings_ns)))
        except Exception as error:  # a peer may raise anything; it costs its own row
            words = " ".join(str(error).split())
            text = words if isinstance(error, Absent) else f"{type(error).__name__}: {words}"
            return Row(tool.name, work.name, absent=text[:300])
        return row


def reading(tool: str) -> Reading:
    """The function of a peer. Absent where its library is not installed."""
    function, module, distribution = READINGS[tool]
    if find_spec(module) is None:
        raise Absent(f"{distribution} is not installed")
    return function
