from __future__ import annotations

import pytest

from gpubench.errors import UsageError
from gpubench.profiling.metrics import COUNTERS, DIFFERENCES, RATIOS, SETS, Counter, Wanted, chosen

BYTES = (COUNTERS["dram_bytes_read"], COUNTERS["gmma_instructions"])


def test_the_table_names_each_metric_once_and_the_ratios_follow_from_it() -> None:
    metrics = [metric for counter in COUNTERS.values() for metric in counter.metrics]
    assert len(metrics) == len(set(metrics))
    assert all(counter.adds == counter.metrics[0].endswith(".sum") for counter in COUNTERS.values())
    derived = {name for pair in (*RATIOS.values(), *DIFFERENCES.values()) for name in pair}
    assert derived <= set(SETS["default"]) <= set(SETS["memory"])
    assert set(SETS["memory"]) < set(SETS["all"]) == set(COUNTERS)
    assert not {*RATIOS, *DIFFERENCES} & set(COUNTERS)
    assert SETS["memory"][-1] == "shared_store_wavefronts"
    assert SETS["default"][-1] == "hfma2_instructions"


def test_what_may_be_asked_for() -> None:
    assert [counter.name for counter in chosen(None, None)] == list(SETS["default"])
    assert len(chosen(None, "all")) == len(COUNTERS)
    own = Counter("sm__cycles_active.avg", ("sm__cycles_active.avg",), "", adds=False)
    assert chosen("waves, sm__cycles_active.avg,waves", None) == (COUNTERS["waves"], own)


@pytest.mark.parametrize(
    ("words", "named", "said"),
    [
        ("dram_bytes_reed", None, "did you mean dram_bytes_read"),
        ("a b", None, "no such counter"),
        ("", None, "no such counter"),
        ("sm__x;rm", None, "no such counter"),
        (None, "most", "--set 'most' is not one of default, memory, all"),
        ("waves", "all", "both say"),
    ],
)
def test_what_may_not(words: str | None, named: str | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        chosen(words, named)


def test_a_metric_that_is_not_known_gives_way_to_the_next_name_of_its_counter() -> None:
    wanted = Wanted(BYTES)
    assert wanted.metrics == ["dram__bytes_read.sum", "sm__inst_executed_pipe_tensor_op_gmma.sum"]
    wanted.drop(list(wanted.metrics))
    assert wanted.metrics == ["dram__bytes_op_read.sum"]
    assert list(wanted.missing) == ["gmma_instructions"]
    assert wanted.values({"dram__bytes_op_read.sum": 7}) == {"dram_bytes_read": 7, "gmma_instructions": None}
    wanted.drop(["dram__bytes_op_read.sum"])
    assert wanted.metrics == []


def test_ratios_follow_from_their_counters() -> None:
    wanted = Wanted([COUNTERS[name] for name in ("global_load_requests", "global_load_sectors", "instructions")])
    requests, sectors, _ = wanted.metrics
    assert wanted.values({requests: 8, sectors: 40})["sectors_per_load_request"] == 5
    assert wanted.values({requests: 0, sectors: 0})["sectors_per_load_request"] is None
    assert wanted.values({requests: None, sectors: 1})["sectors_per_load_request"] is None
    assert "threads_per_instruction" not in wanted.values({})


def test_constants_that_are_made_in_the_tensor_pipe_are_no_tensor_instructions() -> None:
    wanted = Wanted([COUNTERS[name] for name in ("hmma_instructions", "hfma2_instructions")])
    all_of_pipe, halves = wanted.metrics
    assert wanted.values({all_of_pipe: 10, halves: 10})["tensor_instructions"] == 0
    assert wanted.values({all_of_pipe: 12, halves: None})["tensor_instructions"] is None
    assert "tensor_instructions" not in Wanted(BYTES).values({})


def test_a_call_is_the_sum_of_its_kernels_and_its_ratios_are_those_of_the_sums() -> None:
    names = ("global_load_requests", "global_load_sectors", "waves")
    wanted = Wanted([COUNTERS[name] for name in names])
    kernels = [dict(zip(names, values, strict=True)) for values in ((10, 40, 1.5), (30, 960, 2.5))]
    total = {"global_load_requests": 40, "global_load_sectors": 1000, "sectors_per_load_request": 25.0}
    assert wanted.total(kernels) == total
    assert wanted.total(kernels[:1])["waves"] == 1.5
    assert wanted.total([kernels[0], kernels[1] | {"global_load_sectors": None}])["global_load_sectors"] is None
