"""What a self-check found, for the terminal and as JSON: how often verdicts are wrong, beside what is promised."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gpubench.report.words import SEPARATOR, counted, plain
from gpubench.store.calibration import (
    COVERED,
    FIRM,
    LEAST_FOUND,
    MOST_AT_MARGIN,
    MOST_WRONG,
    SAME,
    STRAYS,
    Equal,
    Rule,
    Slower,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gpubench.report.grid import Grid


NOT_JUDGED = (
    f"not judged: took another share longer than its work is, by {100 * STRAYS:g} % of it and more;\n"
    "or the work is the margin, and it took more than that"
)
"""What the mark of a row means, that the promises below it leave out."""


@dataclass(frozen=True)
class Promise:
    """A rate, what it is of, and what it may be; None where nothing is promised of it, or where there is no rate."""

    what: str
    rate: float | None
    least: float | None = None
    most: float | None = None

    @property
    def kept(self) -> bool | None:
        """Whether the rate is within its limits; None where there is nothing to judge."""
        if self.rate is None:
            return None
        return (self.least is None or self.rate >= self.least) and (self.most is None or self.rate <= self.most)

    @property
    def verdict(self) -> str:
        """That in a word, and nothing where nothing is promised."""
        if not self.limits:
            return ""
        return "not judged" if self.kept is None else "kept" if self.kept else "broken"

    @property
    def limits(self) -> str:
        """The limits in words."""
        if self.least is not None and self.most is not None:
            return f"{percent(self.least)} to {percent(self.most)}"
        if self.least is not None:
            return f"at least {percent(self.least)}"
        return "" if self.most is None else f"at most {percent(self.most)}"


def of_equal(equal: Equal) -> list[Promise]:
    """What equal code is called. Without a margin, what counts is that a difference was called more than chance."""
    rules: dict[Rule, str] = {
        "ab": "ab",
        "compare": "compare, one run a side",
        "history": f"compare, {equal.blocks} base runs",
    }
    found = []
    for outcome in sorted(equal.outcomes, key=lambda each: (list(rules).index(each.rule), -each.margin)):
        what = f"{rules[outcome.rule]}, margin {percent(outcome.margin)}"
        if outcome.margin:
            found.append(Promise(f"{what}: different", outcome.wrong / outcome.of, most=MOST_WRONG))
            found.append(Promise(f"{what}: the same", outcome.called(*SAME) / outcome.of))
        elif outcome.rule == "ab":
            found.append(Promise(f"{what}: splits with any different", outcome.alarmed / outcome.splits))
        if outcome.rule == "history":
            found.append(Promise(f"{what}: beyond chance", outcome.called(*FIRM) / outcome.of))
    low, high = COVERED
    found.append(Promise("95 % intervals that hold the truth", equal.held / equal.intervals, low, high))
    return found


def of_slower(slower: Slower) -> list[Promise]:
    """What more work is called, of the rows that took as much longer as the promise says."""
    found = []
    for more, margin in dict.fromkeys((each.more, each.margin) for each in slower.injected):
        share = slower.share(more, margin)
        what = f"{percent(more)} more work, margin {percent(margin)}: called a regression"
        beyond = more > margin
        found.append(Promise(what, share, LEAST_FOUND if beyond else None, None if beyond else MOST_AT_MARGIN))
    return found


def promises(found: Equal | Slower) -> list[Promise]:
    """The rates of a self-check."""
    return of_equal(found) if isinstance(found, Equal) else of_slower(found)


def table(found: Equal | Slower, device: str) -> RenderableType:
    """The rates of a self-check of a device, with what is promised of them."""
    return equal_table(found, device) if isinstance(found, Equal) else slower_table(found, device)


def equal_table(equal: Equal, device: str) -> RenderableType:
    """The rates of one device's processes, split at random."""
    from rich.console import Group as Renderables
    from rich.text import Text

    heading = _heading("selfcheck aa", equal, device, counted(len(equal.rows), "row"))
    comparisons = equal.splits * len(equal.rows)
    said = f"{counted(comparisons, 'comparison')} of equal code with itself"
    return Renderables(Text(heading, style="bold"), Text(said), Text(""), _grid(of_equal(equal)))


def slower_table(slower: Slower, device: str) -> RenderableType:
    """The rates of more work, in all and row by row."""
    from rich.console import Group as Renderables
    from rich.text import Text

    from gpubench.report.grid import Column, Grid

    rows = Grid(
        [
            Column("more work", fold=True),
            Column("more", right=True),
            Column("took", right=True),
            Column("margin", right=True),
            Column("found", right=True),
            Column(""),
        ]
    )
    for each in slower.injected:
        took = f"{100 * each.measured:+.2f} %"
        name = plain(each.row.partition("[")[0])
        found, note = f"{each.found} of {each.of}", "" if each.promised else "not judged"
        rows.add(name, f"+{percent(each.more)}", took, percent(each.margin), found, note)
    heading = _heading("selfcheck inject", slower, device, counted(len({each.row for each in slower.injected}), "row"))
    notes = [] if all(each.promised for each in slower.injected) else [Text(NOT_JUDGED), Text("")]
    return Renderables(Text(heading, style="bold"), Text(""), rows, Text(""), *notes, _grid(of_slower(slower)))


def to_json(name: str, device: str, found: Equal | Slower, path: str) -> dict[str, Any]:
    """The same in JSON values; `pool` is the file that it was judged from."""
    rates = [asdict(each) | {"kept": each.kept} for each in promises(found)]
    values = asdict(found)
    if isinstance(found, Slower):
        values["injected"] = [asdict(each) | {"promised": each.promised} for each in found.injected]
    return {"check": name, "device": device, "pool": path, "rates": rates, "found": values}


def sentence(equal: Equal, rule: Rule, word: str) -> str | None:
    """How often a rule was wrong on this device, in a line; `word` is what to call the device. None if not judged."""
    outcome = next((each for each in equal.outcomes if each.rule == rule and each.margin), None)
    if outcome is None:
        return None
    wrong = f"{percent(outcome.wrong / outcome.of)} were called different at {percent(outcome.margin)}"
    source = f"selfcheck of {plain(equal.at)[:10]}, {equal.processes} processes"
    return f"on this {word}, of {outcome.of:,} comparisons of equal code {wrong} ({source})"


def percent(share: float) -> str:
    """3 %, 0.25 %, 97.5 %: two digits behind the point at most."""
    return f"{round(100 * share, 2):g} %"


def _heading(name: str, found: Equal | Slower, device: str, rows: str) -> str:
    splits = f"{found.splits} splits, {found.blocks} a side"
    return SEPARATOR.join([name, plain(device), f"{found.processes} processes", rows, splits])


def _grid(promises: list[Promise]) -> Grid:
    from gpubench.report.grid import Column, Grid

    grid = Grid([Column("called", fold=True), Column("share", right=True), Column("promised"), Column("")])
    for each in promises:
        rate = "–" if each.rate is None else percent(each.rate)
        grid.add(each.what, rate, each.limits, each.verdict, style="red" if each.verdict == "broken" else "")
    return grid
