"""A sustained row beside its burst row, in the closing lines and in the table."""

from __future__ import annotations

from typing import Any

import pytest
from builders import make_matmul, make_record, make_run
from test_report_table import printed

from gpubench.energy import HOT as HOT_CALLS
from gpubench.energy import STREAMED
from gpubench.report.closing import closing_lines
from gpubench.report.sustained import limit_words, sustained_lines
from gpubench.result import Cache, Conditions, Metric, Record, Run

HOT = Conditions(cache="hot")
SUSTAINED = Conditions(cache="hot", load="sustained")
CAP: dict[str, Any] = {"limited_by": "power cap", "limit": {"shares": {"software power cap": 0.98}, "may_miss": False}}


def clocked(record: Record, mhz: float | None) -> Record:
    record.samples.sm_mhz = [mhz] * len(record.samples.gpu_ns)
    return record


def both(n: int = 4096, **telemetry: Any) -> list[Record]:
    """The two rows of a matmul: 777 TFLOP/s at 1980 MHz, and 656 at 1470 with 691 W."""
    burst = clocked(make_matmul(n, conditions=HOT), 1980.0)
    rested = clocked(make_matmul(n, conditions=SUSTAINED, peak=675.4e12), 1470.0)
    rested.telemetry = telemetry
    rested.metrics += [Metric("power", 691.2, "W", "none"), Metric("energy_per_flop", 1.054e-12, "J/FLOP", "lower")]
    return [burst, rested]


def lines(records: list[Record]) -> list[str]:
    return sustained_lines(make_run(records))


def test_the_line_says_rates_clocks_power_and_limit() -> None:
    words = "sustained matmul n=4096 m=4096 k=4096: 656 of 777 TFLOP/s (0.844×), SM 1470 of 1980 MHz, 691 W: power cap"
    assert lines(both(**CAP)) == [words]
    assert words in closing_lines(make_run(both(**CAP)), "x.json")


def test_what_is_not_known_is_not_said() -> None:
    burst, row = both()
    row.metrics = [metric for metric in row.metrics if metric.name != "power"]
    assert lines([burst, clocked(row, None)]) == ["sustained matmul n=4096 m=4096 k=4096: 656 of 777 TFLOP/s (0.844×)"]


def test_units_that_differ_are_both_said() -> None:
    burst, row = make_record(conditions=HOT, time_ns=900), make_record(conditions=SUSTAINED, time_ns=1100)
    assert lines([burst, row])[0].startswith("sustained matmul n=64: 1.10 µs of 900 ns (1.22×)")


def test_only_rows_alike_in_everything_else_are_paired() -> None:
    (burst, row), (other, _) = both(), both(8192)
    cold = make_matmul(4096, conditions=Conditions(load="sustained"))
    failed = make_matmul(4096, conditions=HOT, status="error", reason="no")
    assert lines([row]) == lines([other, row]) == lines([burst, cold]) == lines([failed, row]) == []
    assert len(lines([burst, row, other])) == 1


def test_many_rows_do_not_flood_the_end() -> None:
    records = [record for n in range(256, 256 * 12, 256) for record in both(n, **CAP)]
    closing = closing_lines(make_run(records), "x.json")
    assert len([line for line in closing if line.startswith("sustained ")]) == 5
    assert "and 6 more sustained rows: gpubench show --all" in closing


@pytest.mark.parametrize(
    ("telemetry", "words"),
    [
        (CAP, "power cap"),
        ({"limited_by": "none", "limit": {"shares": {}, "may_miss": True}}, "none (polled)"),
        ({"limited_by": None, "limit": None}, ""),
        ({}, ""),
    ],
)
def test_limit_words(telemetry: dict[str, Any], words: str) -> None:
    assert limit_words(both(**telemetry)[1]) == words


def test_the_table_has_a_limit_where_rows_are_sustained() -> None:
    wide = printed(make_run(both(**CAP)), width=140)
    assert all(word in wide for word in ("limit", "power cap", "691 W", "1470 MHz", "1.05 pJ/FLOP"))
    plain = printed(make_run([make_matmul(4096)]), width=140)
    assert "limit" not in plain
    assert "energy" not in plain


def energetic(*metrics: Metric, cache: Cache = "cold", of: str = HOT_CALLS) -> str:
    """The table of a matmul measured with such an energy."""
    record = make_matmul(4096, conditions=Conditions(cache=cache))
    record.metrics += metrics
    record.telemetry["energy"] = {"conditions": of}
    return printed(make_run([record]), width=140)


def test_an_energy_of_hot_calls_is_marked_in_a_cold_row() -> None:
    energy, flop = Metric("energy", 0.1, "J", "lower"), Metric("energy_per_flop", 1.054e-12, "J/FLOP", "lower")
    meaning = "energy (hot): of hot calls, back to back, beside the time of a cold one"
    cold = energetic(energy, flop)
    assert "1.05 pJ/FLOP (hot)" in cold
    assert meaning in cold
    for same in (energetic(energy, flop, cache="hot"), energetic(energy, flop, of=STREAMED)):
        assert "1.05 pJ/FLOP" in same
        assert "(hot)" not in same
    assert "100 mJ (hot)" in energetic(energy), "of a call, where bytes would be those of a cache"


def test_a_row_without_a_number_has_no_limit() -> None:
    row = make_matmul(4096, conditions=SUSTAINED, status="error", reason="no", telemetry=CAP)
    assert limit_words(row) == ""
    assert isinstance(make_run([row]), Run)
