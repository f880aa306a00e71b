"""What limits a row: the roofs over it, counted bytes and instructions, its grid, latency; and what is no limit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from builders import make_bandwidth, make_ceilings, make_record
from worlds.matmul import DEVICE

from gpubench.explain import limits, reasons
from gpubench.explain.reason import Case, Rated, Reason
from gpubench.result import Conditions, KernelSeen, Metric, Record, Timer, Work

COPY, WRITE, MATMUL = make_ceilings()
L2 = replace(WRITE, name="L2 read", level="L2", value=9e12)
FACTS = DEVICE | {
    "last_level_cache_bytes": 60 << 20, "threads_per_multiprocessor": 2048, "registers_per_multiprocessor": 65536,
    "shared_memory_per_multiprocessor_bytes": 233472,
}  # fmt: skip


def found(record: Record, **more: Any) -> dict[str, Reason]:
    seen = reasons.of(Case(record, FACTS, **more))
    assert len({reason.kind for reason in seen}) == len(seen)
    return {reason.kind: reason for reason in seen}


def words(record: Record, kind: str, **more: Any) -> str:
    return found(record, **more)[kind].words


def counted(read: float, write: float = 0, **more: Any) -> dict[str, Any]:
    return {"dram_bytes_read": read, "dram_bytes_write": write, **more}


# Roofs.


def test_a_stream_near_its_roof_is_bound_by_it() -> None:
    record = make_bandwidth(rate=4.4e12)
    assert words(record, "bandwidth-bound", level=WRITE) == "96 % of DRAM write"
    assert [*found(make_bandwidth(rate=1e12), level=WRITE)] == ["neither roof"]


def test_arithmetic_near_its_roof_is_bound_by_it() -> None:
    record = make_record(params={"n": 1}, time_ns=1_000_000, flops=700 * 10**9, nbytes=10**6)
    assert [*found(record, compute=MATMUL, memory=WRITE)] == ["compute-bound"]
    assert words(record, "compute-bound", compute=MATMUL) == "88 % of bfloat16 matmul at 700000 FLOP/B"


def test_past_a_roof_nothing_is_bound_by_it() -> None:
    record = make_record(params={"n": 1}, time_ns=1_000_000, flops=900 * 10**9, nbytes=10**6)
    assert [*found(record, compute=MATMUL, memory=WRITE)] == ["neither roof"], "of DRAM alone"
    assert "matmul" not in words(record, "neither roof", compute=MATMUL, memory=WRITE)
    units = Rated("what its units can", 1071e12)
    assert words(record, "compute-bound", compute=units).startswith("84 % of what its units can")


def test_of_flops_without_a_roof_the_other_roof_says_nothing() -> None:
    record = make_record(params={"n": 1}, time_ns=1_000_000, flops=10**9, nbytes=10**6)
    assert [*found(record, memory=WRITE)] == []
    few = make_record(params={"n": 1}, time_ns=1_000_000, flops=10**6, nbytes=2 * 10**9)
    assert [*found(few, memory=WRITE)] == ["neither roof"], "so few flops are below any ridge"


def test_bytes_that_dram_moved_bind_a_row_that_needs_fewer() -> None:
    record = make_bandwidth(rate=5e11, counters=counted(8 * 2**30))
    seen = found(record, memory=WRITE, level=WRITE)
    said = "87 % of DRAM write by the bytes that DRAM moved, 11 % by those that the algorithm needs"
    assert seen["bandwidth-bound"].words == said
    assert seen["more bytes"].words == "DRAM moved 8.59 GB where the algorithm needs 1.07 GB: 8.00 times"
    assert seen["more bytes"].change.startswith("tiles or an order")
    assert not seen["bandwidth-bound"].change, "the bytes beyond need say what helps"


def test_bytes_that_take_no_time_are_not_worth_a_word() -> None:
    record = make_record(time_ns=10**6, nbytes=10**6, counters=counted(5 * 10**7))
    assert "more bytes" not in found(record, memory=WRITE), "49 MB are 11 µs of 1 ms"
    record.counters = counted(5 * 10**8)
    assert "more bytes" in found(record, memory=WRITE)
    assert not found(record, memory=WRITE)["more bytes"].change, "a ninth of DRAM's rate holds nobody up"
    record.counters = {"dram_bytes_read": 5 * 10**8}
    assert "more bytes" not in found(record, memory=WRITE), "half of a count is none"


def test_between_several_kernels_fusion_saves_bytes() -> None:
    record = make_bandwidth(rate=5e11, counters=counted(8 * 2**30))
    record.kernels = [KernelSeen("a"), KernelSeen("b")]
    assert found(record, memory=WRITE, level=WRITE)["more bytes"].change.startswith("fusion")


def test_sectors_of_the_l2_bind_a_row_that_dram_does_not() -> None:
    sectors = {"l2_sectors_read": 2.5e8, "l2_sectors_write": 0}
    record = make_record(time_ns=10**6, nbytes=10**7, counters=counted(10**7, **sectors))
    seen = found(record, memory=WRITE, l2=L2)
    assert seen["bandwidth-bound"].words == "89 % of L2 read by the sectors that the L2 served"
    stream = make_bandwidth(rate=4.4e12, counters=counted(2**30, **sectors))
    assert words(stream, "bandwidth-bound", memory=WRITE, level=WRITE, l2=L2) == "96 % of DRAM write", "DRAM first"


def test_instructions_bind_a_row_whose_schedulers_never_rest() -> None:
    record = make_record(time_ns=10**6, counters={"instructions": 0.9 * 132 * 4 * 1980 * 1000})
    assert words(record, "instruction-bound").startswith("90 % of the instructions that its schedulers can issue")
    record.counters["instructions"] /= 2
    assert [*found(record)] == ["neither roof"]
    old = Case(record, FACTS | {"compute_capability": "6.0"})
    assert not any(limits.roofs(old)), "Pascal's schedulers were two"


def test_a_units_results_as_predicted_bind_a_row() -> None:
    record = make_record(prediction={"lanes": 16})
    record.metrics.append(Metric("results", 15.9, "1/clk", "higher"))
    said = "15.9 results a clock and multiprocessor, 16 predicted of this unit"
    assert words(record, "instruction-bound") == said
    record.metrics[-1] = Metric("results", 5.0, "1/clk", "higher")
    assert [*found(record)] == []


# Where the line is.


def empty(times: float) -> Record:
    return make_record(time_ns=round(1000 * times), timer=Timer("cupti", 32.0, 1000.0))


def beyond(percent: float) -> Record:
    nbytes = 10**6  # at 4.6 TB/s the bytes beyond take that share of 1 ms
    return make_record(time_ns=10**6, nbytes=nbytes, counters=counted(nbytes + 4.6e7 * percent))


def two(percent: int) -> Record:
    shares = (("nvjet_a", percent), ("softmax_warp_forward", 100 - percent))
    return make_record(kernels=[KernelSeen(name, ns=1000 * share) for name, share in shares])


def apart(percent: int) -> Record:
    return make_record(kernels=[KernelSeen(name, ns=500 * (100 - percent)) for name in ("nvjet_a", "nvjet_b")])


@pytest.mark.parametrize(
    ("kind", "says", "silent"),
    [
        ("start-bound", empty(2.9), empty(3.1)),
        ("more bytes", beyond(5.5), beyond(4.5)),
        ("kernels", two(94), two(96)),
        ("gaps", apart(11), apart(9)),
        ("one address", make_record(time_ns=1900, prediction={"serial": 1000}),
         make_record(time_ns=2100, prediction={"serial": 1000})),
    ],
    ids=["start", "bytes", "kernels", "gaps", "address"],
)  # fmt: skip
def test_from_where_on_something_is_said(kind: str, says: Record, silent: Record) -> None:
    assert kind in found(says, memory=WRITE)
    assert kind not in found(silent, memory=WRITE)


@pytest.mark.parametrize(
    ("kernels", "words_of_it"),
    [(118, "without work"), (119, "hide little"), (132, "hide little")],
)
def test_from_where_on_a_grid_is_small(kernels: int, words_of_it: str) -> None:
    record = make_bandwidth(rate=1e12, kernels=blocks(kernels, 15 * 32))
    assert words_of_it in words(record, "neither roof", level=WRITE)
    record.kernels = blocks(132, 16 * 32)
    assert words(record, "neither roof", level=WRITE).endswith(limits.SILENT)


# The cache.


@pytest.mark.parametrize(
    "fields", [{"conditions": Conditions(cache="hot")}, {"work": Work(0, 8 << 20, level="L2")}], ids=["hot", "L2"]
)
def test_what_the_cache_holds_is_no_dram_bandwidth(fields: dict[str, Any]) -> None:
    record = make_record("bandwidth", "copy", params={"mib": 8}, nbytes=8 << 20, level="DRAM")
    assert [*found(replace(record, **fields), level=WRITE)] == ["L2-resident"]
    assert [*found(record, level=WRITE)] == ["neither roof"]


def test_the_share_of_the_l2_is_named_and_what_dram_moved_all_the_same() -> None:
    record = make_record(time_ns=10**6, nbytes=8 * 10**9, level="L2", counters=counted(10**9))
    said = "8.00 GB are read from the L2 on purpose, 89 % of L2 read; DRAM moved 1.00 GB of it: no DRAM bandwidth"
    assert words(record, "L2-resident", level=L2) == said


def test_a_cold_row_of_few_bytes_is_not_resident() -> None:
    record = make_record("bandwidth", "copy", params={"mib": 8}, nbytes=8 << 20, level="DRAM", flags=["cache-resident"])
    assert "so few bytes that the cache may keep what is written" in words(record, "neither roof", level=WRITE)


# What else it waits for.


def blocks(count: int, threads: int = 1024, registers: int = 16, name: str = "mine") -> list[KernelSeen]:
    return [KernelSeen(name, grid=[count, 1, 1], block=[threads, 1, 1], registers=registers)]


def test_a_grid_that_leaves_multiprocessors_over() -> None:
    record = make_bandwidth(rate=1e12, kernels=blocks(32))
    said = "32 blocks leave 100 of 132 multiprocessors without work"
    assert words(record, "neither roof", level=WRITE).endswith(said)
    record.kernels = blocks(131)
    assert "without work" not in words(record, "neither roof", level=WRITE), "one of 132 is nothing"


@pytest.mark.parametrize(
    ("kernels", "warps"),
    [
        (blocks(132 * 64, 128), 64),
        (blocks(132 * 64, 128, registers=255), 8),  # 255 · 128 registers, of which two fit into 65536
        (blocks(132, 128), 4),  # one block each
        ([replace(blocks(132 * 64, 128)[0], shared_bytes=116_737)], 4),  # more than half of its shared memory
    ],
)
def test_the_warps_a_multiprocessor_holds(kernels: list[KernelSeen], warps: int) -> None:
    assert limits.resident_warps(kernels[0], Case(make_record(), FACTS)) == warps


def test_few_warps_hide_little_latency() -> None:
    record = make_bandwidth(rate=1e12, kernels=blocks(132, 128))
    said = "4 of 64 warps on a multiprocessor hide little latency"
    assert words(record, "neither roof", level=WRITE).endswith(said)
    record.counters = {"tensor_instructions": 1000}
    assert said not in words(record, "neither roof", level=WRITE), "tensor cores want few"
    record.counters, record.kernels = {}, blocks(132, 128, name="flash_fwd_kernel")
    assert said not in words(record, "neither roof", level=WRITE)


def test_a_short_kernel_is_soon_over() -> None:
    record = make_record(time_ns=5000, nbytes=10**7, timer=Timer("cupti", 32.0, 700.0))
    assert "in 5.00 µs the start and the end of a kernel weigh" in words(record, "neither roof", memory=WRITE)


def test_memory_and_instructions_that_both_take_half() -> None:
    record = make_record(params={"n": 1}, time_ns=10**6, flops=4 * 10**11, nbytes=26 * 10**8)
    assert words(record, "neither roof", compute=MATMUL, memory=WRITE).endswith("neither hidden behind the other")
    less = make_record(params={"n": 1}, time_ns=2 * 10**6, flops=4 * 10**11, nbytes=26 * 10**8)
    assert words(less, "neither roof", compute=MATMUL, memory=WRITE).endswith(limits.SILENT)


def test_what_the_kernels_of_a_call_spend_its_time_on() -> None:
    kernels = [
        KernelSeen("nvjet_a", ns=50_000), KernelSeen("softmax_warp_forward", ns=30_000, count=2),
        KernelSeen("Memset", "memset", ns=1000),
    ]  # fmt: skip
    record = make_record(kernels=kernels)
    assert words(record, "kernels") == "3 kernels in a call, of their time matmul 62 %, softmax 37 %"
    assert words(record, "gaps") == "19 % of the time lies between its 3 kernels"
    kernels[0].ns = 69_000
    assert "gaps" not in found(record)
    assert "kernels" not in found(make_record(kernels=kernels[:1]))
    kernels[1].name = "void at::native::radixSortKVInPlace<2>"
    assert words(record, "kernels").endswith("matmul 69 %, sort 30 %")
    kernels[1].ns = None
    assert "kernels" not in found(record), "no share is known"


def test_steps_that_wait_for_each_other() -> None:
    record = make_record(prediction={"level": "L2"})
    record.metrics += [Metric("latency", 128.4, "ns", "lower"), Metric("cycles", 254.2, "cycles", "none")]
    said = "each step waits for the one before: 128 ns, 254 cycles, predicted to be in L2"
    assert words(record, "latency-bound") == said


def test_fewer_bytes_in_flight_than_hide_the_latency() -> None:
    record = make_record(prediction={"bytes_in_flight": 512, "knee_bytes": 8805})
    said = "512 B on their way to a multiprocessor, where 8.80 kB hide the latency (predicted)"
    assert words(record, "latency-bound") == said
    record.prediction["bytes_in_flight"] = 9000
    assert [*found(record)] == []


def test_sectors_of_a_load() -> None:
    record = make_record(prediction={"read_sectors_per_request": 32})
    assert words(record, "uncoalesced").startswith("a load of a warp touches 32.0 sectors of 32 B (predicted)")
    record.counters = {"sectors_per_load_request": 4.0}
    assert [*found(record)] == []
    slow = make_bandwidth(rate=1e12, prediction={"read_sectors_per_request": 32})
    assert words(slow, "neither roof", level=WRITE).endswith("uncoalesced loads set the pace")


def test_words_of_one_bank_and_additions_to_one_address() -> None:
    assert "for 16 words" in words(make_record(prediction={"ways": 16}), "bank conflicts")
    assert [*found(make_record(prediction={"ways": 1}))] == []
    one = make_record(time_ns=700_000, prediction={"serial": 1_000_000})
    assert words(one, "one address") == "1,000,000 additions to one address, one after another: 0.700 ns each"
    one.prediction = {"serial": 1000}
    assert "one address" not in found(one), "700 ns for each: something else takes the time"


def test_rows_that_begin_between_what_is_loaded_at_a_time() -> None:
    kernel = KernelSeen("cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2")
    given = {"misaligned": ["C"], "alignment_bytes": {"A": 256, "B": 256, "C": 4}}
    record = make_record(params={"n": 1}, flops=10**13, nbytes=10**6, prediction=given, kernels=[kernel])
    seen = found(record, compute=replace(MATMUL, value=1e18))
    assert seen["misaligned"].words == (
        "rows begin, of C on multiples of 4 B, where fast kernels load 16 B at a time; "
        "CUTLASS mma.sync loads 2 elements at a time"
    )
    assert seen["neither roof"].words.endswith("narrow loads set the pace")
    record.prediction["misaligned"] = []
    assert "misaligned" not in found(record)


def test_which_roof_is_above_a_row() -> None:
    few, many = make_record(flops=10, nbytes=10), make_record(flops=10**6, nbytes=10)
    assert [limits.bound(Case(row, FACTS, MATMUL, WRITE)) for row in (few, many)] == ["memory", "compute"]
    assert limits.bound(Case(few, FACTS, None, WRITE)) is None
