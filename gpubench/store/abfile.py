"""The file of an A/B measurement, `gpubench.ab/1`: two sides, blocks, and every row of both sides in every block.

It is a run file with more in it: the same head, the same records, each with its side and its block, and it is written
by the same journal. What decides stands in it whole: the sides, the order, the margin, the blocks and the medians.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from gpubench.errors import UsageError
from gpubench.result import SCHEMA as RUN_SCHEMA
from gpubench.result import Conditions, Record, Run
from gpubench.store import jsonfile, runfile
from gpubench.suite import name_of

SCHEMA = "gpubench.ab/1"
"""History: 1 is the first."""
FAMILY = SCHEMA.partition("/")[0]

SideName = Literal["base", "new"]
BASE, NEW = SIDES = get_args(SideName)
UNFINISHED = "not finished"
"""Why a block is not used that was being measured when the file was written."""

Ending = Literal["all blocks", "decided", "environment", "time budget", "nothing to compare"]


@dataclass
class SideFacts:
    """One side: `what` sets it apart, as it was typed but without folders (nothing: as it is); `kernels` the hash of
    each text that replaces one of the suite's, by the name of the file it replaces; what its process said of itself."""

    what: list[str] = field(default_factory=list)
    kernels: dict[str, str] = field(default_factory=dict)
    device: dict[str, Any] = field(default_factory=dict)
    software: dict[str, Any] = field(default_factory=dict)
    fingerprint: dict[str, Any] = field(default_factory=dict)


@dataclass
class Block:
    """One process of each side, back to back. `number` counts all blocks from 0, `slot` those that were planned: a
    block that is repeated has the same slot. `unused` says why it does not count."""

    number: int
    slot: int
    first: SideName
    unused: str | None = None

    @property
    def order(self) -> tuple[SideName, SideName]:
        """The sides in the order they were measured."""
        return (BASE, NEW) if self.first == BASE else (NEW, BASE)


@dataclass
class SideRecord(Record):
    """A row of one side in one block."""

    side: SideName = "base"
    block: int = 0


@dataclass
class AbRun(Run):
    """Everything measured of two sides. `planned` blocks were asked for, in an order drawn from `order_seed`, of the
    rows `cases`; `margin` and `margins` are those asked for then; `ending` is why measuring ended, None where it was
    broken off."""

    schema: str = SCHEMA
    base: SideFacts = field(default_factory=SideFacts)
    new: SideFacts = field(default_factory=SideFacts)
    planned: int = 0
    order_seed: int = 0
    margin: float = 0.0
    margins: dict[str, float] = field(default_factory=dict)
    cases: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    ending: Ending | None = None
    records: list[SideRecord] = field(default_factory=list)  # type: ignore[assignment] # a Run's rows have no side

    @property
    def sides(self) -> dict[SideName, SideFacts]:
        """Both sides by name."""
        return {BASE: self.base, NEW: self.new}


def sided(record: Record, side: SideName, block: int) -> SideRecord:
    """A record as one of a side and a block."""
    return SideRecord(**{each.name: getattr(record, each.name) for each in fields(Record)}, side=side, block=block)


def is_ab(content: Any) -> bool:
    """Whether a document says that it is the file of an A/B measurement, of any version."""
    return isinstance(content, dict) and str(content.get("schema")).startswith(f"{FAMILY}/")


def check_schema(content: Any, where: str) -> None:
    """UsageError unless a document says that it is an A/B measurement or a run, of a version we read."""
    runfile.check_schema(content, where, SCHEMA if is_ab(content) else RUN_SCHEMA)


def decode(data: bytes, where: str) -> Run:
    """What a file holds, an AbRun or a Run, by its schema; as strict as `runfile.decode`."""
    if f'"{FAMILY}/'.encode() not in data[:200]:
        return runfile.decode(data, where)
    check_schema(jsonfile.loads(data, where), where)
    return _checked(data, where)


def from_json(content: Any, where: str) -> Run:
    """What a document in JSON values holds, an AbRun or a Run, by its schema."""
    if not is_ab(content):
        return runfile.from_json(content, where)
    check_schema(content, where)
    return _checked(jsonfile.dumps(content).encode(), where)


def _checked(data: bytes, where: str) -> AbRun:
    found = runfile.typed(AbRun, data, where)
    _check(found, where)
    return found


def _check(found: AbRun, where: str) -> None:
    """UsageError for what types cannot say: blocks in their order, each row once a side and a block."""
    if found.planned < 1 or not 0 <= found.margin < 1:
        raise UsageError(f"{where}: planned or margin: expected blocks to measure and a fraction below 1")
    for place, block in enumerate(found.blocks):
        if block.number != place or not 0 <= block.slot < found.planned:
            raise UsageError(f"{where}: blocks[{place}]: number {block.number}, slot {block.slot}")
    seen: dict[tuple[str, Conditions, str, int], int] = {}
    for index, record in enumerate(found.records):
        wrong = runfile.fault(record)
        if not 0 <= record.block < len(found.blocks):
            wrong = f".block: there is no block {record.block}"
        key = (name_of(record), record.conditions, record.side, record.block)
        if seen.setdefault(key, index) != index:
            wrong = f".id: {record.id} is in block {record.block} of {record.side} twice"
        if wrong is not None:
            raise UsageError(f"{where}: records[{index}]{wrong}")
