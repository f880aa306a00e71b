"""Draws the figures of README.md and docs/lecture.md from the run files they name: no figure is typed by hand.

A figure is a fenced block after a comment: <!-- curve: FILE -->, or closing, ceilings, kernels, table, scoreboard, or
claims, which may be followed by the claims wanted: <!-- claims: FILE C24 C29 -->. Without arguments the blocks are
redrawn; with --check nothing is written, and the exit status is 1 where a block differs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpubench.result import Record

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "README.md", ROOT / "docs/lecture.md")
COMMENT = r"<!-- (?P<kind>curve|closing|ceilings|kernels|table|scoreboard|claims): (?P<file>\S+)(?P<words>( \S+)*) -->"
COMMANDS = {"table": ["show", "--no-plot"], "scoreboard": ["claims"]}
"""Figures that a command prints of a file."""
BLOCK = re.compile(rf"(?P<opening>{COMMENT}\n```(?:text)?\n)(?P<body>.*?)\n?```", re.DOTALL)
WIDTH, HEIGHT = 100, 20
PLAIN = {"COLUMNS": "100", "NO_COLOR": "1", "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}


def drawn(text: str) -> str:
    """The page with every figure drawn anew."""

    def again(block: re.Match[str]) -> str:
        return f"{block['opening']}{figure(block['kind'], block['file'], block['words'].split())}\n```"

    return BLOCK.sub(again, text)


def figure(kind: str, file: str, words: Sequence[str] = ()) -> str:
    """One figure of a run file: its curve, its two lines of findings, its ceilings, the kernels of two sizes, what
    `gpubench show` or `claims` prints of it, or the verdicts on some of its claims or on all that have one."""
    from gpubench.report.closing import closing_lines
    from gpubench.report.curve import curve
    from gpubench.store.folder import read_run
    from gpubench.units import format_rate

    if kind in COMMANDS:
        name, *flags = COMMANDS[kind]
        command = [sys.executable, "-m", "gpubench", name, file, *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=os.environ | PLAIN)
        return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())
    run = read_run(ROOT / file)
    if kind == "closing":
        return "\n".join(closing_lines(run, file)[:2])
    if kind == "claims":
        wanted = words or [claim["id"] for claim in run.claims if claim["verdict"] in ("HOLDS", "PARTLY", "ABSENT")]
        return "\n".join(verdict(claim) for claim in run.claims if claim["id"] in wanted)
    if kind == "ceilings":
        ordered = sorted(run.ceilings, key=lambda ceiling: (ceiling.kind, -ceiling.value))
        return "\n".join(f"{ceiling.name:<20}{format_rate(ceiling.value, ceiling.unit):>14}" for ceiling in ordered)
    if kind == "kernels":
        rows = [record for record in run.records if record.params["n"] in (1792, 1793)]
        return "\n".join(line for row in rows for line in kernels(row))
    plot = curve(run, WIDTH, HEIGHT, colour=False)
    assert plot is not None, f"{file} has no sweep"
    return "\n".join(line.rstrip() for line in plot.strip("\n").splitlines())


def kernels(row: Record) -> list[str]:
    """A row's size, time, and what each of its kernels is called."""
    from gpubench.units import format_duration

    words = [f"n={row.params['n']}", format_duration(row.summary.median_ns)] if row.summary else []
    return [
        f"{'  '.join(words):<18}{kernel.name[:66]:<68}grid {'×'.join(map(str, kernel.grid or []))}".rstrip()
        for kernel in row.kernels
    ]


def verdict(claim: dict[str, Any]) -> str:
    """A claim in a line: what it says, what its rule looked at first, what was found, and what follows."""
    from gpubench.claims.statements import load
    from gpubench.report.claims import figure

    effect = claim["effects"][0]
    said = load(ROOT / "suites/claims.yaml")[claim["id"]].short
    return f"{claim['id']}  {said:<45}{claim['verdict']:<8}{figure(effect)}  {effect['name']}"


def main(arguments: list[str]) -> int:
    """Redraw the pages, or check them."""
    sys.path.insert(0, str(ROOT))
    wrong = 0
    for page in PAGES:
        old = page.read_text(encoding="utf-8")
        new = drawn(old)
        if "--check" in arguments:
            wrong += new != old
        else:
            page.write_text(new, encoding="utf-8")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
