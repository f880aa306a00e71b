"""Attention by its definition and by tiles: flops, compulsory bytes, and what the steps of the former move and hold.

Conventions, the same for every way to compute it (Dao, FlashAttention-2, 2023, section 4.1): the forward pass has
4·batch·heads·queries·keys·d flops, of its two products alone; half of that where a query sees its own place and those
before it; the backward pass 2.5 times as many, its five products, one of which computes scores again. So a way that
keeps the scores and has four products is held against five, and rates compare as times do.

A pass is one reading or one writing of all scores, batch × heads × n × n numbers. The steps of attention by its
definition, in passes, with what they move beside scores in operands (Q, K, V and O are one each):

| step | forward | backward |
|---|---|---|
| Q·Kᵀ, or dQ and dK | 1 and 2 operands | 2 and 4 operands |
| scale, as a step of its own | 2 | 2 |
| mask | 2 | 2 |
| softmax | 2 | 3, and 3 of a product before it |
| P·V, or dP and dV | 1 and 2 operands | 2 and 4 operands |

With the scale folded into Q, which moves 2 operands each way instead, and no mask that is 4 + 10 passes; with a scale
of its own 6 + 12 and 12 operands; with a mask too 8 + 14. By tiles no score moves: 4 operands forward, 8 backward.

The softmax's gradient is P ∘ (dP - rowsum(dP ∘ P)), which reads P and dP and writes once. On a GPU torch has dP ∘ P in
memory first, by a kernel of its own (ATen/native/cuda/SoftMax.cu, `Tensor tmp = grad * output`): three passes that the
definition does not ask for, and a sixth of the bytes of the eager form with a scale of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.model import kernel_names

NAIVE = ("naive", "naive-separate", "naive-masked")
"""Attention by its definition: the scale folded into Q; a step of its own; and a mask besides."""
BACKWARD_HALVES = 5
"""Flops of the backward pass over those of the forward pass, in halves."""
CONVENTION = f"flops: of two products, 4×batch×heads×n²×d; half if causal; {1 + BACKWARD_HALVES / 2:g}× with gradients"
"""What a rate of attention counts, for whoever reads one."""
FLOAT = 4
"""Bytes of a float32, in which torch's own definition ("math") has its scores, whatever the operands are."""
PRODUCT = "dP ∘ P"
"""The step of torch's that the definition does not ask for."""


@dataclass(frozen=True)
class Shape:
    """Queries are batch × heads × n × d, keys and values batch × kv_heads × n × d."""

    batch: int
    heads: int
    kv_heads: int
    n: int
    d: int
    causal: bool = False

    @property
    def scores(self) -> int:
        """Numbers of a pass."""
        return self.batch * self.heads * self.n**2

    @property
    def queries(self) -> int:
        """Numbers of Q, of O, and of their gradients."""
        return self.batch * self.heads * self.n * self.d

    @property
    def keys(self) -> int:
        """Numbers of K, of V, and of their gradients."""
        return self.batch * self.kv_heads * self.n * self.d


@dataclass(frozen=True)
class Step:
    """A kernel of attention by its definition: the family its name is of, and what it reads and writes: passes over the
    scores, operands the size of Q, and operands the size of K."""

    name: str
    family: kernel_names.Family
    passes: int
    queries: int = 0
    keys: int = 0

    def bytes(self, shape: Shape, itemsize: int) -> int:
        """Its compulsory bytes."""
        return itemsize * (self.passes * shape.scores + self.queries * shape.queries + self.keys * shape.keys)


def forward_flops(batch: int, heads: int, queries: int, keys: int, d: int, causal: bool = False) -> int:
    """Flops of the forward pass, by the convention above; a causal mask halves them."""
    return 4 * batch * heads * queries * keys * d // (2 if causal else 1)


def flops(shape: Shape, backward: bool = False) -> int:
    """Flops of the forward pass, or of both."""
    once = forward_flops(shape.batch, shape.heads, shape.n, shape.n, shape.d, shape.causal)
    return once * (2 + BACKWARD_HALVES) // 2 if backward else once


def compulsory_bytes(shape: Shape, itemsize: int, backward: bool = False) -> int:
    """Q, K and V read and O written; backward Q, K, V, O and its gradient read, three gradients written. A number or
    two for each query, of its maximum and sum, are left out."""
    return itemsize * (6 if backward else 2) * (shape.queries + shape.keys)


def steps(way: str, shape: Shape, backward: bool = False) -> tuple[Step, ...]:
    """The kernels of one of NAIVE, in their order but for the two products that each make of dP and dV, dQ and dK."""
    folded = way == "naive"
    scale = Step("scale", "pointwise", 0, queries=2) if folded else Step("scale", "pointwise", 2)
    mask = [Step("mask", "pointwise", 2)] if shape.causal or way == "naive-masked" else []

    def product(name: str) -> Step:
        return Step(name, "matmul", 1, queries=1, keys=1)

    scored = [scale, product("Q·Kᵀ")] if folded else [product("Q·Kᵀ"), scale]
    forward = [*scored, *mask, Step("softmax", "softmax", 2), product("P·V")]
    if not backward:
        return tuple(forward)
    gradients = [
        product("dP"), product("dV"), Step(PRODUCT, "pointwise", 3), Step("softmax's gradient", "softmax", 3), *mask
    ]  # fmt: skip
    return (*forward, *gradients, *([] if folded else [scale]), product("dQ"), product("dK"), *([scale] * folded))


def moved(way: str, shape: Shape, itemsize: int, backward: bool = False) -> dict[str, int]:
    """What a way moves between caches and memory at least: `bytes`, and where it has steps, their `passes` over the
    scores, and with a gradient the `bytes_by_definition`, without PRODUCT; of a way by tiles the keys and values of a
    head stay in a cache. Empty for torch's "math", whose steps are not ours."""
    if way == "math":
        return {}
    if way not in NAIVE:
        return {"bytes": compulsory_bytes(shape, itemsize, backward)}
    made = steps(way, shape, backward)
    found = {"passes": sum(step.passes for step in made), "bytes": sum(step.bytes(shape, itemsize) for step in made)}
    if backward:
        asked_for = (step.bytes(shape, itemsize) for step in made if step.name != PRODUCT)
        found["bytes_by_definition"] = sum(asked_for)
    return found


def needed(way: str, shape: Shape, itemsize: int, backward: bool = False) -> int:
    """The most bytes held at once: the operands, and of a way that stores scores two copies of them, four while the
    gradient of a softmax is computed: its result P, the gradient dP of that, dP ∘ P, and what comes out. torch's "math"
    has its scores, and copies of its operands, in float32, and keeps a copy more. A way by tiles adds up the gradient
    of Q in float32, and torch hands it O and the gradient that arrives there as copies, with positions before heads
    (ATen/native/transformers/cuda/attention_backward.cu)."""
    operands = itemsize * (4 if backward else 2) * (shape.queries + shape.keys)
    held = 4 if backward else 2
    if way == "math":
        return 3 * operands + FLOAT * (held + 1) * shape.scores
    if way in NAIVE:
        return operands + itemsize * held * shape.scores
    return operands + ((FLOAT + 2 * itemsize) * shape.queries if backward else 0)


def beside_steps(
    kernels: Iterable[dict[str, Any]], made: Sequence[Step], shape: Shape, itemsize: int
) -> list[tuple[str, dict[str, Any], float | None]]:
    """Counted kernels of a call beside the steps they are: of each the step's name, the kernel, and the bytes it moved
    over compulsory ones. Kernels of a family are its steps in turn; one that is no step has no ratio."""
    left = list(made)
    found: list[tuple[str, dict[str, Any], float | None]] = []
    for kernel in kernels:
        family = kernel_names.family(str(kernel["name"]))
        step = next((step for step in left if step.family == family), None)
        if step is not None:
            left.remove(step)
        counted = [kernel.get(f"dram_bytes_{way}") for way in ("read", "write")]
        known = step is not None and None not in counted
        ratio = sum(counted) / step.bytes(shape, itemsize) if known and step is not None else None  # type: ignore[arg-type]
        found.append((family if step is None else step.name, kernel, ratio))
    return found


def slope(points: Iterable[tuple[float, float]]) -> float | None:
    """The slope of log y over log x by least squares; None below three different x, or where a number is not above
    0."""
    pairs = list(points)
    if len({x for x, _ in pairs}) < 3 or any(x <= 0 or y <= 0 for x, y in pairs):
        return None
    logs = [(math.log(x), math.log(y)) for x, y in pairs]
    middle = math.fsum(x for x, _ in logs) / len(logs)
    spread = math.fsum((x - middle) ** 2 for x, _ in logs)
    return math.fsum((x - middle) * y for x, y in logs) / spread
