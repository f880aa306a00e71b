"""A run as a document: a table for a terminal, JSON, JSON lines, CSV or Markdown; as a file, also a picture."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from gpubench.errors import UsageError
from gpubench.report.rows import groups
from gpubench.report.words import counted, markdown_row
from gpubench.result import Record, Run
from gpubench.store import jsonfile, runfile

if TYPE_CHECKING:
    from gpubench.report.charts import Picture

Form = Literal["table", "json", "jsonl", "csv", "md"]
Drawn = Literal["svg", "png", "html"]
Suffixes = Mapping[str, Form | Drawn]

FORMS: tuple[str, ...] = get_args(Form)
PICTURES: tuple[str, ...] = get_args(Drawn)
RUN: Suffixes = {
    ".json": "json",
    ".json.gz": "json",
    ".jsonl": "jsonl",
    ".csv": "csv",
    ".md": "md",
    ".svg": "svg",
    ".png": "png",
    ".html": "html",
}
"""What a file's name may end in when a run is written to it."""
ROOFLINE: Suffixes = {suffix: RUN[suffix] for suffix in (".json", ".md", ".svg", ".png", ".html")}
"""The same of its roofline."""
PLOT_WIDTH, PLOT_HEIGHT = 80, 20
"""Of a plot in a document, in columns and lines."""


def suffix_form(path: str | Path, suffixes: Suffixes = RUN) -> Form | Drawn:
    """The form a file's name asks for; UsageError, naming the known suffixes, for any other."""
    name = Path(path).name
    lower = name.lower()
    for suffix, form in suffixes.items():
        if lower.endswith(suffix) and len(lower) > len(suffix):
            return form
    known = ", ".join(suffixes)
    raise UsageError(f"{jsonfile.shown(Path(path))}: no export of that form", f"a name ending in {known}")


def check(path: str | Path, suffixes: Suffixes = RUN) -> None:
    """UsageError where a name asks for an unknown form, or for a picture and the libraries that draw are missing."""
    if suffix_form(path, suffixes) in PICTURES:
        from gpubench.report import charts

        charts.check_installed()


def save(run: Run, path: Path) -> None:
    """Write every row of the run to a file, in the form of its suffix; as a picture, what is shown of it first."""
    form = suffix_form(path)
    if form in PICTURES:
        from gpubench.report import charts

        _draw(run, charts.first(run), path)
    else:
        jsonfile.write_atomic(path, render(run, cast(Form, form), all=True).encode())


def report_markdown(run: Run) -> str:
    """The whole run as Markdown: what a run's last lines say, its plot, its claims at a glance, then every row."""
    from gpubench.report import plots
    from gpubench.report.closing import summary_lines
    from gpubench.report.words import device_name

    said = [f"- {_escaped(line)}" for line in summary_lines(run)]
    drawn = [plots.plot(run, PLOT_WIDTH, PLOT_HEIGHT, False), plots.of(run, "claims", PLOT_WIDTH, PLOT_HEIGHT)]
    shown = [line for plot in drawn if plot for line in (*_fenced(plot), "")]
    return "\n".join([f"# {_escaped(device_name(run))}", "", *said, "", *shown, _markdown(run, True)])


def save_roofline(run: Run, path: Path) -> None:
    """Write the roofline of the run to a file, in the form of its suffix."""
    from gpubench.report import roofline

    form = suffix_form(path, ROOFLINE)
    if form in PICTURES:
        from gpubench.report import charts

        _draw(run, charts.roofline(run), path)
    else:
        found = roofline.view(run)
        markdown = form == "md"
        text = roofline.markdown(found, True) if markdown else jsonfile.dumps(roofline.to_json(found), indent=1) + "\n"
        jsonfile.write_atomic(path, text.encode())


def _draw(run: Run, picture: Picture, path: Path) -> None:
    """Write a picture of the run: still, or as a page."""
    from gpubench.report import charts

    if suffix_form(path) == "html":
        from gpubench.report.html.picture import page

        jsonfile.write_atomic(path, page(run, picture))
    else:
        charts.save(picture, path)


def render(run: Run, form: Form, all: bool = False, width: int = 100) -> str:
    """The document, with a final newline. `all` matters to "table" and "md", the others hold every row; `width` is the
    table's."""
    if form == "json":
        return runfile.encode(run).decode()
    if form == "jsonl":
        return "".join(jsonfile.dumps({"run_id": run.run_id, **runfile.plain(record)}) + "\n" for record in run.records)
    if form == "csv":
        return _csv(run)
    return _markdown(run, all) if form == "md" else _table(run, all, width)


def _table(run: Run, all_rows: bool, width: int) -> str:
    from rich.console import Console

    from gpubench.report.table import table

    text = io.StringIO()
    console = Console(file=text, width=width, color_system=None, force_terminal=False, markup=False, highlight=False)
    console.print(table(run, all_rows))
    return text.getvalue()


def _csv(run: Run) -> str:
    """One line per row; a column per parameter, per label and per metric, units in their names, SI base units."""
    params = dict.fromkeys(name for record in run.records for name in record.params)
    labels = dict.fromkeys(name for record in run.records for name in record.labels)
    units = dict.fromkeys((metric.name, metric.unit) for record in run.records for metric in record.metrics)
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(
        [
            *("id", "suite", "benchmark"),
            *(f"p.{name}" for name in params),
            *("cache", "load", "data", "status", "reason", "flags"),
            *(f"label.{name}" for name in labels),
            *("time_ns", "time_low_ns", "time_high_ns", "samples"),
            *(f"{name} ({unit})" for name, unit in units),
        ]
    )
    for record in run.records:
        metrics = {(metric.name, metric.unit): metric.value for metric in record.metrics if isfinite(metric.value)}
        conditions = record.conditions
        out.writerow(
            [
                *(record.id, record.suite, record.benchmark),
                *(record.params.get(name) for name in params),
                *(conditions.cache, conditions.load, conditions.data),
                *(record.status, record.reason, " ".join(record.flags)),
                *(record.labels.get(name) for name in labels),
                *_times(record),
                *(metrics.get(key) for key in units),
            ]
        )
    return text.getvalue()


def _times(record: Record) -> list[Any]:
    summary = record.summary
    return [None] * 4 if summary is None else [summary.median_ns, summary.low_ns, summary.high_ns, summary.n]


def _markdown(run: Run, all_rows: bool) -> str:
    """The tables of `gpubench.report.table` as GitHub tables."""
    from gpubench.report import table

    found = groups(run)
    chosen = None if all_rows else table.shown_first(run, found)
    lines = [*table.remarks(run), ""] if table.remarks(run) else []
    for block in table.blocks(found):
        rows = [(group, row) for group in block for row in group.records if chosen is None or id(row) in chosen]
        if not rows:
            continue
        names = table.columns(run, block, [row for _, row in rows])
        lines += [f"## {_escaped(table.heading(run, block))}", ""]
        lines += [markdown_row(["case", *names])]
        lines += ["|---|" + "|".join("--:" if name in table.RIGHT else "---" for name in names) + "|"]
        lines += [markdown_row([table.case_words(block, g, row), *table.cells(run, g, row, names)]) for g, row in rows]
        lines += ["", *(f"- {_escaped(line)}" for line in table.notes(block)), ""]
    if chosen is not None and len(chosen) < len(run.records):
        lines += [f"{counted(len(run.records) - len(chosen), 'more row')}: --all", ""]
    return "\n".join(lines).replace("\n\n\n", "\n\n") if lines else "no rows\n"


def _fenced(text: str) -> list[str]:
    """Text as it is, in a fence of more backticks than it has in a row."""
    fence = "`" * max(3, 1 + max((len(found) for found in re.findall("`+", text)), default=0))
    return [f"{fence}text", *text.splitlines(), fence]


def _escaped(text: str) -> str:
    return markdown_row([text])[2:-2]
