"""What NVRTC is given and how its log is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpubench.devices.nvrtc import Resources, first_error, program, resources
from gpubench.errors import KernelError

LOG = """ptxas info    : Overriding maximum register limit 256 for 'spilly' with  64 of maxrregcount option
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'spilly' for 'sm_90'
ptxas info    : Function properties for spilly
ptxas         .     1776 bytes stack frame, 1768 bytes spill stores, 1948 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 1776 bytes cumulative stack size, 4096 bytes smem
ptxas info    : Compile time = 282.473 ms
ptxas info    : Compiling entry function 'half_fma' for 'sm_90'
ptxas info    : Function properties for half_fma
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers, 364 bytes cmem[0]
"""


def test_the_log_says_what_each_entry_uses() -> None:
    assert resources(LOG) == {"spilly": Resources(64, 4096, 1776, 1768 + 1948), "half_fma": Resources(10, 0, 0, 0)}
    assert resources("") == {}


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (
            'a.cu(3): warning #177-D: unused\na.cu(12): error: identifier "y" is undefined\n',
            'a.cu:12: identifier "y" is undefined',
        ),
        (
            '/tmp/x y/a.cu(1): catastrophic error: cannot open source file "no.cuh"\n',
            'a.cu:1: cannot open source file "no.cuh"',
        ),
        ("b.cuh(7): error #20: no such thing\n", "b.cuh:7: no such thing"),
        ("nvrtc: error: invalid value for -arch\n", "nvrtc: error: invalid value for -arch"),
        (
            "ptxas x, line 21; error   : Unknown modifier\nptxas fatal: x\n",
            "ptxas x, line 21; error   : Unknown modifier",
        ),
        ("something else\n", "something else"),
        ("", "it says nothing"),
    ],
)
def test_the_first_error_in_one_line(log: str, words: str) -> None:
    assert first_error(log) == words


def test_a_program_keeps_its_lines_and_its_name(tmp_path: Path) -> None:
    (tmp_path / "read.cu").write_text("one\ntwo\n")
    made = program(tmp_path / "read.cu", {"REAL": "float", "UNROLL": 4}, "sm_90a", ["-maxrregcount=64"])
    head, line, *rest = made.text.splitlines()
    assert head.startswith("// ")
    assert line == '#line 1 "read.cu"'
    assert rest == ["one", "two"]
    assert made.options == ("--std=c++17", "-lineinfo", "-DREAL=float", "-DUNROLL=4", "-maxrregcount=64")
    assert (made.name, made.arch) == ("read.cu", "sm_90a")
    assert str(tmp_path) not in made.text


def test_a_program_is_another_when_a_shared_header_changes(tmp_path: Path) -> None:
    (tmp_path / "read.cu").write_text("one\n")
    headers = tmp_path / "include"
    headers.mkdir()
    seen = []
    for text in ("a", "b", "a"):
        (headers / "warp.cuh").write_text(text)
        seen.append(program(tmp_path / "read.cu", {}))
    assert f"-I{headers}" in seen[0].options
    assert seen[0] == seen[2]
    assert seen[0].text != seen[1].text


def test_a_missing_source_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(KernelError) as error:
        program(tmp_path / "read.cu", {})
    assert str(error.value) == "read.cu: No such file or directory (a kernel's source lies beside its suite)"
