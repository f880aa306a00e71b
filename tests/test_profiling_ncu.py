from __future__ import annotations

from pathlib import Path

import pytest

from gpubench.profiling import ncu


def asked(cache: str = "cold") -> list[str]:
    return ncu.command("/opt/ncu", ["a__b.sum", "c__d.avg"], cache, "/tmp/log", ["python", "-m", "x"])  # type: ignore[arg-type]


def after(words: list[str], flag: str) -> str:
    assert words.count(flag) == 1
    return words[words.index(flag) + 1]


@pytest.mark.parametrize("cache", ["cold", "hot"])
def test_the_command_line(cache: str) -> None:
    words = asked(cache)
    assert words[0] == "/opt/ncu"
    assert after(words, "--clock-control") == "none"  # ncu's default sets the clocks
    assert after(words, "--cache-control") == {"cold": "all", "hot": "none"}[cache]
    assert after(words, "--profile-from-start") == "off"
    assert after(words, "--replay-mode") == "kernel"
    assert after(words, "--metrics") == "a__b.sum,c__d.avg"
    assert after(words, "--page") == "raw"
    assert after(words, "--print-units") == "base"
    assert after(words, "--log-file") == "/tmp/log"
    assert {"--csv", "--nvtx"} <= set(words)
    assert words[-3:] == ["python", "-m", "x"]


def test_the_version() -> None:
    said = "NVIDIA (R) Nsight Compute\nCopyright (c) 2018-2025\nVersion 2025.3.1.0 (build 36398880) (public-release)\n"
    assert ncu.version(said) == "2025.3.1.0"
    assert ncu.version("no such thing") is None


METRICS = ["dram__bytes_read.sum", "dram__bytes_write.sum", "sm__inst_executed_pipe_tensor_op_gmma.sum"]


@pytest.mark.parametrize(
    ("log", "found"),
    [
        ("==ERROR== Failed to find metric regex:^dram__bytes_read\\.sum$", [0]),
        ("==PROF== x\n==ERROR== Failed to find metric regex:^dram__bytes_read(\\.(sum|avg|pct))?$\n", [0]),
        ("==ERR== Failed to find metric sm__inst_executed_pipe_tensor_op_gmma.sum", [2]),
        ("==ERROR== Failed to access the following 2 metrics: dram__bytes_read.sum, dram__bytes_write.sum", [0, 1]),
        ("==ERROR== Failed to find metric dram__bytes", []),
        ("==ERROR== Failed to profile dram__bytes_read", []),
        ("==WARNING== metric dram__bytes_read.sum", []),
        ("", []),
    ],
)
def test_metrics_that_ncu_does_not_know(log: str, found: list[int]) -> None:
    assert ncu.unknown(log, METRICS) == [METRICS[index] for index in found]


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("==ERROR== Profiling failed because a driver resource was unavailable. Ensure", "dcgmi profile --pause"),
        ("==PROF== x\n==ERROR== Something\n==ERROR== else\n", "ncu: Something else"),
        ("==ERROR== " + "x" * 999, "xxx"),
    ],
)
def test_why_nothing_was_counted(log: str, words: str) -> None:
    reason = ncu.failure(log)
    assert reason is not None
    assert words in reason
    assert len(reason) < 300
    assert "\n" not in reason


def test_no_complaint_is_no_reason() -> None:
    assert ncu.failure("==PROF== Connected\n==WARNING== No kernels were profiled.\n") is None


def test_a_source_page_is_asked_for_with_the_files_that_it_shows() -> None:
    words = ncu.source_words(3, [Path("/s/a.cu"), Path("/s/b,c.cu"), Path("/s/d.cuh")])
    assert (after(words, "--page"), after(words, "--print-source")) == ("source", "cuda,sass")
    assert (after(words, "--launch-skip"), after(words, "--launch-count")) == ("3", "1")
    assert after(words, "--resolve-source-file") == "/s/a.cu,/s/d.cuh"
    assert "--resolve-source-file" not in ncu.source_words(0, [])
