"""The pool of a self-check: runs of the same rows, each in a fresh process, in one file that grows.

Every line of the file is the document of one `gpubench.run/1`. It is appended when its process has ended, and a line
that was cut short is no run: after Ctrl-C, or a power failure, the pool goes on with what is whole.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from gpubench.result import Run
from gpubench.store import jsonfile, runfile

FOLDER = "selfcheck"
"""Beside the run files."""
ELSEWHERE = "another place: --results DIR"
"""What to type where the pool cannot be written."""


class Pool:
    """The runs in a file, which need not exist yet. UsageError where a line of it is not a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs: list[Run] = []
        if path.exists():
            lines = jsonfile.read_bytes(path).split(b"\n")[:-1]  # what follows the last newline was cut short
            where = jsonfile.shown(path)
            self.runs = [runfile.decode(line, f"{where}, line {number}") for number, line in enumerate(lines, 1)]

    def check_writable(self) -> None:
        """Before anything is measured: UsageError where nothing can be appended."""
        self._append(b"")

    def add(self, run: Run) -> None:
        """Append a run. UsageError where it cannot be written; those before it stay readable."""
        self._append(jsonfile.dumps(runfile.to_json(run)).encode() + b"\n")
        self.runs.append(run)

    def _append(self, line: bytes) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, "ab") as file:
                file.truncate(_whole(self.path))
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise jsonfile.cannot_write(self.path, error, ELSEWHERE) from None


def path_of(results: Path, kind: str, parts: Sequence[str]) -> Path:
    """The file of a pool: one for everything that its processes must have in common, given as texts, so that another
    driver, another version or other rows begin another pool."""
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    return results / FOLDER / f"{kind}-{digest}.jsonl"


def _whole(path: Path) -> int:
    """The length of a file's whole lines."""
    return path.read_bytes().rfind(b"\n") + 1
