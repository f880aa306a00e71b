"""The raw page of ncu as CSV: a header, a line of units, a line for each kernel in the order they were launched."""

from __future__ import annotations

import contextlib
import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpubench.profiling.metrics import Value

LABEL = "gpubench-"
"""What the name of our NVTX ranges begins with; a name follows, in letters and digits."""

SCALES = {"Kbyte": 10**3, "Mbyte": 10**6, "Gbyte": 10**9, "Tbyte": 10**12}
"""Units of bytes that are not the base unit, for an ncu that does not heed --print-units."""

_LABEL = re.compile(rf"{LABEL}([A-Za-z0-9]+)")
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:([,.])\d{3})(?:\1\d{3})*(?!\d)")
_SPACES = str.maketrans("", "", " \u00a0\u202f'’_")


@dataclass(frozen=True)
class Counted:
    """One kernel: its name, grid and block, what our range around it is called (None outside of any), and the value of
    each metric in base units."""

    name: str
    grid: list[int] | None = None
    block: list[int] | None = None
    label: str | None = None
    values: dict[str, Value] = field(default_factory=dict)
    id: str = ""
    """The number of the kernel among all of the report, as ncu writes it."""
    pages: dict[str, Any] = field(default_factory=dict)
    """What other pages of the report say of it."""


def read(text: str) -> list[Counted]:
    """The kernels in what ncu wrote; none where it holds no table. Other lines (`==PROF==`) do not count."""
    return list(_kernels(rows(text)))


def rows(text: str) -> Iterator[list[str]]:
    """The lines of ncu's tables, of any page, in cells. Each line is read by itself: one that was cut short takes no
    other with it."""
    for line in text.splitlines():
        if line[:1] == '"' or line[:1].isdigit():
            with contextlib.suppress(csv.Error):  # a cell of more than 131 072 characters
                yield next(csv.reader([line]))


def _kernels(rows: Iterable[Sequence[str]]) -> Iterator[Counted]:
    header: Sequence[str] = ()
    units: Sequence[str] = ()
    for row in rows:
        if row[0] == "ID":
            header, units = row, ()
        elif header and not row[0]:
            units = row
        elif header and len(row) == len(header):
            yield _counted(dict(zip(header, row, strict=True)), dict(zip(header, units, strict=False)))


def _counted(cells: dict[str, str], units: dict[str, str]) -> Counted:
    ranges = " ".join(cell for title, cell in cells.items() if "Range" in title)
    found = _LABEL.search(ranges)
    return Counted(
        name=cells.get("Kernel Name", ""),
        grid=_sizes(cells.get("Grid Size", "")),
        block=_sizes(cells.get("Block Size", "")),
        label=found[1] if found else None,
        values={title: _scaled(number(cell), units.get(title, "")) for title, cell in cells.items() if "__" in title},
        id=cells["ID"],
    )


def number(cell: str) -> Value:
    """The number in a cell, whole where it is; None for `n/a`, `nan`, an empty cell and other words.

    1234, 1,234, 1.234.567 and 1 234 are all read, whatever locale ncu took; 1,5 is one and a half. Of a metric with
    instances, `158 (0: 158)`, the total in front counts.
    """
    text = cell.partition("(")[0].strip().translate(_SPACES)
    grouped = _GROUPED.match(text)
    if grouped and (grouped[1] == "," or grouped[0].count(".") > 1):
        text = text.replace(grouped[1], "").replace(",", ".")
    else:
        text = text.replace(",", ".")
    try:
        value = float(text)
    except ValueError:
        return None
    if not math.isfinite(value):
        return None
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else int(value) if value.is_integer() else value


def _scaled(value: Value, unit: str) -> Value:
    return value * SCALES[unit] if value is not None and unit in SCALES else value


def _sizes(cell: str) -> list[int] | None:
    """(2, 1, 74) as a list."""
    found = [int(digits) for digits in re.findall(r"\d+", cell)]
    return found if len(found) == 3 else None
