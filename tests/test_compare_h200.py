"""Runs of one H200: two sweeps, five minutes apart, between which nothing changed; and one matmul under two loads."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from gpubench import gate
from gpubench.compare.runs import compare
from gpubench.result import Record, Run
from gpubench.stats import per_call, percentile
from gpubench.store.folder import read_run
from gpubench.verdict import Judged

ROOT = Path(__file__).resolve().parent.parent
MARGIN = 0.03


@pytest.fixture(scope="module")
def runs() -> tuple[Run, Run]:
    again = read_run(ROOT / "tests/golden/h200-matmul-sweep-again.json.gz")
    return again, read_run(ROOT / "results/reference/h200/matmul-sweep.json.gz")


@pytest.fixture(scope="module")
def judged(runs: tuple[Run, Run]) -> Judged:
    return compare(*runs, margin=MARGIN)


def scatter(record: Record | None) -> float:
    """Between the first and the last tenth of a row's samples, as a share of the median."""
    assert record is not None
    values = sorted(per_call(record.samples))
    return (percentile(values, 0.9) - percentile(values, 0.1)) / percentile(values, 0.5)


def test_every_row_is_compared(judged: Judged) -> None:
    assert len(judged.rows) == 250
    assert judged.count("same", "suspect", "better") == 250


def test_the_only_suspects_are_rows_that_scatter_by_themselves(judged: Judged) -> None:
    """n=1784: 80 samples that scatter by 5.6 % in one run, 20 by 1.8 % in the other; same kernel, grid and clock."""
    moved = [row for row in judged.rows if row.verdict != "same"]
    assert [row.id for row in moved if row.verdict == "suspect"] == [
        "matmul-sweep/matmul[dtype=bfloat16,k=1784,layout=nn,m=1784,n=1784]"
    ]
    for row in moved:
        assert max(scatter(row.base), scatter(row.new)) > MARGIN


def test_nothing_of_it_is_called_a_regression(judged: Judged) -> None:
    assert judged.count("regression", "improvement", "failed", "missing", "invalid") == 0
    assert [code.name for code in gate.decide(judged, gate.DEFAULT)] == ["UNDECIDED"]


def test_without_that_row_the_build_passes(runs: tuple[Run, Run]) -> None:
    def quiet(run: Run) -> Run:
        return dataclasses.replace(run, records=[row for row in run.records if row.params["n"] != 1784])

    assert gate.decide(compare(*map(quiet, runs), margin=MARGIN), gate.DEFAULT) == []


def test_a_sustained_run_of_the_gpu_is_not_comparable_with_a_burst_one() -> None:
    """One after the other on one H200: 767 TFLOP/s with rests and 700 without is no regression."""
    burst, sustained = (
        read_run(ROOT / f"tests/golden/h200-matmul-4096-{load}.json.gz") for load in ("burst", "sustained")
    )
    for base, new in ((burst, sustained), (sustained, burst)):
        found = compare(base, new, margin=MARGIN)
        assert found.count("not comparable") == len(found.rows) == 1
        assert str(found.rows[0].mismatches[0]).startswith("load")
        assert [code.name for code in gate.decide(found, gate.DEFAULT)] == ["NOT_COMPARABLE"]
