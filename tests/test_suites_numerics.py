"""The suite numerics without a GPU: kernels in the emulator, everything else for real, with the lecture's constants."""

from __future__ import annotations

import math
from typing import Any

import pytest
from builders import CPU, make_record, make_run
from machine import BENCHMARKS, FOLDER, GPU, LIBRARY, SUITES, build, doubles, emulated, globals_of, judged, on_cpu

from gpubench import check
from gpubench.claims import judge as claims
from gpubench.errors import Unsupported, WrongResult
from gpubench.result import Metric, Record
from gpubench.workload import Kernel, Workload

SUITE = SUITES["numerics"]
GLOBALS = globals_of("numerics/accumulate")
STOPS = {"float16": 2048, "bfloat16": 256, "float32": 2**24}


def called(cpu: Any, path: str, workload: Workload) -> Any:
    """The output of one call, from a poisoned buffer, after it was judged."""
    if workload.output is not None:
        cpu.poison(workload.output)
    if isinstance(workload.run, Kernel):
        on_cpu(cpu, path, workload)
        output = workload.output
    else:
        returned = workload.call()
        output = returned if workload.output is None else workload.output
    check.judge(cpu.compare(output, workload.reference()), workload)
    return output


def figures(workload: Workload) -> dict[str, float]:
    assert workload.metrics is not None
    return {metric.name: metric.value for metric in workload.metrics()}


def measured(cpu: Any, path: str, **params: Any) -> dict[str, float]:
    """What a row finds on this CPU."""
    workload = build(cpu, path, cpu.facts(), **params)
    called(cpu, path, workload)
    return figures(workload)


@pytest.mark.parametrize("dtype", STOPS)
def test_a_sum_of_ones_stops_in_the_kernel(cpu: Any, dtype: str) -> None:
    workload = build(cpu, "numerics/accumulate", dtype=dtype)
    cpu.poison(workload.output)
    emulated("numerics/accumulate", workload)
    judged(cpu, workload)
    assert figures(workload)["stalls_at"] == STOPS[dtype] == workload.prediction["stalls_at"]
    workload.output[-1] -= 1
    with pytest.raises(WrongResult):
        judged(cpu, workload)


@pytest.mark.parametrize("dtype", STOPS)
def test_a_sum_of_ones_stops_on_this_cpu(cpu: Any, dtype: str) -> None:
    found = measured(cpu, "numerics/accumulate", dtype=dtype)
    assert found == {"stalls_at": STOPS[dtype], "ulps": STOPS[dtype] / 8}


def test_a_sum_made_in_pieces() -> None:
    def of(*sums: float) -> dict[str, float]:
        return {metric.name: metric.value for metric in GLOBALS["stalled"](sums, 100, "float16")}

    assert of(100, 200, 250, 400) == {"stalls_at": 250, "ulps": (400 - 250) / 0.25}, "what follows is another sum"
    assert of(100, 200, 300, 400) == {"stalls_at": 400, "ulps": 0}
    assert math.isnan(of(100, math.nan)["stalls_at"])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("how", ["library", "in-pairs"])
def test_sums_that_do_not_stop(cpu: Any, dtype: str, how: str) -> None:
    nearest = 9984 if dtype == "bfloat16" else 10_000
    assert measured(cpu, "numerics/sum-ones", dtype=dtype, how=how, n=10_000) == {"sum": nearest}


@pytest.mark.parametrize(
    ("dtype", "overflow", "underflow", "largest"),
    [
        ("float16", math.log(65520), math.log(2.0**-25), None),
        ("bfloat16", 88.72, -92.88, None),
        ("float32", 88.722, -103.972, None),
        ("float8_e4m3", None, math.log(2.0**-10), 448),
        ("float8_e5m2", math.log(61440), math.log(2.0**-17), 57344),
    ],
)
def test_where_exp_leaves_the_range(
    cpu: Any, dtype: str, overflow: float | None, underflow: float, largest: float | None
) -> None:
    """What E4M3 does beyond its largest number differs between versions of torch."""
    found = measured(cpu, "numerics/exp-range", dtype=dtype, steps=128)
    assert found["holes"] == 0
    assert found["vanishes_at"] <= underflow <= found["nonzero_from"]
    if overflow is not None:
        assert found["finite_to"] <= overflow <= found["overflows_at"]
    if largest is not None:
        assert found["largest"] == largest


def test_a_wider_range_is_the_better_one(cpu: Any) -> None:
    workload = build(cpu, "numerics/exp-range", dtype="float16", steps=2)
    workload.call()
    better = {metric.name: metric.direction for metric in workload.metrics()}
    assert {name for name, direction in better.items() if direction == "lower"} == {
        "vanishes_at", "nonzero_from", "holes",
    }  # fmt: skip
    assert better.keys() - {"vanishes_at", "nonzero_from", "holes"} == {"finite_to", "overflows_at", "largest"}


def test_a_result_lost_within_the_range_is_found(cpu: Any) -> None:
    workload = build(cpu, "numerics/exp-range", dtype="float16", steps=8)
    workload.call()
    judged(cpu, workload)
    workload.output[5] = math.inf
    assert figures(workload)["holes"] == 1
    with pytest.raises(WrongResult):
        judged(cpu, workload)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", [*GLOBALS["PLAIN"], *GLOBALS["CANCELLING"]])
def test_operations_in_sixteen_bits(cpu: Any, op: str, dtype: str) -> None:
    found = measured(cpu, "numerics/pointwise-error", op=op, dtype=dtype, n=4096)
    exact = op == "relu"
    assert found["ulps_of_rms"] <= found["ulps"]
    assert found["ulps_of_rms"] == 0 if exact else 0.3 < found["ulps_of_rms"] < 0.51, "it is rounded once"


@pytest.mark.parametrize("arithmetic", ["float32", "bfloat16", "float16"])
def test_the_error_of_products(cpu: Any, arithmetic: str) -> None:
    params = {"arithmetic": arithmetic, "k": 1024, "n": 16}
    workload = build(cpu, "numerics/matmul-error", cpu.facts(), **params)
    output = called(cpu, "numerics/matmul-error", workload)
    (error,) = figures(workload).values()
    rounded = workload.prediction["output"]
    assert 0.8 * rounded < error <= 1.3 * workload.prediction["error"]
    assert workload.flops == 2 * 16 * 16 * 1024
    assert workload.bytes == 2 * 16 * 1024 * output.element_size() + 256 * output.element_size()
    output *= 2
    assert figures(workload)["error"] == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("arithmetic", ["float32", "bfloat16", "float16"])
def test_products_of_ones_are_exact(cpu: Any, arithmetic: str) -> None:
    assert measured(cpu, "numerics/ones-product", arithmetic=arithmetic, k=4096, n=8) == {"largest_error": 0}


def test_how_each_product_is_computed(cpu: Any) -> None:
    """On a device that says it is a GPU: modes and accumulators, without a call."""
    wanted = {
        "float32": ("fp32-sums", "float32", "float32"), "tf32": ("tf32", "float32", "tf32"),
        "bfloat16": ("fp32-sums", "float32", "bfloat16"), "float16": ("fp32-sums", "float32", "float16"),
        "float16-fp32-out": ("fp32-sums", "tensor-float32", "float16"),
        "float16-fp16-accum": ("fp16-sums", "float16", None),
    }  # fmt: skip
    for arithmetic, (precision, accumulate, dtype) in wanted.items():
        workload = build(cpu, "numerics/matmul-error", GPU, arithmetic=arithmetic, k=64, n=16)
        assert (workload.precision, workload.accumulate, workload.dtype) == (precision, accumulate, dtype)
        assert workload.prediction["error"] > 0
    assert set(GLOBALS["ARITHMETIC"]) - set(wanted) == {"float8_e4m3", "float8_e4m3-fast-accum"}


def test_products_in_float8(cpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(
        torch, "_scaled_mm", lambda a, b, *, out, **how: (seen.append(how), out.copy_(a.float() @ b.float()))
    )
    for arithmetic in ("float8_e4m3", "float8_e4m3-fast-accum"):
        workload = build(cpu, "numerics/matmul-error", GPU, arithmetic=arithmetic, k=64, n=16)
        called(cpu, "numerics/matmul-error", workload)
        assert (workload.accumulate, workload.output.dtype) == ("tensor-float8", torch.float32)
    assert [how["use_fast_accum"] for how in seen] == [False, True]
    with pytest.raises(Unsupported, match="multiples of 16, not 16 and 65"):
        build(cpu, "numerics/matmul-error", GPU, arithmetic="float8_e4m3", k=65, n=16)


@pytest.mark.parametrize("arithmetic", ["float16-fp32-out", "float8_e4m3"])
def test_what_a_cpu_has_no_arithmetic_for(cpu: Any, arithmetic: str) -> None:
    with pytest.raises(Unsupported, match=r"on a GPU only|compute capability 8\.9"):
        build(cpu, "numerics/matmul-error", cpu.facts(), arithmetic=arithmetic, k=16, n=16)


def test_a_cpu_has_no_sums_in_float16(cpu: Any) -> None:
    workload = build(cpu, "numerics/matmul-error", cpu.facts(), arithmetic="float16-fp16-accum", k=16, n=16)
    with pytest.raises(Unsupported, match="a CPU has no fp16-sums"), cpu.precision(workload.precision):
        raise AssertionError("unreachable")


def test_tolerances_of_accumulators() -> None:
    """An accumulator that cuts off is allowed what adds up with K; one that rounds, what adds up with its root."""
    eps = 2.0**-23
    assert check.tolerance(eps, 65536, "float32") == 2 * eps + 512 * eps
    assert check.tolerance(eps, 65536, "tensor-float32") == 2 * eps + 512 * eps + 8192 * eps
    assert check.tolerance(eps, 4096, "tensor-float8") == 2 * eps + 128 * 2.0**-13
    assert check.tolerance(2.0**-10, 16384, "float16", "fp16-sums") == 2.0**-9 + 0.25


def record(cpu: Any, path: str, params: dict[str, Any]) -> Record:
    """A row with what it finds here, and a made-up time."""
    made = make_record("numerics", path.split("/")[1], params=params, time_ns=10**6)
    made.metrics += [Metric(name, value, "1", "lower") for name, value in measured(cpu, path, **params).items()]
    return made


def test_this_cpu_has_the_lectures_constants(cpu: Any) -> None:
    """The rules on the rows that `gpubench run numerics` has here, of fewer numbers where there may be."""
    records = [
        record(cpu, path, params | ({"n": 1024} if path == "numerics/pointwise-error" else {}))
        for path, bench in BENCHMARKS.items()
        if bench.suite == "numerics" and path != "numerics/matmul-error"
        for params in bench.cases("cpu")
    ]
    found = claims.in_run(make_run(records, device=CPU), LIBRARY.claims().values(), {"numerics": SUITE})
    assert {claim["id"]: (claim["verdict"], claim["proof"]) for claim in found} == {
        "C36": ("NOT TESTABLE HERE", None), "C37": ("HOLDS", "A"), "C38": ("HOLDS", "A"), "C39": ("HOLDS", "A"),
    }  # fmt: skip


@pytest.mark.parametrize(
    "change", [{"finite_to": 88.7, "overflows_at": 88.71}, {"finite_to": 11.0, "overflows_at": 11.01}]
)
def test_an_end_a_step_away_is_not_where_it_should_be(change: dict[str, float]) -> None:
    from worlds import World
    from worlds.numerics import ENDS

    found = World("C39", ENDS, {}, None).judged({"exp-range dtype=float16 steps=128": change})
    assert found["verdict"] == "PARTLY"
    assert "overflow of exp in FP16" in found["reason"]


@pytest.mark.parametrize(("kind", "quick", "most"), [("cuda", False, 80), ("cuda", True, 55), ("cpu", False, 50)])
def test_the_suite_is_a_matter_of_seconds(kind: str, quick: bool, most: int) -> None:
    rows = [case for bench in SUITE.benchmarks.values() for case in bench.cases(kind, quick)]
    assert 20 <= len(rows) <= most


def test_every_row_is_measured_hot() -> None:
    for bench in SUITE.benchmarks.values():
        assert [each.cache for each in bench.conditions_of("cuda", False, {}, {})] == ["hot"]


def test_the_formats_of_the_kernel_are_those_of_its_sources() -> None:
    text = (FOLDER / "include" / "narrow.cuh").read_text()
    for name in GLOBALS["NUMBERS"].values():
        assert name == "float" or f"struct {name} " in text


def test_outputs_are_finite_in_the_middle(cpu: Any) -> None:
    workload = build(cpu, "numerics/exp-range", dtype="float8_e4m3", steps=16)
    workload.call()
    assert (doubles(workload.output) > 0).all()
