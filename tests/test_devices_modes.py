"""Precision modes are held inside their context and put back after it. The settings exist without a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch

from gpubench.devices.modes import FULL_SUMS, cpu_precision, cuda_precision
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


def sums() -> dict[str, Any]:
    return {name: getattr(CUDA, name) for name in FULL_SUMS}


@pytest.fixture
def _sums_as_found() -> Iterator[None]:
    before = sums()
    yield
    for name, value in before.items():
        setattr(CUDA, name, value)


@pytest.mark.usefixtures("_sums_as_found")
@pytest.mark.parametrize(("mode", "short"), [("fp32-sums", False), ("fp16-sums", True)])
def test_how_16_bit_products_are_summed_is_held_and_put_back(mode: str, short: bool) -> None:
    CUDA.fp32_precision = "tf32"
    for found in (True, False):
        for name in FULL_SUMS:
            setattr(CUDA, name, found)
        with cuda_precision(mode):
            assert sums() == {**FULL_SUMS, "allow_fp16_accumulation": short}
            assert CUDA.fp32_precision == "ieee"
        assert sums() == dict.fromkeys(FULL_SUMS, found)
        assert CUDA.fp32_precision == "tf32"


@pytest.mark.usefixtures("_sums_as_found")
def test_whether_a_product_may_be_split_is_put_back() -> None:
    name = "allow_fp16_reduced_precision_reduction"
    if not hasattr(CUDA, f"{name}_split_k"):
        pytest.skip("this torch has one value for it")
    setattr(CUDA, name, (False, False))
    with cuda_precision("fp32-sums"):
        pass
    assert (getattr(CUDA, name), getattr(CUDA, f"{name}_split_k")) == (False, False)
    setattr(CUDA, name, (True, True))


@pytest.mark.usefixtures("_sums_as_found")
@pytest.mark.parametrize("mode", ["ieee", "fp32-sums"])
def test_sums_in_float16_are_never_what_ran_before(mode: str) -> None:
    with cuda_precision("fp16-sums"):
        pass
    with cuda_precision(mode):
        assert CUDA.allow_fp16_accumulation is False


def test_a_cpu_sums_in_float32_and_in_nothing_less() -> None:
    CPU.fp32_precision = "none"
    with cpu_precision("fp32-sums"):
        assert CPU.fp32_precision == "ieee"
    assert CPU.fp32_precision == "none"
    with pytest.raises(Unsupported, match="a CPU has no fp16-sums"), cpu_precision("fp16-sums"):
        raise AssertionError("unreachable")
