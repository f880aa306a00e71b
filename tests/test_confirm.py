"""Which rows are measured again, and which of their processes stands for each."""

from __future__ import annotations

import random
from statistics import median

import builders
import pytest
from comparisons import history, judged, rate, record, run

from gpubench import confirm, gate
from gpubench.result import Record, Run
from gpubench.verdict import Verdict

MEASURED = confirm.PROCESSES - 1


def ids(base: Run, new: Run) -> list[str]:
    found = judged(base, new)
    return confirm.doubtful(gate.failing(found, gate.parse(gate.DEFAULT)))


def test_rows_that_are_slower_and_no_others_are_measured_again() -> None:
    failed = builders.make_record(params={"n": 3}, status="error", reason="x")
    base = run(record(100, n=1), record(100, n=2), record(100, n=3), record(100, n=4), record(100, n=5))
    new = run(record(110, n=1), record(90, n=2), failed, record(101, n=4), run_id="new")
    assert ids(base, new) == ["matmul-sweep/matmul[n=1]"]


def test_a_regression_against_many_runs_is_measured_again_too() -> None:
    found = judged(history([100_000] * 6), rate(110_000))
    assert [row.verdict for row in found.rows] == ["regression"]
    assert confirm.doubtful(found.rows) == ["matmul-sweep/matmul[n=64]"]


def test_nothing_is_measured_again_where_nothing_fails() -> None:
    found = judged(record(100), record(110))
    assert confirm.doubtful(gate.failing(found, gate.parse("none"))) == []


@pytest.mark.parametrize("make", [record, rate])
def test_the_middle_one_of_five_stands_for_a_row(make: object) -> None:
    assert callable(make)
    source = random.Random(1)
    for _ in range(50):
        times = [source.randint(90_000, 120_000) for _ in range(confirm.PROCESSES)]
        first, *again = (make(time_ns) for time_ns in times)
        chosen = confirm.middle(first, again)
        assert chosen.metric("time").value == median(times)
        assert any(chosen is each for each in (first, *again))


def test_of_an_even_number_the_worse_one_stands() -> None:
    for make in (record, rate):
        assert confirm.middle(make(110_000), [make(100_000)]).metric("time").value == 110_000
        four = [make(100_000), make(101_000), make(103_000)]
        assert confirm.middle(make(110_000), four).metric("time").value == 103_000


def test_a_row_that_fails_once_has_failed_and_one_that_is_skipped_says_nothing() -> None:
    first, same = record(110_000), record(100_000)
    failed = builders.make_record(params={"n": 64}, status="error", reason="x")
    skipped = builders.make_record(params={"n": 64}, status="skipped", reason="time budget")
    assert confirm.middle(first, [same, failed, same, same]) is failed
    assert confirm.middle(first, [skipped] * MEASURED) is first
    assert confirm.middle(first, [same, same, skipped, skipped]) is same


def settled(first: list[Record], *again: list[Record]) -> Run:
    return confirm.settled(run(*first, run_id="new"), [run(*rows) for rows in again], {"matmul-sweep/matmul[n=1]"})


def test_only_rows_that_were_asked_for_are_exchanged_and_the_run_stays_as_it_was() -> None:
    first = [record(110_000, n=1), record(110_000, n=2)]
    found = settled(first, *[[record(100_000, n=1), record(90_000, n=2)]] * MEASURED)
    assert [row.metric("time").value for row in found.records] == [100_000, 110_000]
    assert found.run_id == "new"
    assert [row.metric("time").value for row in first] == [110_000, 110_000]


def test_a_process_that_did_not_reach_a_row_has_none_of_it() -> None:
    assert settled([record(110_000, n=1)], [], [record(100_000, n=1)], [record(100_000, n=1)]).records[0].metrics[
        0
    ].value == pytest.approx(100_000)


def test_what_was_measured_again_is_said() -> None:
    base = run(record(100_000, n=1), record(100_000, n=2), record(100_000, n=3))
    new = run(record(110_000, n=1), record(110_000, n=2), record(100_000, n=3), run_id="new")
    again = [run(record(100_000 + 1000 * k, n=1), record(108_000 + 1000 * k, n=2)) for k in range(MEASURED)]
    before = judged(base, new)
    chosen = ids(base, new)
    after = judged(base, confirm.settled(new, again, chosen))
    confirm.explain(before, after, new, again, chosen)
    assert [row.verdict for row in after.rows] == ["same", "suspect", "same"]
    assert after.rows[0].reason == "the middle one of 5 processes"
    assert after.rows[1].reason.endswith("; the middle one of 5 processes")
    assert after.rows[2].reason is None
    assert after.notes[-1] == (
        "2 rows looked slower and were measured in 4 more processes: by the middle process of each, 1 still does"
    )
    first, second = after.details["confirmed"]["rows"]
    assert first == {
        "id": "matmul-sweep/matmul[n=1]", "first": "suspect", "verdict": "same",
        "figures": [110_000, 100_000, 101_000, 102_000, 103_000],
    }  # fmt: skip
    assert (second["first"], second["verdict"]) == ("suspect", "suspect")


def test_a_row_says_of_how_many_processes_it_is_the_middle_one() -> None:
    base, new = run(record(100_000)), run(record(110_000), run_id="new")
    again = [run(record(100_000)), run(), run(record(100_000)), run()]  # time ran out in two of them
    before, after = judged(base, new), judged(base, confirm.settled(new, again, ["matmul-sweep/matmul[n=64]"]))
    confirm.explain(before, after, new, again, ["matmul-sweep/matmul[n=64]"])
    assert after.rows[0].reason == "the middle one of 3 processes"
    assert after.details["confirmed"]["rows"][0]["figures"] == [110_000, 100_000, None, 100_000, None]


def test_pairs_decide_the_rows_that_were_asked_for() -> None:
    base = run(record(100_000, n=1), record(100_000, n=2), record(100_000, n=3))
    found = judged(base, run(record(110_000, n=1), record(110_000, n=2), record(110_000, n=3), run_id="new"))
    pairs = judged(base, run(record(100_000, n=1), record(110_000, n=2), record(100_000, n=3), run_id="new"))
    pairs.base_name, pairs.notes = "python=old", ["10 of 10 blocks"]
    pairs.rows[0].verdict, pairs.rows[1].verdict = "equivalent", "regression"
    ids_ = ["matmul-sweep/matmul[n=1]", "matmul-sweep/matmul[n=2]"]
    confirm.exchange(found, pairs, ids_)
    assert [row.verdict for row in found.rows] == ["equivalent", "regression", "suspect"]
    assert found.notes[-2:] == [
        "2 rows looked slower and were measured in turn with python=old: 1 equivalent, 1 regression", "10 of 10 blocks",
    ]  # fmt: skip
    assert [row["id"] for row in found.details["confirmed"]["rows"]] == ids_


@pytest.mark.parametrize(
    ("verdict", "taken"),
    [
        ("regression", True),
        ("improvement", True),
        ("equivalent", True),
        ("failed", True),  # of the new side
        ("missing", True),
        ("inconclusive", False),  # after too few blocks
        ("fixed", False),  # the base failed
        ("still failing", False),
        ("not comparable", False),
        ("invalid", False),
    ],
)
def test_a_row_is_cleared_or_failed_by_what_the_pairs_say_of_the_new_side(verdict: Verdict, taken: bool) -> None:
    found, pairs = judged(record(100_000), record(110_000)), judged(record(100_000), record(110_000))
    pairs.rows[0].verdict, pairs.rows[0].reason = verdict, "why"
    confirm.exchange(found, pairs, ["matmul-sweep/matmul[n=64]"])
    (row,), (told,) = found.rows, found.details["confirmed"]["rows"]
    now = verdict if taken else "suspect"
    assert (row.verdict, told["first"], told["verdict"]) == (now, "suspect", now)
    assert str(row.reason).endswith("why" if taken else f"nothing decided in pairs: {verdict}, why")


def test_pairs_that_left_a_row_open_after_enough_blocks_say_so() -> None:
    found, pairs = judged(record(100_000), record(110_000)), judged(record(100_000), record(110_000))
    pairs.rows[0].verdict, pairs.rows[0].paired = "inconclusive", {"detectable": 0.2}
    confirm.exchange(found, pairs, ["matmul-sweep/matmul[n=64]"])
    assert found.rows[0].verdict == "inconclusive"


def test_rows_that_the_pairs_never_reached_stay_as_they_were() -> None:
    found = judged(record(100_000), record(110_000))
    confirm.exchange(found, judged(run(), run(run_id="new")), ["matmul-sweep/matmul[n=64]"])
    assert [row.verdict for row in found.rows] == ["suspect"]
    assert found.notes[-1].endswith(": no verdict")


def test_chance_alone_seldom_survives() -> None:
    """Of processes that stray by 2 % one in fifteen crosses a margin of 3 %; where it does, the middle one of five does
    in one case of forty."""
    source = random.Random(20260712)
    looked = stayed = 0
    for _ in range(2000):
        times = [round(100_000 * (1 + source.gauss(0, 0.02))) for _ in range(confirm.PROCESSES)]
        if times[0] <= 103_000:
            continue
        looked += 1
        rows = [record(each) for each in times]
        stayed += confirm.middle(rows[0], rows[1:]).metric("time").value > 103_000
    assert 80 < looked < 200
    assert stayed < looked / 10
