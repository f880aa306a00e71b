"""Which rows are roofs, which roofs are missing, and under which key they are kept."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import make_bandwidth, make_ceilings, make_record

from gpubench import ceilings
from gpubench.discovery import Library
from gpubench.plan import Selected, cases, select
from gpubench.result import Ceiling, Conditions, Record
from gpubench.suite import Axis

WHEN = "2026-07-12T10:15:00Z"


def bandwidth(rate: float, **fields: object) -> Record:
    record = make_bandwidth("copy", rate, **fields)
    assert record.work is not None
    record.work.roof = "DRAM copy"
    return record


def peak(n: int, rate: float, dtype: str = "bfloat16", **fields: object) -> Record:
    flops = 2 * n**3
    record = make_record(
        "peak", params={"n": n, "dtype": dtype}, time_ns=round(flops / rate * 1e9), flops=flops, **fields
    )
    assert record.work is not None
    record.work.roof = f"{dtype} matmul"
    return record


def test_the_best_row_of_each_roof() -> None:
    rows = [peak(4096, 600e12), peak(8192, 700e12), bandwidth(4e12), peak(4096, 50e12, "float32")]
    found = {ceiling.name: ceiling for ceiling in ceilings.from_records(rows, WHEN)}
    assert list(found) == ["bfloat16 matmul", "DRAM copy", "float32 matmul"]
    best = found["bfloat16 matmul"]
    assert (best.kind, best.unit, best.dtype, best.level) == ("compute", "FLOP/s", "bfloat16", None)
    assert best.value == pytest.approx(700e12, rel=1e-4)
    assert best.record == rows[1].id
    assert (best.measured_at, best.source) == (WHEN, "measured")
    copy = found["DRAM copy"]
    assert (copy.kind, copy.unit, copy.dtype, copy.level) == ("bandwidth", "B/s", None, "DRAM")
    assert copy.value == pytest.approx(4e12, rel=1e-4)


@pytest.mark.parametrize(
    "fields",
    [
        {"conditions": Conditions(cache="hot")},
        {"conditions": Conditions(load="sustained")},
        {"conditions": Conditions(data="zeros")},
        {"flags": ["cache-resident"]},
        {"flags": ["noisy", "implausible"]},
        {"flags": ["below-resolution"]},
        {"status": "oom"},
        {"status": "incorrect"},
    ],
)
def test_no_roof(fields: dict[str, object]) -> None:
    assert ceilings.from_records([bandwidth(9e12, **fields), peak(8192, 900e12, **fields)], WHEN) == []


def test_uniform_data_and_noise_do_not_spoil_a_roof() -> None:
    rows = [bandwidth(4e12, conditions=Conditions(data="uniform"), flags=["noisy", "throttled"])]
    assert len(ceilings.from_records(rows, WHEN)) == 1


def test_a_row_without_a_roof_is_none() -> None:
    assert ceilings.from_records([make_bandwidth("copy", 4e12)], WHEN) == []


def test_a_roof_is_a_rate_whatever_the_headline_of_its_row() -> None:
    row = bandwidth(4e12, primary="time")
    assert ceilings.from_records([row], WHEN)[0].value == pytest.approx(4e12, rel=1e-4)


CACHE = 60 * 2**20


def stream(mib: int, ns: int, unroll: int = 4, benchmark: str = "read") -> Record:
    record = make_record(
        "bandwidth", benchmark, params={"mib": mib, "unroll": unroll}, time_ns=ns, nbytes=mib * 2**20, flops=0
    )
    assert record.work is not None
    record.work.level, record.work.roof = "DRAM", "DRAM read"
    return record


def test_a_roof_of_dram_is_the_slope_of_the_best_stream() -> None:
    """Both streams pay 5 µs to start; what that hides must not."""
    slow = [stream(2048, 500_000 + 5_000), stream(8192, 2_000_000 + 5_000)]
    fast = [stream(2048, 480_000 + 5_000, unroll=8), stream(8192, 1_920_000 + 5_000, unroll=8)]
    (roof,) = ceilings.from_records([*slow, *fast], WHEN, CACHE)
    assert roof.value == pytest.approx(6144 * 2**20 / 1_440_000e-9, rel=1e-9)
    assert (roof.record, roof.slope_from) == (fast[1].id, fast[0].id)
    assert roof.value > ceilings.from_records([*slow, *fast], WHEN)[0].value


def test_no_rate_stands_for_dram_where_there_is_a_slope() -> None:
    rows = [stream(2048, 480_000), stream(8192, 1_990_000)]
    (roof,) = ceilings.from_records(rows, WHEN, CACHE)
    assert roof.value == pytest.approx(6144 * 2**20 / 1_510_000e-9, rel=1e-9)
    assert roof.value < 2048 * 2**20 / 480_000e-9, "what the shorter one reached"
    assert ceilings.from_records(rows[::-1], WHEN, CACHE) == [roof], "in whatever order they were measured"


def test_a_stream_of_another_memory_has_no_slope() -> None:
    rows = [stream(2048, 480_000), stream(8192, 1_990_000)]
    for row in rows:
        assert row.work is not None
        row.work.level = "shared"
    assert ceilings.from_records(rows, WHEN, CACHE)[0].slope_from is None


def test_two_rows_of_one_size_make_no_slope_though_one_took_longer() -> None:
    rows = [stream(8192, 2_000_000), stream(8192, 2_100_000)]
    (roof,) = ceilings.from_records(rows, WHEN, CACHE)
    assert roof.value == pytest.approx(8192 * 2**20 / 2_000_000e-9)


def test_a_stream_just_long_enough_beside_the_cache_makes_one() -> None:
    (roof,) = ceilings.from_records([stream(960, 240_000), stream(3840, 960_000)], WHEN, CACHE)
    assert roof.slope_from is not None


def test_sizes_of_different_streams_make_no_slope() -> None:
    rows = [stream(2048, 480_000), stream(8192, 1_990_000, unroll=8), stream(8192, 1_990_000, benchmark="torch-sum")]
    (roof,) = ceilings.from_records(rows, WHEN, CACHE)
    assert roof.slope_from is None
    assert roof.record == rows[0].id


@pytest.mark.parametrize(
    ("small", "large"),
    [(959, 8192), (2048, 3839), (2048, 2048)],
    ids=["below 16 caches", "below 64 caches", "one size"],
)
def test_streams_too_short_beside_the_cache_make_no_slope(small: int, large: int) -> None:
    rows = [stream(small, small * 250), stream(large, large * 250)]
    assert ceilings.from_records(rows, WHEN, CACHE)[0].slope_from is None


def test_a_longer_stream_that_took_no_longer_makes_no_slope() -> None:
    rows = [stream(2048, 480_000), stream(8192, 480_000)]
    assert ceilings.from_records(rows, WHEN, CACHE)[0].slope_from is None


def test_winners_are_the_cases_behind_the_roofs() -> None:
    library = Library()
    measured = cases(select(["bandwidth/torch-sum", "peak/matmul"], library), "cuda")
    found = [
        Ceiling("bandwidth", "DRAM read", 1.0, "B/s", measured[1].id, WHEN, "measured", "DRAM", None, measured[0].id),
        Ceiling("compute", "bfloat16 matmul", 1.0, "FLOP/s", measured[3].id, WHEN, "measured"),
    ]
    assert ceilings.winners(found, measured) == [measured[0], measured[1], measured[3]]
    assert ceilings.winners([], measured) == []


def test_a_roof_is_its_second_measurement_unless_that_was_disturbed() -> None:
    copy, write, peak = (
        Ceiling("bandwidth", name, 100.0, "B/s", "row", WHEN, "measured", "DRAM") for name in ("copy", "write", "peak")
    )
    second = [replace(copy, value=99.5), replace(write, value=60.0)]
    assert ceilings.settled([copy, write, peak], second) == [second[0], write, peak]
    at_the_edge = [replace(copy, value=97.5), replace(write, value=96.5), replace(peak, value=101.0)]
    assert ceilings.settled([copy, write, peak], at_the_edge) == [at_the_edge[0], write, at_the_edge[2]]


def test_of_two_of_a_name_the_higher() -> None:
    low, high = make_ceilings(peak=1e12), make_ceilings(peak=2e12)
    assert ceilings.merged(low, high[2:]) == [*low[:2], high[2]]
    assert ceilings.merged(high, low[2:]) == high
    assert ceilings.merged([], []) == []


def test_the_key_holds_device_power_driver_and_torch() -> None:
    device = {"uuid": "GPU-1", "name": "NVIDIA H200", "power_limit_w": 700.0}
    software = {"driver": "580.159", "torch": "2.11"}
    assert ceilings.key(device, software) == "GPU-1, 700 W, 580.159, torch 2.11"
    assert ceilings.key(device | {"power_limit_w": 550.0}, software) != ceilings.key(device, software)
    assert ceilings.key({"name": "CPU", "threads": 2}, {"torch": "2.13"}) == "CPU, 2 threads, torch 2.13"


def test_missing_roofs_only() -> None:
    library = Library()
    planned = list(cases(select(["matmul-sweep"], library), "cuda"))

    def missing(have: list[Ceiling]) -> set[tuple[str, str, object]]:
        found = ceilings.missing(library, "cuda", planned, have)
        return {(case.suite, case.benchmark, case.params.get("dtype")) for case in found}

    matmul = ("peak", "matmul", "bfloat16")
    everything = missing([])
    assert {suite for suite, _, _ in everything} == {"bandwidth", "peak"}
    assert [row for row in everything if row[:2] == matmul[:2]] == [matmul], "in the dtypes of the plan and no other"
    have = make_ceilings()
    assert missing(have) == set()
    assert missing(have[:2]) == {matmul}
    assert missing(have[2:]) == everything - {matmul}


def test_what_is_measured_again_is_cold_and_in_bursts() -> None:
    library = Library()
    from gpubench.params import parse_params

    chosen = select(["peak/matmul"], library, parse_params(["cache=cold,hot", "load=burst,sustained"]))
    measured = cases(chosen, "cuda")
    rows = [
        replace(peak(8192, 700e12, conditions=case.conditions), id=case.id, params=dict(case.params))
        for case in measured
    ]
    again = ceilings.winners(ceilings.from_records(rows, WHEN), measured)
    assert {case.conditions for case in again} == {Conditions()}
    assert len(again) == 1


def test_missing_roofs_are_cold_and_in_bursts_whatever_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    for benchmark in [*library.suite("bandwidth").benchmarks.values(), *library.suite("peak").benchmarks.values()]:
        monkeypatch.setitem(benchmark.conditions, "cache", Axis(["cold", "hot"]))  # type: ignore[index]
    planned = cases(select(["matmul-sweep"], library), "cuda", conditions={"cache": "hot", "load": "sustained"})
    todo = ceilings.missing(library, "cuda", planned, [])
    assert {case.conditions for case in todo} == {Conditions()}
    assert {case.benchmark for case in todo} > {"matmul", "read", "copy"}
    assert not {case.id for case in todo} & {case.id for case in planned}


def test_missing_roofs_are_of_the_sizes_that_their_plan_names(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    planned = cases(select(["matmul-sweep"], library), "cuda")
    quick = library.suite("peak").benchmarks["matmul"].axes["shape"].quick

    def shapes() -> list[object]:
        todo = ceilings.missing(library, "cuda", planned, [])
        return [case.params["shape"] for case in todo if case.benchmark == "matmul"]

    assert shapes() == list(quick or [])
    asked = [Selected(library.suite("peak").benchmarks["matmul"], {"shape": ["8192x8192x8192"]})]
    monkeypatch.setattr(ceilings, "select", lambda words, library: asked)
    assert shapes() == ["8192x8192x8192"]


def test_no_roof_of_a_format_that_a_cpu_emulates() -> None:
    library = Library()
    planned = cases(select(["precision/matmul"], library), "cpu", False)

    def dtypes(isa: list[str]) -> set[object]:
        todo = ceilings.missing(library, "cpu", planned, [], {"kind": "cpu", "isa": isa})
        return {case.params["dtype"] for case in todo if "dtype" in case.params}

    assert dtypes(["avx2"]) == {"float64", "float32", "tf32"}
    assert dtypes(["amx_bf16", "avx512_vnni"]) == {"float64", "float32", "tf32", "bfloat16", "int8"}
