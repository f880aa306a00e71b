"""What an A/B measurement says: figures, looks, failures, causes, by files made by hand."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import comparisons
import pytest
from ab_parts import begun, by_hand

from gpubench import gate
from gpubench.ab import judge as abjudge
from gpubench.ab import pairs as abpairs
from gpubench.exits import Exit, first
from gpubench.report import ab as report
from gpubench.report import comparison, comparison_forms
from gpubench.result import Conditions, KernelSeen, Timer
from gpubench.store.abfile import AbRun, SideFacts
from gpubench.verdict import Row

STEPS = (0.999, 1.001, 1.0, 0.9995, 1.0005, 1.001, 0.999, 1.0, 1.0005, 0.9995)


def ratios(factor: float, count: int = 10) -> list[float]:
    """Ratios about a factor, whose logarithms have that of the factor as their mean (all ten)."""
    return [factor * step for step in STEPS[:count]]


def only(found: AbRun, **options: float) -> Row:
    (row,) = abjudge.judged(found, **options).rows  # type: ignore[arg-type]
    return row


@pytest.mark.parametrize(
    ("planned", "looks"), [(8, (8,)), (10, (10,)), (14, (14,)), (15, (8, 15)), (20, (10, 20)), (31, (16, 31))]
)
def test_a_first_look_is_after_half_of_the_blocks_where_that_is_eight_or_more(
    planned: int, looks: tuple[int, ...]
) -> None:
    assert abpairs.looks(planned) == looks


@pytest.mark.parametrize(
    ("factor", "verdict", "code"),
    [
        (1.05, "regression", Exit.REGRESSION),
        (1.0, "equivalent", Exit.DONE),
        (0.94, "improvement", Exit.DONE),
        (1.03, "inconclusive", Exit.UNDECIDED),
    ],
)
def test_a_verdict_its_figures_and_its_exit_code(factor: float, verdict: str, code: Exit) -> None:
    judged = abjudge.judged(by_hand(ratios(factor)))
    (row,) = judged.rows
    assert row.verdict == verdict
    assert first(gate.decide(judged, gate.parse(gate.DEFAULT))) == code
    rate, time = row.changes
    assert (rate.metric, rate.primary, time.metric, time.primary) == ("flops", True, "time", False)
    assert time.base == pytest.approx(1e6)
    assert time.ratio == pytest.approx(factor, rel=1e-3)
    assert time.new / time.base == pytest.approx(time.ratio)
    assert rate.base == pytest.approx(10**9 / 1e6 * 1e9)
    assert rate.ratio * time.ratio == pytest.approx(1)
    assert rate.loss == time.loss == pytest.approx(math.log(time.ratio))
    assert time.low is not None
    assert time.high is not None
    assert rate.high is not None
    assert time.low < time.ratio < time.high
    assert rate.high == pytest.approx(1 / time.low)


def test_the_margin_is_that_of_the_file_unless_another_is_given() -> None:
    found = by_hand(ratios(1.05))
    assert abjudge.judged(found).margin == 0.03
    assert only(found, margin=0.10).verdict == "equivalent"
    found.margins = {"matmul-sweep/*": 0.10}
    assert only(found).verdict == "equivalent"
    assert abjudge.judged(found, None, {"matmul-sweep": 0.01}).rows[0].verdict == "regression"


def test_what_the_first_look_decided_stands() -> None:
    turned = only(by_hand([*ratios(1.05, 8), *[0.5] * 8]))
    assert (turned.verdict, turned.paired["blocks"], len(turned.paired["medians"])) == ("regression", 8, 16)
    assert turned.changes[1].ratio == pytest.approx(1.05, rel=1e-3)
    late = by_hand([*ratios(1.03), *ratios(1.03, 6)])
    assert only(late).paired["blocks"] == 16
    assert abjudge.judged(late).details["looks"] == [8, 16]


def test_an_inconclusive_row_says_what_it_could_have_seen_and_what_would_decide() -> None:
    row = only(by_hand([1.0, 1.1, 0.95, 1.08, 1.0, 1.05, 0.92, 1.1, 1.02, 1.0]))
    assert row.verdict == "inconclusive"
    assert row.reason is not None
    assert "% would have been found; " in row.reason
    assert row.reason.endswith("blocks would decide")


@pytest.mark.parametrize(
    ("status", "reason", "verdict", "code"),
    [
        ("error", "illegal address", "failed", Exit.FAILED),
        ("incorrect", "off by 2", "failed", Exit.FAILED),
        ("skipped", "no such kernel", "missing", Exit.FAILED),
    ],
)
def test_a_side_without_a_figure_is_a_verdict_of_its_own(status: str, reason: str, verdict: str, code: Exit) -> None:
    judged = abjudge.judged(by_hand(ratios(1.0), status=status, reason=reason))
    (row,) = judged.rows
    newly = "newly " if status == "incorrect" else ""
    blocks = ", ".join(map(str, range(1, 11)))
    assert (row.verdict, row.reason) == (verdict, f"{newly}{status}: {reason} (new: block {blocks})")
    assert code in gate.decide(judged, gate.parse(gate.DEFAULT))


def test_a_second_process_that_is_slower_favours_no_side_and_is_said() -> None:
    """In blocks of even number the base comes first, in the others the new side."""
    found = by_hand([step * (1.05 if number % 2 == 0 else 1 / 1.05) for number, step in enumerate(STEPS)])
    row = only(found)
    assert row.verdict == "inconclusive"
    assert row.hints[-1] == "the second process of a block took +5.0 %, whichever side it was"
    found = by_hand([1.05 * step * (1.01 if number % 2 == 0 else 1 / 1.01) for number, step in enumerate(STEPS)])
    row = only(found)
    assert row.verdict == "regression"
    assert row.hints[-1] == "the second process of a block took +1.0 %, whichever side it was"
    for still in (ratios(1.03), ratios(1.05), [1.0, 1.05] * 2 + [1.05, 1.0] * 3):
        assert not any("second process" in hint for hint in only(by_hand(still)).hints)


def test_a_clock_that_differs_in_every_block_is_the_cause_and_no_mismatch() -> None:
    found = by_hand(ratios(1.05), mhz=1980.0)
    for record in found.records:
        if record.side == "new":
            record.samples.sm_mhz = [1900.0 + record.block % 2] * 11
    row = only(found)
    assert row.verdict == "regression"
    assert row.hints[0] == "power: the SM clock differs, 1980 → 1900 MHz (-4.0 %)"
    assert not any(hint.startswith("SM clock") for hint in row.hints)
    for record in found.records:  # half a percent higher in the middle, by chance
        record.samples.sm_mhz = [1980.0 if record.side == "base" else 1990.0 + 50 * (-1) ** record.block] * 11
    assert not any(hint.startswith("power: the SM clock") for hint in only(found).hints)


def test_another_kernel_is_named_as_what_differs() -> None:
    found = by_hand(ratios(1.05))
    for record in found.records:
        record.kernels = [KernelSeen("gemm_128" if record.side == "base" else "gemm_64")]
    row = only(found)
    assert "kernel: gemm_128 → gemm_64" in row.subject
    assert "another kernel ran" in row.hints


def test_another_timer_is_not_comparable_and_read_back_labels_are_part_of_the_answer() -> None:
    found = by_hand(ratios(1.05))
    for record in found.records:
        record.labels = {"backend": "flash" if record.side == "base" else "math"}
    assert "backend: flash against math" in only(found).subject
    found.records[-1].timer = Timer("event", 1.0)
    row = only(found)
    assert (row.verdict, row.paired["blocks"]) == ("regression", 9)
    assert row.reason == "worse by more than the margin of 3 %; 1 block left out: timer: cupti against event"
    for record in found.records:
        record.timer = Timer("event" if record.side == "new" else "cupti", 1.0)
    judged = abjudge.judged(found)
    assert (judged.rows[0].verdict, judged.rows[0].reason) == ("not comparable", "timer: cupti against event")
    assert first(gate.decide(judged, gate.parse(gate.DEFAULT))) == Exit.NOT_COMPARABLE


def test_a_row_that_lost_blocks_is_judged_by_those_it_has() -> None:
    found = by_hand(ratios(1.05))
    for record in found.records[:6:2]:  # three blocks of the first eight
        record.timer = Timer("event", 1.0)
    row = only(found)
    assert (row.verdict, len(row.paired["medians"])) == ("inconclusive", 7)
    assert row.reason is not None
    assert row.reason.startswith("7 blocks; 8 at least")


def test_a_figure_edited_by_hand_is_invalid() -> None:
    found = by_hand(ratios(1.0))
    found.records[3].metrics[0] = replace(found.records[3].metrics[0], value=5.0)
    row = only(found)
    assert row.verdict == "invalid"
    assert row.changes == []


def test_what_the_sides_are_and_what_differs_between_them() -> None:
    found = by_hand(ratios(1.0))
    about = {"kind": "cuda"}
    found.base = SideFacts([], {}, about, {"torch": "2.10.0", "driver": "570.1"})
    found.new = SideFacts(["python=python"], {"a.cu": "f" * 64}, about, {"torch": "2.11.0", "driver": "570.1"})
    judged = abjudge.judged(found)
    assert (judged.base_name, judged.new_name) == ("as it is", "python=python")
    assert judged.details["subject"] == ["torch: 2.10.0 → 2.11.0", "text of a.cu: new ffffffff"]


@pytest.mark.parametrize(
    ("telemetry", "words"),
    [
        ({"throttles": ["hardware thermal slowdown", "hardware power brake"]}, "thermal slowdown (new)"),
        ({"limited_by": "thermal"}, "thermal slowdown (new)"),  # of a sustained load
        ({"throttles": ["hardware power brake", "hardware slowdown"]}, None),
        ({"limited_by": "power cap"}, None),
        ({"throttles": "thermal"}, None),
    ],
)
def test_heat_is_told_from_power(telemetry: dict[str, object], words: str | None) -> None:
    found = by_hand(ratios(1.0), telemetry=telemetry)
    assert abpairs.thermal(found.records[:2]) == words


def test_what_a_side_does_to_its_device_is_no_obstacle_and_another_device_is() -> None:
    found = by_hand(ratios(1.05))
    for side, threads in ((found.base, 2), (found.new, 1)):
        side.fingerprint = {"device": {"kind": "cpu", "name": "Example", "threads": threads}}
    assert only(found).verdict == "regression"
    assert "threads: 2 against 1" in abjudge.judged(found).details["subject"]
    found.new.fingerprint["device"]["name"] = "Another"
    row = only(found)
    assert (row.verdict, row.reason) == ("not comparable", "device: Example against Another")


def test_a_quick_measurement_decides_no_build() -> None:
    judged = abjudge.judged(by_hand(ratios(1.2)))
    judged.details["quick"] = True
    assert gate.failing(judged, gate.parse(gate.DEFAULT)) == []


def test_a_block_that_does_not_count_is_said_however_it_ended() -> None:
    for ending in ("all blocks", "time budget", "nothing to compare", None):
        found = by_hand(ratios(1.0))
        found.ending, found.blocks[3].unused = ending, "thermal slowdown (new)"
        assert "1 not used: thermal slowdown (new)" in abjudge.judged(found).notes, ending


def test_nothing_measured_is_nothing_to_judge() -> None:
    judged = abjudge.judged(begun())
    assert judged.rows == []
    assert first(gate.decide(judged, gate.parse(gate.DEFAULT))) == Exit.NOTHING
    assert "3 of 3 rows were not reached on both sides" in judged.notes


def test_why_tells_every_block_and_json_has_them() -> None:
    judged = abjudge.judged(by_hand(ratios(1.05)))
    text = report.why(judged, "n=64")
    lines = text.splitlines()
    assert lines[1] == "verdict      regression: worse by more than the margin of 3 % (margin 3 %)"
    assert lines[-10:] == [
        f"block {n + 1:<6} 1.00 ms → 1.05 ms  {comparison.signed_percent(round(1e6 * r) / 1e6 - 1)}, "
        f"{'base' if n % 2 == 0 else 'new'} first"
        for n, r in enumerate(ratios(1.05))
    ]
    (row,) = comparison_forms.to_json(judged, [])["rows"]
    assert row["paired"]["medians"][1] == {"block": 2, "first": "new", "base_ns": 1e6, "new_ns": 1051050.0}
    assert row["paired"]["detectable"] > 0.03


def test_why_of_a_block_of_no_time_at_all() -> None:
    found = by_hand(ratios(1.0))
    next(each for each in found.records if each.side == "base").samples.gpu_ns[:] = [0] * 11
    told = abjudge.judged(found)
    assert told.rows[0].verdict == "invalid"
    assert re.search(r"block 1 +0 ns → .*s  base first$", report.why(told, "n=64"), re.MULTILINE)


def test_two_runs_that_leave_a_row_suspect_name_the_measurement_that_decides() -> None:
    base, slow = comparisons.rate(), comparisons.rate(110_000)
    hot = {"conditions": Conditions("hot", "burst", "normal"), "id": "matmul-sweep/matmul[cache=hot,n=64]"}
    found = comparisons.judged(comparisons.rate(**hot), comparisons.rate(110_000, **hot))
    assert report.deciding(found) == "gpubench ab --base SIDE matmul-sweep/matmul -p n=64 -p cache=hot"
    for library, word in (("torch", "gpubench ab --base python=PATH matmul-sweep/matmul -p n=64"), ("driver", None)):
        old, new = (comparisons.run(one, software={library: str(one)[:9]}) for one in (base, slow))
        new.software, new.run_id = {library: "another"}, "new"
        assert report.deciding(comparisons.judged(old, new)) == word
    assert report.deciding(comparisons.judged(base, base)) is None
