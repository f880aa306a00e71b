"""Instruction mix: what do division, roots and exponentials cost beside a multiply-add, exact and fast?"""

from __future__ import annotations

from typing import Any

from gpubench import TIMES, Axis, Effect, Finding, Metric, NotTestable, Suite, Workload, exactly
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


NEAR = 0.75, 1.25
"""Of the ratio of the units: each has an instruction or two of other units beside its own, and loops have theirs."""
FULL = 0.9, 1.1
"""Of what the units of multiply-adds do a clock: a loop's own instructions are a few of a hundred."""


@suite.claim("X07")
def special_functions(view: Any) -> Finding:
    """Results of the special function units come as much more slowly than multiply-adds as there are fewer of them."""
    view.needs_gpu("a CPU has no special function units")
    plain, *special = (view.one("throughput", operation=operation) for operation in ("fma", *FAST))
    units = [row.prediction.get("lanes") for row in (plain, *special)]
    if None in units:
        raise NotTestable("what the units of this compute capability do a clock is not known")
    rate, ratios = view.metric(plain, "results"), [units[0] / each for each in units[1:]]
    return Finding(
        effects=tuple(
            Effect(
                f"multiply-adds over {row.params['operation']}, results a clock",
                rate.over(view.metric(row, "results")), TIMES, *(share * ratio for share in NEAR),
            )
            for row, ratio in zip(special, ratios, strict=True)
        ),
        controls=(Effect("multiply-adds a clock over their units", rate.over(exactly(units[0])), "1", *FULL),),
        prediction=dict(zip(FAST, ratios, strict=True)),
        proof="A",
    )  # fmt: skip
