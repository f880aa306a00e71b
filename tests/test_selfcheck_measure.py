from __future__ import annotations

import re
from pathlib import Path

import pools
import pytest

from gpubench.discovery import Library
from gpubench.errors import DeviceLost, UsageError
from gpubench.executor import Bench, InProcess
from gpubench.result import USUAL
from gpubench.selfcheck import measure as selfcheck
from gpubench.selfcheck.pool import Pool

NEVER = float("inf")
SUITES = Path(__file__).parents[1] / "suites"


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> selfcheck.Planned:
    monkeypatch.setattr(selfcheck, "WORKS", pools.WORKS)
    return selfcheck.planned(pools.bench(), "fake")


@pytest.fixture(scope="module")
def own() -> Bench:
    return selfcheck.bench(Library())


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
def test_the_rows_are_enough_and_four_of_them_have_more(own: Bench, kind: str) -> None:
    found = selfcheck.planned(own, kind)
    ids = [case.id for case in found.cases]
    assert len(set(ids)) == len(ids) >= 12
    assert all(case.conditions == USUAL for case in found.cases)
    assert {more.share for more in found.more} == {0.03, 0.05}
    assert len({more.of for more in found.more}) == 4
    assert {more.id for more in found.more} | {more.of for more in found.more} <= set(ids)
    sizes = {case.params["mib"] for case in found.cases if case.suite == "bandwidth"}
    assert sizes == ({400, 412, 420} if kind == "cuda" else {100, 103, 105})


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
def test_more_is_exactly_so_much_more_of_one_axis(own: Bench, kind: str) -> None:
    found = selfcheck.planned(own, kind)
    params = {case.id: case.params for case in found.cases}
    for more in found.more:
        longer, base = params[more.id], params[more.of]
        (axis,) = (name for name in base if base[name] != longer[name])
        assert int(longer[axis]) / int(base[axis]) == pytest.approx(1 + more.share, rel=1e-12)


def test_links_leave_none_over_that_are_taken_one_by_one(own: Bench) -> None:
    """On sm_90 eight links of the unrolled loop are 36 instructions, eight of the remainder 56: 206 links were 4.6 %
    more of them than 200, and took 5.3 % longer."""
    (unrolled,) = re.findall(r"#define UNROLLED (\d+)", (SUITES / "intensity.cu").read_text())
    links = {int(case.params["links"]) for case in selfcheck.planned(own, "cuda").cases if case.suite == "intensity"}
    assert links == {256, 800, 824, 840}
    assert {each % int(unrolled) for each in links} == {0}


def test_a_share_that_does_not_come_out_whole_is_refused() -> None:
    assert selfcheck._longer(400, 0.03) == 412
    with pytest.raises(ValueError, match="512 and 3% more"):
        selfcheck._longer(512, 0.03)


def test_processes_are_fresh_shuffled_and_closed(toy: selfcheck.Planned, tmp_path: Path) -> None:
    closed: list[int] = []
    start = pools.processes(0.01, closed)
    pool = Pool(tmp_path / "pool.jsonl")
    made = list(selfcheck.grow(pool, toy, 4, start(), start, NEVER))
    assert closed == [1, 2, 3, 4]
    assert Pool(pool.path).runs == made
    assert len({run.run_id for run in made}) == 4
    assert len({tuple(record.id for record in run.records) for run in made}) > 1, "orders of their own"
    for run in made:
        assert {record.id for record in run.records} == {case.id for case in toy.cases}
        assert all(record.status == "ok" for record in run.records)
        assert run.tags == ["selfcheck"]
    row = toy.more[0]
    medians = {record.id: record.summary for record in made[0].records}
    longer, base = medians[row.id], medians[row.of]
    assert longer is not None
    assert base is not None
    assert longer.median_ns / base.median_ns == pytest.approx(1 + row.share, abs=1e-4), "real work, of the device"


def test_a_pool_goes_on_where_it_stood(toy: selfcheck.Planned, tmp_path: Path) -> None:
    closed: list[int] = []
    start = pools.processes(0.01, closed)
    path = tmp_path / "pool.jsonl"
    list(selfcheck.grow(Pool(path), toy, 2, start(), start, NEVER))
    assert len(list(selfcheck.grow(Pool(path), toy, 3, start(), start, NEVER))) == 1
    assert list(selfcheck.grow(Pool(path), toy, 3, start(), start, NEVER)) == [], "it has enough"
    assert list(selfcheck.grow(Pool(path), toy, 9, start(), start, 0.0)) == [], "no time is left"
    assert closed == [1, 2, 3, 4, 5]
    assert len(Pool(path).runs) == 3


def test_what_is_interrupted_leaves_nothing_and_is_closed(
    toy: selfcheck.Planned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[int] = []
    start = pools.processes(0.01, closed)
    pool = Pool(tmp_path / "pool.jsonl")

    def interrupted() -> InProcess:
        process = start()

        def spend(ns: float) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(process.device, "spend", spend)
        return process

    with pytest.raises(KeyboardInterrupt):
        list(selfcheck.grow(pool, toy, 3, start(), interrupted, NEVER))
    assert (closed, len(Pool(pool.path).runs)) == ([1, 2], 1)

    def gone() -> InProcess:
        raise DeviceLost("no new worker")

    with pytest.raises(DeviceLost):
        list(selfcheck.grow(pool, toy, 3, start(), gone, NEVER))
    assert (closed, len(Pool(pool.path).runs)) == ([1, 2, 3], 2)


def test_another_device_or_other_rows_are_another_pool(toy: selfcheck.Planned, tmp_path: Path) -> None:
    start = pools.processes(0.01)
    first, second = start(), start()
    here = selfcheck.pool_of(tmp_path, first, toy).path
    assert selfcheck.pool_of(tmp_path, second, toy).path == here
    fewer = selfcheck.Planned(toy.cases[1:], toy.more)
    assert selfcheck.pool_of(tmp_path, second, fewer).path != here
    second.hello.software["torch"] = "9.9"  # type: ignore[index]
    assert selfcheck.pool_of(tmp_path, second, toy).path != here


@pytest.mark.parametrize("tool", [{"version": "0", "method": 1}, {"version": "1", "method": 0}])
def test_another_version_or_method_is_another_pool(
    toy: selfcheck.Planned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: dict[str, object]
) -> None:
    process = pools.processes(0.01)()
    paths = []
    for known in ({"version": "1", "method": 1}, tool):
        monkeypatch.setattr(selfcheck.environment, "tool", lambda known=known: known)
        paths.append(selfcheck.pool_of(tmp_path, process, toy).path)
    assert paths[0] != paths[1]


def test_a_process_is_told_once_it_is_kept(toy: selfcheck.Planned, tmp_path: Path) -> None:
    start = pools.processes(0.01)
    pool = Pool(tmp_path / "pool.jsonl")
    for number, run in enumerate(selfcheck.grow(pool, toy, 2, start(), start, NEVER), 1):
        assert Pool(pool.path).runs[-1] == run
        assert len(Pool(pool.path).runs) == number


def test_a_pool_that_cannot_be_written_is_known_before_anything_is_measured(
    toy: selfcheck.Planned, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    process = pools.processes(0.01)()
    process.measure = lambda *words: pytest.fail("it measured")  # type: ignore[method-assign]
    with pytest.raises(UsageError, match="cannot write"):
        list(selfcheck.grow(Pool(tmp_path / "file" / "pool.jsonl"), toy, 2, process, pools.processes(0.01), NEVER))
