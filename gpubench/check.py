"""Is the output right? The rule that every workload must pass before it is timed.

The one table of tolerances. The rule (for floating outputs): with eps the spacing at 1 of a format, K the terms summed
into one element,

    ‖out - ref‖ / ‖ref‖  ≤  2 max(eps(out), eps(operands)) + 2 √K eps(acc)

(rounding the output, or each operand of a mode such as TF32, once, and a random walk of K roundings in the accumulator:
Higham and Mary 2019, probabilistic bounds), and no single element off by more than TEN times that × rms(ref). Where a
row is about the accumulator of a tensor core and written in float32, K / CUT eps(acc) more are allowed.
"""

from __future__ import annotations

import math

from gpubench.devices import Comparison
from gpubench.errors import WrongResult
from gpubench.result import Check
from gpubench.workload import Workload

EPS = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "tf32": 2.0**-10,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "tensor-float32": 2.0**-23,
    "tensor-float8": 2.0**-13,
    "exact": 0.0,
}
"""Spacing at 1 of the formats a sum is accumulated in, or its operands rounded to. tensor-float32 and tensor-float8 are
what tensor cores add in: float32 of which they cut off digits, and for float8 14 digits (DeepSeek-V3, arXiv:2412.19437,
section 3.3.2)."""

CUT = {"tensor-float32": 8}
"""Accumulators that cut off and do not round, and the terms of one addition, as on compute capability 8.0 (Fasi and
others 2021): what is cut makes sums smaller each time, so that it adds up with the additions, not with their root."""

TEN = 10.0


def tolerance(eps_out: float, reduction: int, accumulate: str, precision: str = "ieee") -> float:
    """The largest ‖out - ref‖/‖ref‖ a right answer may have. `accumulate="exact"`: no rounding at all is allowed."""
    if accumulate == "exact":
        return 0.0
    cut = reduction / CUT[accumulate] * EPS[accumulate] if accumulate in CUT else 0.0
    return 2 * max(eps_out, EPS.get(precision, 0.0)) + 2 * math.sqrt(reduction) * EPS[accumulate] + cut


def judge(seen: Comparison, workload: Workload) -> Check:
    """The check of one output, or WrongResult saying where, what came, what was expected and how far is allowed."""
    reference = workload.reference_name
    allowed = tolerance(seen.eps, workload.reduction, workload.accumulate, workload.precision)
    rms = seen.reference_norm / math.sqrt(seen.elements) if seen.elements else 0.0
    error = _ratio(seen.error_norm, seen.reference_norm)
    worst = _ratio(seen.worst, rms)
    if not (error <= allowed and worst <= TEN * allowed):
        place = "[" + ", ".join(str(index) for index in seen.where) + "]"
        raise WrongResult(
            f"wrong result: at {place} got {seen.got:.6g}, expected {seen.expected:.6g}; "
            f"relative error {error:.3g}, allowed {allowed:.3g} (reference: {reference})"
        )
    return Check(error, allowed, worst, TEN * allowed, seen.elements, reference)


def _ratio(part: float, whole: float) -> float:
    if part == 0:
        return 0.0
    return part / whole if whole else math.inf
