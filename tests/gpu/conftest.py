"""What one module left on the GPU is gone before the next: a device, and what its timers keep, hang on each other."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(scope="module", autouse=True)
def _nothing_of_others() -> None:
    torch = pytest.importorskip("torch")
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
