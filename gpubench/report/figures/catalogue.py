"""Which figures there are of a run, in order: claims, then those of its suites, then the samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gpubench.report.figures import attention, generic, honesty, kernels, memory, samples, scoreboard, sustained
from gpubench.report.figures.shapes import Figure
from gpubench.report.rows import groups
from gpubench.report.words import plain
from gpubench.result import Run

Maker = Callable[[Run], Iterator[Figure]]

OWN: Sequence[tuple[Maker, frozenset[str]]] = (
    (memory.latency, frozenset({"memory-hierarchy/chase", "memory-hierarchy/chase-past-l1"})),
    (memory.working_set, frozenset({"memory-hierarchy/working-set"})),
    (memory.in_flight, frozenset({"memory-hierarchy/in-flight"})),
    (memory.strides, frozenset({"coalescing/strided-read", "coalescing/strided-write"})),
    (memory.offsets, frozenset({"coalescing/offset-copy"})),
    (memory.bank_conflicts, frozenset({"bank-conflicts/stride"})),
    (kernels.divergence, frozenset({"divergence/lane-split", "divergence/switch"})),
    (kernels.tiling, frozenset({"tiling/ladder", "tiling/tile-size"})),
    (kernels.formats, frozenset({"precision/matmul"})),
    (kernels.fusion, frozenset({"fusion/chain"})),
    (kernels.occupancy, frozenset({"occupancy/fma"})),
    (honesty.rounding, frozenset({"numerics/matmul-error"})),
    (honesty.traps, frozenset()),
    (attention.attention, frozenset({"attention/forward", "attention/forward-backward"})),
    (sustained.sustained, frozenset({"sustained/matmul", "sustained/attention"})),
)
"""Makers of figures of their own, with the benchmarks that need no other then."""
DRAWN = frozenset({"matmul-sweep/matmul"})
"""Benchmarks whose picture is the curve."""


def figures(run: Run) -> list[Figure]:
    """All of them, each id once. A suite's stand together, in the order of its benchmarks, its own ones first."""
    own, others = split(run)
    suites = dict.fromkeys(record.suite for record in run.records)
    of_suites = [
        figure for suite in suites for part in (own, others) for figure in part if figure.heading.suite == plain(suite)
    ]
    return [*scoreboard.scoreboard(run), *of_suites, *samples.samples(run)]


def split(run: Run) -> tuple[list[Figure], list[Figure]]:
    """The figures that suites have of their own, and those of every other benchmark."""
    own: list[Figure] = []
    covered = set(DRAWN)
    for maker, paths in OWN:
        made = list(maker(run))
        own += made
        covered |= paths if made else set()
    others = [generic.of(group) for group in groups(run) if group.path not in covered]
    return own, [figure for figure in others if figure is not None]
