from __future__ import annotations

import pytest
from fakencu import RANGE

from gpubench.profiling import rawpage

PAGE = f'''==PROF== Connected to process 77 (/usr/bin/python3.12)
==PROF== Profiling "vectorized_elementwise_kernel" - 0: 0%....50%....100% - 3 passes
==PROF== Disconnected from process 77
"ID","Process ID","Process Name","Host Name","{RANGE}","Id:Domain:Start/Stop_Range:PL_Type","Kernel Name",\
"Context","Stream","Block Size","Grid Size","Device","CC","dram__bytes_read.sum","x__hit_rate.pct","launch__waves"
"","","","","","","","","","","","","","byte","%",""
"0","77","python3.12","127.0.0.1","1 ""<default domain>:gpubench-copy:none:none""","",\
"void at::native::vectorized_elementwise_kernel<4, at::native::neg, std::array<char *, 2>>(int, T2, T3)","1","7",\
"(128, 1, 1)","(524288, 1, 1)","0","9.0","2,147,483,648","49.98","n/a"
==WARNING== in between
"1","77","python3.12","127.0.0.1","1 ""<default domain>:outer:none"" 1 ""<default domain>:gpubench-12:none""","",\
"read","1","7","(256, 1, 1)","(1, 2, 74)","0","9.0","1234","0","0.12"
"2","77","python3.12","127.0.0.1","","","stray","1","7","256","1","0","9.0","nan","",""
"3","77","cut sh
'''


def test_a_page_is_read_a_line_for_each_kernel() -> None:
    first, second, stray = rawpage.read(PAGE)
    assert first.name.startswith("void at::native::vectorized_elementwise_kernel<4")
    assert (first.label, first.grid, first.block) == ("copy", [524288, 1, 1], [128, 1, 1])
    assert first.values == {"dram__bytes_read.sum": 2**31, "x__hit_rate.pct": 49.98, "launch__waves": None}
    assert (second.name, second.label, second.grid) == ("read", "12", [1, 2, 74])
    assert second.values == {"dram__bytes_read.sum": 1234, "x__hit_rate.pct": 0, "launch__waves": 0.12}
    assert (stray.label, stray.grid, set(stray.values.values())) == (None, None, {None})


def test_what_holds_no_table_has_no_kernels() -> None:
    assert rawpage.read("") == []
    assert rawpage.read("==ERROR== ERR_NVGPUCTRPERM\n==PROF== x\n") == []
    assert rawpage.read('"0","1"\n') == []


def test_bytes_in_another_unit_are_scaled() -> None:
    page = '"ID","Kernel Name","dram__bytes_read.sum"\n"","","Mbyte"\n"0","k","1.5"\n'
    assert rawpage.read(page)[0].values == {"dram__bytes_read.sum": 1_500_000}


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("0", 0),
        ("123", 123),
        ("1,234", 1234),
        ("1,234,567.25", 1234567.25),
        ("12.500", 12.5),
        ("1.234.567", 1234567),
        ("1 234 567", 1234567),
        ("1\u202f234", 1234),
        ("1'234", 1234),
        ("1,5", 1.5),
        ("0.12", 0.12),
        ("4.00", 4),
        ("1e+09", 10**9),
        ("9007199254740993", 9007199254740993),
        ("158 (0: 158; 1: 0)", 158),
        ("n/a", None),
        ("nan", None),
        ("inf", None),
        ("", None),
        ("(!) 3", None),
    ],
)
def test_numbers(cell: str, value: int | float | None) -> None:
    found = rawpage.number(cell)
    assert found == value
    assert type(found) is type(value)
