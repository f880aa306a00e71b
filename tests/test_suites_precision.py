"""The suite precision without a GPU: products, refusals, pruned weights, streams, chains."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from builders import CPU
from machine import BENCHMARKS, FOLDER, GPU, build, doubles, emulated, globals_of, judged, on_cpu
from worlds import World
from worlds.precision import PRODUCTS, SPARSE, UNITS

from gpubench.errors import Skip, Unsupported, WrongResult
from gpubench.workload import Kernel, Workload

AVX2 = CPU | {"isa": ["avx2", "fma"]}
DTYPES = ["float64", "float32", "float16", "bfloat16", "int8"]


def right(cpu: Any, path: str, facts: dict[str, Any], **params: Any) -> Workload:
    """The workload, once its call was made and found right, and a wrong last element found out."""
    workload = build(cpu, path, facts, **params)
    cpu.poison(workload.output)
    if isinstance(workload.run, Kernel):
        on_cpu(cpu, path, workload)
    else:
        workload.call()
    judged(cpu, workload)
    return workload


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_product_of_each_format(cpu: Any, dtype: str) -> None:
    if dtype == "float64":
        workload, (m, k, n) = right(cpu, "precision/matmul", GPU, n=16, dtype=dtype), (16, 16, 16)
    else:
        workload, (m, k, n) = right(cpu, "precision/shapes", GPU, shape="8x64x64", dtype=dtype), (8, 64, 64)
    size, out = {"float64": (8, 8), "float32": (4, 4), "int8": (1, 4)}.get(dtype, (2, 2))
    assert (workload.flops, workload.bytes) == (2 * m * n * k, size * (m * k + k * n) + out * m * n)
    assert tuple(workload.output.shape) == (m, n)
    assert workload.accumulate == {"int8": "exact", "float64": "float64"}.get(dtype, "float32")
    flat = workload.output.view(-1)
    flat[-1] = -flat[-1] - 1
    with pytest.raises(WrongResult):
        judged(cpu, workload)


def test_tf32_is_a_mode_of_float32(cpu: Any) -> None:
    workload = build(cpu, "precision/matmul", n=8, dtype="tf32")
    assert (workload.precision, workload.dtype) == ("tf32", "tf32")
    with pytest.raises(Unsupported, match="a CPU has no tf32"), cpu.precision(workload.precision):
        pass


def test_a_shape_that_the_library_refuses_is_unsupported_with_the_rule(
    cpu: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("self.size(0) needs to be greater than 16, but got 16")

    monkeypatch.setattr(torch, "_int_mm", refuse)
    with pytest.raises(Unsupported, match=r"int8 products take m above 16, not m = 16"):
        build(cpu, "precision/shapes", shape="16x16x16", dtype="int8")
    assert build(cpu, "precision/shapes", shape="16x16x16", dtype="bfloat16").flops == 2 * 16**3


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3", "int8"])
def test_narrow_formats_asked_of_a_cpu_are_rows_and_never_hours(cpu: Any, dtype: str) -> None:
    with suppress(Unsupported):  # torch for a CPU has no float8 products in every version
        assert build(cpu, "precision/matmul", AVX2, n=32, dtype=dtype).labels == {"arithmetic": "emulated"}
    for path, params in (("matmul", {"n": 8192}), ("shapes", {"shape": "8352x4096x1536"})):
        with pytest.raises(Skip, match=f"no instructions for {dtype}"):
            build(cpu, f"precision/{path}", AVX2, dtype=dtype, **params)


def test_the_defaults_of_a_cpu_are_small_and_hot() -> None:
    for path, bench in BENCHMARKS.items():
        if path.startswith("precision/") and "cache" in bench.conditions:
            assert {condition.cache for condition in bench.conditions_of("cpu", False, {}, {})} == {"hot"}
    assert {row["n"] for row in BENCHMARKS["precision/matmul"].cases("cpu")} == {256}
    assert "8352x4096x1536" not in {row["shape"] for row in BENCHMARKS["precision/shapes"].cases("cpu")}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_half_of_the_weights_are_zero_two_of_each_four(cpu: Any, dtype: str) -> None:
    import torch

    from gpubench.model.products import Products

    cpu.configure("normal", 7)
    of = Products(torch, cpu)
    whole, pruned = (doubles(of.drawn(16, 32, dtype, 0, pruned=kept)).reshape(-1, 4) for kept in (False, True))
    kept = pruned != 0
    assert (kept.sum(1) <= 2).all()
    assert (kept.sum(1) == 2).mean() > 0.9
    assert (pruned[kept] == whole[kept]).all()
    smallest = np.where(kept, np.abs(whole), np.inf).min(1)
    assert (np.where(kept, 0, np.abs(whole)).max(1) <= smallest).all()


def test_dense_weights_with_and_without_zeros(cpu: Any) -> None:
    dense, unpruned = (
        right(cpu, "precision/sparse", GPU, shape="256x256x256", dtype="int8", weights=weights)
        for weights in ("dense", "unpruned")
    )
    assert dense.flops == unpruned.flops == 2 * 256**3
    assert dense.bytes == unpruned.bytes == 6 * 256**2
    assert (doubles(dense.reference()) != doubles(unpruned.reference())).any()
    assert dense.headline == "time"
    with pytest.raises(Unsupported, match="CUDA devices only"):
        build(cpu, "precision/sparse", AVX2, shape="256x256x256", dtype="int8", weights="cusparselt")


def test_a_compressed_product_does_half_the_work_on_fewer_bytes(cpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpubench.model.products import Products

    def stand_in(self: Any, a: Any, b: Any, dtype: str, library: str) -> Any:
        assert ((a.view(-1, 4) != 0).sum(1) <= 2).all()
        return (lambda: a.int() @ b.int().t()), {"algorithm": library}

    monkeypatch.setattr(Products, "sparse", stand_in)
    params = {"shape": "256x256x256", "dtype": "int8", "weights": "cutlass"}
    workload = build(cpu, "precision/sparse", GPU, **params)
    assert (workload.flops, workload.output) == (256**3, None)
    assert workload.bytes == 5 * 256**2 // 8 + 256**2 + 4 * 256**2
    assert workload.labels == {"algorithm": "cutlass"}
    made = workload.call()
    assert (doubles(made) == doubles(workload.reference())).all()


def test_without_the_library_a_compressed_product_is_unsupported_in_its_words(cpu: Any) -> None:
    for weights in ("cusparselt", "cutlass"):
        with pytest.raises(Unsupported, match=r"refused: .*CUDA tensors"):
            build(cpu, "precision/sparse", GPU, shape="256x256x256", dtype="int8", weights=weights)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "float8_e4m3"])
@pytest.mark.parametrize("n", [1024, 4101])
def test_relu_reads_and_writes_each_element_once(cpu: Any, dtype: str, n: int) -> None:
    workload = right(cpu, "precision/relu", GPU, n=n, dtype=dtype)
    each = {"float32": 4, "float16": 2, "bfloat16": 2}.get(dtype, 1)
    assert (workload.flops, workload.bytes) == (n, 2 * each * n)
    assert workload.prediction == {"bytes_per_element": 2 * each, "flop_per_byte": 1 / (2 * each)}
    assert workload.labels == ({"control": "as long as a launch"} if n == 1024 else {})
    out = doubles(workload.output)
    assert (out >= 0).all()
    assert 0.3 < (out > 0).mean() < 0.6
    if each == 1:  # the kernel itself, with its last bytes
        workload.output.fill_(1)
        emulated("precision/relu", workload)
        judged(cpu, workload)


def test_the_flops_of_a_chain_are_its_fused_multiply_adds(cpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals_of("precision/units"), "ROUNDS", 2)
    workload = build(cpu, "precision/units", GPU, unit="fp32")
    cpu.poison(workload.output)
    did = emulated("precision/units", workload)
    judged(cpu, workload)
    assert workload.flops == 2 * did.fused


def test_what_the_units_count(cpu: Any) -> None:
    per_thread = {}
    for unit in globals_of("precision/units")["UNITS"]:
        workload = build(cpu, "precision/units", GPU, unit=unit)
        threads = workload.output.numel()
        per_thread[unit] = workload.flops / threads / float(workload.reference()[0])
        assert workload.run.grid[0] * workload.run.block[0] == threads
        assert workload.labels == {"units": "matrix" if unit.startswith("mma") else "ordinary"}
    chains = 2 * 8 * 128 / (8 * 128 + 28)
    assert per_thread == pytest.approx(
        {name: 2 if name.startswith("mma") else chains * (4 if name == "dp4a" else 1) for name in per_thread}
    )


def test_constants_are_those_of_the_sources() -> None:
    known = globals_of("precision/units")
    chains, tensor = ((FOLDER / file).read_text() for file in ("peak.cu", "execution_tensor.cu"))
    for text, names in ((chains, {"CHAINS": "CHAINS", "LINKS": "LINKS"}), (tensor, {"SUMS": "MMA_SUMS"})):
        for macro, name in names.items():
            assert f"#define {macro} {known[name]}\n" in text
    assert known["LINKS"] + known["CHAINS"] - 1 <= 255, "beyond it a uint8 does not count by ones"
    for kind, depth, _ in known["MMA"].values():
        condition = {0: "#if TYPE == 0", 3: "#else"}.get(kind, f"#elif TYPE == {kind}")
        assert f'{condition}\n#define INSTRUCTION "m16n8k{depth}.' in tensor


# Rules.


def test_without_float8_the_ladder_ends_in_int8() -> None:
    rows = [row for row in PRODUCTS if "float8" not in row.words]
    eight = [type(rows[0])("matmul n=8192 dtype=int8", 1e9 / 1600e3, fields=rows[0].fields)]
    for claim in ("C06", "C07"):
        found = World(claim, rows + eight + UNITS, {}, None).judged()
        assert found["verdict"] == "HOLDS"
        assert any("int8" in effect["name"] for effect in found["effects"])


def test_a_ladder_without_sparsity_says_so() -> None:
    assert World("C06", PRODUCTS + UNITS, {}, None).judged()["note"] == "without structured sparsity"
    with_it = World("C06", PRODUCTS + UNITS + SPARSE, {}, None).judged()
    assert with_it["effects"][-1]["name"] == "and of 2:4 sparse over dense float8_e4m3"


def test_sparsity_that_gains_a_little_is_partly_and_the_worst_shape_is_shown() -> None:
    slow = {row.words: 900 for row in SPARSE if "weights=cu" in row.words and "8x8x8" in row.words}
    found = World("C10", SPARSE, {}, None).judged(slow)
    assert found["verdict"] == "PARTLY"
    assert found["effects"][1]["name"] == "worst gain, bfloat16 8x8x1"
    assert found["effects"][1]["value"] == pytest.approx(1 / 3)


def test_units_for_matrices_of_a_cpu() -> None:
    amx = CPU | {"isa": ["avx512f", "amx_bf16"]}
    world = World("C07", PRODUCTS, {}, None, device=amx)
    assert world.judged()["verdict"] == "HOLDS"
    assert world.judged({"matmul n=8192 dtype=bfloat16": 1e9 / 50e3})["verdict"] == "ABSENT"
    assert world.judged({"matmul n=8192 dtype=float64": 1e9 / 51e3})["verdict"] == "INVALID"
    assert World("C07", PRODUCTS, {}, None, device=AVX2).judged()["verdict"] == "NOT TESTABLE HERE"
