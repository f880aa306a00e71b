"""How often `paired` is wrong and how often it sees a loss: seeded simulations of blocks at three levels of noise.

Noise comes on three levels, as standard deviations of the logarithm: from sample to sample within a process
(iteration), from process to process for each row by itself (launch), and from process to process for all its rows alike
(session). Nothing of it is shared by the two processes of a block, so that pairing saves nothing: the hardest reading.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gpubench.ab import paired
from gpubench.ab.measure import firsts
from gpubench.ab.paired import ALPHA, LOOKS, Paired, PairedVerdict, settle
from gpubench.store.abfile import BASE, NEW

QUIET, USUAL, LOUD = (0.003, 0.002, 0.001), (0.005, 0.005, 0.01), (0.01, 0.01, 0.03)
SAMPLES = 20
ROWS = 50
CHANGED = {"regression", "improvement"}
Noise = tuple[float, float, float]


def medians(source: np.random.Generator, noise: Noise, suites: int, rows: int, blocks: int) -> np.ndarray:
    """The medians of one side's processes: suites x rows x blocks, about 1."""
    iteration, launch, session = noise
    samples = source.normal(0, iteration, (suites, rows, blocks, SAMPLES))
    of_rows = source.normal(0, launch, (suites, rows, blocks))
    of_processes = source.normal(0, session, (suites, 1, blocks))
    return np.exp(np.median(samples, axis=-1) + of_rows + of_processes)


def suites(
    seed: int, noise: Noise, count: int, rows: int = ROWS, blocks: int = 10, loss: float = 0.0
) -> Iterator[list[Paired]]:
    """Comparisons of equal code, but that the first row of each takes 1 + loss times as long."""
    source = np.random.default_rng(seed)
    base = medians(source, noise, count, rows, blocks)
    new = medians(source, noise, count, rows, blocks)
    new[:, 0] *= 1 + loss
    for sides in zip(base.tolist(), new.tolist(), strict=True):
        yield [Paired(str(number), *pair) for number, pair in enumerate(zip(*sides, strict=True))]


def judge(rows: list[Paired], margin: float = 0.03, alpha: float = ALPHA) -> list[PairedVerdict]:
    return paired.judge(rows, margin=margin, alpha=alpha)


def share(found: list[list[PairedVerdict]], *verdicts: str) -> float:
    every = [each.verdict in verdicts for one in found for each in one]
    return sum(every) / len(every)


@pytest.mark.parametrize("noise", [QUIET, USUAL, LOUD])
def test_equal_code_is_hardly_ever_called_changed(noise: Noise) -> None:
    found = [judge(each) for each in suites(1, noise, 400)]
    assert share(found, *CHANGED) <= 0.001
    assert sum(any(each.verdict in CHANGED for each in one) for one in found) / len(found) <= 0.01


@pytest.mark.parametrize("noise", [QUIET, USUAL, LOUD])
def test_without_a_margin_a_suite_of_fifty_has_a_false_alarm_in_a_twentieth_at_most(noise: Noise) -> None:
    """The correction is what holds it: fifty rows judged each by itself would have one in 92 % of suites."""
    found = [judge(each, margin=0.0) for each in suites(2, noise, 1000)]
    assert share(found, *CHANGED) <= 0.01
    alarms = sum(any(each.verdict in CHANGED for each in one) for one in found) / len(found)
    assert alarms <= ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) / len(found))
    if noise == QUIET:  # where rows are hardly correlated
        assert alarms >= ALPHA / 2
        alone = [[judge([each], margin=0.0)[0] for each in one] for one in suites(2, noise, 100)]
        assert sum(any(each.verdict in CHANGED for each in one) for one in alone) / len(alone) >= 0.75


@pytest.mark.parametrize("noise", [QUIET, USUAL, LOUD])
def test_the_interval_holds_the_truth_as_often_as_it_says(noise: Noise) -> None:
    held = [
        low <= 1 <= high
        for one in suites(3, noise, 8000, rows=1)
        for each in judge(one)
        if (low := each.low) is not None and (high := each.high) is not None
    ]
    assert sum(held) / len(held) == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("noise", [QUIET, USUAL])
@pytest.mark.parametrize("alpha", [ALPHA, LOOKS[1]])
def test_a_loss_of_five_percent_is_found_by_ten_blocks(noise: Noise, alpha: float) -> None:
    found = [judge(each, alpha=alpha)[0].verdict for each in suites(4, noise, 5000, rows=1, loss=0.05)]
    power = Counter(found)["regression"] / len(found)
    assert power >= 0.9
    degrees, error = 9, math.sqrt(2 * (math.pi / 2 * noise[0] ** 2 / SAMPLES + noise[1] ** 2 + noise[2] ** 2) / 10)
    expected = stats.nct.sf(stats.t.ppf(1 - alpha / 2, degrees), degrees, math.log(1.05 / 1.03) / error)
    assert power == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize(("noise", "least"), [(QUIET, 0.99), (USUAL, 0.85)])
def test_one_slow_row_of_fifty_is_found_by_a_second_look(noise: Noise, least: float) -> None:
    """Twenty blocks in all where ten did not decide. At the usual noise ten find a quarter of them."""
    seen = 0
    count = 300
    for rows in suites(5, noise, count, blocks=20, loss=0.05):
        first = judge([Paired(each.id, each.base[:10], each.new[:10]) for each in rows], alpha=LOOKS[0])
        verdicts = settle(first, judge(rows, alpha=LOOKS[1]))
        seen += verdicts[0].verdict == "regression"
    assert seen / count >= least


def test_two_looks_raise_no_more_false_alarms_than_one() -> None:
    alarms = 0
    count = 600
    for rows in suites(6, QUIET, count, rows=20, blocks=20):
        first = judge([Paired(each.id, each.base[:10], each.new[:10]) for each in rows], margin=0.0, alpha=LOOKS[0])
        verdicts = settle(first, judge(rows, margin=0.0, alpha=LOOKS[1]))
        alarms += any(each.verdict in CHANGED for each in verdicts)
    assert ALPHA / 2 <= alarms / count <= ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) / count)


def test_noise_that_hides_the_loss_is_said_to() -> None:
    """Five percent at 1/1/3 %: inconclusive, and what could have been seen is more than was there."""
    found = [judge(each) for each in suites(7, LOUD, 200, loss=0.05)]
    slow = [one[0] for one in found]
    assert Counter(each.verdict for each in slow)["inconclusive"] / len(slow) >= 0.95
    assert share(found, "equivalent") <= 0.02, "a spread that came out at less than half of what it is"
    assert all((each.detectable or 0) > 0.05 for each in slow)
    assert np.median([each.detectable or 0 for each in slow]) > 0.1
    alone = [judge([one[0]])[0].verdict for one in suites(8, LOUD, 2000, rows=1, loss=0.05)]
    assert Counter(alone)["inconclusive"] / len(alone) >= 0.7


def test_a_loss_of_the_margin_itself_is_a_regression_in_a_fortieth_at_most() -> None:
    found = [judge(each)[0].verdict for each in suites(9, USUAL, 8000, rows=1, loss=0.03)]
    counts = Counter(found)
    assert counts["regression"] / len(found) == pytest.approx(ALPHA / 2, abs=0.005)
    assert counts["equivalent"] / len(found) <= ALPHA + 0.005
    assert counts["improvement"] == 0


# Noise that is not normal, and time that passes: what docs/selfcheck.md says of it


def _tails(source: np.random.Generator, count: int) -> np.ndarray:
    return 0.005 * source.standard_t(2, (count, 20))


def _modes(source: np.random.Generator, count: int) -> np.ndarray:
    """Half of all processes take 5 % longer."""
    return 0.05 * (source.random((count, 20)) < 0.5) + source.normal(0, 0.002, (count, 20))


def _rarely(source: np.random.Generator, count: int) -> np.ndarray:
    """One of twenty takes 20 % longer."""
    return 0.2 * (source.random((count, 20)) < 0.05) + source.normal(0, 0.002, (count, 20))


def _warming(source: np.random.Generator, count: int) -> np.ndarray:
    """Each takes 0.5 % longer than the one before it, on either side."""
    return np.linspace(0, 0.095, 20) + source.normal(0, 0.002, (count, 20))


def _wandering(source: np.random.Generator, count: int) -> np.ndarray:
    """Each is where the one before it was, and a random step of 0.5 % away."""
    return np.cumsum(source.normal(0, 0.005, (count, 20)), axis=-1)


def _second(source: np.random.Generator, count: int) -> np.ndarray:
    """The second process of a block takes 3 % longer."""
    return np.tile([0, 0.03], 10) + source.normal(0, 0.002, (count, 20))


def in_turn(times: np.ndarray, source: np.random.Generator) -> Iterator[Paired]:
    """Rows of ten blocks whose twenty processes took these logarithms of time, one after the other."""
    for row in np.exp(times).tolist():
        order = firsts(10, int(source.integers(2**32)))
        base = [row[2 * block + (side == NEW)] for block, side in enumerate(order)]
        yield Paired("a", base, [row[2 * block + (side == BASE)] for block, side in enumerate(order)])


@pytest.mark.parametrize(
    ("noise", "held", "equivalent"),
    [
        (_tails, 0.965, 0.82),
        (_modes, 0.948, 0.015),
        (_rarely, 0.981, 0.37),
        (_warming, 1.0, 1.0),
        (_wandering, 0.95, 1.0),
        (_second, 1.0, 0.0),
    ],
)
def test_what_both_sides_share_makes_no_false_alarm(noise: Any, held: float, equivalent: float) -> None:
    """Heavy tails, modes, drift: the order of the sides is drawn, so that equal code strays as often up as down."""
    source = np.random.default_rng(11)
    count = 4000
    found = [judge([row])[0] for row in in_turn(noise(source, count), source)]
    counts = Counter(each.verdict for each in found)
    assert counts["regression"] + counts["improvement"] <= 0.001 * count
    assert counts["equivalent"] / count == pytest.approx(equivalent, abs=0.02)
    within = [(each.low or math.inf) <= 1 <= (each.high or 0) for each in found]
    assert sum(within) / count == pytest.approx(held, abs=0.01)


@pytest.mark.parametrize("noise", [_tails, _modes, _rarely, _wandering])
def test_nor_does_it_in_a_suite_of_fifty_without_a_margin(noise: Any) -> None:
    source = np.random.default_rng(12)
    alarms, count = 0, 300
    for _ in range(count):
        rows = [replace(row, id=str(n)) for n, row in enumerate(in_turn(noise(source, ROWS), source))]
        alarms += any(each.verdict in CHANGED for each in judge(rows, margin=0.0))
    assert alarms / count <= ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) / count)


@pytest.mark.parametrize(
    ("share", "longer", "held", "equivalent"),
    [(0.05, 0.2, 0.40, 0.60), (0.1, 0.2, 0.65, 0.35), (0.5, 0.05, 0.94, 0.03)],
)
def test_what_one_side_does_now_and_then_is_not_in_ten_blocks_that_did_not_meet_it(
    share: float, longer: float, held: float, equivalent: float
) -> None:
    """A share of the new side's processes takes so much longer: the mean that the interval is of has that in it."""
    source = np.random.default_rng(13)
    count = 4000
    times = source.normal(0, 0.003, (count, 20))
    rows = []
    for row, hit in zip(in_turn(times, source), source.random((count, 10)) < share, strict=True):
        rows.append(replace(row, new=[time * (1 + longer * slow) for time, slow in zip(row.new, hit, strict=True)]))
    found = [judge([row])[0] for row in rows]
    truth = (1 + longer) ** share
    within = [(each.low or math.inf) <= truth <= (each.high or 0) for each in found]
    assert sum(within) / count == pytest.approx(held, abs=0.03)
    assert sum(each.verdict == "equivalent" for each in found) / count == pytest.approx(equivalent, abs=0.03)


def test_a_difference_that_lasts_for_some_blocks_is_taken_for_one_that_stays() -> None:
    """What a side keeps from block to block, by half: the t interval takes blocks for independent."""
    source = np.random.default_rng(14)
    count = 4000
    steps = source.normal(0, math.sqrt(0.75), (count, 10))
    steps[:, 0] /= math.sqrt(0.75)
    for block in range(1, 10):
        steps[:, block] += 0.5 * steps[:, block - 1]
    found = [judge([Paired("a", [1.0] * 10, row)])[0] for row in np.exp(0.01 * steps).tolist()]
    within = [(each.low or math.inf) <= 1 <= (each.high or 0) for each in found]
    assert sum(within) / count == pytest.approx(0.76, abs=0.02)
