"""Where words go in a picture: how wide they are, where they cover the fewest marks. In pixels, y downwards."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from gpubench.report.words import plain

SIZE = 12
"""Height of a line of text."""
HIDES = 4
"""Pixels within which a mark hides another."""
LETTER = 0.52
"""About how wide a letter is, as a share of its height."""

Pixel = tuple[float, float]


def text_width(text: str) -> float:
    """About how wide a text of the usual size is."""
    return len(text) * LETTER * SIZE


def wrapped(text: str, width: float, size: float, lines: int) -> list[str]:
    """A text of that size in at most that many lines of a width, its end replaced by … where it is longer."""
    letters = int(width / (size * LETTER * 1.1))
    return textwrap.wrap(plain(text), letters, max_lines=lines, placeholder=" …", break_on_hyphens=False) or [""]


def covered(marks: Sequence[Pixel], left: float, y: float, width: float) -> int:
    """How many marks a line of text in the middle of which `y` lies would cover."""
    return sum(left - SIZE / 2 <= a <= left + width + SIZE / 2 and abs(b - y) < SIZE for a, b in marks)


def beside(start: Pixel, end: Pixel, width: float, marks: Sequence[Pixel], room: float) -> Pixel:
    """Where a text beside a steep line begins so that it covers the fewest marks: its left edge and its middle.

    Among equals it is the place nearest to the middle of the line, at its right rather than its left, and inside the
    `room` that ends at the right wherever that is possible.
    """
    gap, steps = 8, 24
    places = [
        (left, start[1] + step / steps * (end[1] - start[1]), abs(step / steps - 0.5))
        for step in range(1, steps)
        for left in (end[0] + gap, start[0] - gap - width)
    ]

    def badness(place: tuple[float, float, float]) -> tuple[bool, int, float]:
        left, y, from_middle = place
        return left < 0 or left + width > room, covered(marks, left, y, width), from_middle

    return min(places, key=badness)[:2]


def together(places: Sequence[float], near: float) -> list[list[int]]:
    """Indices of sorted places in groups: a group begins at a place at least `near` from where the last one began."""
    groups: list[list[int]] = []
    for index, place in enumerate(places):
        if groups and abs(place - places[groups[-1][0]]) < near:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def rows(starts: Sequence[float], widths: Sequence[float]) -> list[int]:
    """The row of each text, in order of their starts, so that none runs into the next in its row: the lowest free."""
    ends: list[float] = []
    found = []
    for start, width in zip(starts, widths, strict=True):
        row = next((row for row, end in enumerate(ends) if end < start), len(ends))
        ends[row : row + 1] = [start + width + SIZE]
        found.append(row)
    return found


def stairs(starts: Sequence[float], widths: Sequence[float]) -> list[int]:
    """The step of each text at the foot of its own upright line, in order of their starts, so that no text lies over
    another or over the line of one after it, which comes down to its own step: 0 where nothing before reaches it, else
    above all that do."""
    ends: list[float] = []
    found: list[int] = []
    for start, width in zip(starts, widths, strict=True):
        found.append(max((step + 1 for step, end in zip(found, ends, strict=True) if end >= start), default=0))
        ends.append(start + width + SIZE)
    return found


def beneath(spots: Sequence[Pixel], names: Sequence[str]) -> list[int]:
    """Of each mark, in the order in which they are drawn, how many marks of other names lie over it and hide it."""
    over: list[int] = []
    for index, (x, y) in enumerate(spots):
        later = zip(spots[index + 1 :], names[index + 1 :], strict=True)
        hiding = {name for (a, b), name in later if abs(a - x) < HIDES and abs(b - y) < HIDES and name != names[index]}
        over.append(len(hiding))
    return over
