"""Words in a picture: inside it, beside what they name, over as few marks as possible, never over each other."""

from __future__ import annotations

import pytest

from gpubench.report.placing import SIZE, beneath, beside, covered, rows, stairs, text_width, together, wrapped

ROOM = 760.0


def test_beside_a_line_a_text_stands_in_the_middle_at_the_right():
    assert beside((300, 40), (300, 240), 100, [], ROOM) == (308, 140)


@pytest.mark.parametrize(("x", "left"), [(700, 592), (20, 28)])
def test_at_an_edge_it_stands_on_the_side_where_there_is_room(x: float, left: float):
    assert beside((x, 40), (x, 240), 100, [], ROOM)[0] == left


def test_it_covers_the_fewest_marks_and_then_is_nearest_to_the_middle():
    crowd = [(x, y) for x in range(180, 420, 10) for y in range(90, 240, 5)]
    left, y = beside((300, 40), (300, 240), 100, crowd, ROOM)
    assert covered(crowd, left, y, 100) == 0
    assert 40 < y < 90 - SIZE / 2
    assert covered(crowd, left, y + 200 / 24, 100) > 0, "one step nearer to the middle it would cover some"


def test_a_text_wider_than_either_side_still_has_a_place():
    assert len(beside((380, 40), (380, 240), 500, [], ROOM)) == 2


def test_a_mark_is_covered_within_half_a_letter_of_the_text():
    assert covered([(50, 100), (93, 100), (107, 100), (100, 113), (100, 111)], 100, 100, 0) == 0 + 1
    assert covered([(94, 100), (206, 111), (150, 89)], 100, 100, 100) == 3


def test_places_closer_than_a_line_share_a_name():
    assert together([10, 14, 19, 21, 40], 10) == [[0, 1, 2], [3], [4]]
    assert together([40, 21, 19], 10) == [[0], [1, 2]]
    assert together([], 10) == []


def test_names_at_the_foot_rise_where_the_one_before_is_in_the_way():
    assert rows([0, 30, 60, 200], [100, 100, 20, 100]) == [0, 1, 2, 0]
    assert rows([0, 200], [100, 100]) == [0, 0]


def test_long_text_is_wrapped_and_then_cut():
    assert wrapped("short", 800, 13, 2) == ["short"]
    lines = wrapped("word " * 200, 800, 13, 2)
    assert len(lines) == 2
    assert lines[1].endswith("…")
    assert max(map(text_width, lines)) * 13 / SIZE <= 800
    assert wrapped("", 800, 13, 2) == [""]
    assert wrapped("a\nb\x1b", 800, 13, 1) == ["a b\ufffd"]


def test_texts_at_the_foot_of_lines_are_steps_of_a_stair_where_they_are_close():
    assert stairs([0, 200, 400], [50, 50, 50]) == [0, 0, 0]
    assert stairs([0, 30, 40, 300], [100, 100, 20, 10]) == [0, 1, 2, 0]
    assert stairs([0, 30, 125], [100, 20, 50]) == [0, 1, 0], "the second ends before the third begins"
    assert stairs([], []) == []


def test_a_mark_is_beneath_those_of_other_names_drawn_later_in_its_place():
    assert beneath([(0, 0), (1, 1), (3, 0), (50, 0)], ["a", "b", "b", "c"]) == [1, 0, 0, 0]
    assert beneath([(0, 0), (1, 1), (3, 0)], ["a", "b", "c"]) == [2, 1, 0]
    assert beneath([(0, 0), (0, 0)], ["a", "a"]) == [0, 0]
