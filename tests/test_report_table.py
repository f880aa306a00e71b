"""The table of a run: which rows, which columns, and user text printed as it is."""

from __future__ import annotations

import io
import re
import time
from pathlib import Path

import pytest
from builders import CPU, make_bandwidth, make_ceilings, make_matmul, make_record, make_run, make_sweep
from rich.cells import cell_len
from rich.console import Console

from gpubench.model import attention_traffic
from gpubench.model.attention_traffic import CONVENTION, Shape
from gpubench.report import rows, table, ways
from gpubench.report.grid import Column, Grid
from gpubench.result import Conditions, Metric, Run

GOLDEN = Path(__file__).parent / "golden"


def printed(run: Run, all_rows: bool = False, width: int = 80) -> str:
    """As a careless caller prints it: with markup and emoji on."""
    text = io.StringIO()
    Console(file=text, width=width, color_system=None).print(table.table(run, all_rows))
    return text.getvalue()


def body(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith("n=")]


def test_golden_at_80_columns() -> None:
    oom = make_record(params={"n": 2**20, "m": 2**20, "k": 2**20, "dtype": "bfloat16", "layout": "nn"}, status="oom")
    oom.reason = "out of memory: needs 6,597,069,766,656 bytes, free 143,000,000,000 bytes"
    run = make_run(
        [*make_sweep(), oom, make_bandwidth("copy"), make_bandwidth("write", 4.5e12)], ceilings=make_ceilings()
    )
    run.records[3].flags = ["noisy", "throttled"]
    assert printed(run) == (GOLDEN / "table-80.txt").read_text()


def test_at_most_24_rows_in_sweep_order_and_the_rest_is_counted() -> None:
    run = make_run()
    text = printed(run)
    sizes = [int(line.split()[0].removeprefix("n=")) for line in body(text)]
    assert len(sizes) == 24
    assert sizes == sorted(sizes)
    assert f"{len(run.records) - 24} more rows: --all" in text
    assert "more row" not in printed(run, all_rows=True)
    assert len(body(printed(run, all_rows=True))) == len(run.records)


def test_best_worst_failed_every_class_and_the_drop_are_among_them() -> None:
    run = make_run()
    run.records[100].status, run.records[100].reason = "error", "boom"
    shown = table.shown_first(run, rows.groups(run))
    chosen = [record for record in run.records if id(record) in shown]
    order = rows.ranked(run.records)
    assert {id(order[0]), id(order[-1]), id(run.records[100])} <= shown
    assert {record.labels["alignment"] for record in chosen} == {record.labels["alignment"] for record in run.records}
    sizes = {record.params["n"] for record in chosen}
    assert any(n + 1 in sizes for n in sizes), "both sides of the largest drop"


def test_twenty_five_failures_leave_room_for_the_best() -> None:
    failed = [make_record(params={"n": n}, status="error", reason="no") for n in range(1, 41)]
    run = make_run([*failed, make_record(params={"n": 99}, flops=100)])
    assert "n=99" in printed(run)
    assert "17 more rows: --all" in printed(run)


def test_an_implausible_row_is_shown_and_is_not_the_best() -> None:
    run = make_run(make_sweep([256, 512, 1024]), ceilings=make_ceilings())
    run.records[2].flags = ["implausible"]
    assert rows.ranked(run.records)[0].params["n"] == 512
    assert re.search(r"n=1024 .* implausible", printed(run))


def test_constant_parameters_are_in_the_heading_and_varying_ones_in_the_rows() -> None:
    lines = printed(make_run(make_sweep([256, 512]))).split("\n")
    assert lines[0] == "matmul-sweep/matmul · NVIDIA H200 · bf16 · layout=nn · m=k=n · cold, burst"
    assert [line.split()[0] for line in lines[3:5]] == ["n=256", "n=512"]
    both = printed(make_run([*make_sweep([256, 512]), *make_sweep([256, 512], dtype="float16")]))
    assert "n=512 dtype=float16" in both
    mixed = make_run([*make_sweep([256, 512]), make_matmul(512, conditions=Conditions(cache="hot"))])
    lines = printed(mixed).split("\n")
    assert lines[0] == "matmul-sweep/matmul · NVIDIA H200 · bf16 · layout=nn · m=k=n · burst"
    assert [line.split()[:2] for line in lines[1:6] if not line.startswith("─")] == [
        ["case", "cache"],
        ["n=256", "cold"],
        ["n=512", "cold"],
        ["n=512", "hot"],
    ]


def test_conditions_have_a_column_where_they_differ_and_only_there() -> None:
    sustained = make_matmul(512, conditions=Conditions(load="sustained"), flags=["noisy"], status="error", reason="no")
    zeros = make_matmul(512, conditions=Conditions(cache="hot", data="zeros"))
    lines = printed(make_run([make_matmul(512), sustained, zeros])).split("\n")
    assert lines[0].endswith("· layout=nn")
    assert lines[1].split()[:4] == ["case", "cache", "load", "data"]
    assert "error: n=512 m=512 k=512 cache=cold load=sustained data=normal: no" in " ".join(lines)
    two = [make_bandwidth("copy"), make_bandwidth("read", conditions=Conditions(cache="hot"))]
    assert [line.endswith(("cold, burst", "hot, burst")) for line in printed(make_run(two)).split("\n")].count(
        True
    ) == 2


def test_one_row_names_its_sizes() -> None:
    text = printed(make_run(make_sweep([1024])))
    assert "n=1024 m=1024 k=1024" in text
    assert text.startswith("matmul-sweep/matmul · NVIDIA H200 · bf16 · layout=nn · cold, burst\n")


def test_a_share_is_of_the_ceiling_of_that_dtype_or_that_memory() -> None:
    run = make_run([make_matmul(4096), make_matmul(4096, "float16"), make_bandwidth("copy", 2.3e12)])
    run.ceilings = make_ceilings(peak=1600e12)
    share = [rows.percent_of_ceiling(run, record) for record in run.records]
    assert share[0] == pytest.approx(50 * 4096**2 / (4096**2 + 700**2), rel=1e-3)
    assert share[1] is None
    assert share[2] == pytest.approx(50, rel=1e-3)
    run.records[2].flags = ["cache-resident"]
    assert rows.percent_of_ceiling(run, run.records[2]) is None


def test_a_share_of_the_datasheet_is_shown_where_there_is_room() -> None:
    run = make_run(make_sweep([257, 4096]), ceilings=make_ceilings())
    share = Metric("of_datasheet", 0.786, "1", "higher")
    run.records[1].metrics.append(share)
    wide = printed(run, width=100)
    assert re.search(r"^case +time +rate +of ceiling +of sheet +alignment$", wide, re.MULTILINE)
    assert re.search(r"^n=4096 .* 97 % +79 % +256 B$", wide, re.MULTILINE)
    assert re.search(r"^n=257 .* 2 % +2 B$", wide, re.MULTILINE)
    assert "of sheet" not in printed(run, width=60)
    run.records[1].metrics.remove(share)
    assert "of sheet" not in printed(run, width=100)


def test_a_gpu_that_is_not_in_the_catalogue_is_named_once() -> None:
    device = {"kind": "cuda", "name": "NVIDIA Graphics Device"}
    text = printed(make_run(make_sweep([256, 512]), device=device))
    assert text.startswith("no share of a datasheet: NVIDIA Graphics Device is not in the catalogue\n")
    assert text.count("datasheet") == 1


def test_why_a_rate_cannot_be_is_said_below_the_table() -> None:
    run = make_run(make_sweep([256, 512, 1024]))
    run.records[2].flags = ["implausible"]
    run.records[2].prediction = {"yardsticks": {"implausible": "1.40 times what [it] can do"}}
    assert "implausible: n=1024: 1.40 times what [it] can do\n" in printed(run)


@pytest.mark.parametrize("value", [0.0, float("nan"), float("inf"), -1.0])
def test_a_broken_ceiling_is_no_ceiling(value: float) -> None:
    run = make_run(make_sweep([256]), ceilings=make_ceilings(peak=value))
    assert rows.percent_of_ceiling(run, run.records[0]) is None
    assert "of ceiling" not in printed(run)


def test_times_with_and_without_an_interval() -> None:
    assert table.time_words(make_record(time_ns=172_000, half=0.005)) == "172 µs ± 0.5 %"
    assert table.time_words(make_record(time_ns=172_000, half=1e-5)) == "172 µs ± <0.1 %"
    assert table.time_words(make_record(time_ns=172_000, half=None)) == "172 µs"
    assert table.time_words(make_record(time_ns=0)) == "0 ns"
    assert table.time_words(make_record(status="oom")) == ""


def test_a_row_of_no_duration_has_no_rate() -> None:
    run = make_run([make_record(params={"n": n}, time_ns=0, flops=100) for n in (1, 2)])
    run.records[0].flags = ["below-resolution"]
    text = printed(run)
    assert "FLOP/s" not in text
    assert "nan" not in text.lower()
    assert "inf" not in text.lower()


def test_all_failed_gives_statuses_and_reasons_and_no_number() -> None:
    run = make_run([make_record(params={"n": n}, status="error", reason="the kernel did not load") for n in (1, 2, 3)])
    text = printed(run)
    assert text.count("  error") == 3
    assert "error: n=1 and 2 more rows: the kernel did not load" in text
    assert "ns" not in text.replace("burst", "")


def test_no_rows_at_all() -> None:
    assert printed(make_run([])) == "NVIDIA H200 · no rows\n"


def test_an_unfinished_run_says_so_first() -> None:
    text = printed(make_run(make_sweep([256]), status="interrupted"))
    assert text.startswith("interrupted run: not every case was measured\n")


def test_why_this_device_is_said_first() -> None:
    run = make_run(make_sweep([256], dtype="float32"), device=CPU | {"notice": "no CUDA device (no driver)"})
    assert printed(run).startswith("no CUDA device (no driver)\n")


def test_a_cpu_run_has_no_word_of_a_gpu() -> None:
    run = make_run(
        [*make_sweep(dtype="float32", peak=1e11), make_bandwidth("copy", 1e10)],
        device=CPU,
        ceilings=make_ceilings("float32", 1e11, 2e10),
    )
    assert not re.search(r"GPU|\bSM\b|HBM|cuda", printed(run))


NASTY = "[/red] gemm[fp16] [/tmp/x] :smile: [bold]"


def test_markup_in_names_and_reasons_is_printed_literally() -> None:
    run = make_run(
        [
            make_record(
                "s[/bold]", "gemm[fp16]", params={"n": n, "mode": f"[/red]{n}"}, labels={"x": f"[b]{n}"}, flops=9
            )
            for n in (1, 2)
        ]
        + [make_record("s[/bold]", "gemm[fp16]", params={"n": 3, "mode": "m"}, status="error", reason=NASTY)]
    )
    run.device["name"] = "X [/red]"
    text = printed(run, width=120)
    for words in ("s[/bold]/gemm[fp16]", "X [/red]", "mode=[/red]1", "[b]2", NASTY):
        assert words in text


def test_control_characters_are_made_visible_and_lines_stay_lines() -> None:
    run = make_run([make_record(params={"n": 1}, status="error", reason="a\x1b[31mb\nc\u202ed")])
    assert "a�[31mb c�d" in printed(run)


@pytest.mark.parametrize("width", [80, 100])
def test_a_wide_table_folds_and_loses_nothing(width: int) -> None:
    long = {f"axis{number}": f"value-{number}-with-a-long-name" for number in range(4)}
    records = [
        make_record(params={**long, "n": n, "mode": f"m{n}" * 9}, flops=10**9, labels={"c": f"{n}"}) for n in (1, 22)
    ]
    records.append(make_record(params={**long, "n": 3, "axis0": "other"}, status="timeout", reason="slow"))
    records[0].flags = ["throttled", "noisy", "cache-resident"]
    text = printed(make_run(records), width=width)
    assert max(cell_len(line) for line in text.split("\n")) <= width
    squeezed = re.sub(r"\s", "", text)
    assert "m22" * 9 in squeezed
    assert "…" not in text


def test_ten_thousand_rows_take_less_than_a_second() -> None:
    run = make_run([make_matmul(n) for n in range(64, 10_064)], ceilings=make_ceilings())
    begun = time.process_time()
    text = printed(run)
    assert time.process_time() - begun < 1.0
    assert "9,976 more rows: --all" in text


def test_the_grid_folds_only_where_it_may() -> None:
    grid = Grid([Column("a", right=True), Column("b", fold=True)])
    grid.add("1234567890", "one two three four")
    text = io.StringIO()
    Console(file=text, width=21, color_system=None).print(grid)
    assert text.getvalue().split("\n")[2:] == ["1234567890  one two", "            three", "            four", ""]
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        grid.add("x")


def test_the_grid_leaves_optional_columns_out_before_it_folds() -> None:
    grid = Grid([Column("a", fold=True), Column("b", optional=True), Column("c", optional=True), Column("d")])
    grid.add("one two three", "2", "3", "4", style="bold")
    for width, kept in ((22, "abcd"), (21, "abd"), (19, "abd"), (18, "ad"), (16, "ad"), (12, "ad")):
        assert "".join(column.title for column in grid.fitted(width).columns) == kept, width
    text = io.StringIO()
    Console(file=text, width=16, color_system=None).print(grid)
    assert text.getvalue().split("\n")[2:] == ["one two three  4", ""]


def test_spread_keeps_the_ends() -> None:
    assert rows.spread(list(range(100)), 4) == [0, 33, 66, 99]
    assert rows.spread([1, 2, 3], 5) == [1, 2, 3]
    assert rows.spread([1, 2, 3], 1) == [1]
    assert rows.spread([1, 2, 3], 0) == []
    assert rows.spread([1, 2, 3], -2) == []


def test_a_word_too_long_for_its_column_is_broken_where_it_has_a_joint() -> None:
    grid = Grid([Column("a", fold=True), Column("b")])
    grid.add("chain product=weight-gradient vocab=50257", "1" * 40)
    text = io.StringIO()
    Console(file=text, width=50, color_system=None).print(grid)
    cells = [line[:8].strip() for line in text.getvalue().split("\n")[2:-1]]
    assert cells == ["chain", "product=", "weight-", "gradient", "vocab=", "50257"]


def test_a_rate_of_attention_says_which_flops_it_counts() -> None:
    row = make_record("attention", "forward", params={"n": 1024}, flops=4 * 64 * 1024**2)
    assert CONVENTION in printed(make_run([row])).splitlines()
    assert len(CONVENTION) <= 80
    assert attention_traffic.flops(Shape(1, 1, 1, 8, 2), backward=True) == 3.5 * 4 * 8**2 * 2
    assert "3.5× with gradients" in CONVENTION
    alone = make_record("attention", "exactness", params={"n": 1024}, time_ns=10)
    assert "flops" not in printed(make_run([alone])), "a time counts nothing"
    assert "flops:" not in printed(make_run(make_sweep([1792, 1793])))


def test_a_row_that_is_not_wrong_is_held_against_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand rows, each of which looked through all the others, took a minute."""
    monkeypatch.setattr(ways, "errors", lambda group: pytest.fail("a look through every row"))
    (group,) = rows.groups(make_run(make_sweep([64, 128])))
    assert ways.error_words(group, group.records[0]) == ""
