"""Run files inside an HTML report: how they are packed, and how they are found again, strictly and bounded.

Each stands in a script element that no browser executes, as gzip in base64, which holds no character that HTML could
read as its own:

    <script type="application/gzip" class="gpubench-run">H4sI…</script>
"""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import re
import zlib

from gpubench.errors import UsageError
from gpubench.store.jsonfile import LIMIT

OPENING = b'<script type="application/gzip" class="gpubench-run">'
CLOSING = b"</script>"
MOST = 64
"""Runs that a report may hold."""

_BEGINS = re.compile(rb"\s*<!doctype html[\s>]", re.IGNORECASE)


def is_html(data: bytes) -> bool:
    """Whether a file's content is an HTML page."""
    return _BEGINS.match(data) is not None


def pack(document: bytes) -> str:
    """A run file as the element that holds it; the same bytes always as the same text."""
    text = base64.b64encode(gzip.compress(document, 9, mtime=0))
    return (OPENING + text + CLOSING).decode("ascii")


def documents(page: bytes, where: str, limit: int = LIMIT) -> list[bytes]:
    """The run files of a report, in its order, of `limit` bytes at most all together.

    `where` names the page in the UsageError that a page without one raises, or one that is damaged.
    """
    found: list[bytes] = []
    at = page.find(OPENING)
    while at >= 0:
        begin = at + len(OPENING)
        end = page.find(CLOSING, begin)
        if end < 0:
            raise UsageError(f"{where}: ends in the middle of the run it holds", "is it cut short?")
        if len(found) == MOST:
            raise UsageError(f"{where}: holds more than {MOST} runs")
        found.append(_unpacked(page[begin:end], where, limit))
        limit -= len(found[-1])
        at = page.find(OPENING, end)
    if not found:
        raise UsageError(
            f"{where}: an HTML page that holds no run", "a report is made by gpubench report RUN -o FILE.html"
        )
    return found


def _unpacked(text: bytes, where: str, limit: int) -> bytes:
    try:
        packed = base64.b64decode(text, validate=True)
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            data = file.read(limit + 1)
    except (binascii.Error, OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{where}: the run it holds is damaged: {' '.join(str(error).split())}") from None
    if len(data) > limit:
        raise UsageError(f"{where}: the run it holds is larger than {LIMIT:,} bytes")
    return data
