"""What is timed and by whom, as plain data. No library is loaded here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SUITE = Path(__file__).resolve().parent.parent / "suites" / "timed_work.py"
"""The suite that declares the work."""
ROOT = SUITE.parents[2]


@dataclass(frozen=True)
class Work:
    """One benchmark of the suite with its parameters; `us` is the nominal duration of a spinning kernel, else None."""

    name: str
    benchmark: str
    params: Mapping[str, int]
    us: int | None = None


DURATIONS = tuple(Work(f"spin {us} µs", "spin", {"us": us}, us) for us in (0, 1, 2, 5, 10, 20, 50, 100, 1000, 10_000))
OPERATIONS = (
    Work("scale 1 Mi fp32", "scale", {"mib": 4}),
    Work("copy 256 MiB", "copy", {"mib": 256}),
    Work("mm 1024 bf16", "mm", {"n": 1024}),
    Work("mm 4096 bf16", "mm", {"n": 4096}),
    Work("mm 8192 bf16", "mm", {"n": 8192}),
    Work("softmax 4096² fp32", "softmax", {"n": 4096}),
    Work("add 1024 fp32", "add", {"n": 1024}),
    Work("5 ops of 1024 fp32", "chain", {"n": 1024}),
)
WORKS = {work.name: work for work in (*DURATIONS, *OPERATIONS)}
NOTHING = DURATIONS[0].name
"""The kernel whose reading is the constant of a timer."""
REFEREED = tuple(work.name for work in (DURATIONS[0], *DURATIONS[6:9], *OPERATIONS))
"""What ncu is shown: nothing, the durations from 50 µs to 1 ms, the operations."""


@dataclass(frozen=True)
class Tool:
    """One way to time. `cache` is what it does to the L2 before a call; `paced`: whether it rests between calls.

    `setting` says how it is called and which figure is read, where that is a choice.
    """

    name: str
    cache: str
    paced: bool
    setting: str
    repeats: int = 10


OURS = (
    Tool("gpubench cold", "cold", True, "default settings"),
    Tool("gpubench hot", "hot", True, "--cache hot"),
    Tool("gpubench graph", "cold", True, "--timer graph", 3),
    Tool("gpubench event", "cold", True, "--timer event", 3),
)
STAMPS = Tool("stamps", "hot", True, "global timer before and after, stream held; median of 20", 3)
COLD_STAMPS = Tool("stamps cold", "cold", True, "the same after a flush of the L2", 3)
PEERS = (
    Tool("triton do_bench", "cold", False, "do_bench(f): a mean"),
    Tool("triton cudagraph", "hot", False, "do_bench_cudagraph(f): a mean"),
    Tool("torch Timer", "hot", False, "Timer('f()').blocked_autorange(): a median", 5),
    Tool("cupyx", "hot", False, "benchmark(f, n_repeat=20), as in CuPy's documentation: a mean on the GPU"),
    Tool("event pairs", "hot", False, "a pair around each of 100 calls after 10: their median"),
    Tool("perf_counter", "hot", False, "around each of 100 calls and a synchronize, after 10: their median"),
)
NVBENCH = (
    Tool("NVBench cold", "cold", False, "state.exec(f): mean GPU time", 1),
    Tool("NVBench batch", "hot", False, "the same: mean of the batch", 1),
)
"""Once: at its default settings one measurement takes 2 to 10 s."""
NCU = (
    Tool("ncu cold", "cold", True, "--cache-control all --clock-control none; median of 5 calls", 1),
    Tool("ncu hot", "hot", True, "--cache-control none --clock-control none; median of 5 calls", 1),
)
PAIR = (OURS[0].name, COLD_STAMPS.name)
"""Who reads the same call on the same data, one right after the other, in each of several processes."""
REFEREES = (STAMPS, COLD_STAMPS, *NCU)
JUDGED = OURS[:2]
RIVALS = (*PEERS, *NVBENCH)
TOOLS = {tool.name: tool for tool in (*OURS, *RIVALS, *REFEREES)}
