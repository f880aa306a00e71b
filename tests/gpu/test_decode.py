"""Decoding on a GPU: few rows cost the weights' bytes, a cache its own, and long contexts want many blocks."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)
pytest.importorskip("cupy")

from machine_rows import row  # noqa: E402

from gpubench.devices.cuda import CudaDevice  # noqa: E402

EIGHT_BITS = torch.cuda.get_device_capability() >= (8, 9)


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    return CudaDevice.named("cuda:0")


def ns(device: Any, path: str, **params: Any) -> int:
    """The median time of a row that must be right."""
    record = row(device, path, **params)
    assert (record.status, record.reason) == ("ok", None)
    assert record.summary is not None
    return record.summary.median_ns


def test_up_to_the_ridge_rows_are_free(device: Any) -> None:
    times = {rows: ns(device, "decode/matvec", rows=rows, dtype="bfloat16") for rows in (1, 64, 512)}
    assert times[64] / times[1] <= 1.3
    assert times[512] / times[1] >= 1.5, "past the ridge they are not"


@pytest.mark.skipif(not EIGHT_BITS, reason="needs float8 products")
def test_half_the_bytes_take_half_the_time(device: Any) -> None:
    for rows in (1, 16):
        wide, narrow = (ns(device, "decode/matvec", rows=rows, dtype=dtype) for dtype in ("bfloat16", "float8_e4m3"))
        assert 1.5 <= wide / narrow <= 2.3, rows


@pytest.mark.parametrize("group", [1, 8])
def test_a_group_of_queries_costs_no_more_than_one(device: Any, group: int) -> None:
    for batch in (1, 32):
        ns(device, "decode/kv-cache", by="flash", batch=batch, group=group, context=4096)
        ns(device, "decode/kv-cache", by="efficient", batch=batch, group=group, context=4096)


def test_blocks_that_share_a_head_fill_the_gpu(device: Any) -> None:
    one, many = (ns(device, "decode/split-cache", heads=8, splits=splits) for splits in (1, 32))
    assert one / many >= 2
    whole, cut = (ns(device, "decode/split-cache", heads=512, splits=splits) for splits in (1, 4))
    assert cut >= 0.7 * whole, "a GPU that is full has little to gain"
