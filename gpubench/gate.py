"""What a comparison means for a build: which verdicts fail it, and with which exit code."""

from __future__ import annotations

from collections.abc import Collection
from typing import get_args

from gpubench.errors import UsageError
from gpubench.exits import Exit
from gpubench.nearest import did_you_mean
from gpubench.verdict import Judged, Row, Verdict

UNCHANGED: frozenset[Verdict] = frozenset({"same", "equivalent"})
"""Verdicts that nobody fails a build on."""
FAIL_ON: dict[str, Verdict] = {
    verdict.replace(" ", "-"): verdict for verdict in get_args(Verdict) if verdict not in UNCHANGED
}
"""The words of --fail-on, and the verdict each means."""
NONE = "none"
"""The word of --fail-on for no verdict at all."""
DEFAULT = "regression,suspect,failed,missing"
APART: Verdict = "not comparable"
LIKE_MISSING: frozenset[Verdict] = frozenset({"invalid", APART})
"""Verdicts on rows of the base that are not there to be judged any more than a missing one is."""
UNDECIDED: Verdict = "inconclusive"
"""What a measurement in pairs says of a row where two runs would say `suspect` or nothing."""

EXITS: dict[Verdict, Exit] = {
    "regression": Exit.REGRESSION,
    "failed": Exit.FAILED,
    "still failing": Exit.FAILED,
    "missing": Exit.FAILED,
    "invalid": Exit.FAILED,
    "not comparable": Exit.FAILED,  # where others are; where all are, decide() says so
    "suspect": Exit.UNDECIDED,
    "inconclusive": Exit.UNDECIDED,
    "better": Exit.UNDECIDED,  # this and the next three: what a build may want a person to look at
    "improvement": Exit.UNDECIDED,
    "fixed": Exit.UNDECIDED,
    "new": Exit.UNDECIDED,
}
"""What a row fails a build with."""


def parse(text: str, source: str = "--fail-on") -> frozenset[Verdict]:
    """The verdicts that `regression,suspect` fails a build on; `missing` brings with it LIKE_MISSING, `suspect` brings
    UNDECIDED. UsageError names a word that is none of FAIL_ON, and the source of the text."""
    words = [word.strip() for word in text.split(",")]
    if words == [NONE]:
        return frozenset()
    for word in words:
        if not word:
            raise UsageError(f"{source}: a word is missing in {text!r}", f"such as {DEFAULT}")
        if word == NONE:
            raise UsageError(f"{source}: {NONE} stands alone", f"not {text!r}")
        if word not in FAIL_ON:
            raise UsageError(f"{source}: no verdict {word!r}{did_you_mean(word, FAIL_ON)}", ", ".join(FAIL_ON))
    verdicts = {FAIL_ON[word] for word in words}
    verdicts |= LIKE_MISSING if "missing" in verdicts else set()
    return frozenset(verdicts | {UNDECIDED} if "suspect" in verdicts else verdicts)


def failing(judged: Judged, fail_on: Collection[str]) -> list[Row]:
    """The rows that fail the build: none of a quick run, and none that `--host-mismatch warn` allows to be of another
    device."""
    if judged.details.get("quick"):
        return []
    return [row for row in judged.rows if row.verdict in fail_on and not _is_allowed(judged, row)]


def decide(judged: Judged, fail_on: Collection[str]) -> list[Exit]:
    """Every exit code that applies, none where the build passes; `exits.first` chooses among them. `fail_on` is what
    `parse` gives.

    Whatever fails a build, a comparison without a single row judged never passes: NOT_COMPARABLE where all rows that
    both runs have are that, NOTHING where none has a figure on both sides. Only `--host-mismatch warn` lets two devices
    be set side by side, without a verdict.
    """
    matched = [row for row in judged.rows if row.base is not None and row.new is not None]
    apart = [row for row in matched if row.verdict == APART]
    all_apart = 0 < len(apart) == len(matched)
    found = {EXITS[row.verdict] for row in failing(judged, fail_on) if not (all_apart and row.verdict == APART)}
    if all_apart and not all(_is_allowed(judged, row) for row in apart):
        found.add(Exit.NOT_COMPARABLE)
    if not all_apart and not any(row.changes for row in matched if row.verdict != APART):
        found.add(Exit.NOTHING)
    return sorted(found)


def _is_allowed(judged: Judged, row: Row) -> bool:
    """Whether --host-mismatch warn allows that a row is not comparable."""
    allowed = judged.details.get("host_mismatch") == "warn" and bool(row.mismatches)
    return allowed and all(each.host for each in row.mismatches)
