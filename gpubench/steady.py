"""When a device under load has settled, and what is kept of what was seen until then and after. Pure.

Under a load without rest a clock falls as the chip warms and the power limit takes hold. A sustained figure is the one
that is left when rate and clock no longer move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpubench.stats import trimmed_mean

FLAT_S = 4.0
"""The latest stretch of time whose two halves are compared. Under its power limit the clock of an H200 swings by 1 to
3 % with a period of 0.6 to 1 s; each half holds two such swings."""
FLAT = 0.005
"""Their levels differ by less than this share where rate and clock are flat: what `max_noise` asks of a median."""
TRIMMED = 0.1
"""A level is a mean, as the median of a clock that swings jumps from one side to the other; without this share of the
lowest and of the highest values, so that single slow groups do not count."""
LEAST_S = FLAT_S
"""Never flat before: in the first 3 s of a load an H200 was 0.5 to 3 % faster than it stayed."""
MOST_S = 10.0
"""After this long what is measured is measured, and the record says that it was not flat."""
LEAST_GROUPS = 6
"""Groups that are compared at least, where each takes so long that fewer fit into FLAT_S."""
POINT_S = 0.1
"""One point of the series stands for this long, or for one group that takes longer."""
MOST_POINTS = 400
"""What a row keeps of its series; a longer one is thinned out evenly."""
READ = ("power_w", "temperature_c", "core_mhz")
"""What a device may tell of itself beside each point."""


@dataclass(frozen=True)
class Group:
    """Calls made back to back: when they ended, in seconds from the start of the load, the time on the device of all of
    them in ns, how many they were, and the SM clock just after them in MHz, None where it cannot be read."""

    end_s: float
    gpu_ns: int
    launches: int
    sm_mhz: float | None = None

    @property
    def call_ns(self) -> float:
        """The time of one call."""
        return self.gpu_ns / self.launches


def flat(groups: Sequence[Group]) -> bool:
    """Whether the rate, and the SM clock where it is read, held over the last FLAT_S."""
    since = groups[-1].end_s - FLAT_S
    count = 0
    while count < len(groups) and groups[-1 - count].end_s > since:
        count += 1
    recent = groups[-max(count, LEAST_GROUPS) :]
    if len(recent) < LEAST_GROUPS:
        return False
    middle = len(recent) // 2
    before, after = recent[:middle], recent[middle:]
    if not _near([group.call_ns for group in before], [group.call_ns for group in after]):
        return False
    clocks = [[group.sm_mhz for group in half if group.sm_mhz is not None] for half in (before, after)]
    return not all(clocks) or _near(*clocks)


def settled(groups: Sequence[Group]) -> bool | None:
    """Whether to measure from here on: True once it is flat, False after MOST_S without, None to go on warming up."""
    if not groups:
        return None
    if groups[-1].end_s >= LEAST_S and flat(groups):
        return True
    return False if groups[-1].end_s >= MOST_S else None


def _near(before: Sequence[float], after: Sequence[float]) -> bool:
    first, second = trimmed_mean(before, TRIMMED), trimmed_mean(after, TRIMMED)
    return abs(second - first) < FLAT * first


@dataclass
class Series:
    """What happens while a load lasts, warm-up and measurement: a point for each POINT_S.

    `due` says that a point is full; `close` ends it with what the device tells of itself just then.
    """

    points: list[dict[str, Any]] = field(default_factory=list)
    measured_from_s: float | None = None
    _open: list[Group] = field(default_factory=list)
    _since_s: float = 0.0

    def add(self, group: Group) -> None:
        """The next group of calls."""
        self._open.append(group)

    @property
    def due(self) -> bool:
        """Whether the last group ended in another stretch of POINT_S than the last point."""
        return bool(self._open) and _stretch(self._open[-1].end_s) > _stretch(self._since_s)

    def close(self, told: Mapping[str, Any]) -> None:
        """End a point: mean time of a call and mean clock of its groups, and of `told` what READ and events name."""
        clocks = [group.sm_mhz for group in self._open if group.sm_mhz is not None]
        self._since_s = self._open[-1].end_s
        spent, calls = sum(group.gpu_ns for group in self._open), sum(group.launches for group in self._open)
        self.points.append(
            {
                "t_ms": round(self._since_s * 1e3),
                "call_ns": round(spent / calls, 1),
                "sm_mhz": round(sum(clocks) / len(clocks), 1) if clocks else None,
                **{name: told.get(name) for name in READ},
                "events": told.get("clock_events"),
            }
        )
        self._open = []

    def measuring(self) -> None:
        """From here on groups are samples."""
        self.measured_from_s = self._open[-1].end_s if self._open else self._since_s

    @property
    def measured(self) -> list[dict[str, Any]]:
        """The points of the measurement itself."""
        since = 0.0 if self.measured_from_s is None else self.measured_from_s * 1e3
        return [point for point in self.points if point["t_ms"] > since]

    def columns(self) -> dict[str, Any]:
        """The series as a record keeps it: a list for each quantity, None where it could not be read at that point; a
        quantity that could never be read is left out. At most MOST_POINTS, evenly spread, the first and last kept."""
        kept = _spread(self.points)
        names = ["t_ms", "call_ns", "sm_mhz", *READ, "events"]
        columns = {name: [point[name] for point in kept] for name in names}
        found: dict[str, Any] = {
            name: values
            for name, values in columns.items()
            if name in ("t_ms", "call_ns") or any(value is not None for value in values)
        }
        since = self.measured_from_s
        return {**found, "measured_from_ms": None if since is None else round(since * 1e3)}


def _stretch(seconds: float) -> int:
    return int(seconds / POINT_S + 1e-6)


def _spread(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if len(points) <= MOST_POINTS:
        return points
    return [points[index * (len(points) - 1) // (MOST_POINTS - 1)] for index in range(MOST_POINTS)]
