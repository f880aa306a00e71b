"""The source page of ncu as CSV (`--print-source cuda,sass`), of one kernel: for each file that it was compiled from,
a line with its path, one with the function's name, a header, and the file's lines, each with its instructions below.

A line's figures are the sums over its instructions, which are left out here. A kernel without line information, such as
a library's, has no such page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from gpubench.profiling.rawpage import number, rows

LINE, TEXT = "Line No", "Source"
PATHS = ("File Path", "File Name")
SAMPLES = (
    "Warp Stall Sampling (All Samples)",
    "Warp Stall Sampling (All Cycles)",
    "# Samples",
    "Sampling Data (All)",
)
"""What ncu calls the samples of stalled and of issuing warps, newest name first."""
EXECUTED = "Instructions Executed"
HOTTEST = 10
"""Lines that are kept of a kernel."""
LONGEST = 200
"""Characters of a line that are kept."""


@dataclass(frozen=True)
class Line:
    """A line of a source file, by the file's name alone: samples of its warps, their share of the kernel's, and the
    instructions that warps executed for it, None where ncu counted none of that kind; and its text."""

    file: str
    line: int
    samples: int | None
    share: float | None
    instructions: int | None
    text: str


def read(text: str) -> list[Line]:
    """The hottest lines of the kernel, by samples and then by instructions, at most HOTTEST; none without a page.

    The share is of all samples of lines: an instruction that belongs to no line is in none.
    """
    found: list[Line] = []
    file, columns = "", _Columns()
    for row in rows(text):
        if row[0] in PATHS and len(row) > 1:
            file, columns = PurePosixPath(row[1].replace("\\", "/")).name, _Columns()
        elif row[0] == LINE:
            columns = _Columns.of(row)
        elif row[0].isdecimal() and columns.text is not None:
            line = _line(file, row, columns)
            if line.samples or line.instructions:
                found.append(line)
    total = sum(line.samples or 0 for line in found)
    hottest = sorted(found, key=lambda line: (-(line.samples or 0), -(line.instructions or 0)))[:HOTTEST]
    return [_shared(line, total) for line in hottest]


@dataclass(frozen=True)
class _Columns:
    """Where in a row its figures stand."""

    text: int | None = None
    samples: int | None = None
    executed: int | None = None

    @staticmethod
    def of(header: Sequence[str]) -> _Columns:
        places = {title: place for place, title in reversed(list(enumerate(header)))}  # of two alike, the first
        samples = next((places[name] for name in SAMPLES if name in places), None)
        return _Columns(places.get(TEXT), samples, places.get(EXECUTED))


def _line(file: str, row: Sequence[str], columns: _Columns) -> Line:
    text = row[columns.text] if columns.text is not None and columns.text < len(row) else ""
    samples, executed = _whole(row, columns.samples), _whole(row, columns.executed)
    return Line(file, int(row[0]), samples, None, executed, text.strip()[:LONGEST])


def _shared(line: Line, total: int) -> Line:
    share = line.samples / total if total and line.samples is not None else None
    return Line(line.file, line.line, line.samples, share, line.instructions, line.text)


def _whole(row: Sequence[str], place: int | None) -> int | None:
    value = number(row[place]) if place is not None and place < len(row) else None
    return None if value is None else round(value)
