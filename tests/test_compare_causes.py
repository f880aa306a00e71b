from __future__ import annotations

from typing import Any

import pytest
from comparisons import at, only, rate

from gpubench.compare import causes
from gpubench.result import KernelSeen, Record, Summary


def seen(**telemetry: Any) -> dict[str, Any]:
    return {"telemetry": telemetry}


@pytest.mark.parametrize(
    ("base", "new", "hint"),
    [
        (rate(kernels=[KernelSeen("k", grid=[1])]), rate(kernels=[KernelSeen("k", grid=[2])]), "with another grid"),
        (rate(), rate(flags=["throttled"], **seen(throttles=["heat"])), "new: throttled (heat)"),
        (rate(flags=["noisy"]), rate(flags=["noisy"]), "both: noisy"),
        (rate(flags=["profiled"]), rate(), "base: profiled"),
        (rate(), rate(flags=["fallback"]), "new: fallback"),
        (rate(), at(1970.0), "SM clock 1980 → 1970 MHz (-0.5 %)"),
        (
            rate(**seen(after={"memory_mhz": 3201})),
            rate(**seen(after={"memory_mhz": 2619})),
            "memory clock 3201 → 2619 MHz",
        ),
        (
            rate(),
            rate(**seen(before={"event_ns": {"software power cap": 5}}, after={"event_ns": {"software power cap": 9}})),
            "new: the power cap held the clock down",
        ),
        (rate(), rate(**seen(after={"other_processes": 1})), "new: other processes on the GPU"),
        (
            rate(**seen(after={"temperature_c": 40})),
            rate(**seen(after={"temperature_c": 61})),
            "temperature 40 → 61 °C",
        ),
        (rate(1_000), rate(1_040), "the difference is 1.25 of the timer's ticks of 32.0 ns"),
        (rate(call_ns=[10]), rate(call_ns=[10**6]), "new: launch-bound, a call takes longer to enqueue than to run"),
        (
            rate(),
            rate(summary=Summary(11, 100_000, 90_000, 97_000, 105_000, 99_000, 101_000)),
            "samples spread over 0.0 % in the base, 8.0 % in the new run (p10 to p90)",
        ),
    ],
)
def test_causes_that_the_files_suggest(base: Record, new: Record, hint: str) -> None:
    assert any(hint in each for each in causes.hints(base, new))
    assert not any(hint in each for each in causes.hints(rate(), rate()))


def test_kernels_that_one_side_did_not_see_are_no_other_grid() -> None:
    assert causes.hints(rate(kernels=[]), rate(kernels=[KernelSeen("k", grid=[2])])) == []


def test_only_a_row_that_moved_is_given_causes() -> None:
    slower = rate(1_100, flags=["throttled"])
    assert only(rate(1_000), slower).hints == causes.hints(rate(1_000), slower) != []
    alike = rate(1_001, flags=["throttled"])
    assert causes.hints(rate(1_000), alike) != []
    assert only(rate(1_000), alike).hints == []


def test_what_both_sides_have_alike_is_no_cause() -> None:
    wide = rate(summary=Summary(11, 100_000, 90_000, 97_000, 105_000, 99_000, 101_000), call_ns=[10**6])
    assert causes.hints(wide, wide) == []
    assert causes.hints(rate(), rate()) == []
