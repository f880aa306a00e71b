"""What a row is held against, and the rates that cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders import CPU, make_bandwidth, make_matmul, make_record, make_run
from test_model_catalog import H200

from gpubench import yardstick
from gpubench.result import Conditions, Metric, Record, Samples, Timer
from gpubench.runner import Effort, measure
from gpubench.sampling import Stopping
from gpubench.store import runfile
from gpubench.store.folder import read_run
from gpubench.suite import Case, Suite
from gpubench.testing import FakeDevice
from gpubench.workload import Workload

RUNS = sorted((Path(__file__).parents[1] / "results" / "reference" / "h200").glob("*.json.gz"))
FACTS = H200 | {"last_level_cache_bytes": 62_914_560}
UNKNOWN = FACTS | {"name": "NVIDIA Graphics Device"}


def product(rate: float, dtype: str = "bfloat16", roof: str | None = None, **fields: Any) -> Record:
    """A matrix product of 2·8192³ flops at that many FLOP/s."""
    flops = 2 * 8192**3
    row = make_record(params={"n": 8192, "dtype": dtype}, time_ns=round(flops / rate * 1e9), flops=flops, **fields)
    assert row.work is not None
    row.work.roof = roof
    return row


def share(row: Record, name: str, facts: dict[str, Any] = FACTS) -> float | None:
    held = yardstick.hold(row, facts)
    found = {metric.name: metric for metric in held.metrics}
    if name not in found:
        return None
    assert (found[name].unit, found[name].direction, found[name].primary) == ("1", "higher", False)
    return found[name].value


def test_a_rate_is_held_against_the_datasheet_and_the_silicon_at_the_clock_held() -> None:
    row = product(790e12)
    row.samples.sm_mhz = [None, 1980, 1755, 1755, 0, 0, 1740, None, None, None, None]
    assert share(row, "of_datasheet") == pytest.approx(790 / 989.5, rel=1e-4)
    assert share(row, "of_silicon") == pytest.approx(790e12 / (132 * 4096 * 1755e6), rel=1e-4)
    told = yardstick.hold(row, FACTS).prediction["yardsticks"]
    assert told["datasheet"]["value"] == 989.5e12
    assert "H200 Tensor Core GPU Datasheet" in told["datasheet"]["source"]
    assert told["silicon"]["source"] == "132 multiprocessors × 4096 FLOP a clock × 1755 MHz (held)"
    assert set(told) == {"datasheet", "silicon"}


def test_without_a_clock_of_its_own_the_highest_and_it_says_so() -> None:
    row = product(790e12)
    row.samples.sm_mhz = [None] * 11
    assert share(row, "of_silicon") == pytest.approx(790e12 / (132 * 4096 * 1980e6), rel=1e-4)
    told = yardstick.hold(row, FACTS).prediction["yardsticks"]["silicon"]
    assert told["source"].endswith("1980 MHz (the highest, the one held is not known)")
    assert share(row, "of_silicon", FACTS | {"sm_mhz_max": None}) is None


def test_a_clock_that_is_not_known_within_the_calls_is_no_clock_held() -> None:
    row = product(790e12)
    row.samples.sm_mhz = [1952.0] * 11
    row.telemetry["sm_clock"] = "read beside calls of 1.4 ms, and not within them: software power cap"
    told = yardstick.hold(row, FACTS).prediction["yardsticks"]["silicon"]
    assert told["source"].endswith("1980 MHz (the highest, the one held is not known)")


def test_a_stream_is_held_against_the_memory() -> None:
    row = make_bandwidth("read", 4.6e12)
    assert share(row, "of_datasheet") == pytest.approx(4.6 / 4.8, rel=1e-4)
    assert share(row, "of_silicon") == pytest.approx(4.6e12 / (2 * 3201e6 * 6016 / 8), rel=1e-4)
    row.flags = ["cache-resident"]
    assert yardstick.hold(row, FACTS) == yardstick.Held()
    row.flags = []
    assert row.work is not None
    row.work.level = "L2"
    assert yardstick.hold(row, FACTS) == yardstick.Held()


def test_shared_memory_is_held_against_its_banks() -> None:
    banks = 132 * 128 * 1980e6
    row = make_record("bandwidth", "shared_read", nbytes=10**9, time_ns=round(1e18 / (0.9 * banks)), half=0.0)
    assert row.work is not None
    row.work.level = "shared"
    row.samples.sm_mhz = []
    assert share(row, "of_silicon") == pytest.approx(0.9, rel=1e-3)
    assert share(row, "of_datasheet") is None
    assert yardstick.implausible(row, FACTS) is None
    assert "132 multiprocessors × 128 B a clock × 1980 MHz" in str(yardstick.hold(row, FACTS).prediction)
    row = make_record("bandwidth", "shared_read", nbytes=10**9, time_ns=round(1e18 / (1.1 * banks)), half=0.0)
    assert row.work is not None
    row.work.level = "shared"
    assert "1.10 times what shared memory can carry" in str(yardstick.implausible(row, FACTS))
    assert str(yardstick.implausible(row, FACTS)).endswith(": its bytes are counted too high")
    row.metrics[-1].value /= 1.1 / 1.03
    assert yardstick.implausible(row, FACTS) is not None, "what a cache holds is no part of it"
    for lost in ("sm_mhz_max", "multiprocessors", "compute_capability"):
        assert yardstick.implausible(row, FACTS | {lost: None}) is None
    assert yardstick.implausible(row, FACTS | {"compute_capability": "3.5"}) is None


def test_a_roof_of_the_cores_is_not_held_against_the_matrix_units() -> None:
    chains, tensor = product(33e12, "float64", "float64 FMA"), product(62e12, "float64", "float64 matmul")
    assert share(chains, "of_silicon") == pytest.approx(33e12 / (132 * 128 * 1980e6), rel=1e-4)
    assert share(chains, "of_datasheet") == pytest.approx(33 / 34, rel=1e-4)
    assert share(tensor, "of_silicon") == pytest.approx(62e12 / (132 * 256 * 1980e6), rel=1e-4)
    halves = product(120e12, "float16", "float16 FMA")
    assert share(halves, "of_silicon") == pytest.approx(120e12 / (132 * 512 * 1980e6), rel=1e-4)
    assert share(halves, "of_datasheet") is None, "the H200's datasheet does not say"


def test_an_unknown_gpu_has_silicon_and_no_datasheet() -> None:
    row = product(790e12)
    assert share(row, "of_datasheet", UNKNOWN) is None
    assert share(row, "of_silicon", UNKNOWN) == pytest.approx(790e12 / (132 * 4096 * 1980e6), rel=1e-4)
    assert share(row, "of_datasheet", FACTS | {"mig": True, "multiprocessors": 16}) is None


@pytest.mark.parametrize("facts", [CPU, {"kind": "fake", "name": "Fake device"}, {}])
def test_nothing_is_known_of_other_devices(facts: dict[str, Any]) -> None:
    for row in (product(1e15), make_bandwidth("read", 1e15)):
        assert yardstick.hold(row, facts) == yardstick.Held()


def test_rows_without_a_rate_are_held_against_nothing() -> None:
    no_dtype = make_record(flops=10**12)
    for row in (no_dtype, make_record(time_ns=0, flops=9), make_record(status="oom"), make_record(primary="time")):
        assert yardstick.hold(row, FACTS) == yardstick.Held()


@pytest.mark.parametrize(
    ("dtype", "possible"),
    [
        ("float32", 132 * 256 * 1980e6),
        ("float64", 132 * 256 * 1980e6),
        ("bfloat16", 132 * 4096 * 1980e6),
        ("float8_e4m3fn", 132 * 8192 * 1980e6),
        ("int32", 132 * 128 * 1980e6),
    ],
)
def test_a_rate_above_the_silicon_at_its_highest_clock_cannot_be(dtype: str, possible: float) -> None:
    exact: dict[str, Any] = {"half": 0.0}
    assert yardstick.implausible(product(1.009 * possible, dtype, **exact), FACTS) is None
    assert yardstick.implausible(product(1.012 * possible, dtype, **exact), FACTS) is not None
    assert yardstick.implausible(product(1.012 * possible, dtype, **exact), UNKNOWN) is not None
    assert yardstick.implausible(product(2 * possible, dtype), FACTS | {"sm_mhz_max": None}) is None
    assert yardstick.implausible(product(2 * possible, dtype), FACTS | {"compute_capability": "99.0"}) is None


def test_the_error_of_a_rate_speaks_for_it() -> None:
    rate = 1.03 * 132 * 256 * 1980e6
    assert yardstick.implausible(product(rate, "float32", half=0.05), FACTS) is None
    assert yardstick.implausible(product(rate, "float32", half=0.001), FACTS) is not None
    assert yardstick.implausible(product(rate, "float32", half=0.015), FACTS) is not None, "once and not twice"
    few = product(rate, "float32", half=None)
    assert yardstick.implausible(few, FACTS) is not None
    assert few.summary is not None
    few.summary.min_ns = round(0.95 * few.summary.median_ns)
    assert yardstick.implausible(few, FACTS) is None


def test_half_a_tick_is_an_error_too_shared_by_the_launches() -> None:
    row = make_record(params={"n": 1, "dtype": "float32"}, time_ns=100, flops=round(1.1 * 100e-9 * 66.9e12), half=0.0)
    row.timer = Timer("cupti", 32.0)
    assert yardstick.implausible(row, FACTS) is None
    row.metrics[-1].value *= 1.2 / 1.1
    assert yardstick.implausible(row, FACTS) is not None, "more than half a tick explains"
    row.metrics[-1].value /= 1.2 / 1.1
    row.samples = Samples([1600] * 11, [16] * 11, [0] * 11, [None] * 11)
    assert yardstick.implausible(row, FACTS) is not None


def test_a_stream_above_what_the_pins_carry_cannot_be() -> None:
    pins = 2 * 3201e6 * 6016 / 8
    assert yardstick.implausible(make_bandwidth("read", 1.005 * pins, mib=65536, half=0.0), FACTS) is None
    assert yardstick.implausible(make_bandwidth("read", 1.015 * pins, mib=65536, half=0.0), FACTS) is not None
    assert yardstick.implausible(make_bandwidth("read", 2 * pins), FACTS | {"memory_mhz_max": 0}) is None


def test_what_may_have_stayed_in_the_cache_need_not_have_moved() -> None:
    pins = 2 * 3201e6 * 6016 / 8
    share = 62_914_560 / 2**30
    allowed = make_bandwidth("write", 0.999 * pins / (1 - share), mib=1024, half=0.0)
    assert yardstick.implausible(allowed, FACTS) is None
    assert yardstick.implausible(allowed, FACTS | {"last_level_cache_bytes": None}) is not None
    assert yardstick.implausible(make_bandwidth("write", 9 * pins, mib=32), FACTS) is None, "smaller than the cache"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (product(417e12, "float32"), "the time was taken before the work was done"),
        (product(150e12, "float32"), "TF32 or another narrower arithmetic"),
        (
            product(1500e12),
            "1.40 times what 132 multiprocessors × 4096 FLOP a clock × 1980 MHz can do in bfloat16: its flops",
        ),
        (product(1e18), "934 times what 132"),
        (product(15e15), "14 times what 132"),
        (
            make_bandwidth("read", 9e12),
            "1.87 times what DRAM can carry (6016 bit × 3201 MHz × 2): its bytes are counted",
        ),
        (make_bandwidth("read", 9e12, conditions=Conditions(cache="hot")), "part of the buffers stayed in the cache"),
        (make_bandwidth("read", 9e14), "the time was taken before the work was done"),
    ],
)
def test_the_likely_cause_is_named(row: Record, words: str) -> None:
    assert words in str(yardstick.implausible(row, FACTS))
    assert yardstick.hold(row, FACTS).implausible == yardstick.hold(row, FACTS).prediction["yardsticks"]["implausible"]


def test_the_cause_is_read_back_from_a_run_file() -> None:
    row = product(417e12, "float32")
    held = yardstick.hold(row, FACTS)
    row.metrics += held.metrics
    row.prediction |= held.prediction
    assert yardstick.cause(row) is None
    row.flags = ["implausible"]
    (again,) = runfile.decode(runfile.encode(make_run([row])), "run.json").records
    assert again == row
    assert yardstick.cause(again) == held.implausible
    for foreign in ({"yardsticks": 3}, {"yardsticks": {}}, {}):
        again.prediction = foreign
        assert yardstick.cause(again) is None


def test_the_anchors_of_an_h200_are_all_possible() -> None:
    measured = {"float64": 62.6, "float32": 50.7, "tf32": 417, "float16": 765, "bfloat16": 808.8, "int8": 878}
    for dtype, tera in {**measured, "float8_e4m3fn": 1349}.items():
        row = product(tera * 1e12, dtype, half=0.0)
        assert yardstick.implausible(row, FACTS) is None
        assert 0.4 < (share(row, "of_datasheet") or 0) < 1
        assert 0.4 < (share(row, "of_silicon") or 0) < 1
    for rate in (4688e9, 4494e9, 4287e9, 4422e9):
        row = make_bandwidth("x", rate, mib=2048, half=0.0)
        assert yardstick.implausible(row, FACTS) is None
        assert 0.85 < (share(row, "of_datasheet") or 0) < 1


def test_a_matmul_is_not_judged_by_its_bytes() -> None:
    row = make_matmul(256, peak=800e12)
    assert row.work is not None
    assert row.work.level is None
    assert set(yardstick.hold(row, FACTS).prediction["yardsticks"]) == {"datasheet", "silicon"}


class FakeH200(FakeDevice):
    """A fake device that gives itself out for an H200."""

    def facts(self) -> dict[str, Any]:
        return super().facts() | FACTS


@pytest.mark.parametrize(("ns", "flags"), [(10_000, []), (5_000, ["implausible"])])
def test_the_runner_holds_every_row(ns: int, flags: list[str]) -> None:
    def function(device: FakeH200) -> Workload:
        values = device.unwritten(4, "float32")

        def work() -> None:
            device.spend(ns)
            values[:] = [1.0] * 4

        return Workload(
            work, values, lambda: [1.0] * 4, "ones", flops=10**7 * 50, dtype="float32", prediction={"time_ns": 9.0}
        )

    suite = Suite("held.py")
    suite.benchmark()(function)
    (benchmark,) = suite.benchmarks.values()
    case = Case("held", "function", {}, Conditions())
    *_, row = measure(benchmark, case, FakeH200(), Effort(Stopping(case_time=0.05)))
    assert isinstance(row, Record)
    assert (row.status, row.flags) == ("ok", flags)
    assert row.prediction["time_ns"] == 9.0
    assert ("implausible" in row.prediction["yardsticks"]) == bool(flags)
    assert [metric.name for metric in row.metrics] == ["time", "flops", "of_datasheet", "of_silicon"]
    assert row.metric("of_datasheet") == Metric("of_datasheet", 500e6 / ns * 1e9 / 67e12, "1", "higher")
    assert runfile.record_from_json(runfile.record_to_json(row), "row") == row


# What an H200 did


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.name)
def test_no_row_of_a_kept_run_is_above_what_is_possible(path: Path) -> None:
    """Neither above the datasheet nor above the silicon at the clock held, or it is called implausible."""
    run = read_run(path)
    for record in run.records:
        for name in ("of_datasheet", "of_silicon"):
            found = share(record, name, run.device)
            assert found is None or found <= 1 or "implausible" in record.flags, (record.id, name)
        held = yardstick.hold(record, run.device)
        assert (held.implausible is not None) is ("implausible" in record.flags), record.id


def test_large_products_reach_most_of_a_dense_peak() -> None:
    """A sparse peak, twice the dense one, would leave them at 40 %; that of another product somewhere else."""
    run = read_run(next(path for path in RUNS if path.name.startswith("matmul-sweep")))
    shares = {
        record.params["n"]: share(record, "of_datasheet", run.device)
        for record in run.records
        if record.params["n"] in (4096, 4224, 4288) and record.params["dtype"] == "bfloat16"
    }
    assert len(shares) == 3
    assert all(found is not None and 0.6 < found < 0.9 for found in shares.values()), shares
