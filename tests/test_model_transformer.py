"""Flops and parameters of a block, counted on the tensors of one that is built and run."""

from __future__ import annotations

import pytest

from gpubench.model import transformer
from gpubench.model.transformer import MODELS, Shape, other_flops, product_flops, product_share, scores

TINY = {"gpt2": Shape("gpt2", 6, 3, 3, 8), "llama": Shape("llama", 8, 4, 2, 10)}


def test_parameters_of_the_published_models() -> None:
    """12 blocks of GPT-2 small are 124,439,808 parameters less 50257 × 768 words, 1024 × 768 places, a last norm."""
    assert 12 * MODELS["gpt2-small"].parameters == 124_439_808 - 50257 * 768 - 1024 * 768 - 2 * 768
    assert 24 * MODELS["gpt2-medium"].parameters == 354_823_168 - 50257 * 1024 - 1024 * 1024 - 2 * 1024
    words = 128256 * 4096
    assert 32 * MODELS["llama3-8b"].parameters == 8_030_261_248 - 2 * words - 4096


@pytest.mark.parametrize("style", TINY)
@pytest.mark.parametrize(("batch", "n"), [(1, 1), (2, 5)])
def test_products_one_by_one(style: str, batch: int, n: int) -> None:
    shape, flops = TINY[style], 0
    for _ in range(batch):
        for position in range(n):
            for rows, columns in shape.matrices().values():
                flops += 2 * rows * columns
            seen = position + 1
            flops += shape.heads * 2 * seen * 2 * shape.head  # with the keys, and with the values
    assert product_flops(shape, batch, n) == flops


@pytest.mark.parametrize("style", TINY)
def test_the_rest_one_by_one(style: str) -> None:
    shape, batch, n = TINY[style], 2, 3
    flops = 0
    for _ in range(batch):
        for position in range(n):
            flops += 2 * shape.width  # what is added to the stream
            flops += transformer.SOFTMAX * shape.heads * (position + 1)
            if style == "gpt2":
                flops += 2 * 7 * shape.width + 9 * shape.hidden
                flops += 3 * shape.width + shape.width + shape.hidden + shape.width  # biases
            else:
                flops += 2 * 4 * shape.width + 5 * shape.hidden
                flops += 3 * (shape.width + shape.kv_heads * shape.head)  # rotations of queries and keys
    assert other_flops(shape, batch, n) == flops


def test_nearly_all_flops_of_a_large_block_are_products() -> None:
    assert product_share(MODELS["gpt2-medium"], 8, 1024) == pytest.approx(0.995, abs=0.001)
    assert product_share(MODELS["llama3-8b"], 8, 1024) > product_share(MODELS["gpt2-medium"], 8, 1024)
    assert scores(4) == 1 + 2 + 3 + 4
