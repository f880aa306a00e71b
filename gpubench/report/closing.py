"""The last lines of a run: what was measured, the best and the largest drop, where it is saved, what to type next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from gpubench.report.claims import claims_line
from gpubench.report.rows import Group, dtype_of, groups, is_wrong, number, percent_of_ceiling, ranked, statuses
from gpubench.report.sustained import sustained_lines
from gpubench.report.sweep import Sweep, largest_drop, sweeps
from gpubench.report.ways import errors
from gpubench.report.words import (
    SEPARATOR,
    conditions_words,
    counted,
    device_name,
    device_word,
    plain,
    short_dtype,
    typed,
)
from gpubench.result import FAILED, Record, Run
from gpubench.units import format_duration, format_rate, three_digits

LINES = 6
"""Benchmarks that get a line of their own."""
MOST_SUITES = 4
"""The first line names no more suites than this; of more it says how many."""
WORTH_SAYING = 1.1
"""A drop by a smaller factor is no news."""


def closing_lines(run: Run, path_text: str, word: str = "", asked: Sequence[str] = ()) -> list[str]:
    """The end-of-run lines, without markup; `path_text` is where the run was saved, as the user is to read it, `word`
    how it is typed as RUN, empty for the latest, which commands take by themselves; `asked` are the words it was asked
    for by."""
    ending = [f"saved {path_text}", f"next  {SEPARATOR.join(_next(run, word, asked))}"]
    return [*summary_lines(run, word), *ending]


def summary_lines(run: Run, word: str = "") -> list[str]:
    """What was measured, the best and the largest drop of each benchmark, what the claims come to."""
    return [_headline(run), *_findings(run, word), *claims_line(run, word)]


def _headline(run: Run) -> str:
    suites = dict.fromkeys(plain(record.suite) for record in run.records)
    dtypes = dict.fromkeys(short_dtype(plain(dtype)) for record in run.records if (dtype := dtype_of(record)))
    conditions = conditions_words(*(record.conditions for record in run.records))
    size = counted(len(run.records), "case")
    length = took(run)
    parts = [
        (", ".join(suites) if len(suites) <= MOST_SUITES else counted(len(suites), "suite")) or "no suite",
        device_name(run),
        *([", ".join(dtypes)] if dtypes else []),
        *([conditions] if conditions else []),
        f"{size} in {length}" if length else size,
        *(f"{count:,} {status}" for status, count in statuses(run.records).items()),
    ]
    if run.status != "complete":
        parts.append(run.status)
    return SEPARATOR.join(parts)


def took(run: Run) -> str:
    """How long the run lasted: 4.20 s, 58 s, 3 min 20 s; empty where its times do not say."""
    try:
        begun, ended = (datetime.fromisoformat(text or "") for text in (run.started_at, run.ended_at))
        seconds = (ended - begun).total_seconds()
    except (TypeError, ValueError):
        return ""
    if seconds < 0:
        return ""
    if seconds < 10:
        return format_duration(seconds * 1e9)
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _findings(run: Run, word: str) -> list[str]:
    """One line per benchmark: its best row and its largest drop; where there is no number at all, why. Benchmarks about
    how to measure share a line, which says how far off their wrong rows are."""
    if not run.records:
        return ["nothing was measured: no case ran"]
    found, along = groups(run), sweeps(run, least=2)
    astray = [group for group in found if errors(group)]
    best = [line for group in found if group not in astray and (line := _best(run, group, len(found) > 1, along))]
    lines = ([_astray(astray)] if astray else []) + best
    held = sustained_lines(run)
    if len(held) > LINES:
        more = counted(len(held) - LINES + 1, "more sustained row")
        held[LINES - 1 :] = [f"and {more}: {typed('show', word, '--all')}"]
    if len(lines) > LINES:
        lines[LINES - 1 :] = [f"and {counted(len(lines) - LINES + 1, 'more benchmark')}: {typed('show', word)}"]
    return [*lines, *held] or [_nothing(run)]


def _astray(found: list[Group]) -> str:
    """The time of each wrong row over that of the right one."""
    words = [
        f"{plain(group.benchmark)}{'' if len(errors(group)) == 1 else ' ' + group.case(record)} {three_digits(ratio)}×"
        for group in found
        for record, ratio in errors(group)
    ]
    return f"time measured wrong over time measured right: {SEPARATOR.join(words)}"


def _best(run: Run, group: Group, several: bool, found: list[Sweep]) -> str | None:
    order = ranked(group.records)
    if not order:
        return None
    best = order[0]
    metric = number(best)
    assert metric is not None
    value = format_duration(metric.value) if metric.unit == "ns" else format_rate(metric.value, metric.unit)
    name = f"{plain(group.benchmark)} " if several else ""
    percent = percent_of_ceiling(run, best)
    share = "" if percent is None else f" ({percent:.0f} % of this {device_word(run)}'s ceiling)"
    line = f"best {name}{value} at {group.case(best)}{share}"
    own = [sweep for sweep in found if sweep.group.path == group.path]
    drops = [(drop, sweep.others) for sweep in own if (drop := largest_drop(sweep))]
    if not drops:
        return line
    (before, after, ratio), others = max(drops, key=lambda drop: drop[0][2])
    where = f" ({', '.join(others)})" if others else ""
    return f"{line}{SEPARATOR}largest drop {before}→{after}{where}: {ratio:.1f}×" if ratio >= WORTH_SAYING else line


def _nothing(run: Run) -> str:
    """No row has a number that counts: say how many, and the reason of the first."""
    first = next((record for record in run.records if record.status in FAILED), run.records[0])
    if first.status == "ok":
        why = ", ".join(first.flags) or ("measured wrong on purpose" if is_wrong(first) else "without a metric")
        return f"no case gave a number to rank: {plain(first.id)} is {why}"
    return f"no case gave a number: {plain(first.id)}: {first.status}: {plain(first.reason or 'no reason given')}"


def _next(run: Run, word: str, asked: Sequence[str]) -> list[str]:
    """Commands that make sense now."""
    failed = next((record for record in run.records if record.status in ("error", "incorrect")), None)
    commands = []
    if any(number(record) is not None and record.metric("flops") for record in run.records):
        commands.append(typed("roofline", word))
    if fell := _fell(run):
        commands.append(typed("explain", word or "latest", *fell))
    if any(number(record) is not None for record in run.records):
        commands.append(typed("show", word, "--all"))
    if failed is not None:
        commands.append(_again(run, failed, asked))
    return commands or [typed("list")]


def _fell(run: Run) -> list[str]:
    """The row after the largest drop of the run's only sweep, as CASE and -p are typed; empty where none is worth it,
    or no words mean that row alone."""
    found = sweeps(run, least=2)
    drop = largest_drop(found[0]) if len(found) == 1 else None
    if drop is None or drop[2] < WORTH_SAYING:
        return []
    sweep, size = found[0], f"{found[0].axis}={drop[1]}"
    alike = [record for record in run.records if record.params.get(sweep.axis) == drop[1]]
    if len(alike) == 1:
        return ["-p", size]
    alike = [record for record in alike if sweep.group.path == f"{record.suite}/{record.benchmark}"]
    return [sweep.group.path, "-p", size] if len(alike) == 1 else []


def _again(run: Run, failed: Record, asked: Sequence[str]) -> str:
    """The command that measures a row again on the same device and says all that there is to say of it. A suite that
    was asked for as a file has no other name."""
    group = next(group for group in groups(run) if failed in group.records)
    under = {name: value for name, value in failed.conditions.by_name.items() if name in group.conditions}
    named = {**failed.params, **under, **failed.conditions.unusual}
    params = [f"-p {name}={value}" for name, value in named.items() if name not in group.following]
    device = run.settings.get("device", {})
    chosen = [f"--device {device['value']}"] if device.get("origin") == "--device" else []
    files = {Path(word).stem.replace("_", "-"): shlex.quote(word) for word in asked if word.endswith(".py")}
    what = files.get(failed.suite, f"{failed.suite}/{failed.benchmark}")
    return typed("run", what, *params, *chosen, "--debug")
