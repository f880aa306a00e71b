"""What a row's rate is held against: the datasheet of the product, the silicon at the clock held, and what no kernel
can exceed. (The share of this device's measured ceiling needs the other rows of a run: `gpubench.report.rows`.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from gpubench.model import catalog
from gpubench.model.catalog import Figure
from gpubench.result import Metric, Record, Summary
from gpubench.telemetry import held_mhz

MARGIN = {"FLOP/s": 0.01, "B/s": 0.01}
"""How far above what is physically possible a rate must lie, beyond its own error, to be called implausible: clocks are
reported in whole MHz and the highest one in steps of 15."""
WAITED_FOR_NOTHING = 3.0
"""A rate above this many times the possible has no error of counting: the work was not over when the clock stopped."""
CORES = " FMA"
"""What the name of a roof ends with if it is that of the CUDA cores: "float64 FMA" beside "float64 matmul"."""


@dataclass(frozen=True)
class Held:
    """What a row gets: shares of the yardsticks as metrics, the yardsticks with their sources for its prediction, and
    why its rate cannot be, if so."""

    metrics: list[Metric] = field(default_factory=list)
    prediction: dict[str, Any] = field(default_factory=dict)
    implausible: str | None = None


def hold(record: Record, facts: Mapping[str, Any]) -> Held:
    """The yardsticks of a measured row on a device with these facts. Empty where none is known, as on a CPU."""
    found = {"datasheet": datasheet(record, facts), "silicon": silicon(record, facts)}
    headline = record.primary
    metrics = [
        Metric(f"of_{name}", headline.value / figure.value, "1", "higher")
        for name, figure in found.items()
        if figure is not None and headline is not None
    ]
    why = implausible(record, facts)
    told: dict[str, Any] = {name: asdict(figure) for name, figure in found.items() if figure is not None}
    if why is not None:
        told["implausible"] = why
    return Held(metrics, {"yardsticks": told} if told else {}, why)


def datasheet(record: Record, facts: Mapping[str, Any]) -> Figure | None:
    """The datasheet's figure for the headline rate of a row; None where the product or the figure is not known."""
    chip, what = catalog.lookup(facts), _subject(record)
    return None if chip is None or what is None else chip.datasheet(what, _matrix(record))


def silicon(record: Record, facts: Mapping[str, Any]) -> Figure | None:
    """What the device can do at the clock held while the row was measured; for bandwidth, what the memory's pins carry.

    The clock is the median of the samples' own; where it is not known, the highest clock, and the source says so.
    """
    what = _subject(record)
    if what is None:
        return None
    if what == "DRAM":
        return catalog.memory_bound(facts)
    held = held_mhz(record)
    sm_mhz = held or facts.get("sm_mhz_max")
    if not sm_mhz:
        return None
    shared = what == "shared"
    figure = catalog.shared_memory(facts, sm_mhz) if shared else catalog.silicon(facts, what, sm_mhz, _matrix(record))
    if figure is None:
        return None
    how = "held" if held else "the highest, the one held is not known"
    return Figure(figure.value, figure.unit, f"{figure.source} ({how})")


def _subject(record: Record) -> str | None:
    """What the headline rate of a row is a rate of: a dtype, "DRAM" or "shared"; None for another headline."""
    headline, work = record.primary, record.work
    if headline is None or work is None:
        return None
    if headline.unit == "FLOP/s":
        return work.dtype
    known = headline.unit == "B/s" and work.level in ("DRAM", "shared") and "cache-resident" not in record.flags
    return work.level if known else None


def _matrix(record: Record) -> bool:
    """Whether a row may run on matrix units, as a matrix product does."""
    return record.work is None or record.work.roof is None or not record.work.roof.endswith(CORES)


def implausible(record: Record, facts: Mapping[str, Any]) -> str | None:
    """Why the rates of a row cannot be, with the likely cause; None where they can, or nobody can tell.

    A rate is implausible where, even at the far end of its error, it is over MARGIN above the fastest units of the
    architecture at the device's highest clock, or above what the pins or banks of its memory carry. A stream may leave
    its last writes in the cache, so that as many bytes as the cache holds need not have moved.
    """
    work = record.work
    if work is None or record.summary is None:
        return None
    longest = 1 + _error(record.summary, record)
    flops, bandwidth = record.metric("flops"), record.metric("bandwidth")
    if flops is not None and work.dtype is not None:
        bound = catalog.compute_bound(facts, work.dtype)
        if bound is not None and flops.value / longest > bound.value * (1 + MARGIN["FLOP/s"]):
            ratio = flops.value / bound.value
            return f"{_times(ratio)} what {bound.source} can do in {work.dtype}: {_cause(work.dtype, ratio)}"
    if bandwidth is not None and work.level in ("DRAM", "shared"):
        sm_mhz, cache = facts.get("sm_mhz_max"), facts.get("last_level_cache_bytes") or 0
        streams = work.level == "DRAM"
        bound = catalog.memory_bound(facts) if streams else catalog.shared_memory(facts, sm_mhz) if sm_mhz else None
        moved = max(work.bytes - cache, 0) / work.bytes if streams else 1.0
        if bound is not None and bandwidth.value * moved / longest > bound.value * (1 + MARGIN["B/s"]):
            ratio = bandwidth.value / bound.value
            name = "DRAM" if streams else "shared memory"
            return f"{_times(ratio)} what {name} can carry ({bound.source}): {_stream_cause(record, ratio)}"
    return None


def cause(record: Record) -> str | None:
    """Why a row of a run file is implausible, as `hold` wrote it; None for any other row."""
    told = record.prediction.get("yardsticks")
    found = told.get("implausible") if isinstance(told, Mapping) else None
    return str(found) if found is not None and "implausible" in record.flags else None


def _error(summary: Summary, record: Record) -> float:
    """How far off the median time may be, relative: half its interval (without one, what lies below it), and never less
    than half a tick of the timer."""
    middle = summary.median_ns
    if middle <= 0:
        return 0.0
    if summary.low_ns is None or summary.high_ns is None:
        half: float = middle - summary.min_ns
    else:
        half = (summary.high_ns - summary.low_ns) / 2
    launches = record.samples.launches[-1] if record.samples.launches else 1
    tick = record.timer.tick_ns / launches if record.timer is not None else 0.0
    return max(half, tick / 2) / middle


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times" if ratio < 10 else f"{ratio:.0f} times"


def _cause(dtype: str, ratio: float) -> str:
    if ratio > WAITED_FOR_NOTHING:
        return "the time was taken before the work was done, or its flops are counted too high"
    if dtype == "float32":
        return "computed in TF32 or another narrower arithmetic, or its flops are counted too high"
    return "its flops are counted too high, or the arithmetic is not the one named"


def _stream_cause(record: Record, ratio: float) -> str:
    if ratio > WAITED_FOR_NOTHING:
        return "the time was taken before the work was done, or its bytes are counted too high"
    if record.work is None or record.work.level != "DRAM":
        return "its bytes are counted too high"
    if record.conditions.cache == "hot":
        return "part of the buffers stayed in the cache"
    return "its bytes are counted too high, or the buffers stayed in the cache"
