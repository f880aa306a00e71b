"""The timers of a real GPU against kernels of known duration, against each other, and what they do where they cannot.

The truth is what a spinning kernel counts itself: its SM cycles over the clock they were counted at. The bias of a
timer is its reading less its own reading of no cycles, less the truth.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from gpubench.devices.clock import SmClock  # noqa: E402
from gpubench.devices.cuda import CudaDevice  # noqa: E402
from gpubench.devices.cupti import CuptiPython  # noqa: E402
from gpubench.devices.graph import Graph  # noqa: E402
from gpubench.devices.timers import TIMERS  # noqa: E402
from gpubench.errors import TimerFailed  # noqa: E402
from gpubench.result import Conditions, Record  # noqa: E402
from gpubench.runner import Effort, measure  # noqa: E402
from gpubench.sampling import Sampled, Stopping, sample  # noqa: E402
from gpubench.suite import Axis, Benchmark, Case  # noqa: E402
from gpubench.workload import Workload  # noqa: E402

COLD, HOT = Conditions(cache="cold"), Conditions(cache="hot")
CYCLES = (2_000, 10_000, 20_000, 40_000, 100_000, 200_000, 2_000_000)
"""From 1 µs to 1 ms at 2 GHz."""


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice.named("cuda:0")


@pytest.fixture(scope="module")
def clock(device: CudaDevice) -> SmClock:
    found = device._clock
    if not isinstance(found, SmClock):
        pytest.skip("needs CuPy")
    return found


def sampler_of(device: Any, call: Callable[[], object], timer: str, conditions: Conditions = HOT) -> Any:
    return device.sampler([Workload(call, None, lambda: None, "none")], conditions, timer)


def reading(device: Any, call: Callable[[], object], timer: str, conditions: Conditions = HOT, n: int = 20) -> float:
    """The median of n samples, in ns of one call."""
    sampler = sampler_of(device, call, timer, conditions)
    sampler.warm_up()
    batch = sampler.batch(n)
    return statistics.median(ns / launches for ns, launches in zip(batch.gpu_ns, batch.launches, strict=True))


def true_ns(device: Any, clock: SmClock, cycles: int) -> float:
    """Cycles counted by the kernel over the SM clock beside it, the GPU at rest before."""
    spinning = clock.spin_cycles(cycles)
    sampler = sampler_of(device, spinning.call, "cupti")
    sampler.warm_up()
    ghz = statistics.median(mhz for mhz in sampler.batch(20).sm_mhz if mhz is not None) / 1000
    return float(spinning.readings[0].item()) / ghz


@pytest.mark.parametrize("conditions", [HOT, COLD], ids=["hot", "cold"])
@pytest.mark.parametrize("timer", TIMERS)
def test_known_durations(device: Any, clock: SmClock, timer: str, conditions: Conditions) -> None:
    empty = reading(device, clock.spin_cycles(0).call, timer, conditions)
    print(f"\n{timer}, {conditions.cache}: an empty kernel reads {empty:.0f} ns")
    for cycles in CYCLES:
        truth = true_ns(device, clock, cycles)
        raw = reading(device, clock.spin_cycles(cycles).call, timer, conditions)
        bias = raw - empty - truth
        print(f"  truth {truth:10.0f} ns, read {raw:10.0f}, bias {bias:+8.0f} ns = {bias / truth:+.3%}")
        if timer == "cupti":
            assert abs(bias) <= (300 if truth <= 20_000 else 0.01 * truth)
        elif truth > 10 * empty:  # shorter ones are marked
            assert abs(bias) <= max(1000, 0.02 * truth)


def test_all_timers_agree_on_a_kernel_that_none_marks(device: Any) -> None:
    found = device.calibration()["timers"]
    print("\n", found)
    for name in TIMERS:
        known = found[name]["known"]
        extra = known["read_ns"] - known["spun_ns"]
        assert 0 < extra < 15_000, f"{name}: a start and an end, and no more"
    assert found["cupti"]["empty_ns"] <= found["graph"]["empty_ns"] <= found["event"]["empty_ns"]
    assert found["cupti"]["source"] in ("torch.profiler", "cupti-python")
    assert 1e4 < found["cupti"]["session_ns"] < 1e9


def bench(call: Callable[[], object]) -> Benchmark:
    out = torch.zeros(1, device="cuda")

    def function(device: Any, n: int) -> Workload:
        def run() -> None:
            out.fill_(1.0)
            call()

        return Workload(run, out, lambda: torch.ones(1, device="cuda"), "one", bytes=4, accumulate="exact")

    return Benchmark("some", "bench", function, {"n": Axis([1])})


def row(device: Any, call: Callable[[], object], timer: str = "auto") -> Record:
    case = Case("some", "bench", {"n": 1}, HOT)
    *_, record = measure(bench(call), case, device, Effort(Stopping(samples=10), timer))
    assert isinstance(record, Record)
    return record


@pytest.fixture
def without_cupti(device: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(device._probe.failures, "cupti", "taken away by a test")
    return device


def test_a_row_says_why_its_timer_was_chosen(device: Any) -> None:
    record = row(device, lambda: None)
    assert record.timer is not None
    assert (record.timer.name, record.timer.reason) == ("cupti", "records add up: 1 kernel a call")
    assert "fallback" not in record.flags


def test_without_records_a_graph_is_replayed(without_cupti: Any) -> None:
    x = torch.ones(1 << 26, device="cuda")
    record = row(without_cupti, lambda: x.mul_(1.0))
    assert record.timer is not None
    assert record.timer.name == "graph", record.timer.reason
    assert record.timer.reason is not None
    assert record.timer.reason.startswith("cupti: does not work here: taken away by a test; so graph: a replay of ")
    assert "fallback" in record.flags
    assert "below-resolution" not in record.flags


def test_a_small_call_by_a_graph_is_marked(without_cupti: Any) -> None:
    record = row(without_cupti, lambda: None)
    assert set(record.flags) >= {"fallback", "below-resolution"}


UNCAPTURABLE: dict[str, Callable[[], object]] = {
    "it waits": torch.cuda.synchronize,
    "it copies to the host": lambda: torch.ones(1, device="cuda").item(),
}


@pytest.mark.parametrize("what", UNCAPTURABLE)
def test_a_call_that_cannot_be_captured_is_timed_by_events(without_cupti: Any, what: str) -> None:
    """And leaves nothing behind: random numbers, memory and captures work as before."""
    record = row(without_cupti, UNCAPTURABLE[what])
    assert record.status == "ok", record.reason
    assert record.timer is not None
    assert record.timer.name == "event"
    assert record.timer.reason is not None
    assert "; graph: the call cannot be captured in a CUDA graph: " in record.timer.reason
    assert record.timer.reason.endswith("; so event: a pair of events around each call")
    print("\n", record.timer.reason)
    torch.randn(8, device="cuda")
    torch.empty(1 << 20, device="cuda")
    torch.cuda.empty_cache()
    graph = Graph(lambda: torch.ones(8, device="cuda"), 3)
    graph.replay()
    torch.cuda.synchronize()


def test_a_call_on_a_stream_of_its_own_is_not_captured() -> None:
    """CuPy's own stream, or any other: the graph would be empty and its replay take no time."""
    other = torch.cuda.Stream()
    x = torch.ones(8, device="cuda")

    def elsewhere() -> None:
        with torch.cuda.stream(other):
            x.add_(1.0)

    with pytest.raises(TimerFailed, match="cannot be captured in a CUDA graph"):
        Graph(elsewhere, 3)
    torch.randn(8, device="cuda")


def test_a_raw_kernel_is_captured_on_the_side_stream(clock: SmClock) -> None:
    spinning = clock.spin_ns(10_000)
    graph = Graph(spinning.call, 4)
    spinning.readings[:2].zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert int(spinning.readings[1]) >= 10_000


def test_graphs_and_records_live_in_one_process(device: Any) -> None:
    """Known to crash in some versions: a profiler session after a graph was captured, and a replay after that."""
    x = torch.ones(1 << 20, device="cuda")
    graph = Graph(lambda: x.add_(1.0), 10)
    for _ in range(3):
        assert len(device._probe.source.session(lambda: x.add_(1.0))) == 1
        graph.replay()
        torch.cuda.synchronize()


SOURCES = """
import json, sys, torch
from gpubench.devices.cupti import CuptiPython
from gpubench.devices.records import TorchProfiler
x = torch.ones(1 << 20, device="cuda")
def work():
    for _ in range(5):
        x.add_(1.0)
    x.zero_()
source = {"cupti-python": CuptiPython, "torch.profiler": TorchProfiler}[sys.argv[1]]()
source.session(work)
found = source.session(work)
print(json.dumps([[a.name if a.kind == "kernel" else a.kind, a.grid, a.block, a.end_ns - a.start_ns] for a in found]))
"""


def test_sources_give_the_same_records() -> None:
    """Each in a process of its own: torch's profiler changes the clock of everybody's records."""
    try:
        CuptiPython()
    except TimerFailed as failure:
        pytest.skip(failure.message)
    found = {}
    for name in ("cupti-python", "torch.profiler"):
        said = subprocess.run([sys.executable, "-c", SOURCES, name], capture_output=True, text=True, check=True)
        found[name] = json.loads(said.stdout.splitlines()[-1])
    one, other = found["cupti-python"], found["torch.profiler"]
    assert [a[:3] for a in one] == [a[:3] for a in other]
    for a, b in zip(one, other, strict=True):
        assert abs(a[3] - b[3]) < 1000


OFF = """
import torch
from gpubench.devices.cuda import CudaDevice
from gpubench.devices.timers import sampler_of
from gpubench.devices.records import TorchProfiler
from gpubench.errors import TimerFailed
device = CudaDevice.named("cuda:0")
assert device._probe.source.name == "cupti-python", device._probe.refused
x = torch.ones(1 << 20, device="cuda")
sampler = sampler_of(device._probe, "cupti", lambda: x.add_(1.0), None, device._clock)
sampler.warm_up()
before = sampler.batch(5).gpu_ns
TorchProfiler().session(lambda: x.add_(1.0))
try:
    after = sampler.batch(5).gpu_ns
except TimerFailed as failure:
    print("refused:", failure.message)
else:
    print("agrees:", max(after) < 1.3 * max(before))
"""


def test_records_whose_clock_was_changed_are_refused() -> None:
    """A suite may use torch's profiler itself: then the records of others have another clock, or are gone."""
    try:
        CuptiPython()
    except TimerFailed as failure:
        pytest.skip(failure.message)
    said = subprocess.run([sys.executable, "-c", OFF], capture_output=True, text=True, check=True).stdout
    assert "refused:" in said or "agrees: True" in said, said


def test_the_clock_beside_a_batch_of_any_size(device: Any, clock: SmClock) -> None:
    """Launches are kept from batch to batch: each reads its own call, also after a larger batch."""
    sampler = sampler_of(device, clock.spin_cycles(10_000).call, "cupti")
    sampler.warm_up()
    for n in (3, 25, 201, 3):
        read = sampler.batch(n).sm_mhz
        assert len(read) == n
        assert all(mhz is not None and 300 < mhz < 5000 for mhz in read)


COST_S, SCATTERED_S = 0.15, 0.5
"""What a case may cost, sampling and timer, at default settings; and one of a few µs with a cold cache, whose readings
scatter by some 4 %, so that a median to half a percent takes 80 to 200 of them (0.17 to 0.35 s on an H200)."""


@pytest.mark.parametrize(
    ("what", "conditions", "most_s"),
    [
        ("scale", COLD, SCATTERED_S),
        ("scale", HOT, COST_S),
        ("matmul 1024", COLD, SCATTERED_S),
        ("matmul 1024", HOT, COST_S),
        ("matmul 4096", COLD, COST_S),
        ("matmul 4096", HOT, COST_S),
    ],
)
def test_the_cost_of_a_case(device: Any, what: str, conditions: Conditions, most_s: float) -> None:
    def call() -> None:
        torch.mm(a, b, out=c) if what != "scale" else torch.mul(a, 2.0, out=c)

    n = 4096 if what.endswith("4096") else 1024
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    c = torch.empty_like(a)
    call()
    device.calibration()
    costs, counts, rules = [], [], []
    for _ in range(3):
        begun = time.perf_counter()
        *_, last = sample(sampler_of(device, call, "cupti", conditions), Stopping())
        costs.append(time.perf_counter() - begun)
        assert isinstance(last, Sampled)
        counts.append(len(last.samples.gpu_ns))
        rules.append(last.stopped_by)
    print(f"\n{what}, {conditions.cache}: {[f'{cost:.3f}' for cost in costs]} s for {counts} samples, {rules}")
    assert min(costs) <= most_s


def test_no_warning_reaches_the_user(device: Any, clock: SmClock) -> None:
    """CuPy 14 deprecates ExternalStream; torch warns of empty graphs."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for timer in TIMERS:
            reading(device, clock.spin_ns(5000).call, timer, n=3)
