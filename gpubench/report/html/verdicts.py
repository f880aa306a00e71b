"""The claims of a run: how many hold, and each with its figures, control and reason, unfolded one by one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gpubench.claims.statements import Statement
from gpubench.report import claims
from gpubench.report.html.markup import Child, Markup, facts, folded, join, lines, table, tag
from gpubench.report.html.overview import MARKS, Tone
from gpubench.report.words import counted
from gpubench.result import Run

Judged = Mapping[str, Any]
Statements = Mapping[str, Statement]

TONES: Mapping[str, Tone] = {
    "HOLDS": "good",
    "PARTLY": "warn",
    "ABSENT": "bad",
    "INVALID": "bad",
    "INCONCLUSIVE": "warn",
}
OTHERS = "Other claims"
"""Where claims stand that this version does not know."""
ROWS = 5
"""Rows of a claim that are named."""


def badge(verdict: str) -> Markup:
    """A verdict by sign, word and colour."""
    tone = TONES.get(verdict, "")
    return tag("span", f"{MARKS[tone]} {verdict}", class_=f"badge {tone}".strip())


def anchor(claim: Judged) -> str:
    """Where a claim stands in the page."""
    return f"claim-{re.sub('[^A-Za-z0-9]+', '-', str(claim['id']))}"


def section(run: Run, statements: Statements, chart: Markup | None) -> Markup:
    """All claims the run has verdicts on, by the lecture's sections, under their chart."""
    by_section: dict[str, list[Judged]] = {}
    for claim in sorted(run.claims, key=lambda each: str(each["id"])):
        known = statements.get(claim["id"])
        by_section.setdefault(OTHERS if known is None else known.section, []).append(claim)
    parts: list[Markup | None] = [
        tag("p", "What a lecture on GPUs (CS336, lecture 5) says, and what an expert would add (X), judged on this "
            "machine: a figure with its 95 % interval must lie between limits set beforehand, and a control, where "
            "nothing may happen, must hold too."),
        chart,
    ]  # fmt: skip
    for name, judged in by_section.items():
        items = [tag("li", _claim(each, statements.get(each["id"])), id=anchor(each)) for each in judged]
        parts.append(join([tag("h3", name), tag("ul", *items, class_="claims")]))
    return join(parts)


def _claim(claim: Judged, known: Statement | None) -> Markup:
    short = claim["statement"] if known is None else known.short
    figures = claims.headline(claim)[1]
    return folded(
        join(
            [
                tag("span", claim["id"], class_="soft"),
                tag("span", short),
                tag("span", figures, class_="figure"),
                tag("span", badge(claim["verdict"]), class_="verdict-cell"),
            ]
        ),
        tag("div", *_full(claim, known), class_="full"),
    )


def _full(claim: Judged, known: Statement | None) -> list[Markup | None]:
    said: list[tuple[str, Child]] = [("corrected", claim["corrected"])]
    if known is not None:
        source = f"{claims.RIGHT[known.right]}: {known.source}" if known.of_lecture else known.source
        said = [("the lecture is" if known.of_lecture else "added, from", source), *said]
        said += [("experiment", known.experiment), ("rule", known.rule), ("control is", known.control)]
    said += [
        ("why", claim["reason"]),
        ("note", claim.get("note")),
        ("proof", claims.PROOFS.get(claim["proof"], claim["proof"])),
    ]
    effects = [*((each, "effect") for each in claim["effects"]), *((each, "control") for each in claim["control"])]
    rows = [
        (each["name"], kind, claims.figure(each), claims.limits(each), each["verdict"].lower())
        for each, kind in effects
    ]
    columns = ["figure", "kind", "measured here", "expected", "verdict"]
    ids = [str(each) for each in claim["rows"]]
    more = [f"and {len(ids) - ROWS} more"] if len(ids) > ROWS else []
    measured = lines([*(tag("code", each) for each in ids[:ROWS]), *more])
    return [
        tag("p", claim["statement"]),
        table(f"Figures of {claim['id']}", columns, rows, {"measured here"}) if rows else None,
        facts(said),
        folded(f"Measured by {counted(len(ids), 'row')}", measured) if ids else None,
    ]


def chips(run: Run, suite: str, statements: Statements) -> Markup | None:
    """The verdicts that a suite's rows come to, each a link to its claim."""
    own = [claim for claim in run.claims if (known := statements.get(claim["id"])) and known.suite == suite]
    items = [tag("li", tag("a", claim["id"], href=f"#{anchor(claim)}"), " ", badge(claim["verdict"])) for claim in own]
    return tag("ul", *items, class_="chips", aria_label=f"Claims that {suite} settles") if items else None
