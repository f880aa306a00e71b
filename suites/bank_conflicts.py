"""Bank conflicts: what does a warp pay when its lanes want different words of one bank of shared memory?"""

from __future__ import annotations

import math
from typing import Any

from gpubench import TIMES, Axis, Effect, Finding, Metric, Suite, Workload, exactly
from gpubench.model import banks
from gpubench.model.fitting import line

suite = Suite(__file__)

STRIDED = suite.kernel("strided_reads")
THROUGH_TILE = suite.kernel("through_tile", defines={"PITCH": [32, 33], "TURNED": [0, 1]})

WORDS = 2048
"""Words in shared memory, as in the .cu file: a warp that reaches the last one goes on from the first."""
READS, THREADS = 1024, 1024
"""Reads of a thread, and threads of the one block of a multiprocessor."""


@suite.benchmark(stride=Axis([0, *range(1, 34)], quick=[1, 2, 8, 32, 33], minimum=0))
def stride(device: Any, stride: int) -> Workload:
    """Read 32-bit words of shared memory a stride apart: 2, 4, … 32 lanes share a bank, or none where it is odd."""
    import numpy as np
    import torch

    grid = device.facts().get("multiprocessors") or 1
    words = device.random(WORDS, "float32").view(torch.int32)
    out, clocks = device.unwritten((grid, THREADS), "int32"), device.unwritten((grid, 2), "int64")
    warps = THREADS // 32

    def sums() -> Any:
        """Every read of every lane, added up modulo 2^32."""
        lanes, reads = (torch.arange(count, device=words.device) for count in (32, READS))
        read = words.long()[(lanes[:, None] * stride + 32 * reads) % WORDS].sum(1) % 2**32
        return torch.where(read < 2**31, read, read - 2**32).to(torch.int32).repeat(warps).expand(grid, THREADS)

    def metrics() -> list[Metric]:
        cycles = float(clocks[:, 0].double().median())
        return [Metric("cycles", cycles / (warps * READS), "cycles", "lower")]

    ways = banks.ways(stride)
    return Workload(
        run=STRIDED(words, out, clocks, np.int32(stride), np.int32(READS), grid=grid, block=THREADS),
        output=out,
        reference=sums,
        reference_name="int64 sums",
        bytes=4 * grid * THREADS * READS,
        accumulate="exact",
        primary="bytes",
        dtype="int32",
        level="shared",
        labels={"ways": str(ways)} | ({"control": "no conflict"} if ways == 1 and stride > 1 else {}),
        prediction={"ways": ways, "cycles": ways},
        metrics=metrics,
    )


@suite.benchmark(pitch=Axis([32, 33]), order=Axis(["transposed", "copied"]), n=Axis([4096]))
def transpose(device: Any, pitch: int, order: str, n: int) -> Workload:
    """Transpose a matrix of float32 through tiles in shared memory, with rows of 32 words or padded to 33."""
    import numpy as np

    source, target = device.random((n, n), "float32"), device.unwritten((n, n), "float32")
    turned = order == "transposed"
    return Workload(
        run=THROUGH_TILE(
            source, target, np.int64(n), grid=math.ceil(n / 32) ** 2, block=256, PITCH=pitch, TURNED=int(turned)
        ),
        output=target,
        reference=lambda: source.t() if turned else source,
        reference_name="torch's transpose" if turned else "the source",
        bytes=8 * n * n,
        accumulate="exact",
        primary="bytes",
        dtype="float32",
        level="DRAM",
        labels={} if turned else {"control": "copied"},
        prediction={"ways": banks.column_ways(pitch) if turned else 1},
    )


PROPORTIONAL = 0.9, 1.1
"""Slope of log cycles over log ways: twice the ways take twice the turns."""
PADDED = 1.3
"""Padding removes 31 of a column's 32 turns, of which the time of DRAM hides the more the slower that is."""
CLEAN = 0.95, 1.05
"""A stride without conflicts costs what stride 1 does; padding does nothing for rows."""


@suite.claim("X01")
def turns_of_a_bank(view: Any) -> Finding:
    """Cycles of an access grow with the lanes that share a bank; an odd stride, or a padded tile, is free of that."""
    view.needs_gpu("a CPU has no shared memory in banks")
    strides = [view.one("stride", stride=stride) for stride in (1, 2, 4, 8, 16, 32)]
    cycles = [view.metric(row, "cycles") for row in strides]
    logs = [math.log(banks.ways(row.params["stride"])) for row in strides]
    slope = line([[1.0] * len(logs), logs], [math.log(each.value) for each in cycles])[1]
    odd = view.metric(view.one("stride", stride=33), "cycles")
    transposed, copied = (
        view.ratio(*(view.one("transpose", order=order, pitch=pitch) for pitch in (32, 33)))
        for order in ("transposed", "copied")
    )
    return Finding(
        effects=(
            Effect("slope of log cycles over log ways", exactly(slope), "1", *PROPORTIONAL),
            Effect("time of a transpose, tiles of 32 × 32 over 32 × 33", transposed, TIMES, PADDED),
        ),
        controls=(
            Effect("cycles at a stride of 33 over 1", odd.over(cycles[0]), TIMES, *CLEAN),
            Effect("time of a copy, tiles of 32 × 32 over 32 × 33", copied, TIMES, *CLEAN),
        ),
        prediction={"slope": 1},
    )
