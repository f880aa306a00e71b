"""The door of torch.compile: functions compiled by inductor for one set of shapes, with no silent way back to eager.

Dynamo keeps what it compiled per code object, and after 8 sets of shapes it stops compiling with no more than a line in
a log. So each function gets a code object of its own here, one graph is allowed and one must have been made, and every
other outcome is an error of the case or the reason why its row is skipped.
"""

from __future__ import annotations

import subprocess
import sys
import time
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from gpubench.devices.analogue import first_error
from gpubench.devices.tensors import first_line
from gpubench.errors import CaseError, Skip, Unsupported
from gpubench.result import Metric

IN_PROCESS = {"compile_threads": 1}
"""Inductor's option to compile in this process: no pool of helpers starts, or runs beside a timed call."""
LEFT_ALONE = "torch.compile left the function as it was: is TORCH_COMPILE_DISABLE or TORCHDYNAMO_DISABLE set?"
MISSING = {
    "InvalidCxxCompiler": "torch.compile needs a C++ compiler and finds none that works; CXX names one",
    "TritonMissing": "torch.compile needs Triton, which is not installed or does not work",
}
"""Exceptions of inductor's that say there is nothing to compile with."""
HINT = "CC, CXX and TORCHINDUCTOR_CACHE_DIR name its compilers and its folder"


class Compiled:
    """A function that is compiled when it is first called, for the shapes, dtypes and modes of that call alone.

    After that call `graphs` is 1, `kernels` counts the kernels (on a CPU, the loop nests) that inductor wrote for it,
    products by a library not included, `compile_ns` is the host's time of the call, and `cached` says whether inductor
    found its work on disk. What autograd needs is compiled later, in the first backward pass, and in none of them.
    """

    def __init__(self, program: Callable[[tuple[Any, ...]], _Program]) -> None:
        self._find = program
        self._program: _Program | None = None

    def __call__(self, *args: Any) -> Any:
        """Call the compiled function. The first call raises CaseError where it cannot be compiled as one graph, Skip
        where there is nothing to compile with; a later one CaseError where it would be compiled again."""
        if self._program is None:
            self._program = self._find(args)
        return self._program.call(*args)

    @property
    def graphs(self) -> int:
        """1 once it is compiled."""
        return 0 if self._program is None else self._program.graphs

    @property
    def kernels(self) -> int:
        """What inductor wrote."""
        return 0 if self._program is None else self._program.kernels

    @property
    def compile_ns(self) -> int:
        """The host's time of the first call."""
        return 0 if self._program is None else self._program.compile_ns

    @property
    def cached(self) -> bool:
        """Whether inductor found its work on disk."""
        return self._program is not None and self._program.cached

    def metrics(self) -> list[Metric]:
        """Figures for the row: seconds of the first call, whether from a cache, and the kernels that inductor wrote."""
        return [
            Metric("compile_time", self.compile_ns / 1e9, "s", "none"),
            Metric("compile_cached", float(self.cached), "1", "none"),
            Metric("kernels_written", float(self.kernels), "1", "lower"),
        ]


class Compiler:
    """The compiled functions of one case. What is the same program is compiled once: copies of a workload share it."""

    def __init__(self) -> None:
        self._programs: dict[Any, _Program] = {}

    def compile(self, function: Callable[..., Any], options: Mapping[str, Any] | None = None) -> Compiled:
        """See Device. The same program means the same code, around equal numbers and words and the same objects, called
        with tensors alike in all but their values."""
        chosen = IN_PROCESS | dict(options or {})

        def program(args: tuple[Any, ...]) -> _Program:
            key = (_identity(function), repr(sorted(chosen.items())), torch.is_grad_enabled(), _signature(args))
            if key not in self._programs:
                self._programs[key] = _Program(function, chosen)
            return self._programs[key]

        return Compiled(program)

    def reset(self) -> None:
        """Forget what was compiled, here and in dynamo; what inductor keeps on disk stays."""
        self._programs.clear()
        if "torch._dynamo" in sys.modules:
            torch._dynamo.reset()


class _Program:
    """A function compiled once, and the figures of it that Compiled tells."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self.graphs = 0
        self.kernels = 0
        self.compile_ns = 0
        self.cached = False
        self._options = options
        self._function = function
        self._compiled: Callable[..., Any] | None = None

    def call(self, *args: Any) -> Any:
        """See Compiled."""
        if self._compiled is None:
            return self._first(*args)
        try:
            return self._compiled(*args)
        except torch._dynamo.exc.BackendCompilerFailed as error:
            raise _error_of_case(error) from error

    def _first(self, *args: Any) -> Any:
        """The call that compiles. A failure that dynamo was told to suppress leaves no graph, and is an error too."""
        begun = time.perf_counter_ns()
        try:
            own = _own_code(self._function)
            compiled = torch.compile(own, backend=self._inductor, dynamic=False, fullgraph=True)
            with warnings.catch_warnings(), torch._dynamo.config.patch(suppress_errors=False):
                warnings.simplefilter("ignore")  # advice about precision modes, which are the case's own matter
                made = compiled(*args)
        except Exception as error:
            if self.graphs:  # it was compiled, and failed as any call may
                raise
            raise _error_of_case(error) from error
        self.compile_ns = time.perf_counter_ns() - begun
        if not self.graphs:
            raise CaseError(LEFT_ALONE)
        self._compiled = compiled
        return made

    def _inductor(self, graph: Any, inputs: Any) -> Any:
        """The backend: inductor, with this function's options, once."""
        from torch._dynamo.utils import counters
        from torch._inductor import metrics
        from torch._inductor.compile_fx import compile_fx

        if self.graphs:
            raise CaseError("torch.compile would compile again: a shape, dtype or mode is not that of the first call")
        written, found = metrics.generated_kernel_count, counters["inductor"]["fxgraph_cache_hit"]
        made = compile_fx(graph, inputs, config_patches=dict(self._options))
        self.graphs = 1
        self.kernels = metrics.generated_kernel_count - written
        self.cached = counters["inductor"]["fxgraph_cache_hit"] > found
        return made


def _own_code(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind a code object that nobody else has."""

    def call(*args: Any) -> Any:
        return function(*args)

    return types.FunctionType(call.__code__.replace(), call.__globals__, call.__name__, None, call.__closure__)


def _identity(value: Any) -> Any:
    """A key that is equal for functions that do the same: the same code around the same things."""
    if isinstance(value, types.FunctionType):
        cells = tuple(_identity(cell.cell_contents) for cell in value.__closure__ or ())
        return (value.__code__, cells, _identity(value.__defaults__))
    if isinstance(value, tuple | list):
        return (type(value), *map(_identity, value))
    plain = isinstance(value, bool | int | float | str | torch.dtype) or value is None
    return (type(value), value) if plain else id(value)


def _signature(args: Sequence[Any]) -> Any:
    """The arguments of a call as far as they are compiled in: not the numbers in its tensors."""
    return tuple(
        (arg.shape, arg.stride(), arg.dtype, arg.device, arg.requires_grad)
        if isinstance(arg, torch.Tensor)
        else _signature(arg)
        if isinstance(arg, tuple | list)
        else (tuple(arg), _signature(tuple(arg.values())))
        if isinstance(arg, dict)
        else _identity(arg)
        for arg in args
    )


def _error_of_case(error: BaseException) -> Exception:
    """A failure to compile as the error of its case, or as the reason why it does not apply here. No paths: it is
    kept in the row."""
    cause = error
    while (inner := getattr(cause, "inner_exception", None)) is not None:
        cause = inner
    if isinstance(cause, CaseError | Skip | torch.OutOfMemoryError):
        return cause
    line = str(cause).strip().partition("\n")[0]
    kind = type(cause).__name__
    if kind in MISSING:
        return Skip(MISSING[kind])
    if kind == "GPUTooOldForTriton":
        return Unsupported(f"torch.compile: {line}")
    if "no compiled frames" in line:  # torch 2.13's words for a function that was left alone
        return CaseError(LEFT_ALONE)
    if kind == "Unsupported":
        return CaseError(f"torch.compile cannot make one graph of it: {line}")
    if isinstance(cause, OSError) and cause.strerror:
        line = f"{cause.strerror}: {Path(str(cause.filename)).name}"
    elif isinstance(cause, subprocess.CalledProcessError):
        line = f"{Path(cause.cmd[0]).name} ended with {cause.returncode}"
    else:
        line = first_error(getattr(cause, "output", None) or "") or first_line(cause)  # CppCompileError has a log
    return CaseError(f"torch.compile failed: {line}", HINT)
