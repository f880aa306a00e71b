"""Names and words that a markup language would take for its own."""

from __future__ import annotations

from typing import Any

from gpubench import Axis, Suite, Workload

suite = Suite(__file__)


@suite.benchmark(how=Axis(["[/bold]", "gemm[fp16]", "[link=x]"]))
def brackets(device: Any, how: str) -> Workload:
    """Nothing is [wrong] but the names."""
    out = device.unwritten(4, "float32")

    def run() -> None:
        out[:] = [1.0] * 4
        device.spend(1000)

    return Workload(
        run=run,
        output=out,
        reference=lambda: [1.0] * 4,
        reference_name="[/]",
        flops=4,
        labels={"class": "[red]A[/red]"},
    )
