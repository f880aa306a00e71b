"""Fusion: what a chain of operations moves when each is a kernel of its own, and when all of them are one.

A pass is one reading or one writing of all n elements. An operation that is a kernel of its own reads what it needs and
writes its result: an expression whose operations read r1, r2, … tensors takes Σ (r + 1) passes. Fused, it reads each
input once and writes the result once, however many operations there are (H. He, "Making Deep Learning Go Brrrr From
First Principles", 2022).

Times are the least that the device's facts allow: bytes over what the memory's pins carry, and instructions over the
lanes of all multiprocessors at their highest clock. What is not known of a device is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.model import catalog

SIN2_COS2 = (1, 1, 1, 1, 2)
"""Tensors that sin, a square, cos, a square and the sum read: 11 passes."""
GELU = (1, 2, 2, 2, 1, 1, 1, 1, 2)
"""½ x (1 + tanh(c (x + d x³))): d x, · x, · x, x +, c ·, tanh, 1 +, ½ x, and the product: 22 passes."""
DROPPED = (1, 1, 2)
"""Bias, dropout and residual, without the bias itself, which is short, and a mask of a byte an element."""
LAYER_NORM, LAYER_NORM_SHORT = (1, 1, 1, 1, 0, 0, 1, 1, 1), 4
"""The mean, x -, a square, its mean, + ε, 1/√, ·, · weight and + bias: 12 passes, as the results of four of them are a
number a row, and what two of them read is no more."""
PHILOX = 40, 60
"""Integer instructions of a random number of Philox4x32-10, about, where each element has one of its own: ten rounds of
two whole products and two exclusive ors, and two sums where the key of the round is not at hand (Salmon and others,
"Parallel random numbers: as easy as 1, 2, 3", 2011)."""
TRIGONOMETRIC = 20, 30
"""Instructions of one accurate sine or cosine in float32 of an argument below π, about: the reduction of its range and
a polynomial, as nvcc writes them out."""


def chain(k: int) -> tuple[int, ...]:
    """Tensors read by each of k operations in a row."""
    return (1,) * k


def trigonometric(functions: int) -> tuple[int, int]:
    """Instructions of so many sines and cosines, at least and at most."""
    least, most = TRIGONOMETRIC
    return functions * least, functions * most


def passes(reads: Sequence[int], short: int = 0) -> int:
    """Passes of an expression whose operations, each a kernel, read so many tensors; the results of `short` of them are
    too short to count."""
    return sum(reads) + len(reads) - short


def figures(
    n: int,
    itemsize: int,
    reads: Sequence[int],
    facts: Mapping[str, Any],
    *,
    inputs: int | None = None,
    short: int = 0,
    instructions: tuple[int, int] | None = None,
    unit: str = "fp32",
) -> dict[str, Any]:
    """What an expression of n elements takes: `kernels`, `passes`, `moved_bytes`, the least `memory_ns`, and the least
    `issue_ns` of its arithmetic, where its `instructions` of a `unit` (fp32 or int32) for an element, at least and at
    most, are given.

    As it stands, or fused where the number of its `inputs` is given.
    """
    count, kernels = (passes(reads, short), len(reads)) if inputs is None else (inputs + 1, 1)
    found: dict[str, Any] = {"kernels": kernels, "passes": count, "moved_bytes": n * itemsize * count}
    if pins := catalog.memory_bound(facts):
        found["memory_ns"] = 1e9 * found["moved_bytes"] / pins.value
    lanes = catalog.rates(facts.get("compute_capability")).get(unit, 0) // 2
    each_ns = lanes * (facts.get("multiprocessors") or 0) * (facts.get("sm_mhz_max") or 0) / 1e3
    if instructions and each_ns:
        found["issue_ns"] = [n * count / each_ns for count in instructions]
    return found


def break_even(compile_s: float, before_ns: float, after_ns: float) -> float | None:
    """Calls after which the seconds spent on compiling are saved; None where a call is not faster for it."""
    saved_ns = before_ns - after_ns
    return 1e9 * compile_s / saved_ns if saved_ns > 0 else None
