from __future__ import annotations

from dataclasses import replace

import pools
import pytest

from gpubench.errors import NothingMeasured
from gpubench.selfcheck.splits import LEAST_PROCESSES, equal_code, left_out, more_work
from gpubench.store.calibration import CHANGED, Equal, Outcome

WHEN = "2026-11-30T01:00:00Z"


def outcome(equal: Equal, rule: str, margin: float) -> Outcome:
    return next(each for each in equal.outcomes if (each.rule, each.margin) == (rule, margin))


@pytest.fixture(scope="module")
def quiet() -> Equal:
    return equal_code(pools.runs(0.004, count=40), WHEN, splits=60)


def test_equal_code_is_the_same_at_the_margin(quiet: Equal) -> None:
    assert (quiet.processes, quiet.blocks, quiet.splits, len(quiet.rows), quiet.at) == (40, 10, 60, 4, WHEN)
    for rule, word in (("ab", "equivalent"), ("compare", "same"), ("history", "same")):
        found = outcome(quiet, rule, 0.03)
        assert found.verdicts == {word: 240}
        assert (found.wrong, found.of, found.alarmed) == (0, 240, 0)


def test_without_a_margin_what_is_called_changed_is_the_error_of_the_interval(quiet: Equal) -> None:
    ab, history = outcome(quiet, "ab", 0.0), outcome(quiet, "history", 0.0)
    assert ab.verdicts.get("equivalent", 0) == 0
    assert ab.wrong / ab.of <= 0.04
    assert ab.alarmed / ab.splits <= 0.12
    assert history.called("regression", "improvement") / history.of <= 0.12
    assert quiet.intervals == 240
    assert 0.9 <= quiet.held / quiet.intervals <= 0.99


def test_the_same_pool_gives_the_same_rates() -> None:
    runs = pools.runs(0.02)
    assert equal_code(runs, WHEN, splits=3) == equal_code(runs, WHEN, splits=3)


def test_a_rule_that_is_wrong_is_caught() -> None:
    """Processes so unlike that one run a side is beyond the margin, and blocks of ten are not."""
    found = equal_code(pools.runs(0.05), WHEN, splits=20)
    assert outcome(found, "compare", 0.03).wrong > 30
    assert outcome(found, "compare", 0.03).alarmed > 15
    assert outcome(found, "ab", 0.03).verdicts.keys().isdisjoint(CHANGED)


def test_splits_are_disjoint_and_of_the_same_number() -> None:
    """Even of sixteen processes: every split then uses all of them, and equal factors on all change nothing."""
    found = equal_code(pools.runs(0.01, count=LEAST_PROCESSES), WHEN, splits=5)
    assert found.blocks == 8
    with pytest.raises(ValueError, match="15 processes, 16 at least"):
        equal_code(pools.runs(0.01, count=15), WHEN)


def test_a_row_without_a_figure_somewhere_is_left_out() -> None:
    runs = pools.runs(0.01)
    broken = replace(runs[3].records[0], status="timeout", summary=None, metrics=[])
    runs[3].records[0] = broken
    del runs[5].records[3]
    assert equal_code(runs, WHEN, splits=2).rows == ["s/b[n=2]", "s/b[n=3]"]
    assert left_out(runs) == ["s/b[n=1]", "s/b[n=4]"]
    with pytest.raises(NothingMeasured, match="no longer row has a figure in each of the 20"):
        more_work(runs, pools.LONGER_ROWS, WHEN)
    for run in runs:
        run.records.clear()
    with pytest.raises(NothingMeasured, match="no row has a figure"):
        equal_code(runs, WHEN)


def test_more_work_is_found_and_the_margin_itself_is_not() -> None:
    found = more_work(pools.runs(0.003, count=40), pools.LONGER_ROWS, WHEN, splits=100)
    told = {(each.more, each.margin): each for each in found.injected}
    assert told.keys() == {(0.03, 0.01), (0.05, 0.03), (0.03, 0.03)}
    assert found.share(0.03, 0.01) == 1.0
    assert found.share(0.05, 0.03) == 1.0
    at_margin = found.share(0.03, 0.03)
    assert at_margin is not None
    assert at_margin <= 0.15
    assert found.share(0.07, 0.01) is None
    assert told[0.05, 0.03].measured == pytest.approx(0.05, abs=0.004)
    assert {each.row for each in found.injected} == {pools.ROW}


def test_how_well_the_truth_is_known_is_of_both_medians() -> None:
    """The 95 % interval of a median of 40 goes from the 14th to the 27th, here about 0.4 standard deviations each way,
    of two rows √2 times that."""
    loud, quiet = (more_work(pools.runs(noise, count=40), pools.LONGER_ROWS, WHEN, splits=1) for noise in (0.1, 0.001))
    for each in loud.injected:
        assert 0.03 < each.unsure < 0.1
    assert all(each.unsure < 0.001 for each in quiet.injected)


def test_work_that_noise_hides_is_missed() -> None:
    found = more_work(pools.runs(0.1), pools.LONGER_ROWS, WHEN, splits=20)
    missed = found.share(0.05, 0.03)
    assert missed is not None
    assert missed <= 0.2


def test_the_tick_of_a_timer_widens_what_is_known() -> None:
    """Equal readings of fifty ticks: so few are too coarse for a margin of 3 %, and a hundred are not."""
    runs = pools.runs(0.0)
    for run in runs:
        for record in run.records:
            assert record.timer is not None
            record.timer.tick_ns = 2e4
    found = equal_code(runs, WHEN, splits=2)
    assert outcome(found, "ab", 0.03).verdicts == {"inconclusive": 6, "equivalent": 2}
    assert outcome(equal_code(pools.runs(0.0), WHEN, splits=2), "ab", 0.03).verdicts == {"equivalent": 8}
