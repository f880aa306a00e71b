"""Everything that can happen to a case, one name each: -p how=NAME, while it runs or, with -p when=prepare, before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from gpubench import Axis, Skip, Suite, Unsupported, Workload

suite = Suite(__file__)


def _raise(error: BaseException) -> None:
    raise error


def _chatter() -> None:
    """Print as a library might: by Python's streams and by the bare descriptors below them; and read what is there."""
    print("chatter on stdout")
    print("chatter on stderr", file=sys.stderr)
    os.write(1, b'{"record": "not one"}\n')
    os.write(2, b"\xff\xfe not UTF-8\n")
    assert sys.stdin.read() == ""


def _kill(number: int) -> None:
    os.kill(os.getpid(), number)
    signal.pause()


def _orphan() -> None:
    """Leave a process behind that holds the worker's stderr open until TOY_GO is closed."""
    subprocess.Popen(["cat", os.environ["TOY_GO"]], stdout=subprocess.DEVNULL, start_new_session=True)
    os._exit(3)


FAULTS: dict[str, Callable[[], None]] = {
    "none": lambda: None,
    "chatter": _chatter,
    "exception": lambda: _raise(RuntimeError("planted")),
    "markup": lambda: _raise(RuntimeError("two\nlines [/bold] and \x1b[31mred")),
    "skip": lambda: _raise(Skip("no [/bold] today")),
    "unsupported": lambda: _raise(Unsupported("needs a [dark] moon")),
    "systemexit": lambda: _raise(SystemExit(3)),
    "lost": lambda: _raise(ConnectionError("fell off the bus")),
    "exit": lambda: os._exit(3),
    "kill": lambda: _kill(signal.SIGKILL),
    "segv": lambda: _kill(signal.SIGSEGV),
    "hang": signal.pause,
    "orphan": _orphan,
}
NAMES = [*FAULTS, "wrong", "nan", "labels", "huge"]


@suite.benchmark(how=Axis(["none"], choices=NAMES), when=Axis(["run"], choices=["prepare", "run"]))
def fault(device: Any, how: str, when: str) -> Workload:
    """Four numbers that are right, or what `how` says instead."""
    action = FAULTS.get(how, FAULTS["none"])
    if when == "prepare":
        action()
    out = device.unwritten(4, "float32")

    def run() -> None:
        if when == "run":
            action()
        out[:] = [float("nan")] * 4 if how == "nan" else [1.0, 2.0, 3.0, 5.0 if how == "wrong" else 4.0]
        device.spend(1000)

    return Workload(
        run=run,
        output=out,
        reference=lambda: [1.0, 2.0, 3.0, 4.0],
        reference_name="by hand",
        flops=10**400 if how == "huge" else 4,
        labels={"n": 3} if how == "labels" else {},  # type: ignore[dict-item] # a label is text
    )
