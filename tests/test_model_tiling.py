"""Tiles and waves, against loops that count."""

from __future__ import annotations

import pytest

from gpubench.model import tiling, waves
from gpubench.model.tiling import Tile


@pytest.mark.parametrize(("m", "n"), [(256, 256), (256, 257), (257, 257), (1, 1), (100, 300)])
@pytest.mark.parametrize("tile", [Tile(128, 128, 8), Tile(64, 32, 8), Tile(256, 128, 1)])
def test_tiles_by_walking(m: int, n: int, tile: Tile) -> None:
    corners = [(row, column) for row in range(0, m, tile.rows) for column in range(0, n, tile.columns)]
    elements = len(corners) * tile.rows * tile.columns
    assert tiling.count(m, n, tile) == len(corners)
    assert tiling.useful_share(m, n, tile) == m * n / elements
    assert tiling.executed_flops(m, n, 7, tile) == 2 * elements * 7


def test_the_examples_of_the_lecture() -> None:
    tile = Tile(128, 128, 1)
    assert [tiling.count(256, n, tile) for n in (256, 257)] == [4, 6]
    assert round(tiling.useful_share(256, 257, tile), 2) == 0.67
    assert (tiling.count(257, 257, tile), round(tiling.useful_share(257, 257, tile), 2)) == (9, 0.45)
    assert [tiling.count(n, n, Tile(256, 128, 1)) for n in (1792, 1793)] == [98, 120]


@pytest.mark.parametrize("tile", [Tile(8, 8, 8), Tile(32, 32, 32), Tile(64, 64, 8), Tile(128, 128, 16)])
@pytest.mark.parametrize("vector", [1, 4])
def test_requests_by_counting_loads(tile: Tile, vector: int) -> None:
    m, n, k = 256, 128, 64
    loads = 0
    for _ in range(0, m, tile.rows):
        for _ in range(0, n, tile.columns):
            for _ in range(0, k, tile.depth):
                loads += tile.rows * tile.depth // vector + tile.depth * tile.columns // vector
    assert tiling.requests(m, n, k, tile, vector) == loads // 32
    flops = 2 * m * n * k
    assert tiling.intensity(tile, 4) == pytest.approx(flops / (4 * vector * loads))


def test_a_tile_cuts_requests_by_its_side() -> None:
    n = 2048
    naive = tiling.untiled_requests(n * n // 32, n)
    assert naive == 2 * n**3 // 32
    for side in (8, 16, 32):
        assert naive == side * tiling.requests(n, n, n, Tile(side, side, side))
    assert tiling.intensity(Tile(32, 32, 32), 4) == 32 / 4


@pytest.mark.parametrize("slots", [1, 3, 132])
@pytest.mark.parametrize("blocks", [1, 2, 3, 4, 131, 132, 133, 264, 265, 400])
def test_waves_by_dealing_out(blocks: int, slots: int) -> None:
    left, turns = blocks, []
    while left:
        turns.append(min(left, slots))
        left -= turns[-1]
    found = waves.figures(blocks, slots)
    assert waves.waves(blocks, slots) == found["waves"] == len(turns)
    assert waves.last(blocks, slots) == turns[-1]
    assert found["idle_share"] == pytest.approx(1 - blocks / (len(turns) * slots))
    assert found["idle_share_last_wave"] == pytest.approx(1 - turns[-1] / slots)


def test_the_lectures_second_wave() -> None:
    assert round(waves.figures(120, 108)["idle_share_last_wave"], 2) == 0.89
    assert round(waves.figures(98, 108)["idle_share"], 2) == 0.09, "98 tiles on 108 are not full"
