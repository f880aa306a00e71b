"""Two sides measured against each other: blocks of one fresh process each, back to back, in an order that is random,
balanced and known from a seed.

`run` yields what happens; saving, progress and printing are loops around it. What it all means is for
`gpubench.ab.judge`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from gpubench import runner
from gpubench.ab import paired
from gpubench.ab import pairs as abpairs
from gpubench.errors import NotComparable
from gpubench.executor import Executor
from gpubench.result import Record, Run
from gpubench.runner import Effort, Progress, Started
from gpubench.store.abfile import BASE, NEW, UNFINISHED, AbRun, Block, Ending, SideName, SideRecord, sided
from gpubench.suite import Case

BLOCKS = 10
"""Blocks where nobody asked for another number."""
IDENTITY = ("kind", "name", "uuid")
"""Facts of the device in which no two processes may differ."""


@dataclass(frozen=True)
class BlockBegun:
    """A block begins: the next process is of `block.first`."""

    block: Block


@dataclass(frozen=True)
class SideBegun:
    """A fresh process of a side begins on so many cases."""

    block: Block
    side: SideName
    cases: int


@dataclass(frozen=True)
class BlockEnded:
    """A block ended; `block.unused` says whether and why it does not count."""

    block: Block


@dataclass(frozen=True)
class Ended:
    """Nothing more is measured, and why."""

    why: Ending


Event = BlockBegun | SideBegun | Started | Progress | SideRecord | BlockEnded | Ended
Opener = Callable[[SideName], Executor]


def run(
    found: AbRun,
    cases: Sequence[Case],
    effort: Effort,
    opened: Opener,
    max_time: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Generator[Event, None, None]:
    """Measure the cases on both sides, block by block, until all that were planned count or the first look decides.

    `found` is the measurement without rows: its plan, order and margins. `opened` starts a process of a side. A block
    that met a thermal slowdown on either side is measured again on both; too many of them end it. A case that gave no
    figure on some side is not measured again: that is its verdict. No block begins past `max_time` seconds.
    DeviceUnavailable where a process cannot be started, NotComparable where it is on another device.
    """
    started, slot = clock(), 0
    cases, blocks, taken = list(cases), list[Block](), list[SideRecord]()
    order = firsts(found.planned, found.order_seed)
    while slot < found.planned:
        if max_time is not None and clock() - started >= max_time:
            yield Ended("time budget")
            return
        block = Block(len(blocks), slot, order[slot], UNFINISHED)
        yield BlockBegun(block)
        here: list[SideRecord] = []
        for event in _block(block, shuffled(cases, found.order_seed, slot), effort, opened, found):
            if isinstance(event, SideRecord):
                here.append(event)
            yield event
        block = replace(block, unused=abpairs.thermal(here))
        blocks.append(block)
        taken += here
        yield BlockEnded(block)
        cases = [case for case in cases if all(each.status == "ok" for each in here if each.id == case.id)]
        if not cases:
            yield Ended("nothing to compare")
            return
        if abpairs.too_hot(blocks, found.planned):
            yield Ended("environment")
            return
        if block.unused is not None:
            continue
        slot += 1
        if slot < found.planned and slot in abpairs.looks(found.planned):
            seen = abpairs.verdicts(replace(found, blocks=blocks, records=taken))
            if all(each.verdict in paired.DECIDED for each in seen):
                yield Ended("decided" if seen else "nothing to compare")
                return
    yield Ended("all blocks")


def _block(
    block: Block, cases: Sequence[Case], effort: Effort, opened: Opener, found: AbRun
) -> Generator[Event, None, None]:
    """One fresh process of each side, on the same cases in the same order."""
    for side in block.order:
        yield SideBegun(block, side, len(cases))
        with closing(opened(side)) as executor:
            check_same_device(found, side, executor)
            for event in runner.run(cases, executor, effort):
                yield sided(event, side, block.number) if isinstance(event, Record) else event


def check_same_device(found: Run, side: SideName, executor: Executor) -> None:
    """NotComparable unless a process is on the device that the measurement is of."""
    for fact in IDENTITY:
        was, now = found.device.get(fact), executor.hello.facts.get(fact)
        if was != now:
            raise NotComparable(f"{side}: on another device, {fact} {now} instead of {was}", "--device and its UUID")


def firsts(planned: int, seed: int) -> list[SideName]:
    """Which side each block begins with: as often the one as the other in either half, or once more, in random order.

    Balance by halves keeps a first look balanced too; a drift over the blocks then favours neither side.
    """
    source = random.Random(f"{seed}/sides")
    more, fewer = source.sample([BASE, NEW], 2)
    half = (planned + 1) // 2
    order: list[SideName] = []
    for count, most in ((half, more), (planned - half, fewer)):
        other = fewer if most == more else more
        part = [most] * ((count + 1) // 2) + [other] * (count // 2)
        order += source.sample(part, len(part))
    return order


def shuffled(cases: Sequence[Case], seed: int, slot: int) -> list[Case]:
    """The cases in the order of a block, the same on both its sides."""
    return random.Random(f"{seed}/cases/{slot}").sample(list(cases), len(cases))
