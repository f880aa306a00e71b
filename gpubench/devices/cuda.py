"""A CUDA device as torch sees it: facts, flushes, and which timer takes the samples."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from gpubench.devices import FLUSH, Call, Launch, examine, pacing, sustained
from gpubench.devices.activities import seen
from gpubench.devices.clock import Hold, SmClock, Spin
from gpubench.devices.compiled import Compiled, Compiler
from gpubench.devices.kernels import Kernels
from gpubench.devices.modes import cuda_precision
from gpubench.devices.nvml import Nvml, inventory
from gpubench.devices.records import activities_of
from gpubench.devices.sustained import CudaLoad, CudaWatch
from gpubench.devices.tensors import TorchTensors, first_line, tensor_error
from gpubench.devices.timers import TIMERS, CudaSampler, Probe, probe, sampler_of
from gpubench.devices.tracing import chrome_trace, named
from gpubench.devices.visible import NAME, mask_words
from gpubench.errors import CaseError, DeviceLost, DeviceUnavailable, Skip, TimerFailed, Unsupported
from gpubench.result import Conditions, KernelSeen
from gpubench.workload import Kernel, Workload

FLUSH_CACHES = 2
"""A flush writes this many times the L2 the device reports, then reads another buffer of one L2: what is resident is
then foreign and clean, so that the timed call neither finds its data nor has to evict somebody's dirty lines."""
KEEP_BYTES = 512 << 20
"""Memory left alone when an allocation is judged to fit: the CUDA context, cuBLAS workspaces, the check's chunks."""
COPY_CACHES = 32
"""The copy of known bytes reads, and writes, this many times the L2: what its end leaves there does not count much."""
PROOF_SAMPLES = 11
"""Readings of each kind in the proof that a flush flushes, and of the kernel of known duration."""
KNOWN_NS = 100_000
"""How long the kernel of known duration spins: long beside what starting and ending a kernel costs any timer."""
WAKE_S = 0.3
"""Work given to an idle GPU before the first sample, so that its clocks have risen."""


class CudaDevice(TorchTensors):
    """One GPU. All work goes to torch's current stream."""

    kind = "cuda"

    def __init__(self, index: int) -> None:
        super().__init__()
        self.torch_device = torch.device("cuda", index)
        torch.cuda.set_device(self.torch_device)
        self._properties = torch.cuda.get_device_properties(index)
        self._nvml = nvml_of(self._properties)
        l2 = int(self._properties.L2_cache_size)
        self._foreign = torch.empty(FLUSH_CACHES * l2 // 4 or 1, device=self.torch_device)
        self._clean = torch.zeros(l2 // 4 or 1, device=self.torch_device)
        self._sink = torch.empty((), device=self.torch_device)
        self._compiler = Compiler()
        self._held = self._allocated()

    @classmethod
    def named(cls, word: str) -> CudaDevice:
        """The device called cuda:N, or by its UUID or a prefix of it. DeviceUnavailable lists what there is."""
        indices = range(torch.cuda.device_count())
        if word.startswith("cuda:"):
            chosen = [i for i in indices if i == int(word[5:])]
        else:
            chosen = [i for i in indices if _full_uuid(torch.cuda.get_device_properties(i)).startswith(word)]
        if len(chosen) != 1:
            there = ", ".join(f"cuda:{i} {torch.cuda.get_device_name(i)}" for i in indices)
            raise DeviceUnavailable(f"--device {word}: found {there}", "--device cuda:0")
        return cls(chosen[0])

    def facts(self) -> dict[str, Any]:
        """See Device."""
        return dict(self._facts)

    @cached_property
    def _facts(self) -> dict[str, Any]:
        properties = self._properties
        return {
            "kind": self.kind,
            "name": properties.name,
            "uuid": self._nvml.uuid or _uuid(properties),
            "index": self.torch_device.index,
            "compute_capability": f"{properties.major}.{properties.minor}",
            "multiprocessors": properties.multi_processor_count,
            "memory_bytes": properties.total_memory,
            "last_level_cache_bytes": int(properties.L2_cache_size),
            "shared_memory_per_multiprocessor_bytes": properties.shared_memory_per_multiprocessor,
            "registers_per_multiprocessor": getattr(properties, "regs_per_multiprocessor", None),
            "threads_per_multiprocessor": properties.max_threads_per_multi_processor,
            "warp_size": properties.warp_size,
            **self._nvml.facts(),
            "at_opening": self._nvml.survey(),
        }

    def software(self) -> dict[str, Any]:
        """See Device."""
        return {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "driver": self._facts["driver"],
            "cublas_reduced_precision": {
                "float16": torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction,
                "bfloat16": torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction,
            },
        }

    def free_bytes(self) -> int | None:
        """What the driver has left plus what torch holds unused, less KEEP_BYTES."""
        free, _ = torch.cuda.mem_get_info(self.torch_device)
        unused = torch.cuda.memory_reserved(self.torch_device) - torch.cuda.memory_allocated(self.torch_device)
        return int(max(free + unused - KEEP_BYTES, 0))

    def synchronize(self) -> None:
        """See Device."""
        torch.cuda.synchronize(self.torch_device)

    def precision(self, mode: str) -> AbstractContextManager[None]:
        """See Device."""
        return cuda_precision(mode)

    def replicas(self, workload: Workload, conditions: Conditions) -> int:
        """One: the cache is flushed between calls instead."""
        return 1

    @cached_property
    def _kernels(self) -> Kernels:
        return Kernels(self.torch_device)

    def launcher(self, kernel: Kernel, suite_file: Path) -> Launch:
        """See Device."""
        return self._kernels.launcher(kernel, suite_file)

    def compile(self, function: Callable[..., Any], *, options: Mapping[str, Any] | None = None) -> Compiled:
        """See Device."""
        return self._compiler.compile(function, options)

    def timers(self, asked: str) -> Sequence[str]:
        """See timers.TIMERS."""
        return pacing.order(asked, TIMERS, "a GPU")

    def sampler(self, workloads: Sequence[Workload], conditions: Conditions, timer: str) -> CudaSampler:
        """See Device."""
        (workload,) = workloads
        flush = self.flush if conditions.cache == "cold" else None
        return sampler_of(self._probe, timer, workload.call, flush, self._clock)

    def load(self, workloads: Sequence[Workload], conditions: Conditions, timer: str) -> CudaLoad:
        """See Device: timed by events, around the replay of a graph where a call is hot and can be captured."""
        (workload,) = workloads
        cold = conditions.cache == "cold"
        if timer not in sustained.TIMERS or (cold and timer == "graph"):
            raise Unsupported(f"the timer {timer} cannot read a {conditions.cache}, sustained load; event can")
        clock = self._clock
        read_clock = clock.reading if isinstance(clock, SmClock) else None
        flush = self.flush if cold else None
        return CudaLoad(workload.call, flush, self._probe.timers, clock.hold, read_clock, timer)

    def watch(self) -> CudaWatch:
        """See Device."""
        return CudaWatch(self._nvml)

    def kernels_of(self, call: Call) -> list[KernelSeen]:
        """See Device: by activity records. A session that fails costs no row."""
        known = self._probe
        if "cupti" in known.failures:
            return []
        try:
            return seen([activities_of(known.source, call)])
        except (TimerFailed, RuntimeError):
            return []

    @cached_property
    def _probe(self) -> Probe:
        self._wake()
        return probe(self.flush, self._clock)

    @cached_property
    def _clock(self) -> Hold:
        try:
            return SmClock(self._kernels, self.torch_device)
        except (Skip, CaseError):
            return Spin()

    def _wake(self) -> None:
        until = time.monotonic() + WAKE_S
        while time.monotonic() < until:
            self.flush()
            self.synchronize()

    def flush(self) -> None:
        """Fill the L2 with foreign, clean lines: a write of FLUSH_CACHES times its size, then a read of one."""
        self._foreign.fill_(1.0)
        torch.sum(self._clean, dim=0, out=self._sink)

    def call_ns(self, call: Call, n: int) -> list[int]:
        """See Device."""
        times = []
        self.synchronize()
        for _ in range(n):
            before = time.perf_counter_ns()
            call()
            times.append(time.perf_counter_ns() - before)
        self.synchronize()
        return times

    def configure(self, data: str, seed: int) -> None:
        """See Device."""
        super().configure(data, seed)
        self._held = self._allocated()

    def peak_bytes(self, call: Call) -> int:
        """See Device. Of torch's allocator, less what was held before the case: the buffers of the flush. What cuBLAS
        works in counts where the call uses it, and not where only the check did."""
        _clear_workspaces()
        torch.cuda.reset_peak_memory_stats(self.torch_device)
        call()
        self.synchronize()
        return int(torch.cuda.max_memory_allocated(self.torch_device)) - self._held

    def _allocated(self) -> int:
        return int(torch.cuda.memory_allocated(self.torch_device))

    def calibration(self) -> dict[str, Any]:
        """See Device. Of each timer, its tick, its reading of a kernel that writes one element, and of one that spins
        for a known time: what that counted itself, and the reading, which holds a start and an end besides. `cold` are
        medians of one read of a quarter of the L2: hot, after a write of FLUSH_CACHES times the L2 (whose dirty lines
        the read must evict), and after the flush, which reads clean lines too."""
        return {
            "timers": {name: self._calibrated(name) for name in TIMERS},
            "sm_clock": {"global_timer_tick_ns": getattr(self._clock, "tick_ns", None)},
            "cold": self._cold(),
        }

    def _calibrated(self, name: str) -> dict[str, Any]:
        known = self._probe
        if name in known.failures:
            return {"unavailable": f"{name} does not work here: {known.failures[name]}"}
        timer = known.timers[name]
        found: dict[str, Any] = {"tick_ns": timer.tick_ns, "empty_ns": timer.empty_ns}
        if isinstance(self._clock, SmClock):
            spinning = self._clock.spin_ns(KNOWN_NS)
            read = self._middle(sampler_of(known, name, spinning.call, None, self._clock))
            found["known"] = {"spun_ns": int(spinning.readings[1]), "read_ns": read}
        if name == "cupti":
            found |= {"source": known.source.name, "session_ns": known.session_ns, "refused": known.refused}
        return found

    def _cold(self) -> dict[str, Any]:
        known = self._probe
        quarter = self._clean[: len(self._clean) // 4].clone()
        timer = "event" if "cupti" in known.failures else "cupti"

        def read() -> None:
            torch.sum(quarter, dim=0, out=self._sink)

        readings: dict[str, Any] = {"bytes": quarter.nbytes}
        flushes = {"hot_ns": None, "after_write_ns": lambda: self._foreign.fill_(1.0), "after_flush_ns": self.flush}
        for name, flush in flushes.items():
            activities = len(activities_of(known.source, flush)) if flush is not None and timer == "cupti" else 0
            by = replace(known, flush_activities=activities)
            readings[name] = round(self._middle(sampler_of(by, timer, read, flush, self._clock)))
        return readings

    def _middle(self, sampler: CudaSampler) -> float:
        """The median of PROOF_SAMPLES readings, in ns of one call."""
        sampler.warm_up()
        batch = sampler.batch(PROOF_SAMPLES)
        values = sorted(ns / launches for ns, launches in zip(batch.gpu_ns, batch.launches, strict=True))
        return values[PROOF_SAMPLES // 2]

    def telemetry(self) -> dict[str, Any]:
        """See Device."""
        return self._nvml.snapshot()

    @contextmanager
    def counted(self, label: str) -> Iterator[None]:
        """See Device: between cudaProfilerStart and Stop, in an NVTX range of that name, which is the whole process's:
        one that is pushed is a thread's, and torch launches backward passes from a thread of its own."""
        self.synchronize()
        opened = torch.cuda.nvtx.range_start(label)
        torch.cuda.profiler.start()
        try:
            yield
            self.synchronize()
        finally:
            torch.cuda.profiler.stop()
            torch.cuda.nvtx.range_end(opened)

    def trace(self, calls: Sequence[Call], n: int, conditions: Conditions) -> dict[str, Any]:
        """See Device. The flush before each cold call is a range of its own. One session is thrown away before: the
        first of a process takes seconds to start and is known to lose records."""
        (call,) = calls

        def work(count: int) -> None:
            for number in range(count):
                if conditions.cache == "cold":
                    with named(FLUSH):
                        self.flush()
                with named(f"call {number + 1}"):
                    call()
            self.synchronize()

        self._wake()
        chrome_trace(lambda: work(1), cuda=True)
        return chrome_trace(lambda: work(n), cuda=True)

    def known_copy(self) -> tuple[Call, int]:
        """See Device: the negative of COPY_CACHES times the L2, read once and written once. A plain copy would be left
        to the copy engine or to the driver, and is no kernel."""
        elements = COPY_CACHES * int(self._properties.L2_cache_size) // 4
        source, target = self.unwritten(elements, "float32").zero_(), self.unwritten(elements, "float32")
        return lambda: torch.neg(source, out=target), source.nbytes + target.nbytes

    def examine(self) -> dict[str, Any]:
        """See Device. With NVML's survey, the versions of what compiles kernels, and what hides GPUs."""
        known = self._probe
        flush = Workload(self.flush, None, lambda: None, "none")
        timer = "event" if "cupti" in known.failures else "cupti"
        return {
            "noise": examine.noise(self.sampler([flush], Conditions(cache="hot"), timer)),
            "kernels": self._kernels.versions(),
            "state": self._nvml.survey(),
            "mask": mask_words(os.environ.get(NAME), inventory()),
        }

    def case_error(self, error: BaseException) -> CaseError:
        """See Device. An error that stays when it is asked for again has taken the context with it."""
        try:
            self.synchronize()
        except RuntimeError as sticky:
            raise DeviceLost(f"the CUDA context is lost: {first_line(sticky)}") from error
        return tensor_error(error, self.free_bytes())

    def release(self) -> None:
        """Forget what was compiled, and give back memory that is not used any more, also what cuBLAS works in: so the
        size of one case does not decide whether the next one fits, nor what that needs."""
        self._compiler.reset()
        with suppress(RuntimeError):  # a context that is lost, which has been said by then, has nothing to give
            _clear_workspaces()
            if self._allocated() > self._held:  # tensors that hang on each other, as in the traceback of an error
                gc.collect()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self.torch_device)


def _clear_workspaces() -> None:
    """Give back what cuBLAS keeps to work in, 32 MiB a stream on an H200; its next call takes it again. torch has no
    public name for it."""
    getattr(torch._C, "_cuda_clearCublasWorkspaces", int)()


def _uuid(properties: Any) -> str | None:
    """The UUID, begun as that of a GPU: torch tells it bare, a MIG instance's too."""
    found = getattr(properties, "uuid", None)
    if found is None:
        return None
    text = str(found)
    return text if text.startswith(("GPU-", "MIG-")) else f"GPU-{text}"


def _full_uuid(properties: Any) -> str:
    """The UUID as NVML and CUDA_VISIBLE_DEVICES write it, GPU-… or MIG-…; "" where it is not known."""
    return nvml_of(properties, in_use=False).uuid or _uuid(properties) or ""


def nvml_of(properties: Any, in_use: bool = True) -> Nvml:
    """NVML's view of the GPU with these properties of torch's. `in_use`: whether this process uses it by now."""
    place: list[Any] = [getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device")]
    pci = None if None in place else "{:08X}:{:02X}:{:02X}.0".format(*place)
    return Nvml(_uuid(properties), pci=pci, in_use=in_use)
