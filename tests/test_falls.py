"""docs/explain.md on the falls and the names of the reference runs: drawn from the files, looked at, and up to date."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from gpubench.explain import drops
from gpubench.explain.fitted import Fitted
from gpubench.report.sweep import sweeps
from gpubench.store.folder import read_run

ROOT = Path(__file__).resolve().parents[1]
SWEEP = "results/reference/h200/matmul-sweep.json.gz"
PAGE = (ROOT / "docs/explain.md").read_text(encoding="utf-8")


@cache
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("falls_script", ROOT / "scripts" / "falls.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_drawn_from_the_run_and_every_fall_has_been_looked_at() -> None:
    assert len(script().TABLE.findall(PAGE)) == 2
    assert script().main(["--check"]) == 0, "python scripts/falls.py, and what you make of the falls marked ?"


def test_a_cell_that_was_typed_by_hand_is_found_and_what_people_wrote_is_kept() -> None:
    touched = PAGE.replace("| 7.17 |", "| 7.71 |").replace("| alignment |", "| waves |", 1)
    assert touched != PAGE
    assert script().drawn(touched) == PAGE


def test_a_fall_that_nobody_has_looked_at_is_marked() -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith("| 3840→3848 |"))
    assert "| ? |" in script().drawn(PAGE.replace(row + "\n", ""))


def test_waste_waves_and_rest_multiply_to_the_fall() -> None:
    for row in script().falls(SWEEP, "every") + script().falls(SWEEP, "aligned"):
        waste, waves, rest = map(float, row[2].split(" × "))
        assert waste * waves * rest == pytest.approx(float(row[1]), rel=0.02), row


def test_a_cause_agrees_with_what_the_grids_alone_say() -> None:
    """No model: where waves are named they have cost, where alignment is named something beside tiles and waves has."""
    for row in script().falls(SWEEP, "every") + script().falls(SWEEP, "aligned"):
        waste, waves, rest = map(float, row[2].split(" × "))
        cost = {"waves": waves, "tile waste": waste, "alignment": rest}
        assert all(cost[cause] > 1.04 for cause in row[5].split(" + ") if cause != "unknown"), row
        assert row[5] == "unknown" or row[5].split(" + ")[0] in sorted(cost, key=lambda name: -cost[name])[:2], row


@cache
def found() -> dict[str, list[drops.Drop]]:
    run = read_run(ROOT / SWEEP)
    fitted, records = Fitted(run), sweeps(run)[0].records
    return {"every": drops.of(records, fitted), "aligned": drops.of(drops.aligned(records, fitted), fitted)}


def test_the_page_counts_the_unknown() -> None:
    words = {2: "Two", 5: "five", 12: "twelve"}
    unknown = {name: Counter(drop.cause for drop in falls)["unknown"] for name, falls in found().items()}
    shown = Counter(drop.cause for drop in found()["aligned"][:10])["unknown"]
    every, aligned = (f"{words[unknown[name]]} of the {len(found()[name])}" for name in ("every", "aligned"))
    said = f'{words[shown]} of these ten are "unknown", and {every} falls of all sizes, {aligned} of multiples of 8.'
    assert said in PAGE


def test_one_kernel_shows_what_rows_beside_sectors_cost() -> None:
    run = read_run(ROOT / SWEEP)
    rows = {int(row.params["n"]): row for row in run.records}
    seen = [rows[n] for n in (1800, 1816, 1832, 1848, 1808, 1840, 1872)]
    assert len({(row.kernels[-1].name, tuple(row.kernels[-1].grid or ())) for row in seen}) == 1
    times = [row.summary.median_ns / 1000 for row in seen if row.summary is not None]
    assert all(22.6 < time < 22.85 for time in times[:4]), times
    assert [round(time, 1) for time in times[4:]] == [19.8, 20.0, 20.5]
    assert re.search(r"19\.8, 20\.0 and 20\.5 at 1808, 1840 and 1872", PAGE)
