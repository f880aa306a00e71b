"""Instruction mix: what do division, roots and exponentials cost beside a multiply-add, exact and fast?"""

from __future__ import annotations

from typing import Any

from gpubench import Axis, Metric, Suite, Workload
from gpubench.model import execution

suite = Suite(__file__)

OPERATIONS = {
    "fma": 0, "divide": 1, "divide-fast": 2, "sqrt": 3, "sqrt-fast": 4, "exp": 5, "exp-fast": 6, "int32-fma": 7,
    "int32-divide": 8,
}  # fmt: skip
"""Operations and the OPERATION each is in the .cu file."""
FAST = ("divide-fast", "sqrt-fast", "exp-fast")
"""Those that are one instruction of the special function units, and little more."""
CHAINS, LINKS, THREADS = 4, 1024, 1024
"""Chains of a thread, links of a chain, threads of the one block of a multiprocessor."""

MIXED = suite.kernel("mixed_chains", defines={"OPERATION": list(OPERATIONS.values())})


def predicted(operation: str, facts: dict[str, Any]) -> dict[str, Any]:
    """Results a clock and multiprocessor: of its unit, or at most what the special function units give, as every other
    operation takes one of theirs at least. Empty where not known."""
    if operation in ("fma", "int32-fma"):
        return execution.lanes("fp32" if operation == "fma" else "int32", facts)
    known = execution.lanes("rsqrt", facts)
    return known and known | {"bound": "equal" if operation in FAST else "at most"}


@suite.benchmark(operation=Axis(list(OPERATIONS), quick=["fma", "divide", "exp-fast"]))
def throughput(device: Any, operation: str) -> Workload:
    """Results of one operation a clock and multiprocessor, in chains that keep the schedulers busy."""
    import numpy as np

    facts = device.facts()
    grid = facts.get("multiprocessors") or 1
    out, clocks = device.unwritten(grid * THREADS, "float32"), device.unwritten((grid, 2), "int64")
    links = CHAINS * LINKS
    return Workload(
        run=MIXED(
            out, clocks, np.int32(1), np.int32(0), np.int32(LINKS), np.int64(out.numel()),
            grid=grid, block=THREADS, OPERATION=OPERATIONS[operation],
        ),
        output=out,
        reference=lambda: out.new_full(out.shape, links + sum(range(CHAINS))),
        reference_name="the number of links",
        accumulate="float32" if operation in FAST or operation == "exp" else "exact",  # they may be off by a rounding
        reduction=LINKS,
        primary="time",
        dtype="int32" if operation.startswith("int32") else "float32",
        labels={"control": "multiply-add"} if operation == "fma" else {},
        prediction=predicted(operation, facts),
        metrics=lambda: [Metric("results", THREADS * links / float(clocks[:, 0].double().median()), "1/clk", "higher")],
    )  # fmt: skip
