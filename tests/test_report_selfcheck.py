from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console, RenderableType
from test_store_calibration import EQUAL, OUTCOMES, SLOWER

from gpubench.report import selfcheck as report
from gpubench.store.calibration import Injected, Outcome


def test_the_sentence_tells_the_rule_asked_for() -> None:
    said = report.sentence(EQUAL, "ab", "GPU")
    assert said == (
        "on this GPU, of 3,200 comparisons of equal code 0.12 % were called different at 3 % "
        "(selfcheck of 2026-11-30, 40 processes)"
    )
    told = report.sentence(EQUAL, "compare", "CPU")
    assert told is not None
    assert told.startswith("on this CPU, of 3,200 comparisons of equal code 0.62 %")
    assert report.sentence(EQUAL, "history", "GPU") is None


def test_without_a_margin_nothing_is_promised() -> None:
    bare = Outcome("ab", 0.0, {"inconclusive": 90, "regression": 10}, 10, 9)
    firm = Outcome("history", 0.0, {"suspect": 50, "better": 45, "regression": 3, "improvement": 2}, 10, 10)
    found = {each.what: each for each in report.of_equal(replace(EQUAL, outcomes=[firm, bare]))}
    assert list(found)[:2] == [
        "ab, margin 0 %: splits with any different",
        "compare, 10 base runs, margin 0 %: beyond chance",
    ]
    assert [(each.rate, each.limits, each.kept) for each in found.values()][:2] == [(0.9, "", True), (0.05, "", True)]


@pytest.mark.parametrize(("wrong", "kept"), [(32, True), (33, False)])
def test_a_percent_of_equal_code_may_be_called_different(wrong: int, kept: bool) -> None:
    one = Outcome("ab", 0.03, {"equivalent": 3200 - wrong, "regression": wrong}, 200, wrong)
    first = report.promises(replace(EQUAL, outcomes=[one]))[0]
    assert (first.kept, first.limits) == (kept, "at most 1 %")


@pytest.mark.parametrize(("held", "kept"), [(2943, False), (2944, True), (3136, True), (3137, False)])
def test_intervals_may_neither_be_too_narrow_nor_too_wide(held: int, kept: bool) -> None:
    last = report.promises(replace(EQUAL, held=held))[-1]
    assert (last.kept, last.limits) == (kept, "92 % to 98 %")


@pytest.mark.parametrize(
    ("more", "margin", "found", "kept"),
    [(0.05, 0.03, 180, True), (0.05, 0.03, 179, False), (0.03, 0.03, 10, True), (0.03, 0.03, 11, False)],
)
def test_more_work_is_to_be_found_unless_it_is_the_margin(more: float, margin: float, found: int, kept: bool) -> None:
    one = replace(SLOWER.injected[0], more=more, margin=margin, measured=more, found=found)
    (promise,) = report.promises(replace(SLOWER, injected=[one]))
    assert promise.kept is kept


def test_rows_that_took_another_share_are_marked_and_left_out() -> None:
    """As on an H200 before: 3 % more links were 5.3 % more time, so that a margin of 3 % was rightly overstepped."""
    other = Injected("intensity/registers[links=200]", 0.03, 0.03, 0.0532, 200, 200)
    near = Injected("bandwidth/copy[mib=400]", 0.03, 0.03, 0.0297, 2, 200)
    slower = replace(SLOWER, injected=[other, near])
    (promise,) = report.promises(slower)
    assert (promise.rate, promise.kept) == (0.01, True)
    shown = text(report.table(slower, "H200"))
    assert max(map(len, shown.splitlines())) <= 80
    assert re.search(r"^intensity/registers .* 200 of 200 +not judged *$", shown, re.MULTILINE)
    assert re.search(r"^bandwidth/copy .* 2 of 200 *$", shown, re.MULTILINE)
    assert "not judged: took another share longer than its work is, by 10 % of it and more;" in shown
    found = report.to_json("inject", "H200", slower, "pool.jsonl")
    assert [each["promised"] for each in found["found"]["injected"]] == [False, True]

    (alone,) = report.promises(replace(SLOWER, injected=[other]))
    assert (alone.rate, alone.kept, alone.verdict) == (None, None, "not judged")
    assert re.search(
        r"regression +– +at most 5 % +not judged", text(report.table(replace(SLOWER, injected=[other]), ""))
    )
    assert "not judged" not in text(report.table(SLOWER, "H200"))


def text(shown: RenderableType) -> str:
    """As a terminal of 80 columns shows it."""
    console = Console(width=80, file=io.StringIO())
    console.print(shown)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_the_document_has_rates_and_what_they_are_from() -> None:
    found = report.to_json("aa", "H200", EQUAL, "pool.jsonl")
    assert (found["check"], found["device"], found["pool"]) == ("aa", "H200", "pool.jsonl")
    assert [each["kept"] for each in found["rates"]] == [True] * 5
    assert found["found"]["outcomes"][0]["verdicts"] == OUTCOMES[0].verdicts
