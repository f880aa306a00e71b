"""When sampling stops, and why: each rule where it should fire, and nowhere else. The clock is the test's own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpubench.devices import Batch
from gpubench.errors import TimerFailed
from gpubench.result import KernelSeen, Timer
from gpubench.sampling import (
    FIRST_BATCH,
    MAX_SAMPLES,
    MIN_SAMPLES,
    MOST_A_BATCH,
    STALLED_FROM,
    Sampled,
    Stopping,
    Stopwatch,
    Tally,
    sample,
)
from gpubench.stats import per_call, relative_half_width, summarize


class Script:
    """A sampler whose readings are a function of the sample's number, and whose clock moves with every sample."""

    def __init__(
        self,
        reading: Callable[[int], int],
        *,
        tick_ns: float = 1.0,
        cost_s: float = 0.0,
        launches: int = 1,
        profiled: Callable[[int], bool] = lambda batch: False,
        rough_ns: float = 1000.0,
    ) -> None:
        self.reading, self.cost_s, self.launches, self.profiled = reading, cost_s, launches, profiled
        self.timer = Timer("script", tick_ns)
        self.rough_ns = rough_ns
        self.now = 0.0
        self.taken = 0
        self.batches: list[int] = []
        self.warm_ups = 0

    def warm_up(self) -> float:
        self.warm_ups += 1
        self.now += 64.0  # is not part of the budget
        return self.rough_ns

    def batch(self, n: int) -> Batch:
        self.batches.append(n)
        readings = [self.reading(self.taken + i) for i in range(n)]
        self.taken += n
        self.now += n * self.cost_s
        kernels = [KernelSeen(f"kernel of batch {len(self.batches)}")]
        return Batch(readings, [self.launches] * n, [1980.0] * n, kernels, self.profiled(len(self.batches)))

    def clock(self) -> float:
        return self.now


def finish(script: Script, stopping: Stopping) -> tuple[Sampled, list[Tally]]:
    *tallies, last = sample(script, stopping, script.clock)
    assert isinstance(last, Sampled)
    assert all(isinstance(step, Tally) for step in tallies)
    assert script.warm_ups == 1
    return last, tallies  # type: ignore[return-value]


def steady(i: int) -> int:
    return 100_000 + i % 3


def wild(i: int) -> int:
    """Half fast, half slow, however long one looks: the interval is the gap between the two."""
    return 100_000 if i % 2 else 200_000


def scattered(i: int) -> int:
    """Spread evenly over ± 10 %, in a mixed order: the half-width falls as 1/√n."""
    return 90_000 + (i * 7919) % 20_000


def test_precision_fires_after_the_first_batch_of_steady_samples() -> None:
    script = Script(steady, cost_s=0.001)
    found, tallies = finish(script, Stopping(max_noise=0.005, case_time=10))
    assert found.stopped_by == "precision"
    assert script.batches == [FIRST_BATCH]
    assert [tally.n for tally in tallies] == [FIRST_BATCH]
    assert tallies[0].median_ns == 100_001
    assert tallies[0].half_width_ns == 1.0
    assert tallies[0].sm_mhz == 1980.0


def test_precision_fires_as_soon_as_the_half_width_is_reached() -> None:
    stopping = Stopping(max_noise=0.02, case_time=100)
    found, tallies = finish(Script(scattered, cost_s=0.001), stopping)
    assert found.stopped_by == "precision"
    values = per_call(found.samples)
    widths = [relative_half_width(values[: tally.n], 1) for tally in tallies]
    assert [width is not None and width <= 0.02 for width in widths] == [False] * (len(widths) - 1) + [True]


def test_budget_fires_when_the_time_is_spent() -> None:
    script = Script(scattered, cost_s=0.01)
    found, _ = finish(script, Stopping(max_noise=1e-6, case_time=0.5))
    assert found.stopped_by == "budget"
    assert script.now - 64 == pytest.approx(0.5, abs=0.011)


def test_settled_fires_when_noise_no_longer_improves() -> None:
    script = Script(wild, cost_s=1e-6)
    found, tallies = finish(script, Stopping(max_noise=0.005, case_time=100))
    assert found.stopped_by == "settled"
    assert tallies[-1].n == STALLED_FROM
    assert all(tally.n < STALLED_FROM for tally in tallies[:-1])


@pytest.mark.parametrize(("rough_ms", "first"), [(1, 20), (5, 20), (7.2, 13), (10, 10), (60, 10)])
def test_a_first_batch_of_long_calls_is_short(rough_ms: float, first: int) -> None:
    script = Script(steady, rough_ns=rough_ms * 1e6, cost_s=rough_ms / 1e3)
    finish(script, Stopping(case_time=30))
    assert script.batches[0] == first


def test_settled_fires_at_once_where_the_timer_shows_no_more() -> None:
    """A kernel of 2 µs under a timer with ticks of 32 ns: no number of samples brings its interval under 0.8 %."""
    found, tallies = finish(Script(lambda i: 1952, tick_ns=32, cost_s=2e-3), Stopping(max_noise=0.005))
    assert (found.stopped_by, tallies[-1].n) == ("settled", FIRST_BATCH)
    two_ticks = Script(lambda i: 1952 + 64 * (i % 2), tick_ns=32, cost_s=2e-3)
    found, tallies = finish(two_ticks, Stopping(max_noise=0.005))
    assert tallies[-1].n > FIRST_BATCH, "an interval of two ticks may yet narrow"


def test_settled_does_not_fire_while_noise_improves() -> None:
    found, _ = finish(Script(scattered, cost_s=1e-6), Stopping(max_noise=0.002, case_time=100))
    assert found.stopped_by == "precision"
    assert len(found.samples.gpu_ns) > 10 * STALLED_FROM


def test_count_fires_at_the_most_samples() -> None:
    ever_better = Stopping(max_noise=1e-9, case_time=1e9)
    found, _ = finish(Script(scattered, tick_ns=1e-6), ever_better)
    assert found.stopped_by == "count"
    assert MAX_SAMPLES <= len(found.samples.gpu_ns) < MAX_SAMPLES + MOST_A_BATCH


@pytest.mark.parametrize("samples", [1, 2, 5, 9, 10, 20, 21, 100, 1000])
def test_samples_are_exactly_what_was_asked_for(samples: int) -> None:
    script = Script(wild, cost_s=10.0)  # whatever they cost, and however noisy they are
    found, _ = finish(script, Stopping(samples=samples, case_time=0.001))
    assert found.stopped_by == "samples"
    assert len(found.samples.gpu_ns) == sum(script.batches) == samples
    assert max(script.batches) <= MOST_A_BATCH


def test_one_sample_has_no_interval() -> None:
    found, tallies = finish(Script(steady), Stopping(samples=1))
    assert tallies == [Tally(1, 100_000.0, None, 1980.0)]
    summary = summarize(per_call(found.samples))
    assert (summary.n, summary.low_ns, summary.high_ns) == (1, None, None)


@pytest.mark.parametrize("case_time", [1e-9, 0.001, 0.1])
def test_at_least_ten_samples_whatever_they_cost(case_time: float) -> None:
    script = Script(steady, cost_s=60.0, rough_ns=60e9)
    found, _ = finish(script, Stopping(case_time=case_time))
    assert len(found.samples.gpu_ns) == MIN_SAMPLES
    assert script.batches == [MIN_SAMPLES]


@settings(deadline=None, max_examples=60)
@given(
    cost_s=st.floats(1e-4, 1.0),
    case_time=st.floats(0.001, 5.0),
    rough=st.floats(0.5, 2.0),
    noise=st.sampled_from([1e-9, 0.005, 0.05]),
)
def test_the_budget_is_overrun_by_one_batch_at_most(
    cost_s: float, case_time: float, rough: float, noise: float
) -> None:
    script = Script(scattered, cost_s=cost_s, rough_ns=rough * cost_s * 1e9)
    found, _ = finish(script, Stopping(max_noise=noise, case_time=case_time))
    before_the_last = sum(script.batches[:-1])
    assert before_the_last < MIN_SAMPLES or before_the_last * cost_s < case_time * (1 + 1e-9)
    assert all(batch <= MOST_A_BATCH for batch in script.batches)
    if len(script.batches) > 1:  # a batch is only as long as what is left allows, by the pace seen so far
        assert script.batches[-1] <= max((case_time - before_the_last * cost_s) / cost_s + 1, MIN_SAMPLES)
    assert len(found.samples.gpu_ns) >= MIN_SAMPLES


def test_a_timer_too_coarse_for_the_target_stops_and_keeps_its_ticks() -> None:
    """Every sample alike, and half a tick is 1.6 %: no number of samples will do better."""
    found, tallies = finish(Script(lambda i: 1000, tick_ns=32, cost_s=1e-6), Stopping(max_noise=0.005, case_time=100))
    assert found.stopped_by == "settled"
    assert tallies[-1].half_width_ns == 16.0


def test_many_launches_share_the_tick() -> None:
    found, tallies = finish(Script(lambda i: 1000, tick_ns=32, launches=100), Stopping(max_noise=0.02))
    assert found.stopped_by == "precision"
    assert tallies[-1].median_ns == 10.0
    assert tallies[-1].half_width_ns == pytest.approx(0.16)


def test_readings_of_zero_end_with_the_budget_and_have_no_interval() -> None:
    script = Script(lambda i: 0, cost_s=0.001)
    found, tallies = finish(script, Stopping(case_time=0.2))
    assert found.stopped_by == "budget"
    assert {tally.half_width_ns for tally in tallies} == {None}


def test_a_free_timer_of_zero_ends_with_the_count() -> None:
    found, _ = finish(Script(lambda i: 0, rough_ns=0), Stopping(case_time=1))
    assert found.stopped_by == "count"


def test_a_timer_that_goes_backwards_is_given_up() -> None:
    script = Script(lambda i: -3 if i == 25 else 90_000 + 500 * (i % 20))
    with pytest.raises(TimerFailed, match=r"it read -3 ns: it goes backwards"):
        finish(script, Stopping(max_noise=1e-6))


def test_every_sample_is_kept_with_its_batch_and_clock() -> None:
    script = Script(scattered, cost_s=0.005, launches=3)
    found, tallies = finish(script, Stopping(max_noise=1e-6, case_time=0.5))
    samples = found.samples
    n = sum(script.batches)
    assert samples.gpu_ns == [scattered(i) for i in range(n)]
    assert samples.launches == [3] * n
    assert samples.sm_mhz == [1980.0] * n
    assert samples.block == [block for block, size in enumerate(script.batches) for _ in range(size)]
    assert len(tallies) == len(script.batches) > 1
    assert [kernel.name for kernel in found.kernels] == ["kernel of batch 1"]


def test_the_tally_holds_the_median_of_an_even_number_too() -> None:
    values = [100, 200] * 10
    _, tallies = finish(Script(lambda i: values[i]), Stopping(samples=20))
    assert tallies[-1].median_ns == 150


@pytest.mark.parametrize(("batches", "profiled"), [((), False), ((1,), True), ((2,), True)])
def test_one_profiled_batch_marks_the_row(batches: tuple[int, ...], profiled: bool) -> None:
    script = Script(scattered, cost_s=0.001, profiled=lambda batch: batch in batches)
    found, tallies = finish(script, Stopping(max_noise=0.02, case_time=10))
    assert len(tallies) > 2
    assert found.profiled is profiled


def test_rules_in_their_order() -> None:
    """Too few: none; then precision, budget, count, settled."""
    stopping = Stopping(max_noise=0.01, case_time=1.0)
    assert stopping.rule([5.0] * 9, 0, spent=99) is None
    assert stopping.rule([5.0] * 10, 0, spent=99) == "precision"
    noisy = [4.0, 6.0] * 5000
    assert stopping.rule(noisy[:10], 0, spent=1.0) == "budget"
    assert stopping.rule(noisy[:10], 0, spent=0.999) is None
    assert stopping.rule(noisy, 0, spent=0) == "count"
    assert stopping.rule(noisy[:78], 0, spent=0) is None
    assert stopping.rule(noisy[:80], 0, spent=0) == "settled"
    assert Stopping(samples=3).rule([5.0] * 2, 0, spent=99) is None
    assert Stopping(samples=3).rule([5.0] * 3, 0, spent=0) == "samples"


@pytest.mark.parametrize(
    ("taken", "call_ms", "spent", "width", "wanted"),
    [
        (100, 0.001, 0.0, None, 100),  # as many again
        (300, 0.001, 0.0, None, MOST_A_BATCH),
        (100, 0.001, 0.0, 0.011, 26),  # 21 more would do if the width fell as 1/√n, and a fifth besides
        (100, 0.001, 0.0, 0.0101, 5),
        (100, 0.001, 0.0, 0.03, 100),
        (100, 50, 0.25, None, 5),  # what is left of half a second
        (100, 10, 3.0, None, 1),
        (3, 10, 3.0, None, MIN_SAMPLES - 3),
        (100, 0, 0.25, None, 100),
    ],
)
def test_the_next_batch_by_hand(taken: int, call_ms: float, spent: float, width: float | None, wanted: int) -> None:
    assert Stopping(max_noise=0.01).next_batch(taken, call_ms * 1e6, spent, width) == wanted


def test_the_next_batch_knows_what_else_was_asked_for() -> None:
    assert Stopping(max_noise=0.0).next_batch(100, 1e3, 0.0, 0.01) == 100, "no target, no prediction"
    longer = Stopping(max_noise=0.01, least=2.0)
    assert longer.next_batch(100, 1e3, 1.0, 0.011) == 100, "a target that may not yet stop it"
    assert longer.next_batch(100, 1e7, 1.75, None) == 25
    assert longer.next_batch(100, 1e3, 2.0, 0.011) == 1, "nothing is left of either"
    assert Stopping(samples=230).next_batch(200, 1e3, 9.0, 0.1) == 30
    assert Stopping(samples=900).next_batch(300, 1e3, 9.0, 0.1) == MOST_A_BATCH


def test_the_least_time_is_a_time_to_stop_at() -> None:
    stopping = Stopping(max_noise=0.01, least=2.0)
    assert stopping.rule([5.0] * 20, 0, spent=1.999) is None
    assert stopping.rule([5.0] * 20, 0, spent=2.0) == "precision"


def test_a_row_about_time_is_sampled_that_long_however_quiet() -> None:
    script = Script(steady, cost_s=0.05)
    found, _ = finish(script, Stopping(case_time=0.5, least=20.0))
    assert found.stopped_by == "precision"
    assert 20.0 <= script.now - 64 < 20.0 + 0.05 * MOST_A_BATCH
    noisy = Script(wild, cost_s=0.05)
    finish(noisy, Stopping(case_time=0.5, least=2.0))
    assert noisy.now - 64 >= 2.0


def test_the_own_stopwatch_of_a_suite_is_asked_once_a_sample() -> None:
    readings = iter([9, 8, 7, *range(100, 200)])
    watch = Stopwatch(lambda: next(readings))
    assert watch.warm_up() == 7
    batch = watch.batch(4)
    assert batch.gpu_ns == [100, 101, 102, 103]
    assert batch.launches == [1] * 4
    assert batch.sm_mhz == [None] * 4
    assert watch.timer == Timer("own", 1.0), "it reads whole ns"
