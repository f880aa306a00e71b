"""A project on this very machine whose kernel does as much work as a test chooses: the toy `worked`, measured, kept as
a baseline and checked by the command itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from math import expm1, log
from pathlib import Path
from typing import Any

from gpubench.compare.judge import MIN_HISTORY
from gpubench.executor import with_our_package
from gpubench.stats import prediction_interval

ROOT = Path(__file__).resolve().parents[1]
WORKED = str(ROOT / "tests" / "toys" / "worked.py")
MARGIN = 0.05
LIMIT_S = 180.0
"""What a check may take."""


class Machine:
    """A project with the baselines `main`, five runs of the toy on this machine, and `one`, the newest of them."""

    def __init__(self, folder: Path, device: str) -> None:
        self.folder, self.device = folder, device
        files = [f"{number}.json" for number in range(MIN_HISTORY)]
        for name in files:
            self.measure(name)
        self("baseline", "save", "main", *files)
        self("baseline", "save", "one", files[-1])
        self.runs = [json.loads((folder / name).read_text()) for name in files]

    def __call__(self, *words: str, work: int = 100) -> subprocess.CompletedProcess[str]:
        """A command, whose kernels do so many hundredths of the usual work."""
        env = with_our_package(os.environ) | {
            "GPUBENCH_RESULTS": str(self.folder / "results"),
            "GPUBENCH_DEVICE": self.device,
            "OMP_NUM_THREADS": "1",
            "TOY_WORK": str(work),
        }
        return subprocess.run(
            [sys.executable, "-m", "gpubench", *words], cwd=self.folder, env=env, capture_output=True, text=True
        )

    def measure(self, name: str, work: int = 100) -> None:
        """A run, saved under a name."""
        done = self("run", WORKED, "--ceilings", "none", "-q", "-o", name, work=work)
        assert done.returncode == 0, done.stderr

    def check(self, *words: str, work: int = 100) -> tuple[int, dict[str, dict[str, Any]]]:
        """The exit code of a check and its rows by id; it takes no longer than it may."""
        begun = time.monotonic()
        done = self("check", WORKED, "--margin", f"{MARGIN:.0%}", "--json", *words, work=work)
        took = time.monotonic() - begun
        assert done.stdout, done.stderr
        rows = {row["id"]: row for row in json.loads(done.stdout)["rows"]}
        print(f"{took:.0f} s, exit {done.returncode}", *(f"{row['id']} {row['verdict']}" for row in rows.values()))
        assert took < LIMIT_S
        return done.returncode, rows

    @property
    def strays(self) -> dict[str, float]:
        """By how much, as a share, the next run of each row may differ from those of the baseline."""
        found = {}
        for row in self.runs[0]["records"]:
            records = [next(other for other in run["records"] if other["id"] == row["id"]) for run in self.runs]
            low, high = prediction_interval([log(each["summary"]["median_ns"]) for each in records])
            found[row["id"]] = expm1((high - low) / 2)
        return found
