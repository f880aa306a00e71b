"""What the file of an A/B measurement says, for `ab` when it has measured and for `compare` later."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpubench.ab import judge as abjudge
from gpubench.cli import outcome
from gpubench.cli.output import from_here
from gpubench.cli.selfcheck import say_rates
from gpubench.cli.stored import store_of
from gpubench.exits import Exit
from gpubench.keys import KEYS
from gpubench.report import ab as report
from gpubench.store.folder import read_measured

if TYPE_CHECKING:
    from gpubench.cli.screen import Screen
    from gpubench.settings import Settings
    from gpubench.store.abfile import AbRun
    from gpubench.verdict import Verdict


def show(
    found: AbRun,
    path: Path,
    settings: Settings,
    wanted: outcome.Wanted,
    verdicts: Collection[Verdict],
    screen: Screen,
    why: str | None = None,
    broken_off: Sequence[Exit] = (),
) -> Exit:
    """Judge and show, or tell all of the row that `why` means; the exit code, to which those of what broke the
    measurement off belong. The margins are those that it was measured for, unless this command is given another."""
    judged = abjudge.judged(found, margin_given(settings))
    code, failing = outcome.decided(judged, verdicts, broken_off)
    if why is not None:
        screen.write(report.why(judged, why))
    else:
        outcome.show(judged, wanted, failing, screen)
    outcome.write(judged, wanted, failing, screen)
    outcome.tell(judged, code, wanted.form, screen, f"gpubench compare {from_here(path)}" if why is None else None)
    say_rates(store_of(settings).folder, found, "ab", screen)
    return code


def margin_given(settings: Settings) -> float | None:
    """The margin that --margin or its variable gives a command, None where neither does. What a project's file says
    does not count: elsewhere or later it would change a verdict without a word."""
    key = KEYS["margin"]
    return settings.margin if settings.resolved["margin"].origin in (key.flag, key.variable) else None


def show_file(
    path: Path,
    settings: Settings,
    wanted: outcome.Wanted,
    verdicts: Collection[Verdict],
    screen: Screen,
    why: str | None,
) -> Exit:
    """As `show`, of a file; one that was broken off passes no gate, as it did not when it was."""
    from gpubench.store.abfile import AbRun

    found = read_measured(path)
    assert isinstance(found, AbRun)
    broken_off = [] if found.status == "complete" else [Exit.FAILED]
    return show(found, path, settings, wanted, verdicts, screen, why, broken_off)
