"""The kept self-check of an H200 follows from the pool kept beside it: every split is drawn and judged again."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gpubench.discovery import Library
from gpubench.selfcheck import measure as selfcheck
from gpubench.selfcheck.pool import Pool
from gpubench.selfcheck.splits import equal_code, more_work
from gpubench.store.calibration import FILE, Calibration, read

H200 = Path(__file__).parents[2] / "benchmarks" / "results" / "h200"
POOL = H200 / "selfcheck-pool.jsonl.gz"


@pytest.fixture(scope="module")
def pool() -> Pool:
    return Pool(POOL)


@pytest.fixture
def kept(tmp_path: Path) -> Calibration:
    file = H200 / "selfcheck-calibration.json"
    (key,) = json.loads(file.read_text())["devices"]
    shutil.copyfile(file, tmp_path / FILE)
    found = read(tmp_path, key)
    assert found is not None
    return found


def test_equal_code(pool: Pool, kept: Calibration) -> None:
    assert kept.aa is not None
    assert replace(equal_code(pool.runs, kept.aa.at), gpubench=kept.aa.gpubench) == kept.aa


def test_more_work(pool: Pool, kept: Calibration) -> None:
    assert kept.inject is not None
    rows = selfcheck.planned(selfcheck.bench(Library()), "cuda").more
    assert replace(more_work(pool.runs, rows, kept.inject.at), gpubench=kept.inject.gpubench) == kept.inject


def test_it_is_the_pool_that_the_file_names(pool: Pool) -> None:
    made = json.loads((H200 / "selfcheck-calibration.json").read_text())["from"]
    assert hashlib.sha256(gzip.decompress(POOL.read_bytes())).hexdigest() == made["pool"]["sha256"]
    assert (pool.runs[0].started_at, pool.runs[-1].ended_at) == (made["pool"]["started_at"], made["pool"]["ended_at"])
    assert len(pool.runs) == 40
