"""What the benchmark leaves behind: one JSON file, written again after each row, so that it can be resumed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from gpubench.errors import UsageError
from gpubench.store import jsonfile

SCHEMA = "gpubench.timer-accuracy/1"
PARTS = ("durations", "operations", "fresh", "pairs", "ncu")


@dataclass
class Row:
    """One tool on one work. `readings_ns` holds a reading for each repeat, `costs_s` the wall time each took.

    `cycles` are those a spinning kernel counted, `sm_mhz` the clock measured on the GPU in the same state. `tick_ns` is
    the timer's where it is known, `note` which timer it was. `absent` says why there is no reading.
    """

    tool: str
    work: str
    readings_ns: list[float] = field(default_factory=list)
    costs_s: list[float] = field(default_factory=list)
    sm_mhz: list[float] = field(default_factory=list)
    cycles: list[int] = field(default_factory=list)
    tick_ns: float | None = None
    note: str = ""
    absent: str | None = None

    @property
    def reading_ns(self) -> float | None:
        """The median over the repeats."""
        return median(self.readings_ns) if self.readings_ns else None

    @property
    def mhz(self) -> float | None:
        """The median SM clock, None where it was not read."""
        return median(self.sm_mhz) if self.sm_mhz else None

    @property
    def truth_ns(self) -> float | None:
        """How long a spinning kernel really spun: its cycles by the clock of the same state."""
        if not self.cycles or not self.mhz:
            return None
        return median(self.cycles) * 1e3 / self.mhz


@dataclass
class Results:
    """The whole file. `parts` holds the rows by part; `versions` those of the tools, by the name of what was asked."""

    provenance: dict[str, Any]
    parts: dict[str, list[Row]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def add(self, part: str, row: Row) -> None:
        """Put a row in, in place of one of the same tool and work."""
        rows = [one for one in self.parts.get(part, []) if (one.tool, one.work) != (row.tool, row.work)]
        self.parts[part] = [*rows, row]

    def has(self, part: str, tool: str, work: str) -> bool:
        """Whether that row is there, or is known to be absent."""
        return any((row.tool, row.work) == (tool, work) for row in self.parts.get(part, []))

    def rows(self, part: str | None = None) -> Iterable[Row]:
        """The rows of a part; of durations and operations where none is named."""
        for name in ("durations", "operations") if part is None else (part,):
            yield from self.parts.get(name, [])

    def row(self, tool: str, work: str) -> Row | None:
        """The row of a tool on a work that gave readings, of whichever part but `fresh` and `pairs`."""
        for name in ("durations", "operations", "ncu"):
            for row in self.parts.get(name, []):
                if (row.tool, row.work) == (tool, work) and row.readings_ns:
                    return row
        return None


def load(path: Path) -> Results:
    """A file written by `save`. UsageError names what is wrong with it."""
    where = jsonfile.shown(path)
    content = jsonfile.loads(jsonfile.read_bytes(path), where=where)
    if not isinstance(content, Mapping) or content.get("schema") != SCHEMA:
        raise UsageError(f"{where}: is not a file of {SCHEMA}", "benchmarks/timer_accuracy.py --out FILE.json")
    try:
        parts = {name: [Row(**row) for row in rows] for name, rows in content["parts"].items()}
        return Results(content["provenance"], parts, content["versions"])
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{where}: a field is missing or unknown: {error}") from error


def save(results: Results, path: Path) -> None:
    """Write the file whole, compressed where its name ends in .gz. UsageError where it cannot be written."""
    content = {"schema": SCHEMA, **asdict(results)}
    jsonfile.write_atomic(path, (jsonfile.dumps(content, indent=1) + "\n").encode())
