"""An A/B measurement on a GPU: a kernel that does a tenth more is found, and one that both sides share is not called
slower. One measurement for both, of sixteen processes: about a minute."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)
pytest.importorskip("cupy")

from gpubench.executor import with_our_package  # noqa: E402

SUITE = '''"""Two chains of operations, about 0.1 ms each."""

import numpy as np

from gpubench import Axis, Suite, Workload

suite = Suite(__file__)
KERNELS = {name: suite.kernel(name) for name in ("changed", "shared")}


@suite.benchmark(which=Axis(["changed", "shared"]))
def chain(device, which):
    """v = v/2 + 1, which ends at 2."""
    import torch

    out = device.unwritten(132 * 128, "float32")
    run = KERNELS[which](out, np.float32(0.5), grid=132, block=128)
    return Workload(run=run, output=out, reference=lambda: torch.full_like(out, 2.0), reference_name="the limit")
'''
KERNEL = """
extern "C" __global__ void NAME(float* out, float half) {
    float v = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < STEPS; i++) v = fmaf(v, half, 1.0f);
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
"""
STEPS = 20_000


def text(changed: int) -> str:
    """Both kernels, the first of so many steps."""
    return "".join(
        KERNEL.replace("NAME", name).replace("STEPS", str(steps))
        for name, steps in (("changed", changed), ("shared", STEPS))
    )


def gpubench(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = with_our_package(os.environ) | {"GPUBENCH_RESULTS": str(folder / "results"), "COLUMNS": "80"}
    return subprocess.run(
        [sys.executable, "-m", "gpubench", *words], cwd=folder, env=env, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The folder of the one measurement, and what the command said."""
    folder = tmp_path_factory.mktemp("ab")
    (folder / "chains.py").write_text(SUITE)
    (folder / "chains.cu").write_text(text(STEPS))
    (folder / "longer.cu").write_text(text(STEPS * 11 // 10))
    words = ("--device", "cuda:0", "--blocks", "8", "--case-time", "100ms", "--cache", "hot", "-o", "x.json")
    done = gpubench(folder, "ab", "./chains.py", *words, "--new", "kernel=longer.cu")
    print(done.stdout, done.stderr)
    return folder, done


def rows(folder: Path) -> dict[str, dict[str, Any]]:
    content = json.loads(gpubench(folder, "compare", "x.json", "--json").stdout)
    return {which: row for row in content["rows"] for which in ("changed", "shared") if f"which={which}]" in row["id"]}


def test_a_tenth_more_work_is_a_regression_and_the_shared_kernel_is_equivalent(
    measured: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, done = measured
    assert done.returncode == 3, done.stdout + done.stderr
    found = rows(folder)
    assert {which: row["verdict"] for which, row in found.items()} == {"changed": "regression", "shared": "equivalent"}
    ratio = {which: row["changes"][-1]["ratio"] for which, row in found.items()}
    assert ratio["changed"] == pytest.approx(1.1, abs=0.01)
    assert ratio["shared"] == pytest.approx(1.0, abs=0.01)


def test_every_block_was_of_one_gpu_and_of_both_texts(
    measured: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, _ = measured
    kept = json.loads((folder / "x.json").read_text())
    assert kept["base"]["device"]["uuid"] == kept["new"]["device"]["uuid"] == kept["device"]["uuid"]
    assert (list(kept["base"]["kernels"]), list(kept["new"]["kernels"])) == ([], ["chains.cu"])
    assert {each["definition"] for each in kept["records"]} == {kept["records"][0]["definition"]}
    assert sum(block["unused"] is None for block in kept["blocks"]) == 8
    assert str(folder) not in (folder / "x.json").read_text()
