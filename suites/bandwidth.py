"""Memory bandwidth: how fast do bytes come from DRAM, and go back, when the operation is torch's own?

The buffers are many times the last-level cache, so that what is measured is DRAM. A copy counts two bytes per byte
copied: one read, one written.
"""

from __future__ import annotations

from typing import Any

from gpubench import Axis, Suite, Workload

suite = Suite(__file__)

MIB = Axis([1024], cpu=[256], quick=[512], quick_cpu=[128])
"""Size of one buffer in MiB (2^20 bytes)."""
WORDS = 2**20 // 4
"""float32 numbers in a MiB."""
ROWS = 4096
"""Rows a buffer is summed in: enough to occupy every unit of a GPU, few enough that their sums cost nothing."""
VALUE = 3.0
"""What `write` writes: not zero, which a driver may set in another way, and not what a fresh buffer holds."""


@suite.benchmark(mib=MIB)
def copy(device: Any, mib: int) -> Workload:
    """Copy one buffer of float32 to another."""
    source = device.random(mib * WORDS, "float32")
    target = device.unwritten(mib * WORDS, "float32")
    return Workload(
        run=lambda: target.copy_(source),
        output=target,
        reference=lambda: source,
        reference_name="the source",
        bytes=2 * mib * 2**20,
        accumulate="exact",
        dtype="float32",
        level="DRAM",
        roof="DRAM copy",
        primary="bytes",
    )


@suite.benchmark(mib=MIB)
def read(device: Any, mib: int) -> Workload:
    """Read one buffer of float32, summing each of its 4096 rows."""
    import torch

    columns = mib * WORDS // ROWS
    source = device.random((ROWS, columns), "float32")
    sums = device.unwritten(ROWS, "float32")
    return Workload(
        run=lambda: torch.sum(source, dim=1, out=sums),
        output=sums,
        reference=lambda: torch.sum(source, dim=1, dtype=torch.float64),
        reference_name="float64 sum",
        flops=ROWS * (columns - 1),
        bytes=mib * 2**20 + 4 * ROWS,
        reduction=columns,
        dtype="float32",
        level="DRAM",
        roof="DRAM read",
        primary="bytes",
    )


@suite.benchmark(mib=MIB)
def write(device: Any, mib: int) -> Workload:
    """Write one number into the whole of a buffer of float32."""
    import torch

    target = device.unwritten(mib * WORDS, "float32")
    return Workload(
        run=lambda: target.fill_(VALUE),
        output=target,
        reference=lambda: torch.full_like(target, VALUE),
        reference_name="the number written",
        bytes=mib * 2**20,
        accumulate="exact",
        dtype="float32",
        level="DRAM",
        roof="DRAM write",
        primary="bytes",
    )
