"""A pass under ncu: which kernels are a row's, and what is said where there are none. The ncu here is `fakencu`."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command import FAULTS, OK
from fakencu import install

from gpubench.profiling import child, counting
from gpubench.profiling.child import Failed, Watch
from gpubench.profiling.counting import Job, count
from gpubench.profiling.matching import base_name
from gpubench.profiling.metrics import COUNTERS, Counter, chosen
from gpubench.result import Conditions, KernelSeen
from gpubench.suite import Case

SEEN = [KernelSeen("fake_kernel(float*)", grid=[1, 1, 1])]
DRAM = (COUNTERS["dram_bytes_read"], COUNTERS["dram_bytes_write"])


def job(n: int = 1, cache: Any = "cold", kernels: Sequence[KernelSeen] = SEEN) -> Job:
    return Job(Case("ok", "double", {"n": n, "dtype": "float32"}, Conditions(cache)), Path(OK), kernels)


def passed(
    folder: Path, jobs: Sequence[Job], how: str = "", counters: Sequence[Counter] = DRAM, rows: int = 99, **more: Any
) -> counting.Pass:
    env = {**os.environ, **install(folder), "FAKE_NCU": how, "FAKE_NCU_TOLD": "1", "FAKE_NCU_ROWS": str(rows)}
    return count(jobs, counters, device="fake", seed=0, timeout=60.0, environ=env, **more)


def test_rows_get_the_counters_of_their_own_kernels(tmp_path: Path) -> None:
    found = passed(tmp_path, [job(1), job(2)])
    copy = {"bytes": 1000, "counted": 1000, "error": 0.0}
    values = {"dram_bytes_read": 400, "dram_bytes_write": 600}
    kernel = {"name": "fake_kernel(float *)", "grid": [1, 1, 1], "block": [1, 1, 1], **values}
    row = {"source": "ncu 2025.3.1.0", "cache_control": "all", "known_copy": copy, **values, "kernels": [kernel]}
    assert found.counters == [row, row]
    assert (found.copy, found.problems) == (copy, [])


def test_hot_and_cold_rows_are_counted_apart_and_keep_their_order(tmp_path: Path) -> None:
    found = passed(tmp_path, [job(1, "hot"), job(2), job(3, "hot")])
    assert [row["cache_control"] for row in found.counters] == ["none", "all", "none"]
    said = [json.loads(line) for line in (tmp_path / "ncu.said").read_text().splitlines()]
    assert [words[words.index("--cache-control") + 1] for words in said] == ["all", "none"]
    assert all(words[words.index("--clock-control") + 1] == "none" for words in said)


def test_metrics_that_are_not_known_are_left_out_or_replaced(tmp_path: Path) -> None:
    found = passed(tmp_path, [job()], "unknown", chosen(None, None))
    (row,) = found.counters
    assert row["dram_bytes_read"] == 100  # by its other name, which is then the first metric asked for
    assert row["gmma_instructions"] is None
    assert list(row["unavailable"]) == ["gmma_instructions"]
    assert row["threads_per_instruction"] == 32
    assert len((tmp_path / "ncu.said").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("denied", "hardware counters need permission (ERR_NVGPUCTRPERM)"),
        ("taken", "another profiler holds the hardware counters"),
        ("silent", "ncu counted no kernel"),
        ("unranged", "ncu shows no NVTX ranges"),
    ],
)
def test_one_line_says_why_there_are_none(tmp_path: Path, how: str, words: str) -> None:
    found = passed(tmp_path, [job(1), job(2, "hot")], how)
    (line,) = found.problems
    assert line.startswith(f"no counters: {words}")
    assert line.endswith("; bytes are inferred from time")
    assert [words in str(counting.reason_of(row)) for row in found.counters] == [True, True]


def test_without_ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting.surroundings, "find_ncu", lambda environ: None)
    found = count([job()], DRAM, device="fake", seed=0, timeout=60.0)
    assert found.problems[0].startswith("no counters: ncu is not installed")
    assert found.counters[0]["unavailable"]["counters"].startswith("ncu is not installed")


def test_an_ncu_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting.surroundings, "find_ncu", lambda environ: str(tmp_path))
    found = count([job()], DRAM, device="fake", seed=0, timeout=60.0)
    assert "ncu cannot be started: Permission denied" in found.problems[0]


def test_a_device_that_is_not_there_is_the_reason(tmp_path: Path) -> None:
    env = {**os.environ, **install(tmp_path), "FAKE_NCU": "silent"}
    found = count([job()], DRAM, device="moon", seed=0, timeout=60.0, environ=env)
    assert "--device 'moon' is not a device" in found.problems[0]


def test_a_case_without_kernels_and_one_with_others_are_told_apart(tmp_path: Path) -> None:
    found = passed(tmp_path, [job(1), job(2), job(3, kernels=[KernelSeen("scale", grid=[1, 1, 1])])], "missing")
    one, two, three = map(counting.reason_of, found.counters)
    assert one is None
    assert two == "ncu counted no kernel of this case (copies and sets are none)"
    assert three == "other kernels were counted than timed: fake_kernel with grid [1, 1, 1] was only counted"


@pytest.mark.parametrize(
    ("seen", "fits"),
    [
        ([], True),
        ([KernelSeen("ns::fake_kernel<4>(T1)", grid=[1, 1, 1])], True),
        ([KernelSeen("fake_kernel", grid=[1, 1, 1]), KernelSeen("Memset", "memset")], True),
        ([KernelSeen("fake_kernel", grid=[2, 1, 1])], False),
        ([KernelSeen("fake_kernel", grid=[1, 1, 1], count=2)], False),
        ([KernelSeen("fake_kernel", grid=[1, 1, 1]), KernelSeen("more", grid=[1, 1, 1])], False),
        ([KernelSeen("fake_kernel<A>", grid=[1, 1, 1]), KernelSeen("fake_kernel<B>", grid=[1, 1, 1])], False),
    ],
)
def test_kernels_are_held_against_those_that_were_timed(tmp_path: Path, seen: list[KernelSeen], fits: bool) -> None:
    (row,) = passed(tmp_path, [job(kernels=seen)]).counters
    assert (counting.reason_of(row) is None) is fits
    assert row.get("not_counted") == (["Memset (1 a call)"] if len(seen) == 2 and fits else None)


def test_bytes_that_are_off_are_said(tmp_path: Path) -> None:
    found = passed(tmp_path, [job()], "off")
    assert found.problems == ["counted bytes are off: a copy of known bytes reads +100.0 %"]
    assert found.counters[0]["known_copy"]["error"] == 1.0


def test_a_case_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "OPEN_TIMEOUT", 0.0)
    monkeypatch.setattr(child, "LISTEN_S", 0.01)
    monkeypatch.setattr(child, "ENDING_S", 0.0)
    env = {**os.environ, **install(tmp_path)}
    (tmp_path / "bin/ncu").write_text("#!/bin/sh\nexec sleep 600\n")
    watch = Watch(0.01)
    with pytest.raises(Failed, match=r"ncu was given up: a case took longer than 0\.01 s"):
        child.wait("ncu", [str(tmp_path / "bin/ncu")], tmp_path / "said", _empty(tmp_path / "told"), watch, env)


@pytest.mark.parametrize(
    ("rows", "processes"),
    [
        ("", []),
        ("cold hot cold", [("cold", [0, 2]), ("hot", [1])]),
        ("cold COLD hot", [("cold", [1, 0]), ("hot", [2])]),
        ("cold hot HOT", [("hot", [2]), ("cold", [0]), ("hot", [1])]),
        ("hot cold HOT COLD", [("hot", [2]), ("cold", [3, 1]), ("hot", [0])]),
        ("hot HOT", [("hot", [1, 0])]),
    ],
)
def test_rows_that_come_first_are_in_front_in_as_few_processes_as_can_be(rows: str, processes: Any) -> None:
    jobs = [Job(job(1, word.lower()).case, Path(OK), first=word.isupper()) for word in rows.split()]
    assert counting._processes(jobs) == processes


def test_rows_that_time_did_not_reach_say_what_to_type(tmp_path: Path) -> None:
    found = passed(tmp_path, [job(1), job(2), job(3), job(4, "hot")], rows=1)
    reasons = [counting.reason_of(row) for row in found.counters]
    assert reasons == [None, counting.NO_TIME, counting.NO_TIME, None]
    assert "gpubench profile" in counting.NO_TIME
    assert found.problems == []


def test_nothing_is_started_once_time_is_up(tmp_path: Path) -> None:
    found = passed(tmp_path, [job(1), job(2, "hot")], budget=0.0)
    assert [counting.reason_of(row) for row in found.counters] == [counting.NO_TIME] * 2
    assert not (tmp_path / "ncu.said").exists()
    assert found.problems == []


@pytest.mark.parametrize("budget", [None, 1000.0])
def test_all_processes_end_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: float | None
) -> None:
    asked: list[dict[str, Any]] = []
    befores: list[int] = []

    def refuse(program: str, wanted: Any, cache: str, request: dict[str, Any], watch: Watch, *rest: Any) -> Any:
        asked.append(request)
        befores.append(watch.before)
        raise Failed("not now")

    monkeypatch.setattr(counting, "_run", refuse)
    before = time.monotonic()
    passed(tmp_path, [job(1), job(2, "hot"), job(3)], budget=budget)
    assert befores == [0, 2]
    first, second = (request["until"] for request in asked)
    assert first == second
    assert first is None if budget is None else before + budget <= first <= time.monotonic() + budget


def test_how_many_rows_are_done_is_told_while_ncu_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "LISTEN_S", 0.01)
    monkeypatch.setattr(child, "ENDING_S", 0.0)
    go, told = tmp_path / "go", tmp_path / "told"
    os.mkfifo(go)
    lines = '{"copy":1}\n{"0":"ok"}\n{"1":"wrong"}\n{"2":'
    script = tmp_path / "ncu"
    script.write_text(f"#!/bin/sh\nprintf '{lines}' >> {told}\nread line < {go}\n".replace("\n{", "\\n{"))
    script.chmod(0o755)
    numbers: list[int] = []

    def seen(done: int) -> None:
        numbers.append(done)
        if done == 7:
            go.write_text("on\n")

    child.wait("ncu", [str(script)], tmp_path / "said", _empty(told), Watch(9.0, seen, before=5), os.environ)
    assert set(numbers) <= {5, 7}
    assert 7 in numbers


def test_the_process_is_told_when_and_for_whom_it_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def look(what: str, words: Sequence[str], *rest: Any) -> None:
        asked.append(json.loads(Path(words[-1]).read_text()))

    monkeypatch.setattr(child, "wait", look)
    passed(tmp_path, [job()])
    assert (asked[0]["timeout"], asked[0]["parent"], asked[0]["until"]) == (60.0, os.getpid(), None)


def _empty(path: Path) -> Path:
    path.touch()
    return path


def test_the_last_words_under_ncu_are_told(tmp_path: Path) -> None:
    loud = Job(Case("faults", "fault", {"how": "chatter", "when": "run"}, Conditions()), Path(FAULTS))
    told: list[str] = []
    env = {**os.environ, **install(tmp_path)}
    count([loud], DRAM, device="fake", seed=0, timeout=60.0, environ=env, tell=told.append)
    assert "chatter on stdout" in told


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("read", "read"),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::X<float>, 2>(int, T2)",
            "vectorized_elementwise_kernel",
        ),
        ("void (anonymous namespace)::softmax<float>(float*)", "softmax"),
        ("void <unnamed>::softmax<float>(float *)", "softmax"),
        ("cutlass::Kernel2<cutlass_80_tensorop>(Params)", "Kernel2"),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT", "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT"),
        ("", ""),
    ],
)
def test_the_part_of_a_name_that_tools_agree_on(name: str, base: str) -> None:
    assert base_name(name) == base
