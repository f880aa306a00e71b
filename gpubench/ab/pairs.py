"""The medians of an A/B measurement in pairs, and the verdicts of `paired` on them: which blocks count, which pairs,
and how many looks there were. Pure, from the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from gpubench.ab import paired
from gpubench.ab.paired import LEAST_BLOCKS, PairedVerdict
from gpubench.compare import comparable, judge
from gpubench.result import Record
from gpubench.stats import per_call, percentile, tick_per_call
from gpubench.store.abfile import BASE, NEW, SIDES, AbRun, Block, SideRecord
from gpubench.telemetry import LIMITS
from gpubench.verdict import Mismatch

MOST_THERMAL = 0.2
"""Share of the planned blocks that may meet a thermal slowdown; with more, the room is what is measured."""
UNLIKE = frozenset({"timer", "implementation"})
"""Differences between two rows after which their figures are not of one thing. The others (a label that was read back,
a clock) are what the two sides do, and so part of the answer. Both sides load the same suites: a definition differs
only as two versions of Python write one."""


class Pair(NamedTuple):
    """A case in one block: both its records."""

    block: Block
    base: SideRecord
    new: SideRecord


@dataclass(frozen=True)
class PairedRow:
    """A case's records, by side and in the order of blocks, and the pairs of those that count. `left_out` pairs were
    not had alike, `apart` says in what."""

    base: Sequence[SideRecord]
    new: Sequence[SideRecord]
    pairs: Sequence[Pair]
    left_out: int = 0
    apart: Mismatch | None = None

    @property
    def failed(self) -> bool:
        """Whether it gave no figure somewhere."""
        return any(each.status != "ok" for each in (*self.base, *self.new))

    def times(self) -> tuple[list[float], list[float]]:
        """The median times of the base and of the new side, block by block, in ns."""
        return [time_of(pair.base) for pair in self.pairs], [time_of(pair.new) for pair in self.pairs]

    def medians(self, margin: float, blocks: Iterable[Block] | None = None) -> paired.Paired:
        """Its block medians, of all blocks or of some."""
        numbers = None if blocks is None else {block.number for block in blocks}
        own = replace(self, pairs=[pair for pair in self.pairs if numbers is None or pair.block.number in numbers])
        tick = max(tick_per_call(each) for pair in self.pairs for each in (pair.base, pair.new))
        return paired.Paired(self.base[0].id, *own.times(), tick=tick, margin=margin)


def looks(planned: int) -> tuple[int, ...]:
    """After how many blocks the verdicts are looked at: half of those planned, where that is LEAST_BLOCKS or more, and
    all. To look twice at fewer would save little, and cost what a single look finds."""
    half = math.ceil(planned / 2)
    return (half, planned) if half >= LEAST_BLOCKS else (planned,)


def too_hot(blocks: Iterable[Block], planned: int) -> bool:
    """Whether so many blocks met a thermal slowdown that no verdict is to be had."""
    return sum(block.unused is not None and "thermal" in block.unused for block in blocks) > MOST_THERMAL * planned


def hot_words(found: AbRun) -> str:
    """How many blocks met a thermal slowdown."""
    hot = sum(block.unused is not None and "thermal" in block.unused for block in found.blocks)
    return f"thermal slowdown in {hot} of {len(found.blocks)} blocks"


def thermal(records: Iterable[SideRecord]) -> str | None:
    """Which sides of a block met a thermal slowdown, in words; None where none did."""
    sides = {each.side for each in records if _is_hot(each)}
    return f"thermal slowdown ({' and '.join(side for side in SIDES if side in sides)})" if sides else None


def _is_hot(record: Record) -> bool:
    events = record.telemetry.get("throttles")
    if isinstance(events, list) and any(LIMITS.get(str(event)) == "thermal" for event in events):
        return True
    return record.telemetry.get("limited_by") == "thermal"


def used_blocks(found: AbRun) -> list[Block]:
    """The blocks that count, in the order they were measured."""
    return [block for block in found.blocks if block.unused is None]


def paired_rows(found: AbRun) -> dict[str, PairedRow]:
    """Every case that was measured on both sides, by its id, in the order the cases were planned."""
    records: dict[str, dict[str, list[SideRecord]]] = {id: {side: [] for side in SIDES} for id in found.cases}
    for record in found.records:
        records.setdefault(record.id, {side: [] for side in SIDES})[record.side].append(record)
    used = used_blocks(found)
    return {id: _paired(each[BASE], each[NEW], used) for id, each in records.items() if each[BASE] and each[NEW]}


def _paired(base: Sequence[SideRecord], new: Sequence[SideRecord], used: Sequence[Block]) -> PairedRow:
    of_base, of_new = ({record.block: record for record in records} for records in (base, new))
    there = [block for block in used if block.number in of_base.keys() & of_new.keys()]
    pairs = [Pair(block, of_base[block.number], of_new[block.number]) for block in there]
    apart = {pair.block.number: each for pair in pairs if (each := _apart(pair)) is not None}
    alike = [pair for pair in pairs if pair.block.number not in apart]
    return PairedRow(base, new, alike, len(apart), next(iter(apart.values()), None))


def _apart(pair: Pair) -> Mismatch | None:
    """What forbids to compare the two records of a pair. One process whose timer lost its records and took another
    costs a row one pair."""
    found = comparable.row_mismatches(pair.base, pair.new)
    return next((each for each in found if each.field in UNLIKE or each.field.startswith("work.")), None)


def verdicts(
    found: AbRun, margin: float | None = None, margins: Mapping[str, float] | None = None
) -> list[PairedVerdict]:
    """The verdict of `gpubench.ab.paired` on every row that has a figure on both sides in every block, after the looks
    that there were: what the first decided stands. With fewer blocks than a look needs nothing is decided."""
    common = found.margin if margin is None else margin
    special = found.margins if margins is None else margins
    rows = [each for each in paired_rows(found).values() if each.pairs and not each.failed]
    own = [judge.margin_of(each.base[0], common, special) for each in rows]
    used, planned = used_blocks(found), looks(found.planned)

    def judged(alpha: float, count: int | None = None) -> list[PairedVerdict]:
        cut = [row.medians(margin, used[:count]) for row, margin in zip(rows, own, strict=True)]
        return paired.judge(cut, margin=common, alpha=alpha)

    if too_hot(found.blocks, found.planned):
        return _undecided(judged(paired.ALPHA), f"environment: {hot_words(found)}")
    if len(used) < planned[0]:
        return _undecided(judged(paired.ALPHA), f"{len(used)} of {found.planned} blocks were measured")
    if len(planned) == 1:
        return judged(paired.ALPHA)
    first, second = paired.LOOKS
    seen = judged(first, planned[0])
    return seen if len(used) < found.planned else paired.settle(seen, judged(second))


def _undecided(verdicts: Iterable[PairedVerdict], reason: str) -> list[PairedVerdict]:
    """Of a measurement that no look was taken at: what more of the same would show is not known."""
    return [
        each
        if each.verdict == "invalid"
        else replace(each, verdict="inconclusive", reason=reason, detectable=None, needed=None)
        for each in verdicts
    ]


def time_of(record: Record) -> float:
    """The median time of one call in ns."""
    return percentile(sorted(per_call(record.samples)), 0.5)


def geometric_mean(values: Sequence[float]) -> float:
    """The mean that ratios have."""
    return math.exp(math.fsum(map(math.log, values)) / len(values))
