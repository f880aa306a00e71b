"""The scoreboard, one claim in full, and the line at the end of a run."""

from __future__ import annotations

import io
from typing import Any

import pytest
from builders import make_record, make_run
from rich.console import Console

from gpubench.claims.statements import Statement
from gpubench.finding import TIMES
from gpubench.report import claims as report
from gpubench.report.closing import closing_lines
from gpubench.result import Metric


def statement(name: str, **fields: Any) -> Statement:
    base: dict[str, Any] = {
        "section": "A section",
        "short": f"words of {name}",
        "claim": f"Claim {name}.",
        "right": "true",
        "source": "a book",
        "suite": "toy",
        "benchmarks": ("b",),
        "rule": "A rule.",
    }
    return Statement(name, **(base | fields))


STATEMENTS = {
    each.id: each
    for each in (
        statement("C01"),
        statement("C02", suite=None, benchmarks=(), rule="", untested="Nobody can."),
        statement("C03", section="Another", right="false", corrected="Better so."),
        statement("C04"),
        statement("C05", suite="later"),
    )
}
RULES = {"C01": "toy", "C03": "toy", "C04": "toy"}


def effect(verdict: str = "HOLDS", value: float | None = 2.0, **fields: Any) -> dict[str, Any]:
    low, high = (None, None) if value is None else (value - 0.01, value + 0.02)
    base = {"name": "time of a over b", "value": value, "low": low, "high": high, "unit": TIMES, "at_least": 1.8,
            "at_most": 2.2, "verdict": verdict}  # fmt: skip
    return base | fields


def claim(name: str, verdict: str = "HOLDS", **fields: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "id": name, "verdict": verdict, "statement": f"Claim {name}.", "corrected": None, "effects": [effect()],
        "control": [effect(name="c", value=1.0, at_least=0.9, at_most=1.1)], "prediction": {"waves": 2, "share": 0.5},
        "proof": "B", "rows": ["toy/b[n=64]"], "rule": "0123456789abcdef", "reason": None, "note": None,
    }  # fmt: skip
    return base | fields


def printed(judged: list[dict[str, Any]], width: int = 80, word: str = "") -> str:
    text = io.StringIO()
    shown = report.table(make_run([]), judged, STATEMENTS, RULES, word)
    Console(file=text, width=width, color_system=None).print(shown)
    return text.getvalue()


def test_the_scoreboard() -> None:
    text = printed([claim("C03", "PARTLY", reason="too little"), claim("C01")])
    lines = text.splitlines()
    assert lines[0] == "claims · NVIDIA H200 · 1 hold · 1 partly"
    places = [
        text.index(word) for word in ("A section", "\nC01 ", "Another", "\nC03 ", "\nC03: too little", "\nnot run: C04")
    ]
    assert places == sorted(places)
    (row,) = [line for line in lines if line.startswith("C01 ")]
    assert row.split() == [
        "C01",
        "words",
        "of",
        "C01",
        "1.80",
        "to",
        "2.20",
        "2.00",
        "[1.99,",
        "2.02]",
        "1.00",
        "HOLDS",
        "B",
    ]
    assert "not run: C04: gpubench run toy" in text
    assert "no rule in this version: C05" in text
    assert "not testable: C02: gpubench claims C02 says why" in text
    assert "not testable: C02: gpubench claims x.json C02 says why" in printed([claim("C01")], word="x.json")
    assert max(map(len, lines)) <= 80


def test_what_has_no_figures_is_said_below_the_table() -> None:
    none = {"effects": [], "control": [], "proof": None}
    text = printed([claim(name, "NOT TESTABLE HERE", reason="a CPU", **none) for name in ("C01", "C04")])
    assert "not testable here: C01, C04: a CPU" in text
    assert "predicted" not in text


def test_the_effect_that_decides_and_the_control_that_failed_are_shown() -> None:
    effects = [effect(), effect("ABSENT", 1.0, name="other", at_least=4, at_most=None)]
    text = printed([claim("C01", "PARTLY", effects=effects)])
    assert "≥ 4.00" in text
    assert "1.00 [0.990, 1.02]" in text
    assert "1.50 failed" in printed([claim("C01", "INVALID", control=[effect(), effect("INVALID", 1.5)])])
    assert "–" in printed([claim("C01", "INCONCLUSIVE", effects=[effect("INCONCLUSIVE", None)])])


def test_one_claim_in_full() -> None:
    record = make_record("toy", "b")
    record.metrics.append(Metric("cycles", 33.4, "cycles", "lower"))
    text = report.full(make_run([record]), STATEMENTS["C03"], claim("C03", "PARTLY", reason="too little"), 72)
    for line in (
        "the lecture  wrong · a book",
        "corrected    Better so.",
        "measured by  toy/b",
        "model        waves 2",
        "             share 0.500",
        "effect       time of a over b: 2.00 [1.99, 2.02], expected 1.80 to 2.20:",
        "row          toy/b[n=64]  100 µs, cycles 33.4 cycles",
        "verdict      PARTLY (proof B: by time)",
        "why          too little",
        "version      rule 0123456789abcdef",
    ):
        assert f"\n{line}\n" in text
    assert max(map(len, text.splitlines())) <= 72


def test_a_claim_that_the_run_says_nothing_about() -> None:
    assert "\nverdict      NOT RUN: gpubench run toy\n" in report.full(make_run([]), STATEMENTS["C01"], None, 80)
    untested = report.full(make_run([]), STATEMENTS["C02"], None, 80)
    assert untested.endswith("\nnot tested   Nobody can.\nverdict      NOT TESTABLE HERE\n")


def test_what_an_expert_would_add_is_not_the_lecture_s() -> None:
    text = report.full(make_run([]), statement("X03"), claim("X03"), 80)
    assert text.startswith("X03 · words of X03")
    assert "\nadded, from  a book\n" in text
    assert "the lecture" not in text


def test_what_an_expert_would_add_comes_after_the_lecture_s_claims() -> None:
    added = {"X03": statement("X03", section="Added"), "X04": statement("X04")}
    run = make_run(claims=[claim("X03"), claim("C01")])
    text = io.StringIO()
    Console(file=text, width=80, color_system=None).print(
        report.table(run, run.claims, STATEMENTS | added, RULES | dict.fromkeys(added, "toy"))
    )
    assert text.getvalue().index("\nC01 ") < text.getvalue().index("Added") < text.getvalue().index("\nX03 ")
    assert "not run: C03, C04, X04: gpubench run toy" in text.getvalue()
    assert report.claims_line(run) == ["claims: 2 hold; gpubench claims"]


def test_a_summary_in_full_names_what_it_is_drawn_from() -> None:
    drawn = statement("C06", suite=None, benchmarks=(), families={"fewer accesses": ("C01", "C04")}, run="lecture")
    text = report.full(make_run([]), drawn, None, 80)
    assert "drawn from   fewer accesses: C01, C04" in text
    assert "measured by" not in text
    assert "NOT RUN: gpubench run lecture" in text


def test_text_of_a_file_moves_no_cursor() -> None:
    bad = claim("C01", "PARTLY", reason="a\x1b[2Jb\nc", effects=[effect(name="x\x1b[31m")])
    for text in (printed([bad]), report.full(make_run([]), STATEMENTS["C01"], bad, 80)):
        assert "\x1b" not in text


@pytest.mark.parametrize(
    ("verdicts", "line"),
    [
        ([], None),
        (["HOLDS", "HOLDS", "PARTLY", "INFO"], "claims: 2 hold · 1 partly · 1 for information; gpubench claims"),
        (["NOT TESTABLE HERE", "ABSENT"], "claims: 1 absent · 1 not testable here; gpubench claims"),
    ],
)
def test_the_line_at_the_end_of_a_run(verdicts: list[str], line: str | None) -> None:
    run = make_run(claims=[claim(f"C{number:02}", verdict) for number, verdict in enumerate(verdicts)])
    lines = closing_lines(run, "x.json")
    assert [each for each in lines if each.startswith("claims:")] == ([] if line is None else [line])
    assert lines[-2] == "saved x.json"
    assert lines[-1].startswith("next  ")
