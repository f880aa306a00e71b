"""The report of one run: its sections in order, its charts where they belong, the run itself inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpubench.report import charts, roofline
from gpubench.report.html import figures, method, overview, suites, verdicts
from gpubench.report.html.markup import Markup, folded, join, table, tag
from gpubench.report.html.page import Page, Section
from gpubench.report.html.questions import Question
from gpubench.report.words import SEPARATOR, device_name, plain
from gpubench.result import Run
from gpubench.store import runfile
from gpubench.units import format_rate, three_digits

ROOFLINE, CURVE, CLAIMS, SAMPLES = "roofline", "curve", "claims", "samples"
"""Ids of charts that have a section of their own."""

NO_ROOFS = (
    "This run holds no ceilings, so that nothing says what limits its rows and how near they come to it. On the "
    "machine it was measured on they are found by ", tag("code", "gpubench roofline --measure"), ".",
)  # fmt: skip


def report(run: Run, statements: verdicts.Statements, questions: Mapping[str, Question]) -> bytes:
    """The page. `questions` are those of the run's suites, `statements` the claims in words; the verdicts of the run
    must be those that `gpubench.claims.judge.stored` lets pass."""
    drawings, placed = figures.document(charts.pictures(run))
    own = {heading.id: place for heading, place in placed if heading.id in (ROOFLINE, CURVE, CLAIMS, SAMPLES)}
    of_suite: dict[str, list[Markup]] = {}
    rest: list[Markup] = []
    for heading, place in placed:
        if heading.id not in own:
            (rest if heading.suite is None else of_suite.setdefault(heading.suite, [])).append(place)
    sections = [
        Section("machine", "Machine and conditions", overview.machine(run)),
        *_optional("roofline", "Roofline", [own.get(ROOFLINE), _roofs(run)]),
        *_optional("curve", "The curve", [own.get(CURVE)]),
        *_optional("charts", "More charts", rest),
        _suites(run, statements, questions, of_suite),
        *_optional("claims", "Claims", [verdicts.section(run, statements, own.get(CLAIMS))] if run.claims else []),
        Section("method", "Method", join([method.section(run), own.get(SAMPLES)])),
    ]
    title = SEPARATOR.join(["gpubench", device_name(run), run.started_at[:10]])
    return Page(title, overview.head(run), sections, drawings, [runfile.encode(run)], [file_name(run)]).html()


def file_name(run: Run) -> str:
    """What a run is called when it is saved from its report."""
    return f"gpubench-{''.join(letter for letter in run.run_id if letter.isalnum() or letter == '-')}.json.gz"


def _optional(anchor: str, title: str, parts: Sequence[Markup | None]) -> list[Section]:
    """A section, unless it would be empty."""
    return [Section(anchor, title, join(parts))] if any(parts) else []


def _suites(
    run: Run, statements: verdicts.Statements, questions: Mapping[str, Question], found: Mapping[str, Sequence[Markup]]
) -> Section:
    there = suites.by_suite(run)
    parts = [
        suites.section(run, own, questions[name], statements, found.get(plain(name), ())) for name, own in there.items()
    ]
    listed = [(suites.anchor(name), questions[name].title) for name in there]
    return Section("suites", "Suites", join(parts) if parts else tag("p", "No row was measured."), listed)


def _roofs(run: Run) -> Markup | None:
    """The measured ceilings, and the intensity at which each of arithmetic meets that of memory; what to do where there
    are none to hold the rows against."""
    found = roofline.view(run)
    if not found.ceilings:
        return tag("p", *NO_ROOFS) if found.points else None
    ridges = {id(ridge.ceiling): ridge.intensity for ridge in found.compute}
    rows = [
        (roof.name, format_rate(roof.value, roof.unit),
         f"{three_digits(ridge)} FLOP/B" if (ridge := ridges.get(id(roof))) else "", roof.source)
        for roof in sorted(found.ceilings, key=lambda roof: (roof.unit, -roof.value))
    ]  # fmt: skip
    ceilings = table("Ceilings of this device", ["ceiling", "rate", "ridge", "source"], rows, {"rate", "ridge"})
    return folded(f"{len(rows)} ceilings measured here", ceilings)
