"""Sections and lines of source: ncu's other pages read strictly, and what is asked for them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from command import OK
from fakencu import install

from gpubench.errors import UsageError
from gpubench.profiling import detailspage, pages, sourcepage
from gpubench.profiling.counting import Job, count, reason_of
from gpubench.profiling.detailspage import Figure, Section
from gpubench.profiling.metrics import COUNTERS
from gpubench.profiling.pages import Profile, chosen
from gpubench.profiling.sourcepage import Line
from gpubench.result import Conditions, KernelSeen
from gpubench.suite import Case

DETAILS = """==PROF== Disconnected from process 77
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description"
"0","77","python3.12","box","read","1","7","(256, 1, 1)","(4, 1, 1)","0","9.0","Command line profiler metrics",\
"dram__bytes_read.sum","byte","1,234","","",""
"0","77","python3.12","box","read","1","7","(256, 1, 1)","(4, 1, 1)","0","9.0","GPU Speed Of Light Throughput",\
"Memory Throughput","%","95.46","","",""
"0","77","python3.12","box","read","1","7","(256, 1, 1)","(4, 1, 1)","0","9.0","GPU Speed Of Light Throughput",\
"Duration","ns","2,848","","",""
"0","77","python3.12","box","read","1","7","(256, 1, 1)","(4, 1, 1)","0","9.0","SpeedOfLight","","","",\
"SOLBottleneck","OPT","Look at ""Memory"", the section."
"0","77","python3.12","box","read","1","7","(256, 1, 1)","(4, 1, 1)","0","9.0","Launch Statistics",\
"Function Cache Configuration","","CachePreferNone"
"0","77","python3.12","box","read","1","7","(256, 1, 1)","(4, 1, 1)","0","9.0","Launch Statistics","Waves","","n/a"
"0","77","python3.12","box","read","1","7","(256, 1, 1)","(4, 1,
"1","77","python3.12","box","next","1","7","(256, 1, 1)","(4, 1, 1)","0","9.0","Memory Workload Analysis",\
"Memory Throughput","byte/s","12,943,820,224.72","","",""
"""

SOURCE = """==WARNING== something
"File Path","/home/somebody/suites/bandwidth.cu"
"Function Name","read"
"Line No","Source","Address","Source","Warp Stall Sampling (All Samples)","stall_wait","Instructions Executed"
"1","// ""the"" head","","","0","0","0"
"7","  x += y[i]; // a, b","-","LDG.E R2, desc[UR4]","60","1","1,234"
"","","0x7f10","LDG.E R2","60","1","1,234"
"8","  done();","-","BAR","5","0"
"9","idle","-","NOP","n/a","n/a","n/a"
"File Path","include/machine.cuh"
"Function Name","read"
"Line No","Source","Address","Source","Warp Stall Sampling (All Samples)","stall_wait","Instructions Executed"
"12","return clock();","-","CS2R","15","0","40"
"13","cut sh
"""


def test_the_details_page_is_read_a_section_at_a_time() -> None:
    assert detailspage.read(DETAILS) == {
        "0": [
            Section(
                "GPU Speed Of Light Throughput",
                [Figure("Memory Throughput", 95.46, "%"), Figure("Duration", 2848, "ns")],
            ),
            Section(
                "Launch Statistics",
                [Figure("Function Cache Configuration", "CachePreferNone", ""), Figure("Waves", None, "")],
            ),
        ],
        "1": [Section("Memory Workload Analysis", [Figure("Memory Throughput", 12943820224.72, "byte/s")])],
    }


@pytest.mark.parametrize("text", ["", "==ERROR== x", '"ID","Kernel Name"\n"0","k"\n', '"0","1"\n'])
def test_what_is_no_details_page_has_no_sections(text: str) -> None:
    assert detailspage.read(text) == {}


def test_what_a_details_page_may_hold_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detailspage, "MOST_METRICS", 2)
    assert [section.name for section in detailspage.read(DETAILS)["0"]] == ["GPU Speed Of Light Throughput"]
    head, row = '"ID","Section Name","Metric Name","Metric Unit","Metric Value"\n', '"0","S","{}","","w"\n'
    (section,) = detailspage.read(head + row.format("n" * 999))["0"]
    assert len(section.figures[0].name) == detailspage.LONGEST
    assert detailspage.read(head + row.format("n" * 200_000) + row.format("ok"))["0"][0].figures[0].name == "ok"


def test_the_hottest_lines_come_first_with_their_share_and_no_folder() -> None:
    assert sourcepage.read(SOURCE) == [
        Line("bandwidth.cu", 7, 60, 0.75, 1234, "x += y[i]; // a, b"),
        Line("machine.cuh", 12, 15, 0.1875, 40, "return clock();"),
        Line("bandwidth.cu", 8, 5, 0.0625, None, "done();"),
    ]


def test_lines_without_samples_are_by_instructions() -> None:
    page = (
        '"File Path","a.cu"\n"Line No","Source","# Samples","Instructions Executed"\n"1","a","0","5"\n"2","b","0","9"\n'
    )
    assert [(line.line, line.share) for line in sourcepage.read(page)] == [(2, None), (1, None)]


def test_no_more_lines_are_kept_than_are_shown() -> None:
    rows = "".join(f'"{n}","x","{n}"\n' for n in range(1, 50))
    found = sourcepage.read(f'"File Path","a.cu"\n"Line No","Source","# Samples"\n{rows}')
    assert [line.line for line in found] == list(range(49, 39, -1))


@pytest.mark.parametrize(
    "page", ["", "==ERROR== x\n", '"Address","Source","# Samples"\n"0x10","LDG","5"\n', '"7","x"\n']
)
def test_a_kernel_without_line_information_has_no_lines(page: str) -> None:
    assert sourcepage.read(page) == []


def test_sections_are_named_once_and_by_names() -> None:
    assert chosen(["Occupancy", "LaunchStats", "Occupancy"], True) == Profile(("Occupancy", "LaunchStats"), True)
    for word in ("", "two words", "--set", "regex:.*", "x" * 99):
        with pytest.raises(UsageError, match="is not the name of a section"):
            chosen([word], False)


def test_what_ncu_is_asked_for() -> None:
    report, suite = Path("/tmp/r.ncu-rep"), Path("/suites/bandwidth.py")
    assert pages.words(Profile(), report, suite) == []
    both = pages.words(Profile(("Occupancy",), True), report, suite)
    assert both[:4] == ["--section", "Occupancy", "--section", "SourceCounters"]
    assert both[both.index("--source-folders") + 1] == "/suites"
    assert both[both.index("--import-source") + 1] == "yes"
    assert both[both.index("--export") + 1] == str(report)
    assert both[both.index("--apply-rules") + 1] == "no"
    assert "--import-source" not in pages.words(Profile(("Occupancy",)), report, suite)


def profiled(folder: Path, profile: Profile, how: str = "", seen: list[KernelSeen] | None = None) -> dict[str, Any]:
    env = {**os.environ, **install(folder), "FAKE_NCU": how, "FAKE_NCU_TOLD": "1"}
    suite = folder / "double.py"
    (folder / "double.cu").write_text("void double() {\n  out[i] = x[i] + x[i];\n  return;\n}\n")
    suite.write_text(Path(OK).read_text())
    job = Job(Case("ok", "double", {"n": 1}, Conditions()), suite, seen or [])
    (row,) = count(
        [job], [COUNTERS["dram_bytes_read"]], device="fake", seed=0, timeout=60.0, profile=profile, environ=env
    ).counters
    return row


def test_a_kernel_gets_its_sections_and_lines(tmp_path: Path) -> None:
    row = profiled(tmp_path, Profile(("SpeedOfLight",), True))
    *_, asked = map(json.loads, (tmp_path / "ncu.said").read_text().splitlines())
    assert asked[asked.index("--resolve-source-file") + 1] == str(tmp_path / "double.cu")
    assert row["dram_bytes_read"] == 400
    (kernel,) = row["kernels"]
    assert kernel["sections"] == [
        {
            "name": "Speed Of Light",
            "figures": [
                {"name": "Throughput", "value": 1.5, "unit": "%"},  # of the second kernel: the first is the known copy
                {"name": "Function Cache Configuration", "value": "CachePreferNone", "unit": ""},
            ],
        }
    ]
    line = {"file": "double.cu", "line": 2, "samples": 60, "share": 0.75, "instructions": 1000}
    assert kernel["source"][0] == {**line, "text": "out[i] = x[i] + x[i];"}, "as it stands in the suite's file"
    assert [each["line"] for each in kernel["source"]] == [2, 3]
    assert str(tmp_path) not in str(row)


def test_a_librarys_kernel_says_that_it_has_no_lines(tmp_path: Path) -> None:
    row = profiled(tmp_path, Profile((), True), "library")
    assert row["kernels"][0]["source"] == pages.NO_LINES
    assert "sections" not in row["kernels"][0]


def test_a_kernel_of_ours_without_lines_is_not_called_a_librarys(tmp_path: Path) -> None:
    (tmp_path / "fake.cu").write_text('extern "C" __global__ void fake_kernel (float* x) {}\n')
    assert profiled(tmp_path, Profile((), True), "library")["kernels"][0]["source"] == pages.OURS_WITHOUT


def test_what_ncu_says_of_a_source_page_is_passed_on(tmp_path: Path) -> None:
    row = profiled(tmp_path, Profile((), True), "sourceless")
    assert row["kernels"][0]["source"] == "no lines: ncu: Cannot find the source."


def test_kernels_beyond_the_most_are_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_SOURCES", 0)
    assert profiled(tmp_path, Profile((), True))["kernels"][0]["source"] == pages.NOT_LOOKED_AT


def test_nothing_is_saved_where_only_counters_are_wanted(tmp_path: Path) -> None:
    row = profiled(tmp_path, Profile())
    assert "--export" not in (tmp_path / "ncu.said").read_text()
    assert set(row["kernels"][0]) == {"name", "grid", "block", "dram_bytes_read", "recorded"}


def test_the_kernels_are_those_of_the_record(tmp_path: Path) -> None:
    row = profiled(tmp_path, Profile(), seen=[KernelSeen("fake_kernel(float*)", grid=[1, 1, 1], ns=700)])
    assert row["kernels"][0]["recorded"] == {"count": 1, "ns": 700}
    assert "differences" not in row


def test_kernels_that_differ_from_the_records_are_said(tmp_path: Path) -> None:
    seen = [KernelSeen("fake_kernel<A>", grid=[1, 1, 1], count=2), KernelSeen("reduce", grid=[4, 1, 1])]
    row = profiled(tmp_path, Profile(), seen=seen)
    assert reason_of(row) is None
    assert row["differences"] == [
        "fake_kernel (1×1×1): 1 time a call here, 2 times in the record",
        "reduce (4×1×1): 0 times a call here, 1 time in the record",
    ]


def test_no_kernel_of_the_record_is_no_profile_of_it(tmp_path: Path) -> None:
    row = profiled(tmp_path, Profile(), seen=[KernelSeen("reduce", grid=[4, 1, 1])])
    assert str(reason_of(row)).startswith("other kernels were counted than timed: fake_kernel")
