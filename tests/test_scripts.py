"""Which CuPy `make setup` asks for."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts/cupy_extra.py"
REPORT = "| NVIDIA-SMI 580.159.01    Driver Version: 580.159.01    CUDA Version: {} |\n|  0  NVIDIA H200  On |\n"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("cupy_extra", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("driver", "torch", "extra"),
    [
        (REPORT.format("13.0"), "12.8", "cuda12"),  # torch decides: both share one process
        (REPORT.format("13.0"), "13.0", "cuda13"),
        (REPORT.format("13.0"), None, "cuda13"),  # torch for the CPU, or none yet: the driver
        (REPORT.format("12.4"), None, "cuda12"),
        (REPORT.format("13.0").replace("CUDA Version:", "CUDA UMD Version :"), None, "cuda13"),
        (REPORT.format("11.8"), None, ""),  # no CuPy we support
        (REPORT.format("N/A"), None, ""),
        (REPORT.format("13.0"), "11.8", ""),
        ("", "13.0", ""),  # no GPU: none, whatever torch was built for
        ("", None, ""),
    ],
)
def test_cupy_follows_torch_then_the_driver(script, driver: str, torch: str | None, extra: str):
    assert script.extra(driver, torch) == extra


def test_no_nvidia_smi_is_no_gpu(script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert script.driver_report() == ""


@pytest.mark.parametrize("body", ["echo 'No devices were found'", "echo GPU; exit 9"])
def test_an_nvidia_smi_without_a_gpu_is_no_gpu(script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str):
    fake = tmp_path / "nvidia-smi"
    fake.write_text(f"#!/bin/sh\n{body}\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert script.driver_report() == ""
