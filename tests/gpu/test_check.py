"""`gpubench check` on a GPU: kernels that make a tenth more launches are a regression, the same ones pass, in less than
three minutes each. On a GPU nobody else uses, runs of one code are close enough to say so without a skip."""

from __future__ import annotations

import pytest
from checking import MARGIN, Machine


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    found = Machine(tmp_path_factory.mktemp("check"), "cuda:0")
    assert max(found.strays.values()) < MARGIN
    return found


def test_the_same_work_passes(machine: Machine) -> None:
    code, rows = machine.check()
    assert code == 0
    assert {row["verdict"] for row in rows.values()} == {"same"}


def test_a_tenth_more_work_is_a_regression(machine: Machine) -> None:
    code, rows = machine.check(work=110)
    assert code == 3
    assert {row["verdict"] for row in rows.values()} == {"regression"}
    assert all(row["reason"].endswith("; the middle one of 5 processes") for row in rows.values())


def test_a_tenth_more_work_is_a_regression_in_turn_with_the_base(machine: Machine) -> None:
    code, rows = machine.check("--baseline", "one", "--base", "env:TOY_WORK=100", work=110)
    assert code == 3
    assert {row["verdict"] for row in rows.values()} == {"regression"}
    assert all(row["paired"]["blocks"] >= 8 for row in rows.values())


def test_without_the_gpu_nothing_is_measured(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    done = machine("check", "ci", "--device", "auto", "--baseline", "one")
    assert (done.returncode, done.stdout) == (7, "")
    assert "a check takes no other device" in done.stderr
