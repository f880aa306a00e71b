from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

import builders
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench import gate
from gpubench.compare.runs import compare
from gpubench.errors import UsageError
from gpubench.exits import Exit, first
from gpubench.keys import Fraction
from gpubench.result import Conditions, Record, Run
from gpubench.verdict import FAILING, Change, Judged, Mismatch, Row, Verdict

DEFAULT = gate.parse(gate.DEFAULT)
HOST = Mismatch("device", "NVIDIA H200", "NVIDIA H100", host=True)
TIMER = Mismatch("timer", "cupti", "event")
MATCHED = [verdict for verdict in get_args(Verdict) if verdict not in ("missing", "new")]
FIGURES = ("same", "suspect", "better", "regression", "improvement", "equivalent", "inconclusive")


def row(verdict: Verdict, *mismatches: Mismatch) -> Row:
    """A row as `compare` gives it with that verdict."""
    record = builders.make_record()
    sides = {"base": None if verdict == "new" else record, "new": None if verdict == "missing" else record}
    changes = [Change("time", "ns", "lower", 1.0, 1.0, 1.0, None, None, 0.0, True)] if verdict in FIGURES else []
    return Row(record.id, {}, verdict, changes=changes, mismatches=list(mismatches), **sides)


def judged(rows: Iterable[Row | Verdict], **details: Any) -> Judged:
    rows = [each if isinstance(each, Row) else row(each) for each in rows]
    return Judged("base", "new", 0.03, rows, details=details)


def code(*rows: Row | Verdict, fail_on: str = gate.DEFAULT, **details: Any) -> Exit:
    return first(gate.decide(judged(rows, **details), gate.parse(fail_on)))


def test_by_default_a_build_fails_on_what_got_worse_or_cannot_be_judged() -> None:
    assert gate.parse(gate.DEFAULT) == {
        "regression", "suspect", "inconclusive", "failed", "missing", "invalid", "not comparable",
    }  # fmt: skip
    assert DEFAULT >= FAILING


@pytest.mark.parametrize(
    ("verdict", "exit_code"),
    [
        ("same", Exit.DONE),
        ("better", Exit.DONE),
        ("improvement", Exit.DONE),
        ("new", Exit.DONE),
        ("fixed", Exit.DONE),
        ("still failing", Exit.DONE),
        ("suspect", Exit.UNDECIDED),
        ("regression", Exit.REGRESSION),
        ("failed", Exit.FAILED),
        ("missing", Exit.FAILED),
        ("invalid", Exit.FAILED),
        ("not comparable", Exit.FAILED),  # while another row is
    ],
)
def test_the_exit_code_of_a_verdict_beside_a_row_that_is_the_same(verdict: Verdict, exit_code: Exit) -> None:
    assert code("same", verdict) == exit_code
    assert code(*["same"] * 5, *[verdict] * 256) == exit_code


def test_every_verdict_but_same_can_fail_a_build() -> None:
    assert set(gate.FAIL_ON.values()) == set(get_args(Verdict)) - gate.UNCHANGED == set(gate.EXITS)
    for word, verdict in gate.FAIL_ON.items():
        assert code("same", verdict, fail_on=word) == gate.EXITS[verdict] != Exit.DONE
        bringing = {"missing", "suspect" if word == "inconclusive" else "missing"}  # words that bring others with them
        others = ",".join(other for other in gate.FAIL_ON if other not in (word, *bringing))
        assert code("same", verdict, fail_on=others) == Exit.DONE


@pytest.mark.parametrize(
    ("verdict", "exit_code"),
    [
        ("inconclusive", Exit.UNDECIDED),
        ("better", Exit.UNDECIDED),
        ("improvement", Exit.UNDECIDED),
        ("new", Exit.UNDECIDED),
        ("fixed", Exit.UNDECIDED),
        ("still failing", Exit.FAILED),
    ],
)
def test_what_a_build_asks_to_fail_on_is_no_regression(verdict: Verdict, exit_code: Exit) -> None:
    assert code("same", verdict, fail_on=verdict.replace(" ", "-")) == exit_code


def test_of_several_the_first_of_the_table_counts() -> None:
    assert code("suspect", "regression") == Exit.REGRESSION
    assert code("suspect", "regression", "missing") == Exit.FAILED
    assert sorted(gate.decide(judged(["suspect", "regression", "missing"]), DEFAULT)) == [3, 4, 6]


def test_nothing_compared_never_passes() -> None:
    for rows in ([], ["new"], ["fixed"], ["still failing"], ["failed"], ["invalid"], ["missing"], ["new", "missing"]):
        assert code(*rows, fail_on="none") == Exit.NOTHING
    skipped = row("same")
    skipped.changes = []
    assert code(skipped) == Exit.NOTHING
    assert code("missing") == Exit.FAILED
    assert code("missing", "new") == Exit.FAILED


@given(st.lists(st.sampled_from(get_args(Verdict))), st.sets(st.sampled_from(sorted(gate.FAIL_ON))))
def test_only_with_a_row_judged_does_a_build_pass(verdicts: list[Verdict], words: set[str]) -> None:
    fail_on = ",".join(sorted(words)) or gate.NONE
    passed = code(*verdicts, fail_on=fail_on) == Exit.DONE
    assert passed <= any(verdict in FIGURES for verdict in verdicts)
    assert passed <= (not set(verdicts) & gate.parse(fail_on))


def test_every_matched_row_not_comparable_is_an_exit_code_of_its_own() -> None:
    apart = row("not comparable", HOST)
    for fail_on in (gate.DEFAULT, "none", "regression", "not-comparable"):
        assert gate.decide(judged([apart, apart]), gate.parse(fail_on)) == [Exit.NOT_COMPARABLE]
    assert code(apart, "new") == Exit.NOT_COMPARABLE
    assert code(apart, "missing") == Exit.FAILED
    assert code(apart, "missing", fail_on="regression") == Exit.NOT_COMPARABLE


def test_an_override_lets_another_device_pass_and_nothing_else() -> None:
    host, timer, both = (row("not comparable", *each) for each in ((HOST,), (TIMER,), (HOST, TIMER)))
    assert code(host, host, host_mismatch="warn") == Exit.DONE
    assert code("same", host, host_mismatch="warn") == Exit.DONE
    assert code("suspect", host, host_mismatch="warn") == Exit.UNDECIDED
    assert code(host, host_mismatch="error") == Exit.NOT_COMPARABLE
    for other in (timer, both):
        assert code(other, host_mismatch="warn") == Exit.NOT_COMPARABLE
        assert code(other, host, host_mismatch="warn") == Exit.NOT_COMPARABLE
        assert code("same", other, host_mismatch="warn") == Exit.FAILED
    host.changes = row("same").changes
    assert code(host, "failed", fail_on="none", host_mismatch="warn") == Exit.NOTHING


@pytest.mark.parametrize("verdict", ["suspect", "regression", "failed", "missing", "invalid"])
def test_a_quick_run_never_fails_a_build_by_a_verdict(verdict: Verdict) -> None:
    assert code("same", verdict, quick=True) == Exit.DONE
    assert gate.failing(judged(["same", verdict], quick=True), DEFAULT) == []
    assert code("new", quick=True) == Exit.NOTHING
    assert code(row("not comparable", HOST), quick=True) == Exit.NOT_COMPARABLE


def test_the_rows_that_fail_a_build_are_those_of_its_verdicts() -> None:
    rows = [row("same"), row("suspect"), row("missing"), row("not comparable", HOST)]
    assert gate.failing(judged(rows), DEFAULT) == rows[1:]
    assert gate.failing(judged(rows, host_mismatch="warn"), DEFAULT) == rows[1:3]
    assert gate.failing(judged(rows), gate.parse("suspect")) == [rows[1]]


# Words


@pytest.mark.parametrize(
    ("text", "verdicts"),
    [
        ("regression", {"regression"}),
        ("regression,suspect", {"regression", "suspect", "inconclusive"}),
        (" regression , suspect ", {"regression", "suspect", "inconclusive"}),
        ("inconclusive", {"inconclusive"}),
        ("regression,regression", {"regression"}),
        ("still-failing", {"still failing"}),
        ("not-comparable", {"not comparable"}),
        ("missing", {"missing", "invalid", "not comparable"}),
        ("none", set()),
    ],
)
def test_fail_on(text: str, verdicts: set[str]) -> None:
    assert gate.parse(text) == verdicts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a word is missing"),
        (" ", "a word is missing"),
        (",", "a word is missing"),
        ("regression,", "a word is missing"),
        ("regression,,suspect", "a word is missing"),
        ("none,failed", "none stands alone"),
        ("same", "no verdict 'same'"),
        ("regresion", "did you mean regression?"),
        ("Suspect", "did you mean suspect?"),
        ("not_comparable", "did you mean not-comparable?"),
        ("not comparable", "did you mean not-comparable?"),
        ("all", "no verdict 'all'"),
        ("regression;suspect", "no verdict"),
    ],
)
def test_fail_on_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        gate.parse(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "margin"), [("3%", 0.03), ("0.03", 0.03), ("0%", 0.0), ("10%", 0.1), ("99.9%", 0.999)]
)
def test_margins(text: str, margin: float) -> None:
    assert Fraction().read(text) == margin


@pytest.mark.parametrize(
    "text",
    [
        "10",
        "3",
        "1",
        "1.0",
        "nan",
        "nan%",
        "inf",
        "inf%",
        "-5",
        "-5%",
        "-0.03",
        "100%",
        "300%",
        "1e999%",
        "",
        "%",
        "3 percent",
        "0,03",
        "٣%",
        "+3%",
    ],
)
def test_margins_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        Fraction().read(text)
    assert "\n" not in str(caught.value)


# From runs to exit codes


def run(*records: Record, **fields: Any) -> Run:
    return builders.make_run(list(records), **({"run_id": "new"} | fields))


def rows(count: int, time_ns: int = 100_000, **fields: Any) -> list[Record]:
    return [builders.make_record(params={"n": n}, time_ns=time_ns, **fields) for n in range(count)]


def exit_of(base: Run | list[Run], new: Run) -> Exit:
    return first(gate.decide(compare(base, new), DEFAULT))


def test_whole_runs() -> None:
    base = run(*rows(300), run_id="base")
    assert exit_of(base, base) == Exit.DONE
    assert exit_of(base, run(*rows(300))) == Exit.DONE
    assert exit_of(base, run()) == Exit.FAILED
    assert exit_of(run(run_id="base"), run()) == Exit.NOTHING
    assert exit_of(run(run_id="base"), run(*rows(3))) == Exit.NOTHING
    assert exit_of(base, run(*rows(299))) == Exit.FAILED
    assert exit_of(base, run(*rows(301))) == Exit.DONE
    assert exit_of(base, run(*rows(300, 110_000))) == Exit.UNDECIDED
    assert exit_of(base, run(*rows(300, 90_000))) == Exit.DONE
    assert exit_of(base, run(*rows(299), *rows(300, status="error")[299:])) == Exit.FAILED
    assert exit_of(run(*rows(2, status="error"), run_id="base"), run(*rows(2))) == Exit.NOTHING
    assert exit_of(base, run(*rows(300, conditions=Conditions(load="sustained")))) == Exit.NOT_COMPARABLE
    assert exit_of(base, run(*rows(300), device=builders.CPU)) == Exit.NOT_COMPARABLE


def test_256_regressions_are_a_regression() -> None:
    base = [run(*rows(256), run_id=f"run-{day}", started_at=f"2026-07-0{day + 1}T00:00:00Z") for day in range(6)]
    assert exit_of(base, run(*rows(256, 110_000))) == Exit.REGRESSION
