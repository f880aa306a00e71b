"""Rows that look slower, measured again: the middle one of several processes stands for a row in place of the first.

One process is one draw of all that differs from one start to the next: where memory lies, which clock it held, what
else ran. Rows that got slower in one are asked of more before a build is failed over them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from gpubench.compare.judge import SIGNS
from gpubench.gate import UNDECIDED
from gpubench.result import FAILED, Record, Run
from gpubench.verdict import Judged, Row, Verdict

PROCESSES = 5
"""Processes of a row, the first among them: an odd number, so that the middle one is a row as it was measured. Of five
equal processes three must be slow by chance before the middle one is."""
SLOWER: tuple[Verdict, ...] = ("regression", "suspect")
"""The verdicts that are a matter of time, which measuring again can settle."""

SAYING: frozenset[Verdict] = frozenset({"regression", "improvement", "equivalent", "failed", "missing"})
"""Verdicts of an A/B measurement that take a row's place. The others are about a base that did not run (`fixed`), or
about the measurement: a row that was slower is not cleared by them."""


def doubtful(rows: Sequence[Row]) -> list[str]:
    """The ids of the new run's rows, among those that fail a build, that are worth measuring again."""
    return [row.new.id for row in rows if row.verdict in SLOWER and row.new is not None]


def settled(run: Run, again: Sequence[Run], ids: Collection[str]) -> Run:
    """The run with, for each of these rows, the record of its middle process; `again` are the other processes' runs."""
    others = [{record.id: record for record in each.records} for each in again]
    return replace(
        run,
        records=[
            middle(record, [rows[record.id] for rows in others if record.id in rows]) if record.id in ids else record
            for record in run.records
        ],
    )


def middle(first: Record, again: Sequence[Record]) -> Record:
    """The middle one of a row's processes by its primary figure; of an even number the worse of the two. One that
    failed in any process is that failure; one that was skipped, as where time ran out, does not count."""
    failed = next((record for record in again if record.status in FAILED), None)
    if failed is not None:
        return failed
    known = sorted([first, *(record for record in again if record.primary is not None)], key=_badness)
    return known[len(known) // 2]


def explain(before: Judged, after: Judged, run: Run, again: Sequence[Run], ids: Collection[str]) -> None:
    """Say in `after` what was measured again: in its notes how many rows still look slower, in each row's reason of how
    many processes it is the middle one, and in `details["confirmed"]["rows"]` each row's id, its verdict by the `first`
    process and by the middle one, and its figure in every process, the first one first (null where it gave none)."""
    figures = [_figures(each) for each in (run, *again)]
    now = {row.id: row for row in after.rows}
    rows = [(row, row.new.id) for row in before.rows if row.new is not None and row.new.id in ids]
    after.details["confirmed"] = {
        "rows": [
            {
                "id": row.id,
                "first": row.verdict,
                "verdict": now[row.id].verdict,
                "figures": [values.get(id_) for values in figures],
            }
            for row, id_ in rows
        ]
    }
    for row, id_ in rows:
        known = sum(id_ in values for values in figures)
        reason = now[row.id].reason
        now[row.id].reason = "; ".join(filter(None, [reason, f"the middle one of {known} processes"]))
    still = sum(now[row.id].verdict in SLOWER for row, _ in rows)
    looked = "1 row looked slower and was" if len(rows) == 1 else f"{len(rows)} rows looked slower and were"
    does = "does" if still <= 1 else "do"
    words = f"by the middle process of each, {still or 'none'} still {does}"
    after.notes.append(f"{looked} measured in {len(again)} more processes: {words}")


def exchange(judged: Judged, pairs: Judged, ids: Collection[str]) -> None:
    """Put the rows of an A/B measurement in place of those of these ids that it has, and say so, as `explain` does.
    A row of which it says nothing, as where its time ran out or its base fails, stays what it was."""
    found = {row.id: row for row in pairs.rows}
    rows = [(row, found[row.new.id]) for row in judged.rows if row.new and row.new.id in ids and row.new.id in found]
    places = {id(row): pair for row, pair in rows if _says_something(pair)}
    judged.details["confirmed"] = {
        "rows": [{"id": row.id, "first": row.verdict, "verdict": places.get(id(row), row).verdict} for row, _ in rows]
    }
    for row, pair in rows:
        if id(row) not in places:
            said = f"nothing decided in pairs: {pair.verdict}, {pair.reason}"
            row.reason = "; ".join(filter(None, [row.reason, said]))
    judged.rows = [places.get(id(row), row) for row in judged.rows]
    looked = "1 row looked slower and was" if len(ids) == 1 else f"{len(ids)} rows looked slower and were"
    counts = Counter(pair.verdict for _, pair in rows)
    counted = ", ".join(f"{count} {verdict}" for verdict, count in counts.items()) or "no verdict"
    judged.notes.append(f"{looked} measured in turn with {pairs.base_name}: {counted}")
    judged.notes += pairs.notes


def _says_something(pair: Row) -> bool:
    """Whether an A/B measurement says something of the new side: a verdict, or that enough blocks left it open."""
    return pair.verdict in SAYING or (pair.verdict == UNDECIDED and pair.paired.get("detectable") is not None)


def _figures(run: Run) -> Mapping[str, float]:
    return {record.id: record.primary.value for record in run.records if record.primary is not None}


def _badness(record: Record) -> float:
    """A row's primary figure with the sign that makes more worse."""
    figure = record.primary
    assert figure is not None
    return SIGNS[figure.direction] * figure.value
