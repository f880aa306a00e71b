"""The name somebody probably meant."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, names: Iterable[str]) -> str | None:
    """The name most like `word`, whatever its case and with - and _ alike; None where nothing is close."""
    import difflib  # only on the way to an error message

    plain = {_plain(name): name for name in names}
    close = difflib.get_close_matches(_plain(word), plain, n=1, cutoff=0.6)
    return plain[close[0]] if close else None


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """`; did you mean NAME?`, to stand at the end of a message, or nothing."""
    name = nearest(word, names)
    return f"; did you mean {name}?" if name else ""


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
