"""A comparison as a document: JSON, Markdown, CSV, JUnit XML; and what a build on GitHub is told."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any, Literal, get_args

from gpubench.errors import UsageError
from gpubench.report import comparison
from gpubench.report.words import counted, markdown_row, plain
from gpubench.result import Record
from gpubench.store import jsonfile
from gpubench.verdict import Change, Judged, Row

SCHEMA = "gpubench.comparison/1"
"""Of the JSON document. A key is never given another meaning; a new one may appear."""

Form = Literal["json", "md", "csv", "xml"]
FORMS: tuple[str, ...] = get_args(Form)
SUFFIXES: dict[str, Form] = {f".{form}": form for form in get_args(Form)}
"""What a file's name may end in when a comparison is written to it."""

_COLUMNS = ("metric", "unit", "direction", "primary", "base", "new", "ratio", "low", "high")
"""Of a CSV line, the fields of a change."""
SUMMARY_BYTES = 900_000
"""Of a GitHub step's summary, with what is there already: one of more than 1 MiB is not shown at all."""
ANNOTATIONS = 10
"""GitHub shows ten of each kind for a step, and drops the others without a word."""
ANNOTATION_BYTES = 4000
"""Of an annotation's message: GitHub cuts longer ones, perhaps in the middle of a character."""


def form_of(name: str) -> Form:
    """The form a file's name asks for; UsageError, naming the known suffixes, for any other."""
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise UsageError(f"{jsonfile.shown(Path(name))}: no export of that form", f"a name ending in {known}")
    return SUFFIXES[suffix]


def save(judged: Judged, name: str, failing: Iterable[Row]) -> None:
    """Write the whole comparison to a file, in the form of its suffix."""
    jsonfile.write_atomic(Path(name), render(judged, form_of(name), failing, all_rows=True).encode())


def append_summary(judged: Judged | str, name: str) -> None:
    """Append what changed to a file, as Markdown, or a line that says why nothing was judged: a job's summary may hold
    what earlier steps wrote."""
    path = Path(name)
    try:
        with open(path, "a", encoding="utf-8") as file:
            if isinstance(judged, str):
                file.write(f"### Nothing was judged\n\n- {_escaped(judged)}\n\n")
            else:
                file.write(step_summary(judged, SUMMARY_BYTES - file.tell()) + "\n")
    except (OSError, ValueError) as error:
        raise jsonfile.cannot_write(path, error) from None


def render(
    judged: Judged, form: Form, failing: Iterable[Row], all_rows: bool = False, only_changed: bool = False
) -> str:
    """The document, with a final newline. `failing` are the rows that fail the build; `all_rows` and
    `only_changed` matter to "md", the others hold every row."""
    if form == "json":
        return jsonfile.dumps(to_json(judged, failing), indent=1) + "\n"
    if form == "csv":
        return _csv(judged)
    if form == "xml":
        return junit(judged, failing)
    return markdown(judged, comparison.chosen(judged, all_rows, only_changed))


def to_json(judged: Judged, failing: Iterable[Row]) -> dict[str, Any]:
    """The comparison in JSON values.

    Keys: `schema`; `base` and `new`, each with its `name` and what is known of its run; `margin`, a fraction;
    `counts`, of each verdict there is; `notes`; `details`, among them `exit_code` and `fail_on`; `rows`, worst first.
    A row has `id`, `conditions`, `verdict`, `fails` (the build), `reason`, `mismatches`, `subject`, `hints`, `changes`
    (a metric each: `ratio` is new/base, with `low` and `high` where its interval is known, `loss` is ln of how much
    worse), both sides, null where there is none, the `base_run` that the base is of and of how many runs it is the
    middle one, `middle_of`; one measured in pairs also has `paired`, see `gpubench.ab.judge`.
    """
    fails = {id(row) for row in failing}
    counts = {verdict: count for verdict in comparison.ORDER if (count := judged.count(verdict))}
    details = dict(judged.details)
    sides = {side: details.pop(side, None) for side in ("base", "new")}
    return {
        "schema": SCHEMA,
        "base": {"name": judged.base_name, **(sides["base"] or {})},
        "new": {"name": judged.new_name, **(sides["new"] or {})},
        "margin": judged.margin,
        "counts": counts,
        "notes": list(judged.notes),
        "details": details,
        "rows": [_row(row, id(row) in fails) for row in comparison.ordered(judged.rows)],
    }


def _row(row: Row, fails: bool) -> dict[str, Any]:
    return {
        "id": row.id,
        "conditions": dict(row.conditions),
        "verdict": row.verdict,
        "fails": fails,
        "reason": row.reason,
        "mismatches": [{"field": each.field, "base": each.base, "new": each.new} for each in row.mismatches],
        "subject": list(row.subject),
        "hints": list(row.hints),
        "changes": [_change(change) for change in row.changes],
        **({"paired": row.paired} if row.paired else {}),
        "base_run": row.base_run,
        "middle_of": row.middle_of,
        "base": _record(row.base),
        "new": _record(row.new),
    }


def _change(change: Change) -> dict[str, Any]:
    """Its fields; null where a figure is not finite, which JSON cannot say."""
    values = asdict(change)
    return {key: None if isinstance(value, float) and not isfinite(value) else value for key, value in values.items()}


def _record(record: Record | None) -> dict[str, Any] | None:
    if record is None:
        return None
    summary = record.summary
    times = (
        {"median_ns": None, "low_ns": None, "high_ns": None, "samples": 0}
        if summary is None
        else {
            "median_ns": summary.median_ns,
            "low_ns": summary.low_ns,
            "high_ns": summary.high_ns,
            "samples": summary.n,
        }
    )
    return {"status": record.status, "reason": record.reason, "flags": list(record.flags), **times}


def _csv(judged: Judged) -> str:
    """One line per row and metric; a row without a metric has a line too."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["id", "conditions", "verdict", "reason", *_COLUMNS])
    for row in comparison.ordered(judged.rows):
        head = [row.id, " ".join(row.conditions.values()), row.verdict, row.reason]
        for change in map(_change, row.changes):
            out.writerow([*head, *(change[name] for name in _COLUMNS)])
        if not row.changes:
            out.writerow([*head, *[None] * len(_COLUMNS)])
    return text.getvalue()


def markdown(judged: Judged, rows: Sequence[Row], limit: int | None = None) -> str:
    """Heading, counts and rows as GitHub reads them; with `limit`, as many rows as that many bytes hold."""
    names = comparison.naming(judged)
    head = [f"### {_escaped(comparison.summary(judged))}", ""]
    lines = [*comparison.heading(judged), *judged.notes, *comparison.facts(judged, names)]
    head += [f"- {_escaped(line)}" for line in lines]
    if rows:
        head += ["", markdown_row(["case", "base", "new", "change", "verdict"]), "|---|--:|--:|--:|---|"]
    body = [markdown_row([names.words[id(row)], *comparison.cells(row)]) for row in rows]
    foot = [f"- {_escaped(line)}" for line in comparison.reasons(judged, names)]
    foot = ["", *foot] if foot else []
    if limit is not None:
        foot = foot[: _fitting(foot, limit - _bytes(head))]
        body = body[: _fitting(body, limit - _bytes([*head, *foot]))]
    left = len(judged.rows) - len(body)
    return "\n".join([*head, *body, *foot, *(["", f"{counted(left, 'more row')} not shown"] if left else []), ""])


def step_summary(judged: Judged, limit: int = SUMMARY_BYTES) -> str:
    """The comparison for the page of a GitHub job: what changed, cut with a count of the rows left out where it would
    be longer than so many bytes. The counts of every verdict are always there."""
    return markdown(judged, comparison.chosen(judged, all_rows=True, only_changed=True), limit)


def workflow_commands(judged: Judged, failing: Iterable[Row]) -> list[str]:
    """Workflow commands for GitHub, a line each: an error for a row that fails the build, a warning for another that
    changed for the worse; at most ANNOTATIONS of each, and then how many rows there are more."""
    names, fails = comparison.naming(judged).words, {id(row) for row in failing}
    said = [row for row in comparison.ordered(judged.rows) if id(row) in fails or row.verdict in comparison.DOUBTFUL]
    errors = [row for row in said if id(row) in fails][:ANNOTATIONS]
    warnings = [row for row in said if id(row) not in fails][:ANNOTATIONS]
    lines = [_annotation(row, names[id(row)], id(row) in fails) for row in (*errors, *warnings)]
    if len(lines) < len(said):
        more = f"{counted(len(said) - len(lines), 'more row')}: {comparison.summary(judged)}"
        lines.append(f"::notice title=gpubench::{_data(more)}")
    return lines


def workflow_error(message: str) -> str:
    """The workflow command for a step that could judge nothing."""
    return f"::error title=gpubench::{_data(message)}"


def _annotation(row: Row, name: str, fails: bool) -> str:
    _, _, change, _ = comparison.cells(row)
    text = ": ".join(part for part in (f"{name} {change}".strip(), plain(row.reason or "")) if part)
    return f"::{'error' if fails else 'warning'} title=gpubench {row.verdict}::{_data(text)}"


def _data(text: str) -> str:
    """A workflow command's message: one line whatever it holds, with no sequence that GitHub would decode."""
    return _cut(plain(text), ANNOTATION_BYTES).replace("%", "%25")


def _cut(text: str, most: int) -> str:
    """The text, or as much of it as so many bytes hold, with a mark where it was cut."""
    known = text.encode()
    return text if len(known) <= most else known[: most - 3].decode(errors="ignore") + "…"


def junit(judged: Judged, failing: Iterable[Row]) -> str:
    """JUnit XML: a testcase per row, by benchmark; a failure for each that fails the build, skipped what could not be
    judged. `time` is the new run's median in seconds; the suite's properties are what was compared with what."""
    from xml.etree import ElementTree as xml

    names, fails = comparison.naming(judged).words, {id(row) for row in failing}
    suite = xml.Element("testsuite", {"name": plain(f"{judged.base_name} → {judged.new_name}")})
    properties = xml.SubElement(suite, "properties")
    for name, value in _properties(judged):
        xml.SubElement(properties, "property", {"name": name, "value": plain(value)})
    if started := (judged.details.get("new") or {}).get("started_at"):
        suite.set("timestamp", plain(started))
    failures = skipped = 0
    for row in comparison.ordered(judged.rows):
        record = row.new or row.base
        group = plain(row.id.partition("[")[0] if record is None else f"{record.suite}.{record.benchmark}")
        case = xml.SubElement(suite, "testcase", {"classname": group, "name": comparison.where(row)})
        seconds = row.new.summary.median_ns / 1e9 if row.new is not None and row.new.summary is not None else 0.0
        case.set("time", f"{seconds:.9f}")
        message = plain(": ".join([row.verdict, *([row.reason] if row.reason else [])]))
        if id(row) in fails:
            failures += 1
            failure = xml.SubElement(case, "failure", {"type": row.verdict, "message": message})
            figures = "  ".join(filter(None, comparison.cells(row)))
            failure.text = "\n".join([f"{names[id(row)]}  {figures}", *_lines(row)])
        elif row.verdict in comparison.UNJUDGED:
            skipped += 1
            xml.SubElement(case, "skipped", {"message": message})
    counts = {"tests": len(judged.rows), "failures": failures, "errors": 0, "skipped": skipped}
    root = xml.Element("testsuites", {"name": "gpubench compare"})
    for element in (root, suite):
        for key, count in counts.items():
            element.set(key, str(count))
    root.append(suite)
    xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml.tostring(root, encoding="unicode")}\n'


def _properties(judged: Judged) -> list[tuple[str, str]]:
    """What a comparison is of, a name and a value each."""
    found = [("margin", comparison.percent(judged.margin))]
    for side, name in (("base", judged.base_name), ("new", judged.new_name)):
        about = judged.details.get(side) or {}
        found += [(side, name), *((f"{side}.{key}", str(about[key])) for key in ("run_id", "device") if key in about)]
    return [*found, *(("differs", words) for words in comparison.subject(judged))]


def _lines(row: Row) -> list[str]:
    return [*([plain(row.reason)] if row.reason else []), *map(plain, row.subject), *map(plain, row.hints)]


def _fitting(lines: Sequence[str], room: int) -> int:
    """How many of the lines fit into that many bytes."""
    used = 0
    for count, line in enumerate(lines):
        used += len(line.encode()) + 1
        if used > room:
            return count
    return len(lines)


def _bytes(lines: Iterable[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines) + 100


def _escaped(text: str) -> str:
    return markdown_row([text])[2:-2]
