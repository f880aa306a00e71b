"""Reasons of single rows: each rule with what calls for it, and without."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from builders import make_bandwidth, make_ceilings, make_record
from worlds.matmul import DEVICE

from gpubench import reasons
from gpubench.model.kernel_facts import facts
from gpubench.model.launches import planned
from gpubench.model.matmul_time import Product, machine, time
from gpubench.reasons import Case
from gpubench.result import Conditions, KernelSeen, Record, Samples, Timer, Work

COPY, WRITE, MATMUL = make_ceilings()
FACTS = DEVICE | {"last_level_cache_bytes": 60 << 20}


def kinds(record: Record, **more: Any) -> list[str]:
    return [reason.kind for reason in reasons.of(Case(record, FACTS, **more))]


def words(record: Record, kind: str, **more: Any) -> str:
    (found,) = [reason.words for reason in reasons.of(Case(record, FACTS, **more)) if reason.kind == kind]
    return found


def test_a_row_without_a_figure_says_why() -> None:
    record = make_record(status="oom", reason="asked for 200 GB, 140 GB free")
    assert kinds(record) == ["no figure"]
    assert words(record, "no figure") == "oom: asked for 200 GB, 140 GB free"


def test_a_plain_row_has_no_reason() -> None:
    assert kinds(make_record(params={"n": 1})) == []


def test_a_stream_near_its_roof_is_bound_by_it() -> None:
    record = make_bandwidth(rate=4.4e12)
    assert words(record, "bandwidth-bound", level=WRITE) == "96 % of DRAM write"
    assert kinds(make_bandwidth(rate=1e12), level=WRITE) == ["neither roof"]


def test_arithmetic_near_its_roof_is_bound_by_it() -> None:
    record = make_record(params={"n": 1}, time_ns=1_000_000, flops=700 * 10**9, nbytes=10**6)
    assert kinds(record, compute=MATMUL, memory=WRITE) == ["compute-bound"]
    assert "88 % of bfloat16 matmul at 700,000" not in words(record, "compute-bound", compute=MATMUL)
    assert words(record, "compute-bound", compute=MATMUL).startswith("88 % of bfloat16 matmul at 700000 FLOP/B")


@pytest.mark.parametrize(
    "fields",
    [{"flags": ["cache-resident"]}, {"conditions": Conditions(cache="hot")}, {"work": Work(0, 8 << 20, level="L2")}],
)
def test_what_the_cache_holds_is_no_dram_bandwidth(fields: dict[str, Any]) -> None:
    record = make_record("bandwidth", "copy", params={"mib": 8}, nbytes=8 << 20, level="DRAM")
    assert kinds(replace(record, **fields), level=WRITE) == ["L2-resident"]
    assert kinds(record, level=WRITE) == ["neither roof"]


def test_counted_bytes_beyond_the_compulsory_ones() -> None:
    record = make_bandwidth(rate=4.4e12, counters={"dram_bytes_read": 2**31, "dram_bytes_write": 2**29})
    assert words(record, "more bytes") == "DRAM moved 2.68 GB where the algorithm needs 1.07 GB: 2.50 times"
    record.counters = {"dram_bytes_read": 2**30, "dram_bytes_write": 0}
    assert "more bytes" not in kinds(record)
    record.counters = {"dram_bytes_read": 2**31}
    assert "more bytes" not in kinds(record), "half of a count is none"


def test_lanes_that_take_no_part() -> None:
    record = make_record(prediction={"threads_per_instruction": 16.0})
    assert words(record, "divergent") == "16.0 of 32 lanes take part in an instruction (predicted)"
    record.counters = {"threads_per_instruction": 32}
    assert kinds(record) == []


def test_sectors_of_a_load() -> None:
    record = make_record(prediction={"read_sectors_per_request": 32})
    assert words(record, "uncoalesced").startswith("a load of a warp touches 32.0 sectors of 32 B (predicted)")
    record.counters = {"sectors_per_load_request": 4.0}
    assert kinds(record) == []


def test_waves_that_a_kernel_predicts() -> None:
    assert kinds(make_record(prediction={"waves": 2, "idle_share": 0.49})) == ["waves"]
    assert kinds(make_record(prediction={"waves": 2, "idle_share": 0.01})) == []


def test_all_registers() -> None:
    assert kinds(make_record(kernels=[KernelSeen("f", registers=255)])) == ["may spill"]
    assert kinds(make_record(kernels=[KernelSeen("f", registers=254)])) == []


def test_a_clock_that_was_held_down_and_by_what() -> None:
    record = make_record(samples=Samples([100_000] * 11, [1] * 11, [0] * 11, [1470.0] * 11))
    record.telemetry = {"limited_by": "power cap"}
    assert words(record, "clock") == "SM clock 1470 MHz, 26 % below the 1980 it can have, limited by power cap"
    record.telemetry = {
        "before": {"event_ns": {"software power cap": 1}}, "after": {"event_ns": {"software power cap": 2}}
    }  # fmt: skip
    assert words(record, "clock").endswith("the power cap was on")
    assert kinds(make_record()) == []


def test_launches_that_set_the_pace_and_starts() -> None:
    assert kinds(make_record(time_ns=5000, call_ns=[20_000] * 5)) == ["launch-bound"]
    assert kinds(make_record(time_ns=50_000, call_ns=[20_000] * 5)) == []
    assert kinds(make_record(time_ns=1000, timer=Timer("cupti", 32.0, 700.0))) == ["start-bound"]


def test_a_compiled_row_pays_after_some_calls() -> None:
    kernels = [KernelSeen("triton_poi_fused_add_0")]
    record = make_record(params={"by": "compiled"}, time_ns=100_000, compile_ns=3_000_000_000, kernels=kernels)
    eager = make_record(params={"by": "eager"}, time_ns=400_000)
    assert words(record, "compiled", siblings=[eager]) == "compiled in 3.00 s; it pays after 10,000 calls"
    slow = make_record(params={"by": "eager"}, time_ns=90_000)
    assert words(record, "compiled", siblings=[slow]).endswith("it does not pay: eager is no slower")
    assert kinds(record) == []


def test_a_compiled_row_that_ran_torchs_own_kernels_fell_back() -> None:
    kernels = [KernelSeen("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>")]
    assert kinds(make_record(params={"by": "compiled"}, kernels=kernels)) == ["fall-back"]
    assert kinds(make_record(params={"by": "eager"}, kernels=kernels)) == []


def test_other_fall_backs_traps_and_doubts() -> None:
    timer = Timer("event", 32.0, reason="CUPTI is in use")
    assert words(make_record(flags=["fallback"], timer=timer), "fall-back").endswith("event, as CUPTI is in use")
    assert kinds(make_record(labels={"fallback": "eager"})) == ["fall-back"]
    assert kinds(make_record(labels={"trap": "no synchronisation"})) == ["trap"]
    assert kinds(make_record(flags=["implausible", "noisy", "analogue"])) == ["in doubt"] * 3


def test_a_product_is_told_by_the_model() -> None:
    kernel = facts("nvjet_sm90_tst_256x128_64x4_1x1_h_bz_coopA_NNT")
    product = Product(2056, 2056, 2056, 2, "nn", kernel, planned(kernel, 2056, 2056, 132))
    on = machine(FACTS, "bfloat16")
    assert on is not None
    record = make_record(params={"n": 2056, "dtype": "bfloat16"}, flops=2 * 2056**3, nbytes=6 * 2056**2)
    case = Case(record, FACTS, MATMUL, WRITE, None, product, time(product, on))
    (reason,) = reasons.of(case)
    assert reason.kind == "product"
    assert "1.73 by idle multiprocessors" in reason.words
    assert reason.change == "sizes whose tiles fill 132 multiprocessors in whole waves"


@pytest.mark.parametrize(
    ("n", "name", "change"),
    [
        (1793, "cutlass_75_tensorop_s1688gemm_bf16_256x128_nn_align1", "pad rows to a multiple of 16 B (8 elements)"),
        (3848, "nvjet_sm90_tst_128x232_64x4_1x1_h_bz_coopA_NNT", "pad rows to a multiple of 32 B (16 elements)"),
        (256, "nvjet_sm90_tst_64x8_64x16_1x2_h_bz_NNT", "several products in one call"),
    ],
)  # fmt: skip
def test_what_helps_a_product(n: int, name: str, change: str) -> None:
    kernel = facts(name)
    product = Product(n, n, n, 2, "nn", kernel, planned(kernel, n, n, 132))
    on = machine(FACTS, "bfloat16")
    assert on is not None
    case = Case(make_record(), FACTS, product=product, time=time(product, on))
    assert reasons.of(case)[0].change.startswith(change)
