from __future__ import annotations

from typing import Any

from builders import make_record, make_run
from rich.console import Console

from gpubench.report import trace


def shown(spent: list[dict[str, Any]], calls: int = 2, left_out: int = 0) -> list[str]:
    record = make_record(params={"n": 64}, time_ns=10_000)
    told = {"names": len(spent), "ns": sum(each["ns"] for each in spent), "spent": spent[:50]}
    found = {"calls": calls, "events": 1000, "left_out": left_out, **told}
    console = Console(width=80, highlight=False, markup=False)
    with console.capture() as capture:
        console.print(trace.table(make_run([record]), record, found))
    return [line.rstrip() for line in capture.get().splitlines()]


def one(name: str, ns: int, kind: str = "kernel", count: int = 2) -> dict[str, Any]:
    return {"name": name, "kind": kind, "count": count, "ns": ns}


def test_what_took_the_time_beside_the_record() -> None:
    lines = shown([one("nvjet[x]", 30_000), one("Memset (Device)", 10_000, "gpu_memset", 1000)])
    assert lines[0] == "matmul-sweep/matmul[n=64] · NVIDIA H200 · cold, burst · 2 calls traced"
    assert [line.split() for line in lines[3:5]] == [
        ["nvjet[x]", "kernel", "2", "30.0", "µs", "75", "%"],
        ["Memset", "(Device)", "set", "1,000", "10.0", "µs", "25", "%"],
    ]
    assert lines[5:] == ["20.0 µs a call with a profiler at work; the record has 10.0 µs (2.00 times)"]


def test_names_beyond_the_most_and_events_left_out_are_counted() -> None:
    lines = shown([one(f"k{number}", 1) for number in range(14)], left_out=12_345)
    assert "and 4 more names" in lines
    assert lines[-1] == "the first 1,000 events; 12,345 left out (fewer --calls)"


def test_shares_are_of_all_names_and_not_of_those_that_were_told() -> None:
    lines = shown([one("a", 1000), *(one(f"k{number}", 50) for number in range(60))], calls=1)
    assert lines[3].split() == ["a", "kernel", "2", "1.00", "µs", "25", "%"]
    assert "and 51 more names" in lines
    assert lines[-1].startswith("4.00 µs a call")
    assert shown([one("a", 1000), one("b", 1)])[4].split()[-2:] == ["<1", "%"]
    assert "and 1 more name" in shown([one(f"k{number}", 1) for number in range(11)])


def test_the_names_of_templates_take_three_lines() -> None:
    name = f"void at::native::reduce_kernel<512, {'std::array<char*, 3ul>, ' * 20}>(int)"
    lines = shown([one(name, 1000)])
    assert len(lines) == 7
    assert lines[3].startswith("at::native::reduce_kernel<512")
    assert lines[5].endswith("…")


def test_a_call_that_torch_does_not_see_says_so() -> None:
    assert shown([], calls=1)[1:] == [trace.NOTHING]
