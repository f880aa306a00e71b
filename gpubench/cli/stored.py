"""What the commands on stored runs begin with: settings, the store, the run that a word means."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpubench.cli.screen import Screen
    from gpubench.result import Record, Run
    from gpubench.settings import Settings
    from gpubench.store.baseline import Baselines
    from gpubench.store.folder import Store

SAID = 5
"""Rows named where a word means several."""


def begin(**flags: object) -> tuple[Settings, Screen]:
    """The settings that flags, environment and file come to, and where words go."""
    import os
    from pathlib import Path

    from gpubench.cli.screen import Screen
    from gpubench.settings import resolve

    settings = resolve(flags, None, os.environ, Path.cwd())
    return settings, Screen(settings.no_color, settings.quiet)


def store_of(settings: Settings) -> Store:
    """Where runs live, and the project's baselines."""
    from gpubench.store.folder import Store, default_folder

    return Store(settings.results or default_folder(), baselines_of(settings))


def baselines_of(settings: Settings) -> Baselines:
    """The project's baselines."""
    from gpubench.store.baseline import FOLDER, Baselines

    return Baselines(settings.project / FOLDER)


def find(word: str | None, store: Store, screen: Screen) -> Path:
    """The file a word means; the latest where there is none, said on stderr."""
    from gpubench.cli.output import from_here
    from gpubench.store.folder import reference_folder

    path = store.resolve("latest" if word is None else word, reference_folder())
    if word is None:
        screen.say(f"latest run: {from_here(path)}")
    return path


def row_of(run: Run, case: str | None, params: Sequence[str]) -> Record:
    """The one row that CASE and -p mean: CASE is a record's id, or words that it has and no other, such as n=1793.

    UsageError where no row or more than one is meant.
    """
    from gpubench.errors import UsageError
    from gpubench.nearest import did_you_mean
    from gpubench.params import parse_params

    asked = parse_params(params)
    rows = [
        record
        for record in run.records
        if all((record.params | record.conditions.by_name).get(name) in values for name, values in asked.items())
    ]
    if case is not None:
        words = set(case.split())
        rows = [record for record in rows if record.id == case] or [row for row in rows if words <= _words(row)]
    if len(rows) == 1:
        return rows[0]
    meant = " ".join([*([] if case is None else [case]), *(f"-p {text}" for text in params)]) or "no CASE"
    if not rows:
        near = did_you_mean(case or "", [record.id for record in run.records])
        raise UsageError(f"{meant}: no such row{near}", "CASE is a record's id, or -p values that leave one row")
    listed = ", ".join(record.id for record in rows[:SAID])
    more = f" and {len(rows) - SAID} more" if len(rows) > SAID else ""
    raise UsageError(f"{meant} is {len(rows)} rows: {listed}{more}", "more -p leave one")


def _words(record: Record) -> set[str]:
    """What a row may be called by: suite, benchmark, parameters and conditions."""
    named = {f"{name}={value}" for name, value in (record.params | record.conditions.by_name).items()}
    path = f"{record.suite}/{record.benchmark}"
    return {record.id, record.suite, record.benchmark, path, *named, *record.conditions.by_name.values()}


def read(path: Path, screen: Screen) -> Run:
    """The run of a file; one that is not complete is said on stderr."""
    from gpubench.store.folder import read_run

    run = read_run(path)
    if run.status != "complete":
        screen.warn(f"gpubench: this run is {run.status}: {len(run.records)} rows")
    return run
