"""The constants of `gpubench.model.matmul_time` fitted to the rows of one device, and how much of them it explains.

What is explained is the variance of the logarithm of FLOP/s. Each row is predicted by constants that were fitted
without it and its neighbours: rows are left out in contiguous blocks by size, as a size between two known ones is no
test. Beside it stand two curves that know no kernel, with the same blocks left out: a cubic of log N, and that with a
level for each class of alignment.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gpubench.model import fitting
from gpubench.model.matmul_time import BEGIN, Constants, Machine, Product, Terms, spent, terms

BLOCKS = 10
"""Blocks that are left out one by one."""
LEAST = 40
"""Rows from which on constants are fitted: about three for each."""
NOISE = 0.05
"""The error a prediction is allowed, as a share: what a model of this kind misses in one kernel or another."""
SPREAD = 0.7
"""How far, as a logarithm, a constant may be from where it begins: a factor of two is usual."""
STEPS = 12
"""Steps of a fit at most; that of a sweep takes about eight."""
WARM_STEPS = 4
"""Steps of a fit that begins where another has ended, with a tenth of the rows less."""
CUBIC = 3
DRAWS = 1000
"""Resamples of the rows."""

Row = tuple[Product, float]
"""A product and its measured time in ns."""


def fit(rows: Sequence[Row], on: Machine) -> Constants:
    """The constants of these rows; those a fit begins with where there are fewer than LEAST."""
    if len(rows) < LEAST:
        return BEGIN
    return Constants(*_fit([terms(product, on) for product, _ in rows], [math.log(ns) for _, ns in rows], BEGIN.values))


def _fit(known: Sequence[Terms], logs: Sequence[float], begin: Sequence[float], steps: int = STEPS) -> list[float]:
    pairs = list(zip(known, logs, strict=True))

    def off(values: Sequence[float]) -> list[float]:
        constants = tuple(values)
        return [(math.log(spent(each, constants)[-1]) - log) / NOISE for each, log in pairs]

    return fitting.fitted(off, begin, SPREAD, steps)


@dataclass(frozen=True)
class Left:
    """What is left, as a logarithm, of each row by prediction: measured over predicted rate, in the order of the rows.
    `level` is what is left by their mean, `smooth` by the cubic, `classes` by cubic and classes."""

    level: tuple[float, ...]
    model: tuple[float, ...]
    smooth: tuple[float, ...]
    classes: tuple[float, ...]

    def only(self, chosen: Iterable[int]) -> Left:
        """The same of some of the rows; `level` is about their own mean."""
        places = list(chosen)
        mean = math.fsum(self.level[place] for place in places) / max(1, len(places))
        return Left(
            tuple(self.level[place] - mean for place in places),
            *(tuple(part[place] for place in places) for part in (self.model, self.smooth, self.classes)),
        )


def explained(left: Sequence[float], of: Sequence[float]) -> float:
    """The share of the squares of `of` that is not left."""
    whole = math.fsum(each * each for each in of)
    return 1 - math.fsum(each * each for each in left) / whole if whole else 0.0


def interval(left: Sequence[float], of: Sequence[float], seed: str) -> tuple[float, float]:
    """The 95 % percentile interval of `explained` by a bootstrap of the rows."""
    draw = random.Random(seed)
    squares = [(one * one, other * other) for one, other in zip(left, of, strict=True)]
    found = []
    for _ in range(DRAWS):
        drawn = draw.choices(squares, k=len(squares))
        whole = math.fsum(other for _, other in drawn)
        found.append(1 - math.fsum(one for one, _ in drawn) / whole if whole else 0.0)
    found.sort()
    return found[round(0.025 * (DRAWS - 1))], found[round(0.975 * (DRAWS - 1))]


def shuffled(rows: Sequence[Row], on: Machine, seed: str) -> float:
    """The share that a fit explains of rates that were dealt to other rows, which it has seen all of: what so many
    constants make of no order at all."""
    logs = [math.log(product.flops / ns) for product, ns in rows]
    random.Random(seed).shuffle(logs)
    work = [math.log(product.flops) for product, _ in rows]
    known = [terms(product, on) for product, _ in rows]
    found = tuple(_fit(known, [flops - log for flops, log in zip(work, logs, strict=True)], BEGIN.values))
    mean = math.fsum(logs) / len(logs)
    left = [log - flops + math.log(spent(each, found)[-1]) for log, flops, each in zip(logs, work, known, strict=True)]
    return explained(left, [log - mean for log in logs])


def left_out(rows: Sequence[Row], on: Machine, blocks: int = BLOCKS) -> Left:
    """Each row predicted without its block; rows are in the order of their sizes."""
    logs = [math.log(product.flops / ns) for product, ns in rows]
    work = [math.log(product.flops) for product, _ in rows]
    known = [terms(product, on) for product, _ in rows]
    times = [flops - log for flops, log in zip(work, logs, strict=True)]
    begin = _fit(known, times, BEGIN.values)
    columns = _columns([product for product, _ in rows])
    mean = math.fsum(logs) / len(logs)
    model, smooth, classes = ([0.0] * len(rows) for _ in range(3))
    for block in _contiguous(len(rows), blocks):
        kept = [place for place in range(len(rows)) if place not in block]
        found = tuple(_fit([known[i] for i in kept], [times[i] for i in kept], begin, WARM_STEPS))
        curves = [_curve(part, logs, kept) for part in (columns[: CUBIC + 1], columns)]
        for place in block:
            model[place] = logs[place] - work[place] + math.log(spent(known[place], found)[-1])
            smooth[place], classes[place] = (logs[place] - curve(place) for curve in curves)
    return Left(tuple(log - mean for log in logs), tuple(model), tuple(smooth), tuple(classes))


def smooth_left(rows: Sequence[Row]) -> list[float]:
    """What a cubic leaves of these rows that has seen all of them: the smoothest curve's best."""
    logs = [math.log(product.flops / ns) for product, ns in rows]
    curve = _curve(_columns([product for product, _ in rows])[: CUBIC + 1], logs, range(len(rows)))
    return [log - curve(place) for place, log in enumerate(logs)]


def _columns(products: Sequence[Product]) -> list[list[float]]:
    """Powers of the logarithm of the size, up to the third; then a column for each class of alignment but one."""
    sizes = [math.log(product.flops) / 3 for product in products]
    middle = math.fsum(sizes) / len(sizes)
    known = sorted({product.alignment for product in products})
    return [
        *([(size - middle) ** power for size in sizes] for power in range(CUBIC + 1)),
        *([float(product.alignment == each) for product in products] for each in known[1:]),
    ]


def _curve(columns: Sequence[Sequence[float]], values: Sequence[float], kept: Sequence[int]) -> Callable[[int], float]:
    weights = fitting.line([[column[i] for i in kept] for column in columns], [values[i] for i in kept])
    return lambda place: math.fsum(w * column[place] for w, column in zip(weights, columns, strict=True))


def _contiguous(count: int, blocks: int) -> list[range]:
    edges = [round(count * each / blocks) for each in range(blocks + 1)]
    return [range(first, last) for first, last in pairwise(edges) if first < last]
