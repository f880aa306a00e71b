"""ab as its user meets it: sides, exit codes, the file and what compare says of it later. Its processes are scripted,
within this one; tests/slow/test_ab.py starts real ones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import pytest
from ab_parts import noisy
from command import FAKE, OK, ROOT, TOYS, one_line, strict, within

from gpubench.cli import ab_session
from gpubench.errors import DeviceLost, DeviceUnavailable
from gpubench.executor import InProcess
from gpubench.runner import Effort, Progress
from gpubench.suite import Case
from gpubench.testing import FakeDevice

SIDED = str(TOYS / "sided.py")
SHORT = ("--samples", "11", "--blocks", "8", *FAKE)


class Here(InProcess):
    """A process of a side, in this one: with its variables, and noise that is its own."""

    started = 0
    interrupts: int | None = None
    ends: Mapping[int, BaseException | str] = {}
    """What the n-th process is instead: an error, or one on a device of that UUID."""
    asked: ClassVar[list[tuple[Any, ...]]] = []

    def __init__(self, device: str, bench: Any, timeout: float, *, environment: dict[str, str], **options: Any) -> None:
        Here.started += 1
        Here.asked.append((device, timeout, options["timer"]))
        end = Here.ends.get(Here.started)
        if "TOY_ABSENT" in environment:
            raise DeviceUnavailable("no CUDA device", "gpubench info")
        if isinstance(end, BaseException):
            raise end
        timers = ("fake",) if options["timer"] == "auto" else (options["timer"],)
        super().__init__(FakeDevice(noise=noisy(1, Here.started, 0.001), timers=timers), bench)
        self.environment = environment
        known = {"uuid": end or environment.get("TOY_UUID", "FAKE-0"), "kind": environment.get("TOY_KIND", "fake")}
        self.hello.facts.update(known)  # type: ignore[attr-defined]

    def measure(self, case: Case, effort: Effort) -> Iterator[Progress | Any]:
        if Here.started == Here.interrupts:
            raise KeyboardInterrupt
        with mock.patch.dict(os.environ, self.environment):
            yield from super().measure(case, effort)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> type[Here]:
    monkeypatch.setattr(ab_session, "WorkerProcess", Here)
    monkeypatch.setattr(ab_session.secrets, "randbits", lambda bits: 7)  # the order, and so each side's noise
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # thousands of rows wait for a disk otherwise
    monkeypatch.setattr(Here, "started", 0)
    monkeypatch.setattr(Here, "interrupts", None)
    monkeypatch.setattr(Here, "ends", {})
    monkeypatch.setattr(Here, "asked", [])
    return Here


@pytest.mark.parametrize(
    ("words", "code", "verdict"),
    [
        (("--new", "env:TOY_TIMES=1.05"), 3, "2 regression"),
        (("--base", "env:TOY_TIMES=1.05"), 0, "2 improvement"),
        (("--new", "env:TOY_TIMES=1.001"), 0, "2 equivalent"),
        (("--new", "env:TOY_TIMES=1.05", "--margin", "10%"), 0, "2 equivalent"),
        (("--new", "env:TOY_TIMES=1.03"), 6, "2 inconclusive"),
        (("--new", "env:TOY_TIMES=1.03", "--fail-on", "regression"), 0, "2 inconclusive"),
        (("--new", "env:TOY_FAILS=2"), 4, "1 failed · 1 equivalent"),
        (("--base", "env:TOY_FAILS=2"), 0, "1 fixed · 1 equivalent"),
        (("--base", "env:TOY_FAILS=2", "--new", "env:TOY_FAILS=2", "-p", "n=2"), 5, "1 still failing"),
        (("--new", "env:TOY_TIMES=1.2", "--quick"), 0, "2 regression"),
    ],
)
def test_exit_codes(tmp_path: Path, words: tuple[str, ...], code: int, verdict: str) -> None:
    done = within(tmp_path, "ab", SIDED, *SHORT, *words)
    assert done.returncode == code, done.stderr
    assert done.stdout.splitlines()[-1].endswith(f"matched · {verdict}")
    assert "internal error" not in done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_file_says_the_same_later(tmp_path: Path) -> None:
    first = within(tmp_path, "ab", SIDED, *SHORT, "--new", "env:TOY_TIMES=1.05", "-o", "x.json")
    again = within(tmp_path, "compare", "x.json")
    assert (again.returncode, again.stdout) == (first.returncode, first.stdout) == (3, first.stdout)
    assert first.stdout.startswith("base     as it is · Fake device · ")
    assert "\nnew      env:TOY_TIMES=1.05 · Fake device · " in first.stdout
    assert "8 of 8 blocks, each a fresh process of either side" in first.stdout
    lines = first.stderr.splitlines()
    assert sum(line.startswith("block ") for line in lines) == 8
    assert re.fullmatch(
        r"block 1 of 8 · 2 rows · (base|new) \d+\.\d s, (base|new) \d+\.\d s · at most \d+ s left", lines[0]
    )
    assert lines[-3:-1] == ["saved x.json", "gpubench: regression (exit 3): 2 matched · 2 regression"]
    assert re.fullmatch(r"next  gpubench compare x.json --why 'n=[12]'", lines[-1])
    why = within(tmp_path, "compare", "x.json", "--why", "n=2")
    assert why.returncode == 3
    assert why.stdout.splitlines()[1] == "verdict      regression: worse by more than the margin of 3 % (margin 3 %)"
    assert len(re.findall(r"^block \d ", why.stdout, re.MULTILINE)) == 8
    assert "next " not in why.stderr
    assert within(tmp_path, "compare", "x.json", "--margin", "10%").returncode == 0
    assert within(tmp_path, "compare", "x.json", env={"GPUBENCH_MARGIN": "10%"}).returncode == 0
    assert within(tmp_path, "compare", "x.json", "--json").returncode == 3
    refused = within(tmp_path, "show", "x.json")
    assert refused.returncode == 2
    assert refused.stderr == "gpubench: x.json: an A/B measurement, not a run (gpubench compare x.json)\n"


def test_a_verdict_later_is_that_of_then_whatever_the_project_says(tmp_path: Path) -> None:
    settings = tmp_path / "gpubench.yaml"
    settings.write_text("margins: {sided: 1%}\n")
    first = within(tmp_path, "ab", SIDED, *SHORT, "--new", "env:TOY_TIMES=1.02", "--margin", "4%", "-o", "x.json")
    assert first.returncode == 3
    settings.write_text("margin: 10%\nmargins: {sided: 20%}\n")
    again = within(tmp_path, "compare", "x.json")
    assert (again.returncode, again.stdout) == (3, first.stdout)
    why = within(tmp_path, "compare", "x.json", "--why", "n=2")
    assert why.stdout.splitlines()[1] == "verdict      regression: worse by more than the margin of 1 % (margin 1 %)"
    assert within(tmp_path, "report", "x.json", "-o", "x.md").returncode == 0
    assert (tmp_path / "x.md").read_text().startswith("### 2 matched · 2 regression")


def test_what_github_is_told_may_stand_in_the_project_s_file(tmp_path: Path) -> None:
    given = {"GITHUB_ACTIONS": "true"}
    words = ("ab", SIDED, *SHORT, "--new", "env:TOY_TIMES=1.05")
    assert "::error" in within(tmp_path, *words, env=given).stderr
    assert "::error" not in within(tmp_path, *words, env=given | {"GPUBENCH_ANNOTATE": "none"}).stderr
    assert "::error" not in within(tmp_path, *words, env={"GITHUB_ACTIONS": "false"}).stderr


def test_documents_and_exports(tmp_path: Path) -> None:
    words = ("--new", "env:TOY_TIMES=1.05", "--json", "--export", "x.xml", "--summary", "s.md", "--annotate", "github")
    done = within(tmp_path, "ab", SIDED, *SHORT, *words)
    content = strict(done.stdout)
    assert (content["base"]["name"], content["new"]["name"]) == ("as it is", "env:TOY_TIMES=1.05")
    assert content["details"]["exit_code"] == 3
    assert len(content["rows"][0]["paired"]["medians"]) == 8
    assert 'failures="2"' in (tmp_path / "x.xml").read_text()
    assert "2 regression" in (tmp_path / "s.md").read_text()
    assert "::error title=gpubench regression::" in done.stderr
    (saved,) = (tmp_path / "results" / "ab").glob("*.json")
    assert f"saved results/ab/{saved.name}" in done.stderr.splitlines()
    assert not list((tmp_path / "results" / "ab").glob("*.journal"))


def test_every_key_of_the_document_is_told(tmp_path: Path) -> None:
    pages = "".join((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("compare", "ab"))
    told = set(re.findall(r"`(?:rows\[\]\.)?([a-z_]+)(?:\[\])?`", pages)) | {"schema"}
    content = strict(within(tmp_path, "ab", SIDED, *SHORT, "--new", "env:TOY_TIMES=1.05", "--json").stdout)
    (row, _) = content["rows"]
    for part in (content, content["details"], content["new"], row, row["changes"][0], row["base"], row["paired"]):
        assert part.keys() <= told, part.keys() - told


def test_two_sides_that_are_alike_are_said_to_be(tmp_path: Path) -> None:
    done = within(tmp_path, "ab", SIDED, *SHORT)
    assert done.returncode == 0
    assert done.stderr.startswith("both sides are as they are: an A/A measurement")


def test_which_rows_are_shown(tmp_path: Path) -> None:
    words = ("ab", SIDED, *SHORT, "--new", "env:TOY_TIMES=1.05", "--margin", "10%")
    every, changed = (within(tmp_path, *words, flag).stdout for flag in ("--all", "--only-changed"))
    assert [sum(line.startswith("n=") for line in text.splitlines()) for text in (every, changed)] == [2, 0]
    every, changed = (within(tmp_path, *words, flag, "--format", "md").stdout for flag in ("--all", "--only-changed"))
    assert [text.count("\n| n=") for text in (every, changed)] == [2, 0]


def test_an_interruption_loses_nothing(tmp_path: Path, here: type[Here]) -> None:
    here.interrupts = 8  # two to begin with, then the fourth block's second
    words = ("-o", "x.json", "--new", "env:TOY_TIMES=1.05", "--export", "said.json")
    done = within(tmp_path, "ab", SIDED, *SHORT, *words)
    assert (done.returncode, "(exit " in done.stderr) == (130, False)
    assert strict((tmp_path / "said.json").read_text())["details"]["exit_code"] == 130
    assert "gpubench: interrupted after 2 of 8 blocks" in done.stderr.splitlines()
    kept = strict((tmp_path / "x.json").read_text())
    assert (kept["status"], kept["ending"], len(kept["records"])) == ("interrupted", None, 2 * 2 * 2 + 2)
    assert [block["unused"] for block in kept["blocks"]] == [None, None, "not finished"]
    assert done.stdout.splitlines()[-1] == "2 matched · 2 inconclusive"
    again = within(tmp_path, "compare", "x.json")
    assert again.returncode == 4, "what was broken off passes no gate later either"
    assert again.stdout == done.stdout
    assert within(tmp_path, "compare", "x.json", "--fail-on", "none").returncode == 4


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        (DeviceUnavailable("no CUDA device"), 4, "no CUDA device"),
        (DeviceLost("the device is lost"), 4, "the device is lost"),
        ("FAKE-1", 7, "on another device, uuid FAKE-1 instead of FAKE-0"),
        (ZeroDivisionError("a bug"), 1, "internal error"),
    ],
)
def test_what_breaks_it_off_decides_the_exit_code_and_takes_no_row(
    tmp_path: Path, here: type[Here], end: BaseException | str, code: int, said: str
) -> None:
    here.ends = {7: end}  # two to begin with, then the third block's first
    words = ("--new", "env:TOY_TIMES=1.05", "-o", "x.json", "--fail-on", "none")
    done = within(tmp_path, "ab", SIDED, *SHORT, *words)
    assert done.returncode == code
    assert said in done.stderr
    kept = strict((tmp_path / "x.json").read_text())
    assert (kept["status"], kept["ending"], len(kept["records"])) == ("partial", None, 2 * 2 * 2)
    if code != 1:
        assert done.stdout.splitlines()[-1] == "2 matched · 2 inconclusive"
        assert within(tmp_path, "compare", "x.json").returncode == 4


@pytest.mark.parametrize(("end", "code"), [(DeviceLost("the device is lost"), 4), ("FAKE-1", 7)])
def test_what_breaks_it_off_before_the_first_row(
    tmp_path: Path, here: type[Here], end: BaseException | str, code: int
) -> None:
    here.ends = {3: end}
    done = within(tmp_path, "ab", SIDED, *SHORT)
    assert (done.returncode, done.stdout, done.stderr.splitlines()[-1]) == (
        *(code, "", "nothing was measured, nothing is saved"),
    )


def test_the_file_keeps_the_order_and_what_ended_it(tmp_path: Path, here: type[Here]) -> None:
    variable = "env:NVIDIA_TF32_OVERRIDE=1"
    within(tmp_path, "ab", SIDED, *SHORT, "-o", "x.json", "--new", variable, "--max-time", "0.001s")
    kept = strict((tmp_path / "x.json").read_text())
    assert (kept["order_seed"], kept["ending"], len(kept["blocks"])) == (7, "time budget", 1)
    told = {side: kept[side]["fingerprint"]["environment"]["variables"] for side in ("base", "new")}
    assert "NVIDIA_TF32_OVERRIDE" not in told["base"]
    assert told["new"]["NVIDIA_TF32_OVERRIDE"] == "1"


def test_every_process_is_on_the_very_device_of_the_first(
    tmp_path: Path, here: type[Here], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ab_session, "warn_if_busy", lambda kind, screen: None)
    words = ("--timer", "event", "--timeout", "7s")
    for kind, device in (("cuda", "FAKE-0"), ("cpu", "cpu")):
        here.asked.clear()
        within(tmp_path, "ab", SIDED, *SHORT, *words, env={"TOY_KIND": kind})
        assert here.asked == [("fake", 7.0, "event")] + [(device, 7.0, "event")] * 17


def test_every_flag_of_measuring_is_heard(tmp_path: Path) -> None:
    flags = {
        "cache": "hot", "load": "burst", "data": "zeros", "seed": "5", "timer": "event", "samples": "12",
        "max-noise": "2%", "max-time": "1h", "case-time": "0.3s", "timeout": "9s",
    }  # fmt: skip
    words = [word for name, value in flags.items() for word in (f"--{name}", value)]
    done = within(tmp_path, "ab", SIDED, *FAKE, "--blocks", "8", *words, "--tag", "mine", "--quick", "-o", "x.json")
    assert done.returncode == 0, done.stderr
    kept = strict((tmp_path / "x.json").read_text())
    heard = {each["origin"] for each in kept["settings"].values()}
    assert {f"--{name}" for name in (*flags, "tag", "quick", "device")} <= heard
    assert {tuple(record["conditions"].values()) for record in kept["records"]} == {("hot", "burst", "zeros")}
    assert {len(record["samples"]["gpu_ns"]) for record in kept["records"]} == {12}
    assert kept["tags"] == ["mine", "quick"]


def test_an_interruption_before_the_first_row_has_no_result(tmp_path: Path, here: type[Here]) -> None:
    here.interrupts = 3
    done = within(tmp_path, "ab", SIDED, *SHORT)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.splitlines()[-2:] == [
        "gpubench: interrupted after 0 of 8 blocks",
        "nothing was measured, nothing is saved",
    ]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "nothing is said to be measured (gpubench ab --new SIDE matmul-sweep)"),
        ((SIDED, "--blocks", "3"), 2, "--blocks: '3' is not an integer from 8 to 1000 (a verdict needs 8 at least)"),
        ((SIDED, "--new", "fast.cu"), 2, "--new fast.cu: not a side (python=PATH, env:NAME=VALUE or kernel=FILE.cu)"),
        ((SIDED, "--new", f"kernel={TOYS / 'kernels' / 'scale.cu'}"), 2, "sided has no .cu file of kernels to replace"),
        ((SIDED, "--new", "env:TOY_ABSENT=1"), 2, "--new: no CUDA device (gpubench info)"),
        ((SIDED, "--new", "env:TOY_UUID=FAKE-1"), 7, "new: on another device, uuid FAKE-1 instead of FAKE-0"),
        ((SIDED, "--fail-on", "slow"), 2, "--fail-on: no verdict 'slow'"),
        ((SIDED, "--export", "x.svg"), 2, "no export of that form"),
        ((SIDED, "--export", "none/x.json"), 2, "--export none/x.json: there is no folder"),
        ((SIDED, "--summary", "none/x.md"), 2, "--summary none/x.md: there is no folder"),
    ],
)
def test_what_cannot_be_measured_is_said_in_one_line(
    tmp_path: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    done = within(tmp_path, "ab", *words, *FAKE)
    assert (done.returncode, done.stdout) == (code, "")
    assert one_line(done.stderr)
    assert said in done.stderr
    assert not (tmp_path / "results").exists()


def test_a_device_that_neither_side_has_is_no_fault_of_a_side(tmp_path: Path) -> None:
    done = within(tmp_path, "ab", SIDED, *SHORT, env={"TOY_ABSENT": "1"})
    assert (done.returncode, done.stderr) == (2, "gpubench: no CUDA device (gpubench info)\n")


def test_a_dry_run_tells_cases_and_processes(tmp_path: Path) -> None:
    done = within(tmp_path, "ab", SIDED, *FAKE, "--new", "env:A=1", "--dry-run")
    assert (done.returncode, done.stdout) == (0, "sided/told[n=1]\nsided/told[n=2]\n")
    assert done.stderr == "2 cases in 20 processes, at most 20 s of samples; starts and checks come on top\n"
    done = within(tmp_path, "ab", OK, *FAKE, "--new", "env:A=1", "--dry-run", "--quick", "--samples", "11")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2), "an axis has two quick values"
    hot = within(tmp_path, "ab", SIDED, *FAKE, "-p", "n=1", "--dry-run", env={"GPUBENCH_CACHE": "hot"})
    assert hot.stdout == "sided/told[cache=hot,n=1]\n"
    typed = within(tmp_path, "ab", OK, *FAKE, "--dtype", "float64", "-p", "n=3", "--dry-run")
    assert typed.stdout == "ok/double[dtype=float64,n=3]\n"
    assert done.stderr == "2 cases in 20 processes; starts and checks come on top\n"
    assert not (tmp_path / "results").exists()
