"""Least squares without a library: constants are found again, and where rows say nothing they stay."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from gpubench.model import fitting

STEPS = 40
PLACES = [float(place) for place in range(1, 30)]


def curve(constants: Sequence[float]) -> list[float]:
    return [constants[0] + constants[1] * place for place in PLACES]


def residuals(constants: Sequence[float]) -> list[float]:
    return [100 * (math.log(a) - math.log(b)) for a, b in zip(curve(constants), curve([5, 0.2]), strict=True)]


def test_constants_are_found_again() -> None:
    assert fitting.fitted(residuals, [1, 1], 3, STEPS) == pytest.approx([5, 0.2], rel=1e-3)


def test_a_constant_that_rows_say_nothing_of_stays_where_it_began() -> None:
    found = fitting.fitted(lambda values: residuals(values[:2]), [1, 1, 7], 3, STEPS)
    assert found[2] == pytest.approx(7)


def test_a_narrow_spread_holds_constants_where_they_began() -> None:
    assert fitting.fitted(lambda values: [math.log(values[0] / 10)], [1.0], 1e-3, STEPS) == pytest.approx([1], rel=1e-3)


def test_one_row_that_is_far_off_moves_little() -> None:
    def off(values: Sequence[float]) -> list[float]:
        return [*residuals(values), 100 * (math.log(values[0]) - math.log(50))]

    assert fitting.fitted(off, [1, 1], 3, STEPS)[0] == pytest.approx(5, rel=0.05)


def test_a_line_of_columns() -> None:
    columns = [[1.0] * 4, [0.0, 1.0, 2.0, 3.0], [0.0] * 4]
    assert fitting.line(columns, [1, 3, 5, 7]) == pytest.approx([1, 2, 0], abs=1e-6)


def test_equations_whose_first_pivot_is_zero() -> None:
    assert fitting.solved([[0, 1], [2, 0]], [3, 4]) == pytest.approx([2, 3])
