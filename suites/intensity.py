"""Intensity: how many flops a byte does it take until arithmetic and no longer the memory is the limit?

A stream of numbers, and more and more multiply-adds for each of them: the time stays what the memory takes until the
arithmetic takes longer. The same arithmetic on numbers in registers has no such flat part. A dense and a sparse product
stand on either side.
"""

from __future__ import annotations

from typing import Any

from gpubench import Axis, Effect, Estimate, Finding, RowsMissing, Skip, Suite, Workload
from gpubench.model import catalog
from gpubench.model import matmul as work
from gpubench.model.roofline import bound, intensity, ridge

suite = Suite(__file__)

REPEATED, IN_REGISTERS = suite.kernel("repeated"), suite.kernel("in_registers")
CHAINS, THREADS = 4, 256
"""Elements of a thread, as in intensity.cu, and threads of a block."""
ROUNDS = 128
"""How often the links are taken in registers, so that the shortest row lasts a tenth of a millisecond on a GPU."""
LINKS = [2**power for power in range(11)]


@suite.benchmark(
    links=Axis(LINKS, cpu=LINKS[:-1], quick=[1, 4, 16, 256, 512, 1024], quick_cpu=[1, 4, 64]),
    n=Axis([2**26], cpu=[2**22], minimum=CHAINS),
)
def repeated(device: Any, links: int, n: int) -> Workload:
    """Read a stream of float32, add 1 to each number so many times by multiply-adds, and write it."""
    import numpy as np

    if n % CHAINS:
        raise Skip(f"{n} elements are no multiple of {CHAINS}")
    x, y = device.random(n, "float32"), device.unwritten(n, "float32")
    unit = np.float32(1)
    grid = -(-n // (CHAINS * THREADS))
    flops, moved = 2 * links * n, 8 * n
    return Workload(
        run=REPEATED(x, y, unit, unit, np.int32(links), np.int64(n), grid=grid, block=THREADS),
        output=y,
        reference=lambda: x.double() + links,
        reference_name="float64 sum",
        flops=flops,
        bytes=moved,
        reduction=links,
        dtype="float32",
        level="DRAM",
        primary="flops",
        prediction={"intensity": intensity(flops, moved), **_limit(device, intensity(flops, moved))},
    )


@suite.benchmark(links=Axis([32, 64, 128, 256], quick=[32, 256]), blocks=Axis([8], cpu=[64], quick_cpu=[64]))
def registers(device: Any, links: int, blocks: int) -> Workload:
    """As many multiply-adds one after the other on numbers in registers, with `blocks` blocks a multiprocessor.

    What it writes is there to be checked; no bytes are counted.
    """
    import numpy as np

    units = device.facts().get("multiprocessors") or 1
    n = blocks * units * THREADS
    y, unit = device.unwritten(n, "float32"), np.float32(1)
    return Workload(
        run=IN_REGISTERS(
            y, unit, unit, np.int32(links), np.int32(ROUNDS), np.int64(n), grid=blocks * units, block=THREADS
        ),
        output=y,
        reference=lambda: y.new_full(y.shape, CHAINS * ROUNDS * links + sum(range(CHAINS))),
        reference_name="the number of links",
        flops=2 * CHAINS * ROUNDS * links * n,
        accumulate="exact",
        dtype="float32",
        labels={"control": "no stream"},
    )


@suite.benchmark(
    kind=Axis(["dense", "sparse"]),
    n=Axis([4096], cpu=[1024]),
    rows=Axis([32768], cpu=[8192]),
    per_row=Axis([328], cpu=[82]),
)
def product(device: Any, kind: str, n: int, rows: int, per_row: int) -> Workload:
    """The library's product of two n × n matrices of float32; or of a sparse matrix, with `per_row` numbers in each of
    its rows, and a vector."""
    import torch

    if kind == "dense":
        a, b = device.random((n, n), "float32", seed=0), device.random((n, n), "float32", seed=1)
        c = device.unwritten((n, n), "float32")
        return Workload(
            run=lambda: torch.mm(a, b, out=c), output=c, reference=lambda: work.reference(a, b),
            reference_name=work.reference_name("float32"), flops=work.flops(n, n, n), bytes=work.bytes(n, n, n, 4),
            reduction=n, dtype="float32",
        )  # fmt: skip
    if device.kind == "cpu" and not torch.backends.mkl.is_available():
        raise Skip("this torch has no sparse products on a CPU: it is built without MKL")
    values, x = device.random(rows * per_row, "float32", seed=0), device.random(rows, "float32", seed=1)
    columns, starts = _columns(rows, per_row, values.device), _starts(rows, per_row, values.device)
    matrix = torch.sparse_csr_tensor(starts, columns.flatten(), values, (rows, rows), check_invariants=False)
    return Workload(
        run=lambda: torch.mv(matrix, x),
        output=None,
        reference=lambda: (values.view(rows, per_row).double() * x.double()[columns.long()]).sum(1),
        reference_name="float64 sums",
        flops=2 * rows * per_row,
        bytes=8 * rows * per_row + 4 * (rows + 1) + 8 * rows,
        reduction=per_row,
        dtype="float32",
        level="DRAM",
        primary="flops",
    )


def _columns(rows: int, per_row: int, where: Any) -> Any:
    """The columns of the numbers of each row, in order: one at random in each of `per_row` equal stretches."""
    import torch

    generator = torch.Generator(where).manual_seed(0)
    width = rows // per_row
    inside = torch.randint(width, (rows, per_row), generator=generator, device=where, dtype=torch.int32)
    return inside + width * torch.arange(per_row, device=where, dtype=torch.int32)


def _starts(rows: int, per_row: int, where: Any) -> Any:
    """Where each row's numbers start, and where the last one's end."""
    import torch

    return per_row * torch.arange(rows + 1, device=where, dtype=torch.int32)


def _limit(device: Any, found: float) -> dict[str, Any]:
    """The ridge by the datasheet of the CUDA cores, and what limits an intensity; nothing without a datasheet."""
    chip = catalog.lookup(device.facts())
    peak = None if chip is None else chip.datasheet("float32", matrix=False)
    if chip is None or peak is None:
        return {}
    return {
        "datasheet_ridge": ridge(peak.value, chip.bandwidth),
        "datasheet_bound": bound(found, peak.value, chip.bandwidth),
    }


# The lecture's claims.

FAR = 4, 2
"""So many times below and above the ridge neither roof feels the other: between them both are busy, and rows are slower
than either allows."""
RISES, FLAT = (0.9, 1.1), (-0.1, 0.1)
"""Slopes of the logarithm of the rate over that of the intensity."""
KNEE = 0.75, 1.25
"""Where the two lines meet, over the ridge by the roofs measured elsewhere."""
ON_THE_RIGHT, ON_THE_LEFT = 0.5, 0.1
"""The shares of the arithmetic's roof that a dense product reaches at least and a sparse one at most: at a quarter of a
FLOP a byte the memory allows a fiftieth on a large GPU."""
BOTH = 3
"""Rows that a slope needs on either side."""


@suite.claim("C29")
def slope_and_flat_part(view: Any) -> Finding:
    """The rate rises with the intensity up to the ridge and is flat beyond it; products stand where theirs is."""
    peak, copy = view.ceiling("fp32 FMA"), view.ceiling("DRAM copy")
    here = peak.over(copy).value
    rows = sorted(view.rows("repeated"), key=lambda row: row.params["links"])
    at = {row.id: row.work.flops / row.work.bytes for row in rows}
    left = [row for row in rows if at[row.id] * FAR[0] <= here]
    right = [row for row in rows if at[row.id] >= FAR[1] * here]
    if min(len(left), len(right)) < BOTH:
        raise RowsMissing(f"three intensities at least on either side of {here:.3g} FLOP/B")
    knee = view.ratio(left, right[-1]).times(at[right[-1].id] / here)
    dense, sparse = (_share_of(view, view.one("product", kind=kind), peak.value) for kind in ("dense", "sparse"))
    alone = _rising(view, view.rows("registers"), control=True)
    return Finding(
        effects=(
            Effect("slope of the rate left of the ridge", _rising(view, left), "1", *RISES),
            Effect("slope of the rate right of it", _rising(view, right), "1", *FLAT),
            Effect("where they meet over the ridge", knee, "1", *KNEE),
            Effect("share of the arithmetic's roof of a dense product", dense, "1", ON_THE_RIGHT),
            Effect("share of the arithmetic's roof of a sparse product", sparse, "1", 0, ON_THE_LEFT),
        ),
        controls=(Effect("slope of the time in registers, where no byte moves", alone, "1", *RISES),),
        prediction={"ridge": here, "links_at_the_ridge": 4 * here},
    )


def _rising(view: Any, rows: list[Any], control: bool = False) -> Estimate:
    """The slope of the rate over the links, 1 less that of the time; as a control that of the time itself."""
    time = view.slope(rows, "links")
    return time if control else Estimate(1 - time.value, 1 - time.high, 1 - time.low)


def _share_of(view: Any, row: Any, roof: float) -> Estimate:
    """The share of a roof in FLOP/s that a row reaches."""
    each = view.median(row, per="flops")
    return Estimate(*(1e9 / ns / roof for ns in (each.value, each.high, each.low)))
