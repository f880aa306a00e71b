"""Findings from facts: what each check says of a sick machine, and that a healthy one has nothing but oks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from gpubench.devices.nvml import Nvml
from gpubench.doctor import LEVELS, VARIABLES, Finding, Patient, diagnose
from gpubench.environment import WATCHED
from gpubench.report import doctor as report
from gpubench.testing import FakeNvml

NVML = Nvml("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", FakeNvml(), in_use=False)
STATE = NVML.survey() | {"sm_mhz": 1980, "other_processes": 0, "utilization_percent": 0}
CLEAN = {
    "load": 0.1,
    "cores": 16,
    "free_bytes": 50_000_000_000,
    "results_problem": None,
    "compiler": "g++",
    "ncu": True,
    "counters_need_root": False,
    "root": False,
    "traced": False,
}
GPU = Patient(
    device={"kind": "cuda", "name": "NVIDIA H200", **NVML.facts(), "at_opening": STATE},
    software={"torch": "2.11.0+cu130"},
    calibration={
        "timers": {"cupti": {"tick_ns": 32.0, "empty_ns": 1100.0}, "event": {"tick_ns": 500.0, "empty_ns": 5000.0}},
        "cold": {"hot_ns": 4000, "after_write_ns": 9000, "after_flush_ns": 8000},
    },
    examined={
        "noise": {"timer": "cupti", "samples": 50, "median_ns": 52_000.0, "p10_ns": 51_900.0, "p90_ns": 52_100.0},
        "kernels": {"cupy": "14.2.0", "nvrtc": "13.0"},
        "state": STATE,
        "mask": None,
    },
    host={"os": "Linux", "virtual": False, "container": None, "governor": "performance"},
    surroundings=CLEAN,
)
CPU = Patient(
    device={"kind": "cpu", "name": "Example CPU", "threads": 16, "quota_cores": None, "governor": "performance"},
    software={"torch": "2.13.0+cpu"},
    calibration={"timers": {"host": {"tick_ns": 20.0, "empty_ns": 60.0}}},
    examined={"noise": {"timer": "host", "samples": 50, "median_ns": 1e6, "p10_ns": 0.995e6, "p90_ns": 1.005e6}},
    host=GPU.host,
    surroundings=CLEAN,
)


def changed(patient: Patient, **changes: Mapping[str, Any] | str | None) -> Patient:
    """Another patient: mappings are merged into those it has, deeper ones too; `state` is of examined."""

    def merged(old: Any, new: Any) -> Any:
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            return {**old, **{name: merged(old.get(name), value) for name, value in new.items()}}
        return new

    if "state" in changes:
        changes["examined"] = {"state": changes.pop("state")}
    return replace(patient, **{name: merged(getattr(patient, name), value) for name, value in changes.items()})


def findings(patient: Patient, check: str) -> list[tuple[str, str]]:
    """Level and words of what a check finds."""
    return [(finding.level, finding.what) for finding in diagnose(patient) if finding.check == check]


def test_what_is_known_of_each_timer() -> None:
    known = {"spun_ns": 100_032, "read_ns": 100_640.0}
    timers = {
        "cupti": {"known": known, "source": "torch.profiler"},
        "graph": {"unavailable": "graph does not work here: no capture"},
    }
    empty = "an empty kernel reads"
    assert findings(changed(GPU, calibration={"timers": timers}), "timer") == [
        ("note", "graph does not work here: no capture"),
        ("ok", f"timer cupti: tick 32.0 ns, {empty} 1.10 µs, one of 100 µs 101 µs (records by torch.profiler)"),
        ("ok", f"timer event: tick 500 ns, {empty} 5.00 µs"),
    ]


@pytest.mark.parametrize("patient", [GPU, CPU], ids=["GPU", "CPU"])
def test_a_healthy_machine(patient: Patient) -> None:
    found = diagnose(patient)
    assert {finding.level for finding in found} == {"ok"}
    assert len(found) > 5
    assert report.verdict(found, "X") == "X: nothing found that spoils a measurement"


def test_of_nothing_nothing_is_found() -> None:
    for kind in ("cuda", "cpu", "fake"):
        found = diagnose(Patient({"kind": kind}))
        assert {finding.check for finding in found} <= {"profiler", "compiler"}


SICK: list[tuple[str, dict[str, Any], str, str, str]] = [
    # what is changed, the check, its level, words it says
    ("at_opening", {"utilization_percent": 97}, "sharing", "bad", "the GPU is in use: utilization 97 %"),
    ("at_opening", {"other_processes": 2}, "sharing", "warn", "the GPU is in use: 2 other processes"),
    ("state", {"mps_processes": 1}, "sharing", "warn", "an MPS server runs"),
    ("device", {"compute_mode": "exclusive process"}, "sharing", "note", "compute mode: exclusive process"),
    ("examined", {"mask": "CUDA_VISIBLE_DEVICES is '0,,1': …"}, "sharing", "note", "CUDA_VISIBLE_DEVICES is"),
    ("device", {"power_limit_w": 400.0}, "power", "warn", "power limit 400 W, by default 700 W"),
    ("device", {"sm_mhz_application": 1200}, "clocks", "warn", "application clock 1200 MHz, the highest is 1980 MHz"),
    ("state", {"sm_mhz": 1500}, "clocks", "note", "SM clock 1500 MHz right after work, the highest is 1980 MHz"),
    ("device", {"persistence": False}, "clocks", "note", "persistence mode is off"),
    ("state", {"clock_events": ["hardware thermal slowdown"]}, "heat", "bad", "slowed: hardware thermal slowdown"),
    ("state", {"event_ns": {"hardware power brake": 5}}, "heat", "bad", "slowed: hardware power brake"),
    ("state", {"temperature_c": 85}, "heat", "warn", "85 °C, slowed from 89 °C on"),
    ("state", {"may_miss": True}, "heat", "note", "this driver does not count the time it is slowed"),
    ("state", {"ecc_uncorrected": 3}, "memory", "bad", "3 memory errors that were not corrected"),
    ("state", {"remapped_rows": {"failure": 1}}, "memory", "bad", "could not be replaced"),
    ("state", {"remapped_rows": {"pending": 1}}, "memory", "warn", "waits to be replaced"),
    ("state", {"remapped_rows": {"correctable": 2, "uncorrectable": 1}}, "memory", "note", "3 rows of memory"),
    ("device", {"ecc": False}, "memory", "ok", "ECC off"),
    ("device", {"mig": True}, "mig", "note", "a slice of a GPU (MIG)"),
    ("state", {"pcie_width": 4}, "link", "warn", "PCIe ×4 of ×16"),
    ("state", {"pcie_generation": 1}, "link", "note", "PCIe generation 1 of 5"),
    ("state", {"unavailable": {"nvml": "NVML: OSError: libnvidia-ml.so.1"}}, "telemetry", "warn", "libnvidia-ml"),
    ("calibration", {"cold": {"after_flush_ns": 4100}}, "flush", "warn", "after a flush of the cache"),
    ("calibration", {"timers": {"cupti": {"unavailable": "cupti does not work"}}}, "timer", "warn", "cupti does not"),
    ("examined", {"kernels": {"failure": "CuPy is not installed"}}, "kernels", "warn", "CuPy is not installed"),
    ("examined", {"noise": {"p10_ns": 45_000.0, "p90_ns": 55_000.0}}, "noise", "warn", "differ by ±9.6 %"),
    ("examined", {"noise": {"p90_ns": 54_500.0}}, "noise", "note", "differ by ±2.5 %"),
    ("examined", {"noise": {"p90_ns": 90_000.0}}, "noise", "bad", "differ by ±36.6 %"),
    ("surroundings", {"ncu": False}, "profiler", "note", "ncu is not found"),
    ("surroundings", {"counters_need_root": True}, "profiler", "note", "kept for the administrator"),
    ("surroundings", {"load": 20.0}, "load", "warn", "load average 20.0 on 16 cores"),
    ("surroundings", {"results_problem": "cannot be written"}, "results", "bad", "cannot be written"),
    ("surroundings", {"free_bytes": 10_000_000}, "results", "bad", "10.0 MB free"),
    ("surroundings", {"free_bytes": 500_000_000}, "results", "note", "500 MB free"),
    ("surroundings", {"traced": True}, "platform", "warn", "a debugger is attached"),
    ("host", {"governor": "powersave"}, "governor", "note", "CPU governor powersave"),
    ("host", {"os": "Windows"}, "platform", "note", "Windows: reading and comparing work"),
    ("host", {"os": "Darwin"}, "platform", "note", "macOS: reading and comparing work"),
    ("host", {"virtual": "wsl"}, "platform", "note", "WSL: NVML tells a part"),
    ("host", {"virtual": True}, "platform", "note", "a virtual machine"),
    ("host", {"container": "docker"}, "platform", "note", "in a container (docker)"),
    ("software", {"torch": "2.8.1"}, "torch", "bad", "torch 2.8.1 is too old"),
    ("software", {"torch": "2.10.0+cu128"}, "torch", "note", "torch 2.10.0+cu128; tested are 2.11 to 2.13"),
    ("software", {"torch": "3.0"}, "torch", "note", "torch 3.0; tested are"),
]


@pytest.mark.parametrize(("part", "values", "check", "level", "words"), SICK, ids=lambda value: str(value)[:40])
def test_what_ails_a_gpu(part: str, values: dict[str, Any], check: str, level: str, words: str) -> None:
    part, values = ("device", {"at_opening": values}) if part == "at_opening" else (part, values)
    found = [finding for finding in diagnose(changed(GPU, **{part: values})) if finding.check == check]
    fitting = [finding for finding in found if words in finding.what]
    assert [finding.level for finding in fitting] == [level], found
    if level in ("bad", "warn"):
        assert fitting[0].why or fitting[0].fix
    others = {finding.level for finding in diagnose(changed(GPU, **{part: values})) if finding.check != check}
    assert others == {"ok"}, "one ailment is one finding"


@pytest.mark.parametrize(
    ("load", "level"), [(0.1, "ok"), (3.9, "ok"), (4.0, "warn"), (15.9, "warn"), (16.0, "bad"), (64.0, "bad")]
)
def test_load_disturbs_a_cpu_sooner_than_a_gpu(load: float, level: str) -> None:
    assert [found for found, _ in findings(changed(CPU, surroundings={"load": load}), "load")] == [level]
    assert findings(changed(GPU, surroundings={"load": load}), "load")[0][0] == ("ok" if load < 16 else "warn")


@pytest.mark.parametrize(
    ("changes", "check", "level", "words"),
    [
        ({"device": {"quota_cores": 1.5}}, "threads", "warn", "16 threads, but CPU time for 1.5 cores"),
        ({"device": {"governor": "powersave"}}, "governor", "warn", "CPU governor powersave"),
        ({"surroundings": {"compiler": None}}, "compiler", "warn", "no C++ compiler"),
        ({"notice": "no CUDA device (ROCm is not supported); measuring the CPU"}, "device", "note", "ROCm is not"),
    ],
)
def test_what_ails_a_cpu(changes: dict[str, Any], check: str, level: str, words: str) -> None:
    assert [(found, words in what) for found, what in findings(changed(CPU, **changes), check)] == [(level, True)]


def test_no_gpu_words_on_a_cpu() -> None:
    sick = changed(CPU, surroundings={"ncu": False, "counters_need_root": True}, examined={"kernels": {"failure": "x"}})
    words = " ".join(f"{finding.what} {finding.why} {finding.fix}" for finding in diagnose(sick))
    assert not any(word in words for word in ("GPU", "CUDA", "NVML", "nvidia", "ncu"))


def test_a_device_lost_while_it_was_tried() -> None:
    found = diagnose(changed(GPU, lost="the worker ended (SIGSEGV)", examined={"noise": None}))
    assert (found[0].level, found[0].what) == ("bad", "the worker ended (SIGSEGV)")
    assert report.verdict(found, "X").startswith("X: do not trust a measurement here yet: 1 bad finding")


@pytest.mark.parametrize("reason", ["CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", "no permission to profile"])
def test_permission_to_profile_has_its_own_fix(reason: str) -> None:
    found = diagnose(changed(GPU, calibration={"timers": {"cupti": {"unavailable": reason}}}))
    assert "NVreg_RestrictProfilingToAdminUsers=0" in found[0].fix


@pytest.mark.parametrize(
    ("reason", "fix"),
    [
        ("NVML: NVMLError_LibRmVersionMismatch: RM has detected an NVML/RM version mismatch.", "reboot"),
        ("NVML: ModuleNotFoundError: No module named 'pynvml'", "pip install nvidia-ml-py"),
        ("NVML: NVMLError_LibraryNotFound: NVML Shared Library Not Found", "NVIDIA_DRIVER_CAPABILITIES"),
    ],
)
def test_the_fix_of_missing_telemetry_is_that_of_its_cause(reason: str, fix: str) -> None:
    nothing = dict.fromkeys(STATE) | {"unavailable": {"nvml": reason}}
    dead = replace(
        GPU,
        device={"kind": "cuda", "name": "X", "at_opening": nothing},
        examined={"state": nothing},
    )
    found = [finding for finding in diagnose(dead) if finding.level != "ok"]
    assert [finding.check for finding in found] == ["telemetry"]
    assert fix in found[0].fix


def test_counters_that_stand_still_are_the_past() -> None:
    past = {"event_ns": {"software thermal slowdown": 3_200_000_000, "software power cap": 9}}
    patient = changed(GPU, device={"at_opening": past}, state=past)
    assert findings(patient, "heat")[0] == (
        "note",
        "since the driver was loaded: software thermal slowdown 3.20 s",
    )


def test_root_may_count() -> None:
    allowed = changed(GPU, surroundings={"counters_need_root": True, "root": True})
    assert findings(allowed, "profiler") == [("ok", "ncu is found")]


@pytest.mark.parametrize("pattern", WATCHED)
def test_every_watched_variable_is_named_with_its_value_and_fix(pattern: str) -> None:
    name = pattern.replace("*", "X")
    (finding,) = (each for each in diagnose(changed(CPU, variables={name: "1"})) if each.check == "variable")
    assert finding.what == f"{name}=1"
    assert finding.level in ("warn", "note")
    assert (finding.fix, len(finding.why) > 10) == (f"unset {name}", True)


def test_every_variable_explained_is_watched() -> None:
    assert set(VARIABLES) - {"*"} <= set(WATCHED)


def test_the_worst_comes_first() -> None:
    sick = changed(GPU, device={"power_limit_w": 400.0, "mig": True}, state={"ecc_uncorrected": 1})
    levels = [LEVELS.index(finding.level) for finding in diagnose(sick)]
    assert levels == sorted(levels)
    assert levels[0] == 0


def printed(what: Any, width: int = 80) -> str:
    console = Console(width=width, no_color=True, markup=False, highlight=False)
    with console.capture() as capture:
        console.print(what)
    return capture.get()


def test_a_table_of_findings_fits_80_columns_and_reads_no_markup() -> None:
    found = [
        Finding("bad", "x", "[bold]what\x1b[2J[/bold]", "why " * 40, "fix it"),
        Finding("ok", "y", "fine"),
    ]
    lines = printed(report.table(found)).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[2].startswith("bad  [bold]what")
    assert "\x1b" not in "".join(lines)
    assert any(line.strip() == "fix  fix it" for line in lines)
    assert report.verdict(found, "X") == "X: do not trust a measurement here yet: 1 bad finding"
    assert report.verdict([Finding("warn", "x", "y")] * 2, "X") == "X: measurements will be disturbed: 2 warnings"
    assert report.to_json(found, "X")["findings"][1] == {
        "level": "ok",
        "check": "y",
        "what": "fine",
        "why": "",
        "fix": "",
    }
