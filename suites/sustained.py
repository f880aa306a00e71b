"""Sustained: what is left of a rate when the device gets no rest, and what takes the difference?

Each case is measured twice: with rests, in which the clock returns to its maximum, and back to back for many seconds.
The power limit, and sometimes heat, then hold the clock down. The row keeps rate, clock, power and temperature over
time.
"""

from __future__ import annotations

from typing import Any

from gpubench import Axis, Suite, Workload
from gpubench.model import attention as heads_of
from gpubench.model import matmul as work

suite = Suite(__file__)

DTYPES = ["float32", "float16", "bfloat16"]
SECONDS = Axis([20], cpu=[3], quick=[3])
"""How long a load without rest is measured, after its warm-up. A row with rests takes no notice of it."""
CACHE, LOAD = Axis(["hot"]), Axis(["burst", "sustained"])


@suite.benchmark(
    n=Axis([4096, 8192], cpu=[1024], quick=[4096]),
    dtype=Axis(["bfloat16"], cpu=["float32"], choices=DTYPES),
    seconds=SECONDS,
    cache=CACHE,
    load=LOAD,
)
def matmul(device: Any, n: int, dtype: str, seconds: int) -> Workload:
    """The library's product of two n × n matrices."""
    import torch

    a, b, c = work.operands(device, n, n, n, dtype)
    return Workload(run=lambda: torch.mm(a, b, out=c), least_s=seconds, **work.product(a, b, c, dtype))


@suite.benchmark(
    batch=Axis([16], cpu=[1]),
    heads=Axis([16], cpu=[8]),
    n=Axis([2048], cpu=[512]),
    d=Axis([64]),
    dtype=Axis(["bfloat16"], cpu=["float32"], choices=DTYPES),
    seconds=SECONDS,
    cache=CACHE,
    load=LOAD,
)
def attention(device: Any, batch: int, heads: int, n: int, d: int, dtype: str, seconds: int) -> Workload:
    """torch's scaled_dot_product_attention without a mask, by the kernel that torch chooses."""
    import torch

    shape = (batch, heads, n, d)
    q, k, v = (device.random(shape, dtype, seed=seed) for seed in range(3))
    written = [device.unwritten(shape, dtype)]  # each call makes its own: torch has no form that is given one

    def run() -> None:
        written[0] = torch.nn.functional.scaled_dot_product_attention(q, k, v)

    return Workload(
        run=run,
        output=written,
        reference=lambda: heads_of.reference(q, k, v),
        reference_name="float64 attention by its definition",
        flops=heads_of.flops(batch, heads, n, d),
        bytes=heads_of.bytes(batch, heads, n, d, q.element_size()),
        reduction=n,
        dtype=dtype,
        least_s=seconds,
    )
