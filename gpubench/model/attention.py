"""Attention softmax(Q·Kᵀ/√d)·V, without a mask: its flops, its compulsory bytes, and what it is held against.

Q, K and V are batch × heads × n × d: n positions with d numbers each.
"""

from __future__ import annotations

from typing import Any


def flops(batch: int, heads: int, n: int, d: int) -> int:
    """4·batch·heads·n²·d: two products of 2·n²·d flops each. The softmax between them is not counted, as it is in no
    published rate of attention (Dao, FlashAttention-2, 2023, section 4.1)."""
    return 4 * batch * heads * n * n * d


def bytes(batch: int, heads: int, n: int, d: int, itemsize: int) -> int:
    """Compulsory bytes: Q, K and V read once, the output written once. The n × n scores need not be stored."""
    return 4 * batch * heads * n * d * itemsize


def reference(q: Any, k: Any, v: Any) -> Any:
    """The same of torch's tensors, in float64 and by the definition, one head at a time: its scores alone are in memory
    at once."""
    out = v.double()
    for batch in range(q.shape[0]):
        for head in range(q.shape[1]):
            scores = q[batch, head].double() @ k[batch, head].double().t()
            out[batch, head] = (scores * q.shape[-1] ** -0.5).softmax(-1) @ v[batch, head].double()
    return out
