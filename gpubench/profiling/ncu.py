"""How ncu is asked, and what its complaints mean: pure functions on words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

PERMISSION = "ERR_NVGPUCTRPERM"
DOCS = "https://developer.nvidia.com/ERR_NVGPUCTRPERM"
NOT_INSTALLED = "ncu is not installed (it comes with the CUDA toolkit, or as nsight-compute)"
DENIED = (
    f"hardware counters need permission ({PERMISSION}): run as root, give the container CAP_SYS_ADMIN, or load the "
    f"driver with NVreg_RestrictProfilingToAdminUsers=0 ({DOCS})"
)
TAKEN = (
    "another profiler holds the hardware counters (DCGM, nsys or another ncu): pause it, such as dcgmi profile --pause"
)

LONGEST = 200
"""Characters of a complaint that are passed on."""


def command(
    program: str,
    metrics: Sequence[str],
    cache: Literal["cold", "hot"],
    log: str,
    child: Sequence[str],
    more: Sequence[str] = (),
) -> list[str]:
    """The command line that runs `child` and writes what it counts to the file `log`; `more` are words for a report.

    Clocks are never touched: ncu's own default would set them. Caches are flushed before each replay of a kernel where
    the case is cold. Only what the child delimits by cudaProfilerStart and Stop is counted, and only in the child
    itself. The raw page has a line for each kernel, in base units, with the NVTX range it ran in.
    """
    return [
        program,
        *("--clock-control", "none"),
        *("--cache-control", "all" if cache == "cold" else "none"),
        *("--replay-mode", "kernel"),
        *("--target-processes", "application-only"),
        *("--profile-from-start", "off"),
        "--nvtx",
        *("--metrics", ",".join(metrics)),
        *more,
        *("--page", "raw"),
        "--csv",
        *("--print-units", "base"),
        *("--log-file", log),
        *child,
    ]


def source_words(place: int, files: Sequence[Path]) -> list[str]:
    """The words by which ncu prints the source page of the kernel at that place of a report, from 0. It shows lines of
    a file only where it finds the file; the line information of ours names the folder in which they were compiled."""
    words = ["--page", "source", "--print-source", "cuda,sass", "--launch-skip", str(place), "--launch-count", "1"]
    named = [str(file) for file in files if "," not in str(file)]  # a comma ends a name
    return [*words, *(["--resolve-source-file", ",".join(named)] if named else [])]


def version(text: str) -> str | None:
    """The version in what `ncu --version` prints; None where it prints none."""
    found = re.search(r"^Version (\d+(?:\.\d+)+)", text, re.MULTILINE)
    return found[1] if found else None


def complaints(log: str) -> list[str]:
    """What ncu says went wrong, a line each. Its lines begin with ==ERROR==; older ones with ==ERR==."""
    return [match[1].strip() for match in re.finditer(r"^==ERR(?:OR)?==[ \t]*(.*)$", log, re.MULTILINE)]


def unknown(log: str, metrics: Iterable[str]) -> list[str]:
    """Those of the metrics that a complaint names as not to be found or not to be had.

    ncu writes a pattern (`Failed to find metric regex:^dram__bytes_read\\.sum$`), whose last part may be a choice
    (`^dram__bytes_read(\\.(sum|avg))?$`), or lists several after a colon.
    """
    text = "\n".join(line for line in complaints(log) if "metric" in line.lower()).replace("\\", "")
    named = set(re.findall(r"[a-z][a-z0-9]*__[A-Za-z0-9_]+", text))
    return [metric for metric in metrics if metric.partition(".")[0] in named]


def failure(log: str) -> str | None:
    """Why nothing was counted, in one line with what to do about it; None where ncu does not complain."""
    if PERMISSION in log:
        return DENIED
    if "driver resource was unavailable" in log:
        return TAKEN
    found = complaints(log)
    return f"ncu: {' '.join(found)[:LONGEST]}" if found else None
