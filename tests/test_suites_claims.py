"""The rules of the suites on made-up machines (tests/worlds): with the effect, without it, with a broken control."""

from __future__ import annotations

import pytest
from builders import CPU, GPU, make_ceilings, make_record, make_run
from worlds import LIBRARY, RULES, STATEMENTS, SUITES, WORLDS, Row, World
from worlds.machine import CPU_CHASE, GATHERS, LADDER, ORDERS, PEAK, PINGS, STRIDES, counted, curve, read

from gpubench import Metric, stats
from gpubench.claims import judge as claims
from gpubench.model import hierarchy
from gpubench.plan import cases, select
from gpubench.result import Ceiling


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows here have equal samples: the width of an interval is the timer's tick, however often they are drawn."""
    monkeypatch.setattr(stats, "DRAWS", 40)


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.claim)
def test_with_the_effect_and_without(world: World) -> None:
    found = world.judged()
    assert found["verdict"] == world.verdict, found
    assert found["proof"] == world.proof
    assert found["rows"]
    assert world.judged(world.without)["verdict"] == world.absent


@pytest.mark.parametrize("world", [world for world in WORLDS if world.broken], ids=lambda world: world.claim)
def test_a_control_that_fails_makes_it_invalid(world: World) -> None:
    found = world.judged(world.broken)
    assert found["verdict"] == "INVALID", found
    assert found["reason"].startswith("control")


@pytest.mark.parametrize("claim", ["C24", "C55"])
def test_a_curve_full_of_noise_is_no_evidence(claim: str) -> None:
    suite = RULES[claim]
    records = [row.record(suite.name) for row in curve()]
    for record in records:
        median = record.samples.gpu_ns[0]
        record.samples.gpu_ns = [round(median * (0.7 + 0.06 * place)) for place in range(11)]
    (found,) = claims.in_run(make_run(records), [STATEMENTS[claim]], {suite.name: suite})
    assert found["verdict"] == "INVALID"


@pytest.mark.parametrize(("claim", "high"), [("C27", 800e12), ("C23", 800e12)])
def test_the_ridge_is_drawn_from_the_roofs(claim: str, high: float) -> None:
    suite = SUITES["peak"]

    def judged(products: float, plain: float) -> str:
        run = make_run([PEAK[0].record("peak")])
        when = "2026-07-12T10:15:00Z"
        run.ceilings = [
            *make_ceilings(peak=products),
            Ceiling("compute", "fp32 FMA", plain, "FLOP/s", "peak/fma[]", when, "stored", dtype="float32"),
        ]
        return str(claims.in_run(run, [STATEMENTS[claim]], {"peak": suite})[0]["verdict"])

    assert judged(high, 60e12) == "HOLDS"
    assert judged(60e12, 60e12) == "ABSENT"
    assert judged(high, high) == "INVALID"


def test_with_counters_a_claim_is_proved_by_them() -> None:
    held = World(
        "C47",
        [Row(row.words, row.us, **counted(p := row.prediction["read_sectors_per_request"], p)) for row in STRIDES]
        + ORDERS,
        {},
        None,
    )
    assert (held.judged()["verdict"], held.judged()["proof"]) == ("HOLDS", "A")
    off = held.judged({"strided-read stride=4 mib=512": {"sectors_per_load_request": 17}})
    assert off["verdict"] == "PARTLY"
    assert "sectors a request, stride=4" in off["reason"]
    plain = World("C47", STRIDES + ORDERS, {}, None).judged()
    assert (plain["proof"], plain["note"]) == ("B", "no counters: inferred from time")


GPU_ALONE = [world for world in WORLDS if not world.cpu]


@pytest.mark.parametrize("world", GPU_ALONE, ids=lambda world: world.claim)
def test_on_a_cpu_a_claim_about_a_gpu_is_not_testable(world: World) -> None:
    found = World(world.claim, world.rows, {}, None, device=CPU).judged()
    assert found["verdict"] == "NOT TESTABLE HERE"
    assert found["reason"]


def test_blocked_loops_of_a_cpu() -> None:
    world = World("C50", LADDER, {}, None, device=CPU)
    assert world.judged()["verdict"] == "HOLDS"
    assert world.judged({"ladder rung=naive n=4096": 2000})["verdict"] == "ABSENT"


def test_lines_of_a_cpu() -> None:
    world = World("C47", STRIDES + GATHERS, {}, None, device=CPU)
    assert world.judged()["verdict"] == "HOLDS"
    assert world.judged({"strided-read stride=16 mib=512": 1000})["verdict"] == "ABSENT"


def test_the_caches_of_a_cpu() -> None:
    world = World("C14", CPU_CHASE, {}, None, device=CPU)
    assert world.judged()["verdict"] == "HOLDS"
    assert (
        world.judged({"chase kib=512": {"latency": 1.2}, "chase kib=262144": {"latency": 1.2}})["verdict"] == "ABSENT"
    )
    assert world.judged({"chase kib=16": {"latency": 3.0}})["verdict"] == "INVALID"


def test_on_a_cpu_the_walk_along_a_row_is_the_fast_one() -> None:
    walks = [Row("walk along=row", 1000, **read(4)), Row("walk along=column", 4000, **read(32)), *ORDERS, *GATHERS]
    assert World("C49", walks, {}, None, device=CPU).judged()["verdict"] == "HOLDS"
    assert World("C49", walks, {}, None).judged()["verdict"] == "ABSENT"


def test_without_clusters_the_rest_of_a_claim_is_judged() -> None:
    rows = [row for row in PINGS if "cluster" not in row.words]
    found = World("C21", rows, {}, None).judged()
    assert found["verdict"] == "HOLDS"
    assert len(found["effects"]) == 1


def test_every_rule_has_a_world() -> None:
    assert set(RULES) == {world.claim for world in WORLDS} | {"C23", "C27"}


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.claim)
def test_rows_that_are_missing_are_said_with_a_command(world: World) -> None:
    if world.alone:
        return
    found = World(world.claim, world.rows[:1], {}, None).judged()
    assert found["verdict"] == "NOT RUN"
    assert "gpubench run" in found["reason"]


def test_the_plan_gives_every_rule_of_its_suites_the_rows_it_reads() -> None:
    """Rows of one millisecond for every case of the plan: whatever the verdicts, no row is missing."""
    facts = GPU | {"multiprocessors": 132, "compute_capability": "9.0", "last_level_cache_bytes": 60 << 20}
    anything = {
        "threads_per_instruction": 32, "read_sectors_per_request": 4, "lanes": 128, "flop_per_clock": 4096, "waves": 2,
        "bound": "equal", "slots": 132, "idle_share_last_wave": 0.5, "useful_share": 1, "bytes_in_flight": 1,
        "loaded_intensity": 1, "sectors_per_request": 4, "enough": 16,
    }  # fmt: skip
    names = (
        "cycles", "cycles_min", "lanes", "flop_per_clock", "multiprocessors", "multiprocessors_of_a_block",
        "warp_width", "waves", "places", "idle_share_last_wave", "results",
    )  # fmt: skip
    records = []
    for case in cases(select(["lecture-machine"], LIBRARY), "cuda", False, {}):
        record = make_record(case.suite, case.benchmark, params=dict(case.params), time_ns=10**6, nbytes=1)
        where = hierarchy.chase(int(case.params["kib"]) << 10, facts) if "kib" in case.params else {}
        record.prediction, record.labels = anything | where, {"instruction": "wgmma"}
        record.metrics += [Metric(name, 500.0 if where.get("level") == "DRAM" else 5.0, "1", "lower") for name in names]
        records.append(record)
    found = claims.in_run(make_run(records, device=facts), STATEMENTS.values(), SUITES)
    assert {
        claim["id"]: claim["reason"] for claim in found if claim["verdict"] in ("NOT RUN", "NOT TESTABLE HERE")
    } == {}
    assert not [claim["reason"] for claim in found if "the rule failed" in (claim["reason"] or "")]
    there = {record.suite for record in records}
    assert {claim["id"] for claim in found} == {claim for claim, suite in RULES.items() if suite.name in there}
