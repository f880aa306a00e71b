"""`gpubench check` on the CPU of this machine, with a kernel that truly does more work: a tenth more is found, none is
not, in under three minutes each.

A machine on which runs of the same code differ by more than the loss cannot show it. How much they differ is known as
the tool knows it, from the baseline's own runs and from the pairs: where no row is quiet enough the test says so and is
skipped. What must never be is a regression where nothing changed.
"""

from __future__ import annotations

import pytest
from checking import MARGIN, Machine

LOSS = 0.10
HOPELESS = 3 * LOSS
"""A stray of so much, at 95 %, is a standard deviation of a tenth: the mean of ten pairs then has one of 4.5 %, and a
tenth beyond a margin of 5 % is not found."""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("check"), "cpu")


def seen_in_pairs(machine: Machine) -> None:
    """Skip the test where pairs, a minute of them, could decide nothing."""
    least = min(machine.strays.values())
    if least > HOPELESS:
        pytest.skip(f"runs of the same code differ here by {least:.0%} and more: pairs would not find {LOSS:.0%}")


def test_a_tenth_more_work_is_beyond_what_five_runs_predict(machine: Machine) -> None:
    code, rows = machine.check(work=round(100 * (1 + LOSS)))
    quiet = {name for name, share in machine.strays.items() if share < LOSS / 2}
    if not quiet:
        least = min(machine.strays.values())
        pytest.skip(f"runs of the same code differ here by {least:.0%} and more: nobody sees {LOSS:.0%} that way")
    assert {rows[name]["verdict"] for name in quiet} == {"regression"}
    assert code == 3


def test_the_same_work_passes(machine: Machine) -> None:
    code, rows = machine.check()
    assert "regression" not in {row["verdict"] for row in rows.values()}
    most = max(machine.strays.values())
    if code and most > MARGIN:
        pytest.skip(f"runs of the same code differ here by {most:.0%}, beyond the margin")
    assert code == 0


def test_a_tenth_more_work_is_found_in_turn_with_the_base(machine: Machine) -> None:
    seen_in_pairs(machine)
    words = ("--baseline", "one", "--base", "env:TOY_WORK=100", "--case-time", "200ms")
    code, rows = machine.check(*words, work=round(100 * (1 + LOSS)))
    paired = [row for row in rows.values() if "paired" in row]
    seen = [row for row in paired if row["paired"]["detectable"] < LOSS]
    if not seen:
        blind = [f"{row['paired']['detectable']:.0%}" for row in paired]
        pytest.skip(f"pairs would have found {', '.join(blind) or 'nothing: no row looked slower'} here")
    assert {row["verdict"] for row in seen} == {"regression"}
    assert code == 3


def test_the_same_work_in_turn_with_the_base_is_no_regression(machine: Machine) -> None:
    """Held against a run of half the work, every row looks slower, and the pairs have to say that it is not."""
    seen_in_pairs(machine)
    machine.measure("half.json", work=50)
    machine("baseline", "save", "half", "half.json")
    words = ("--baseline", "half", "--base", "env:TOY_WORK=100", "--case-time", "200ms")
    code, rows = machine.check(*words)
    paired = [row for row in rows.values() if "paired" in row]
    assert len(paired) == len(rows)
    assert not {"regression", "improvement"} & {row["verdict"] for row in paired}
    if any(row["verdict"] == "inconclusive" for row in paired):
        assert code == 6
        blind = max(row["paired"]["detectable"] for row in paired)
        pytest.skip(f"pairs would have found {blind:.0%} here: inconclusive, as it should be")
    assert code == 0
