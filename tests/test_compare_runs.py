from __future__ import annotations

import json
import math
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import builders
import pytest
from comparisons import MIRROR, at, device, history, judged, only, rate, run, verdicts
from hypothesis import given, settings
from hypothesis import strategies as st

from gpubench.compare.runs import compare
from gpubench.errors import UsageError
from gpubench.result import FAILED, Conditions, Metric, Record, Timer
from gpubench.suite import record_id
from gpubench.verdict import Verdict

# Matching


def test_every_row_of_either_side_is_there_once_in_the_order_of_the_base() -> None:
    base = run(rate(n=3), rate(n=1), rate(n=2))
    new = run(rate(n=4), rate(n=2), rate(n=3), run_id="new")
    assert verdicts(judged(base, new)) == {"n=3": "same", "n=1": "missing", "n=2": "same", "n=4": "new"}


def test_an_empty_or_a_disjoint_run_compares_nothing() -> None:
    base, other = run(rate(n=1), rate(n=2)), run(rate(n=3), run_id="new")
    assert verdicts(judged(base, run(run_id="new"))) == {"n=1": "missing", "n=2": "missing"}
    assert verdicts(judged(base, other)) == {"n=1": "missing", "n=2": "missing", "n=3": "new"}
    assert verdicts(judged(run(), other)) == {"n=3": "new"}
    assert judged(run(), run(run_id="new")).rows == []


def test_rows_of_other_conditions_are_other_rows() -> None:
    cold, hot = rate(), rate(50_000, conditions=Conditions(cache="hot"))
    outcome = judged(run(cold, hot), run(hot, cold, run_id="new"))
    assert [row.verdict for row in outcome.rows] == ["same", "same"]
    assert [row.conditions["cache"] for row in outcome.rows] == ["cold", "hot"]


@pytest.mark.parametrize("field", ["cache", "load", "data"])
def test_a_row_under_other_conditions_than_the_base_is_not_comparable(field: str) -> None:
    other = {"cache": "hot", "load": "sustained", "data": "zeros"}[field]
    found = only(rate(), rate(200_000, conditions=Conditions(**{field: other})))
    assert found.verdict == "not comparable"
    assert found.reason == f"{field}: {getattr(Conditions(), field)} against {other}"
    assert found.changes == []


def test_a_failed_row_under_other_conditions_has_not_failed_the_one_of_the_base() -> None:
    failed = rate(status="error", reason="boom", conditions=Conditions(load="sustained"))
    assert only(rate(), failed).verdict == "not comparable"


def test_rows_that_differ_in_conditions_alone_are_set_beside_the_nearest() -> None:
    hot, sustained = Conditions(cache="hot"), Conditions(load="sustained")
    both = Conditions(cache="hot", load="sustained")
    new = run(*(rate(conditions=each) for each in (both, sustained)), rate(n=5, conditions=hot), run_id="new")
    outcome = judged(run(rate(), rate(conditions=hot), rate(n=5)), new)
    assert [(row.verdict, row.reason) for row in outcome.rows] == [
        ("not comparable", "load: burst against sustained"),
        ("not comparable", "load: burst against sustained"),
        ("not comparable", "cache: cold against hot"),
    ]
    assert [row.id.partition("[")[2] for row in outcome.rows] == ["n=64]", "cache=hot,n=64]", "n=5]"]


def test_of_rows_under_other_conditions_more_than_there_were_the_rest_is_new() -> None:
    hot, sustained = Conditions(cache="hot"), Conditions(load="sustained")
    outcome = judged(rate(), run(rate(conditions=hot), rate(conditions=sustained), run_id="new"))
    assert [row.verdict for row in outcome.rows] == ["not comparable", "new"]
    assert outcome.rows[0].reason == "cache: cold against hot", "of two as near the first"
    fewer = judged(run(rate(conditions=hot), rate(conditions=sustained)), rate())
    assert [row.verdict for row in fewer.rows] == ["not comparable", "missing"]
    added = judged(rate(), run(rate(conditions=sustained), rate(), run_id="new"))
    assert [(row.verdict, row.id) for row in added.rows] == [
        ("same", "matmul-sweep/matmul[n=64]"),
        ("new", "matmul-sweep/matmul[load=sustained,n=64]"),
    ], "the row itself is there"


def test_a_row_of_an_older_file_whose_id_has_no_conditions_is_the_same_row() -> None:
    hot = rate(conditions=Conditions(cache="hot"))
    older = replace(hot, id="matmul-sweep/matmul[n=64]")
    for found in (only(older, hot), only(hot, older)):
        assert (found.verdict, found.id) == ("same", "matmul-sweep/matmul[cache=hot,n=64]")
    assert only(older, rate()).reason == "cache: hot against cold"
    runs = history([100_000, 100_100, 99_900, 100_050, 99_950], conditions=Conditions(cache="hot"))
    for each in runs:
        each.records[0].id = older.id
    assert only(runs, rate(120_000, conditions=Conditions(cache="hot"))).verdict == "regression"


def test_a_row_that_is_there_twice_is_refused() -> None:
    with pytest.raises(UsageError, match=r"new: matmul-sweep/matmul\[n=64\] is in it twice"):
        judged(rate(), run(rate(), rate(), run_id="new"))
    with pytest.raises(UsageError, match="twice"):
        judged(run(rate(), rate()), rate())


def test_without_a_base_there_is_nothing_to_compare_with() -> None:
    with pytest.raises(ValueError, match="no base"):
        judged([], rate())


# Rows without a figure


@pytest.mark.parametrize("status", sorted(FAILED))
def test_a_row_that_fails_now_is_failed_and_one_that_failed_is_fixed(status: str) -> None:
    failed = rate(status=status, reason="the reason")
    assert only(rate(), failed).verdict == "failed"
    assert only(failed, rate()).verdict == "fixed"
    assert only(failed, rate()).reason == f"{status}: the reason in the base"
    assert only(failed, failed).verdict == "still failing"
    assert "the reason" in str(only(rate(), failed).reason)


def test_a_row_newly_incorrect_is_called_so() -> None:
    wrong = rate(status="incorrect", reason="3 of 9 differ")
    assert only(rate(), wrong).reason == "newly incorrect: 3 of 9 differ"
    out_of_memory = rate(status="oom")
    assert only(out_of_memory, wrong).verdict == "still failing"
    assert only(out_of_memory, wrong).reason == "oom in the base, now incorrect: 3 of 9 differ"


@pytest.mark.parametrize("status", ["skipped", "unsupported"])
def test_to_be_skipped_is_no_failure_but_a_figure_of_the_base_is_missed(status: str) -> None:
    skipped = rate(status=status, reason="time budget")
    failed = rate(status="error", reason="boom")
    assert (only(rate(), skipped).verdict, only(rate(), skipped).reason) == ("missing", f"{status}: time budget")
    assert only(failed, skipped).verdict == "missing"
    assert only(skipped, rate()).verdict == "new"
    assert only(skipped, failed).verdict == "failed"
    assert (only(skipped, skipped).verdict, only(skipped, skipped).changes) == ("same", [])


@pytest.mark.parametrize(
    ("status", "gone", "added"), [("skipped", "same", "new"), ("error", "missing", "failed"), ("ok", "missing", "new")]
)
def test_a_row_of_one_side_alone_without_a_figure(status: str, gone: str, added: str) -> None:
    row = rate(status=status)
    assert only(run(row), run(run_id="new")).verdict == gone
    assert only(run(), run(row, run_id="new")).verdict == added


def test_a_figure_left_in_a_failed_row_is_not_compared() -> None:
    left = replace(rate(1_000), status="error", reason="boom")
    found = only(rate(), left)
    assert (found.verdict, found.changes) == ("failed", [])


# Margins, hosts, histories


@pytest.mark.parametrize(
    ("margins", "verdict"),
    [
        ({"matmul-sweep": 0.1}, "same"),
        ({"matmul-sweep/matmul": 0.1}, "same"),
        ({"matmul*": 0.1}, "same"),
        ({"matmul-sweep/matmul[n=64]": 0.1}, "same"),
        ({"bandwidth": 0.1}, "suspect"),
        ({"matmul-sweep": 0.1, "matmul-sweep/matmul": 0.03}, "suspect"),  # the last that fits
        ({"matmul-sweep": 0.01}, "suspect"),
    ],
)
def test_margins_of_a_suite_or_a_benchmark(margins: dict[str, float], verdict: str) -> None:
    assert only(rate(100_000), rate(105_000), margins=margins).verdict == verdict


def test_a_margin_of_its_own_may_be_narrower_than_the_common_one() -> None:
    assert only(rate(100_000), rate(102_000), margins={"matmul-sweep": 0.01}).verdict == "suspect"
    assert only(rate(100_000), rate(102_000), margins={"bandwidth": 0.01}).verdict == "same"


def test_what_was_compared_by_what_is_kept() -> None:
    runs = history([100_000] * 3)
    runs[0].device = builders.CPU
    outcome = judged(runs, rate(), margin=0.07, margins={"softmax": 0.2})
    assert (outcome.margin, outcome.base_name, outcome.new_name) == (0.07, "run-2", "new")
    assert (outcome.details["history"], outcome.details["margins"]) == (3, {"softmax": 0.2})


@pytest.mark.parametrize("margin", [1.0, 10.0, -0.05, math.nan, math.inf])
def test_a_margin_that_is_none_is_refused(margin: float) -> None:
    with pytest.raises(ValueError, match="margin"):
        judged(rate(), rate(), margin=margin)
    with pytest.raises(ValueError, match="margin"):
        judged(rate(), rate(), margins={"matmul-sweep": margin})


def test_an_override_shows_the_changes_and_no_verdict() -> None:
    base, new = run(rate(), **device()), run(rate(200_000), run_id="new", **device(name="NVIDIA H100"))
    outcome = judged(base, new, host_mismatch="warn")
    assert outcome.rows[0].verdict == "not comparable"
    assert outcome.rows[0].change is not None
    assert outcome.rows[0].change.ratio == pytest.approx(0.5)
    assert "without a verdict" in outcome.notes[0]
    assert "--host-mismatch warn" in judged(base, new).notes[0]
    new.records[0].metrics = []
    assert judged(base, new, host_mismatch="warn").rows[0].changes == []


def test_the_newest_run_of_the_base_is_shown_in_whatever_order_they_come() -> None:
    runs = history([100_000, 100_100, 99_900, 100_000, 100_000, 101_000])
    for name, each in zip("cbafed", runs, strict=True):
        each.run_id = name
    outcome = judged([*runs[3:], *runs[:3]], rate(101_000))
    assert outcome.base_name == "d"
    few = judged([*runs[3:], *runs[2:3]], rate(101_000))
    assert (few.base_name, few.rows[0].base_run, few.rows[0].middle_of) == ("d", "d", None)
    assert few.rows[0].change is not None
    assert few.rows[0].change.ratio == pytest.approx(1)


# The middle run


@pytest.mark.parametrize(
    ("times", "run_id"),
    [
        ([103, 100, 101, 104, 102], "run-4"),
        ([104, 100, 103, 101, 102, 105], "run-4"),  # of 102 and 103 the newer
        ([104, 100, 102, 101, 103, 105], "run-4"),
        ([100] * 7, "run-6"),
        ([100, 102, 101, 101, 100, 105, 99], "run-3"),  # of two that are 101
    ],
)
def test_with_five_runs_a_row_is_held_against_the_middle_one_of_them(times: list[int], run_id: str) -> None:
    runs = history([1000 * each for each in times])
    outcome = judged(runs, rate(101_000))
    (found,) = outcome.rows
    assert outcome.base_name == runs[-1].run_id
    assert (found.base_run, found.middle_of) == (run_id, len(times))
    (base,) = (each for each in runs if each.run_id == run_id)
    assert found.base is base.records[0]
    assert found.change is not None
    assert found.change.ratio == pytest.approx(base.records[0].summary.median_ns / 101_000)  # type: ignore[union-attr]


def test_a_row_that_too_few_runs_have_is_held_against_the_newest() -> None:
    runs = history([100_000, 100_100, 99_900, 100_050, 99_950, 100_000])
    for each, extra in zip(runs[2:], [101_000, 101_000, 101_000, 109_000], strict=True):
        each.records.append(rate(extra, n=5))
    found = judged(runs, run(rate(100_000), rate(105_000, n=5), run_id="new")).rows
    assert [(row.base_run, row.middle_of, row.verdict) for row in found] == [
        ("run-5", 6, "same"),
        ("run-5", None, "better"),
    ]
    assert found[1].reason == "beyond the margin of 3 %, on the evidence of fewer than 5 runs of the base like this one"


def test_what_rows_there_are_is_what_the_newest_run_says() -> None:
    """However many of the earlier ones have a figure."""
    failed = rate(status="error", reason="boom")
    runs = history([100_000, 100_100, 99_900, 100_050, 99_950, 100_000])
    runs[-1].records = [failed]
    for new, verdict in ((rate(), "fixed"), (failed, "still failing"), (rate(status="skipped"), "missing")):
        found = only(runs, new)
        assert (found.verdict, found.base, found.base_run, found.middle_of) == (verdict, failed, "run-5", None)
    runs[-1].records = []
    assert only(runs, rate()).verdict == "new"
    runs[-1].records = [rate(n=5)]
    assert verdicts(judged(runs, run(rate(), run_id="new"))) == {"n=5": "missing", "n=64": "new"}
    runs[-1].records = [rate(conditions=Conditions(cache="hot"))]
    assert only(runs, rate()).reason == "cache: hot against cold"


@pytest.mark.parametrize(
    ("odd", "verdict"),
    [
        (at(1700.0), "not comparable"),
        (rate(definition="another"), "not comparable"),
        (rate(flags=["implausible"]), "invalid"),
        (replace(rate(), metrics=[Metric("time", 90_000.0, "ns", "lower", True)]), "invalid"),
    ],
)
def test_a_newest_run_that_the_row_cannot_be_held_against_is_one_less(odd: Record, verdict: str) -> None:
    """Five others judge it; with four there is the newest alone."""
    runs = history([100_000, 100_100, 99_900, 100_050, 99_950, 100_000])
    runs[-1].records = [odd]
    assert (only(runs, rate(101_000)).verdict, only(runs, rate(101_000)).middle_of) == ("same", 5)
    assert only(runs, rate(105_000)).verdict == "regression"
    found = only(runs[1:], rate(101_000))
    assert (found.verdict, found.base_run, found.middle_of) == (verdict, "run-5", None)


def test_a_definition_that_changed_within_the_history_divides_it() -> None:
    older, newer = history([50_000] * 5), history([0] * 5 + [100_000, 100_100, 99_900, 100_050, 99_950])[5:]
    for each in older:
        each.records[0].definition = "another"
    found = only([*older, *newer], rate(101_000))
    assert (found.verdict, found.middle_of, found.base_run) == ("same", 5, "run-5")
    assert only([*older, *newer[1:]], rate(104_000)).base_run == "run-9"


def test_what_differs_and_what_is_suggested_is_of_the_run_a_row_is_held_against() -> None:
    runs = history([100_000, 100_100, 99_900, 100_050, 99_950, 120_000])
    for each in runs[:-1]:
        each.software = {"torch": "2.10"}
    runs[-1].software = {"torch": "2.11"}
    runs[-1].records[0].flags = ["noisy"]
    new = run(rate(110_000), run_id="new", software={"torch": "2.11"})
    outcome = judged(runs, new)
    (found,) = outcome.rows
    assert (found.base_run, found.subject, outcome.details["subject"]) == ("run-3", ["torch: 2.10 → 2.11"], [])
    assert not any("noisy" in hint for hint in found.hints)


def test_a_quick_run_of_the_base_neither_predicts_nor_stands_for_the_others() -> None:
    runs = history([100_000, 100_100, 99_900, 100_050, 99_950, 100_000])
    runs[0].tags = ["quick"]
    outcome = judged(runs, rate(105_000))
    assert (outcome.rows[0].verdict, outcome.rows[0].middle_of, outcome.details["quick"]) == ("regression", 5, False)
    assert "1 run of the base is a quick one, of which nothing is predicted" in outcome.notes
    runs[1].tags = ["quick"]
    outcome = judged(runs, rate(105_000))
    assert (outcome.rows[0].verdict, outcome.rows[0].base_run) == ("suspect", "run-5")


def test_runs_that_cannot_be_compared_do_not_stand_for_a_newest_one_that_cannot() -> None:
    runs = history([100_000] * 6)
    runs[-1].device = builders.CPU
    for option in ("error", "warn"):
        found = only(runs, rate(), host_mismatch=option)
        assert (found.verdict, found.base_run, found.middle_of) == ("not comparable", "run-5", None)


def test_only_runs_that_can_be_compared_predict() -> None:
    runs = history([100_000, 100_100, 99_900, 100_050, 99_950])
    assert only(runs, rate(105_000)).verdict == "regression"
    runs[0].device = {**builders.GPU, "name": "NVIDIA H100"}
    assert only(runs, rate(105_000)).verdict == "suspect"
    runs = history([100_000, 100_100, 99_900, 100_050, 99_950])
    for spoil in (
        replace(rate(), status="error"),
        rate(definition="another"),
        rate(metrics=[Metric("flops", 0.0, "FLOP/s", "higher", True)]),
        rate(metrics=[Metric("flops", 1e13, "GFLOP/s", "higher", True)]),
        at(1700.0),
    ):
        runs[1].records = [spoil]
        assert only(runs, rate(105_000)).verdict == "suspect"


def test_the_new_run_is_not_part_of_its_own_history() -> None:
    runs = history([100_000, 100_100, 99_900, 100_050, 120_000])
    outcome = judged(runs, runs[-1])
    assert outcome.base_name == "run-3"
    assert outcome.rows[0].verdict == "suspect"
    assert "among the runs of the base" in outcome.notes[0]


def test_a_history_of_which_a_part_is_of_another_device_says_so() -> None:
    runs = history([100_000] * 6)
    for each in runs[:2]:
        each.device = builders.CPU
    outcome = judged(runs, rate(110_000))
    assert "only 4 of the 6 runs of the base can be compared with the new one" in outcome.notes
    assert outcome.rows[0].verdict == "suspect"


def test_the_margin_of_a_row_is_named_in_its_verdict() -> None:
    found = only(rate(100_000), rate(120_000), margins={"matmul-sweep": 0.125})
    assert found.reason == "beyond the margin of 12.5 %, on the evidence of one run a side"


def test_a_run_counts_once() -> None:
    twice = history([100_000] * 3) + history([100_000] * 3)
    assert only(twice, rate(110_000)).verdict == "suspect"


# Notes


def test_a_run_against_itself_is_the_same_in_every_row() -> None:
    itself = builders.make_run([*builders.make_sweep(), rate(status="error"), rate(n=5, status="unsupported")])
    outcome = compare(itself, itself)
    assert outcome.count("same", "still failing") == len(outcome.rows) == len(itself.records)
    assert outcome.notes == ["base and new are the same run"]


def test_rows_of_earlier_runs_alone_are_told() -> None:
    earlier = run(rate(n=1), rate(n=2), rate(n=3), run_id="a", started_at="2026-07-01T00:00:00.000Z")
    newest = run(rate(n=1), run_id="b", started_at="2026-07-02T00:00:00.000Z")
    found = judged([newest, earlier], run(rate(n=1), rate(n=2), run_id="new"))
    assert [row.verdict for row in found.rows] == ["same", "new"]
    assert "1 row is in earlier runs of the base only, not in its newest: not asked for" in found.notes
    assert not any("earlier runs" in note for note in judged([earlier, newest], earlier).notes)
    earlier.records[2].status = "skipped"
    assert not any(
        "earlier runs" in note for note in judged([earlier, newest], run(rate(n=1), rate(n=2), run_id="new")).notes
    )


def test_what_a_reader_must_know_of_the_runs() -> None:
    outcome = judged(run(rate(), status="partial"), run(rate(), run_id="new", tags=["quick"]))
    assert outcome.notes == [
        "the base run is partial: rows it did not reach are not in it",
        "the new run is a quick one, which never decides a build",
    ]
    assert outcome.details["quick"] is True
    mirrored = judged(run(rate(), tags=["quick"]), run(rate(), run_id="new", status="interrupted"))
    assert mirrored.details["quick"] is True
    assert mirrored.notes == [
        "the base run is a quick one, which never decides a build",
        "the new run is interrupted: rows it did not reach are not in it",
    ]
    assert json.loads(json.dumps(outcome.details)) == outcome.details


# Properties


def row_of(times: st.SearchStrategy[int]) -> st.SearchStrategy[Record]:
    """A row in any state: measured, failed, skipped, without a figure, under another timer or clock."""
    kinds: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
        [
            {},
            {},
            {},
            {"half": None},
            {"status": "error"},
            {"status": "incorrect"},
            {"status": "skipped"},
            {"metrics": []},
            {"timer": Timer("event", 500.0)},
            {"conditions": Conditions(cache="hot")},
            {"flags": ["implausible"]},
        ]
    )
    return st.builds(lambda time_ns, kind: rate(time_ns, **kind), times, kinds)


TIMES = st.integers(1, 10**7)
ROWS = st.lists(row_of(TIMES), max_size=6)


def numbered(rows: list[Record]) -> list[Record]:
    return [
        replace(row, params={"n": n}, id=record_id("matmul-sweep", "matmul", {"n": n}, row.conditions))
        for n, row in enumerate(rows)
    ]


@settings(max_examples=60, deadline=None)
@given(ROWS, ROWS, st.sampled_from([0.0, 0.03, 0.5]))
def test_every_row_has_one_verdict_and_swapping_the_sides_mirrors_it(
    old: list[Record], now: list[Record], margin: float
) -> None:
    base, new = run(*numbered(old)), run(*numbered(now), run_id="new")
    there, back = judged(base, new, margin=margin), judged(new, base, margin=margin)
    ids = {record.id for row in there.rows for record in (row.base, row.new) if record is not None}
    assert {record.id for record in [*base.records, *new.records]} == ids
    assert sum(row.base is not None for row in there.rows) == len(old)
    assert sum(row.new is not None for row in there.rows) == len(now)
    assert all(row.verdict in get_args(Verdict) for row in there.rows)
    mirrored = {(row.id, row.conditions["cache"]): row.verdict for row in back.rows}
    for row in there.rows:
        if row.changes:
            assert mirrored[row.id, row.conditions["cache"]] == MIRROR.get(row.verdict, row.verdict)


@settings(max_examples=40, deadline=None)
@given(st.lists(ROWS, min_size=5, max_size=7), ROWS, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_the_files_changes_nothing(
    history: list[list[Record]], now: list[Record], at_once: bool, source: random.Random
) -> None:
    bases = [
        run(*numbered(rows), run_id=f"base-{day}", started_at=f"2026-07-{1 if at_once else day + 1:02}")
        for day, rows in enumerate(history)
    ]
    new = run(*numbered(now), run_id="new")
    found = judged(bases, new)
    source.shuffle(bases)
    assert judged(bases, new) == found
    for row in found.rows:
        if row.base is not None:
            (of,) = (each for each in bases if each.run_id == row.base_run)
            assert any(record is row.base for record in of.records)


@settings(max_examples=40, deadline=None)
@given(ROWS, ROWS, st.integers(0, 8))
def test_an_unchanged_row_more_changes_no_verdict_and_is_no_regression(
    old: list[Record], now: list[Record], runs: int
) -> None:
    base, new = run(*numbered(old)), run(*numbered(now), run_id="new")
    before = {(row.id, row.conditions["cache"]): row.verdict for row in judged(base, new).rows}
    extra = rate(n=1000)
    earlier = [
        replace(base, run_id=f"e{day}", started_at=f"2026-06-{day + 1:02}", records=[extra]) for day in range(runs)
    ]
    base.records.append(extra)
    new.records.append(extra)
    outcome = judged([*earlier, base], new)
    after = {(row.id, row.conditions["cache"]): row.verdict for row in outcome.rows}
    assert after.pop((extra.id, "cold")) == "same"
    assert after == before


# Size


def test_five_thousand_rows_take_less_than_two_seconds() -> None:
    base, new = (run(*(rate(time_ns, n=n) for n in range(5000)), run_id=str(time_ns)) for time_ns in (1000, 1100))
    begun = time.process_time()
    outcome = judged(base, new)
    assert time.process_time() - begun < 2
    assert outcome.count("suspect") == 5000


def test_the_reference_run_is_read_and_compared() -> None:
    from gpubench.store.folder import read_run

    path = Path(__file__).parents[1] / "results/reference/h200/matmul-sweep.json.gz"
    reference = read_run(path)
    assert judged(reference, replace(reference, run_id="new")).count("same") == len(reference.records)
