"""Which runs a comparison is of: what its words mean, the runs of a baseline, the reference that fits."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpubench.baseline import read
from gpubench.cli.output import from_here
from gpubench.cli.screen import Screen
from gpubench.errors import NothingMeasured, UsageError
from gpubench.jsonfile import shown
from gpubench.report.words import counted
from gpubench.result import Run
from gpubench.store import Store, read_run, reference_files, reference_folder
from gpubench.suite import name_of


@dataclass(frozen=True)
class Sides:
    """The runs to compare, and what to call them. `base` holds every run there is of it, in no order; `notes` is what a
    reader must know of the choice."""

    base: Sequence[Run]
    base_name: str
    new: Run
    new_name: str
    notes: Sequence[str] = ()


def sides_of(words: Sequence[str], baseline: str | None, store: Store, screen: Screen) -> Sides:
    """What the words of a comparison mean: none is the project's baseline, or the run before, with the latest; one is
    the base, compared with the latest; of several the last is new. What was left out is said."""
    said = bool(words)
    bases = list(words[:-1] if len(words) > 1 else words) or [_default_base(baseline, store)]
    new_path = store.resolve(words[-1] if len(words) > 1 else "latest", reference_folder())
    new_name = from_here(new_path)
    if len(words) < 2:
        screen.say(f"latest run: {new_name}")
    new = read_run(new_path)
    notes: list[str] = []
    found = [_base(word, new, store, notes) for word in bases]
    if not said:
        screen.say(f"base: {found[0][0]}")
    runs = [run for _, each in found for run in each]
    name = found[0][0] if len(found) == 1 else f"{len(found)} runs, {found[0][0]} …"
    return Sides(runs, name, new, new_name, notes)


def _default_base(baseline: str | None, store: Store) -> str:
    if baseline is not None:
        return f"@{baseline}"
    if len(store.runs()) == 1:
        where = shown(store.folder)
        raise NothingMeasured(f"no baseline: a single run is stored in {where}", "gpubench compare ref:NAME, or BASE")
    return "latest~1"


def _base(word: str, new: Run, store: Store, notes: list[str]) -> tuple[str, list[Run]]:
    """The runs that a word for the base means, and their name."""
    if word.startswith("@") and store.baselines is not None:
        found = store.baselines.find(word, new)
        runs = [read(path) for path in found.paths]
        return (found.word if len(runs) == 1 else f"{found.word}, {len(runs)} runs"), runs
    if word.startswith("ref:"):
        return _reference(word, new, notes)
    try:
        path = store.resolve(word, reference_folder())
    except UsageError as error:
        if word.startswith("latest") or os.path.lexists(word):
            raise
        raise NothingMeasured(f"no baseline: {error.message}", "gpubench baseline save NAME latest keeps one") from None
    return from_here(path), [read_run(path)]


def _reference(word: str, new: Run, notes: list[str]) -> tuple[str, list[Run]]:
    """The reference run with the most rows of the new one, and of it those rows: nobody promised to measure the others,
    so they are not missed. A row under other conditions counts, and is then not comparable."""
    names = {name_of(record) for record in new.records}
    runs = {
        f"{word.partition('/')[0]}/{path.name.partition('.json')[0]}": read_run(path)
        for path in reference_files(word, reference_folder())
    }
    shared = {name: [record for record in run.records if name_of(record) in names] for name, run in runs.items()}
    name = max(shared, key=lambda name: len(shared[name]))
    if not shared[name]:
        raise NothingMeasured(f"{word} has no row of the new run", f"its rows: gpubench show {name} --all")
    left = len(runs[name].records) - len(shared[name])
    if left:
        notes.append(f"{counted(left, 'row')} of {name} {'is' if left == 1 else 'are'} not in the new run: left out")
    return name, [replace(runs[name], records=shared[name])]
