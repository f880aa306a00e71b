"""docs/ab.md: what it says of equal code on an H200 is in the file that it names."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from gpubench.ab.judge import judged
from gpubench.store import abfile, jsonfile
from gpubench.store.abfile import AbRun

ROOT = Path(__file__).parents[1]
KEPT = "benchmarks/results/h200/ab-aa.json.gz"
PAGE = (ROOT / "docs" / "ab.md").read_text(encoding="utf-8")


def test_equal_code_is_equivalent_in_every_row() -> None:
    found = abfile.decode(jsonfile.read_bytes(ROOT / KEPT), KEPT)
    assert isinstance(found, AbRun)
    rows = judged(found).rows
    widest = max(row.paired["half_width"] for row in rows)
    begun, ended = (datetime.fromisoformat(at) for at in (found.started_at, found.ended_at or ""))
    minutes, seconds = divmod(round((ended - begun).total_seconds()), 60)
    assert [row.verdict for row in rows] == ["equivalent"] * 17
    assert len(found.blocks) == 10
    assert f"the 17 rows of `ci` took {minutes} min {seconds} s in ten blocks" in " ".join(PAGE.split())
    assert f"the widest interval ±{100 * widest:.1f} %" in " ".join(PAGE.split())
    assert f"`{KEPT}`" in PAGE
