"""The one owner of torch's precision modes. Nothing else sets them.

Only the per-backend `fp32_precision` settings (torch ≥ 2.9) are used: mixing them with the older `allow_tf32` flags
raises there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from gpubench.errors import CaseError, Unsupported


@contextmanager
def cuda_precision(mode: str) -> Iterator[None]:
    """Hold float32 matmuls of the GPU at "ieee" or "tf32"; the mode found before is restored whatever happens."""
    matmul = torch.backends.cuda.matmul
    if mode == "tf32" and torch.cuda.get_device_capability()[0] < 8:
        raise Unsupported("tf32 needs compute capability 8.0 or newer")
    before = matmul.fp32_precision
    matmul.fp32_precision = mode
    try:
        if matmul.fp32_precision != mode:
            raise CaseError(f"precision mode {mode} was asked for, {matmul.fp32_precision} was read back")
        yield
    finally:
        matmul.fp32_precision = before


@contextmanager
def cpu_precision(mode: str) -> Iterator[None]:
    """Hold float32 matmuls of the CPU at "ieee"; a CPU has no tf32."""
    if mode != "ieee":
        raise Unsupported(f"a CPU has no {mode}")
    matmul = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before = matmul.fp32_precision
    matmul.fp32_precision = mode
    try:
        yield
    finally:
        matmul.fp32_precision = before
