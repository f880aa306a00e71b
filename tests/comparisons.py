"""Small comparisons: a row on each side, told apart by what a test is about."""

from __future__ import annotations

from typing import Any

import builders

from gpubench.compare.runs import compare
from gpubench.result import Metric, Record, Run, Samples
from gpubench.verdict import Judged, Row

FLOPS = 10**9
MIRROR = {"suspect": "better", "better": "suspect", "regression": "improvement", "improvement": "regression"}


def record(time_ns: int = 100_000, n: int = 64, **fields: Any) -> Record:
    """A row whose headline is its time."""
    return builders.make_record(params={"n": n}, time_ns=time_ns, **fields)


def rate(time_ns: int = 100_000, n: int = 64, **fields: Any) -> Record:
    """A row whose headline is a rate."""
    return record(time_ns, n, flops=FLOPS, **fields)


def run(*records: Record, **fields: Any) -> Run:
    return builders.make_run(list(records), **({"run_id": "base"} | fields))


def judged(base: Run | Record | list[Run], new: Run | Record, **options: Any) -> Judged:
    """Bare rows stand for a run of that row."""
    new = run(new, run_id="new") if isinstance(new, Record) else new
    return compare(run(base) if isinstance(base, Record) else base, new, **options)


def only(base: Run | Record | list[Run], new: Run | Record, **options: Any) -> Row:
    rows = judged(base, new, **options).rows
    assert len(rows) == 1
    return rows[0]


def verdicts(outcome: Judged) -> dict[str, str]:
    return {row.id.partition("[")[2].rstrip("]"): row.verdict for row in outcome.rows}


def history(times: list[int], **fields: Any) -> list[Run]:
    """Runs of one row, a day apart."""
    return [
        run(rate(time_ns, **fields), run_id=f"run-{day}", started_at=f"2026-07-{day + 1:02}T00:00:00Z")
        for day, time_ns in enumerate(times)
    ]


def spoilt(value: Any = 100_000.0, unit: str = "ns", direction: Any = "lower", **fields: Any) -> Record:
    return record(metrics=[Metric("time", value, unit, direction, True)], **fields)


def device(**facts: Any) -> dict[str, Any]:
    """Fields of a run on a GPU of which these facts are known."""
    known = {
        "kind": "cuda",
        "name": "NVIDIA H200",
        "memory_gib": 140,
        "power_limit_w": 700.0,
        "mig": False,
        "ecc": True,
    }
    known |= facts
    return {"device": {**builders.GPU, "name": known["name"], "kind": known["kind"]}, "fingerprint": {"device": known}}


def variables(**given: str) -> dict[str, Any]:
    return {"fingerprint": {"environment": {"variables": given}}}


def at(mhz: float | None, time_ns: int = 100_000) -> Record:
    return rate(time_ns, samples=Samples([time_ns] * 11, [1] * 11, [0] * 11, [mhz] * 11))
