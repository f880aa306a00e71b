"""One exit code for a run, whatever happened in it."""

from __future__ import annotations

import itertools

import pytest

from gpubench.exits import PRECEDENCE, Exit, first

PUBLISHED = {
    "DONE": 0,
    "INTERNAL": 1,
    "USAGE": 2,
    "REGRESSION": 3,
    "FAILED": 4,
    "NOTHING": 5,
    "UNDECIDED": 6,
    "NOT_COMPARABLE": 7,
    "SLOW_GPU": 8,
    "SIGINT": 130,
    "PIPE": 141,
    "SIGTERM": 143,
}


def test_codes_are_the_published_ones() -> None:
    assert {code.name: int(code) for code in Exit} == PUBLISHED


def test_every_code_but_done_has_its_place_once() -> None:
    assert sorted(PRECEDENCE) == sorted(set(Exit) - {Exit.DONE})


def test_the_first_of_2_1_4_7_3_8_6_5() -> None:
    order = [2, 1, 4, 7, 3, 8, 6, 5]
    for one, other in itertools.combinations(order, 2):
        assert first([Exit(other), Exit(one)]) == one
    assert first(map(Exit, reversed(order))) == 2


@pytest.mark.parametrize("signal", [Exit.SIGINT, Exit.SIGTERM, Exit.PIPE])
def test_a_signal_comes_before_what_was_measured(signal: Exit) -> None:
    assert first([Exit.FAILED, Exit.USAGE, signal, Exit.DONE]) == signal


def test_done_only_where_nothing_else_applies() -> None:
    assert first([]) == Exit.DONE
    assert first([Exit.DONE, Exit.DONE]) == Exit.DONE
    assert first([Exit.DONE, Exit.NOTHING]) == Exit.NOTHING


def test_the_same_code_many_times_is_no_count() -> None:
    assert first([Exit.FAILED] * 300) == Exit.FAILED
