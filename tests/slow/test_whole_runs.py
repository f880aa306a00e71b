"""Whole runs as README has a user make them, on the CPU of this machine: measured, checked, saved, drawn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpubench.executor import with_our_package


def gpubench(folder: Path, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    env = with_our_package(os.environ) | {"GPUBENCH_RESULTS": str(folder / "results"), "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-m", "gpubench", *words], cwd=folder, env=env, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == status, done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the CPU's matmul curve was measured."""
    folder = tmp_path_factory.mktemp("sweep")
    gpubench(folder, "run", "matmul-sweep", "--device", "cpu", "--plain")
    return folder


def test_the_sweep_measures_every_size(folder: Path) -> None:
    run = json.loads(gpubench(folder, "show", "--json", "-q").stdout)
    assert run["status"] == "complete"
    assert len(run["records"]) == 41
    assert {record["status"] for record in run["records"]} == {"ok"}
    for record in run["records"]:
        assert len(record["samples"]["gpu_ns"]) >= 10
        assert 0 < record["check"]["error"] <= record["check"]["tolerance"]


def test_work_grows_faster_than_the_clock_can_wobble(folder: Path) -> None:
    """1024 is 64 times the flops of 256: no machine, however busy, does it in the time of one."""
    run = json.loads(gpubench(folder, "show", "--json", "-q").stdout)
    time = {record["params"]["n"]: min(record["samples"]["gpu_ns"]) for record in run["records"]}
    assert time[1024] > 8 * time[256]


def test_its_rows_stand_under_the_roofs_of_this_machine(folder: Path) -> None:
    view = json.loads(gpubench(folder, "roofline", "--json", "-q").stdout)
    assert len(view["points"]) == 41
    kinds = {ceiling["kind"] for ceiling in view["ceilings"]}
    assert kinds == {"bandwidth", "compute"}
    text = gpubench(folder, "roofline", "-q").stdout
    assert "FLOP/B" in text
    assert not any(word in text for word in ("GPU", "SM ", "HBM"))


def test_the_next_run_reuses_the_ceilings(folder: Path) -> None:
    done = gpubench(folder, "run", "matmul-sweep", "-p", "n=64", "--device", "cpu", "--plain")
    assert "measuring the ceilings" not in done.stderr
    (ceiling, *_) = json.loads(gpubench(folder, "show", "--json", "-q").stdout)["ceilings"]
    assert ceiling["source"] in ("stored", "measured")


def test_the_quick_plan_runs_without_words(tmp_path: Path) -> None:
    done = gpubench(tmp_path, "run", "--device", "cpu", "--plain", "--json")
    run = json.loads(done.stdout)
    assert "quick" in run["tags"]
    statuses = {record["status"] for record in run["records"]}
    assert statuses <= {"ok", "skipped"}
    assert "ok" in statuses
