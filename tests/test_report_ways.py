"""Rows that are wrong on purpose: nobody's best, and held against the row that is right."""

from __future__ import annotations

from typing import Any

import pytest
from builders import make_record, make_run

from gpubench.report import export, roofline
from gpubench.report.closing import closing_lines
from gpubench.report.rows import groups, ranked
from gpubench.report.ways import error_words, errors, lessons
from gpubench.result import Conditions, Metric, Record


def row(way: str, time_ns: int, benchmark: str = "missing-wait", **fields: Any) -> Record:
    params = {"way": way, **fields.pop("params", {})}
    labels = {"trap": "nobody waited"} if way == "wrong" else {}
    given = {"flops": 10**9, "labels": labels, **fields}
    return make_record("traps", benchmark, params=params, time_ns=time_ns, **given)


def pair(benchmark: str = "missing-wait", **fields: Any) -> list[Record]:
    return [row("right", 200_000, benchmark, **fields), row("wrong", 25_000, benchmark, **fields)]


def test_the_size_of_an_error_is_the_wrong_time_over_the_right_one() -> None:
    right, wrong = rows = pair()
    (group,) = groups(make_run(rows))
    assert errors(group) == [(wrong, 0.125)]
    assert (error_words(group, right), error_words(group, wrong)) == ("", "0.125×")
    assert lessons(group) == ["missing-wait way=wrong reads 0.125× the time: nobody waited"]


def test_a_wrong_row_is_held_against_the_row_that_differs_in_nothing_else() -> None:
    small, large = pair(params={"n": 1}), pair(params={"n": 2})
    large[0].summary.median_ns = 100_000  # type: ignore[union-attr]
    hot = row("wrong", 25_000, params={"n": 1}, conditions=Conditions(cache="hot"))
    (group,) = groups(make_run([*large, *small, hot]))
    assert [(record.id, ratio) for record, ratio in errors(group)] == [(large[1].id, 0.25), (small[1].id, 0.125)]


def test_a_condition_that_is_what_is_wrong_is_no_difference() -> None:
    def loaded(way: str, load: Any, data: Any = "normal") -> Record:
        return row(way, 100_000 if way == "wrong" else 200_000, conditions=Conditions("hot", load, data))

    right, wrong = loaded("right", "sustained"), loaded("wrong", "burst")
    (group,) = groups(make_run([right, wrong]))
    assert errors(group) == [(wrong, 0.5)]
    assert lessons(group) == ["missing-wait way=wrong load=burst reads 0.500× the time: nobody waited"]
    zeros = loaded("wrong", "burst", "zeros")
    (group,) = groups(make_run([right, loaded("right", "sustained", "zeros"), zeros]))
    assert errors(group) == [(zeros, 0.5)]
    (group,) = groups(make_run([right, loaded("right", "burst"), wrong]))
    assert group.records[1].conditions == wrong.conditions
    assert errors(group) == [(wrong, 0.5)]


def test_a_way_of_doing_something_else_is_neither_right_nor_wrong() -> None:
    rows = [row(way, 1000) for way in ("stream", "graph")]
    (group,) = groups(make_run(rows))
    assert ranked(rows) == rows
    assert errors(group) == []


@pytest.mark.parametrize("status", ["error", "skipped"])
@pytest.mark.parametrize("missing", ["right", "wrong"])
def test_without_a_number_on_both_sides_there_is_no_error_to_tell(status: str, missing: str) -> None:
    there = "wrong" if missing == "right" else "right"
    rows = [row(there, 200_000), row(missing, 0, status=status, reason="it is so")]
    (group,) = groups(make_run(rows))
    assert errors(group) == []
    assert lessons(group) == []


def test_a_right_row_of_no_time_is_no_measure() -> None:
    (group,) = groups(make_run([row("right", 0), row("wrong", 25_000)]))
    assert errors(group) == []


def test_a_wrong_row_is_neither_best_nor_worst_nor_trusted_under_the_roof() -> None:
    right, wrong = rows = pair(nbytes=10**6)
    assert ranked(rows) == [right]
    assert [point.trusted for point in roofline.view(make_run(rows)).points] == [True, False]
    assert ranked([wrong]) == []


def test_the_last_lines_say_how_far_off_and_name_no_best_of_these() -> None:
    rows = [*pair(), *pair("cold-start"), make_record("traps", "plain", time_ns=1000, flops=10**6)]
    lines = closing_lines(make_run(rows), "x.json")
    assert lines[1] == "time measured wrong over time measured right: missing-wait 0.125× · cold-start 0.125×"
    assert [line for line in lines if line.startswith("best")] == ["best plain 1.00 TFLOP/s at n=64"]


def test_several_wrong_rows_of_a_benchmark_are_told_apart() -> None:
    rows = [*pair(params={"n": 1}), *pair(params={"n": 2})]
    found = closing_lines(make_run(rows), "x.json")[1]
    assert found.endswith("missing-wait way=wrong n=1 0.125× · missing-wait way=wrong n=2 0.125×")


def test_a_run_of_wrong_rows_alone_says_so() -> None:
    lines = closing_lines(make_run([row("wrong", 25_000)]), "x.json")
    assert lines[1] == "no case gave a number to rank: traps/missing-wait[way=wrong] is measured wrong on purpose"


@pytest.mark.parametrize("form", ["table", "md"])
def test_the_table_has_a_column_and_the_lesson_below(form: Any) -> None:
    text = export.render(make_run(pair()), form)
    assert "of right" in text
    assert text.count("0.125×") == 2
    assert "missing-wait way=wrong reads 0.125× the time: nobody waited" in text
    plain = export.render(make_run([make_record(flops=10**6)]), form)
    assert "of right" not in plain


def test_a_reason_names_its_benchmark_where_several_share_a_table() -> None:
    rows = [*pair(), *pair("burst")]
    rows[2] = row("right", 0, "burst", status="skipped", reason="no clock")
    assert "skipped: burst way=right: no clock" in export.render(make_run(rows), "table")
    assert "skipped: way=right: no clock" in export.render(make_run(rows[2:]), "table")


def test_clock_and_power_are_shown_where_a_row_is_sustained() -> None:
    burst, sustained = (
        make_record(params={"n": 64}, flops=10**9, conditions=Conditions(load=load)) for load in ("burst", "sustained")
    )
    sustained.samples.sm_mhz = [1470.4] * 11
    sustained.metrics.append(Metric("power", 691.2, "W", "none"))
    text = export.render(make_run([burst, sustained]), "table")
    assert "1470 MHz" in text
    assert "691 W" in text
    assert "MHz" not in export.render(make_run([burst]), "table")
    burst.samples.sm_mhz = [1952.0] * 11
    burst.telemetry["sm_clock"] = "read beside calls of 1.4 ms, and not within them: software power cap"
    assert "≤1952 MHz" in export.render(make_run([burst, sustained]), "table")
