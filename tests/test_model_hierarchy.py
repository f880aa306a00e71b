"""The model of the memory hierarchy: levels, published latencies, Little's law."""

from __future__ import annotations

from typing import Any

import pytest

from gpubench.model import hierarchy
from gpubench.model.hierarchy import LATENCIES, capacities, chase, latency, level, little

KIB = 1 << 10
H200 = {
    "kind": "cuda", "compute_capability": "9.0", "multiprocessors": 132, "last_level_cache_bytes": 60 << 20,
    "sm_mhz_max": 1980.0, "memory_mhz_max": 3201.0, "memory_bus_bits": 6144,
}  # fmt: skip


@pytest.mark.parametrize(
    ("kib", "where"),
    [(4, "L1"), (256, "L1"), (257, "L1 and L2"), (1023, "L1 and L2"), (1024, "L2"), (60 << 10, "L2"),
     ((60 << 10) + 1, "L2 and DRAM"), (240 << 10, "DRAM"), (1 << 20, "DRAM")],
)  # fmt: skip
def test_levels_end_where_the_caches_do(kib: int, where: str) -> None:
    assert level(kib * KIB, capacities(H200)) == where


def test_a_set_between_two_caches_that_are_close_reaches_dram() -> None:
    caches = {"L1d": 32, "L2": 64, "L3": 100}
    assert [level(n, caches) for n in (32, 40, 65, 101, 400)] == [
        "L1d",
        "L1d and L2",
        "L2 and L3",
        "L3 and DRAM",
        "DRAM",
    ]
    assert level(5, {}) == "DRAM"


def test_loads_past_the_l1_have_no_l1() -> None:
    assert capacities(H200, l1=False) == {"L2": 60 << 20}
    assert chase(4 * KIB, H200, l1=False)["level"] == "L2"
    assert capacities({"kind": "cuda", "compute_capability": "99.0"}) == {}


def test_a_cpu_has_its_own_caches() -> None:
    facts = {"kind": "cpu", "caches": {"L1d": {"bytes": 32768, "instances": 2, "total_bytes": 65536}}}
    assert capacities(facts) == {"L1d": 32768}
    assert chase(16 * KIB, facts) == {"level": "L1d", "capacities": {"L1d": 32768}}
    assert capacities({"kind": "cpu", "caches": None}) == {}


def test_a_latency_is_known_or_left_out() -> None:
    assert latency("L1", H200)["cycles"] == [32, 41]
    assert latency("L1 and L2", H200) == latency("L1", {"compute_capability": "12.0"}) == {}
    assert chase(512 << 20, H200)["cycles"] == [478, 744]


@pytest.mark.parametrize("known", LATENCIES.values())
def test_farther_is_slower(known: dict[str, hierarchy.Latency]) -> None:
    order = [known[name] for name in ("shared", "L1", "L2", "far L2", "DRAM")]
    assert [one.least for one in order] == sorted(one.least for one in order)
    assert all(one.least <= one.most and one.source for one in order)


def test_bytes_in_flight_are_bandwidth_times_latency() -> None:
    """C11: 4.3 TB/s over 348 ns are 1.5 MB, 11 kB a multiprocessor; here with the pins' 4.9 TB/s and 241 ns."""
    few, many = little(1024, H200), little(64 * 1024, H200)
    pins = 2 * 3201e6 * 6144 / 8
    assert many["bandwidth"] == pins
    assert few["bandwidth"] == pytest.approx(1024 * 132 / (478 / 1980e6))
    assert few["knee_bytes"] == pytest.approx(pins * (478 / 1980e6) / 132)
    knee = little(round(few["knee_bytes"]), H200)
    assert knee["bandwidth"] == pytest.approx(pins, rel=1e-3)


def test_a_copy_moves_two_bytes_for_one_that_is_loaded() -> None:
    one, two = little(512, H200), little(512, H200, moved=2)
    assert two["bandwidth"] == 2 * one["bandwidth"]
    assert two["knee_bytes"] == one["knee_bytes"] / 2


@pytest.mark.parametrize(
    "missing", ["compute_capability", "multiprocessors", "sm_mhz_max", "memory_mhz_max", "memory_bus_bits"]
)
def test_little_needs_to_know_the_memory(missing: str) -> None:
    facts: dict[str, Any] = H200 | {missing: None}
    assert little(512, facts) == {"bytes_in_flight": 512}
