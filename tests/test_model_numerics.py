"""What formats lose, held against numbers added, rounded and cut one by one."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from gpubench.model import numerics

COLUMNS = 2000
"""Sums made side by side: their error is known to some per cent."""
Round = Callable[[np.ndarray], np.ndarray]


def to_digits(values: np.ndarray, digits: int, how: Round) -> np.ndarray:
    """Numbers rounded to so many digits, to whole ones of the last place by `how`."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(how(np.ldexp(mantissa, digits)), exponent - digits)


def products(k: int, terms: int, digits: int = 53) -> np.ndarray:
    """Products of normal numbers of so many digits, by step, column and term."""
    draw = np.random.default_rng(k)
    a, b = (to_digits(draw.standard_normal((k // terms, COLUMNS, terms)), digits, np.rint) for _ in range(2))
    return a * b


def error(found: np.ndarray, right: np.ndarray) -> float:
    return float(np.linalg.norm(found - right) / np.linalg.norm(right))


@pytest.mark.parametrize(
    ("name", "stop", "overflow", "underflow"),
    [
        ("float16", 2048, 11.09, -17.33),
        ("bfloat16", 256, 88.72, -92.88),
        ("float32", 2**24, 88.72, -103.97),
        ("float8_e4m3", 16, 6.14, -6.93),
        ("float8_e5m2", 8, 11.03, -11.78),
    ],
)
def test_the_lectures_constants(name: str, stop: int, overflow: float, underflow: float) -> None:
    assert numerics.stall(name) == stop
    found = numerics.exp_ends(name)
    assert (round(found["overflow"], 2), round(found["underflow"], 2)) == (overflow, underflow)


@pytest.mark.parametrize(("name", "kind"), [("float16", np.float16), ("float32", np.float32)])
def test_formats_are_numpys(name: str, kind: type[np.floating]) -> None:
    known, here = np.finfo(kind), numerics.FORMATS[name]
    assert (here.largest, here.least, here.eps) == (known.max, known.smallest_subnormal, known.eps)
    ends = numerics.exp_ends(name)
    with np.errstate(over="ignore"):
        for end, inside in (("overflow", -1e-4), ("underflow", 1e-4)):
            assert kind(0) < np.float64(math.exp(ends[end] + inside)).astype(kind) < kind(np.inf)
            assert np.float64(math.exp(ends[end] - inside)).astype(kind) in (kind(0), kind(np.inf))


@pytest.mark.parametrize("name", ["float8_e4m3", "float8_e5m2", "bfloat16"])
def test_formats_are_torchs(name: str) -> None:
    import torch

    known, here = torch.finfo(getattr(torch, {"float8_e4m3": "float8_e4m3fn"}.get(name, name))), numerics.FORMATS[name]
    assert (here.largest, here.eps) == (known.max, known.eps)
    assert here.least == known.smallest_normal * known.eps


def test_the_error_of_rounding_once() -> None:
    values = np.random.default_rng(0).standard_normal(100_000)
    assert numerics.rounding(11) == pytest.approx(error(values.astype(np.float16).astype(float), values), rel=0.1)


@pytest.mark.parametrize(("k", "terms"), [(256, 1), (4096, 16)])
def test_sums_that_are_rounded(k: int, terms: int) -> None:
    total, right = np.zeros(COLUMNS), np.zeros(COLUMNS)
    for step in products(k, terms):
        right += step.sum(1)
        total = to_digits(total + step.sum(1), 11, np.rint)
    assert numerics.rounded_sums(k, 11, terms) == pytest.approx(error(total, right), rel=0.15)


def cut(steps: np.ndarray, digits: int, extra: int) -> float:
    """The error of adding up as a tensor core does."""
    total, right = np.zeros(COLUMNS), np.zeros(COLUMNS)
    for step in steps:
        right += step.sum(1)
        terms_and_sum = np.concatenate([step, total[:, None]], axis=1)
        last = np.ldexp(1.0, np.frexp(np.abs(terms_and_sum).max(1))[1] - digits - extra)[:, None]
        total = to_digits((np.trunc(terms_and_sum / last) * last).sum(1), digits, np.trunc)
    return error(total, right)


@pytest.mark.parametrize(("k", "terms", "extra"), [(1024, 32, 0), (4096, 32, 0), (1024, 8, 1), (4096, 16, 2)])
def test_sums_that_are_cut(k: int, terms: int, extra: int) -> None:
    assert numerics.cut_sums(k, 14, terms, extra) == pytest.approx(cut(products(k, terms), 14, extra), rel=0.25)


@pytest.mark.parametrize("k", [64, 1024])
def test_short_products_are_mostly_whole(k: int) -> None:
    found = numerics.cut_sums(k, 14, 32, 0, product=8)
    assert found == pytest.approx(cut(products(k, 32, digits=4), 14, 0), rel=0.15)
    assert numerics.cut_sums(k, 14, 32, 0, product=53) == pytest.approx(numerics.cut_sums(k, 14, 32, 0), rel=0.01)


H200 = {"kind": "cuda", "compute_capability": "9.0"}


def of(name: str, k: int, **facts: str) -> float:
    return float(numerics.matmul_error(name, k, H200 | facts)["error"])


def test_an_output_of_16_bits_hides_what_a_sum_in_float32_lost() -> None:
    assert of("float16", 65536) == pytest.approx(of("float16", 64), rel=0.1)
    assert of("float16-fp32-out", 65536) > 100 * of("float16-fp32-out", 64)
    assert of("float16-fp16-accum", 16384) > 4 * of("float16", 16384)
    assert of("tf32", 4096) == pytest.approx(3e-4, rel=0.15)  # 0.03 % was measured on an H200


@pytest.mark.parametrize(
    ("how", "k", "measured"),
    [
        ("float8_e4m3", 64, 7.2e-5), ("float8_e4m3", 4096, 1.23e-4), ("float8_e4m3-fast-accum", 256, 2.05e-4),
        ("float8_e4m3-fast-accum", 4096, 1.3e-3), ("float8_e4m3-fast-accum", 65536, 7.0e-3),
        ("float16-fp32-out", 4096, 4.86e-6), ("float16-fp16-accum", 16384, 4.7e-3),
    ],
)  # fmt: skip
def test_what_an_h200_lost(how: str, k: int, measured: float) -> None:
    assert of(how, k) == pytest.approx(measured, rel=0.2)


def test_the_root_of_k_and_k() -> None:
    assert of("float16-fp16-accum", 65536) / of("float16-fp16-accum", 16384) == pytest.approx(2, rel=0.01)
    assert of("float32", 65536) / of("float32", 16384) == pytest.approx(2)
    assert of("float16-fp32-out", 65536) / of("float16-fp32-out", 16384) == pytest.approx(4, rel=0.01), "what is cut"
    assert of("float8_e4m3", 65536) == of("float8_e4m3", 128), "added to float32 every 128 terms"
    assert of("float8_e4m3-fast-accum", 65536) > 20 * of("float8_e4m3", 65536)


def test_what_is_not_known_is_not_predicted() -> None:
    assert numerics.matmul_error("float16", 64, H200 | {"compute_capability": "12.0"}) == {}
    assert numerics.matmul_error("float8_e4m3", 64, H200 | {"compute_capability": "8.0"}) == {}
    assert numerics.matmul_error("float16", 64, {"kind": "cpu"})["sums"] == numerics.rounded_sums(64, 24)


def test_units_in_the_last_place() -> None:
    import torch

    right = torch.tensor([1.0, 1000.0, 2.0**-24, -3.0], dtype=torch.float64)
    steps = torch.tensor([2.0**-10, 0.5, 2.0**-24, 2.0**-9], dtype=torch.float64)
    for place in range(4):
        out = right.clone()
        out[place] += 3 * steps[place]
        assert numerics.ulps(out.half(), right, "float16") == 3, place
    out = right + torch.tensor([0, 0, 2.0**-14, 0], dtype=torch.float64)
    assert numerics.ulps(out, right, "float16") == 1024
    assert numerics.ulps(out, right, "float16", 1.0) == 2**-4


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10_000])
def test_a_sum_in_pairs(n: int) -> None:
    import torch

    assert numerics.pairwise(torch.ones(n, dtype=torch.float16)).tolist() == [n]
    assert numerics.pairwise(torch.arange(n, dtype=torch.float64)).tolist() == [n * (n - 1) / 2]


def test_where_a_function_leaves_the_range() -> None:
    import torch

    x = torch.arange(8, dtype=torch.float64)
    values = torch.tensor([0, 0, 1, 0, 5, 7, math.inf, math.nan], dtype=torch.float64)
    assert numerics.reached(x, values) == {
        "vanishes_at": 1, "nonzero_from": 2, "finite_to": 5, "overflows_at": 6, "holes": 1, "largest": 7,
    }  # fmt: skip
    whole = numerics.reached(x, x + 1)
    assert whole == {"nonzero_from": 0, "finite_to": 7, "holes": 0, "largest": 8}, "it has no end"
    assert numerics.reached(x, values.new_full((8,), math.nan)) == {}
