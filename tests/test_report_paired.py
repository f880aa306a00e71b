"""The page of an A/B measurement: what surely changed, the intervals, both sides, every block; and read back whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ab_parts import by_hand

from gpubench.ab import judge as abjudge
from gpubench.report.html import paired
from gpubench.store.abfile import AbRun
from gpubench.store.folder import holds_ab, read_measured

SLOWER = [1.05, 1.051, 1.049, 1.05, 1.052, 1.05, 1.048, 1.05, 1.051, 1.05, 1.049, 1.05]


def text_of(found: AbRun) -> str:
    """What the page says, its markup taken out."""
    page = paired.report(abjudge.judged(found), found).decode().partition("<main")[2].partition("<footer")[0]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def head_of(found: AbRun) -> str:
    page = paired.report(abjudge.judged(found), found).decode()
    return re.sub(r"<[^>]+>", "", page.partition("<header>")[2].partition("</header>")[0])


def test_it_says_what_surely_changed_between_which_sides_and_in_which_blocks() -> None:
    found = by_hand(SLOWER, planned=11)
    found.blocks[2].unused, found.blocks[11].slot = "thermal slowdown (new)", 2
    found.new.kernels = {"read.cu": "0123abcd"}
    assert "1 row got slower, surely by more than the margin. 1 matched · 1 regression." in head_of(found)
    text = text_of(found)
    for words in (
        "✕ regression",
        "Which rows changed, by how much, and is that more than the margin?",
        "env:SLOW=1",
        "read.cu 0123abcd",
        "11 blocks of 11 planned",
        "block 3 base 1 1 △ not used: thermal slowdown (new)",
        "block 2 new 1 1 counts",
        "n=64 +5.0 % +5.1 % +5.0 % +5.2 %",
        "Measuring ended with: all blocks",
    ):
        assert words in text, words


@pytest.mark.parametrize(
    ("ratios", "status", "said"),
    [
        ([1.0 + step / 10_000 for step in range(8)], "complete", "✓No row got slower. 1 matched · 1 equivalent."),
        ([1.0, 1.2] * 4, "complete", "△1 row is undecided: more blocks would tell"),
        ([1.0] * 8, "interrupted", "△This measurement is interrupted."),
    ],
)
def test_it_is_as_sure_as_the_measurement(ratios: list[float], status: str, said: str) -> None:
    found = by_hand(ratios)
    found.status = status  # type: ignore[assignment]
    assert said in head_of(found)


def test_without_a_block_there_is_a_page() -> None:
    found = by_hand([], planned=8)
    assert "There is no row to compare." in head_of(found)
    assert "No block was begun." in text_of(found)


def test_it_reads_back_as_the_measurement(tmp_path: Path) -> None:
    found, path = by_hand(SLOWER), tmp_path / "ab.html"
    path.write_bytes(paired.report(abjudge.judged(found), found))
    assert holds_ab(path)
    assert read_measured(path) == found
    cut = tmp_path / "cut.html"
    cut.write_text("<!doctype html><p>no run")
    assert not holds_ab(cut)


def test_what_a_measurement_says_stays_text() -> None:
    found = by_hand(SLOWER)
    found.new.what = ["</code><script>pwned()</script>"]
    found.blocks[0].unused = "<img src=x onerror=pwned()>"
    page = paired.report(abjudge.judged(found), found).decode()
    assert "<script>pwned" not in page
    assert "<img" not in page
