"""All of one row of an A/B measurement, with the medians of every block; and the command for one that would decide."""

from __future__ import annotations

from gpubench.report import comparison, comparison_why
from gpubench.report.comparison_why import WIDTH
from gpubench.report.words import plain
from gpubench.units import format_duration
from gpubench.verdict import Judged, Row

LIBRARIES = frozenset({"torch", "cuda", "cupy", "triton", "python"})
"""What differs between two runs because their interpreters did."""


def why(judged: Judged, word: str) -> str:
    """The long text of the row that a word means, with a final newline. UsageError where it means none or several."""
    row = comparison_why.find(judged, word)
    return comparison_why.why(judged, row) + "".join(f"{line}\n" for line in _figures(row))


def deciding(judged: Judged) -> str | None:
    """The command that would decide on the worst suspect row of two stored runs, with what is known of the base; None
    where nothing is suspect, or where the driver differs: there is one at a time."""
    row = next((row for row in comparison.ordered(judged.rows) if row.verdict == "suspect"), None)
    differs = {line.partition(":")[0] for line in comparison.subject(judged)}
    if row is None or row.new is None or "driver" in differs:
        return None
    side = "python=PATH" if differs & LIBRARIES else "SIDE"
    asked = row.new.params | row.new.conditions.unusual
    params = " ".join(f"-p {name}={value}" for name, value in asked.items())
    return plain(f"gpubench ab --base {side} {row.new.suite}/{row.new.benchmark} {params}")


def _figures(row: Row) -> list[str]:
    """What the verdict rests on: interval, what would have been found, and each block in the order it was measured."""
    known = row.paired
    if not known:
        return []
    lines = []
    if known["surely_low"] is not None:
        low, high = (comparison.signed_percent(known[name] - 1) for name in ("surely_low", "surely_high"))
        sure = 100 * (1 - known["level"])
        text = f"time {low} to {high}, an interval of {sure:.3g} % confidence, after {known['blocks']} blocks"
        lines.append(f"{'judged by':<{WIDTH}} {text}")
    if known["detectable"] is not None:
        found = comparison.signed_percent(known["detectable"])
        lines.append(f"{'would find':<{WIDTH}} {found} of time, nine times of ten")
    for each in known["medians"]:
        sides = [format_duration(each[f"{side}_ns"]) for side in ("base", "new")]
        change = f"{comparison.signed_percent(each['new_ns'] / each['base_ns'] - 1)}, " if each["base_ns"] else ""
        title = f"block {each['block']}"
        lines.append(f"{title:<{WIDTH}} {sides[0]} → {sides[1]}  {change}{each['first']} first")
    return lines
