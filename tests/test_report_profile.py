from __future__ import annotations

from typing import Any

from builders import make_record, make_run
from rich.console import Console

from gpubench.report import profile


def shown(width: int = 80, nbytes: int = 2000, **counters: Any) -> list[str]:
    base: dict[str, Any] = {"source": "ncu 2025.3.1.0", "cache_control": "all", "known_copy": None}
    record = make_record(params={"n": 64}, nbytes=nbytes, counters=base | counters)
    console = Console(width=width, record=True, highlight=False, markup=False)
    with console.capture() as capture:
        console.print(profile.table(make_run([record]), record))
    return [line.rstrip() for line in capture.get().splitlines()]


def kernel(name: str, **values: Any) -> dict[str, Any]:
    return {"name": name, "grid": [2, 3, 1], "block": [128, 1, 1], **values}


def test_one_kernel_is_the_call() -> None:
    values = {"dram_bytes_read": 1000, "dram_bytes_write": 3000, "sectors_per_load_request": 4.0, "waves": None}
    lines = shown(**values, kernels=[kernel("read[x]", **values)], unavailable={"waves": "not known"})
    assert lines[0] == "matmul-sweep/matmul[n=64] · NVIDIA H200 · cold, burst"
    assert lines[1] == "#1 read[x]  (2×3×1 of 128×1×1 threads)"
    assert lines[2].split() == ["counter", "call"]
    assert [line.split() for line in lines[4:8]] == [
        ["dram_bytes_read", "1.00", "kB"],
        ["dram_bytes_write", "3.00", "kB"],
        ["sectors_per_load_request", "4.00"],
        ["waves", "–"],
    ]
    assert lines[8:] == ["DRAM moved 4.00 kB; the algorithm needs 2.00 kB (2.00 times)", "no waves: not known"]


def test_of_several_kernels_each_has_a_column_and_the_call_the_sum() -> None:
    kernels = [kernel("one", instructions=1000, waves=1.5), kernel("two", instructions=234, waves=2.5)]
    copy = {"bytes": 4_000_000_000, "counted": 3_980_000_000, "error": -0.005}
    lines = shown(instructions=1234, kernels=kernels, known_copy=copy, not_counted=["Memset (1 a call)"])
    assert lines[3].split() == ["counter", "call", "#1", "#2"]
    assert lines[5].split() == ["instructions", "1,234", "1,000", "234"]
    assert lines[6].split() == ["waves", "1.50", "2.50"]
    assert lines[7:] == ["a copy of 4.00 GB counts -0.50 % by ncu 2025.3.1.0", "not counted: Memset (1 a call)"]


def test_bytes_are_not_compared_where_one_side_is_not_known() -> None:
    values = {"dram_bytes_read": 1, "dram_bytes_write": None}
    assert not any("DRAM moved" in line for line in shown(**values, kernels=[kernel("k", **values)]))
    both = {"dram_bytes_read": 1, "dram_bytes_write": 1}
    assert not any("DRAM moved" in line for line in shown(nbytes=0, **both, kernels=[kernel("k", **both)]))
