"""Sectors of a request, against addresses taken one by one."""

from __future__ import annotations

import random

import pytest

from gpubench.model import memory


def touched(elements: list[int], itemsize: int) -> int:
    return len({(itemsize * element + byte) // 32 for element in elements for byte in range(itemsize)})


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("offset", [0, 1, 7, 8, 31])
def test_strides_by_touching_bytes(itemsize: int, offset: int) -> None:
    for stride in (1, 2, 3, 8, 33, 64):
        elements = [offset + lane * stride for lane in range(32)]
        assert memory.strided(stride, itemsize, offset) == touched(elements, itemsize)


def test_the_figures_of_the_lecture() -> None:
    assert [memory.strided(stride, 4) for stride in (1, 2, 4, 8, 16, 32)] == [4, 8, 16, 32, 32, 32]
    assert [memory.strided(1, 4, offset) for offset in range(9)] == [4, *[5] * 7, 4]
    assert memory.sectors([0] * 32, 4) == 1


@pytest.mark.parametrize(
    ("width", "pitch"), [(8, 32), (8, 33), (16, 65), (32, 128), (32, 129), (64, 257), (8, 34), (4, 5)]
)
def test_rows_by_walking_many(width: int, pitch: int) -> None:
    places = [row * pitch + column for row in range(32 * 64) for column in range(width)]
    requests = [places[first : first + 32] for first in range(0, len(places), 32)]
    assert memory.rows(width, pitch, 4) == sum(touched(one, 4) for one in requests) / len(requests)


@pytest.mark.parametrize("window", [1, 8, 32, 64, 1024])
def test_gathers_by_drawing(window: int) -> None:
    draw = random.Random(0)
    seen = []
    for _ in range(300):
        places = [
            at
            for first in range(0, max(window, 32), window)
            for at in draw.sample(range(first, first + window), window)
        ]
        seen += [touched(places[first : first + 32], 4) for first in range(0, len(places), 32)]
    assert memory.gather(window, 4) == pytest.approx(sum(seen) / len(seen), rel=0.02)


def test_shares() -> None:
    assert memory.useful_share(128, 4) == 1
    assert memory.useful_share(256, 5, 4) == pytest.approx(8 / 9)
    assert [memory.strided_share(stride, 4, 32) for stride in (1, 2, 8, 64)] == [1, 1 / 2, 1 / 8, 1 / 8]
    assert memory.strided_share(64, 4, 64) == 1 / 16
