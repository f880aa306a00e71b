"""The suite recompute without a GPU: its kernels in the emulator, their counterparts, and what torch makes of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from builders import CPU, GPU
from machine import BENCHMARKS, SUITES, build, doubles, emulated, globals_of, judged, on_cpu
from worlds import World
from worlds.recompute import CHAINS, COPY, COUNTED, STACKS, TIMED, chain, dram, sigmoid

from gpubench import Metric
from gpubench.errors import Skip, WrongResult
from gpubench.workload import Kernel, Workload

GLOBALS = globals_of("recompute/sigmoids")
CHAIN_POINTS = [
    *[("recompute/sigmoids", {"by": by, "n": n}) for by in ("saved", "recomputed") for n in (4, 2056)],
    *[
        ("recompute/chain", {"by": by, "length": length, "n": 1028})
        for by in ("saved", "recomputed")
        for length in (1, 2, 4, 8)
    ],
]
"""n: one four; two blocks and a part of a third; one and a part of another."""


def kernels(workload: Workload) -> tuple[Kernel, Kernel]:
    assert isinstance(workload.run, tuple)
    forward, backward = workload.run
    return forward, backward


def close(got: Any, wanted: Any, tolerance: float = 1e-6) -> None:
    """Each tensor by itself: the smaller one is not hidden by the larger one's norm."""
    for one, other in zip(got, wanted, strict=True):
        one, other = doubles(one.detach()), doubles(other)
        assert np.linalg.norm(one - other) <= tolerance * np.linalg.norm(other)


def by_hand(path: str, x: float, length: int) -> tuple[float, float]:
    """The end of a chain and its slope at x."""
    slope = 1.0
    for _ in range(length):
        if path == "recompute/sigmoids":
            x = 1 / (1 + math.exp(-x))
            slope *= x * (1 - x)
        else:
            x = 1 / (1 + x)
            slope *= -x * x
    return x, slope


@pytest.mark.parametrize(("path", "params"), CHAIN_POINTS)
def test_a_pair_of_kernels_in_the_emulator(cpu: Any, path: str, params: dict[str, Any]) -> None:
    workload = build(cpu, path, **params)
    cpu.poison(workload.output)
    emulated(path, workload)
    judged(cpu, workload)
    close(workload.output, workload.reference())
    workload.output[1][-1] += 1
    with pytest.raises(WrongResult):
        judged(cpu, workload)


@pytest.mark.parametrize(("path", "params"), CHAIN_POINTS)
def test_its_counterpart_on_a_cpu(cpu: Any, path: str, params: dict[str, Any]) -> None:
    workload = build(cpu, path, cpu.facts(), **params)
    cpu.poison(workload.output)
    for kernel in kernels(workload):
        cpu.launcher(kernel, BENCHMARKS[path].file).call()
    judged(cpu, workload)
    close(workload.output, workload.reference())


@pytest.mark.parametrize(("path", "length"), [("recompute/sigmoids", 3), ("recompute/chain", 4)])
def test_the_reference_is_the_chain_rule(cpu: Any, path: str, length: int) -> None:
    more = {} if path == "recompute/sigmoids" else {"length": length}
    workload = build(cpu, path, by="recomputed", n=8, **more)
    forward, backward = kernels(workload)
    x, gradient = doubles(forward.args[0]), doubles(backward.args[1])
    wanted = [by_hand(path, value, length) for value in x]
    y, slope = map(doubles, workload.reference())
    np.testing.assert_allclose(y, [end for end, _ in wanted], rtol=1e-12)
    np.testing.assert_allclose(slope, gradient * [each for _, each in wanted], rtol=1e-12)
    assert 0.2 <= np.linalg.norm(slope) / np.linalg.norm(y) <= 5, "one norm judges both"


def rows(path: str, x: Any, length: int) -> list[Any]:
    """Every result of a chain."""
    found = []
    for _ in range(length):
        x = x.sigmoid() if path == "recompute/sigmoids" else 1 / (1 + x)
        found.append(x)
    return found


@pytest.mark.parametrize(("path", "params"), [point for point in CHAIN_POINTS if point[1]["n"] > 4])
def test_each_way_reads_what_is_counted_and_no_more(cpu: Any, path: str, params: dict[str, Any]) -> None:
    """Whatever the gradient must not read is made NaN between the two kernels."""
    workload = build(cpu, path, **params)
    forward, backward = kernels(workload)
    wanted = workload.reference()
    length, n = params.get("length", 3), params["n"]
    x, results = forward.args[0], forward.args[1]
    between = rows(path, x.double(), length)[:-1]
    workload.run = (forward,)
    emulated(path, workload)
    if params["by"] == "saved":
        assert results.numel() == length * n
        read, written = 1 + max(length, 2), length + 1
        x.fill_(math.nan)
        if length > 1:
            results[-1].fill_(math.nan)
        close(results[:-1], between)
    else:
        assert results.numel() == n
        read, written = 3, 2
        results.fill_(math.nan)
    assert workload.bytes == 4 * n * (read + written)
    workload.run = (backward,)
    emulated(path, workload)
    close(workload.output[1:], wanted[1:])


def test_a_copy_is_two_passes(cpu: Any) -> None:
    workload = build(cpu, "recompute/copy", n=2056)
    cpu.poison(workload.output)
    emulated("recompute/copy", workload)
    judged(cpu, workload)
    assert workload.bytes == 8 * 2056
    cpu.poison(workload.output)
    on_cpu(cpu, "recompute/copy", workload)
    judged(cpu, workload)


def moved(call: Any) -> int:
    """Bytes that the operations of a call read and write, views apart: each tensor once for each operation."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    total = 0

    class Counting(TorchDispatchMode):
        def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            nonlocal total
            made = op(*args, **(kwargs or {}))
            if "detach" not in str(op):
                total += sum(each.nbytes for each in (*args, made) if isinstance(each, torch.Tensor))
            return made

    with Counting():
        call()
    return total


@pytest.mark.parametrize(("by", "passes"), [("eager", 15), ("checkpoint", 21)])
def test_what_autograd_moves(cpu: Any, by: str, passes: int) -> None:
    workload = build(cpu, "recompute/sigmoids", cpu.facts(), by=by, n=1000)
    y, slope = workload.call()  # type: ignore[misc]
    close((y, slope), workload.reference())
    assert not y.requires_grad
    assert workload.bytes == moved(workload.call) == 4 * 1000 * passes
    assert workload.prediction["passes"] == passes


def test_what_is_compiled(cpu: Any) -> None:
    """The chain itself goes to the device's compiler, whose figures become the row's."""

    class Compiling:
        kind = "cpu"
        figures = (Metric("compile_time", 2.0, "s", "lower"),)

        def __getattr__(self, name: str) -> Any:
            return getattr(cpu, name)

        def compile(self, function: Any) -> Any:
            assert function is GLOBALS["three"]

            class Compiled:
                metrics = staticmethod(lambda: list(self.figures))

                def __call__(self, x: Any) -> Any:
                    return function(x)

            return Compiled()

    cpu.configure("normal", 7)
    workload = BENCHMARKS["recompute/sigmoids"].function(Compiling(), by="compiled", n=64)
    close(workload.call(), workload.reference())  # type: ignore[arg-type]
    assert workload.metrics is not None
    assert [metric.name for metric in workload.metrics()] == ["compile_time"]
    assert workload.bytes == 4 * 64 * 6


def test_the_compiler_keeps_the_input_and_the_output_alone() -> None:
    """The partition that inductor gets, without its code generation: what the gradient reads beside its own input."""
    import torch

    kept: list[Any] = []
    compiled = torch.compile(GLOBALS["three"], backend="aot_eager_decomp_partition", dynamic=False, fullgraph=True)
    x = torch.randn(64, requires_grad=True)

    def pack(tensor: Any) -> Any:
        kept.append(tensor.detach().clone())
        return tensor

    try:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            y = compiled(x)
    finally:
        torch._dynamo.reset()
    assert len(kept) == 2
    assert any(torch.equal(each, x) for each in kept)
    assert any(torch.equal(each, y) for each in kept)


STACK_POINTS: list[tuple[str, dict[str, Any]]] = [
    ("recompute/products", {"m": 24, "d": 16}),
    ("recompute/block-checkpoint", {"tokens": 24, "width": 16, "depth": 3}),
]


@pytest.mark.parametrize("by", ["saved", "checkpoint"])
@pytest.mark.parametrize(("path", "params"), STACK_POINTS)
def test_a_stack_with_and_without_checkpoints(cpu: Any, path: str, params: dict[str, Any], by: str) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    workload = build(cpu, path, cpu.facts(), by=by, dtype="float32", **params)
    wanted = workload.reference()
    close(workload.call(), wanted, 2e-6)  # type: ignore[arg-type]
    assert len(wanted) == 1 + (8 if path == "recompute/products" else 6)
    with FlopCounterMode(display=False) as counter:
        workload.call()
    assert counter.get_total_flops() == workload.flops
    plain = build(cpu, path, cpu.facts(), by="saved", dtype="float32", **params)
    assert workload.flops / plain.flops == pytest.approx(workload.prediction["bound"])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize(("path", "params"), STACK_POINTS)
def test_a_stack_is_right_in_every_dtype_and_a_wrong_one_is_found(
    cpu: Any, path: str, params: dict[str, Any], dtype: str
) -> None:
    from gpubench import check

    workload = build(cpu, path, cpu.facts(), by="checkpoint", dtype=dtype, **params)
    found = [each.clone() for each in workload.call()]  # type: ignore[attr-defined]
    wanted = workload.reference()
    check.judge(cpu.compare(found, wanted), workload)
    found[2].zero_()  # the gradient of one weight is missing
    with pytest.raises(WrongResult):
        check.judge(cpu.compare(found, wanted), workload)


def test_what_cannot_be_launched_is_skipped(cpu: Any) -> None:
    with pytest.raises(Skip, match="6 are not whole 4s"):
        build(cpu, "recompute/sigmoids", by="saved", n=6)
    with pytest.raises(Skip, match="compiled for 1, 2, 4, 8 operations, not for 3"):
        build(cpu, "recompute/chain", by="saved", length=3, n=8)


def test_every_kernel_is_launched_as_it_was_declared(cpu: Any) -> None:
    seen = set()
    for name in ("sigmoids", "copy", "chain"):
        for case in BENCHMARKS[f"recompute/{name}"].cases("cuda"):
            if case.get("by") in ("saved", "recomputed", None):
                workload = build(cpu, f"recompute/{name}", **{**case, "n": 8})
                made = workload.run if isinstance(workload.run, tuple) else (workload.run,)
                seen |= {kernel.name for kernel in made if isinstance(kernel, Kernel)}
                assert workload.prediction
    assert seen == {kernel.name for kernel in SUITES["recompute"].kernels}


def test_streams_of_counted_rows_are_long() -> None:
    """A count of bytes needs streams of 2 GB and more."""
    for name in ("sigmoids", "copy"):
        assert all(8 * int(case["n"]) >= 2e9 for case in BENCHMARKS[f"recompute/{name}"].cases("cuda"))


def test_a_cpu_says_what_its_stores_read(cpu: Any) -> None:
    found = build(cpu, "recompute/sigmoids", cpu.facts(), by="saved", n=8).prediction
    assert (found["passes"], found["passes_with_allocation"]) == (8, 12)


def test_with_counters_the_other_ways_are_told() -> None:
    found = World("C44", COUNTED, {}, None).judged()
    told = {effect["name"]: effect["value"] for effect in found["effects"]}
    assert told == {
        "bytes an element, kept": 32, "bytes an element, recomputed": 20, "bytes an element, compiled": 24,
        "bytes an element, eager": 60, "bytes an element, checkpoint": 84,
    }  # fmt: skip
    assert World("C44", TIMED, {}, None).judged()["note"] == "no counters: inferred from time"
    off = World("C44", COUNTED, {}, None).judged({sigmoid("saved"): dram(34)})
    assert off["verdict"] == "ABSENT"
    part = World("C44", COUNTED, {}, None).judged({COPY: {"dram_bytes_read": 0}})
    assert part["verdict"] == "INVALID"


def test_the_prediction_knows_the_roof_and_the_special_function_units() -> None:
    device = GPU | {"multiprocessors": 132, "compute_capability": "9.0", "sm_mhz_max": 1980.0}
    found = World("C45", TIMED + CHAINS, {}, None, device=device).judged()["prediction"]
    assert found["bytes"] == pytest.approx(1.6)
    assert 1.4 < found["time"] <= 1.6


def test_a_wrong_gradient_and_a_gain_beyond_the_bytes_are_no_proof() -> None:
    from gpubench.result import Check

    def error(value: float) -> list[Any]:
        rows = [*TIMED, *CHAINS]
        rows[1] = type(rows[1])(rows[1].words, rows[1].us, fields={"check": Check(value, 1e-6, 0, 1e-5, 4, "float64")})
        return rows

    assert World("C45", error(1e-7), {}, None).judged()["verdict"] == "HOLDS"
    assert World("C45", error(2e-6), {}, None).judged()["verdict"] == "INVALID"
    assert World("C45", TIMED + CHAINS, {}, None).judged({sigmoid("saved"): 2500})["verdict"] == "PARTLY"


def test_on_a_cpu_less_gain_is_enough() -> None:
    world = World("C45", TIMED + CHAINS, {}, None, device=CPU)
    assert world.judged({sigmoid("saved"): 1500})["verdict"] == "HOLDS"
    assert World("C45", TIMED + CHAINS, {}, None).judged({sigmoid("saved"): 1500})["verdict"] == "PARTLY"
    slow = world.judged({sigmoid("recomputed"): 2000})
    assert slow["verdict"] == "NOT TESTABLE HERE"
    assert "exponentials" in slow["reason"]


def test_peak_memory_is_judged_where_it_is_known() -> None:
    found = World("C46", CHAINS + STACKS, {}, None).judged()
    assert sum(effect["name"].startswith("peak memory") for effect in found["effects"]) == 5
    more = [type(row)(row.words, row.us, fields={"telemetry": {"peak_bytes": 512}}) for row in STACKS]
    assert World("C46", CHAINS + more, {}, None).judged()["verdict"] == "PARTLY"
    silent = [type(row)(row.words, row.us) for row in (*CHAINS, *STACKS)]
    found = World("C46", silent, {}, None).judged()
    assert (found["verdict"], found["note"]) == ("HOLDS", "peak memory is not known here")
    assert (
        World("C46", silent, {}, None).judged({chain("saved", 4): 300, chain("saved", 8): 300})["verdict"] == "ABSENT"
    )


def test_a_long_chain_is_needed() -> None:
    short = [row for row in CHAINS if "length=4" not in row.words and "length=8" not in row.words]
    found = World("C46", short + STACKS, {}, None).judged()
    assert found["verdict"] == "NOT RUN"
    assert "no chain of 4 operations or more: gpubench run recompute" in found["reason"]
