"""The benchmarks' own kernels and referees on a GPU: what is taken for the truth is true."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
if str(BENCHMARKS) not in sys.path:
    sys.path.insert(0, str(BENCHMARKS))

torch = pytest.importorskip("torch")
pytest.importorskip("cupy")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from accuracy.peers import READINGS, Bench, reading  # noqa: E402
from accuracy.works import COLD_STAMPS, DURATIONS, NOTHING, STAMPS, TOOLS, WORKS  # noqa: E402
from search.finders import train_s  # noqa: E402


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench("cuda:0")


@pytest.mark.parametrize("work", DURATIONS[:9], ids=lambda work: work.name)
def test_a_kernel_spins_as_long_as_it_was_asked_to_and_hardly_longer(bench: Bench, work):
    _, workload = bench.workload(work)
    cycles, ns = (metric.value for metric in workload.metrics())
    assert workload.output.tolist() == [work.us * 2000]
    assert work.us * 2000 <= cycles <= work.us * 2000 + 200
    if work.us >= 100:  # the global timer turns often enough to be a clock
        call, _ = bench.workload(work)
        assert cycles / ns * 1e3 == pytest.approx(bench.clock_behind(call, ns), rel=0.02)


@pytest.mark.parametrize("tool", [STAMPS, COLD_STAMPS], ids=lambda tool: tool.name)
def test_the_stamps_read_a_known_duration(bench: Bench, tool):
    nothing, known = (bench.row(tool, WORKS[name], 2) for name in (NOTHING, "spin 1000 µs"))
    assert known.absent is None
    assert known.reading_ns - nothing.reading_ns == pytest.approx(known.truth_ns, rel=0.005)


@pytest.mark.parametrize("tool", READINGS)
def test_every_peer_that_is_here_times_a_millisecond(bench: Bench, tool: str):
    row = bench.row(TOOLS[tool], WORKS["spin 1000 µs"], 1)
    if row.absent is not None and "not installed" in row.absent:
        pytest.skip(row.absent)
    assert row.absent is None
    assert row.reading_ns == pytest.approx(row.truth_ns, rel=0.1)
    assert reading(tool) is READINGS[tool][0]


def test_a_train_of_products_takes_time():
    a, b = (torch.randn(512, 512, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    assert 1e-7 < train_s((a, b, torch.empty_like(a)), 10) < 1e-2
