"""What an expert would add about memory and launches: the edges of the rules beside their worlds."""

from __future__ import annotations

import pytest
from builders import GPU
from worlds import World
from worlds.expert_memory import ALONE, H200, RING, ROW, SETS, STARTS

from gpubench import stats


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "DRAWS", 40)


def test_sets_too_far_apart_leave_the_end_of_the_l2_open() -> None:
    coarse = [row for row in SETS if row.words not in ("working-set kib=65536", "working-set kib=73728")]
    found = World("X03", coarse, {}, None).judged()
    assert found["verdict"] == "INCONCLUSIVE"
    assert found["effects"][1]["low"] == pytest.approx(57344 / 61440)
    assert found["effects"][1]["high"] == pytest.approx(131072 / 61440)


def test_the_fall_must_lie_where_the_l2_ends() -> None:
    early = {f"working-set kib={kib}": 1000 / 4.7 for kib in (57344, 65536, 73728)}
    late = {f"working-set kib={kib}": 1000 / 8.7 for kib in (65536, 73728, 131072)}
    for changes in (early, late):
        found = World("X03", SETS, {}, None).judged(changes)
        assert found["verdict"] in ("PARTLY", "INCONCLUSIVE"), found
        assert found["effects"][1]["verdict"] != "HOLDS"


def test_a_graph_must_help_kernels_of_every_size() -> None:
    found = World("X04", [*STARTS, ROW[-1], ALONE[-1]], {}, None).judged({"kernels way=graph n=1024": 4.2})
    assert [each["verdict"] for each in found["effects"]] == ["HOLDS", "ABSENT"]
    assert found["verdict"] == "PARTLY"


def test_an_operation_that_never_grows_is_half_of_the_claim() -> None:
    found = World("X05", [*ROW, *ALONE], {}, None).judged({ROW[-1].words: 7})
    assert [each["verdict"] for each in found["effects"]] == ["HOLDS", "ABSENT"]


def test_without_a_published_latency_of_the_l2_nothing_is_compared() -> None:
    unknown = World("X08", RING, {}, None, device=GPU | {"compute_capability": "99.0"}).judged()
    assert unknown["verdict"] == "NOT TESTABLE HERE"
    slow = World("X08", RING, {}, None, device=H200).judged(
        {f"latency cluster={cluster} where=next": {"cycles": 270} for cluster in (2, 8)}
    )
    assert slow["verdict"] == "PARTLY"
