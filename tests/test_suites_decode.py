"""The suite decode: products and attention on a CPU, our kernels in the emulator, what is counted, what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
from machine import BENCHMARKS, GPU, SUITES, build, emulated, judged

from gpubench import check
from gpubench.errors import Skip, Unsupported, WrongResult

H200 = GPU | {"name": "NVIDIA H200", "multiprocessors": 132}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("rows", [1, 3])
def test_products_with_few_rows(cpu: Any, rows: int, dtype: str) -> None:
    workload = build(cpu, "decode/matvec", rows=rows, k=16, n=24, dtype=dtype)
    cpu.poison(workload.output)
    workload.call()
    judged(cpu, workload)
    itemsize = 4 if dtype == "float32" else 2
    assert workload.flops == 2 * rows * 16 * 24
    assert workload.bytes == itemsize * (16 * 24 + rows * (16 + 24))
    workload.output[-1, -1] += 9
    with pytest.raises(WrongResult):
        judged(cpu, workload)


def test_the_knee_is_that_of_the_datasheet(cpu: Any) -> None:
    known = build(cpu, "decode/matvec", H200, rows=1, k=16, n=24, dtype="bfloat16").prediction
    assert known["flat_up_to_rows"] == pytest.approx(989e12 / 4.8e12, rel=0.02)
    unknown = build(cpu, "decode/matvec", rows=1, k=16, n=24, dtype="bfloat16").prediction
    assert "flat_up_to_rows" not in unknown
    assert unknown["intensity"] == 2 * 16 * 24 / (2 * (16 * 24 + 16 + 24))


def test_a_cpu_has_no_float8(cpu: Any) -> None:
    with pytest.raises(Unsupported, match="float8 matrix products need"):
        build(cpu, "decode/matvec", GPU | {"kind": "cpu"}, rows=1, k=16, n=32, dtype="float8_e4m3")


@pytest.mark.parametrize("by", ["flash", "math"])
@pytest.mark.parametrize("group", [1, 3])
def test_attention_to_the_cache(cpu: Any, by: str, group: int) -> None:
    workload = build(cpu, "decode/kv-cache", by=by, batch=2, kv_heads=2, group=group, context=9, dtype="float32")
    output = workload.call()
    assert tuple(output.shape) == (2, 2, group, 128)
    check.judge(cpu.compare(output, workload.reference()), workload)
    assert workload.bytes == 4 * (2 * 2 * 2 * 9 * 128) + 2 * output.nbytes
    assert workload.flops == 4 * 2 * 2 * group * 9 * 128
    assert workload.prediction == {"blocks_without_splits": 4, "busy_without_splits": 1.0}
    output[1, 1, 0, 0] += 9
    with pytest.raises(WrongResult):
        check.judge(cpu.compare(output, workload.reference()), workload)


def test_a_way_that_torch_does_not_have_here_is_unsupported(cpu: Any) -> None:
    with pytest.raises(Unsupported, match="torch has no cudnn attention for this here"):
        build(cpu, "decode/kv-cache", by="cudnn", batch=1, kv_heads=1, group=1, context=9, dtype="float32")


@pytest.mark.parametrize(
    ("heads", "splits", "positions"),
    [
        (1, 1, 100),
        (3, 4, 300),
        (2, 7, 30),  # fewer keys a split than the groups of a block
        (4, 5, 4),  # fewer keys than splits
        (2, 2, 2 * 64),  # whole rounds
    ],
)
def test_our_kernels_share_a_heads_keys(cpu: Any, heads: int, splits: int, positions: int) -> None:
    workload = build(cpu, "decode/split-cache", heads=heads, splits=splits, positions=positions)
    attend, merge = workload.run
    assert (attend.grid[0], merge.grid[0], attend.block[0]) == (heads * splits, heads, 128)
    for written in (workload.output, *attend.args[3:5]):
        cpu.poison(written)
    emulated("decode/split-cache", workload)
    judged(cpu, workload)
    workload.output[0, -1, 0, 5] += 1
    with pytest.raises(WrongResult):
        judged(cpu, workload)


@pytest.mark.parametrize("sign", [None, 1, -1])
def test_scores_that_no_exponential_reaches_are_no_matter(cpu: Any, sign: int | None) -> None:
    workload = build(cpu, "decode/split-cache", heads=2, splits=3, positions=40)
    queries, keys = workload.run[0].args[:2]
    queries.mul_(100)  # scores in the hundreds
    if sign is not None:  # all of them on one side of 0, which is the score of a key that is not there
        keys.abs_()
        queries.abs_().mul_(sign)
    emulated("decode/split-cache", workload)
    assert workload.output.isfinite().all()
    judged(cpu, workload)


def test_what_is_predicted_of_splits(cpu: Any) -> None:
    few = build(cpu, "decode/split-cache", H200, heads=8, splits=4, positions=64)
    assert few.prediction == {"blocks": 32, "busy": pytest.approx(32 / 132)}
    assert few.labels == {}
    many = build(cpu, "decode/split-cache", H200, heads=512, splits=1, positions=512)
    assert many.labels == {"control": "a block for every unit without splits"}
    unknown = build(cpu, "decode/split-cache", {"kind": "cuda"}, heads=8, splits=4, positions=64)
    assert (unknown.labels, unknown.prediction) == ({}, {"blocks": 32})
    with pytest.raises(Skip, match="no CPU counterpart"):
        cpu.launcher(few.run[0], BENCHMARKS["decode/split-cache"].file)


def test_default_rows() -> None:
    suite = SUITES["decode"]
    rows = {name: list(bench.cases("cuda")) for name, bench in suite.benchmarks.items()}
    assert {case["rows"] for case in rows["matvec"]} == {2**power for power in range(10)}
    assert {case["dtype"] for case in rows["matvec"]} == {"bfloat16", "float8_e4m3"}
    assert sum(map(len, rows.values())) <= 50
    for case in rows["split-cache"]:
        context = case["positions"] // case["heads"]
        assert context * case["heads"] == case["positions"]
        assert math.prod((2, 2, case["positions"], 128)) > 4 * 60 * 2**20, "too much for a cache"
