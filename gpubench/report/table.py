"""The rows of a run as tables for the terminal, one per benchmark: at most ROWS of them unless all are asked for."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group as Renderables
from rich.console import RenderableType
from rich.text import Text

from gpubench import yardstick
from gpubench.energy import is_of_hot_calls
from gpubench.model import catalog
from gpubench.model.attention_traffic import CONVENTION
from gpubench.report.grid import Column, Grid
from gpubench.report.rows import Group, ceiling_of, groups, is_wrong, number, percent_of_ceiling, select, statuses
from gpubench.report.sustained import limit_words
from gpubench.report.sweep import largest_drop, sweeps
from gpubench.report.ways import error_words, lessons
from gpubench.report.words import SEPARATOR, counted, device_name, plain
from gpubench.result import FAILED, Record, Run
from gpubench.telemetry import beside_mhz, held_mhz
from gpubench.units import format_duration, format_half_width, format_rate

ROWS = 24
REASONS = 6
"""Different reasons printed below a table; the rest are counted."""

RIGHT = frozenset({"time", "rate", "SM clock", "power", "energy", "of ceiling", "of sheet", "of right"})
"""Columns of numbers."""
OPTIONAL = frozenset({"SM clock", "power", "energy", "of sheet"})
"""Columns left out where the terminal is too narrow."""
ATTENTION = frozenset({"attention", "attention-kernels"})
"""Suites that count the flops of attention, whose number is a convention."""
HOT_MARK = " (hot)"
"""Behind an energy of hot calls, in the row of cold ones."""

_STYLE = {"ok": "", "skipped": "dim", "unsupported": "dim"}


def table(run: Run, all_rows: bool = False) -> RenderableType:
    """A heading and a table for each benchmark; `all_rows` lifts the limit of ROWS rows."""
    found = groups(run)
    if not found:
        return Text(SEPARATOR.join([device_name(run), "no rows"]))
    chosen = None if all_rows else shown_first(run, found)
    parts: list[RenderableType] = [Text(remark) for remark in remarks(run)]
    for block in blocks(found):
        if part := _grid(run, block, chosen):
            parts += [Text(heading(run, block), style="bold"), part, *map(Text, notes(block)), Text("")]
    if chosen is None or len(chosen) == len(run.records):
        return Renderables(*parts[:-1])
    more = counted(len(run.records) - len(chosen), "more row")
    return Renderables(*parts, Text(f"{more}: --all", style="dim"))


def remarks(run: Run) -> list[str]:
    """What a reader must know before the rows: why this device, no datasheet for it, and that rows are missing."""
    notice, absence = run.device.get("notice"), catalog.absence(run.device)
    lines = [plain(notice)] if notice else []
    if absence:
        lines.append(f"no share of a datasheet: {plain(absence)}")
    return lines if run.status == "complete" else [*lines, f"{run.status} run: not every case was measured"]


def shown_first(run: Run, found: Sequence[Group]) -> set[int]:
    """The rows of the short table, as `id()` of their records: `select`, and both sides of the largest drop."""
    sides = set()
    for sweep in sweeps(run)[:1]:
        if drop := largest_drop(sweep):
            sides = {id(record) for record, value in zip(sweep.records, sweep.values, strict=True) if value in drop[:2]}
    return select(found, ROWS, sides)


def blocks(found: Sequence[Group]) -> list[list[Group]]:
    """Groups that share a table: neighbours of one suite that differ in nothing but the benchmark."""
    result: list[list[Group]] = []
    for group in found:
        last = result[-1][-1] if result else None
        if last is not None and _shape(last) == _shape(group):
            result[-1].append(group)
        else:
            result.append([group])
    return result


def _shape(group: Group) -> tuple[object, ...]:
    return group.suite, group.facts(), group.conditions, group.classes, set(group.constant), group.varying


def case_words(block: Sequence[Group], group: Group, record: Record) -> str:
    """The row's name within its table, with the benchmark in front where the table holds several; conditions that vary
    have columns."""
    return group.params(record) if len(block) == 1 else f"{plain(group.benchmark)} {group.params(record)}"


def heading(run: Run, block: Sequence[Group]) -> str:
    """The heading of a table: suite/benchmark (suite where there are several) · device · what all rows share."""
    name = plain(block[0].path if len(block) == 1 else block[0].suite)
    return SEPARATOR.join([name, device_name(run), *block[0].facts()])


def columns(run: Run, block: Sequence[Group], shown: Sequence[Record]) -> list[str]:
    """The names of the columns, beside case, that have something to say for these rows."""
    classes, varying = block[0].classes, block[0].conditions
    sustained = any(record.conditions.load == "sustained" for record in shown)
    said = {
        **dict.fromkeys(varying, True),
        "time": True,
        "rate": any((metric := number(record)) is not None and metric.unit != "ns" for record in shown),
        "SM clock": sustained and any(clock_words(record) for record in shown),
        "power": sustained and any(power_words(record) for record in shown),
        "limit": any(limit_words(record) for record in shown),
        "energy": any(energy_words(record) for record in shown),
        "of ceiling": any(ceiling_of(run, record) for record in shown),
        "of sheet": any(sheet_words(record) for record in shown),
        "of right": any(is_wrong(record) for record in shown),
        (plain(classes[0]) if len(classes) == 1 else "class"): bool(classes),
        "status": any(record.status != "ok" or record.flags for record in shown),
    }
    return [name for name, wanted in said.items() if wanted]


def cells(run: Run, group: Group, record: Record, names: Sequence[str]) -> list[str]:
    """The row's text in each of those columns; empty where it has none."""
    metric, percent = number(record), percent_of_ceiling(run, record)
    have = {
        **record.conditions.by_name,
        "time": time_words(record),
        "rate": "" if metric is None or metric.unit == "ns" else format_rate(metric.value, metric.unit),
        "SM clock": clock_words(record),
        "power": power_words(record),
        "limit": limit_words(record),
        "energy": energy_words(record),
        "of ceiling": "" if percent is None else f"{percent:.0f} %",
        "of sheet": sheet_words(record),
        "of right": error_words(group, record),
        "status": status_words(record),
    }
    return [have.get(name, group.label(record)) for name in names]


def clock_words(record: Record) -> str:
    """The SM clock held while the row was measured: 1470 MHz; ≤1952 MHz where a power cap may have held it lower within
    the calls than beside them. Empty where it was not read."""
    mhz = beside_mhz(record) if number(record) is not None else 0.0
    return f"{'' if held_mhz(record) else '≤'}{mhz:.0f} MHz" if mhz else ""


def power_words(record: Record) -> str:
    """The average power of the calls back to back: 691 W; empty where it was not measured."""
    power = record.metric("power") if number(record) is not None else None
    return "" if power is None else f"{power.value:.0f} W"


def energy_words(record: Record) -> str:
    """The energy of a flop: 0.88 pJ/FLOP; of a byte where the row has no flops; of a call where bytes would be those of
    a cache. With a mark where a cold row has that of hot calls; empty where it was not measured."""
    names = "energy_per_flop", "energy_per_byte", "energy"
    found = next((metric for name in names if (metric := record.metric(name)) is not None), None)
    if found is None or number(record) is None:
        return ""
    return f"{format_rate(found.value, found.unit)}{HOT_MARK if is_of_hot_calls(record) else ''}"


def sheet_words(record: Record) -> str:
    """The headline rate as a share of the datasheet's; empty where none is known."""
    share = record.metric("of_datasheet") if number(record) is not None else None
    return "" if share is None else f"{100 * share.value:.0f} %"


def time_words(record: Record) -> str:
    """The median of one call and the half-width of its interval: 172 µs ± 0.3 %. Empty for a row without a number."""
    summary = record.summary
    if summary is None or record.status != "ok":
        return ""
    words = format_duration(summary.median_ns)
    if summary.low_ns is None or summary.high_ns is None or summary.median_ns <= 0:
        return words
    return f"{words} ± {format_half_width(50 * (summary.high_ns - summary.low_ns) / summary.median_ns)}"


def status_words(record: Record) -> str:
    """The status of a row that is not ok, and its flags."""
    return ", ".join([*([] if record.status == "ok" else [record.status]), *record.flags])


def notes(block: Sequence[Group]) -> list[str]:
    """The lines below a table: which flops a rate of attention counts, what rows that are wrong on purpose teach,
    `reasons`, and what a mark means."""
    metrics = [number(record) for group in block if group.suite in ATTENTION for record in group.records]
    counting = any(metric is not None and metric.unit == "FLOP/s" for metric in metrics)
    marked = any(energy_words(record).endswith(HOT_MARK) for group in block for record in group.records)
    return [
        *([CONVENTION] if counting else []),
        *(line for group in block for line in (*lessons(group), *reasons(block, group))),
        *([f"energy{HOT_MARK}: of hot calls, back to back, beside the time of a cold one"] if marked else []),
    ]


def reasons(block: Sequence[Group], group: Group) -> list[str]:
    """Why rows have no number, or one that cannot be: one line per status and reason, with the rows it holds for;
    failures first."""
    found: dict[tuple[str, str], list[Record]] = {}
    for status in statuses(group.records):
        for record in group.records:
            if record.status == status:
                found.setdefault((status, plain(record.reason or "no reason given")), []).append(record)
    for record in group.records:
        if why := yardstick.cause(record):
            found.setdefault(("implausible", plain(why)), []).append(record)
    lines = []
    for (status, reason), records in list(found.items())[:REASONS]:
        case = f"{plain(group.benchmark)} {group.case(records[0])}" if len(block) > 1 else group.case(records[0])
        cases = case + (f" and {counted(len(records) - 1, 'more row')}" if len(records) > 1 else "")
        lines.append(f"{status}: {cases}: {reason}")
    if len(found) > REASONS:
        lines.append(f"{counted(len(found) - REASONS, 'other reason')} not listed here: --format csv has all")
    return lines


def _grid(run: Run, block: Sequence[Group], chosen: set[int] | None) -> Grid | None:
    rows = [(group, record) for group in block for record in group.records if chosen is None or id(record) in chosen]
    if not rows:
        return None
    names = columns(run, block, [record for _, record in rows])
    grid = Grid(
        [
            Column("case", fold=True),
            *(Column(name, name in RIGHT, fold=name == "status", optional=name in OPTIONAL) for name in names),
        ]
    )
    for group, record in rows:
        style = _STYLE.get(record.status, "red" if record.status in FAILED else "")
        grid.add(case_words(block, group, record), *cells(run, group, record, names), style=style)
    return grid
