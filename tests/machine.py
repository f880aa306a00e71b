"""What tests of the machine's suites share: a benchmark built for a small machine, run on a CPU or in the emulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emulator
import numpy as np

from gpubench import check
from gpubench.discovery import Library
from gpubench.workload import Kernel, Workload

FOLDER = Path(__file__).parent.parent / "suites"
LIBRARY = Library(FOLDER)
SUITES = LIBRARY.suites()
BENCHMARKS = {bench.path: bench for suite in SUITES.values() for bench in suite.benchmarks.values()}

GPU = {
    "kind": "cuda", "compute_capability": "9.0", "multiprocessors": 2, "last_level_cache_bytes": 2**18,
    "threads_per_multiprocessor": 2048, "warp_size": 32, "sm_mhz_max": 1000.0,
}  # fmt: skip
"""What a small GPU would say of itself."""


class Device:
    """A CPU that says it is something else."""

    def __init__(self, cpu: Any, facts: dict[str, Any]) -> None:
        self.cpu = cpu
        self.kind = facts["kind"]
        self._facts = facts

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cpu, name)

    def facts(self) -> dict[str, Any]:
        return dict(self._facts)


def globals_of(path: str) -> dict[str, Any]:
    """What a benchmark's function finds in its file, by name: to be read, and with `monkeypatch.setitem` made small.

    It is the function's own. A suite is loaded as a file whenever a library is asked for it, so that the module
    sys.modules has under its name may be another one.
    """
    return BENCHMARKS[path].function.__globals__


def build(cpu: Any, path: str, /, facts: dict[str, Any] | None = None, seed: int = 7, **params: Any) -> Workload:
    """The workload of a benchmark on a small GPU, or on the CPU itself where `facts` are its own."""
    cpu.configure("normal", seed)
    return BENCHMARKS[path].function(Device(cpu, GPU if facts is None else facts), **params)


def emulated(path: str, workload: Workload, folder: Path = FOLDER) -> emulator.Counts:
    """One call of a workload in the emulator: every kernel in turn. What the last one did."""
    kernels = workload.run if isinstance(workload.run, tuple) else (workload.run,)
    for kernel in kernels:
        assert isinstance(kernel, Kernel)
        seen = emulator.emulate(kernel, folder, entries(path, kernel))
    return seen


def entries(path: str, kernel: Kernel) -> tuple[str, ...]:
    """The kernels of this one's file in the suite of a benchmark."""
    same = [known.name for known in SUITES[path.split("/")[0]].kernels if known.source == kernel.source]
    return tuple(dict.fromkeys(same))


def on_cpu(cpu: Any, path: str, workload: Workload) -> None:
    """One call of its analogue."""
    cpu.launcher(workload.run, BENCHMARKS[path].file).call()


def judged(cpu: Any, workload: Workload) -> None:
    """WrongResult where the output is not what the reference says."""
    check.judge(cpu.compare(workload.output, workload.reference()), workload)


def doubles(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.double())
