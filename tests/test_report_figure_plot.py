"""Figures in a terminal: what is drawn, never wider than asked, in plain ASCII too."""

from __future__ import annotations

import dataclasses
import re

import pytest
from builders import make_bandwidth, make_matmul, make_record, make_run, make_sweep
from rich.cells import cell_len

from gpubench.report import plots
from gpubench.report.canvas import to_ascii
from gpubench.report.figure_plot import plot
from gpubench.report.figures.shapes import (
    Entry,
    Figure,
    Heading,
    Level,
    Lines,
    Point,
    Quantity,
    Rows,
    Series,
    Strip,
    Strips,
    Tile,
    Tiles,
)
from gpubench.result import Samples

HEADING = Heading("id", "suite", "bandwidth by stride", "What does a stride cost?", ("cold, burst",))


def lines(series: list[Series], **fields: object) -> Lines:
    return Lines(HEADING, Quantity("stride"), Quantity("bandwidth", "B/s"), series, "access", **fields)  # type: ignore[arg-type]


def points(*values: float) -> list[Point]:
    return [Point(2.0**index, value) for index, value in enumerate(values)]


LINES = lines(
    [
        Series("read", points(4e12, 2e12, 1e12, 5e11)),
        Series("write", points(4.5e12, 1e12, 6e11, 3e11)),
        Series("read", points(4e12, 2e12, 1e12, 5e11), "predicted"),
    ],
    levels=[Level(4.8e12, "DRAM ceiling"), Level(4.0, "edge", "x")],
)
ROWS = Rows(
    HEADING,
    Quantity("rate", "FLOP/s"),
    [
        Entry("fp32", 51e12, predicted=67e12),
        Entry("bf16", 794e12, predicted=989e12),
        Entry("装置" * 20, 400e12, kind="a"),
    ],
    predicted="datasheet",
)


STRIPS = Strips(
    HEADING,
    Quantity("time of a call over the row's median", "×"),
    [Strip("n=64", [0.9, 1.0, 1.0, 1.4], 1.0, 0.95, 1.1), Strip("装置" * 20, [0.99, 1.0, 1.01], 1.0)],
)
TILES = Tiles(
    HEADING,
    [("C0", [Tile("C01", "HOLDS"), Tile("C02", "ABSENT")]), ("C1", [Tile(f"C1{n}", "HOLDS") for n in range(10)])],
    ("HOLDS", "PARTLY", "ABSENT"),
)


def drawn(figure: Figure, width: int = 80, height: int = 20, colour: bool = False, ascii_only: bool = False) -> str:
    text = plot(figure, width, height, colour, ascii_only)
    assert text is not None
    return text


def test_lines_have_a_mark_for_each_class_and_dots_for_the_model():
    text = drawn(LINES)
    body, legend = text.rsplit("access", 1)
    assert body.splitlines()[:2] == ["bandwidth by stride", "bandwidth, GB/s"]
    assert body.count("■") == 4
    assert 0 < body.count("●") <= 4
    assert "·" in body
    for word in ("● read", "■ write", "· predicted", "╌ DRAM ceiling", "│ edge"):
        assert word in legend
    assert text.endswith("cold, burst")


def test_rows_are_bars_with_their_values_and_a_line_for_what_was_predicted():
    _, about, first, second, third, _ = drawn(ROWS).splitlines()
    assert about == "rate; │ datasheet"
    assert first.startswith("fp32 ")
    assert first.endswith("51.0 TFLOP/s")
    assert second.count("█") > 5 * first.count("█") > 0
    assert second.count("│") == 2
    assert third.count("│") == 1, "nothing was predicted of it"


def test_strips_have_a_dot_for_a_sample_a_bar_for_the_interval_and_a_line_for_the_median():
    title, about, first, second, frame, ticks, _ = drawn(STRIPS).splitlines()
    assert (title, about) == ("bandwidth by stride", "time of a call over the row's median, ×")
    assert first.startswith("n=64 ")
    assert first.count("·") == 2
    assert first.count("━") > 5
    assert first.index("·") < first.index("━") < first.rindex("│") < first.rindex("━") < first.rindex("·")
    assert first.rindex("│") == frame.index("┬", ticks.index("1 ") - 2), "the median is 1 by its own scale"
    assert second.count("━") == 0
    assert "more" in drawn(dataclasses.replace(STRIPS, strips=[STRIPS.strips[0]] * 30))


def test_tiles_have_the_mark_of_their_verdict_beside_their_names():
    lines = drawn(TILES).splitlines()
    assert lines[1] == "● C01 ▲ C02"
    assert lines[2] == " ".join(f"● C1{n}" for n in range(10))
    assert lines[3] == "verdict  ● HOLDS  ▲ ABSENT", "each verdict looks as it does in every picture"
    assert [line.count("●") for line in drawn(TILES, 45).splitlines()[2:4]] == [7, 3]


def test_a_value_with_a_name_is_a_line_across_the_rows():
    traps = Rows(HEADING, Quantity("time", "×"), [Entry("a", 0.5), Entry("b", 3.0)], levels=[Level(1.0, "right", "x")])
    _, about, first, second, _ = drawn(traps).splitlines()
    assert about == "time; ┊ right"
    assert first.index("┊") == second.index("┊")


def test_names_too_long_are_cut_so_that_they_stay_apart_and_keep_their_class():
    entries = [Entry(f"a very long name of a row with n={n}", n, kind="sustained") for n in (512, 1024)]
    _, _, first, second, _ = drawn(Rows(HEADING, Quantity("rate", "FLOP/s"), entries), 60).splitlines()
    assert "n=512 · sustained │" in first
    assert "n=1024 · sustained │" in second
    assert first.startswith("…")
    kept = [Entry("a short one", 5.0), Entry("another name that is rather too long for it", 5.0)]
    lines = drawn(Rows(HEADING, Quantity("rate", "FLOP/s"), kept), 60).splitlines()
    assert lines[3].startswith("another name that is rat"), "the beginning tells them apart"


def test_a_long_fact_goes_on_in_a_second_line():
    fact = "the fastest of each of many kernels: shape 8192x8192x8192; shape 4096x4096x12288"
    text = drawn(dataclasses.replace(ROWS, heading=dataclasses.replace(HEADING, facts=(fact,))), 60)
    assert fact in text.replace("\n", " ")


@pytest.mark.parametrize("figure", [LINES, ROWS, STRIPS, TILES])
@pytest.mark.parametrize("width", [40, 57, 80, 133])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_never_wider_than_asked_nor_much_higher(figure: Figure, width: int, ascii_only: bool):
    text = drawn(figure, width, 18, False, ascii_only)
    assert max(map(cell_len, text.splitlines())) <= width
    assert len(text.splitlines()) <= 20
    assert text.isascii() or not ascii_only


@pytest.mark.parametrize("figure", [LINES, ROWS, STRIPS, TILES])
def test_colour_changes_nothing_but_colour(figure: Figure):
    coloured = drawn(figure, colour=True)
    assert "\x1b[38;5;" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == drawn(figure)


@pytest.mark.parametrize("count", [1, 3, 500])
def test_one_row_and_many_are_drawn(count: int):
    text = drawn(lines([Series("", [Point(float(index), 1e9 + index) for index in range(count)])]))
    assert "●" in text
    entries = [Entry(f"row {index}", 1e12 + index) for index in range(count)]
    bars = drawn(Rows(HEADING, Quantity("rate", "FLOP/s"), entries))
    assert len(bars.splitlines()) <= 20
    assert ("more" in bars) == (count == 500)


def test_a_terminal_may_be_too_small():
    assert plot(LINES, 30, 20, False) is None
    assert plot(ROWS, 80, 5, False) is None


def test_a_run_shows_its_curve_else_a_figure_of_its_suites_else_its_longest_sweep():
    chase = [make_record("memory-hierarchy", "chase", params={"kib": 4**n}, time_ns=100) for n in range(9)]
    own = [make_record("tiling", "ladder", params={"rung": rung}, flops=10**9) for rung in ("naive", "shared")]
    assert "matmul-sweep/matmul" in (plots.plot(make_run([*make_sweep(), *own]), 80, 20, False) or "")
    assert "from naive to library" in (plots.plot(make_run([*own, *chase]), 80, 20, False) or "")
    stream = [make_bandwidth(mib=2**n) for n in range(9)]
    assert "bandwidth/copy · NVIDIA H200" in (plots.plot(make_run(stream), 80, 20, False) or "")
    rows = [make_record("mine", "b", params={"way": way}) for way in "abcdefgh"]
    assert "mine: b" in (plots.plot(make_run(rows), 80, 20, False) or "")
    assert plots.plot(make_run(rows[:7]), 80, 20, False) is None, "a table says it as well"
    assert plots.plot(make_run([make_matmul(256)]), 80, 20, False) is None
    scattered = make_matmul(256, samples=Samples([90, 100, 100, 170], [1] * 4, [0] * 4, [1980.0] * 4))
    assert "samples of single rows" in (plots.plot(make_run([scattered]), 80, 20, False) or "")
    assert plots.plot(make_run([]), 80, 20, False) is None


def test_our_own_signs_have_a_spelling_in_plain_ascii():
    assert to_ascii("0.174× ± 3 µs ≤ 4 °C → n²") == "0.174x +- 3 us <= 4  deg C > n^2"
    assert to_ascii("│┤…é") == "|+~?"
