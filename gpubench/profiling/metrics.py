"""What is counted: our names, ncu's metrics behind each, the sets to choose from, and the ratios that follow.

Metrics as NVIDIA names them for GPUs since compute capability 7.0 (Nsight Compute, Kernel Profiling Guide, "Metrics
Reference"; `ncu --query-metrics`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpubench.errors import UsageError
from gpubench.nearest import did_you_mean

Value = int | float | None

_METRIC = re.compile(r"[a-z][a-z0-9]*__[A-Za-z0-9_.]{1,120}")


@dataclass(frozen=True)
class Counter:
    """One figure: our `name`, the `metrics` of ncu that may hold it (the first that a chip knows is taken) and its
    `unit`: B, an event counted, a ratio "1" or "%". Only one that `adds` has a sum over the kernels of a call."""

    name: str
    metrics: tuple[str, ...]
    unit: str
    adds: bool = True


_TABLE = (
    # Newer chips call the DRAM metrics bytes_op_read and bytes_op_write.
    Counter("dram_bytes_read", ("dram__bytes_read.sum", "dram__bytes_op_read.sum"), "B"),
    Counter("dram_bytes_write", ("dram__bytes_write.sum", "dram__bytes_op_write.sum"), "B"),
    Counter("l2_sectors_read", ("lts__t_sectors_op_read.sum",), "sectors"),
    Counter("l2_sectors_write", ("lts__t_sectors_op_write.sum",), "sectors"),
    Counter("global_load_requests", ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",), "requests"),
    Counter("global_load_sectors", ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",), "sectors"),
    Counter("global_store_requests", ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",), "requests"),
    Counter("global_store_sectors", ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",), "sectors"),
    Counter("instructions", ("smsp__inst_executed.sum",), "warp instructions"),
    Counter("thread_instructions", ("smsp__thread_inst_executed.sum",), "thread instructions"),
    Counter("hmma_instructions", ("sm__inst_executed_pipe_tensor_op_hmma.sum",), "warp instructions"),
    Counter("gmma_instructions", ("sm__inst_executed_pipe_tensor_op_gmma.sum",), "warp instructions"),
    Counter("hfma2_instructions", ("sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum",), "warp instructions"),
    Counter("l1_hit_rate", ("l1tex__t_sector_hit_rate.pct",), "%", adds=False),
    Counter("l2_hit_rate", ("lts__t_sector_hit_rate.pct",), "%", adds=False),
    Counter("l2_sectors_from_l1", ("lts__t_sectors_srcunit_tex.sum",), "sectors"),
    Counter("shared_load_conflicts", ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",), "wavefronts"),
    Counter("shared_store_conflicts", ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",), "wavefronts"),
    Counter("shared_load_wavefronts", ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",), "wavefronts"),
    Counter("shared_store_wavefronts", ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",), "wavefronts"),
    Counter("ffma_instructions", ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",), "thread instructions"),
    Counter("fadd_instructions", ("smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",), "thread instructions"),
    Counter("fmul_instructions", ("smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",), "thread instructions"),
    Counter("xu_instructions", ("sm__inst_executed_pipe_xu.sum",), "warp instructions"),
    Counter("divergent_branches", ("smsp__sass_branch_targets_threads_divergent.sum",), "branches"),
    Counter("warps_active", ("sm__warps_active.avg.pct_of_peak_sustained_active",), "%", adds=False),
    Counter(
        "stalled_on_memory",
        ("smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",),
        "1",
        adds=False,
    ),
    Counter("waves", ("launch__waves_per_multiprocessor",), "1", adds=False),
)
COUNTERS: Mapping[str, Counter] = {counter.name: counter for counter in _TABLE}

_BYTES = tuple(COUNTERS)[:13]
_MEMORY = (*_BYTES, *tuple(COUNTERS)[13:20])
SETS: Mapping[str, tuple[str, ...]] = {"default": _BYTES, "memory": _MEMORY, "all": tuple(COUNTERS)}
"""By name. `default` fits into a few replays of each kernel; every further group of metrics costs more of them."""

RATIOS: Mapping[str, tuple[str, str]] = {
    "sectors_per_load_request": ("global_load_sectors", "global_load_requests"),
    "sectors_per_store_request": ("global_store_sectors", "global_store_requests"),
    "threads_per_instruction": ("thread_instructions", "instructions"),
}
"""What follows from two counters. 32 threads an instruction is a warp without divergence; 4 sectors a request, 32
neighbouring floats."""
DIFFERENCES: Mapping[str, tuple[str, str]] = {"tensor_instructions": ("hmma_instructions", "hfma2_instructions")}
"""The same, one less the other. ncu's pipe of tensor cores counts HFMA2 too, by which a compiler makes constants."""


def chosen(words: str | None, named: str | None) -> tuple[Counter, ...]:
    """The counters of `--metrics a,b` (our names, or ncu's own), or of the set called `named`, "default" for None.

    UsageError for both at once, and for a name that is neither.
    """
    if words is not None and named is not None:
        raise UsageError("--metrics and --set both say what is counted", "one of them")
    if words is None:
        if (named or "default") not in SETS:
            raise UsageError(f"--set {named!r} is not one of {', '.join(SETS)}")
        return tuple(COUNTERS[name] for name in SETS[named or "default"])
    return tuple(dict.fromkeys(_counter(word.strip()) for word in words.split(",")))


def _counter(word: str) -> Counter:
    if word in COUNTERS:
        return COUNTERS[word]
    if _METRIC.fullmatch(word):
        return Counter(word, (word,), "", adds=word.endswith(".sum"))
    near = did_you_mean(word, COUNTERS)
    raise UsageError(f"--metrics {word!r}: no such counter{near}", f"one of {', '.join(COUNTERS)}, or a metric of ncu")


class Wanted:
    """The metrics to ask for. One that a chip does not know gives way to the next of its counter; where there is none
    left, the counter is `missing`, with the reason."""

    def __init__(self, counters: Sequence[Counter]) -> None:
        self.counters = tuple(counters)
        self.missing: dict[str, str] = {}
        self._left = {counter.name: list(counter.metrics) for counter in counters}

    @property
    def names(self) -> list[str]:
        """Our names of what was asked for."""
        return list(self._left)

    @property
    def metrics(self) -> list[str]:
        """What ncu is asked for now."""
        return [names[0] for names in self._left.values() if names]

    def drop(self, unknown: Iterable[str]) -> None:
        """Go on without these metrics."""
        for metric in unknown:
            for name, names in self._left.items():
                if metric in names:
                    names.remove(metric)
                    if not names:
                        self.missing[name] = f"neither this GPU nor this ncu has {metric}"

    def values(self, raw: Mapping[str, Value]) -> dict[str, Value]:
        """One kernel's figures by our names, and the ratios that follow; None for what could not be had."""
        found = {name: raw.get(names[0]) if names else None for name, names in self._left.items()}
        return found | _ratios(found)

    def total(self, kernels: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
        """The figures of a call, from those of its kernels: sums, and the ratios of the sums. Of several kernels, what
        does not add has none; neither has what a kernel lacks."""
        found: dict[str, Value] = {}
        for counter in self.counters:
            values = [kernel[counter.name] for kernel in kernels]
            if len(values) == 1:
                found[counter.name] = values[0]
            elif counter.adds:
                known = [value for value in values if value is not None]
                found[counter.name] = sum(known) if len(known) == len(values) else None
        return found | _ratios(found)


def _ratios(values: Mapping[str, Value]) -> dict[str, Value]:
    """Those of RATIOS and DIFFERENCES whose both counters were asked for; None where one is not known, or a ratio's
    nothing was counted."""
    found: dict[str, Value] = {}
    for name, (above, below) in RATIOS.items():
        if above in values and below in values:
            one, other = values[above], values[below]
            found[name] = one / other if one is not None and other else None
    for name, (above, below) in DIFFERENCES.items():
        if above in values and below in values:
            one, other = values[above], values[below]
            found[name] = None if one is None or other is None else one - other
    return found
