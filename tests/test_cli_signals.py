"""Ctrl-C, SIGTERM, SIGKILL: what finished is saved, the terminal is as it was, and no process stays behind."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import (
    COMMAND,
    FAKE,
    LIMIT,
    OK,
    STEPWISE,
    Gates,
    environment,
    gone,
    gpubench,
    saved,
    start,
    statuses,
    strict,
)

from gpubench.cli import door, signals
from gpubench.exits import Exit

# A session of its own with this terminal, as a shell would have set up
ON_A_TERMINAL = "import os, sys; os.close(os.open(os.ttyname(0), os.O_RDWR)); os.execv(sys.argv[1], sys.argv[1:])"
HIDE, SHOW = b"\x1b[?25l", b"\x1b[?25h"


@pytest.fixture
def gates(tmp_path: Path) -> Iterator[Gates]:
    found = Gates(tmp_path)
    yield found
    found.close()


def held(folder: Path, gates: Gates, *words: str) -> tuple[subprocess.Popen[str], int]:
    """A run whose third case waits, and the process id of its worker."""
    run = start(folder, "run", STEPWISE, *FAKE, *words, env=gates.env)
    return run, gates.told()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_keeps_what_finished(tmp_path: Path, gates: Gates, number: int, code: int):
    run, worker = held(tmp_path, gates, "--export", "out.csv", "-o", "mine.json")
    run.send_signal(number)
    out, said = run.communicate(timeout=LIMIT)
    assert run.returncode == code
    assert gone(worker)
    kept = strict((tmp_path / "mine.json").read_text())
    assert (kept["status"], statuses(kept)) == ("interrupted", ["ok", "ok"])
    assert kept["ended_at"] >= kept["started_at"]
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 3
    assert out.startswith("interrupted run: not every case was measured\n")
    assert "gpubench: interrupted after 2 of 5 cases" in said.splitlines()
    assert "saved mine.json" in said.splitlines()
    assert "Traceback" not in said
    shown = gpubench(tmp_path, "show", "mine.json")
    assert shown.returncode == 0
    assert shown.stderr == "gpubench: this run is interrupted: 2 rows\n"
    assert not list(tmp_path.glob("*.journal"))


def test_a_second_signal_does_not_take_what_the_first_left(tmp_path: Path, gates: Gates):
    run, _ = held(tmp_path, gates)
    run.send_signal(signal.SIGINT)
    run.send_signal(signal.SIGTERM)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=LIMIT)
    assert run.returncode in (130, 143)
    (kept,) = saved(tmp_path)
    assert (kept["status"], statuses(kept)) == ("interrupted", ["ok", "ok"])


def test_a_job_in_the_background_does_not_hear_ctrl_c(tmp_path: Path, gates: Gates):
    deaf = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *COMMAND]
    run = start(tmp_path, "run", STEPWISE, *FAKE, env=gates.env, command=deaf)
    gates.told()
    run.send_signal(signal.SIGINT)
    gates.go()
    run.communicate(timeout=LIMIT)
    assert run.returncode == 0
    assert statuses(saved(tmp_path)[0]) == ["ok"] * 5


def test_ctrl_c_before_the_worker_has_a_device_leaves_nothing(tmp_path: Path, gates: Gates):
    shadow = tmp_path / "shadow"
    shadow.mkdir()
    (shadow / "torch.py").write_text(
        "import os\nopen(os.environ['TOY_TELL'], 'w').write(str(os.getpid()))\nopen(os.environ['TOY_GO']).read()\n"
    )
    path = os.pathsep.join([str(shadow), str(Path(__file__).parents[1])])
    run = start(tmp_path, "run", OK, "--device", "cpu", env=gates.env | {"PYTHONPATH": path})
    worker = gates.told()
    run.send_signal(signal.SIGINT)
    out, said = run.communicate(timeout=LIMIT)
    assert (run.returncode, out, said) == (130, "", "gpubench: interrupted\n")
    assert gone(worker)
    assert not (tmp_path / "results").exists()


def test_a_killed_worker_costs_its_case(tmp_path: Path, gates: Gates):
    run, worker = held(tmp_path, gates)
    os.kill(worker, signal.SIGKILL)
    run.communicate(timeout=LIMIT)
    assert run.returncode == 4
    (kept,) = saved(tmp_path)
    assert (kept["status"], statuses(kept)) == ("complete", ["ok", "ok", "error", "ok", "ok"])
    assert kept["records"][2]["reason"] == "the worker ended (SIGKILL)"


def test_a_killed_parent_leaves_its_rows_and_no_worker(tmp_path: Path, gates: Gates):
    run, worker = held(tmp_path, gates)
    run.kill()
    run.communicate(timeout=LIMIT)
    assert gone(worker)
    shown = gpubench(tmp_path, "show", "--json")
    assert shown.returncode == 0
    kept = strict(shown.stdout)
    assert (kept["status"], statuses(kept)) == ("partial", ["ok", "ok"])
    following = gpubench(tmp_path, "run", OK, "-p", "n=1", *FAKE)
    assert following.returncode == 0
    assert following.stderr.startswith("recovered an unfinished run: results/")
    recovered, new = saved(tmp_path)
    assert (recovered["run_id"], statuses(recovered)) == (kept["run_id"], ["ok", "ok"])
    assert new["run_id"] != kept["run_id"]
    assert not list((tmp_path / "results").glob("*.journal"))


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_ctrl_c_on_a_terminal_gives_the_cursor_back(tmp_path: Path, gates: Gates, term: str):
    master, slave = os.openpty()
    run = subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL, *COMMAND, "run", STEPWISE, *FAKE],
        cwd=tmp_path,
        env=environment(tmp_path, TERM=term, **gates.env),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    worker = gates.told()
    os.write(master, b"\x03")
    seen = everything(master)
    os.close(master)
    assert run.wait(timeout=LIMIT) == 130
    assert gone(worker)
    assert b"interrupted after 2 of 5 cases" in seen
    assert statuses(saved(tmp_path)[0]) == ["ok", "ok"]
    if term == "dumb":
        assert HIDE not in seen
        assert b"[2/5] stepwise/held[n=2]" in seen
    else:
        assert b"2/5" in seen
        assert b"[2/5]" not in seen
        assert seen.rfind(SHOW) > seen.rfind(HIDE) >= 0


def everything(terminal: int) -> bytes:
    """What is written to a terminal until its last user has closed it."""
    seen = b""
    while select.select([terminal], [], [], LIMIT)[0]:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # how Linux says so
            return seen
        if not data:
            return seen
        seen += data
    raise AssertionError("the command does not end")


@pytest.fixture
def installed() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signals.install()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def interrupted_while_saving(number: int, steps: list[str], error: Exception | None = None) -> None:
    with signals.undisturbed():
        signal.raise_signal(number)
        if error is not None:
            raise error
        steps.append("saved")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(("number", "kind"), [(signal.SIGTERM, signals.Terminated), (signal.SIGINT, KeyboardInterrupt)])
def test_a_signal_waits_until_what_is_saved_is_saved(number: int, kind: type[BaseException]):
    steps: list[str] = []
    with pytest.raises(kind):
        interrupted_while_saving(number, steps)
    assert steps == ["saved"]
    signal.raise_signal(number)  # the run is on its way out: a second one changes nothing


@pytest.mark.usefixtures("installed")
def test_a_signal_may_be_forgotten():
    with signals.undisturbed(forget=True):
        signal.raise_signal(signal.SIGINT)
    with signals.undisturbed():
        pass


@pytest.mark.usefixtures("installed")
def test_an_error_in_what_is_saved_is_not_hidden_by_a_signal():
    with pytest.raises(ValueError, match="full"):
        interrupted_while_saving(signal.SIGTERM, [], ValueError("full"))


def test_ctrl_c_while_the_commands_are_still_being_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    class Interrupting:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name == "gpubench.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "gpubench.cli.app", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting, *sys.meta_path])
    assert door._run(["list"]) is Exit.SIGINT
    assert capsys.readouterr().err == "gpubench: interrupted\n"
