"""Workload: what a benchmark function returns. Plain data: a callable, its bytes and flops, and a reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass
class Workload:
    """One operation, ready to be checked and timed.

    `run` enqueues one call on the device and returns without waiting; `output` is the tensor it writes (or a tuple of
    them). `reference` computes the same values in higher precision, from the same inputs; it is never timed.

    `flops` counts an FMA as 2; `bytes` are the compulsory bytes of the algorithm: each input read once, each output
    written once. Both are exact integers of the parameters.

    `reduction` is K, the number of terms summed into one element of the output, and `accumulate` the dtype they are
    summed in: both set the tolerance (see `gpubench.check`).

    `roof` names the ceiling this workload is the yardstick of, such as "DRAM copy" (with `level`) or "bfloat16 matmul"
    (with `dtype`); most workloads have none. `level` and `dtype` say which memory and which arithmetic it uses.
    `labels` are short classes to group rows by, such as {"alignment": "16 B"}.
    """

    run: Callable[[], object]
    output: Any
    reference: Callable[[], Any]
    reference_name: str
    flops: int = 0
    bytes: int = 0
    reduction: int = 1
    accumulate: str = "float32"
    precision: Literal["ieee", "tf32"] = "ieee"
    dtype: str | None = None
    level: str | None = None
    roof: str | None = None
    primary: Literal["flops", "bytes", "time"] | None = None
    labels: dict[str, str] = field(default_factory=dict)
    prediction: dict[str, Any] = field(default_factory=dict)

    @property
    def headline(self) -> str:
        """The metric that judges this row: the one asked for, else the rate of flops, else of bytes, else time."""
        return self.primary or ("flops" if self.flops else "bytes" if self.bytes else "time")
