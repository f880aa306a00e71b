"""What `compare` and `check` give out once a comparison is judged: result, files, remarks for a build, last lines."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from gpubench.exits import Exit

if TYPE_CHECKING:
    from gpubench.cli.screen import Screen
    from gpubench.cli.sides import Sides
    from gpubench.errors import GpubenchError
    from gpubench.settings import Settings
    from gpubench.verdict import Judged, Row, Verdict

OUTCOME = {
    Exit.REGRESSION: "regression",
    Exit.FAILED: "failed",
    Exit.NOTHING: "nothing to judge",
    Exit.UNDECIDED: "undecided",
    Exit.NOT_COMPARABLE: "not comparable",
}
"""What each exit code of a comparison means, in words."""
FORMS = ("table", "json", "md", "csv", "xml")


@dataclass(frozen=True)
class Wanted:
    """What the command line asked for of the outcome: the form on stdout and which rows a table has, files in the form
    of their suffix, the file of a build's summary, whether a build's page is to have remarks (github, none or auto)."""

    form: str
    all_rows: bool
    only_changed: bool
    exports: Sequence[str]
    summary: str | None
    annotate: str

    @property
    def annotates(self) -> bool:
        """Whether the outcome is told to GitHub."""
        return self.annotate == "github" or (self.annotate == "auto" and os.environ.get("GITHUB_ACTIONS") == "true")


def check_files(exports: Sequence[str], summary: str | None) -> None:
    """Before anything is read: a form we cannot write, a file that cannot be written."""
    from gpubench.cli.output import check_writable
    from gpubench.report import comparison_forms

    for name in exports:
        comparison_forms.form_of(name)
        check_writable("--export", name)
    if summary is not None:
        check_writable("--summary", summary)


def fail_on(settings: Settings) -> frozenset[Verdict]:
    """The verdicts that fail a build. UsageError says where a word that is none stands."""
    from gpubench.gate import parse

    return parse(settings.fail_on, source(settings, "fail_on"))


def source(settings: Settings, name: str) -> str:
    """Where a setting stands, to begin an error with: its flag, its variable, or a file and its key."""
    from gpubench.keys import KEYS
    from gpubench.settings import DEFAULT

    key, origin = KEYS[name], settings.resolved[name].origin
    if origin in (DEFAULT, key.flag):
        return key.flag
    return origin if origin == key.variable else f"{origin}: {name}"


def judged(sides: Sides, settings: Settings) -> Judged:
    """Both sides compared by the project's rules, with what reports say of each."""
    from gpubench.compare.runs import compare
    from gpubench.report import comparison

    found = compare(sides.base, sides.new, settings.margin, settings.margins, settings.host_mismatch)
    shown_base = next(run for run in sides.base if run.run_id == found.base_name)
    found.base_name, found.new_name = sides.base_name, sides.new_name
    found.notes += sides.notes
    found.details |= {"base": comparison.side(shown_base), "new": comparison.side(sides.new)}
    return found


def decided(judged: Judged, verdicts: Collection[str], broken_off: Sequence[Exit] = ()) -> tuple[Exit, list[Row]]:
    """The exit code, kept with the comparison, and the rows that fail the build. `broken_off` are exit codes of what
    broke the measurement off: no comparison of what there is outweighs them."""
    from gpubench import gate
    from gpubench.exits import first

    code = first([*broken_off, *gate.decide(judged, verdicts)])
    judged.details |= {"fail_on": sorted(verdicts), "exit_code": code.value}
    return code, gate.failing(judged, verdicts)


def show(judged: Judged, wanted: Wanted, failing: Sequence[Row], screen: Screen) -> None:
    """The comparison on stdout."""
    from gpubench.report import comparison, comparison_forms

    if wanted.form == "table":
        screen.show(comparison.table(judged, wanted.all_rows, wanted.only_changed))
    else:
        form = cast(Any, wanted.form)
        screen.document(comparison_forms.render(judged, form, failing, wanted.all_rows, wanted.only_changed))


def write(judged: Judged, wanted: Wanted, failing: Sequence[Row], screen: Screen) -> None:
    """The files asked for, and remarks where a build reads them."""
    from gpubench.report import comparison_forms

    for name in wanted.exports:
        comparison_forms.save(judged, name, failing)
        screen.say(f"exported {name}")
    _summarize(judged, wanted, screen)
    if wanted.annotates:
        for line in comparison_forms.workflow_commands(judged, failing):
            screen.warn(line)


def refuse(error: GpubenchError, wanted: Wanted, screen: Screen) -> None:
    """Tell a build why nothing was judged."""
    from gpubench.report import comparison_forms

    _summarize(str(error), wanted, screen)
    if wanted.annotates:
        screen.warn(comparison_forms.workflow_error(str(error)))


def _summarize(judged: Judged | str, wanted: Wanted, screen: Screen) -> None:
    """The summary of a build. One of a job that cannot be written is no reason to lose the verdict."""
    from gpubench.errors import UsageError
    from gpubench.report import comparison_forms

    if wanted.summary is not None:
        comparison_forms.append_summary(judged, wanted.summary)
    elif named := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            comparison_forms.append_summary(judged, named)
        except UsageError as error:
            screen.warn(f"gpubench: no step summary: {error.message}")


def tell(judged: Judged, code: Exit, form: str, screen: Screen, again: str | None = "the same with") -> None:
    """What the exit code says, and what to type next; `again` is the command that compares once more, None where a row
    was told already."""
    from gpubench.gate import APART
    from gpubench.report import comparison
    from gpubench.report.words import plain

    if form != "table":
        for note in judged.notes:
            screen.warn(f"gpubench: {note}")
    worst = next((row for row in comparison.ordered(judged.rows) if row.verdict in comparison.DOUBTFUL), None)
    if code in OUTCOME:  # not of an interruption, which is said already
        apart = {row.reason for row in judged.rows if row.verdict == APART} if code is Exit.NOT_COMPARABLE else set()
        why = f"; {plain(apart.pop())}" if len(apart) == 1 else ""
        if code is Exit.NOTHING and not any(
            row.base and row.new and row.base.primary and row.new.primary for row in judged.rows
        ):
            why = "; no row has a figure on both sides"
        screen.warn(f"gpubench: {OUTCOME[code]} (exit {code.value}): {comparison.summary(judged)}{why}")
    if worst is not None and again is not None:
        screen.say(f"next  {again} --why '{comparison.naming(judged).words[id(worst)]}'")
