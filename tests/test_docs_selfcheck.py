"""docs/selfcheck.md: its tables are those of the kept self-check of an H200."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from test_report_selfcheck import text

from gpubench.report import selfcheck as report
from gpubench.store.calibration import FILE, LEAST_FOUND, MOST_AT_MARGIN, MOST_WRONG, Calibration, read

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "benchmarks" / "results" / "h200" / "selfcheck-calibration.json"
PAGE = (ROOT / "docs" / "selfcheck.md").read_text(encoding="utf-8")


@pytest.fixture
def kept(tmp_path: Path) -> Calibration:
    """As `compare` would read it."""
    (key,) = json.loads(KEPT.read_text())["devices"]
    shutil.copyfile(KEPT, tmp_path / FILE)
    found = read(tmp_path, key)
    assert found is not None
    return found


@pytest.mark.parametrize("check", ["aa", "inject"])
def test_the_page_shows_what_was_found(kept: Calibration, check: str) -> None:
    found = kept.aa if check == "aa" else kept.inject
    assert found is not None
    shown = "\n".join(line.rstrip() for line in text(report.table(found, kept.name)).splitlines())
    assert f"```text\n{shown}\n```" in PAGE, shown
    assert f"{found.processes} processes" in PAGE


def test_what_it_promises_is_what_is_judged() -> None:
    assert f"at most {report.percent(MOST_WRONG)} of rows" in PAGE
    assert f"| at least {report.percent(LEAST_FOUND)} |" in PAGE
    assert f"| at most {report.percent(MOST_AT_MARGIN)} |" in PAGE


def test_the_file_says_where_it_is_from_and_is_small(kept: Calibration) -> None:
    made = json.loads(KEPT.read_text())["from"]
    assert made["command"].startswith("gpubench selfcheck aa")
    assert len(made["pool"]["sha256"]) == 64
    assert made["software"]["torch"]
    assert KEPT.stat().st_size < 20_000
    assert kept.aa is not None
    assert kept.aa.at[:10] == made["pool"]["ended_at"][:10]
