"""The HTML report as text: whole, closed to the network and to what a run says, and read back as the run it is of."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from builders import make_bandwidth, make_ceilings, make_matmul, make_record, make_run

from gpubench.errors import UsageError
from gpubench.report import charts
from gpubench.report.html import comparison, figures, markup, overview, page, questions
from gpubench.report.html import run as report
from gpubench.report.words import unplaced
from gpubench.result import Run
from gpubench.store.folder import read_run, read_runs

H200 = Path(__file__).resolve().parent.parent / "results/reference/h200"
OURS = frozenset(
    re.findall(
        r"\w+",
        """
        html head meta title style body a header div span p h1 h2 h3 dl dt dd small br code button nav ul li main
        section noscript figure figcaption table caption thead tbody tr th td details summary footer script
        """,
    )
)
"""Every element a report may have."""
LARGEST = 1_800_000
"""Bytes of the report of the whole lecture, at most."""
MARKUP = "</script><script>pwned()</script><img src=x onerror=pwned()>\"'&\u202e\x07"


class Elements(HTMLParser):
    """The elements of a page with their attributes, and its text outside of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if not self.found or self.found[-1][0] not in ("script", "style"):
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


CLAIM: dict[str, Any] = {
    "id": "C58", "verdict": "HOLDS", "statement": "A block more than fits takes another turn.", "corrected": None,
    "effects": [{"name": "time", "value": 2.0, "low": 1.9, "high": 2.1, "unit": "×", "at_least": 1.8, "at_most": 2.2,
                 "verdict": "HOLDS"}],
    "control": [], "prediction": {}, "proof": "B", "rows": ["a/b[n=1]"], "rule": "1", "reason": None,
}  # fmt: skip


def small(**fields: Any) -> Run:
    """A run of two suites with a claim, a failed row and a skipped one."""
    rows = [make_matmul(n) for n in (255, 256, 257, 1024)]
    rows += [make_bandwidth(), make_record("bandwidth", "write", status="skipped", reason="no room")]
    rows += [make_record("bandwidth", "read", status="error", reason="it broke", params={"n": 7})]
    return make_run(rows, claims=[CLAIM], **fields)


ASKED = {
    "matmul-sweep": questions.Question("Matmul", "Which sizes are fast?"),
    "bandwidth": questions.Question("Bandwidth", "How fast do bytes come?", ("And go back.",)),
}


@pytest.fixture(scope="module")
def html() -> str:
    return report.report(small(), {}, ASKED).decode()


def test_it_reads_back_as_the_run(tmp_path: Path, html: str) -> None:
    path = tmp_path / "report.html"
    path.write_text(html)
    assert read_run(path) == small()


def test_the_same_run_makes_the_same_page(html: str) -> None:
    assert report.report(small(), {}, ASKED).decode() == html


def test_every_section_is_there_and_listed(html: str) -> None:
    found = Elements(html)
    anchors = [each["id"] for each in found.all("section")]
    assert anchors == [
        "machine", "roofline", "curve", "suites", "suite-matmul-sweep", "suite-bandwidth", "claims", "method",
    ]  # fmt: skip
    links = {each["href"] for each in found.all("a")}
    assert {f"#{anchor}" for anchor in anchors} <= links
    assert all(each["href"].startswith("#") for each in found.all("a"))
    for words in ("NVIDIA H200", "Which sizes are fast?", "And go back.", "it broke", "no room", "✓ HOLDS"):
        assert words in found.text, words
    assert "1 of 7 rows failed" in found.text


def test_the_policy_admits_what_is_in_it_by_hash_and_nothing_else(html: str) -> None:
    found = Elements(html)
    (policy,) = [each["content"] for each in found.all("meta") if each.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"
    assert "unsafe" not in policy

    def hashed(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    (engine,) = re.findall(r'<script type="application/gzip" id="packed-vega">(.*?)</script>', html)
    assert rules["style-src"] == hashed(style)
    assert rules["script-src"].split() == [hashed(script), hashed(gzip.decompress(base64.b64decode(engine)).decode())]


def test_nothing_in_it_is_fetched_or_handled_inline(html: str) -> None:
    found = Elements(html)
    for name, attributes in found.found:
        assert not [key for key in attributes if key.startswith("on") or key in ("src", "style", "srcset")], name
    assert "url(" not in html
    assert "@import" not in html


def test_what_a_run_says_stays_text() -> None:
    run = small(device={"kind": "cuda", "name": MARKUP}, argv=[MARKUP], host={"cpu": MARKUP}, tags=[MARKUP])
    claim = CLAIM | {"statement": MARKUP, "reason": MARKUP, "id": MARKUP}
    rows = [dataclasses.replace(row, reason=MARKUP, labels={"alignment": MARKUP}) for row in run.records]
    text = report.report(dataclasses.replace(run, records=rows, claims=[claim]), {}, ASKED).decode()
    found = Elements(text)
    assert {name for name, _ in found.found} <= OURS
    assert len(found.all("script")) == 4
    assert not [key for _, attributes in found.found for key in attributes if key.startswith("on")]
    assert "pwned()" in found.text
    assert not re.search("[\u202e\x07]", text)


def test_a_table_names_its_columns_and_rows() -> None:
    text = markup.table("Cap <tion", ["a", "b"], [["x & y", markup.tag("code", "1")], ["", "2"]], {"b"})
    assert text == (
        '<div class="scroll" tabindex="0" role="group" aria-label="Cap &lt;tion"><table><caption>Cap &lt;tion</caption>'
        '<thead><tr><th scope="col">a</th><th scope="col" class="number">b</th></tr></thead><tbody>'
        '<tr><th scope="row">x &amp; y</th><td class="number"><code>1</code></td></tr>'
        '<tr><td></td><td class="number">2</td></tr></tbody></table></div>'
    )


def test_attributes_are_escaped_and_named_as_html_has_them() -> None:
    assert markup.tag("a", "<b>", class_='x" y', data_run="1", hidden=True, title=None) == (
        '<a class="x&quot; y" data-run="1" hidden>&lt;b&gt;</a>'
    )
    assert markup.join(["<", markup.Markup("<br>")], "&") == "&lt;&amp;<br>"


@pytest.mark.parametrize(
    ("fields", "tone", "words"),
    [
        ({}, "bad", "1 of 7 rows failed: 1 error"),
        ({"records": [make_matmul(256)]}, "good", "1 row measured"),
        ({"records": [make_matmul(256)], "status": "interrupted"}, "warn", "This run is interrupted"),
        ({"records": [make_matmul(256, flags=["implausible"])]}, "warn", "1 thing to beware of below"),
        ({"records": [], "claims": []}, "bad", "Nothing was measured"),
        ({"records": [make_matmul(256)], "claims": [CLAIM | {"verdict": "ABSENT"}]}, "warn", "claims: 1 absent"),
    ],
)
def test_the_verdict_says_how_the_run_went(fields: dict[str, Any], tone: str, words: str) -> None:
    found = overview.verdict(dataclasses.replace(small(), **fields))
    assert found[0] == tone
    assert words in found[1]


def test_what_to_beware_of_begins_with_the_worst() -> None:
    rows = [make_matmul(256, flags=["noisy"]), make_matmul(512, flags=["implausible"])]
    run = make_run(rows, tags=["quick"], device={"kind": "cuda", "name": "X", "calibration": {"timers": 3}})
    found = overview.warnings(run)
    assert found[0][0] == "bad"
    assert "implausible" in found[0][1]
    tones = [tone for tone, _ in found]
    assert tones == sorted(tones, key=["bad", "warn", ""].index)
    assert any("a quick run" in words for _, words in found)


def test_an_empty_run_has_a_report() -> None:
    assert "No row was measured" in Elements(report.report(make_run([]), {}, {}).decode()).text


def test_the_question_of_a_suite_is_the_first_line_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text('"""Atomics: what does\nit cost?\n\nMore of\nit.\n"""\nraise SystemExit(1)\n')
    assert questions.read("atomics", file) == questions.Question("Atomics", "What does it cost?", ("More of it.",))
    file.write_text('"""No question."""')
    assert questions.read("x", file) == questions.Question("x", "No question.")
    for text in ("", "def"):
        file.write_text(text)
        assert questions.read("x", file) == questions.Question("x", "")
    assert questions.read("gone", None) == questions.Question("gone", "")


def test_the_report_of_the_whole_lecture_is_small() -> None:
    run = read_run(Path(__file__).parents[1] / "results" / "reference" / "h200" / "lecture.json.gz")
    asked = {record.suite: questions.Question(record.suite, "") for record in run.records}
    assert len(report.report(run, {}, asked)) <= LARGEST


def test_the_engine_is_the_one_that_is_recorded() -> None:
    about = json.loads((page.ASSETS / "vega.json").read_text())
    assert hashlib.sha256(gzip.decompress((page.ASSETS / "vega.js.gz").read_bytes())).hexdigest() == about["sha256"]
    assert {each["name"]: each["licence"] for each in about["packages"]} == {
        "vega": "BSD-3-Clause",
        "vega-interpreter": "BSD-3-Clause",
    }
    assert "Redistribution and use" in (page.ASSETS / "vega.LICENSE").read_text()


def compared() -> tuple[Any, Run, Run]:
    from gpubench.compare.runs import compare
    from gpubench.report import comparison as common

    base = make_run([make_matmul(n) for n in (256, 512, 1024)], run_id="base")
    slower = [
        make_matmul(256),
        make_matmul(512, peak=400e12),
        make_record(params={"n": 3}, status="error", reason=MARKUP),
    ]
    new = make_run(slower, run_id="new", software={"torch": "9"})
    judged = compare([base], new, 0.03, {}, "error")
    judged.details |= {"base": common.side(base), "new": common.side(new)}
    return judged, base, new


def test_a_comparison_says_what_is_worse_and_holds_both_runs(tmp_path: Path) -> None:
    judged, base, new = compared()
    text = comparison.report(judged, [base], new).decode()
    found = Elements(text)
    assert {name for name, _ in found.found} <= OURS
    assert "✕ missing" in found.text
    assert "△ suspect" in found.text
    assert "software: torch" in found.text
    path = tmp_path / "both.html"
    path.write_text(text)
    assert read_runs(path) == [base, new]
    with pytest.raises(UsageError, match="a comparison of 2 runs, not one"):
        read_run(path)


def test_the_comparison_is_as_grave_as_its_worst_row() -> None:
    judged, _, _ = compared()
    assert comparison.verdict(judged)[0] == "bad"
    judged.rows = [row for row in judged.rows if row.verdict in ("same", "missing")]
    assert comparison.verdict(judged)[1].startswith("1 row is missing.")
    judged.rows = [row for row in judged.rows if row.verdict == "same"]
    assert comparison.verdict(judged)[0] == "good"
    judged.rows = []
    assert comparison.verdict(judged) == ("warn", "There is no row to compare.")


def paragraphs(run: Run) -> str:
    return Elements(report.report(run, {}, ASKED).decode()).text


def test_the_method_says_what_the_file_says_and_nothing_of_the_rest() -> None:
    known = paragraphs(small(tool={"version": "9.9", "method": 3}, fingerprint={"id": "abc"}, run_id="r1"))
    assert "Run r1, method 3, machine abc." in known
    assert "gpubench 9.9" in known
    bare = paragraphs(small(tool={}, fingerprint={}, run_id="r1"))
    assert "Run r1." in bare
    assert "method ," not in bare
    assert "UTC · took 58 s\n" in bare or "UTC · took 58 sgpubench" not in bare
    assert "cupti (1 row)" in paragraphs(make_run([make_bandwidth()]))


def test_what_counts_as_a_flop_of_attention_is_said(html: str) -> None:
    """The same for every way to compute it: a causal mask halves it, a gradient adds two and a half times as much."""
    text = " ".join(Elements(html).text.split())
    assert "its two products, half of them with a causal mask, 3.5 times as much with the gradient" in text


def test_without_ceilings_the_report_says_so_in_place_of_a_roofline(html: str) -> None:
    assert "This run holds no ceilings" in Elements(html).text
    assert 'data-name="roofline"' not in html
    whole = report.report(small(ceilings=make_ceilings()), {}, ASKED).decode()
    assert 'data-name="roofline"' in whole
    assert "This run holds no ceilings" not in whole


def test_a_fall_of_a_few_percent_is_no_news() -> None:
    rows = [make_record(params={"n": n}, flops=10**9, time_ns=ns) for n, ns in enumerate([100, 101, *[99] * 7], 1)]
    assert "largest drop" not in str(overview.tiles(make_run(rows)))
    rows[1] = make_record(params={"n": 2}, flops=10**9, time_ns=200)
    assert "largest drop" in str(overview.tiles(make_run(rows)))


def test_claims_that_nobody_judged_are_no_part_of_the_verdict() -> None:
    claims = [CLAIM | {"verdict": "NOT RUN", "effects": []}]
    assert "claims" not in overview.verdict(dataclasses.replace(small(), claims=claims))[1]
    assert "claims: 1 hold, 1 not run" in overview.verdict(dataclasses.replace(small(), claims=[CLAIM, *claims]))[1]


def test_the_figures_of_a_chart_are_what_its_marks_say() -> None:
    for picture in charts.pictures(read_run(H200 / "lecture.json.gz")):
        columns, rows = figures.figures_of(picture.spec())
        assert not {"x", "y", "name", "class", "role"} & set(columns), picture.heading.id
        assert rows, picture.heading.id
        if picture.heading.id == "stride":
            assert "predicted" in columns
            assert len(rows) == 14
    settled = charts.draw(read_run(H200 / "sustained.json.gz"), "sustained-in-time-1")
    assert figures.figures_of(settled.spec())[0] == ["share of", "time, s", "share, %"], "lines without marks"


def test_a_comparison_shows_the_first_rows_and_reasons_and_folds_the_others() -> None:
    from gpubench.compare.runs import compare

    base = make_run([make_matmul(n) for n in range(64, 64 + 40)], run_id="base")
    judged = compare([base], make_run([make_matmul(64)], run_id="new"), 0.03, {}, "error")
    text = comparison.report(judged, [base], base).decode()
    assert "15 more rows" in text
    assert Elements(text).text.count("✕ missing") == 39


def test_no_folder_of_the_one_who_compared_is_in_a_comparison() -> None:
    judged, base, new = compared()
    judged.base_name, judged.new_name = "/home/somebody/old/run.json", "/home/somebody/new/run.json"
    text = comparison.report(judged, [base], new).decode()
    assert "somebody" not in text
    assert "old/run.json" in text
    assert unplaced("~/x/one.json", "results/two.json") == ("one.json", "results/two.json")
    assert unplaced("3 runs, /x/y/one.json …", "/z/two.json") == ("3 runs, one.json …", "two.json")
    assert unplaced("as it is", "env:A=/x/y") == ("as it is", "env:A=/x/y")
