"""Precision modes are held inside their context and put back after it. The settings exist without a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch

from gpubench.devices.modes import cpu_precision, cuda_precision
from gpubench.errors import CaseError, Unsupported

CUDA: Any = torch.backends.cuda.matmul
CPU: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
OWNERS = [pytest.param(cuda_precision, CUDA, id="cuda"), pytest.param(cpu_precision, CPU, id="cpu")]

Mode = Callable[[str], AbstractContextManager[None]]


@pytest.fixture(autouse=True)
def as_found() -> Iterator[None]:
    """Whatever a test does, the settings are left as they were."""
    before = CUDA.fp32_precision, CPU.fp32_precision
    yield
    CUDA.fp32_precision, CPU.fp32_precision = before


@pytest.fixture
def ampere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (8, 0))


@pytest.mark.parametrize(
    ("precision", "owner", "before"),
    [
        (cuda_precision, CUDA, "none"),
        (cuda_precision, CUDA, "ieee"),
        (cuda_precision, CUDA, "tf32"),
        (cpu_precision, CPU, "none"),
        (cpu_precision, CPU, "ieee"),
    ],
)
def test_ieee_is_held_and_what_was_found_is_put_back(precision: Mode, owner: Any, before: str) -> None:
    owner.fp32_precision = before
    with precision("ieee"):
        assert owner.fp32_precision == "ieee"
    assert owner.fp32_precision == before


@pytest.mark.parametrize(("precision", "owner"), OWNERS)
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_what_was_found_is_put_back_after_errors(precision: Mode, owner: Any, error: type[BaseException]) -> None:
    owner.fp32_precision = "none"
    with pytest.raises(error), precision("ieee"):
        raise error
    assert owner.fp32_precision == "none"


@pytest.mark.parametrize(("precision", "owner"), OWNERS)
def test_the_mode_is_not_what_ran_before(precision: Mode, owner: Any) -> None:
    for _ in range(2):
        with precision("ieee"):
            with precision("ieee"):
                pass
            assert owner.fp32_precision == "ieee"


@pytest.mark.usefixtures("ampere")
def test_tf32_is_held_on_a_gpu_that_has_it() -> None:
    CUDA.fp32_precision = "ieee"
    with cuda_precision("tf32"):
        assert CUDA.fp32_precision == "tf32"
        with cuda_precision("ieee"):
            assert CUDA.fp32_precision == "ieee"
        assert CUDA.fp32_precision == "tf32"
    assert CUDA.fp32_precision == "ieee"


def test_float32_is_never_tf32_even_where_the_user_allowed_it() -> None:
    """TF32 under an "fp32" label: torch's process-wide wish for speed must not reach an ieee case."""
    for wish in ("tf32", "none"):
        torch.backends.fp32_precision = wish  # type: ignore[attr-defined]
        try:
            with cuda_precision("ieee"):
                assert CUDA.fp32_precision == "ieee"
        finally:
            torch.backends.fp32_precision = "none"  # type: ignore[attr-defined]


def test_tf32_needs_ampere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (7, 5))
    before = CUDA.fp32_precision
    with pytest.raises(Unsupported, match=r"compute capability 8\.0"), cuda_precision("tf32"):
        raise AssertionError("unreachable")
    assert CUDA.fp32_precision == before


def test_a_cpu_has_no_tf32() -> None:
    before = CPU.fp32_precision
    with pytest.raises(Unsupported, match="a CPU has no tf32"), cpu_precision("tf32"):
        raise AssertionError("unreachable")
    assert CPU.fp32_precision == before


def test_a_mode_that_is_not_read_back_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was really run is read back, not echoed from the request."""

    class Deaf:
        @property
        def fp32_precision(self) -> str:
            return "tf32"

        @fp32_precision.setter
        def fp32_precision(self, value: str) -> None:
            pass

    monkeypatch.setattr(torch.backends.cuda, "matmul", Deaf())
    with (
        pytest.raises(CaseError, match="precision mode ieee was asked for, tf32 was read back"),
        cuda_precision("ieee"),
    ):
        raise AssertionError("unreachable")


def test_a_float32_matmul_on_the_cpu_is_float32() -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(256, 256, generator=generator), torch.randn(256, 256, generator=generator)
    exact = a.double() @ b.double()
    with cpu_precision("ieee"):
        error = float((torch.mm(a, b).double() - exact).norm() / exact.norm())
    assert error < 1e-6  # bfloat16 products would leave 1e-3
