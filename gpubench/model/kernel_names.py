"""What kind of work a kernel does, told by its name: products of matrices, attention, or what lies between them.

The names are those of cuBLAS (nvjet, xmma, cutlass, gemv), cuDNN, FlashAttention and torch's own kernels as CUPTI gives
them, and of Triton kernels that inductor wrote, which name the operations they fuse. A name that no pattern knows is
"unknown", and nothing is guessed of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

Family = Literal[
    "matmul", "attention", "normalization", "softmax", "reduction", "pointwise", "copy", "unknown"
]  # fmt: skip

_PATTERNS: tuple[tuple[Family, str], ...] = (
    # Names hold others': a flash kernel is a template of cutlass's types, and one that inductor fused lists what it
    # works on, too: the output of an attention, say. So the first that fits decides; the most particular come first.
    ("normalization", r"^triton_(poi|red|per)_\w*(layer|rms)_norm"),
    ("softmax", r"^triton_(poi|red|per)_\w*softmax"),
    ("reduction", r"^triton_(red|per)_"),
    ("pointwise", r"^triton_poi_"),
    ("attention", r"flash_(fwd|bwd)|fmha|sdpa|attention"),
    ("matmul", r"nvjet|gemm|gemv|splitkreduce|cutlass::kernel2|triton_tem_|triton_mm|cublaslt::"),
    ("normalization", r"layer_?norm|rms_?norm|rowwisemoments|gammabeta|cucompute|computeinternalgradients"),
    ("softmax", r"softmax"),
    ("reduction", r"reduce_kernel"),
    ("copy", r"catarraybatchedcopy|direct_copy_kernel|memcpy|memset"),
    ("pointwise", r"elementwise_(grid_stride_)?kernel|fused_dropout|indexselect|index_elementwise"),
)
_KNOWN = tuple((family, re.compile(pattern, re.IGNORECASE)) for family, pattern in _PATTERNS)


def family(name: str, kind: str = "kernel") -> Family:
    """The family of a kernel; `kind` is that of its activity, and copies and sets need no name."""
    if kind != "kernel":
        return "copy"
    return next((found for found, pattern in _KNOWN if pattern.search(name)), "unknown")


def time_shares(kernels: Iterable[tuple[str, str, int | None]]) -> dict[Family, float] | None:
    """The share of each family in the time that a call's kernels take, of their (name, kind, ns), ns being that of all
    launches in one call. None where a kernel has no time, or all of them have none: then no share is known."""
    spent: dict[Family, int] = {}
    for name, kind, ns in kernels:
        if ns is None:
            return None
        found = family(name, kind)
        spent[found] = spent.get(found, 0) + ns
    whole = sum(spent.values())
    return {each: ns / whole for each, ns in spent.items()} if whole else None
