"""The searches: gpubench's own suite, mamf-finder from a user's own copy, and a plain grid through torch.mm."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpubench.errors import UsageError
from gpubench.result import Conditions, Record
from gpubench.runner import Effort, Measures
from gpubench.suite import Benchmark, Case

Shape = tuple[int, int, int]
"""m, n, k of an m × k and a k × n matrix."""
SIDES = range(1024, 16384 + 1, 1024)
DEPTHS = (1024, 2048, 4096, 8192, 16384)
"""The plain grid: every m and n of SIDES with every k of DEPTHS."""
GRID_WARM_UPS, GRID_CALLS = 3, 10
MAMF_ARGUMENTS = ("--m_range", "0", "20480", "256", "--n", "4096", "--k", "4096")
"""The grid that mamf-finder's own documentation begins with; more with --mamf-args."""
MAMF_TIMEOUT = 1800.0
OUTCOME = re.compile(r"(?P<rate>\d+(?:\.\d+)?) TFLOPS @ (?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+) \(MxNxK\)")
PREFERRED = ("MAMF", "median:", "mean:", "max:")
"""Lines of mamf-finder's results, in the order wanted: newer versions say MAMF, older ones mean, median and max."""


@dataclass(frozen=True)
class Found:
    """What a search found: its best shape, the FLOP/s it says of it, how many shapes it timed, and the time it took."""

    name: str
    shape: Shape
    rate: float
    shapes: int
    seconds: float


def words(shape: Shape) -> str:
    """A shape as the suite `peak` names it, m×n×k."""
    return "x".join(map(str, shape))


def ours(executor: Measures, benchmark: Benchmark, dtype: str) -> Found:
    """gpubench's search: the shapes of the suite `peak`, each at the default settings. UsageError where none works."""
    begun = time.perf_counter()
    best: tuple[float, str] | None = None
    asked = benchmark.cases("cuda", asked={"dtype": [dtype]})
    cases = [Case(benchmark.suite, benchmark.name, params, Conditions()) for params in asked]
    for case in cases:
        *_, record = executor.measure(case, Effort())
        assert isinstance(record, Record)
        rate = record.metric("flops")
        if record.status == "ok" and rate is not None and (best is None or rate.value > best[0]):
            best = rate.value, str(case.params["shape"])
    if best is None:
        raise UsageError(f"gpubench peak/matmul gave no rate for {dtype}")
    m, n, k = map(int, best[1].split("x"))
    return Found("gpubench peak/matmul", (m, n, k), best[0], len(cases), time.perf_counter() - begun)


def mamf(script: Path, arguments: Sequence[str], dtype: str) -> Found:
    """mamf-finder as its author published it, in a process of its own. UsageError where it gives no result."""
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="gpubench-") as folder:
        command = [sys.executable, str(script), *arguments, "--dtype", dtype, "--output_file", f"{folder}/mamf.txt"]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=MAMF_TIMEOUT
            )
        except subprocess.TimeoutExpired:
            raise UsageError(f"{script.name} took longer than {MAMF_TIMEOUT:g} s", "a smaller --mamf-args") from None
        except OSError as error:
            raise UsageError(f"{script.name} cannot be started: {error.strerror}") from error
    if done.returncode:
        last = (done.stderr.strip() or "no word").splitlines()[-1]
        raise UsageError(f"{script.name} ended with status {done.returncode}: {last}")
    rate, shape, shapes = outcome(done.stdout)
    return Found("mamf-finder", shape, rate, shapes, time.perf_counter() - begun)


def outcome(text: str) -> tuple[float, Shape, int]:
    """The best rate in FLOP/s, its shape and the number of shapes tried, from what mamf-finder prints."""
    lines = text.splitlines()
    for start in PREFERRED:
        for line in lines:
            found = OUTCOME.search(line)
            if line.startswith(start) and found is not None:
                tried = re.search(r"^Tried (\d+) shapes", text, re.MULTILINE)
                shape = int(found["m"]), int(found["n"]), int(found["k"])
                return float(found["rate"]) * 1e12, shape, int(tried[1]) if tried else 0
    raise UsageError("mamf-finder printed no result that is understood", "--mamf of another version")


def grid(itemsize: int, free_bytes: int) -> Iterator[Shape]:
    """The shapes of the plain grid whose three matrices fill at most half the free memory."""
    for m in SIDES:
        for n in SIDES:
            for k in DEPTHS:
                if (m * k + k * n + m * n) * itemsize <= free_bytes // 2:
                    yield m, n, k


def matrices(shape: Shape, dtype: str) -> tuple[Any, Any, Any]:
    """Two matrices of normal numbers and one for their product, on the current GPU."""
    import torch

    m, n, k = shape
    kind = getattr(torch, dtype)
    a, b = torch.randn(m, k, device="cuda", dtype=kind), torch.randn(k, n, device="cuda", dtype=kind)
    return a, b, torch.empty(m, n, device="cuda", dtype=kind)


def train_s(operands: tuple[Any, Any, Any], calls: int) -> float:
    """Seconds of one call among so many back to back, by an event pair around them all."""
    import torch

    a, b, c = operands
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(calls):
        torch.mm(a, b, out=c)
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / calls


def plain_grid(dtype: str) -> Found:
    """Every shape of the grid through torch.mm, by an event pair around its calls: no flush, no rest, no statistics."""
    import torch

    begun = time.perf_counter()
    itemsize = getattr(torch, dtype).itemsize
    shapes = list(grid(itemsize, torch.cuda.mem_get_info()[0]))
    if not shapes:
        raise UsageError("no shape of the plain grid fits into the free memory")
    sides, depth = max(max(m, n) for m, n, _ in shapes), max(k for *_, k in shapes)
    large = [one.flatten() for one in matrices((sides, sides, depth), dtype)]
    best: tuple[float, Shape] | None = None
    for m, n, k in shapes:
        sizes = ((m, k), (k, n), (m, n))
        a, b, c = (one[: rows * columns].view(rows, columns) for one, (rows, columns) in zip(large, sizes, strict=True))
        train_s((a, b, c), GRID_WARM_UPS)
        rate = 2 * m * n * k / train_s((a, b, c), GRID_CALLS)
        if best is None or rate > best[0]:
            best = rate, (m, n, k)
    assert best is not None
    return Found("plain grid", best[1], best[0], len(shapes), time.perf_counter() - begun)
