"""How a launched grid covers a product C[m,n]: which side of a tile lies along the rows, clusters, waves, idle places.

cuBLAS computes with columns first, so that of its own kernels' tiles the first number lies along the n columns of C as
torch stores it ("columns"); kernels with xmma's names have it along the m rows ("rows"). CUTLASS deals its tiles out in
stripes of 1, 2, 4 or 8 (`GemmIdentityThreadblockSwizzle`): its grid is wider than the tiles, and what lies outside ends
at once. A persistent grid has a block for each place and goes over the tiles by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import Literal

from gpubench.model import waves
from gpubench.model.kernel_facts import Facts

Orientation = Literal["columns", "rows"]
STRIPES = (1, 2, 4, 8)
PAIR = 2
"""Multiprocessors of a TPC: clusters of as many find a place anywhere, larger ones need one within a GPC."""
PERSISTENT = 0.8
"""The least share of the multiprocessors that a persistent grid of larger clusters fills: those of 8 leave 12 of an
H200's 132 over."""
HOPPER = 90
MOST_SLICES = 32
"""Slices of K that a kernel may have whose name says that it cuts it: a grid of any size is no multiple by chance."""


@dataclass(frozen=True)
class Cover:
    """Tiles of a launch. `tile` and `cluster` are (along the rows, along the columns) of C, in elements and in tiles.

    `rows` × `columns` tiles are needed for C; `work` are run: those of whole clusters, times `splits` slices of K.
    `places` are the blocks that run at one time, one for each multiprocessor that has any. Blocks that share a
    multiprocessor share its units, so that they count as coming one after the other.
    """

    tile: tuple[int, int]
    cluster: tuple[int, int]
    rows: int
    columns: int
    work: int
    splits: int
    places: int
    multiprocessors: int
    persistent: bool
    orientation: Orientation

    @property
    def tiles(self) -> int:
        """Tiles that C needs."""
        return self.rows * self.columns

    @property
    def turns(self) -> int:
        """Waves: how many tiles the busiest multiprocessor computes."""
        return waves.waves(self.work, self.places)

    @property
    def idle(self) -> float:
        """The share of multiprocessors and waves in which no tile of C is computed."""
        return 1 - self.tiles * self.splits / (self.turns * self.multiprocessors)


def cover(facts: Facts, m: int, n: int, grid: Sequence[int], multiprocessors: int) -> Cover | None:
    """How this launch covers C, or None where no orientation of the kernel's tile reproduces its grid."""
    if facts.role != "product" or facts.tile is None or min(m, n, multiprocessors, *facts.tile, *facts.cluster) < 1:
        return None
    blocks = prod(grid)
    if len(grid) != 3 or blocks < 1:
        return None
    for orientation in _orientations(facts):
        found = _cover(facts, m, n, orientation, 1, multiprocessors)
        if found.work == blocks:
            return found
        if facts.split_k and blocks % found.work == 0 and blocks // found.work <= MOST_SLICES:
            return _cover(facts, m, n, orientation, blocks // found.work, multiprocessors)
        for splits in {grid[2], 1}:
            if grid[0] * grid[1] * splits == blocks and grid[0] * grid[1] in _striped(found):
                return _cover(facts, m, n, orientation, splits, multiprocessors)
    if is_persistent(facts, grid, multiprocessors):
        found = _cover(facts, m, n, _orientations(facts)[0], 1, multiprocessors, places=blocks)
        return found if found.work > blocks else None
    return None


def is_persistent(facts: Facts, grid: Sequence[int], multiprocessors: int) -> bool:
    """Whether a launch of a kernel that may go over its tiles by itself has a block for each multiprocessor."""
    cluster = prod(facts.cluster)
    return cluster > 0 and _may_persist(facts) and _fills(prod(grid), cluster, multiprocessors)


def _may_persist(facts: Facts) -> bool:
    """Kernels of Hopper and later may go over the tiles by themselves, and those that cut K anywhere must."""
    return facts.stream_k or (facts.generation or 0) >= HOPPER


def _fills(blocks: int, cluster: int, multiprocessors: int) -> bool:
    """Whether a grid has a block for each multiprocessor, as far as whole clusters find a place."""
    if cluster <= PAIR:
        return blocks == multiprocessors // cluster * cluster
    return PERSISTENT * multiprocessors <= blocks <= multiprocessors and blocks % cluster == 0


def planned(facts: Facts, m: int, n: int, multiprocessors: int) -> Cover:
    """The same without a launch to see, of a kernel whose tile is known: it has a block for each tile."""
    return _cover(facts, m, n, _orientations(facts)[0], 1, multiprocessors)


def _orientations(facts: Facts) -> tuple[Orientation, ...]:
    """The usual one of a kernel's maker first."""
    return ("rows", "columns") if "xmma" in facts.name else ("columns", "rows")


def _cover(
    facts: Facts, m: int, n: int, orientation: Orientation, splits: int, multiprocessors: int, places: int | None = None
) -> Cover:
    """`places` is given for a grid that is persistent."""
    assert facts.tile is not None
    tile, cluster = facts.tile, facts.cluster
    if orientation == "columns":
        tile, cluster = tile[::-1], cluster[::-1]
    rows, columns = ceil(m / tile[0]), ceil(n / tile[1])
    work = ceil(rows / cluster[0]) * cluster[0] * ceil(columns / cluster[1]) * cluster[1] * splits
    return Cover(
        tile, cluster, rows, columns, work, splits, places or min(multiprocessors, work), multiprocessors,
        places is not None, orientation,
    )  # fmt: skip


def _striped(found: Cover) -> Iterator[int]:
    """The blocks of a grid in CUTLASS's stripes: x is the tiles along one side times the stripe, y the stripes."""
    for wide, long in ((found.columns, found.rows), (found.rows, found.columns)):
        yield from (long * stripe * ceil(wide / stripe) for stripe in STRIPES)
