"""The roofline of a run: points under the right roof, and what is said where a roof is missing."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from builders import CPU, make_bandwidth, make_ceilings, make_matmul, make_record, make_run, make_sweep
from rich.cells import cell_len
from rich.console import Console

from gpubench.report import roofline
from gpubench.report.roofline_plot import plot
from gpubench.result import Ceiling, Run

GOLDEN = Path(__file__).parent / "golden"
WHEN = "2026-07-12T10:15:00Z"


def compute(dtype: str, value: float) -> Ceiling:
    return Ceiling("compute", f"{dtype} matmul", value, "FLOP/s", "r", WHEN, "measured", dtype=dtype)


def memory(level: str, value: float) -> Ceiling:
    return Ceiling("bandwidth", f"{level} read", value, "B/s", "r", WHEN, "measured", level=level)


def placed(flops: int, nbytes: int, rate: float, **params: int | str) -> Run:
    """One row of that work that ran at `rate` FLOP/s, under ceilings of 100 FLOP/ns (fp16), 50 (fp32) and 10 B/ns."""
    row = make_record(params={"n": 1, **params}, flops=flops, nbytes=nbytes, time_ns=round(flops / rate * 1e9))
    return make_run([row], ceilings=[compute("float16", 1e11), compute("float32", 5e10), memory("DRAM", 1e10)])


def printed(run: Run, all_rows: bool = False, width: int = 80) -> str:
    text = io.StringIO()
    Console(file=text, width=width, color_system=None).print(roofline.table(roofline.view(run), all_rows))
    return text.getvalue()


@pytest.mark.parametrize(
    ("dtype", "flops", "rate", "bound", "attainable"),
    [
        ("float16", 4_000, 2e10, "memory", 4e10),  # 4 FLOP/B · 10 B/ns
        ("float16", 40_000, 2e10, "compute", 1e11),
        ("float32", 4_000, 2e10, "memory", 4e10),
        ("float32", 6_000, 2e10, "compute", 5e10),  # its ridge is at 5 FLOP/B, that of fp16 at 10
        ("float16", 6_000, 2e10, "memory", 6e10),
    ],
)
def test_a_point_is_held_against_the_roof_of_its_dtype(
    dtype: str, flops: int, rate: float, bound: str, attainable: float
) -> None:
    view = roofline.view(placed(flops, 1000, rate, dtype=dtype))
    (point,) = view.points
    assert point.intensity == flops / 1000
    assert (point.bound, point.attainable) == (bound, pytest.approx(attainable))
    assert point.percent == pytest.approx(100 * rate / attainable, rel=1e-3)
    assert view.notes == ()


def test_a_dtype_without_a_ceiling_is_held_against_the_bandwidth_and_said() -> None:
    run = placed(40_000, 1000, 2e10, dtype="bfloat16")
    view = roofline.view(run)
    (point,) = view.points
    assert (point.bound, point.attainable) == (None, pytest.approx(4e11))
    assert view.notes == ("no compute ceiling for bf16: held against the bandwidth alone (–)",)
    assert view.notes[0] in " ".join(printed(run).split())


def test_without_a_bandwidth_ceiling_only_the_peak_is_left() -> None:
    run = placed(40_000, 1000, 2e10, dtype="float16")
    run.ceilings = [compute("float16", 1e11), memory("L2", 9e10)]
    view = roofline.view(run)
    assert view.memory is None
    assert (view.points[0].bound, view.points[0].attainable) == (None, 1e11)
    assert view.compute[0].intensity is None
    assert "no DRAM bandwidth ceiling" in view.notes[0]


def test_without_ceilings_there_are_points_and_a_hint() -> None:
    run = make_run(make_sweep([256, 512]))
    view = roofline.view(run)
    assert [point.percent for point in view.points] == [None, None]
    assert "gpubench roofline --measure" in printed(run)
    assert plot(view, 80, 20, False) is not None


def test_the_best_dram_ceiling_counts_and_the_best_of_each_dtype() -> None:
    run = make_run(ceilings=[*make_ceilings(), compute("bfloat16", 7e14), memory("L2", 9e12)])
    view = roofline.view(run)
    assert view.memory is not None
    assert view.memory.name == "DRAM write"
    assert [(ridge.ceiling.value, ridge.intensity) for ridge in view.compute] == [(8e14, pytest.approx(8e14 / 4.6e12))]
    assert len(view.ceilings) == 5


def test_rows_without_flops_a_number_or_bytes_are_counted_not_placed() -> None:
    failed = make_record(params={"n": 7}, status="error", reason="no", flops=10, nbytes=10)
    zero = make_record(params={"n": 8}, time_ns=0, flops=10, nbytes=10)
    run = make_run([make_matmul(256), make_bandwidth(), failed, zero], ceilings=make_ceilings())
    view = roofline.view(run)
    assert len(view.points) == 1
    assert view.unplaced == 3
    assert "3 rows without flops or without a number: not placed" in printed(run)


def test_nothing_to_place() -> None:
    run = make_run([make_bandwidth()])
    assert "nothing to place" in printed(run)
    assert plot(roofline.view(run), 80, 20, False) is None
    with_ceilings = roofline.view(make_run([make_bandwidth()], ceilings=make_ceilings()))
    assert "bf16 800 TFLOP/s" in (plot(with_ceilings, 80, 20, False) or "")


def test_at_most_24_points_with_best_worst_and_every_class() -> None:
    view = roofline.view(make_run())
    shown = roofline.shown_points(view)
    assert len(shown) == 24
    assert {point.label for point in shown} == {point.label for point in view.points}
    shares = [point.percent or 0 for point in view.points]
    assert {max(shares), min(shares)} <= {point.percent for point in shown}
    assert [point.intensity for point in shown] == sorted(point.intensity for point in shown)
    assert "more points: --all" in printed(make_run())
    assert printed(make_run(), all_rows=True).count("\nn=") == len(view.points)


def test_golden_table_plot_and_markdown() -> None:
    run = make_run()
    view = roofline.view(run)
    assert printed(run) == (GOLDEN / "roofline-table-80.txt").read_text()
    assert str(plot(view, 80, 24, False)) + "\n" == (GOLDEN / "roofline-80.txt").read_text()
    assert str(plot(view, 64, 18, False, ascii_only=True)) + "\n" == (GOLDEN / "roofline-64-ascii.txt").read_text()
    short = roofline.view(make_run(make_sweep([256, 1792, 1793]), ceilings=make_ceilings()))
    assert roofline.markdown(short) == (GOLDEN / "roofline.md.txt").read_text()


@pytest.mark.parametrize("width", [40, 63, 80, 140])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_the_picture_is_never_wider_than_asked(width: int, ascii_only: bool) -> None:
    two = [*make_sweep(range(64, 1025, 64)), *make_sweep(range(64, 1025, 64), dtype="float32", peak=5e13)]
    run = make_run(two, ceilings=[*make_ceilings(), compute("float32", 5.2e13)])
    run.device["name"] = "装置" * 40
    text = plot(roofline.view(run), width, 20, False, ascii_only)
    assert text is not None
    assert max(cell_len(line) for line in text.split("\n")) <= width
    assert text.isascii() or not ascii_only
    assert len(text.split("\n")) <= 22


def test_the_table_fits_80_columns() -> None:
    assert max(cell_len(line) for line in printed(make_run(), all_rows=True).split("\n")) <= 80


def test_dtypes_have_marks_where_there_are_several() -> None:
    two = [*make_sweep(range(64, 1025, 64)), *make_sweep(range(64, 1025, 64), dtype="float32", peak=5e13)]
    text = plot(roofline.view(make_run(two, ceilings=make_ceilings())), 80, 24, False)
    assert text is not None
    assert "\ndtype  ● bf16  · fp32\n" in text


def test_a_point_on_the_roof_is_drawn_on_the_line() -> None:
    run = placed(4_000, 1000, 4e10, dtype="float16")
    text = plot(roofline.view(run), 80, 24, False)
    assert text is not None
    line = next(line for line in text.split("\n")[2:-3] if "●" in line)
    assert re.search(r"╱●|●╱", line), "attained = attainable, so the mark replaces a piece of the slope"


def test_colour_changes_nothing_but_colour() -> None:
    view = roofline.view(make_run())
    coloured = plot(view, 80, 24, True)
    assert coloured is not None
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plot(view, 80, 24, False)
    assert coloured != plot(view, 80, 24, False)


def test_json_is_strict_and_in_base_units() -> None:
    run = make_run([make_matmul(4096), make_matmul(64, "float16"), make_bandwidth()], ceilings=make_ceilings())
    content = json.loads(json.dumps(roofline.to_json(roofline.view(run)), allow_nan=False))
    assert content["memory"] == "DRAM write"
    assert content["compute"][0]["ridge_flop_per_byte"] == pytest.approx(8e14 / 4.6e12)
    first, second = content["points"]
    assert first["id"] == run.records[0].id
    assert first["intensity_flop_per_byte"] == pytest.approx(4096 / 3)
    assert first["bound"] == "compute"
    assert (second["bound"], second["dtype"]) == (None, "float16")
    assert content["unplaced"] == 1


def test_a_cpu_run_has_no_word_of_a_gpu() -> None:
    run = make_run(make_sweep(dtype="float32", peak=1e11), device=CPU, ceilings=make_ceilings("float32", 1e11, 2e10))
    view = roofline.view(run)
    for text in (printed(run), plot(view, 80, 24, False), roofline.markdown(view), json.dumps(roofline.to_json(view))):
        assert not re.search(r"GPU|\bSM\b|HBM|cuda", str(text))


def test_markup_and_pipes_are_text() -> None:
    row = make_record("s", "gemm[fp16]", params={"n": 1, "mode": "[/red]|x"}, flops=10, nbytes=10)
    other = make_record("s", "gemm[fp16]", params={"n": 2, "mode": "[/red]|y"}, flops=10, nbytes=10)
    run = make_run([row, other], ceilings=[memory("DRAM", 1e10)], device={"kind": "cuda", "name": "X [/red]"})
    run.ceilings[0].name = "DRAM [bold]read|write"
    text = printed(run)
    assert "mode=[/red]|x" in text
    assert "DRAM [bold]read|write" in text
    assert r"mode=\[/red\]\|x" in roofline.markdown(roofline.view(run))
    assert "X [/red]" in str(plot(roofline.view(run), 80, 20, False))


def test_an_implausible_point_is_shown_and_leads_no_class() -> None:
    run = make_run([make_matmul(n) for n in range(256, 512)], ceilings=make_ceilings())
    for record in run.records[10:200]:
        record.flags = ["implausible"]
    view = roofline.view(run)
    assert sum(not point.trusted for point in view.points) == 190
    best = max((point for point in view.points if point.trusted), key=lambda point: point.percent or 0)
    assert best in roofline.shown_points(view)


def test_a_row_of_a_nearer_memory_is_held_against_that_and_not_against_dram() -> None:
    run = placed(4_000, 1000, 2e10, dtype="float16")
    (row,) = run.records
    assert row.work is not None
    there = replace(run, records=[replace(row, work=replace(row.work, level="L2"))])
    (point,) = roofline.view(there).points
    assert (point.bound, point.attainable) == (None, 1e11), "nobody measured that level"
    (point,) = roofline.view(replace(there, ceilings=[*run.ceilings, memory("L2", 2e10)])).points
    assert (point.bound, point.attainable) == ("memory", pytest.approx(8e10))


def test_a_note_is_whole_in_the_picture() -> None:
    rows = [make_matmul(256, dtype=dtype) for dtype in ("bfloat16", "float16", "float32", "float64")]
    text = plot(roofline.view(make_run(rows, ceilings=make_ceilings())), 60, 20, False)
    assert text is not None
    assert "no compute ceiling for fp16, fp32, fp64: held against the bandwidth alone (–)" in text.replace("\n", " ")
