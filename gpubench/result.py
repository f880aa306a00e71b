"""Run and Record: what a measurement leaves behind, as plain data.

These dataclasses are the run file `gpubench.run/1`, field for field. Times are integer nanoseconds; rates are SI base
units (B/s, FLOP/s); a value that could not be had is None, with a reason beside it where one is known. Reading and
writing live in `gpubench.store.runfile`; nothing here opens a file or imports a library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

SCHEMA = "gpubench.run/1"
QUICK = "quick"
"""The tag of a run made with --quick, which never decides a build."""

RunStatus = Literal["complete", "interrupted", "partial"]
RecordStatus = Literal["ok", "skipped", "unsupported", "oom", "incorrect", "timeout", "error"]
Flag = Literal[
    "throttled", "noisy", "implausible", "below-resolution", "cache-resident", "fallback", "profiled", "analogue"
]
Direction = Literal["higher", "lower", "none"]
"""Which way is better; "none" of what is neither: power is a condition of a rate, and no merit."""

FAILED: frozenset[str] = frozenset({"incorrect", "timeout", "error", "oom"})
"""Statuses of a case that ought to have produced a number; `skipped` and `unsupported` are not failures."""

Param = int | str
"""An axis value: a plain integer or a name."""

WAY, RIGHT, WRONG = "way", "right", "wrong"
"""The parameter of a benchmark about how to measure, and its values for the row that is measured right and for one that
is wrong on purpose. A `way` with other values is about something else."""

Cache = Literal["cold", "hot"]
Load = Literal["burst", "sustained"]
Data = Literal["normal", "uniform", "zeros"]

CONDITIONS: Mapping[str, tuple[str, ...]] = {"cache": get_args(Cache), "load": get_args(Load), "data": get_args(Data)}
"""The conditions there are, and the values each may take, the default first."""


@dataclass(frozen=True)
class Conditions:
    """What was asked for; part of a row's key."""

    cache: Cache = "cold"
    load: Load = "burst"
    data: Data = "normal"

    @property
    def by_name(self) -> dict[str, str]:
        """Each value by the name of its condition."""
        return {"cache": self.cache, "load": self.load, "data": self.data}

    @property
    def unusual(self) -> dict[str, str]:
        """Those that are not the default."""
        return {name: value for name, value in self.by_name.items() if value != CONDITIONS[name][0]}


USUAL = Conditions()
"""The defaults."""


@dataclass
class Work:
    """What the algorithm needs, from formulas of the parameters: flops (an FMA is 2) and compulsory bytes.

    `dtype` says in which arithmetic, `level` from which memory, `roof` which ceiling of the device this row measures.
    """

    flops: int
    bytes: int
    dtype: str | None = None
    level: str | None = None
    roof: str | None = None


@dataclass
class Check:
    """How the output compared with the reference. Errors are relative: ‖out-ref‖/‖ref‖, and max |out-ref|/rms(ref)."""

    error: float
    tolerance: float
    max_error: float
    max_tolerance: float
    elements: int
    reference: str


@dataclass
class KernelSeen:
    """One activity of one call, as the timer saw it. `kind`: kernel, memcpy or memset; `count`: times per call; `ns`:
    how long all of these take together, the median of the calls of one batch; None in older files."""

    name: str
    kind: str = "kernel"
    count: int = 1
    grid: list[int] | None = None
    block: list[int] | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    ns: int | None = None


@dataclass
class Samples:
    """Every sample taken. `gpu_ns[i]` is the whole of sample i (host time on a CPU), `launches[i]` the calls it holds,
    `block[i]` the batch it came from, `sm_mhz[i]` the SM clock beside it, None where it could not be read."""

    gpu_ns: list[int] = field(default_factory=list)
    launches: list[int] = field(default_factory=list)
    block: list[int] = field(default_factory=list)
    sm_mhz: list[float | None] = field(default_factory=list)


@dataclass
class Timer:
    """Which timer took the samples, its tick, and why it was chosen where that was not the first choice."""

    name: str
    tick_ns: float
    empty_ns: float | None = None
    reason: str | None = None


@dataclass
class Summary:
    """Of one call, derivable from the samples. `low_ns` and `high_ns` bound the 95 % interval of the median, and are
    None where there are too few samples for one."""

    n: int
    median_ns: int
    min_ns: int
    p10_ns: int
    p90_ns: int
    low_ns: int | None
    high_ns: int | None


@dataclass
class Metric:
    """A figure of a row. `unit` is SI: ns, B/s, FLOP/s. One metric of a row is `primary`."""

    name: str
    value: float
    unit: str
    direction: Direction
    primary: bool = False


@dataclass
class Record:
    """One row: one case, whether it gave a number or not. A failed case has a status, a reason and no number."""

    id: str
    suite: str
    benchmark: str
    definition: str
    params: dict[str, Param]
    conditions: Conditions
    status: RecordStatus
    reason: str | None = None
    flags: list[Flag] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    work: Work | None = None
    check: Check | None = None
    kernels: list[KernelSeen] = field(default_factory=list)
    samples: Samples = field(default_factory=Samples)
    timer: Timer | None = None
    call_ns: list[int] = field(default_factory=list)
    setup_ns: int | None = None
    check_ns: int | None = None
    compile_ns: int | None = None
    stopped_by: str | None = None
    summary: Summary | None = None
    telemetry: dict[str, Any] = field(default_factory=dict)
    counters: dict[str, Any] = field(default_factory=dict)
    prediction: dict[str, Any] = field(default_factory=dict)
    metrics: list[Metric] = field(default_factory=list)

    def metric(self, name: str) -> Metric | None:
        """The metric of that name, or None."""
        return next((metric for metric in self.metrics if metric.name == name), None)

    @property
    def primary(self) -> Metric | None:
        """The row's headline metric, or None where the case gave no number."""
        return next((metric for metric in self.metrics if metric.primary), None)


@dataclass
class Ceiling:
    """A measured roof of this device: `kind` bandwidth (B/s, with the memory `level`) or compute (FLOP/s, with the
    `dtype` it holds for). `record` is the id of the row it is the best figure of; with `slope_from`, the id of a row of
    a smaller buffer, it is the slope between the two: more bytes over more time."""

    kind: Literal["bandwidth", "compute"]
    name: str
    value: float
    unit: Literal["B/s", "FLOP/s"]
    record: str
    measured_at: str
    source: Literal["measured", "stored"]
    level: str | None = None
    dtype: str | None = None
    slope_from: str | None = None


@dataclass
class Run:
    """One run file. Times of day are UTC, ISO 8601 with a trailing Z."""

    run_id: str
    status: RunStatus
    started_at: str
    ended_at: str | None
    tool: dict[str, Any]
    argv: list[str]
    settings: dict[str, Any]
    tags: list[str]
    vcs: dict[str, Any]
    ci: dict[str, Any]
    host: dict[str, Any]
    device: dict[str, Any]
    software: dict[str, Any]
    fingerprint: dict[str, Any]
    ceilings: list[Ceiling] = field(default_factory=list)
    claims: list[dict[str, Any]] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    schema: str = SCHEMA

    @property
    def is_quick(self) -> bool:
        """Whether it was made with --quick: too little time for each row to hold anything against it."""
        return QUICK in self.tags
