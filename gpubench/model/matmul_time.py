"""How long a launched product of matrices takes, and why: from the kernel's name, its grid and the device's facts.

    time = start + max(waves · tile + edge, bytes / memory) + sum of the slices of K
    tile = max(arithmetic, reading from the L2)           of a kernel that TMA feeds (wgmma, tcgen05)
    tile = max(arithmetic, loads by the threads)          of one whose threads load for themselves

where "max" is a p-norm, as limits that are close hinder each other. A wave is a turn in which every multiprocessor
computes a tile (NVIDIA: "Matrix Multiplication Background User's Guide"). A tile reads a stripe of A and one of B from
the L2; the tiles of a cluster share theirs (multicast), and rows that do not begin on a sector of 32 bytes cost more.
Threads load as many elements at a time as rows are aligned to; below 4 bytes there is no asynchronous copy (PTX ISA,
cp.async), and each element goes through a register.

What the formulas leave open are the constants of `Constants`: fitted to rows of the same device, see
`gpubench.model.matmul_fit`; they begin at what such units are known to give.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import ceil
from typing import Any, Literal

from gpubench.model import catalog, precision, tiling
from gpubench.model import matmul as work
from gpubench.model.kernel_facts import Facts, facts
from gpubench.model.launches import Cover, cover

SECTOR = 32
"""Bytes that the L2 is read by."""
ASYNCHRONOUS = 4
"""Bytes: the least that a thread copies to shared memory without a register (PTX ISA, cp.async)."""
DEPTH = 32
"""Elements of K that a kernel takes at a time whose name does not say: CUTLASS's before Ampere."""
DOUBLE = 8
"""Bytes of a float64, of which tensor cores compute a sixteenth of what they do of 16 bits."""
EDGE_TILE = 128 * 256
"""Elements of the tile that `Constants.edge` is for."""

Factor = Literal["instructions", "loads", "sectors", "L2 reuse", "tile waste", "waves", "memory", "split-K", "start"]
Limit = Literal["arithmetic", "L2", "loads", "memory", "start"]


@dataclass(frozen=True)
class Constants:
    """What is fitted: shares of the peak, rates, and times in ns.

    `start` a launch with its first loads; `fed`, `mma`, `wmma` the shares of the peak that each way to compute reaches
    (tensor cores that TMA feeds, and CUDA cores, which need little; tensor cores by a warp; by the WMMA interface);
    `l2` bytes a clock and multiprocessor of aligned rows, `sectors` how many times that rows beside sectors cost;
    `lanes`, `narrow` loads of threads a clock and multiprocessor, of 4 bytes and more, and of less; `edge` the first
    load and last store of a tile of EDGE_TILE elements; `turn` what a wave costs besides its tiles; `slices` bytes a ns
    at which slices of K are summed; `norm` the p of the norm.
    """

    start: float = 2500.0
    fed: float = 0.8
    mma: float = 0.5
    wmma: float = 0.05
    l2: float = 64.0
    sectors: float = 2.0
    lanes: float = 3.0
    narrow: float = 3.0
    edge: float = 500.0
    turn: float = 500.0
    slices: float = 4000.0
    norm: float = 5.0

    @property
    def values(self) -> tuple[float, ...]:
        """All of them in order."""
        return tuple(getattr(self, each.name) for each in fields(self))


BEGIN = Constants()
"""Where a fit begins, and what holds where there is none: round figures, of no device in particular."""


@dataclass(frozen=True)
class Machine:
    """A device as the model needs it: FLOP a clock and multiprocessor in the product's dtype, the highest SM clock,
    bytes a ns of memory (None: not known, and no limit)."""

    multiprocessors: int
    flop_per_clock: float
    mhz: float
    memory: float | None


def machine(device: Mapping[str, Any], dtype: str) -> Machine | None:
    """The machine of a device's facts, None where its arithmetic is not known."""
    mhz, count = device.get("sm_mhz_max"), device.get("multiprocessors")
    rate = catalog.silicon(device, dtype, mhz) if mhz and count else None
    if rate is None or not mhz or not count:
        return None
    memory = catalog.memory_bound(device)
    return Machine(count, rate.value / count / mhz / 1e6, mhz, None if memory is None else memory.value / 1e9)


@dataclass(frozen=True)
class Product:
    """A product and the launch that computes it."""

    m: int
    n: int
    k: int
    itemsize: int
    layout: str
    facts: Facts
    cover: Cover

    @property
    def flops(self) -> int:
        """Useful ones."""
        return work.flops(self.m, self.n, self.k)

    @property
    def alignment(self) -> int:
        """Bytes that the rows of all three matrices are aligned to."""
        return work.alignment(self.m, self.n, self.k, self.layout, self.itemsize)

    @property
    def tma(self) -> bool:
        """Whether a unit of its own feeds the tensor cores."""
        return self.facts.path in ("wgmma", "tcgen05")

    @property
    def load_bytes(self) -> int:
        """What a thread loads at a time, where threads do: by the name, else by the alignment."""
        named = self.facts.alignment
        return min(work.VECTOR, named * self.itemsize if named else self.alignment)

    @property
    def deep(self) -> int:
        """Elements of K that a tile goes over, whole steps."""
        step = self.facts.depth or DEPTH
        return ceil(ceil(self.k / self.cover.splits) / step) * step

    @property
    def stripes(self) -> tuple[float, float]:
        """Bytes of A and of B that a tile takes from the L2, those it shares with its cluster in part."""
        tile, cluster = self.cover.tile, self.cover.cluster
        each = self.deep * self.itemsize
        return tile[0] / cluster[1] * each, tile[1] / cluster[0] * each

    @property
    def beside_sectors(self) -> tuple[bool, bool]:
        """Whether rows of A and of B begin elsewhere than on a sector."""
        strides = work.row_stride_bytes(self.m, self.n, self.k, self.layout, self.itemsize)
        return strides["A"] % SECTOR != 0, strides["B"] % SECTOR != 0

    @property
    def l2_intensity(self) -> float:
        """FLOP for a byte from the L2: how well a tile and its cluster reuse what they read."""
        return 2 * self.cover.tile[0] * self.cover.tile[1] * self.deep / sum(self.stripes)

    @property
    def waste(self) -> float:
        """Computed elements of C, those beyond its edges included, over useful ones; whole steps of K too."""
        tile = tiling.Tile(*self.cover.tile, 1)
        return self.deep * self.cover.splits / self.k / tiling.useful_share(self.m, self.n, tile)


Launch = tuple[str, str, Sequence[int] | None]
"""Name, kind and grid of an activity."""


def seen(
    m: int, n: int, k: int, dtype: str, layout: str, launches: Iterable[Launch], multiprocessors: int
) -> Product | None:
    """The product m × n × k as its launches show it: one of them is a product whose tile and grid cover it, others may
    clear a workspace or sum slices. None otherwise, and for a dtype whose size is not known."""
    made = [(found, grid) for name, kind, grid in launches if (found := facts(name, kind)).role == "product"]
    if len(made) != 1 or dtype not in precision.BITS or layout not in work.LAYOUTS:
        return None
    found, grid = made[0]
    covered = cover(found, m, n, grid or (), multiprocessors)
    return None if covered is None else Product(m, n, k, precision.BITS[dtype] // 8, layout, found, covered)


@dataclass(frozen=True)
class Time:
    """The predicted time in ns. `factors` multiply to it from `ideal_ns`, the useful flops at the full rate of the
    device; `limit` is what the time is mostly spent on."""

    ns: float
    ideal_ns: float
    factors: Mapping[Factor, float]
    limit: Limit


_WAYS = {"wmma": 1.0, "mma.sync": 2.0, "CUDA cores": 3.0}
"""Numbers for ways to compute without TMA, which is 0."""

Terms = tuple[float, ...]
"""Figures of a product that no constant changes, see `terms`."""


def terms(product: Product, on: Machine) -> Terms:
    """What `spent` needs of a product: so that a fit works it out once."""
    cover = product.cover
    clock = on.mhz / 1e3
    rows, columns = cover.tile
    a, b = (stripe * cover.places / on.multiprocessors / clock for stripe in product.stripes)
    beside = product.beside_sectors
    slow = product.itemsize >= DOUBLE  # so few flops a clock that any kernel feeds them, as it does CUDA cores
    way = 0.0 if product.tma else _WAYS["CUDA cores"] if slow else _WAYS.get(product.facts.path or "", 2.0)
    memory = work.bytes(product.m, product.n, product.k, product.itemsize)
    return (
        way,
        2 * rows * columns * product.deep / on.flop_per_clock / clock,
        a * (not beside[0]) + b * (not beside[1]),
        a * beside[0] + b * beside[1],
        (rows + columns) * product.deep * product.itemsize / product.load_bytes / clock,
        float(product.load_bytes < ASYNCHRONOUS),
        float(cover.turns),
        rows * columns / EDGE_TILE,
        memory / on.memory if on.memory else 0.0,
        2 * 4 * cover.splits * product.m * product.n * float(cover.splits > 1),
    )


def spent(of: Terms, constants: tuple[float, ...]) -> tuple[float, ...]:
    """The parts of a product's time in ns: arithmetic, reading (from the L2, or loads) as it is and with all rows on
    sectors, a tile, the run of all waves, the same held by memory, the sum of slices, and the whole."""
    way, arithmetic, on_sectors, beside, loads, is_narrow, turns, edges, memory, summed = of
    start, fed, mma, wmma, l2, sectors, lanes, narrow, edge, turn, slices, p = constants
    if way == 0.0:
        arithmetic /= fed
        aligned = (on_sectors + beside) / l2
        reading = (on_sectors + beside * sectors) / l2
    else:
        arithmetic /= wmma if way == 1.0 else fed if way == 3.0 else mma
        reading = aligned = 0.0 if way == 1.0 else loads / (narrow if is_narrow else lanes)
    tile = (arithmetic**p + reading**p) ** (1 / p)
    run = tile * turns + turn * (turns - 1) + edge * edges
    body = (run**p + memory**p) ** (1 / p)
    sums = summed / slices
    return arithmetic, reading, aligned, tile, run, body, sums, start + body + sums


def time(product: Product, on: Machine, constants: Constants = BEGIN) -> Time:
    """How long the product takes, and by which factors longer than its flops would at the full rate."""
    known = terms(product, on)
    arithmetic, reading, aligned, tile, run, body, sums, whole = spent(known, constants.values)
    cover, p = product.cover, constants.norm
    ideal = product.flops / on.flop_per_clock / on.multiprocessors / on.mhz * 1e3
    without = (arithmetic**p + aligned**p) ** (1 / p)
    factors: dict[Factor, float] = {
        "instructions": arithmetic / known[1],  # known[1] is the arithmetic of a tile at the full rate
        "loads": 1.0 if product.tma else tile / arithmetic,
        "sectors": tile / without,
        "L2 reuse": without / arithmetic if product.tma else 1.0,
        "tile waste": product.waste,
        "waves": 1 / (1 - cover.idle),
        "memory": body / run,
        "split-K": (body + sums) / body,
        "start": whole / (body + sums) * run / (tile * cover.turns),
    }
    return Time(whole, ideal, factors, _limit(product, arithmetic, reading, whole, run, known[8], constants.start))


def _limit(
    product: Product, arithmetic: float, reading: float, whole: float, run: float, memory: float, start: float
) -> Limit:
    if start > whole / 2:
        return "start"
    if memory > run:
        return "memory"
    if reading > arithmetic:
        return "L2" if product.tma else "loads"
    return "arithmetic"
