"""What number formats lose: where a sum of ones stops, where exp overflows, how far off a matrix product is.

Errors are relative to the norm of the result, for terms that are independent with mean 0, as normal(0, 1) data give.
A number with p significant digits, mantissas being spread like 1/m over [1, 2), has E[m²] = 1.5 / ln 2 and E[1/m] =
1 / (2 ln 2); a step between neighbours at |x| = m 2^e is eps 2^e, with eps = 2^(1-p).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import erf, exp, frexp, hypot, log, pi, sqrt
from typing import Any

LN2 = log(2)


@dataclass(frozen=True)
class Format:
    """A binary format: significant digits with the leading one, its largest finite number, and its least above 0."""

    digits: int
    largest: float
    least: float

    @property
    def eps(self) -> float:
        """The step from 1 to the next number."""
        return 2.0 ** (1 - self.digits)


FORMATS: Mapping[str, Format] = {
    "float16": Format(11, 65504.0, 2.0**-24),
    "bfloat16": Format(8, (2 - 2.0**-7) * 2.0**127, 2.0**-133),
    "float32": Format(24, (2 - 2.0**-23) * 2.0**127, 2.0**-149),
    "float8_e4m3": Format(4, 448.0, 2.0**-9),
    "float8_e5m2": Format(3, 57344.0, 2.0**-16),
}
"""IEEE 754-2019 for float16 and float32; Intel, "BFLOAT16: Hardware Numerics Definition", 2018; Micikevicius and
others, "FP8 Formats for Deep Learning", arXiv:2209.05433, table 1: E4M3 has no infinity."""


def stall(name: str) -> int:
    """Where a sum of ones, added one by one, stops: at 2^p the next one is half a step, which is rounded to even."""
    return int(2 ** FORMATS[name].digits)


def exp_ends(name: str) -> dict[str, float]:
    """The x above which exp(x), rounded to nearest, is no longer a finite number (`overflow`), and below which it is 0
    (`underflow`): the logarithms of half a step beyond the largest number, and of half the least."""
    kind = FORMATS[name]
    half_step = 2.0 ** (frexp(kind.largest)[1] - kind.digits - 1)
    return {"overflow": log(kind.largest + half_step), "underflow": log(kind.least / 2)}


def rounding(digits: int) -> float:
    """The error of rounding every element to nearest once: a step's twelfth over E[m²], under the root."""
    return 2.0 ** (1 - digits) * sqrt(LN2 / 18)


def rounded_sums(k: int, digits: int, terms: int = 1) -> float:
    """The error of k terms added up, `terms` at a time exactly, each sum rounded to nearest: a random walk.

    The j-th of n = k / terms sums is √(j/n) of the result, so the squares of n roundings add up to n/2 of them: √K
    (Higham and Mary, "A New Approach to Probabilistic Rounding Error Analysis", 2019).
    """
    return rounding(digits) * sqrt(max(k // terms, 1) / 2)


def cut_sums(k: int, digits: int, terms: int, extra: int, product: int | None = None) -> float:
    """The same in a tensor core, which does not round: of the `terms` products of a step, and of the sum so far, it
    keeps the bits down to `extra` below the last digit of the largest, adds these, and cuts the extra bits off.

    What is cut from products has either sign, up to 2^-extra steps: a random walk of k; less where these have no more
    than `product` digits (None: as many as can be cut). What is cut from sums makes them smaller, by (1 - 2^-extra) / 2
    steps each time on average: it adds up with k / terms.
    """
    eps = 2.0 ** (1 - digits)
    products = 2.0**-extra * eps * sqrt(k * LN2 / 9)
    if product is not None:
        products *= sqrt(cut_share(sqrt(k / 2), product, digits + extra))
    sums = (1 - 2.0**-extra) / 2 * eps / (2 * LN2) * (k / terms) / sqrt(3)
    return hypot(products, sums)


def cut_share(largest: float, digits: int, kept: int) -> float:
    """The mean square of what is cut from products of two normal numbers that have so many `digits`, beside a number
    that is `largest` and keeps `kept`; over that of products of endless digits, a third of a step's square.

    A product is whole unless it is 2^(kept - digits) times smaller; one with b digits too many loses one of the 2^b
    multiples of 2^-b steps below a step, the mean of whose squares is (1 - 2^-b) (1 - 2^-b / 2) / 3.
    """
    whole = largest / sqrt(2) * 2.0 ** (digits - kept)  # 2^½: a number over the power of two before it, about
    below = [_smaller(whole * 2.0**-b) for b in range(digits + 1)]
    lost = ((1 - 2.0**-b) * (1 - 2.0**-b / 2) * (below[b - 1] - below[b]) for b in range(1, digits + 1))
    return sum(lost)


def _smaller(size: float) -> float:
    """The share of products of two normal numbers that are smaller: of the density of one, times the share of the other
    that is below size over it; summed up to six standard deviations."""
    step = 0.02
    places = (step * (place + 0.5) for place in range(300))
    return sum(step * sqrt(2 / pi) * exp(-x * x / 2) * erf(size / (x * sqrt(2))) for x in places)


@dataclass(frozen=True)
class TensorCore:
    """How one adds products of sixteen-bit numbers in float32: `terms` a step, `extra` bits (see `cut_sums`)."""

    terms: int
    extra: int


TENSOR_CORES: Mapping[str, TensorCore] = {
    "7.0": TensorCore(4, 0),
    "8.0": TensorCore(8, 1),
    "9.0": TensorCore(16, 2),
}
"""By compute capability: Fasi and others, "Numerical behavior of NVIDIA tensor cores", PeerJ CS 7:e330, 2021; Khattak
and Mikaitis, "Accurate Models of NVIDIA Tensor Cores", arXiv:2512.07004, 2025."""
FLOAT8_DIGITS, FLOAT8_TERMS, PROMOTED = 14, 32, 128
"""Of sums of float8 products on Hopper: digits kept, terms a step, and terms after which a sum is added to one in
float32 where accumulation is not fast: DeepSeek-V3, arXiv:2412.19437, section 3.3.2 (its own interval; the library's is
not documented)."""
FLOAT8_PRODUCT = 2 * FORMATS["float8_e4m3"].digits
"""Digits of a product of two numbers of float8: most are whole beside a sum that keeps 14."""


@dataclass(frozen=True)
class Product:
    """How a library computes a product: digits its operands are rounded to (None: not), how it adds, digits it writes.

    It adds `rounded` to nearest in float32; by a tensor core in float32 (`tensor`, `tensor-tf32`) or `float16`; or
    products of float8 as `float8` or `float8-fast` accumulation does.
    """

    operands: int | None
    sums: str
    output: int


PRODUCTS: Mapping[str, Product] = {
    "float32": Product(None, "rounded", 24),
    "tf32": Product(11, "tensor-tf32", 24),
    "bfloat16": Product(None, "tensor", 8),
    "float16": Product(None, "tensor", 11),
    "float16-fp32-out": Product(None, "tensor", 24),
    "float16-fp16-accum": Product(None, "float16", 11),
    "float8_e4m3": Product(None, "float8", 24),
    "float8_e4m3-fast-accum": Product(None, "float8-fast", 24),
}


def matmul_error(name: str, k: int, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The error of a product of matrices of normal(0, 1) numbers with k terms an element, and its parts: rounding the
    `operands` and the `output` once, which does not grow with k, and the `sums`, which do. Empty where the device's way
    of adding is not known.

    It is an estimate: how far numbers are from a power of two moves rounding by a tenth, and the sums of a library for
    CPUs, which it makes in several lanes, lose less.
    """
    product = PRODUCTS[name]
    sums = _sums(product.sums, k, facts)
    if sums is None:
        return {}
    operands = 0.0 if product.operands is None else sqrt(2) * rounding(product.operands)
    output = 0.0 if product.output == FORMATS["float32"].digits else rounding(product.output)
    return {
        "error": sqrt(operands**2 + sums**2 + output**2),
        "operands": operands,
        "sums": sums,
        "output": output,
    }


def _sums(how: str, k: int, facts: Mapping[str, Any]) -> float | None:
    """The error of adding up in one of the ways of Product, on a device."""
    full = FORMATS["float32"].digits
    if how == "rounded" or facts.get("kind") == "cpu":
        return rounded_sums(k, full)
    capability = str(facts.get("compute_capability"))
    core = TENSOR_CORES.get(capability)
    if core is None:
        return None
    if how.startswith("tensor"):
        terms = core.terms // 2 if how == "tensor-tf32" else core.terms  # numbers twice as wide
        return cut_sums(k, full, terms, core.extra)
    if how == "float16":
        return rounded_sums(k, FORMATS["float16"].digits, core.terms)
    if capability != "9.0":
        return None
    return cut_sums(k if how == "float8-fast" else min(k, PROMOTED), FLOAT8_DIGITS, FLOAT8_TERMS, 0, FLOAT8_PRODUCT)


# What results lost, as it is read off tensors of torch's.


def ulps(out: Any, right: Any, name: str, least: float = 0.0) -> float:
    """The largest error of a tensor of torch's, in units in the last place of the right result (a tensor in float64) in
    that format; of `least` where the result is smaller."""
    kind = FORMATS[name]
    sizes = right.abs().clamp_min(least)
    units = (sizes.frexp().exponent - kind.digits).double().exp2().clamp_min(kind.least)
    return float(((out.double() - right).abs() / units).max())


def pairwise(x: Any) -> Any:
    """The sum of a vector in its own format, as a vector of one: its halves are added until one number is left."""
    while (n := x.numel()) > 1:
        sums = x[: n - n // 2].clone()
        sums[: n // 2] += x[n - n // 2 :]
        x = sums
    return x


def reached(x: Any, values: Any) -> dict[str, float]:
    """Of a growing function's `values` at ascending x, both in float64: x of the last finite result (`finite_to`) and
    of the first that is not (`overflows_at`), of the last result of 0 (`vanishes_at`) and of the first above
    (`nonzero_from`), each where there is one; how many results between are neither (`holes`); the `largest` result."""
    good = values.isfinite() & (values > 0)
    inside = good.nonzero().flatten().tolist()
    if not inside:
        return {}
    first, last = inside[0], inside[-1]
    places = {"vanishes_at": first - 1, "nonzero_from": first, "finite_to": last, "overflows_at": last + 1}
    found = {name: float(x[place]) for name, place in places.items() if 0 <= place < len(x)}
    return found | {"holes": last - first + 1 - len(inside), "largest": float(values[good].max())}
