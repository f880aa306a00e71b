"""Where runs live: names for new ones, the words that mean a stored one, and the ceilings kept of each device."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import os
import re
import secrets
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpubench.errors import NothingMeasured, UsageError
from gpubench.nearest import did_you_mean
from gpubench.result import Ceiling, Run
from gpubench.store import abfile, embedded, journal, jsonfile, runfile
from gpubench.store.abfile import AbRun
from gpubench.store.baseline import Baselines
from gpubench.store.journal import RunWriter

__all__ = ["RunWriter", "Store", "default_folder", "read_run", "read_runs"]

CEILINGS_SCHEMA = "gpubench.ceilings/1"
FORMS = "a run is a file, latest, latest~N, @BASELINE or ref:NAME"

_DATED = re.compile(r"[0-9]{8}-[0-9]{6}-")
_VENDOR = frozenset({"nvidia", "geforce", "amd", "intel", "r", "tm", "cpu", "gpu", "processor", "corporation"})


def default_folder() -> Path:
    """The folder of runs where nothing else is set: the user's data folder."""
    from platformdirs import user_data_path

    return user_data_path("gpubench", appauthor=False) / "results"


def reference_folder() -> Path | None:
    """The folder of reference runs of known hardware, in a checkout; None where gpubench was installed without them."""
    folder = Path(__file__).resolve().parents[2] / "results" / "reference"
    return folder if folder.is_dir() else None


def read_run(path: Path) -> Run:
    """The run of a file, with the rows of a journal left beside it; the path may also be a journal's own, or an HTML
    report of one run.

    A run that never finished has the status "partial".
    """
    found = read_measured(path)
    if isinstance(found, AbRun):
        where = jsonfile.shown(path)
        raise UsageError(f"{where}: an A/B measurement, not a run", f"gpubench compare {where}")
    return found


def read_measured(path: Path) -> Run:
    """As `read_run`; of the file of an A/B measurement, and of a report of one, its AbRun."""
    if path.name.endswith(".journal") and path.is_file():
        return journal.read(path)
    if not path.exists():
        left = [journal.read(one) for one in journal.beside(path) if journal.has_rows(one)]
        if left:
            return max(left, key=lambda run: run.started_at)
    runs = [abfile.decode(*each) for each in _documents(path)] if holds_ab(path) else read_runs(path)
    if len(runs) > 1:
        where = jsonfile.shown(path)
        raise UsageError(f"{where}: a comparison of {len(runs)} runs, not one", f"gpubench compare {where}")
    run = runs[0]
    if run.status == "partial":
        for one in journal.beside(path):
            more = journal.read(one) if journal.has_rows(one) else run
            if more.run_id == run.run_id and len(more.records) >= len(run.records):
                run = more
    return run


def holds_ab(path: Path) -> bool:
    """Whether a file is that of an A/B measurement, or a report of one; or a journal that is all that is left of it."""
    mark = f'"{abfile.FAMILY}/'.encode()
    with suppress(OSError, ValueError, EOFError, UsageError):  # not there, damaged, cut short: whoever reads it says so
        for one in [path] if path.is_file() else journal.beside(path):
            with gzip.open(one) if one.suffix == ".gz" else open(one, "rb") as file:
                begins = file.read(100)
            if embedded.is_html(begins):
                found = _documents(path)
                begins = found[0][0][:100] if len(found) == 1 else b""
            if mark in begins:
                return True
    return False


def read_runs(path: Path) -> list[Run]:
    """The runs of a file: one of a run file, of an HTML report all that it shows, the newest last."""
    return [runfile.decode(*each) for each in _documents(path)]


def _documents(path: Path) -> list[tuple[bytes, str]]:
    """The texts of a file, one or those inside an HTML report, each with what to call the file in an error."""
    data, where = jsonfile.read_bytes(path), jsonfile.shown(path)
    return [(one, where) for one in (embedded.documents(data, where) if embedded.is_html(data) else [data])]


class Store:
    """The run files of one folder, which need not exist. Folders inside it are not searched.

    `baselines` are the project's, None where no @NAME is to be known.
    """

    def __init__(self, folder: Path, baselines: Baselines | None = None) -> None:
        self.folder = folder
        self.baselines = baselines

    def new_path(self, run: Run, what: str = "run") -> Path:
        """A free name for a new run: YYYYMMDD-HHMMSS-<device>-<what>-<4 hex>.json, with the time it started in UTC.

        `what` is the plan or the suites that were asked for. No text becomes a path: all but letters and digits go.
        """
        started = datetime.fromisoformat(run.started_at).astimezone(UTC).strftime("%Y%m%d-%H%M%S")
        device = _slug(str(run.device.get("name") or run.device.get("kind") or "device"), 24, _VENDOR) or "device"
        stem = f"{started}-{device}-{_slug(what, 48) or 'run'}"
        while True:
            path = self.folder / f"{stem}-{secrets.token_hex(2)}.json"
            if not path.exists() and not journal.beside(path):
                return path

    def runs(self) -> list[Path]:
        """Run files, newest first: by the time in the name, else by when the file was written.

        A run of which only the journal is left is listed by the path of the file it did not live to write.
        """
        found = {path: _age(path, path) for path in _files(self.folder) if _is_run_file(path)}
        for left in journal.journals(self.folder):
            path = journal.target(left)
            if path not in found and not path.exists() and journal.has_rows(left):
                found[path] = _age(path, left)
        return sorted(found, key=lambda path: found[path], reverse=True)

    def resolve(self, word: str, reference: Path | None = None) -> Path:
        """The file that a RUN word means: a path, latest, latest~N, @NAME (the newest run kept under it), ref:NAME or
        ref:NAME/RUN.

        `reference` is the folder of reference runs. NothingMeasured if nothing is stored yet.
        """
        if re.fullmatch(r"latest(~.*)?", word, re.DOTALL):
            return self._latest(word)
        if word.startswith("@") and self.baselines is not None:
            return self.baselines.find(word).paths[-1]
        if word.startswith("ref:"):
            files = reference_files(word, reference)
            if len(files) > 1:
                listed = ", ".join(f"{word}/{_stem(path)}" for path in files)
                raise UsageError(f"{word} has {len(files)} runs: name one", listed)
            return files[0]
        path = Path(word)
        try:
            if path.is_dir():
                raise UsageError(f"{jsonfile.shown(path)}: is a folder, not a run file", FORMS)
            if path.exists() or any(journal.has_rows(left) for left in journal.beside(path)):
                return path
        except (OSError, ValueError):  # too long, or holds a NUL: no such file
            pass
        stored = [str(self.folder / one.name) for one in self.runs()]
        beside = [str(path.with_name(one.name)) for one in _files(path.parent)]
        names = ["latest", *_references(reference), *beside, *stored]
        near = did_you_mean(word, [name for name in names if name != word])  # a link to nothing has its own name
        raise UsageError(f"no run file {jsonfile.shown(path)}{near}", FORMS)

    def read(self, word: str, reference: Path | None = None) -> Run:
        """The run that a RUN word means."""
        return read_run(self.resolve(word, reference))

    def orphans(self) -> list[Path]:
        """Journals that dead processes left behind."""
        return journal.orphans(self.folder)

    def recover(self, left: Path) -> Path | None:
        """Fold a journal left behind into its run file: the file's path, None if there was no row to save."""
        return journal.recover(left)

    def keep_ceilings(self, key: str, ceilings: Iterable[Ceiling]) -> None:
        """Keep measured ceilings of a device; those kept before under other names stay."""
        kept, _ = self.ceilings(key)
        merged = {_ceiling_key(one): one for one in (*kept, *ceilings)}
        content = {"schema": CEILINGS_SCHEMA, "key": key, "ceilings": runfile.plain(list(merged.values()))}
        path = self._ceilings_path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise jsonfile.cannot_write(path, error) from None
        jsonfile.write_atomic(path, (jsonfile.dumps(content, indent=1) + "\n").encode())

    def ceilings(self, key: str) -> tuple[list[Ceiling], str | None]:
        """The ceilings kept under a key, with source "stored"; and why there are none where the file is broken."""
        path = self._ceilings_path(key)
        if not path.exists():
            return [], None
        where = jsonfile.shown(path)
        try:
            content = jsonfile.loads(jsonfile.read_bytes(path), where)
            values = _kept(content, key, where)
            found = runfile.decode_ceilings(values, where)
        except UsageError as error:
            return [], f"stored ceilings ignored: {error.message}"
        return [dataclasses.replace(one, source="stored") for one in found], None

    def _ceilings_path(self, key: str) -> Path:
        return self.folder / "ceilings" / f"{_slug(key, 60)}-{hashlib.sha256(key.encode()).hexdigest()[:8]}.json"

    def _latest(self, word: str) -> Path:
        match = re.fullmatch(r"latest(?:~([0-9]{1,9}))?", word)
        if match is None:
            raise UsageError(f"no run {word!r}: N of latest~N is a whole number", "such as latest~1")
        back, runs = int(match[1] or 0), self.runs()
        if self.folder.exists() and not self.folder.is_dir():
            raise UsageError(f"no run is stored in {jsonfile.shown(self.folder)}: it is no folder", "--results DIR")
        if not runs:
            raise NothingMeasured(f"no run is stored in {jsonfile.shown(self.folder)}", "gpubench run")
        if back >= len(runs):
            count = "1 run is" if len(runs) == 1 else f"{len(runs)} runs are"
            oldest = "latest" if len(runs) == 1 else f"latest~{len(runs) - 1}"
            raise UsageError(f"no run {word}: {count} stored in {jsonfile.shown(self.folder)}", f"oldest: {oldest}")
        return runs[back]


def reference_files(word: str, reference: Path | None) -> list[Path]:
    """The files of ref:NAME, or the one of ref:NAME/RUN, among those that the folder lists: no word becomes a path."""
    known = _references(reference)
    name, _, stem = word.removeprefix("ref:").partition("/")
    if reference is None or not known:
        raise UsageError(f"no run {word!r}: no reference runs here", "a checkout of gpubench has them")
    if f"ref:{name}" not in known:
        near = did_you_mean(f"ref:{name}", known)
        raise UsageError(f"no reference {word!r}{near}", f"there are {', '.join(known)}")
    files = {_stem(path): path for path in _files(reference / name)}
    if not stem:
        return list(files.values())
    if stem in files:
        return [files[stem]]
    listed = [f"ref:{name}/{one}" for one in files]
    raise UsageError(f"no reference {word!r}{did_you_mean(word, listed)}", f"there are {', '.join(listed)}")


def _references(reference: Path | None) -> list[str]:
    """ref:NAME of every device that has reference runs."""
    if reference is None:
        return []
    try:
        return [f"ref:{name}" for name in sorted(os.listdir(reference)) if _files(reference / name)]
    except OSError:
        return []


def _files(folder: Path) -> list[Path]:
    """The JSON files of a folder, by name; none if there is no folder."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [folder / name for name in names if name.endswith((".json", ".json.gz")) and not name.startswith(".")]


def _is_run_file(path: Path) -> bool:
    """Whether to list a file as a run: by its name, or by how it begins where the name was chosen by hand."""
    if _DATED.match(path.name):
        return True
    try:
        with open(path, "rb") as file:
            start = file.read(64)
        return f'"{runfile.FAMILY}/'.encode() in start if path.suffix == ".json" else start.startswith(b"\x1f\x8b")
    except OSError:
        return False


def _age(path: Path, written: Path) -> tuple[str, int, str]:
    """What to sort runs by, later is newer."""
    try:
        changed = written.stat().st_mtime_ns
    except OSError:
        changed = 0
    dated = _DATED.match(path.name)
    when = dated[0] if dated else datetime.fromtimestamp(changed // 10**9, UTC).strftime("%Y%m%d-%H%M%S-")
    return when, changed, path.name


def _stem(path: Path) -> str:
    return path.name.partition(".json")[0]


def _slug(text: str, length: int, drop: frozenset[str] = frozenset()) -> str:
    """Text as lower-case letters, digits and hyphens; empty if it has none."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = [word for word in re.findall(r"[a-z0-9]+", ascii_text) if word not in drop]
    return "-".join(words)[:length].strip("-")


def _ceiling_key(ceiling: Ceiling) -> tuple[str, str, str | None, str | None]:
    return ceiling.kind, ceiling.name, ceiling.level, ceiling.dtype


def _kept(content: Any, key: str, where: str) -> list[Any]:
    """The ceilings of a kept file."""
    if not isinstance(content, dict) or content.get("schema") != CEILINGS_SCHEMA:
        raise UsageError(f"{where}: not ceilings kept by this gpubench, expected schema {CEILINGS_SCHEMA}")
    if content.get("key") != key or not isinstance(content.get("ceilings"), list):
        raise UsageError(f"{where}: not the ceilings of this device")
    return list(content["ceilings"])
