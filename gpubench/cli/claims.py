"""`gpubench claims`: what a stored run says about the lecture's claims, and about what an expert would add."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpubench.cli import options
from gpubench.cli.stored import begin, find, read, store_of

if TYPE_CHECKING:
    from gpubench.claims.statements import Statement
    from gpubench.discovery import Library
    from gpubench.result import Run


@options.reading
def claims(
    flags: options.Flags,
    run: Annotated[str | None, typer.Argument(metavar="RUN", help=f"The run: {options.RUN_WORDS}.")] = None,
    claim: Annotated[str | None, typer.Argument(metavar="ID", help="One claim in full, such as C58.")] = None,
    rejudge: Annotated[
        bool, typer.Option("--rejudge", help="Judge the file's rows by today's rules; the file stays as it is.")
    ] = False,
    json: options.JsonOnly = False,
) -> None:
    """The lecture's claims: predicted, measured, control, verdict."""
    from gpubench.claims.judge import stored
    from gpubench.discovery import Library
    from gpubench.report import claims as report
    from gpubench.store.jsonfile import dumps, shown

    library = Library()
    statements = library.claims()
    if run is not None and claim is None and (run.upper() in statements or _is_id(run)):
        run, claim = None, run
    chosen = None if claim is None else _chosen(claim, statements)
    settings, screen = begin(**flags)
    path = find(run, store_of(settings), screen)
    found = read(path, screen)
    judged = _judged(found, library, statements) if rejudge else stored(found, shown(path))
    if not found.claims and not rejudge:
        screen.say("this run holds no verdicts; --rejudge judges its rows")
    if json:
        listed = [each for each in judged if chosen is None or each["id"] == chosen.id]
        screen.document(dumps({"run_id": found.run_id, "rejudged": rejudge, "claims": listed}, indent=1))
    elif chosen is None:
        word = "" if run is None else shlex.quote(run)
        screen.show(report.table(found, judged, statements, _rules(library, statements), word))
    else:
        one = next((each for each in judged if each["id"] == chosen.id), None)
        screen.document(report.full(found, chosen, one, screen.width))


def _is_id(word: str) -> bool:
    """Whether a word can be meant as the id of a claim alone, one that is there or not."""
    from pathlib import Path

    return re.fullmatch("[A-Za-z][0-9]{1,3}", word) is not None and not Path(word).exists()


def _chosen(word: str, statements: dict[str, Statement]) -> Statement:
    """The claim that a word is the id of."""
    from gpubench.errors import UsageError
    from gpubench.nearest import did_you_mean

    if word.upper() not in statements:
        raise UsageError(f"no claim {word!r}{did_you_mean(word.upper(), statements)}", "gpubench claims")
    return statements[word.upper()]


def _judged(run: Run, library: Library, statements: dict[str, Statement]) -> list[dict[str, Any]]:
    """The verdicts of today's rules on the rows of a file. A suite that is not here any more has none."""
    from gpubench.claims.judge import in_run

    suites = {name: library.suite(name) for name in {record.suite for record in run.records} & set(library.names())}
    return in_run(run, statements.values(), suites)


def _rules(library: Library, statements: dict[str, Statement]) -> set[str]:
    """The claims that there is a rule for, or for those that they are drawn from."""
    from gpubench.claims.judge import drawn_from

    own = {claim for suite in library.suites().values() for claim in suite.claims}
    return own | {each.id for each in statements.values() if each.families and drawn_from(each, own)}
