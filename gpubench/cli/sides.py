"""Which runs a comparison is of: what its words mean, the runs of a baseline, the reference that fits."""

from __future__ import annotations

import os
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from gpubench.cli.output import from_here
from gpubench.cli.screen import Screen
from gpubench.compare.comparable import run_mismatches
from gpubench.errors import NotComparable, NothingMeasured, UsageError
from gpubench.report.words import counted
from gpubench.result import Run
from gpubench.store.baseline import Baseline, Baselines, fingerprint_of, read
from gpubench.store.folder import Store, read_run, read_runs, reference_files, reference_folder
from gpubench.store.jsonfile import shown
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
    the base, compared with the latest, or a report of several runs; of several the last is new. What was left out is
    said."""
    if len(words) == 1 and (inside := held(words[0])) is not None:
        return inside
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


def held(word: str) -> Sides | None:
    """The runs that a word's HTML report of several holds, the last of which is new; None for any other word."""
    path = Path(word)
    if path.suffix.lower() not in (".html", ".htm") or not path.is_file():
        return None
    runs = read_runs(path)
    if len(runs) < 2:
        return None
    *bases, new = runs
    name = bases[0].run_id if len(bases) == 1 else f"{len(bases)} runs, {bases[0].run_id} …"
    return Sides(bases, name, new, new.run_id)


def kept(name: str, new: Run, baselines: Baselines, unlike: bool, make: str) -> tuple[str, list[Run]]:
    """What to call a project's baseline, and its runs of the new run's device. With `unlike`, where it has none of that
    device and is of one other, those.

    NothingMeasured where there is no baseline of that name, NotComparable where none of its runs is of this device;
    `make` is the command that makes one.
    """
    try:
        found = baselines.named(name)
    except NothingMeasured as error:
        raise NothingMeasured(error.message, make) from None
    fitting = [one for one in found if one.fingerprint == fingerprint_of(new)]
    if not fitting and not (unlike and len(found) == 1):
        differing = run_mismatches(read(found[-1].paths[-1]), new)
        why = "; ".join(map(str, differing)) or "none is of this device"
        raise NotComparable(f"baseline {name!r} has no run of this device: {why}", make)
    (one,) = fitting or found
    return _named(one), [read(path) for path in one.paths]


def within(runs: Sequence[Run], names: Set[str]) -> tuple[list[Run], list[str]]:
    """The runs with their rows of these suites and benchmarks (suite/benchmark) alone, and what a reader must know of
    the rest."""
    chosen = [
        replace(run, records=[each for each in run.records if {each.suite, f"{each.suite}/{each.benchmark}"} & names])
        for run in runs
    ]
    left = len(runs[-1].records) - len(chosen[-1].records)
    words = (
        f"{counted(left, 'row')} of the baseline, of benchmarks not asked for, {'is' if left == 1 else 'are'} left out"
    )
    return chosen, [words] if left else []


def _named(one: Baseline) -> str:
    """What to call a baseline's runs: its word, and how many they are."""
    return one.word if len(one.paths) == 1 else f"{one.word}, {len(one.paths)} runs"


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
        return _named(found), [read(path) for path in found.paths]
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
