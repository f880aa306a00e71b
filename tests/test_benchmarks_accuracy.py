"""The benchmark of timers: what it concludes from its figures, and how it goes on where it was stopped."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "benchmarks"
GOLDEN = ROOT / "tests/golden/timer-accuracy.json"
if str(BENCHMARKS) not in sys.path:
    sys.path.insert(0, str(BENCHMARKS))

import timer_accuracy  # noqa: E402
from accuracy import child, judge, ncu, nvbench, ours, peers  # noqa: E402
from accuracy.results import Results, Row, load, save  # noqa: E402
from accuracy.table import page  # noqa: E402
from accuracy.works import (  # noqa: E402
    COLD_STAMPS,
    DURATIONS,
    JUDGED,
    NCU,
    NOTHING,
    NVBENCH,
    OPERATIONS,
    OURS,
    PAIR,
    RIVALS,
    STAMPS,
    SUITE,
    TOOLS,
    WORKS,
    Work,
)

from gpubench.devices.cpu import CpuDevice  # noqa: E402
from gpubench.discovery import load_suite  # noqa: E402
from gpubench.errors import UsageError  # noqa: E402
from gpubench.result import Conditions, Metric, Record, Samples, Timer  # noqa: E402
from gpubench.runner import Effort, measure  # noqa: E402
from gpubench.sampling import Stopping  # noqa: E402
from gpubench.suite import Case  # noqa: E402

MHZ = 1980.0
TRUE_NS = {
    work.name: {"scale 1 Mi fp32": 3_000.0, "mm 1024 bf16": 5_500.0}.get(work.name, 2_000.0) for work in OPERATIONS
}
TRUE_NS |= {"copy 256 MiB": 127_000.0, "mm 4096 bf16": 176_000.0, "mm 8192 bf16": 1_390_000.0}
TRUE_NS |= {"softmax 4096² fp32": 56_000.0}
CONSTANT = {"gpubench": 600.0, "stamps": 1_500.0, "ncu": 1_100.0}
"""What a tool adds to every reading, by the first word of its name; 6 µs for a peer."""
SPREAD = (0.999, 1.0, 1.001)


def reading(tool: str, work: Work, mhz: float = MHZ) -> float:
    """An ideal tool's reading of a work, in ns."""
    constant = CONSTANT.get(tool.split()[0], 6_000.0)
    return constant + (work.us * 2000 * 1e3 / mhz if work.us is not None else TRUE_NS[work.name])


def row(tool: str, work: Work, error_ns: float = 0.0) -> Row:
    middle = reading(tool, work) + error_ns
    values = [middle * factor for factor in SPREAD]
    cycles = [] if work.us is None else [work.us * 2000]
    return Row(tool, work.name, values, [0.1] * 3, [MHZ], cycles, 32.0)


def ideal() -> Results:
    """A file in which every promise is kept: gpubench is exact, peers are 0.5 µs and 1 % too long."""
    results = Results({"device": {"name": "NVIDIA H200"}, "software": {"driver": "580.159", "cuda": "13.0"}})
    for part, works in (("durations", DURATIONS), ("operations", OPERATIONS)):
        for tool in (*OURS, *RIVALS, STAMPS, COLD_STAMPS):
            for work in works:
                own = tool in (*OURS, STAMPS, COLD_STAMPS) or work.name == NOTHING
                results.add(part, row(tool.name, work, 0.0 if own else 500 + 0.01 * reading(tool.name, work)))
    for tool in NCU:
        for work in (DURATIONS[0], *OPERATIONS):
            results.add("ncu", replace(row(tool.name, work, 20.0), sm_mhz=[]))
    for work in OPERATIONS:
        results.add("fresh", row(OURS[0].name, work))
    return results


def verdict(results: Results, promise: str) -> judge.Verdict:
    (found,) = [one for one in judge.verdicts(results) if promise in one.promise]
    return found


def change(results: Results, part: str, tool: str, work: str, **fields: object) -> None:
    (old,) = [one for one in results.rows(part) if (one.tool, one.work) == (tool, work)]
    results.add(part, replace(old, **fields))


def shifted(results: Results, tool: str, work: str, factor: float = 1.0, by_ns: float = 0.0) -> None:
    part = "durations" if WORKS[work].us is not None else "operations"
    (old,) = [one for one in results.rows(part) if (one.tool, one.work) == (tool, work)]
    change(results, part, tool, work, readings_ns=[factor * value + by_ns for value in old.readings_ns])


def test_the_bias_of_an_exact_timer_is_nothing_and_an_error_is_found_in_full():
    results = ideal()
    assert judge.bias_ns(results, "gpubench cold", "spin 10 µs") == pytest.approx(0.0, abs=1e-6)
    shifted(results, "gpubench cold", "spin 10 µs", by_ns=123.0)
    assert judge.bias_ns(results, "gpubench cold", "spin 10 µs") == pytest.approx(123.0)


def test_the_truth_is_cycles_by_the_clock_of_the_same_state():
    assert Row("t", "w", [1.0], sm_mhz=[1000.0, 2000.0, 1500.0], cycles=[3000]).truth_ns == 2000.0
    assert Row("t", "w", [1.0], cycles=[3000]).truth_ns is None


def test_a_file_without_faults_keeps_every_promise():
    assert [one for one in judge.verdicts(ideal()) if one.kept is not True] == []


@pytest.mark.parametrize(
    ("promise", "work", "error_ns", "kept"),
    [
        ("gpubench cold: bias at most", "spin 10 µs", 290.0, True),
        ("gpubench cold: bias at most", "spin 10 µs", -310.0, False),
        ("gpubench cold: bias at most", "spin 100 µs", 900.0, True),
        ("gpubench cold: bias at most", "spin 100 µs", 1100.0, False),
        ("gpubench hot: bias at most", "spin 100 µs", 1100.0, True),  # of the other one
    ],
)
def test_a_bias_beyond_its_bound_breaks_the_promise(promise: str, work: str, error_ns: float, kept: bool):
    results = ideal()
    shifted(results, "gpubench cold", work, by_ns=error_ns)
    assert verdict(results, promise).kept is kept


@pytest.mark.parametrize(("own_ns", "kept"), [(90.0, True), (110.0, False)])
def test_a_bias_may_not_lie_beyond_a_peers(own_ns: float, kept: bool):
    results = ideal()
    shifted(results, "gpubench cold", "spin 2 µs", by_ns=own_ns)
    exact = row("NVBench cold", WORKS["spin 2 µs"])
    results.add("durations", exact)
    found = verdict(results, "gpubench cold: bias beyond no peer's")
    assert found.kept is kept
    assert ("NVBench cold at spin 2 µs" in found.words) is not kept


@pytest.mark.parametrize(
    ("work", "share", "kept"),
    [("mm 4096 bf16", 0.004, True), ("mm 4096 bf16", 0.006, False), ("add 1024 fp32", 0.011, True)],
)
def test_the_spread_over_repeats_is_held_to_half_a_percent_or_a_tick(work: str, share: float, kept: bool):
    results = ideal()
    middle = reading("gpubench hot", WORKS[work])
    change(results, "operations", "gpubench hot", work, readings_ns=[middle * (1 + share * x) for x in (-1, 0, 1)])
    assert verdict(results, "gpubench hot: CV over repeats").kept is kept


def test_an_operation_that_takes_long_to_time_breaks_the_promise():
    results = ideal()
    change(results, "operations", "gpubench cold", "mm 8192 bf16", costs_s=[0.16, 0.05, 0.17])
    found = verdict(results, "gpubench cold: at most 0.15 s")
    assert (found.kept, found.words) == (False, "dearest mm 8192 bf16: 0.160 s")


def test_operations_are_judged_by_ncu_then_by_stamps_and_short_ones_not_at_all():
    results = ideal()
    assert judge.referee(results, "mm 4096 bf16", "cold").tool == "ncu cold"
    assert judge.referee(results, "mm 1024 bf16", "cold") is None
    results.parts["ncu"] = []
    assert judge.referee(results, "mm 4096 bf16", "cold").tool == "stamps cold"
    assert verdict(results, "gpubench cold: nearer").kept is True


def test_a_peer_that_is_nearer_to_the_referee_breaks_the_promise():
    results = ideal()
    for work in OPERATIONS:
        results.add("operations", row("NVBench cold", work))
        shifted(results, "gpubench cold", work.name, factor=1.03)
    found = verdict(results, "gpubench cold: nearer")
    assert found.kept is False
    assert "nearest peer NVBench cold: 0.0" in found.words


def test_a_peer_must_also_be_beaten_where_the_power_limit_leaves_it_alone():
    """Deviations of a peer that ran at a lower clock are the power limit's."""
    results = ideal()
    for work in OPERATIONS:
        results.add("operations", row("NVBench cold", work))
        shifted(results, "gpubench cold", work.name, factor=1.002)
        if work.name.startswith("mm"):
            shifted(results, "NVBench cold", work.name, factor=1.2)
            change(results, "operations", "NVBench cold", work.name, sm_mhz=[1500.0])
    assert verdict(results, "gpubench cold: nearer").kept is False
    assert "where the power limit pulled no peer's clock down: " in verdict(results, "gpubench cold: nearer").words
    for work in OPERATIONS:
        if not work.name.startswith("mm"):
            shifted(results, "NVBench cold", work.name, factor=1.05)
    assert verdict(results, "gpubench cold: nearer").kept is True


@pytest.mark.parametrize(("ticks", "kept"), [(0.9, True), (1.3, False)])
def test_deviations_a_tick_of_the_referee_apart_are_one(ticks: float, kept: bool):
    results = ideal()
    for work in OPERATIONS:
        results.add("operations", row("NVBench cold", work))
    only = {"copy 256 MiB", NOTHING}
    results.parts = {name: [one for one in rows if one.work in only] for name, rows in results.parts.items()}
    results.parts["ncu"] = []
    shifted(results, "gpubench cold", "copy 256 MiB", by_ns=ticks * 32)
    assert verdict(results, "gpubench cold: nearer").kept is kept


def test_a_slower_clock_is_not_held_against_a_timer():
    results = ideal()
    shifted(results, "torch Timer", "mm 4096 bf16", factor=MHZ / 1500)
    change(results, "operations", "torch Timer", "mm 4096 bf16", sm_mhz=[1500.0])
    found = judge.deviation(results, "torch Timer", "mm 4096 bf16")
    assert found.share > 0.3
    assert abs(found.counted) < 0.03


def test_a_launch_hidden_behind_the_kernel_before_is_not_held_against_a_timer():
    results = ideal()
    results.add("ncu", replace(row("ncu hot", WORKS["copy 256 MiB"]), sm_mhz=[]))
    raw = results.row("ncu hot", "copy 256 MiB").reading_ns
    change(results, "operations", "torch Timer", "copy 256 MiB", readings_ns=[raw])
    found = judge.deviation(results, "torch Timer", "copy 256 MiB")
    assert found.share < -0.03  # less its reading of nothing, which is nearly all launch
    assert found.counted == 0


@pytest.mark.parametrize(
    ("work", "share", "kept"),
    [
        ("copy 256 MiB", 0.0025, True),
        ("copy 256 MiB", 0.0035, False),
        ("mm 1024 bf16", 0.012, True),
        ("mm 1024 bf16", 0.017, False),
    ],
)
def test_fresh_processes_agree(work: str, share: float, kept: bool):
    results = ideal()
    middle = reading(OURS[0].name, WORKS[work])
    change(results, "fresh", OURS[0].name, work, readings_ns=[middle * (1 + share * x) for x in (-1, 0, 1)])
    assert verdict(results, "fresh processes").kept is kept


def paired(own: list[float], stamps: list[float]) -> Results:
    results = ideal()
    for tool, values in zip(PAIR, (own, stamps), strict=True):
        constant = reading(tool, WORKS[NOTHING])
        results.add("pairs", Row(tool, "softmax 4096² fp32", [value + constant for value in values]))
    return results


def test_pairs_tell_what_is_timed_from_who_times_it():
    """Both readings less their own of nothing: else a constant would make one spread look smaller than the other."""
    moved = judge.pairs(paired([50.0, 55.0, 60.0], [50.0, 55.0, 60.0]), "softmax 4096² fp32")
    assert (round(moved.own, 4), round(moved.stamps, 4), round(moved.correlation, 9)) == (0.0909, 0.0909, 1.0)
    against = judge.pairs(paired([50.0, 55.0, 60.0], [60.0, 55.0, 50.0]), "softmax 4096² fp32")
    assert round(against.correlation, 9) == -1
    noisy = judge.pairs(paired([50.0, 55.0, 60.0], [55.0, 55.0, 55.0]), "softmax 4096² fp32")
    assert (noisy.stamps, noisy.correlation, noisy.processes) == (0, None, 3)
    assert judge.pairs(paired([50.0, 55.0], [55.0]), "softmax 4096² fp32") is None
    assert judge.pairs(ideal(), "softmax 4096² fp32") is None


def test_pairs_stand_beside_a_broken_promise_and_do_not_mend_it():
    results = paired([50_000.0, 55_000.0, 60_000.0], [50_000.0, 55_000.0, 60_000.0])
    change(results, "fresh", OURS[0].name, "softmax 4096² fp32", readings_ns=[50_000.0, 55_000.0, 60_000.0])
    found = verdict(results, "fresh processes")
    assert found.kept is False
    assert found.words == "softmax 4096² fp32 9.09% (in pairs 9.09%, stamps 9.09%, correlation 1.00)"
    assert "| softmax 4096² fp32 | 55.0 µs | 9.09% | 3 | 9.09% | 9.09% | 1.00 |" in page(results, "x")


def test_what_was_not_measured_is_not_judged():
    assert {one.kept for one in judge.verdicts(Results({}))} == {None}
    results = ideal()
    alone = {tool.name for tool in (*OURS, STAMPS, COLD_STAMPS)}
    results.parts = {name: [one for one in rows if one.tool in alone] for name, rows in results.parts.items()}
    assert verdict(results, "gpubench cold: bias beyond no peer's").kept is None
    assert verdict(results, "gpubench cold: bias at most").kept is True


def test_a_file_is_read_as_it_was_written_and_others_are_refused(tmp_path: Path):
    path = tmp_path / "r.json.gz"
    save(ideal(), path)
    assert load(path) == ideal()
    (tmp_path / "other.json").write_text('{"schema": "gpubench.run/1"}')
    with pytest.raises(UsageError, match=r"other\.json: is not a file of gpubench\.timer-accuracy/1"):
        load(tmp_path / "other.json")
    text = '{"schema": "gpubench.timer-accuracy/1", "provenance": {}, "versions": {}, "parts": {"ncu": [{"tol": "x"}]}}'
    (tmp_path / "field.json").write_text(text)
    with pytest.raises(UsageError, match="a field is missing or unknown"):
        load(tmp_path / "field.json")


def test_the_profiler_never_sets_clocks_and_treats_caches_as_the_case_does():
    cold, hot = (ncu.command(tool, "cuda:0", ["spin 0 µs"]) for tool in NCU)
    for command, cache in ((cold, "all"), (hot, "none")):
        assert command[command.index("--clock-control") + 1] == "none"
        assert command[command.index("--cache-control") + 1] == cache


def test_the_profilers_calls_are_what_lies_between_two_stamps():
    heads = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
    rows = ["stamp(long *)", "spin(long *)", "stamp(long *)", "gemm", "reduce"]
    values = ["900", "1,100", "900", "2.5", "1,000"]
    units = ["ns", "ns", "ns", "us", "ns"]
    lines = [
        f'"{i}","{name}","gpu__time_duration.sum","{unit}","{value}"'
        for i, (name, unit, value) in enumerate(zip(rows, units, values, strict=True))
    ]
    assert ncu.durations("\n".join(["==PROF== Connected", heads, *lines])) == [1100.0, 3500.0]
    assert ncu.durations("") == []
    assert ncu.refusal("x\n==ERROR== ERR_NVGPUCTRPERM - no permission\n") == "ERR_NVGPUCTRPERM - no permission"


def test_a_work_in_which_ncu_saw_nothing_is_absent_and_not_of_no_time(monkeypatch: pytest.MonkeyPatch):
    """A copy is no kernel to ncu."""
    heads = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
    seen = [("stamp", 1), ("gemm", 900)] * ncu.CALLS + [("stamp", 1)] * ncu.CALLS
    text = "\n".join(
        [heads, *(f'"{n}","{name}","gpu__time_duration.sum","ns","{ns}"' for n, (name, ns) in enumerate(seen))]
    )
    monkeypatch.setattr(ncu.shutil, "which", lambda name: "/usr/bin/ncu")
    monkeypatch.setattr(
        ncu.subprocess, "run", lambda *words, **options: ncu.subprocess.CompletedProcess([], 0, text, "")
    )
    gemm, copy = ncu.refereed(NCU[0], "cuda:0", ["mm 4096 bf16", "copy 256 MiB"], {})
    assert gemm.reading_ns == 900
    assert copy.reading_ns is None
    assert copy.absent is not None
    assert "saw no kernel" in copy.absent


def test_a_profiler_that_is_not_here_is_a_row_that_is_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    (found,) = ncu.refereed(NCU[0], "cuda:0", [NOTHING], {})
    assert found.absent == "ncu is not installed"


def record(**fields: object) -> Record:
    made = Record("x", "timed-work", "spin", "d", {}, Conditions(), "ok")
    made.samples = Samples([5_000, 5_200, 5_100], [1] * 3, [0] * 3, [1900.0, None, 2000.0])
    made.timer = Timer("cupti", 32.0, reason="the first that works here")
    made.setup_ns, made.compile_ns, made.check_ns = 100_000_000, 50_000_000, 30_000_000
    made.metrics = [Metric("cycles", 10_000, "1", "higher")]
    return replace(made, **fields)


def test_what_a_case_costs_is_all_but_its_data_its_compiler_and_its_check():
    found = Row("gpubench cold", "spin 5 µs")
    ours.put(record(), 0.3, found)
    assert (found.readings_ns, found.sm_mhz, found.cycles, found.tick_ns) == ([5_100], [1950.0], [10_000], 32.0)
    assert found.costs_s == [pytest.approx(0.12)]
    assert found.note == "cupti"


def test_each_repeat_is_a_case_of_its_own_and_a_failure_makes_the_row_absent():
    asked = []

    def answer(case: Case, effort: Effort):
        asked.append((case.id, case.conditions.cache, effort.timer))
        yield record() if case.benchmark == "spin" else record(status="oom", reason="no room")

    worker = SimpleNamespace(measure=answer)
    rows = list(ours.measured(worker, TOOLS["gpubench event"], [DURATIONS[1], OPERATIONS[1]], 2))
    assert [len(one.readings_ns) for one in rows] == [2, 0]
    assert rows[1].absent == "no room"
    assert asked[0] == ("timed-work/spin[us=1]", "cold", "event")
    assert len(asked) == 3


class Scripted(timer_accuracy.Benchmark):
    """A benchmark whose children are scripted: each call gives rows until its word, the last words of the process."""

    script: list[tuple[int, str]]

    def _open(self) -> None:
        pass

    def _ours(self, part, missing) -> None:
        pass

    def _child(self, items):
        count, self.last_words = self.script.pop(0)
        for item in items[:count]:
            tool, work = item.split(":", 1)
            if tool == PAIR[0]:
                yield from (Row(name, work, [reading(name, WORKS[work])]) for name in PAIR)
            else:
                yield row(tool, WORKS[work])


def scripted(path: Path, *script: tuple[int, str]) -> Scripted:
    made = Scripted(path, "cuda:0", 10, 10, None)
    made.script = list(script)
    return made


def test_a_peer_that_ends_its_process_costs_one_row(tmp_path: Path):
    benchmark = scripted(tmp_path / "r.json", (3, "status -11"), (1000, ""), (0, "status 1"))
    benchmark.run("operations")
    absent = [one for one in benchmark.results.rows("operations") if one.absent]
    assert [one.absent for one in absent] == ["its process ended: status -11"] + ["its process ended: status 1"] * 16
    assert {one.tool for one in absent[1:]} == {tool.name for tool in NVBENCH}
    again = scripted(tmp_path / "r.json")
    assert {tool for tool, _ in again.missing("operations")} == {tool.name for tool in OURS}


def test_processes_that_all_end_at_once_are_not_started_for_every_row(tmp_path: Path):
    benchmark = scripted(tmp_path / "r.json", (0, "status 1"), (0, "status 1"), (0, "status 1"))
    benchmark.run("operations")
    assert benchmark.script == []  # two of the peers, one of NVBench
    assert {one.absent for one in benchmark.results.rows("operations")} == {"its process ended: status 1"}


def test_each_process_adds_a_reading_to_every_pair(tmp_path: Path):
    processes = 10
    first = scripted(tmp_path / "r.json", *[(8, "")] * 4, (3, "status -11"))
    with pytest.raises(UsageError, match="pairs: a process ended: status -11"):
        first.run("pairs")
    again = scripted(tmp_path / "r.json", *[(8, "")] * (processes - 4))
    assert len(again.missing("pairs")) == 2 * len(OPERATIONS)
    again.run("pairs")
    rows = list(load(tmp_path / "r.json").rows("pairs"))
    assert {(one.tool, one.work) for one in rows} == {(tool, work.name) for tool in PAIR for work in OPERATIONS}
    assert {len(one.readings_ns) for one in rows} == {processes}
    assert again.script == []


def test_a_spent_budget_leaves_the_rest_for_the_next_time(tmp_path: Path):
    first = scripted(tmp_path / "r.json", (5, ""))
    with pytest.raises(timer_accuracy.Spent):
        first.run("durations")
    before = len(scripted(tmp_path / "empty.json").missing("durations"))
    assert len(scripted(tmp_path / "r.json").missing("durations")) == before - 5
    late = Scripted(tmp_path / "r.json", "cuda:0", 10, 10, budget=-1.0)
    with pytest.raises(timer_accuracy.Spent):
        late.run("durations")


def test_what_is_done_is_not_measured_again(tmp_path: Path):
    save(ideal(), tmp_path / "r.json")
    benchmark = scripted(tmp_path / "r.json")
    assert benchmark.missing("durations") == []
    benchmark.run("durations")  # opens no device, starts no child
    assert {tool for tool, _ in benchmark.missing("fresh")} == {"gpubench cold"}  # three of ten processes


def test_a_childs_items_are_split_at_the_first_colon_and_the_budget_is_kept(monkeypatch: pytest.MonkeyPatch):
    class Peer:
        def __init__(self, device: str) -> None:
            pass

        def row(self, tool, work, repeats):
            return Row(tool.name, work.name, [float(repeats)])

    monkeypatch.setattr(peers, "Bench", Peer)
    monkeypatch.setattr(peers, "version_of", lambda distribution: "1.0")
    sent: list[dict] = []
    child.serve(["cuda:0", "10", "60", "torch Timer:mm 1024 bf16", "stamps:spin 0 µs"], sent.append)
    assert sent[0] == {"version": ["torch Timer", "torch 1.0"]}
    assert [one["row"]["readings_ns"] for one in sent[1:]] == [[5.0], [3.0]]
    sent.clear()
    monkeypatch.setattr("accuracy.pairs.pair", lambda bench, work: (Row("one", work.name), Row("two", work.name)))
    child.serve(["cuda:0", "10", "60", "gpubench cold:mm 1024 bf16", "gpubench cold:mm 4096 bf16"], sent.append)
    assert [one["row"]["tool"] for one in sent] == ["one", "two"] * 2
    sent.clear()
    child.serve(["cuda:0", "10", "0", "torch Timer:mm 1024 bf16"], sent.append)
    assert [key for one in sent for key in one] == ["version"]


def test_a_peer_that_is_not_installed_or_fails_is_absent():
    bench = object.__new__(peers.Bench)
    bench.workload = lambda work: (lambda: None, SimpleNamespace(metrics=None))
    bench.clock_behind = lambda call, ns: 1980.0
    missing = bench.row(TOOLS["cupyx"], OPERATIONS[0], 2)
    if importlib.util.find_spec("cupyx") is None:
        assert missing.absent == "cupy is not installed"
    bench.stamps = lambda call, cold: (_ for _ in ()).throw(RuntimeError("no\nkernel"))
    assert bench.row(STAMPS, OPERATIONS[0], 2).absent == "RuntimeError: no kernel"
    bench.stamps = lambda call, cold: (2000.0 if cold else 1000.0, 1980.0)
    bench.clock = SimpleNamespace(tick_ns=32.0)
    found = bench.row(COLD_STAMPS, OPERATIONS[0], 2)
    assert (found.readings_ns, found.sm_mhz, found.tick_ns) == ([2000.0] * 2, [1980.0] * 2, 32.0)


def test_nvbenchs_file_is_read_by_its_own_reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    summaries = {"nv/cold/time/gpu/mean": SimpleNamespace(value=3.5e-6)}
    state = SimpleNamespace(summaries=summaries, point={"Work": "0", "Repeat": "0"})
    reader = ModuleType("cuda.bench.results")
    content = {"timed": SimpleNamespace(states=[state, state])}
    reader.BenchmarkResult = SimpleNamespace(from_json=lambda file: content)
    for name in ("cuda", "cuda.bench"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "cuda.bench.results", reader)
    found = {(tool.name, OPERATIONS[0].name): Row(tool.name, OPERATIONS[0].name) for tool in NVBENCH}
    nvbench.read(tmp_path / "nvbench.json", OPERATIONS[:1], found)
    assert [one.readings_ns for one in found.values()] == [[pytest.approx(3500.0)] * 2, []]


SMALL = {"scale": {"mib": 1}, "copy": {"mib": 1}, "mm": {"n": 64}, "softmax": {"n": 64}, "add": {"n": 8}}
SMALL |= {"chain": {"n": 8}}


@pytest.mark.parametrize("name", SMALL)
def test_an_operation_gives_what_its_reference_says(name: str):
    suite = load_suite(SUITE)
    case = Case(suite.name, name, SMALL[name], Conditions(cache="hot"))
    *_, found = measure(suite.benchmarks[name], case, CpuDevice(), Effort(Stopping(samples=2)))
    assert (found.status, found.reason) == ("ok", None)


def test_every_work_is_one_of_the_suites_axes():
    suite = load_suite(SUITE)
    for work in WORKS.values():
        benchmark = suite.benchmarks[work.benchmark]
        assert dict(work.params) in [dict(params) for params in benchmark.cases("cuda")], work.name
    assert set(JUDGED) <= set(OURS)


def test_without_such_a_gpu_it_says_so_in_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert timer_accuracy.main(["--out", str(tmp_path / "r.json"), "--device", "cuda:99"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("timer_accuracy: needs an NVIDIA GPU")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("accuracy_script", ROOT / "scripts/accuracy.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_the_golden_file_is_the_golden_page():
    assert page(load(GOLDEN), GOLDEN.name) == GOLDEN.with_suffix(".md").read_text(encoding="utf-8")


def test_a_page_is_drawn_checked_and_found_wrong(script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "golden.json").write_bytes(GOLDEN.read_bytes())
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "PAGES", {"page.md": "golden.json", "later.md": "not-there.json"})
    assert script.main(["--check"]) == 1
    assert script.main([]) == 0
    assert script.main(["--check"]) == 0
    (tmp_path / "page.md").write_text((tmp_path / "page.md").read_text() + "by hand\n")
    assert script.main(["--check"]) == 1


def test_the_pages_of_docs_are_what_their_files_say(script):
    """Of every page whose file is committed; none may be there without its file."""
    for name, source in script.PAGES.items():
        assert (ROOT / name).is_file() == (ROOT / source).is_file(), f"make pictures ({name})"
    assert script.main(["--check"]) == 0, "make pictures"


def test_an_absent_tool_is_named_with_its_reason():
    results = ideal()
    results.add("operations", Row("cupyx", "mm 1024 bf16", absent="cupy is not installed"))
    assert "- cupyx: cupy is not installed (1 of its rows)" in page(results, "x.json").splitlines()
