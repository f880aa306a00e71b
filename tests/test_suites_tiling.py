"""The suite tiling without a GPU: its kernels in the emulator, its analogues on the CPU, on matrices of odd sizes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import emulator
import numpy as np
import pytest
from machine import FOLDER, GPU, build, doubles, emulated, globals_of, judged, on_cpu

from gpubench.errors import Skip, Unsupported, WrongResult
from gpubench.model import tiling
from gpubench.workload import Kernel, Workload

GLOBALS = globals_of("tiling/ladder")
RUNGS = ["naive", "coalesced", "shared", "registers-1d", "registers-2d", "vectorised", "warp-tile"]
SIZES = [1, 33, 68, 132]
"""Inside one tile and over its edge, rows aligned to 16 bytes (68, 132) and not."""
UNEVEN = [(1, 1, 1), (3, 130, 17), (129, 4, 8), (130, 132, 36), (5, 129, 40)]
"""m, n, k"""


def right(cpu: Any, path: str, workload: Workload) -> None:
    """One call in the emulator from a poisoned output, judged, and the multiply-adds that were counted."""
    cpu.poison(workload.output)
    emulated(path, workload)
    judged(cpu, workload)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("rung", RUNGS)
def test_a_rung_is_right_at_any_size(cpu: Any, rung: str, n: int) -> None:
    right(cpu, "tiling/ladder", build(cpu, "tiling/ladder", rung=rung, n=n))


@pytest.mark.parametrize("tile", [8, 16])
@pytest.mark.parametrize("n", [1, 33])
def test_a_tile_of_any_size_is_right(cpu: Any, tile: int, n: int) -> None:
    right(cpu, "tiling/tile-size", build(cpu, "tiling/tile-size", tile=tile, n=n))


@pytest.mark.parametrize(("columns", "depth"), [(128, 8), (128, 16), (256, 8), (256, 16)])
@pytest.mark.parametrize(("m", "n", "k"), UNEVEN)
def test_every_warp_tile_is_right_on_uneven_matrices(
    cpu: Any, columns: int, depth: int, m: int, n: int, k: int
) -> None:
    tile = tiling.Tile(128, columns, depth)
    right(cpu, "tiling/warp-tiles", GLOBALS["product"](cpu, m, n, k, GLOBALS["warp_tile"](tile, m, n)))


@pytest.mark.parametrize(("columns", "depth"), [(128, 16), (256, 8)])
def test_a_warp_tile_takes_whole_tiles_and_edges_in_turn(cpu: Any, columns: int, depth: int) -> None:
    tile = tiling.Tile(128, columns, depth)
    m, n, k = (
        132,
        columns + 4,
        4 * depth + 1,
    )  # a whole tile, with a last pair that is cut short, and three at the edges
    right(cpu, "tiling/warp-tiles", GLOBALS["product"](cpu, m, n, k, GLOBALS["warp_tile"](tile, m, n)))


def test_the_multiply_adds_of_a_rung_are_those_of_its_tiles(cpu: Any) -> None:
    workload = build(cpu, "tiling/ladder", rung="registers-2d", n=64)
    assert emulated("tiling/ladder", workload).fused == tiling.executed_flops(64, 64, 64, tiling.Tile(128, 128, 8)) // 2
    assert workload.flops == 2 * 64**3


@pytest.mark.parametrize("n", [1, 24, 33, 132])
def test_the_tensor_rung_is_right_at_any_size(cpu: Any, n: int) -> None:
    workload = build(cpu, "tiling/tensor", by="mma", n=n)
    assert (workload.precision, workload.dtype) == ("tf32", "tf32")
    right(cpu, "tiling/tensor", workload)
    exact = doubles(workload.run.args[0]) @ doubles(workload.run.args[1])
    error = np.abs(doubles(workload.output) - exact).max()
    assert error > 1e-6 or n == 1, "operands are rounded to TF32"


@pytest.mark.parametrize(
    ("rung", "from_text", "to_text"),
    [
        ("shared", "__syncthreads();\n#pragma", "\n#pragma"),
        ("registers-2d", "if (row + r < m &&", "if (row + r + 1 < m &&"),
        ("vectorised", "for (int p = 0; p < k; p += 8)", "for (int p = 0; p + 8 <= k; p += 8)"),
        ("warp-tile", "        wait_for_groups<STAGES - 2>();\n", ""),
        ("warp-tile", "        __syncthreads();", "        "),
        ("warp-tile", "} else if (k0 < k) {", "} else if (k0 + DEPTH <= k) {"),
    ],
)  # fmt: skip
def test_a_broken_kernel_is_found(cpu: Any, tmp_path: Path, rung: str, from_text: str, to_text: str) -> None:
    """A barrier missing, a tail cut off, copies not waited for."""
    workload = build(cpu, "tiling/ladder", rung=rung, n=36)
    assert isinstance(workload.run, Kernel)
    text = (FOLDER / workload.run.source).read_text()
    assert from_text in text
    shutil.copytree(FOLDER / "include", tmp_path / "include")
    (tmp_path / workload.run.source).write_text(text.replace(from_text, to_text))
    cpu.poison(workload.output)
    emulator.emulate(workload.run, tmp_path, (workload.run.name,))
    with pytest.raises(WrongResult):
        judged(cpu, workload)


@pytest.mark.parametrize("rung", ["naive", "coalesced", "shared"])
@pytest.mark.parametrize("n", [1, 33, 300])
def test_the_first_rungs_on_a_cpu(cpu: Any, rung: str, n: int) -> None:
    workload = build(cpu, "tiling/ladder", cpu.facts(), rung=rung, n=n)
    cpu.poison(workload.output)
    on_cpu(cpu, "tiling/ladder", workload)
    judged(cpu, workload)


def test_the_library_rung_and_what_a_cpu_has_no_counterpart_of(cpu: Any) -> None:
    workload = build(cpu, "tiling/ladder", cpu.facts(), rung="library", n=17)
    workload.call()
    judged(cpu, workload)
    for rung in RUNGS[3:]:
        with pytest.raises(Skip, match="no CPU counterpart"):
            on_cpu(cpu, "tiling/ladder", build(cpu, "tiling/ladder", rung=rung, n=17))
    tensor = build(cpu, "tiling/tensor", by="library", n=17)
    with pytest.raises(Unsupported, match="tf32"), cpu.precision(tensor.precision):
        pass


def test_quantization_is_in_tiles_and_its_control_in_one_wave(cpu: Any) -> None:
    facts = GPU | {"multiprocessors": 8, "shared_memory_per_multiprocessor_bytes": 228 << 10}
    few = {m: build(cpu, "tiling/quantization", facts, grid="one-wave", m=m, k=8) for m in (256, 257, 384)}
    many = {m: build(cpu, "tiling/quantization", facts, grid="many", m=m, k=8) for m in (256, 257, 384)}
    assert {m: work.prediction["blocks"] for m, work in few.items()} == {256: 4, 257: 6, 384: 6}
    assert {work.prediction["waves"] for work in few.values()} == {1}
    assert {m: work.prediction["blocks"] for m, work in many.items()} == {256: 64, 257: 96, 384: 96}
    assert {m: work.prediction["waves"] for m, work in many.items()} == {256: 8, 257: 12, 384: 12}
    assert many[257].prediction["useful_share"] == pytest.approx(257 / 384)
    assert many[257].prediction["executed_flops"] == many[384].flops
    assert {work.labels.get("control") for work in few.values()} == {"one wave"}
    assert all(not work.labels for work in many.values())
    kernel = many[256].run
    assert isinstance(kernel, Kernel)
    assert 2 * kernel.shared_bytes > 228 << 10, "a block has a multiprocessor to itself"
    right(cpu, "tiling/quantization", few[257])


@pytest.mark.parametrize("n", [64, 128])
def test_load_requests_by_counting_warps(cpu: Any, n: int) -> None:
    """Warps of the launch, times loads of a thread written in the source."""
    loads = {"naive": 2 * n, "coalesced": 2 * n, "shared": 2 * n // 32, "registers-1d": 2 * n // 8}
    for rung, each in loads.items():
        workload = build(cpu, "tiling/ladder", rung=rung, n=n)
        assert isinstance(workload.run, Kernel)
        warps = workload.run.grid[0] * workload.run.block[0] // 32
        assert workload.prediction["load_requests"] == warps * each, rung
    for tile in (8, 16, 32):
        tiled = build(cpu, "tiling/tile-size", tile=tile, n=n).prediction
        assert tiled["load_requests"] * tile == 2 * n**3 // 32
        assert tiled["sectors_per_request"] == 4


def test_what_lanes_load_without_tiles(cpu: Any) -> None:
    first = build(cpu, "tiling/ladder", rung="naive", n=64).prediction
    second = build(cpu, "tiling/ladder", rung="coalesced", n=64).prediction
    assert (first["sectors_per_request"], second["sectors_per_request"]) == (16.5, 2.5)
    assert first["load_requests"] == second["load_requests"] == 2 * 64**3 // 32


def test_the_constants_of_the_suite_are_those_of_the_kernels() -> None:
    def defined(file: str) -> dict[str, str]:
        return dict(re.findall(r"^#define (\w+) (\d+)$", (FOLDER / file).read_text(), re.M))

    warp, mma = defined("tiling_warp.cu"), defined("tiling_tensor.cu")
    assert (int(warp["ROWS"]), int(warp["STAGES"]), int(warp["THREADS"])) == (
        GLOBALS["WARP_ROWS"],
        GLOBALS["WARP_STAGES"],
        256,
    )
    assert "#define PITCH (ROWS + 4)" in (FOLDER / "tiling_warp.cu").read_text()
    side, depth, stages = (int(mma[name]) for name in ("SIDE", "DEPTH", "STAGES"))
    assert tiling.Tile(side, side, depth) == GLOBALS["MMA_TILE"]
    assert 4 * stages * (side * (depth + 4) + depth * (side + 8)) == GLOBALS["MMA_BYTES"]


def test_the_ladder_multiplies_without_tensor_cores(cpu: Any) -> None:
    for file in ("tiling.cu", "tiling_warp.cu"):
        text = (FOLDER / file).read_text()
        assert "tensor.cuh" not in text
        assert "mma" not in text
    for rung in [*RUNGS, "library"]:
        assert build(cpu, "tiling/ladder", rung=rung, n=1).precision == "ieee"
