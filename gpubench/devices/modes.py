"""The one owner of torch's precision modes. Nothing else sets them.

For float32 only the per-backend `fp32_precision` settings (torch ≥ 2.9) are used: mixing them with the older
`allow_tf32` flags raises there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from gpubench.errors import CaseError, Unsupported

FULL_SUMS = {
    "allow_fp16_accumulation": False,
    "allow_fp16_reduced_precision_reduction": False,
    "allow_bf16_reduced_precision_reduction": False,
}
"""Products of 16-bit numbers are summed in float32 throughout, and so are the parts of a product that was split."""
MODES: Mapping[str, Mapping[str, str | bool]] = {
    "ieee": {"fp32_precision": "ieee"},
    "tf32": {"fp32_precision": "tf32"},
    "fp32-sums": {"fp32_precision": "ieee", **FULL_SUMS},
    "fp16-sums": {"fp32_precision": "ieee", **FULL_SUMS, "allow_fp16_accumulation": True},
}
"""What each mode sets of torch.backends.cuda.matmul. In "ieee" and "tf32" the sums of 16-bit products are as torch has
them by default: in float32, the parts of a split product perhaps in 16 bits."""


@contextmanager
def cuda_precision(mode: str) -> Iterator[None]:
    """Hold matmuls of the GPU in one of MODES; what was found before is restored whatever happens."""
    matmul = torch.backends.cuda.matmul
    if mode == "tf32" and torch.cuda.get_device_capability()[0] < 8:
        raise Unsupported("tf32 needs compute capability 8.0 or newer")
    wanted = MODES[mode]
    before = {name: _setting(matmul, name) for name in wanted}
    try:
        for name, value in wanted.items():
            setattr(matmul, name, value)
            if (found := getattr(matmul, name)) != value:
                raise CaseError(f"precision mode {mode} was asked for, {found} was read back")
        yield
    finally:
        for name, value in before.items():
            setattr(matmul, name, value)


def _setting(matmul: Any, name: str) -> Any:
    """A setting as it can be set again: newer versions of torch keep two values for some, the second under a name of
    its own (whether a product may be split at all)."""
    value = getattr(matmul, name)
    split = getattr(matmul, f"{name}_split_k", None)
    return value if split is None else (value, split)


@contextmanager
def cpu_precision(mode: str) -> Iterator[None]:
    """Hold float32 matmuls of the CPU at "ieee", where 16-bit products are summed in float32 anyway; a CPU has no other
    mode."""
    if mode not in ("ieee", "fp32-sums"):
        raise Unsupported(f"a CPU has no {mode}")
    matmul = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before = matmul.fp32_precision
    matmul.fp32_precision = "ieee"
    try:
        yield
    finally:
        matmul.fp32_precision = before
