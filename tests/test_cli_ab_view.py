"""The lines of an A/B measurement under way: a block each, a case that failed, what is left; nothing where quiet."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ab_parts import record

from gpubench.ab.measure import BlockBegun, BlockEnded, Ended, SideBegun
from gpubench.cli import ab_view
from gpubench.cli.live import Live, Silent
from gpubench.cli.screen import Screen
from gpubench.store.abfile import Block, sided


def watched(block: Block, *, fails: bool = False, planned: int = 4) -> list[str]:
    """What is said of one block of two cases, of which the new side's take 2 s and the base's 1 s each."""
    said: list[str] = []
    now = [0.0]
    seen = ab_view.Blocks(SimpleNamespace(say=said.append), planned, Silent(), False, lambda: now[0])  # type: ignore[arg-type]
    with seen:
        seen.event(BlockBegun(block))
        for side in block.order:
            seen.event(SideBegun(block, side, 2))
            for _ in range(2):
                now[0] += 2 if side == "new" else 1
                row = record(1000, status="error", reason="illegal address") if fails else record(1000)
                seen.event(sided(row, side, block.number))
        seen.event(BlockEnded(block))
        seen.event(Ended("all blocks"))
    return said


def test_a_block_is_a_line_with_both_times_and_what_is_left() -> None:
    assert watched(Block(0, 0, "new")) == ["block 1 of 4 · 2 rows · new 4.0 s, base 2.0 s · at most 18 s left"]
    assert watched(Block(0, 0, "new"), planned=100) == [
        "block 1 of 100 · 2 rows · new 4.0 s, base 2.0 s · at most 10 min left"
    ]
    assert watched(Block(0, 0, "base"), planned=1) == ["block 1 of 1 · 2 rows · base 2.0 s, new 4.0 s"]


def test_a_block_that_does_not_count_says_why() -> None:
    assert watched(Block(5, 3, "base", "thermal slowdown (new)")) == [
        "block 4 of 4 · 2 rows · base 2.0 s, new 4.0 s · not used: thermal slowdown (new)"
    ]


def test_a_case_that_failed_is_a_line_at_once() -> None:
    said = watched(Block(0, 0, "new"), fails=True)
    assert said[0] == "new [1/2] matmul-sweep/matmul[n=64]  error: illegal address"
    assert len(said) == 5


@pytest.mark.parametrize(
    ("quiet", "plain", "redraws", "kind"),
    [
        (False, False, True, Live),
        (True, False, True, Silent),
        (False, True, True, Silent),
        (False, False, False, Silent),
    ],
)
def test_the_live_view_is_for_a_terminal_that_can_go_back(quiet: bool, plain: bool, redraws: bool, kind: type) -> None:
    screen = Screen(quiet=quiet)
    screen.redraws = redraws
    settings = SimpleNamespace(plain=plain, verbose=False)
    assert type(ab_view.view(screen, 10, 3, settings).inner) is kind  # type: ignore[arg-type]
