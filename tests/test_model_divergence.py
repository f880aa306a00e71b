"""What a warp executes, against lanes followed one by one."""

from __future__ import annotations

import pytest

from gpubench.model import divergence


def stepped(paths: list[int], lengths: list[int]) -> tuple[int, int]:
    """Instructions issued and lanes active in them, path by path, instruction by instruction."""
    issued = active = 0
    for path, length in enumerate(lengths):
        lanes = sum(taken == path for taken in paths)
        for _ in range(length if lanes else 0):
            issued += 1
            active += lanes
    return issued, active


@pytest.mark.parametrize(
    ("paths", "lengths"),
    [
        ([0] * 32, [10]),
        ([0] * 4 + [1] * 28, [10, 10]),
        ([0] * 31 + [1], [5, 20]),
        ([lane % 3 for lane in range(32)], [7, 7, 7, 7]),
        (list(range(32)), [4] * 32),
    ],
)
def test_by_stepping(paths: list[int], lengths: list[int]) -> None:
    issued, active = stepped(paths, lengths)
    found = divergence.warp(paths, lengths)
    assert found["instructions"] == issued
    assert found["threads_per_instruction"] == pytest.approx(active / issued)
    assert found["relative_time"] == pytest.approx(issued / max(lengths[path] for path in paths))


def test_the_split_does_not_matter_only_that_there_is_one() -> None:
    times = [divergence.warp([0] * k + [1] * (32 - k), [9, 9])["relative_time"] for k in range(33)]
    assert times == [1, *[2] * 31, 1]


def test_the_worst_is_one_lane_in_32() -> None:
    assert divergence.warp(list(range(32)), [3] * 32)["threads_per_instruction"] == 1


def test_nothing_to_execute() -> None:
    with pytest.raises(ValueError, match="executes nothing"):
        divergence.warp([0] * 32, [0])
