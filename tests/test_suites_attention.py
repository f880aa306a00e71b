"""The suite attention without a GPU: its rows on a CPU, what is refused or does not fit, and its rules."""

from __future__ import annotations

from typing import Any

import pytest
from builders import CPU, make_record, make_run
from builders import GPU as H200
from machine import BENCHMARKS, GPU, SUITES, build, globals_of
from worlds import LIBRARY, STATEMENTS, World
from worlds.attention import COUNTED, LENGTHS, MEMORY, TIMED, errors, lengths

from gpubench import Metric, check
from gpubench.claims import judge as claims
from gpubench.errors import Skip, Unsupported, WrongResult
from gpubench.model.attention_traffic import Shape
from gpubench.plan import cases, select
from gpubench.result import Check, KernelSeen
from gpubench.workload import Workload

SMALL = {"n": 32, "tokens": 64, "heads": 4, "kv_heads": 2, "d": 8, "causal": "yes", "dtype": "float32"}
POINTS: list[tuple[str, dict[str, Any]]] = [
    *[(f"attention/{name}", {**SMALL, "by": by}) for name in ("forward", "forward-backward")
      for by in ("naive", "naive-separate", "naive-masked", "flash", "math")],
    *[("attention/shapes", {"by": by, "shape": shape, "n": 16, "dtype": "float32"})
      for by in ("naive", "flash") for shape in ("d64", "causal", "d128", "d128-causal", "gqa", "gqa-causal")],
    *[("attention/exactness", {"by": by, "greatest": greatest, "heads": 1, "n": 130, "dtype": dtype})
      for by in ("naive", "tiled", "flash") for greatest in ("anywhere", "last") for dtype in ("float32", "bfloat16")],
]  # fmt: skip


def on_cpu(cpu: Any, path: str, **params: Any) -> Workload:
    return build(cpu, path, cpu.facts(), **params)


@pytest.mark.parametrize(("path", "params"), POINTS)
def test_a_row_is_right_and_a_wrong_one_is_found(cpu: Any, path: str, params: dict[str, Any]) -> None:
    workload = on_cpu(cpu, path, **params)
    made = workload.call()
    made = tuple(made) if isinstance(made, tuple) else (made,)  # type: ignore[arg-type]
    assert not any(tensor.requires_grad for tensor in made)
    wanted = workload.reference()
    check.judge(cpu.compare(made, wanted), workload)
    wrong = [tensor.clone() for tensor in made]
    wrong[-1][-1, -1, -1, -1] += 1
    with pytest.raises(WrongResult):
        check.judge(cpu.compare(wrong, wanted), workload)


def test_both_passes_give_all_gradients_and_say_what_is_kept(cpu: Any) -> None:
    workload = on_cpu(cpu, "attention/forward-backward", **SMALL, by="naive-separate")
    out, dq, dk, dv = workload.call()  # type: ignore[misc]
    assert (out.shape, dk.shape) == (dq.shape, dv.shape) == ((2, 4, 32, 8), (2, 2, 32, 8))
    assert workload.metrics is not None
    (kept,) = workload.metrics()
    assert (kept.name, kept.value) == ("kept_bytes", 4 * 2 * 4 * 32 * 32 + 32 * 32)  # weights, and the mask
    assert workload.flops == 3.5 * 4 * 2 * 4 * 32 * 32 * 8 / 2
    assert workload.bytes == 3 * 4 * (2 * 2 * 4 * 32 * 8 + 2 * 2 * 2 * 32 * 8)


def test_every_way_of_a_shape_is_held_against_the_same_flops_and_bytes(cpu: Any) -> None:
    made = [on_cpu(cpu, "attention/forward", **SMALL, by=by) for by in ("naive", "naive-masked", "flash", "math")]
    assert len({(workload.flops, workload.bytes) for workload in made}) == 1
    assert [workload.labels["ran"] for workload in made] == ["eager steps", "eager steps", "flash for CPU", "math"]


@pytest.mark.parametrize("by", ["cudnn", "efficient"])
def test_what_torch_does_not_run_is_unsupported(cpu: Any, by: str) -> None:
    with pytest.raises(Unsupported, match=by):
        on_cpu(cpu, "attention/forward", **SMALL, by=by)


class Full:
    """A GPU with a given number of bytes left."""

    kind = "cuda"

    def __init__(self, free: int) -> None:
        self.free = free

    def free_bytes(self) -> int:
        return self.free

    def facts(self) -> dict[str, Any]:
        return dict(GPU)

    def random(self, *args: Any, **options: Any) -> Any:
        raise AssertionError("something was allocated")


@pytest.mark.parametrize(
    ("by", "passes", "needs"),
    [("naive", "both", "9.66"), ("naive-separate", "forward", "4.83"), ("flash", "both", "1.61")],
)
def test_what_does_not_fit_is_skipped_before_anything_is_allocated(by: str, passes: str, needs: str) -> None:
    with pytest.raises(Skip, match=f"^needs {needs} GB, free 1 GB$"):
        BENCHMARKS["attention/gpt2-medium"].function(Full(10**9), by=by, passes=passes)


def test_what_is_no_sequence_and_what_takes_a_cpu_too_long_is_skipped(cpu: Any) -> None:
    for changed, words in (({"n": 33}, "64 positions"), ({"kv_heads": 3}, "4 heads of Q")):
        with pytest.raises(Skip, match=words):
            on_cpu(cpu, "attention/forward", **SMALL | changed, by="naive")
    for path, more in (("gpt2-medium", {"passes": "both"}), ("one-tile", {})):
        with pytest.raises(Skip, match="many seconds"):
            on_cpu(cpu, f"attention/{path}", by="flash", **more)
    old = cpu.facts() | {"isa": ["avx2"]}
    with pytest.raises(Skip, match="no instructions for bfloat16"):
        build(cpu, "attention/shapes", old, by="naive", shape="d64", n=512, dtype="bfloat16")
    small = build(cpu, "attention/shapes", old, by="naive", shape="d64", n=16, dtype="bfloat16")
    assert small.labels == {"ran": "eager steps", "arithmetic": "emulated"}


def test_the_lecture_s_rows_are_what_they_say(cpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    known = globals_of("attention/gpt2-medium")
    assert known["LECTURE"] == Shape(64, 16, 16, 1024, 64)
    assert known["ONE_TILE"].scores == known["ONE_TILE"].queries == known["LECTURE"].queries
    monkeypatch.setitem(known, "LECTURE", Shape(2, 4, 4, 32, 8))
    monkeypatch.setitem(known, "ONE_TILE", Shape(4, 4, 4, 8, 8))
    for path, more in (("gpt2-medium", {"passes": "both"}), ("one-tile", {})):
        workload = build(cpu, f"attention/{path}", by="naive-separate", **more)
        check.judge(cpu.compare(workload.call(), workload.reference()), workload)
        assert workload.dtype == "float16"
        assert workload.prediction["passes"] == 18
        assert ("control" in workload.labels) == (path == "one-tile")


def test_its_rows_are_a_matter_of_a_minute() -> None:
    rows = {kind: [case for bench in SUITES["attention"].benchmarks.values() for case in bench.cases(kind)]
            for kind in ("cuda", "cpu")}  # fmt: skip
    assert len(rows["cuda"]) <= 110
    assert len(rows["cpu"]) <= 50
    swept = {case["n"] for case in BENCHMARKS["attention/forward"].cases("cuda")}
    assert (min(swept), max(swept)) == (512, 16384)


def test_without_rescaling_the_row_by_tiles_tells_a_large_error(cpu: Any) -> None:
    workload = on_cpu(cpu, "attention/exactness", by="tiled", greatest="last", heads=1, n=256, dtype="bfloat16")
    assert workload.metrics is not None
    (wrong,) = workload.metrics()
    assert wrong.value > globals_of("attention/exactness")["WRONG"]
    right = cpu.compare(workload.call(), workload.reference())
    assert right.error_norm / right.reference_norm < 0.01


# Rules


def test_the_example_names_the_kernels_that_move_more_than_they_must() -> None:
    found = World("C64", COUNTED, {}, None).judged()
    ratios = {effect["name"]: effect["value"] for effect in found["effects"] if "compulsory" in effect["name"]}
    assert ratios == {
        "bytes counted over compulsory, Q·Kᵀ": pytest.approx(1.5), "bytes counted over compulsory, scale": 1.0,
        "bytes counted over compulsory, softmax": 1.0,
    }  # fmt: skip
    assert found["note"] == "Q·Kᵀ 1.50: nvjet_hsh_128x128 grid [8, 8, 1024], L2 4.29 GB and 2.15 GB"
    assert World("C64", TIMED, {}, None).judged()["note"] == "no counters: bytes are not judged"


def test_too_many_bytes_are_partly() -> None:
    more = World("C64", COUNTED, {}, None).judged({COUNTED[1].words: {"dram_bytes_read": 4.5e9}})
    assert more["verdict"] == "PARTLY"
    assert "bytes of flash" in more["reason"]


def test_without_counters_errors_alone_are_judged() -> None:
    timed = World("C63", errors() + lengths(False, {"naive": 1, "flash": 0}), {}, None)
    assert timed.judged()["note"] == "no counters: bytes are not judged"
    counted = World("C63", errors() + lengths(True, {"naive": 1, "flash": 0}), {}, None).judged()
    slopes = {effect["name"]: effect["value"] for effect in counted["effects"] if "slope" in effect["name"]}
    assert slopes == {
        "slope of bytes over the length, naive": pytest.approx(2),
        "slope of bytes over the length, flash": pytest.approx(1),
    }  # fmt: skip
    reads = {row.words: {"l2_sectors_read": row.counters["dram_bytes_read"] * int(row.words.split("n=")[1])}
             for row in lengths(True, {"flash": 0})}  # fmt: skip
    from_l2 = World("C63", errors() + lengths(True, {"naive": 1, "flash": 0}), {}, None).judged(reads)
    assert {"slope of bytes read from the L2, flash": pytest.approx(2)}.items() <= {
        effect["name"]: effect["value"] for effect in from_l2["effects"]
    }.items()
    assert not World("C63", errors(), {}, None, device=CPU).judged()["note"].startswith("no counters")


def test_a_row_without_peak_memory_leaves_that_slope_out() -> None:
    silent = [type(row)(row.words, row.us, row.metrics) for row in MEMORY]
    found = World("C70", silent, {}, None, device=CPU).judged()
    assert (found["verdict"], len(found["effects"]), len(found["control"])) == ("HOLDS", 1, 1)
    two = [row for row in silent if row.words.endswith(tuple(f"n={n}" for n in LENGTHS[:2]))]
    assert World("C70", two, {}, None).judged()["verdict"] == "NOT RUN"


def test_the_plan_gives_every_rule_the_rows_it_reads() -> None:
    """Rows of a millisecond for every case on a GPU: whatever the verdicts, no row is missing."""
    records = []
    for case in cases(select(["lecture-attention"], LIBRARY), "cuda", False, {}):
        record = make_record(case.suite, case.benchmark, params=dict(case.params), time_ns=10**6, nbytes=1)
        record.check, record.telemetry = Check(1e-3, 1.0, 1e-3, 10.0, 4, "float64"), {"peak_bytes": 10**9}
        record.kernels = [KernelSeen("nvjet")]
        record.metrics += [Metric(name, 0.5, "1", "none") for name in ("kept_bytes", "error_without_rescaling")]
        records.append(record)
    found = {each["id"]: each for each in claims.in_run(make_run(records, device=H200), STATEMENTS.values(), SUITES)}
    assert found.keys() == {"C61", "C63", "C64", "C65", "C68", "C69", "C70", "C71"}
    assert {each["verdict"] for each in found.values()}.isdisjoint({"NOT RUN", "NOT TESTABLE HERE"})
    assert not [each["reason"] for each in found.values() if "the rule failed" in (each["reason"] or "")]
