"""Layers that multiply by a weight matrix: the three products that training takes of each, and sizes close by.

Y = X Wᵀ with X of tokens × inputs and W of outputs × inputs, as torch.nn.Linear stores it; its gradients are dX = dY W
and dW = dYᵀ X. Outputs and inputs are the lengths of rows in all three; the tokens are the length of none, so that
their number is not worth padding for the alignment of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol, get_args

from gpubench.model import matmul

Pass = Literal["forward", "input-gradient", "weight-gradient"]
PASSES: tuple[Pass, ...] = get_args(Pass)

MULTIPLES = (8, 16, 64, 128)
"""Of 16-bit elements 16, 32, 128 and 256 bytes: what TMA and the widest loads ask, a sector of the L2, a cache line and
the widest tiles' side. (NVIDIA: "Matrix Multiplication Background User's Guide", "Tensor Core Requirements".)"""
FARTHEST = 1 / 8
"""The most that padding may add to a size, but for the step to the first multiple. Between kernels that are aligned
there is less to gain than so much more arithmetic costs; between them and those that are not, many times as much."""


class Product(NamedTuple):
    """A product of m × k and k × n, and how both are stored, as in `gpubench.model.matmul`."""

    m: int
    n: int
    k: int
    layout: str

    @property
    def flops(self) -> int:
        """2·m·n·k."""
        return matmul.flops(self.m, self.n, self.k)

    def alignment(self, itemsize: int) -> int:
        """Bytes that the rows of all three matrices are aligned to."""
        return matmul.alignment(*self, itemsize)


@dataclass(frozen=True)
class Layer:
    """A weight matrix of outputs × inputs that `tokens` rows are multiplied by; `count` of them in a step."""

    name: str
    tokens: int
    outputs: int
    inputs: int
    count: int = 1

    @property
    def products(self) -> dict[Pass, Product]:
        """The product of each pass."""
        return {
            "forward": Product(self.tokens, self.outputs, self.inputs, "nt"),
            "input-gradient": Product(self.tokens, self.inputs, self.outputs, "nn"),
            "weight-gradient": Product(self.outputs, self.inputs, self.tokens, "tn"),
        }

    @property
    def parameters(self) -> int:
        """Elements of all its weight matrices."""
        return self.count * self.outputs * self.inputs


def near(size: int) -> tuple[int, ...]:
    """The next multiples of each of MULTIPLES above a size, in order; of a multiple of them all, the one after it. None
    adds more than FARTHEST, but for the first multiple of a size that is none."""
    limit = int(size * (1 + FARTHEST))
    above = sorted({-(-size // multiple) * multiple for multiple in MULTIPLES if size % multiple})
    if not above:
        return tuple(each for each in (size + MULTIPLES[-1],) if each <= limit)
    return tuple(each for place, each in enumerate(above) if each <= limit or (place == 0 and size % MULTIPLES[0]))


class Network(Protocol):
    """Layers whose sizes depend on a few dimensions that may be padded."""

    @property
    def layers(self) -> Sequence[Layer]:
        """The layers of a step."""

    @property
    def parameters(self) -> int:
        """Elements of all matrices."""

    @property
    def dimensions(self) -> Mapping[str, int]:
        """The dimensions that may be padded, by name."""

    def candidates(self, name: str) -> Sequence[int]:
        """Larger sizes of one of them, in order."""

    def padded(self, sizes: Mapping[str, int]) -> Network:
        """The same with other sizes of some dimensions."""


@dataclass(frozen=True)
class Shapes:
    """Layers of somebody's own, each with outputs and inputs of its own to pad: m × n × k is tokens × outputs × inputs.

    Their dimensions are called n and k, behind the layer's name where there are several.
    """

    layers: tuple[Layer, ...]

    @property
    def parameters(self) -> int:
        """Elements of all weight matrices."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def dimensions(self) -> dict[str, int]:
        """n and k of each layer."""
        return {f"{before}{name}": size for layer in self.layers for before in [self._before(layer)]
                for name, size in (("n", layer.outputs), ("k", layer.inputs))}  # fmt: skip

    def candidates(self, name: str) -> tuple[int, ...]:
        """The multiples close above."""
        return near(self.dimensions[name])

    def padded(self, sizes: Mapping[str, int]) -> Shapes:
        """The same with other sizes."""
        return Shapes(tuple(
            replace(layer, outputs=sizes.get(f"{before}n", layer.outputs), inputs=sizes.get(f"{before}k", layer.inputs))
            for layer in self.layers for before in [self._before(layer)]
        ))  # fmt: skip

    def _before(self, layer: Layer) -> str:
        return "" if len(self.layers) == 1 else f"{layer.name} "
