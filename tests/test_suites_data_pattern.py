"""What each pattern makes of normal numbers, and that a product of zeros is judged like any other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from gpubench import check
from gpubench.devices.cpu import CpuDevice
from gpubench.discovery import Library
from gpubench.errors import Skip, WrongResult
from gpubench.workload import Workload

BENCHMARK = Library(Path(__file__).parents[1] / "suites").suites()["data-pattern"].benchmarks["matmul"]
PATTERNS = list(BENCHMARK.axes["pattern"].values)
SIZE = 64


@pytest.fixture(scope="module")
def cpu() -> CpuDevice:
    return CpuDevice()


def build(device: CpuDevice, pattern: str, dtype: str = "float32", seed: int = 3) -> Workload:
    device.configure("normal", seed)
    workload = BENCHMARK.function(device, pattern=pattern, n=SIZE, dtype=dtype)
    device.poison(workload.output)
    return workload


def operands(device: CpuDevice, pattern: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    seen: list[Any] = []
    workload = build(device, pattern, dtype)
    monkeypatch.setattr(torch, "mm", lambda a, b, out: seen.extend([a, b]))
    workload.call()
    return seen


def is_of_bits(x: Any, bits: int) -> bool:
    """Whether no number has more bits in its fraction."""
    mantissa, _ = torch.frexp(x.double())
    return bool((mantissa * 2 ** (bits + 1)).frac().eq(0).all())


def is_sparse(x: Any, share: float) -> bool:
    """Zeros for that share, chosen without regard to the number that was there."""
    return near(x == 0, share) and near(x[x != 0] > 0, 0.5) and not is_of_bits(x, 2)


def near(x: Any, share: float) -> bool:
    """Whether a yes or no has that share, to four standard deviations."""
    return bool(abs(float(x.double().mean()) - share) < 4 * (share * (1 - share) / x.numel()) ** 0.5)


HOLDS: dict[str, Callable[[Any], bool]] = {
    "zeros": lambda x: not x.any(),
    "ones": lambda x: bool((x == 1).all()),
    "integers": lambda x: bool(x.double().frac().eq(0).all()) and x.unique().numel() > 8,
    "few-bits": lambda x: is_of_bits(x, 2) and not is_of_bits(x, 1) and near(x > 0, 0.5) and near(x.abs() < 1, 0.6827),
    "mostly-zeros": lambda x: is_sparse(x, 0.9),
    "half-zeros": lambda x: is_sparse(x, 0.5),
    "uniform": lambda x: float(x.abs().max()) <= 1 and near(x.abs() < 0.5, 0.5) and near(x > 0.9, 0.05),
    "normal": lambda x: near(x.abs() < 1, 0.6827) and near(x.abs() > 2, 0.0455),
}
"""What is true of a matrix of each pattern."""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
@pytest.mark.parametrize("pattern", HOLDS)
def test_both_operands_are_of_the_pattern_and_differ(
    cpu: CpuDevice, pattern: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = operands(cpu, pattern, dtype, monkeypatch)
    assert HOLDS[pattern](a)
    assert HOLDS[pattern](b)
    assert (a != b).any() or pattern in ("zeros", "ones")
    assert not torch.signbit(a[a == 0]).any(), "-0 has a bit"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_denormal_numbers_are_so_in_their_dtype_and_on_the_left_alone(
    cpu: CpuDevice, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = operands(cpu, "denormal", dtype, monkeypatch)
    assert float((a.abs() < torch.finfo(a.dtype).smallest_normal).double().mean()) > 0.99
    assert float((a != 0).double().mean()) > 0.9
    assert HOLDS["normal"](b)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_product_is_right_and_one_wrong_element_is_found(cpu: CpuDevice, pattern: str, dtype: str) -> None:
    if (pattern, dtype) == ("denormal", "float64"):
        with pytest.raises(Skip, match="no wider format"):
            build(cpu, pattern, dtype)
        return
    workload = build(cpu, pattern, dtype)
    workload.call()
    judge = lambda: check.judge(cpu.compare(workload.output, workload.reference()), workload)  # noqa: E731
    assert judge().error <= judge().tolerance
    workload.output[-1, -1] = 1 - workload.output[-1, -1]
    with pytest.raises(WrongResult):
        judge()


def test_zeros_that_come_out_as_the_smallest_number_are_wrong(cpu: CpuDevice) -> None:
    workload = build(cpu, "zeros")
    workload.call()
    assert check.judge(cpu.compare(workload.output, workload.reference()), workload).error == 0.0
    workload.output[3, 5] = torch.finfo(torch.float32).tiny
    with pytest.raises(WrongResult, match=r"at \[3, 5\] got 1.17549e-38, expected 0; relative error inf"):
        check.judge(cpu.compare(workload.output, workload.reference()), workload)


def test_the_default_rows_are_bursts_and_a_steady_load_and_bursts_alone_on_a_cpu() -> None:
    found = {kind: BENCHMARK.conditions_of(kind, False, {}, {}) for kind in ("cuda", "cpu")}
    assert [each.load for each in found["cuda"]] == ["burst", "sustained"]
    assert [each.load for each in found["cpu"]] == ["burst"]
    assert [*HOLDS, "denormal"] == PATTERNS
