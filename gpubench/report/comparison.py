"""Two runs compared, for the terminal: which rows first, what to call them, their change, and why.

What is common to every form of a comparison is here: the order of the rows, their names, the counts, the reasons.
`gpubench.report.comparison_forms` writes them as documents, `gpubench.report.comparison_why` tells all of one row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any

from rich.console import Group as Renderables
from rich.console import RenderableType
from rich.text import Text

from gpubench.report.grid import Column, Grid
from gpubench.report.rows import groups_of, number
from gpubench.report.words import SEPARATOR, conditions_words, counted, device_name, plain
from gpubench.result import Record, Run
from gpubench.units import format_duration, format_half_width, format_rate, three_digits
from gpubench.verdict import FAILING, Change, Judged, Row

ROWS = 24
REASONS = 6
"""Different reasons, and different hints, printed below a table; the rest are counted."""
EACH = 3
"""Rows of every verdict that the short table keeps, however many the verdicts before it have."""

ORDER = (
    "failed",
    "missing",
    "invalid",
    "regression",
    "suspect",
    "inconclusive",
    "not comparable",
    "still failing",
    "improvement",
    "better",
    "fixed",
    "new",
    "equivalent",
    "same",
)
"""Verdicts in the order in which their rows are shown."""
UNCHANGED = frozenset({"same", "equivalent", "still failing"})
UNJUDGED = frozenset({"not comparable", "still failing", "inconclusive"})
DOUBTFUL = frozenset({*FAILING, *UNJUDGED, "regression", "suspect"})
"""Verdicts a reader should know of, whether or not they fail the build."""
ALARMING = FAILING | {"regression"}
_STYLE = {
    "suspect": "yellow",
    "inconclusive": "yellow",
    "improvement": "green",
    "better": "green",
    "equivalent": "dim",
    "same": "dim",
}
_RANK = {verdict: place for place, verdict in enumerate(ORDER)}


@dataclass(frozen=True)
class Naming:
    """What each row is called: `words` by `id()` of the row, as they are typed after --why; `shared` is what the rows
    of a benchmark have in common, one line for each benchmark."""

    words: dict[int, str]
    shared: list[str]


def side(run: Run) -> dict[str, Any]:
    """What a report says of one side's run; it stands in `Judged.details` under "base" and "new"."""
    return {
        "run_id": run.run_id,
        "started_at": run.started_at,
        "status": run.status,
        "device": device_name(run),
        "rows": len(run.records),
    }


def ordered(rows: Iterable[Row]) -> list[Row]:
    """Rows by verdict, worst first; those of one verdict by how much they lost."""
    return sorted(rows, key=lambda row: (_RANK[row.verdict], -_loss(row)))


def chosen(judged: Judged, all_rows: bool = False, only_changed: bool = False) -> list[Row]:
    """The rows to show, worst first: at most ROWS unless all are asked for, and then EACH of every verdict there is;
    with `only_changed` none that is what it was."""
    rows = ordered(row for row in judged.rows if not (only_changed and row.verdict in UNCHANGED))
    if all_rows or len(rows) <= ROWS:
        return rows
    seen: Counter[str] = Counter()
    first: list[int] = []
    rest: list[int] = []
    for place, row in enumerate(rows):
        seen[row.verdict] += 1
        (first if seen[row.verdict] <= EACH else rest).append(place)
    kept = sorted([*first[:ROWS], *rest[: max(0, ROWS - len(first))]])
    return [rows[place] for place in kept]


def naming(judged: Judged) -> Naming:
    """A name for every row, unique among them."""
    rows = {id(record): row for row in judged.rows if (record := row.new or row.base) is not None}
    found = groups_of(record for row in judged.rows if (record := row.new or row.base) is not None)
    words: dict[int, str] = {id(row): plain(row.id) for row in judged.rows}
    suites = {group.suite for group in found}
    shared = []
    for group in found:
        bases = (rows[id(record)].base for record in group.records)
        facts = group.facts(base.conditions for base in bases if base is not None)
        shared.append(SEPARATOR.join([plain(group.path), *facts]))
        front = "" if len(found) == 1 else f"{plain(group.benchmark if len(suites) == 1 else group.path)} "
        for record in group.records:
            words[id(rows[id(record)])] = plain(f"{front}{group.case(record)}")
    return Naming(words, shared)


def summary(judged: Judged) -> str:
    """How many rows matched, and how many there are of every verdict: no row is left out of it."""
    counts = {verdict: judged.count(verdict) for verdict in ORDER}
    matched = sum(row.base is not None and row.new is not None for row in judged.rows)
    return SEPARATOR.join(
        [f"{matched:,} matched", *(f"{count:,} {verdict}" for verdict, count in counts.items() if count)]
    )


def heading(judged: Judged) -> list[str]:
    """Both runs, what they were measured on, and what differs between them."""
    lines = [_side_words("base", judged.base_name, judged.details.get("base"))]
    lines.append(_side_words("new", judged.new_name, judged.details.get("new")))
    if differences := subject(judged):
        lines.append(f"differs  {SEPARATOR.join(map(plain, differences))}")
    return lines


def subject(judged: Judged) -> list[str]:
    """What differs between the two runs and may: driver, torch, commit."""
    return list(judged.details.get("subject", ()))


def table(judged: Judged, all_rows: bool = False, only_changed: bool = False) -> RenderableType:
    """Heading, the rows that say most, their reasons, the counts."""
    names, rows = naming(judged), chosen(judged, all_rows, only_changed)
    parts: list[RenderableType] = [Text(line, style="bold") for line in heading(judged)]
    parts += [Text(plain(note)) for note in judged.notes]
    parts += [Text(line) for line in facts(judged, names)]
    if rows:
        grid = Grid(
            [
                Column("case", fold=True),
                Column("base", right=True),
                Column("new", right=True),
                Column("change", right=True),
                Column("verdict", fold=True),
            ]
        )
        for row in rows:
            grid.add(names.words[id(row)], *cells(row), style=_style(row))
        parts += [Text(""), grid, *map(Text, reasons(judged, names))]
        pool = sum(not (only_changed and row.verdict in UNCHANGED) for row in judged.rows)
        if len(rows) < pool:
            parts.append(Text(f"{counted(pool - len(rows), 'more row')}: --all", style="dim"))
    return Renderables(*parts, Text(""), Text(summary(judged), style="bold"))


def facts(judged: Judged, names: Naming) -> list[str]:
    """What the columns mean: each benchmark's constants, which way is better, and the margin."""
    directions = dict.fromkeys(
        f"{plain(change.metric)}: {change.direction} is better" for row in judged.rows if (change := row.change)
    )
    shared = names.shared if len(names.shared) <= REASONS else [counted(len(names.shared), "benchmark")]
    return [*shared, SEPARATOR.join([*directions, f"margin {percent(judged.margin)}"])]


def cells(row: Row) -> tuple[str, str, str, str]:
    """Base, new, change and verdict of a row, in words."""
    change = row.change
    if change is None:
        return _side_cell(row.base), _side_cell(row.new), "", row.verdict
    return quantity(change.base, change.unit), quantity(change.new, change.unit), change_words(change), row.verdict


def change_words(change: Change) -> str:
    """-4.2 % ± 0.3 for a change whose interval is known, new against base: the sign is that of the figure itself."""
    if not isfinite(change.ratio):
        return ""
    words = signed_percent(change.ratio - 1)
    if change.low is None or change.high is None:
        return words
    return f"{words} ± {format_half_width(50 * (change.high - change.low)).removesuffix(' %')}"


def signed_percent(share: float) -> str:
    """+0.3 %, -12.5 %, +150 %; never -0.0."""
    value = 100 * share
    text = f"{value:+.1f}" if abs(value) < 99.95 else f"{value:+.0f}"
    return f"{'0.0' if text in ('+0.0', '-0.0') else text} %"


def percent(share: float) -> str:
    """3 %, 0.5 %."""
    return f"{100 * share:g} %"


def quantity(value: float, unit: str) -> str:
    """A figure with its unit: a time, a rate, or a share."""
    if not isfinite(value):
        return f"not a number ({plain(unit)})"
    if unit == "ns":
        return format_duration(value)
    return three_digits(value) if unit == "1" else format_rate(value, plain(unit))


def reasons(judged: Judged, names: Naming, most: int | None = REASONS) -> list[str]:
    """Why rows are not the same, one line per verdict and reason; then what the files suggest as the cause: at most so
    many lines of each."""
    changed = ordered(row for row in judged.rows if row.verdict not in ("same", "equivalent"))
    why = _gathered(((row.verdict, row.reason, row) for row in changed if row.reason), names)
    hints = _gathered((("hint", hint, row) for row in changed for hint in row.hints), names)
    return [*_capped(why, most, "other reason"), *_capped(hints, most, "other hint")]


def _gathered(said: Iterable[tuple[str, str, Row]], names: Naming) -> list[str]:
    """One line for each word and text, with the first row it is said of and how many more."""
    found: dict[tuple[str, str], list[Row]] = {}
    for word, text, row in said:
        found.setdefault((word, plain(text)), []).append(row)
    lines = []
    for (word, text), rows in found.items():
        more = f" and {counted(len(rows) - 1, 'more row')}" if len(rows) > 1 else ""
        lines.append(f"{word}: {names.words[id(rows[0])]}{more}: {text}")
    return lines


def _capped(lines: list[str], most: int | None, noun: str) -> list[str]:
    if most is None or len(lines) <= most:
        return lines
    return [*lines[:most], f"{counted(len(lines) - most, noun)} not listed here: --json has all"]


def _loss(row: Row) -> float:
    """How much worse a row became; rows without a figure come first."""
    change = row.change
    return change.loss if change is not None and isfinite(change.loss) else float("inf")


def _side_cell(record: Record | None) -> str:
    """What one side says of a row that has no change: its figure, else its status."""
    if record is None:
        return ""
    metric = number(record)
    return record.status if metric is None else quantity(metric.value, metric.unit)


def _style(row: Row) -> str:
    return "red" if row.verdict in ALARMING else _STYLE.get(row.verdict, "")


def _side_words(word: str, name: str, about: object) -> str:
    """base  NAME · device · when, status where it is not complete."""
    parts = [plain(name)]
    if isinstance(about, dict):
        parts.append(plain(about.get("device", "")))
        when = str(about.get("started_at") or "")
        parts.append(plain(f"{when[:10]} {when[11:16]}".strip()))
        parts.append("" if about.get("status") == "complete" else plain(about.get("status", "")))
    return f"{word:<7}  {SEPARATOR.join(part for part in parts if part)}"


def where(row: Row) -> str:
    """A row's own name: its id, with the conditions of either side."""
    asked = [record.conditions for record in (row.base, row.new) if record is not None]
    conditions = conditions_words(*asked) if asked else SEPARATOR.join(row.conditions.values())
    return f"{plain(row.id)} ({plain(conditions)})"
