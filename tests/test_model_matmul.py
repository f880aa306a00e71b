"""Matmul formulas against brute force: counted multiplications, counted elements, addresses of real strides."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from gpubench.model import matmul

SHAPES = [(1, 1, 1), (2, 3, 5), (7, 4, 6), (16, 8, 32)]


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_flops_by_counting(m: int, n: int, k: int) -> None:
    operations = 0
    for _ in itertools.product(range(m), range(n), range(k)):
        operations += 2  # c += a * b
    assert matmul.flops(m, n, k) == operations


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_bytes_by_counting(m: int, n: int, k: int) -> None:
    touched: set[tuple[str, int, int]] = set()
    for row, column, term in itertools.product(range(m), range(n), range(k)):
        touched |= {("A", row, term), ("B", term, column), ("C", row, column)}
    assert matmul.bytes(m, n, k, 2) == 2 * len(touched)


def element_offsets(rows: int, columns: int, transposed: bool) -> list[list[int]]:
    """Offset of element [i][j] of a logical rows × columns matrix, row-major, stored as it is or transposed."""
    if transposed:
        return [[j * rows + i for j in range(columns)] for i in range(rows)]
    return [[i * columns + j for j in range(columns)] for i in range(rows)]


@pytest.mark.parametrize("layout", matmul.LAYOUTS)
@pytest.mark.parametrize(("m", "n", "k"), [(2, 3, 5), (7, 4, 6), (16, 8, 32)])
def test_row_strides_by_walking_memory(m: int, n: int, k: int, layout: str) -> None:
    a = element_offsets(m, k, layout[0] == "t")
    b = element_offsets(k, n, layout[1] == "t")
    c = element_offsets(m, n, False)
    step_a = a[0][1] - a[0][0] if layout[0] == "t" else a[1][0] - a[0][0]
    step_b = b[0][1] - b[0][0] if layout[1] == "t" else b[1][0] - b[0][0]
    expected = {"A": 4 * step_a, "B": 4 * step_b, "C": 4 * (c[1][0] - c[0][0])}
    assert matmul.row_stride_bytes(m, n, k, layout, 4) == expected


@pytest.mark.parametrize("layout", matmul.LAYOUTS)
def test_alignment_by_trying_every_power_of_two(layout: str) -> None:
    for m, n, k, itemsize in itertools.product((1, 6, 8, 640), (2, 3, 48, 4096), (1, 12, 1792), (1, 2, 4, 8)):
        strides = matmul.row_stride_bytes(m, n, k, layout, itemsize).values()
        tried = [
            power for power in (1, 2, 4, 8, 16, 32, 64, 128, 256) if all(stride % power == 0 for stride in strides)
        ]
        assert matmul.alignment(m, n, k, layout, itemsize) == max(tried)


@pytest.mark.parametrize(
    ("n", "itemsize", "expected"),
    [
        (1792, 2, 256),
        (1793, 2, 2),
        (1794, 2, 4),
        (1796, 2, 8),
        (1800, 2, 16),
        (4096, 2, 256),
        (1793, 4, 4),
        (1793, 1, 1),
    ],
)
def test_alignment_of_square_sizes(n: int, itemsize: int, expected: int) -> None:
    assert matmul.alignment(n, n, n, "nn", itemsize) == expected


def test_layout_decides_which_size_matters() -> None:
    assert matmul.alignment(m=64, n=64, k=3, layout="nn", itemsize=2) == 2  # rows of A are k long
    assert matmul.alignment(m=64, n=64, k=3, layout="tn", itemsize=2) == 128  # rows of A are m long
    assert matmul.alignment(m=64, n=64, k=3, layout="nt", itemsize=2) == 2
    assert matmul.alignment(m=3, n=64, k=64, layout="nn", itemsize=2) == 128  # m is no row of anything


@pytest.mark.parametrize("layout", matmul.LAYOUTS)
def test_the_class_of_a_product_is_the_least_of_its_operands(layout: str) -> None:
    for m, n, k, itemsize in itertools.product((1, 6, 8, 640), (2, 3, 48, 4096), (1, 12, 1792), (1, 2, 4, 8)):
        classes = matmul.alignments(m, n, k, layout, itemsize)
        assert min(classes.values()) == matmul.alignment(m, n, k, layout, itemsize)
        strides = matmul.row_stride_bytes(m, n, k, layout, itemsize)
        under = tuple(operand for operand, stride in strides.items() if stride % 16)
        assert matmul.misaligned(m, n, k, layout, itemsize) == under


def test_an_odd_vocabulary_is_the_row_of_one_operand_in_each_product() -> None:
    tokens, vocab, width = 8192, 50257, 768
    assert matmul.misaligned(tokens, vocab, width, "nt", 2) == ("C",)  # Y = X Wᵀ
    assert matmul.misaligned(tokens, width, vocab, "nn", 2) == ("A",)  # dX = dY W
    assert matmul.misaligned(vocab, width, tokens, "tn", 2) == ("A",)  # dW = dYᵀ X
    assert matmul.misaligned(tokens, vocab + 7, width, "nt", 2) == ()
    assert matmul.alignments(tokens, vocab + 1, width, "nt", 2) == {"A": 256, "B": 256, "C": 4}


def test_unknown_layout_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'tt' is not one of nn, nt, tn"):
        matmul.row_stride_bytes(1, 1, 1, "tt", 2)


def test_a_product_as_fields_of_a_workload() -> None:
    a, b = SimpleNamespace(shape=(3, 5)), SimpleNamespace(shape=(5, 7))
    c = SimpleNamespace(element_size=lambda: 2)
    fields = matmul.product(a, b, c, "bfloat16")
    assert fields.pop("output") is c
    assert callable(fields.pop("reference"))
    assert fields == {
        "reference_name": "float64 matmul", "flops": 210, "bytes": 2 * (15 + 35 + 21), "reduction": 5,
        "accumulate": "float32", "precision": "ieee", "dtype": "bfloat16",
    }  # fmt: skip
    named = {dtype: matmul.product(a, b, c, dtype) for dtype in ("tf32", "float64")}
    assert (named["tf32"]["accumulate"], named["tf32"]["precision"]) == ("float32", "tf32")
    assert (named["float64"]["accumulate"], named["float64"]["precision"]) == ("float64", "ieee")


def test_operands_are_two_matrices_of_numbers_and_room_for_their_product() -> None:
    device = SimpleNamespace(
        random=lambda shape, dtype, seed: ("drawn", shape, dtype, seed), unwritten=lambda *what: ("unwritten", *what)
    )
    assert matmul.operands(device, 3, 7, 5, "float16") == (
        ("drawn", (3, 5), "float16", 0), ("drawn", (5, 7), "float16", 1), ("unwritten", (3, 7), "float16"),
    )  # fmt: skip
