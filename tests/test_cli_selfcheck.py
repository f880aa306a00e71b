"""gpubench selfcheck, as its users meet it, with fake processes in place of workers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pools
import pytest
from command import FAKE, gpubench, one_line, strict, within

from gpubench import executor
from gpubench.result import Run
from gpubench.selfcheck import measure as selfcheck
from gpubench.store import runfile
from gpubench.store.calibration import FILE, Injected

SIXTEEN = ("--processes", "16")


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, 0.003)


def use(monkeypatch: pytest.MonkeyPatch, noise: float) -> None:
    """Fake processes with so much noise from one to the next, and the toy's rows."""
    monkeypatch.setattr(selfcheck, "WORKS", pools.WORKS)
    monkeypatch.setattr(selfcheck, "bench", lambda library: pools.bench())
    monkeypatch.setattr(executor, "WorkerProcess", pools.processes(noise))


@pytest.mark.usefixtures("quiet")
def test_aa_shows_rates_keeps_them_and_compare_tells_them(tmp_path: Path) -> None:
    done = within(tmp_path, "selfcheck", "aa", *SIXTEEN)
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stdout.startswith("selfcheck aa · Fake device · 16 processes · 4 rows · 200 splits, 8 a side\n")
    assert "800 comparisons of equal code with itself" in done.stdout
    assert re.search(r"^ab, margin 3 %: different +0 %  at most 1 % +kept$", done.stdout, re.MULTILINE)
    assert "[16/16] 4 rows in a fresh process" in done.stderr
    assert "kept results/calibration.json, from results/selfcheck/fake-" in done.stderr

    saved = next(iter((tmp_path / "results" / "selfcheck").iterdir()))
    run = runfile.decode(saved.read_bytes().splitlines()[0], "line")
    for name in ("base.json", "new.json"):
        (tmp_path / name).write_bytes(runfile.encode(replace(run, run_id=name)))
    told = within(tmp_path, "compare", "base.json", "new.json")
    assert told.returncode == 0
    assert "on this device, of 800 comparisons of equal code 0 % were called different at 3 %" in told.stderr
    assert "comparisons of equal code" not in told.stdout
    assert "equal code" not in within(tmp_path, "compare", "base.json", "new.json", "-q").stderr
    other = Run(**{**vars(run), "device": {**run.device, "uuid": "FAKE-1"}})
    (tmp_path / "other.json").write_bytes(runfile.encode(other))
    assert "equal code" not in within(tmp_path, "compare", "other.json", "other.json").stderr


@pytest.mark.usefixtures("quiet")
def test_the_pool_of_one_check_serves_the_other_and_grows(tmp_path: Path) -> None:
    within(tmp_path, "selfcheck", "aa", *SIXTEEN, "-q")
    done = within(tmp_path, "selfcheck", "inject", *SIXTEEN)
    assert "going on with 16 processes of fake-" in done.stderr
    assert "fresh process" not in done.stderr
    assert "ok/double  +5 %  +5.00 %     3 %  200 of 200" in done.stdout
    assert "5 % more work, margin 3 %: called a regression" in done.stdout
    more = within(tmp_path, "selfcheck", "inject", "--processes", "18", "--json")
    found = strict(more.stdout)
    assert (found["check"], found["found"]["processes"], found["found"]["blocks"]) == ("inject", 18, 9)
    assert [each["kept"] for each in found["rates"]][:2] == [True, True]
    kept = strict((tmp_path / "results" / FILE).read_text())["devices"]
    (entry,) = kept.values()
    assert (entry["aa"]["processes"], entry["inject"]["processes"]) == (16, 18)


def test_a_promise_that_is_broken_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, 0.05)
    done = within(tmp_path, "selfcheck", "inject", *SIXTEEN)
    assert done.returncode == 0
    assert "broken" in done.stdout
    assert "gpubench: 3 % more work, margin 1 %: called a regression: " in done.stderr
    assert "promised at least 90 %" in done.stderr


@pytest.mark.usefixtures("quiet")
def test_a_promise_about_no_row_is_said_to_be_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Injected, "promised", property(lambda each: each.more != 0.05))
    done = within(tmp_path, "selfcheck", "inject", *SIXTEEN)
    assert done.returncode == 0
    said = [line for line in done.stderr.splitlines() if "judged" in line]
    assert said == [
        "gpubench: 5 % more work, margin 3 %: called a regression: not judged, no row took just so much longer"
    ]
    assert re.search(r"^ok/double +\+5 % .* not judged$", done.stdout, re.MULTILINE)


@pytest.mark.usefixtures("quiet")
def test_a_budget_that_ends_first_keeps_what_there_is(tmp_path: Path) -> None:
    done = within(tmp_path, "selfcheck", "aa", "--budget", "1ns")
    assert done.returncode == 5
    assert done.stderr == "gpubench: nothing to judge: 0 processes so far, 16 at least (the same command goes on)\n"
    assert not (tmp_path / "results").exists()


@pytest.mark.usefixtures("quiet")
def test_a_pool_that_cannot_be_written_is_said_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results").touch()
    monkeypatch.setattr(selfcheck, "_measure", lambda *given: pytest.fail("measured"))
    done = within(tmp_path, "selfcheck", "aa", *SIXTEEN)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"gpubench: cannot write .*\.jsonl: .* \(another place: --results DIR\)\n", done.stderr)


def test_an_interruption_keeps_the_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, 0.003)
    start, count = executor.WorkerProcess, 0

    def interrupted(*words: object, **options: object) -> object:
        nonlocal count
        count += 1
        if count == 3:
            raise KeyboardInterrupt
        return start(*words, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(executor, "WorkerProcess", interrupted)
    done = within(tmp_path, "selfcheck", "aa", *SIXTEEN)
    assert done.returncode == 130
    assert done.stderr.endswith("gpubench: interrupted: 2 processes are kept, the same command goes on\n")
    again = within(tmp_path, "selfcheck", "aa", *SIXTEEN)
    assert again.returncode == 0
    assert "going on with 2 processes" in again.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--processes", "15"), "--processes: '15' is not an integer from 16 to 1000 (16 at least: two sides of 8)"),
        (("--budget", "8"), "--budget: the duration '8' has no unit"),
    ],
)
def test_what_cannot_be_asked(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    done = within(tmp_path, "selfcheck", "aa", *FAKE, *words)
    assert done.returncode == 2
    assert one_line(done.stderr)
    assert told in done.stderr


def test_a_broken_calibration_costs_compare_a_line(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / FILE).write_text("{}")
    run = pools.runs(0.0, count=1)[0]
    (tmp_path / "run.json").write_bytes(runfile.encode(run))
    done = within(tmp_path, "compare", "run.json", "run.json")
    assert done.returncode == 0
    assert "not a calibration of this gpubench" in done.stderr


def test_a_real_worker_is_started_and_ended(tmp_path: Path) -> None:
    done = gpubench(tmp_path, "selfcheck", "aa", *FAKE, "--budget", "1ns", "-q")
    assert done.returncode == 5
    assert one_line(done.stderr)
