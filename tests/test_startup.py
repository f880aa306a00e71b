"""Starting is cheap: what a command does not need it does not import. benchmarks/startup.py times the same commands."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from builders import make_run, make_sweep

from gpubench.cli import app
from gpubench.cli.app import COMMANDS
from gpubench.cli.screen import Screen
from gpubench.cli.stored import read
from gpubench.exits import Exit
from gpubench.store import runfile

ROOT = Path(__file__).parents[1]
HEAVY = {"altair", "cupy", "numpy", "pydantic", "pynvml", "torch", "vl_convert", "yaml"}


def imported(tmp_path: Path, *words: str) -> set[str]:
    """The top-level packages that `python -m gpubench WORDS` imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "gpubench", *words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "GPUBENCH_RESULTS": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    assert lines
    return {line.rsplit("|", 1)[1].strip().split(".")[0] for line in lines}


@pytest.mark.parametrize("word", ["--help", "--version", "list"])
def test_help_version_and_list_load_nothing_heavy(tmp_path: Path, word: str):
    assert imported(tmp_path, word) & HEAVY == set()


@pytest.mark.parametrize("word", ["show", "roofline", "claims"])
def test_reading_a_run_loads_nothing_heavy(tmp_path: Path, word: str):
    (tmp_path / "run.json").write_bytes(runfile.encode(make_run(make_sweep([256, 512]))))
    assert imported(tmp_path, word, "run.json") & (HEAVY | {"scipy"}) <= {
        "pydantic",
        "yaml",
    }  # to read it; the catalogue of GPUs


@pytest.mark.parametrize(
    "words",
    [
        ("info", "--device", "fake"),
        ("doctor", "--device", "fake"),
        ("explain", "run.json", "--curve"),
        ("report", "run.json", "--output", "report.md"),
    ],
    ids=lambda words: words[0],
)
def test_commands_that_measure_nothing_load_no_device_library(tmp_path: Path, words: tuple[str, ...]):
    """A kernel cache that cannot be used, a broken CuPy or torch is no concern of theirs."""
    (tmp_path / "run.json").write_bytes(runfile.encode(make_run(make_sweep([256, 512]))))
    assert imported(tmp_path, *words) & {"cupy", "numpy", "pynvml", "torch"} == set()


def test_compare_loads_no_device_and_no_drawing_library(tmp_path: Path):
    (tmp_path / "run.json").write_bytes(runfile.encode(make_run(make_sweep([256, 512]))))
    loaded = imported(tmp_path, "compare", str(tmp_path / "run.json"), str(tmp_path / "run.json"))
    assert loaded & (HEAVY | {"scipy"}) <= {"pydantic"}


@pytest.mark.parametrize(
    ("words", "built"), [(["schema", "--help"], {"schema"}), (["baseline", "--help"], {"baseline"}), (["-h"], COMMANDS)]
)
def test_of_all_commands_only_the_one_that_is_called_is_built(
    words: list[str], built: set[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    seen, get = [], typer.main.get_command

    def spy(application: typer.Typer):
        seen.append(set(get(application).commands))  # type: ignore[attr-defined]
        return get(application)

    monkeypatch.setattr(typer.main, "get_command", spy)
    assert app.call(words) == Exit.DONE
    assert seen == [set(built)]
    assert capsys.readouterr().out.startswith("Usage: gpubench")


def test_what_a_command_has_read_is_no_more_searched_for_garbage(tmp_path: Path):
    (tmp_path / "run.json").write_bytes(runfile.encode(make_run(make_sweep([256, 512]))))
    before = gc.get_freeze_count()
    try:
        read(tmp_path / "run.json", Screen())
        assert gc.get_freeze_count() > before
    finally:
        gc.unfreeze()


def test_import_gpubench_loads_the_standard_library_only(tmp_path: Path):
    program = (
        "import sys; before = set(sys.modules); import gpubench; "
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["gpubench"]
