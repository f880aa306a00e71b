"""The default points of the suites coalescing, divergence, tiling and waves: all can be built, and are not too many."""

from __future__ import annotations

from typing import Any

import pytest
from machine import BENCHMARKS, GPU, SUITES, build

from gpubench.workload import Kernel

NAMES = ["coalescing", "divergence", "tiling", "waves"]
SMALL = {"mib": 1, "k": 8, "blocks": 1}
"""What replaces the sizes of axes; `n` is a size in most benchmarks, and a number of paths in one."""
MACHINE = GPU | {"multiprocessors": 4, "shared_memory_per_multiprocessor_bytes": 228 << 10}


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_every_kernel_is_launched_as_it_was_declared(cpu: Any, name: str, quick: bool) -> None:
    """A launch that its declaration refuses would be found on a GPU only."""
    seen = set()
    for path, bench in BENCHMARKS.items():
        if bench.suite != name:
            continue
        small = SMALL | ({} if path == "divergence/switch" else {"n": 64})
        if path in ("divergence/lane-split", "divergence/memory-bound"):
            del small["k"]
        for case in bench.cases("cuda", quick):
            workload = build(cpu, path, MACHINE, **{axis: small.get(axis, value) for axis, value in case.items()})
            assert (
                workload.prediction
                or case.get("rung", case.get("by")) in ("library", "mma", "warp-tile")
                or (path == "tiling/warp-tiles")
            ), path
            if isinstance(workload.run, Kernel):
                seen.add(workload.run.name)
    assert seen == {kernel.name for kernel in SUITES[name].kernels}


@pytest.mark.parametrize(("kind", "quick", "most"), [("cuda", False, 70), ("cuda", True, 30), ("cpu", False, 70)])
def test_a_suite_is_a_matter_of_seconds(kind: str, quick: bool, most: int) -> None:
    for name in NAMES:
        rows = [case for bench in SUITES[name].benchmarks.values() for case in bench.cases(kind, quick)]
        assert 5 <= len(rows) <= most, name


@pytest.mark.parametrize("name", NAMES)
def test_every_suite_has_rows_in_which_its_effect_must_vanish(cpu: Any, name: str) -> None:
    found = set()
    for path, bench in BENCHMARKS.items():
        small = SMALL | {"n": 64} if path.startswith(("tiling/", "coalescing/")) else {"mib": 1}
        for case in bench.cases("cuda") if bench.suite == name else ():
            workload = build(cpu, path, MACHINE, **{axis: small.get(axis, value) for axis, value in case.items()})
            found |= set(workload.labels)
    assert "control" in found
