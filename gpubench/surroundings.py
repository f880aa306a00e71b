"""What is around the device: load, disk, tools, permissions. For `gpubench doctor`; none of it enters a run file."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path("/")
COMPILERS = ("c++", "g++", "clang++")
"""Those that `gpubench.devices.analogue` tries."""
NCU = ("usr/local/cuda/bin/ncu", "opt/nvidia/nsight-compute/*/ncu")
"""Where Nsight Compute is installed, if not on PATH."""


def look(results: Path, root: Path = ROOT, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """All of it: `load` (average of the last minute), `cores`, `free_bytes` and `results_problem` of the folder where
    runs are kept, `compiler`, `ncu`, `counters_need_root`, `root` and `traced`. None where a fact cannot be had.

    `root` holds the machine's `proc`, `usr` and `opt`.
    """
    return {
        "load": load(root),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        **_disk(results),
        "compiler": next((name for name in COMPILERS if shutil.which(name, path=environ.get("PATH"))), None),
        "ncu": find_ncu(root, environ) is not None,
        "counters_need_root": _counters_need_root(root),
        "root": os.geteuid() == 0 if hasattr(os, "geteuid") else None,
        "traced": _traced(root),
    }


def find_ncu(root: Path = ROOT, environ: Mapping[str, str] = os.environ) -> str | None:
    """Nsight Compute's command: the one on PATH, else the newest where it is usually installed; None without one."""
    found = shutil.which("ncu", path=environ.get("PATH"))
    return found or next((str(path) for pattern in NCU for path in sorted(root.glob(pattern), reverse=True)), None)


def load(root: Path = ROOT) -> float | None:
    """The load average of the last minute. macOS has no /proc, but tells it."""
    found = re.match(r"\d+\.\d+", _text(root / "proc/loadavg"))
    if found:
        return float(found[0])
    try:
        return os.getloadavg()[0] if root == ROOT else None
    except (AttributeError, OSError):
        return None


def _disk(results: Path) -> dict[str, Any]:
    """Of the folder, or of the nearest one above it that exists: the folder itself is not made by looking."""
    folder = results.absolute()
    try:
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        if not folder.is_dir():
            return {"free_bytes": None, "results_problem": "would lie in a file"}
        problem = None if os.access(folder, os.W_OK | os.X_OK) else "cannot be written"
        return {"free_bytes": shutil.disk_usage(folder).free, "results_problem": problem}
    except OSError as error:
        return {"free_bytes": None, "results_problem": f"cannot be used: {error.strerror}"}


def _counters_need_root(root: Path) -> bool | None:
    found = re.search(r"^RmProfilingAdminOnly: (\d)", _text(root / "proc/driver/nvidia/params"), re.MULTILINE)
    return found[1] != "0" if found else None


def _traced(root: Path) -> bool | None:
    """Whether a debugger is attached to this process."""
    found = re.search(r"^TracerPid:\s+(\d+)", _text(root / "proc/self/status"), re.MULTILINE)
    return found[1] != "0" if found else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
