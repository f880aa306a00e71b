"""The one table of exit codes. Gates return values of this table; only `gpubench.cli` exits with them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class Exit(IntEnum):
    """What the command's exit status means. Never a count."""

    DONE = 0
    INTERNAL = 1  # a bug in gpubench
    USAGE = 2  # a flag, plan, file or setting is wrong
    REGRESSION = 3
    FAILED = 4  # a case failed, or a row of the baseline is missing
    NOTHING = 5  # no row measured or matched, no baseline
    UNDECIDED = 6  # inconclusive or suspect where the gate asks for a decision
    NOT_COMPARABLE = 7  # every matched row is of another device or method
    SLOW_GPU = 8
    SIGINT = 130
    PIPE = 141
    SIGTERM = 143


PRECEDENCE = (
    Exit.SIGINT,
    Exit.SIGTERM,
    Exit.PIPE,
    Exit.USAGE,
    Exit.INTERNAL,
    Exit.FAILED,
    Exit.NOT_COMPARABLE,
    Exit.REGRESSION,
    Exit.SLOW_GPU,
    Exit.UNDECIDED,
    Exit.NOTHING,
)


def first(codes: Iterable[Exit]) -> Exit:
    """The code to exit with when several apply: the first of them in PRECEDENCE, DONE if there is none."""
    given = set(codes)
    return next((code for code in PRECEDENCE if code in given), Exit.DONE)
