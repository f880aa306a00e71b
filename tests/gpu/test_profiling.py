"""Hardware counters on a GPU: bytes of a known copy, sectors of known strides, tensor instructions, and restraint.
Sections, lines of the source and traces of the same calls."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from perfetto import check

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)
pytest.importorskip("cupy")

from gpubench import surroundings  # noqa: E402
from gpubench.devices import FLUSH  # noqa: E402
from gpubench.profiling import counting, metrics, trace  # noqa: E402
from gpubench.profiling.counting import Job, Pass, count, reason_of  # noqa: E402
from gpubench.profiling.pages import Profile  # noqa: E402
from gpubench.result import Conditions, Param  # noqa: E402
from gpubench.suite import Case  # noqa: E402

if surroundings.find_ncu() is None:
    pytest.skip("needs ncu", allow_module_level=True)

ELEMENTS = 1 << 20
WARP = 32

KERNELS = """
extern "C" __global__ void strided(const float* x, float* out, long long stride) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = x[i * stride];
}

extern "C" __global__ void halves(const float* x, float* out, long long split) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i];
    if (threadIdx.x % 32 < split) {
        for (int step = 0; step < 1000; step++) value = value * 0.5f + 1.0f;
    }
    out[i] = value;
}
"""

SUITE = f"""
import numpy as np
from gpubench import Axis, Suite, Workload

suite = Suite(__file__)
strided = suite.kernel("strided", source="counted.cu")
halves = suite.kernel("halves", source="counted.cu")
N = {ELEMENTS}


@suite.benchmark(stride=Axis([1]))
def stride(device, stride):
    x, out = device.random(N * stride, "float32"), device.unwritten(N, "float32")
    return Workload(
        run=strided(x, out, np.int64(stride), grid=N // 256, block=256),
        output=out, reference=lambda: x[::stride], reference_name="slice", bytes=8 * N, accumulate="exact",
    )


@suite.benchmark(threads=Axis([32]))
def branch(device, threads):
    import torch

    x, out = device.random(N, "float32"), device.unwritten(N, "float32")

    def reference():
        value = x.double().clone()
        taken = torch.arange(N, device=x.device) % 32 < threads
        for _ in range(1000):
            value = torch.where(taken, value * 0.5 + 1.0, value)
        return value

    return Workload(
        run=halves(x, out, np.int64(threads), grid=N // 256, block=256),
        output=out, reference=reference, reference_name="the same in float64", reduction=1000,
    )


@suite.benchmark(n=Axis([2048]), dtype=Axis(["bfloat16"], choices=["bfloat16", "float32"]))
def product(device, n, dtype):
    import torch

    a, b, out = device.random((n, n), dtype, 1), device.random((n, n), dtype, 2), device.unwritten((n, n), dtype)
    return Workload(
        run=lambda: torch.mm(a, b, out=out), output=out,
        reference=lambda: a.double() @ b.double(), reference_name="float64", flops=2 * n**3, reduction=n,
    )


@suite.benchmark(seconds=Axis([600]))
def endless(device, seconds):
    import time

    out = device.unwritten(N, "float32")
    return Workload(
        run=lambda: (out.zero_(), time.sleep(seconds)), output=out, reference=lambda: 0 * out, reference_name="zeros"
    )


@suite.benchmark(n=Axis([N]))
def backward(device, n):
    import torch

    x, g = device.random(n, "float32", 1).requires_grad_(), device.random(n, "float32", 2)
    return Workload(
        run=lambda: torch.autograd.grad(torch.sigmoid(x), x, g), output=None,
        reference=lambda: (g * torch.sigmoid(x.detach().double()) * (1 - torch.sigmoid(x.detach().double())),),
        reference_name="float64",
    )


@suite.benchmark(wrong=Axis([1]))
def broken(device, wrong):
    x, out = device.random(N, "float32"), device.unwritten(N, "float32")
    return Workload(
        run=lambda: out.copy_(x).add_(wrong), output=out, reference=lambda: x, reference_name="x", accumulate="exact"
    )
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("counted")
    (place / "counted.cu").write_text(KERNELS)
    (place / "counted.py").write_text(SUITE)
    return place


def job(folder: Path, benchmark: str, conditions: Conditions | None = None, **params: Param) -> Job:
    return Job(Case("counted", benchmark, params, conditions or Conditions()), folder / "counted.py")


def passed(jobs: list[Job], words: str | None = None, profile: Profile | None = None) -> Pass:
    said: list[str] = []
    found = count(
        jobs, metrics.chosen(words, None), device="cuda:0", seed=1, timeout=120.0, profile=profile, tell=said.append
    )
    if found.problems and "permission" in found.problems[0]:
        pytest.skip(found.problems[0])
    assert found.problems == [], said
    return found


STRIDES = {1: 4, 2: 8, 4: 16, 8: 32, 32: 32}


@pytest.fixture(scope="module")
def counts(folder: Path) -> list[dict[str, Any]]:
    """One pass of everything with the default set."""
    jobs = [job(folder, "stride", stride=stride) for stride in STRIDES]
    jobs += [job(folder, "branch", threads=threads) for threads in (32, 16, 8)]
    jobs += [job(folder, "product", n=2048, dtype=dtype) for dtype in ("bfloat16", "float32")]
    jobs += [job(folder, "broken", wrong=1), job(folder, "stride", Conditions("hot"), stride=1)]
    return passed(jobs).counters


def test_a_copy_of_known_bytes_is_counted_within_two_percent(counts: list[dict[str, Any]]) -> None:
    copy = counts[0]["known_copy"]
    assert copy["bytes"] >= 64 * torch.cuda.get_device_properties(0).L2_cache_size
    assert abs(copy["error"]) <= counting.COPY_TOLERANCE


@pytest.mark.parametrize("place", range(len(STRIDES)))
def test_sectors_per_request_follow_the_stride_exactly(counts: list[dict[str, Any]], place: int) -> None:
    row, sectors = counts[place], list(STRIDES.values())[place]
    assert reason_of(row) is None
    assert row["global_load_requests"] == ELEMENTS // WARP
    assert row["sectors_per_load_request"] == sectors
    assert row["sectors_per_store_request"] == 4
    assert row["kernels"][0]["name"].startswith("strided")
    assert row["kernels"][0]["grid"] == [ELEMENTS // 256, 1, 1]


def test_divergence_leaves_threads_idle(counts: list[dict[str, Any]]) -> None:
    whole, half, quarter = (counts[len(STRIDES) + place]["threads_per_instruction"] for place in range(3))
    assert whole > 31.9
    assert 15 < half < 18
    assert 7 < quarter < 11


def test_only_the_low_precision_product_uses_tensor_cores(counts: list[dict[str, Any]]) -> None:
    low, full = counts[len(STRIDES) + 3], counts[len(STRIDES) + 4]
    assert low["tensor_instructions"] > 0
    assert full["tensor_instructions"] == 0


def test_what_torchs_thread_of_gradients_launches_is_counted(folder: Path) -> None:
    (row,) = passed([job(folder, "backward", n=ELEMENTS)], "global_load_requests").counters
    assert reason_of(row) is None
    assert len(row["kernels"]) == 2, "a sigmoid and its gradient"


def test_the_last_rung_of_the_ladder_uses_no_tensor_core() -> None:
    tiling = Path(__file__).parents[2] / "suites/tiling.py"
    jobs = [Job(Case("tiling", *case, Conditions()), tiling) for case in (
        ("ladder", {"rung": "warp-tile", "n": 1024}), ("tensor", {"by": "mma", "n": 1024}),
    )]  # fmt: skip
    warp_tile, tensor = passed(jobs).counters
    assert warp_tile["tensor_instructions"] == 0
    assert tensor["tensor_instructions"] > 0


def test_what_was_counted_stays_when_time_is_up(folder: Path) -> None:
    jobs, done = [job(folder, "stride", stride=stride) for stride in range(1, 200)], list[int]()
    found = count(
        jobs, metrics.chosen("dram_bytes_read,dram_bytes_write", None), device="cuda:0", seed=1, timeout=60.0,
        budget=8.0, seen=done.append,
    )  # fmt: skip
    reasons = [reason_of(row) for row in found.counters]
    counted = reasons.count(None)
    assert reasons == [None] * counted + [counting.NO_TIME] * (len(jobs) - counted)
    assert counted < len(jobs), "8 s are too many for this test, not for the code"
    assert (found.copy is not None, found.problems) == (True, [])
    assert done == sorted(done)


def test_a_row_that_never_ends_costs_no_row_before_it(folder: Path) -> None:
    jobs = [job(folder, "stride", stride=1), job(folder, "endless", seconds=600)]
    found = count(jobs, metrics.chosen("dram_bytes_read", None), device="cuda:0", seed=1, timeout=8.0)
    assert [reason_of(row) for row in found.counters] == [None, "the process under ncu ended before this case was done"]


def test_a_wrong_result_has_no_counters(counts: list[dict[str, Any]]) -> None:
    assert "wrong result" in str(reason_of(counts[-2]))


def test_hot_rows_are_counted_without_a_flush(counts: list[dict[str, Any]]) -> None:
    assert counts[-1]["cache_control"] == "none"
    assert counts[-1]["sectors_per_load_request"] == 4


def test_a_metric_that_no_chip_has_costs_only_itself(folder: Path) -> None:
    (row,) = passed([job(folder, "stride", stride=1)], "dram_bytes_read,sm__no_such_thing.sum").counters
    assert row["dram_bytes_read"] > 0
    assert row["sm__no_such_thing.sum"] is None
    assert "sm__no_such_thing.sum" in row["unavailable"]


def test_every_counter_of_the_table_is_known_here(folder: Path) -> None:
    (row,) = passed([job(folder, "stride", stride=1)], ",".join(metrics.COUNTERS)).counters
    assert row.get("unavailable", {}) == {}


def test_the_clocks_are_as_before(folder: Path) -> None:
    def locked() -> str:
        query = ["nvidia-smi", "-q", "-d", "CLOCK", "-i", "0"]
        try:
            text = subprocess.run(query, capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("needs nvidia-smi")
        return text[text.find("Applications Clocks") : text.find("Max Clocks")]

    before = locked()
    passed([job(folder, "stride", stride=1)], "dram_bytes_read")
    assert locked() == before


SECTIONS = ("SpeedOfLight", "MemoryWorkloadAnalysis", "SchedulerStats", "WarpStateStats", "Occupancy", "LaunchStats")


def test_sections_are_those_of_the_kernel(folder: Path) -> None:
    (row,) = passed([job(folder, "stride", stride=1)], "dram_bytes_read", Profile(SECTIONS)).counters
    (kernel,) = row["kernels"]
    titles = {section["name"]: {each["name"]: each for each in section["figures"]} for section in kernel["sections"]}
    assert len(titles) == len(SECTIONS), list(titles)
    assert titles["Launch Statistics"]["Block Size"]["value"] == 256
    assert titles["Launch Statistics"]["Grid Size"]["value"] == ELEMENTS // 256
    assert 0 < titles["Occupancy"]["Achieved Occupancy"]["value"] <= 100
    assert 10 < titles["GPU Speed Of Light Throughput"]["Memory Throughput"]["value"] <= 100
    assert row["dram_bytes_read"] > 0


def test_the_hottest_line_is_the_loop_in_our_source(folder: Path) -> None:
    loop = next(number for number, line in enumerate(KERNELS.split("\n"), 1) if "0.5f" in line)
    (row,) = passed([job(folder, "branch", threads=32)], "instructions", Profile((), source=True)).counters
    hottest, *others = row["kernels"][0]["source"]
    assert (hottest["file"], hottest["line"]) == ("counted.cu", loop)
    assert hottest["text"] == KERNELS.split("\n")[loop - 1].strip()
    assert hottest["share"] > 0.5
    assert hottest["instructions"] >= 1000 * ELEMENTS // WARP
    assert all((line["samples"] or 0) <= hottest["samples"] for line in others)


def test_a_librarys_kernel_has_no_lines(folder: Path) -> None:
    (row,) = passed([job(folder, "product", n=2048, dtype="bfloat16")], "instructions", Profile((), True)).counters
    assert all(str(kernel["source"]).startswith("no line") for kernel in row["kernels"])


@pytest.mark.parametrize("cache", ["cold", "hot"])
def test_a_trace_shows_launches_and_what_they_launched(folder: Path, tmp_path: Path, cache: Any) -> None:
    path, one = tmp_path / "trace.json", job(folder, "product", Conditions(cache), n=2048, dtype="bfloat16")
    found = trace.write(path, one, calls=3, device="cuda:0", seed=1, timeout=120.0)
    document = json.loads(path.read_text())
    slices = check(document)
    named = [event["name"] for event in slices if event["cat"] == "user_annotation"]
    flush = [FLUSH] if cache == "cold" else []
    assert named == [name for number in (1, 2, 3) for name in (*flush, f"call {number}")]
    kernels = [event for event in slices if event["cat"] == "kernel"]
    arrows = {(event["pid"], event["tid"], event["ts"]) for event in document["traceEvents"] if event["ph"] == "f"}
    assert kernels
    assert all((event["pid"], event["tid"], event["ts"]) in arrows for event in kernels), "each has its launch"
    products = [each for each in found["spent"] if each["kind"] == "kernel"]
    assert products[0]["count"] % 3 == 0
    assert 5_000 < products[0]["ns"] / 3 < 1_000_000
    text = path.read_text()
    assert str(folder) not in text
    assert "GPU 0: " + torch.cuda.get_device_name(0) in text


def test_a_trace_of_our_own_kernel_and_of_torchs_thread_of_gradients(folder: Path, tmp_path: Path) -> None:
    for benchmark, params, kernels in (("stride", {"stride": 1}, 1), ("backward", {"n": ELEMENTS}, 2)):
        path = tmp_path / f"{benchmark}.json"
        found = trace.write(path, job(folder, benchmark, **params), calls=1, device="cuda:0", seed=1, timeout=120.0)
        assert sum(each["count"] for each in found["spent"] if each["kind"] == "kernel") == kernels, found
        check(json.loads(path.read_text()))
