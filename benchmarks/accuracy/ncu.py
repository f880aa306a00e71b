"""The hardware profiler as a referee: one `ncu` for each state of the cache, with clocks left as they are.

It runs this file again as `python -m accuracy.ncu DEVICE WORK…` and sees its calls between the profiler's start and
stop, with a stamp kernel before each; what lies between two stamps is one call.
"""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
import sys
from collections.abc import Sequence
from statistics import median

from accuracy.results import Row
from accuracy.works import WORKS, Tool

CALLS = 5
"""Of each work, after one that is not profiled."""
MARK = "stamp"
"""The kernel that begins a call."""
NANOSECONDS = {"ns": 1.0, "nsecond": 1.0, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9}
TIMEOUT = 300.0


def command(tool: Tool, device: str, works: Sequence[str]) -> list[str]:
    """The command line. Clocks are never touched; the caches follow the case."""
    cache = "all" if tool.cache == "cold" else "none"
    ncu = ["ncu", "--clock-control", "none", "--cache-control", cache, "--metrics", "gpu__time_duration.sum"]
    ncu += ["--profile-from-start", "off", "--csv", "--print-units", "base"]
    return [*ncu, sys.executable, "-m", "accuracy.ncu", device, *works]


def refereed(tool: Tool, device: str, works: Sequence[str], environment: dict[str, str]) -> list[Row]:
    """A row for each work; all absent, with the reason, where ncu is not here or is not let."""
    if shutil.which("ncu") is None:
        return [Row(tool.name, work, absent="ncu is not installed") for work in works]
    try:
        done = subprocess.run(
            command(tool, device, works), env=environment, capture_output=True, text=True, timeout=TIMEOUT,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return [Row(tool.name, work, absent=f"ncu took longer than {TIMEOUT:g} s") for work in works]
    calls = durations(done.stdout)
    if len(calls) != CALLS * len(works):
        reason = refusal(done.stdout + done.stderr) or f"ncu saw {len(calls)} of {CALLS * len(works)} calls"
        return [Row(tool.name, work, absent=reason) for work in works]
    return [_row(tool, work, calls[CALLS * index : CALLS * (index + 1)]) for index, work in enumerate(works)]


def _row(tool: Tool, work: str, calls: Sequence[float]) -> Row:
    if min(calls) <= 0:
        return Row(tool.name, work, absent="ncu saw no kernel in it: it does not profile copies and sets")
    return Row(tool.name, work, [median(calls)], note=f"{CALLS} calls")


def durations(text: str) -> list[float]:
    """The ns of each call, from ncu's CSV: the sum over its kernels."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    calls: list[float] = []
    for row in csv.DictReader(io.StringIO("\n".join(lines[start:]))):
        if row.get("Metric Name") != "gpu__time_duration.sum":
            continue
        if row["Kernel Name"].split("(")[0].strip() == MARK:
            calls.append(0.0)
        elif calls:
            calls[-1] += float(row["Metric Value"].replace(",", "")) * NANOSECONDS[row["Metric Unit"]]
    return calls


def refusal(text: str) -> str | None:
    """ncu's own error, in one line."""
    line = next((line for line in text.splitlines() if line.startswith("==ERROR==")), None)
    return None if line is None else line.removeprefix("==ERROR==").strip()[:300]


def main(words: Sequence[str]) -> None:
    """What runs under ncu."""
    import time

    import torch

    from accuracy.peers import REST_S, Bench
    from accuracy.works import SUITE

    device, *works = words
    bench = Bench(device)
    declared = next(kernel for kernel in bench.suite.kernels if kernel.name == MARK)
    at = torch.zeros(1, dtype=torch.int64, device="cuda")
    mark = bench.device.launcher(declared(at, grid=1, block=1), SUITE).call
    for name in works:
        call, _ = bench.workload(WORKS[name])
        torch.cuda.profiler.start()
        for _ in range(CALLS):
            mark()
            call()
            torch.cuda.synchronize()
            time.sleep(REST_S)
        torch.cuda.profiler.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
