"""The suite memory-hierarchy without a GPU: its kernels in the emulator, its analogues on the CPU, by brute force."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from machine import GPU, build, doubles, emulated, globals_of, judged, on_cpu

from gpubench.errors import Skip, WrongResult
from gpubench.workload import Kernel

ONE = GPU | {"multiprocessors": 1}
"""A grid that waits for itself has one block in the emulator."""


def followed(kernel: Kernel, start: int, lines: int, steps: int) -> tuple[int, int]:
    """Where a chase gets to through the pointers themselves, and how many lines its cycle has."""
    table = kernel.args[0]
    places = ((table[:, 0] - table.data_ptr()) // 128).tolist()
    at, seen = start, set()
    for step in range(max(steps, lines)):
        if step == steps:
            end = at
        seen.add(at)
        at = places[at]
    return (at if steps >= lines else end), len(seen)


@pytest.mark.parametrize("benchmark", ["chase", "chase-past-l1"])
@pytest.mark.parametrize("kib", [1, 5, 300])
def test_a_chase_goes_through_every_line_and_ends_where_its_pointers_lead(cpu: Any, benchmark: str, kib: int) -> None:
    path = f"memory-hierarchy/{benchmark}"
    workload = build(cpu, path, ONE, kib=kib)
    assert isinstance(workload.run, Kernel)
    lines, steps = kib * 8, int(workload.run.args[-1])
    end, visited = followed(workload.run, int(workload.run.args[1][0]), lines, steps)
    assert visited == lines
    runs = [emulated] + ([partial(on_cpu, cpu)] if benchmark == "chase" else [])
    for run in runs:
        cpu.poison(workload.output)
        run(path, workload)
        judged(cpu, workload)
        assert workload.output[0].tolist() == [end, lines * (lines - 1)]


@pytest.mark.parametrize("way", ["alone", "together"])
def test_a_multiprocessor_alone_stays_at_its_line(cpu: Any, way: str) -> None:
    path = "memory-hierarchy/distance"
    workload = build(cpu, path, way=way, lines=16)
    assert isinstance(workload.run, Kernel)
    starts = workload.run.args[1].tolist()
    assert len(set(starts)) == 2
    steps = int(workload.run.args[-1])
    ends = starts if way == "alone" else [followed(workload.run, start, 16, steps)[0] for start in starts]
    assert workload.reference().tolist() == [[end, 16 * 15] for end in ends]
    emulated(path, workload)  # the set is small: each block touches it for itself, and none waits for another
    judged(cpu, workload)
    with pytest.raises(Skip, match="no CPU counterpart of chase"):
        on_cpu(cpu, path, workload)


def test_a_large_set_is_touched_by_all_together(cpu: Any) -> None:
    workload = build(cpu, "memory-hierarchy/chase", kib=1032)
    assert isinstance(workload.run, Kernel)
    table, lines = workload.run.args[0], 1032 * 8
    places = np.asarray((table[:, 0] - table.data_ptr()) // 128)
    block = np.arange(lines) // 256 % 2
    assert doubles(workload.reference())[:, 1].tolist() == [places[block == b].sum() for b in (0, 1)]
    assert int(workload.run.args[6]) == 1


def test_pointers_that_miss_a_line_are_found(cpu: Any) -> None:
    workload = build(cpu, "memory-hierarchy/chase", ONE, kib=4)
    assert isinstance(workload.run, Kernel)
    table = workload.run.args[0]
    table[3, 0] = table[int((table[3, 0] - table.data_ptr()) // 128), 0]
    emulated("memory-hierarchy/chase", workload)
    with pytest.raises(WrongResult):
        judged(cpu, workload)


def test_the_chase_in_shared_memory(cpu: Any) -> None:
    workload = build(cpu, "memory-hierarchy/chase-shared", blocks=1)
    emulated("memory-hierarchy/chase-shared", workload)
    judged(cpu, workload)
    with pytest.raises(Skip, match="no CPU counterpart of chase_shared"):
        on_cpu(cpu, "memory-hierarchy/chase-shared", workload)


def test_figures_are_per_step_and_over_multiprocessors(cpu: Any) -> None:
    workload = build(cpu, "memory-hierarchy/chase", kib=4)
    assert isinstance(workload.run, Kernel)
    assert workload.metrics is not None
    clocks, steps = workload.run.args[3], int(workload.run.args[-1])
    clocks[:, 0], clocks[:, 1] = clocks.new_tensor([30 * steps, 50 * steps]), 20 * steps
    found = {metric.name: (metric.value, metric.unit) for metric in workload.metrics()}
    assert found == {
        "latency": (20.0, "ns"), "cycles": (40.0, "cycles"), "cycles_min": (30.0, "cycles"),
        "cycles_max": (50.0, "cycles"),
    }  # fmt: skip
    judged_by = [metric.name for metric in workload.metrics() if metric.direction != "none"]
    assert judged_by == ["latency"], "cycles are the same figure again"
    clocks[:, 0] = 0
    assert [metric.name for metric in workload.metrics()] == ["latency"], "no cycles where none are counted"


@pytest.mark.parametrize(
    ("benchmark", "params"),
    [("working-set", {"kib": 48}), ("in-flight", {"warps": 3, "loads": 1, "mib": 1}),
     ("in-flight", {"warps": 34, "loads": 4, "mib": 1})],
)  # fmt: skip
def test_every_byte_of_a_set_is_read(
    cpu: Any, monkeypatch: pytest.MonkeyPatch, benchmark: str, params: dict[str, int]
) -> None:
    path = f"memory-hierarchy/{benchmark}"
    monkeypatch.setitem(globals_of(path)["READ_BYTES"], "cuda", 3 * 48 << 10)
    workload = build(cpu, path, **params)
    assert isinstance(workload.run, Kernel)
    words, out, _, passes, blocks = workload.run.args
    assert passes == (3 if benchmark == "working-set" else 1)
    assert out.numel() == blocks == workload.run.grid[0]
    cpu.poison(out)
    assert emulated(path, workload).loaded + 4 * blocks == workload.bytes == words.nbytes * passes + 4 * blocks
    judged(cpu, workload)
    assert int(out.long().sum()) % 2**32 == int(passes) * int(words.long().sum()) % 2**32
    out[-1] += 1
    with pytest.raises(WrongResult):
        judged(cpu, workload)


def test_a_cpu_reads_with_its_threads(cpu: Any) -> None:
    path = "memory-hierarchy/working-set"
    workload = build(cpu, path, cpu.facts(), kib=64)
    assert isinstance(workload.run, Kernel)
    assert workload.run.grid[0] == cpu.facts()["threads"]
    on_cpu(cpu, path, workload)
    judged(cpu, workload)
    with pytest.raises(Skip, match="no CPU counterpart: its cores decide"):
        build(cpu, "memory-hierarchy/in-flight", cpu.facts(), warps=1, loads=4, mib=1)
