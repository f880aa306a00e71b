"""Figures of a load without rest: what is left of the rate, of the clock and of the power's limit as time goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpubench.report.figures.pick import in_group
from gpubench.report.figures.shapes import Entry, Figure, Heading, Level, Lines, Point, Quantity, Rows, Series, say
from gpubench.report.rows import groups, number
from gpubench.report.sustained import limit_words, pairs
from gpubench.report.words import plain
from gpubench.result import Record, Run
from gpubench.telemetry import held_mhz

IN_TIME = 4
"""Rows that are shown in time at most."""
SHARE = Quantity("share", "%", log=False)
"""Of the burst's rate, of the highest clock, of the power limit, of 100 °C."""


def sustained(run: Run) -> Iterator[Figure]:
    """What each pair of rows keeps of its burst rate; then, of each sustained row that has one, its record in time."""
    found = [(group, burst, row) for group in groups(run) for burst, row in pairs(group)]
    several = len({group.path for group, *_ in found}) > 1
    entries = []
    for group, burst, row in found:
        before, after = number(burst), number(row)
        if before is None or after is None or before.value <= 0:
            continue
        name = in_group(group, row, several, conditions=False)
        share = after.value / before.value if after.direction == "higher" else before.value / after.value
        told = (("burst", say(before.value, before.unit)), ("sustained", say(after.value, after.unit)),
                ("limited by", limit_words(row) or "nothing known"))  # fmt: skip
        entries.append(Entry(name, 100 * share, kind="rate", facts=told))
        clocks = held_mhz(row), held_mhz(burst)
        if min(clocks) > 0:
            facts = (("burst", f"{clocks[1]:.0f} MHz"), ("sustained", f"{clocks[0]:.0f} MHz"))
            entries.append(Entry(name, 100 * clocks[0] / clocks[1], kind="SM clock", facts=facts))
    if entries:
        heading = Heading("sustained", found[0][0].suite, "sustained over burst",
                          "What is left of a burst's rate when the GPU gets no rest?")  # fmt: skip
        yield Rows(heading, Quantity("sustained over burst", "%"), entries, "share of",
                   levels=[Level(100.0, "burst", "x")])  # fmt: skip
    for index, (group, burst, row) in enumerate(found[:IN_TIME], 1):
        shown = _in_time(run, burst, row)
        if shown:
            name = in_group(group, row, True, conditions=False)
            heading = Heading(
                f"sustained-in-time-{index}", plain(row.suite), f"{name} without rest",
                f"How do clock, power and temperature settle while {name} gets no rest?",
                tuple(word for word in (_limited(row),) if word),
            )  # fmt: skip
            yield Lines(heading, Quantity("time", "s"), SHARE, shown, "share of", _begins(row), points=False)


def _in_time(run: Run, burst: Record, row: Record) -> list[Series]:
    """Rate, clock, power and temperature in time, each in % of a whole: the burst's rate, the highest clock, the limit
    of power, 100 °C."""
    told = row.telemetry.get("series")
    if not isinstance(told, Mapping) or not isinstance(times := told.get("t_ms"), list):
        return []
    found = []
    before = number(burst)
    if before is not None and burst.summary is not None and isinstance(calls := told.get("call_ns"), list):
        median = burst.summary.median_ns
        rates = [median / call if isinstance(call, int | float) and call > 0 else None for call in calls]
        found += _line(f"rate, of {say(before.value, before.unit)}", times, rates, 1.0)
    clock, limit = run.device.get("sm_mhz_max") or held_mhz(burst), run.device.get("power_limit_w")
    for name, whole, words in (
        ("sm_mhz", clock, f"SM clock, of {_round(clock)} MHz"),
        ("power_w", limit, f"power, of {_round(limit)} W"),
        ("temperature_c", 100.0, "temperature, of 100 °C"),
    ):
        values = told.get(name)
        if isinstance(values, list) and isinstance(whole, int | float) and whole > 0:
            found += _line(words, times, values, float(whole))
    return found


def _begins(row: Record) -> list[Level]:
    """From when on samples counted."""
    told = row.telemetry.get("series")
    at = told.get("measured_from_ms") if isinstance(told, Mapping) else None
    return [Level(at / 1e3, "measured from here on", "x")] if isinstance(at, int | float) else []


def _line(name: str, times: Sequence[Any], values: Sequence[Any], whole: float) -> list[Series]:
    points = [
        Point(at / 1e3, 100 * value / whole)
        for at, value in zip(times, values, strict=False)
        if isinstance(at, int | float) and isinstance(value, int | float)
    ]
    return [Series(name, points)] if points else []


def _limited(row: Record) -> str:
    words = limit_words(row)
    return f"limited by: {words}" if words else ""


def _round(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else ""
