"""Decoding a token at a time: products with few rows, and attention of one position to a cache of keys and values.

A product of b rows reads a whole weight matrix for 2·b flops a weight, so that its intensity is about 2·b over the
bytes of a weight, and its time is that of reading the weights until that reaches the ridge.
"""

from __future__ import annotations

from typing import Any


def matvec_bytes(rows: int, n: int, k: int, weight_itemsize: int, in_itemsize: int, out_itemsize: int) -> int:
    """Compulsory bytes of rows × k times k × n: the weights and the rows read once, the result written once."""
    return n * k * weight_itemsize + rows * k * in_itemsize + rows * n * out_itemsize


def rows_at_ridge(ridge: float, weight_itemsize: int) -> float:
    """The rows at which reading the weights takes as long as multiplying by them; `ridge` is in FLOP/B."""
    return ridge * weight_itemsize / 2


def attention_flops(batch: int, heads: int, context: int, d: int) -> int:
    """4·batch·heads·context·d: a product with the keys and one with the values, for one position of each sequence."""
    return 4 * batch * heads * context * d


def cache_bytes(batch: int, kv_heads: int, context: int, d: int, itemsize: int) -> int:
    """Bytes of the keys and values of all sequences, which each step reads once."""
    return 2 * batch * kv_heads * context * d * itemsize


def busy_share(blocks: int, units: int) -> float:
    """The most of a GPU's multiprocessors that so many blocks can keep busy: min(1, blocks / units)."""
    return min(1.0, blocks / units)


def reference(q: Any, k: Any, v: Any) -> Any:
    """Attention of each query to all keys, of torch's tensors, in float64 by the definition, one sequence at a time.

    q is batch × kv_heads × queries × d; k and v are batch × kv_heads × context × d.
    """
    out = q.double().clone()
    for sequence in range(q.shape[0]):
        scores = q[sequence].double() @ k[sequence].double().transpose(-1, -2)
        out[sequence] = (scores * q.shape[-1] ** -0.5).softmax(-1) @ v[sequence].double()
    return out
