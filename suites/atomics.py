"""Atomics: what does it cost when many threads add to one address, and how many addresses make it free?"""

from __future__ import annotations

from typing import Any

from gpubench import TIMES, Axis, Effect, Finding, Skip, Suite, Workload

suite = Suite(__file__)

CLEAR, COUNT = suite.kernel("clear"), suite.kernel("count_in")
THREADS, EACH = 256, 64
"""Threads of a block, and additions of a thread."""


@suite.benchmark(addresses=Axis([4**power for power in range(11)], quick=[1, 32, 2**20]), blocks=Axis([8]))
def count(device: Any, addresses: int, blocks: int) -> Workload:
    """Add 1 atomically, with `blocks` blocks a multiprocessor, to so many neighbouring 32-bit words in turn."""
    import numpy as np
    import torch

    if addresses & (addresses - 1):
        raise Skip(f"{addresses} addresses are not a power of two")
    counts = device.unwritten(addresses, "int32")
    grid = blocks * (device.facts().get("multiprocessors") or 1)
    additions = grid * THREADS * EACH

    def shares() -> Any:
        """The additions that fall to each address, in turn."""
        address = torch.arange(addresses, device=counts.device)
        return additions // addresses + (address < additions % addresses)

    return Workload(
        run=(
            CLEAR(counts, np.int32(addresses), grid=min(256, -(-addresses // 256)), block=256),
            COUNT(counts, np.int32(addresses), np.int32(EACH), np.uint32(1), grid=grid, block=THREADS),
        ),
        output=counts,
        reference=shares,
        reference_name="the additions dealt out in turn",
        flops=additions,
        accumulate="exact",
        primary="flops",
        dtype="int32",
        labels={"control": "an address a thread"} if addresses >= grid * THREADS else {},
        prediction={"serial": max(1, additions // addresses)},
    )


SERIAL = 10
"""One address takes its additions one after another; those to many are shared by all slices of the L2."""
SPREAD = 0.85, 1.15
"""With about an address a thread, four times as many make nothing faster."""


@suite.claim("X06")
def one_address(view: Any) -> Finding:
    """Additions to one address wait for each other; those to many do not."""
    view.needs_gpu("a CPU runs too few threads at once for an address to be fought over")
    single, quarter, many = (view.one("count", addresses=addresses) for addresses in (1, 2**18, 2**20))
    return Finding(
        effects=(Effect("time of one address over 2^20", view.ratio(single, many), TIMES, SERIAL),),
        controls=(Effect("time of 2^18 addresses over 2^20", view.ratio(quarter, many), TIMES, *SPREAD),),
        prediction=single.prediction,
    )
