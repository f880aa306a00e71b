"""The command as its user meets it: a process of its own, with nothing of ours in its environment or its folder.

`within` is the same within this process, a second quicker: for what the words alone decide. What belongs to a process,
its signals, streams, encodings and imports, only `gpubench` and `start` show.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from gpubench.cli import door

ROOT = Path(__file__).parents[1]
TOYS = Path(__file__).parent / "toys"
OK, FAULTS, STEPWISE, LARGE, BRACKETS, PACED = (
    str(TOYS / f"{name}.py") for name in ("ok", "faults", "stepwise", "large", "brackets", "paced")
)
FAKE = ("--device", "fake")
COMMAND = [sys.executable, "-P", "-m", "gpubench"]
LIMIT = 60.0
"""Seconds after which a command, or what is waited for, is given up: a failure, never a pause."""


def environment(folder: Path, **more: str) -> dict[str, str]:
    """The variables of a command run in `folder`: HOME and the results are inside it."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT),
        "GPUBENCH_RESULTS": str(folder / "results"),
        "COLUMNS": "80",
        **more,
    }


def gpubench(
    folder: Path, *words: str | bytes, env: Mapping[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, in `folder`."""
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL} | options
    return subprocess.run(
        [*COMMAND, *words],
        cwd=folder,
        env=environment(folder, **(env or {})),
        encoding="utf-8",
        errors="surrogateescape",
        timeout=LIMIT,
        **given,
    )


def within(folder: Path, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The command run in `folder` by this process: the same variables, both streams, and its exit status."""
    out, said = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, environment(folder, **(env or {})), clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(said),
    ):
        code = door._run(list(words))
    texts = []
    for stream in (out, said):
        stream.seek(0)
        texts.append(stream.read())
    return subprocess.CompletedProcess(words, int(code), *texts)


def start(folder: Path, *words: str, env: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[str]:
    """Start the command, in `folder`."""
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL} | options
    command = given.pop("command", COMMAND)
    return subprocess.Popen(
        [*command, *words], cwd=folder, env=environment(folder, **(env or {})), encoding="utf-8", **given
    )


class Gates:
    """The two FIFOs of a toy: `told` waits for what it tells, `go` lets it go on."""

    def __init__(self, folder: Path) -> None:
        self.tell, self.open = folder / "tell", folder / "go"
        for path in (self.tell, self.open):
            os.mkfifo(path)
        self._reader = os.open(self.tell, os.O_RDONLY | os.O_NONBLOCK)

    @property
    def env(self) -> dict[str, str]:
        """What the toy needs to find them."""
        return {"TOY_TELL": str(self.tell), "TOY_GO": str(self.open)}

    def told(self) -> int:
        """The process id of the worker whose case waits."""
        ready, _, _ = select.select([self._reader], [], [], LIMIT)
        assert ready, "the toy told nothing"
        return int(os.read(self._reader, 100))

    def go(self) -> None:
        """Let the toy go on."""
        with open(self.open, "w"):
            pass

    def close(self) -> None:
        """Close what is open."""
        os.close(self._reader)


def gone(pid: int) -> bool:
    """Whether a process ends, waiting for it within the limit; it need not be a child."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], LIMIT)[0])
    finally:
        os.close(descriptor)


def strict(text: str) -> Any:
    """The one JSON document a text is: no NaN, no key twice, nothing after it."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(found)) == len(found), "a key is given twice"
        return dict(found)

    def constant(token: str) -> None:
        raise AssertionError(f"{token} is not JSON")

    return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)


def saved(folder: Path) -> list[dict[str, Any]]:
    """The run files in the results folder, oldest first."""
    runs = [strict(path.read_text()) for path in (folder / "results").glob("*.json")]
    return sorted(runs, key=lambda run: run["started_at"])


def statuses(run: Mapping[str, Any]) -> list[str]:
    """The status of each row."""
    return [record["status"] for record in run["records"]]


def one_line(text: str) -> bool:
    """Whether a text is a single printable line."""
    return text.count("\n") == 1 and text.endswith("\n") and text[:-1].isprintable()
