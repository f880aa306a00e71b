"""The forms a figure takes: lines over a number, rows of marks, samples in strips, tiles. Plain data, in base units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gpubench.report.words import SEPARATOR, counted
from gpubench.units import exact_digits, format_bytes, format_duration, format_rate, three_digits

Role = Literal["measured", "predicted"]
Facts = tuple[tuple[str, str], ...]
"""Names and values in words, for whoever points at a mark."""

MOST = 8
"""Classes that shapes and colours tell apart."""
_BINARY = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


@dataclass(frozen=True)
class Quantity:
    """What an axis holds. `unit` is the base unit of its values: ns, B/s, FLOP/s, B, iB (bytes counted in powers of
    two), × (a ratio), % or any other word. `log` None: as the values ask for."""

    name: str
    unit: str = ""
    log: bool | None = None

    def say(self, value: float) -> str:
        """A value with its unit, in words."""
        return say(value, self.unit)


@dataclass(frozen=True)
class Point:
    """A mark: where it is, the interval of y where one is known, and what else is to be said of it."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    facts: Facts = ()


@dataclass(frozen=True)
class Series:
    """Points under one name, in order of x. A predicted one is drawn in the same colour as the measured one it has its
    name from, dashed and without marks."""

    name: str
    points: Sequence[Point]
    role: Role = "measured"


@dataclass(frozen=True)
class Level:
    """A value on an axis that has a name: a capacity, a ceiling."""

    at: float
    words: str
    axis: Literal["x", "y"] = "y"


@dataclass(frozen=True)
class Heading:
    """How a figure is called: by id, by suite (None: it is of the whole run), in words, as the question it answers, and
    what all that is drawn has in common."""

    id: str
    suite: str | None
    title: str
    question: str
    facts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lines:
    """Series over a number; `kind` names what tells them apart, and is empty where there is one. `points` False leaves
    out the marks, as of a record in time."""

    heading: Heading
    x: Quantity
    y: Quantity
    series: Sequence[Series]
    kind: str = ""
    levels: Sequence[Level] = ()
    points: bool = True

    @property
    def alt(self) -> str:
        """The figure in a few sentences, for who cannot see it."""
        names = dict.fromkeys(each.name for each in self.series)
        ends = [self._ends(each) for each in self.series[: 2 * MOST] if each.points]
        about = f"{counted(len(names), 'line')} of {self.y.name} over {self.x.name}."
        return " ".join([about, *ends])

    def _ends(self, series: Series) -> str:
        first, last = series.points[0], series.points[-1]
        who = " ".join(word for word in (series.name, series.role) if word)
        if len(series.points) == 1:
            return f"{who}: {self.y.say(first.y)} at {self.x.say(first.x)}."
        ends = f"{self.y.say(first.y)} at {self.x.say(first.x)}, {self.y.say(last.y)} at {self.x.say(last.x)}"
        return f"{who}: {ends}."


@dataclass(frozen=True)
class Entry:
    """A mark in a row: the row's name, its value and interval, what was predicted for it, its class."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    predicted: float | None = None
    kind: str = ""
    facts: Facts = ()


@dataclass(frozen=True)
class Rows:
    """Marks in named rows from the top, along one axis; `kind` names what tells their classes apart, `predicted` what
    the short line across a row stands for. `band` is a stretch of the axis with a name of its own. `classes` are those
    there may be, where each is to look alike in every picture."""

    heading: Heading
    x: Quantity
    entries: Sequence[Entry]
    kind: str = ""
    predicted: str = ""
    levels: Sequence[Level] = ()
    band: tuple[float, float, str] | None = None
    classes: Sequence[str] = ()

    @property
    def names(self) -> list[str]:
        """The rows, from the top."""
        return list(dict.fromkeys(entry.name for entry in self.entries))

    @property
    def alt(self) -> str:
        """The figure in a few sentences, for who cannot see it."""
        about = f"{counted(len(self.names), 'row')} of {self.x.name}."
        told = [self._said(entry) for entry in self.entries[:MOST]]
        more = len(self.entries) - len(told)
        return " ".join([about, *told, *([f"And {more} more."] if more > 0 else [])])

    def _said(self, entry: Entry) -> str:
        who = SEPARATOR.join(word for word in (entry.name, entry.kind) if word)
        beside = f", {self.predicted} {self.x.say(entry.predicted)}" if entry.predicted is not None else ""
        return f"{who}: {self.x.say(entry.value)}{beside}."


@dataclass(frozen=True)
class Strip:
    """The samples of one row, with their median and its interval."""

    name: str
    values: Sequence[float]
    median: float
    low: float | None = None
    high: float | None = None
    facts: Facts = ()


@dataclass(frozen=True)
class Strips:
    """Samples, a strip for each row. `x` of a ratio is each sample over the median of its row."""

    heading: Heading
    x: Quantity
    strips: Sequence[Strip]

    @property
    def alt(self) -> str:
        """The figure in a few sentences, for who cannot see it."""
        told = [
            f"{strip.name}: between {self.x.say(min(strip.values))} and {self.x.say(max(strip.values))}."
            for strip in self.strips
        ]
        return " ".join([f"Samples of {counted(len(self.strips), 'row')}.", *told])


@dataclass(frozen=True)
class Tile:
    """A thing with a verdict: its short name, the verdict, and what else is to be said."""

    name: str
    verdict: str
    facts: Facts = ()


@dataclass(frozen=True)
class Tiles:
    """Tiles in rows of the same group. `verdicts` are those there may be, in order of the legend."""

    heading: Heading
    groups: Sequence[tuple[str, Sequence[Tile]]]
    verdicts: Sequence[str]

    @property
    def tiles(self) -> list[Tile]:
        """All of them."""
        return [tile for _, tiles in self.groups for tile in tiles]

    @property
    def alt(self) -> str:
        """The figure in a few sentences, for who cannot see it."""
        found = [(verdict, [tile.name for tile in self.tiles if tile.verdict == verdict]) for verdict in self.verdicts]
        told = [f"{verdict}: {', '.join(names)}." for verdict, names in found if names]
        return " ".join([f"{len(self.tiles)} claims by verdict.", *told])


Figure = Lines | Rows | Strips | Tiles


def say(value: float, unit: str) -> str:
    """A value in its base unit, in words: 3.62 µs of ns, 781 TFLOP/s of FLOP/s, 256 KiB of iB, 2.01× of ×, 97.3 %."""
    if unit == "ns":
        return format_duration(value)
    if unit == "B":
        return format_bytes(value)
    if unit == "iB":
        size, letters = next(((size, letters) for size, letters in _BINARY if value >= size), (1, "B"))
        return f"{value / size:.4g} {letters}"
    if unit in ("B/s", "FLOP/s", "J", "J/FLOP", "J/B"):
        return format_rate(value, unit)
    if unit == "×":
        return f"{three_digits(value)}×"
    if not unit:
        return f"{value:.0f}" if float(value).is_integer() else three_digits(value)
    return f"{exact_digits(value)} {unit}"
