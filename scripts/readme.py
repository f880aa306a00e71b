"""Draws the figures of README.md from the run files they name, so that no figure is typed by hand.

A figure is a fenced block after a comment: <!-- curve: FILE -->, or closing, ceilings, kernels, table, claims. Without
arguments the blocks are redrawn; with --check nothing is written, and the exit status is 1 where a block differs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpubench.result import Record

ROOT = Path(__file__).resolve().parent.parent
COMMENT = r"<!-- (?P<kind>curve|closing|ceilings|kernels|table|claims): (?P<file>\S+) -->"
BLOCK = re.compile(rf"({COMMENT}\n```(?:text)?\n)(?P<body>.*?)(\n```)", re.DOTALL)
WIDTH, HEIGHT = 100, 20
PLAIN = {"COLUMNS": "100", "NO_COLOR": "1", "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}


def drawn(text: str) -> str:
    """The page with every figure drawn anew."""
    return BLOCK.sub(lambda block: block[1] + figure(block["kind"], block["file"]) + block[5], text)


def figure(kind: str, file: str) -> str:
    """One figure of a run file: its curve, its two lines of findings, its ceilings, the kernels of two sizes, what
    `gpubench show` prints of it, or the verdicts on its claims."""
    from gpubench.report.closing import closing_lines
    from gpubench.report.curve import curve
    from gpubench.store import read_run
    from gpubench.units import format_rate

    if kind == "table":
        command = [sys.executable, "-m", "gpubench", "show", str(ROOT / file), "--no-plot"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=os.environ | PLAIN)
        return done.stdout.strip()
    run = read_run(ROOT / file)
    if kind == "closing":
        return "\n".join(closing_lines(run, file)[:2])
    if kind == "claims":
        return "\n".join(verdict(claim) for claim in run.claims if claim["verdict"] in ("HOLDS", "PARTLY", "ABSENT"))
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
    """A claim in a line: what its rule looked at first, what was found, and what follows."""
    from gpubench.report.claims import figure

    effect = claim["effects"][0]
    return f"{claim['id']}  {effect['name'][:62]:<64}{figure(effect):<24}{claim['verdict']}"


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
