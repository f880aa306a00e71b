"""A process that uses the device beside the run: started in a session of its own, followed by what it tells in a file,
ended where it takes too long."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpubench.executor import LISTEN_S, OPEN_TIMEOUT, with_our_package
from gpubench.store import jsonfile

ENDING_S = 60.0
"""Seconds that a process may take to write what it found, once its last case has ended."""
MOST_BYTES = 2**28
"""Of what a process may write to one file."""
LAST_LINES = 20
"""Of what a process said, passed on to who asked for --debug."""

Tell = Callable[[str], None]


class Failed(Exception):
    """The process brought nothing; the message is the reason."""


@dataclass(frozen=True)
class Watch:
    """How a process is followed: `timeout` is what a case may take, in seconds, and `seen` gets the number of cases
    done, those `before` this process among them, several times a second."""

    timeout: float
    seen: Callable[[int], None] = lambda done: None
    before: int = 0


def python(module: str, request: Path) -> list[str]:
    """The command line of one of our modules, given the file that holds its request."""
    return [sys.executable, "-P", "-u", "-m", module, str(request)]


def wait(what: str, words: Sequence[str], said: Path, told: Path, watch: Watch, environ: Mapping[str, str]) -> None:
    """Run the command to its end, with what it says in the file `said`. Failed where it cannot be started, or where the
    file `told` does not grow for longer than a case and writing may take; killed then, as by Ctrl-C. `what` is its name
    in messages."""
    env = with_our_package(environ) | {"LC_ALL": "C.UTF-8"}  # no thousands separators in ncu's numbers
    with open(said, "wb") as sink:
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env=env, start_new_session=True
            )
        except OSError as error:
            raise Failed(f"{what} cannot be started: {error.strerror}") from error
        size, done, deadline = 0, 0, time.monotonic() + max(OPEN_TIMEOUT, watch.timeout + ENDING_S)
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(LISTEN_S)
                    return
                if told.stat().st_size != size:
                    size, deadline = told.stat().st_size, time.monotonic() + watch.timeout + ENDING_S
                    done = sum(label.isdigit() for label in messages(text(told)))
                watch.seen(watch.before + done)
                if time.monotonic() > deadline:
                    raise Failed(f"{what} was given up: a case took longer than {watch.timeout:g} s (--timeout)")
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def text(path: Path) -> str:
    """What is in a file, of at most MOST_BYTES; nothing where there is none."""
    try:
        with open(path, "rb") as file:
            return file.read(MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""


def messages(told: str) -> dict[str, Any]:
    """Label → what was told of it, a line of JSON each. A last line cut short was not told."""
    found: dict[str, Any] = {}
    for line in told.split("\n")[:-1]:
        found |= jsonfile.loads(line.encode(), "what a process told")
    return found


def pass_on(said: str, tell: Tell | None) -> None:
    """Give the last lines that a process said to who wants them."""
    if tell is not None:
        for line in said.splitlines()[-LAST_LINES:]:
            tell(line)
