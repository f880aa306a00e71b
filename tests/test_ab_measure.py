"""The loop over blocks: the order, fresh processes, what is repeated, what ends it, what is lost with a process."""

from __future__ import annotations

from collections import Counter

import pytest
from ab_parts import CASES, EFFORT, HOT, Device, Processes, begun, follow, keep, noisy, two_sides

from gpubench.ab import judge as abjudge
from gpubench.ab import measure as ab
from gpubench.errors import NotComparable
from gpubench.store.abfile import UNFINISHED, AbRun, SideRecord
from gpubench.testing import FakeDevice
from gpubench.verdict import Judged


def verdicts(judged: Judged) -> set[str]:
    return {row.verdict for row in judged.rows}


@pytest.mark.parametrize("planned", [8, 9, 10, 21])
def test_each_half_begins_as_often_with_either_side(planned: int) -> None:
    half = (planned + 1) // 2
    for seed in range(50):
        order = ab.firsts(planned, seed)
        assert len(order) == planned
        assert abs(order.count("base") - order.count("new")) == planned % 2
        for part in (order[:half], order[half:]):
            assert abs(part.count("base") - part.count("new")) <= 1
    more = {max(("base", "new"), key=ab.firsts(9, seed).count) for seed in range(50)}
    assert more == {"base", "new"}, "which one of an odd number has the one block more is chance"


def test_the_order_is_random_and_known_from_its_seed() -> None:
    orders = {tuple(ab.firsts(10, seed)) for seed in range(100)}
    assert len(orders) > 50
    assert ab.firsts(10, 3) == ab.firsts(10, 3)
    firsts = Counter(order[0] for order in orders)
    assert min(firsts["base"], firsts["new"]) > len(orders) / 4
    shuffles = {tuple(case.id for case in ab.shuffled(CASES, 7, slot)) for slot in range(50)}
    assert len(shuffles) == 6
    assert ab.shuffled(CASES, 7, 4) == ab.shuffled(CASES, 7, 4)
    assert len({tuple(case.id for case in ab.shuffled(CASES, seed, 0)) for seed in range(50)}) == 6


def test_every_block_is_a_fresh_process_of_each_side_back_to_back() -> None:
    processes = two_sides(1.03)  # at the margin: nothing decides
    found = follow(begun(9, seed=5), processes)
    assert found.ending == "all blocks"
    assert [block.first for block in found.blocks] == ab.firsts(9, 5) == processes.started[::2]
    pairs = zip(processes.started[::2], processes.started[1::2], strict=True)
    assert all(set(pair) == {"base", "new"} for pair in pairs)
    assert processes.closed == len(processes.started) == 18
    for block in found.blocks:
        sides = {
            side: [each.id for each in found.records if (each.side, each.block) == (side, block.number)]
            for side in block.order
        }
        assert sides["base"] == sides["new"] == [case.id for case in ab.shuffled(CASES, 5, block.slot)]
    assert all(block.unused is None for block in found.blocks)


def test_a_slower_side_is_found_and_the_same_is_not() -> None:
    slower = abjudge.judged(follow(begun(), two_sides(1.05)))
    assert verdicts(slower) == {"regression"}
    assert all(row.change is not None and -0.055 < row.change.ratio - 1 < -0.04 for row in slower.rows)  # a rate
    assert verdicts(abjudge.judged(follow(begun(), two_sides()))) == {"equivalent"}
    assert verdicts(abjudge.judged(follow(begun(), two_sides(1 / 1.05)))) == {"improvement"}


def test_clear_rows_end_it_at_the_first_look() -> None:
    found = follow(begun(20), two_sides(1.2))
    assert (found.ending, len(found.blocks)) == ("decided", 10)
    assert follow(begun(20), two_sides(1.03)).ending == "all blocks"


def test_a_row_that_is_open_at_the_first_look_keeps_all_going() -> None:
    class Slower(Device):
        """By 20 %, but for the row of one microsecond, which is at the margin."""

        def spend(self, ns: int) -> None:
            super().spend(ns * 1030 // 1000 if ns == 1000 else ns * 6 // 5)

    kinds: dict[str, type[Device]] = {"base": Device, "new": Slower}
    found = follow(begun(20), Processes(lambda side, n: kinds[side](noise=noisy(1, (side, n)))))
    assert (found.ending, len(found.blocks)) == ("all blocks", 20)
    assert verdicts(abjudge.judged(found)) == {"regression", "inconclusive"}


def test_a_block_that_met_a_thermal_slowdown_is_measured_again_on_both_sides() -> None:
    hot = {("new", 2), ("base", 5)}
    processes = Processes(lambda side, n: Device(said=HOT if (side, n) in hot else None, noise=noisy(1, (side, n))))
    found = follow(begun(10, seed=1), processes)
    assert found.ending == "all blocks"
    assert [block.slot for block in found.blocks] == [0, 1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 9]
    assert [block.unused for block in found.blocks if block.unused] == [
        "thermal slowdown (new)",
        "thermal slowdown (base)",
    ]
    assert found.blocks[2].first == found.blocks[3].first
    assert processes.started.count("base") == processes.started.count("new") == 12
    judged = abjudge.judged(found)
    assert verdicts(judged) == {"equivalent"}
    assert [each["block"] for each in judged.rows[0].paired["medians"]] == [1, 2, 4, 5, 7, 8, 9, 10, 11, 12]


def test_too_many_of_them_are_an_environment_in_which_nothing_is_decided() -> None:
    found = follow(begun(10), Processes(lambda side, n: Device(said=HOT, noise=noisy(1.5, (side, n)))))
    assert (found.ending, len(found.blocks)) == ("environment", 3)
    late = Processes(lambda side, n: Device(said=HOT if n > 7 else None, noise=noisy(1.5 if side == "new" else 1, n)))
    found = follow(begun(40), late)
    assert found.ending == "environment"
    judged = abjudge.judged(found)
    assert verdicts(judged) == {"inconclusive"}
    assert judged.rows[0].reason == "environment: thermal slowdown in 9 of 17 blocks"


def test_a_case_that_fails_on_one_side_is_its_own_verdict_and_is_not_measured_again() -> None:
    broken = Processes(lambda side, n: Device(breaks=1 if (side, n) == ("new", 3) else None, noise=noisy(1, (side, n))))
    found = follow(begun(10, seed=2), broken)
    lost = ab.shuffled(CASES, 2, 3)[0].id
    rows = {row.id: row for row in abjudge.judged(found).rows}
    assert rows[lost].verdict == "failed"
    assert rows[lost].reason == "error: RuntimeError: an illegal address (new: block 4)"
    assert {row.verdict for id, row in rows.items() if id != lost} == {"equivalent"}
    assert max(each.block for each in found.records if each.id == lost) == 3


def test_a_case_that_fails_everywhere_ends_it() -> None:
    found = follow(begun(10), Processes(lambda side, n: Device(breaks=1)), CASES[:1])
    assert (found.ending, len(found.blocks)) == ("nothing to compare", 1)
    assert verdicts(abjudge.judged(found)) == {"still failing"}


def test_rows_that_no_block_has_alike_end_it_at_the_first_look() -> None:
    timers = {"base": ("cupti",), "new": ("event",)}
    found = follow(begun(20), Processes(lambda side, n: Device(timers=timers[side])))
    assert (found.ending, len(found.blocks)) == ("nothing to compare", 10)
    assert verdicts(abjudge.judged(found)) == {"not comparable"}


def test_a_process_on_another_device_is_refused() -> None:
    class Other(FakeDevice):
        def facts(self) -> dict[str, object]:
            return super().facts() | {"uuid": "FAKE-1"}

    processes = Processes(lambda side, n: Other() if (side, n) == ("new", 1) else FakeDevice())
    found = begun()
    for fact in ("kind", "name"):  # of a device without a UUID
        unlike = begun()
        unlike.device[fact] = "another"
        with pytest.raises(NotComparable, match=f"on another device, {fact} "):
            follow(unlike, two_sides())
    with pytest.raises(NotComparable, match="new: on another device, uuid FAKE-1 instead of FAKE-0"):
        follow(found, processes)
    assert processes.closed == len(processes.started)
    assert found.blocks[-1].unused == UNFINISHED


def test_what_is_broken_off_loses_nothing_and_counts_whole_blocks_only() -> None:
    processes = two_sides(1.03)  # at the margin: nothing decides
    found = begun(10)
    events = ab.run(found, CASES, EFFORT, processes)
    rows = 0
    for event in events:
        keep(found, event)
        rows += isinstance(event, SideRecord)
        if rows == 9 * 6 + 4:
            break
    events.close()
    assert processes.closed == len(processes.started) == 20
    assert len(found.records) == 58
    judged = abjudge.judged(found)
    assert judged.details["blocks"] == 9
    assert verdicts(judged) == {"inconclusive"}
    assert "1 not used: not finished" in judged.notes


def test_before_the_first_look_nothing_is_decided() -> None:
    found = begun(10)
    for event in ab.run(found, CASES, EFFORT, two_sides(1.2)):
        keep(found, event)
        if isinstance(event, ab.BlockEnded) and event.block.number == 4:
            break
    judged = abjudge.judged(found)
    assert verdicts(judged) == {"inconclusive"}
    assert judged.rows[0].reason == "5 of 10 blocks were measured"
    assert judged.details["looks"] == []
    assert judged.rows[0].change is not None


def test_no_block_begins_past_the_time_budget() -> None:
    times = iter(range(50, 100))
    found = follow(begun(10), two_sides(), max_time=4, clock=lambda: next(times))
    assert (found.ending, len(found.blocks)) == ("time budget", 3)


def test_swapping_the_sides_mirrors_every_verdict() -> None:
    def swapped(found: AbRun) -> AbRun:
        for each in found.records:
            each.side = "new" if each.side == "base" else "base"
        return found

    mirror = {"regression": "improvement", "improvement": "regression", "equivalent": "equivalent"}
    for factor in (1.05, 1.0, 0.95, 1.02):
        found = follow(begun(), two_sides(factor, seed=3))
        before, after = abjudge.judged(found), abjudge.judged(swapped(found))
        assert [mirror.get(row.verdict, row.verdict) for row in before.rows] == [row.verdict for row in after.rows]
        for one, other in zip(before.rows, after.rows, strict=True):
            assert one.change is not None
            assert other.change is not None
            assert one.change.ratio * other.change.ratio == pytest.approx(1)
