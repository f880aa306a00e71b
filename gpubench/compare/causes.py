"""Causes of a difference that the two records themselves suggest: another kernel, another clock, a throttle, a tick."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gpubench.compare.comparable import inside
from gpubench.result import KernelSeen, Record
from gpubench.stats import percentile, tick_per_call, trusted_median
from gpubench.telemetry import held_mhz
from gpubench.units import format_duration, three_digits

CLOCK_SHIFT = 0.0025
"""Share of the SM clock from which a shift is worth a word; above `comparable.CLOCK_MARGIN` rows are not compared."""
WARMER_C = 10.0
FEW_TICKS = 2.0
"""A difference of so few ticks of the timer may be its rounding."""
WIDE, WIDER = 0.02, 2.0
"""A spread of the samples worth a word: its share of the median, and how many times that of the other side."""
DOUBTS = ("throttled", "implausible", "below-resolution", "noisy", "fallback", "profiled", "cache-resident")
POWER_CAP = "software power cap"

Rule = Callable[[Record, Record], Iterator[str]]


def hints(base: Record, new: Record) -> list[str]:
    """What two rows that both have a figure suggest, one line each, the strongest first."""
    return [line for rule in _RULES for line in rule(base, new)]


def kernels(base: Record, new: Record) -> str | None:
    """The kernels by name, where the two rows ran different ones."""
    sides = _names(base.kernels), _names(new.kernels)
    return f"{sides[0]} → {sides[1]}" if sides[0] != sides[1] and all(sides) else None


def _another_kernel(base: Record, new: Record) -> Iterator[str]:
    if kernels(base, new):
        yield "another kernel ran"
    elif (
        base.kernels
        and new.kernels
        and [kernel.grid for kernel in base.kernels] != [kernel.grid for kernel in new.kernels]
    ):
        yield "the same kernel ran with another grid"


def _doubts(base: Record, new: Record) -> Iterator[str]:
    for flag in DOUBTS:
        if where := _sides(flag in base.flags, flag in new.flags):
            throttles = base.telemetry.get("throttles") if where == "base" else new.telemetry.get("throttles")
            why = f" ({', '.join(map(str, throttles))})" if flag == "throttled" and isinstance(throttles, list) else ""
            yield f"{where}: {flag}{why}"


def _timer(base: Record, new: Record) -> Iterator[str]:
    old, now = (record.timer.name if record.timer is not None else "not known" for record in (base, new))
    if old != now:
        yield f"timer {old} → {now}"


def _clock(base: Record, new: Record) -> Iterator[str]:
    old, now = held_mhz(base), held_mhz(new)
    if old and now and abs(now / old - 1) > CLOCK_SHIFT:
        yield f"SM clock {old:.0f} → {now:.0f} MHz ({100 * (now / old - 1):+.1f} %)"
    memory = [_after(record, "memory_mhz") for record in (base, new)]
    if memory[0] is not None and memory[1] is not None and memory[0] != memory[1]:
        yield f"memory clock {memory[0]:g} → {memory[1]:g} MHz"


def _capped(base: Record, new: Record) -> Iterator[str]:
    if where := _sides(power_capped(base), power_capped(new)):
        yield f"{where}: the power cap held the clock down"


def _shared(base: Record, new: Record) -> Iterator[str]:
    if where := _sides(*((_after(record, "other_processes") or 0) > 0 for record in (base, new))):
        yield f"{where}: other processes on the GPU"


def _warmer(base: Record, new: Record) -> Iterator[str]:
    old, now = _after(base, "temperature_c"), _after(new, "temperature_c")
    if old is not None and now is not None and abs(now - old) >= WARMER_C:
        yield f"temperature {old:g} → {now:g} °C"


def _rounding(base: Record, new: Record) -> Iterator[str]:
    """One call's time, the timer's tick shared out among the calls of a sample."""
    medians = [_median(record) for record in (base, new)]
    ticks = [tick_per_call(record) for record in (base, new)]
    apart, coarse = abs(medians[0] - medians[1]), max(ticks)
    if 0 < apart <= FEW_TICKS * coarse:
        yield f"the difference is {three_digits(apart / coarse)} of the timer's ticks of {format_duration(coarse)}"


def _spread(base: Record, new: Record) -> Iterator[str]:
    """A row whose samples scatter far more on one side met something there that it did not on the other."""
    shares = [spread(record) for record in (base, new)]
    if max(shares) >= WIDE and max(shares) >= WIDER * min(shares):
        words = [f"{100 * share:.1f} %" for share in shares]
        yield f"samples spread over {words[0]} in the base, {words[1]} in the new run (p10 to p90)"


def _few_samples(base: Record, new: Record) -> Iterator[str]:
    few = [
        f"{side} {len(record.samples.gpu_ns)}" for side, record in _named(base, new) if trusted_median(record) is None
    ]
    if few:
        yield f"too few samples for an interval ({', '.join(few)}): judged by the margin alone"


def _launch_bound(base: Record, new: Record) -> Iterator[str]:
    where = _sides(is_launch_bound(base), is_launch_bound(new))
    if where in ("base", "new"):
        yield f"{where}: launch-bound, a call takes longer to enqueue than to run"


_RULES: Sequence[Rule] = (
    _another_kernel,
    _doubts,
    _timer,
    _clock,
    _capped,
    _shared,
    _warmer,
    _rounding,
    _spread,
    _few_samples,
    _launch_bound,
)


def _names(kernels: Sequence[KernelSeen]) -> str:
    """Each with how many times a call runs it."""
    return " + ".join(f"{each.count}× {each.name}" if each.count != 1 else each.name for each in kernels)


def _named(base: Record, new: Record) -> Iterator[tuple[str, Record]]:
    yield "base", base
    yield "new", new


def _sides(base: bool, new: bool) -> str:
    return "both" if base and new else "base" if base else "new" if new else ""


def _median(record: Record) -> float:
    return float(record.summary.median_ns) if record.summary is not None else 0.0


def spread(record: Record) -> float:
    """From the 10th to the 90th percentile of a row's samples, as a share of their median."""
    summary = record.summary
    return (summary.p90_ns - summary.p10_ns) / summary.median_ns if summary is not None and summary.median_ns else 0.0


def power_capped(record: Record) -> bool:
    """Whether the power cap was on while a row was measured, by the driver's counter."""
    started, ended = (number(inside(record.telemetry, when, "event_ns", POWER_CAP)) for when in ("before", "after"))
    return started is not None and ended is not None and ended > started


def own_stopwatch(record: Record) -> bool:
    """Whether a benchmark timed its calls itself: its time may then be that of one step of a call."""
    return record.timer is not None and record.timer.name == "own"


def is_launch_bound(record: Record) -> bool:
    """Whether a call takes longer to enqueue than to run; of a row with a stopwatch of its own nobody knows."""
    median = _median(record)
    if own_stopwatch(record):
        return False
    return bool(record.call_ns) and 0 < median < percentile(sorted(record.call_ns), 0.5)


def _after(record: Record, key: str) -> float | None:
    return number(inside(record.telemetry, "after", key))


def number(value: Any) -> float | None:
    """A finite number of a file, None where it is something else."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if plain and math.isfinite(value) else None
