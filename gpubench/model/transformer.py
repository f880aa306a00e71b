"""One block of a transformer: its parameters, and its flops by kind of operation.

A block is attention and an MLP, each behind a normalisation and added to what came in ("pre-norm"). In the style of
GPT-2 (Radford and others, 2019) there are LayerNorm, biases and GELU; in that of Llama (Touvron and others, 2023)
RMSNorm, rotary positions, and two products whose outputs are multiplied (SwiGLU). Attention is causal: a position sees
those before it and itself.

Flops of what is no product are counted one for each operation of the formula, an exponential or a tanh being one. The
gradient takes twice the flops of the forward pass, as it does exactly for products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Style = Literal["gpt2", "llama"]

LAYER_NORM, RMS_NORM = 7, 4
"""Flops an element: mean, difference, square, mean of squares, times 1/σ, scale, shift; without mean and shift."""
GELU, SWIGLU = 9, 5
"""Flops an element: 0.5 x (1 + tanh(c (x + a x³))); and g / (1 + exp(-g)) times the other product, the sign free."""
SOFTMAX = 6
"""Flops a score: scale, maximum, difference, exp, sum, division."""
ROTATE = 3
"""Flops an element of a query or key: two products and a sum."""


@dataclass(frozen=True)
class Shape:
    """Dimensions of a block: `width` of the stream, `heads` of queries and `kv_heads` of keys and values, `hidden`
    width of the MLP."""

    style: Style
    width: int
    heads: int
    kv_heads: int
    hidden: int

    @property
    def head(self) -> int:
        """The width of a head."""
        return self.width // self.heads

    @property
    def kv_width(self) -> int:
        """The width of all keys, or of all values."""
        return self.kv_heads * self.head

    def matrices(self) -> dict[str, tuple[int, int]]:
        """Rows (outputs) and columns (inputs) of each weight matrix."""
        inner = {"gate": (self.hidden, self.width)} if self.style == "llama" else {}
        return {
            "qkv": (self.width + 2 * self.kv_width, self.width),
            "out": (self.width, self.width),
            **inner,
            "up": (self.hidden, self.width),
            "down": (self.width, self.hidden),
        }

    @property
    def parameters(self) -> int:
        """Elements of all weights: matrices, scales and, in the style of GPT-2, shifts and biases."""
        matrices = self.matrices()
        whole = sum(rows * columns for rows, columns in matrices.values()) + 2 * self.width
        return whole + (2 * self.width + sum(rows for rows, _ in matrices.values()) if self.style == "gpt2" else 0)


MODELS = {
    "gpt2-small": Shape("gpt2", 768, 12, 12, 3072),
    "gpt2-medium": Shape("gpt2", 1024, 16, 16, 4096),
    "llama3-8b": Shape("llama", 4096, 32, 8, 14336),
    "llama-tiny": Shape("llama", 256, 4, 2, 704),
}
"""Of the published models; the last is a small one in the style of Llama."""


def scores(n: int) -> int:
    """Scores of one head over n positions, each of which sees those before it and itself."""
    return n * (n + 1) // 2


def product_flops(shape: Shape, batch: int, n: int) -> int:
    """Flops of the matrix products of a forward pass: 2 for each weight and position, 4 for each score and element of a
    head, of the two products of attention."""
    dense = sum(rows * columns for rows, columns in shape.matrices().values())
    return batch * (2 * n * dense + 4 * shape.heads * shape.head * scores(n))


def other_flops(shape: Shape, batch: int, n: int) -> int:
    """Flops of everything else in a forward pass: normalisations, activation, softmax, biases, rotations, additions."""
    positions = batch * n
    added = 2 * positions * shape.width
    softmax = SOFTMAX * batch * shape.heads * scores(n)
    if shape.style == "llama":
        rotated = ROTATE * positions * (shape.width + shape.kv_width)
        return added + softmax + rotated + positions * (2 * RMS_NORM * shape.width + SWIGLU * shape.hidden)
    biases = positions * sum(rows for rows, _ in shape.matrices().values())
    return added + softmax + biases + positions * (2 * LAYER_NORM * shape.width + GELU * shape.hidden)


def product_share(shape: Shape, batch: int, n: int) -> float:
    """The share of the products in the flops of a block, the same forward and backward."""
    products = product_flops(shape, batch, n)
    return products / (products + other_flops(shape, batch, n))
