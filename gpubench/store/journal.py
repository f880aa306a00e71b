"""The journal of a run that is being measured: rows that survive a crash, a kill and a full disk.

Beside the run file RUN.json stands RUN.json.XXXXXXXX.journal, of a name no other process has: a line with the run's
head, then one line per record, update or counters of a row, each on the disk before the next case starts. Its writer
holds a lock on it, so that what a dead process left behind can be told from what is being written. RunWriter keeps both
files; it removes the journal when the run file is whole.
"""

from __future__ import annotations

import dataclasses
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpubench.errors import UsageError
from gpubench.result import Record, Run, RunStatus
from gpubench.store import abfile, jsonfile, runfile

if sys.platform != "win32":
    import fcntl

ELSEWHERE = "another place: --results DIR, or -o FILE"
"""What to type where a run's file cannot be written."""
REWRITE_S = 1.0
"""Least time between two rewrites of the run file."""
REWRITE_SHARE = 20
"""A rewrite is due after this many times what the last one took, so that large runs do not spend their time on it."""

_NAME = re.compile(r"(?P<run>.+\.json(?:\.gz)?)(?:\.[0-9a-f]{8})?\.journal", re.DOTALL)
_FIXED = frozenset({"schema", "run_id", "status", "records"})


class RunWriter:
    """Keeps one run on the disk while it is measured. It owns `run.records`: rows enter by `add` alone. An A/B
    measurement (`gpubench.store.abfile`) is kept in the same way.

    A run file that another run wrote at `path` stays whole until `close`: with `replace=False` it is a UsageError, with
    `replace=True` it is replaced then. `clock` gives seconds, for the pace of rewriting.
    """

    def __init__(
        self, path: Path, run: Run, replace: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Prove that the path can be written: UsageError before anything is measured, not after."""
        _check_target(path, replace)
        self.path = path
        self.run = run
        self._replace = replace
        self._clock = clock
        self._due = clock()
        self._mine: tuple[int, int, int] | None = None
        self._rows = [jsonfile.dumps(runfile.plain(record)) for record in run.records]
        self.journal = path.with_name(f"{path.name}.{secrets.token_hex(4)}.journal")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor: int | None = _create(self.journal)
        except (OSError, ValueError) as error:
            raise jsonfile.cannot_write(path, error, ELSEWHERE) from None
        try:
            head = _line("run", jsonfile.dumps(runfile.head(run)))
            self._append(head + "".join(_line("record", row) for row in self._rows))
            jsonfile.sync_folder(path.parent)
        except BaseException:
            self._drop_journal()
            raise

    def add(self, record: Record) -> None:
        """Save one more row. UsageError if it cannot be written; the rows before it stay readable."""
        row = jsonfile.dumps(runfile.plain(record))
        self._rows.append(row)
        self.run.records.append(record)
        self._append(_line("record", row))
        self._rewrite()

    def add_counters(self, index: int, counters: dict[str, Any]) -> None:
        """Give row `index` its counters, which a later pass brought, and save them."""
        line = _line("counters", jsonfile.dumps({"row": index, "values": counters}))
        record = self.run.records[index]
        record.counters = counters
        self._rows[index] = jsonfile.dumps(runfile.plain(record))
        self._append(line)
        self._rewrite()

    def update(self, **fields: Any) -> None:
        """Set fields of the run, such as its ceilings, and save them."""
        known = {field.name for field in dataclasses.fields(self.run)}
        if wrong := sorted(set(fields) - known | set(fields) & _FIXED):
            raise TypeError(f"a run has no such field to set: {', '.join(wrong)}")
        line = _line("update", jsonfile.dumps({name: runfile.plain(value) for name, value in fields.items()}))
        for name, value in fields.items():
            setattr(self.run, name, value)
        self._append(line)
        self._rewrite()

    def settle(self, status: RunStatus, ended_at: str) -> None:
        """Write the file as it is to stay should this process be killed; counters and verdicts may still be added."""
        self.run.status, self.run.ended_at = status, ended_at
        if self._rows:
            mine = self._mine is not None and _identity(self.path) == self._mine
            self._write(replace=self._replace or mine)
            self._mine = _identity(self.path)

    def close(self, status: RunStatus, ended_at: str | None = None) -> Path | None:
        """Write the finished file, remove the journal, and return the file's path; None if there was no row to save.

        `ended_at` is now unless given. On a UsageError the journal stays, and `close` may be called again.
        """
        if self._descriptor is not None:
            self.settle(status, ended_at or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
            self._drop_journal()
        return self.path if self._rows else None

    def _append(self, text: str) -> None:
        """Append whole lines to the journal, or none."""
        if self._descriptor is None:
            raise ValueError("the run is closed")
        size = os.fstat(self._descriptor).st_size
        try:
            jsonfile.write_all(self._descriptor, text.encode())
            os.fsync(self._descriptor)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._descriptor, size)
            raise jsonfile.cannot_write(self.journal, error) from None

    def _rewrite(self) -> None:
        """Bring the run file up to date if that is due and the file is ours."""
        start = self._clock()
        if start < self._due or not self._rows:
            return
        there = _identity(self.path)
        if there is not None and there != self._mine:
            return
        try:
            self._write(replace=there is not None)
        except UsageError:
            if there is None and _identity(self.path) is not None:  # another process was first: leave its file
                return
            raise
        self._mine = _identity(self.path)
        self._due = start + max(REWRITE_S, REWRITE_SHARE * (self._clock() - start))

    def _write(self, replace: bool) -> None:
        jsonfile.write_atomic(self.path, runfile.document(runfile.head(self.run), self._rows), replace)

    def _drop_journal(self) -> None:
        """What cannot be removed does no harm: the run file says that it is finished."""
        if self._descriptor is not None:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None
        with suppress(OSError):
            self.journal.unlink()


def target(journal: Path) -> Path:
    """The run file a journal belongs to, whether it is there or not."""
    match = _NAME.fullmatch(journal.name)
    if match is None:
        raise UsageError(f"{jsonfile.shown(journal)}: not the name of a journal", "expected RUN.json.journal")
    return journal.with_name(match["run"])


def beside(path: Path) -> list[Path]:
    """The journals of a run file, by name."""
    return [journal for journal in journals(path.parent) if target(journal) == path]


def journals(folder: Path) -> list[Path]:
    """The journals in a folder, by name."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(folder / name for name in names if _NAME.fullmatch(name))


def read(journal: Path) -> Run:
    """The run in a journal, with status "partial". A last line cut short is no row; any other fault is a UsageError."""
    where = jsonfile.shown(journal)
    lines = jsonfile.read_bytes(journal).split(b"\n")
    lines.pop()  # what follows the last newline was cut short by the crash
    content: dict[str, Any] = {}
    records: list[Any] = []
    for number, line in enumerate(lines, 1):
        place = f"{where}: line {number}"
        kind, value = _entry(jsonfile.loads(line, place), place, first=number == 1)
        if kind == "record":
            records.append(value)
            continue
        if kind == "counters":
            _give_counters(records, value, place)
            continue
        if kind == "run":
            abfile.check_schema(value, where)
        elif not isinstance(value, dict) or _FIXED & set(value):
            raise UsageError(f"{place}: not a line of a gpubench journal")
        content |= value
    if not content:
        raise UsageError(f"{where}: holds nothing: the run ended before its first line was written")
    return abfile.from_json({**content, "status": "partial", "records": records}, where)


def has_rows(journal: Path) -> bool:
    """Whether a journal holds a whole record."""
    try:
        with open(journal, "rb") as file:
            return any(line.startswith(b'{"record":') and line.endswith(b"\n") for line in file)
    except OSError:
        return False


def orphans(folder: Path) -> list[Path]:
    """Journals in a folder that dead processes left behind, by name."""
    left = []
    for journal in journals(folder):
        with _lock(journal) as held:
            if held and _has_head(journal):
                left.append(journal)
    return left


def recover(journal: Path) -> Path | None:
    """Fold a journal left behind into its run file and remove it: the file's path, None if there was no row to save.

    A file that another run has written there since stays; the rows then go to a new file beside it.
    """
    with _lock(journal) as held:
        if not held:
            if not journal.exists():
                return None
            raise UsageError(f"{jsonfile.shown(journal)}: a run is still writing it")
        run = read(journal)
        saved = _fold(run, target(journal)) if run.records else None
        with suppress(OSError):
            journal.unlink()
        return saved


def _fold(run: Run, path: Path) -> Path:
    if not path.exists():
        jsonfile.write_atomic(path, runfile.encode(run), replace=False)
        return path
    try:
        there: Run | None = abfile.decode(jsonfile.read_bytes(path), str(path))
    except UsageError:
        there = None
    if there is None or there.run_id != run.run_id:
        stem, dot, suffix = path.name.partition(".json")
        path = path.with_name(f"{stem}-recovered-{secrets.token_hex(4)}{dot}{suffix}")
        jsonfile.write_atomic(path, runfile.encode(run), replace=False)
    elif there.status == "partial" and len(run.records) >= len(there.records):
        jsonfile.write_atomic(path, runfile.encode(run))
    return path


def _line(kind: str, text: str) -> str:
    return f'{{"{kind}":{text}}}\n'


def _entry(line: Any, place: str, first: bool) -> tuple[str, Any]:
    """The kind and the value of a journal line."""
    if isinstance(line, dict) and len(line) == 1:
        kind, value = next(iter(line.items()))
        if kind in (("run",) if first else ("record", "counters", "update")):
            return kind, value
    raise UsageError(f"{place}: not a line of a gpubench journal")


def _give_counters(records: list[Any], value: Any, place: str) -> None:
    """Put counters into the row that they belong to, among those read before."""
    match value:
        case {"row": int(index), "values": dict(values)} if 0 <= index < len(records):
            records[index] |= {"counters": values}
        case _:
            raise UsageError(f"{place}: not a line of a gpubench journal")


def _check_target(path: Path, replace: bool) -> None:
    name = jsonfile.shown(path)
    if not path.name.endswith((".json", ".json.gz")):
        raise UsageError(
            f"cannot save a run as {name}: its name must end in .json or .json.gz", f"-o {path.name or 'run'}.json"
        )
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # not there; or no such path can be, which creating the journal will say
        return
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise UsageError(f"cannot save a run as {name}: it is {kind}")
    if not replace:
        raise UsageError(f"{name}: exists already and is not replaced")


def _create(journal: Path) -> int:
    """A new journal, open for appending and locked until its descriptor is closed."""
    descriptor = os.open(journal, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
    if sys.platform != "win32":
        with suppress(OSError):  # a file system without locks: its journals never count as left behind
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


@contextmanager
def _lock(journal: Path) -> Iterator[bool]:
    """Hold the lock of a journal: True if its writer is dead and it is still there."""
    if sys.platform == "win32":
        yield False
        return
    try:
        descriptor = os.open(journal, os.O_RDWR)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            held = False
        else:
            held = os.fstat(descriptor).st_nlink > 0
        yield held
    finally:
        os.close(descriptor)


def _has_head(journal: Path) -> bool:
    """Whether the first line is whole; a journal without it may be one that is just being created."""
    with open(journal, "rb") as file:
        return file.readline().endswith(b"\n")


def _identity(path: Path) -> tuple[int, int, int] | None:
    """What changes when another file takes a name; None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns
