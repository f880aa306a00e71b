"""A profiled row: what was counted, of the whole call and of each of its kernels, and what ncu's other pages say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from gpubench.explain import limits
from gpubench.report import pages
from gpubench.report.grid import Column, Grid
from gpubench.report.words import SEPARATOR, conditions_words, device_name, plain
from gpubench.result import Record, Run
from gpubench.units import format_bytes, format_duration, three_digits

KERNELS = 4
"""Kernels with a column of their own; the call's figures are of all."""
FACTS = frozenset(
    {"source", "device", "cache_control", "known_copy", "kernels", "not_counted", "unavailable", "differences"}
)
"""Keys of a row's counters that are no counters."""
OF_KERNELS = frozenset({"name", "grid", "block", "recorded", "sections", "source"})
"""Keys of a kernel that are no counters."""


def table(run: Run, record: Record) -> RenderableType:
    """A heading, the kernels, a row for each counter, and what to make of the bytes; sections and lines of the source
    where they were asked for."""
    counters = record.counters
    heading = SEPARATOR.join([plain(record.id), device_name(run), conditions_words(record.conditions)])
    kernels = counters["kernels"]
    names = [f"#{number} {kernel_words(kernel)}" for number, kernel in enumerate(kernels, 1)]
    shown = kernels[:KERNELS] if len(kernels) > 1 else []
    grid = Grid(
        [Column("counter"), Column("call", right=True)]
        + [Column(f"#{number}", right=True, optional=True) for number in range(1, len(shown) + 1)]
    )
    keys = dict.fromkeys(key for part in (*kernels, counters) for key in part if key in counters or key in kernels[0])
    for key in keys:
        if key in FACTS or key in OF_KERNELS:
            continue
        grid.add(key, value_words(key, counters.get(key, ...)), *(value_words(key, part.get(key)) for part in shown))
    lines = [*bytes_words(record), *elsewhere(run, counters.get("device"), "counted"), *remarks(counters)]
    further = [*pages.sections(kernels, KERNELS), *pages.sources(kernels, KERNELS)]
    if further and len(kernels) > KERNELS:
        further.append(Text(f"of {len(kernels)} kernels the first {KERNELS} are shown; the file has all"))
    return Group(Text(heading, style="bold"), *map(Text, names), grid, *map(Text, lines), *further)


def kernel_words(kernel: Mapping[str, Any]) -> str:
    """A kernel's name with its grid and block, and the time that the record has for it."""
    sizes = ["×".join(map(str, kernel[key])) for key in ("grid", "block") if kernel.get(key)]
    words = " of ".join(sizes)
    return plain(kernel["name"]) + (f"  ({words} threads)" if len(sizes) == 2 else "") + _recorded(kernel)


def _recorded(kernel: Mapping[str, Any]) -> str:
    recorded = kernel.get("recorded")
    if recorded is None or recorded["ns"] is None:
        return ""
    took = format_duration(recorded["ns"])
    return f"; {took} in the record" + (f", of {recorded['count']}" if recorded["count"] > 1 else "")


def value_words(name: str, value: Any) -> str:
    """A figure: bytes in SI units, counts in full, others in three digits; `–` for one that could not be had, nothing
    where several kernels have none in common."""
    if value is ...:
        return ""
    if value is None:
        return "–"
    if "bytes" in name:
        return format_bytes(value)
    return pages.number_words(value)


def bytes_words(record: Record) -> list[str]:
    """The bytes that DRAM moved beside those the algorithm needs, where both are known."""
    moved = limits.dram_bytes(record)
    if moved is None or record.work is None or not record.work.bytes:
        return []
    needed = record.work.bytes
    share = three_digits(moved / needed)
    return [f"DRAM moved {format_bytes(moved)}; the algorithm needs {format_bytes(needed)} ({share} times)"]


def elsewhere(run: Run, device: Mapping[str, Any] | None, done: str) -> list[str]:
    """That what was `done`, counted or traced, was so on another device than the run's, whose times are beside it."""
    if device is None or device.get("uuid") == run.device.get("uuid"):
        return []
    names = (
        f"{plain(each.get('name') or 'a device')} {plain(each.get('uuid') or '')}" for each in (device, run.device)
    )
    there, here = map(str.strip, names)
    return [f"{done} on {there}, which is not the run's; the record's times are of {here}"]


def remarks(counters: Mapping[str, Any]) -> list[str]:
    """How far the counts can be trusted, and what is missing."""
    lines = []
    if copy := counters.get("known_copy"):
        known = format_bytes(copy["bytes"])
        lines.append(f"a copy of {known} counts {100 * copy['error']:+.2f} % by {plain(counters['source'])}")
    lines += [f"not the record's kernels: {plain(words)}" for words in counters.get("differences", ())]
    lines += [f"not counted: {plain(name)}" for name in counters.get("not_counted", ())]
    return lines + [f"no {plain(name)}: {plain(why)}" for name, why in counters.get("unavailable", {}).items()]
