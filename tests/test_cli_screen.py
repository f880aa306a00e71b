"""What the screen does to words: nothing. Names of files, suites and devices are never read as markup."""

from __future__ import annotations

import pytest

from gpubench.cli.screen import Screen


@pytest.mark.parametrize("name", ["[/bold]", "gemm[fp16]", "X [/red]", "[link=x]y[/link]", ":warning:", "/tmp/[/x]/1"])
def test_words_are_shown_as_they_are(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a caller hands over, text of Rich's or a bare str, which Rich would otherwise parse."""
    screen = Screen(environ={"FORCE_COLOR": "1", "TERM": "xterm-256color"})
    screen.show(name)
    screen.err.print(name)
    screen.warn(name)
    seen = capsys.readouterr()
    assert (seen.out, seen.err) == (f"{name}\n", f"{name}\n{name}\n")
