"""NVBench's Python package, `cuda.bench`, on the same work, in one go: it owns its process's arguments and output."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from accuracy.peers import Absent, Bench
from accuracy.results import Row
from accuracy.works import NVBENCH, Work

TAGS = {"NVBench cold": "nv/cold/time/gpu/mean", "NVBench batch": "nv/batch/time/gpu/mean"}
"""The summary each row is read from, in seconds."""
WORK, REPEAT = "Work", "Repeat"


def rows(bench: Bench, works: Sequence[Work], repeats: int) -> list[Row]:
    """A row for each work, cold and in batches. Absent where cuda.bench is not here; its own errors pass through."""
    if find_spec("cuda") is None or find_spec("cuda.bench") is None:
        raise Absent("cuda-bench is not installed (pip install cuda-bench)")
    import torch
    from cuda import bench as nvbench

    found = {(tool.name, work.name): Row(tool.name, work.name) for work in works for tool in NVBENCH}

    def timed(state: Any) -> None:
        work = works[state.get_int64(WORK)]
        with torch.cuda.stream(torch.cuda.ExternalStream(state.get_stream().addressof())):
            call, workload = bench.workload(work)
            begun = time.perf_counter()
            state.exec(lambda launch: call())
            spent = time.perf_counter() - begun
            counted = None if workload.metrics is None else round(workload.metrics()[0].value)
            mhz = bench.clock_behind(call, _once(call, bench))
        for tool in NVBENCH:
            row = found[tool.name, work.name]
            row.costs_s.append(spent)
            row.sm_mhz.append(mhz)
            if counted is not None:
                row.cycles.append(counted)

    declared = nvbench.register(timed)
    declared.add_int64_axis(WORK, list(range(len(works))))
    declared.add_int64_axis(REPEAT, list(range(repeats)))
    with tempfile.TemporaryDirectory(prefix="gpubench-") as folder:
        file = Path(folder) / "nvbench.json"
        nvbench.run_all_benchmarks(["timed-work", "--devices", str(torch.cuda.current_device()), "--json", str(file)])
        read(file, works, found)
    for row in found.values():
        if not row.readings_ns:
            row.absent = "NVBench gave no time"
    return list(found.values())


def read(file: Path, works: Sequence[Work], found: dict[tuple[str, str], Row]) -> None:
    """Put the times of NVBench's JSON file into the rows; its axis counts the works."""
    from cuda.bench.results import BenchmarkResult

    for benchmark in BenchmarkResult.from_json(file).values():
        for state in benchmark.states:
            for tool, tag in TAGS.items():
                if tag in state.summaries:
                    name = works[int(state.point[WORK])].name
                    found[tool, name].readings_ns.append(float(state.summaries[tag].value) * 1e9)


def _once(call: Any, bench: Bench) -> float:
    """Wall time of one call in ns: how many make a train."""
    begun = time.perf_counter()
    call()
    bench.device.synchronize()
    return (time.perf_counter() - begun) * 1e9
