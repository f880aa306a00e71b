"""Attention counted and computed by hand."""

from __future__ import annotations

import math

import pytest
import torch

from gpubench.model import attention


def by_loops(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, int]:
    """One number after the other, and the flops of the two products."""
    out, flops = torch.zeros_like(v), 0
    batch, heads, n, d = q.shape
    for b in range(batch):
        for h in range(heads):
            for i in range(n):
                scores = []
                for j in range(n):
                    score = 0.0
                    for x in range(d):
                        score += float(q[b, h, i, x]) * float(k[b, h, j, x])
                        flops += 2
                    scores.append(score / math.sqrt(d))
                total = sum(math.exp(score) for score in scores)
                for j, score in enumerate(scores):
                    for x in range(d):
                        out[b, h, i, x] += math.exp(score) / total * v[b, h, j, x]
                        flops += 2
    return out, flops


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 3, 4, 5), (1, 2, 6, 3)])
def test_reference_flops_and_bytes(shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(shape, dtype=torch.float64, generator=generator) for _ in range(3))
    expected, flops = by_loops(q, k, v)
    torch.testing.assert_close(attention.reference(q, k, v), expected, rtol=1e-12, atol=1e-12)
    assert attention.flops(*shape) == flops
    assert attention.bytes(*shape, 8) == sum(tensor.numel() * 8 for tensor in (q, k, v, expected))


def test_the_inputs_are_left_as_they_are() -> None:
    v = torch.ones((1, 1, 2, 2), dtype=torch.float64)
    attention.reference(torch.zeros_like(v), torch.zeros_like(v), v)
    assert (v == 1).all()
