"""`gpubench claims`, and the verdicts that a run leaves in its file."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import GPU, make_run
from command import FAKE, gpubench, one_line, saved, strict, within
from worlds import WORLDS

from gpubench.discovery import Library
from gpubench.store import runfile

SUITES = Path(__file__).parents[1] / "suites"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a run file of the suite waves, as an older version left it: without verdicts."""
    world = next(world for world in WORLDS if world.claim == "C58")
    run = make_run([row.record("waves") for row in world.rows], device=GPU | {"multiprocessors": 132})
    (tmp_path / "run.json").write_bytes(runfile.encode(run))
    return tmp_path


def test_a_run_keeps_the_verdicts_of_its_suites(tmp_path: Path) -> None:
    done = gpubench(tmp_path, "run", "execution/ping-pong", *FAKE)
    (run,) = saved(tmp_path)
    assert [claim["id"] for claim in run["claims"]] == ["C12", "C13", "C17", "C18", "C19", "C21"]
    assert {claim["verdict"] for claim in run["claims"]} == {"NOT RUN"}
    assert "claims: 6 not run; gpubench claims" in done.stderr.splitlines()
    shown = gpubench(tmp_path, "claims")
    assert shown.returncode == 0
    assert "not run: C12, C18: no row execution/blocks" in shown.stdout
    assert "latest run" in shown.stderr
    assert gpubench(tmp_path, "claims", "-q").stderr == ""


def test_today_s_rules_leave_the_file_alone(folder: Path) -> None:
    before = (folder / "run.json").read_bytes()
    assert "--rejudge" in within(folder, "claims", "run.json").stderr
    done = within(folder, "claims", "run.json", "--rejudge")
    assert done.returncode == 0
    assert "1 hold" in done.stdout.splitlines()[0] or "2 hold" in done.stdout.splitlines()[0]
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert (folder / "run.json").read_bytes() == before


def test_one_claim_in_full(folder: Path) -> None:
    for word in ("C58", "c58"):
        text = within(folder, "claims", "run.json", word, "--rejudge").stdout
        for title in ("claim", "the lecture", "corrected", "experiment", "rule", "model", "effect", "control", "row"):
            assert f"\n{title} " in text
        assert "verdict      HOLDS (proof B: by time)" in text
        assert "132 multiprocessors" in " ".join(text.split())


def test_a_claim_without_a_run_named_is_of_the_latest(tmp_path: Path) -> None:
    gpubench(tmp_path, "run", "execution/ping-pong", *FAKE)
    done = gpubench(tmp_path, "claims", "C21")
    assert done.stdout.startswith("C21 ")
    assert "verdict      NOT RUN" in done.stdout
    assert "gpubench run waves" in gpubench(tmp_path, "claims", "C58").stdout
    assert "NOT TESTABLE HERE" in gpubench(tmp_path, "claims", "C02").stdout
    assert "verdict      NOT RUN: gpubench run memory-hierarchy" in gpubench(tmp_path, "claims", "x03").stdout
    assert gpubench(tmp_path, "claims", "latest", "X03").stdout.startswith("X03 ")


def test_json(folder: Path) -> None:
    document = strict(within(folder, "claims", "run.json", "--rejudge", "--json").stdout)
    assert document["rejudged"] is True
    assert [claim["id"] for claim in document["claims"]] == ["C58", "C59"]
    one = strict(within(folder, "claims", "run.json", "C58", "--rejudge", "--json").stdout)
    assert [claim["verdict"] for claim in one["claims"]] == ["HOLDS"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run.json", "C99"], "no claim 'C99'"),
        (["C99"], "no claim 'C99'"),
        (["nothing.json"], "nothing.json"),
    ],
)
def test_wrong_words_are_one_line(folder: Path, words: list[str], said: str) -> None:
    done = within(folder, "claims", *words)
    assert done.returncode == 2
    assert one_line(done.stderr)
    assert said in done.stderr


def test_a_file_whose_verdicts_are_broken_is_refused(folder: Path) -> None:
    text = (folder / "run.json").read_text()
    (folder / "run.json").write_text(text.replace('"claims":[]', '"claims":[{"id":"C58"}]'))
    done = within(folder, "claims", "run.json")
    assert done.returncode == 2
    assert one_line(done.stderr)
    assert "claims[0]" in done.stderr
    assert within(folder, "claims", "run.json", "--rejudge").returncode == 0
    assert within(folder, "show", "run.json").returncode == 0


def test_list_shows_the_claims_of_a_suite(tmp_path: Path) -> None:
    claims = Library(SUITES).claims()
    one = within(tmp_path, "list", "C47").stdout
    assert "coalescing" in one
    assert " ".join(claims["C47"].claim.split()[:4]) in one
    suite = within(tmp_path, "list", "waves").stdout
    assert "\nC58" in suite
    assert "\nC59" in suite
    assert "C47" not in suite
    assert "\nC58" not in within(tmp_path, "list").stdout
    listed = strict(within(tmp_path, "list", "--json").stdout)["claims"]
    assert len([each for each in listed if each["id"].startswith("C")]) == 72
    assert len([each for each in listed if each["id"].startswith("X")]) == 8
