"""The suite fusion without a GPU: its kernels in the emulator, torch's ways on the CPU, dropout, and its rules."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from typing import Any

import pytest
import torch
from builders import CPU
from machine import BENCHMARKS, build, emulated, globals_of, judged, on_cpu
from worlds import World
from worlds.fusion import CHAINS, COUNTED, LONG, MODELS, SINES, kernels

from gpubench import check, stats
from gpubench.errors import Skip, WrongResult

GLOBALS = globals_of("fusion/chain")
SMALL: dict[str, dict[str, Any]] = {
    "chain": {"k": 3, "n": 1000},
    "sin2-cos2": {"n": 1000},
    "cos-cos": {"n": 1000},
    "gelu": {"n": 1000, "dtype": "float32"},
    "layer-norm": {"rows": 5, "width": 100, "dtype": "float32"},
    "bias-residual-dropout": {"rows": 100, "width": 101, "dtype": "float32"},
    "mlp": {"rows": 3, "width": 8, "dtype": "float32"},
    "matmul": {"n": 16, "dtype": "float32"},
}


def by_torch(cpu: Any, name: str, by: str = "eager", **params: Any) -> Any:
    """The workload of a row after one call, checked as a runner would."""
    workload = build(cpu, f"fusion/{name}", by=by, **SMALL[name] | params)
    returned = workload.call()
    check.judge(cpu.compare(returned, workload.reference()), workload)
    return workload


def test_every_benchmark_has_its_small_row() -> None:
    assert {f"fusion/{name}" for name in SMALL} == {path for path in BENCHMARKS if path.startswith("fusion/")}


@pytest.mark.parametrize("name", SMALL)
def test_eager_is_right_in_float32(cpu: Any, name: str) -> None:
    by_torch(cpu, name)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", [name for name in SMALL if "dtype" in SMALL[name]])
def test_eager_is_right_in_sixteen_bits(cpu: Any, name: str, dtype: str) -> None:
    by_torch(cpu, name, dtype=dtype)


@pytest.mark.parametrize("name", ["gelu", "layer-norm", "mlp"])
def test_a_result_one_part_in_a_hundred_thousand_off_is_wrong(cpu: Any, name: str) -> None:
    workload = build(cpu, f"fusion/{name}", by="eager", **SMALL[name])
    with pytest.raises(WrongResult):
        check.judge(cpu.compare(workload.call() * (1 + 1e-5), workload.reference()), workload)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.2, 1.0])
def test_dropout_of_another_share_is_wrong(cpu: Any, monkeypatch: pytest.MonkeyPatch, share: float, dtype: str) -> None:
    def dropped(x: Any, bias: Any, residual: Any) -> Any:
        return residual + torch.nn.functional.dropout(x + bias, share)

    monkeypatch.setitem(GLOBALS, "dropped", dropped)
    with pytest.raises(WrongResult):
        by_torch(cpu, "bias-residual-dropout", dtype=dtype)


def test_dropout_that_does_not_scale_is_wrong(cpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def dropped(x: Any, bias: Any, residual: Any) -> Any:
        return residual + torch.nn.functional.dropout(x + bias, 0.1) * 0.9

    monkeypatch.setitem(GLOBALS, "dropped", dropped)
    with pytest.raises(WrongResult):
        by_torch(cpu, "bias-residual-dropout")


@pytest.mark.parametrize("n", [4, 1000, 1024, 4100])
@pytest.mark.parametrize(("name", "more"), [("chain", {"k": 1}), ("chain", {"k": 16}), ("sin2-cos2", {})])
def test_a_kernel_and_its_analogue(cpu: Any, name: str, more: dict[str, int], n: int) -> None:
    path = f"fusion/{name}"
    workload = build(cpu, path, by="kernel", n=n, **more)
    cpu.poison(workload.output)
    emulated(path, workload)
    judged(cpu, workload)
    if shutil.which("g++"):
        cpu.poison(workload.output)
        on_cpu(cpu, path, workload)
        judged(cpu, workload)


def test_a_kernel_takes_whole_fours_and_the_lengths_it_is_compiled_for(cpu: Any) -> None:
    with pytest.raises(Skip, match="1001 are not whole 4s"):
        build(cpu, "fusion/sin2-cos2", by="kernel", n=1001)
    with pytest.raises(Skip, match="compiled for k of 1, 2, 3, 4, 6, 8, 16"):
        build(cpu, "fusion/chain", by="kernel", n=8, k=5)


def test_bytes_are_those_of_the_fused_form_and_predictions_those_of_the_way(cpu: Any) -> None:
    eager, compiled = (build(cpu, "fusion/chain", by=by, k=6, n=1000) for by in ("eager", "compiled"))
    assert (eager.bytes, compiled.bytes, eager.flops) == (8000, 8000, 6000)
    assert (eager.prediction["moved_bytes"], compiled.prediction["moved_bytes"]) == (48000, 8000)
    ended = build(cpu, "fusion/bias-residual-dropout", by="compiled", rows=10, width=10, dtype="float32")
    assert (ended.bytes, ended.prediction["passes"]) == (4 * (3 * 100 + 10), 3)
    angles = GLOBALS["angles"](cpu, 100_000)
    assert float(angles.abs().max()) <= math.pi + 1e-6


@pytest.fixture
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "DRAWS", 40)


@pytest.mark.usefixtures("_few_draws")
class TestRules:
    """What the made-up machines of tests/worlds do not say."""

    def changed(self, rows: list[Any], words: str, **fields: Any) -> list[Any]:
        assert any(row.words == words for row in rows)
        return [replace(row, fields=fields) if row.words == words else row for row in rows]

    @pytest.mark.parametrize("count", [4, 6])
    def test_another_number_of_kernels_is_not_five(self, count: int) -> None:
        rows = self.changed(SINES, f"sin2-cos2 by=eager {LONG}", **kernels(count)["fields"])
        assert World("C41", rows, {}, None).judged()["verdict"] == "ABSENT"

    def test_a_cosine_of_two_kernels_is_no_evidence(self) -> None:
        rows = self.changed(SINES, "cos-cos by=one n=67108864", **kernels(2)["fields"])
        assert World("C41", rows, {}, None).judged()["verdict"] == "INVALID"

    def test_a_timer_that_saw_no_kernels_settles_nothing(self) -> None:
        rows = self.changed(SINES, f"sin2-cos2 by=eager {LONG}")
        assert World("C41", rows, {}, None).judged()["verdict"] == "NOT RUN"

    def test_without_counters_bytes_are_inferred(self) -> None:
        for claim in ("C41", "C42"):
            found = World(claim, SINES, {}, None).judged()
            assert (found["verdict"], found["proof"]) == ("HOLDS", "B")
            assert "no counters" in found["note"]

    def test_counters_of_short_streams_are_not_judged(self) -> None:
        short = [replace(row, words=row.words.replace(LONG, "n=67108864")) for row in COUNTED]
        assert World("C41", short, {}, None).judged()["proof"] == "B"

    def test_break_even_is_told_and_what_came_from_a_cache_is_said(self) -> None:
        effects = {effect["name"]: effect for effect in World("C43", MODELS, {}, None).judged()["effects"]}
        assert effects["gelu, calls that save as much"]["value"] == pytest.approx(3e9 / 830e3, rel=1e-3)
        cached = World("C43", MODELS, {}, None).judged({"gelu by=compiled n=4096": {"compile_cached": 1.0}})
        assert "gelu, first call (found compiled on disk)" in {effect["name"] for effect in cached["effects"]}

    def test_a_cpu_has_loops_and_no_kernels(self) -> None:
        written = [
            replace(row, metrics={"kernels_written": 1.0}) if "sin2-cos2 by=compiled" in row.words else row
            for row in SINES
        ]
        judged = {claim: World(claim, rows, {}, None, device=CPU).judged() for claim, rows in
                  {"C40": CHAINS, "C41": SINES, "C42": written, "C43": MODELS}.items()}  # fmt: skip
        assert {claim: found["verdict"] for claim, found in judged.items()} == {
            "C40": "HOLDS", "C41": "NOT TESTABLE HERE", "C42": "HOLDS", "C43": "HOLDS",
        }  # fmt: skip
