"""What an A/B measurement says: figures, looks, failures, causes, by files made by hand."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from statistics import mean, stdev, variance

import comparisons
import pytest
from ab_parts import begun, by_hand

from gpubench import gate
from gpubench.ab import judge as abjudge
from gpubench.ab import pairs as abpairs
from gpubench.compare import causes
from gpubench.exits import Exit, first
from gpubench.report import ab as report
from gpubench.report import comparison, comparison_forms
from gpubench.result import Conditions, KernelSeen, RunStatus, Timer
from gpubench.stats import t_quantile
from gpubench.store.abfile import AbRun, Ending, SideFacts
from gpubench.units import three_digits
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


def test_figures_are_of_one_call_and_their_mean_is_that_of_ratios() -> None:
    found = by_hand([1.0, 1.21] * 5)
    assert only(found).changes[1].ratio == pytest.approx(1.1, rel=1e-4)
    found.records[0].samples.launches = [4] * 11
    assert abpairs.time_of(found.records[0]) == 1e6 / 4


def test_the_margin_is_that_of_the_file_unless_another_is_given() -> None:
    found = by_hand(ratios(1.05))
    assert abjudge.judged(found).margin == 0.03
    assert abjudge.judged(found, margin=0.10).margin == 0.10
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
    once = only(by_hand(ratios(1.05)))
    time = turned.changes[1]
    assert time.high is not None
    assert time.high < turned.paired["surely_high"], "what is shown is the 95 % interval, what is judged a wider one"
    assert [row.paired["level"] for row in (turned, only(late), once)] == [0.01, 0.04, 0.05], "what each look spends"


def test_the_record_of_a_side_is_the_middle_one_with_the_samples_and_flags_of_all() -> None:
    found = by_hand([1.05, 1.01, 1.03, 1.02, 1.04, 1.0, 1.06, 1.07, 1.08])
    for record in found.records:  # two calls a sample
        record.samples.gpu_ns, record.samples.launches = [2 * ns for ns in record.samples.gpu_ns], [2] * 11
    new = [record for record in found.records if record.side == "new"]
    new[8].flags = ["noisy"]
    middle = only(found).new
    assert middle is not None
    assert (middle.primary, middle.flags) == (new[4].primary, ["noisy"])
    assert middle.samples.gpu_ns == [time for record in new for time in record.samples.gpu_ns]
    assert middle.samples.block == [block for block in range(9) for _ in range(11)]
    assert middle.samples.launches == [2] * 99
    assert middle.summary is not None
    assert (middle.summary.n, middle.summary.median_ns) == (99, 1_040_000)


def test_an_inconclusive_row_says_what_it_could_have_seen_and_what_would_decide() -> None:
    row = only(by_hand([1.0, 1.1, 0.95, 1.08, 1.0, 1.05, 0.92, 1.1, 1.02, 1.0]))
    assert row.verdict == "inconclusive"
    assert row.reason is not None
    assert f"; {three_digits(100 * row.paired['detectable'])} % would have been found; " in row.reason
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


def test_a_base_that_failed_once_is_no_base() -> None:
    found = by_hand(ratios(1.05))
    (index,) = (n for n, each in enumerate(found.records) if (each.side, each.block) == ("base", 2))
    failed = replace(found.records[index], status="error", reason="illegal address", summary=None, metrics=[])
    found.records[index] = failed
    row = only(found)
    assert (row.verdict, row.reason) == ("fixed", "error: illegal address in the base (base: block 3)")


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


def test_a_second_process_is_called_slower_beyond_what_chance_does() -> None:
    """By half the difference of two means and its 95 % interval, pooled (Student)."""
    source = random.Random(5)
    said = 0
    for _ in range(60):
        shift, spread = source.uniform(-0.02, 0.02), source.uniform(0.001, 0.02)
        logs = [source.gauss(shift if number % 2 == 0 else -shift, spread) for number in range(9)]
        found = by_hand([math.exp(each) for each in logs], base_ns=10**9)
        slower, pooled = (
            (mean(logs[::2]) - mean(logs[1::2])) / 2,
            (4 * variance(logs[::2]) + 3 * variance(logs[1::2])) / 7,
        )
        surely = abs(slower) - t_quantile(7, 0.975) * math.sqrt(pooled * (1 / 5 + 1 / 4)) / 2 > abjudge.TURN
        hints = [hint for hint in only(found, margin=0.0).hints if "second process" in hint]
        assert bool(hints) == surely
        assert not surely or f"{100 * math.expm1(slower):+.1f} %" in hints[0]
        said += surely
    assert 15 < said < 45
    few = only(by_hand([1.05, 1 / 1.05] * 3 + [1.05], planned=10))
    assert not any("second process" in hint for hint in few.hints), "of seven blocks nothing is known"


def test_a_clock_is_called_another_beyond_what_chance_does() -> None:
    """By the 95 % interval of the mean logarithm of its ratios."""
    source = random.Random(6)
    said = 0
    for _ in range(60):
        shift, spread = source.uniform(-0.03, 0.03), source.uniform(0.001, 0.03)
        logs = [source.gauss(shift, spread) for _ in range(8)]
        found = by_hand(ratios(1.05, 8), mhz=2000.0)
        for record in found.records:
            if record.side == "new":
                record.samples.sm_mhz = [2000 * math.exp(logs[record.block])] * 11
        surely = abs(mean(logs)) - t_quantile(7, 0.975) * stdev(logs) / math.sqrt(8) > causes.CLOCK_SHIFT
        hints = [hint for hint in only(found).hints if hint.startswith("power: the SM clock differs")]
        assert bool(hints) == surely
        assert not surely or hints[0].endswith(
            f"2000 → {2000 * math.exp(mean(logs)):.0f} MHz ({100 * math.expm1(mean(logs)):+.1f} %)"
        )
        said += surely
    assert 10 < said < 50
    few = by_hand(ratios(1.05, 7), planned=10, mhz=2000.0)
    for record in few.records[1::2]:
        record.samples.sm_mhz = [1800.0] * 11
    assert not any(hint.startswith("power: the SM clock differs") for hint in only(few).hints)


def test_another_kernel_is_named_as_what_differs() -> None:
    found = by_hand(ratios(1.05))
    for record in found.records:
        record.kernels = [KernelSeen("gemm_128" if record.side == "base" else "gemm_64")]
    row = only(found)
    assert "kernel: gemm_128 → gemm_64" in row.subject
    assert "another kernel ran" in row.hints
    row = only(found, margin=0.2)
    assert (row.verdict, row.hints) == ("equivalent", []), "what is no slower has no cause"


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


def test_rows_that_came_by_another_way_are_not_of_one_thing() -> None:
    found = by_hand(ratios(1.05), labels={"implementation": "cublasLt"})
    for record in found.records:
        record.labels = {"implementation": "cublas" if record.side == "base" else "cublasLt"}
    row = only(found)
    assert (row.verdict, row.reason) == ("not comparable", "implementation: cublas against cublasLt")


@pytest.mark.parametrize("side", ["base", "new"])
def test_a_coarse_timer_of_either_side_widens_the_interval(side: str) -> None:
    """A tick of 3 % of the time: what both round alike is not known, on whichever side."""
    found = by_hand([1.0] * 10)
    assert only(found).verdict == "equivalent"
    for record in found.records:
        record.timer = Timer("cupti", 30_000.0 if record.side == side else 1.0)
    row = only(found)
    assert row.verdict == "inconclusive"
    assert str(row.reason).startswith("in too few ticks of the timer to be called equivalent")


def test_sides_that_do_other_work_are_not_of_one_thing() -> None:
    found = by_hand(ratios(1.05))
    for record in found.records:
        record.work = replace(record.work, bytes=64 if record.side == "base" else 65)
    row = only(found)
    assert (row.verdict, row.reason) == ("not comparable", "work.bytes: 64 against 65")


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


def test_a_figure_that_is_none_is_invalid_before_any_look() -> None:
    found = by_hand(ratios(1.0, 5), planned=10)
    assert [each.verdict for each in abpairs.verdicts(found)] == ["inconclusive"]
    found.records[3].samples.gpu_ns[:] = [0] * 11
    assert [each.verdict for each in abpairs.verdicts(found)] == ["invalid"]


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


def test_only_heat_makes_the_room_what_is_measured() -> None:
    """Two of ten blocks may meet it; one that was broken off did not."""
    found = by_hand([*ratios(1.05), 1.05, 1.05], planned=10)
    reasons = "thermal slowdown (new)", "thermal slowdown (base)", "not finished"
    for block, why in zip(found.blocks[9:], reasons, strict=True):
        block.unused = why
    assert not abpairs.too_hot(found.blocks, found.planned)
    assert only(found).reason == "9 of 10 blocks were measured"
    found.blocks[0].unused = "thermal slowdown (new)"
    assert abpairs.hot_words(found) == "thermal slowdown in 3 of 12 blocks"
    assert only(found).reason == "environment: thermal slowdown in 3 of 12 blocks"


def test_a_row_that_one_side_never_reached_is_not_judged() -> None:
    found = by_hand(ratios(1.05))
    other = replace(found.records[0], id="matmul-sweep/matmul[n=65]", params={"n": 65})
    found.records.append(other)
    found.cases.append(other.id)
    judged = abjudge.judged(found)
    assert [row.id for row in judged.rows] == found.cases[:1]
    assert "1 of 2 rows were not reached on both sides" in judged.notes


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
    found = by_hand(ratios(1.2))
    found.tags = ["quick"]
    judged = abjudge.judged(found)
    assert "a quick measurement, which never decides a build" in judged.notes
    assert gate.failing(judged, gate.parse(gate.DEFAULT)) == []


def test_a_block_that_does_not_count_is_said_however_it_ended() -> None:
    for ending in ("all blocks", "time budget", "nothing to compare", None):
        found = by_hand(ratios(1.0))
        found.ending, found.blocks[3].unused = ending, "thermal slowdown (new)"
        assert "1 not used: thermal slowdown (new)" in abjudge.judged(found).notes, ending


@pytest.mark.parametrize(
    ("status", "ending", "note"),
    [
        ("complete", "all blocks", None),
        ("complete", "decided", None),
        ("complete", "time budget", "stopped by the time budget"),
        ("complete", "environment", "environment: thermal slowdown in 1 of 10 blocks"),
        ("interrupted", None, "the measurement is interrupted"),
        ("partial", None, "the measurement is partial"),
    ],
)
def test_how_it_ended_is_said_once(status: RunStatus, ending: Ending | None, note: str | None) -> None:
    found = by_hand(ratios(1.0))
    found.status, found.ending, found.blocks[3].unused = status, ending, "thermal slowdown (new)"
    used = "9 of 10 blocks, each a fresh process of either side"
    heat = "1 not used: thermal slowdown (new)"
    first = f"{used}; decided at the first look" if ending == "decided" else used
    said = [first, *([note] if note else []), *([] if ending == "environment" else [heat])]
    assert abjudge.judged(found).notes == said


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
