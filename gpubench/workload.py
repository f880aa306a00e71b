"""Workload: what a benchmark function returns. Plain data: a callable, its bytes and flops, and a reference.

Or, in place of the callable, a Kernel: an entry of a `.cu` file beside the suite, its arguments and its grid.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gpubench.errors import KernelError
from gpubench.result import KernelSeen, Metric

Define = int | str
GRID_LIMIT = (2**31 - 1, 65535, 65535)
"""Blocks of a grid along x, y and z, on every GPU since compute capability 3.0 (CUDA C++ Programming Guide)."""
BLOCK_LIMIT = (1024, 1024, 64)
"""Threads of a block along x, y and z, same source."""
THREADS_LIMIT = 1024
"""Threads of a block."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """One launch of a kernel written in CUDA C, as plain data.

    `name` is an `extern "C" __global__` function of `source`, a file beside the suite (by default the suite's own
    name with .cu). `args` are tensors, passed as pointers, and NumPy scalars, whose C type is theirs (`np.int64(n)` is
    a `long long`); a bare int or float has no C type and is a TypeError. `grid` counts blocks and `block` threads, each
    an int or up to three of them. `shared_bytes` is dynamic shared memory, more than 48 KiB too where the GPU has it.

    `defines` become -DNAME=value, `options` go to the compiler as they are. `arch` is the one architecture the source
    is written for, such as "sm_90a"; None for source that any GPU can run. KernelError for a grid or a block beyond
    CUDA's limits.
    """

    name: str
    args: tuple[Any, ...]
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    shared_bytes: int = 0
    defines: Mapping[str, Define] = field(default_factory=dict)
    arch: str | None = None
    source: str | None = None
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for index, arg in enumerate(self.args):
            if arg is None or type(arg) in (bool, int, float, complex, str, bytes):
                raise TypeError(
                    f"kernel {self.name}: args[{index}] is {arg!r}, a bare {type(arg).__name__}, which has no C type; "
                    "pass a tensor or a NumPy scalar such as np.int64(n)"
                )
        threads = _sizes(self, "block", self.block, BLOCK_LIMIT)
        if math.prod(threads) > THREADS_LIMIT:
            raise KernelError(
                f"kernel {self.name}: a block of {math.prod(threads)} threads; the limit is {THREADS_LIMIT}"
            )
        object.__setattr__(self, "grid", _sizes(self, "grid", self.grid, GRID_LIMIT))
        object.__setattr__(self, "block", threads)
        if self.shared_bytes < 0:
            raise KernelError(f"kernel {self.name}: shared_bytes is {self.shared_bytes}")


def _sizes(kernel: Kernel, word: str, given: int | tuple[int, ...], limits: tuple[int, int, int]) -> tuple[int, ...]:
    """A grid or a block as three sizes, each from 1 to its limit."""
    sizes = given if isinstance(given, tuple) else (given,)
    if not 1 <= len(sizes) <= 3 or not all(type(size) is int for size in sizes):
        raise TypeError(f"kernel {kernel.name}: {word} is {given!r}; it takes an int or a tuple of up to three")
    for axis, size, limit in zip("xyz", sizes, limits, strict=False):
        if not 1 <= size <= limit:
            raise KernelError(f"kernel {kernel.name}: {word} {axis} is {size}; it takes 1 to {limit}")
    return (*sizes, 1, 1)[:3]


@dataclass(frozen=True, eq=False)
class DeclaredKernel:
    """A kernel of a suite and the values each of its defines may take, made by `Suite.kernel`.

    Called with arguments, a grid, a block and one value for each define, it gives a Kernel. Because the values are
    declared, `make kernels` can compile every variant without a device.
    """

    name: str
    source: str
    defines: Mapping[str, tuple[Define, ...]]
    arch: str | None = None
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.arch is not None and not re.fullmatch(r"sm_\d+[af]?", self.arch):
            raise TypeError(f"kernel {self.name}: arch is {self.arch!r}; it looks like 'sm_90a', or is None")
        for define, values in self.defines.items():
            if not re.fullmatch(r"[A-Z][A-Z0-9_]{2,}", define):  # -DT=float breaks the headers built into NVRTC
                raise TypeError(f"kernel {self.name}: define {define!r}; its name is three capital letters or more")
            if not values or not all(type(value) in (int, str) for value in values):
                raise TypeError(f"kernel {self.name}: {define} takes a list of integers or names, not {values!r}")

    def __call__(
        self,
        *args: Any,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        shared_bytes: int = 0,
        **defines: Define,
    ) -> Kernel:
        """The kernel to launch. A define that takes one value only may be left out; TypeError for one not declared."""
        if unknown := sorted(defines.keys() - self.defines.keys()):
            raise TypeError(
                f"kernel {self.name} declares no define {unknown[0]}; it has {', '.join(self.defines) or 'none'}"
            )
        chosen: dict[str, Define] = {}
        for define, values in self.defines.items():
            if define not in defines and len(values) > 1:
                raise TypeError(f"kernel {self.name} needs {define}, one of {', '.join(map(str, values))}")
            chosen[define] = defines.get(define, values[0])
            if chosen[define] not in values:
                listed = ", ".join(map(str, values))
                raise TypeError(f"kernel {self.name}: {define}={chosen[define]} is not declared; it takes {listed}")
        return Kernel(self.name, args, grid, block, shared_bytes, chosen, self.arch, self.source, self.options)

    def variants(self) -> Iterator[dict[str, Define]]:
        """Every set of defines it may be compiled with."""
        for values in itertools.product(*self.defines.values()):
            yield dict(zip(self.defines, values, strict=True))


@dataclass
class Workload:
    """One operation, ready to be checked and timed.

    `run` enqueues one call on the device and returns without waiting, or is a Kernel, or Kernels to be launched in
    order; `output` is the tensor it writes (or a tuple of them), or None where the call returns what it made, as most
    functions of torch do. `reference` computes the same values in higher precision, from the same inputs; it is never
    timed.

    `flops` counts an FMA as 2; `bytes` are the compulsory bytes of the algorithm: each input read once, each output
    written once. Both are exact integers of the parameters.

    `reduction` is K, the number of terms summed into one element of the output, and `accumulate` the dtype they are
    summed in: both set the tolerance (see `gpubench.check`). `precision` is the mode that the device's matrix products
    are held in (see `gpubench.devices.modes`).

    `roof` names the ceiling this workload is the yardstick of, such as "DRAM copy" (with `level`) or "bfloat16 matmul"
    (with `dtype`); most workloads have none. `level` and `dtype` say which memory and which arithmetic it uses.
    `labels` are short classes to group rows by, such as {"alignment": "16 B"}.

    `least_s` is how long to sample at least under a sustained load, in seconds; a row measured in bursts takes no
    notice of it. `metrics` gives further figures of the row, from what the last call left in its outputs, such as
    cycles that a kernel counted; it is asked once, after the samples were taken, and none of them may be primary.
    `of_kernels` gives more of them from the kernels that a timer saw, where one did.
    `timed_by` times one call in ns by a stopwatch of the suite's own, in place of the device's timers: for rows that
    are about how to measure.
    """

    run: Callable[[], object] | Kernel | tuple[Kernel, ...]
    output: Any
    reference: Callable[[], Any]
    reference_name: str
    flops: int = 0
    bytes: int = 0
    reduction: int = 1
    accumulate: str = "float32"
    precision: Literal["ieee", "tf32", "fp32-sums", "fp16-sums"] = "ieee"
    dtype: str | None = None
    level: str | None = None
    roof: str | None = None
    primary: Literal["flops", "bytes", "time"] | None = None
    labels: dict[str, str] = field(default_factory=dict)
    prediction: dict[str, Any] = field(default_factory=dict)
    least_s: float = 0.0
    metrics: Callable[[], Sequence[Metric]] | None = None
    of_kernels: Callable[[Sequence[KernelSeen]], Sequence[Metric]] | None = None
    timed_by: Callable[[], int] | None = None

    @property
    def call(self) -> Callable[[], object]:
        """`run`, once it can be called: the runner has the device make a callable of Kernels before anything else."""
        if isinstance(self.run, Kernel | tuple):
            raise TypeError("a Kernel is launched by a device")
        return self.run

    @property
    def headline(self) -> str:
        """The metric that judges this row: the one asked for, else the rate of flops, else of bytes, else time."""
        return self.primary or ("flops" if self.flops else "bytes" if self.bytes else "time")


def sound(workload: Workload) -> Workload:
    """A workload as a suite gave it.

    ValueError for what no run file could hold: flops or bytes that are no whole number from 0, a label that is no text,
    a prediction that is no JSON, such as one with a NaN or a tensor in it. TypeError for what is no workload.
    """
    if not isinstance(workload, Workload):
        raise TypeError(f"a benchmark returns a Workload, and this one returned {workload!r}")
    for name, count in (("flops", workload.flops), ("bytes", workload.bytes)):
        if type(count) is not int or count < 0:
            raise ValueError(f"{name} is {count!r}; expected a whole number, 0 or more")
    for label, value in workload.labels.items():
        if not isinstance(value, str):
            raise ValueError(f"label {label!r} is {value!r}; expected text")
    for key, value in workload.prediction.items():
        if wrong := _not_json(value):
            raise ValueError(f"prediction {key!r} holds {wrong}, which no run file can hold")
    return workload


def sound_metrics(metrics: Iterable[Metric]) -> list[Metric]:
    """The further figures that a suite gives of a row. ValueError where one is not finite or claims to be primary."""
    found = list(metrics)
    for metric in found:
        if not isinstance(metric.value, int | float) or not math.isfinite(metric.value):
            raise ValueError(f"metric {metric.name!r} is {metric.value!r}; expected a finite number")
        if metric.primary:
            raise ValueError(f"metric {metric.name!r} is primary; the headline is time or a rate")
    return found


def _not_json(value: Any) -> str | None:
    """What in a value JSON has no word for, or None."""
    if isinstance(value, Mapping):
        texts = (repr(key) for key in value if not isinstance(key, str))
        return next(texts, None) or next(filter(None, map(_not_json, value.values())), None)
    if isinstance(value, list | tuple):
        return next(filter(None, map(_not_json, value)), None)
    known = value is None or isinstance(value, int | str) or (isinstance(value, float) and math.isfinite(value))
    return None if known else repr(value)
