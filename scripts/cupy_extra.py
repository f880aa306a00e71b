"""Print the extra that brings the CuPy this machine can use, `cuda12` or `cuda13`, or nothing where there is no GPU.

CuPy and torch share a process, so torch's CUDA major decides; a torch without CUDA leaves it to the driver.
"""

from __future__ import annotations

import re
import subprocess

EXTRAS = ("cuda12", "cuda13")


def driver_report() -> str:
    """What nvidia-smi prints; empty where there is none, it fails, or it sees no GPU."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=30)
        if listed.returncode or "GPU" not in listed.stdout:
            return ""
        return subprocess.run(["nvidia-smi"], capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def torch_cuda() -> str | None:
    """The CUDA version torch was built with, None where it has none or is not installed."""
    try:
        from torch.version import cuda
    except ImportError:
        return None
    return cuda


def extra(driver: str, torch_version: str | None) -> str:
    """The extra for a driver's report and torch's CUDA version; empty where neither names a CUDA we have one for."""
    if not driver:
        return ""
    found = re.search(r"CUDA(?: \w+)? Version\s*:\s*(\d+)", driver)
    major = torch_version.split(".")[0] if torch_version else found.group(1) if found else ""
    return f"cuda{major}" if f"cuda{major}" in EXTRAS else ""


if __name__ == "__main__":
    seen = driver_report()
    print(extra(seen, torch_cuda() if seen else None))
