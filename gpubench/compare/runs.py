"""Rows of two runs matched: every row of either side once, with what is to be said of it.

Which rows there are, the base's newest run says. A row that gives no figure on one side, or that was not had alike on
both, is told here; `judge` judges the figures of the rest, against the middle one of the base's runs where `history`
knows enough of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gpubench.compare import causes, comparable, judge
from gpubench.compare.history import History, Key, Past, by_key, history, key_of, middle
from gpubench.compare.judge import MIN_HISTORY, Evidence
from gpubench.result import FAILED, Conditions, Record, Run
from gpubench.suite import record_id
from gpubench.verdict import Judged, Mismatch, Row, Verdict

MARGIN = 0.03


@dataclass(frozen=True)
class _Rules:
    """What a comparison judges by. `newest` is the base's newest run, `mismatches` why it cannot be compared with the
    new one; `subjects` is what each run of the base differs in from that and may, by run_id; `instead` is what there is
    without enough of a history, in words."""

    margin: float
    margins: Mapping[str, float]
    show: bool
    newest: Run
    mismatches: Sequence[Mismatch]
    subjects: Mapping[str, Sequence[str]]
    history: History
    instead: str

    def evidence(self, record: Record, known: Sequence[Past]) -> Evidence:
        """What a row of the new run is judged by."""
        margin = judge.margin_of(record, self.margin, self.margins)
        return Evidence(margin, [past.record for past in known], self.instead)


def compare(
    base: Run | Sequence[Run],
    new: Run,
    margin: float = MARGIN,
    margins: Mapping[str, float] | None = None,
    host_mismatch: Literal["error", "warn"] = "error",
) -> Judged:
    """Every row of the base and of the new run once, with its verdict; in the base's order, then what is only new.

    Several runs as base are its history. The one started last says which rows there are; a row of which MIN_HISTORY of
    them or more have a figure is held against the middle one of these, any other against the newest. `margin` is how
    much worse a figure may be, as a fraction: a time 1 + margin times as long, a rate 1/(1 + margin) times as high.
    `margins` are others for the rows of a suite, of suite/benchmark or of a pattern of either; the last that fits
    counts. Rows that are not comparable have no changes, or with `host_mismatch="warn"` their changes and still no
    verdict on them.
    UsageError where a run holds a row twice. ValueError without a base or with a margin that is none.
    """
    for each in (margin, *(margins or {}).values()):
        if not 0 <= each < 1:
            raise ValueError(f"a margin of {each}")
    bases, notes = _bases([base] if isinstance(base, Run) else base, new)
    shown = bases[-1]
    rows_of_base, rows_of_new = by_key(shown), by_key(new)
    notes += _dropped(bases, rows_of_base, rows_of_new)
    pairs = _matched(rows_of_base, rows_of_new)
    mismatches = comparable.run_mismatches(shown, new)
    instead = "one run a side" if len(bases) == 1 else f"fewer than {MIN_HISTORY} runs of the base like this one"
    usable = [run for run in bases if not comparable.run_mismatches(run, new)]
    if 0 < len(usable) < len(bases):
        notes.append(f"only {len(usable)} of the {len(bases)} runs of the base can be compared with the new one")
    whole = [run for run in usable if not run.is_quick]
    if len(bases) > 1 and (quick := len(usable) - len(whole)):
        words = "1 run of the base is a quick one" if quick == 1 else f"{quick} runs of the base are quick ones"
        notes.append(f"{words}, of which nothing is predicted")
    subjects = {run.run_id: comparable.subject(run, new) for run in bases}
    rules = _Rules(margin, margins or {}, host_mismatch == "warn", shown, mismatches, subjects, history(whole), instead)
    rows = [_row(old, now, rules) for old, now in pairs]
    return Judged(
        base_name=shown.run_id,
        new_name=new.run_id,
        margin=margin,
        rows=rows,
        notes=[*notes, *_notes(shown, new), *_notes_of(mismatches, rules.show)],
        details={
            "history": len(bases),
            "host_mismatch": host_mismatch,
            "margins": dict(rules.margins),
            "mismatches": [str(each) for each in mismatches],
            "quick": any(run.is_quick for run in (shown, new)),
            "subject": subjects[shown.run_id],
        },
    )


def _bases(runs: Sequence[Run], new: Run) -> tuple[list[Run], list[str]]:
    """The runs of the base, the newest last, each once; the new run is no part of its own history."""
    if not runs:
        raise ValueError("no base to compare with")
    once = {run.run_id: run for run in sorted(runs, key=lambda run: (run.started_at, run.run_id))}
    notes = []
    if len(once) > 1 and new.run_id in once:
        del once[new.run_id]
        notes.append("the new run is among the runs of the base: left out there")
    if len(once) == 1 and new.run_id in once:
        notes.append("base and new are the same run")
    if len(once) > 1:
        words = (
            "rows are held against the middle one; a difference beyond what they predict is a verdict"
            if len(once) >= MIN_HISTORY
            else f"{MIN_HISTORY} would tell how far one run strays from the next"
        )
        notes.append(f"{len(once)} runs of the base: {words}")
    return list(once.values()), notes


def _dropped(bases: Sequence[Run], base: Mapping[Key, Record], new: Mapping[Key, Record]) -> list[str]:
    """Rows that gave a figure in an earlier run of the base, in neither its newest nor the new run: none of them is
    missed, for the newest says what there is to measure, but they are told."""
    known = {key_of(record) for run in bases[:-1] for record in run.records if record.status == "ok"}
    if not (count := len(known - base.keys() - new.keys())):
        return []
    words = "1 row is" if count == 1 else f"{count} rows are"
    return [f"{words} in earlier runs of the base only, not in its newest: not asked for"]


def _notes(base: Run, new: Run) -> list[str]:
    """What a reader must know of the two runs."""
    notes = []
    for side, run in (("base", base), ("new", new)):
        if run.status != "complete":
            notes.append(f"the {side} run is {run.status}: rows it did not reach are not in it")
        if run.is_quick:
            notes.append(f"the {side} run is a quick one, which never decides a build")
    return notes


def _notes_of(mismatches: Sequence[Mismatch], show: bool) -> list[str]:
    if not mismatches:
        return []
    then = "differences are shown without a verdict" if show else "--host-mismatch warn shows the differences"
    return [f"not comparable: {'; '.join(map(str, mismatches))}; {then}"]


def _id(record: Record) -> str:
    """A row's id as it is written today; in older files it has no conditions."""
    return record_id(record.suite, record.benchmark, record.params, record.conditions)


def _matched(base: Mapping[Key, Record], new: Mapping[Key, Record]) -> list[tuple[Record | None, Record | None]]:
    """Rows of the same key; then, of those left, rows that differ in nothing but conditions, in as few as can be; then
    the rest, each alone."""
    otherwise = _otherwise([key for key in base if key not in new], [key for key in new if key not in base])
    taken = set(otherwise.values())
    pairs: list[tuple[Record | None, Record | None]] = [
        (old, new.get(otherwise.get(key, key))) for key, old in base.items()
    ]
    return pairs + [(None, now) for key, now in new.items() if key not in base and key not in taken]


def _otherwise(base: Iterable[Key], new: Iterable[Key]) -> dict[Key, Key]:
    """Keys of the base and of the new run, none of which both have, in pairs of one name: the same row, but it was
    measured under other conditions."""
    named: dict[str, list[Key]] = {}
    for key in new:
        named.setdefault(key[0], []).append(key)
    both = [(old, now) for old in base for now in named.get(old[0], ())]
    found: dict[Key, Key] = {}
    taken: set[Key] = set()
    for old, now in sorted(both, key=lambda pair: _apart(pair[0][1], pair[1][1])):
        if old not in found and now not in taken:
            found[old] = now
            taken.add(now)
    return found


def _apart(one: Conditions, other: Conditions) -> int:
    """In how many conditions two rows differ."""
    return len(one.by_name.items() - other.by_name.items())


def _row(newest: Record | None, new: Record | None, rules: _Rules) -> Row:
    """What is to be said of a row that the base's newest run, the new one, or both have."""
    record = newest or new
    assert record is not None
    row = Row(_id(record), record.conditions.by_name, "same", None, newest, new)
    if newest is not None:
        row.base_run = rules.newest.run_id
    if newest is None or new is None:
        row.verdict, row.reason = _alone(record, new is None)
        return row
    otherwise = [] if newest.conditions == new.conditions else comparable.asked_mismatches(newest, new)
    measured = newest.status == new.status == "ok"
    known = rules.history.like(new) if measured and not otherwise and not rules.mismatches else []
    enough = len(known) >= MIN_HISTORY
    stands = middle(known) if enough else Past(newest, rules.newest)
    base = stands.record
    row.base, row.base_run = base, stands.run.run_id
    row.middle_of = len(known) if enough else None
    row.subject = list(rules.subjects[stands.run.run_id])
    if ran := causes.kernels(base, new):
        row.subject.append(f"kernel: {ran}")
    if not measured and not otherwise:
        row.verdict, row.reason = without_figure(base, new)
        return row
    row.mismatches = [*otherwise, *rules.mismatches, *comparable.row_mismatches(base, new, rules.mismatches)]
    reason = judge.invalid(base, new)
    if row.mismatches:
        row.verdict, row.reason = "not comparable", "; ".join(map(str, row.mismatches))
        row.changes = judge.changes(base, new) if rules.show else []
    elif reason is not None:
        row.verdict, row.reason = "invalid", reason
    else:
        row.changes = judge.changes(base, new)
        row.verdict, row.reason = judge.judge(row.changes, new, rules.evidence(new, known))
    if row.verdict != "same":
        row.hints = causes.hints(base, new)
    return row


def _alone(record: Record, gone: bool) -> tuple[Verdict, str | None]:
    """A row that one side does not have. One that fails is a failed case, whether or not the base knew it; one that
    gave no figure in the base, as was right there, is not missed."""
    said = None if record.status == "ok" else _status(record)
    if gone:
        missed = record.status == "ok" or record.status in FAILED
        return ("missing", said) if missed else ("same", f"{said} in the base, not in the new run")
    return ("failed", f"not in the base; {said}") if record.status in FAILED else ("new", said)


def without_figure(base: Record, new: Record) -> tuple[Verdict, str]:
    """A matched row that gives no figure on one side or on either. To be skipped is no failure; but a row of the base
    that gives no figure any more is missing."""
    was, now = _status(base), _status(new)
    if new.status == "ok":
        return ("fixed" if base.status in FAILED else "new"), f"{was} in the base"
    if new.status in FAILED:
        if base.status in FAILED:
            return "still failing", now if was == now else f"{was} in the base, now {now}"
        newly = "newly " if new.status == "incorrect" else ""
        return "failed", f"{newly}{now}" if base.status == "ok" else f"{was} in the base, {newly}{now}"
    if base.status == "ok" or base.status in FAILED:
        return "missing", now if base.status == "ok" else f"{was} in the base, now {now}"
    return "same", now if was == now else f"{was} in the base, now {now}"


def _status(record: Record) -> str:
    return f"{record.status}: {record.reason}" if record.reason else record.status
