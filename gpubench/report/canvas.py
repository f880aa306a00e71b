"""A plot made of characters: scales, ticks, and a grid of cells with a frame around it.

Drawn here and not by a plotting library: a plot is then the same text everywhere, in plain ASCII too, and needs neither
a compiled library nor the time to import one.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from gpubench.report.words import ASCII, SEPARATOR, plain

PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
MARKS = "●■▲◆○□△+·"
ASCII_MARKS = "@#%*+ox:."
COLOURS = (33, 208, 35, 170, 44, 178, 125, 67, 245)
"""Indices of the 256-colour palette, one per mark, told apart on light and on dark ground."""
LINE_COLOUR = 245

_UNBROKEN = "\xa0"
_ASCII = str.maketrans({**ASCII, **dict(zip("│┤└─┬╌┊╱·→…–━", "|++-+-:/->~-=", strict=True))})


@dataclass(frozen=True)
class Scale:
    """Maps values from low to high onto 0…1, linearly or by their logarithm (then low > 0). low < high."""

    low: float
    high: float
    log: bool = False

    def at(self, value: float) -> float:
        """Where the value lies; outside 0…1 if it is outside the scale."""
        if self.log:
            return (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return (value - self.low) / (self.high - self.low)

    def value(self, at: float) -> float:
        """The value at a place between 0 and 1."""
        if self.log:
            return 10 ** (log10(self.low) + at * (log10(self.high) - log10(self.low)))
        return self.low + at * (self.high - self.low)


def prefix(value: float) -> tuple[float, str]:
    """The SI prefix a value of at least 1 is written with, as factor and letter; (1, "") below."""
    return next(((factor, letter) for factor, letter in PREFIXES if abs(value) >= factor), (1.0, ""))


def si(value: float) -> str:
    """A round value with its SI prefix: 200 G, 1.5 T, 0.1."""
    factor, letter = prefix(value)
    return f"{value / factor:g} {letter}".rstrip()


def linear_ticks(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2 or 5 · 10^i between low and high, at most `most` (≥ 2) of them."""
    rough = (high - low) / max(most - 1, 1)
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10, 20) if (high - low) / (factor * power) <= most - 1)
    return [index * step for index in range(ceil(low / step), floor(high / step) + 1)]


def binary_ticks(low: int, high: int, most: int) -> list[float]:
    """Multiples of a power of two between low and high, at most `most`: sizes are counted in powers of two."""
    step = 1
    while high // step - (low - 1) // step > most:
        step *= 2
    return [float(index * step) for index in range((low + step - 1) // step, high // step + 1)]


def log_ticks(low: float, high: float, most: int, base: int = 10) -> list[float]:
    """Powers of the base between low and high; of its powers (100, 10 000 …) where there are more than `most`."""
    stride = 1
    while True:
        step = float(base**stride)
        first = 0
        while step**first < low:
            first += 1
        while step ** (first - 1) >= low:
            first -= 1
        ticks = []
        while step**first <= high * (1 + 1e-9):
            ticks.append(step**first)
            first += 1
        if len(ticks) <= most:
            return ticks
        stride += 1


class Canvas:
    """Cells of a plot, filled by value; later marks lie over earlier ones."""

    def __init__(self, width: int, height: int, x: Scale, y: Scale) -> None:
        self.width = width
        self.height = height
        self.x = x
        self.y = y
        self.cells = [[" "] * width for _ in range(height)]
        self.colours: list[list[int | None]] = [[None] * width for _ in range(height)]

    def column(self, x: float) -> int:
        """The column a value falls into; may lie outside."""
        return round(self.x.at(x) * (self.width - 1))

    def row(self, y: float) -> int:
        """The row a value falls into, from the top; may lie outside."""
        return round((1 - self.y.at(y)) * (self.height - 1))

    def put(self, column: int, row: int, char: str, colour: int | None) -> None:
        """Fill one cell; outside the grid nothing happens."""
        if 0 <= column < self.width and 0 <= row < self.height:
            self.cells[row][column] = char
            self.colours[row][column] = colour

    def mark(self, x: float, y: float, char: str, colour: int | None) -> None:
        """One mark at a point."""
        self.put(self.column(x), self.row(y), char, colour)

    def text(self, column: int, row: int, words: str, colour: int | None) -> bool:
        """Write words into free cells only; False, and nothing written, where they do not fit."""
        inside = 0 <= row < self.height and column >= 0 and column + len(words) <= self.width
        if not inside or any(cell != " " for cell in self.cells[row][column : column + len(words)]):
            return False
        for offset, char in enumerate(words):
            self.put(column + offset, row, char, colour)
        return True

    def lines(self, y_ticks: Mapping[float, str], x_ticks: Mapping[float, str], x_name: str, colour: bool) -> list[str]:
        """The cells with a frame: ticks at the left and below, the name of the x axis after its last tick."""
        names = {self.row(value): name for value, name in y_ticks.items()}
        margin = max((len(name) for name in names.values()), default=0)
        lines = []
        for row in range(self.height):
            edge = "┤" if row in names else "│"
            lines.append(f"{names.get(row, ''):>{margin}} {edge}{self._cells(row, colour)}".rstrip())
        at = {self.column(value): name for value, name in x_ticks.items()}
        lines.append(" " * margin + " └" + "".join("┬" if c in at else "─" for c in range(self.width)))
        lines.append(" " * (margin + 2) + self._tick_names(at, x_name))
        return lines

    def _cells(self, row: int, colour: bool) -> str:
        if not colour:
            return "".join(self.cells[row])
        return "".join(map(paint, self.cells[row], self.colours[row]))

    def _tick_names(self, at: Mapping[int, str], x_name: str) -> str:
        end = self.width - len(x_name)
        line = ""
        for column, name in sorted(at.items()):
            start = max(column - len(name) // 2, 0)
            if start > len(line) - (not line) and start + len(name) < end:
                line = line.ljust(start) + name
        return line.ljust(end) + x_name


def margin_of(names: Sequence[str]) -> int:
    """Columns a frame with these names at its left takes from the width."""
    return max((len(name) for name in names), default=0) + 2


def paint(text: str, colour: int | None) -> str:
    """The text in one of 256 terminal colours, or as it is."""
    return text if colour is None or not text.strip() else f"\x1b[38;5;{colour}m{text}\x1b[0m"


def to_ascii(text: str) -> str:
    """Frame and separators in plain ASCII, each in as many columns, and our other signs; any other character outside it
    becomes a question mark."""
    return text.translate(_ASCII).encode("ascii", "replace").decode()


def clip(text: str, width: int) -> str:
    """The text in at most `width` columns of a terminal, its end replaced by … where it is longer."""
    from rich.cells import cell_len, set_cell_size

    text = plain(text)
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def wrapped(text: str, width: int) -> list[str]:
    """The text in at most two lines of a terminal, its end replaced by … where it is longer. A part between separators
    that would fit a line is not broken."""
    words = plain(text)
    if max(map(len, words.split(SEPARATOR))) < width - len(SEPARATOR):
        words = words.replace(" ", _UNBROKEN).replace(SEPARATOR.replace(" ", _UNBROKEN), f"{_UNBROKEN}· ")
    lines = textwrap.wrap(words, width, max_lines=2, placeholder=" …", break_on_hyphens=False)
    return [clip(line.replace(_UNBROKEN, " "), width) for line in lines]


def legend(name: str, entries: Sequence[tuple[str, int | None, str]], width: int, colour: bool) -> list[str]:
    """Lines of `mark words` entries after the legend's name, wrapped at `width` columns."""
    from rich.cells import cell_len

    lines: list[str] = []
    line, used = name, cell_len(name)
    for mark, shade, words in entries:
        words = clip(words, width - 4)
        size = 2 + 1 + 1 + cell_len(words)
        if used and used + size > width:
            lines.append(line)
            line, used = "", 0
        line += f"  {paint(mark, shade) if colour else mark} {words}"
        used += size
    return [*lines, line]


def marks_for(classes: Sequence[str], ascii_only: bool) -> dict[str, tuple[str, int]]:
    """A mark and a colour for each class, in order: heavy marks first, the last class the lightest. No mark means two
    classes unless there are more classes than marks."""
    marks = ASCII_MARKS if ascii_only else MARKS
    count = len(marks)
    last = min(len(classes), count) - 1
    chosen = {}
    for index, name in enumerate(classes):
        place = count - 1 if index >= last > 0 else index
        chosen[name] = (marks[place], COLOURS[place])
    return chosen


def natural(text: str) -> tuple[int, float, str]:
    """Sort key of class names: those that begin with a number by that number, largest first; then the others."""
    head = text.split(" ", 1)[0]
    try:
        return 0, -float(head), text
    except ValueError:
        return 1, 0.0, text
