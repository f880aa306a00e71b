"""torch.compile on a CPU as it is: all shapes are compiled, and a compiler that fails costs its row and no other."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from gpubench.devices.cpu import CpuDevice

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")


def test_twelve_shapes_and_two_dtypes_are_all_compiled() -> None:
    def function(x: Any) -> Any:
        return torch.sin(x) ** 2 + torch.cos(x) ** 2

    device = CpuDevice()
    for n in range(100, 112):
        for dtype in (torch.float32, torch.bfloat16):
            compiled = device.compile(function)
            assert torch.allclose(compiled(torch.rand(n, dtype=dtype)).float(), torch.ones(n), atol=0.02)
            assert (compiled.graphs, compiled.kernels) == (1, 1)
    device.release()


@pytest.mark.parametrize(
    ("variables", "status"),
    [
        ({"CXX": "/nowhere/c++", "CC": "/nowhere/cc"}, "skipped"),
        ({"TORCHINDUCTOR_CACHE_DIR": "{file}/folder"}, "error"),
        ({"TORCH_COMPILE_DISABLE": "1"}, "error"),
    ],
    ids=["no compiler", "no folder", "switched off"],
)
def test_a_compiler_that_fails_costs_its_row_and_no_other(
    tmp_path: Path, variables: dict[str, str], status: str
) -> None:
    (tmp_path / "file").write_text("")
    given = {name: value.format(file=tmp_path / "file") for name, value in variables.items()}
    words = ["run", "fusion/chain", "--device", "cpu", "-p", "by=eager,compiled", "-p", "k=2", "-p", "n=4096"]
    done = subprocess.run(
        [sys.executable, "-m", "gpubench", *words, "-o", str(tmp_path / "run.json"), "--ceilings", "none"],
        env=os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")} | given,
        capture_output=True,
        text=True,
        timeout=300,
    )
    rows = {record["params"]["by"]: record for record in json.loads((tmp_path / "run.json").read_text())["records"]}
    assert rows["eager"]["status"] == "ok", done.stderr
    assert rows["compiled"]["status"] == status
    assert "torch.compile" in rows["compiled"]["reason"]
    assert str(tmp_path) not in rows["compiled"]["reason"]
