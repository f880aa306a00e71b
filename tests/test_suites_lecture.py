"""The plan `lecture` on a made-up H200: which claims a whole run settles, and which no run of one machine can."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from builders import GPU, make_ceilings, make_metrics, make_run
from worlds import LIBRARY, STATEMENTS, SUITES
from worlds.made import FP32

from gpubench import stats
from gpubench.claims import judge as claims
from gpubench.model import hierarchy
from gpubench.plan import cases, select
from gpubench.result import Conditions, KernelSeen, Metric, Record, Samples, Summary, Timer, Work

FACTS = GPU | {
    "multiprocessors": 132, "compute_capability": "9.0", "last_level_cache_bytes": 60 << 20, "sm_mhz_max": 1980.0,
}  # fmt: skip
LATER = {"C61", "C63", "C64", "C65", "C68", "C69", "C70", "C71", "C72"}
"""Of attention, which has no suite yet."""


class Generous(Record):
    """A row that has whatever a rule asks of it: a figure of every name, larger in DRAM than elsewhere."""

    def metric(self, name: str) -> Metric | None:
        value = 500.0 if self.prediction.get("level") == "DRAM" else 0.5
        return super().metric(name) or Metric(name, value, "1", "lower")


def generous(case: Any) -> Generous:
    """One millisecond, and 100 flops a byte; or as many as the links say."""
    params = dict(case.params)
    found: dict[str, Any] = defaultdict(lambda: 1, product_flop_share=0.99, lanes=1, enough=16)
    found |= hierarchy.chase(int(params["kib"]) << 10, FACTS) if "kib" in params else {}
    dtype, ns = params.get("dtype"), 10**6
    work = Work(2 * int(params.get("links", 400)), 8, None if dtype is None else str(dtype))
    return Generous(
        case.id, case.suite, case.benchmark, "0123456789abcdef", params, Conditions(), "ok",
        labels=defaultdict(str), work=work,
        samples=Samples([ns] * 11, [1] * 11, [0] * 11, [1980.0] * 11), timer=Timer("cupti", 32.0),
        summary=Summary(11, ns, ns, ns, ns, ns, ns), prediction=found, metrics=make_metrics(ns, work.flops, 8, None),
        kernels=[KernelSeen("nvjet_sm90", ns=ns)], telemetry={"peak_bytes": 10**9},
    )  # fmt: skip


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """The verdicts on a run of the whole plan, by claim."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(stats, "DRAWS", 10)
        planned = cases(select(["lecture"], LIBRARY), "cuda", False, {"cache": "cold", "load": "burst"})
        run = make_run([generous(case) for case in planned], device=FACTS)
        run.ceilings = [*make_ceilings(), *FP32]
        return {claim["id"]: claim for claim in claims.in_run(run, STATEMENTS.values(), SUITES)}


def test_every_claim_but_those_of_attention_is_settled(found: dict[str, Any]) -> None:
    testable = {name for name, statement in STATEMENTS.items() if statement.untested is None}
    assert found.keys() == testable - LATER
    verdicts = {name: claim["verdict"] for name, claim in found.items()}
    reasons = {name: found[name]["reason"] for name in verdicts if verdicts[name] in ("NOT RUN", "NOT TESTABLE HERE")}
    assert reasons == {}
    assert not [claim["reason"] for claim in found.values() if "the rule failed" in (claim["reason"] or "")]


def test_only_these_are_not_testable_here(found: dict[str, Any]) -> None:
    here = {name for name in STATEMENTS if name not in found} - LATER
    assert here == {"C02", "C03", "C05", "C09", "C22"}
    assert all(STATEMENTS[name].untested for name in here)


def test_summaries_name_what_they_are_drawn_from(found: dict[str, Any]) -> None:
    for name in ("C30", "C60"):
        families = STATEMENTS[name].families
        assert [f"claims that hold of {family}" in effect["name"] for family, effect in zip(
            families, found[name]["effects"], strict=True
        )] == [True] * len(families)  # fmt: skip


@pytest.mark.parametrize(
    ("plan", "kind", "most"), [("lecture", "cuda", 800), ("lecture-ml", "cuda", 480), ("ci", "cuda", 40)]
)
def test_plans_are_a_matter_of_minutes(plan: str, kind: str, most: int) -> None:
    rows = cases(select([plan], LIBRARY), kind)
    assert len(rows) <= most
    assert not [row.id for row in rows if row.conditions.load == "sustained"], "each takes many seconds"


def test_the_lecture_is_both_parts() -> None:
    rows, first, second = (
        [case.id for case in cases(select([plan], LIBRARY), "cuda")]
        for plan in ("lecture", "lecture-machine", "lecture-ml")
    )
    assert rows == list(dict.fromkeys([*first, *second]))
