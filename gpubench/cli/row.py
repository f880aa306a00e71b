"""The row of a stored run that a command line means: CASE, which is a record's id or words such as n=1793, and -p."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpubench.result import Param, Record, Run

SAID = 5
"""Rows named where several are meant."""
HINT = "CASE is a record's id, or words or -p values that leave one row"


def without_run(run: str | None, case: Sequence[str]) -> tuple[str | None, list[str]]:
    """RUN and CASE, where RUN was left out: a first word such as n=1793, of which there is no file, is CASE's."""
    from pathlib import Path

    if run is None or "=" not in run or Path(run).exists():
        return run, list(case)
    return None, [run, *case]


def row_of(run: Run, case: Sequence[str], params: Sequence[str]) -> Record:
    """The one row that CASE and -p mean: CASE is a record's id, or words that it has and no other, such as n=1793.

    UsageError where no row or more than one is meant.
    """
    import shlex

    from gpubench.errors import UsageError
    from gpubench.params import parse_params

    asked, spoken = parse_params(params), " ".join(case)
    rows = [record for record in run.records if all(_value(record, name) in asked[name] for name in asked)]
    words = set(spoken.split())
    rows = [record for record in rows if record.id == spoken] or [row for row in rows if words <= _words(row)]
    if len(rows) == 1:
        return rows[0]
    meant = " ".join([*([spoken] if spoken else []), *(f"-p {text}" for text in params)])
    if not rows:
        raise UsageError(f"{meant or 'this run'}: no such row{_why(run.records, words, asked)}", HINT)
    listed = ", ".join(record.id for record in rows[:SAID])
    more = f" and {len(rows) - SAID} more" if len(rows) > SAID else ""
    are = f"{meant} is {len(rows)} rows" if meant else f"which of {len(rows)} rows?"
    raise UsageError(
        f"{are}{':' if meant else ''} {listed}{more}", f"such as {shlex.quote(rows[0].id)}, or -p values that leave one"
    )


def _value(record: Record, name: str) -> Param | None:
    return record.params.get(name, record.conditions.by_name.get(name))


def _words(record: Record) -> set[str]:
    """What a row may be called by: suite, benchmark, parameters and conditions."""
    named = {f"{name}={value}" for name, value in (record.params | record.conditions.by_name).items()}
    path = f"{record.suite}/{record.benchmark}"
    return {record.id, record.suite, record.benchmark, path, *named, *record.conditions.by_name.values()}


def _why(records: Sequence[Record], words: Iterable[str], asked: dict[str, tuple[Param, ...]]) -> str:
    """The first thing asked for that no row has, and what was probably meant, to stand at the end of a message."""
    from gpubench.nearest import did_you_mean

    for name, values in asked.items():
        if not any(_value(record, name) in values for record in records):
            return _unknown(records, name, str(values[0]))
    there: set[str] = set().union(*map(_words, records))
    for word in sorted(set(words) - there):
        name, equals, value = word.partition("=")
        return _unknown(records, name, value) if equals and "[" not in name else did_you_mean(word, sorted(there))
    return ""


def _unknown(records: Sequence[Record], name: str, value: str) -> str:
    """What no row has of `name=value`: the name, or the value; with what is closest."""
    from gpubench.nearest import did_you_mean, nearest

    names = dict.fromkeys(each for record in records for each in (record.params | record.conditions.by_name))
    if name not in names:
        return f"; no parameter {name}" + (did_you_mean(name, names) or f", but {', '.join(names)}")
    values = {_value(record, name) for record in records} - {None}
    numbers = sorted(each for each in values if isinstance(each, int))
    if numbers and value.isdecimal():
        below = [each for each in numbers if each < int(value)][-1:]
        around = [*below, *[each for each in numbers if each > int(value)][:1]]
        return f"; the nearest {'are' if len(around) > 1 else 'is'} {' and '.join(f'{name}={each}' for each in around)}"
    words = sorted(map(str, values))
    few = f"; {name} is {', '.join(words)} here" if len(words) <= SAID else ""
    return f"; did you mean {name}={near}?" if (near := nearest(value, words)) else few
