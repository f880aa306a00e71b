"""In and out of the process: arguments in, one line of error and an exit code out. Here and nowhere else."""

from __future__ import annotations

import errno
import os
import sys
from typing import NoReturn

from gpubench.cli import signals, streams
from gpubench.errors import DeviceLost, GpubenchError, NotComparable, NothingMeasured
from gpubench.exits import Exit

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""How writing to a stream fails. Of a file, the writing of which is `jsonfile`'s, it is a UsageError already."""


def main() -> NoReturn:
    """Run the command line and exit."""
    streams.prepare()
    signals.install()
    code = _run(sys.argv[1:])
    streams.finish()
    sys.exit(int(code))


def _run(arguments: list[str]) -> Exit:
    """The exit code of the command, with every error told in one line; before it, with --debug, its traceback."""
    try:
        from gpubench.cli.app import call  # takes a quarter of a second, in which Ctrl-C may come

        code = call(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return Exit.PIPE  # the reader has gone: nothing more to say, nor anybody to say it to
    except KeyboardInterrupt:
        _say("interrupted")
        return Exit.SIGINT
    except signals.Terminated:
        _say("terminated")
        return Exit.SIGTERM
    except Exception as error:
        if _debug(arguments):
            _trace()
        return _told(error)


def _told(error: Exception) -> Exit:
    """Say what went wrong; the exit code it means."""
    if isinstance(error, GpubenchError):
        _say(str(error))
        return code_of(error)
    if isinstance(error, OSError) and error.errno in FULL and error.filename is None:
        _say(f"cannot write to standard output: {error.strerror}")
        return Exit.USAGE
    words = f"{type(error).__name__}: {error}".splitlines()[0]
    _say(f"internal error: {words} (again with --debug for the traceback, and please report it)")
    return Exit.INTERNAL


def code_of(error: GpubenchError) -> Exit:
    """The exit code an error means."""
    if isinstance(error, NothingMeasured):
        return Exit.NOTHING
    if isinstance(error, NotComparable):
        return Exit.NOT_COMPARABLE
    if isinstance(error, DeviceLost):
        return Exit.FAILED
    return Exit.USAGE


def _debug(arguments: list[str]) -> bool:
    return "--debug" in arguments or os.environ.get("GPUBENCH_DEBUG", "").lower() in ("1", "true", "yes", "on")


def _trace() -> None:
    import traceback

    traceback.print_exc()


def _say(line: str) -> None:
    from gpubench.report.words import plain

    try:
        sys.stderr.write(f"gpubench: {plain(' '.join(line.split()))}\n")
        sys.stderr.flush()
    except OSError:
        pass  # nobody reads it: the exit code is all that is left
