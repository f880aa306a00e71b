"""The last lines of a run say what happened, and only what happened."""

from __future__ import annotations

import re

import pytest
from builders import CPU, make_bandwidth, make_ceilings, make_matmul, make_record, make_run, make_sweep

from gpubench.report.closing import closing_lines
from gpubench.result import Conditions

COMMANDS = {"run", "list", "info", "show", "roofline", "schema", "explain"}


def test_the_lines_of_a_good_run() -> None:
    skipped = [make_record(params={"n": n}, status="skipped", reason="time budget") for n in (1, 2)]
    rows = [make_matmul(n) for n in (1791, 1792, 1793, 4096)]
    run = make_run([*rows, *skipped], ceilings=make_ceilings())
    for record in skipped:
        record.params = dict(rows[0].params) | {
            "n": record.params["n"],
            "m": record.params["n"],
            "k": record.params["n"],
        }
    assert closing_lines(run, "results/x.json") == [
        "matmul-sweep · NVIDIA H200 · bf16 · cold, burst · 6 cases in 58 s · 2 skipped",
        "best 777 TFLOP/s at n=4096 (97 % of this GPU's ceiling) · largest drop 1792→1793: 5.0×",
        "saved results/x.json",
        "next  gpubench roofline · gpubench explain latest -p n=1793 · gpubench show --all",
    ]


def test_conditions_that_differ_are_all_named() -> None:
    hot, sustained = Conditions(cache="hot"), Conditions(load="sustained")
    run = make_run([make_matmul(512), make_matmul(512, conditions=hot), make_matmul(1024, conditions=sustained)])
    lines = closing_lines(run, "x.json")
    assert " · cold and hot, burst and sustained · 3 cases" in lines[0]
    assert lines[1] == "best 545 TFLOP/s at n=1024 cache=cold load=sustained"
    run.records[1] = make_matmul(512, conditions=hot, status="error", reason="no")
    assert "-p n=512 -p dtype=bfloat16 -p layout=nn -p cache=hot -p load=burst --debug" in closing_lines(run, "x")[-1]
    run.records[:] = [make_record(params={"n": 1}, conditions=sustained, status="error", reason="no")]
    assert "gpubench run matmul-sweep/matmul -p n=1 -p load=sustained --debug" in closing_lines(run, "x")[-1]


@pytest.mark.parametrize(
    ("suites", "words"),
    [(["a"], "a · "), (["a", "b", "a", "c", "d"], "a, b, c, d · "), (["a", "b", "c", "d", "e"], "5 suites · ")],
)
def test_many_suites_are_counted_and_few_named(suites: list[str], words: str) -> None:
    rows = [make_record(suite=suite, params={"n": n}) for n, suite in enumerate(suites)]
    assert closing_lines(make_run(rows), "x.json")[0].startswith(words)


def test_a_drop_is_within_one_condition_and_says_which() -> None:
    rows = [*make_sweep([1792, 1793]), make_matmul(1792, conditions=Conditions(cache="hot"))]
    assert "largest drop 1792→1793 (cache=cold): 5.0×" in closing_lines(make_run(rows), "x.json")[1]


def test_without_a_ceiling_there_is_no_share() -> None:
    lines = closing_lines(make_run(make_sweep([1792, 1793])), "x.json")
    assert lines[1] == "best 694 TFLOP/s at n=1792 · largest drop 1792→1793: 5.0×"


def test_a_cpu_run_speaks_of_the_cpu() -> None:
    run = make_run(
        make_sweep([256, 257], dtype="float32", peak=1e11), device=CPU, ceilings=make_ceilings("float32", 1e11)
    )
    text = "\n".join(closing_lines(run, "x.json"))
    assert "of this CPU's ceiling" in text
    assert not re.search(r"GPU|\bSM\b|HBM|cuda", text)


def test_several_benchmarks_have_a_line_each() -> None:
    run = make_run(
        [make_matmul(512), make_bandwidth("copy", 4e12), make_bandwidth("read", 4.5e12)], ceilings=make_ceilings()
    )
    lines = closing_lines(run, "x.json")
    assert lines[0].startswith("matmul-sweep, bandwidth · NVIDIA H200 · bf16 · cold, burst · 3 cases in 58 s")
    assert lines[1].startswith("best matmul 279 TFLOP/s at n=512")
    assert lines[2] == "best copy 4000 GB/s at mib=1024 (87 % of this GPU's ceiling)"
    assert lines[3].startswith("best read 4500 GB/s at mib=1024")
    many = make_run([make_bandwidth(f"b{number}") for number in range(9)])
    assert closing_lines(many, "x.json")[6] == "and 4 more benchmarks: gpubench show"
    assert len(closing_lines(many, "x.json")) == 9


def test_a_drop_of_one_of_several_dtypes_names_it() -> None:
    run = make_run([*make_sweep([1792, 1794]), *make_sweep([1792, 1793], dtype="float16")])
    assert "largest drop 1792→1793 (dtype=float16): 5.0×" in closing_lines(run, "x.json")[1]


def test_a_rate_that_hardly_falls_is_no_drop() -> None:
    rows = [make_record(params={"n": n}, flops=flops) for n, flops in ((1, 1050), (2, 1000), (3, 2000))]
    assert "drop" not in closing_lines(make_run(rows), "x.json")[1]
    rows[1] = make_record(params={"n": 2}, flops=900)
    assert "largest drop 1→2: 1.2×" in closing_lines(make_run(rows), "x.json")[1]


def test_a_time_is_no_rate_to_drop() -> None:
    rows = [make_record(params={"n": n}, time_ns=10**6 // n) for n in (1, 2, 3)]
    lines = closing_lines(make_run(rows), "x.json")
    assert lines[1] == "best 333 µs at n=3"
    assert lines[-1] == "next  gpubench show --all"


def test_all_failed_is_said_with_the_first_reason() -> None:
    params = {"n": 64, "dtype": "float16"}
    run = make_run(
        [make_record(params=params, status="error", reason="[/red] it\nbroke"), make_record(status="oom", reason="x")]
    )
    lines = closing_lines(run, "x.json")
    assert lines[0].endswith("2 cases in 58 s · 1 error · 1 oom")
    assert lines[1] == "no case gave a number: matmul-sweep/matmul[dtype=float16,n=64]: error: [/red] it broke"
    assert "best" not in "\n".join(lines)
    assert lines[-1] == "next  gpubench run matmul-sweep/matmul -p n=64 -p dtype=float16 --debug"


def test_everything_skipped_is_said() -> None:
    run = make_run([make_record(status="skipped", reason="time budget")])
    assert closing_lines(run, "x.json")[1:] == [
        "no case gave a number: matmul-sweep/matmul[n=64]: skipped: time budget",
        "saved x.json",
        "next  gpubench list",
    ]


def test_nothing_ran_is_said() -> None:
    lines = closing_lines(make_run([], status="interrupted", ended_at=None), "x.json")
    assert lines[0] == "no suite · NVIDIA H200 · 0 cases · interrupted"
    assert lines[1] == "nothing was measured: no case ran"


def test_only_numbers_that_do_not_count() -> None:
    row = make_record(flops=10)
    row.flags = ["implausible"]
    assert "matmul-sweep/matmul[n=64] is implausible" in closing_lines(make_run([row]), "x.json")[1]


def test_an_implausible_row_is_never_the_best() -> None:
    run = make_run(make_sweep([256, 512, 1024]))
    run.records[2].flags = ["implausible"]
    assert "at n=512" in closing_lines(run, "x.json")[1]


def test_a_repeat_of_one_row_keeps_params_that_follow_out_of_the_command() -> None:
    rows = make_sweep([64, 128])
    rows[1].status, rows[1].reason, rows[1].metrics, rows[1].summary = "incorrect", "off by one", [], None
    last = closing_lines(make_run(rows), "x.json")[-1]
    assert last.endswith("gpubench run matmul-sweep/matmul -p n=128 -p dtype=bfloat16 -p layout=nn --debug")


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        ("2026-07-12T10:15:04.2Z", "in 4.20 s"),
        ("2026-07-12T10:18:20Z", "in 3 min 20 s"),
        ("2026-07-12T10:14:00Z", "1 case"),
        ("soon", "1 case"),
        (None, "1 case"),
    ],
)
def test_how_long_it_took(ended: str | None, words: str) -> None:
    assert closing_lines(make_run(make_sweep([64]), ended_at=ended), "x.json")[0].endswith(words)


def test_only_commands_that_exist_are_suggested() -> None:
    runs = [
        make_run(),
        make_run([]),
        make_run([make_record(status="error", reason="no")]),
        make_run([make_bandwidth()]),
    ]
    for run in runs:
        assert set(re.findall(r"gpubench (\w+)", "\n".join(closing_lines(run, "x.json")))) <= COMMANDS


def test_commands_name_the_file_where_the_run_is_not_the_latest() -> None:
    lines = closing_lines(make_run(make_sweep([1792, 1793])), "out/x.json", "out/x.json")
    assert lines[-1] == (
        "next  gpubench roofline out/x.json · gpubench explain out/x.json -p n=1793 · gpubench show out/x.json --all"
    )
    many = make_run([make_bandwidth(f"b{number}") for number in range(9)])
    many.claims = [{"id": "C1", "verdict": "HOLDS"}]
    lines = closing_lines(many, "x.json", "x.json")
    assert lines[6:8] == ["and 4 more benchmarks: gpubench show x.json", "claims: 1 hold; gpubench claims x.json"]


def test_the_row_to_explain_is_the_only_one_its_words_mean() -> None:
    rows = make_sweep([1792, 1793])
    assert "explain latest -p n=1793" in closing_lines(make_run(rows), "x")[-1]
    other = make_record("fusion", "gelu", params={"n": 1793})
    assert "explain latest matmul-sweep/matmul -p n=1793" in closing_lines(make_run([*rows, other]), "x")[-1]
    hot = make_matmul(1793, conditions=Conditions(cache="hot"))
    assert "explain" not in closing_lines(make_run([*rows, hot]), "x")[-1]


def test_a_row_is_measured_again_where_it_failed() -> None:
    run = make_run([make_record("my-suite", "it", params={"n": 4}, status="error", reason="no")])
    run.settings = {"device": {"value": "cpu", "origin": "--device"}}
    assert closing_lines(run, "x")[-1] == "next  gpubench run my-suite/it -p n=4 --device cpu --debug"
    asked = ["quick", "my files/my_suite.py"]
    again = "next  gpubench run 'my files/my_suite.py' -p n=4 --device cpu --debug"
    assert closing_lines(run, "x", asked=asked)[-1] == again
    run.settings = {"device": {"value": "cpu", "origin": "GPUBENCH_DEVICE"}}
    assert closing_lines(run, "x")[-1] == "next  gpubench run my-suite/it -p n=4 --debug"
