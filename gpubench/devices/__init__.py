"""What the runner asks of a device. `cuda.py`, `cpu.py` and `gpubench.testing.FakeDevice` answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from gpubench.errors import CaseError
from gpubench.result import Conditions, Flag, KernelSeen, Metric, Timer
from gpubench.steady import Group
from gpubench.workload import Kernel, Workload

Call = Callable[[], object]
FLUSH = "flush of the caches"
"""The range in a trace of what makes the next call a cold one."""


@dataclass(frozen=True)
class Launch:
    """A Kernel compiled, loaded and bound to its arguments: `call` enqueues it. `flags` are for the row."""

    call: Call
    flags: tuple[Flag, ...] = ()


@dataclass
class Batch:
    """Samples taken together. `gpu_ns[i]` is the whole of sample i, `launches[i]` the calls in it."""

    gpu_ns: list[int]
    launches: list[int]
    sm_mhz: list[float | None]
    kernels: list[KernelSeen] = field(default_factory=list)
    profiled: bool = False
    """True where gaps between the activities of a call, made longer by the timer, are over 10 % of its span."""


@dataclass(frozen=True)
class Comparison:
    """An output beside its reference, as sums over all elements compared. Of several tensors each is scaled first so
    that the root mean square of its reference is 1, `got` and `expected` apart."""

    elements: int
    error_norm: float
    """‖out - ref‖. An infinity that the reference lacks is an infinite error; so is every NaN, as poison is one."""
    reference_norm: float
    """‖ref‖ of what is finite in it."""
    worst: float
    """max |out - ref|"""
    where: tuple[int, ...]
    got: float
    expected: float
    eps: float
    """The spacing of the output's dtype at 1."""


class Sampler(Protocol):
    """Takes samples of one case. Made once per case, after its output was checked."""

    timer: Timer

    def warm_up(self) -> float:
        """Call until caches, clocks and just-in-time compilers have settled; the time of one call in ns, roughly."""

    def batch(self, n: int) -> Batch:
        """n more samples, under the conditions of the case."""


class Load(Protocol):
    """Calls made back to back, in groups. `timer` is what reads a group, `refused` says of each better one why it does
    not, as "name: reason"; both are settled once `start` has returned."""

    timer: Timer
    refused: Sequence[str]

    def start(self) -> None:
        """Find out how many calls make a group, and put the first groups in flight."""

    def next(self) -> Group:
        """Wait for the oldest group, put another in flight, and only then tell of the one that ended."""

    def stop(self) -> None:
        """Wait for what is in flight."""


class Watch(Protocol):
    """What can be read beside a load. Nothing here waits for the device."""

    def clock(self) -> float:
        """Seconds, on the host."""

    def pulse(self) -> dict[str, Any]:
        """`power_w`, `temperature_c`, `core_mhz`, `clock_events` now, as far as the device tells them."""

    def snapshot(self) -> dict[str, Any]:
        """As `Device.telemetry`: with the cumulative counters of clock events."""

    def joules(self) -> float:
        """The counter of energy. LookupError says why there is none."""

    def gpm(self) -> dict[str, float] | None:
        """The activity of the units since it was last asked, as shares; None the first time. LookupError says why it
        cannot be had."""

    def close(self) -> None:
        """Give back what was held for reading."""


class CompiledFunction(Protocol):
    """What `Device.compile` returns. `graphs` is 0 before the first call and 1 after it."""

    @property
    def graphs(self) -> int:
        """Graphs compiled."""

    def __call__(self, *args: Any) -> Any:
        """Call it; the first call compiles."""

    def metrics(self) -> list[Metric]:
        """Further figures of the row: the seconds of the first call, whether the compiler found its work on disk, and
        the kernels it wrote."""


class Device(Protocol):
    """One device, owned by one process. `kind` is "cuda", "cpu" or "fake"."""

    kind: str

    def facts(self) -> dict[str, Any]:
        """What it is: name, uuid, memory and caches in bytes, units, limits. JSON values; unknown is None."""

    def software(self) -> dict[str, Any]:
        """Versions of what stands between us and the device: torch, CUDA, driver."""

    def configure(self, data: str, seed: int) -> None:
        """Set the distribution and the seed that `random` draws from until told otherwise."""

    def random(self, shape: Sequence[int] | int, dtype: str, seed: int = 0) -> Any:
        """A tensor of the case's data; the same seed gives the same values. OutOfMemory if it cannot fit."""

    def free_bytes(self) -> int | None:
        """Bytes that can still be allocated now; None where that cannot be known."""

    def unwritten(self, shape: Sequence[int] | int, dtype: str) -> Any:
        """A tensor to be written by the workload. OutOfMemory if it cannot fit."""

    def poison(self, output: Any) -> None:
        """Overwrite an output (a tensor or a tuple of them) with NaN, or the least integer where there is no NaN."""

    def compare(self, output: Any, reference: Any) -> Comparison:
        """Compare all elements of an output with its reference, in double precision."""

    def synchronize(self) -> None:
        """Wait until everything enqueued has finished."""

    def precision(self, mode: str) -> AbstractContextManager[None]:
        """Hold the device's precision mode ("ieee", "tf32") inside the context; Unsupported where there is none."""

    def replicas(self, workload: Workload, conditions: Conditions) -> int:
        """How many copies of the workload, each with its own buffers, a sampler must rotate among (1 on a GPU)."""

    def launcher(self, kernel: Kernel, suite_file: Path) -> Launch:
        """Compile and load a kernel of a suite. KernelError where it does not compile, Skip where it cannot run."""

    def compile(self, function: Callable[..., Any], *, options: Mapping[str, Any] | None = None) -> CompiledFunction:
        """A function of tensors as torch.compile's inductor makes it, with these options of inductor's: compiled when
        it is first called, for the shapes of that call alone. It never falls back to eager: what cannot be compiled as
        one graph is a CaseError of its first call, what there is no compiler for a Skip. Forgotten by `release`."""

    def timers(self, asked: str) -> Sequence[str]:
        """Timers to try, best first: all for "auto", else the one asked for (UsageError where it is not known here)."""

    def sampler(self, workloads: Sequence[Workload], conditions: Conditions, timer: str) -> Sampler:
        """What will take the samples of one case, with a timer of `timers`. Its methods raise TimerFailed."""

    def load(self, workloads: Sequence[Workload], conditions: Conditions, timer: str) -> Load:
        """The same calls as a load without rest, timed by the timer asked for; Unsupported where that one cannot."""

    def watch(self) -> Watch:
        """What can be read of the device while it is under load."""

    def kernels_of(self, call: Call) -> list[KernelSeen]:
        """What one call runs, which is made for it a few times; empty where it is host work, or nobody sees it."""

    def call_ns(self, call: Call, n: int) -> list[int]:
        """Host time of n calls enqueued back to back, each in ns; empty where a call is host work anyway."""

    def peak_bytes(self, call: Call) -> int | None:
        """The most memory in use at once during one call, what the case keeps included; None where nobody counts it."""

    def calibration(self) -> dict[str, Any]:
        """What is measured once a run: the timers' ticks and empty readings, and what a cold cache costs."""

    def telemetry(self) -> dict[str, Any]:
        """Clocks, power, temperature now; None with a reason for what cannot be read."""

    def examine(self) -> dict[str, Any]:
        """What takes seconds to find out and no run needs: `noise` (gpubench.devices.examine) and more of the device's
        own. Why something does not work is part of the answer."""

    def counted(self, label: str) -> AbstractContextManager[None]:
        """What runs inside is counted, under that label, by the hardware profiler that this process runs under. Waits
        for it. Unsupported on a device that has none."""

    def trace(self, calls: Sequence[Call], n: int, conditions: Conditions) -> dict[str, Any]:
        """A Chrome trace of n calls, each in a range `call K`, made under the conditions as for a sample, after one of
        each that was not traced; what is done for the conditions is in a range FLUSH. It is the profiler's own: host
        names and paths in it are not ours to show. This process takes no right samples afterwards."""

    def known_copy(self) -> tuple[Call, int]:
        """A call of one kernel that streams much more than the caches hold, and the bytes that it reads and writes: by
        it a count of bytes can be judged. Unsupported on a device that has no counters."""

    def case_error(self, error: BaseException) -> CaseError:
        """The error of a case in gpubench's words. DeviceLost is raised where the device no longer answers."""

    def release(self) -> None:
        """Give back memory and global state between cases, so that their order does not matter."""
