"""Every benchmark of every suite at its smallest points, without a GPU: bytes, flops and reference by brute force.

torch's operations run on the CPU. A raw kernel runs as its CPU counterpart, where it has one, and its own text in the
emulator, where it holds no PTX.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
from dataclasses import replace
from typing import Any

import emulator
import machine
import numpy as np
import pytest
from machine import FOLDER, LIBRARY, globals_of

from gpubench.errors import Skip, Unsupported, WrongResult
from gpubench.plan import cases, select
from gpubench.workload import Kernel, Workload

STEMS = sorted(path.stem for path in FOLDER.glob("*.py"))

STREAMS = ["read", "write", "copy", "scale", "triad"]
SEARCHED = [
    {"mib": 1, "vector": 16, "unroll": 1, "threads": 512, "hint": "plain", "blocks": 0},
    {"mib": 3, "vector": 8, "unroll": 8, "threads": 256, "hint": "plain", "blocks": 5},  # 96 tiles, blocks with 6 or 7
    {"mib": 1, "vector": 4, "unroll": 4, "threads": 96, "hint": "streaming", "blocks": 2},  # the last tile cut short
]
SHAPES = [(1, 1, 1), (5, 3, 4), (8, 2, 16)]
"""n, m, k"""
DTYPES = ["float64", "float32", "tf32", "float16", "bfloat16"]

SMALLEST: dict[str, list[dict[str, Any]]] = {
    **{f"bandwidth/{name}": SEARCHED for name in STREAMS},
    **{f"bandwidth/torch-{name}": [{"mib": 1}, {"mib": 3}] for name in ["copy", "sum", "fill", "zero", "triad"]},
    "bandwidth/l2-read": [
        {"percent": 75, "unroll": 8, "threads": 256},  # 6 tiles of 32 KiB, 40 blocks
        {"percent": 60, "unroll": 8, "threads": 32},  # 38 tiles of 4 KiB, 320 blocks
        {"percent": 75, "unroll": 8, "threads": 1024},  # 1 tile of 128 KiB, 10 blocks
    ],
    "bandwidth/shared-read": [{"blocks": 1}, {"blocks": 2}],
    "data-pattern/matmul": [
        {"pattern": pattern, "n": 8, "dtype": "float32"}
        for pattern in ["uniform", "zeros", "ones", "integers", "few-bits", "denormal", "normal"]
    ],
    "matmul-sweep/matmul": [
        {"n": n, "m": m, "k": k, "dtype": dtype, "layout": layout}
        for n, m, k in SHAPES
        for dtype in DTYPES
        for layout in ["nn", "nt", "tn"]
    ],
    "peak/fma": [
        {"format": format, "threads": threads, "blocks": blocks}
        for format in ["fp32", "fp64", "fp16x2", "bf16x2", "int32"]
        for threads, blocks in [(32, 1), (20, 2)]
    ],
    "peak/matmul": [
        {"shape": f"{m}x{n}x{k}", "dtype": dtype} for n, m, k in SHAPES for dtype in [*DTYPES, "int8", "float8_e4m3"]
    ],
    "sustained/attention": [],  # in a file of its own: each call makes its output
    "sustained/matmul": [{"n": n, "dtype": dtype, "seconds": 3} for n in (1, 5) for dtype in ("float32", "bfloat16")],
    **{
        f"traps/{name}": [{"way": "wrong"}, {"way": "right"}]
        for name in ["host-clock", "hot-cache", "cold-start", "best-of-many", "zeros"]
    },
    **{f"traps/{name}": [] for name in ["missing-sync", "event-pair", "burst"]},
}
"""Points small enough to count by hand. A new benchmark needs its own line; it is empty where a CPU has nothing to
measure."""
ON_CPU = [path for path in SMALLEST if SMALLEST[path]]

ITEMSIZE = {"float64": 8, "float32": 4, "tf32": 4, "float16": 2, "bfloat16": 2, "int8": 4}
"""Of an output."""
LANES = {"fp32": 1, "fp64": 1, "fp16x2": 2, "bf16x2": 2, "int32": 1}
MACHINE = {"multiprocessors": 5, "last_level_cache_bytes": 2**18, "threads_per_multiprocessor": 2048}
"""What a small GPU would say of itself."""

ELSEWHERE = {
    "atomics", "attention", "attention-kernels", "bank-conflicts", "clusters", "coalescing", "decode", "divergence",
    "execution", "fusion", "instruction-mix", "intensity", "launch", "memory-hierarchy", "numerics", "occupancy",
    "padding", "precision", "recompute", "softmax", "tiling", "transformer-block", "waves",
}  # fmt: skip
"""Suites whose benchmarks have test files of their own: test_suites_execution.py, test_suites_hierarchy.py and such."""
SUITES = {name: suite for name, suite in machine.SUITES.items() if name not in ELSEWHERE}
BENCHMARKS = {bench.path: bench for suite in SUITES.values() for bench in suite.benchmarks.values()}


def points(*chosen: str, run: bool = True) -> list[Any]:
    """The points of these benchmarks, by default of all; with `run` only those that can be run without a GPU."""
    return [
        pytest.param(path, params, id=f"{path}[{','.join(map(str, params.values()))}]")
        for path in chosen or SMALLEST
        for params in SMALLEST[path]
        if params.get("dtype") != "float8_e4m3" and not (run and params.get("format") in ("fp16x2", "bf16x2"))
    ]


class Recorder:
    """A device that keeps what a benchmark asked it for: inputs and outputs, in order. `facts` are added to its own."""

    def __init__(self, device: Any, facts: dict[str, Any]) -> None:
        self.kind = device.kind
        self.device = device
        self.more = facts
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def facts(self) -> dict[str, Any]:
        return self.device.facts() | self.more

    def random(self, *args: Any, **options: Any) -> Any:
        self.inputs.append(self.device.random(*args, **options))
        return self.inputs[-1]

    def unwritten(self, *args: Any, **options: Any) -> Any:
        self.outputs.append(self.device.unwritten(*args, **options))
        return self.outputs[-1]


@pytest.fixture(autouse=True)
def small_traps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their sizes are no axes, so that all traps share a table."""
    known = globals_of("traps/zeros")
    monkeypatch.setitem(known["PRODUCT"], "cpu", 8)
    monkeypatch.setitem(known["LARGE"], "cpu", 100)


def build(
    cpu: Any, path: str, params: dict[str, Any], data: str = "normal", seed: int = 7, facts: dict[str, Any] = MACHINE
) -> tuple[Workload, Recorder]:
    cpu.configure(data, seed)
    recorder = Recorder(cpu, facts)
    return BENCHMARKS[path].function(recorder, **params), recorder


def emulated(path: str, workload: Workload) -> emulator.Counts:
    """One launch of a raw kernel, in the emulator."""
    assert isinstance(workload.run, Kernel)
    suite = SUITES[path.split("/")[0]]
    return emulator.emulate(workload.run, FOLDER, tuple(kernel.name for kernel in suite.kernels))


def ran(cpu: Any, path: str, workload: Workload) -> np.ndarray:
    """The output after one call, in double precision, from a poisoned buffer. A raw kernel runs as its counterpart, or
    in the emulator where it has none."""
    cpu.poison(workload.output)
    if isinstance(workload.run, Kernel):
        try:
            cpu.launcher(workload.run, BENCHMARKS[path].file).call()
        except Skip:
            emulated(path, workload)
    else:
        workload.call()
    cpu.synchronize()
    return doubles(workload.output)


def doubles(tensor: Any) -> np.ndarray:
    return tensor.double().numpy()


def judged(cpu: Any, workload: Workload) -> None:
    from gpubench import check

    check.judge(cpu.compare(workload.output, workload.reference()), workload)


def macros(file: str) -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(r"^#define (\w+) (\d+)$", (FOLDER / file).read_text(), re.M)}


def by_loops(
    inputs: list[np.ndarray], path: str, params: dict[str, Any], kernel: Kernel | None
) -> tuple[np.ndarray, int]:
    """What a benchmark ought to write, and the additions and multiplications it takes, counted one by one."""
    name = path.split("/")[1].removeprefix("torch-")
    if name == "copy":
        return inputs[0], 0
    if name in ("fill", "write", "zero"):
        return np.full(params["mib"] * 2**18, 0.0 if name == "zero" else 3.0), 0
    if name == "scale":
        return 3 * inputs[0], inputs[0].size
    if name == "triad":
        return 3 * inputs[0] + inputs[1], 2 * inputs[0].size
    if name == "sum":
        return np.array([math.fsum(row) for row in inputs[0]]), sum(len(row) - 1 for row in inputs[0])
    if path == "peak/matmul" and params["dtype"] == "int8":
        inputs = [np.trunc(np.clip(32 * inputs[0], -127, 127)), np.trunc(np.clip(32 * inputs[1].T, -127, 127))]
    if name in ("matmul", "zeros", "best-of-many"):
        return matmul_by_loops(*inputs, params.get("layout", "nn"))
    if name in ("host-clock", "hot-cache", "cold-start"):
        return 3 * inputs[0], inputs[0].size
    assert kernel is not None
    return {"read": read, "l2-read": l2_read, "shared-read": shared_read, "fma": fma}[name](inputs, params, kernel)


def matmul_by_loops(a: np.ndarray, b: np.ndarray, layout: str) -> tuple[np.ndarray, int]:
    a, b = (a.T if layout == "tn" else a), (b.T if layout == "nt" else b)
    out, flops = np.zeros((a.shape[0], b.shape[1])), 0
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            for p in range(a.shape[1]):
                out[i, j] += a[i, p] * b[p, j]
                flops += 2
    return out, flops


def read(inputs: list[np.ndarray], params: dict[str, Any], kernel: Kernel) -> tuple[np.ndarray, int]:
    """Which block an element belongs to, from its place."""
    grid, threads = kernel.grid[0], kernel.block[0]
    access = np.arange(inputs[0].size) // (params["vector"] // 4)
    block = access // (threads * params["unroll"]) % grid
    terms = np.bincount(block, minlength=grid)
    assert terms.min() > 0
    return np.bincount(block, weights=inputs[0], minlength=grid), int((terms - 1).sum())


def l2_read(inputs: list[np.ndarray], params: dict[str, Any], kernel: Kernel) -> tuple[np.ndarray, int]:
    """Tile after tile, pass after pass, each to the next block."""
    tiles = inputs[0].reshape(-1, 4 * params["unroll"] * params["threads"])
    sums, terms = np.zeros(kernel.grid[0]), np.zeros(kernel.grid[0], int)
    for turn in range(len(tiles) * 128):
        sums[turn % len(sums)] += tiles[turn % len(tiles)].sum()
        terms[turn % len(sums)] += tiles.shape[1]
    assert inputs[0].nbytes // 2 <= MACHINE["last_level_cache_bytes"] * params["percent"] / 100  # float32 there
    return sums, int((terms - 1).sum())


def shared_read(inputs: list[np.ndarray], params: dict[str, Any], kernel: Kernel) -> tuple[np.ndarray, int]:
    """A thread begins at its own vector and goes on by a warp, 512 times 8 vectors."""
    grid, threads = kernel.grid[0], 1024
    assert (grid, kernel.block[0]) == (params["blocks"] * MACHINE["multiprocessors"], threads)
    vectors, sums, terms = inputs[0].reshape(threads, 4).sum(1), np.zeros(threads), 0
    for step in range(512 * 8):
        sums += vectors[(np.arange(threads) + 32 * step) % threads]
        terms += 4
    return np.tile(sums, (grid, 1)), grid * threads * (terms - 1)


def fma(inputs: list[np.ndarray], params: dict[str, Any], kernel: Kernel) -> tuple[np.ndarray, int]:
    """Links counted one by one for one round of one thread, in the arithmetic of the format itself."""
    import torch

    lanes = LANES[params["format"]]
    dtype = {"fp32": "float32", "fp64": "float64", "fp16x2": "float16", "bf16x2": "bfloat16", "int32": "int32"}
    known, rounds, n = macros("peak.cu"), int(kernel.args[2]), kernel.grid[0] * kernel.block[0]
    one = torch.ones(lanes, dtype=getattr(torch, dtype[params["format"]]))
    total, flops = 0.0, 0
    for chain in range(known["CHAINS"]):
        x = one * chain
        for _ in range(known["LINKS"]):
            x = one * x + one
            flops += 2 * lanes
        total += float(x.double().sum())
    return np.full(n, rounds * total), n * rounds * flops


def test_every_benchmark_has_its_smallest_points() -> None:
    assert set(SMALLEST) == set(BENCHMARKS)
    for path, given in SMALLEST.items():
        assert all(set(point) == set(BENCHMARKS[path].axes) for point in given), path


@pytest.mark.parametrize(("path", "params"), points(run=False))
def test_flops_bytes_and_reference_by_brute_force(cpu: Any, path: str, params: dict[str, Any]) -> None:
    workload, recorder = build(cpu, path, params)
    kernel = workload.run if isinstance(workload.run, Kernel) else None
    expected, flops = by_loops([doubles(tensor) for tensor in recorder.inputs], path, params, kernel)
    assert workload.flops == flops
    assert (type(workload.flops), type(workload.bytes)) == (int, int)
    np.testing.assert_allclose(doubles(workload.reference()), expected, rtol=1e-12, atol=1e-12)
    if path in ("bandwidth/l2-read", "bandwidth/shared-read", "peak/fma"):
        return
    tensors = [*recorder.inputs, workload.output]
    sizes = {tensor.untyped_storage().data_ptr(): tensor.numel() * tensor.element_size() for tensor in tensors}
    if params.get("dtype") == "int8":  # drawn in float32
        sizes = dict(enumerate([*(tensor.numel() for tensor in recorder.inputs), 4 * workload.output.numel()]))
    assert workload.bytes == sum(sizes.values())
    assert recorder.outputs == [] or (len(recorder.outputs) == 1 and workload.output is recorder.outputs[0])


@pytest.mark.parametrize(("path", "params"), points())
def test_a_call_writes_the_whole_output_right(cpu: Any, path: str, params: dict[str, Any]) -> None:
    workload, _ = build(cpu, path, params)
    assert not np.isnan(ran(cpu, path, workload)).any()
    judged(cpu, workload)


@pytest.mark.parametrize(("path", "params"), points())
def test_one_wrong_element_is_found(cpu: Any, path: str, params: dict[str, Any]) -> None:
    workload, _ = build(cpu, path, params)
    ran(cpu, path, workload)
    flat = workload.output.view(-1)
    flat[-1] = -flat[-1] - 1
    with pytest.raises(WrongResult):
        judged(cpu, workload)


@pytest.mark.parametrize("path", ON_CPU)
def test_the_seed_decides_the_values(cpu: Any, path: str) -> None:
    *_, (_, params) = (point.values for point in points(path))
    first, again, other = (ran(cpu, path, build(cpu, path, params, seed=seed)[0]) for seed in (1, 1, 2))
    assert (first == again).all()
    constant = ("bandwidth/write", "bandwidth/torch-fill", "bandwidth/torch-zero", "peak/fma")
    assert path in constant or (first != other).any()


@pytest.mark.parametrize("data", ["uniform", "zeros"])
@pytest.mark.parametrize("path", ON_CPU)
def test_other_data_pass_the_check_too(cpu: Any, path: str, data: str) -> None:
    workload, _ = build(cpu, path, SMALLEST[path][0], data=data)
    ran(cpu, path, workload)
    judged(cpu, workload)


@pytest.mark.parametrize("path", ["matmul-sweep/matmul", "peak/matmul", "bandwidth/triad", "bandwidth/torch-triad"])
def test_the_two_operands_differ(cpu: Any, path: str) -> None:
    params = SMALLEST[path][0] | {"n": 4, "m": 4, "k": 4, "shape": "4x4x4"}
    _, recorder = build(cpu, path, {name: params[name] for name in BENCHMARKS[path].axes})
    a, b = recorder.inputs
    assert (doubles(a) != doubles(b)).any()


@pytest.mark.parametrize(("path", "params"), points(run=False))
def test_what_a_workload_says_of_itself(cpu: Any, path: str, params: dict[str, Any]) -> None:
    workload, _ = build(cpu, path, params)
    suite, name = path.split("/")
    if suite in ("data-pattern", "sustained", "traps"):
        assert workload.roof is None
        return
    if suite == "bandwidth":
        memory = {"l2-read": "L2", "shared-read": "shared memory"}.get(name, "DRAM")
        plain = {"torch-sum": "read", "torch-fill": "write", "torch-zero": "write"}.get(name, re.sub(r".*-", "", name))
        assert workload.roof == f"{memory} {plain}"
        assert (workload.level, workload.dtype) == (memory.removesuffix(" memory"), "float32")
        assert workload.headline == "bytes"
        return
    assert (workload.headline, workload.level) == ("flops", None)
    if name == "fma":
        assert (workload.roof, workload.accumulate) == (f"{params['format']} FMA", "exact")
        return
    dtype = params["dtype"]
    exact = {"float64": "float64", "int8": "exact"}
    assert workload.dtype == dtype
    assert workload.precision == ("tf32" if dtype == "tf32" else "ieee")
    assert workload.accumulate == exact.get(dtype, "float32")
    assert workload.reduction == (params["k"] if "k" in params else int(params["shape"].split("x")[2]))
    assert workload.output.element_size() == ITEMSIZE[dtype]
    assert workload.roof == f"{dtype} matmul"
    assert workload.reference_name == "float64 matmul" + (" in two parts, reversed" if dtype == "float64" else "")


@pytest.mark.parametrize("path", ["bandwidth/read", "bandwidth/l2-read"])
def test_the_reduction_is_the_most_terms_of_a_block(cpu: Any, path: str) -> None:
    for params in SMALLEST[path]:
        workload, recorder = build(cpu, path, params)
        grid, block = workload.run.grid[0], workload.run.block[0]
        tile = block * params["unroll"] * params.get("vector", 16) // 4
        turns = math.ceil(recorder.inputs[0].numel() / tile) * (1 if path == "bandwidth/read" else 128)
        assert workload.reduction == tile * max(len(range(first, turns, grid)) for first in range(grid))


# Raw kernels


@pytest.mark.parametrize(("path", "params"), points(*(f"bandwidth/{name}" for name in STREAMS)))
def test_a_stream_itself_writes_what_its_counterpart_does(cpu: Any, path: str, params: dict[str, Any]) -> None:
    workload, recorder = build(cpu, path, params)
    as_counterpart = ran(cpu, path, workload)
    cpu.poison(workload.output)
    did = emulated(path, workload)
    np.testing.assert_allclose(doubles(workload.output), as_counterpart, rtol=1e-4, atol=1e-3)
    judged(cpu, workload)
    if params["hint"] == "streaming":  # then every access is counted
        written = 0 if path == "bandwidth/read" else workload.output.nbytes
        assert (did.loaded, did.stored) == (sum(tensor.nbytes for tensor in recorder.inputs), written)
    assert did.fused == (recorder.inputs[0].numel() if path == "bandwidth/triad" else 0)


@pytest.mark.parametrize(("path", "params"), points("bandwidth/l2-read"))
def test_the_bytes_read_from_the_l2_are_those_loaded(cpu: Any, path: str, params: dict[str, Any]) -> None:
    workload, _ = build(cpu, path, params)
    assert emulated(path, workload).loaded == workload.bytes
    judged(cpu, workload)


@pytest.mark.parametrize(("path", "params"), points("bandwidth/shared-read"))
def test_the_bytes_read_from_shared_memory(cpu: Any, path: str, params: dict[str, Any]) -> None:
    workload, _ = build(cpu, path, params)
    vector, unrolled, passes = 16, 8, int(workload.run.args[2])
    assert workload.bytes == math.prod((*workload.run.grid, *workload.run.block)) * unrolled * passes * vector
    assert f"u < {unrolled}" in (FOLDER / "bandwidth.cu").read_text().split("shared_read(")[1]


@pytest.mark.parametrize("format", ["fp32", "fp64", "int32"])
def test_the_flops_of_a_chain_are_its_fused_multiply_adds(cpu: Any, format: str) -> None:
    params = {"format": format, "threads": 20, "blocks": 2}
    workload, _ = build(cpu, "peak/fma", params)
    cpu.poison(workload.output)
    did = emulated("peak/fma", workload)
    judged(cpu, workload)
    assert workload.flops == 2 * did.fused or format == "int32"
    assert workload.bytes == 0


def test_the_constants_of_the_chains_are_those_of_their_sources(cpu: Any) -> None:
    known = globals_of("peak/fma")
    for file in ("peak.cu", "peak.cpp"):
        assert {name: macros(file)[name] for name in ("CHAINS", "LINKS")} == {
            name: known[name] for name in ("CHAINS", "LINKS")
        }
    assert macros("peak.cu")["LINKS"] % macros("peak.cu")["UNROLLED"] == 0
    largest = macros("peak.cu")["LINKS"] + macros("peak.cu")["CHAINS"] - 1
    assert largest <= 256, "beyond it bfloat16 does not count by ones"


@pytest.mark.parametrize(
    ("path", "params", "reason"),
    [
        ("bandwidth/l2-read", SMALLEST["bandwidth/l2-read"][0], "no CPU counterpart of l2_read in bandwidth.cpp"),
        ("bandwidth/shared-read", {"blocks": 1}, "no CPU counterpart of shared_read in bandwidth.cpp"),
        *(
            ("peak/fma", {"format": format, "threads": 32, "blocks": 1}, "no CPU counterpart of fma_chains in peak.cpp")
            for format in ("fp16x2", "bf16x2", "int32")
        ),
    ],
)
def test_what_a_cpu_has_no_counterpart_of(cpu: Any, path: str, params: dict[str, Any], reason: str) -> None:
    workload, _ = build(cpu, path, params)
    with pytest.raises(Skip) as skip:
        cpu.launcher(workload.run, BENCHMARKS[path].file)
    assert skip.value.reason == reason


@pytest.mark.parametrize("path", ["bandwidth/read", "bandwidth/l2-read"])
def test_a_sum_over_a_block_takes_whole_warps(cpu: Any, path: str) -> None:
    with pytest.raises(Skip, match="blocks of 40 threads are not whole warps of 32"):
        build(cpu, path, SMALLEST[path][0] | {"threads": 40})


def test_an_l2_of_unknown_size_is_skipped(cpu: Any) -> None:
    with pytest.raises(Skip, match="the size of the L2 cache is not known"):
        build(cpu, "bandwidth/l2-read", SMALLEST["bandwidth/l2-read"][0], facts={"last_level_cache_bytes": None})


def test_every_kernel_is_used_at_its_default_points(cpu: Any) -> None:
    """A launch that its declaration refuses would be found on a GPU only: here all of them are built, in small."""
    for kind in ("cuda", "cpu"):
        seen = set()
        for path, bench in BENCHMARKS.items():
            for params in bench.cases(kind) if SUITES[bench.suite].kernels else ():
                small = params | ({"mib": 1} if "mib" in params else {"shape": "1x1x1"} if "shape" in params else {})
                if isinstance(run := build(cpu, path, small)[0].run, Kernel):
                    seen.add(run.name)
        assert seen == {kernel.name for suite in SUITES.values() for kernel in suite.kernels}


# Matrix products


@pytest.mark.parametrize(
    ("n", "m", "k", "dtype", "layout", "label"),
    [
        (1024, 1024, 1024, "bfloat16", "nn", "256 B"),
        (8, 8, 8, "bfloat16", "nn", "16 B"),
        (9, 8, 8, "bfloat16", "nn", "2 B"),  # rows of B and C
        (9, 8, 8, "float32", "nt", "4 B"),  # rows of C
        (8, 9, 8, "float32", "nn", "32 B"),  # m is no row's length unless A is stored transposed
        (8, 9, 8, "float32", "tn", "4 B"),
        (8, 8, 9, "float32", "tn", "32 B"),  # k is no row's length in tn
        (1, 1, 1, "float64", "nn", "8 B"),
    ],
)
def test_the_class_is_the_alignment_of_the_rows(
    cpu: Any, n: int, m: int, k: int, dtype: str, layout: str, label: str
) -> None:
    params = {"n": n, "m": m, "k": k, "dtype": dtype, "layout": layout}
    workload, recorder = build(cpu, "matmul-sweep/matmul", params)
    strides = [tensor.stride(0) * tensor.element_size() for tensor in (*recorder.inputs, *recorder.outputs)]
    assert math.gcd(256, *strides) == int(label.split()[0])
    assert workload.labels == {"alignment": label}


def test_a_cpu_has_no_tf32_and_no_float8(cpu: Any) -> None:
    workload, _ = build(cpu, "peak/matmul", {"shape": "1x1x1", "dtype": "tf32"})
    with pytest.raises(Unsupported, match="tf32"), cpu.precision(workload.precision):
        pass
    with pytest.raises(Unsupported, match="float8"):
        build(cpu, "peak/matmul", {"shape": "1x1x1", "dtype": "float8_e4m3"})


def faults() -> dict[str, Any]:
    """Ways in which a library may get a float64 product wrong."""

    def without_last_terms(a: Any, b: Any) -> Any:
        return np.matmul(a[:, :-8], b[:-8])

    def without_last_row(a: Any, b: Any) -> Any:
        return np.concatenate([np.matmul(a[:-1], b), np.zeros((1, b.shape[1]))])

    def without_last_column(a: Any, b: Any) -> Any:
        return np.concatenate([np.matmul(a, b[:, :-1]), np.zeros((a.shape[0], 1))], axis=1)

    def narrow(x: Any) -> Any:
        return x.astype(np.float32).astype(np.float64)

    return {
        "operands rounded": lambda a, b: np.matmul(narrow(a), narrow(b)),
        "left operand rounded": lambda a, b: np.matmul(narrow(a), b),
        "right operand rounded": lambda a, b: np.matmul(a, narrow(b)),
        "result rounded": lambda a, b: narrow(np.matmul(a, b)),
        "last terms left out": without_last_terms,
        "last row left out": without_last_row,
        "last column left out": without_last_column,
    }


@pytest.mark.parametrize("fault", [None, *faults()])
@pytest.mark.parametrize("path", ["matmul-sweep/matmul", "peak/matmul"])
def test_a_library_that_gets_every_float64_product_wrong_is_found(
    cpu: Any, monkeypatch: pytest.MonkeyPatch, path: str, fault: str | None
) -> None:
    """Its products make the reference too."""
    import torch

    multiply = np.matmul if fault is None else faults()[fault]

    def product(a: Any, b: Any, out: Any = None) -> Any:
        made = torch.from_numpy(np.ascontiguousarray(multiply(a.numpy(), b.numpy())))
        return made if out is None else out.copy_(made)

    params = {"n": 40, "m": 48, "k": 64, "shape": "48x40x64", "dtype": "float64", "layout": "nn"}
    workload, _ = build(cpu, path, {name: params[name] for name in BENCHMARKS[path].axes})
    with monkeypatch.context() as patched:
        patched.setattr(torch, "mm", product)
        patched.setattr(torch.Tensor, "__matmul__", product)
        workload.call()
        reference = workload.reference()
    judge = replace(workload, reference=lambda: reference)
    if fault is None:
        judged(cpu, judge)
    else:
        with pytest.raises(WrongResult):
            judged(cpu, judge)


def sizes(path: str, kind: str, quick: bool = False) -> list[Any]:
    return [case["n"] for case in BENCHMARKS[path].cases(kind, quick)]


def test_matmul_sweep_has_the_sizes_of_its_description() -> None:
    asked = set(range(256, 4353, 64)) | set(range(1700, 1901, 4)) | set(range(1788, 1801))
    for multiple in range(256, 4353, 256):
        for step in (1, 2, 4, 8):
            asked |= {multiple - step, multiple + step}
    found = sizes("matmul-sweep/matmul", "cuda")
    assert found == sorted(asked)
    assert len(found) >= 200
    assert {1791, 1792, 1793} <= set(found)
    on_cpu = sizes("matmul-sweep/matmul", "cpu")
    assert on_cpu == [n for n in found if n <= 1024]
    assert on_cpu[-1] == 1024


def test_quick_sizes_are_few_and_keep_the_cliff() -> None:
    gpu, cpu = (sizes("matmul-sweep/matmul", kind, quick=True) for kind in ("cuda", "cpu"))
    assert len(gpu) <= 12
    assert {1791, 1792, 1793} <= set(gpu)
    assert len(cpu) <= 12
    assert {255, 256, 257, 511, 512, 513} <= set(cpu)
    assert max(cpu) <= 1024


# Cases and plans


@pytest.mark.parametrize(("kind", "dtype"), [("cuda", "bfloat16"), ("cpu", "float32")])
@pytest.mark.parametrize("quick", [False, True])
def test_default_cases(kind: str, dtype: str, quick: bool) -> None:
    for path, bench in BENCHMARKS.items():
        cases = list(bench.cases(kind, quick))
        assert cases, path
        assert len({tuple(case.values()) for case in cases}) == len(cases), path
        for case in cases:
            assert list(case) == list(bench.axes)
            assert case.get("dtype", dtype) == dtype
            assert case.get("layout", "nn") == "nn"
            assert case.get("m", case.get("n")) == case.get("k", case.get("n")) == case.get("n")


def test_every_benchmark_has_a_first_line() -> None:
    for path, bench in BENCHMARKS.items():
        assert bench.doc.endswith("."), path


def test_a_suite_is_named_after_its_file() -> None:
    assert set(SUITES) | ELSEWHERE == {stem.replace("_", "-") for stem in STEMS}


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
@pytest.mark.parametrize("name", ["quick", "ceilings"])
def test_a_plan_that_is_quick_takes_the_quick_values(name: str, kind: str) -> None:
    assert LIBRARY.plan(name).values["quick"] is True
    rows = cases(select([name], LIBRARY), kind, quick=True)
    paths = dict.fromkeys(f"{row.suite}/{row.benchmark}" for row in rows)
    assert [row.params for row in rows] == [case for path in paths for case in BENCHMARKS[path].cases(kind, quick=True)]
    assert len(rows) <= 40


@pytest.mark.parametrize(("kind", "dtype"), [("cuda", "bfloat16"), ("cpu", "float32")])
def test_the_ceilings_plan_has_every_roof(cpu: Any, kind: str, dtype: str) -> None:
    small = {"mib": 1, "shape": "2x2x2"}
    roofs = set()
    for row in cases(select(["ceilings"], LIBRARY), kind, quick=True):
        params = {name: small.get(name, value) for name, value in row.params.items()}
        roofs.add(build(cpu, f"{row.suite}/{row.benchmark}", params)[0].roof)
    assert {"DRAM copy", "DRAM read", "DRAM triad", "DRAM write", f"{dtype} matmul"} <= roofs


def test_suites_load_without_torch_and_numpy() -> None:
    lines = ["import importlib.util, sys"]
    for stem in STEMS:
        lines += [
            f"spec = importlib.util.spec_from_file_location('{stem}', {str(FOLDER / stem) + '.py'!r})",
            "module = importlib.util.module_from_spec(spec)",
            "sys.modules[spec.name] = module",
            "spec.loader.exec_module(module)",
            "assert module.suite.benchmarks",
        ]
    lines.append("print(sorted({'torch', 'numpy', 'cupy', 'pydantic', 'rich', 'yaml'} & set(sys.modules)))")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True, cwd=FOLDER.parent
    )
    assert done.stdout.strip() == "[]"
