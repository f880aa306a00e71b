"""Real processes of the two sides, on the fake device: where they find libraries that the PYTHONPATH leads to."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from gpubench.ab import sides
from gpubench.cli import ab_session
from gpubench.cli.ab_session import Stand, time_for
from gpubench.discovery import Library
from gpubench.errors import DeviceUnavailable
from gpubench.plan import Plan, cases, select
from gpubench.result import USUAL, Record
from gpubench.runner import Effort
from gpubench.sampling import Stopping
from gpubench.settings import Settings, resolve

SUITE = '''"""A row that needs a library."""

from lent import ONE

from gpubench import Axis, Suite, Workload

suite = Suite(__file__)


@suite.benchmark(n=Axis([1]))
def needs(device, n):
    """n microseconds."""
    out = device.unwritten(n, "float32")

    def run():
        out[:] = [ONE] * n
        device.spend(1000 * n)

    return Workload(run=run, output=out, reference=lambda: [1.0] * n, reference_name="ones")
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A suite, and a library of it that only PYTHONPATH leads to; `bin/python` is another interpreter."""
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    (libraries / "lent.py").write_text("ONE = 1.0\n")
    (tmp_path / "needing.py").write_text(SUITE)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.syspath_prepend(str(libraries))
    monkeypatch.setenv("PYTHONPATH", str(libraries))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("lent", None)


def measured(folder: Path, *new: str) -> tuple[Record, Record]:
    """The row in a process of either side, of which the new one is as it is said."""
    library = Library()
    selected = select(["./needing.py"], library)
    (case,) = cases(selected, "fake", conditions=USUAL.by_name)
    sided = {"base": sides.parse("--base", []), "new": sides.parse("--new", new)}
    found = []
    with ExitStack() as stack:
        stand = Stand(settings(folder), selected, library, sided, "fake", stack)  # type: ignore[arg-type]
        for name in ("base", "new"):
            with closing(stand.opened(name)) as process:
                last = list(process.measure(case, Effort(Stopping(samples=10))))[-1]
                assert isinstance(last, Record)
                found.append(last)
    return found[0], found[1]


def settings(folder: Path) -> Settings:
    """Those of a command that was given none."""
    return resolve({}, None, {}, folder)


def test_both_sides_find_what_the_parents_path_leads_to(folder: Path) -> None:
    base, new = measured(folder, "env:TOY=1")
    assert (base.status, new.status) == ("ok", "ok"), (base.reason, new.reason)


def test_another_interpreter_has_the_path_too_unless_it_is_taken_away(folder: Path) -> None:
    base, new = measured(folder, "python=bin/python")
    assert (base.status, new.status) == ("ok", "ok"), (base.reason, new.reason)
    base, new = measured(folder, "python=bin/python", "env:PYTHONPATH=")
    assert (base.status, new.status) == ("ok", "error")
    assert "No module named 'lent'" in str(new.reason)


def test_a_path_of_a_sides_own_stands_in_for_the_parents(folder: Path) -> None:
    (folder / "others").mkdir()
    (folder / "others" / "lent.py").write_text("ONE = 2.0\n")
    base, new = measured(folder, f"env:PYTHONPATH={folder / 'others'}")
    assert (base.status, new.status) == ("ok", "incorrect"), (base.reason, new.reason)


def test_the_process_that_does_not_start_is_of_the_side_that_is_named(folder: Path) -> None:
    (folder / "bin" / "broken").write_text("#!/bin/sh\nexit 1\n")
    (folder / "bin" / "broken").chmod(0o755)
    with pytest.raises(DeviceUnavailable, match=r"^--new: the worker did not start"):
        measured(folder, "python=bin/broken")


def test_another_interpreter_gets_a_folder_with_this_gpubench_and_nothing_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever lies beside ours, such as torch, would be taken for its own; this interpreter needs none."""
    started: list[dict[str, Any]] = []

    def process(*words: object, **options: Any) -> None:
        started.append(options)

    monkeypatch.setattr(ab_session, "WorkerProcess", process)
    library = Library()
    sided = {"base": sides.parse("--base", []), "new": sides.parse("--new", ["python=bin/python"])}
    with ExitStack() as stack:
        stand = Stand(settings(folder), select(["./needing.py"], library), library, sided, "fake", stack)  # type: ignore[arg-type]
        for name in ("base", "new"):
            stand.opened(name)
        base, new = started
        assert (base["python"], base["package"]) == (sys.executable, None)
        assert new["python"] == str(folder / "bin" / "python")
        assert [path.name for path in new["package"].iterdir()] == ["gpubench"]


@pytest.mark.parametrize(
    ("flags", "plan", "seconds"),
    [({}, {}, None), ({"max_time": "90s"}, {"max_time": 180.0}, 90.0), ({}, {"max_time": 180.0}, 3600.0)],
    ids=["nobody says", "a flag says", "a plan says"],
)
def test_a_plan_s_time_is_that_of_one_run_of_many(
    tmp_path: Path, flags: dict[str, object], plan: dict[str, object], seconds: float | None
) -> None:
    """Ten blocks of a suite that takes 13 s a process do not fit into the 180 s of its plan."""
    assert time_for(resolve(flags, Plan("mine", None, {}, budget=plan), {}, tmp_path), 10) == seconds


def test_the_time_of_the_project_s_file_is_that_of_one_run_too(tmp_path: Path) -> None:
    """It is a plan: the 60 s that a check may take would end its pairs after five of ten blocks."""
    (tmp_path / "gpubench.yaml").write_text("budget: {max_time: 60s}\n")
    assert time_for(resolve({}, None, {}, tmp_path), 10) == 1200
    assert time_for(resolve({}, None, {"GPUBENCH_MAX_TIME": "90s"}, tmp_path), 10) == 90
