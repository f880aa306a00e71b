"""Hand-made runs: valid Run and Record objects from closed formulas, for tests that need no device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpubench.model import matmul
from gpubench.result import Ceiling, Conditions, Metric, Param, Record, Run, Samples, Summary, Timer, Work
from gpubench.suite import record_id

ITEMSIZE = {"float64": 8, "float32": 4, "tf32": 4, "float16": 2, "bfloat16": 2}

GPU: dict[str, Any] = {"kind": "cuda", "name": "NVIDIA H200", "uuid": "GPU-00000000-0000-0000-0000-000000000000"}
CPU: dict[str, Any] = {"kind": "cpu", "name": "Example 2-core processor", "cores": 2}


def make_record(
    suite: str = "matmul-sweep",
    benchmark: str = "matmul",
    *,
    params: dict[str, Param] | None = None,
    time_ns: int = 100_000,
    half: float | None = 0.003,
    flops: int = 0,
    nbytes: int = 0,
    primary: str | None = None,
    level: str | None = None,
    **fields: Any,
) -> Record:
    """A row. An ok one has eleven equal samples of `time_ns` and a median known to ± the share `half` (None: unknown);
    `primary` is "flops", "bandwidth" or "time", `level` the memory it uses, its dtype that of `params`. A row of
    another status has no number. `fields` go to Record."""
    params = params or {"n": 64}
    dtype = params.get("dtype")
    base: dict[str, Any] = {
        "id": record_id(suite, benchmark, params, fields.get("conditions", Conditions())),
        "suite": suite,
        "benchmark": benchmark,
        "definition": "0123456789abcdef",
        "params": params,
        "conditions": Conditions(),
        "status": "ok",
        "work": Work(flops, nbytes, None if dtype is None else str(dtype), level),
    }
    if fields.get("status", "ok") == "ok":
        width = None if half is None else round(half * time_ns)
        low, high = (None, None) if width is None else (time_ns - width, time_ns + width)
        base |= {
            "samples": Samples([time_ns] * 11, [1] * 11, [0] * 11, [1980.0] * 11),
            "timer": Timer("cupti", 32.0),
            "stopped_by": "noise",
            "summary": Summary(11, time_ns, time_ns, time_ns, time_ns, low, high),
            "metrics": make_metrics(time_ns, flops, nbytes, primary),
        }
    return Record(**(base | fields))


def make_metrics(time_ns: int, flops: int, nbytes: int, primary: str | None) -> list[Metric]:
    """Time and the rates that follow from it; a time of zero has no rate."""
    headline = "time" if time_ns == 0 else primary or ("flops" if flops else "bandwidth" if nbytes else "time")
    metrics = [Metric("time", float(time_ns), "ns", "lower", headline == "time")]
    if flops and time_ns:
        metrics.append(Metric("flops", flops * 1e9 / time_ns, "FLOP/s", "higher", headline == "flops"))
    if nbytes and time_ns:
        metrics.append(Metric("bandwidth", nbytes * 1e9 / time_ns, "B/s", "higher", headline == "bandwidth"))
    return metrics


def make_matmul(n: int, dtype: str = "bfloat16", peak: float = 800e12, layout: str = "nn", **fields: Any) -> Record:
    """A square matmul whose rate is peak · n²/(n²+700²), and a share of it that falls with the alignment of the rows:
    1 at 16 B and above, 1/3 at 8 B, 1/4 at 4 B, 1/5 below."""
    align = matmul.alignment(n, n, n, layout, ITEMSIZE[dtype])
    share = 1 if align >= 16 else {8: 1 / 3, 4: 1 / 4}.get(align, 1 / 5)
    rate = share * peak * n * n / (n * n + 700 * 700)
    flops = matmul.flops(n, n, n)
    return make_record(
        params={"n": n, "m": n, "k": n, "dtype": dtype, "layout": layout},
        time_ns=max(round(flops / rate * 1e9), 1),
        flops=flops,
        nbytes=matmul.bytes(n, n, n, ITEMSIZE[dtype]),
        labels={"alignment": f"{align} B"},
        **fields,
    )


NEIGHBOURS = [256 * multiple + step for multiple in range(1, 18) for step in (-1, 1, 2, 4, 8)]


def make_bandwidth(benchmark: str = "copy", rate: float = 4e12, mib: int = 1024, **fields: Any) -> Record:
    """A stream of `mib` MiB from DRAM at that many B/s."""
    time_ns = round(mib * 2**20 / rate * 1e9)
    return make_record(
        "bandwidth", benchmark, params={"mib": mib}, time_ns=time_ns, nbytes=mib * 2**20, level="DRAM", **fields
    )


SIZES = sorted({*range(256, 4353, 64), *range(1788, 1801), *NEIGHBOURS})


def make_sweep(sizes: Sequence[int] = SIZES, **fields: Any) -> list[Record]:
    """A square sweep, by default of the sizes a GPU would run."""
    return [make_matmul(n, **fields) for n in sizes]


def make_ceilings(dtype: str = "bfloat16", peak: float = 800e12, bandwidth: float = 4.6e12) -> list[Ceiling]:
    """Two DRAM ceilings, of which the second is the higher, and one compute ceiling."""
    when = "2026-07-12T10:15:00Z"
    return [
        Ceiling("bandwidth", "DRAM copy", 0.9 * bandwidth, "B/s", "bandwidth/copy[mib=1024]", when, "measured", "DRAM"),
        Ceiling("bandwidth", "DRAM write", bandwidth, "B/s", "bandwidth/write[mib=1024]", when, "measured", "DRAM"),
        Ceiling("compute", f"{dtype} matmul", peak, "FLOP/s", "peak/matmul[n=8192]", when, "stored", dtype=dtype),
    ]


def make_run(records: Sequence[Record] | None = None, *, device: dict[str, Any] | None = None, **fields: Any) -> Run:
    """A complete run of 58 s; by default the sweep of `make_sweep` on a GPU, with ceilings."""
    base: dict[str, Any] = {
        "run_id": "20260712-101500-7f3a",
        "status": "complete",
        "started_at": "2026-07-12T10:15:00Z",
        "ended_at": "2026-07-12T10:15:58Z",
        "tool": {"name": "gpubench", "version": "0.1.0"},
        "argv": ["run", "matmul-sweep"],
        "settings": {},
        "tags": [],
        "vcs": {},
        "ci": {},
        "host": {},
        "device": dict(GPU if device is None else device),
        "software": {},
        "fingerprint": {},
        "ceilings": make_ceilings() if records is None else [],
        "records": list(make_sweep() if records is None else records),
    }
    return Run(**(base | fields))
