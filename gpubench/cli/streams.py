"""Standard output and error made fit to be written to, whatever the caller has set up."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import TextIO


def prepare() -> None:
    """A closed stream becomes the null device; a character that an encoding lacks is written in another way."""
    codecs.register_error("gpubench", _in_its_place)
    # At start-up Python leaves None where a descriptor is closed, as in `gpubench show >&-`.
    sys.stdout = sys.stdout or _null()
    sys.stderr = sys.stderr or _null()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="gpubench")


def finish() -> None:
    """Write what is left; where that fails throw it away, so that the interpreter's own flush does not fail too."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with open(os.devnull, "w") as null:
                os.dup2(null.fileno(), stream.fileno())


def _null() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")


def _in_its_place(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    from gpubench.report.words import ASCII

    return "".join(ASCII.get(char, "?") for char in error.object[error.start : error.end]), error.end
