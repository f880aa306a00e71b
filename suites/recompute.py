"""Recompute: is it cheaper to keep what a gradient needs, or to compute it again?

Chains of cheap elementwise operations with their gradient, each way one kernel of our own: once every result is stored
for the gradient, once only the last. Beside them what torch's autograd, its compiler and its checkpointing make of the
same chain. Where memory is the limit the chain that stores less is faster. Chains of matrix products, and a stack of
layers, show the other side: there computing again costs time and only saves memory. The bytes and flops of a row are
those of its way, by `gpubench.model.recompute`; rows labelled `control` are those that must gain nothing. On a CPU the
kernels have counterparts in C++: another program, which also reads the lines that it writes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from gpubench import TIMES, Axis, Effect, Estimate, Finding, NotTestable, RowsMissing, Skip, Suite, Workload, exactly
from gpubench.model import matmul as work
from gpubench.model import recompute

suite = Suite(__file__)

FLOAT, VECTOR, BLOCK = 4, 4, 256
"""Bytes of a float; elements that a thread takes, as in recompute.cu; threads of a block."""
SIGMOIDS = 3
"""Operations of the lecture's chain."""
LENGTHS = [1, 2, 4, 8]
PRODUCTS, SEGMENT = 8, 4
"""Products of a chain, and of each of its parts of which only the end is kept with checkpoints."""
KEPT = {"saved": 1, "recomputed": 0}
SPECIAL = {"sigmoid": 2, "reciprocal": 1}
"""Results of the special function units that an operation takes."""
GAIN = {"sigmoid": 4.0, "reciprocal": 2.6}
"""About 1 / |slope| of an operation: the gradient that arrives is larger by it for each, so that the one that leaves is
about as large as the result, beside which it is judged."""
ROUNDINGS = {"sigmoid": 7, "reciprocal": 4}
"""Of an operation and its slope: a product, an exponential, a sum and a reciprocal, and three of s·(1 - s)·gradient."""

CHECKPOINT = {"use_reentrant": False, "preserve_rng_state": False}
"""Of torch's checkpoint. Nothing here draws random numbers, whose state it would save and restore."""
STACKED = Axis(["saved", "checkpoint"])
DTYPE = Axis(["bfloat16"], cpu=["float32"], choices=["float32", "float16", "bfloat16"])

SIGMOIDS_FORWARD = suite.kernel("sigmoids_forward", defines={"LENGTH": [SIGMOIDS], "KEPT": [0, 1]})
SIGMOIDS_BACKWARD = suite.kernel("sigmoids_backward", defines={"LENGTH": [SIGMOIDS], "KEPT": [0, 1]})
CHAIN_FORWARD = suite.kernel("chain_forward", defines={"LENGTH": LENGTHS, "KEPT": [0, 1]})
CHAIN_BACKWARD = suite.kernel("chain_backward", defines={"LENGTH": LENGTHS, "KEPT": [0, 1]})
CHAIN_COPY = suite.kernel("chain_copy")
PAIRS = {"sigmoid": (SIGMOIDS_FORWARD, SIGMOIDS_BACKWARD), "reciprocal": (CHAIN_FORWARD, CHAIN_BACKWARD)}


def blocks(n: int) -> int:
    """Blocks that n elements take."""
    return -(-n // (VECTOR * BLOCK))


def inputs(device: Any, operation: str, n: int, length: int) -> tuple[Any, Any]:
    """n elements and the gradient that arrives at the end of a chain. Skip where n is not whole fours."""
    if n % VECTOR:
        raise Skip(f"a thread takes {VECTOR} elements, and {n} are not whole {VECTOR}s")
    x = device.random(n, "float32", seed=0)
    if operation == "reciprocal":
        x.abs_()  # 1 / (1 + x) has no pole from 0 up
    return x, device.random(n, "float32", seed=1).mul_(GAIN[operation] ** length)


def exact(operation: str, x: Any, gradient: Any, length: int) -> tuple[Any, Any]:
    """The end of a chain and the gradient of its beginning in float64; in place, as they are large."""
    y, slope = x.detach().double(), gradient.double()
    for _ in range(length):
        if operation == "sigmoid":
            y.sigmoid_()
            slope.mul_(y).mul_(1 - y)
        else:
            y.add_(1).reciprocal_()
            slope.mul_(y).mul_(y).neg_()
    return y, slope


def chained(operation: str, by: str, x: Any, gradient: Any, length: int, run: Any, output: Any = None) -> Workload:
    """A workload that leaves the end of a chain and the gradient of its beginning."""
    prediction = recompute.figures(by, length, allocate=x.device.type == "cpu")
    if by in KEPT:
        forward, backward = (SPECIAL[operation] * each for each in recompute.operations(by, length))
        prediction |= {"special_results_forward": forward, "special_results_backward": backward}
    return Workload(
        run=run,
        output=output,
        reference=lambda: exact(operation, x, gradient, length),
        reference_name="float64 chain rule",
        bytes=FLOAT * x.numel() * sum(recompute.passes(by, length)),
        reduction=ROUNDINGS[operation] * length,
        dtype="float32",
        level="DRAM",
        primary="time",
        prediction=prediction,
    )


def own_kernels(device: Any, operation: str, by: str, x: Any, gradient: Any, length: int) -> Workload:
    """A chain forward and backward by a kernel each."""
    import numpy as np

    forward, backward = PAIRS[operation]
    n, kept = x.numel(), KEPT[by]
    results, out = device.unwritten((length if kept else 1, n), "float32"), device.unwritten(n, "float32")
    launch = {"grid": blocks(n), "block": BLOCK, "LENGTH": length, "KEPT": kept}
    fours = np.int64(n // VECTOR)
    run = (
        forward(x, results, fours, **launch),
        backward(results if kept else x, gradient, out, fours, **launch),
    )
    return chained(operation, by, x, gradient, length, run, (results[-1], out))


def three(x: Any) -> Any:
    """The lecture's chain, in torch's words."""
    import torch

    for _ in range(SIGMOIDS):
        x = torch.sigmoid(x)
    return x


def by_torch(device: Any, by: str) -> tuple[Callable[[Any], Any], Any]:
    """The chain as torch runs it, and the compiled function behind it where there is one."""
    if by == "compiled":
        compiled = device.compile(three)
        return compiled, compiled
    if by == "checkpoint":
        from torch.utils.checkpoint import checkpoint

        return lambda x: checkpoint(three, x, **CHECKPOINT), None
    return three, None


@suite.benchmark(
    by=Axis(recompute.WAYS, quick=["saved", "recomputed"]), n=Axis([2**28], cpu=[2**23], quick=[2**26], minimum=4)
)
def sigmoids(device: Any, by: str, n: int) -> Workload:
    """Three sigmoids in a row and their gradient: kept or computed again, and by torch."""
    import torch

    x, gradient = inputs(device, "sigmoid", n, SIGMOIDS)
    if by in KEPT:
        return own_kernels(device, "sigmoid", by, x, gradient, SIGMOIDS)
    x.requires_grad_()
    function, compiled = by_torch(device, by)

    def run() -> tuple[Any, Any]:
        y = function(x)
        (slope,) = torch.autograd.grad(y, x, gradient)
        return y.detach(), slope

    made = chained("sigmoid", by, x, gradient, SIGMOIDS, run)
    made.metrics = compiled.metrics if compiled is not None else None
    return made


@suite.benchmark(n=Axis([2**28], cpu=[2**23], quick=[2**26], minimum=4))
def copy(device: Any, n: int) -> Workload:
    """As many elements, read once and written once: what two passes take."""
    import numpy as np

    x, _ = inputs(device, "sigmoid", n, SIGMOIDS)
    out = device.unwritten(n, "float32")
    return Workload(
        run=CHAIN_COPY(x, out, np.int64(n // VECTOR), grid=blocks(n), block=BLOCK),
        output=out,
        reference=lambda: x,
        reference_name="the elements copied",
        accumulate="exact",
        bytes=2 * FLOAT * n,
        dtype="float32",
        level="DRAM",
        primary="time",
        labels={"control": "two passes"},
        prediction={"passes": 2},
    )


@suite.benchmark(
    by=Axis(list(KEPT)),
    length=Axis(LENGTHS, cpu=[1, 8], quick=[1, 4]),
    n=Axis([2**26], cpu=[2**23], minimum=4),
)
def chain(device: Any, by: str, length: int, n: int) -> Workload:
    """A chain of 1 / (1 + x) and its gradient: kept or computed again. Of one operation nothing lies between."""
    if length not in LENGTHS:
        raise Skip(f"a chain is compiled for {', '.join(map(str, LENGTHS))} operations, not for {length}")
    x, gradient = inputs(device, "reciprocal", n, length)
    made = own_kernels(device, "reciprocal", by, x, gradient, length)
    made.labels = {"control": "nothing between"} if length == 1 else {}
    return made


def product_chain(x: Any, *weights: Any) -> Any:
    """x·W₀·W₁·…"""
    for weight in weights:
        x = x @ weight
    return x


def layer(x: Any, up: Any, down: Any) -> Any:
    """x + gelu(norm(x)·up)·down, as in a transformer's feed-forward part."""
    from torch.nn.functional import gelu, layer_norm

    return x + gelu(layer_norm(x, x.shape[-1:]) @ up) @ down


def gradients(part: Any, x: Any, weights: Any, gradient: Any, checkpoints: bool) -> Any:
    """One part after the other, each with weights of its own, and the gradients of x and of all weights. With
    checkpoints only what enters a part is kept, and the part is computed again before its gradients."""
    import torch
    from torch.utils.checkpoint import checkpoint

    y = x
    for own in weights:
        y = checkpoint(part, y, *own, **CHECKPOINT) if checkpoints else part(y, *own)
    return torch.autograd.grad(y, (x, *itertools.chain.from_iterable(weights)), gradient)


def stacked(
    device: Any, by: str, part: Any, rows: int, shapes: list[tuple[int, int]], depth: int, dtype: str, scale: float = 1
) -> Workload:
    """`depth` parts whose weights have these shapes, from x of normal numbers times `scale`, with their gradients."""
    x = device.random((rows, shapes[0][0]), dtype, seed=0).mul_(scale).requires_grad_()
    seeds = itertools.count(2)
    weights = [
        [device.random(shape, dtype, seed=next(seeds)).mul_(shape[0] ** -0.5).requires_grad_() for shape in shapes]
        for _ in range(depth)
    ]
    gradient = device.random((rows, shapes[-1][1]), dtype, seed=1)

    def reference() -> Any:
        """The same without checkpoints in float64."""
        wide = [[own.detach().double().requires_grad_() for own in each] for each in ([x], *weights)]
        return gradients(part, wide[0][0], wide[1:], gradient.double(), False)

    plain, again = (recompute.products(len(shapes), segment) for segment in (None, len(shapes)))
    made = plain if by == "saved" else again
    # Sums are in float32: beside the rounding of their results they count where those are float32 too.
    terms = max(rows, *shapes[0]) if dtype == "float32" else 1
    return Workload(
        run=lambda: gradients(part, x, weights, gradient, by == "checkpoint"),
        output=None,
        reference=reference,
        reference_name="float64 autograd",
        flops=depth * made * work.flops(rows, *shapes[0]),
        reduction=depth * len(shapes) * terms,
        accumulate=dtype,
        dtype=dtype,
        primary="time",
        prediction={"products": depth * made, "bound": made / plain},
    )


@suite.benchmark(by=STACKED, m=Axis([8192], cpu=[768]), d=Axis([2048], cpu=[384]), dtype=DTYPE)
def products(device: Any, by: str, m: int, d: int, dtype: str) -> Workload:
    """A chain of 8 matrix products and its gradients: kept, or computed again in two parts."""
    made = stacked(device, by, product_chain, m, SEGMENT * [(d, d)], PRODUCTS // SEGMENT, dtype, scale=m**-0.5)
    made.labels = {"control": "compute bound"}
    return made


@suite.benchmark(
    by=STACKED,
    tokens=Axis([8192], cpu=[256]),
    width=Axis([1024], cpu=[128]),
    depth=Axis([8], cpu=[4]),
    dtype=DTYPE,
)
def block_checkpoint(device: Any, by: str, tokens: int, width: int, depth: int, dtype: str) -> Workload:
    """A stack of layers and its gradients, plain and with torch's checkpoint around each layer."""
    made = stacked(device, by, layer, tokens, [(width, 4 * width), (4 * width, width)], depth, dtype)
    made.labels = {"verdict": "report only"}
    return made


# The lecture's claims.

BYTES = 0.05
"""How far a count of bytes may be off: what a cache still holds at the end of a kernel is not written yet."""
BY_TIME = 0.15
"""The same where passes are inferred from time: DRAM gives reads and writes in other proportions at rates up to a tenth
apart."""
LESS = 1.55, 1.65
"""8 passes over 5, with the error of two counts."""
FASTER = 1.35, 1.8
"""Of 1.6 at most: starting and ending two kernels and the special function units take a part of it. Above it only as
far as rates of reads and writes differ, or as a CPU reads what it writes (12 over 7)."""
FASTER_CPU, WAITING = 1.1, 1.5
"""There an exponential costs tens of instructions: where the pair takes so many times what its passes take by a copy,
it waits for them and no longer for memory, and the claim is about another machine."""
ALLOCATED = sum(recompute.passes("recomputed", SIGMOIDS, allocate=True)) / 3
"""Passes of the pair that computes again, over those of a copy, which reads, allocates and writes."""
EQUAL = 1e-6
"""The error of a gradient: some roundings of float32 (6e-8), and never those of another formula."""
CHEAP, LONG = 1.2, 4
"""How many times as fast a chain of so many operations or more is at least; two or three of them are near the limit."""
DEARER = 1.15
"""Products computed again in two parts are 1.25 times as many."""
SAME = 0.9, 1.1
"""Two ways with the same passes."""
LOWER = 0.95
"""Peak memory of a way that keeps less, over that of the other."""


def counted(view: Any, row: Any) -> Estimate | None:
    """Bytes that DRAM moved for one element of a row; None without counters."""
    moved = view.dram_bytes(row)
    return None if moved is None else exactly(moved.value / row.params["n"])


def nothing_between(view: Any) -> Effect:
    """A chain of one operation, where both ways move the same."""
    kept, again = (view.one("chain", by=by, length=1) for by in KEPT)
    return Effect("time kept over computed again, one operation", view.ratio(kept, again), "1", *SAME)


@suite.claim("C44")
def eight_passes(view: Any) -> Finding:
    """Three sigmoids and their gradient, kept, move 8 passes: by counters, else by the time of a copy's two."""
    view.needs_gpu("what a CPU moves cannot be counted, and its time is not that of memory alone")
    copied = view.one("copy")
    rows = {by: view.one("sigmoids", by=by, n=copied.params["n"]) for by in KEPT}
    prediction = recompute.figures("saved", SIGMOIDS)
    found, yardstick = counted(view, rows["saved"]), counted(view, copied)
    if found is not None and yardstick is not None:
        return Finding(
            effects=(
                within("bytes an element, kept", found, "B", FLOAT * prediction["passes"], BYTES),
                *others(view),
            ),
            controls=(within("bytes an element, copied", yardstick, "B", 2 * FLOAT, BYTES),),
            prediction=prediction,
            proof="A",
        )
    by_time = {by: view.ratio(row, copied).times(2) for by, row in rows.items()}
    again = sum(recompute.passes("recomputed", SIGMOIDS))
    return Finding(
        effects=(within("passes by the time of a copy, kept", by_time["saved"], "1", prediction["passes"], BY_TIME),),
        controls=(within("passes by the same, computed again", by_time["recomputed"], "1", again, BY_TIME),),
        prediction=prediction,
        note="no counters: inferred from time",
    )


def within(name: str, found: Estimate, unit: str, expected: float, share: float) -> Effect:
    """An effect that may be off by a share of what is expected."""
    return Effect(name, found, unit, expected * (1 - share), expected * (1 + share))


def others(view: Any) -> list[Effect]:
    """What the other ways move, for information."""
    found = []
    for by in ("recomputed", "compiled", "eager", "checkpoint"):
        row = view.maybe("sigmoids", by=by)
        moved = None if row is None else counted(view, row)
        if moved is not None:
            found.append(Effect(f"bytes an element, {by}", moved, "B"))
    return found


@suite.claim("C45")
def five_passes(view: Any) -> Finding:
    """Computed again, the same gradients take 5 passes of the 8, and less time."""
    kept = view.one("sigmoids", by="saved")
    same = {"n": kept.params["n"]}
    again = view.one("sigmoids", by="recomputed", **same)
    least = FASTER_CPU if view.on_cpu else FASTER[0]
    if view.on_cpu and view.ratio(again, view.one("copy", **same)).low > WAITING * ALLOCATED:
        raise NotTestable("three sigmoids wait for their exponentials on this CPU, not for memory")
    time = Effect("time kept over computed again", view.ratio(kept, again), TIMES, least, FASTER[1])
    moved, less = counted(view, kept), counted(view, again)
    bytes_ = () if moved is None or less is None else (Effect("bytes of the same", moved.over(less), TIMES, *LESS),)
    checks = [(by, row.check) for by, row in zip(KEPT, (kept, again), strict=True) if row.check is not None]
    return Finding(
        effects=(*bytes_, time),
        controls=(
            *(
                Effect(f"error of result and gradient, {by}", exactly(check.error), "1", at_most=EQUAL)
                for by, check in checks
            ),
            nothing_between(view),
        ),
        prediction={"bytes": recompute.ratio(SIGMOIDS, view.on_cpu)} | predicted(view, kept.params["n"]),
        proof="A" if bytes_ else "B",
        note="" if bytes_ else "no counters: inferred from time",
    )


def predicted(view: Any, n: int) -> dict[str, float]:
    """How many times as fast computing again is by the roof of DRAM and by the special function units; empty where
    either is not known."""
    rate = recompute.special_rate(view.facts)
    try:
        roof = view.ceiling("DRAM copy").value
    except RowsMissing:
        return {}
    if rate is None:
        return {}
    kept, again = (recompute.least_s(by, SIGMOIDS, n, FLOAT, SPECIAL["sigmoid"], roof, rate) for by in KEPT)
    return {"time": kept / again}


@suite.claim("C46")
def spare_compute(view: Any) -> Finding:
    """Cheap operations computed again are faster; products are slower; both need less memory."""
    effects, memory, ratios = list[Effect](), list[Effect](), dict[str, float]()
    for kept in view.rows("chain", by="saved"):
        length = kept.params["length"]
        if length > 1:
            again = view.one("chain", by="recomputed", length=length, n=kept.params["n"])
            limit = CHEAP if length >= LONG else None
            found = view.ratio(kept, again)
            effects.append(Effect(f"time kept over computed again, {length} operations", found, TIMES, limit))
            ratios[f"{length}"] = recompute.ratio(length, view.on_cpu)
            memory += peak(f"a chain of {length}", again, kept, LOWER if limit else None)
    if not any(effect.judged for effect in effects):
        raise RowsMissing(f"no chain of {LONG} operations or more")
    direct, twice = (view.one("products", by=by) for by in STACKED.values)
    dearer = view.ratio(twice, direct)
    memory += peak("a chain of products", twice, direct, LOWER)
    plain, less = (view.maybe("block-checkpoint", by=by) for by in STACKED.values)
    if plain is not None and less is not None:
        effects.append(Effect("time of layers with checkpoints over without", view.ratio(less, plain), "1"))
        memory += peak("layers, with checkpoints", less, plain, None)
    return Finding(
        effects=(*effects, *memory),
        controls=(
            nothing_between(view),
            Effect("time of products computed again over kept", dearer, "1", DEARER),
        ),
        prediction={"bytes_by_length": ratios, "products": twice.prediction.get("bound")},
        note="" if memory else "peak memory is not known here",
    )


def peak(what: str, less: Any, more: Any, limit: float | None) -> list[Effect]:
    """Peak memory of a call that keeps less over that of one that keeps more; none where nobody counts it."""
    low, high = less.telemetry.get("peak_bytes"), more.telemetry.get("peak_bytes")
    if not low or not high:
        return []
    return [Effect(f"peak memory computed again over kept, {what}", exactly(low / high), "1", at_most=limit)]
