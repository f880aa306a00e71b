"""A self-check's measuring: short rows of known work, in fresh processes one after the other, kept in a pool.

The rows are few and short, of each kind of work: bytes, arithmetic, both, library calls, the smallest kernels. Of four
of them there is more, by 3 and 5 %: a buffer that is longer, a loop that is taken more often. That is real work done by
the same kernel, so that it can be said whether a loss that is there is found.
"""

from __future__ import annotations

import os
import random
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from gpubench import ceilings, environment
from gpubench.discovery import Library
from gpubench.executor import Bench, Executor
from gpubench.plan import Selected, cases, select
from gpubench.result import USUAL, Param, Record, Run
from gpubench.runner import Effort, run
from gpubench.sampling import Stopping
from gpubench.selfcheck.pool import Pool, path_of
from gpubench.selfcheck.splits import INJECTED, More
from gpubench.suite import Benchmark, Case

TAG = "selfcheck"
SHARES = tuple(dict.fromkeys(share for share, _ in INJECTED))
"""How much more work the longer rows do."""
CASE_TIME = 0.1
"""Seconds of samples a row: a process is dear for its start, so that its rows are cheap beside it."""
MAX_NOISE = 0.005


@dataclass(frozen=True)
class _Work:
    """A benchmark with its parameters on a GPU and on a CPU; `longer` is the axis along which there is more of it."""

    benchmark: str
    cuda: Mapping[str, Param]
    cpu: Mapping[str, Param]
    longer: str | None = None


WORKS = (
    _Work(
        "bandwidth/copy",
        {"mib": 400, "unroll": 1, "threads": 256, "hint": "plain"},
        {"mib": 100, "unroll": 1, "threads": 1024, "hint": "plain"},
        "mib",
    ),
    _Work("intensity/registers", {"links": 800, "blocks": 1}, {"links": 800, "blocks": 4}, "links"),
    _Work("intensity/repeated", {"links": 256, "n": 32_000_000}, {"links": 64, "n": 4_000_000}, "n"),
    _Work("fusion/chain", {"by": "kernel", "k": 4, "n": 64_000_000}, {"by": "kernel", "k": 4, "n": 4_000_000}, "n"),
    _Work("matmul-sweep/matmul", {"n": 1024}, {"n": 384}),
    _Work("matmul-sweep/matmul", {"n": 1793}, {"n": 513}),
    _Work("matmul-sweep/matmul", {"n": 4096}, {"n": 768}),
    _Work(
        "softmax/passes",
        {"by": "library", "v": 10_000, "rows": 4000},
        {"by": "library", "v": 100_000, "rows": 8},
    ),
)
"""What is measured: the first four have longer rows. The links of a GPU are taken eight at a time, and those that are
left over one by one, which costs half as much again: 800, 824 and 840 leave none."""


@dataclass(frozen=True)
class Planned:
    """The rows of a self-check on one kind of device; `more` says which of them are longer ones of others."""

    cases: list[Case]
    more: list[More]


def bench(library: Library) -> Bench:
    """The benchmarks of a self-check, on whatever device."""
    benchmarks = [select([work.benchmark], library)[0].benchmark for work in WORKS]
    return Bench({each.path: each for each in benchmarks}, {each.suite: each.file for each in benchmarks})


def planned(bench: Bench, kind: str) -> Planned:
    """The rows for a kind of device: a CPU's for "cpu", else a GPU's."""
    found: list[Case] = []
    more: list[More] = []
    for work in WORKS:
        params = work.cpu if kind == "cpu" else work.cuda
        benchmark = bench.benchmarks[work.benchmark]
        row = _case(benchmark, kind, params)
        found.append(row)
        if work.longer is not None:
            for share in SHARES:
                longer = _case(benchmark, kind, {**params, work.longer: _longer(params[work.longer], share)})
                found.append(longer)
                more.append(More(longer.id, row.id, share))
    return Planned(found, more)


def _case(benchmark: Benchmark, kind: str, params: Mapping[str, Param]) -> Case:
    """The one row with these parameters, cold and in bursts."""
    asked = {name: [value] for name, value in params.items()}
    (found,) = cases([Selected(benchmark, asked)], kind, conditions=USUAL.by_name)
    return found


def _longer(value: Param, share: float) -> int:
    """A size with so much more of it, which must come out whole: a rounded one would be another share."""
    wanted = int(value) * (1 + share)
    if abs(wanted - round(wanted)) > 1e-6:
        raise ValueError(f"{value} and {share:.0%} more is {wanted}")
    return round(wanted)


def pool_of(results: Path, executor: Executor, rows: Planned) -> Pool:
    """The pool that processes such as this one belong to: on this device, with this software, of these rows."""
    hello = executor.hello
    definitions = [f"{case.id} {executor.definition(case)}" for case in rows.cases]
    tool = environment.tool()
    parts = [ceilings.key(hello.facts, hello.software), f"{tool['version']} {tool['method']}", *definitions]
    return Pool(path_of(results, str(hello.facts["kind"]), parts))


def grow(
    pool: Pool, rows: Planned, wanted: int, first: Executor, fresh: Callable[[], Executor], until: float
) -> Iterator[Run]:
    """Add processes to a pool until it has so many, or `time.monotonic()` says it is `until`: each in turn, once it is
    kept. `first` is a process that was started already, `fresh` starts another; every one is closed.

    A process that is interrupted leaves nothing. DeviceLost where one cannot be started any more, UsageError where the
    pool cannot be written.
    """
    ready: Executor | None = first
    try:
        while len(pool.runs) < wanted and time.monotonic() < until:
            if ready is not None:
                pool.check_writable()
            executor = ready or fresh()
            ready = None
            with closing(executor):
                made = _measure(executor, rows, len(pool.runs))
            pool.add(made)
            yield made
    finally:
        if ready is not None:
            ready.close()


def _measure(executor: Executor, rows: Planned, number: int) -> Run:
    """All rows in one process, in an order of its own: what a row does to the next is no part of either."""
    order: Sequence[Case] = random.Random(f"{TAG} {number}").sample(rows.cases, len(rows.cases))
    begun = environment.now()
    effort = Effort(Stopping(MAX_NOISE, CASE_TIME))
    records = [event for event in run(order, executor, effort) if isinstance(event, Record)]
    facts, software = dict(executor.hello.facts), dict(executor.hello.software)
    return Run(
        run_id=f"{TAG}-{secrets.token_hex(8)}",
        status="complete",
        started_at=begun,
        ended_at=environment.now(),
        tool=environment.tool(),
        argv=["gpubench", *environment.safe_argv(sys.argv[1:])],
        settings={},
        tags=[TAG],
        vcs={},
        ci={},
        host=environment.host(),
        device=facts,
        software={"python": sys.version.split()[0], **software},
        fingerprint=environment.fingerprint(facts, software, os.environ),
        records=records,
    )
