"""Signals that end a run: the first interrupts measuring, never saving; the ones after it find that under way."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


class Terminated(BaseException):
    """SIGTERM arrived: unwinds like KeyboardInterrupt, so that what was measured is saved on the way out."""


_held = False
_leaving = False
_waiting: BaseException | None = None


def install() -> None:
    """Turn SIGINT and SIGTERM into exceptions. An ignored SIGINT stays so: a script's job in the background."""
    global _leaving
    _leaving = False
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
        _leave(_waiting)


def _arrived(number: int, frame: FrameType | None) -> None:
    global _waiting
    error = Terminated() if number == signal.SIGTERM else KeyboardInterrupt()
    if _held:
        _waiting = error
    elif not _leaving:
        _leave(error)


def _leave(error: BaseException) -> NoReturn:
    """Raise the one signal that ends the run. A second would be raised in the middle of what the first set going: the
    worker's end, the terminal, the file."""
    global _leaving
    _leaving = True
    raise error
