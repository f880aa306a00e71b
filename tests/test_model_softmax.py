"""The recurrence of maximum and sum, by its definition in exact arithmetic; traffic, against a cache that is played."""

from __future__ import annotations

import itertools
import math
import random
from collections import OrderedDict
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.model import softmax
from gpubench.model.softmax import NOTHING, Partial, carried, merged

NUMBERS = st.floats(-50, 50) | st.floats(9_950, 10_050) | st.just(-math.inf)
ROWS = st.lists(NUMBERS, max_size=40)
CLOSE = 1e-13
"""Relative: a few roundings of float64 a merge, of forty at most."""


def by_definition(row: list[float]) -> Partial:
    maximum = max(row, default=-math.inf)
    if maximum == -math.inf:
        return NOTHING
    return Partial(maximum, math.fsum(math.exp(x - maximum) for x in row))


def alike(a: Partial, b: Partial) -> bool:
    return a.maximum == b.maximum and math.isclose(a.sum, b.sum, rel_tol=CLOSE)


@given(ROWS)
def test_carried_along_a_row_it_is_the_definition(row: list[float]) -> None:
    found = carried(row)
    assert alike(found, by_definition(row))
    above = sum(x > -math.inf for x in row)
    assert (1 <= found.sum <= above * (1 + CLOSE)) if above else found == NOTHING


@given(ROWS, st.randoms(use_true_random=False))
def test_any_split_in_any_order_merged_in_any_order_gives_the_same(row: list[float], chance: random.Random) -> None:
    shuffled = chance.sample(row, len(row))
    cuts = sorted([0, len(row), *(chance.randint(0, len(row)) for _ in range(chance.randint(0, 6)))])
    tiles = [carried(shuffled[a:b]) for a, b in itertools.pairwise(cuts)]
    while len(tiles) > 1:
        a = tiles.pop(chance.randrange(len(tiles)))
        place = chance.randrange(len(tiles))
        tiles[place] = merged(tiles[place], a)
    assert alike(tiles[0], by_definition(row))


@given(ROWS, ROWS, ROWS)
def test_merging_is_associative_and_commutative_and_nothing_changes_nothing(
    x: list[float], y: list[float], z: list[float]
) -> None:
    a, b, c = map(carried, (x, y, z))
    assert alike(merged(merged(a, b), c), merged(a, merged(b, c)))
    assert alike(merged(a, b), merged(b, a))
    assert merged(a, NOTHING) == merged(NOTHING, a) == a


def test_offsets_that_overflow_without_a_maximum() -> None:
    assert not softmax.overflows(88.7)
    assert softmax.overflows(88.8)
    assert math.exp(88.7) < 3.4028234e38 < math.exp(88.8)
    assert carried([1e4, 1e4 + 1]).sum == pytest.approx(1 + math.exp(-1))
    assert reduce(merged, [carried([1e4])] * 3).sum == 3


def misses(way: str, rows: int, v: int, cache: int, evict: random.Random | None) -> float:
    """Accesses an element that a cache of `cache` elements does not serve, of rows read side by side in passes, and
    written in the last: it replaces what was used longest ago, or anything."""
    reads = softmax.ACCESSES[way] - 1
    held: OrderedDict[tuple[str, int, int], None] = OrderedDict()
    missed = 0

    def access(what: str, row: int, i: int) -> None:
        nonlocal missed
        key = (what, row, i)
        if key in held:
            held.move_to_end(key)
            return
        missed += 1
        if len(held) == cache:
            held.pop(evict.choice(list(held))) if evict else held.popitem(last=False)
        held[key] = None

    for turn in range(reads):
        for i in range(v):
            for row in range(rows):
                access("x", row, i)
                if turn == reads - 1:
                    access("y", row, i)
    return missed / (rows * v)


@pytest.mark.parametrize("cache", [10, 40, 79, 81, 120, 161, 400])
@pytest.mark.parametrize("way", ["three-pass", "online", "cached"])
def test_what_reaches_dram_lies_between_its_limits(way: str, cache: int) -> None:
    found = softmax.traffic(way, rows_in_flight=4, v=20, itemsize=1, cache=cache)
    least, most = found["dram_accesses"]
    assert (found["accesses"], found["bytes_in_flight"]) == (softmax.ACCESSES[way], 80)
    for evict in (None, random.Random(3)):
        assert least - 0.1 <= misses(way, 4, 20, cache, evict) <= most, "chance may keep a few more"


def test_rows_that_fit_reach_dram_once_and_others_each_time() -> None:
    h200 = 60 << 20
    assert softmax.traffic("three-pass", 1056, 1000, 4, h200)["dram_accesses"] == [2, 2]
    least, most = softmax.traffic("three-pass", 1056, 100_000, 4, h200)["dram_accesses"]
    assert 3.6 < least < most == 4
    fewer = softmax.traffic("online", 1056, 100_000, 4, h200)["dram_accesses"]
    assert 1.28 < least / fewer[0] < most / fewer[1] <= 4 / 3
    assert softmax.traffic("fused", 1056, 100_000, 4, h200)["dram_accesses"] == [1, 1]
    assert "dram_accesses" not in softmax.traffic("online", 1056, 100, 4, None)


def test_a_result_that_the_next_kernel_reads_is_an_access_more() -> None:
    written = softmax.traffic("three-pass", 10, 100, 4, 16_000)
    assert softmax.read_again(written, 4_000, 16_000) == written | {"accesses": 5, "dram_accesses": [2, 2]}
    assert softmax.read_again(written, 64_000, 16_000)["dram_accesses"] == [2.75, 3]
    assert softmax.read_again({"accesses": 4}, 64_000, None) == {"accesses": 5}


def test_bytes_are_compulsory() -> None:
    assert softmax.bytes(3, 7, 4) == 168
    assert softmax.top_bytes(3, 7, 5, 4) == 3 * (28 + 5 * 12)
