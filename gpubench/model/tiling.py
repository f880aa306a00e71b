"""Tiled matrix products: how often operands are loaded, and what a tile that reaches over the edge costs.

C of m × n is made in tiles of `rows` × `columns`; for each, a stripe of A and one of B are loaded once, `depth` columns
and rows at a time. An element of A is thus loaded n / columns times and not n times (D. Kirk, W. Hwu: "Programming
Massively Parallel Processors", chapter on tiling). Edges are counted in full: a tile that reaches over one is computed
as a whole.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

LANES = 32
"""Lanes of a warp, each of which loads one element, or four, by one request."""


class Tile(NamedTuple):
    """A block's tile of C, and how deep the tiles of A and B are that pass by; all in elements."""

    rows: int
    columns: int
    depth: int


def untiled_requests(warps: int, k: int) -> int:
    """Load requests where each thread makes an element of C by itself: one of A and one of B a term, for each warp."""
    return 2 * warps * k


def requests(m: int, n: int, k: int, tile: Tile, vector: int = 1) -> int:
    """Load requests to global memory with `vector` elements a lane, of tiles that are whole numbers of requests."""
    loaded = tile.depth * (tile.rows + tile.columns)
    return count(m, n, tile) * ceil(k / tile.depth) * loaded // (LANES * vector)


def intensity(tile: Tile, itemsize: int) -> float:
    """FLOP for a byte loaded from global memory: rows·columns / (rows + columns) multiply-adds an element, 2 FLOP each;
    T/4 FLOP/B for T × T tiles of float32."""
    return 2 * tile.rows * tile.columns / (tile.rows + tile.columns) / itemsize


def count(m: int, n: int, tile: Tile) -> int:
    """Tiles that cover C: ceil(m / rows) · ceil(n / columns)."""
    return ceil(m / tile.rows) * ceil(n / tile.columns)


def executed_flops(m: int, n: int, k: int, tile: Tile) -> int:
    """FLOP of all tiles as a whole, an FMA being 2; the depth is not rounded up."""
    return 2 * count(m, n, tile) * tile.rows * tile.columns * k


def useful_share(m: int, n: int, tile: Tile) -> float:
    """Elements of C over elements of the tiles that cover it (NVIDIA: "Matrix Multiplication Background User's Guide",
    "Tile Quantization")."""
    return m * n / (count(m, n, tile) * tile.rows * tile.columns)
