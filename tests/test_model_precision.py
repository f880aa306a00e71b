"""What formats promise, by their makers' tables; which shapes are refused; what a CPU emulates."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpubench.errors import Skip, Unsupported
from gpubench.model import precision
from gpubench.model.products import Products

HOPPER = {
    "kind": "cuda", "name": "NVIDIA H200", "compute_capability": "9.0", "multiprocessors": 132, "sm_mhz_max": 1980,
    "memory_mhz_max": 3201, "memory_bus_bits": 6016,
}  # fmt: skip
AMPERE = {"kind": "cuda", "compute_capability": "8.0"}


@pytest.mark.parametrize(
    ("dtype", "times"), [("tf32", 1), ("float16", 2), ("bfloat16", 2), ("int8", 4), ("float8_e4m3", 4)]
)
def test_each_halving_of_the_bits_doubles_the_rate(dtype: str, times: float) -> None:
    assert precision.rate(dtype, HOPPER)["over_tf32"] == times
    ampere = precision.rate(dtype, AMPERE)
    assert ampere == {} if dtype == "float8_e4m3" else ampere["over_tf32"] == times


def test_rates_without_matrix_units_and_of_what_is_not_known() -> None:
    assert precision.rate("float32", HOPPER)["flop_per_clock"] == 256
    assert precision.rate("float16", HOPPER, matrix=False)["flop_per_clock"] == 512
    assert precision.rate("float8_e4m3", HOPPER, matrix=False) == {}
    assert precision.rate("bfloat16", {"compute_capability": "99.0"}) == {}
    assert precision.rate("bfloat16", {"compute_capability": "8.6"}) == {}, "products of it differ"


@pytest.mark.parametrize(("bits", "share"), [(16, 9 / 16), (8, 5 / 8)])
def test_two_of_four_and_two_bits_each(bits: int, share: float) -> None:
    assert precision.kept_share(bits) == share


def test_sparsity_gains_twice_where_arithmetic_is_the_limit_and_the_bytes_where_memory_is() -> None:
    assert precision.sparse_gain(8192, 8192, 8192, "bfloat16", 16, HOPPER)["most"] == pytest.approx(2)
    one_row = precision.sparse_gain(8192, 8192, 1, "bfloat16", 16, HOPPER)["most"]
    assert one_row == pytest.approx(16 / 9, rel=1e-3)
    assert precision.sparse_gain(8, 8, 8, "bfloat16", 16, AMPERE) == {}


@pytest.mark.parametrize(
    ("dtype", "shape", "named"),
    [
        ("float8_e4m3", (17, 17, 17), ["multiples of 16, not k = 17 and n = 17"]),
        ("float8_e4m3", (100, 100, 96), ["not k = 100"]),
        ("float8_e4m3", (1, 4096, 4096), []),
        ("int8", (16, 16, 16), ["m above 16, not m = 16"]),
        ("int8", (1, 100, 8), ["multiples of 8, not k = 100", "m above 16"]),
        ("int8", (1000, 1000, 1000), []),
        ("bfloat16", (17, 17, 17), []),
    ],
)
def test_rules_that_a_shape_breaks(dtype: str, shape: tuple[int, int, int], named: list[str]) -> None:
    broken = precision.broken_rules(dtype, *shape)
    assert len(broken) == len(named)
    assert all(words in rule for words, rule in zip(named, broken, strict=True))


def test_what_a_cpu_emulates() -> None:
    avx2, amx = ({"kind": "cpu", "isa": isa} for isa in (["avx2", "fma"], ["avx512_vnni", "amx_bf16"]))
    assert [dtype for dtype in precision.BITS if precision.emulated(dtype, avx2)] == [
        "float16", "bfloat16", "float8_e4m3", "int8",
    ]  # fmt: skip
    assert [dtype for dtype in precision.BITS if precision.emulated(dtype, amx)] == ["float16", "float8_e4m3"]
    assert not precision.emulated("bfloat16", {"kind": "cpu", "isa": None})
    assert not precision.emulated("bfloat16", HOPPER)


class RoomError(RuntimeError):
    """torch's own class has this place in the tree."""


def products(facts: dict[str, Any]) -> Products:
    device = SimpleNamespace(facts=lambda: facts, synchronize=lambda: None)
    return Products(SimpleNamespace(OutOfMemoryError=RoomError), device)


def failing(error: Exception) -> Any:
    def call() -> None:
        raise error

    return call


@pytest.mark.parametrize(
    "error",
    [
        NotImplementedError('"addmm" not implemented for Half'),
        ValueError("Expected trailing dimension to be divisible by 16"),
        RuntimeError("self.size(0) needs to be greater than 16, but got 8\n\nException raised from here"),
        RuntimeError("CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasLtMatmul`"),
        RuntimeError("CUDA error: operation not supported when calling `cusparseLtMatmulDescriptorInit`"),
    ],
)
def test_what_a_library_refuses_is_unsupported_with_the_rule_or_its_words(error: Exception) -> None:
    with pytest.raises(Unsupported) as ruled:
        products(HOPPER).tried(failing(error), ["a rule", "another"])
    assert ruled.value.reason == "a rule; another"
    with pytest.raises(Unsupported) as said:
        products(HOPPER).tried(failing(error), [])
    assert said.value.reason == "refused: " + str(error).split("\n", maxsplit=1)[0]


@pytest.mark.parametrize(
    "error",
    [
        RoomError("Tried to allocate 20.00 GiB"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED"),
        RuntimeError("CUDA error: an illegal memory access was encountered"),
        KeyError("a mistake of ours"),
    ],
)
def test_what_is_no_refusal_goes_on(error: Exception) -> None:
    with pytest.raises(type(error)) as same:
        products(HOPPER).tried(failing(error), ["a rule"])
    assert same.value is error


def test_what_would_take_a_cpu_hours_is_skipped() -> None:
    of = products({"kind": "cpu", "isa": ["avx2"]})
    assert of.labels("bfloat16", precision.EMULATED_FLOPS) == {"arithmetic": "emulated"}
    assert of.labels("float32", 10**15) == {}
    with pytest.raises(Skip, match="no instructions for bfloat16"):
        of.labels("bfloat16", precision.EMULATED_FLOPS + 1)
