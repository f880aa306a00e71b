"""Claims: what a rule finds in a run's records becomes exactly one verdict.

| verdict | when |
|---|---|
| HOLDS | every effect's whole interval lies between its limits |
| PARTLY | a ratio does not hold but its lower limit is above NO_EFFECT; or some effects hold and others do not |
| ABSENT | no effect holds: each interval lies wholly outside, a ratio's wholly at NO_EFFECT or below |
| INCONCLUSIVE | an interval straddles a limit, or a figure cannot be judged |
| INVALID | a control failed: something else than the claim's cause moves the figures |
| NOT TESTABLE HERE, NOT RUN | this device cannot show it; the run lacks rows |
| INFO | figures without limits |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gpubench.claims.statements import Statement
from gpubench.claims.view import View
from gpubench.definition import definition_of
from gpubench.errors import UsageError
from gpubench.finding import TIMES, Effect, Estimate, Finding, NotTestable, RowsMissing, Rule
from gpubench.result import Run
from gpubench.suite import Suite
from gpubench.units import exact_digits, three_digits

Verdict = Literal[
    "HOLDS", "PARTLY", "ABSENT", "INCONCLUSIVE", "INVALID", "NOT TESTABLE HERE", "NOT RUN", "INFO"
]  # fmt: skip

NO_EFFECT = 1.05
"""A ratio up to this is no effect: clocks, placement and the order of rows move medians by a few per cent."""


@dataclass(frozen=True)
class Judgement:
    """A verdict and, where it is not plain from the figures, why."""

    verdict: Verdict
    reason: str = ""


def of_effect(effect: Effect) -> Judgement:
    """The verdict on one effect alone: HOLDS, PARTLY, ABSENT or INCONCLUSIVE; INFO where it has no limits."""
    if not effect.judged:
        return Judgement("INFO")
    found, least, most = effect.found, effect.at_least, effect.at_most
    if not found.known:
        return Judgement("INCONCLUSIVE", f"{effect.name}: no finite figure")
    if (least is None or found.low >= least) and (most is None or found.high <= most):
        return Judgement("HOLDS")
    words = f"{effect.name}: {words_of(found)}"
    if effect.unit == TIMES and least is not None:
        nothing = min(NO_EFFECT, least)
        if found.low > nothing:
            return Judgement("PARTLY", f"{words}, expected {limits_of(effect)}")
        if found.high <= nothing:
            return Judgement("ABSENT", f"{words}, expected {limits_of(effect)}")
        return Judgement("INCONCLUSIVE", f"{words} straddles {three_digits(nothing)}")
    if (least is not None and found.high < least) or (most is not None and found.low > most):
        return Judgement("ABSENT", f"{words}, expected {limits_of(effect)}")
    straddled = least if least is not None and found.low < least else most
    assert straddled is not None
    return Judgement("INCONCLUSIVE", f"{words} straddles {three_digits(straddled)}")


def of_control(control: Effect) -> Judgement:
    """The verdict on a control: HOLDS, INVALID or INCONCLUSIVE. One that cannot be judged has failed."""
    plain = Effect(control.name, control.found, "1", control.at_least, control.at_most)  # no ratio fails in part
    if not plain.judged or not plain.found.known:
        return Judgement("INVALID", f"control {control.name}: nothing to judge")
    found = of_effect(plain)
    return Judgement(
        "INVALID" if found.verdict == "ABSENT" else found.verdict, found.reason and f"control {found.reason}"
    )


def judge(finding: Finding) -> Judgement:
    """The one verdict on a finding: controls first, then the effects together."""
    controls = [of_control(control) for control in finding.controls]
    for verdict in ("INVALID", "INCONCLUSIVE"):
        if failed := next((each for each in controls if each.verdict == verdict), None):
            return failed
    effects = [of_effect(effect) for effect in finding.effects if effect.judged]
    kinds = {each.verdict for each in effects}
    if not effects:
        return Judgement("INFO") if finding.effects else Judgement("INCONCLUSIVE", "the rule found nothing")
    if "INCONCLUSIVE" in kinds:
        return Judgement("INCONCLUSIVE", "; ".join(each.reason for each in effects if each.verdict == "INCONCLUSIVE"))
    reason = "; ".join(each.reason for each in effects if each.reason)
    return Judgement(kinds.pop() if len(kinds) == 1 else "PARTLY", reason)


def in_run(
    run: Run, statements: Iterable[Statement], suites: Mapping[str, Suite], asked: set[str] | None = None
) -> list[dict[str, Any]]:
    """The verdicts on the claims whose suite has rows in the run and a rule for them, and on those drawn from claims
    among these, as the run file holds them. `asked` is that of View."""
    there = {record.suite for record in run.records}
    found, draws = dict[str, dict[str, Any]](), dict[str, list[float]]()
    statements = list(statements)
    for statement in statements:
        suite = suites.get(statement.suite or "")
        if suite is not None and suite.name in there and statement.id in suite.claims:
            found[statement.id] = of_claim(View(run, suite.name, draws, asked), statement, suite.claims[statement.id])
    for statement in statements:
        if statement.families and drawn_from(statement, found):
            found[statement.id] = of_summary(found, statement)
    return [found[statement.id] for statement in statements if statement.id in found]


def drawn_from(statement: Statement, there: Container[str]) -> bool:
    """Whether of each family of a summary some claim is there."""
    return all(any(each in there for each in ids) for ids in statement.families.values())


def of_claim(view: View, statement: Statement, rule: Rule) -> dict[str, Any]:
    """The verdict on one claim, as JSON values: what was found, how it was judged, and the version of the rule."""
    finding, judgement = _settled(lambda: rule(view), statement)
    return _kept(statement, finding, judgement, list(view.used), rule)


def of_summary(judged: Mapping[str, Mapping[str, Any]], statement: Statement) -> dict[str, Any]:
    """The verdict on a claim that is drawn from others, from their verdicts by id. It has no rows of its own."""
    finding, judgement = _settled(lambda: families_that_hold(judged, statement), statement)
    return _kept(statement, finding, judgement, [], families_that_hold)


def families_that_hold(judged: Mapping[str, Mapping[str, Any]], statement: Statement) -> Finding:
    """How many claims of each family hold; one at least is wanted of each. Those that are not decided may yet.

    RowsMissing, or NotTestable, where of a family no claim was judged.
    """
    effects, proofs = [], []
    for family, ids in statement.families.items():
        there = {each: str(judged[each]["verdict"]) for each in ids if each in judged}
        if set(there.values()) <= {"NOT TESTABLE HERE"}:
            raise NotTestable(f"{family}: {', '.join(there)} cannot be tested here")
        if set(there.values()) <= {"NOT TESTABLE HERE", "NOT RUN"}:
            raise RowsMissing(f"{family}: {', '.join(there)} was not run")
        holding = [each for each, verdict in there.items() if verdict == "HOLDS"]
        perhaps = sum(verdict in ("INCONCLUSIVE", "INVALID", "NOT RUN") for verdict in there.values())
        words = ", ".join(f"{each} {verdict}" for each, verdict in there.items())
        found = Estimate(len(holding), len(holding), len(holding) + perhaps)
        effects.append(Effect(f"claims that hold of {family} ({words})", found, "1", 1))
        proofs += [judged[each]["proof"] for each in holding]
    return Finding(tuple(effects), proof=max(proofs, default="C"))


def _kept(
    statement: Statement, finding: Finding, judgement: Judgement, rows: list[str], rule: Callable[..., Finding]
) -> dict[str, Any]:
    return {
        "id": statement.id,
        "verdict": judgement.verdict,
        "statement": statement.claim,
        "corrected": statement.corrected,
        "effects": [_plain(effect, of_effect(effect)) for effect in finding.effects],
        "control": [_plain(control, of_control(control)) for control in finding.controls],
        "prediction": dict(finding.prediction),
        "proof": finding.proof if finding.effects else None,
        "rows": rows,
        "rule": _version(rule),
        "reason": judgement.reason or None,
        "note": finding.note or None,
    }


def _settled(find: Callable[[], Finding], statement: Statement) -> tuple[Finding, Judgement]:
    """What a rule finds and the verdict on it; a rule that cannot answer, or is broken, costs its own claim only."""
    try:
        finding = find()
        return finding, judge(finding)
    except NotTestable as why:
        return Finding(()), Judgement("NOT TESTABLE HERE", str(why))
    except RowsMissing as why:
        return Finding(()), Judgement("NOT RUN", f"{why}: {statement.command}")
    except Exception as error:  # a suite may be anybody's code, and the rows are worth more than a verdict
        return Finding(()), Judgement("INCONCLUSIVE", f"the rule failed: {type(error).__name__}: {error}")


def _version(rule: Callable[..., Finding]) -> str | None:
    """The hash of what a rule computes; None where its file was changed while the run was measured."""
    try:
        return definition_of(rule)
    except UsageError:
        return None


def _plain(effect: Effect, judgement: Judgement) -> dict[str, Any]:
    """An effect as JSON values: a figure that is not finite is None."""
    found = effect.found
    finite = {
        name: value if math.isfinite(value) else None
        for name, value in (("value", found.value), ("low", found.low), ("high", found.high))
    }
    limits = {"at_least": effect.at_least, "at_most": effect.at_most}
    return {"name": effect.name, **finite, "unit": effect.unit, **limits, "verdict": judgement.verdict}


_EFFECT = {
    "name": str, "value": (int, float, type(None)), "low": (int, float, type(None)), "high": (int, float, type(None)),
    "unit": str, "at_least": (int, float, type(None)), "at_most": (int, float, type(None)), "verdict": str,
}  # fmt: skip
_KEPT = {
    "id": str, "verdict": str, "statement": str, "corrected": (str, type(None)), "effects": list, "control": list,
    "prediction": dict, "proof": (str, type(None)), "rows": list, "rule": (str, type(None)),
    "reason": (str, type(None)),
}  # fmt: skip
"""What a claim of a run file holds, and of which type."""


def stored(run: Run, where: str) -> list[dict[str, Any]]:
    """The verdicts a run file holds. UsageError, naming file and field, where one is not what `of_claim` gives."""
    for index, claim in enumerate(run.claims):
        _check(claim, _KEPT, f"{where}: claims[{index}]")
        for key in ("effects", "control"):
            for number, effect in enumerate(claim[key]):
                _check(effect, _EFFECT, f"{where}: claims[{index}].{key}[{number}]")
    return run.claims


def _check(value: Any, kinds: Mapping[str, Any], place: str) -> None:
    for key, kind in kinds.items():
        if not isinstance(value, dict) or not isinstance(value.get(key, ...), kind):
            raise UsageError(f"{place}: {key} is missing or of another type", "--rejudge judges the rows anew")


def words_of(found: Estimate) -> str:
    """A figure with its interval: `2.01 [1.99, 2.03]`; a figure without width alone."""
    if found.low == found.high:
        return exact_digits(found.value)
    value, low, high = map(three_digits, (found.value, found.low, found.high))
    return f"{value} [{low}, {high}]"


def limits_of(effect: Effect) -> str:
    """The limits of an effect: `1.80 to 2.20`, `at least 4.00`, `at most 1.15`."""
    return limit_words(effect.at_least, effect.at_most)


def limit_words(least: float | None, most: float | None) -> str:
    """`1.80 to 2.20`, `at least 4.00`, `at most 1.15`, `132`; empty without limits."""
    if least is not None and most is not None:
        return exact_digits(least) if least == most else f"{three_digits(least)} to {three_digits(most)}"
    if least is not None:
        return f"at least {three_digits(least)}"
    return "" if most is None else f"at most {three_digits(most)}"


def counted(claims: Sequence[Mapping[str, Any]]) -> dict[Verdict, int]:
    """How many claims have each verdict, in the order of the table above, without those that none has."""
    verdicts: tuple[Verdict, ...] = (
        "HOLDS", "PARTLY", "ABSENT", "INCONCLUSIVE", "INVALID", "INFO", "NOT TESTABLE HERE", "NOT RUN"
    )  # fmt: skip
    numbers: dict[Verdict, int] = {each: sum(claim.get("verdict") == each for claim in claims) for each in verdicts}
    return {each: number for each, number in numbers.items() if number}
