"""A table of text for the terminal, of any number of rows: what it is given is printed as it is, never read as markup.

Rich's own Table takes seconds for ten thousand rows; this one measures each cell once and needs a tenth of a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.style import Style

GAP = 2
LEAST = 8
"""Columns a foldable column keeps, however narrow the terminal."""
_PARTS = re.compile(r"[^=/_-]*[=/_-]+|[^=/_-]+")


@dataclass(frozen=True)
class Column:
    """One column: `right` aligns it to the right, `fold` lets its text go on below where there is no room; an
    `optional` one is left out before anything is folded for it."""

    title: str
    right: bool = False
    fold: bool = False
    optional: bool = False


class Grid:
    """Rows under a header line. Printed by `Console.print`."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = tuple(columns)
        self.rows: list[tuple[tuple[str, ...], str]] = []

    def add(self, *cells: str, style: str = "") -> None:
        """One more row; `style` is a Rich style for the whole of it."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns")
        self.rows.append((cells, style))

    def widths(self, room: int) -> list[int]:
        """The width of each column so that a row fits into `room`, as far as folding allows."""
        widths = self._natural()
        excess = _total(widths) - room
        while excess > 0:
            foldable = [i for i, column in enumerate(self.columns) if column.fold and widths[i] > LEAST]
            if not foldable:
                break
            widest = max(foldable, key=lambda i: widths[i])
            widths[widest] -= 1
            excess -= 1
        return widths

    def _natural(self) -> list[int]:
        cells = [[column.title for column in self.columns], *(cells for cells, _ in self.rows)]
        return [max(map(cell_len, column)) for column in zip(*cells, strict=True)]

    def fitted(self, room: int) -> Grid:
        """Itself, or without optional columns, the last one first, until a row fits into `room` unfolded."""
        widths = self._natural()
        kept = list(range(len(widths)))
        for place in reversed([place for place, column in enumerate(self.columns) if column.optional]):
            if _total([widths[index] for index in kept]) <= room:
                break
            kept.remove(place)
        grid = Grid([self.columns[index] for index in kept])
        grid.rows = [(tuple(cells[index] for index in kept), style) for cells, style in self.rows]
        return grid

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        yield from self.fitted(options.max_width)._segments(console, options)

    def _segments(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        widths = self.widths(options.max_width)
        rule = "-" if options.ascii_only else "─"
        yield Segment(self._line([column.title for column in self.columns], widths), Style(bold=True))
        yield Segment("\n" + rule * _total(widths) + "\n", Style(dim=True))
        styles = {name: console.get_style(name or "none") for name in {style for _, style in self.rows}}
        for cells, style in self.rows:
            parts = [_fold(cell, width) for cell, width in zip(cells, widths, strict=True)]
            for number in range(max(map(len, parts))):
                line = self._line([part[number] if number < len(part) else "" for part in parts], widths)
                yield Segment(line, styles[style])
                yield Segment.line()

    def _line(self, cells: Sequence[str], widths: Sequence[int]) -> str:
        padded = []
        for column, cell, width in zip(self.columns, cells, widths, strict=True):
            space = " " * (width - cell_len(cell))
            padded.append(space + cell if column.right else cell + space)
        return (" " * GAP).join(padded).rstrip()


def _total(widths: Sequence[int]) -> int:
    """The width of a row."""
    return sum(widths) + GAP * (len(widths) - 1)


def _fold(text: str, width: int) -> list[str]:
    """The text in pieces of at most `width` columns, broken after a space where there is one, else after = / _ or -,
    else anywhere."""
    if cell_len(text) <= width:
        return [text]
    pieces: list[str] = []
    line = ""
    for word in text.split(" "):
        parts = [word] if cell_len(word) <= width else _PARTS.findall(word)
        for index, part in enumerate(parts):
            joined = f"{line} {part}" if line and index == 0 else f"{line}{part}"
            if cell_len(joined) <= width:
                line = joined
                continue
            if line:
                pieces.append(line)
            *full, line = chop_cells(part, width) or [""]
            pieces += full
    return [*pieces, line]
