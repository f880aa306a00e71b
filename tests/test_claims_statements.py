"""The claims in words: the file we ship, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpubench.claims import statements
from gpubench.discovery import Library
from gpubench.errors import UsageError

SUITES = Path(__file__).parents[1] / "suites"
LIBRARY = Library(SUITES)
CLAIMS = LIBRARY.claims()

WORDS = """C01:
  section: A
  short: words
  claim: "A sentence."
  right: true
  source: a book
  suite: waves
  benchmarks: [blocks]
  experiment: "One."
  rule: "Two."
  control: "Three."
"""


def load(tmp_path: Path, text: str) -> dict[str, statements.Statement]:
    path = tmp_path / "claims.yaml"
    path.write_text(text)
    return statements.load(path)


def test_all_claims_of_the_lecture_are_there_in_order() -> None:
    assert [each.id for each in CLAIMS.values() if each.of_lecture] == [f"C{number:02}" for number in range(1, 73)]


def test_what_an_expert_would_add_comes_last() -> None:
    added = list(CLAIMS.values())[72:]
    assert [each.id for each in added] == [f"X{number:02}" for number in range(1, 9)]
    assert {each.section for each in added} == {"What an expert would add"}
    assert all(each.right == "true" and each.suite for each in added)


def test_only_these_cannot_be_tested_by_any_machine() -> None:
    assert [each.id for each in CLAIMS.values() if each.untested] == ["C02", "C03", "C05", "C09", "C22"]


def test_every_claim_has_its_sentences() -> None:
    for each in CLAIMS.values():
        for text in (
            each.claim,
            each.corrected,
            each.untested,
            *((each.experiment, each.rule, each.control) if each.suite else ()),
        ):
            assert text is None or re.fullmatch(r"[A-Z0-9].*\.", text), f"{each.id}: {text}"


def test_claims_name_suites_and_benchmarks_that_exist_wherever_there_is_a_rule() -> None:
    suites = LIBRARY.suites()
    rules = {claim: suite for suite in suites.values() for claim in suite.claims}
    for claim, suite in rules.items():
        assert CLAIMS[claim].suite == suite.name
        assert set(CLAIMS[claim].benchmarks) <= set(suite.benchmarks), claim
        assert CLAIMS[claim].benchmarks
    for each in CLAIMS.values():
        for word in each.run.split():
            known = word in LIBRARY.plans() or word.split("/")[0] in suites
            assert known or word in ("-p", "--counters") or "=" in word, each.id


def test_a_claim_is_read(tmp_path: Path) -> None:
    (one,) = load(tmp_path, WORDS).values()
    assert (one.right, one.suite, one.benchmarks, one.command) == ("true", "waves", ("blocks",), "gpubench run waves")
    assert load(tmp_path, WORDS + "  run: waves -p full=1\n")["C01"].command == "gpubench run waves -p full=1"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("right: true", "right: maybe", r"claims.yaml:5: C01.right is 'maybe'; expected true, partly or false"),
        ("  right: true\n", "", r"claims.yaml:1: C01 has no right"),
        ("  rule: \"Two.\"\n", "", r"claims.yaml:1: C01 has no rule"),
        ("suite: waves", "suit: waves", r"claims.yaml:7: C01.suit is not a known key; did you mean suite"),
        ("  suite: waves\n", "", r"claims.yaml:1: C01: expected either suite, from or none"),
        ("suite: waves", "suite: waves\n  none: why", r"expected either suite, from or none"),
        ("suite: waves", "suite: waves\n  from: {a: [C02]}", r"expected either suite, from or none"),
        ("right: true", "right: false", r"corrected goes with right: partly or false"),
        ("right: true", "right: true\n  corrected: \"Better.\"", r"corrected goes with right"),
        ("short: words", f"short: {'w' * 60}", r"claims.yaml:3: C01.short has 60 characters; at most 44"),
        ("claim: \"A sentence.\"", "claim: [1]", r"claims.yaml:4: C01.claim is a list; expected a sentence"),
        ("C01:", "C01: {}\nC01:", r"claims.yaml:\d: the key C01 is already on line 1|C01 has no right|either suite"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said_with_file_and_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in WORDS
    with pytest.raises(UsageError, match=words):
        load(tmp_path, WORDS.replace(old, new, 1))


SUMMARY = """C02:
  section: A
  short: words
  claim: "A sentence."
  right: true
  source: a book
  from:
    one family: [C01]
  run: lecture
  experiment: "One."
  rule: "Two."
  control: "Three."
"""


def test_a_summary_is_drawn_from_claims_that_a_suite_settles(tmp_path: Path) -> None:
    summary = load(tmp_path, WORDS + SUMMARY)["C02"]
    assert (summary.suite, summary.families, summary.command) == (
        None,
        {"one family": ("C01",)},
        "gpubench run lecture",
    )
    for old, new, words in (
        ("[C01]", "[C03]", "claims.yaml:12: C02: from names C03, which no suite settles"),
        ("[C01]", "[C01, C02]", "C02: from names C02, which no suite settles"),
        ("[C01]", "[]", "C02.from is a mapping; expected a mapping of families to claims"),
        ("from:\n    one family: [C01]", "from: {}", "C02.from is a mapping; expected a mapping of families"),
        ("  run: lecture\n", "", "C02 has no run"),
        ('  control: "Three."\n', "", "C02 has no control"),
    ):
        assert old in SUMMARY
        with pytest.raises(UsageError, match=words):
            load(tmp_path, WORDS + SUMMARY.replace(old, new, 1))


def test_somebody_elses_folder_has_no_claims(tmp_path: Path) -> None:
    assert Library(tmp_path).claims() == {}
