"""`gpubench run --counters` from outside, with an ncu that is a script."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from command import FAKE, FAULTS, LIMIT, OK, Gates, gone, gpubench, saved, start, statuses, strict, within
from fakencu import install

from gpubench.claims.statements import Statement
from gpubench.cli import counting, session
from gpubench.cli.screen import Screen
from gpubench.discovery import Library
from gpubench.errors import UsageError
from gpubench.exits import Exit
from gpubench.profiling.counting import NO_TIME, Job, Pass, without
from gpubench.settings import Settings
from gpubench.store.folder import RunWriter


def counted(folder: Path, *words: str, how: str = "", **env: str) -> Any:
    return gpubench(folder, "run", *words, *FAKE, "--counters", env=install(folder) | {"FAKE_NCU": how} | env)


def test_rows_with_a_number_get_counters_in_the_same_file(tmp_path: Path) -> None:
    done = counted(tmp_path, OK, "-p", "n=1,2")
    assert done.returncode == 0
    assert "counting: 2 rows once more under ncu" in done.stderr.splitlines()
    assert "counters of 2 rows; a copy of 1.00 kB counts as 1.00 kB (+0.00 %)" in done.stderr.splitlines()
    (run,) = saved(tmp_path)
    assert run["status"] == "complete"
    assert run["settings"]["counters"] == {"value": True, "origin": "--counters"}
    for record in run["records"]:
        assert record["status"] == "ok"
        assert record["counters"]["source"] == "ncu 2025.3.1.0"
        assert record["counters"]["dram_bytes_read"] == record["counters"]["kernels"][0]["dram_bytes_read"] == 400
        assert record["counters"]["threads_per_instruction"] == 32
        assert record["samples"]["gpu_ns"]
    assert not list((tmp_path / "results").glob("*.journal"))


def test_rows_without_a_number_are_not_counted(tmp_path: Path) -> None:
    done = counted(tmp_path, FAULTS, "-p", "how=wrong,none", "-p", "when=run", FAKE_NCU_TOLD="1")
    assert done.returncode == 4
    wrong, fine = saved(tmp_path)[0]["records"]
    assert wrong["counters"] == {}
    assert fine["counters"]["dram_bytes_write"] == 600


@pytest.mark.parametrize(("how", "words"), [("denied", "ERR_NVGPUCTRPERM"), ("other", "other kernels were counted")])
def test_without_counters_the_run_is_as_it_would_have_been(tmp_path: Path, how: str, words: str) -> None:
    done = counted(tmp_path, OK, "-p", "n=1", how=how, FAKE_NCU_TOLD="1")
    assert done.returncode == 0
    assert "n=1" in done.stdout
    assert sum(line.startswith("gpubench: ") for line in done.stderr.splitlines()) == 1
    assert words in done.stderr
    (run,) = saved(tmp_path)
    assert (run["status"], statuses(run)) == ("complete", ["ok"])
    assert words in run["records"][0]["counters"]["unavailable"]["counters"]


def test_a_few_rows_without_counters_are_said(tmp_path: Path) -> None:
    done = counted(tmp_path, OK, "-p", "n=1,2", how="missing", FAKE_NCU_TOLD="1")
    assert "gpubench: 1 row without counters, such as: ncu counted no kernel of this case" in done.stderr
    assert "counters of 1 row; " in done.stderr


def test_rows_that_time_did_not_reach_are_said(tmp_path: Path) -> None:
    done = counted(tmp_path, OK, "-p", "n=1,2,3", FAKE_NCU_TOLD="1", FAKE_NCU_ROWS="1")
    assert done.returncode == 0
    line = "counters of 1 row; 2 not counted: time budget; a copy of 1.00 kB counts as 1.00 kB (+0.00 %)"
    assert line in done.stderr.splitlines()
    assert "gpubench: " not in done.stderr
    (run,) = saved(tmp_path)
    first, *others = (record["counters"] for record in run["records"])
    assert first["dram_bytes_read"] == 400
    assert others == [without(NO_TIME)] * 2


def shown(clock: Callable[[], float], screen: Screen, *done: int, plain: bool = True) -> None:
    settings = cast(Settings, SimpleNamespace(plain=plain, verbose=False))
    with counting.following(752, settings, screen, clock) as seen:
        for number in done:
            seen(number)


def test_a_line_every_ten_seconds_says_how_far_the_pass_is(capsys: pytest.CaptureFixture[str]) -> None:
    ticks = iter([100.0, 101.0, 109.9, 110.0, 119.9, 125.0, 134.9, 135.0])
    shown(lambda: next(ticks), Screen(), 0, 3, 20, 80, 120, 121, 122)
    said = ["counting: 20 of 752 rows, 10 s", "counting: 120 of 752 rows, 25 s", "counting: 122 of 752 rows, 35 s"]
    assert capsys.readouterr().err.splitlines() == said


@pytest.mark.parametrize("redraws", [True, False])
def test_who_wants_quiet_gets_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, redraws: bool
) -> None:
    monkeypatch.setattr(counting, "bar", lambda screen: pytest.fail("a bar is drawn"))
    ticks = iter([0.0, 100.0, 200.0])
    screen = Screen(quiet=True)
    screen.redraws = redraws
    shown(lambda: next(ticks), screen, 1, 2, plain=False)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_a_bar_instead(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    whole = counting.bar

    def kept(screen: Screen) -> Any:
        drawn.append(whole(screen))
        return drawn[0]

    monkeypatch.setattr(counting, "bar", kept)
    screen = Screen()
    screen.redraws = True
    shown(lambda: 0.0, screen, 1, 120, plain=False)
    (task,) = drawn[0].tasks
    assert (task.total, task.completed, task.fields) == (752, 120, {"suite": "counting", "left": "at most 4 min"})
    assert "counting:" not in capsys.readouterr().err


ASKS = """
from gpubench import Axis, Suite
from gpubench.finding import Effect, Finding

suite = Suite(__file__)

@suite.benchmark(n=Axis([1, 2, 3]))
def double(device, n):
    from gpubench import Workload

    out = device.unwritten(n, "float32")

    def run():
        out[:] = [2.0] * n
        device.spend(1000 * n)

    return Workload(run=run, output=out, reference=lambda: [2.0] * n, reference_name="twos", bytes=8 * n)

@suite.claim("C99")
def counts(view):
    row = view.one("double", n=2)
    read = view.counter(row, "dram_bytes_read")
    found = view.median(row) if read is None else read
    return Finding((Effect("reads", found, "1", 1),), (Effect("same", found, "1", 1),), proof="A" if read else "B")
"""


def asking(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A run of a suite one of whose rules asks for the counters of the row n=2, within this process."""
    (folder / "asks.py").write_text(ASKS)
    statement = Statement("C99", "S", "short", "Words.", "yes", "s", suite="asks")
    monkeypatch.setattr(Library, "claims", lambda self: {"C99": statement})
    return within(folder, "run", "asks.py", *FAKE, "--in-process", "--counters")


def whole_before(
    folder: Path, monkeypatch: pytest.MonkeyPatch, then: Callable[[RunWriter], list[Exit]]
) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """The run's file as it is when counting begins; what the command said; the file in the end."""
    seen: list[dict[str, Any]] = []

    def pass_over(writer: RunWriter, asked: set[str], *rest: Any) -> list[Exit]:
        assert asked == {"asks/double[n=2]"}
        seen.append(strict(writer.path.read_text()))
        return then(writer)

    monkeypatch.setattr(session, "count_rows", pass_over)
    done = asking(folder, monkeypatch)
    (end,) = saved(folder)
    assert not list((folder / "results").glob("*.journal"))
    return seen[0], done, end


def test_the_run_is_whole_and_judged_before_it_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def attach(writer: RunWriter) -> list[Exit]:
        writer.add_counters(1, {"source": "ncu", "dram_bytes_read": 7})
        return []

    before, done, end = whole_before(tmp_path, monkeypatch, attach)
    assert done.returncode == 0
    assert (before["status"], statuses(before)) == ("complete", ["ok"] * 3)
    assert before["ended_at"] >= before["started_at"]
    assert [(claim["verdict"], claim["proof"]) for claim in before["claims"]] == [("HOLDS", "B")]
    assert [(claim["verdict"], claim["proof"]) for claim in end["claims"]] == [("HOLDS", "A")]
    assert (end["status"], end["ended_at"] >= before["ended_at"]) == ("complete", True)


@pytest.mark.parametrize(
    ("error", "code"), [(None, 130), (KeyboardInterrupt(), 130), (RuntimeError("planted"), 1), (UsageError("x"), 2)]
)
def test_nothing_that_ends_the_counting_takes_from_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException | None, code: int
) -> None:
    def end_it(writer: RunWriter) -> list[Exit]:
        if error is None:
            return [Exit.SIGINT]
        raise error

    before, done, end = whole_before(tmp_path, monkeypatch, end_it)
    assert done.returncode == code
    assert {**end, "ended_at": None} == {**before, "ended_at": None}
    assert (end["status"], end["claims"][0]["proof"]) == ("complete", "B")


def test_rows_that_a_rule_asks_for_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def pass_over(jobs: list[Job], *rest: Any, **more: Any) -> Pass:
        asked.extend((job.case.params["n"], job.first) for job in jobs)
        asked.append(more["budget"])
        more["seen"](2)
        return Pass([without("planted")] * len(jobs))

    monkeypatch.setattr(counting.counting, "count", pass_over)
    monkeypatch.setattr(counting, "EVERY_S", 0.0)
    done = asking(tmp_path, monkeypatch)
    assert "counting: 2 of 3 rows, 0 s" in done.stderr.splitlines()
    assert asked == [(1, False), (2, True), (3, False), 240.0]


@pytest.fixture
def gates(tmp_path: Path) -> Iterator[Gates]:
    found = Gates(tmp_path)
    yield found
    found.close()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_while_counting_leaves_a_complete_run(
    tmp_path: Path, gates: Gates, number: int, code: int
) -> None:
    env = install(tmp_path) | gates.env | {"FAKE_NCU": "held"}
    run = start(tmp_path, "run", OK, "-p", "n=1,2", *FAKE, "--counters", env=env)
    gates.told()
    run.send_signal(number)
    _, said = run.communicate(timeout=LIMIT)
    assert run.returncode == code
    assert "gpubench: interrupted while counting: the run is complete, without counters" in said.splitlines()
    (kept,) = saved(tmp_path)
    assert (kept["status"], statuses(kept)) == ("complete", ["ok", "ok"])
    assert [record["counters"] for record in kept["records"]] == [{}, {}]
    assert kept["ended_at"] >= kept["started_at"]


def test_a_second_signal_while_counting_takes_nothing(tmp_path: Path, gates: Gates) -> None:
    env = install(tmp_path) | gates.env | {"FAKE_NCU": "held"}
    run = start(tmp_path, "run", OK, "-p", "n=1,2", *FAKE, "--counters", env=env)
    ncu = gates.told()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
        run.send_signal(number)
    run.communicate(timeout=LIMIT)
    assert run.returncode in (130, 143)
    assert gone(ncu)
    (kept,) = saved(tmp_path)
    assert (kept["status"], statuses(kept)) == ("complete", ["ok", "ok"])
    assert not list((tmp_path / "results").glob("*.journal"))


def test_a_run_that_is_killed_while_counting_is_complete(tmp_path: Path, gates: Gates) -> None:
    env = install(tmp_path) | gates.env | {"FAKE_NCU": "held"}
    run = start(tmp_path, "run", OK, "-p", "n=1,2", *FAKE, "--counters", env=env)
    ncu = gates.told()
    run.kill()
    run.communicate(timeout=LIMIT)
    (kept,) = saved(tmp_path)
    assert (kept["status"], statuses(kept)) == ("complete", ["ok", "ok"])
    assert kept["ended_at"] >= kept["started_at"]
    assert strict(gpubench(tmp_path, "show", "--json").stdout) == kept
    gates.go()
    assert gone(ncu)
