"""Data patterns: does a matrix product take as long whatever its numbers are?

The instructions are the same, the transistors that switch are not. Where power is the limit a GPU lowers its clock
until the limit holds, so numbers that switch few of them run faster: zeros by 5 to 25 % in sustained load (an A100 gave
295 TFLOP/s for zeros, 257 for normal numbers: H. He, "Strangely, Matrix Multiplications on GPUs Run Faster When Given
'Predictable' Data", 2024). Bursts are no control where a call lasts a millisecond: an H200 took 12 % less time for
zeros at n = 8192, with the same clock before and after the call, so what slows it begins and ends within the call. On a
CPU the patterns are a control, but for denormal numbers, which some CPUs handle in microcode. No figure is predicted:
it depends on the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import Any

from gpubench import Axis, Skip, Suite, Workload
from gpubench.model import matmul as work

suite = Suite(__file__)

KEPT_BITS = 2
"""Bits of the 23 of a float32's fraction that `few-bits` leaves."""
DENORMAL = "denormal"
"""Normal numbers times a quarter of the least normal number of the dtype. The left matrix alone: the product of two
such numbers is zero."""


def ones(x: Any, mask: Callable[[], Any]) -> Any:
    """1 everywhere."""
    return x.fill_(1.0)


def uniform(x: Any, mask: Callable[[], Any]) -> Any:
    """Uniform on (-1, 1): twice the distribution function of the normal number, less 1."""
    return x.mul_(0.5**0.5).erf_()


def few_bits(x: Any, mask: Callable[[], Any]) -> Any:
    """The number without all but the highest KEPT_BITS bits of its fraction."""
    import torch

    x.view(torch.int32).bitwise_and_(-(1 << 23 - KEPT_BITS))
    return x


def sparse(share: float) -> Callable[[Any, Callable[[], Any]], Any]:
    """Zeros for that share of the numbers: where another normal number is below the quantile of the share."""
    quantile = NormalDist().inv_cdf(share)
    return lambda x, mask: x.masked_fill_(mask() < quantile, 0.0)


PATTERNS: dict[str, Callable[[Any, Callable[[], Any]], Any]] = {
    "zeros": lambda x, mask: x.zero_(),
    "ones": ones,
    "integers": lambda x, mask: x.mul_(4).trunc_().add_(0.0),  # which makes 0 of -0
    "few-bits": few_bits,
    "mostly-zeros": sparse(0.9),
    "half-zeros": sparse(0.5),
    "uniform": uniform,
    "normal": lambda x, mask: x,
}
"""What each pattern makes of float32 numbers that are normal(0, 1), in place; `mask` draws as many others."""
MASK = 2
"""Added to the seed of a matrix for that of its mask."""


def drawn(device: Any, shape: tuple[int, int], pattern: str, seed: int) -> Any:
    """A matrix of a pattern, in float32. `--data` says what is drawn, the pattern what is made of it."""
    x = device.random(shape, "float32", seed=seed)
    return PATTERNS[pattern](x, lambda: device.random(shape, "float32", seed=seed + MASK))


@suite.benchmark(
    pattern=Axis([*PATTERNS, DENORMAL], quick=["zeros", "uniform", "normal"]),
    n=Axis([8192], cpu=[1024]),
    dtype=Axis(["bfloat16"], cpu=["float32"], choices=["float64", "float32", "tf32", "float16", "bfloat16"]),
    cache=Axis(["hot"]),
    load=Axis(["burst", "sustained"], cpu=["burst"]),
)
def matmul(device: Any, pattern: str, n: int, dtype: str) -> Workload:
    """The library's product of two square matrices, of numbers that differ in nothing but their bits."""
    import torch

    if (pattern, dtype) == (DENORMAL, "float64"):
        raise Skip("a product of denormal float64 has no wider format to be checked in")
    c = device.unwritten((n, n), dtype)
    made = "normal" if pattern == DENORMAL else pattern
    a, b = (drawn(device, (n, n), made, seed).to(c.dtype) for seed in range(2))
    if pattern == DENORMAL:
        a.mul_(torch.finfo(c.dtype).smallest_normal / 4)
    return Workload(run=lambda: torch.mm(a, b, out=c), **work.product(a, b, c, dtype))
