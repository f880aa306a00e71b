"""Starting is cheap: what a command does not need it does not import. benchmarks/startup.py times the same commands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from builders import make_run, make_sweep

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


def test_compare_loads_no_device_and_no_drawing_library(tmp_path: Path):
    (tmp_path / "run.json").write_bytes(runfile.encode(make_run(make_sweep([256, 512]))))
    loaded = imported(tmp_path, "compare", str(tmp_path / "run.json"), str(tmp_path / "run.json"))
    assert loaded & {"altair", "cupy", "numpy", "pynvml", "scipy", "torch", "vl_convert", "yaml"} == set()


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
