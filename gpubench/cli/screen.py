"""Where words go: results to stdout, everything else to stderr; how wide, and in colour or not."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn, TextIO

from gpubench.report.words import plain

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PLOT_HEIGHT = 20
WIDEST = 120
"""Columns beyond which plots stop growing."""


class Screen:
    """The two streams of a command. `quiet` silences stderr but for errors and warnings."""

    def __init__(self, no_color: bool = False, quiet: bool = False, environ: Mapping[str, str] = os.environ) -> None:
        self.quiet = quiet
        self.plain_colour = no_color or bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"
        self.forced = bool(environ.get("FORCE_COLOR")) and not self.plain_colour
        # Editors and bare containers say COLUMNS=0 where they do not know the width.
        self._environ = {name: value for name, value in environ.items() if name != "COLUMNS" or value.strip("0")}
        self.out = self._console(sys.stdout)
        self.err = self._console(sys.stderr)
        self.width = min(self.out.width, WIDEST)
        self.ascii = not _can_show(sys.stdout, "│●µ±")
        self.redraws = sys.stderr.isatty() and environ.get("TERM") not in ("dumb", "unknown")
        """Whether stderr is a terminal that can go back over what it shows. Forced colour does not make it one."""

    @property
    def colour(self) -> bool:
        """Whether the result is coloured."""
        return not self.plain_colour and (self.forced or sys.stdout.isatty())

    def show(self, what: RenderableType) -> None:
        """Part of the result, as Rich draws it."""
        self.out.print(what)

    def write(self, text: str) -> None:
        """Part of the result, as it is."""
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()

    def document(self, text: str) -> None:
        """The whole result, for a program to read: UTF-8, whatever the terminal's encoding is."""
        sys.stdout.flush()
        sys.stdout.buffer.write((text if text.endswith("\n") else text + "\n").encode())
        sys.stdout.flush()

    def say(self, line: str) -> None:
        """Progress or a hint, unless quiet."""
        if not self.quiet:
            self.warn(line)

    def warn(self, line: str) -> None:
        """Something the user must see, on one line whatever it holds."""
        sys.stderr.write(plain(line) + "\n")
        sys.stderr.flush()

    def _console(self, stream: TextIO) -> Console:
        from rich.console import Console

        class Pipe(Console):
            """Rich would exit with status 1 where the reader of a pipe has gone; that is `door`'s to decide."""

            def on_broken_pipe(self) -> NoReturn:
                raise BrokenPipeError

        return Pipe(
            file=stream,
            no_color=self.plain_colour,
            force_terminal=True if self.forced else None,
            color_system=None if self.plain_colour else "auto",
            highlight=False,
            markup=False,
            emoji=False,
            soft_wrap=False,
            _environ=self._environ,
        )


def _can_show(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
