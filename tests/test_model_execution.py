"""The model of a multiprocessor: warps, units, latencies hidden; and of its banks."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from gpubench.model.banks import column_ways, turns, ways
from gpubench.model.execution import fill, hiding, lanes, matrix

HOPPER: dict[str, Any] = {"compute_capability": "9.0"}
AMPERE: dict[str, Any] = {"compute_capability": "8.0"}


@pytest.mark.parametrize(
    ("threads", "warps", "share"),
    [(1, 1, 1 / 32), (31, 1, 31 / 32), (32, 1, 1), (33, 2, 33 / 64), (64, 2, 1), (65, 3, 65 / 96), (1024, 32, 1)],
)
def test_a_block_costs_whole_warps(threads: int, warps: int, share: float) -> None:
    assert fill(threads) == {"warps": warps, "fill": share}


@pytest.mark.parametrize(
    ("unit", "facts", "found"),
    [("fp32", AMPERE, 64), ("fp32", HOPPER, 128), ("int32", HOPPER, 64), ("exp2", HOPPER, 16), ("rsqrt", AMPERE, 16)],
)
def test_lanes_a_clock(unit: str, facts: dict[str, Any], found: int) -> None:
    """C13: FFMA 64 and 128, MUFU 16."""
    assert lanes(unit, facts)["lanes"] == found
    assert lanes(unit, facts)["source"]


def test_what_is_not_known_is_left_out() -> None:
    for facts in ({}, {"compute_capability": "99.0"}, {"compute_capability": None}):
        assert lanes("fp32", facts) == matrix("wgmma", "float16", facts) == hiding(4, 1, facts) == {}
    assert lanes("exp2", {"compute_capability": "6.0"}) == {}
    assert lanes("int32", {"compute_capability": "10.0"}) == {}, "not in the catalogue"
    assert matrix("mma.sync", "float16", {"compute_capability": "8.6"}) == {}, "products of it differ"


@pytest.mark.parametrize(
    ("instruction", "facts", "flop", "bound"),
    [("mma.sync", AMPERE, 2048, "equal"), ("mma.sync", HOPPER, 4096, "at most"), ("wgmma", HOPPER, 4096, "equal")],
)
def test_matrix_units_by_instruction(instruction: str, facts: dict[str, Any], flop: int, bound: str) -> None:
    for dtype in ("float16", "bfloat16"):
        found = matrix(instruction, dtype, facts)
        assert (found["flop_per_clock"], found["bound"]) == (flop, bound)
    assert matrix(instruction, "float32", facts) == {}


def test_warps_and_chains_replace_each_other() -> None:
    """Section 4: fp32 multiply-adds are at their rate from warps x ILP = 4 cycles x 4 schedulers on."""
    assert hiding(16, 1, HOPPER)["lanes"] == hiding(4, 4, HOPPER)["lanes"] == hiding(64, 8, HOPPER)["lanes"] == 128
    assert hiding(4, 1, HOPPER)["lanes"] == 32
    assert (hiding(4, 1, HOPPER)["enough"], hiding(4, 1, AMPERE)["enough"]) == (16, 8)


def test_ways_are_the_most_words_of_a_bank() -> None:
    for stride in range(130):
        assert ways(stride) == turns(lane * stride for lane in range(32)), stride
    assert [ways(stride) for stride in (0, 1, 2, 3, 32, 33)] == [1, 1, 2, 1, 32, 1]


def test_a_padded_column_has_no_conflict() -> None:
    assert (column_ways(32), column_ways(33)) == (32, 1)


def test_turns_by_brute_force() -> None:
    for words in product([0, 32, 33, 64], repeat=3):
        banks: dict[int, set[int]] = {}
        for word in words:
            banks.setdefault(word % 32, set()).add(word)
        assert turns(words) == max(map(len, banks.values()))
    assert turns([]) == 0
