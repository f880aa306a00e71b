"""Reasons of single rows: each rule with what calls for it, and without."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from builders import make_bandwidth, make_ceilings, make_record
from worlds.matmul import DEVICE

from gpubench.explain import reasons
from gpubench.explain.reason import Case
from gpubench.model.kernel_facts import facts
from gpubench.model.launches import planned
from gpubench.model.matmul_time import Product, machine, time
from gpubench.result import KernelSeen, Metric, Record, Samples, Timer

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


def test_lanes_that_take_no_part() -> None:
    record = make_record(prediction={"threads_per_instruction": 16.0})
    assert words(record, "divergent") == "16.0 of 32 lanes take part in an instruction (predicted)"
    record.counters = {"threads_per_instruction": 32}
    assert kinds(record) == []
    record.counters = {"threads_per_instruction": 20}
    assert words(record, "divergent") == "20.0 of 32 lanes take part in an instruction (counted)"


def test_blocks_that_are_no_whole_warps_do_not_diverge() -> None:
    kernels = [KernelSeen("mine", grid=[1000, 1, 1], block=[1, 1, 1])]
    record = make_record(kernels=kernels, counters={"threads_per_instruction": 1.0})
    assert words(record, "idle lanes") == "blocks of 1 thread leave 97 % of the lanes of their warps without work"
    assert "divergent" not in kinds(record)
    record.kernels[0].block = [40, 1, 1]
    record.counters = {"threads_per_instruction": 10.0}
    assert words(record, "idle lanes").startswith("blocks of 40 threads leave 38 %")
    assert "divergent" in kinds(record), "20 of 32 would be the block's, 10 are a branch's as well"
    record.kernels[0].block = [64, 1, 1]
    record.counters = {"threads_per_instruction": 32.0}
    assert kinds(record) == []


def test_nothing_is_said_of_lanes_where_one_loads_for_all_or_walks_alone() -> None:
    counted = {"threads_per_instruction": 7.0}
    name = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT"
    assert "divergent" not in kinds(make_record(kernels=[KernelSeen(name)], counters=counted))
    chase = make_record(counters=counted)
    chase.metrics.append(Metric("latency", 130.0, "ns", "lower"))
    assert kinds(chase) == ["latency-bound"]


def test_waves_that_a_kernel_predicts() -> None:
    assert kinds(make_record(prediction={"waves": 2, "idle_share": 0.49})) == ["waves"]
    assert kinds(make_record(prediction={"waves": 2, "idle_share": 0.01})) == []


def test_all_registers() -> None:
    assert kinds(make_record(kernels=[KernelSeen("f", registers=255)])) == ["may spill"]
    assert kinds(make_record(kernels=[KernelSeen("f", registers=254)])) == []
    assert kinds(make_record(kernels=[KernelSeen("triton_poi_fused_add_0", registers=255)])) == ["may spill"]
    flash = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 64, 4>>"
    assert kinds(make_record(kernels=[KernelSeen(flash, registers=255)])) == [], "a library's just fits"
    long = KernelSeen("void (anonymous namespace)::" + "a" * 99 + "<int>(int)", registers=255)
    assert words(make_record(kernels=[long]), "may spill").startswith("a" * 79 + "… has all 255 registers")


def test_a_clock_that_was_held_down_and_by_what() -> None:
    record = make_record(samples=Samples([100_000] * 11, [1] * 11, [0] * 11, [1470.0] * 11))
    record.telemetry = {"limited_by": "power cap"}
    held = "SM clock 1470 MHz, 26 % below the 1980 it can have"
    assert words(record, "clock") == f"{held}, limited by power cap: no fault of the kernel"
    record.telemetry = {
        "before": {"event_ns": {"software power cap": 1}}, "after": {"event_ns": {"software power cap": 2}}
    }  # fmt: skip
    assert words(record, "clock") == f"{held}, the power cap was on: no fault of the kernel"
    record.telemetry = {"sm_clock": "read beside calls of 0.9 ms, and not within them: software power cap"}
    assert words(record, "clock").startswith("the SM clock within the call is not known: read beside calls of 0.9 ms")
    assert kinds(make_record()) == []


def test_launches_that_set_the_pace_and_starts() -> None:
    assert kinds(make_record(time_ns=5000, call_ns=[20_000] * 5)) == ["launch-bound"]
    assert kinds(make_record(time_ns=50_000, call_ns=[20_000] * 5)) == []
    assert kinds(make_record(time_ns=1000, timer=Timer("cupti", 32.0, 700.0))) == ["start-bound"]
    assert kinds(make_record(time_ns=3000, timer=Timer("cupti", 32.0, 700.0))) == ["neither roof"]
    assert kinds(make_record(time_ns=7000, timer=Timer("cupti", 32.0, 700.0))) == []


def test_of_what_is_hardly_longer_than_nothing_no_limit_is_named() -> None:
    counted = {"dram_bytes_read": 8000, "dram_bytes_write": 0, "threads_per_instruction": 3}
    record = make_bandwidth(rate=1e18, call_ns=[9000] * 5, timer=Timer("cupti", 32.0, 1000.0), counters=counted)
    record.summary = replace(record.summary, median_ns=1000)  # type: ignore[type-var]
    assert kinds(record, memory=WRITE) == ["start-bound", "launch-bound"]


def test_the_stopwatch_of_a_benchmarks_own_may_time_one_of_many() -> None:
    record = make_record(time_ns=4000, flops=256, nbytes=1, call_ns=[4_000_000] * 5, timer=Timer("own", 1.0))
    assert kinds(record, compute=MATMUL, memory=WRITE) == ["own stopwatch"]


def test_a_compiled_row_pays_after_some_calls() -> None:
    kernels = [KernelSeen("triton_poi_fused_add_0")]
    record = make_record(params={"by": "compiled"}, time_ns=100_000, compile_ns=3_000_000_000, kernels=kernels)
    eager = make_record(params={"by": "eager"}, time_ns=400_000)
    assert words(record, "compiled", siblings=[eager]) == "compiled in 3.00 s; it pays after 10,000 calls"
    close = make_record(params={"by": "eager"}, time_ns=100_200)
    assert words(record, "compiled", siblings=[close]).endswith("it does not pay: eager is no slower"), "0.2 of 0.3 %"
    slow = make_record(params={"by": "eager"}, time_ns=90_000)
    assert words(record, "compiled", siblings=[slow]).endswith("it does not pay: eager is no slower")
    assert kinds(record) == []


def test_a_row_whose_shape_is_compiled_anew_is_recompiled() -> None:
    record = make_record(params={"n": 1, "by": "compiled"}, time_ns=100_000, compile_ns=2_000_000_000)
    eager = make_record(params={"n": 1, "by": "eager"}, time_ns=300_000)
    other = make_record(params={"n": 2, "by": "compiled"}, time_ns=100_000)
    record.metrics.append(Metric("compile_cached", 0.0, "1", "none"))
    found = words(record, "recompiled", siblings=[eager, other])
    assert found == "compiled in 2.00 s anew, as for each of its sizes; it pays after 10,000 calls"
    assert kinds(record, siblings=[eager]) == ["compiled"], "the only size"
    record.metrics[-1] = Metric("compile_cached", 1.0, "1", "none")
    assert kinds(record, siblings=[eager, other]) == ["compiled"], "its kernels were in the cache"


def test_a_compiled_row_that_ran_torchs_own_kernels_fell_back() -> None:
    kernels = [KernelSeen("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>")]
    assert kinds(make_record(params={"by": "compiled"}, kernels=kernels)) == ["fall-back"]
    assert kinds(make_record(params={"by": "eager"}, kernels=kernels)) == []


def test_other_fall_backs_traps_and_doubts() -> None:
    timer = Timer("event", 32.0, reason="CUPTI is in use")
    assert words(make_record(flags=["fallback"], timer=timer), "fall-back").endswith("event, as CUPTI is in use")
    assert kinds(make_record(labels={"fallback": "eager"})) == ["fall-back"]
    assert kinds(make_record(flags=["implausible", "noisy", "analogue"])) == ["in doubt"] * 3
    noisy = make_record(flags=["noisy"], half=0.021)
    assert words(noisy, "in doubt") == "noisy: the median is known to ±2.1 %, samples spread over 0 % (p10 to p90)"


def test_of_a_row_that_was_measured_wrong_only_that_is_said() -> None:
    trap = {"trap": "no synchronisation"}
    record = make_bandwidth(rate=4.4e12, labels=trap, call_ns=[10**9] * 5, flags=["implausible"])
    assert kinds(record, level=WRITE, memory=WRITE) == ["trap", "in doubt"]


def of_product(n: int, name: str, us: float | None = None, mhz: float = 1980.0) -> Case:
    """A product as its model has it, or one that took another time."""
    kernel = facts(name)
    product = Product(n, n, n, 2, "nn", kernel, planned(kernel, n, n, 132))
    on = machine(FACTS, "bfloat16")
    assert on is not None
    predicted = time(product, on)
    ns = round(predicted.ns if us is None else 1000 * us)
    record = make_record(
        params={"n": n, "dtype": "bfloat16"}, flops=2 * n**3, nbytes=6 * n**2, time_ns=ns,
        samples=Samples([ns] * 11, [1] * 11, [0] * 11, [mhz] * 11),
    )  # fmt: skip
    return Case(record, FACTS, MATMUL, WRITE, None, product, predicted)


WIDE = "nvjet_sm90_tst_256x128_64x4_1x1_h_bz_coopA_NNT"


def test_a_product_is_told_by_the_model() -> None:
    (reason,) = reasons.of(of_product(2056, WIDE))
    assert reason.kind == "product"
    assert reason.words.startswith("predicted 58.3 µs (+0 %), mostly reading tiles from the L2; at the full rate")
    assert "1.73 by idle multiprocessors" in reason.words
    assert reason.change == "sizes whose tiles fill 132 multiprocessors in whole waves"


def test_a_product_is_predicted_for_the_clock_that_was_held() -> None:
    found = {reason.kind: reason.words for reason in reasons.of(of_product(2056, WIDE, us=77.7, mhz=1485.0))}
    assert found["product"].startswith("predicted 58.3 µs, 77.7 µs at the 1485 MHz held (+0 %), mostly reading tiles")
    assert found["clock"].startswith("SM clock 1485 MHz, 25 % below")


def test_a_product_that_the_model_misses_has_no_causes() -> None:
    (reason,) = reasons.of(of_product(2056, WIDE, us=100))
    assert reason.words == "predicted 58.3 µs (-42 %): the model misses this row, and says nothing of its causes"
    assert reason.change == ""
    narrow = of_product(1793, "cutlass_75_tensorop_s1688gemm_bf16_256x128_nn_align1", us=1000)
    assert reasons.of(narrow)[0].change.startswith("pad rows"), "that threads load singly its name says"


def test_a_product_that_is_mostly_launch_has_no_factors() -> None:
    (reason,) = reasons.of(of_product(64, "nvjet_sm90_tst_64x8_64x16_1x2_h_bz_NNT"))
    assert reason.words.endswith("mostly launch and first loads")


@pytest.mark.parametrize(
    ("n", "name", "change"),
    [
        (1793, "cutlass_75_tensorop_s1688gemm_bf16_256x128_nn_align1", "pad rows to a multiple of 16 B (8 elements)"),
        (3848, "nvjet_sm90_tst_128x232_64x4_1x1_h_bz_coopA_NNT", "pad rows to a multiple of 32 B (16 elements)"),
        (256, "nvjet_sm90_tst_64x8_64x16_1x2_h_bz_NNT", "several products in one call"),
    ],
)  # fmt: skip
def test_what_helps_a_product(n: int, name: str, change: str) -> None:
    assert reasons.of(of_product(n, name))[0].change.startswith(change)
