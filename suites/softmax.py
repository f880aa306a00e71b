"""Softmax: how often must a row be read, and does its sum need all of it at once?

The rows of a matrix of float32, a block a row: in three passes over the row, in two with a running maximum and sum, in
one where shared memory holds the row; and the five greatest elements of a softmax that is never written. Bytes are
compulsory, each element read and written once; a prediction has the accesses of each way, and how many of them reach
DRAM, from the rows that are under way at once and the size of the cache.

Rows labelled `control` are those of rows that stay in the cache, and of a sum without a maximum, which overflows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpubench import TIMES, Axis, Effect, Finding, Metric, RowsMissing, Skip, Suite, Workload
from gpubench.model import softmax as model

suite = Suite(__file__)

WAYS = {way: suite.kernel(way.replace("-", "_")) for way in ("three-pass", "online", "cached")}
"""By the name of the way: kernels that take the same arguments."""
TRIALS = {"running": suite.kernel("running"), "naive": suite.kernel("without_maximum")}
TOP_OF_SOFTMAX = suite.kernel("top_of_softmax", source="softmax_top.cu")
TOP_PLAIN = suite.kernel("top_plain", source="softmax_top.cu")

FLOAT = 4
"""Bytes of a float."""
TOP = 5
"""Elements of the row that are greatest, as in softmax_top.cu and softmax_top.cpp."""
WARP = 32
THREADS = 256
"""Most threads of a block that reads its row from memory: few, so that many rows are under way at once."""
CACHED_THREADS = 1024
"""Most threads of a block that keeps its row: few of those fit a multiprocessor."""
AHEAD, CACHED_AHEAD = 16, 16
"""Elements of a thread of either in one go, where the row is short."""
REFERENCE_ELEMENTS = 2**26
"""Elements whose reference is made at a time: half a GB of float64."""
TILES = 32
"""Tiles a trial's row is cut into, one a lane."""
TRIAL_SEED = 1
"""Of orders, cuts and pairs: the same in every run."""
RAISED = 8.0
"""Added to the last element of a row: exp of it is twice the sum of a thousand normal numbers' exponentials."""

ROWS = Axis([4000], cpu=[8])
"""Rows of a matrix: as many as in the paper's measurements."""


def threads_of(v: int, most: int, ahead: int) -> int:
    """Threads for a row of v elements, `ahead` for each: whole warps, no more than `most`."""
    return min(most, WARP * -(-v // (WARP * ahead)))


def launched(way: str, x: Any, y: Any) -> Any:
    """The kernel of a way, for the rows of x."""
    import numpy as np

    rows, v = x.shape
    sizes = np.int64(rows), np.int64(v)
    if way == "cached":
        held = 16 * -(-(v + 3) // 4)  # up to three elements before the row, so that it is aligned as in memory
        threads = threads_of(v, CACHED_THREADS, CACHED_AHEAD)
        return WAYS[way](x, y, *sizes, grid=rows, block=threads, shared_bytes=held)
    return WAYS[way](x, y, *sizes, grid=rows, block=threads_of(v, THREADS, AHEAD))


def under_way(device: Any, rows: int, v: int) -> int:
    """Rows that are read at once: a block each, as the multiprocessors have threads for them; on a CPU one a core."""
    facts = device.facts()
    units, each = facts.get("multiprocessors"), facts.get("threads_per_multiprocessor")
    if not units or not each:
        return min(rows, facts.get("threads") or 1)
    return int(min(rows, units * min(32, each // threads_of(v, THREADS, AHEAD))))


def traffic(device: Any, way: str, rows: int, v: int) -> dict[str, Any]:
    """The prediction of a way."""
    cache = device.facts().get("last_level_cache_bytes")
    return model.traffic(way, under_way(device, rows, v), v, FLOAT, cache)


def softmax_of(x: Any) -> Any:
    """torch's in float64, some rows at a time."""
    import torch

    made = torch.empty(x.shape, dtype=torch.float64, device=x.device)
    each = max(1, REFERENCE_ELEMENTS // x.shape[1])
    for first in range(0, len(x), each):
        made[first : first + each] = x[first : first + each].double().softmax(1)
    return made


def of_matrix(device: Any, by: str, v: int, rows: int) -> Workload:
    """The softmax of `rows` rows of v elements, by a kernel or by torch."""
    import torch

    x, y = device.random((rows, v), "float32"), device.unwritten((rows, v), "float32")
    return Workload(
        run=(lambda: torch.softmax(x, 1, out=y)) if by == "library" else launched(by, x, y),
        output=y,
        reference=lambda: softmax_of(x),
        reference_name="float64 softmax",
        bytes=model.bytes(rows, v, FLOAT),
        reduction=v,
        dtype="float32",
        level="DRAM",
        primary="bytes",
        prediction={} if by == "library" else traffic(device, by, rows, v),
    )


@suite.benchmark(
    by=Axis([*WAYS, "library"], cpu=["three-pass", "online", "library"]),
    v=Axis([100, 1000, 10000, 30000, 100000], cpu=[1000, 100000, 1000000], quick=[1000, 30000, 100000],
           quick_cpu=[1000, 1000000]),
    rows=ROWS,
)  # fmt: skip
def passes(device: Any, by: str, v: int, rows: int) -> Workload:
    """The softmax of rows of v elements in three, two and one passes over each, and by torch."""
    return of_matrix(device, by, v, rows)


@suite.benchmark(by=Axis(["three-pass", "online"]), v=Axis([1000]), rows=Axis([400000], cpu=[8000], quick=[100000]))
def short_rows(device: Any, by: str, v: int, rows: int) -> Workload:
    """The same of many short rows, which stay in the cache: the control, in which a read less saves nothing."""
    work = of_matrix(device, by, v, rows)
    work.labels = {"control": "rows stay in the cache"}
    return work


@suite.benchmark(
    by=Axis(["unfused", "fused", "library"]),
    v=Axis([1000, 30000, 100000], cpu=[100000], quick=[100000]),
    rows=ROWS,
)
def top(device: Any, by: str, v: int, rows: int) -> Workload:
    """The five greatest of each row's softmax, and where they are: after a softmax in three passes, or without one."""
    import numpy as np
    import torch

    if not TOP <= v < 2**31:
        raise Skip(f"rows of {v} elements: the kernels take {TOP} to 2^31 - 1")
    x = device.random((rows, v), "float32")
    greatest, places = device.unwritten((rows, TOP), "float32"), device.unwritten((rows, TOP), "int64")
    arguments = greatest, places, np.int64(rows), np.int32(v)
    how = {"grid": rows, "block": threads_of(v, THREADS, AHEAD)}
    run: Any
    if by == "fused":
        run = TOP_OF_SOFTMAX(x, *arguments, **how)
        prediction = traffic(device, "fused", rows, v)
    else:
        y = device.unwritten((rows, v), "float32")
        cache = device.facts().get("last_level_cache_bytes")
        prediction = model.read_again(traffic(device, "three-pass", rows, v), y.nbytes, cache)
        run = launched("three-pass", x, y), TOP_PLAIN(y, *arguments, **how)
    if by == "library":
        prediction = {}

        def run() -> object:
            return torch.topk(torch.softmax(x, 1, out=y), TOP, 1, out=(greatest, places))

    def greatest_and_there() -> Any:
        """The five greatest, and what is at the places that were found: equal numbers may be found in any order."""
        found = softmax_of(x)
        return found.topk(TOP, 1).values, found.gather(1, places.clamp(0, v - 1))

    return Workload(
        run=run,
        output=(greatest, greatest),
        reference=greatest_and_there,
        reference_name="float64 softmax, its five greatest and those at the places found",
        bytes=model.top_bytes(rows, v, TOP, FLOAT),
        reduction=v,
        dtype="float32",
        level="DRAM",
        primary="bytes",
        prediction=prediction,
    )


def orders(trials: int, n: int, device: Any) -> tuple[Any, Any, Any]:
    """Of each trial a random order of n elements, where it is cut into tiles (which may be empty), and which two tiles
    are merged in turn: of those that are left, one into another."""
    import torch

    generator = torch.Generator()
    generator.manual_seed(TRIAL_SEED)
    order = torch.rand((trials, n), generator=generator).argsort(1)
    cuts = torch.randint(0, n + 1, (trials, TILES + 1), generator=generator).sort(1).values
    cuts[:, 0], cuts[:, -1] = 0, n
    taken = torch.rand((trials, TILES), generator=generator).argsort(1)  # in this order they are merged into others
    left = torch.arange(TILES - 1, 0, -1)
    other = TILES - left + (torch.rand((trials, TILES - 1), generator=generator) * left).long()
    pairs = torch.stack([taken.gather(1, other), taken[:, :-1]], 2)
    return tuple(made.to(torch.int32).to(device).contiguous() for made in (order, cuts, pairs))


def errors(sums: Any, exact: Callable[[], Any]) -> Callable[[], Sequence[Metric]]:
    """Over the trials: the largest relative error of a sum that is finite, and the share of sums that are not."""

    def metrics() -> list[Metric]:
        found, right = sums.double(), exact()
        finite = found.isfinite()
        overflowed = Metric("overflowed", float((~finite).double().mean()), "1", "lower")
        if not finite.any():
            return [overflowed]
        error = ((found - right).abs() / right)[finite].max()
        return [Metric("relative_error", float(error), "1", "lower"), overflowed]

    return metrics


@suite.benchmark(
    by=Axis([*TRIALS]), offset=Axis([0, 10000], minimum=0), n=Axis([1000]), trials=Axis([1000], quick_cpu=[200])
)
def recurrence(device: Any, by: str, offset: int, n: int, trials: int) -> Workload:
    """The sum of a row's exponentials in random orders and splits, with a running maximum and without one.

    Each trial has its own row of n numbers around `offset`, cuts it into 32 tiles in its own order, and merges these
    two at a time until one is left.
    """
    import numpy as np
    import torch

    x = device.random((trials, n), "float32").add_(offset)
    order, cuts, pairs = orders(trials, n, x.device)
    sums = device.unwritten(trials, "float32")
    most = torch.finfo(torch.float32).max

    def exact() -> Any:
        """In float64, with the whole row's maximum; naive, what float32 can hold of the sum as it is."""
        row = x.double()
        if by == "running":
            return (row - row.amax(1, keepdim=True)).exp().sum(1)
        total = row.exp().sum(1)
        return torch.where(total > most, torch.inf, total)

    return Workload(
        run=TRIALS[by](
            x, order, cuts, pairs, sums, np.int64(trials), np.int32(n), np.int32(TILES), grid=trials, block=TILES
        ),
        output=sums,
        reference=exact,
        reference_name="float64 sum",
        reduction=n,
        dtype="float32",
        primary="time",
        labels={} if by == "running" else {"control": "without the maximum"},
        prediction={"overflowed": float(by == "naive" and model.overflows(offset))},
        metrics=errors(sums, exact),
    )


@suite.benchmark(v=Axis([1000]), rows=Axis([64]))
def reach(device: Any, v: int, rows: int) -> Workload:
    """Two softmaxes of the same rows, but that of every second row the last element is larger: what else changes?"""
    x = device.random((rows, v), "float32")
    raised = x.clone()
    raised[::2, -1] += RAISED
    before, after = device.unwritten((rows, v), "float32"), device.unwritten((rows, v), "float32")

    def metrics() -> list[Metric]:
        changed = (before != after).double()
        return [
            Metric("changed_in_row", float(changed[::2].mean()), "1", "higher"),
            Metric("changed_elsewhere", float(changed[1::2].mean()), "1", "lower"),
        ]

    return Workload(
        run=(launched("online", x, before), launched("online", raised, after)),
        output=(before, after),
        reference=lambda: (softmax_of(x), softmax_of(raised)),
        reference_name="float64 softmax",
        reduction=v,
        dtype="float32",
        primary="time",
        prediction={"changed_in_row": 1.0, "changed_elsewhere": 0.0},
        metrics=metrics,
    )


# The lecture's claims.

FEWER = 4 / 3 - 0.05, 4 / 3 + 0.05
"""Bytes of three passes over those of two: four accesses over three, of which the cache keeps a few per cent."""
FASTER = 1.15
"""What the paper finds with few rows; with 4000 it finds 1.3."""
CPU_FASTER = 1.05
"""A core's caches hold rows of up to a megabyte, and its exponentials take about as long as its reads."""
UNMOVED = 0.95, 1.05
"""Bytes of rows that stay in the cache: a read less is a read of the cache less."""
NO_FASTER = 1.05
"""And no time is won there. It may be lost: a running maximum has an exponential more for each step than a pass alone,
which took 13 % more on an H200."""
EXACT = 1e-5
"""Of a sum of a thousand exponentials in float32: ten times what its roundings add up to on average."""
NO_COUNTERS = "no counters: inferred from time"


@suite.claim("C62")
def all_of_the_row(view: Any) -> Finding:
    """Every result depends on every element of its row, and on no other row."""
    row = view.one("reach")
    return Finding(
        effects=(
            Effect("results of a row that one element changes", view.metric(row, "changed_in_row"), "1", 1.0, 1.0),
        ),
        controls=(Effect("results of other rows", view.metric(row, "changed_elsewhere"), "1", 0.0, 0.0),),
        prediction=row.prediction,
        proof="A",
    )


@suite.claim("C66")
def a_pass_less(view: Any) -> Finding:
    """Maximum and sum in one pass save a read of three, where the cache does not serve it."""
    largest = max(view.rows("passes", by="three-pass"), key=lambda row: row.params["v"])
    _, most = largest.prediction.get("dram_accesses", (0, 0))
    if not view.on_cpu and most == model.ACCESSES["cached"]:
        raise RowsMissing("no rows that the cache does not hold")
    where = {name: largest.params[name] for name in ("v", "rows")}
    pair = largest, view.one("passes", by="online", **where)
    short = [view.one("short-rows", by=by) for by in ("three-pass", "online")]
    counts, kept = ([view.dram_bytes(row) for row in rows] for rows in (pair, short))
    name = f"rows of {where['v']}"
    effects = [Effect(f"time, {name}", view.ratio(*pair), TIMES, CPU_FASTER if view.on_cpu else FASTER)]
    controls = [Effect("time, rows that stay in the cache", view.ratio(*short), at_most=NO_FASTER)]
    by_count = None not in counts
    if by_count:
        effects.append(Effect(f"bytes of DRAM, {name}", counts[0].over(counts[1]), TIMES, *FEWER))
    if None not in kept:
        controls.append(Effect("bytes of DRAM, rows that stay", kept[0].over(kept[1]), TIMES, *UNMOVED))
    fused, unfused = (view.maybe("top", by=by) for by in ("fused", "unfused"))
    if fused is not None and unfused is not None and fused.params == {**unfused.params, "by": "fused"}:
        name = f"time, five greatest of {fused.params['v']} after a softmax over fused"
        effects.append(Effect(name, view.ratio(unfused, fused), TIMES))
    return Finding(
        effects=tuple(effects),
        controls=tuple(controls),
        prediction={row.params["by"]: row.prediction for row in pair},
        proof="A" if by_count else "B",
        note="on a CPU: inferred from time" if view.on_cpu else "" if by_count else NO_COUNTERS,
    )


@suite.claim("C67")
def exact_in_any_order(view: Any) -> Finding:
    """Maximum and sum can be made in tiles, in any order, and merged in any order."""
    rows = [view.one("recurrence", by="running", offset=offset) for offset in (0, 10000)]
    naive = {offset: view.one("recurrence", by="naive", offset=offset) for offset in (0, 10000)}
    return Finding(
        effects=tuple(
            Effect(
                f"error of the sum, offset {row.params['offset']}", view.metric(row, "relative_error"), "1", None, EXACT
            )
            for row in rows
        ),
        controls=(
            Effect("overflows without a maximum, offset 10000", view.metric(naive[10000], "overflowed"), "1", 1.0, 1.0),
            Effect("overflows without a maximum, offset 0", view.metric(naive[0], "overflowed"), "1", 0.0, 0.0),
        ),
        prediction={f"naive_overflows_{offset}": row.prediction["overflowed"] for offset, row in naive.items()},
        proof="A",
    )
