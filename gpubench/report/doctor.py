"""What `gpubench doctor` found, for the terminal and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gpubench.doctor import Finding
from gpubench.report.words import counted, plain

if TYPE_CHECKING:
    from gpubench.report.grid import Grid

STYLES = {"bad": "bold red", "warn": "yellow", "note": "", "ok": "dim"}


def table(findings: Sequence[Finding]) -> Grid:
    """A block for each finding, in the order given: what, why it matters, what to do."""
    from gpubench.report.grid import Column, Grid

    grid = Grid([Column(""), Column("finding", fold=True)])
    for finding in findings:
        style = STYLES[finding.level]
        grid.add(finding.level, plain(finding.what), style=style)
        for label, words in (("why", finding.why), ("fix", finding.fix)):
            if words:
                grid.add("", f"{label}  {plain(words)}", style=style if label == "fix" else "")
    return grid


def verdict(findings: Sequence[Finding], device: str) -> str:
    """One line: how much stands between this device and a clean measurement."""
    counts = {level: sum(finding.level == level for finding in findings) for level in ("bad", "warn")}
    if counts["bad"]:
        return f"{device}: do not trust a measurement here yet: {counted(counts['bad'], 'bad finding')}"
    if counts["warn"]:
        return f"{device}: measurements will be disturbed: {counted(counts['warn'], 'warning')}"
    return f"{device}: nothing found that spoils a measurement"


def to_json(findings: Sequence[Finding], device: str) -> dict[str, Any]:
    """The findings as JSON values."""
    return {"device": device, "findings": [asdict(finding) for finding in findings]}
