"""`gpubench report`: the form by the suffix, what reads back, what it refuses, and the browser it does without."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from builders import make_matmul, make_record, make_run
from command import FAKE, OK, within

from gpubench.report.junit import junit
from gpubench.store import runfile

AB = Path(__file__).parent / "golden" / "ab-1.json"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two run files, the second a little slower."""
    folder = tmp_path_factory.mktemp("reports")
    for name, peak in (("base", 800e12), ("new", 600e12)):
        run = make_run([make_matmul(n, peak=peak) for n in (256, 512, 1024)], run_id=name)
        (folder / f"{name}.json").write_bytes(runfile.encode(run))
    return folder


@pytest.mark.parametrize(
    ("suffix", "begins"),
    [
        (".html", "<!doctype html>"),
        (".md", "# NVIDIA H200\n\n- matmul"),
        (".csv", "id,suite,"),
        (".xml", "<?xml"),
        (".json", '{"schema"'),
    ],
)
def test_the_suffix_is_the_form(folder: Path, suffix: str, begins: str) -> None:
    done = within(folder, "report", "base.json", "-o", f"out{suffix}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"saved out{suffix}\n")
    assert (folder / f"out{suffix}").read_text().startswith(begins)


def test_a_report_is_input_where_a_run_is(folder: Path) -> None:
    assert within(folder, "report", "base.json", "-o", "one.html", "-q").stderr == ""
    shown = [within(folder, "show", name, "--json").stdout for name in ("base.json", "one.html")]
    assert shown[0] == shown[1] != ""
    done = within(folder, "compare", "one.html", "new.json")
    assert done.returncode == 6
    assert "3 matched · 3 suspect" in done.stdout


def test_several_runs_are_a_comparison_which_reads_back_as_one(folder: Path) -> None:
    assert within(folder, "report", "base.json", "new.json", "-o", "both.html").returncode == 0
    again = within(folder, "compare", "both.html")
    assert again.returncode == 6
    assert "3 matched · 3 suspect" in again.stdout
    assert within(folder, "report", "both.html", "-o", "again.html").returncode == 0
    assert "3 matched · 3 suspect" in (folder / "again.html").read_text()
    refused = within(folder, "show", "both.html")
    assert refused.returncode == 2
    assert refused.stderr == "gpubench: both.html: a comparison of 2 runs, not one (gpubench compare both.html)\n"


def test_a_measurement_in_pairs_has_a_report_which_reads_back_as_one(folder: Path) -> None:
    assert within(folder, "report", str(AB), "-o", "ab.html").stderr == "saved ab.html\n"
    again = within(folder, "compare", "ab.html", "--why", "n=1")
    assert again.stdout == within(folder, "compare", str(AB), "--why", "n=1").stdout
    assert "judged by" in again.stdout
    assert within(folder, "report", "ab.html", "-o", "ab-again.html").returncode == 0
    assert (folder / "ab-again.html").read_bytes() == (folder / "ab.html").read_bytes()
    assert within(folder, "report", str(AB), "-o", "ab.md").returncode == 0
    assert "regression" in (folder / "ab.md").read_text()
    refused = within(folder, "show", "ab.html")
    assert refused.stderr == "gpubench: ab.html: an A/B measurement, not a run (gpubench compare ab.html)\n"


def test_margins_of_today_judge_a_measurement_in_pairs_anew(folder: Path) -> None:
    done = within(folder, "report", str(AB), "-o", "wide.html", env={"GPUBENCH_MARGIN": "10%"})
    assert (done.returncode, done.stderr) == (0, "saved wide.html\n")
    assert "A loss of up to 10 % does not count" in (folder / "wide.html").read_text()
    (folder / "gpubench.yaml").write_text("margin: 10%\n")
    try:
        assert within(folder, "report", str(AB), "-o", "own.html").returncode == 0
    finally:
        (folder / "gpubench.yaml").unlink()
    assert "A loss of up to 3 % does not count" in (folder / "own.html").read_text(), "a project's file does not count"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("base.json",), "a report needs a file (gpubench report latest -o report.html)"),
        (("base.json", "-o", "x.pdf"), "x.pdf: no report of that form (a name ending in .html"),
        (("base.json", "new.json", "-o", "x.svg"), "x.svg: no comparison of that form (a name ending in .html"),
        ((str(AB), "-o", "x.svg"), "x.svg: no comparison of that form (a name ending in .html"),
        (("base.json", "-o", "no/x.html"), "--output no/x.html: there is no folder"),
        (("none.json", "-o", "x.html"), "no run file none.json"),
    ],
)
def test_what_it_refuses_it_refuses_in_a_line(folder: Path, words: tuple[str, ...], said: str) -> None:
    done = within(folder, "report", *words)
    assert done.returncode == 2
    assert done.stderr.startswith(f"gpubench: {said}")
    assert len(done.stderr.splitlines()) == 1
    assert not (folder / "x.html").exists()


def test_a_page_without_a_run_is_refused(folder: Path) -> None:
    (folder / "page.html").write_text("<!doctype html><p>hello")
    done = within(folder, "show", "page.html")
    assert done.returncode == 2
    assert done.stderr.startswith("gpubench: page.html: an HTML page that holds no run")


def test_a_claim_that_is_none_is_refused(folder: Path) -> None:
    run = make_run([make_matmul(256)], claims=[{"id": "C01"}])
    (folder / "odd.json").write_bytes(runfile.encode(run))
    done = within(folder, "report", "odd.json", "-o", "odd.html")
    assert done.returncode == 2
    assert "claims[0]: verdict is missing" in done.stderr


def test_run_opens_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: shown.append(url) or True)
    done = within(tmp_path, "run", OK, *FAKE, "--open", "-o", "mine.json", env={"DISPLAY": ":0"})
    assert done.returncode == 0
    assert done.stderr.endswith("saved mine.html\n")
    assert shown == [(tmp_path / "mine.html").as_uri()]


@pytest.mark.parametrize("env", [{}, {"DISPLAY": ":0", "CI": "true"}])
def test_where_there_is_no_browser_it_says_where_the_report_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch, env: dict[str, str]
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("webbrowser.open", lambda url: pytest.fail(f"opened {url}"))
    done = within(folder, "report", "base.json", "-o", "open.html", "--open", env=env)
    assert done.stderr.splitlines() == ["saved open.html", "no browser here: open open.html"]


def test_junit_has_a_case_for_every_row() -> None:
    rows = [make_matmul(256), make_record(params={"n": 1}, status="error", reason="a <b>\x07")]
    rows += [make_record("other", "x", status="skipped", reason="no")]
    root = ElementTree.fromstring(junit(make_run(rows)))
    assert root.attrib == {"name": "gpubench", "tests": "3", "failures": "1", "errors": "0", "skipped": "1"}
    assert [suite.get("name") for suite in root] == ["matmul-sweep", "other"]
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.get("message") == "error: a <b>\ufffd"
    assert [case.get("time") for case in root.iter("testcase")] == ["0.000000356", "0", "0"], "seconds"
    assert [[each.tag for each in case] for case in root.iter("testcase")] == [[], ["failure"], ["skipped"]]
    for suite in root:  # what a suite says of itself is what is in it
        counts = {"tests": "testcase", "failures": "testcase/failure", "skipped": "testcase/skipped"}
        assert {name: suite.get(name) for name in counts} == {n: str(len(suite.findall(p))) for n, p in counts.items()}
    assert [suite.get("tests") for suite in root] == ["2", "1"]
    assert {suite.get("timestamp") for suite in root} == {make_run([]).started_at[:19]}
