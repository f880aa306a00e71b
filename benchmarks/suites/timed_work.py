"""Timed work: what timers are compared on. Kernels of known duration, and operations people really time."""

from __future__ import annotations

from typing import Any

from gpubench import Axis, Suite, Workload
from gpubench.model import matmul as work
from gpubench.result import Metric

suite = Suite(__file__)

CYCLES_PER_US = 2000
"""Of the clock of a data-centre GPU, nearly: what is called 5 µs is 10 000 cycles, and what they take is measured."""
SPIN = suite.kernel("spin")
STAMP = suite.kernel("stamp")
WORDS = 1 << 18
"""Elements of float32 in a MiB."""
FACTOR, SHIFT = 1.5, 0.25
"""Exact in every format."""


@suite.benchmark(us=Axis([0, 1, 2, 5, 10, 20, 50, 100, 1000, 10_000], quick=[0, 10], minimum=0))
def spin(device: Any, us: int) -> Workload:
    """One thread that spins for `us` times 2000 cycles of the SM clock; 0 is the cost of a kernel that does nothing."""
    import numpy as np
    import torch

    where = device.unwritten(1, "float32").device
    asked, spent = (torch.zeros(size, dtype=torch.int64, device=where) for size in (1, 2))
    cycles = us * CYCLES_PER_US

    def counted() -> list[Metric]:
        passed, ns = spent.tolist()
        return [Metric("cycles", passed, "1", "higher"), Metric("global_timer", ns, "ns", "higher")]

    return Workload(
        run=SPIN(asked, spent, np.int64(cycles), grid=1, block=1),
        output=asked,
        reference=lambda: torch.full_like(asked, cycles),
        reference_name="the cycles asked for",
        accumulate="exact",
        primary="time",
        metrics=counted,
    )


@suite.benchmark(mib=Axis([4]))
def scale(device: Any, mib: int) -> Workload:
    """y = a x over one buffer of float32: a kernel of a few µs."""
    import torch

    x, y = device.random(mib * WORDS, "float32"), device.unwritten(mib * WORDS, "float32")
    return Workload(
        run=lambda: torch.mul(x, FACTOR, out=y), output=y, reference=lambda: x.double() * FACTOR,
        reference_name="float64 product", flops=mib * WORDS, bytes=2 * mib * 2**20, primary="time",
    )  # fmt: skip


@suite.benchmark(mib=Axis([256], quick=[16]))
def copy(device: Any, mib: int) -> Workload:
    """A copy from one buffer to another."""
    x, y = device.random(mib * WORDS, "float32"), device.unwritten(mib * WORDS, "float32")
    return Workload(
        run=lambda: y.copy_(x), output=y, reference=lambda: x, reference_name="the source",
        bytes=2 * mib * 2**20, accumulate="exact", primary="time",
    )  # fmt: skip


@suite.benchmark(n=Axis([1024, 4096, 8192], quick=[1024], cpu=[512]))
def mm(device: Any, n: int) -> Workload:
    """The library's product of two square bfloat16 matrices."""
    import torch

    a, b = (device.random((n, n), "bfloat16", seed=seed) for seed in (0, 1))
    c = device.unwritten((n, n), "bfloat16")
    return Workload(
        run=lambda: torch.mm(a, b, out=c), output=c, reference=lambda: work.reference(a, b),
        reference_name=work.reference_name("bfloat16"), flops=work.flops(n, n, n), bytes=work.bytes(n, n, n, 2),
        reduction=n, dtype="bfloat16", primary="time",
    )  # fmt: skip


@suite.benchmark(n=Axis([4096], quick=[512]))
def softmax(device: Any, n: int) -> Workload:
    """softmax of the rows of a square matrix of float32."""
    import torch

    x, y = device.random((n, n), "float32"), device.unwritten((n, n), "float32")
    return Workload(
        run=lambda: torch.softmax(x, 1, out=y), output=y, reference=lambda: torch.softmax(x.double(), 1),
        reference_name="float64 softmax", bytes=8 * n * n, reduction=n, primary="time",
    )  # fmt: skip


@suite.benchmark(n=Axis([1024]))
def add(device: Any, n: int) -> Workload:
    """y = x + b over a kilobyte or a few: the launch costs more than the work."""
    import torch

    x, y = device.random(n, "float32"), device.unwritten(n, "float32")
    return Workload(
        run=lambda: torch.add(x, SHIFT, out=y), output=y, reference=lambda: x.double() + SHIFT,
        reference_name="float64 sum", flops=n, bytes=8 * n, primary="time",
    )  # fmt: skip


@suite.benchmark(n=Axis([1024]))
def chain(device: Any, n: int) -> Workload:
    """Five of them, each on what the last one left: five launches a call."""
    import torch

    x, y = device.random(n, "float32"), device.unwritten(n, "float32")

    def run() -> None:
        torch.add(x, SHIFT, out=y)
        torch.mul(y, FACTOR, out=y)
        torch.add(y, SHIFT, out=y)
        torch.mul(y, FACTOR, out=y)
        torch.add(y, SHIFT, out=y)

    return Workload(
        run=run, output=y, reference=lambda: ((x.double() + SHIFT) * FACTOR + SHIFT) * FACTOR + SHIFT,
        reference_name="float64", flops=5 * n, bytes=8 * n, reduction=5, primary="time",
    )  # fmt: skip
