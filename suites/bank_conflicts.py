"""Bank conflicts: what does a warp pay when its lanes want different words of one bank of shared memory?"""

from __future__ import annotations

import math
from typing import Any

from gpubench import Axis, Metric, Suite, Workload
from gpubench.model import banks

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
