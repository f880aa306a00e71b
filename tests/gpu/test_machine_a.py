"""The suites on what a multiprocessor does and how far its memories are, on a GPU: right, and as the machine is."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)
pytest.importorskip("cupy")

from machine_rows import benchmarks, row  # noqa: E402

from gpubench.devices.cuda import CudaDevice  # noqa: E402

NAMES = [
    "atomics", "bank-conflicts", "clusters", "execution", "instruction-mix", "launch", "memory-hierarchy", "occupancy",
]  # fmt: skip
CAPABILITY = torch.cuda.get_device_capability()
BENCHMARKS = benchmarks(*NAMES)


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice.named("cuda:0")


def figure(device: Any, path: str, name: str, /, **params: Any) -> float:
    record = row(device, path, **params)
    assert record.status == "ok", record.reason
    metric = record.metric(name)
    assert metric is not None
    return metric.value


def cases() -> list[Any]:
    return [
        pytest.param(path, params, id=f"{path}[{','.join(map(str, params.values()))}]")
        for path, bench in BENCHMARKS.items()
        for params in bench.cases("cuda", quick=True)
    ]


@pytest.mark.parametrize(("path", "params"), cases())
def test_every_quick_case_is_right(device: Any, path: str, params: dict[str, Any]) -> None:
    record = row(device, path, **params)
    needs_clusters = path.startswith("clusters/") or params.get("path") == "cluster"
    if (needs_clusters and CAPABILITY < (9, 0)) or (path == "execution/wgmma" and CAPABILITY != (9, 0)):
        assert record.status == "unsupported"
        return
    assert (record.status, record.reason) == ("ok", None)
    assert "analogue" not in record.flags
    assert record.check is not None
    assert record.prediction or path in ("launch/operation", "launch/operations")


def test_every_multiprocessor_runs_blocks_and_none_is_shared_out(device: Any) -> None:
    units = device.facts()["multiprocessors"]
    record = row(device, "execution/blocks", blocks=10240)
    assert {name: record.metric(name).value for name in record.prediction if name != "yardsticks"} == {
        "multiprocessors": units,
        "multiprocessors_of_a_block": 1,
    }
    assert figure(device, "execution/blocks", "multiprocessors", blocks=1) == 1


def test_a_warp_more_costs_a_warp_more(device: Any) -> None:
    times = {threads: figure(device, "execution/fill", "time", threads=threads) for threads in (1, 32, 33, 64)}
    assert abs(times[1] / times[32] - 1) < 0.05
    assert times[33] / times[32] > 1.8
    assert abs(times[33] / times[64] - 1) < 0.05


@pytest.mark.parametrize("unit", ["fp32", "int32", "exp2", "rsqrt"])
def test_units_do_what_the_guide_says(device: Any, unit: str) -> None:
    record = row(device, "execution/rate", unit=unit)
    if "lanes" in record.prediction:
        assert record.metric("lanes").value == pytest.approx(record.prediction["lanes"], rel=0.1)


def test_matrix_units(device: Any) -> None:
    for path in ("execution/mma-sync", "execution/wgmma"):
        record = row(device, path, dtype="bfloat16")
        if record.status != "ok" or "flop_per_clock" not in record.prediction:
            continue
        share = record.metric("flop_per_clock").value / record.prediction["flop_per_clock"]
        assert share <= 1.01
        assert share > (0.9 if record.prediction["bound"] == "equal" else 0.3)


def test_near_memory_is_nearer(device: Any) -> None:
    l2_kib = device.facts()["last_level_cache_bytes"] >> 10
    shared = figure(device, "memory-hierarchy/chase-shared", "cycles")
    near, l2, dram = (
        figure(device, "memory-hierarchy/chase", "cycles", kib=kib) for kib in (32, l2_kib // 8, 8 * l2_kib)
    )
    assert shared < 1.2 * near
    assert l2 > 4 * near
    assert dram > 1.6 * figure(device, "memory-hierarchy/distance", "cycles_min", way="alone")
    past = figure(device, "memory-hierarchy/chase-past-l1", "cycles", kib=32)
    assert abs(past / l2 - 1) < 0.25


def test_farther_words_take_longer(device: Any) -> None:
    shared = figure(device, "execution/ping-pong", "cycles", path="shared")
    far = figure(device, "execution/ping-pong", "cycles", path="global")
    assert far > 3 * shared
    if CAPABILITY >= (9, 0):
        assert shared < figure(device, "execution/ping-pong", "cycles", path="cluster") < far


def test_conflicts_cost_their_ways(device: Any) -> None:
    cycles = {stride: figure(device, "bank-conflicts/stride", "cycles", stride=stride) for stride in (1, 2, 8, 32, 33)}
    for stride, ways in ((2, 2), (8, 8), (32, 32), (33, 1)):
        assert cycles[stride] / cycles[1] == pytest.approx(ways, rel=0.1)


def test_warps_and_chains_replace_each_other(device: Any) -> None:
    for warps, ilp in ((4, 1), (4, 2), (8, 1), (8, 4), (64, 4)):  # beside the corner, where both limits meet
        record = row(device, "occupancy/fma", warps=warps, ilp=ilp)
        if "lanes" in record.prediction:
            assert record.metric("lanes").value == pytest.approx(record.prediction["lanes"], rel=0.2)


def test_a_graph_launches_faster(device: Any) -> None:
    stream, graph = (figure(device, "launch/kernels", "time", way=way, n=1) for way in ("stream", "graph"))
    assert graph < stream


def test_one_address_is_slower_than_many(device: Any) -> None:
    assert figure(device, "atomics/count", "time", addresses=1) > 2 * figure(
        device, "atomics/count", "time", addresses=2**20
    )
