"""What stopping at a wanted precision does to the interval it stops at: many runs, seeded, of noise as it is met."""

from __future__ import annotations

import random
import statistics

import pytest

from gpubench.devices import Batch
from gpubench.result import Timer
from gpubench.sampling import Sampled, Stopping, sample
from gpubench.stats import median_interval, per_call

RUNS = 1500
TRUE_NS = 1_000_000


class Noisy:
    """A sampler whose readings are `draw()` times the true time."""

    def __init__(self, draw) -> None:
        self.draw = draw
        self.timer = Timer("noisy", 1.0)

    def warm_up(self) -> float:
        return float(TRUE_NS)

    def batch(self, n: int) -> Batch:
        return Batch([round(TRUE_NS * self.draw()) for _ in range(n)], [1] * n, [None] * n)


def ends(seed: int, noise: str, spread: float) -> Sampled:
    source = random.Random(seed)
    if noise == "normal":
        sampler = Noisy(lambda: source.gauss(1, spread))
    else:  # a floor, and a tail of interruptions: the median of what is drawn is the true time
        sampler = Noisy(lambda: 1 + spread * (source.expovariate(1) - 0.6931471805599453))
    *_, last = sample(sampler, Stopping(max_noise=0.005, case_time=1e9), clock=lambda: 0.0)
    assert isinstance(last, Sampled)
    return last


@pytest.mark.parametrize(("noise", "spread"), [("normal", 0.003), ("normal", 0.01), ("normal", 0.03), ("tail", 0.02)])
def test_the_interval_still_holds_the_median(noise: str, spread: float) -> None:
    """Looking again after each batch costs a few per cent of the 95 % asked for, and no more."""
    held, widths = 0, []
    for seed in range(RUNS):
        values = sorted(per_call(ends(seed, noise, spread).samples))
        interval = median_interval(values)
        assert interval is not None
        held += interval[0] <= TRUE_NS <= interval[1]
        widths.append((interval[1] - interval[0]) / 2 / TRUE_NS)
    coverage = held / RUNS
    print(f"{noise} {spread}: coverage {coverage:.3f}, half-width {statistics.median(widths):.4f}")
    assert 0.90 <= coverage <= 0.995
