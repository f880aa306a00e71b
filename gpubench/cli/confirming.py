"""Rows of a check that look slower, measured again: in further processes, or in turn with a base that can be run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from gpubench import confirm
from gpubench.ab import judge as abjudge
from gpubench.cli import ab_session, outcome
from gpubench.cli.output import check_folder, from_here
from gpubench.cli.screen import Screen
from gpubench.cli.session import Request, measure
from gpubench.cli.stored import store_of
from gpubench.errors import DeviceUnavailable, NotComparable, UsageError
from gpubench.exits import Exit
from gpubench.report.words import counted
from gpubench.result import Run
from gpubench.store.abfile import AbRun
from gpubench.verdict import Judged

if TYPE_CHECKING:
    from gpubench.cli.checked import Checked
    from gpubench.settings import Settings

FOLDER = "confirmations"
"""The folder of rows measured again, inside that of run files: `latest` stays the run that was checked."""
INTERRUPTED = (Exit.SIGINT, Exit.SIGTERM)
Confirmed = tuple[Exit | None, Judged]
"""The comparison with what was found; an exit code where that was interrupted."""


def check_place(settings: Settings) -> None:
    """UsageError where further runs could not be kept: better said before the first than after it."""
    folder = store_of(settings).folder / (ab_session.FOLDER if settings.base else FOLDER)
    try:
        check_folder(folder)
    except UsageError as error:
        raise UsageError(
            error.message, "another folder: --results DIR; --confirm none measures nothing again"
        ) from None


def measured(request: Request) -> Exit:
    """Measure. NotComparable where the device is not here: another one would prove nothing."""
    try:
        return measure(request)
    except DeviceUnavailable as error:
        raise NotComparable(f"{error.message}; a check takes no other device", error.hint) from error


def in_processes(checked: Checked, request: Request, judged: Judged, ids: Sequence[str], screen: Screen) -> Confirmed:
    """The rows of these ids in further processes, one after the other; the middle one of all stands for each."""
    more = confirm.PROCESSES - 1
    screen.say(f"{_looks(ids)} slower: {more} more processes")
    folder = store_of(checked.settings).folder / FOLDER
    others: list[tuple[Run, Path]] = []
    repeated = replace(
        request,
        flags={**request.flags, "results": str(folder)},
        output=None,
        only=frozenset(ids),
        begun=lambda run, path: others.append((run, path)),
    )
    for _ in range(more):
        code = measured(repeated)
        if code in INTERRUPTED:
            return code, judged
    run, again = checked.runs[0][0], [each for each, _ in others]
    after = outcome.judged(checked.sides(confirm.settled(run, again, ids)), checked.settings)
    confirm.explain(judged, after, run, again, ids)
    after.details["confirmed"]["runs"] = [f"{FOLDER}/{path.name}" for _, path in others]
    return None, after


def in_pairs(checked: Checked, request: Request, judged: Judged, ids: Sequence[str], screen: Screen) -> Confirmed:
    """The rows of these ids on both sides in turn, the base as the settings say it is made; what the pairs say is the
    verdict on each. The new side is as it is here."""
    settings, (run, _) = checked.settings, checked.runs[0]
    screen.say(f"{_looks(ids)} slower: A/B against {', '.join(settings.base)}")
    begun: list[tuple[AbRun, Path]] = []
    asked = replace(
        request,
        flags={**request.flags, "device": _device(run), "margin": f"{100 * settings.margin:g}%"},
        output=None,
        only=frozenset(ids),
        begun=lambda found, path: begun.append((cast(AbRun, found), path)),
    )
    nothing = outcome.Wanted("table", False, False, (), None, "none")
    code = ab_session.measure(ab_session.Wish(asked, {"base": settings.base, "new": ()}, None, nothing))
    if code in INTERRUPTED:
        return code, judged
    ((found, path),) = begun
    confirm.exchange(judged, abjudge.judged(found, settings.margin, settings.margins), ids)
    judged.details["confirmed"]["ab"] = f"{ab_session.FOLDER}/{path.name}"
    checked.pairs = from_here(path)
    return None, judged


def _looks(ids: Sequence[str]) -> str:
    return f"{counted(len(ids), 'row')} {'looks' if len(ids) == 1 else 'look'}"


def _device(run: Run) -> str:
    """The word for the very device that was measured."""
    kind = str(run.device.get("kind"))
    return str(run.device.get("uuid") or kind) if kind == "cuda" else kind
