"""What a rule sees of a run."""

from __future__ import annotations

import math
import random

import pytest
from builders import CPU, make_ceilings, make_record, make_run

from gpubench.claims.view import View
from gpubench.finding import Estimate, NotTestable, RowsMissing, exactly
from gpubench.result import Conditions, Metric, Record, Samples


def row(n: int, times: list[int] | None = None, **fields: object) -> Record:
    record = make_record("s", "b", params={"n": n}, time_ns=1000 * n, **fields)  # type: ignore[arg-type]
    if times is not None:
        record.samples = Samples(times, [1] * len(times), [0] * len(times), [None] * len(times))
        record.timer = None
    return record


def noisy(n: int, median: float, spread: float, count: int = 30) -> Record:
    draw = random.Random(n)
    return row(n, [round(draw.gauss(median, spread)) for _ in range(count)])


def view(*records: Record, **fields: object) -> View:
    return View(make_run(list(records), **fields), "s")  # type: ignore[arg-type]


def test_rows_by_benchmark_and_parameters() -> None:
    seen = view(row(1), row(2), make_record("s", "c", params={"n": 1}), make_record("t", "b", params={"n": 3}))
    assert [record.params["n"] for record in seen.rows("b")] == [1, 2]
    assert seen.one("b", n=1).id == "s/b[n=1]"
    assert seen.one("b").id == "s/b[n=2]"
    assert list(seen.used) == ["s/b[n=1]", "s/b[n=2]"]
    with pytest.raises(RowsMissing, match="no row s/b n=3"):
        seen.rows("b", n=3)
    assert seen.maybe("b", n=3) is None


def test_rows_of_one_set_of_conditions() -> None:
    hot, cold = row(1, conditions=Conditions("hot")), row(1)
    assert view(hot, cold).rows("b") == [cold]
    assert view(hot, row(2, conditions=Conditions("hot", "sustained"))).rows("b") == [hot]


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"status": "incorrect", "reason": "off"}, RowsMissing, "s/b is incorrect: off"),
        ({"status": "skipped", "reason": "time budget"}, RowsMissing, "skipped: time budget"),
        ({"status": "skipped", "reason": "no CPU counterpart of k in s.cpp"}, NotTestable, "no CPU counterpart"),
        ({"status": "unsupported", "reason": "needs clusters"}, NotTestable, "needs clusters"),
        ({"flags": ["implausible"]}, RowsMissing, "implausible"),
    ],
)
def test_a_row_without_a_number_is_no_evidence(fields: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        view(row(1, **fields)).rows("b")


def test_a_ratio_holds_the_truth_and_mirrors() -> None:
    one, other = noisy(1, 10_000, 200), noisy(2, 20_000, 200)
    seen = view(one, other)
    found, back = seen.ratio(other, one), seen.ratio(one, other)
    assert found.low < 2 < found.high
    assert found.high - found.low < 0.1
    assert back.value == pytest.approx(1 / found.value)
    assert (back.low, back.high) == pytest.approx((1 / found.high, 1 / found.low))


def test_units_of_time_do_not_matter_to_a_ratio() -> None:
    times = [[random.Random(seed).randrange(1000, 1100) for _ in range(21)] for seed in (1, 2)]
    once, thousand = (
        view(*(row(n, [scale * ns for ns in each]) for n, each in enumerate(times, 1))) for scale in (1, 1000)
    )
    assert thousand.ratio(thousand.one("b", n=2), thousand.one("b", n=1)) == once.ratio(
        once.one("b", n=2), once.one("b", n=1)
    )


def test_a_ratio_of_several_rows_is_of_the_mean_of_their_medians() -> None:
    seen = view(row(1, [100] * 9), row(2, [300] * 9), row(3, [400] * 9))
    assert seen.ratio(seen.one("b", n=3), seen.rows("b")[:2]) == exactly(2.0)


def test_a_ratio_by_work() -> None:
    seen = view(row(1, [100] * 9, nbytes=1000), row(2, [100] * 9, nbytes=4000))
    assert seen.ratio(seen.one("b", n=1), seen.one("b", n=2), per="bytes") == exactly(4.0)
    with pytest.raises(RowsMissing, match="counts no flops"):
        seen.ratio(seen.one("b", n=1), seen.one("b", n=2), per="flops")


def test_no_interval_is_narrower_than_a_tick() -> None:
    found = view(make_record("s", "b", time_ns=320)).median(make_record("s", "b", time_ns=320))
    assert found.value == 320
    assert (found.low, found.high) == pytest.approx((320 / 1.05, 320 * 1.05))  # half a tick of 32 ns


def test_a_slope() -> None:
    seen = view(*(row(n, [100 * n**2] * 9) for n in (1, 2, 4, 8)))
    assert seen.slope(seen.rows("b"), "n").value == pytest.approx(2)
    shaky = view(*(noisy(n, 100_000 * n, 1000 * n) for n in (1, 2, 4, 8)))
    found = shaky.slope(shaky.rows("b"), "n")
    assert found.low < 1 < found.high
    with pytest.raises(RowsMissing, match="three values"):
        seen.slope(seen.rows("b")[:2], "n")


def test_a_row_of_no_time_has_no_ratio() -> None:
    seen = view(row(1, [0] * 9), row(2, [100] * 9))
    with pytest.raises(RowsMissing, match="no time above zero"):
        seen.ratio(seen.one("b", n=2), seen.one("b", n=1))


def test_metrics_counters_and_ceilings() -> None:
    record = row(1)
    record.metrics.append(Metric("cycles", 33.0, "cycles", "lower"))
    record.counters = {"sectors_per_load_request": 4, "kernels": [], "source": "x", "waves": None}
    seen = view(record, ceilings=make_ceilings())
    assert seen.metric(record, "cycles") == exactly(33.0)
    with pytest.raises(RowsMissing, match="has no other"):
        seen.metric(record, "other")
    assert seen.counter(record, "sectors_per_load_request") == exactly(4.0)
    assert [seen.counter(record, name) for name in ("waves", "source", "kernels", "gone")] == [None] * 4
    assert seen.ceiling("DRAM write") == exactly(4.6e12)
    with pytest.raises(RowsMissing, match="no ceiling L2 read"):
        seen.ceiling("L2 read")


def test_whoever_asks_for_counters_is_noted() -> None:
    counted, bare, other = row(1), row(2), row(3)
    counted.counters = {"waves": 2}
    asked = set[str]()
    seen = View(make_run([counted, bare, other]), "s", asked=asked)
    assert seen.counter(counted, "waves") == exactly(2.0)
    assert seen.counter(seen.one("b", n=2), "waves") is None
    seen.one("b", n=3)
    assert asked == {"s/b[n=1]", "s/b[n=2]"}


def test_the_fastest_row_is_that_of_the_highest_rate_not_of_the_least_time() -> None:
    short, long, other = (make_record("s", name, params={"n": n}, time_ns=ns, flops=flops) for name, n, ns, flops in (
        ("b", 1, 100, 1000), ("b", 2, 300, 6000), ("c", 1, 1, 9000),
    ))  # fmt: skip
    seen = View(make_run([short, long, other]), "s")
    assert seen.fastest("b") is long
    assert seen.fastest("b", n=1) is short
    with pytest.raises(RowsMissing):
        seen.fastest("b", n=3)


def test_what_a_cpu_cannot_show() -> None:
    view(row(1)).needs_gpu("warps")
    with pytest.raises(NotTestable, match="warps"):
        view(row(1), device=CPU).needs_gpu("warps")


def test_estimates() -> None:
    one = Estimate(2, 1, 4)
    assert one.times(3) == Estimate(6, 3, 12)
    assert one.over(Estimate(2, 1, 2)) == Estimate(1, 0.5, 4)
    assert one.known
    assert not Estimate(2, 3, 4).known
    assert not exactly(math.nan).known
