"""Matmul formulas against brute force: counted multiplications, counted elements, addresses of real strides."""

from __future__ import annotations

import itertools

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


def test_unknown_layout_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'tt' is not one of nn, nt, tn"):
        matmul.row_stride_bytes(1, 1, 1, "tt", 2)
