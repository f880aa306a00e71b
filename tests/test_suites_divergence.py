"""The suite divergence without a GPU: its kernels in the emulator, by brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from machine import FOLDER, GPU, build, doubles, emulated, globals_of, judged, on_cpu

from gpubench.errors import Skip, WrongResult
from gpubench.workload import Kernel, Workload

SMALL = GPU | {"multiprocessors": 1, "threads_per_multiprocessor": 512}
STEP = 16


@pytest.fixture(autouse=True)
def few_trips(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, trips in {"TRIPS": 3, "SWITCH_TRIPS": 2}.items():
        monkeypatch.setitem(globals_of("divergence/switch"), name, trips)


def right(cpu: Any, benchmark: str, **params: Any) -> tuple[Workload, np.ndarray]:
    """The workload and its output, once it was run in the emulator and found right."""
    workload = build(cpu, f"divergence/{benchmark}", SMALL, **params)
    cpu.poison(workload.output)
    did = emulated(f"divergence/{benchmark}", workload)
    judged(cpu, workload)
    assert workload.flops == 2 * did.fused
    return workload, doubles(workload.output)


@pytest.mark.parametrize("k", [0, 1, 4, 31, 32])
def test_lanes_below_k_take_one_path_the_others_the_other(cpu: Any, k: int) -> None:
    workload, out = right(cpu, "lane-split", k=k)
    wanted = [i % 32 + (3 * STEP if i % 32 < k else -2 * 3 * STEP) for i in range(512)]
    assert out.tolist() == wanted
    both = 0 < k < 32
    assert workload.prediction["relative_time"] == (2 if both else 1)
    assert workload.prediction["threads_per_instruction"] == (16 if both else 32)
    assert workload.labels == ({} if both else {"control": "one path"})


def test_a_branch_on_the_boundary_of_warps_is_the_control_of_one_inside_them(cpu: Any) -> None:
    lanes, by_lane = right(cpu, "boundary", by="lane")
    warps, by_warp = right(cpu, "boundary", by="warp")
    assert by_lane.tolist() == [i % 32 + (-6 if i % 2 else 3) * STEP for i in range(512)]
    assert by_warp.tolist() == [i % 32 + (-6 if i // 32 % 2 else 3) * STEP for i in range(512)]
    assert (lanes.prediction["relative_time"], lanes.labels) == (2, {})
    assert (warps.prediction["relative_time"], warps.labels) == (1, {"control": "whole warps"})
    assert lanes.flops == warps.flops


@pytest.mark.parametrize("n", [1, 3, 32])
def test_a_switch_sends_each_lane_down_its_path(cpu: Any, n: int) -> None:
    workload, out = right(cpu, "switch", n=n)
    assert out.tolist() == [i % 32 + (i % 32 % n + 1) * 2 * STEP for i in range(512)]
    assert workload.prediction["relative_time"] == n
    assert workload.prediction["threads_per_instruction"] == pytest.approx(32 / n)


def test_the_control_that_waits_for_memory(cpu: Any) -> None:
    workload = build(cpu, "divergence/memory-bound", SMALL, k=16, mib=1)
    assert isinstance(workload.run, Kernel)
    did = emulated("divergence/memory-bound", workload)
    judged(cpu, workload)
    source = doubles(workload.run.args[0]).reshape(-1, 32, 4)
    added = np.where(np.arange(32) < 16, 4, -8)[:, None]
    np.testing.assert_allclose(doubles(workload.output), (source + added).flatten(), atol=1e-5)
    assert (workload.flops, workload.bytes) == (2 * did.fused, 2 * 2**20)
    assert workload.labels == {"control": "memory-bound"}


@pytest.mark.parametrize("order", ["sorted", "random"])
def test_a_branch_on_data_counts_the_same_in_any_order(cpu: Any, order: str) -> None:
    workload = build(cpu, "divergence/data-branch", SMALL, order=order, trips=2, blocks=4)
    assert isinstance(workload.run, Kernel)
    signs = doubles(workload.run.args[0])
    assert (signs < 0).sum() == 512
    assert (np.diff(signs) != 0).sum() == 1 if order == "sorted" else (np.diff(signs) != 0).sum() > 400
    cpu.poison(workload.output)
    emulated("divergence/data-branch", workload)
    judged(cpu, workload)
    wanted = np.arange(1024) % 32 + np.where(signs < 0, 2 * STEP, -4 * STEP)
    assert doubles(workload.output).tolist() == wanted.tolist()
    assert workload.prediction["relative_time"] == (2 if order == "random" else 1)


@pytest.mark.parametrize("order", ["sorted", "random"])
def test_a_cpu_takes_the_branches_of_its_analogue(cpu: Any, order: str) -> None:
    workload = build(cpu, "divergence/data-branch", cpu.facts(), order=order, trips=3, blocks=4)
    cpu.poison(workload.output)
    on_cpu(cpu, "divergence/data-branch", workload)
    judged(cpu, workload)
    assert workload.flops == 2 * 3 * 1024
    assert workload.prediction == {}


def test_a_lane_on_the_wrong_path_is_found(cpu: Any) -> None:
    workload = build(cpu, "divergence/lane-split", SMALL, k=16)
    other = build(cpu, "divergence/lane-split", SMALL, k=17)
    emulated("divergence/lane-split", other)
    workload.output.copy_(other.output)
    with pytest.raises(WrongResult):
        judged(cpu, workload)


def test_a_cpu_has_no_warps_to_split(cpu: Any) -> None:
    workload = build(cpu, "divergence/lane-split", SMALL, k=16)
    with pytest.raises(Skip, match=r"no CPU counterpart of lane_split in divergence\.cpp"):
        on_cpu(cpu, "divergence/lane-split", workload)


def test_the_steps_of_a_trip_are_those_of_the_sources() -> None:
    known = globals_of("divergence/switch")
    for file, step in (("divergence.cu", known["STEP"]), ("divergence.cpp", known["CPU_STEP"])):
        assert f"#define STEP {step}\n" in (FOLDER / file).read_text()
    assert known["STEP"] == STEP
