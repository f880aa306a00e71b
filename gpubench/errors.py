"""The tree of errors a user may see. Each is one line: what is wrong, where, and what to type next."""

from __future__ import annotations


class GpubenchError(Exception):
    """Something the user can act on.

    `message` says what is wrong and where; `hint` what to type next (may be empty).
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class UsageError(GpubenchError):
    """A plan, a flag or a file is wrong: names the key, the file, what was expected and what is near."""


class NothingMeasured(GpubenchError):
    """Nothing ran, nothing matched, or there is nothing stored to read."""


class DeviceUnavailable(GpubenchError):
    """The device asked for is not here: says what was looked for and what was found."""


class NotComparable(GpubenchError):
    """Nothing that can be measured here may be held against what was asked for: says what differs."""


class DeviceLost(GpubenchError):
    """The device, or the process that owned it, is gone: ends the worker; the parent goes on with a new one."""


class CaseError(GpubenchError):
    """Ends one case; the rest of the run goes on. `status` is the record's status."""

    status = "error"


class KernelError(CaseError):
    """A kernel did not compile, load or run. `log` holds the compiler's words, shown with --debug."""

    def __init__(self, message: str, hint: str = "", log: str = "") -> None:
        super().__init__(message, hint)
        self.log = log


class WrongResult(CaseError):
    """The output differs from the reference beyond the tolerance: where, got, expected, tolerance."""

    status = "incorrect"


class OutOfMemory(CaseError):
    """An allocation does not fit. `asked` and `free` are bytes; `free` is None where it could not be read."""

    status = "oom"

    def __init__(self, asked: int | None, free: int | None) -> None:
        needs = "an unknown size" if asked is None else f"{asked:,} bytes"
        room = "" if free is None else f", free {free:,} bytes"
        super().__init__(f"out of memory: needs {needs}{room}")
        self.asked = asked
        self.free = free


class Timeout(CaseError):
    """A case ran past its time-out and its worker was ended."""

    status = "timeout"


class TimerFailed(CaseError):
    """A timer's records do not add up, even in a repeated batch: the next timer is tried, and the row says so."""


class Skip(Exception):
    """Not an error: this case does not apply here. A benchmark function raises it with the reason."""

    status = "skipped"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Unsupported(Skip):
    """Not an error: this device, dtype or library version has no such operation; the reason names the rule."""

    status = "unsupported"
