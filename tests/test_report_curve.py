"""The curve of a sweep: which rows are drawn, with which marks, and never wider than asked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from builders import CPU, SIZES, make_bandwidth, make_ceilings, make_matmul, make_record, make_run, make_sweep
from rich.cells import cell_len

from gpubench.report import sweep
from gpubench.report.canvas import Scale, binary_ticks, linear_ticks, log_ticks, marks_for, natural, si
from gpubench.report.curve import curve
from gpubench.store.folder import read_run

GOLDEN = Path(__file__).parent / "golden"
H200 = Path(__file__).parent.parent / "results/reference/h200"


def drawn(*args: object, **kwargs: object) -> str:
    text = curve(*args, **kwargs)  # type: ignore[arg-type]
    assert text is not None
    return text


def test_golden_at_80_columns() -> None:
    assert drawn(make_run(), 80, 24, False) + "\n" == (GOLDEN / "curve-80.txt").read_text()


def test_golden_in_ascii() -> None:
    text = drawn(make_run(), 64, 18, False, ascii_only=True)
    assert text.isascii()
    assert text + "\n" == (GOLDEN / "curve-64-ascii.txt").read_text()


@pytest.mark.parametrize("width", [30, 37, 60, 80, 133])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_never_wider_than_asked_and_about_as_high(width: int, ascii_only: bool) -> None:
    run = make_run()
    run.device["name"] = "装置 with a name longer than any line of a terminal ought to be, really " * 3
    lines = drawn(run, width, 20, False, ascii_only).split("\n")
    assert max(map(cell_len, lines)) <= width
    assert 14 <= len(lines) <= 22


def test_colour_changes_nothing_but_colour() -> None:
    run = make_run()
    coloured = drawn(run, 80, 24, True)
    assert "\x1b[38;5;" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == drawn(run, 80, 24, False)


def test_every_class_has_its_own_mark_in_the_plot_and_in_the_legend() -> None:
    text = drawn(make_run(), 80, 24, False)
    *plot, frame, _, legend, _ = text.split("\n")
    marks = dict(re.findall(r"(\S) (\d+) B", legend))
    assert set(marks.values()) == {"256", "128", "16", "8", "4", "2"}
    assert frame.lstrip().startswith("└")
    assert all(mark in "\n".join(plot[2:]) for mark in marks)


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9])
def test_marks_are_told_apart_by_character(count: int) -> None:
    marks = marks_for([str(number) for number in range(count)], ascii_only=False)
    assert len({mark for mark, _ in marks.values()}) == count


def test_a_mark_stands_where_its_row_is() -> None:
    rates = [make_matmul(n, peak=1e12) for n in (256, 512, 768, 1024, 1280, 1536, 1792)]
    low = make_record(params=rates[0].params | {"n": 2048, "m": 2048, "k": 2048}, time_ns=10**12, flops=1000)
    text = drawn(make_run([*rates, low]), 60, 20, False)
    bottom = next(line for line in text.split("\n") if line.startswith("  0 ┤") or "  0 ┤" in line)
    assert bottom.rstrip()[-1] not in "┤ ", "the slow row lies on the zero line, at the right edge"
    assert cell_len(bottom) == 60


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_too_few_rows_are_no_curve(rows: int) -> None:
    assert curve(make_run(make_sweep(SIZES[:rows])), 80, 24, False) is None


def test_eight_rows_are_a_curve_and_failed_ones_do_not_count() -> None:
    rows = make_sweep(SIZES[:8])
    assert curve(make_run(rows), 80, 24, False) is not None
    failed = make_record(params=dict(rows[0].params), status="error", reason="no")
    assert curve(make_run([*rows[1:], failed]), 80, 24, False) is None


def test_a_terminal_too_small_has_no_curve() -> None:
    assert curve(make_run(), 29, 24, False) is None
    assert curve(make_run(), 80, 8, False) is None


def test_two_dtypes_are_two_sweeps_and_the_second_is_named() -> None:
    run = make_run([*make_sweep(SIZES[:20]), *make_sweep(SIZES[:12], dtype="float16")])
    found = sweep.sweeps(run)
    assert [(one.axis, one.others, len(one.records)) for one in found] == [
        ("n", ("dtype=bfloat16",), 20),
        ("n", ("dtype=float16",), 12),
    ]
    text = drawn(run, 80, 24, False)
    assert text.startswith("matmul-sweep/matmul · NVIDIA H200 · bf16 · layout=nn")
    assert text.endswith("not drawn: matmul-sweep/matmul · dtype=float16")


def test_rows_of_different_conditions_are_different_sweeps() -> None:
    from gpubench.result import Conditions

    hot = make_sweep(SIZES[:8], conditions=Conditions(cache="hot"))
    run = make_run([*make_sweep(SIZES[:9]), *hot])
    assert [(len(one.records), one.others) for one in sweep.sweeps(run)] == [(9, ("cache=cold",)), (8, ("cache=hot",))]
    text = drawn(run, 80, 24, False)
    assert text.startswith("matmul-sweep/matmul · NVIDIA H200 · bf16 · layout=nn · cold, burst\n")
    assert text.endswith("not drawn: matmul-sweep/matmul · cache=hot")


def test_m_and_k_that_follow_n_are_one_axis_and_a_free_k_is_another() -> None:
    square = sweep.sweeps(make_run(make_sweep(SIZES[:8])))
    assert [one.axis for one in square] == ["n"]
    free = [make_record(params={"n": 64, "m": 64, "k": k}, flops=64 * 64 * 2 * k, time_ns=1000) for k in range(1, 9)]
    assert [one.axis for one in sweep.sweeps(make_run(free))] == ["k"]


def test_a_sweep_of_powers_of_two_gets_a_logarithmic_axis() -> None:
    run = make_run([make_bandwidth(mib=2**power, rate=1e12 + power * 1e11) for power in range(14)])
    text = drawn(run, 80, 20, False)
    ticks = text.split("\n")[-2]
    assert "GB/s" in text.split("\n")[1]
    assert re.findall(r"\d+", ticks)[:3] in (["1", "4", "16"], ["1", "2", "4"])


def test_a_cpu_run_has_no_word_of_a_gpu() -> None:
    run = make_run(
        make_sweep(SIZES[:40], dtype="float32", peak=1e11), device=CPU, ceilings=make_ceilings("float32", 1e11)
    )
    text = drawn(run, 80, 24, False)
    assert not re.search(r"GPU|\bSM\b|HBM|cuda", text)
    assert "GFLOP/s" in text


def test_control_characters_of_a_file_do_not_reach_the_terminal() -> None:
    run = make_run()
    run.device["name"] = "X [/red]\x1b[2J\nY"
    for record in run.records:
        record.labels = {"align\x1bment": record.labels["alignment"] + "\x07"}
    text = drawn(run, 100, 24, False)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "X [/red]�[2J Y" in text


def test_largest_drop_is_between_near_neighbours_where_there_are_any() -> None:
    rows = {256: 9.0, 320: 1.0, 1792: 10.0, 1793: 2.5, 1800: 0.5}
    records = [make_record(params={"n": n}, flops=round(rate * 10**6), time_ns=1000) for n, rate in rows.items()]
    found = sweep.sweeps(make_run(records), least=2)[0]
    assert sweep.largest_drop(found) == (1792, 1793, pytest.approx(4.0))
    far = sweep.sweeps(make_run([record for record in records if record.params["n"] != 1793]), least=2)[0]
    assert sweep.largest_drop(far) == (1792, 1800, pytest.approx(20.0))


def test_what_lies_between_sizes_far_apart_is_no_drop() -> None:
    records = [make_record(params={"n": n}, flops=flops, time_ns=1000) for n, flops in ((768, 9000), (50257, 1000))]
    found = sweep.sweeps(make_run(records), least=2)[0]
    assert sweep.largest_drop(found) is None
    vocabulary = sweep.sweeps(read_run(H200 / "advise-gpt2.json.gz"))[0]
    assert sweep.largest_drop(vocabulary) == (3072, 3200, pytest.approx(1.018, abs=1e-3))


def test_a_drop_is_not_made_of_numbers_that_are_not_trusted() -> None:
    records = [make_record(params={"n": n}, flops=10**9 // n, time_ns=1000) for n in (1, 2, 3)]
    records[0].flags = ["implausible"]
    assert sweep.largest_drop(sweep.sweeps(make_run(records), least=2)[0]) == (2, 3, pytest.approx(1.5))
    records[1].flags = ["below-resolution"]
    assert sweep.largest_drop(sweep.sweeps(make_run(records), least=2)[0]) is None


def test_ticks() -> None:
    assert linear_ticks(0, 808, 6) == [0, 200, 400, 600, 800]
    assert linear_ticks(0, 0.07, 4) == pytest.approx([0, 0.05])
    assert binary_ticks(256, 4360, 5) == [1024, 2048, 3072, 4096]
    assert binary_ticks(1, 8, 8) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert log_ticks(0.5, 2000, 8) == [1, 10, 100, 1000]
    assert log_ticks(1, 1e6, 4) == [1, 100, 1e4, 1e6]
    assert log_ticks(0.05, 0.5, 4) == pytest.approx([0.1])
    assert [si(value) for value in (0.1, 1, 2000, 5e11, 1e15)] == ["0.1", "1", "2 k", "500 G", "1 P"]


@pytest.mark.parametrize("log", [False, True])
def test_a_scale_goes_both_ways(log: bool) -> None:
    scale = Scale(2, 2000, log)
    assert [scale.at(2), scale.at(2000)] == pytest.approx([0, 1])
    assert scale.value(scale.at(77)) == pytest.approx(77)


def test_classes_come_largest_number_first() -> None:
    assert sorted(["2 B", "odd", "256 B", "16 B"], key=natural) == ["256 B", "16 B", "2 B", "odd"]
