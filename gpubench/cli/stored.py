"""What the commands on stored runs begin with: settings, the store, the run that a word means."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from gpubench.cli.screen import Screen
    from gpubench.result import Run
    from gpubench.settings import Settings
    from gpubench.store.baseline import Baselines
    from gpubench.store.folder import Store


def begin(**flags: object) -> tuple[Settings, Screen]:
    """The settings that flags, environment and file come to, and where words go. A variable that looks like a setting
    misspelt is said: it may be what a build was to go by."""
    import os
    from pathlib import Path

    from gpubench.cli.screen import Screen
    from gpubench.settings import resolve

    settings = resolve(flags, None, os.environ, Path.cwd())
    screen = Screen(settings.no_color, settings.quiet)
    for line in settings.warnings:
        screen.warn(f"gpubench: {line}")
    return settings, screen


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


def read(path: Path, screen: Screen) -> Run:
    """The run of a file; one that is not complete is said on stderr."""
    import gc

    from gpubench.store.folder import read_run

    run = read_run(path)
    gc.freeze()  # it stays to the end: a search for garbage among thousands of rows takes a tenth of the command
    if run.status != "complete":
        screen.warn(f"gpubench: this run is {run.status}: {len(run.records)} rows")
    return run
