"""The claims as a run settles them: the scoreboard, one claim in full, and the line at the end of a run."""

from __future__ import annotations

import textwrap
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpubench.claims.judge import counted, limit_words, words_of
from gpubench.claims.statements import Statement
from gpubench.finding import TIMES, Estimate
from gpubench.report.words import SEPARATOR, device_name, plain, typed
from gpubench.result import Record, Run
from gpubench.units import exact_digits, format_duration, format_rate, three_digits

if TYPE_CHECKING:
    from rich.console import RenderableType

TITLE = 12
"""Columns of the titles of a claim in full."""
COMMON = frozenset({"time", "flops", "bandwidth", "of_datasheet", "of_silicon"})
"""Metrics that every kind of row may have; the others are what its kernel counted."""
ROWS = 40
"""Rows of a claim that are shown one by one."""
PROOFS = {"A": "by counting", "B": "by time", "C": "by arithmetic"}
RIGHT = {"true": "right", "partly": "partly right", "false": "wrong"}
Judged = Mapping[str, Any]


def table(
    run: Run,
    judged: Sequence[Judged],
    statements: Mapping[str, Statement],
    rules: Container[str],
    word: str = "",
) -> RenderableType:
    """The scoreboard: a row for each claim that was judged, by section, and a line for each suite that was not run.

    `rules` are the claims that this version has a rule for, `word` how the run is typed where it is not the latest.
    """
    from rich.console import Group as Renderables
    from rich.text import Text

    from gpubench.report.grid import Column, Grid

    parts: list[RenderableType] = [Text(SEPARATOR.join(["claims", device_name(run), *counts(judged)]), style="bold")]
    with_figures = [each for each in judged if each["effects"]]
    if with_figures:
        names = ("claim", "predicted", "measured here", "control", "verdict")
        grid = Grid([Column("id"), *(Column(name, fold=True) for name in names), Column("proof")])
        section = None
        for claim in sorted(with_figures, key=lambda each: str(each["id"])):
            statement = statements.get(claim["id"])
            if statement is not None and statement.section != section:
                section = statement.section
                grid.add("", plain(section), "", "", "", "", "", style="bold")
            short = statement.short if statement is not None else claim["statement"]
            cells = (*headline(claim), _control(claim), claim["verdict"], claim["proof"] or "")
            grid.add(plain(claim["id"]), plain(short), *map(plain, cells))
        parts += [grid, Text("")]
    lines = [*_reasons(judged), *_not_run({str(each["id"]) for each in judged}, statements, rules, word)]
    return Renderables(*parts, *map(Text, lines))


def claims_line(run: Run, word: str = "") -> list[str]:
    """The line at the end of a run whose suites settle claims: `claims: 9 hold · 1 partly …`. `word` is how the run is
    typed where it is not the latest."""
    if not run.claims:
        return []
    return [f"claims: {SEPARATOR.join(counts(run.claims))}; {typed('claims', word)}"]


def counts(judged: Sequence[Judged]) -> list[str]:
    """How many claims have each verdict, in words: `62 hold`, `1 partly`."""
    words = {"HOLDS": "hold", "INFO": "for information"}
    return [f"{number} {words.get(verdict, verdict.lower())}" for verdict, number in counted(judged).items()]


def headline(claim: Judged) -> tuple[str, str]:
    """What was expected of the effect that decides, and its figure: the first that does not hold, else the first."""
    effects = [each for each in claim["effects"] if each["verdict"] != "INFO"]
    chosen = next((each for each in effects if each["verdict"] != "HOLDS"), (effects or claim["effects"] or [None])[0])
    return ("", "") if chosen is None else (limits(chosen), figure(chosen))


def limits(effect: Judged) -> str:
    """What a figure is expected to be: `≥ 4.00`, `1.80 to 2.20`; empty for one that is for information."""
    return limit_words(effect["at_least"], effect["at_most"]).replace("at least", "≥").replace("at most", "≤")


def figure(effect: Judged) -> str:
    """`2.01 [1.99, 2.03]`, with a unit where it is no plain number; `–` for one that could not be had."""
    values = [effect["value"], effect["low"], effect["high"]]
    if None in values:
        return "–"
    unit = "" if effect["unit"] in ("1", TIMES) else f" {effect['unit']}"
    return words_of(Estimate(*values)) + unit


def _control(claim: Judged) -> str:
    """The figure of the first control, or of the one that failed."""
    controls = claim["control"] or []
    failed = next((each for each in controls if each["verdict"] != "HOLDS"), None)
    if failed is not None:
        return f"{_short(failed)} {'failed' if failed['verdict'] == 'INVALID' else 'unclear'}"
    return _short(controls[0]) if controls else ""


def _short(effect: Judged) -> str:
    if effect["value"] is None:
        return "–"
    return (exact_digits if effect["low"] == effect["high"] else three_digits)(effect["value"])


def _reasons(judged: Sequence[Judged]) -> list[str]:
    """Why claims have their verdict, where the figures do not say it: claims that share a reason in one line. One that
    has no figures has no row in the table, and begins with its verdict."""
    found: dict[tuple[str, str], list[str]] = {}
    for claim in judged:
        verdict = "" if claim["effects"] else f"{claim['verdict'].lower()}: "
        if verdict or claim["reason"]:
            found.setdefault((plain(verdict), plain(claim["reason"] or "")), []).append(plain(claim["id"]))
    return [f"{verdict}{', '.join(ids)}: {reason}" for (verdict, reason), ids in found.items()]


def _not_run(done: set[str], statements: Mapping[str, Statement], rules: Container[str], word: str) -> list[str]:
    """A line for each suite that would settle more, one for what waits for a suite, one for what cannot be tested."""
    there = [each for each in statements.values() if each.id not in done]
    lines = []
    for command in dict.fromkeys(each.command for each in there if each.id in rules):
        ids = [each.id for each in there if each.id in rules and each.command == command]
        lines.append(f"not run: {', '.join(ids)}: {command}")
    if waiting := [each.id for each in there if each.untested is None and each.id not in rules]:
        lines.append(f"no rule in this version: {', '.join(waiting)}")
    if untested := [each.id for each in there if each.untested is not None]:
        lines.append(f"not testable: {', '.join(untested)}: {typed('claims', word, untested[0])} says why")
    return lines


def full(run: Run, statement: Statement, claim: Judged | None, width: int) -> str:
    """One claim: its words, where they are from, whether they are right, experiment, rule, figures, control, verdict.

    `claim` is None where the run says nothing about it. Plain text of at most `width` columns, with a final newline.
    """
    said = f"{RIGHT[statement.right]}{SEPARATOR}" if statement.of_lecture else ""
    items = [
        ("claim", statement.claim),
        ("the lecture" if statement.of_lecture else "added, from", f"{said}{statement.source}"),
        ("corrected", statement.corrected or ""),
        ("not tested", statement.untested or ""),
        ("experiment", statement.experiment),
        ("measured by", ", ".join(f"{statement.suite}/{name}" for name in statement.benchmarks)),
        *(("drawn from", f"{family}: {', '.join(ids)}") for family, ids in statement.families.items()),
        ("rule", statement.rule),
        ("control is", statement.control),
    ]
    if claim is None:
        verdict = "NOT TESTABLE HERE" if statement.untested else f"NOT RUN: {statement.command}"
        items.append(("verdict", verdict))
    else:
        items += [
            *[("model", text) for text in _prediction(claim["prediction"])],
            *[("effect", effect_words(each)) for each in claim["effects"]],
            *[("control", effect_words(each)) for each in claim["control"] or []],
            *[("row", text) for text in _rows(run, claim["rows"])],
            ("verdict", _verdict(claim)),
            ("why", claim["reason"] or ""),
            ("note", claim.get("note") or ""),
            ("version", f"rule {claim['rule']}" if claim["rule"] else ""),
        ]
    heading = SEPARATOR.join([statement.id, statement.short, device_name(run)])
    lines, before = [plain(heading)], ""
    for title, text in items:
        if text:
            lines += _item("" if title == before else title, text, width)
            before = title
    return "\n".join(lines) + "\n"


def _item(title: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        plain(text), max(width, 40), initial_indent=f"{title:<{TITLE}} ", subsequent_indent=" " * (TITLE + 1),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _verdict(claim: Judged) -> str:
    proof = claim["proof"]
    return str(claim["verdict"]) + (f" (proof {proof}: {PROOFS.get(proof, proof)})" if proof else "")


def effect_words(effect: Judged) -> str:
    """`time of a over b: 2.01 [1.99, 2.03], expected 1.80 to 2.20: HOLDS`."""
    limits = limit_words(effect["at_least"], effect["at_most"])
    expected = f", expected {limits}: {effect['verdict']}" if limits else ""
    return f"{effect['name']}: {figure(effect)}{expected}"


def _prediction(prediction: Mapping[str, Any]) -> list[str]:
    return [f"{name} {_value(value)}" for name, value in prediction.items()]


def _value(value: Any) -> str:
    """A figure of a prediction in three digits, at any depth; text as it is."""
    if isinstance(value, bool) or value is None or isinstance(value, str | int):
        return str(value)
    if isinstance(value, float):
        return three_digits(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_value(each)}" for name, each in value.items())
    return ", ".join(map(_value, value))


def _rows(run: Run, ids: Sequence[str]) -> list[str]:
    """The rows a verdict rests on, with their figures."""
    known = {record.id: record for record in run.records}
    lines = [
        f"{name}  {_figures(known[name])}" if name in known else f"{name}  not in this file" for name in ids[:ROWS]
    ]
    return lines + ([f"and {len(ids) - ROWS} more"] if len(ids) > ROWS else [])


def _figures(record: Record) -> str:
    """The median of a row, its headline metric where that is another, and what its kernel counted."""
    parts: list[str] = [record.status if record.summary is None else format_duration(record.summary.median_ns)]
    for metric in record.metrics:
        if metric.name not in COMMON or (metric.primary and metric.name != "time"):
            parts.append(f"{metric.name} {format_rate(metric.value, metric.unit).removesuffix(' 1')}")
    return ", ".join(parts)
