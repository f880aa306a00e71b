"""The suite softmax without a GPU: its kernels in the emulator, its analogues on the CPU, on rows that are hard."""

from __future__ import annotations

import itertools
import math
import shutil
from pathlib import Path
from typing import Any

import emulator
import numpy as np
import pytest
from builders import CPU
from machine import FOLDER, GPU, build, doubles, emulated, globals_of, judged, on_cpu
from worlds import Row, World
from worlds.softmax import PASSES

from gpubench.errors import Skip, WrongResult
from gpubench.model import softmax as model
from gpubench.workload import Kernel

GLOBALS = globals_of("softmax/passes")
SIZES = [1, 2, 3, 63, 257, 1000, 1025]
KERNELS = ["three-pass", "online", "cached"]
INF = math.inf


def hard_rows(v: int) -> dict[str, np.ndarray]:
    """Rows of v elements by what is hard about them."""
    plain = np.random.default_rng(v).normal(size=v).astype(np.float32)
    at = np.arange(v)
    return {
        "large": plain + np.float32(1e4),
        "negative": plain - np.float32(1e4),
        "wide": 30 * plain,
        "greatest last": np.where(at == v - 1, 50, plain),
        "greatest first": np.where(at == 0, 50, plain),
        "rising": at.astype(np.float32),
        "begins with -inf": np.where(at < v - 2, -INF, plain),
        "one above -inf": np.where(at == v // 2, 0, -INF),
        "least finite": np.full(v, -3.4028235e38),
    }


def exactly(rows: np.ndarray) -> np.ndarray:
    rows = rows.astype(np.float64)
    shares = np.exp(rows - rows.max(1, keepdims=True))
    return np.asarray(shares / shares.sum(1, keepdims=True))


def run(cpu: Any, path: str, workload: Any, by_analogue: bool) -> None:
    """All launches of a workload, by the kernels' own text or by their analogues, from a poisoned output."""
    cpu.poison(workload.output)
    if not by_analogue:
        emulated(path, workload)
        return
    for kernel in workload.run if isinstance(workload.run, tuple) else (workload.run,):
        workload.run = kernel
        on_cpu(cpu, path, workload)


@pytest.mark.parametrize("v", SIZES)
@pytest.mark.parametrize("by", KERNELS)
def test_every_way_is_right_at_any_length_wherever_a_row_begins(cpu: Any, by: str, v: int) -> None:
    workload = build(cpu, "softmax/passes", by=by, v=v, rows=5)
    run(cpu, "softmax/passes", workload, by_analogue=False)
    judged(cpu, workload)
    assert workload.bytes == 2 * 5 * v * 4
    if by != "cached":
        run(cpu, "softmax/passes", workload, by_analogue=True)
        judged(cpu, workload)


@pytest.mark.parametrize("by", KERNELS)
def test_a_row_that_is_long_and_odd(cpu: Any, by: str) -> None:
    v = 20_003 if by == "cached" else 100_003
    workload = build(cpu, "softmax/passes", by=by, v=v, rows=2)
    run(cpu, "softmax/passes", workload, by_analogue=False)
    judged(cpu, workload)


@pytest.mark.parametrize("v", [3, 63, 1025])
@pytest.mark.parametrize("by", KERNELS)
def test_rows_that_are_hard(cpu: Any, by: str, v: int) -> None:
    hard = hard_rows(v)
    workload = build(cpu, "softmax/passes", by=by, v=v, rows=len(hard))
    x = np.asarray(workload.run.args[0])
    x[:] = np.stack(list(hard.values()))
    for by_analogue in (False, True) if by != "cached" else (False,):
        run(cpu, "softmax/passes", workload, by_analogue)
        for name, found, right in zip(hard, doubles(workload.output), exactly(x), strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-30, err_msg=name)


@pytest.mark.parametrize("bad", [-INF, INF, math.nan])
@pytest.mark.parametrize("by", KERNELS)
def test_what_has_no_softmax_is_nan_as_torchs_is(cpu: Any, by: str, bad: float) -> None:
    """A row of nothing but -inf, one with an infinity, one with a NaN; the rows beside it stay as they are."""
    import torch

    workload = build(cpu, "softmax/passes", by=by, v=70, rows=3)
    x = workload.run.args[0]
    x[1, slice(None) if bad == -INF else 5] = bad
    assert torch.softmax(x, 1)[1].isnan().all()
    for by_analogue in (False, True) if by != "cached" else (False,):
        run(cpu, "softmax/passes", workload, by_analogue)
        assert np.isnan(doubles(workload.output)).all(1).tolist() == [False, True, False]


@pytest.mark.parametrize("v", [5, 6, 63, 1025, 3001])
@pytest.mark.parametrize("by", ["fused", "unfused"])
@pytest.mark.parametrize("by_analogue", [False, True])
def test_the_five_greatest_and_their_places(cpu: Any, by: str, v: int, by_analogue: bool) -> None:
    workload = build(cpu, "softmax/top", by=by, v=v, rows=3)
    kernel = workload.run if by == "fused" else workload.run[0]
    x, places = kernel.args[0], (workload.run if by == "fused" else workload.run[1]).args[2]
    places.fill_(2**40)
    run(cpu, "softmax/top", workload, by_analogue)
    judged(cpu, workload)
    assert places.tolist() == x.topk(5, 1).indices.tolist()
    places[1, 2] = (places[1, 2] + 1) % v
    with pytest.raises(WrongResult):
        judged(cpu, workload)


@pytest.mark.parametrize("order", ["rising", "falling", "equal", "three above -inf"])
@pytest.mark.parametrize("by_analogue", [False, True])
def test_the_five_greatest_of_rows_that_are_hard(cpu: Any, order: str, by_analogue: bool) -> None:
    """Every element is among the greatest so far; or none but the first five; or there are fewer than five."""
    import torch

    v = 700
    workload = build(cpu, "softmax/top", by="fused", v=v, rows=2)
    x, greatest, places = workload.run.args[:3]
    ramp = torch.arange(v) / 10.0
    row = {"rising": ramp, "falling": -ramp, "equal": torch.zeros(v)}.get(order)
    x[:] = torch.where(torch.arange(v) % 300 == 7, ramp, -INF) if row is None else row
    run(cpu, "softmax/top", workload, by_analogue)
    judged(cpu, workload)
    there = 5 if row is not None else 3
    assert [len(set(each[:there])) for each in places.tolist()] == [there] * 2
    assert (greatest[:, there:].sum(), places[:, there:].sum()) == (0, -2 * (5 - there))


def test_the_library_writes_into_the_same_tensors(cpu: Any) -> None:
    workload = build(cpu, "softmax/top", cpu.facts(), by="library", v=33, rows=2)
    cpu.poison(workload.output)
    workload.call()
    judged(cpu, workload)
    workload = build(cpu, "softmax/passes", cpu.facts(), by="library", v=33, rows=2)
    cpu.poison(workload.output)
    workload.call()
    judged(cpu, workload)


def test_rows_that_a_kernel_does_not_take(cpu: Any) -> None:
    for v in (4, 2**31):
        with pytest.raises(Skip, match="the kernels take 5 to"):
            build(cpu, "softmax/top", by="fused", v=v, rows=1)
    with pytest.raises(Skip, match="no CPU counterpart of cached"):
        on_cpu(cpu, "softmax/passes", build(cpu, "softmax/passes", by="cached", v=9, rows=1))


@pytest.mark.parametrize("offset", [0, 10000])
@pytest.mark.parametrize("by", ["running", "naive"])
@pytest.mark.parametrize("by_analogue", [False, True])
def test_the_recurrence_against_the_model(cpu: Any, by: str, offset: int, by_analogue: bool) -> None:
    workload = build(cpu, "softmax/recurrence", by=by, offset=offset, n=200, trials=20)
    x, order, cuts, pairs = workload.run.args[:4]
    run(cpu, "softmax/recurrence", workload, by_analogue)
    judged(cpu, workload)
    assert workload.metrics is not None
    found = {metric.name: metric.value for metric in workload.metrics()}
    assert found["overflowed"] == workload.prediction["overflowed"] == float(by == "naive" and offset > 0)
    assert found.get("relative_error", 0) <= 1e-5
    if by == "naive":
        return
    for trial in range(20):  # the same tiles and the same merges in float64
        row, edges = x[trial, order[trial]].tolist(), cuts[trial].tolist()
        tiles = [model.carried(row[a:b]) for a, b in itertools.pairwise(edges)]
        for into, taken in pairs[trial].tolist():
            tiles[into] = model.merged(tiles[into], tiles[taken])
        assert float(workload.output[trial]) == pytest.approx(tiles[into].sum, rel=1e-5)
        assert tiles[into].maximum == max(row)


def test_trials_use_each_element_and_each_tile_once() -> None:
    order, cuts, pairs = (made.tolist() for made in GLOBALS["orders"](50, 37, "cpu"))
    assert len({tuple(each) for each in order}) == len({str(each) for each in pairs}) == 50
    for each, edges, merges in zip(order, cuts, pairs, strict=True):
        assert sorted(each) == list(range(37))
        assert (edges[0], edges[-1], edges) == (0, 37, sorted(edges))
        left = set(range(32))
        for into, taken in merges:
            assert into != taken
            assert into in left
            left.remove(taken)
        assert len(left) == 1


def test_one_element_reaches_its_whole_row_and_no_other(cpu: Any) -> None:
    workload = build(cpu, "softmax/reach", v=1000, rows=6)
    for by_analogue in (False, True):
        kernels = workload.run
        run(cpu, "softmax/reach", workload, by_analogue)
        workload.run = kernels
        judged(cpu, workload)
        assert workload.metrics is not None
        assert {metric.name: metric.value for metric in workload.metrics()} == workload.prediction
    before, after = workload.output
    before[0, 3] = after[0, 3]
    before[1, 3] += 1
    assert [metric.value for metric in workload.metrics()] == [1 - 1 / 3000, 1 / 3000]


def test_rows_under_way_are_those_the_multiprocessors_hold(cpu: Any) -> None:
    facts = GPU | {"multiprocessors": 132, "last_level_cache_bytes": 60 << 20}

    def said(v: int, by: str = "three-pass") -> dict[str, Any]:
        return dict(build(cpu, "softmax/passes", facts, by=by, v=v, rows=2000).prediction)

    held = {v: said(v)["bytes_in_flight"] // (4 * v) for v in (100, 1000, 30_000)}
    assert held == {100: 2000, 1000: 2000, 30_000: 132 * 8}
    assert said(1000)["dram_accesses"] == [2, 2]
    assert said(30_000)["dram_accesses"][1] == 4
    assert [said(1000, by)["accesses"] for by in KERNELS] == [4, 3, 2]
    few = build(cpu, "softmax/passes", facts, by="online", v=1000, rows=3).prediction
    assert few["bytes_in_flight"] == 3 * 4000
    tops = [build(cpu, "softmax/top", facts, by=by, v=5000, rows=1000).prediction for by in ("unfused", "fused")]
    assert [each["accesses"] for each in tops] == [5, 1]


@pytest.mark.parametrize(
    ("by", "from_text", "to_text"),
    [
        ("three-pass", "loose_at(row, threadIdx.x)]};", "threadIdx.x]};"),
        ("three-pass", "whole.most = greatest_of_block(whole.most, greatest);", ""),
        ("online", "row.sum *= factor;", ""),
        ("online", "    __syncthreads();\n", ""),
        ("online", "a.sum += b.sum * __expf(b.most - a.most);", "a.sum += b.sum;"),
        ("cached", "    wait_for_groups<0>();\n", ""),
    ],
)  # fmt: skip
def test_a_broken_kernel_is_found(cpu: Any, tmp_path: Path, by: str, from_text: str, to_text: str) -> None:
    """An end read twice, a maximum of one thread alone, a sum that is not rescaled, threads that do not wait."""
    workload = build(cpu, "softmax/passes", by=by, v=523, rows=4)
    assert isinstance(workload.run, Kernel)
    shutil.copytree(FOLDER / "include", tmp_path / "include")
    texts = {tmp_path / "softmax.cu": (FOLDER / "softmax.cu").read_text()}
    texts[tmp_path / "include/softmax.cuh"] = (FOLDER / "include/softmax.cuh").read_text()
    assert any(from_text in text for text in texts.values())
    for file, text in texts.items():
        file.write_text(text.replace(from_text, to_text))
    cpu.poison(workload.output)
    emulator.emulate(workload.run, tmp_path, (workload.run.name,))
    with pytest.raises(WrongResult):
        judged(cpu, workload)


def test_the_constants_of_the_suite_are_those_of_the_kernels() -> None:
    for file in ("softmax_top.cu", "softmax_top.cpp"):
        text = (FOLDER / file).read_text()
        assert f"TOP {GLOBALS['TOP']}" in text or f"TOP = {GLOBALS['TOP']};" in text
    limits = "".join((FOLDER / file).read_text() for file in ("softmax.cu", "softmax_top.cu"))
    assert limits.count(f"__launch_bounds__({GLOBALS['THREADS']})") == 4
    assert limits.count(f"__launch_bounds__({GLOBALS['CACHED_THREADS']})") == 1
    assert "Partial of_tiles[32];" in limits
    assert GLOBALS["TILES"] == 32


def test_rows_that_the_cache_holds_say_nothing_of_a_pass_less() -> None:
    rows = [Row(row.words, row.us, prediction={"dram_accesses": [2, 2]}) for row in PASSES]
    found = World("C66", rows, {}, None).judged()
    assert (found["verdict"], "no rows that the cache does not hold" in found["reason"]) == ("NOT RUN", True)
    on_cpu_too = World("C66", rows, {}, None, device=CPU).judged()
    assert (on_cpu_too["verdict"], on_cpu_too["note"]) == ("HOLDS", "on a CPU: inferred from time")
