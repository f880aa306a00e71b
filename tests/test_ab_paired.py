from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpubench.ab import paired
from gpubench.ab.paired import ALPHA, DECIDED, LEAST_BLOCKS, LOOKS, Paired, PairedVerdict, settle
from gpubench.result import Direction
from gpubench.stats import t_quantile

MIRROR = {"regression": "improvement", "improvement": "regression"}
TIMES = st.floats(1.0, 1e9)
COUNTS = st.integers(LEAST_BLOCKS, 12)
DIRECTIONS: list[Direction] = ["lower", "higher"]


def row(loss: float, noise: float, name: str = "a", blocks: int = 10, seed: int = 1, **fields: object) -> Paired:
    """A row whose new side truly takes 1 + loss times as long, each block's ratio off by so much noise."""
    source = random.Random(seed)
    base = [1e5 * math.exp(source.gauss(0, 0.05)) for _ in range(blocks)]
    new = [time * (1 + loss) * math.exp(source.gauss(0, noise)) for time in base]
    return Paired(name, base, new, **fields)  # type: ignore[arg-type]


def judge(some: list[Paired], margin: float = 0.03, alpha: float = ALPHA) -> list[PairedVerdict]:
    return paired.judge(some, margin=margin, alpha=alpha)


def only(one: Paired, **options: float) -> PairedVerdict:
    return judge([one], **options)[0]


@st.composite
def rows(draw: st.DrawFn, least: int = 1) -> list[Paired]:
    found = []
    for number in range(draw(st.integers(least, 6))):
        count = draw(COUNTS)
        ratios = st.floats(0.5, 2.0)
        base = draw(st.lists(TIMES, min_size=count, max_size=count))
        new = [time * draw(ratios) for time in base]
        direction: Direction = draw(st.sampled_from(DIRECTIONS))
        found.append(Paired(f"row {number}", base, new, direction, tick=draw(st.sampled_from([0.0, 1.0]))))
    return found


@pytest.mark.parametrize(
    ("loss", "noise", "verdict"),
    [
        (0.0, 0.001, "equivalent"),
        (0.05, 0.005, "regression"),
        (-0.05, 0.005, "improvement"),
        (0.029, 0.005, "inconclusive"),
        (0.0, 0.05, "inconclusive"),
        (0.5, 0.05, "regression"),
    ],
)
def test_each_verdict(loss: float, noise: float, verdict: str) -> None:
    found = only(row(loss, noise))
    assert found.verdict == verdict
    assert found.detectable is not None
    assert found.detectable > 0.03
    assert (found.needed is not None) == (verdict == "inconclusive")


def test_the_interval_is_that_of_the_mean_of_logarithms() -> None:
    one = row(0.02, 0.01)
    logs = [math.log(new / base) for base, new in zip(one.base, one.new, strict=True)]
    mean = sum(logs) / 10
    error = math.sqrt(sum((each - mean) ** 2 for each in logs) / 9 / 10)
    found = only(one)
    assert found.ratio == pytest.approx(math.exp(mean))
    assert found.low == pytest.approx(math.exp(mean - 2.262157 * error))
    assert found.high == pytest.approx(math.exp(mean + 2.262157 * error))
    assert found.half_width == pytest.approx(2.262157 * error)
    assert (found.surely_low, found.surely_high) == (found.low, found.high), "one row needs no correction"
    assert found.level == ALPHA


def test_the_margin_itself_is_within_it_and_no_interval_is_needed_of_equal_blocks() -> None:
    def at(ratio: float) -> str:
        return only(Paired("a", [1000.0] * 10, [1000.0 * ratio] * 10)).verdict

    assert [at(1.0), at(1.03), at(1.031), at(1 / 1.03), at(1 / 1.031)] == [
        "equivalent",
        "equivalent",
        "regression",
        "equivalent",
        "improvement",
    ]


def test_a_rate_that_fell_is_a_regression() -> None:
    fell = row(-0.1, 0.001, direction="higher")
    assert only(fell).verdict == "regression"
    found = only(fell)
    assert found.ratio is not None
    assert found.ratio < 1, "the ratio is that of the figure itself"


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_figure_that_is_none_is_invalid_and_takes_no_part_in_the_correction(bad: float) -> None:
    good = row(0.05, 0.005)
    broken = Paired("b", [bad, *[1.0] * 9], [1.0] * 10)
    first, second = judge([good, broken])
    assert second.verdict == "invalid"
    assert second.ratio is None
    assert first == only(good)
    assert judge([replace(broken, base=broken.new, new=broken.base)])[0].verdict == "invalid"
    assert only(row(0.5, 0.001, direction="none")).verdict == "invalid"


def test_too_few_blocks_decide_nothing() -> None:
    found = only(row(0.5, 0.001, blocks=LEAST_BLOCKS - 1))
    assert (found.verdict, found.needed) == ("inconclusive", LEAST_BLOCKS)
    assert only(row(0.5, 0.001, blocks=LEAST_BLOCKS)).verdict == "regression"
    assert only(Paired("none", [], [])).verdict == "inconclusive"


def test_what_cannot_be_asked() -> None:
    with pytest.raises(ValueError, match="9 blocks of the base, 10"):
        judge([Paired("a", [1.0] * 9, [1.0] * 10)])
    for options in ({"margin": -0.1}, {"margin": math.nan}, {"alpha": 0.0}, {"alpha": 1.0}):
        with pytest.raises(ValueError, match="alpha is between"):
            judge([row(0, 0.01)], **options)


def test_whole_ticks_are_not_known_better_than_a_tick() -> None:
    """Ten equal readings of 30 ticks: what they all round alike, no number of blocks tells."""
    for blocks in (10, 40):
        base, new = [30.0] * blocks, [31.0] * blocks
        assert only(Paired("a", base, new)).half_width == 0
        ticking = only(Paired("a", base, new, tick=1.0))
        expected = t_quantile(blocks - 1, 0.975) * math.hypot(1 / 30, 1 / 31) / math.sqrt(12)
        assert ticking.half_width == pytest.approx(expected)
        assert (ticking.verdict, ticking.needed) == ("inconclusive", None)
    alike = only(Paired("a", [60.0] * 10, [60.0] * 10, tick=1.0))
    assert (alike.verdict, alike.reason) == ("inconclusive", "in too few ticks of the timer to be called equivalent")
    assert only(Paired("a", [90.0] * 10, [90.0] * 10, tick=1.0)).verdict == "equivalent"


def test_noise_of_a_tick_shakes_off_what_a_tick_hides() -> None:
    base = [100.0, 103.0, 98.0, 101.0, 97.0, 104.0, 100.0, 99.0, 102.0, 96.0]
    known, ticking = (only(Paired("a", base, base[::-1], tick=tick)).half_width for tick in (0.0, 1.0))
    assert known == ticking


def test_a_difference_of_a_tick_is_no_regression_however_many_blocks_show_it() -> None:
    """21 ticks of 32 ns, and 22: truly it may be nothing."""
    for blocks in (10, 100):
        assert only(Paired("a", [672.0] * blocks, [704.0] * blocks, tick=32.0)).verdict == "inconclusive"
    assert only(Paired("a", [672.0] * 10, [768.0] * 10, tick=32.0)).verdict == "regression"


@pytest.mark.parametrize("blocks", [10, 40])
@pytest.mark.parametrize("noise", [0.01, 0.1, 0.2, 0.5, 1.0, 2.0])
def test_the_interval_holds_the_truth_of_times_that_are_whole_ticks(noise: float, blocks: int) -> None:
    """Noise from block to block, in ticks; about 100 of them, so that the true times fall anywhere between two."""
    source = random.Random(12)
    held, rounds = 0, 500
    for _ in range(rounds):
        true = source.uniform(100, 110), source.uniform(100, 110)
        base, new = ([float(round(time + source.gauss(0, noise))) for _ in range(blocks)] for time in true)
        found = only(Paired("a", base, new, tick=1.0))
        assert found.low is not None
        assert found.high is not None
        held += found.low <= true[1] / true[0] <= found.high
    assert held / rounds >= 0.92


def test_holm_steps_down() -> None:
    """Three losses pass at alpha/4, alpha/3, alpha/2; the quiet row is tested at what is left, alpha."""
    losing = [row(0.05, 0.004, name, seed=seed) for seed, name in enumerate("abc")]
    found = {each.id: each for each in judge([*losing, row(0.0, 0.004, "d")])}
    assert [found[name].verdict for name in "abcd"] == ["regression"] * 3 + ["equivalent"]
    assert sorted(each.level or 0 for each in found.values()) == pytest.approx([ALPHA / 4, ALPHA / 3, ALPHA / 2, ALPHA])
    for each in found.values():
        assert each.low is not None
        assert each.surely_low is not None
        assert each.surely_low <= each.low


def test_one_row_of_many_needs_more_evidence() -> None:
    """Found alone, not found among fifty: the chance of any false alarm is that of one."""
    slow = shaped(math.log(1.045), 0.004, 10)
    assert only(slow).verdict == "regression"
    many = judge([slow, *(row(0.0, 0.004, f"null {seed}", seed=seed) for seed in range(49))])
    assert [each.verdict for each in many].count("regression") == 0
    assert many[0].level == pytest.approx(ALPHA / 50)


def test_a_noisy_row_is_never_called_equivalent() -> None:
    """Its mean may lie where it will: known to ±1.6 % it is not good for a margin of 3 %."""
    base = [100.0] * 10
    spread = [0.016 / 2.262 * math.sqrt(10) * sign for sign in (1, -1)] * 5  # a half-width of about 1.6 %
    found = only(Paired("a", base, [100 * math.exp(each) for each in spread]))
    assert found.half_width is not None
    assert math.log(1.03) / 2 < found.half_width < 0.02
    assert (found.verdict, found.reason) == ("inconclusive", "too noisy to be called equivalent")


def test_needed_blocks_decide() -> None:
    """A row with the same mean and spread, and so many blocks, is decided; with one fewer it is not."""
    for loss in (0.0, 0.02, 0.04):
        found = only(shaped(math.log1p(loss), 0.01, 10))
        assert found.verdict == "inconclusive"
        assert found.needed is not None
        assert found.ratio is not None
        for blocks, decided in ((found.needed, True), (found.needed - 1, False)):
            if blocks > 10:
                again = only(shaped(math.log(found.ratio), (found.half_width or 0) / t_quantile(9, 0.975), blocks))
                assert (again.verdict in DECIDED) is decided, (loss, blocks)


def shaped(mean: float, error_of_ten: float, blocks: int) -> Paired:
    """Blocks with exactly this mean and the standard deviation that ten of that error have."""
    values = [float(number) for number in range(blocks)]
    middle = sum(values) / blocks
    deviation = math.sqrt(sum((each - middle) ** 2 for each in values) / (blocks - 1))
    wanted = error_of_ten * math.sqrt(10)
    return Paired("a", [1.0] * blocks, [math.exp(mean + (each - middle) / deviation * wanted) for each in values])


def test_what_no_number_of_blocks_decides() -> None:
    assert only(shaped(math.log(1.03), 0.01, 10)).needed is None, "a loss of the margin itself"


def test_a_detectable_loss_is_found_nine_times_of_ten() -> None:
    found = only(row(0.0, 0.02))
    assert found.detectable is not None
    error = (found.half_width or 0) / t_quantile(9, 0.975)
    loss, seen, rounds = found.detectable, 0, 600
    source = random.Random(3)
    for _ in range(rounds):
        new = [(1 + loss) * math.exp(source.gauss(0, error * math.sqrt(10))) for _ in range(10)]
        seen += only(Paired("a", [1.0] * 10, new)).verdict == "regression"
    assert seen / rounds == pytest.approx(0.9, abs=0.04)


def test_a_row_may_have_a_margin_of_its_own() -> None:
    rows = [row(0.05, 0.002, "wide", margin=0.1), row(0.05, 0.002, "tight")]
    assert [each.verdict for each in judge(rows)] == ["equivalent", "regression"]
    assert [each.margin for each in judge(rows, margin=0.0)] == [0.1, 0.0]
    assert only(row(0.0, 0.001), margin=0.0).verdict == "inconclusive", "without a margin nothing is equivalent"


def test_what_the_first_look_decided_stands() -> None:
    assert LOOKS == (0.01, 0.04), "little is spent on the half of the data"
    assert sum(LOOKS) == pytest.approx(ALPHA)
    first = judge([row(0.05, 0.004, "a"), row(0.03, 0.01, "b")], alpha=LOOKS[0])
    second = judge([row(0.0, 0.004, "a"), row(0.05, 0.004, "b"), row(0.0, 0.004, "c")], alpha=LOOKS[1])
    settled = settle(first, second)
    assert [each.verdict for each in settled] == ["regression", "regression", "equivalent"]
    assert (settled[0], settled[1]) == (first[0], second[1])
    broken = [replace(second[0], verdict="invalid")]
    assert settle(first, broken) == broken, "a side that no longer gives a figure is not covered up"


@given(rows(), st.sampled_from([0.0, 0.01, 0.03]))
def test_swapping_the_sides_mirrors(some: list[Paired], margin: float) -> None:
    there = judge(some, margin=margin)
    back = judge([replace(each, base=each.new, new=each.base) for each in some], margin=margin)
    for one, other in zip(there, back, strict=True):
        assert other.verdict == MIRROR.get(one.verdict, one.verdict)
        assert other.needed == one.needed
        assert other.low == pytest.approx(1 / (one.high or 0))
        assert other.detectable == pytest.approx(one.detectable or 0)


@given(rows(), st.sampled_from([2.0**-20, 0.5, 1024.0, 2.0**30]))
def test_units_do_not_matter(some: list[Paired], factor: float) -> None:
    """By powers of two, which round nothing."""
    scaled = [
        replace(each, base=[factor * v for v in each.base], new=[factor * v for v in each.new], tick=factor * each.tick)
        for each in some
    ]
    for one, other in zip(judge(some), judge(scaled), strict=True):
        assert one.verdict == other.verdict
        assert one.ratio == pytest.approx(other.ratio or 0)


@given(rows(), st.integers(1, 4), st.floats(0.0, 0.02), st.integers(0, 100))
def test_adding_a_null_case_never_creates_a_change(some: list[Paired], extra: int, noise: float, seed: int) -> None:
    null = [row(0.0, noise, f"null {number}", seed=seed + number) for number in range(extra)]
    before, after = judge(some), judge([*some, *null])
    changed = {"regression", "improvement"}
    for one, other in zip(before, after, strict=False):
        assert other.verdict == one.verdict or one.verdict in changed
        if other.verdict in changed:
            assert one.verdict == other.verdict


@given(
    st.lists(st.floats(min_value=5e-324, allow_infinity=False), min_size=8, max_size=10),
    st.lists(st.floats(min_value=5e-324, allow_infinity=False), min_size=10, max_size=10),
    st.floats(0.0, 10.0),
    st.sampled_from([0.0, 1.0, 5e-324]),
)
@example([2.0] * 8, [2.0] * 10, 0.0, 5e-324)  # a tick that is nothing beside the time
def test_every_finite_interval_has_exactly_one_verdict(
    base: list[float], new: list[float], margin: float, tick: float
) -> None:
    found = only(Paired("a", base, new[: len(base)], tick=tick), margin=margin)
    assert found.verdict in {"regression", "improvement", "equivalent", "inconclusive"}
    for value in (found.ratio, found.low, found.high, found.surely_low, found.surely_high, found.detectable):
        assert value is not None
        assert math.isfinite(value)
    assert found.low is not None
    assert found.high is not None
    limit = math.log1p(margin)
    low, high = math.log(found.low), math.log(found.high)
    if found.verdict == "regression":
        assert low >= limit or math.isclose(low, limit)
    if found.verdict == "equivalent":
        assert high - low <= limit * 1.000001 + 1e-8
        assert -limit - 1e-8 <= (low + high) / 2 <= limit + 1e-8
