"""Draws the figures of README.md from the run files they name, so that no figure is typed by hand.

A figure is a fenced block after a comment: <!-- curve: FILE -->. Without arguments the blocks are redrawn; with --check
nothing is written, and the exit status is 1 where a block differs.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(<!-- (?P<kind>curve|closing): (?P<file>\S+) -->\n```(?:text)?\n)(?P<body>.*?)(\n```)", re.DOTALL)
WIDTH, HEIGHT = 100, 20


def drawn(text: str) -> str:
    """The page with every figure drawn anew."""
    return BLOCK.sub(lambda block: block[1] + figure(block["kind"], block["file"]) + block[5], text)


def figure(kind: str, file: str) -> str:
    """One figure of a run file: its curve, or its two lines of findings."""
    from gpubench.report.closing import closing_lines
    from gpubench.report.curve import curve
    from gpubench.store import read_run

    run = read_run(ROOT / file)
    if kind == "closing":
        return "\n".join(closing_lines(run, file)[:2])
    plot = curve(run, WIDTH, HEIGHT, colour=False)
    assert plot is not None, f"{file} has no sweep"
    return "\n".join(line.rstrip() for line in plot.strip("\n").splitlines())


def main(arguments: list[str]) -> int:
    """Redraw README.md, or check it."""
    sys.path.insert(0, str(ROOT))
    page = ROOT / "README.md"
    old = page.read_text(encoding="utf-8")
    new = drawn(old)
    if "--check" in arguments:
        return int(new != old)
    page.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
