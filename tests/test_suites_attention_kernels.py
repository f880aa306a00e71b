"""The suite attention-kernels without a GPU: our kernels' text in the emulator, against float64; and the rules."""

from __future__ import annotations

import math
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import emulator
import numpy as np
import pytest
import torch
from builders import make_run
from machine import BENCHMARKS, FOLDER, SUITES, build, emulated, entries, globals_of, judged
from worlds import STATEMENTS, World
from worlds.attention_kernels import BESIDE, COUNTED, LADDER, TIMED
from worlds.attention_kernels import KEEPING as KEEPING_ROW

from gpubench.claims import judge as claims
from gpubench.errors import Skip, WrongResult
from gpubench.model import attention_torch
from gpubench.model.attention_traffic import Shape
from gpubench.workload import Kernel, Workload

GLOBALS = globals_of("attention-kernels/ours")
SMALL: dict[str, Any] = {"tokens": 1, "heads": 1, "group": 1}
NARROW, WIDE = (64, "float16"), (128, "bfloat16")
"""What kernels are built for here, each once: GPUs run the other two."""


@pytest.fixture(scope="module", autouse=True)
def built(cpu: Any, broken: Path) -> None:
    """Every build of the tests below, made at once."""
    narrow, wide = (dict(zip(("d", "dtype"), each, strict=True)) for each in (NARROW, WIDE))
    rungs = [("tiled", narrow), ("tiled", wide), ("two-sweeps", narrow), ("keeping", narrow)]
    made = [ours(cpu, 1, *NARROW), ours(cpu, 1, *WIDE, mask="causal")]
    made += [build(cpu, "attention-kernels/ladder", by=by, n=1, batch=1, heads=1, **kind) for by, kind in rungs]
    kernels = [each.run[0] if isinstance(each.run, tuple) else each.run for each in made]
    assert all(isinstance(kernel, Kernel) for kernel in kernels)
    wanted = [(kernel, FOLDER, entries("attention-kernels/ours", kernel)) for kernel in kernels]
    emulator.build([*wanted, (replace(kernels[0], source="broken.cu"), broken, BROKEN_NAMES)])


def ours(cpu: Any, n: int, d: int, dtype: str, mask: str = "none", **more: Any) -> Workload:
    return build(cpu, "attention-kernels/ours", n=n, d=d, dtype=dtype, mask=mask, **SMALL | more)


def right(cpu: Any, workload: Workload) -> float:
    """One call in the emulator from a poisoned output, judged; its error."""
    cpu.poison(workload.output)
    emulated("attention-kernels/ours", workload)
    judged(cpu, workload)
    return attention_torch.error(workload.output, workload.reference())


@pytest.mark.parametrize("n", [1, 63, 130])
@pytest.mark.parametrize(("d", "dtype", "mask"), [(*NARROW, "none"), (*WIDE, "causal")])
def test_flash_is_right_at_any_length(cpu: Any, d: int, dtype: str, mask: str, n: int) -> None:
    workload = ours(cpu, n, d, dtype, mask)
    error = right(cpu, workload)
    q, k, v, _, logarithms = workload.run.args[:5]
    plain = attention_torch.by_steps(torch, "naive-separate", q, mask == "causal")(q, k, v)
    assert error <= 1.5 * attention_torch.error(plain, workload.reference()) + 1e-12
    scores = q.double() @ k.double().mT * d**-0.5
    if mask == "causal":
        scores.masked_fill_(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)
    torch.testing.assert_close(logarithms.double().view(1, 1, n), scores.logsumexp(-1), rtol=1e-5, atol=1e-5)


def test_query_heads_share_keys(cpu: Any) -> None:
    workload = ours(cpu, 33, *NARROW, heads=4, group=2, tokens=66)
    assert [tuple(tensor.shape) for tensor in workload.run.args[:2]] == [(2, 4, 33, 64), (2, 2, 33, 64)]
    right(cpu, workload)
    with pytest.raises(Skip, match="4 query heads are no groups of 3"):
        ours(cpu, 33, *NARROW, heads=4, group=3)


@pytest.mark.parametrize(("place", "offset"), [(0, 2.0), (129, 0.0)])
def test_rows_that_are_hard(cpu: Any, place: int, offset: float) -> None:
    """One key that outweighs all others, in the first tile or in the last, and scores far from 0."""
    workload = ours(cpu, 130, *NARROW)
    q, k = workload.run.args[:2]
    q.abs_().add_(offset)
    k[:, :, place] = 3
    right(cpu, workload)


def test_weights_too_small_for_sixteen_bits_and_scores_too_large_to_be_raised_to(cpu: Any) -> None:
    workload = ours(cpu, 130, *NARROW)
    q, k = workload.run.args[:2]
    q.mul_(40)
    k[:, :, 64:].mul_(8)  # later tiles have the greatest scores: thousands
    right(cpu, workload)


@pytest.mark.parametrize(("n", "d", "dtype"), [(1, *NARROW), (130, *NARROW), (63, *WIDE)])
@pytest.mark.parametrize("by", ["naive", "tiled", "outer-keys"])
def test_a_rung_is_right_at_any_length(cpu: Any, by: str, n: int, d: int, dtype: str) -> None:
    right(cpu, build(cpu, "attention-kernels/ladder", by=by, n=n, d=d, dtype=dtype, batch=2 if n < 100 else 1, heads=1))


@pytest.mark.parametrize("n", [1, 63, 130])
def test_two_sweeps_are_right_at_any_length(cpu: Any, n: int) -> None:
    right(cpu, build(cpu, "attention-kernels/ladder", by="two-sweeps", n=n, d=64, dtype="float16", batch=1, heads=1))


@pytest.mark.parametrize("n", [1, 63, 130])
def test_the_scores_that_are_kept_are_those_of_the_definition(cpu: Any, n: int) -> None:
    workload = build(cpu, "attention-kernels/ladder", by="keeping", n=n, d=64, dtype="float16", batch=1, heads=2)
    right(cpu, workload)
    q, k = workload.run.args[:2]
    scores, pitch = workload.run.args[-2:]
    assert tuple(scores.shape) == (2, n, pitch)
    exact = (q.double() @ k.double().mT / 8).view(2, n, n)
    torch.testing.assert_close(scores[..., :n].double(), exact, rtol=2e-3, atol=2e-3)


def test_scores_of_wide_heads_are_not_kept(cpu: Any) -> None:
    with pytest.raises(Skip, match="at d = 64 only"):
        build(cpu, "attention-kernels/ladder", by="keeping", n=1, d=128, dtype="float16", batch=1, heads=1)


def test_what_a_pass_stores_that_keeps_its_scores(cpu: Any) -> None:
    """Bytes over those of one that does not: the model's, where n is large beside d."""
    shape = {"n": 1024, "d": 64, "batch": 1, "heads": 1, "dtype": "float16"}
    kept, ours_ = (build(cpu, "attention-kernels/ladder", by=by, **shape) for by in ("keeping", "flash"))
    scores = kept.run.args[-2]
    assert kept.bytes == ours_.bytes, "compulsory bytes are those of the operation"
    predicted = World("C71", [*LADDER, KEEPING_ROW], {}, None).judged()["prediction"]["bytes_without_recomputation"]
    assert (kept.bytes + scores.nbytes) / kept.bytes == predicted == 5


BROKEN = [
    ("wait_for_groups<STAGES - 2>();\n", ""),
    ("multiply_output(o, factor);", ""),
    ("mask(s, row, tile * KEYS, n);\n        if", "if"),
    ("raise_to(rows, s, scale, factor);\n            multiply", "multiply"),
]
"""What our FlashAttention says, and what it might in place of that."""
BROKEN_NAMES = tuple(f"broken_{place}" for place in range(len(BROKEN)))


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of kernels that say the one or the other of BROKEN, broken_0 and so on."""
    folder = tmp_path_factory.mktemp("broken")
    shutil.copytree(FOLDER / "include", folder / "include")
    before, kernel = (FOLDER / "attention_kernels.cu").read_text().split('extern "C"')
    assert all(kernel.count(said) for said, _ in BROKEN)
    named = zip(BROKEN, BROKEN_NAMES, strict=True)
    texts = [kernel.replace(*each).replace("flash_forward", name) for each, name in named]
    (folder / "broken.cu").write_text('extern "C"'.join([before, *texts]))
    return folder


@pytest.mark.parametrize("name", BROKEN_NAMES)
def test_a_broken_kernel_is_found(cpu: Any, broken: Path, name: str) -> None:
    workload = ours(cpu, 130, *NARROW)
    assert isinstance(workload.run, Kernel)
    cpu.poison(workload.output)
    emulator.emulate(replace(workload.run, name=name, source="broken.cu"), broken, BROKEN_NAMES)
    with pytest.raises(WrongResult):
        judged(cpu, workload)


@pytest.mark.parametrize(("order", "kernel"), [("keys", "flash_outer_keys"), ("queries", "flash_forward")])
def test_the_orders_of_loops_are_two_rungs(cpu: Any, order: str, kernel: str) -> None:
    workload = build(cpu, "attention-kernels/loop-order", order=order, n=65, tokens=65, heads=1, dtype="float16")
    assert workload.run.name == kernel  # type: ignore[union-attr]
    if order == "keys":
        right(cpu, workload)


def test_no_score_is_written_and_one_kernel_runs(cpu: Any) -> None:
    workload = ours(cpu, 65, *NARROW)
    assert isinstance(workload.run, Kernel)
    held = sum(arg.nbytes for arg in workload.run.args if isinstance(arg, torch.Tensor))
    assert held == workload.bytes + 65 * 4, "operands, output, and a logarithm a query"


def test_flops_are_halved_by_the_mask_and_bytes_are_not(cpu: Any) -> None:
    full, causal = (ours(cpu, 64, *NARROW, mask=mask) for mask in ("none", "causal"))
    assert full.flops == 2 * causal.flops == 4 * 64 * 64 * 64
    assert full.bytes == causal.bytes == 4 * 64 * 64 * 2


def test_the_constants_of_the_suite_are_those_of_the_kernels() -> None:
    text = (FOLDER / "include/attention.cuh").read_text() + (FOLDER / "attention_kernels.cu").read_text()
    assert "#define ROWS (32 * WARPS)" in text
    found = {name: int(size) for name, size in re.findall(r"^#define (\w+) (\d+)", text, re.M)}
    assert 32 * found["WARPS"] == GLOBALS["ROWS"] == GLOBALS["THREADS"]
    assert (found["STAGES"], found["KEYS"]) == (GLOBALS["STAGES"], GLOBALS["KEYS"])
    assert math.isclose(GLOBALS["LOG2_E"], math.log2(math.e))


def test_the_emulator_rounds_as_the_formats_do(tmp_path: Path) -> None:
    """Every kind of number to both formats and back: normal, denormal, ties, too large, not a number."""
    shutil.copytree(FOLDER / "include", tmp_path / "include")
    (tmp_path / "round.cu").write_text(
        '#include "halves.cuh"\n'
        "template <class T> void there_and_back(const float* x, T* y, float* z, int n) {\n"
        "    for (int i = threadIdx.x; i < n; i += blockDim.x) {\n"
        "        y[i] = {(unsigned short)packed<T>(x[i], 0)};\n"
        "        z[i] = widened(y[i]);\n"
        "    }\n}\n"
        'extern "C" __global__ void both(const float* x, float16* a, float* b, bfloat16* c, float* d, int n) {\n'
        "    there_and_back(x, a, b, n);\n"
        "    there_and_back(x, c, d, n);\n"
        "}\n"
    )
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(4000, generator=generator) * 2.0 ** torch.randint(-30, 18, (4000,), generator=generator)
    x[:8] = torch.tensor([0.0, -0.0, 65519.0, 65520.0, 2.0**-25, 1.5 * 2**-24, 1 + 2.0**-11, torch.inf])
    made = {dtype: (torch.empty(4000, dtype=dtype), torch.empty(4000)) for dtype in (torch.float16, torch.bfloat16)}
    args = (x, *made[torch.float16], *made[torch.bfloat16], np.int32(4000))
    emulator.emulate(Kernel("both", args, 1, 32, source="round.cu"), tmp_path, ("both",))
    for dtype, (y, z) in made.items():
        assert torch.equal(y, x.to(dtype))
        assert torch.equal(z, x.to(dtype).float())


def test_the_shortest_is_one_tile_and_blocks_fill_a_gpu() -> None:
    rows = list(BENCHMARKS["attention-kernels/loop-order"].cases("cuda"))
    lengths = sorted({case["n"] for case in rows})
    assert lengths[0] == GLOBALS["KEYS"]
    assert lengths[-1] == 4096
    assert all(int(case["tokens"]) // int(case["n"]) * int(case["heads"]) >= 128 for case in rows)


def test_ours_and_eager_steps_have_the_same_numbers(cpu: Any) -> None:
    made = [
        build(cpu, "attention-kernels/exactness", by=by, greatest="last", d=64, n=130, heads=1, dtype="float16")
        for by in ("ours", "naive")
    ]
    assert len({(each.flops, each.bytes, each.reduction, each.accumulate, each.headline) for each in made}) == 1
    assert torch.equal(*(each.reference() for each in made))
    error = right(cpu, made[0])
    assert error <= 1.5 * attention_torch.error(made[1].call(), made[1].reference())


def test_torchs_ways_stand_beside_ours_on_a_gpu_only(cpu: Any) -> None:
    rows = BENCHMARKS["attention-kernels/beside-torch"].cases("cuda")
    assert {case["by"] for case in rows} == {"ours", "naive", "flash", "cudnn", "efficient"}
    assert GLOBALS["SHAPES"] == {"lecture": Shape(64, 16, 16, 1024, 64), "long": Shape(4, 16, 16, 4096, 128)}
    with pytest.raises(Skip, match="no CPU counterpart"):
        build(cpu, "attention-kernels/beside-torch", cpu.facts(), by="naive", shape="long", dtype="float16")


# Rules


def test_with_counters_bytes_are_judged_and_time_is_shown() -> None:
    counted, timed = (World("C65", rows, {}, None).judged() for rows in (COUNTED, TIMED))
    assert (counted["proof"], [effect["verdict"] for effect in counted["effects"]]) == ("A", ["HOLDS", "INFO"])
    assert (timed["proof"], timed["note"]) == ("B", "no counters: inferred from time")
    assert World("C65", TIMED[:2], {}, None).judged()["verdict"] == "NOT RUN"


def test_recomputation_is_judged_where_it_was_measured() -> None:
    old, new = (World("C71", rows, {}, None).judged() for rows in (LADDER, [*LADDER, KEEPING_ROW]))
    assert [effect["name"] for effect in new["effects"]][2] == "time without recomputation over with all"
    assert (old["note"], new["note"]) == ("recomputation is the backward pass's: C70", None)
    assert old["verdict"] == new["verdict"] == "HOLDS"
    idle = World("C71", [*LADDER, replace(KEEPING_ROW, us=1000)], {}, None).judged()
    assert idle["verdict"] == "PARTLY"


def test_an_unsteady_time_is_no_measure() -> None:
    records = [row.record("attention-kernels") for row in LADDER]
    records[0].samples.gpu_ns = [round(1e6 * (0.7 + 0.06 * place)) for place in range(11)]
    suites = {"attention-kernels": SUITES["attention-kernels"]}
    (found,) = claims.in_run(make_run(records), [STATEMENTS["C71"]], suites)
    assert found["verdict"] == "INVALID"


def test_what_ours_is_worth_beside_torchs_is_told_and_not_judged() -> None:
    found = World("C71", LADDER + BESIDE, {}, None).judged()
    effects = [effect for effect in found["effects"] if "ours" in effect["name"]]
    told = {effect["name"]: (effect["value"], effect["verdict"]) for effect in effects}
    assert told == {
        "time of torch's naive over ours": (pytest.approx(2.0), "INFO"),
        "time of torch's flash over ours": (pytest.approx(0.6), "INFO"),
    }
    assert found["verdict"] == "HOLDS"
