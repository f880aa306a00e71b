"""What is in a trace: the kernels or operations that took most of its time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from gpubench.report.grid import Column, Grid
from gpubench.report.profile import elsewhere
from gpubench.report.words import SEPARATOR, conditions_words, counted, device_name, plain
from gpubench.result import Record, Run
from gpubench.units import format_duration, three_digits

MOST = 10
"""Names that are shown."""
LONGEST = 100
"""Characters of a name that are shown: those of templates go on for a thousand; the file has all."""
NOTHING = "torch's profiler sees no operation in a call: what it runs is not torch's"
"""Of a C++ counterpart of a kernel, on a CPU."""
KINDS = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "set", "cpu_op": "operation"}
"""What the categories of the profiler are called here."""


def table(run: Run, record: Record, found: Mapping[str, Any]) -> RenderableType:
    """A heading, a row for each name that took time, and how a traced call compares with a measured one. `found` is
    what `gpubench.profiling.trace.write` says of its file."""
    calls = f"{counted(found['calls'], 'call')} traced"
    heading = SEPARATOR.join([plain(record.id), device_name(run), conditions_words(record.conditions), calls])
    parts: list[RenderableType] = [Text(heading, style="bold")]
    spent = found["spent"]
    whole = found["ns"]
    if spent:
        numbers = [Column(title, right=True) for title in ("times", "time", "share")]
        grid = Grid([Column("what", fold=True), Column("kind"), *numbers])
        for each in spent[:MOST]:
            share = f"{100 * each['ns'] / whole:.0f} %" if whole else "–"
            share = "<1 %" if share == "0 %" and each["ns"] else share
            kind = KINDS.get(each["kind"], each["kind"])
            grid.add(_short(each["name"]), kind, f"{each['count']:,}", format_duration(each["ns"]), share)
        parts.append(grid)
    if found["names"] > MOST:
        parts.append(Text(f"and {counted(found['names'] - MOST, 'more name')}"))
    lines = [*remarks(record, found, whole), *elsewhere(run, found.get("device"), "traced")]
    return Group(*parts, *map(Text, lines))


def _short(name: str) -> str:
    """A name without the type that a kernel returns, cut where it is long."""
    bare = plain(name).removeprefix("void ")
    return bare if len(bare) <= LONGEST else f"{bare[: LONGEST - 1]}…"


def remarks(record: Record, found: Mapping[str, Any], whole: int) -> list[str]:
    """What to make of its times, which come to `whole` ns, and what is not in it."""
    lines = [] if found["spent"] else [NOTHING]
    if record.summary is not None and whole:
        each, median = whole / found["calls"], record.summary.median_ns
        lines.append(
            f"{format_duration(each)} a call with a profiler at work; the record has {format_duration(median)} "
            f"({three_digits(each / median)} times)"
        )
    if found["left_out"]:
        lines.append(f"the first {found['events']:,} events; {found['left_out']:,} left out (fewer --calls)")
    return lines
