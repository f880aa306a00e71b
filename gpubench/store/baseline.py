"""Baselines: copies of run files, kept under a name beside the project, to compare later runs with.

A baseline NAME holds runs of any number of devices, told apart by the fingerprint of what must match for two runs to be
comparable: `NAME/<fingerprint>.json.gz`, and where several runs of one device are kept, so that their spread is known,
`NAME/<fingerprint>-2.json.gz` and so on, oldest first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpubench.errors import NothingMeasured, UsageError
from gpubench.nearest import did_you_mean
from gpubench.result import Run
from gpubench.store import jsonfile, runfile

FOLDER = "gpubench-baselines"
"""The folder of baselines, below the project's."""
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""What a baseline may be called: a word that is the name of a folder everywhere."""

_FILE = re.compile(r"([0-9a-f]{16})(?:-([2-9]|[1-9][0-9]{1,3}))?\.json\.gz")
_DEVICES = re.compile(r"(?:CON|PRN|AUX|NUL|COM[0-9]|LPT[0-9])(?:\..*)?", re.IGNORECASE)
"""Names that are devices on Windows, in every folder."""


@dataclass(frozen=True)
class Baseline:
    """The runs kept under a name of devices with one fingerprint, oldest first."""

    name: str
    fingerprint: str
    paths: tuple[Path, ...]

    @property
    def word(self) -> str:
        """The RUN word for exactly this one."""
        return f"@{self.name}/{self.fingerprint}"


class Baselines:
    """The baselines of one folder, which need not exist. Files of other names in it are nobody's business."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def all(self) -> list[Baseline]:
        """Every baseline, by name and fingerprint."""
        try:
            names = sorted(os.listdir(self.folder))
        except OSError:
            return []
        return [one for name in names if re.fullmatch(NAME, name) for one in self._of(name)]

    def named(self, name: str) -> list[Baseline]:
        """The baselines of a name, one for each fingerprint. NothingMeasured, saying what there is, if none."""
        check_name(name)
        found = self._of(name)
        if found:
            return found
        known = list(dict.fromkeys(one.name for one in self.all()))
        if known:
            near = did_you_mean(name, known)
            raise NothingMeasured(f"no baseline {name!r}{near}", f"there are {', '.join(known)}")
        where = jsonfile.shown(self.folder)
        raise NothingMeasured(f"no baseline {name!r}: none is kept in {where}", f"gpubench baseline save {name} latest")

    def find(self, word: str, run: Run | None = None) -> Baseline:
        """The baseline that @NAME or @NAME/FINGERPRINT means.

        Of several devices the one whose fingerprint is that of `run`, else the only one. NothingMeasured if there is no
        such baseline, UsageError if there are several and none fits.
        """
        name, _, wanted = word.removeprefix("@").partition("/")
        found = self.named(name)
        fits = [one for one in found if one.fingerprint == (wanted or fingerprint_of(run))]
        if fits:
            return fits[0]
        listed = ", ".join(one.word for one in found)
        if wanted:
            raise UsageError(f"no run {word!r}{did_you_mean(word, [one.word for one in found])}", f"there are {listed}")
        if len(found) == 1:
            return found[0]
        which = "name one" if run is None else "none is of the device of the new run"
        raise UsageError(f"baseline {name!r} has runs of {len(found)} devices: {which}", listed)

    def save(self, name: str, runs: Run | Sequence[Run], replace: bool = False, add: bool = False) -> list[Path]:
        """Keep copies of runs under a name; the paths of the copies.

        Where the name has runs of such a device already, `replace` puts these in their place and `add` keeps them
        beside them. UsageError where neither is said, where a run is none to hold others against, or is kept already:
        then nothing is written.
        """
        check_name(name)
        found = sorted([runs] if isinstance(runs, Run) else runs, key=lambda run: run.started_at)
        groups: dict[str, list[Run]] = {}
        for run in found:
            groups.setdefault(_fit(run), []).append(run)
        kept = {one.fingerprint: one.paths for one in self._of(name) if one.fingerprint in groups}
        for fingerprint, group in groups.items():
            self._check(name, group, kept.get(fingerprint, ()), replace, add)
        folder = self.folder / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise jsonfile.cannot_write(folder, error) from None
        written = []
        for fingerprint, group in groups.items():
            there = kept.get(fingerprint, ())
            begin = _number(there[-1]) + 1 if there and add else 1
            paths = [folder / _file_name(fingerprint, number) for number, _ in enumerate(group, begin)]
            for path, run in zip(paths, group, strict=True):
                jsonfile.write_atomic(path, runfile.encode(run), replace=replace)
            if replace:
                _delete(other for other in there if other not in paths)
            written += paths
        return written

    def remove(self, word: str) -> list[Path]:
        """Delete the runs of NAME, or of NAME/FINGERPRINT alone; the files that are gone."""
        name, _, wanted = word.removeprefix("@").partition("/")
        found = [self.find(word)] if wanted else self.named(name)
        gone = [path for one in found for path in one.paths]
        _delete(gone)
        with suppress(OSError):  # it holds something else
            (self.folder / name).rmdir()
        return gone

    def _of(self, name: str) -> list[Baseline]:
        try:
            files = os.listdir(self.folder / name)
        except OSError:
            return []
        found: dict[str, list[Path]] = {}
        for file in files:
            if match := _FILE.fullmatch(file):
                found.setdefault(match[1], []).append(self.folder / name / file)
        return [Baseline(name, each, tuple(sorted(found[each], key=_number))) for each in sorted(found)]

    def _check(self, name: str, group: Sequence[Run], there: Sequence[Path], replace: bool, add: bool) -> None:
        """UsageError where runs of one device may not be kept beside those that are there. A run that counts twice
        would make the spread of a baseline look smaller than it is."""
        if there and not (replace or add):
            count = "a run" if len(there) == 1 else f"{len(there)} runs"
            raise UsageError(
                f"baseline {name!r} has {count} of this device already", "--replace, or --add to keep both"
            )
        known = {read(path).run_id for path in there} if add else set()
        for run in group:
            if run.run_id in known:
                raise UsageError(f"baseline {name!r} holds run {run.run_id} already", "add another run of this device")
            known.add(run.run_id)


def read(path: Path) -> Run:
    """The run of a baseline's file. UsageError where it is damaged, as by a merge, or where git keeps it elsewhere."""
    try:
        return runfile.decode(jsonfile.read_bytes(path), jsonfile.shown(path))
    except UsageError as error:
        again = f"the file from git again, git lfs pull, or gpubench baseline save {path.parent.name} RUN --replace"
        raise UsageError(error.message, again) from None


def fingerprint_of(run: Run | None) -> str | None:
    """The fingerprint of a run's device, None where it has none that could be one: it may become the name of a file."""
    found = None if run is None else run.fingerprint.get("id")
    return found if isinstance(found, str) and re.fullmatch("[0-9a-f]{16}", found) else None


def check_name(name: str) -> None:
    """UsageError unless a text is a name for a baseline: never a path."""
    if not re.fullmatch(NAME, name) or name.endswith(".") or _DEVICES.fullmatch(name):
        raise UsageError(f"{name!r} is no name for a baseline", "letters, digits, . _ and -, such as main or v1.2")


def _fit(run: Run) -> str:
    """The fingerprint of a run that others may be held against; UsageError says why one may not."""
    if run.status != "complete":
        raise UsageError(f"this run is {run.status}: rows are missing, and a baseline needs them all", "run it again")
    if run.is_quick:
        raise UsageError(
            "this run is tagged quick: too few samples to hold others against",
            "run something without --quick, such as gpubench run ci; no word is the plan quick",
        )
    if not any(record.status == "ok" for record in run.records):
        raise UsageError("this run has no row with a number: there is nothing to hold others against")
    fingerprint = fingerprint_of(run)
    if fingerprint is None:
        raise UsageError("this run has no fingerprint of its device", "measure it again with this gpubench")
    return fingerprint


def _file_name(fingerprint: str, number: int = 1) -> str:
    return f"{fingerprint}.json.gz" if number == 1 else f"{fingerprint}-{number}.json.gz"


def _number(path: Path) -> int:
    match = _FILE.fullmatch(path.name)
    assert match is not None
    return int(match[2] or 1)


def _delete(paths: Iterable[Path]) -> None:
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise UsageError(f"cannot delete {jsonfile.shown(path)}: {error.strerror}") from None
