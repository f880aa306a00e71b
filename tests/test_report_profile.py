from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders import make_record, make_run
from rich.console import Console
from typer.main import get_command

from gpubench.cli.app import app
from gpubench.report import profile
from gpubench.store import runfile
from gpubench.store.jsonfile import read_bytes

ROOT = Path(__file__).parents[1]


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


def figure(name: str, value: Any, unit: str = "") -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit}


def section(title: str, *figures: dict[str, Any]) -> dict[str, Any]:
    return {"name": title, "figures": list(figures)}


def test_each_section_is_a_table_with_a_column_for_each_kernel() -> None:
    kernels = [
        kernel("one", waves=1, sections=[section("Launch Statistics", figure("Grid Size", 1024))]),
        kernel(
            "two",
            waves=2,
            sections=[
                section("Launch Statistics", figure("Grid Size", None), figure("Cache", "CachePrefer[x]")),
                section(
                    "Memory Workload Analysis",
                    figure("Memory Throughput", 4.1e12, "byte/s"),
                    figure("Size", 2_000_000, "byte"),
                    figure("Duration", 2848, "ns"),
                    figure("SM Frequency", 1.98e9, "hz"),
                    figure("L2 Hit Rate", 12.345, "%"),
                    figure("Registers", 40, "register/thread"),
                    figure("Active", 1796414.45, "cycle"),
                    figure("Waves", 1, "cycle"),
                    figure("Executed Ipc", 2.0, "inst/cycle"),
                ),
            ],
        ),
    ]
    lines = shown(waves=None, kernels=kernels)
    at = lines.index("Launch Statistics     #1              #2")
    assert [line.split() for line in lines[at + 2 : at + 4]] == [
        ["Grid", "Size", "1,024", "–"],
        ["Cache", "CachePrefer[x]"],
    ]
    at = next(number for number, line in enumerate(lines) if line.startswith("Memory Workload Analysis"))
    assert [line.split("  ")[-1].strip() for line in lines[at + 2 : at + 11]] == [
        "4100 GB/s", "2.00 MB", "2.85 µs", "1980 MHz", "12.3 %", "40 registers/thread", "1,796,414 cycles", "1 cycle",
        "2.00 inst/cycle",
    ]  # fmt: skip


def test_the_hottest_lines_or_why_there_are_none() -> None:
    line = {"file": "bandwidth.cu", "line": 7, "samples": 3, "share": 0.75, "instructions": 1234, "text": "x += [y];"}
    bare = {"file": "x.cuh", "line": 1, "samples": None, "share": None, "instructions": None, "text": ""}
    kernels = [kernel("one", waves=1, source=[line, bare]), kernel("two", waves=2, source="no line information")]
    lines = shown(waves=None, kernels=kernels)
    at = lines.index("#1 hottest lines  stalls  executed  text")
    assert lines[at + 2].split() == ["bandwidth.cu:7", "75.0", "%", "1,234", "x", "+=", "[y];"]
    assert lines[at + 3].split() == ["x.cuh:1", "–", "–"]
    assert lines[-1] == "#2 no line information"


def test_kernels_beyond_those_shown_are_counted() -> None:
    kernels = [kernel(f"k{number}", waves=1, source="none") for number in range(6)]
    assert shown(waves=None, kernels=kernels)[-1] == "of 6 kernels the first 4 are shown; the file has all"
    assert shown(waves=1, kernels=[kernel("k", waves=1, sections=[])])[-1].startswith("no sections: ncu printed none")


def test_which_kernel_of_the_record_each_is() -> None:
    found = [{"count": 1, "ns": 2500}, {"count": 3, "ns": 9000}, {"count": 1, "ns": None}, None]
    kernels = [kernel("k", waves=1, recorded=each) for each in found]
    lines = shown(waves=None, kernels=kernels, differences=["k (2×3×1): 4 times a call here, 1 time in the record"])
    ends = [line.partition("threads)")[2] for line in lines[1:5]]
    assert ends == ["; 2.50 µs in the record", "; 9.00 µs in the record, of 3", "", ""]
    assert lines[-1] == "not the record's kernels: k (2×3×1): 4 times a call here, 1 time in the record"


@pytest.mark.parametrize("name", ["lecture", "profile-strided-read"])
def test_the_guide_shows_what_is_in_the_reference_run(name: str) -> None:
    run = runfile.decode(read_bytes(ROOT / f"results/reference/h200/{name}.json.gz"), name)
    (record,) = (each for each in run.records if each.id == "coalescing/strided-read[mib=512,stride=8]")
    console = Console(width=80, highlight=False, markup=False)
    with console.capture() as capture:
        console.print(profile.table(run, record))
    shown = "\n".join(line.rstrip() for line in capture.get().splitlines())
    if name != "lecture":  # what was counted is shown once
        shown = shown[shown.index("GPU Speed Of Light") :]
    assert f"```\n{shown}\n```" in (ROOT / "docs/profile.md").read_text()


def test_the_guide_has_every_flag_of_the_command() -> None:
    guide = (ROOT / "docs/profile.md").read_text()
    flags = {option for parameter in get_command(app).commands["profile"].params for option in parameter.opts}
    assert {flag for flag in flags if flag.startswith("--") and flag not in guide} == {"--param", "--output", "--quiet"}
