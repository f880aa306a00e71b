"""A comparison as a table, as documents, and as what a build on GitHub is told."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from builders import GPU, make_bandwidth, make_matmul, make_record, make_run
from command import strict
from comparisons import history, rate, run
from rich.cells import cell_len
from rich.console import Console

from gpubench.compare.runs import compare
from gpubench.errors import UsageError
from gpubench.gate import DEFAULT, failing, parse
from gpubench.report import comparison, comparison_forms, comparison_why
from gpubench.result import Conditions, KernelSeen, Record
from gpubench.verdict import Change, Judged, Row, Verdict

GOLDEN = Path(__file__).parent / "golden"
PEAK = 800e12
NASTY = "[/red] gemm[fp16] %0A::error::\n\x1b[31m\x00\ud800\ufffe]]> <b>&|"


def judged(base: list[Record], new: list[Record], **fields: Any) -> Judged:
    """A comparison of two runs of these rows, as the command makes it."""
    one = make_run(base, run_id="20260712-101500-aaaa", software={"driver": "580.1", "torch": "2.11"})
    two = make_run(new, run_id="20260713-101500-bbbb", software={"driver": "590.2", "torch": "2.11"})
    found = compare(one, two, **fields)
    found.base_name, found.new_name = "@main", "results/20260713-101500-h200-sweep-bbbb.json"
    found.details |= {"base": comparison.side(one), "new": comparison.side(two)}
    return found


def mixed() -> Judged:
    """One row of most verdicts there are, among many that are the same."""
    sizes = range(256, 1537, 64)
    base = [make_matmul(n) for n in sizes]
    base += [make_matmul(n) for n in (2048, 2049, 2050, 2051, 2052)]
    base[0].kernels = [KernelSeen("nvjet_sm90_tst_256x128", grid=[4, 28, 1])]
    base[-1].status, base[-1].reason, base[-1].metrics = "error", "illegal address", []
    new = [make_matmul(n, peak=PEAK / (1.08 if n == 256 else 1.01)) for n in sizes]
    new += [make_matmul(2048, peak=1.2 * PEAK), make_matmul(2049, status="oom", reason="out of memory")]
    new += [make_matmul(2050, definition="f" * 16), make_matmul(2052), make_matmul(2053)]
    new[0].kernels = [KernelSeen("cutlass_80_tensorop", grid=[4, 28, 1])]
    return judged(base, new)


def made(*verdicts: Verdict, loss: float = 0.0, reason: str | None = None) -> Judged:
    """A comparison of rows with these verdicts."""
    rows = []
    for number, verdict in enumerate(verdicts):
        record = make_matmul(64 + number)
        change = Change("flops", "FLOP/s", "higher", 1e12, 9e11, 0.9, None, None, loss, True)
        rows.append(Row(record.id, {"cache": "cold"}, verdict, reason, record, record, [change]))
    return Judged("base", "new", 0.03, rows)


def printed(found: Judged, all_rows: bool = False, only_changed: bool = False, width: int = 80) -> str:
    """As a careless caller prints it: with markup and emoji on."""
    text = io.StringIO()
    Console(file=text, width=width, color_system=None).print(comparison.table(found, all_rows, only_changed))
    return text.getvalue()


def failures(found: Judged) -> list[Row]:
    return failing(found, parse(DEFAULT))


# The table


def settled() -> Judged:
    """The mixed one with reasons and hints of our own: their words are those of `judge` and `causes`."""
    found = mixed()
    for row in found.rows:
        row.reason = row.reason and f"why it is {row.verdict}, in words that go on for a while"
        row.hints = ["another kernel ran"] if row.hints else []
    return found


def test_golden_at_80_columns() -> None:
    assert printed(settled()) == (GOLDEN / "comparison-80.txt").read_text()


def test_worst_first_and_24_rows_at_most() -> None:
    sizes = range(256, 2000, 16)
    found = judged([make_matmul(n) for n in sizes], [make_matmul(n, peak=PEAK / (1 + n / 5000)) for n in sizes])
    rows = re.findall(r"^n=(\d+) ", printed(found), re.MULTILINE)
    assert rows == [str(n) for n in sorted(sizes, reverse=True)[:24]]
    assert f"{len(sizes) - 24} more rows: --all" in printed(found)
    assert len(re.findall(r"^n=\d+ ", printed(found, all_rows=True), re.MULTILINE)) == len(sizes)
    assert "--all" not in printed(found, all_rows=True)


def test_many_rows_of_one_verdict_do_not_hide_the_others() -> None:
    found = made(*["missing"] * 300, "regression", "suspect", "improvement", *["same"] * 300)
    verdicts = [row.verdict for row in comparison.chosen(found)]
    assert len(verdicts) == 24
    assert {"missing", "regression", "suspect", "improvement", "same"} == set(verdicts)
    assert verdicts == [row.verdict for row in comparison.ordered(comparison.chosen(found))]


def test_every_verdict_has_its_place_and_is_counted() -> None:
    found = made(*comparison.ORDER, *comparison.ORDER)
    from typing import get_args

    assert set(comparison.ORDER) == set(get_args(Verdict))
    words = comparison.summary(found)
    assert words.startswith("28 matched · 2 failed · 2 missing · ")
    assert sum(int(part.split()[0]) for part in words.split(" · ")[1:]) == len(found.rows)


def test_only_changed() -> None:
    found = mixed()
    text = printed(found, only_changed=True)
    assert re.findall(r"^n=(\d+) ", text, re.MULTILINE) == ["2049", "2051", "256", "2050", "2048", "2052", "2053"]
    assert "more row" not in text
    assert text.endswith("fixed · 1 new · 20 same\n")


def test_the_heading_names_both_runs_devices_and_what_differs() -> None:
    lines = printed(mixed(), width=120).split("\n")
    assert lines[:3] == [
        "base     @main · NVIDIA H200 · 2026-07-12 10:15",
        "new      results/20260713-101500-h200-sweep-bbbb.json · NVIDIA H200 · 2026-07-12 10:15",
        "differs  driver: 580.1 → 590.2",
    ]
    assert "flops: higher is better · margin 3 %" in lines


def test_rows_of_several_benchmarks_and_conditions_have_names_of_their_own() -> None:
    rows = [
        make_matmul(256),
        make_matmul(256, conditions=Conditions(cache="hot")),
        make_bandwidth(),
        make_bandwidth("add"),
    ]
    found = judged(rows, rows)
    words = comparison.naming(found).words
    assert len(set(words.values())) == len(rows)
    assert "matmul-sweep/matmul n=256 m=256 k=256 cache=hot" in words.values()
    assert "bandwidth/add mib=1024" in words.values()


def test_nothing_at_all() -> None:
    assert "0 matched" in printed(judged([], []))
    assert "0 matched · 1 new" in printed(judged([], [make_matmul(256)]))


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "0.0 %"), (-1e-9, "0.0 %"), (0.0004, "0.0 %"), (-0.0421, "-4.2 %"), (0.125, "+12.5 %"), (1.5, "+150 %")],
)
def test_a_change_in_words(share: float, words: str) -> None:
    assert comparison.signed_percent(share) == words


def test_the_interval_of_a_change() -> None:
    change = Change("time", "ns", "lower", 1.0, 1.05, 1.05, 1.047, 1.053, 0.05, True)
    assert comparison.change_words(change) == "+5.0 % ± 0.3"
    assert comparison.change_words(Change("time", "ns", "lower", 1.0, 1.05, 1.05, None, None, 0.05)) == "+5.0 %"


def test_reasons_and_hints_are_gathered_and_counted() -> None:
    found = made(*["suspect"] * 40, *["same"] * 3)
    for number, row in enumerate(found.rows):
        row.reason, row.hints = f"reason {number % 8}", ["the same hint"]
    text = printed(found)
    assert "suspect: n=64 and 4 more rows: reason 0" in text
    assert "2 other reasons not listed here" in text
    assert "hint: n=64 and 39 more rows: the same hint" in text


def test_user_text_is_printed_as_it_is() -> None:
    row = make_record("s[/bold]", "gemm[fp16]", params={"n": 1, "mode": "[/red]"})
    found = judged([row], [])
    found.rows[0].reason = NASTY
    found.base_name, found.details["base"]["device"] = "[/tmp/x]", "X [/red]"
    text = printed(found, width=200)
    for words in ("[/tmp/x]", "X [/red]", "[/red] gemm[fp16]"):
        assert words in text
    assert "\x1b" not in text
    assert "\x00" not in text


@pytest.mark.parametrize("width", [40, 60, 80])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    assert max(cell_len(line) for line in printed(mixed(), all_rows=True, width=width).split("\n")) <= max(width, 60)


def test_five_thousand_rows_take_less_than_a_second() -> None:
    found = made(*["same"] * 4990, *["suspect"] * 10)
    begun = time.process_time()
    printed(found)
    assert time.process_time() - begun < 1.0


# One row


def test_why_tells_all_of_a_row() -> None:
    text = comparison_why.why(found := mixed(), comparison_why.find(found, "n=256"))
    for words in (
        "matmul-sweep/matmul[dtype=bfloat16,k=256,layout=nn,m=256,n=256] (cold, burst)\n",
        "verdict      suspect: ",
        "(margin 3 %)",
        "higher is better, decides the verdict",
        "median       base ",
        "SM clock     both 1980 MHz",
        "kernels      base nvjet_sm90_tst_256x128, grid 4×28×1",
        "new  cutlass_80_tensorop, grid 4×28×1",
        "differs      driver: 580.1 → 590.2",
        "hint         another kernel",
    ):
        assert words in text
    missing = comparison_why.why(found, comparison_why.find(found, "n=2051"))
    assert "verdict      missing" in missing
    assert "new  " not in missing


def test_the_run_of_the_base_that_a_row_is_held_against_is_named() -> None:
    found = compare(history([100_000, 100_100, 99_900, 100_050, 109_000]), run(rate(105_000), run_id="new"))
    assert found.notes == [
        "5 runs of the base: rows are held against the middle one; a difference beyond what they predict is a verdict"
    ]
    assert "base         the middle one of 5 runs, run-3\n" in comparison_why.why(found, found.rows[0])
    (row,) = comparison_forms.to_json(found, [])["rows"]
    assert (row["base_run"], row["middle_of"], row["base"]["median_ns"]) == ("run-3", 5, 100_050)
    assert row["changes"][0]["base"] == 100_050
    for few in (compare(run(rate()), run(rate(), run_id="new")), compare(run(), run(rate(), run_id="new"))):
        assert "middle" not in comparison_why.why(few, few.rows[0])
        (row,) = comparison_forms.to_json(few, [])["rows"]
        assert (row["base_run"], row["middle_of"]) == ("base" if row["base"] else None, None)


@pytest.mark.parametrize(("n", "told"), [(1, False), (9, False), (10, True)])
def test_why_gives_no_percentiles_of_a_few_samples(n: int, told: bool) -> None:
    record = make_matmul(256)
    assert record.summary is not None
    record.summary.n = n
    text = comparison_why.why(found := judged([record], [record]), found.rows[0])
    assert bool(re.search(r"p10 \d.*p90 \d", text)) is told
    assert ("too few for p10 and p90" in text) is not told


def test_why_of_a_failed_row_has_its_reason_and_nothing_that_moves_a_cursor() -> None:
    found = judged([make_matmul(256)], [make_matmul(256, status="error", reason=NASTY)])
    text = comparison_why.why(found, found.rows[0])
    assert "[/red] gemm[fp16]" in text
    assert all(line.isprintable() for line in text.split("\n"))


def test_the_row_that_is_meant() -> None:
    hot = make_matmul(256, conditions=Conditions(cache="hot"))
    found = judged(rows := [make_matmul(256), hot, make_matmul(512), make_bandwidth()], rows)
    for word, place in (
        ("n=512", 2),
        ("matmul n=512", 2),
        (rows[2].id, 2),
        ("bandwidth/copy", 3),
        ("mib=1024", 3),
        ("n=256 hot", 1),
        ("n=256 cache=hot", 1),
        (rows[0].id, 0),
        (rows[1].id, 1),
        (f"{rows[1].id} (hot, burst)", 1),
        *((words, found.rows.index(row)) for row in found.rows if (words := comparison.naming(found).words[id(row)])),
    ):
        assert comparison_why.find(found, word) is found.rows[place], word


def test_a_row_under_other_conditions_is_found_by_those_of_either_side() -> None:
    older = make_matmul(256, conditions=Conditions(cache="hot"))
    older.id = make_matmul(256).id
    found = judged([older, make_matmul(512)], [make_matmul(256, conditions=Conditions(load="sustained"))])
    row = found.rows[0]
    assert row.new is not None
    for word in (row.id, row.new.id, older.id, "n=256", "n=256 hot", "n=256 sustained", "load=sustained"):
        assert comparison_why.find(found, word) is row, word
    text = comparison_why.why(found, row)
    assert text.startswith("matmul-sweep/matmul[cache=hot,dtype=bfloat16,k=256,layout=nn,m=256,n=256] (hot and cold, ")
    assert "not comparable: cache: hot against cold; load: burst against sustained" in text


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("n=256", r"'n=256' is 2 rows: matmul-sweep/matmul\[.*\(cold, burst\), .*\(hot, burst\) \(more words"),
        ("matmul", "is 3 rows"),
        ("n=257", "no such row"),
        ("", "no such row"),
        ("()", "no such row"),
        ("\x1b[31m", "no such row"),
    ],
)
def test_no_row_or_several(word: str, why: str) -> None:
    hot = make_matmul(256, conditions=Conditions(cache="hot"))
    found = judged(rows := [make_matmul(256), hot, make_matmul(512), make_bandwidth()], rows)
    with pytest.raises(UsageError, match=why) as caught:
        comparison_why.find(found, word)
    assert str(caught.value).isprintable()


# Documents

KEYS = {"schema", "base", "new", "margin", "counts", "notes", "details", "rows"}
ROW_KEYS = {
    *("id", "conditions", "verdict", "fails", "reason", "mismatches", "subject", "hints", "changes", "base", "new"),
    *("base_run", "middle_of"),
}


def test_json_is_strict_and_its_keys_are_the_documented_ones() -> None:
    found = mixed()
    document = strict(comparison_forms.render(found, "json", failures(found)))
    assert set(document) == KEYS
    assert document["schema"] == "gpubench.comparison/1"
    assert all(set(row) == ROW_KEYS for row in document["rows"])
    assert sum(document["counts"].values()) == len(document["rows"]) == len(found.rows)
    assert [row["verdict"] for row in document["rows"][:4]] == ["failed", "missing", "suspect", "not comparable"]
    assert [row["fails"] for row in document["rows"][:5]] == [True, True, True, True, False]
    change = next(change for change in document["rows"][2]["changes"] if change["primary"])
    assert change["unit"] == "FLOP/s"
    assert change["ratio"] == pytest.approx(1 / 1.08, rel=2e-3)
    assert change["low"] < change["ratio"] < change["high"]
    assert document["rows"][1]["new"] is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_figure_that_is_none_is_null_in_json_and_no_crash_elsewhere(value: float) -> None:
    found = made("invalid")
    found.rows[0].changes = [Change("flops", "FLOP/s", "higher", value, value, value, value, None, value, True)]
    document = strict(comparison_forms.render(found, "json", []))
    assert document["rows"][0]["changes"][0]["ratio"] is None
    for form in ("md", "csv", "xml"):
        text = comparison_forms.render(found, form, [])
        assert not re.search(r"\bnan\b|\binf\b", text, re.IGNORECASE)
    assert "not a number" in printed(found)
    comparison_why.why(found, found.rows[0])


def test_json_has_the_time_of_either_side_and_its_interval() -> None:
    found = made("suspect")
    row = found.rows[0]
    row.base = make_record(time_ns=100_000, half=0.01)
    row.new = make_record(time_ns=110_000, half=0.02)
    (told,) = comparison_forms.to_json(found, [row])["rows"]
    names = ("median_ns", "low_ns", "high_ns", "samples")
    assert [told["base"][name] for name in names] == [100_000, 99_000, 101_000, 11]
    assert [told["new"][name] for name in names] == [110_000, 107_800, 112_200, 11]
    assert told["fails"] is True
    assert comparison_forms.to_json(found, [])["rows"][0]["fails"] is False


def test_csv_has_a_line_per_row_and_metric() -> None:
    found = mixed()
    lines = list(csv.DictReader(io.StringIO(comparison_forms.render(found, "csv", []))))
    assert {line["id"] for line in lines} == {row.id for row in found.rows}
    assert len(lines) == sum(max(1, len(row.changes)) for row in found.rows)
    assert float(next(line for line in lines if line["metric"] == "flops")["ratio"]) == pytest.approx(
        1 / 1.08, rel=2e-3
    )


def test_markdown_escapes_and_counts_what_it_leaves_out() -> None:
    found = mixed()
    found.rows[0].hints = [NASTY]
    text = comparison_forms.render(found, "md", failures(found), only_changed=True)
    assert text.startswith(r"### 25 matched · 1 failed · ")
    assert "| n=256 |" in text
    assert r"\[/red\] gemm\[fp16\]" in text
    assert r"\]\]\> \<b\>" in text
    assert "20 more rows not shown" in text
    assert "not shown" not in comparison_forms.render(found, "md", [], all_rows=True)


def test_a_step_summary_fits_whatever_there_is_to_say() -> None:
    found = made(*["suspect"] * 20_000, reason="é" * 100)
    text = comparison_forms.step_summary(found)
    assert 800_000 < len(text.encode()) < 900_000
    shown = text.count("\n| n=")
    assert f"{20_000 - shown:,} more rows not shown" in text


def test_a_line_takes_its_bytes_and_a_line_break() -> None:
    assert [comparison_forms._fitting(["é", "é"], room) for room in (2, 3, 5, 6)] == [0, 1, 1, 2]


def test_a_step_summary_has_every_row_that_changed_and_no_other() -> None:
    text = comparison_forms.step_summary(made(*["suspect"] * 40, *["same"] * 40))
    assert text.count("\n| n=") == 40
    assert "40 more rows not shown" in text


def test_a_long_reason_costs_a_step_summary_its_line_and_no_row_its_count() -> None:
    found = made("failed", "suspect", reason="x" * 1_000_000)
    text = comparison_forms.step_summary(found)
    assert len(text) < 2000
    assert text.startswith("### 2 matched · 1 failed · 1 suspect")
    assert text.count("\n| n=") == 2


def test_a_step_summary_leaves_room_for_what_is_there(tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    file.write_text("é" * 440_000)
    found = made(*["suspect"] * 20_000)
    comparison_forms.append_summary(found, str(file))
    assert 890_000 < file.stat().st_size < 900_100
    file.write_text("é" * 450_000)
    comparison_forms.append_summary(found, str(file))
    added = file.read_text()[450_000:]
    assert added.startswith("### 20,000 matched · 20,000 suspect")
    assert "\n20,000 more rows not shown" in added


def test_workflow_commands_are_ten_of_each_kind_and_a_count() -> None:
    found = made(*["missing"] * 30, *["suspect"] * 12)
    lines = comparison_forms.workflow_commands(found, [row for row in found.rows if row.verdict == "suspect"])
    kinds = [line.split(" ", 1)[0] for line in lines]
    assert kinds == ["::error"] * 10 + ["::warning"] * 10 + ["::notice"]
    assert lines[-1].startswith("::notice title=gpubench::22 more rows: 42 matched")


def test_a_long_message_is_cut_between_characters() -> None:
    found = made("failed", reason="é" * 10_000)
    (line,) = comparison_forms.workflow_commands(found, found.rows)
    assert line.endswith("é…")
    assert 3900 < len(line.split("::", 2)[2].replace("%25", "%").encode()) <= 4000


def test_workflow_commands_are_ten_and_a_count() -> None:
    found = made(*["suspect"] * 255, "missing")
    lines = comparison_forms.workflow_commands(found, failures(found))
    assert len(lines) == 11
    assert lines[0].startswith("::error title=gpubench missing::n=319 -10.0 %25")
    assert lines[1].startswith("::error title=gpubench suspect::")
    assert lines[-1].startswith("::notice title=gpubench::246 more rows: 256 matched")


def test_workflow_commands_escape_and_stay_lines() -> None:
    found = made("suspect", "not comparable", reason=NASTY)
    for row in found.rows:
        assert row.new is not None
        row.new.params |= {"x\r\n::error::": len(row.verdict)}
    lines = comparison_forms.workflow_commands(found, found.rows[:1])
    assert [line.split(" ", 1)[0] for line in lines] == ["::error", "::warning"]
    for line in lines:
        assert line.isprintable()
        assert "%250A" in line
        assert line.count("%") == line.count("%25")
    assert comparison_forms.workflow_commands(made("same", "better", "new"), []) == []


def test_what_fails_the_build_comes_before_what_only_might() -> None:
    found = made(*["missing"] * 11, "suspect")
    lines = comparison_forms.workflow_commands(found, found.rows[-1:])
    assert [line.split("::")[1] for line in lines[:2]] == [
        *("error title=gpubench suspect", "warning title=gpubench missing")
    ]


def test_junit_has_a_testcase_per_row_and_a_failure_per_failing_one() -> None:
    found = mixed()
    root = ElementTree.fromstring(comparison_forms.render(found, "xml", failures(found)))
    suite = root.find("testsuite")
    assert suite is not None
    cases = suite.findall("testcase")
    assert len(cases) == len(found.rows) == int(suite.attrib["tests"]) == int(root.attrib["tests"])
    assert len({(case.attrib["classname"], case.attrib["name"]) for case in cases}) == len(cases)
    failed = [case.find("failure") for case in cases if case.find("failure") is not None]
    assert sorted(each.attrib["type"] for each in failed if each is not None) == [
        *("failed", "missing", "not comparable", "suspect")
    ]
    assert suite.attrib["failures"] == "4"
    slow = ElementTree.fromstring(comparison_forms.render(made("suspect", "missing"), "xml", []))
    assert sorted(case.attrib["time"] for case in slow.iter("testcase")) == ["0.000000079", "0.000000402"], "seconds"


def test_junit_says_what_was_compared_with_what() -> None:
    found = mixed()
    found.details |= {"new": {"run_id": "b", "device": "X [/red]", "started_at": "2026-07-12T10:15:00Z"}}
    found.details |= {"subject": ["driver: 580.1 → 590.2"]}
    suite = ElementTree.fromstring(comparison_forms.render(found, "xml", [])).find("testsuite")
    assert suite is not None
    assert suite.attrib["timestamp"] == "2026-07-12T10:15:00Z"
    told = {each.attrib["name"]: each.attrib["value"] for each in suite.iter("property")}
    wanted = {"margin": "3 %", "new.run_id": "b", "new.device": "X [/red]", "differs": "driver: 580.1 → 590.2"}
    assert wanted.items() <= told.items()
    assert suite[0].tag == "properties"


def test_junit_holds_no_character_that_xml_cannot() -> None:
    found = made("failed", "not comparable", "still failing", reason=NASTY)
    found.base_name, found.rows[1].subject, found.rows[2].hints = NASTY, [NASTY], [NASTY]
    text = comparison_forms.render(found, "xml", found.rows)
    allowed = r"[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*"
    assert re.fullmatch(allowed, text)
    assert ElementTree.fromstring(text.encode()).find("testsuite/testcase/failure") is not None


def test_what_cannot_be_judged_is_skipped_unless_it_fails() -> None:
    found = made("not comparable", "still failing", "same")
    root = ElementTree.fromstring(comparison_forms.render(found, "xml", []))
    for told in (root, root[0]):
        counts = [told.attrib[name] for name in ("tests", "failures", "errors", "skipped")]
        assert counts == ["3", "0", "0", "2"]
    assert len(root.findall(".//skipped")) == 2
    root = ElementTree.fromstring(comparison_forms.render(found, "xml", found.rows[:1]))
    assert [root.attrib[name] for name in ("failures", "errors", "skipped")] == ["1", "0", "1"]
    assert len(root.findall(".//skipped")) == 1


def test_export_by_suffix(tmp_path: Path) -> None:
    found = mixed()
    for suffix in ("json", "md", "csv", "xml"):
        comparison_forms.save(found, str(tmp_path / f"c.{suffix.upper()}"), [])
        text = (tmp_path / f"c.{suffix.upper()}").read_text()
        assert text == comparison_forms.render(found, comparison_forms.SUFFIXES[f".{suffix}"], [], all_rows=True)
    for name in ("c", "c.txt", "c.svg", ".json.gz"):
        with pytest.raises(UsageError, match=r"no export of that form \(a name ending in \.json, \.md, \.csv, \.xml"):
            comparison_forms.form_of(name)


def test_an_export_takes_the_place_of_a_file_whole(tmp_path: Path) -> None:
    """A reader that has the old one open reads it to its end."""
    file, kept = tmp_path / "c.json", tmp_path / "kept"
    file.write_text("before\n")
    kept.hardlink_to(file)
    comparison_forms.save(mixed(), str(file), [])
    assert kept.read_text() == "before\n"
    assert file.read_text().startswith("{")


def test_a_summary_is_appended(tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    file.write_text("before\n")
    comparison_forms.append_summary(mixed(), str(file))
    assert file.read_text().startswith("before\n### 25 matched")
    with pytest.raises(UsageError, match="cannot write"):
        comparison_forms.append_summary(mixed(), str(tmp_path / "none" / "summary.md"))
    with pytest.raises(UsageError, match="cannot write"):
        comparison_forms.append_summary(mixed(), "a\0b")


def test_nothing_tells_of_commands_that_are_not_there() -> None:
    found = mixed()
    text = printed(found) + json.dumps(comparison_forms.to_json(found, [])) + comparison_why.why(found, found.rows[0])
    assert "gpubench ab" not in text
    assert "gpubench check" not in text
    assert GPU["uuid"] not in text
