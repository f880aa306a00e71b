"""The suite waves without a GPU: its kernels in the emulator, its analogue on the CPU, timelines made by hand."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from machine import FOLDER, GPU, build, doubles, emulated, globals_of, judged, on_cpu

from gpubench.errors import Skip, WrongResult
from gpubench.workload import Kernel

GLOBALS = globals_of("waves/blocks")
SMALL = GPU | {"multiprocessors": 3, "shared_memory_per_multiprocessor_bytes": 228 << 10}


@pytest.mark.parametrize(
    ("full", "extra", "grid", "turns", "idle", "control"),
    [(1, -1, 2, 1, 1 / 3, True), (1, 0, 3, 1, 0, False), (1, 1, 4, 2, 2 / 3, False), (2, 1, 7, 3, 2 / 3, False)],
)
def test_a_grid_of_equal_blocks(
    cpu: Any, full: int, extra: int, grid: int, turns: int, idle: float, control: bool
) -> None:
    workload = build(cpu, "waves/blocks", SMALL, full=full, extra=extra, trips=2)
    assert isinstance(workload.run, Kernel)
    assert (workload.run.grid, 2 * workload.run.shared_bytes > 228 << 10) == ((grid, 1, 1), True)
    assert workload.prediction["waves"] == turns
    assert workload.prediction["idle_share_last_wave"] == pytest.approx(idle)
    assert bool(workload.labels) is control
    cpu.poison(workload.output)
    did = emulated("waves/blocks", workload)
    judged(cpu, workload)
    assert workload.flops == 2 * did.fused
    assert doubles(workload.output).tolist() == [[lane % 32 + 32 for lane in range(128)]] * grid
    workload.output[-1, -1] -= 1
    with pytest.raises(WrongResult):
        judged(cpu, workload)


def test_what_a_timeline_shows() -> None:
    timeline = [[7, 0, 100], [8, 0, 100], [9, 10, 110], [8, 100, 200]]
    found = {metric.name: metric.value for metric in GLOBALS["seen"](timeline, 3)}
    assert found == {
        "waves": 2, "places": 3, "idle_share_last_wave": pytest.approx(2 / 3),
        "idle_share": pytest.approx(1 - 400 / 600),
    }  # fmt: skip
    assert "idle_share" not in {metric.name for metric in GLOBALS["seen"]([[0, 5, 5]], 3)}, "no time has passed"


def test_equal_chunks_on_a_cpu(cpu: Any) -> None:
    threads = cpu.facts()["threads"]
    workload = build(cpu, "waves/blocks", cpu.facts(), full=1, extra=1, trips=1)
    assert workload.prediction["waves"] == 2
    cpu.poison(workload.output)
    on_cpu(cpu, "waves/blocks", workload)
    judged(cpu, workload)
    assert workload.metrics is not None
    found = {metric.name: metric.value for metric in workload.metrics()}
    assert (found["waves"], found["places"]) == (2, threads)
    with pytest.raises(Skip, match="no CPU counterpart of warp_tile"):
        on_cpu(cpu, "waves/matmul", build(cpu, "waves/matmul", cpu.facts(), full=1, extra=0, k=8))


@pytest.mark.parametrize(("extra", "tiles", "turns"), [(-1, 3, 1), (0, 3, 1), (1, 4, 2)])
def test_a_pinned_product(cpu: Any, extra: int, tiles: int, turns: int) -> None:
    workload = build(cpu, "waves/matmul", SMALL, full=1, extra=extra, k=20)
    assert isinstance(workload.run, Kernel)
    assert (workload.run.grid[0], workload.prediction["waves"]) == (tiles, turns)
    assert workload.prediction["useful_share"] == pytest.approx((384 + extra) / (128 * tiles))
    cpu.poison(workload.output)
    emulated("waves/matmul", workload)
    judged(cpu, workload)


def test_a_pinned_product_takes_its_stages_where_shared_memory_is_not_known(cpu: Any) -> None:
    workload = build(cpu, "waves/matmul", full=1, extra=0, k=8)
    assert isinstance(workload.run, Kernel)
    assert workload.run.shared_bytes == 4 * 3 * 16 * (132 + 128)


def test_the_lectures_example_is_one_wave_on_132_multiprocessors(cpu: Any) -> None:
    def turns(n: int, units: int) -> tuple[float, float]:
        found = build(cpu, "waves/library", GPU | {"multiprocessors": units}, n=n, dtype="float32").prediction
        return found["blocks"], found["waves"]

    assert (turns(1792, 108), turns(1793, 108)) == ((98, 1), (120, 2))
    assert (turns(1792, 132), turns(1793, 132)) == ((98, 1), (120, 1))
    assert (turns(2048, 132), turns(2049, 132)) == ((128, 1), (153, 2))


def test_the_library_is_reported_and_not_judged(cpu: Any) -> None:
    workload = build(cpu, "waves/library", cpu.facts(), n=9, dtype="float32")
    assert (workload.labels, workload.prediction) == ({"verdict": "report only"}, {})
    workload.call()
    judged(cpu, workload)
    np.testing.assert_allclose(doubles(workload.output), doubles(workload.reference()), atol=1e-4)


def test_no_block_at_all_is_skipped(cpu: Any) -> None:
    with pytest.raises(Skip, match="1 x 3 blocks and -3 are none"):
        build(cpu, "waves/blocks", SMALL, full=1, extra=-3, trips=1)
    with pytest.raises(Skip, match="1 x 3 tiles and -384 rows are none"):
        build(cpu, "waves/matmul", SMALL, full=1, extra=-384, k=1)


def test_the_constants_of_the_suite_are_those_of_its_sources() -> None:
    for file, names in {"waves.cu": ["STEP"], "waves.cpp": ["STEP", "THREADS"]}.items():
        found = dict(re.findall(r"^#define (\w+) (\d+)$", (FOLDER / file).read_text(), re.M))
        assert {name: int(found[name]) for name in names} == {name: GLOBALS[name] for name in names}
