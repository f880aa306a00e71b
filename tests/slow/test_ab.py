"""A/B measurements by real processes: an environment, an interpreter, a kernel's text; interrupted and killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import command
import pytest
from command import FAKE, LIMIT, TOYS, Gates, gone, gpubench, start, strict

SIDED, WORKED = str(TOYS / "sided.py"), str(TOYS / "worked.py")
SHORT = ("--samples", "11", "--blocks", "8", "-o", "x.json", *FAKE)
CHAIN = """#include <cmath>
extern "C" void worked(double* out, long long steps) {
    double y = 1.0;
    for (long long i = 0; i < TIMES * steps; i++) y = std::fma(y, 0.5, 1.0);
    out[0] = y;
}
"""


def verdicts(folder: Path) -> dict[str, str]:
    """Each row's verdict, by the file."""
    content = strict(gpubench(folder, "compare", "x.json", "--json").stdout)
    return {row["id"]: row["verdict"] for row in content["rows"]}


def test_an_environment_variable_is_a_side_and_every_process_is_fresh(tmp_path: Path) -> None:
    count = tmp_path / "count"
    count.write_text("1000")
    done = gpubench(tmp_path, "ab", SIDED, *SHORT, "--new", "env:TOY_TIMES=1.05", env={"TOY_HOLD": str(count)})
    assert done.returncode == 3, done.stderr
    assert verdicts(tmp_path) == {"sided/told[n=1]": "regression", "sided/told[n=2]": "regression"}
    assert count.read_text() == str(1000 - 2 * 8 * 2)
    kept = strict((tmp_path / "x.json").read_text())
    assert [(each["block"], each["side"]) for each in kept["records"][::2]] == [
        (block["number"], side)
        for block in kept["blocks"]
        for side in (("base", "new") if block["first"] == "base" else ("new", "base"))
    ]


def test_another_interpreter_is_a_side(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexport TOY_TIMES=0.5\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    done = gpubench(tmp_path, "ab", SIDED, *SHORT, "-p", "n=1", "--new", f"python={python}")
    assert done.returncode == 0, done.stderr
    assert verdicts(tmp_path) == {"sided/told[n=1]": "improvement"}
    assert strict((tmp_path / "x.json").read_text())["new"]["what"] == ["python=python"]


def test_another_text_of_a_kernel_is_a_side_on_a_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three times the work in one thread; and the text against itself, which is not called slower."""
    monkeypatch.setattr(command, "LIMIT", 600.0)  # every process imports torch
    once, thrice = tmp_path / "once.cpp", tmp_path / "thrice.cpp"
    once.write_text(CHAIN.replace("TIMES", "1"))
    thrice.write_text(CHAIN.replace("TIMES", "3"))
    words = ("ab", WORKED, "-p", "n=250000", "--case-time", "50ms")
    words = (*words, "--device", "cpu", "--blocks", "8", "-o", "x.json", "--base", f"kernel={once}")
    done = gpubench(tmp_path, *words, "--new", f"kernel={thrice}")
    assert done.returncode == 3, done.stdout + done.stderr
    kept = strict((tmp_path / "x.json").read_text())
    assert {name: list(kept[name]["kernels"]) for name in ("base", "new")} == {
        "base": ["worked.cpp"],
        "new": ["worked.cpp"],
    }
    assert len({each["definition"] for each in kept["records"]}) == 1
    assert all("analogue" in each["flags"] for each in kept["records"])
    same = gpubench(tmp_path, *words, "--new", f"kernel={once}")
    assert same.returncode in (0, 6), same.stdout + same.stderr
    assert "regression" not in same.stdout


@pytest.fixture
def gates(tmp_path: Path) -> Iterator[Gates]:
    found = Gates(tmp_path)
    yield found
    found.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_what_was_measured_is_kept_whatever_ends_it(tmp_path: Path, gates: Gates, number: int) -> None:
    """The second row of the third block's first process waits: five rows and two blocks are done."""
    count = tmp_path / "count"
    count.write_text("9")
    run = start(tmp_path, "ab", SIDED, *SHORT, env={**gates.env, "TOY_HOLD": str(count)})
    worker = gates.told()
    run.send_signal(number)
    run.communicate(timeout=LIMIT)
    assert run.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}.get(number, -number)
    assert gone(worker)
    later = gpubench(tmp_path, "compare", "x.json")
    assert later.returncode == 4, "what was broken off passes no gate later either"
    assert "2 of 8 blocks" in later.stdout
    assert "1 not used: not finished" in later.stdout
    if number != signal.SIGKILL:
        kept = strict((tmp_path / "x.json").read_text())
        assert (kept["status"], len(kept["records"])) == ("interrupted", 9)
        assert not list(tmp_path.glob("*.journal"))
    assert os.path.exists(tmp_path / "x.json")
