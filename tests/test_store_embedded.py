"""Run files inside a page: packed, found again, and refused where they are not whole."""

from __future__ import annotations

import base64
import gzip

import pytest

from gpubench.errors import UsageError
from gpubench.store import embedded


def page(*documents: bytes) -> bytes:
    return f"<!doctype html>\n<p>{''.join(map(embedded.pack, documents))}</p>".encode()


def test_what_is_packed_is_found_again_in_order() -> None:
    found = [b'{"a": 1}', b'"</script>"', "µ".encode()]
    assert embedded.documents(page(*found), "x.html") == found
    assert page(*found) == page(*found)
    packed = base64.b64decode(embedded.pack(found[0]).encode()[len(embedded.OPENING) : -len(embedded.CLOSING)])
    assert packed[4:8] == bytes(4), "no time of day is in it"
    assert b"</script>" not in embedded.pack(b'"</script>"').encode()[len(embedded.OPENING) : -len(embedded.CLOSING)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"<!doctype html>", True), (b"\n <!DOCTYPE HTML ", True), (b'{"schema":""}', False), (b"\x1f\x8b", False)],
)
def test_a_page_is_told_by_how_it_begins(data: bytes, expected: bool) -> None:
    assert embedded.is_html(data) is expected


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"<!doctype html><p>", "x.html: an HTML page that holds no run"),
        (page(b"{}")[:-40], "x.html: ends in the middle of the run it holds"),
        (page(b"{}").replace(b"H4sI", b"H4s!"), "x.html: the run it holds is damaged"),
        (page(b"{}").replace(b"H4sI", b"H4sI!"), "x.html: the run it holds is damaged"),
        (page(b"{}").replace(embedded.OPENING, embedded.OPENING + b"AAAA"), "x.html: the run it holds is damaged"),
        (page(*[b"{}"] * 65), "x.html: holds more than 64 runs"),
    ],
)
def test_a_page_that_is_not_whole_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        embedded.documents(data, "x.html")
    assert caught.value.message.startswith(words)


def test_what_is_unpacked_is_bounded_all_together() -> None:
    data = page(b"a" * 600, b"b" * 600)
    assert len(embedded.documents(data, "x", limit=1200)) == 2
    with pytest.raises(UsageError, match="larger than"):
        embedded.documents(data, "x", limit=1199)


def test_a_gzip_bomb_is_not_unfolded() -> None:
    bomb = base64.b64encode(gzip.compress(bytes(50_000_000)))
    with pytest.raises(UsageError, match="larger than"):
        embedded.documents(b"<!doctype html>" + embedded.OPENING + bomb + embedded.CLOSING, "x", limit=1000)
