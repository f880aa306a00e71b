"""How often gpubench's own verdicts are wrong on a device: what a self-check found, kept beside the run files.

`calibration.json` holds the newest self-check of each device, under the key its ceilings have: this very device under
its power limit, with this driver and torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from gpubench.errors import UsageError
from gpubench.store import jsonfile

SCHEMA = "gpubench.calibration/1"
FILE = "calibration.json"
Rule = Literal["ab", "compare", "history"]
"""`ab`: paired blocks. `compare`: one run a side. `history`: one run against as many of the base as `ab` has blocks."""
FIRM = ("regression", "improvement")
"""Verdicts that a row is not what it was, beyond chance."""
CHANGED = (*FIRM, "suspect", "better")
"""The same, and those on the evidence of one run a side."""
SAME = ("equivalent", "same")

MOST_WRONG = 0.01
"""Of comparisons of equal code at the margin, what may be called different."""
COVERED = (0.92, 0.98)
"""How often a 95 % interval may hold the truth: the splits of a pool share its processes, so that the share strays."""
LEAST_FOUND = 0.9
"""Of real slowdowns beyond the margin, what is to be found."""
MOST_AT_MARGIN = 0.05
"""Of slowdowns of the margin itself, what may be called a regression."""
STRAYS = 0.1
"""More work may take longer by this much more or less than its share, as a part of the share: 5 % by 4.5 to 5.5 %. A
start, a tail and a memory's pages make some difference, on an H200 0.3 of 5 percentage points at most. What strays
farther is another slowdown than the one that was promised to be found."""


@dataclass(frozen=True)
class Outcome:
    """What one rule said of all rows of all splits of equal code: how often each verdict, and in how many of the splits
    it called any row changed."""

    rule: Rule
    margin: float
    verdicts: Mapping[str, int]
    splits: int
    alarmed: int

    def __post_init__(self) -> None:
        """TypeError where a file has something else for a count."""
        if not all(isinstance(count, int) for count in (*self.verdicts.values(), self.splits, self.alarmed)):
            raise TypeError(f"counts of {self.rule} are whole numbers")

    @property
    def of(self) -> int:
        """Comparisons of a row that were judged."""
        return sum(self.verdicts.values())

    @property
    def wrong(self) -> int:
        """Those that were called changed."""
        return self.called(*CHANGED)

    def called(self, *verdicts: str) -> int:
        """Those that were called one of these."""
        return sum(self.verdicts.get(verdict, 0) for verdict in verdicts)


@dataclass(frozen=True)
class Equal:
    """Equal code compared: splits of a pool at random into `blocks` processes a side. `rows`: the ids of those that had
    a figure in every process. `held` of `intervals` 95 % intervals held the ratio 1."""

    at: str
    gpubench: str
    processes: int
    blocks: int
    splits: int
    rows: list[str]
    intervals: int
    held: int
    outcomes: list[Outcome]


@dataclass(frozen=True)
class Injected:
    """One row and more of its work, as a fraction, judged at a margin: how much longer it took in the whole pool, which
    is known to `unsure` either way at 95 %, and in how many of the splits that was called a regression."""

    row: str
    more: float
    margin: float
    measured: float
    found: int
    of: int
    unsure: float = 0.0

    @property
    def promised(self) -> bool:
        """Whether a promise about so much more work is one about this row. Work of the margin itself may only not be
        called a regression where it took no longer than the margin: else that is what it is. Work beyond the margin
        must have taken longer by its share, as far as STRAYS and the pool's own noise let it be told."""
        if self.more <= self.margin:
            return self.measured <= self.margin
        return abs(self.measured - self.more) <= max(STRAYS * self.more, self.unsure)


@dataclass(frozen=True)
class Slower:
    """Real extra work compared with none, over splits of a pool at random."""

    at: str
    gpubench: str
    processes: int
    blocks: int
    splits: int
    injected: list[Injected]

    def share(self, more: float, margin: float) -> float | None:
        """Of all rows with so much more work that a promise is about, the share that was found at that margin; None
        where there was none."""
        chosen = [each for each in self.injected if (each.more, each.margin) == (more, margin) and each.promised]
        total = sum(each.of for each in chosen)
        return sum(each.found for each in chosen) / total if total else None


@dataclass(frozen=True)
class Calibration:
    """The self-checks of one device: `name` is the device's; None where one was not made."""

    name: str
    aa: Equal | None = None
    inject: Slower | None = None


def read(results: Path, key: str) -> Calibration | None:
    """What is kept of a device in a folder of run files; None where nothing is. UsageError where the file is broken."""
    found = _kept(results / FILE).get(key)
    return None if found is None else _from_json(found, jsonfile.shown(results / FILE))


def keep(results: Path, key: str, calibration: Calibration) -> Path:
    """Keep a device's self-checks, in place of those kept before; one that was not made now stays what it was."""
    path = results / FILE
    kept = _kept(path)
    new = {name: value for name, value in asdict(calibration).items() if value is not None}
    kept[key] = kept.get(key, {}) | new
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise jsonfile.cannot_write(path, error) from None
    document = {"schema": SCHEMA, "devices": kept}
    jsonfile.write_atomic(path, (jsonfile.dumps(document, indent=1) + "\n").encode())
    return path


def _kept(path: Path) -> dict[str, Any]:
    """The entries of the file as they are, by the device's key."""
    if not path.exists():
        return {}
    where = jsonfile.shown(path)
    content = jsonfile.loads(jsonfile.read_bytes(path), where)
    if not isinstance(content, dict) or content.get("schema") != SCHEMA or not isinstance(content.get("devices"), dict):
        raise UsageError(f"{where}: not a calibration of this gpubench, expected schema {SCHEMA}", f"remove {where}")
    return dict(content["devices"])


def _from_json(value: Any, where: str) -> Calibration:
    """A device's entry. It is our own file: whatever does not fit makes it broken as a whole."""
    try:
        aa, inject = value.get("aa"), value.get("inject")
        return Calibration(
            str(value["name"]),
            None if aa is None else Equal(**aa | {"outcomes": [Outcome(**each) for each in aa["outcomes"]]}),
            None if inject is None else Slower(**inject | {"injected": [Injected(**i) for i in inject["injected"]]}),
        )
    except (TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"{where}: a broken calibration: {error}", f"remove {where}") from None
