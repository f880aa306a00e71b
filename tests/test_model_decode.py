"""Decoding counted by hand."""

from __future__ import annotations

import pytest
import torch

from gpubench.model import decode


def test_bytes_of_a_product_with_few_rows() -> None:
    assert decode.matvec_bytes(1, 8, 4, 2, 2, 2) == 2 * (8 * 4 + 4 + 8)
    assert decode.matvec_bytes(3, 8, 4, 1, 1, 2) == 8 * 4 + 3 * 4 + 2 * 3 * 8


@pytest.mark.parametrize(("itemsize", "rows"), [(2, 200.0), (1, 100.0)])
def test_at_the_ridge_weights_take_as_long_as_the_product(itemsize: int, rows: float) -> None:
    peak, bandwidth = 800e12, 4e12
    found = decode.rows_at_ridge(peak / bandwidth, itemsize)
    assert found == rows
    weights = 10**6
    assert 2 * found * weights / peak == pytest.approx(itemsize * weights / bandwidth)


def test_a_step_reads_the_cache_once() -> None:
    keys = torch.zeros(2, 3, 5, 8, dtype=torch.bfloat16)
    assert decode.cache_bytes(2, 3, 5, 8, 2) == 2 * keys.nbytes
    assert decode.attention_flops(2, 3, 5, 8) == 2 * 2 * keys.numel()


def test_busy_share() -> None:
    assert (decode.busy_share(33, 132), decode.busy_share(132, 132), decode.busy_share(500, 132)) == (0.25, 1.0, 1.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_reference_is_attention_and_changes_nothing(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 5, 8), torch.randn(2, 3, 5, 8)
    before = q.clone().to(dtype)
    given = before.clone()
    found = decode.reference(given, k.to(dtype), v.to(dtype))
    assert torch.equal(given, before)
    expected = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double())
    torch.testing.assert_close(found, expected)
