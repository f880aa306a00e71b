"""The rows of a run, grouped by benchmark: what varies, what to call each row, which rows to show first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

from gpubench.report.words import SEPARATOR, conditions_by_name, plain, short_dtype
from gpubench.result import CONDITIONS, FAILED, WAY, WRONG, Ceiling, Conditions, Metric, Param, Record, Run

UNRANKED = frozenset({"implausible", "below-resolution"})
"""Flags of a row whose number is shown but is nobody's best or worst."""


@dataclass(frozen=True)
class Group:
    """The rows of one benchmark, in the order they were measured.

    `varying` are the parameters that tell its rows apart; `following` maps a parameter to the varying one it always
    equals (m and k to n in a square sweep); `constant` are the others. `conditions` are the names of the conditions
    that vary, `classes` the label keys that do.
    """

    suite: str
    benchmark: str
    records: Sequence[Record]
    varying: tuple[str, ...]
    following: dict[str, str]
    constant: dict[str, Param]
    conditions: tuple[str, ...]
    classes: tuple[str, ...]

    @property
    def path(self) -> str:
        """suite/benchmark."""
        return f"{self.suite}/{self.benchmark}"

    def case(self, record: Record) -> str:
        """The row's name within the group: its varying parameters and conditions as they are typed after -p."""
        return " ".join([*self._params(record), *self.under(record)]) or plain(record.benchmark)

    def params(self, record: Record) -> str:
        """The same without conditions."""
        return " ".join(self._params(record)) or plain(record.benchmark)

    def under(self, record: Record) -> list[str]:
        """The row's conditions that vary in the group, as they are typed after -p."""
        return [f"{name}={record.conditions.by_name[name]}" for name in self.conditions]

    def _params(self, record: Record) -> list[str]:
        names = self.varying or tuple(name for name, value in record.params.items() if isinstance(value, int))
        return [f"{name}={plain(record.params[name])}" for name in names if name in record.params]

    def label(self, record: Record) -> str:
        """The row's class: its label values that vary in the group."""
        return SEPARATOR.join(plain(record.labels[key]) for key in self.classes if key in record.labels)

    def facts(self, beside: Iterable[Conditions] = ()) -> list[str]:
        """What all rows share, for a heading: constant parameters, which parameters move together, and conditions, with
        those of rows they are set beside."""
        shown = {name for name in self.constant if self.varying or not isinstance(self.constant[name], int)}
        facts = [
            short_dtype(plain(value)) if name == "dtype" else f"{name}={plain(value)}"
            for name, value in self.constant.items()
            if name in shown
        ]
        for leader in self.varying:
            tied = [name for name, to in self.following.items() if to == leader]
            if tied:
                facts.append("=".join([*tied, leader]))
        shared = conditions_by_name([*beside, *(record.conditions for record in self.records)])
        under = ", ".join(word for name, word in shared.items() if name not in self.conditions)
        return [*facts, under] if under else facts


def groups(run: Run) -> list[Group]:
    """The run's rows by benchmark, in order of first appearance."""
    return groups_of(run.records)


def groups_of(records: Iterable[Record]) -> list[Group]:
    """Rows by benchmark, in order of first appearance."""
    found: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        found.setdefault((record.suite, record.benchmark), []).append(record)
    return [_group(suite, benchmark, records) for (suite, benchmark), records in found.items()]


def _group(suite: str, benchmark: str, records: Sequence[Record]) -> Group:
    columns = {name: [record.params.get(name) for record in records] for name in _keys(r.params for r in records)}
    varying = [name for name, values in columns.items() if len(set(values)) > 1]
    following: dict[str, str] = {}
    for name in varying:
        tied = [other for other in varying if columns[other] == columns[name]]
        leader = "n" if "n" in tied else tied[0]
        if name != leader:
            following[name] = leader
    constant = {name: values[0] for name, values in columns.items() if name not in varying and values[0] is not None}
    return Group(
        suite,
        benchmark,
        records,
        tuple(name for name in varying if name not in following),
        following,
        constant,
        _varying_conditions(records),
        varying_labels(records),
    )


def _varying_conditions(records: Sequence[Record]) -> tuple[str, ...]:
    """The names of the conditions with more than one value among the rows."""
    asked = [each.by_name for each in {record.conditions for record in records}]
    return tuple(name for name in CONDITIONS if len({each[name] for each in asked}) > 1)


def _keys(mappings: Iterable[dict[str, Param]]) -> list[str]:
    return list(dict.fromkeys(key for mapping in mappings for key in mapping))


def varying_labels(records: Sequence[Record]) -> tuple[str, ...]:
    """The label keys with more than one value among the rows that have labels."""
    keys = dict.fromkeys(key for record in records for key in record.labels)
    return tuple(key for key in keys if len({r.labels[key] for r in records if key in r.labels}) > 1)


def number(record: Record) -> Metric | None:
    """The row's headline metric if the row is ok and the metric is a finite number, else None."""
    metric = record.primary if record.status == "ok" else None
    return metric if metric is not None and isfinite(metric.value) else None


def is_wrong(record: Record) -> bool:
    """Whether a row was measured in a wrong way on purpose, see `gpubench.report.ways`."""
    return record.params.get(WAY) == WRONG


def is_trusted(record: Record) -> bool:
    """Whether a row's number, where it has one, may be called best or worst."""
    return not UNRANKED & set(record.flags) and not is_wrong(record)


def ranked(records: Iterable[Record]) -> list[Record]:
    """Rows with a number that may be called best or worst, best first; without rows of another unit than the first."""
    rows = [(metric, record) for record in records if (metric := number(record)) and is_trusted(record)]
    if not rows:
        return []
    first = rows[0][0]
    sign = -1 if first.direction == "higher" else 1
    alike = [(sign * metric.value, index) for index, (metric, _) in enumerate(rows) if metric.unit == first.unit]
    return [rows[index][1] for _, index in sorted(alike)]


def dtype_of(record: Record) -> str | None:
    """The dtype a row computes in, as its workload says, else from its parameters or labels."""
    if record.work is not None and record.work.dtype is not None:
        return record.work.dtype
    value = record.params.get("dtype", record.labels.get("dtype"))
    return None if value is None else str(value)


def best_ceiling(run: Run, kind: str, *, level: str | None = None, dtype: str | None = None) -> Ceiling | None:
    """The highest usable ceiling of that kind, for that memory level and that dtype, or None."""
    usable = [
        ceiling
        for ceiling in run.ceilings
        if (ceiling.kind, ceiling.level, ceiling.dtype) == (kind, level, dtype)
        and isfinite(ceiling.value)
        and ceiling.value > 0
    ]
    return max(usable, key=lambda ceiling: ceiling.value, default=None)


def ceiling_of(run: Run, record: Record) -> Ceiling | None:
    """The measured ceiling a row's headline rate is held against: of its dtype, or of the memory level it uses."""
    metric = number(record)
    if metric is None:
        return None
    if metric.unit == "FLOP/s" and (dtype := dtype_of(record)) is not None:
        return best_ceiling(run, "compute", dtype=dtype)
    level = record.work.level if record.work is not None else None
    if metric.unit == "B/s" and level is not None and "cache-resident" not in record.flags:
        return best_ceiling(run, "bandwidth", level=level)
    return None


def percent_of_ceiling(run: Run, record: Record) -> float | None:
    """The row's headline rate in % of this device's measured ceiling, or None where there is none."""
    metric, ceiling = number(record), ceiling_of(run, record)
    return None if metric is None or ceiling is None else 100 * metric.value / ceiling.value


def statuses(records: Iterable[Record]) -> dict[str, int]:
    """How many rows of each status other than ok, failures first."""
    counts = Counter(record.status for record in records if record.status != "ok")
    return dict(sorted(counts.items(), key=lambda item: (item[0] not in FAILED, item[0])))


def select(found: Sequence[Group], limit: int, also: Iterable[int] = ()) -> set[int]:
    """Which rows to show first, as `id()` of their records, at most `limit`.

    In this order: the best of each benchmark, failed rows, the worst of each benchmark, `also`, the best of each class,
    one of each other reason for having no number; then evenly spread over the rest.
    """
    best: list[Record] = []
    failed: list[Record] = []
    worst: list[Record] = []
    classes: list[Record] = []
    reasons: list[Record] = []
    rest: list[Record] = []
    for group in found:
        order = ranked(group.records)
        best += order[:1]
        worst += order[-1:]
        classes += {group.label(record): record for record in reversed(order)}.values()
        failed += [record for record in group.records if record.status in FAILED]
        missing = [record for record in group.records if record.status not in FAILED and record.status != "ok"]
        reasons += {(record.status, record.reason): record for record in reversed(missing)}.values()
        rest += group.records
    first = [id(record) for record in (*best, *failed, *worst)]
    then = [id(record) for record in (*classes, *reasons)]
    chosen = list(dict.fromkeys([*first, *also, *then]))[:limit]
    taken = set(chosen)
    left = [id(record) for record in rest if id(record) not in taken]
    return {*taken, *spread(left, limit - len(chosen))}


def spread(items: Sequence[int], count: int) -> list[int]:
    """`count` of the items, evenly spaced, the first and the last among them; all where there are no more."""
    if count >= len(items):
        return list(items)
    if count <= 1:
        return list(items[: max(count, 0)])
    return [items[index * (len(items) - 1) // (count - 1)] for index in range(count)]
