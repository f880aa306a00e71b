"""The tolerance exactly; wrong results of every kind named; right results of real matmuls let through."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gpubench import check
from gpubench.devices import Comparison
from gpubench.errors import WrongResult
from gpubench.result import Check
from gpubench.workload import Workload

EPS32, EPS16, EPSB, EPS_TF32, EPS64 = 2.0**-23, 2.0**-10, 2.0**-7, 2.0**-10, 2.0**-52


def workload(**fields: Any) -> Workload:
    base: dict[str, Any] = {
        "run": lambda: None,
        "output": None,
        "reference": lambda: None,
        "reference_name": "float64 matmul",
    }
    return Workload(**(base | fields))


def comparison(**fields: Any) -> Comparison:
    """Of 100 elements with rms(ref) = 1, all right."""
    base = Comparison(100, 0.0, 10.0, 0.0, (0, 0), 1.0, 1.0, EPS32)
    return replace(base, **fields)


@pytest.mark.parametrize(
    ("eps_out", "reduction", "accumulate", "precision", "expected"),
    [
        (EPSB, 4096, "float32", "ieee", 2 * EPSB + 2 * 64 * EPS32),
        (EPS16, 1024, "float32", "ieee", 2 * EPS16 + 2 * 32 * EPS32),
        (EPS32, 1, "float32", "ieee", 4 * EPS32),
        (EPS32, 4096, "float32", "tf32", 2 * EPS_TF32 + 2 * 64 * EPS32),
        (EPSB, 4096, "float32", "tf32", 2 * EPSB + 2 * 64 * EPS32),
        (EPS64, 10_000, "float64", "ieee", 2 * EPS64 + 2 * 100 * EPS64),
        (EPS32, 7, "float16", "ieee", 2 * EPS32 + 2 * math.sqrt(7) * EPS16),
        (EPS32, 4096, "exact", "ieee", 0.0),
        (0.0, 4, "float32", "ieee", 4 * EPS32),
    ],
)
def test_the_formula(eps_out: float, reduction: int, accumulate: str, precision: str, expected: float) -> None:
    assert check.tolerance(eps_out, reduction, accumulate, precision) == expected


def test_the_table_is_the_formats_own() -> None:
    import torch

    for name, kind in {"float64": torch.float64, "float32": torch.float32, "float16": torch.float16}.items():
        assert check.EPS[name] == torch.finfo(kind).eps
    assert check.EPS["bfloat16"] == torch.finfo(torch.bfloat16).eps
    assert check.EPS["tf32"] == EPS_TF32  # ten bits of mantissa, as float16


def test_the_norm_is_judged_at_the_tolerance_and_not_beyond() -> None:
    allowed = check.tolerance(EPS32, 1, "float32")
    passed = check.judge(comparison(error_norm=10 * allowed), workload())
    assert passed == Check(allowed, allowed, 0.0, 10 * allowed, 100, "float64 matmul")
    with pytest.raises(WrongResult):
        check.judge(comparison(error_norm=10 * allowed * (1 + 1e-12)), workload())


def test_the_worst_element_is_judged_at_ten_times_the_tolerance_of_the_rms() -> None:
    allowed = check.tolerance(EPS32, 1, "float32")
    assert check.judge(comparison(worst=10 * allowed), workload()).max_error == 10 * allowed
    with pytest.raises(WrongResult):
        check.judge(comparison(worst=10 * allowed * (1 + 1e-12)), workload())


def test_the_message_says_where_what_and_how_far_is_allowed() -> None:
    seen = comparison(error_norm=10.0, worst=7.0, where=(3, 5), got=8.5, expected=1.5)
    with pytest.raises(WrongResult) as caught:
        check.judge(seen, workload(reduction=4))
    assert caught.value.message == (
        "wrong result: at [3, 5] got 8.5, expected 1.5; relative error 1, allowed 7.15e-07 (reference: float64 matmul)"
    )
    assert caught.value.status == "incorrect"


@pytest.mark.parametrize("error", [math.inf, math.nan])
def test_no_error_that_is_not_a_number_passes(error: float) -> None:
    with pytest.raises(WrongResult):
        check.judge(comparison(error_norm=error), workload())
    with pytest.raises(WrongResult):
        check.judge(comparison(worst=error), workload())


def test_a_reference_of_zeros_allows_zeros_only() -> None:
    zeros = comparison(reference_norm=0.0, expected=0.0, got=0.0)
    assert check.judge(zeros, workload()).error == 0.0
    with pytest.raises(WrongResult, match="relative error inf"):
        check.judge(replace(zeros, error_norm=1e-30, worst=1e-30, got=1e-30), workload())


def test_nothing_is_right() -> None:
    assert check.judge(Comparison(0, 0.0, 0.0, 0.0, (0,), 0.0, 0.0, EPS32), workload()).elements == 0


def test_exact_means_exact() -> None:
    assert check.judge(comparison(), workload(accumulate="exact")).tolerance == 0.0
    with pytest.raises(WrongResult, match="allowed 0 "):
        check.judge(comparison(error_norm=1e-300, worst=1e-300), workload(accumulate="exact"))


# Real tensors, through the CPU device


@pytest.fixture(scope="module")
def cpu() -> Any:
    from gpubench.devices.cpu import CpuDevice

    return CpuDevice()


def judged(cpu: Any, dtype: str, spoil: Callable[[Any], None] = lambda out: None, n: int = 96) -> Check:
    """A matmul of n × n × n, poisoned, run, spoilt and checked as the runner does."""
    import torch

    cpu.configure("normal", 3)
    a, b = cpu.random((n, n), dtype, seed=0), cpu.random((n, n), dtype, seed=1)
    c = cpu.unwritten((n, n), dtype)
    cpu.poison(c)
    with cpu.precision("ieee"):
        torch.mm(a, b, out=c)
    spoil(c)
    accumulate = "float64" if dtype == "float64" else "float32"
    return check.judge(
        cpu.compare(c, a.double() @ b.double()),
        workload(output=c, reduction=n, accumulate=accumulate),
    )


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("n", [1, 7, 96, 257])
def test_right_matmuls_pass(cpu: Any, dtype: str, n: int) -> None:
    found = judged(cpu, dtype, n=n)
    assert found.error <= found.tolerance
    assert found.elements == n * n


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_tolerance_is_of_the_size_of_the_error(cpu: Any, dtype: str) -> None:
    """Neither so tight that luck decides nor so wide that it says nothing."""
    found = judged(cpu, dtype)
    assert found.tolerance / 300 < found.error < found.tolerance


def one_off(out: Any) -> None:
    out[40, 17] += 0.2 * 96  # twice rms(ref) and a bit


def transposed(out: Any) -> None:
    out.copy_(out.t().clone())


def put(value: float) -> Callable[[Any], None]:
    def spoil(out: Any) -> None:
        out[95, 95] = value

    return spoil


def unwritten_tail(out: Any) -> None:
    out[-1, 50:] = math.nan


def another_scale(out: Any) -> None:
    out.mul_(1.1)


def zeroed(out: Any) -> None:
    out.zero_()


def a_sum_cut_short(out: Any) -> None:
    """What a kernel leaves that skips the last of its K: every element a little off."""
    out.add_(1.0)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("spoil", "place", "got"),
    [
        (one_off, "[40, 17]", ""),
        (put(math.nan), "[95, 95]", "got nan"),
        (put(math.inf), "[95, 95]", "got inf"),
        (put(-math.inf), "[95, 95]", "got -inf"),
        (unwritten_tail, "[95, 50]", "got nan"),
        (transposed, "[", ""),
        (another_scale, "[", ""),
        (zeroed, "[", "got 0,"),
        (a_sum_cut_short, "[", ""),
    ],
)
def test_wrong_matmuls_are_named(cpu: Any, dtype: str, spoil: Callable[[Any], None], place: str, got: str) -> None:
    with pytest.raises(WrongResult) as caught:
        judged(cpu, dtype, spoil)
    assert f"wrong result: at {place}" in caught.value.message
    assert got in caught.value.message


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_an_output_that_was_never_written_is_wrong(cpu: Any, dtype: str) -> None:
    output, reference = cpu.unwritten((4, 4), dtype), cpu.random((4, 4), dtype)
    cpu.poison(output)
    with pytest.raises(WrongResult, match=r"at \[0, 0\] got nan"):
        check.judge(cpu.compare(output, reference), workload())


def test_poison_is_wrong_even_where_the_reference_is_no_number(cpu: Any) -> None:
    """A reference that fails must not turn an unwritten output into a right one."""
    output, reference = cpu.unwritten(8, "float32"), cpu.random(8, "float32")
    cpu.poison(output)
    reference.fill_(math.nan)
    with pytest.raises(WrongResult, match=r"got nan, expected nan"):
        check.judge(cpu.compare(output, reference), workload())


def test_an_infinity_in_the_reference_hides_no_other_error(cpu: Any) -> None:
    reference = cpu.random(8, "float64")
    reference[2] = math.inf
    right, wrong = reference.clone(), reference.clone()
    wrong[5] += 3.0
    assert check.judge(cpu.compare(right, reference), workload()).error == 0.0
    with pytest.raises(WrongResult, match=r"at \[5\]"):
        check.judge(cpu.compare(wrong, reference), workload())
