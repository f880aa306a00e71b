"""A layer's three products, sizes close by, layers of somebody's own; against definitions and torch."""

from __future__ import annotations

import pytest

from gpubench.model.linear import FARTHEST, MULTIPLES, Layer, Product, Shapes, near
from gpubench.model.matmul import row_stride_bytes

OUTPUT = Layer("output", 8192, 50257, 768)


def test_the_products_of_a_layer_are_those_that_torch_takes() -> None:
    torch = pytest.importorskip("torch")
    layer = Layer("x", tokens=3, outputs=5, inputs=4)
    x, w, dy = torch.rand(3, 4), torch.rand(5, 4), torch.rand(3, 5)
    operands = {"forward": (x, w.t()), "input-gradient": (dy, w), "weight-gradient": (dy.t(), x)}
    for name, (m, n, k, layout) in layer.products.items():
        a, b = operands[name]
        assert (a.shape, b.shape) == ((m, k), (k, n))
        assert layout == "".join("n" if each.is_contiguous() else "t" for each in (a, b))


def test_tokens_are_the_length_of_no_row() -> None:
    layer = Layer("x", tokens=3, outputs=5 * 7, inputs=2 * 11)
    for product in layer.products.values():
        assert set(row_stride_bytes(*product, 1).values()) <= {layer.outputs, layer.inputs}


def test_alignment_is_of_all_three_matrices() -> None:
    assert {product.alignment(2) for product in OUTPUT.products.values()} == {2}
    assert Product(8192, 50264, 768, "nt").alignment(2) == 16


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (50257, (50264, 50272, 50304)),  # 50304 is a multiple of 64 and of 128
        (10922, (10928, 10944, 11008)),
        (50304, (50432,)),  # a multiple of them all: the one after it
        (1600, (1664,)),
        (768, ()),  # 896 is a sixth more
        (7, (8,)),  # the step to the first multiple may be a large one
        (1, (8,)),
        (12, (16,)),
    ],
)
def test_sizes_close_by(size: int, expected: tuple[int, ...]) -> None:
    assert near(size) == expected


def test_sizes_close_by_are_larger_and_the_better_aligned_the_later_they_come() -> None:
    for size in [*range(1, 3000), 128256, 2**24]:
        found = near(size)
        assert list(found) == sorted(set(found))
        assert all(each > size and each % MULTIPLES[0] == 0 for each in found)
        assert all(each <= size * (1 + FARTHEST) for each in found[1:])
        assert found or size % MULTIPLES[0] == 0
        classes = [sum(each % multiple == 0 for multiple in MULTIPLES) for each in found]
        assert classes == sorted(classes)


def test_layers_of_ones_own_have_their_own_sizes() -> None:
    one = Shapes((OUTPUT,))
    assert one.dimensions == {"n": 50257, "k": 768}
    assert one.padded({"n": 50304}).layers == (Layer("output", 8192, 50304, 768),)
    assert one.padded({"n": 50304}).parameters - one.parameters == 47 * 768
    two = Shapes((OUTPUT, Layer("up", 8192, 10922, 4096)))
    assert list(two.dimensions) == ["output n", "output k", "up n", "up k"]
    assert two.padded({"up n": 11008}).layers == (OUTPUT, Layer("up", 8192, 11008, 4096))
    assert two.candidates("up n") == (10928, 10944, 11008)
