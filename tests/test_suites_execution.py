"""The suites on what a multiprocessor does, without a GPU: kernels in the emulator, references by brute force."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import emulator
import numpy as np
import pytest
from machine import BENCHMARKS, FOLDER, GPU, SUITES, build, emulated, globals_of, judged, on_cpu

from gpubench.errors import Skip, Unsupported, WrongResult
from gpubench.workload import Kernel

MACHINE = (
    "atomics", "bank-conflicts", "clusters", "execution", "instruction-mix", "launch", "memory-hierarchy", "occupancy",
)  # fmt: skip
SMALLEST: dict[str, list[dict[str, Any]]] = {
    "atomics/count": [{"addresses": n, "blocks": 1} for n in (1, 8, 2**16)],
    "bank-conflicts/stride": [{"stride": stride} for stride in (0, 1, 2, 32, 33, 100)],
    "bank-conflicts/transpose": [
        {"pitch": pitch, "order": order, "n": n}
        for pitch, order, n in [(32, "transposed", 64), (33, "transposed", 70), (33, "copied", 33), (32, "copied", 8)]
    ],
    "execution/blocks": [{"blocks": 1, "threads": 1}, {"blocks": 5, "threads": 70}],
    "execution/dependent": [{"unit": "fp32"}],
    "execution/fill": [{"threads": threads, "blocks": 1} for threads in (1, 33)],
    "execution/ping-pong": [{"path": "shared"}],
    "execution/rate": [{"unit": unit} for unit in ("fp32", "int32", "exp2", "rsqrt")],
    "execution/warp": [{"threads": threads} for threads in (1, 100)],
    "instruction-mix/throughput": [
        {"operation": operation}
        for operation in ("fma", "divide", "divide-fast", "sqrt", "sqrt-fast", "exp", "exp-fast", "int32-fma",
                          "int32-divide")
    ],
    "occupancy/copy": [{"warps": warps, "ilp": ilp, "mib": 1} for warps, ilp in [(3, 1), (4, 8), (34, 2)]],
    "occupancy/fma": [{"warps": warps, "ilp": ilp} for warps, ilp in [(1, 1), (2, 2), (34, 4), (1, 8)]],
}  # fmt: skip
"""Points whose kernels the emulator runs."""
BY_HAND = {
    "clusters/bandwidth", "clusters/latency", "execution/mma-sync", "execution/wgmma", "launch/kernels",
    "launch/operation", "launch/operations",
}  # fmt: skip
"""Benchmarks whose kernels are PTX, or no kernels: what can be said of them here is said below."""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains and rounds short enough for one thread after the other."""
    for path, sizes in {
        "bank-conflicts/stride": {"READS": 64}, "execution/rate": {"LINKS": 32, "ROUNDS": 5},
        "instruction-mix/throughput": {"LINKS": 16}, "occupancy/fma": {"LINKS": 16}, "launch/kernels": {"LAUNCHES": 20},
    }.items():  # fmt: skip
        for name, size in sizes.items():
            monkeypatch.setitem(globals_of(path), name, size)


def points() -> list[Any]:
    return [
        pytest.param(path, params, id=f"{path}[{','.join(map(str, params.values()))}]")
        for path, given in SMALLEST.items()
        for params in given
    ]


def test_every_benchmark_has_its_smallest_points() -> None:
    known = {path for path in BENCHMARKS if path.split("/")[0] in MACHINE and not path.startswith("memory-hierarchy")}
    assert set(SMALLEST) | BY_HAND == known
    for path, given in SMALLEST.items():
        assert all(set(point) == set(BENCHMARKS[path].axes) for point in given), path


@pytest.mark.parametrize(("path", "params"), points())
def test_a_kernel_writes_what_its_reference_says(cpu: Any, path: str, params: dict[str, Any]) -> None:
    workload = build(cpu, path, **params)
    cpu.poison(workload.output)
    emulated(path, workload)
    judged(cpu, workload)
    assert (type(workload.flops), type(workload.bytes)) == (int, int)
    flat = workload.output.view(-1)
    flat[-1] = -2 * flat[-1] - 1
    with pytest.raises(WrongResult):
        judged(cpu, workload)


@pytest.mark.parametrize("name", MACHINE)
def test_every_kernel_is_used_at_its_default_points(cpu: Any, name: str) -> None:
    """A launch that its declaration refuses would be found on a GPU only: here all of them are built, in small."""
    small = {"mib": 1, "n": 8, "kib": 4, "blocks": 1}
    seen = {"next_of_chain"} if name == "launch" else set()  # which its benchmark launches itself
    for path, bench in BENCHMARKS.items():
        if bench.suite != name or path == "launch/kernels":
            continue
        points = {tuple((name, small.get(name, value)) for name, value in case.items()) for case in bench.cases("cuda")}
        for point in points:
            run = build(cpu, path, **dict(point)).run
            launched = run if isinstance(run, tuple) else (run,)
            seen |= {kernel.name for kernel in launched if isinstance(kernel, Kernel)}
    assert seen == {kernel.name for kernel in SUITES[name].kernels}


BROKEN = {
    "the last rows are left out": ("bank-conflicts/transpose", {"pitch": 33, "order": "transposed", "n": 33},
                                   "top + row < n", "top + row < n - 1"),
    "no barrier between writing and reading": ("bank-conflicts/transpose",
                                               {"pitch": 33, "order": "transposed", "n": 64}, "__syncthreads();", ""),
    "no barrier before the exchange": ("execution/blocks", {"blocks": 2, "threads": 64}, "__syncthreads();", ""),
    "the tail of a copy is left out": ("occupancy/copy", {"warps": 3, "ilp": 2, "mib": 1},
                                       "for (long long i = first + me; i < n; i += threads) y[i] = x[i];", ""),
    "an addition that is not atomic is lost": ("atomics/count", {"addresses": 8, "blocks": 1},
                                               "k < each;", "k < each - 1;"),
}  # fmt: skip
"""Kernels with a line spoilt: the benchmark, its point, and what replaces what."""


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_kernel_is_incorrect(cpu: Any, tmp_path: Path, fault: str) -> None:
    path, params, right, wrong = BROKEN[fault]
    workload = build(cpu, path, **params)
    kernels = workload.run if isinstance(workload.run, tuple) else (workload.run,)
    cpu.poison(workload.output)
    for kernel in kernels:
        assert isinstance(kernel, Kernel)
        assert kernel.source is not None
        text = (FOLDER / kernel.source).read_text()
        assert right in text
        (tmp_path / kernel.source).write_text(text.replace(right, wrong))
        (tmp_path / "include").mkdir(exist_ok=True)
        for header in (FOLDER / "include").glob("*.cuh"):
            shutil.copy(header, tmp_path / "include")
        emulated(path, replace(workload, run=kernel), tmp_path)
    with pytest.raises(WrongResult):
        judged(cpu, workload)


# Figures


def counted(workload: Any, cycles: list[float], ns: float = 0) -> dict[str, float]:
    """The figures of a workload whose blocks took so many cycles."""
    (clocks,) = [arg for arg in workload.run.args if getattr(arg, "shape", ())[1:] == (2,) and arg.dtype.itemsize == 8]
    clocks[:, 0], clocks[:, 1] = clocks.new_tensor(cycles), ns
    return {metric.name: metric.value for metric in workload.metrics()}


@pytest.mark.parametrize(
    ("path", "params", "cycles", "found"),
    [
        ("execution/rate", {"unit": "fp32"}, 1024 * 4 * 32 / 128, {"lanes": 128}),
        ("execution/dependent", {"unit": "fp32"}, 4 * 32, {"latency": 2.0, "cycles": 4.0}),
        ("execution/mma-sync", {"dtype": "float16"}, 16 * 8 * 1024, {"flop_per_clock": 4096}),
        ("execution/wgmma", {"dtype": "bfloat16"}, 2 * 512 * 128, {"flop_per_clock": 4096}),
        ("bank-conflicts/stride", {"stride": 2}, 2 * 32 * 64, {"cycles": 2}),
        ("instruction-mix/throughput", {"operation": "exp"}, 1024 * 4 * 16 / 16, {"results": 16}),
        ("clusters/latency", {"cluster": 2, "where": "next"}, 180 * 2048, {"cycles": 180, "latency": 64 / 2048}),
    ],
)  # fmt: skip
def test_figures_from_cycles(
    cpu: Any, path: str, params: dict[str, Any], cycles: float, found: dict[str, float]
) -> None:
    workload = build(cpu, path, **params)
    assert counted(workload, [cycles], 64) == pytest.approx(found)


def test_two_blocks_of_a_multiprocessor_take_what_both_take(cpu: Any) -> None:
    """The younger one may look at the clock when the older has ended, or before; other multiprocessors have clocks of
    their own."""
    workload = build(cpu, "occupancy/fma", warps=64, ilp=2)
    places = workload.run.args[1]
    done = 2 * 1024 * 2 * 16
    units = places.shape[0] // 2
    for unit in range(units):
        at = 10**6 * unit
        places[2 * unit] = places.new_tensor([unit, at, at + 256])
        places[2 * unit + 1] = places.new_tensor([unit, at + unit % 2 * 255, at + 512])
    assert [metric.value for metric in workload.metrics()] == [done / 512]


def test_where_blocks_were(cpu: Any) -> None:
    workload = build(cpu, "execution/blocks", blocks=4, threads=8)
    assert isinstance(workload.run, Kernel)
    assert workload.metrics is not None
    on = workload.run.args[0]
    on[:] = on.new_tensor([0, 1, 1, 3])[:, None]
    assert [metric.value for metric in workload.metrics()] == [3, 1]
    on[2, 5] = 0
    assert [metric.value for metric in workload.metrics()] == [3, 2]
    assert workload.prediction == {"multiprocessors": 2, "multiprocessors_of_a_block": 1}


def test_a_word_goes_back_and_forth(cpu: Any) -> None:
    workload = build(cpu, "execution/ping-pong", path="shared")
    assert workload.run.block[0] == 64
    assert build(cpu, "execution/ping-pong", path="global").run.grid[0] == 2
    assert [*map(int, workload.reference())] == [10, 9]
    assert counted(workload, [400.0], 100)["cycles"] == 40
    with pytest.raises(Unsupported, match=r"clusters need compute capability 9\.0"):
        build(cpu, "execution/ping-pong", GPU | {"compute_capability": "8.0"}, path="cluster")


def test_the_constants_of_the_kernels_are_those_of_the_suites() -> None:
    for path, file, names in [
        ("memory-hierarchy/chase", "memory_hierarchy.cu", ["LINE"]),
        ("bank-conflicts/stride", "bank_conflicts.cu", ["WORDS"]),
        ("clusters/latency", "clusters.cu", ["WORDS"]),
        ("instruction-mix/throughput", "instruction_mix.cu", ["CHAINS"]),
    ]:
        known = dict(re.findall(r"^#define (\w+) (\d+)$", (FOLDER / file).read_text(), re.M))
        assert {name: int(known[name]) for name in names} == {name: globals_of(path)[name] for name in names}


# What is PTX


def test_the_numbers_one_of_the_matrix_units() -> None:
    import torch

    for dtype, (_, ones) in globals_of("execution/wgmma")["FORMATS"].items():
        assert torch.tensor([ones], dtype=torch.int64).to(torch.int32).view(getattr(torch, dtype)).tolist() == [1, 1]


def test_matrix_units_are_checked_by_the_products_they_add(cpu: Any) -> None:
    mma, wgmma = build(cpu, "execution/mma-sync", dtype="float16"), build(cpu, "execution/wgmma", dtype="float16")
    for workload, m, n, groups, numbers in [(mma, 16, 8, 8 * 512 // 32, 4 * 8), (wgmma, 64, 256, 2, 128)]:
        links, grid = int(workload.run.args[3]), workload.run.grid[0]
        assert workload.flops == 2 * m * n * 16 * groups * links * grid
        assert workload.reference().unique().tolist() == [16 * numbers * links]
        assert 16 * numbers * links < 2**24, "exact in float32"
    assert wgmma.run.arch == "sm_90a"


@pytest.mark.parametrize("where", ["next", "home"])
def test_what_the_blocks_of_a_cluster_read(cpu: Any, where: str) -> None:
    facts = GPU | {"multiprocessors": 9}
    chase = build(cpu, "clusters/latency", facts, cluster=4, where=where)
    following, places = chase.run.args[0].tolist(), list(range(8))
    assert chase.run.grid[0] == 8
    for _ in range(int(chase.run.args[3])):
        places = [following[place] for place in places]
    assert chase.reference().tolist() == places
    copy = build(cpu, "clusters/bandwidth", facts, cluster=4, where=where)
    x, sums = copy.run.args[0].long().numpy(), copy.reference().numpy()
    for block, thread in [(0, 0), (3, 5), (6, 1023)]:
        rank = (block + (where == "next")) % 4
        places = [(thread + step + 256 * part) % 1024 for part in range(4) for step in range(128)]
        read = [x[4 * place + word] + rank for place in places for word in range(4)]
        assert (sum(map(int, read)) - int(sums[block, thread])) % 2**32 == 0


@pytest.mark.parametrize("facts", [GPU | {"compute_capability": "8.9"}, {"kind": "cpu"}])
def test_a_gpu_without_clusters_is_unsupported(cpu: Any, facts: dict[str, Any]) -> None:
    for name in ("latency", "bandwidth"):
        with pytest.raises(Unsupported, match=r"clusters need a GPU of compute capability 9\.0 or newer"):
            build(cpu, f"clusters/{name}", facts, cluster=2, where="next")


# On a CPU


def test_a_cpu_waits_for_a_multiply_add_too(cpu: Any) -> None:
    workload = build(cpu, "execution/dependent", cpu.facts(), unit="fp32")
    on_cpu(cpu, "execution/dependent", workload)
    judged(cpu, workload)
    assert workload.metrics is not None
    assert [metric.name for metric in workload.metrics()] == ["latency"]


@pytest.mark.parametrize("n", [1, 1000])
def test_launches_follow_each_other(cpu: Any, n: int) -> None:
    workload = build(cpu, "launch/kernels", cpu.facts(), way="stream", n=n)
    assert workload.labels == {"analogue": "a parallel region"}
    cpu.poison(workload.output)
    workload.call()
    judged(cpu, workload)
    assert workload.timed_by is not None
    assert workload.timed_by() > 0
    workload.output[-1] -= 1
    with pytest.raises(WrongResult):
        judged(cpu, workload)
    with pytest.raises(Unsupported, match="graphs are CUDA's"):
        build(cpu, "launch/kernels", cpu.facts(), way="graph", n=n)


def test_a_launch_that_is_lost_shows(cpu: Any) -> None:
    x, kernel = cpu.unwritten(4, "int32"), SUITES["launch"].kernels[0]
    for k in (0, 2):
        made = kernel(x, np.int32(k), np.int32(4), grid=1, block=4)
        emulator.emulate(made, FOLDER, ("next_of_chain",))
        on_cpu(cpu, "launch/kernels", type("Of", (), {"run": made}))
    assert x.tolist() == [1] * 4


@pytest.mark.parametrize("name", ["operation", "operations"])
def test_operations_add(cpu: Any, name: str) -> None:
    params = {"n": 10} | ({"count": 3} if name == "operations" else {})
    workload = build(cpu, f"launch/{name}", cpu.facts(), **params)
    workload.call()
    judged(cpu, workload)
    assert (workload.timed_by is None) == (name == "operation")


@pytest.mark.parametrize(
    "path", ["atomics/count", "bank-conflicts/stride", "execution/rate", "instruction-mix/throughput", "occupancy/fma"]
)
def test_what_a_cpu_has_no_counterpart_of(cpu: Any, path: str) -> None:
    workload = build(cpu, path, cpu.facts(), **SMALLEST[path][0])
    first = workload.run[0] if isinstance(workload.run, tuple) else workload.run
    with pytest.raises(Skip, match="no CPU counterpart"):
        cpu.launcher(first, BENCHMARKS[path].file)


# Sweeps


def test_a_warp_too_many_is_skipped(cpu: Any) -> None:
    for warps, words in [(65, "holds 64 warps"), (33, "33 warps are not 2 equal blocks")]:
        with pytest.raises(Skip, match=words):
            build(cpu, "occupancy/fma", warps=warps, ilp=1)
    assert build(cpu, "occupancy/fma", warps=64, ilp=1).run.grid[0] == 4
    facts = GPU | {"registers_per_multiprocessor": 65536}
    assert build(cpu, "occupancy/copy", facts, warps=64, ilp=4, mib=1).run.block[0] == 1024
    with pytest.raises(Skip, match="64 warps of 48 registers a thread are more than a multiprocessor has"):
        build(cpu, "occupancy/copy", facts, warps=64, ilp=8, mib=1)
    with pytest.raises(Skip, match="holds 48 warps"):
        build(cpu, "memory-hierarchy/in-flight", GPU | {"threads_per_multiprocessor": 1536}, warps=64, loads=1, mib=1)


def test_labels_name_the_controls(cpu: Any) -> None:
    def control(path: str, **params: Any) -> str | None:
        return build(cpu, path, **params).labels.get("control")

    assert [control("bank-conflicts/stride", stride=stride) for stride in (1, 2, 33)] == [None, None, "no conflict"]
    assert control("bank-conflicts/transpose", pitch=33, order="copied", n=8) == "copied"
    assert [control("execution/fill", threads=threads, blocks=1) for threads in (33, 64)] == [None, "whole warps"]
    assert [control("occupancy/fma", warps=warps, ilp=2) for warps in (4, 8)] == [None, "more than enough"]
    assert control("atomics/count", addresses=2**20, blocks=1) == "an address a thread"
    assert control("clusters/latency", cluster=2, where="home") == "its own shared memory"


def test_atomics_take_a_power_of_two(cpu: Any) -> None:
    with pytest.raises(Skip, match="3 addresses are not a power of two"):
        build(cpu, "atomics/count", addresses=3, blocks=1)


def test_defaults_are_few_enough_for_seconds() -> None:
    for name in MACHINE:
        for kind, most in (("cuda", 60), ("cpu", 60)):
            rows = {quick: sum(len(list(bench.cases(kind, quick))) for bench in SUITES[name].benchmarks.values())
                    for quick in (False, True)}  # fmt: skip
            assert rows[True] <= rows[False] <= most, (name, kind)
