"""From a finding to exactly one verdict, and from a run to what its file holds."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest
from builders import make_record, make_run
from hypothesis import given, settings
from hypothesis import strategies as st

from gpubench import Suite
from gpubench.claims import judge as claims
from gpubench.claims.statements import Statement
from gpubench.claims.view import View
from gpubench.errors import UsageError
from gpubench.finding import TIMES, Effect, Estimate, Finding, NotTestable, exactly
from gpubench.store import runfile

ALONE = {"HOLDS", "PARTLY", "ABSENT", "INCONCLUSIVE"}
finite = st.floats(1e-6, 1e6)
intervals = st.tuples(finite, finite, finite).map(sorted).map(lambda three: Estimate(three[1], three[0], three[2]))
limits = st.tuples(st.none() | finite, st.none() | finite).filter(
    lambda pair: pair != (None, None) and (None in pair or pair[0] <= pair[1])  # type: ignore[operator]
)


def effect(low: float, high: float, least: float | None = None, most: float | None = None, unit: str = "1") -> Effect:
    return Effect("e", Estimate((low + high) / 2, low, high), unit, least, most)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.8, 2.0, "HOLDS"),
        (1.7, 1.7, "HOLDS"),
        (1.6, 1.8, "PARTLY"),  # its lower limit is an effect, if not the one that is claimed
        (1.06, 1.2, "PARTLY"),
        (1.0, 1.1, "INCONCLUSIVE"),
        (0.9, 1.05, "ABSENT"),
    ],
)
def test_a_ratio_may_hold_in_part(low: float, high: float, verdict: str) -> None:
    assert claims.of_effect(effect(low, high, 1.7, None, TIMES)).verdict == verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(132, 132, "HOLDS"), (131, 131, "ABSENT"), (131, 132, "INCONCLUSIVE"), (133, 140, "ABSENT")],
)
def test_a_count_holds_or_does_not(low: float, high: float, verdict: str) -> None:
    assert claims.of_effect(effect(low, high, 132, 132)).verdict == verdict


def test_the_limit_that_is_straddled_is_named() -> None:
    assert "straddles 1.15" in claims.of_effect(effect(1.1, 1.2, None, 1.15)).reason
    assert "straddles 1.05" in claims.of_effect(effect(1.0, 1.2, 1.7, None, TIMES)).reason
    assert "straddles 1.02" in claims.of_effect(effect(1.0, 1.2, 1.02, None, TIMES)).reason


@settings(deadline=None)
@given(intervals, limits, st.sampled_from(["1", TIMES]))
def test_every_finite_interval_has_exactly_one_verdict(found: Estimate, at: tuple[float, float], unit: str) -> None:
    judged = claims.of_effect(Effect("e", found, unit, *at))
    assert judged.verdict in ALONE
    inside = (at[0] is None or found.low >= at[0]) and (at[1] is None or found.high <= at[1])
    assert (judged.verdict == "HOLDS") == inside
    assert (judged.verdict == "HOLDS") == (judged.reason == "")
    assert claims.judge(Finding((Effect("e", found, unit, *at),))) == judged


@settings(deadline=None)
@given(intervals, limits, st.sampled_from([2.0**-10, 2.0**10]))
def test_units_do_not_matter_to_a_figure(found: Estimate, at: tuple[float, float], scale: float) -> None:
    scaled = [None if limit is None else limit * scale for limit in at]
    before = claims.of_effect(Effect("e", found, "s", *at)).verdict
    assert claims.of_effect(Effect("e", found.times(scale), "s", *scaled)).verdict == before


@settings(deadline=None)
@given(intervals, intervals, st.booleans())
def test_the_order_of_effects_does_not_matter(one: Estimate, other: Estimate, control: bool) -> None:
    effects = Effect("a", one, TIMES, 2), Effect("b", other, "1", None, 3)
    if control:
        assert claims.judge(Finding((), effects)).verdict == claims.judge(Finding((), effects[::-1])).verdict
    else:
        assert claims.judge(Finding(effects)).verdict == claims.judge(Finding(effects[::-1])).verdict


@settings(deadline=None)
@given(intervals, intervals)
def test_a_wider_interval_never_makes_a_claim_hold(one: Estimate, other: Estimate) -> None:
    wider = Estimate(one.value, min(one.low, other.low), max(one.high, other.high))
    if claims.of_effect(Effect("e", wider, TIMES, 1.7)).verdict == "HOLDS":
        assert claims.of_effect(Effect("e", one, TIMES, 1.7)).verdict == "HOLDS"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("field", ["value", "low", "high"])
def test_what_is_not_finite_never_holds(bad: float, field: str) -> None:
    broken = dataclasses.replace(exactly(2.0), **{field: bad})
    for unit in ("1", TIMES):
        assert claims.of_effect(Effect("e", broken, unit, 1.0)).verdict == "INCONCLUSIVE"
    good = Effect("g", exactly(2.0), "1", 1.0)
    assert claims.judge(Finding((good,), (Effect("c", broken, "1", 1.0),))).verdict == "INVALID"
    assert claims.of_effect(Effect("e", Estimate(2, 3, 1), "1", 1.0)).verdict == "INCONCLUSIVE"


def test_nothing_never_holds() -> None:
    assert claims.judge(Finding(())).verdict == "INCONCLUSIVE"
    assert claims.judge(Finding((Effect("e", exactly(1)),))).verdict == "INFO"
    assert claims.judge(Finding((effect(2, 2, 1),), (Effect("no limits", exactly(1)),))).verdict == "INVALID"


def test_effects_together() -> None:
    holds, part, absent = (effect(value, value, 2, None, TIMES) for value in (3, 1.5, 1))
    unclear = effect(1, 3, 2, None, TIMES)
    expected = {
        (holds, holds): "HOLDS", (holds, part): "PARTLY", (holds, absent): "PARTLY", (part, absent): "PARTLY",
        (absent, absent): "ABSENT", (holds, unclear): "INCONCLUSIVE", (absent, unclear): "INCONCLUSIVE",
    }  # fmt: skip
    for effects, verdict in expected.items():
        assert claims.judge(Finding(effects)).verdict == verdict


def test_a_control_decides_before_the_effects() -> None:
    holds = effect(3, 3, 2, None, TIMES)
    for low, high, verdict in ((1, 1, "HOLDS"), (1.0, 1.3, "INCONCLUSIVE"), (1.3, 1.4, "INVALID")):
        judged = claims.judge(Finding((holds,), (effect(low, high, 0.9, 1.1, TIMES),)))
        assert judged.verdict == verdict
        assert judged.reason.startswith("control") == (verdict != "HOLDS")


STATEMENT = Statement(
    "C99", "A section", "short", "Words.", "partly", "s", "Better words.", suite="toy", run="toy -p n=2"
)


def toy(rule: object) -> Suite:
    suite = Suite(str(Path(__file__).with_name("toy.py")))
    suite.claims["C99"] = rule  # type: ignore[assignment]
    return suite


def rows(base: int = 1000, more: int = 3000) -> list[object]:
    return [make_record("toy", "b", params={"n": n}, time_ns=time) for n, time in ((1, base), (2, more))]


def twice(view: View) -> Finding:
    """A rule."""
    return Finding(
        (Effect("time", view.ratio(view.one("b", n=2), view.one("b", n=1)), TIMES, 2),),
        (Effect("control", view.ratio(view.one("b", n=1), view.one("b", n=1)), "1", 0.9, 1.1),),
        {"times": 3},
    )


def test_what_a_run_file_holds_of_a_claim() -> None:
    run = make_run([*rows(), make_record("other", "b")])
    (found,) = claims.in_run(run, [STATEMENT], {"toy": toy(twice)})
    assert found["id"] == "C99"
    assert found["verdict"] == "HOLDS"
    assert found["statement"] == "Words."
    assert found["corrected"] == "Better words."
    assert found["effects"][0] | {"low": 0, "high": 0} == {
        "name": "time", "value": 3.0, "low": 0, "high": 0, "unit": TIMES, "at_least": 2, "at_most": None,
        "verdict": "HOLDS",
    }  # fmt: skip
    assert found["control"][0]["verdict"] == "HOLDS"
    assert found["prediction"] == {"times": 3}
    assert found["proof"] == "B"
    assert found["rows"] == ["toy/b[n=2]", "toy/b[n=1]"]
    assert len(found["rule"]) == 16
    again = runfile.decode(runfile.encode(dataclasses.replace(run, claims=[found])), "x")
    assert claims.stored(again, "x") == [found]


def test_judging_changes_nothing_and_says_the_same_twice() -> None:
    run = make_run(rows())  # type: ignore[arg-type]
    before = json.dumps(runfile.to_json(run))
    first, second = (claims.in_run(run, [STATEMENT], {"toy": toy(twice)}) for _ in range(2))
    assert first == second
    assert json.dumps(runfile.to_json(run)) == before


def test_the_rows_whose_counters_rules_ask_for_are_noted() -> None:
    def counts(view: View) -> Finding:
        assert view.counter(view.one("b", n=2), "waves") is None
        return twice(view)

    asked = set[str]()
    (found,) = claims.in_run(make_run(rows()), [STATEMENT], {"toy": toy(counts)}, asked)  # type: ignore[arg-type]
    assert found["verdict"] == "HOLDS"
    assert asked == {"toy/b[n=2]"}


def refusing(view: View) -> Finding:
    raise NotTestable("a CPU has none")


def lacking(view: View) -> Finding:
    return Finding((Effect("e", view.median(view.one("b", n=7))),))


def broken(view: View) -> Finding:
    raise KeyError("what")


def without_figure(view: View) -> Finding:
    return Finding((Effect("e", exactly(math.nan), "1", 1),))


@pytest.mark.parametrize(
    ("rule", "verdict", "reason"),
    [
        (refusing, "NOT TESTABLE HERE", "a CPU has none"),
        (lacking, "NOT RUN", "no row toy/b n=7: gpubench run toy -p n=2"),
        (broken, "INCONCLUSIVE", "the rule failed: KeyError: 'what'"),
        (without_figure, "INCONCLUSIVE", "e: no finite figure"),
    ],
)
def test_a_rule_that_cannot_answer(rule: object, verdict: str, reason: str) -> None:
    run = make_run(rows())  # type: ignore[arg-type]
    (found,) = claims.in_run(run, [STATEMENT], {"toy": toy(rule)})
    assert (found["verdict"], found["reason"]) == (verdict, reason)
    run.claims = [found]
    runfile.encode(run)  # no NaN in it


def test_claims_of_other_suites_and_without_a_rule_are_not_in_a_run() -> None:
    run = make_run(rows())  # type: ignore[arg-type]
    others = [dataclasses.replace(STATEMENT, id="C98"), dataclasses.replace(STATEMENT, suite="other")]
    assert claims.in_run(run, others, {"toy": toy(twice)}) == []
    assert claims.in_run(make_run([]), [STATEMENT], {"toy": toy(twice)}) == []


@pytest.mark.parametrize("key", ["verdict", "effects", "control", "rows"])
def test_verdicts_of_a_file_are_read_strictly(key: str) -> None:
    run = make_run(rows())  # type: ignore[arg-type]
    (found,) = claims.in_run(run, [STATEMENT], {"toy": toy(twice)})
    run.claims = [found, {name: value for name, value in found.items() if name != key}]
    with pytest.raises(UsageError, match=rf"run.json: claims\[1\]: {key} is missing"):
        claims.stored(run, "run.json")
    run.claims = [found | {"effects": [{"name": "e"}]}]
    with pytest.raises(UsageError, match=r"claims\[0\].effects\[0\]: value"):
        claims.stored(run, "run.json")


def test_a_claim_has_one_rule() -> None:
    suite = Suite("/x/toy.py")
    suite.claim("C01", "C24")(twice)
    assert suite.claims == {"C01": twice, "C24": twice}
    with pytest.raises(TypeError, match="C24 has two rules"):
        suite.claim("C24")(twice)


SUMMARY = dataclasses.replace(
    STATEMENT, id="C70", suite=None, benchmarks=(), families={"one": ("C01", "C02"), "two": ("C03",)}, run="lecture"
)


def drawn(**verdicts: str) -> tuple[str, list[str], str | None]:
    """The verdict on a summary of claims with these verdicts, those on its families, and its proof."""
    proofs = {"C01": "A", "C02": "C", "C03": "B"}
    judged = {name: {"verdict": verdict, "proof": proofs[name]} for name, verdict in verdicts.items()}
    found = claims.of_summary(judged, SUMMARY)
    return found["verdict"], [each["verdict"] for each in found["effects"]], found["proof"]


@pytest.mark.parametrize(
    ("one", "other", "alone", "expected"),
    [
        ("HOLDS", "HOLDS", "HOLDS", ("HOLDS", ["HOLDS", "HOLDS"], "C")),
        ("HOLDS", "ABSENT", "HOLDS", ("HOLDS", ["HOLDS", "HOLDS"], "B")),
        ("HOLDS", "INVALID", "HOLDS", ("HOLDS", ["HOLDS", "HOLDS"], "B")),
        ("PARTLY", "ABSENT", "HOLDS", ("PARTLY", ["ABSENT", "HOLDS"], "B")),
        ("PARTLY", "INFO", "ABSENT", ("ABSENT", ["ABSENT", "ABSENT"], "C")),
        ("ABSENT", "NOT RUN", "HOLDS", ("INCONCLUSIVE", ["INCONCLUSIVE", "HOLDS"], "B")),
        ("HOLDS", "HOLDS", "INVALID", ("INCONCLUSIVE", ["HOLDS", "INCONCLUSIVE"], "C")),
        ("HOLDS", "HOLDS", "NOT RUN", ("NOT RUN", [], None)),
        ("NOT TESTABLE HERE", "NOT TESTABLE HERE", "HOLDS", ("NOT TESTABLE HERE", [], None)),
        ("NOT TESTABLE HERE", "NOT RUN", "HOLDS", ("NOT RUN", [], None)),
    ],
)
def test_a_summary_holds_where_of_each_family_a_claim_does(one: str, other: str, alone: str, expected: object) -> None:
    assert drawn(C01=one, C02=other, C03=alone) == expected


def test_a_summary_is_judged_where_claims_of_all_its_families_are() -> None:
    suite = toy(twice)
    suite.claim("C02", "C03")(twice)
    others = [dataclasses.replace(STATEMENT, id=name) for name in ("C02", "C03")]
    run = make_run(rows())  # type: ignore[arg-type]
    *_, summary = claims.in_run(run, [*others, SUMMARY], {"toy": suite})
    assert (summary["id"], summary["verdict"], summary["rows"]) == ("C70", "HOLDS", [])
    assert summary["effects"][0]["name"] == "claims that hold of one (C02 HOLDS)"
    assert len(summary["rule"]) == 16
    run.claims = [summary]
    assert claims.stored(run, "x") == [summary]
    assert [each["id"] for each in claims.in_run(run, [others[0], SUMMARY], {"toy": suite})] == ["C02"]
    first, *_ = claims.in_run(run, [SUMMARY, *others], {"toy": suite})
    assert first["id"] == "C70", "in the order of the statements"
