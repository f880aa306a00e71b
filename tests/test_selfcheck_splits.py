from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pools
import pytest
from builders import make_record

from gpubench.compare.runs import compare
from gpubench.errors import NothingMeasured
from gpubench.result import Record, Run, Timer
from gpubench.selfcheck import splits
from gpubench.selfcheck.splits import LEAST_PROCESSES, equal_code, left_out, more_work
from gpubench.store.calibration import CHANGED, Equal, Outcome
from gpubench.verdict import Judged

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
    assert 15 < outcome(found, "compare", 0.03).alarmed <= 20, "a split is one alarm, whatever the number of its rows"
    assert outcome(found, "ab", 0.03).verdicts.keys().isdisjoint(CHANGED)


def test_splits_are_disjoint_and_of_the_same_number() -> None:
    """Even of sixteen processes: every split then uses all of them, and equal factors on all change nothing."""
    found = equal_code(pools.runs(0.01, count=LEAST_PROCESSES), WHEN, splits=5)
    assert found.blocks == 8
    with pytest.raises(ValueError, match="15 processes, 16 at least"):
        equal_code(pools.runs(0.01, count=15), WHEN)


def test_no_process_is_on_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[set[str], str]] = []

    def compared(bases: Sequence[Run], new: Run, margin: float) -> Judged:
        asked.append(({run.run_id for run in bases}, new.run_id))
        return compare(bases, new, margin)

    monkeypatch.setattr(splits, "compare", compared)
    equal_code(pools.runs(0.01, count=40), WHEN, splits=5)
    assert sorted({len(bases) for bases, _ in asked}) == [1, 10]
    assert all(new not in bases for bases, new in asked)


def test_more_work_is_measured_in_other_processes_than_none() -> None:
    """Processes of speeds of their own: within one, 5 % more would be plain."""
    runs = pools.runs(0.0, count=40)
    for number, run in enumerate(runs):
        run.records = [replace_time(record, 1 + 0.2 * (number * 7 % 40) / 40) for record in run.records]
    share = more_work(runs, pools.LONGER_ROWS, WHEN, splits=20).share(0.05, 0.03)
    assert share is not None
    assert share <= 0.2


def replace_time(record: Record, factor: float) -> Record:
    """The record of a process that is so many times as slow."""
    assert record.summary is not None
    return replace(record, summary=replace(record.summary, median_ns=round(record.summary.median_ns * factor)))


def test_a_row_without_a_figure_somewhere_is_left_out() -> None:
    runs = pools.runs(0.01)
    broken = replace(runs[3].records[0], status="timeout", summary=None, metrics=[])
    runs[3].records[0] = broken
    del runs[5].records[3]
    found = equal_code(runs, WHEN, splits=2)
    assert found.rows == ["s/b[n=2]", "s/b[n=3]"]
    assert {each.of for each in found.outcomes} == {2 * 2}
    runs[2].records.append(make_record("s", "b", params={"n": 9}))
    assert left_out(runs) == ["s/b[n=1]", "s/b[n=4]", "s/b[n=9]"]
    for row, summary in ((1, {"median_ns": 0}), (2, {})):
        record = runs[4].records[row]
        assert record.summary is not None
        status = "ok" if summary else "incorrect"
        runs[4].records[row] = replace(record, status=status, summary=replace(record.summary, **summary))
    assert left_out(runs) == [f"s/b[n={n}]" for n in (1, 2, 3, 4, 9)]
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
    for coarse in (pools.ROW, *pools.LONGER.values()):  # one process of one row is enough
        some = pools.runs(0.0)
        for record in some[7].records:
            if record.id == coarse:
                record.timer = Timer("cupti", 1e5)
        assert outcome(equal_code(some, WHEN, splits=2), "ab", 0.03).verdicts["inconclusive"] == 2
        told = {each.more: each for each in more_work(some, pools.LONGER_ROWS, WHEN, splits=2).injected}
        for share, longer in pools.LONGER.items():
            assert (told[share].unsure > 0.04) == (coarse in (pools.ROW, longer))
            assert (told[share].found == 0) >= (coarse in (pools.ROW, longer))
