"""What is around a device, read from a planted machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpubench.surroundings import look


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def seen(root: Path, results: Path | None = None, path: str = "") -> dict[str, Any]:
    return look(results or root, root, {"PATH": path})


def test_a_machine_that_tells_nothing(tmp_path: Path) -> None:
    found = seen(tmp_path)
    for name in ("load", "compiler", "counters_need_root", "traced", "results_problem"):
        assert found[name] is None
    assert found["ncu"] is False
    assert found["cores"] >= 1
    assert found["free_bytes"] > 0


def test_this_machine() -> None:
    found = look(Path.cwd())
    assert found["load"] is None or found["load"] >= 0
    assert found["traced"] in (None, False, True)


@pytest.mark.parametrize(("text", "load"), [("0.50 0.13 0.04 1/333 816\n", 0.5), ("12.00 1 1", 12.0), ("", None)])
def test_load(tmp_path: Path, text: str, load: float | None) -> None:
    write(tmp_path / "proc/loadavg", text)
    assert seen(tmp_path)["load"] == load


@pytest.mark.parametrize(("line", "needed"), [("RmProfilingAdminOnly: 1", True), ("RmProfilingAdminOnly: 0", False)])
def test_who_may_read_counters(tmp_path: Path, line: str, needed: bool) -> None:
    write(tmp_path / "proc/driver/nvidia/params", f"ResmanDebugLevel: 4294967295\n{line}\nEnableMSI: 1\n")
    assert seen(tmp_path)["counters_need_root"] is needed


@pytest.mark.parametrize(("pid", "traced"), [("0", False), ("4711", True)])
def test_a_debugger(tmp_path: Path, pid: str, traced: bool) -> None:
    write(tmp_path / "proc/self/status", f"Name:\tpython\nTracerPid:\t{pid}\n")
    assert seen(tmp_path)["traced"] is traced


def test_tools_on_the_path_and_where_they_are_installed(tmp_path: Path) -> None:
    for name in ("bin/ncu", "bin/clang++"):
        write(tmp_path / name, "")
        (tmp_path / name).chmod(0o755)
    found = seen(tmp_path, path=str(tmp_path / "bin"))
    assert (found["ncu"], found["compiler"]) == (True, "clang++")
    write(tmp_path / "other/opt/nvidia/nsight-compute/2025.3.1/ncu", "")
    assert seen(tmp_path / "other")["ncu"] is True


def test_a_results_folder_that_is_not_there_yet_is_not_made(tmp_path: Path) -> None:
    found = seen(tmp_path, tmp_path / "not/yet")
    assert (found["results_problem"], found["free_bytes"] > 0) == (None, True)
    assert list(tmp_path.iterdir()) == []


def test_a_results_folder_that_cannot_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "file", "")
    assert seen(tmp_path, tmp_path / "file")["results_problem"] == "would lie in a file"
    assert seen(tmp_path, tmp_path / ("x" * 300))["results_problem"] == "cannot be used: File name too long"
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert seen(tmp_path)["results_problem"] == "cannot be written"
