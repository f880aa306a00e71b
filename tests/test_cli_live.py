"""What the line of a running case says."""

from __future__ import annotations

from gpubench.cli.live import state
from gpubench.runner import Progress


def test_a_case_that_samples_says_how_well_it_knows_its_median() -> None:
    assert state(Progress("a/b", 40, 172_000.0, 516.0, 1980.0)) == "172 µs ± 0.3 %  n=40"


def test_a_load_that_warms_up_says_for_how_long_it_has() -> None:
    assert state(Progress("a/b", 0, 172_000.0, None, 1470.0, 3.96)) == "172 µs  warming up, 4 s"
