from __future__ import annotations

from pathlib import Path

import pools
import pytest

from gpubench.errors import UsageError
from gpubench.selfcheck.pool import Pool, path_of
from gpubench.store import runfile


def test_a_pool_grows_in_its_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "pool.jsonl"
    first, second, third = pools.runs(0.01, count=3)
    pool = Pool(path)
    assert pool.runs == []
    pool.add(first)
    pool.add(second)
    again = Pool(path)
    assert [run.run_id for run in again.runs] == ["p0", "p1"]
    again.add(third)
    assert Pool(path).runs == [first, second, third] == again.runs
    for line in path.read_bytes().splitlines():
        assert runfile.decode(line, "a line") in again.runs, "each line is a run file"


def test_a_line_that_was_cut_short_is_no_run_and_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "pool.jsonl"
    first, second = pools.runs(0.01, count=2)
    Pool(path).add(first)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    pool = Pool(path)
    assert pool.runs == [first]
    pool.add(second)
    assert Pool(path).runs == [first, second]


def test_a_line_that_is_no_run_is_named(tmp_path: Path) -> None:
    path = tmp_path / "pool.jsonl"
    Pool(path).add(pools.runs(0.01, count=1)[0])
    with path.open("ab") as file:
        file.write(b'{"schema": "other/1"}\n')
    with pytest.raises(UsageError, match=r"pool.jsonl, line 2: not a gpubench run file"):
        Pool(path)


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write"):
        Pool(tmp_path / "file" / "pool.jsonl").add(pools.runs(0.01, count=1)[0])


def test_other_parts_are_another_pool(tmp_path: Path) -> None:
    one, same, other = (path_of(tmp_path, "cuda", parts) for parts in (["a", "b"], ["a", "b"], ["a", "c"]))
    assert one == same != other
    assert one.parent == tmp_path / "selfcheck"
    assert one.name.startswith("cuda-")
