"""`gpubench advise` on a GPU: an odd vocabulary is worth padding, sizes that are aligned are not."""

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

from gpubench.executor import with_our_package  # noqa: E402

HOPPER = torch.cuda.get_device_capability() == (9, 0)
LIMIT = 300.0


def advised(folder: Path, *words: str) -> dict[str, Any]:
    """What the command says, as it is started by its user."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "gpubench", "advise", *words, "--json", "--case-time", "200ms"],
        cwd=folder,
        env=with_our_package(os.environ) | {"GPUBENCH_RESULTS": str(folder / "results")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    print(json.dumps(found["dimensions"], indent=1))
    assert found["measured"]
    assert found["failed"] == []
    (saved,) = (folder / "results").glob("*advise*.json")
    run = json.loads(saved.read_text())
    assert (run["run_id"], run["status"]) == (found["run_id"], "complete")
    assert {record["status"] for record in run["records"]} == {"ok"}
    assert all(record["kernels"] for record in run["records"])
    return found


def test_an_odd_vocabulary_is_padded(tmp_path: Path) -> None:
    found = advised(tmp_path, "8192x50257x768")
    words, width = found["dimensions"]
    assert (words["verdict"], width["verdict"]) == ("pad", "aligned")
    assert words["pad_to"] % 8 == 0
    (chosen,) = (tried for tried in words["tried"] if tried["size"] == words["pad_to"])
    assert chosen["both"]["low"] > 1.1
    if HOPPER:
        assert words["pad_to"] == 50304
        assert chosen["both"]["low"] > 4


def test_two_odd_sizes_are_padded_together(tmp_path: Path) -> None:
    found = advised(tmp_path, "4096x4001x2001")
    assert found["padded"].keys() == {"n", "k"}
    assert found["together"]["step"]["low"] > 1.2


def test_sizes_of_llama_are_kept(tmp_path: Path) -> None:
    """Two layers of the MLP of Llama-3-8B, of fewer tokens."""
    found = advised(
        tmp_path, "--hidden", "4096", "--heads", "32", "--kv-heads", "8", "--d-ff", "14336", "--gated",
        "--vocab", "32000", "--layers", "32", "--tokens", "4096",
    )  # fmt: skip
    assert found["padded"] == {}
    assert {each["verdict"] for each in found["dimensions"]} == {"nothing to gain", "aligned"}
