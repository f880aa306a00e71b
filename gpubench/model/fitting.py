"""Least squares for a few positive constants, without a library: what a model leaves open is fitted to rows.

Constants are found by their logarithms, so that all stay positive and a step is a ratio; each is drawn towards where it
began, as weakly as its spread is wide, which decides where rows say nothing about it (a Gaussian prior). The method is
that of Levenberg and Marquardt; rows that are far off count by their distance and not its square (soft l1), as in
SciPy's `least_squares`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

ENOUGH = 1e-5
"""The share of the cost below which a step is the last."""
NUDGE = 1e-4
"""The change of a logarithm by which slopes are taken."""

Vector = list[float]


def fitted(residuals: Callable[[Sequence[float]], Vector], begin: Sequence[float], spread: float, steps: int) -> Vector:
    """The constants that make the residuals small, beginning at `begin`; `spread` is the standard deviation of their
    logarithms, residuals have one of about 1. It ends after `steps` at the latest."""
    start = [math.log(value) for value in begin]

    def off(logs: Sequence[float]) -> Vector:
        return [*residuals([math.exp(each) for each in logs]), *(
            (now - was) / spread for now, was in zip(logs, start, strict=True)
        )]  # fmt: skip

    logs, damping = list(start), 1e-3
    here = off(logs)
    cost = _cost(here)
    for _ in range(steps):
        weights = [1 / math.sqrt(1 + each * each) for each in here]
        slopes = []
        for place in range(len(logs)):
            nudged = [each + NUDGE * (place == other) for other, each in enumerate(logs)]
            slopes.append([(new - old) / NUDGE for new, old in zip(off(nudged), here, strict=True)])
        square = [
            [math.fsum(w * a * b for w, a, b in zip(weights, left, right, strict=True)) for right in slopes]
            for left in slopes
        ]
        downhill = [-math.fsum(w * a * r for w, a, r in zip(weights, each, here, strict=True)) for each in slopes]
        while damping < 1e6:
            damped = [[value * (1 + damping * (i == j)) for j, value in enumerate(row)] for i, row in enumerate(square)]
            tried = [old + step for old, step in zip(logs, solved(damped, downhill), strict=True)]
            there = off(tried)
            if _cost(there) < cost:
                break
            damping *= 5
        else:
            break
        gained = cost - _cost(there)
        logs, here, cost, damping = tried, there, _cost(there), damping / 5
        if gained < ENOUGH * cost:
            break
    return [math.exp(each) for each in logs]


def line(columns: Sequence[Sequence[float]], values: Sequence[float]) -> Vector:
    """The weights of columns whose sum is nearest to the values, by ordinary least squares."""
    square = [[math.fsum(map(_times, left, right)) for right in columns] for left in columns]
    for place, row in enumerate(square):
        row[place] *= 1 + 1e-12  # a column that is all zero, as a class that no row has, gets the weight 0
        row[place] += 1e-12
    return solved(square, [math.fsum(map(_times, column, values)) for column in columns])


def solved(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> Vector:
    """x of matrix · x = right, by elimination with the largest pivot first."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for place in range(size):
        best = max(range(place, size), key=lambda row: abs(rows[row][place]))
        rows[place], rows[best] = rows[best], rows[place]
        pivot = rows[place][place] or 1e-300
        for row in range(place + 1, size):
            factor = rows[row][place] / pivot
            if factor:
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[place], strict=True)]
    found = [0.0] * size
    for place in reversed(range(size)):
        rest = math.fsum(rows[place][other] * found[other] for other in range(place + 1, size))
        found[place] = (rows[place][size] - rest) / (rows[place][place] or 1e-300)
    return found


def _cost(off: Sequence[float]) -> float:
    return math.fsum(math.sqrt(1 + each * each) - 1 for each in off)


def _times(left: float, right: float) -> float:
    return left * right
