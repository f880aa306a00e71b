"""What will spoil a measurement here: findings from facts, with the noise to expect and the fix for each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

from gpubench import telemetry
from gpubench.units import format_bytes, format_duration, format_half_width

Level = Literal["bad", "warn", "note", "ok"]
LEVELS: tuple[Level, ...] = ("bad", "warn", "note", "ok")

NOISE = ((0.20, "bad"), (0.05, "warn"), (0.02, "note"))
"""Half the spread between the first and the last tenth of equal samples, from which on it is of a level."""
FLUSHES = 1.05
"""A read after a flush takes at least this many times what it takes hot, if the flush flushes."""
NEAR_SLOWDOWN_C = 5
FULL_CLOCK = 0.98
"""The share of its highest clock that a GPU reaches between paced calls, if nothing holds it back."""
LOAD = {"cpu": 0.25, "cuda": 1.0}
"""The load average per core, of others' work, that disturbs: a GPU's host needs one core only."""
FREE_BYTES = ((100_000_000, "bad"), (1_000_000_000, "note"))
OLDEST_TORCH, TESTED_TORCH = (2, 9), ((2, 11), (2, 13))

VARIABLES: Mapping[str, tuple[Level, str]] = {
    "NVIDIA_TF32_OVERRIDE": ("warn", "decides for every float32 product whether it is computed in TF32"),
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": ("warn", "has float32 products computed in TF32"),
    "CUDA_LAUNCH_BLOCKING": ("warn", "waits for every kernel: times of calls are those of kernels"),
    "CUDA_INJECTION64_PATH": ("warn", "loads a profiler into every CUDA process"),
    "CUBLAS_WORKSPACE_CONFIG": ("note", "limits the workspace of cuBLAS, and with it which kernels it may choose"),
    "TORCH_BLAS_PREFER_CUBLASLT": ("note", "has cuBLASLt choose the kernels of products"),
    "CUDA_MODULE_LOADING": ("note", "decides when kernels are loaded, which first calls pay for"),
    "CUDA_MPS_*": ("warn", "shares the GPU among processes, perhaps with a part of its multiprocessors each"),
    "PYTORCH_*ALLOC_CONF": ("note", "changes how torch allocates memory, and where buffers lie"),
    "TORCHINDUCTOR_*": ("note", "changes what torch.compile generates"),
    "*": ("note", "changes the threads or the kernels that a CPU's operations use"),
}
"""What a watched variable does, by name or pattern; the last one is that of OMP_*, MKL_* and their like."""


@dataclass(frozen=True)
class Finding:
    """One thing looked at: `what` was found, `why` it matters and the noise to expect, the `fix` to type or to do."""

    level: Level
    check: str
    what: str
    why: str = ""
    fix: str = ""


@dataclass(frozen=True)
class Patient:
    """All that is known. `device`, `software` and `notice` are what the worker said when it opened the device,
    `calibration` and `examined` what it found by using it; `lost` is why it could not. `host` and `surroundings` are
    `gpubench.environment.host` and `gpubench.surroundings.look`, `variables` the watched ones that are set."""

    device: Mapping[str, Any]
    software: Mapping[str, Any] = field(default_factory=dict)
    notice: str | None = None
    calibration: Mapping[str, Any] = field(default_factory=dict)
    examined: Mapping[str, Any] = field(default_factory=dict)
    lost: str | None = None
    host: Mapping[str, Any] = field(default_factory=dict)
    surroundings: Mapping[str, Any] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a GPU."""
        return self.device.get("kind") == "cuda"

    @property
    def state(self) -> Mapping[str, Any]:
        """NVML's survey after the GPU was used."""
        return self.examined.get("state") or {}


def diagnose(patient: Patient) -> list[Finding]:
    """All findings, the worst first. What is not known is passed over, unless not knowing it does harm."""
    found = [finding for check in _CHECKS for finding in check(patient)]
    if patient.on_gpu:
        found += [finding for check in _GPU_CHECKS for finding in check(patient)]
    return sorted(found, key=lambda finding: LEVELS.index(finding.level))


def _device(patient: Patient) -> Iterator[Finding]:
    if patient.lost is not None:
        yield Finding("bad", "device", patient.lost, "nothing can be measured on it")
    if patient.notice is not None:
        yield Finding("note", "device", patient.notice)


def _noise(patient: Patient) -> Iterator[Finding]:
    noise = patient.examined.get("noise")
    if not noise or not noise["median_ns"]:
        return
    spread = (noise["p90_ns"] - noise["p10_ns"]) / 2 / noise["median_ns"]
    level: Level = next((level for least, level in NOISE if spread >= least), "ok")  # type: ignore[misc]
    what = f"equal samples differ by ±{format_half_width(100 * spread)}"
    samples = f"{noise['samples']} samples of {format_duration(noise['median_ns'])}, timer {noise['timer']}"
    why = f"the middle 80 % of {samples}; it takes many samples to see a smaller difference"
    fix = "end what else runs here, then gpubench doctor again" if level in ("warn", "bad") else ""
    yield Finding(level, "noise", what, why, fix)


def _timers(patient: Patient) -> Iterator[Finding]:
    for name, timer in patient.calibration.get("timers", {}).items():
        if "unavailable" in timer:
            reason = str(timer["unavailable"])
            if name == "cupti":
                lost = "kernels below 20 µs cannot be timed without it"
                yield Finding("warn", "timer", reason, lost, _cupti_fix(reason))
            else:
                yield Finding("note", "timer", reason, "it is needed only where those before it do not work")
            continue
        said = f"timer {name}: tick {format_duration(timer['tick_ns'])}"
        if timer.get("empty_ns"):
            said += f", an empty kernel reads {format_duration(timer['empty_ns'])}"
        if known := timer.get("known"):
            said += f", one of {format_duration(known['spun_ns'])} {format_duration(known['read_ns'])}"
        if "source" in timer:
            said += f" (records by {timer['source']})"
        yield Finding("ok", "timer", said)


def _cupti_fix(reason: str) -> str:
    if "PRIVILEGE" in reason.upper() or "permission" in reason.lower():
        return "sudo modprobe nvidia NVreg_RestrictProfilingToAdminUsers=0, or run as root"
    return "end other profilers that use this GPU (ncu, nsys, DCGM)"


def busy(kind: str, load: float, cores: int) -> bool:
    """Whether a load average is enough to disturb measurements of a kind of device."""
    return load >= cores * LOAD.get(kind, 1.0)


def _load(patient: Patient) -> Iterator[Finding]:
    load, cores = patient.surroundings.get("load"), patient.surroundings.get("cores")
    if load is None or not cores:
        return
    what, quiet = f"load average {load:.1f} on {cores} cores", "end what runs, or wait"
    if not busy(str(patient.device.get("kind")), load, cores):
        yield Finding("ok", "load", what)
    elif patient.on_gpu:
        yield Finding("warn", "load", what, "kernels are launched late: times of calls double", quiet)
    else:
        level: Level = "bad" if load >= cores else "warn"
        yield Finding(level, "load", what, "others take cores and caches: expect 10 % and more", quiet)


def _threads(patient: Patient) -> Iterator[Finding]:
    threads, quota = patient.device.get("threads"), patient.device.get("quota_cores")
    if threads and quota and quota < threads:
        why = "the system stops all threads when the share is used up: single samples take ten times as long"
        fix = f"OMP_NUM_THREADS={max(1, int(quota))}, or a larger share for the container"
        yield Finding("warn", "threads", f"{threads} threads, but CPU time for {quota:g} cores", why, fix)


def _governor(patient: Patient) -> Iterator[Finding]:
    governor = patient.device.get("governor") or patient.host.get("governor")
    if governor is None:
        return
    if governor == "performance":
        yield Finding("ok", "governor", "CPU governor performance")
        return
    level: Level = "note" if patient.on_gpu else "warn"
    why = "CPU clocks follow the load: " + ("launches vary by 10 %" if patient.on_gpu else "expect 5 to 20 %")
    yield Finding(level, "governor", f"CPU governor {governor}", why, "sudo cpupower frequency-set -g performance")


def _machine(patient: Patient) -> Iterator[Finding]:
    system, virtual, container = (patient.host.get(name) for name in ("os", "virtual", "container"))
    if system in ("Windows", "Darwin"):
        name = "macOS" if system == "Darwin" else system
        yield Finding("note", "platform", f"{name}: reading and comparing work, measuring the CPU is best effort")
    if virtual == "wsl":
        yield Finding("note", "platform", "WSL: NVML tells a part of what it tells on Linux", "launches are slower")
    elif virtual:
        yield Finding("note", "platform", "a virtual machine", "neighbours may take turns with it: expect slow phases")
    if container:
        yield Finding("note", "platform", f"in a container ({container})", "other processes may not be seen from here")
    if patient.surroundings.get("traced"):
        yield Finding("warn", "platform", "a debugger is attached", "every call may stop for it", "end the debugger")


def _variables(patient: Patient) -> Iterator[Finding]:
    for name, value in patient.variables.items():
        level, does = next(told for pattern, told in VARIABLES.items() if fnmatchcase(name, pattern))
        yield Finding(level, "variable", f"{name}={value}", does, f"unset {name}")


def _results(patient: Patient) -> Iterator[Finding]:
    problem, free = patient.surroundings.get("results_problem"), patient.surroundings.get("free_bytes")
    if problem:
        yield Finding("bad", "results", f"the results folder {problem}", "runs cannot be saved", "--results FOLDER")
    elif free is not None:
        level: Level = next((level for least, level in FREE_BYTES if free < least), "ok")  # type: ignore[misc]
        fix = "" if level == "ok" else "make room, or --results FOLDER"
        yield Finding(level, "results", f"{format_bytes(free)} free for results", fix=fix)


def _torch(patient: Patient) -> Iterator[Finding]:
    text = str(patient.software.get("torch") or "")
    parts = text.split("+")[0].split(".")
    if len(parts) < 2 or not all(part.isdecimal() for part in parts[:2]):
        return
    version = (int(parts[0]), int(parts[1]))
    low, high = (".".join(map(str, each)) for each in TESTED_TORCH)
    if version < OLDEST_TORCH:
        why = "settings of precision are read otherwise there"
        yield Finding("bad", "torch", f"torch {text} is too old", why, "pip install 'torch>=2.9'")
    elif not TESTED_TORCH[0] <= version <= TESTED_TORCH[1]:
        yield Finding("note", "torch", f"torch {text}; tested are {low} to {high}", "its profiler may name things anew")
    else:
        yield Finding("ok", "torch", f"torch {text}")


def _compiler(patient: Patient) -> Iterator[Finding]:
    compiler = patient.surroundings.get("compiler")
    if compiler:
        yield Finding("ok", "compiler", f"C++ compiler {compiler}")
    elif not patient.on_gpu:
        why = "the counterparts of raw kernels are skipped"
        yield Finding("warn", "compiler", "no C++ compiler", why, "install g++ or clang")


def _telemetry(patient: Patient) -> Iterator[Finding]:
    reason = (patient.state.get("unavailable") or {}).get("nvml")
    if reason is None:
        return
    fix = "install the driver's libnvidia-ml; in a container, NVIDIA_DRIVER_CAPABILITIES=compute,utility"
    if "mismatch" in reason.lower():
        fix = "the driver was updated while it ran: reboot"
    elif "ModuleNotFound" in reason:
        fix = "pip install nvidia-ml-py"
    why = "clocks, power, heat and neighbours are not seen: a slow phase cannot be told from a slow GPU"
    yield Finding("warn", "telemetry", reason, why, fix)


def _sharing(patient: Patient) -> Iterator[Finding]:
    opened = patient.device.get("at_opening") or {}
    why = telemetry.busy(opened)
    if why is not None:
        harm = "kernels take turns with theirs: times double, or jump"
        working = (opened.get("utilization_percent") or 0) >= telemetry.BUSY_PERCENT
        level: Level = "bad" if working else "warn"
        yield Finding(level, "sharing", f"the GPU is in use: {why}", harm, "nvidia-smi shows who")
    elif telemetry.idle(opened):
        yield Finding("ok", "sharing", "nobody else uses the GPU")
    if patient.state.get("mps_processes"):
        harm = "processes share the multiprocessors at the same time: times depend on the neighbours"
        yield Finding("warn", "sharing", "an MPS server runs", harm, "echo quit | nvidia-cuda-mps-control")
    if patient.device.get("compute_mode") == "exclusive process":
        yield Finding("note", "sharing", "compute mode: exclusive process", "a second process gets no GPU")
    mask = patient.examined.get("mask")
    if mask:
        yield Finding("note", "sharing", mask)


def _power(patient: Patient) -> Iterator[Finding]:
    limit, usual = patient.device.get("power_limit_w"), patient.device.get("power_limit_default_w")
    if limit is None:
        return
    if usual is not None and limit < usual:
        why = f"matmuls run slower than on others of its kind, by up to {1 - limit / usual:.0%}".replace("%", " %")
        what = f"power limit {limit:g} W, by default {usual:g} W"
        yield Finding("warn", "power", what, why, f"sudo nvidia-smi -pl {usual:g}")
    else:
        yield Finding("ok", "power", f"power limit {limit:g} W")


def _clocks(patient: Patient) -> Iterator[Finding]:
    now, most = patient.state.get("sm_mhz"), patient.device.get("sm_mhz_max")
    set_to = patient.device.get("sm_mhz_application")
    events = patient.state.get("clock_events") or ()
    if set_to and most and set_to < most:
        what, why = f"application clock {set_to} MHz, the highest is {most} MHz", "arithmetic is slower in proportion"
        yield Finding("warn", "clocks", what, why, "sudo nvidia-smi -rac")
    elif now and most and now < FULL_CLOCK * most and "idle" not in events and not patient.state.get("throttled"):
        what = f"SM clock {now} MHz right after work, the highest is {most} MHz"
        why = "clocks may be locked: arithmetic is slower in proportion"
        yield Finding("note", "clocks", what, why, "sudo nvidia-smi -rgc")
    elif now:
        yield Finding("ok", "clocks", f"SM clock {now} MHz right after work")
    if patient.device.get("persistence") is False:
        why = "the first call of each process takes seconds, and clocks are reset when the last one ends"
        yield Finding("note", "clocks", "persistence mode is off", why, "sudo nvidia-smi -pm 1")


def _heat(patient: Patient) -> Iterator[Finding]:
    state, limit = patient.state, patient.device.get("slowdown_c")
    active = telemetry.throttles(patient.device.get("at_opening") or {}, state)
    temperature = state.get("temperature_c")
    cooling = "check fans, air and dust; let it rest"
    if active:
        why = "clocks are held down: expect 10 to 50 % slower rows, flagged throttled"
        yield Finding("bad", "heat", f"the GPU is slowed: {', '.join(active)}", why, cooling)
    elif temperature is not None and limit is not None and temperature >= limit - NEAR_SLOWDOWN_C:
        why = "a long run will be slowed"
        yield Finding("warn", "heat", f"{temperature} °C, slowed from {limit} °C on", why, cooling)
    elif temperature is not None:
        yield Finding("ok", "heat", f"{temperature} °C")
    past = {name: ns for name, ns in (state.get("event_ns") or {}).items() if name in telemetry.SPOILING and ns}
    if past and not active:
        what = ", ".join(f"{name} {format_duration(ns)}" for name, ns in past.items())
        yield Finding("note", "heat", f"since the driver was loaded: {what}", "it has been slowed, and may be again")
    if state.get("may_miss"):
        why = "a slow-down between two looks goes unseen"
        yield Finding("note", "heat", "this driver does not count the time it is slowed", why)


def _memory(patient: Patient) -> Iterator[Finding]:
    state, rows = patient.state, patient.state.get("remapped_rows") or {}
    if state.get("ecc_uncorrected"):
        what = f"{state['ecc_uncorrected']} memory errors that were not corrected, since the driver was loaded"
        yield Finding("bad", "memory", what, "results may be wrong", "reset the GPU, then watch the number")
    if rows.get("failure"):
        yield Finding("bad", "memory", "a row of memory could not be replaced", "errors will return", "replace the GPU")
    elif rows.get("pending"):
        yield Finding("warn", "memory", "a row of memory waits to be replaced", "errors may return", "reset the GPU")
    elif rows.get("correctable") or rows.get("uncorrectable"):
        count = rows.get("correctable", 0) + rows.get("uncorrectable", 0)
        yield Finding("note", "memory", f"{count} rows of memory were replaced", "no effect on speed; watch the number")
    ecc = patient.device.get("ecc")
    if ecc is not None:
        yield Finding("ok", "memory", f"ECC {'on' if ecc else 'off'}: compared only with runs that had it so")


def _mig(patient: Patient) -> Iterator[Finding]:
    if patient.device.get("mig"):
        why = "a slice has no datasheet, shares power and clocks with its neighbours, and tells less of itself"
        yield Finding("note", "mig", "a slice of a GPU (MIG)", why)


def _link(patient: Patient) -> Iterator[Finding]:
    width, widest = patient.state.get("pcie_width"), patient.device.get("pcie_width_max")
    speed, fastest = patient.state.get("pcie_generation"), patient.device.get("pcie_generation_max")
    if width and widest and width < widest:
        why = "copies from and to the host take longer in proportion; kernels do not"
        yield Finding("warn", "link", f"PCIe ×{width} of ×{widest}", why, "seat the card anew, or use another slot")
    elif speed and fastest and speed < fastest:
        why = "it may rise under load; if not, copies from and to the host take longer"
        yield Finding("note", "link", f"PCIe generation {speed} of {fastest}", why)
    elif width and speed:
        yield Finding("ok", "link", f"PCIe generation {speed} ×{width}")


def _flush(patient: Patient) -> Iterator[Finding]:
    cold = patient.calibration.get("cold") or {}
    hot, flushed = cold.get("hot_ns"), cold.get("after_flush_ns")
    if hot and flushed and flushed < FLUSHES * hot:
        what = f"a read takes {format_duration(flushed)} after a flush of the cache, {format_duration(hot)} hot"
        yield Finding("warn", "flush", what, "the flush does not flush: cold rows are hot", "please report this GPU")
    elif hot and flushed:
        yield Finding("ok", "flush", f"a flush of the cache makes a read {flushed / hot:.1f} times as long")


def _kernels(patient: Patient) -> Iterator[Finding]:
    found = patient.examined.get("kernels") or {}
    if "failure" in found:
        yield Finding("warn", "kernels", found["failure"], "raw kernels are skipped; torch's operations are measured")
    elif found:
        yield Finding("ok", "kernels", f"CuPy {found['cupy']}, NVRTC {found['nvrtc']}")


def _profiler(patient: Patient) -> Iterator[Finding]:
    around = patient.surroundings
    if not around.get("ncu"):
        fix = "install Nsight Compute and put it on PATH"
        yield Finding("note", "profiler", "ncu is not found", "hardware counters are not to be had", fix)
    elif around.get("counters_need_root") and not around.get("root"):
        fix = "sudo, or the driver's option NVreg_RestrictProfilingToAdminUsers=0"
        why = "ncu ends with ERR_NVGPUCTRPERM"
        yield Finding("note", "profiler", "hardware counters are kept for the administrator", why, fix)
    else:
        yield Finding("ok", "profiler", "ncu is found")


Check = Callable[[Patient], Iterator[Finding]]
_CHECKS: tuple[Check, ...] = (
    _device, _noise, _load, _threads, _governor, _variables, _torch, _timers, _compiler, _results, _machine,
)  # fmt: skip
_GPU_CHECKS: tuple[Check, ...] = (
    _sharing, _heat, _memory, _power, _clocks, _mig, _flush, _telemetry, _kernels, _link, _profiler,
)  # fmt: skip
