"""Passes of chains and their gradients, counted by hand, and what bounds them."""

from __future__ import annotations

import pytest

from gpubench.model import recompute

H200 = {"compute_capability": "9.0", "multiprocessors": 132, "sm_mhz_max": 1980.0}


@pytest.mark.parametrize(
    ("way", "three"),
    [("saved", (4, 4)), ("recomputed", (2, 3)), ("compiled", (2, 4)), ("eager", (6, 9)), ("checkpoint", (6, 15))],
)
def test_three_sigmoids(way: str, three: tuple[int, int]) -> None:
    assert way in recompute.WAYS
    assert recompute.passes(way, 3) == three
    found = recompute.figures(way, 3)
    assert (found["passes"], found["passes_forward"], found["passes_backward"]) == (sum(three), *three)
    assert "passes_with_allocation" not in found


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(KeyError):
        recompute.passes("forgotten", 3)


@pytest.mark.parametrize(("length", "ratio"), [(1, 1), (2, 6 / 5), (3, 8 / 5), (4, 2), (8, 18 / 5)])
def test_the_gain_grows_with_the_length(length: int, ratio: float) -> None:
    assert recompute.ratio(length) == pytest.approx(ratio)


def test_a_cache_that_reads_what_is_written_moves_more() -> None:
    assert recompute.ratio(3, allocate=True) == pytest.approx(12 / 7)
    assert recompute.passes("recomputed", 3, allocate=True) == (3, 4)
    assert recompute.figures("saved", 3, allocate=True)["passes_with_allocation"] == 12
    assert recompute.figures("saved", 3, allocate=True)["passes"] == 8


def test_operations_done() -> None:
    assert recompute.operations("saved", 3) == (3, 1)
    assert recompute.operations("saved", 1) == (1, 0)
    assert recompute.operations("recomputed", 3) == (3, 3)


def test_the_longer_of_bytes_and_special_functions_counts_for_each_kernel() -> None:
    rate = recompute.special_rate(H200)
    assert rate == pytest.approx(132 * 16 * 1980e6)
    n, roof = 2**28, 4.31e12
    kept, again = (recompute.least_s(way, 3, n, 4, 2, roof, rate) for way in ("saved", "recomputed"))
    assert kept == pytest.approx(8 * 4 * n / roof)
    assert kept / again == pytest.approx(1.6)
    slow = recompute.least_s("recomputed", 3, n, 4, 2, roof, rate / 2)
    assert slow == pytest.approx(2 * 6 * n / (rate / 2)), "both kernels wait for their exponentials"
    assert recompute.least_s("recomputed", 3, n, 4, 2, roof, None) == again


def test_the_special_function_units_are_not_guessed() -> None:
    assert recompute.special_rate({"kind": "cpu"}) is None
    assert recompute.special_rate(H200 | {"sm_mhz_max": None}) is None


def test_products_made_again() -> None:
    assert recompute.products(8, None) == 24
    assert recompute.products(8, 4) == 30
    assert recompute.products(8, 8) == 31
    assert recompute.products(1000, 1000) / recompute.products(1000, None) == pytest.approx(4 / 3, abs=1e-3)
