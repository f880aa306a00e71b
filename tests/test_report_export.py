"""Exports: every form parses, holds every row, and keeps text as text."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from builders import make_bandwidth, make_ceilings, make_matmul, make_record, make_run, make_sweep

from gpubench.errors import UsageError
from gpubench.report.charts import picture
from gpubench.report.export import ROOFLINE, RUN, check, render, report_markdown, save, save_roofline, suffix_form
from gpubench.store import embedded, runfile


def refuse(token: str) -> float:
    raise AssertionError(f"{token} is not strict JSON")


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.json", "json"),
        ("a.json.gz", "json"),
        ("b/c.JSONL", "jsonl"),
        ("a.b.csv", "csv"),
        (Path("x/y.md"), "md"),
        ("a.svg", "svg"),
        ("a.PNG", "png"),
    ],
)
def test_the_suffix_says_the_form(name: str | Path, form: str) -> None:
    assert suffix_form(name) == form


@pytest.mark.parametrize("name", ["a.txt", "a", "a.csv.gz", "a.gz", ".json", "a.htm", "json", "dir.csv/a"])
def test_other_suffixes_are_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        suffix_form(name)
    assert name in caught.value.message
    assert caught.value.hint == "a name ending in .json, .json.gz, .jsonl, .csv, .md, .svg, .png, .html"
    with pytest.raises(UsageError) as caught:
        check(name)
    assert name in caught.value.message


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.json.gz", "a.pdf"])
def test_a_roofline_has_fewer_forms(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        check(name, ROOFLINE)
    assert caught.value.hint == "a name ending in .json, .md, .svg, .png, .html"


def test_a_picture_needs_its_libraries_and_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "find_spec", lambda name: None)
    check("a.csv")
    check("a.md", ROOFLINE)
    for name, suffixes in (("a.png", RUN), ("a.svg", ROOFLINE)):
        with pytest.raises(UsageError, match="pip install vl-convert-python"):
            check(name, suffixes)


def test_a_run_is_saved_in_the_form_of_the_suffix_with_every_row(tmp_path: Path) -> None:
    run = make_run()
    save(run, tmp_path / "a.md")
    assert (tmp_path / "a.md").read_text() == render(run, "md", all=True)
    save(run, tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text().count("<title>matmul-sweep/matmul</title>") == 1
    save(run, tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert page.count("<figcaption>") == 1
    assert embedded.documents(page.encode(), "a.html") == [runfile.encode(run)], "the run is in it"


def test_a_roofline_is_saved_in_the_form_of_the_suffix_with_every_row(tmp_path: Path) -> None:
    run = make_run()
    save_roofline(run, tmp_path / "a.json")
    data = json.loads((tmp_path / "a.json").read_text(), parse_constant=refuse)
    assert len(data["points"]) == len(run.records)
    save_roofline(run, tmp_path / "a.md")
    assert (tmp_path / "a.md").read_text().count("\n| n=") == len(run.records)
    save_roofline(run, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_json_is_the_run_file() -> None:
    run = make_run(make_sweep([256, 512]), ceilings=make_ceilings())
    assert render(run, "json").encode() == runfile.encode(run)
    assert runfile.decode(render(run, "json").encode(), "here") == run


def test_json_lines_are_one_record_each() -> None:
    run = make_run(make_sweep([256, 512]))
    lines = render(run, "jsonl").splitlines()
    rows = [json.loads(line, parse_constant=refuse) for line in lines]
    assert [row["params"]["n"] for row in rows] == [256, 512]
    assert {row["run_id"] for row in rows} == {run.run_id}


def test_csv_has_a_column_for_everything_and_units_in_their_names() -> None:
    failed = make_record(params={"n": 9}, status="error", reason='said "no", twice\nand left')
    run = make_run([make_matmul(512), failed, make_bandwidth("copy", 4e12)])
    run.records[0].flags = ["noisy", "throttled"]
    text = render(run, "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 3
    first, second, third = rows
    assert first["id"] == run.records[0].id
    assert (first["p.n"], first["p.dtype"], first["p.mib"]) == ("512", "bfloat16", "")
    assert (first["cache"], first["load"], first["data"], first["flags"]) == (
        "cold",
        "burst",
        "normal",
        "noisy throttled",
    )
    assert first["label.alignment"] == "256 B"
    summary = run.records[0].summary
    assert summary is not None
    times = [first[name] for name in ("time_ns", "time_low_ns", "time_high_ns", "samples")]
    assert times == [str(value) for value in (summary.median_ns, summary.low_ns, summary.high_ns, summary.n)]
    assert float(first["flops (FLOP/s)"]) == run.records[0].metrics[1].value
    assert second["reason"] == 'said "no", twice\nand left'
    assert (second["time_ns"], second["flops (FLOP/s)"], second["status"]) == ("", "", "error")
    assert float(third["bandwidth (B/s)"]) == pytest.approx(4e12, rel=1e-4)
    assert not text.startswith("\ufeff")
    assert "\r" not in text


def test_csv_of_no_rows_is_its_header() -> None:
    assert render(make_run([]), "csv").count("\n") == 1


def test_csv_holds_no_nan() -> None:
    run = make_run(make_sweep([256]))
    run.records[0].metrics[1].value = float("nan")
    assert "nan" not in render(run, "csv").lower()


def test_markdown_is_a_github_table_with_pipes_escaped() -> None:
    rows = [make_record("s", "b|c", params={"n": n, "mode": f"x|{n}`<b>"}, flops=10) for n in (1, 2)]
    failed = make_record("s", "b|c", params={"n": 3, "mode": "y"}, status="error", reason="a | b\n# c")
    text = render(make_run([*rows, failed]), "md")
    lines = text.split("\n")
    assert lines[0] == r"## s/b\|c · NVIDIA H200 · cold, burst"
    assert lines[2] == "| case | time | rate | status |"
    assert lines[3] == "|---|--:|--:|---|"
    assert lines[4].startswith(r"| n=1 mode=x\|1\`\<b\> | 100 µs ± 0.3 % | ")
    assert lines[6] == "| n=3 mode=y |  |  | error |"
    assert r"- error: n=3 mode=y: a \| b \# c" in lines
    unescaped = [line.replace(r"\|", "").count("|") for line in lines[2:7]]
    assert set(unescaped) == {5}
    assert text.endswith("\n")


def test_markdown_shows_24_rows_or_all() -> None:
    run = make_run()
    assert render(run, "md").count("\n| n=") == 24
    assert f"{len(run.records) - 24} more rows: --all" in render(run, "md")
    assert render(run, "md", all=True).count("\n| n=") == len(run.records)
    assert render(make_run([]), "md") == "no rows\n"


def test_a_report_in_markdown_has_the_plot_and_the_claims_as_they_are_in_a_terminal() -> None:
    claims = [{"id": f"C0{index}", "verdict": "HOLDS", "effects": [], "control": []} for index in range(5)]
    text = report_markdown(make_run(make_sweep(), claims=claims))
    plot, tiles = text.split("```text\n")[1:]
    assert plot.startswith("matmul-sweep/matmul · NVIDIA H200")
    assert tiles.partition("```")[0].splitlines()[1] == "● C00 ● C01 ● C02 ● C03 ● C04"
    assert "\n| n=" in tiles, "all rows are below"
    rows = [make_record("a```b", "c", params={"way": way}) for way in "abcdefgh"]
    fences = re.findall("^`{3,}", report_markdown(make_run(rows)), re.MULTILINE)
    assert set(fences) == {"````"}, "a name with backticks ends no fence"


def test_the_table_is_plain_text_of_the_width_asked() -> None:
    text = render(make_run(), "table", width=80)
    assert "\x1b" not in text
    assert max(map(len, text.split("\n"))) <= 80
    assert render(make_run(), "table", all=True).count("\nn=") == len(make_run().records)


@pytest.mark.parametrize("form", ["table", "json", "jsonl", "csv", "md"])
def test_every_form_of_a_run_of_no_rows_ends_in_a_newline_or_is_empty(form: str) -> None:
    text = render(make_run([]), form)  # type: ignore[arg-type]
    assert text == "" if form == "jsonl" else text.endswith("\n")
