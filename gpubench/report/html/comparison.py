"""The report of a comparison: what got slower, how sure that is, and between which machines; all its runs inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.report import charts, comparison, info
from gpubench.report.html import figures
from gpubench.report.html.markup import Child, Markup, folded, join, lines, table, tag
from gpubench.report.html.overview import MARKS, Tone, verdict_line
from gpubench.report.html.page import Page, Section
from gpubench.report.html.run import file_name
from gpubench.report.words import SEPARATOR, counted, device_name, plain, unplaced
from gpubench.result import Run
from gpubench.store import runfile
from gpubench.verdict import Judged, Row

TONES: Mapping[str, Tone] = {
    **dict.fromkeys(comparison.ALARMING, "bad"),
    **dict.fromkeys(("suspect", "inconclusive", "not comparable"), "warn"),
    **dict.fromkeys(("improvement", "better", "fixed", "equivalent"), "good"),
}
SECTIONS: Sequence[tuple[str, str, frozenset[Tone]]] = (
    ("worse", "Worse, missing or in doubt", frozenset({"bad", "warn"})),
    ("better", "Better", frozenset({"good"})),
    ("same", "As before", frozenset({""})),
)
"""Where the rows of each tone stand."""
MEANING: Mapping[str, str] = {
    "failed": "gave a number before and give none now",
    "missing": "are missing",
    "invalid": "cannot be judged: a figure is none",
    "regression": "got slower, by more than earlier runs of the base predict",
    "suspect": "look slower; one run a side cannot tell",
    "inconclusive": "are undecided",
    "not comparable": "cannot be compared",
}
"""What a verdict says of its rows."""
SINGULAR: Mapping[str, str] = {"are": "is", "look": "looks"}
"""The verb of a single row."""
COLUMNS = ("case", "base", "new", "change", "verdict", "why")
SHOWN, SAID = 24, 12
"""Rows and reasons that are shown without being asked for: the worst stand first."""
MATCHED = (
    "Rows are matched by suite, benchmark, parameters and the conditions asked for. With one run a side a loss beyond "
    "the margin is suspect, no more: two runs of the same thing may differ as much. With five runs of the base or more "
    "it is held against the middle one of these, and against what they predict."
)
FACTS = ("device", "software", "host")
"""Parts of a run that hold facts of its machine."""


def report(judged: Judged, bases: Sequence[Run], new: Run) -> bytes:
    """The page. `bases` are the runs of the base, of which the last shown in `judged` is one."""
    drawings, found = changes(judged, device_name(new))
    sides = Section("runs", "The two sides", _sides(judged, bases, new))
    method = Section("method", "Method", _method(judged))
    runs = [*bases, new]
    title = SEPARATOR.join(["gpubench comparison", device_name(new), new.started_at[:10]])
    documents = [runfile.encode(run) for run in runs]
    top = head(judged, "GPU benchmark comparison", device_name(new), verdict(judged))
    names = [file_name(run) for run in runs]
    return Page(title, top, [*found, sides, method], drawings, documents, names, "comparison").html()


def head(judged: Judged, kind: str, device: str, said: tuple[Tone, str]) -> Markup:
    """What it is, of which device, between which sides, and what it comes to."""
    return join(
        [
            tag("p", kind, class_="eyebrow"),
            tag("h1", device),
            tag("p", *_arrow(*unplaced(judged.base_name, judged.new_name)), class_="soft"),
            verdict_line(*said),
        ]
    )


def _arrow(base: str, new: str) -> list[Child]:
    return [tag("code", base), " → ", tag("code", new)]


def changes(judged: Judged, device: str) -> tuple[dict[str, Any] | None, list[Section]]:
    """What the page's script draws, and the sections of the rows: the worse, why, the chart of all intervals, the
    better, those that are as before."""
    names = comparison.naming(judged)
    picture = charts.comparison(judged, device)
    drawings, places = figures.document([] if picture is None else [picture])
    changed = [Section("changes", "The changes", place) for _, place in places]
    told = comparison.reasons(judged, names, most=None)
    reasons = [Section("reasons", "Reasons", _reasons(told))] if told else []
    worse, better, same = (_section(judged, names, *each) for each in SECTIONS)
    return drawings, [*worse, *reasons, *changed, *better, *same]


def verdict(judged: Judged, meaning: Mapping[str, str] = MEANING) -> tuple[Tone, str]:
    """What the worst rows are, in a sentence, and how many there are of every verdict; as grave as the worst."""
    if not judged.rows:
        return "warn", "There is no row to compare."
    worst = next((verdict for verdict in comparison.ORDER if TONES.get(verdict, "") in ("bad", "warn")
                  and judged.count(verdict)), None)  # fmt: skip
    tail = f"{comparison.summary(judged)}. A loss of up to {comparison.percent(judged.margin)} does not count."
    if worst is None:
        return "good", f"No row got slower. {tail}"
    count, words = judged.count(worst), meaning.get(worst, worst)
    if count == 1:
        verb, *rest = words.split(" ")
        words = " ".join([SINGULAR.get(verb, verb), *rest])
    return TONES[worst], f"{counted(count, 'row')} {words}. {tail}"


def _section(
    judged: Judged, names: comparison.Naming, anchor: str, title: str, tones: frozenset[Tone]
) -> list[Section]:
    """The rows of these tones, none where there are none. Those that are what they were are folded, and of the others
    those after the first SHOWN."""
    rows = [row for row in comparison.ordered(judged.rows) if TONES.get(row.verdict, "") in tones]
    if not rows:
        return []
    words = f"{title}: {counted(len(rows), 'row')}"
    if tones == {""}:
        return [Section(anchor, title, folded(counted(len(rows), "row"), _rows(rows, names, words)))]
    first, more = rows[:SHOWN], rows[SHOWN:]
    rest = folded(counted(len(more), "more row"), _rows(more, names, f"{title}: the other rows")) if more else None
    return [Section(anchor, title, join([_rows(first, names, words), rest]))]


def _reasons(told: Sequence[str]) -> Markup:
    """The lines, those after the first few folded."""
    first, more = told[:SAID], told[SAID:]
    rest = folded(f"{len(more)} more", lines(more, class_="notes")) if more else None
    return join([lines(first, class_="notes"), rest])


def _rows(rows: Sequence[Row], names: comparison.Naming, caption: str) -> Markup:
    cells: list[list[Child]] = []
    for row in rows:
        base, new, change, word = comparison.cells(row)
        tone = TONES.get(row.verdict, "")
        badge = tag("span", f"{MARKS[tone]} {word}", class_=f"badge {tone}".strip())
        cells.append([names.words[id(row)], base, new, change, badge, row.reason or ""])
    return table(caption, COLUMNS, cells, {"base", "new", "change"})


def _sides(judged: Judged, bases: Sequence[Run], new: Run) -> Markup:
    """Both runs, what differs between them and may, and every fact of their machines that is not the same."""
    told = [*judged.notes, *(f"differs: {each}" for each in comparison.subject(judged))]
    sides = [
        *((f"base {index + 1}" if len(bases) > 1 else "base", run) for index, run in enumerate(bases)),
        ("new", new),
    ]
    rows = [
        [name, device_name(run), f"{run.started_at[:10]} {run.started_at[11:16]}", run.status,
         f"{len(run.records):,}", tag("code", " ".join(run.argv))]
        for name, run in sides
    ]  # fmt: skip
    unlike = _unlike(bases[-1], new)
    facts = table("Facts of the machine that differ", ["fact", "base", "new"], unlike) if unlike else None
    return join(
        [
            table("The runs", ["side", "device", "when (UTC)", "status", "rows", "command"], rows, {"rows"}),
            lines(told, class_="notes"),
            folded(f"{counted(len(unlike), 'fact')} of the machine that differ", facts) if facts else None,
        ]
    )


def _unlike(base: Run, new: Run) -> list[tuple[str, str, str]]:
    """The facts that the two sides do not share."""
    found = []
    for name in FACTS:
        one, other = (dict(info.lines(getattr(run, name))) for run in (base, new))
        for fact in dict.fromkeys([*one, *other]):
            if one.get(fact) != other.get(fact):
                found.append((f"{name}: {fact}", one.get(fact, ""), other.get(fact, "")))
    return found


def _method(judged: Judged) -> Markup:
    return join(
        [
            lines(map(plain, comparison.facts(judged, comparison.naming(judged))), class_="notes"),
            tag("p", MATCHED),
            tag("p", "Measure both in turns, for a verdict: ", tag("code", "gpubench ab"), class_="soft"),
        ]
    )  # fmt: skip
