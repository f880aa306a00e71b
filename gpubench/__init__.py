"""gpubench finds out what a GPU really does, says why, and says when it got slower.

These names are what the author of a suite imports; none of them loads torch, CuPy or numpy.
"""

from gpubench.errors import Skip, Unsupported
from gpubench.finding import TIMES, Effect, Estimate, Finding, NotTestable, RowsMissing, exactly
from gpubench.result import Metric
from gpubench.suite import Axis, Suite
from gpubench.workload import Kernel, Workload

__all__ = [
    "TIMES",
    "Axis",
    "Effect",
    "Estimate",
    "Finding",
    "Kernel",
    "Metric",
    "NotTestable",
    "RowsMissing",
    "Skip",
    "Suite",
    "Unsupported",
    "Workload",
    "__version__",
    "exactly",
]
__version__ = "0.1.0"
