"""A sustained load: calls back to back until rate and clock are flat, then measured, beside what the device tells.

The order of things is the same on every device. What differs is how calls are kept in flight (`Load`) and what can be
read meanwhile (`Watch`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gpubench import steady, telemetry
from gpubench.devices import Batch, Load, Watch
from gpubench.energy import ENERGY_S, HOT, Meter
from gpubench.steady import Group, Series

LEAST_MEASURED_S = 3.0
"""A sustained row is measured this long at least, however soon its median is known: for three swings of a clock at its
power limit. Medians of 1.5 s of three loads on an H200 strayed by up to 0.8 %, of 3 s by up to 0.3 %."""
GPM_S = 1.0
"""A window of GPM's; below a tenth of a second its counters mean little."""
FEWEST_GROUPS = 5
"""Groups that an energy is taken from, where calls are so long that fewer fit into ENERGY_S."""


class Consumption:
    """Energy and activity of the groups it sees."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._meter = Meter()
        self._groups: list[Group] = []
        self._windows: list[dict[str, float]] = []
        self._asked: float | None = None
        self._refused: dict[str, str] = {}

    def see(self, group: Group) -> None:
        """A group that has just ended."""
        self._groups.append(group)
        now = self._watch.clock()
        if "energy" not in self._refused:
            try:
                self._meter.see(now, self._watch.joules())
            except LookupError as error:
                self._refused["energy"] = str(error)
        if "gpm" not in self._refused and (self._asked is None or now - self._asked >= GPM_S):
            self._asked = now
            try:
                window = self._watch.gpm()
                self._windows += [] if window is None else [window]
            except LookupError as error:
                self._refused["gpm"] = str(error)

    @property
    def enough(self) -> bool:
        """Whether the energy is known, or is known not to be had."""
        return self._meter.watts is not None or "energy" in self._refused

    def found(self) -> dict[str, Any]:
        """`energy` and `gpm` as a record keeps them, each with the reason where it could not be had."""
        return {"energy": self._energy(), "gpm": self._gpm()}

    def _energy(self) -> dict[str, Any]:
        watts, first, last = self._meter.watts, self._groups[0], self._groups[-1]
        if watts is None or last.end_s <= first.end_s:
            why = self._refused.get("energy", "the counter of energy did not step often enough")
            return {"joules_per_call": None, "power_w": None, "unavailable": why}
        calls = sum(group.launches for group in self._groups[1:])
        return {
            "joules_per_call": watts * (last.end_s - first.end_s) / calls,
            "power_w": watts,
            "window_s": self._meter.window_s,
            "calls": calls,
            "conditions": HOT,
        }

    def _gpm(self) -> dict[str, Any]:
        if not self._windows:
            return {"unavailable": self._refused.get("gpm", "no whole window")}
        names = dict.fromkeys(name for window in self._windows for name in window)
        means: dict[str, Any] = {}
        for name in names:
            values = [window[name] for window in self._windows if name in window]
            means[name] = round(sum(values) / len(values), 4)
        return {**means, "windows": len(self._windows), "window_s": GPM_S}


def consumption(load: Load, watch: Watch) -> dict[str, Any]:
    """Energy and activity of calls that are made back to back for ENERGY_S, for no other purpose."""
    spent = Consumption(watch)
    try:
        load.start()
        begun, groups = watch.clock(), 0
        while watch.clock() - begun < ENERGY_S or groups < FEWEST_GROUPS:
            spent.see(load.next())
            groups += 1
    finally:
        watch.close()
        load.stop()
    return spent.found()


class Sustained:
    """A sampler of a sustained load: each sample is a group of calls. `metered` says whether the load is the calls
    alone, so that its energy is theirs."""

    def __init__(self, load: Load, watch: Watch, metered: bool) -> None:
        self._load = load
        self._watch = watch
        self._series = Series()
        self._spent = Consumption(watch) if metered else None
        self._flat: bool | None = None
        self._rough_ns = 0.0
        self._before: tuple[float, dict[str, Any]] = (0.0, {})
        self.timer = load.timer
        self.refused: Sequence[str] = ()

    def clock(self) -> float:
        """Seconds: what a time budget of this load is counted by."""
        return self._watch.clock()

    def warming(self) -> Iterator[Group]:
        """Calls until rate and clock are flat, or have not been for too long. Gives a group for each point of the
        series, so that whoever waits can be told how it stands."""
        self._load.start()
        self.timer, self.refused = self._load.timer, self._load.refused
        groups: list[Group] = []
        while (state := steady.settled(groups)) is None:
            told = len(self._series.points)
            groups.append(self._next())
            if len(self._series.points) > told:
                yield groups[-1]
        self._flat, self._rough_ns = state, float(groups[-1].gpu_ns)
        self._series.measuring()
        self._before = (self._watch.clock(), self._watch.snapshot())

    def warm_up(self) -> float:
        """The time of one group in ns, warm: after `warming`, unless somebody has followed that to its end."""
        if self._flat is None:
            for _ in self.warming():
                pass
        return self._rough_ns

    def batch(self, n: int) -> Batch:
        """See Sampler: n groups. Between two batches groups stay in flight."""
        groups = []
        for _ in range(n):
            group = self._next()
            if self._spent is not None:
                self._spent.see(group)
            groups.append(group)
        return Batch(
            [group.gpu_ns for group in groups], [group.launches for group in groups], [group.sm_mhz for group in groups]
        )

    def _next(self) -> Group:
        group = self._load.next()
        self._series.add(group)
        if self._series.due:
            self._series.close(self._watch.pulse())
        return group

    def telemetry(self) -> dict[str, Any]:
        """What a record keeps of the load, once the samples are taken: `series`, `warm_up`, `limited_by` with what it
        follows from, and `energy` and `gpm` where the load was the calls alone and lasted long enough. Ends the
        load."""
        (began_s, before), ended_s, after = self._before, self._watch.clock(), self._watch.snapshot()
        self._load.stop()
        self._watch.close()
        polled: Sequence[Any] = [point["events"] for point in self._series.measured]
        limit = telemetry.limit(before, after, (ended_s - began_s) * 1e9, polled)
        from_s = self._series.measured_from_s or 0.0
        return {
            "series": self._series.columns(),
            "warm_up": {"seconds": round(from_s, 3), "flat": self._flat},
            "limited_by": None if limit is None else limit.by,
            "limit": None if limit is None else {"shares": limit.shares, "may_miss": limit.may_miss},
            **(self._spent.found() if self._spent is not None and self._spent.enough else {}),
        }
