"""The promises, as pure functions of a results file: each kept, broken, or not decided and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import correlation, fmean, stdev

from accuracy.results import Results, Row
from accuracy.works import (
    COLD_STAMPS,
    DURATIONS,
    JUDGED,
    NCU,
    NOTHING,
    OPERATIONS,
    PAIR,
    RIVALS,
    STAMPS,
    TOOLS,
    WORKS,
)

SHORT_US = 20
"""Up to here a bias is judged in ns, above as a share."""
BIAS_NS, BIAS_SHARE = 300.0, 0.01
BEYOND_NS, BEYOND_SHARE = 100.0, 0.002
"""How far a bias may lie beyond a peer's: whichever of the two is more."""
SPREAD = 0.005
"""CV over repeats in one process; never less than one tick of the timer."""
FRESH_LONG, FRESH_SHORT, FRESH_LONG_NS = 0.003, 0.015, 100e3
"""CV over fresh processes above 100 µs, and below it; below never less than one tick."""
COST_S = 0.15
"""Of sampling and timer, for one operation."""
CLOCKS = 0.03
"""Clocks that are no further apart are alike."""
REFEREED_NS = 50e3
"""Referees differ by up to 16 % at 5 µs and agree within 1 % above 150; below this, known durations decide."""


@dataclass(frozen=True)
class Verdict:
    """One promise: kept or not, None where it could not be judged; and the figures behind it."""

    promise: str
    kept: bool | None
    words: str


def variation(values: list[float]) -> float | None:
    """The coefficient of variation, with n - 1 degrees of freedom; None below two values or around nothing."""
    return stdev(values) / fmean(values) if len(values) > 1 and fmean(values) > 0 else None


def corrected_ns(results: Results, row: Row) -> float | None:
    """A reading less the same tool's reading of a kernel that does nothing."""
    nothing = results.row(row.tool, NOTHING)
    if nothing is None or nothing.reading_ns is None or row.reading_ns is None:
        return None
    return row.reading_ns - nothing.reading_ns


def bias_ns(results: Results, tool: str, work: str) -> float | None:
    """How far a tool's corrected reading of a kernel of known duration is from what it spun, in ns."""
    row = results.row(tool, work)
    if row is None or row.truth_ns is None:
        return None
    corrected = corrected_ns(results, row)
    return None if corrected is None else corrected - row.truth_ns


@dataclass(frozen=True)
class Deviation:
    """A tool's reading of an operation beside the referee's, as shares: `share` is the plain one, both less their own
    reading of nothing. `readings` are the ways to look at it: less nothing or raw, in time or in cycles of the clock
    that each ran at. A tool that keeps the GPU busy hides its launches behind the kernel before and runs it into its
    power limit; neither is an error of its timer, so of all ways the one nearest to nothing counts."""

    share: float
    readings: tuple[float, ...]

    @property
    def counted(self) -> float:
        """The most favourable."""
        return min(self.readings, key=abs)


def referee(results: Results, work: str, cache: str) -> Row | None:
    """ncu's row of an operation in that state of the cache, else the stamps'; None under 50 µs or without either."""
    for tool in (*NCU, STAMPS, COLD_STAMPS):
        if tool.cache == cache:
            row = results.row(tool.name, work)
            if row is not None and row.reading_ns is not None and row.reading_ns >= REFEREED_NS:
                return row
    return None


def deviation(results: Results, tool: str, work: str) -> Deviation | None:
    """A tool's deviation from the referee of the same state of the cache."""
    row, judge = results.row(tool, work), referee(results, work, TOOLS[tool].cache)
    if row is None or judge is None:
        return None
    assert row.reading_ns is not None
    assert judge.reading_ns is not None
    got, want = corrected_ns(results, row), corrected_ns(results, judge)
    if got is None or want is None or want <= 0:
        return None
    stamped = results.row((COLD_STAMPS if TOOLS[tool].cache == "cold" else STAMPS).name, work)
    rested = judge.mhz or (stamped.mhz if stamped else None)  # ncu says no clock; the stamps rest as long
    clocks = (1.0, row.mhz / rested) if row.mhz and rested else (1.0,)
    ratios = got / want, row.reading_ns / judge.reading_ns
    return Deviation(got / want - 1, tuple(ratio * clock - 1 for ratio in ratios for clock in clocks))


@dataclass(frozen=True)
class Pairs:
    """Coefficients of variation over processes: of what gpubench reads and of what the stamps read of the same call on
    the same data; and the correlation of the two, None where either is constant. Where a process itself is slower, they
    go together."""

    own: float
    stamps: float
    correlation: float | None
    processes: int


def pairs(results: Results, work: str) -> Pairs | None:
    """The pairs of an operation, each reading less its tool's reading of nothing in `durations`, where there is one."""
    own, stamps = (_less_nothing(results, tool, work) for tool in PAIR)
    spreads = variation(own), variation(stamps)
    if len(own) != len(stamps) or spreads[0] is None or spreads[1] is None:
        return None
    return Pairs(*spreads, correlation(own, stamps) if all(spreads) else None, len(own))


def _less_nothing(results: Results, tool: str, work: str) -> list[float]:
    nothing = results.row(tool, NOTHING)
    constant = (nothing.reading_ns or 0.0) if nothing is not None else 0.0
    rows = [row for row in results.rows("pairs") if (row.tool, row.work) == (tool, work)]
    return [ns - constant for row in rows for ns in row.readings_ns]


def verdicts(results: Results) -> list[Verdict]:
    """Every promise for every way of gpubench's that is judged."""
    found = []
    for tool in (tool.name for tool in JUDGED):
        found += [
            _bias(results, tool),
            _beside_peers(results, tool),
            _spread(results, tool),
            _cost(results, tool),
            _operations(results, tool),
        ]
    return [*found, _fresh(results)]


def _undecided(promise: str, tool: str, missing: Iterable[str]) -> Verdict:
    return Verdict(promise, None, f"no row of {tool} for {', '.join(missing)}")


def _bias(results: Results, tool: str) -> Verdict:
    promise = f"{tool}: bias at most 0.3 µs up to 20 µs, 1 % above"
    biases = {work.name: bias_ns(results, tool, work.name) for work in DURATIONS[1:]}
    if missing := [name for name, bias in biases.items() if bias is None]:
        return _undecided(promise, tool, missing)
    shares = {name: abs(bias) / _allowed(results, tool, name) for name, bias in biases.items() if bias is not None}
    worst = max(shares, key=lambda name: shares[name])
    return Verdict(promise, shares[worst] <= 1, f"largest at {worst}: {_bias_words(results, tool, worst)}")


def _allowed(results: Results, tool: str, work: str) -> float:
    row = results.row(tool, work)
    assert row is not None
    assert row.truth_ns is not None
    return BIAS_NS if (WORKS[work].us or 0) <= SHORT_US else BIAS_SHARE * row.truth_ns


def _bias_words(results: Results, tool: str, work: str) -> str:
    bias, row = bias_ns(results, tool, work), results.row(tool, work)
    assert bias is not None
    assert row is not None
    assert row.truth_ns is not None
    return f"{bias / 1e3:+.3f} µs ({bias / row.truth_ns:+.2%})"


def _beside_peers(results: Results, tool: str) -> Verdict:
    promise = f"{tool}: bias beyond no peer's by more than 0.1 µs or 0.2 %"
    offences, compared, missing = [], 0, []
    for work in (work.name for work in DURATIONS[1:]):
        own, row = bias_ns(results, tool, work), results.row(tool, work)
        if own is None or row is None or row.truth_ns is None:
            missing.append(work)
            continue
        allowance = max(BEYOND_NS, BEYOND_SHARE * row.truth_ns)
        for peer in (peer.name for peer in RIVALS):
            other = bias_ns(results, peer, work)
            if other is not None:
                compared += 1
                if abs(own) > abs(other) + allowance:
                    offences.append(f"{peer} at {work}: {abs(other) / 1e3:.3f} against {abs(own) / 1e3:.3f} µs")
    if missing:
        return _undecided(promise, tool, missing)
    if not compared:
        return Verdict(promise, None, "no peer was there")
    return Verdict(promise, not offences, "; ".join(offences) or f"{compared} comparisons")


def _spread(results: Results, tool: str) -> Verdict:
    promise = f"{tool}: CV over repeats at most 0.5 %, or one tick"
    broken, seen = [], 0
    for work in WORKS:
        row = results.row(tool, work)
        cv = None if row is None else variation(row.readings_ns)
        if row is None or cv is None:
            return _undecided(promise, tool, [work])
        seen += 1
        if cv > max(SPREAD, _tick_share(row)):
            broken.append(f"{work} {cv:.2%}")
    return Verdict(promise, not broken, "; ".join(broken) or f"{seen} works")


def _tick_share(row: Row) -> float:
    return (row.tick_ns or 0.0) / (row.reading_ns or 1.0)


def _cost(results: Results, tool: str) -> Verdict:
    promise = f"{tool}: at most 0.15 s an operation"
    costs = {}
    for work in (work.name for work in OPERATIONS):
        row = results.row(tool, work)
        if row is None or not row.costs_s:
            return _undecided(promise, tool, [work])
        costs[work] = sorted(row.costs_s)[len(row.costs_s) // 2]
    worst = max(costs, key=lambda work: costs[work])
    return Verdict(promise, costs[worst] <= COST_S, f"dearest {worst}: {costs[worst]:.3f} s")


def _operations(results: Results, tool: str) -> Verdict:
    promise = f"{tool}: nearer to the referee than every peer, over the operations of 50 µs and more"
    refereed = [work.name for work in OPERATIONS if deviation(results, tool, work.name) is not None]
    if not refereed:
        return Verdict(promise, None, "no referee, or no reading")
    alike = [work for work in refereed if _clocks_alike(results, tool, work)]
    found = [_nearest(results, tool, works) for works in ((refereed, alike) if alike != refereed else (refereed,))]
    if found[0] is None:
        return Verdict(promise, None, "no peer was there")
    words = [
        f"{one.own:.2%} over {one.works} operations; nearest peer {one.peer}: {one.other:.2%}" for one in found if one
    ]
    return Verdict(
        promise,
        all(one.own <= one.other + one.tick for one in found if one),
        "; where the power limit pulled no peer's clock down: ".join(words),
    )


@dataclass(frozen=True)
class _Nearest:
    """A tool's mean deviation over so many operations, and the least of a peer's. A referee's clock ticks, every 32 ns
    on GPUs of today: deviations that are no further apart than a `tick`, as a share of the readings, are one."""

    works: int
    own: float
    peer: str
    other: float
    tick: float


def _nearest(results: Results, tool: str, works: list[str]) -> _Nearest | None:
    own = _mean_deviation(results, tool, works) if works else None
    others = {peer.name: _mean_deviation(results, peer.name, works) for peer in RIVALS}
    there = {name: value for name, value in others.items() if value is not None}
    if own is None or not there:
        return None
    best = min(there, key=lambda name: there[name])
    judges = [referee(results, work, TOOLS[tool].cache) for work in works]
    tick = fmean(_tick_share(one) for one in judges if one is not None)
    return _Nearest(len(works), own, best, there[best], tick)


def _clocks_alike(results: Results, tool: str, work: str) -> bool:
    """Whether every peer's clock was the tool's own: else the power limit, and no timer, makes most of a deviation."""
    row = results.row(tool, work)
    peers = [results.row(peer.name, work) for peer in RIVALS]
    clocks = [peer.mhz for peer in peers if peer is not None and peer.mhz]
    return row is None or row.mhz is None or all(abs(mhz / row.mhz - 1) <= CLOCKS for mhz in clocks)


def _mean_deviation(results: Results, tool: str, works: list[str]) -> float | None:
    found = [deviation(results, tool, work) for work in works]
    shares = [abs(one.counted) for one in found if one is not None]
    return fmean(shares) if len(shares) == len(works) else None


def _beside(both: Pairs | None) -> str:
    if both is None:
        return ""
    together = "–" if both.correlation is None else f"{both.correlation:.2f}"
    return f" (in pairs {both.own:.2%}, stamps {both.stamps:.2%}, correlation {together})"


def _fresh(results: Results) -> Verdict:
    promise = "fresh processes: CV at most 0.3 % above 100 µs; below 1.5 %, or one tick"
    rows = list(results.rows("fresh"))
    broken = []
    for row in rows:
        cv = variation(row.readings_ns)
        if cv is None or row.reading_ns is None:
            return _undecided(promise, "fresh", [row.work])
        long = row.reading_ns > FRESH_LONG_NS
        if cv > (FRESH_LONG if long else max(FRESH_SHORT, _tick_share(row))):
            broken.append(f"{row.work} {cv:.2%}{_beside(pairs(results, row.work))}")
    if not rows:
        return Verdict(promise, None, "not run")
    return Verdict(promise, not broken, "; ".join(broken) or f"{len(rows)} operations")
