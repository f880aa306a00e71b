"""Two shapes measured again, in turn, under the same conditions: which gives more, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from gpubench.errors import UsageError
from gpubench.result import Conditions, Record
from gpubench.runner import Effort, Measures
from gpubench.sampling import Stopping
from gpubench.stats import t_quantile
from gpubench.suite import Case
from search.finders import Shape, matrices, train_s, words

ROUNDS = 10
SAMPLES = 20
"""Paced calls of one turn."""
TURN_S = 0.3
"""Length of one turn back to back, of which as much goes before it untimed: the clock then is where the power limit
puts it."""
CONFIDENCE = 0.95

Turn = Callable[[Shape], float]
"""The FLOP/s of one turn of a shape."""


@dataclass(frozen=True)
class Duel:
    """Rounds of (rate of the first, rate of the second) in FLOP/s, in turn, and the ratio first/second: the geometric
    mean over rounds between the limits of its 95 % interval (Student's t on the logarithms)."""

    load: str
    rounds: list[tuple[float, float]]
    low: float
    ratio: float
    high: float


def fight(load: str, turn: Turn, first: Shape, second: Shape, rounds: int = ROUNDS) -> Duel:
    """So many rounds of both, the first and the second beginning by turns."""
    taken = []
    for number in range(rounds):
        order = (first, second) if number % 2 == 0 else (second, first)
        rates = [turn(shape) for shape in order]
        taken.append((rates[0], rates[1]) if number % 2 == 0 else (rates[1], rates[0]))
    return Duel(load, taken, *interval([a / b for a, b in taken]))


def interval(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Low, middle and high of paired ratios. ValueError below two."""
    if len(ratios) < 2:
        raise ValueError("an interval needs two rounds at least")
    logs = [math.log(ratio) for ratio in ratios]
    middle = fmean(logs)
    half = t_quantile(len(logs) - 1, (1 + CONFIDENCE) / 2) * stdev(logs) / math.sqrt(len(logs))
    return math.exp(middle - half), math.exp(middle), math.exp(middle + half)


def paced(executor: Measures, dtype: str) -> Turn:
    """A turn by gpubench's own conditions: cold, rested, by the timer it chooses."""
    effort = Effort(Stopping(samples=SAMPLES))

    def turn(shape: Shape) -> float:
        case = Case("peak", "matmul", {"shape": words(shape), "dtype": dtype}, Conditions())
        *_, record = executor.measure(case, effort)
        assert isinstance(record, Record)
        rate = record.metric("flops")
        if record.status != "ok" or rate is None:
            raise UsageError(f"{words(shape)}: {record.reason or record.status}")
        return rate.value

    return turn


def back_to_back(dtype: str) -> Turn:
    """A turn of calls back to back, by an event pair around TURN_S of them."""

    def turn(shape: Shape) -> float:
        operands = matrices(shape, dtype)
        calls = max(2, round(TURN_S / train_s(operands, 2)))
        train_s(operands, calls)
        m, n, k = shape
        return 2 * m * n * k / train_s(operands, calls)

    return turn
