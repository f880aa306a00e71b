"""Grids of products: tiles, clusters, stripes, persistent grids, and the lecture's example on its own GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpubench.model.kernel_facts import facts
from gpubench.model.launches import Cover, cover, planned

NVJET = "nvjet_sm90_tst_{}_64x4_{}_h_bz_coopA_NNT"
NARROW = "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_{}_nn_align1>"
SLICED = "nvjet_sm90_hsh_64x8_64x12_4x1_v_bz_splitK_TNT"
XMMA = "sm90_xmma_gemm_f64f64_f64f64_f64_nn_n_tilesize128x64x16_stage3_warpsize2x2x1_tensor16x8x8_execute_kernel"


def covered(name: str, m: int, n: int, grid: list[int], multiprocessors: int = 132) -> Cover:
    found = cover(facts(name), m, n, grid, multiprocessors)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "n", "grid", "expected"),
    [  # launches of the reference sweep: tiles, work, turns
        (NVJET.format("256x128", "1x4"), 1792, [4, 28, 1], (98, 112, 1)),  # 7 × 14, the 14 made up to whole clusters
        (NVJET.format("256x128", "1x2"), 4096, [2, 66, 1], (512, 512, 4)),  # persistent
        (NVJET.format("256x128", "4x2"), 2560, [8, 15, 1], (200, 240, 2)),  # persistent, in clusters of 8
        (NARROW.format("256x128"), 1793, [120, 1, 1], (120, 120, 1)),
        (NARROW.format("128x128"), 2049, [136, 3, 4], (289, 1156, 9)),  # stripes of 8, and four slices of K
        (NARROW.format("64x64"), 257, [20, 2, 3], (25, 75, 1)),  # stripes of 4
        (SLICED, 256, [4, 96, 1], (128, 384, 3)),  # three slices of K, in no dimension of their own
    ],
)
def test_a_grid_is_reproduced(name: str, n: int, grid: list[int], expected: tuple[int, ...]) -> None:
    found = covered(name, n, n, grid)
    assert (found.tiles, found.work, found.turns) == expected


def test_the_side_of_the_tile_that_lies_along_the_rows_shows_in_a_product_that_is_not_square() -> None:
    cublas = covered(NARROW.format("128x256"), 8192, 4096, [256, 4, 1])
    assert (cublas.tile, cublas.orientation) == ((256, 128), "columns")
    xmma = covered(XMMA, 8192, 4096, [64, 64, 1])
    assert (xmma.tile, xmma.orientation) == ((128, 64), "rows")
    other = covered(NARROW.format("128x64"), 1000, 300, [40, 1, 1])  # 8 × 5 tiles, and 16 × 3 the other way
    assert other.tile == (128, 64)
    assert other.orientation == "rows"


@pytest.mark.parametrize("grid", [[119, 1, 1], [4, 29, 1], [1, 1, 1], [], [120, 1], [0, 1, 1], [60, 1, 1]])
def test_a_grid_of_another_size_is_not(grid: list[int]) -> None:
    assert cover(facts(NARROW.format("256x128")), 1793, 1793, grid, 132) is None


def test_a_grid_is_no_slices_of_k_by_name_alone() -> None:
    kernel = facts(SLICED)
    assert cover(kernel, 256, 256, [4, 95, 1], 132) is None, "no multiple of its 128 tiles"
    assert cover(kernel, 256, 256, [4, 32 * 33, 1], 132) is None, "more slices than are ever cut"
    assert cover(facts(SLICED.replace("_splitK", "")), 256, 256, [4, 96, 1], 132) is None


@pytest.mark.parametrize("grid", [[130, 1, 1], [2, 33, 1], [1, 131, 1]])
def test_a_persistent_grid_has_a_block_for_each_multiprocessor(grid: list[int]) -> None:
    kernel = facts(NVJET.format("256x128", "1x2"))
    assert cover(kernel, 4096, 4096, [2, 66, 1], 132) is not None
    assert cover(kernel, 4096, 4096, grid, 132) is None
    assert cover(facts(NARROW.format("256x128")), 4096, 4096, [132, 1, 1], 132) is None, "older ones have one a tile"


@pytest.mark.parametrize("change", [{"role": "vector"}, {"tile": None}, {"tile": (0, 8)}])
def test_what_is_no_tiled_product_has_no_cover(change: dict[str, Any]) -> None:
    assert cover(replace(facts(NARROW.format("256x128")), **change), 1793, 1793, [120, 1, 1], 132) is None


def test_the_lectures_example_takes_two_waves_on_an_a100_and_one_on_an_h200() -> None:
    kernel = facts("ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_nn")
    a100 = [planned(kernel, n, n, 108) for n in (1792, 1793)]
    assert [(found.tiles, found.turns) for found in a100] == [(98, 1), (120, 2)]
    assert a100[0].idle == pytest.approx(10 / 108)
    assert a100[1].idle == pytest.approx(96 / 216)
    assert [planned(kernel, n, n, 132).turns for n in (1792, 1793, 2048, 2049)] == [1, 1, 1, 2]


def test_clusters_that_leave_multiprocessors_over_idle_them() -> None:
    found = covered(NVJET.format("256x128", "4x2"), 2560, 2560, [8, 15, 1])
    assert found.places == 120
    assert found.idle == pytest.approx(1 - 200 / (2 * 132))
