"""The predicted time of a product: what it is made of, what limits it, and what each circumstance adds."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gpubench.model import matmul_time
from gpubench.model.kernel_facts import facts
from gpubench.model.launches import planned
from gpubench.model.matmul_time import BEGIN, Machine, Product, machine, seen, spent, terms, time

H200 = {
    "name": "NVIDIA H200", "kind": "cuda", "compute_capability": "9.0", "multiprocessors": 132, "sm_mhz_max": 1980,
    "memory_bytes": 150109880320, "memory_mhz_max": 3201, "memory_bus_bits": 6016,
}  # fmt: skip
ON = Machine(132, 4096, 1980, 4800)
NVJET = "nvjet_sm90_tst_{}_64x4_{}_h_bz_coopA_NNT"
NARROW = "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_nn_align1>"


def product(n: int, name: str, dtype: str = "bfloat16") -> Product:
    found = facts(name)
    size = {"bfloat16": 2, "float32": 4}[dtype]
    return Product(n, n, n, size, "nn", found, planned(found, n, n, 132))


def test_the_machine_of_a_device() -> None:
    found = machine(H200, "bfloat16")
    assert found is not None
    assert found.flop_per_clock == pytest.approx(4096)
    assert (found.multiprocessors, found.mhz) == (132, 1980)
    assert found.memory == pytest.approx(4814, rel=1e-3)
    assert machine(H200 | {"compute_capability": "99.0"}, "bfloat16") is None
    assert machine({"kind": "cpu"}, "bfloat16") is None
    memoryless = machine({key: value for key, value in H200.items() if not key.startswith("memory_m")}, "bfloat16")
    assert memoryless is not None
    assert memoryless.memory is None


@pytest.mark.parametrize("n", [264, 1000, 1792, 1793, 2824, 4096])
@pytest.mark.parametrize("name", [NVJET.format("256x128", "1x2"), NVJET.format("64x8", "2x4"), NARROW])
def test_the_factors_multiply_to_the_time(n: int, name: str) -> None:
    found = time(product(n, name), ON)
    assert found.ns == pytest.approx(found.ideal_ns * math.prod(found.factors.values()))
    assert found.ns == pytest.approx(spent(terms(product(n, name), ON), BEGIN.values)[-1])
    assert all(value > 0.99 for key, value in found.factors.items() if key != "start")


def test_a_wave_more_and_the_work_beyond_edges() -> None:
    name = NVJET.format("256x128", "1x1")
    whole, more = (time(product(n, name), ON) for n in (2048, 2056))  # 128 tiles, then 9 × 17 = 153
    assert whole.factors["waves"] == pytest.approx(132 / 128)
    assert more.factors["waves"] == pytest.approx(2 * 132 / 153)
    assert more.factors["tile waste"] == pytest.approx(153 * 256 * 128 / 2056**2 * 2112 / 2056)


def test_rows_beside_sectors_cost_where_the_l2_is_the_limit() -> None:
    alone, shared = (time(product(3848, NVJET.format("128x232", cluster)), ON) for cluster in ("1x1", "2x2"))
    assert alone.limit == "L2"
    assert alone.factors["sectors"] > shared.factors["sectors"] >= 1
    assert time(product(3840, NVJET.format("128x232", "1x1")), ON).factors["sectors"] == 1


def test_narrow_loads_are_the_limit_of_a_kernel_that_makes_them() -> None:
    found = product(1793, NARROW)
    assert found.load_bytes == 2
    assert time(found, ON).limit == "loads"
    wide = replace(found, facts=facts(NARROW.replace("align1", "align8")))
    assert wide.load_bytes == 16
    assert time(wide, ON).ns < time(found, ON).ns / 1.5


def test_a_small_product_is_its_launch() -> None:
    assert time(product(256, NVJET.format("64x8", "1x2")), ON).limit == "start"


def test_memory_is_the_limit_of_a_product_of_few_flops_a_byte() -> None:
    found = facts(NVJET.format("256x128", "1x2"))
    flat = Product(16384, 16384, 64, 2, "nn", found, planned(found, 16384, 16384, 132))
    assert time(flat, ON).limit == "memory"
    assert time(flat, replace(ON, memory=None)).factors["memory"] == pytest.approx(1)


def test_slices_of_k_are_summed() -> None:
    launch = [(NARROW, "kernel", [112, 1, 4])]
    found = seen(1789, 1789, 1789, "bfloat16", "nn", launch, 132)
    assert found is not None
    assert found.cover.splits == 4
    assert time(found, ON).factors["split-K"] > 1


def test_a_product_is_seen_among_the_activities_beside_it() -> None:
    launches = [
        ("Memset (Device)", "memset", None), (NARROW, "kernel", [120, 1, 1]),
        ("void cublasLt::splitKreduce_kernel<32>", "kernel", [25, 25, 1]),
    ]  # fmt: skip
    assert seen(1793, 1793, 1793, "bfloat16", "nn", launches, 132) is not None
    assert seen(1793, 1793, 1793, "bfloat16", "nn", [*launches, launches[1]], 132) is None, "two products are no one"
    assert seen(1793, 1793, 1793, "complex64", "nn", launches, 132) is None
    assert seen(1793, 1793, 1793, "bfloat16", "xx", launches, 132) is None
    assert seen(9999, 1793, 1793, "bfloat16", "nn", launches, 132) is None, "another grid would cover it"
    assert seen(1793, 1793, 1793, "bfloat16", "nn", [(NARROW, "kernel", None)], 132) is None


def test_there_are_at_most_twelve_constants() -> None:
    assert len(matmul_time.BEGIN.values) <= 12
