"""Signals that end a run: they interrupt measuring, never saving."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(BaseException):
    """SIGTERM arrived: unwinds like KeyboardInterrupt, so that what was measured is saved on the way out."""


_held = False
_waiting: BaseException | None = None


def install() -> None:
    """Turn SIGINT and SIGTERM into exceptions. An ignored SIGINT stays so: a script's job in the background."""
    signal.signal(signal.SIGTERM, _arrived)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _arrived)


@contextmanager
def undisturbed(forget: bool = False) -> Iterator[None]:
    """Let no signal in while something is saved: one that comes meanwhile is raised at the end, or forgotten.

    Not to be nested.
    """
    global _held, _waiting
    _held, _waiting = True, None
    try:
        yield
    finally:
        _held = False
    if _waiting is not None and not forget:
        raise _waiting


def _arrived(number: int, frame: FrameType | None) -> None:
    global _waiting
    error = Terminated() if number == signal.SIGTERM else KeyboardInterrupt()
    if not _held:
        raise error
    _waiting = error
