"""How the figures of a run came about: what is meant by them, and with which timers and settings they were taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpubench.report.html.markup import Markup, folded, join, table, tag
from gpubench.report.words import plain
from gpubench.result import Run
from gpubench.units import format_duration, three_digits

MEANING = (
    "The time of a row is the median of at least ten calls, from the first start to the last end of the call's own "
    "kernels. The interval beside it holds the median with 95 % confidence. Every sample is in the run.",
    "Cold: before each call the last cache holds other, clean data. Hot: the call follows itself. Burst: rests between "
    "calls keep the clock at its maximum. Sustained: no rests, measured once rate and clock are flat.",
    "Every output is checked before it is timed: against a reference in higher precision, or exactly where nothing is "
    "rounded. A wrong one is a row without a time.",
    "Units are decimal (1 GB = 10⁹ bytes), a fused multiply-add is two flops, bytes are what the algorithm must move. "
    "Attention counts its two products, half of them with a causal mask, 3.5 times as much with the gradient, however "
    "it is computed. Ceilings are measured on this device; a datasheet's figure is called that.",
    "Counters, where there are any, come from a second pass under the hardware profiler; times never do.",
)


def section(run: Run) -> Markup:
    """The section of a run."""
    rows = list(_timers(run.device.get("calibration")))
    columns = ["timer", "tick", "an empty kernel reads", "a kernel of known duration reads"]
    chosen = [(name, *words) for name, value in run.settings.items() if (words := _setting(value))]
    ran = " ".join(run.argv)
    return join(
        [
            *(tag("p", text) for text in MEANING),
            table("Timers of this machine", columns, rows, set(columns[1:])) if rows else None,
            folded(
                "Settings that were not left as they are",
                table("Settings of the run", ["setting", "value", "set by"], chosen),
            )
            if chosen
            else None,
            tag("p", "Run it again: ", tag("code", ran)) if ran else None,
            tag("p", f"{', '.join(_identity(run))}.", class_="soft"),
        ]
    )  # fmt: skip


def _identity(run: Run) -> list[str]:
    """What the run is told by, as far as its file says."""
    told = ("run", run.run_id), ("method", run.tool.get("method")), ("machine", run.fingerprint.get("id"))
    first, *others = [f"{name} {plain(value)}" for name, value in told if value not in (None, "")] or ["run without id"]
    return [first[0].upper() + first[1:], *others]


def _timers(calibration: Any) -> Iterator[tuple[str, str, str, str]]:
    """What each timer of the machine was found to be worth, where the file says it."""
    timers = calibration.get("timers") if isinstance(calibration, Mapping) else None
    for name, timer in timers.items() if isinstance(timers, Mapping) else ():
        if isinstance(timer, Mapping):
            known = timer.get("known")
            spun, read = (known.get("spun_ns"), known.get("read_ns")) if isinstance(known, Mapping) else (None, None)
            both = f"{_time(read)} of {_time(spun)}" if _time(read) and _time(spun) else ""
            yield str(name), _time(timer.get("tick_ns")), _time(timer.get("empty_ns")), both


def _time(value: Any) -> str:
    return format_duration(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _setting(value: Any) -> tuple[str, str] | None:
    """A setting's value and who set it; None for one that was left alone."""
    if not isinstance(value, Mapping) or value.get("origin") in (None, "default"):
        return None
    found = value.get("value")
    return three_digits(found) if isinstance(found, float) else str(found), str(value["origin"])
