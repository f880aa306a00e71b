"""What `gpubench check` holds in hand: the run that is checked, and the baseline that it is held against."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence, Set

    from gpubench.cli.screen import Screen
    from gpubench.cli.sides import Sides
    from gpubench.result import Run
    from gpubench.settings import Settings
    from gpubench.store.baseline import Baselines

BASELINE, PLAN = "main", "ci"
"""The baseline, and what is measured, where nobody says which."""


@dataclass
class Checked:
    """The run that is checked and what it is held against. `names` are the only suites and benchmarks
    (suite/benchmark) whose rows are asked of the baseline; None: all."""

    settings: Settings
    baselines: Baselines
    words: Sequence[str]
    device: str | None
    names: Set[str] | None
    runs: list[tuple[Run, Path]] = field(default_factory=list)
    base: list[Run] = field(default_factory=list)
    base_name: str = ""
    partly: bool = False
    """Whether the baseline holds rows that are not asked of it."""
    notes: list[str] = field(default_factory=list)
    pairs: str | None = None
    """The file of the A/B measurement that confirmed rows."""

    @property
    def baseline(self) -> str:
        """The baseline's name."""
        return self.settings.baseline or BASELINE

    def begin(self, run: Run, path: Path) -> None:
        """Before anything is measured: a run that could not be judged is not begun."""
        from gpubench.cli.confirming import check_place
        from gpubench.cli.sides import kept, within
        from gpubench.errors import UsageError

        if run.is_quick:
            raise UsageError("a quick run never gates a build", f"gpubench check {PLAN}, or a plan without quick")
        if run.settings["in_process"]["value"]:
            raise UsageError("check measures in processes of its own", "without in_process")
        unlike = self.settings.host_mismatch == "warn"
        self.base_name, self.base = kept(self.baseline, run, self.baselines, unlike, self._make)
        self.notes = self._unused_margins()
        if self.names is not None:
            self.base, left_out = within(self.base, self.names)
            self.notes += left_out
            self.partly = bool(left_out)
        if self.settings.confirm == "auto":
            check_place(self.settings)
        self.runs.append((run, path))

    def _unused_margins(self) -> list[str]:
        """A line for each pattern of `margins:` that means no row of the baseline: a misspelt one would change nothing
        without a word."""
        from gpubench.compare.judge import patterns_of

        margins = self.settings.margins or {}
        used = {name for run in self.base for record in run.records for name in patterns_of(record, margins)}
        return [f"margins: {name!r} fits no row of the baseline" for name in margins if name not in used]

    @property
    def _make(self) -> str:
        """The command that makes the baseline that is missing."""
        import shlex

        device = [] if self.device is None else ["--device", self.device]
        return f"gpubench run {shlex.join([*self.words, *device])} && gpubench baseline save {self.baseline} latest"

    def say_saved(self, screen: Screen) -> None:
        """Where the run is, which an interruption does not take away."""
        from gpubench.cli.output import from_here

        for run, path in self.runs:
            if run.records:
                screen.say(f"saved {from_here(path)}")

    def sides(self, new: Run) -> Sides:
        """The baseline, and the run or what stands for it."""
        from gpubench.cli.output import from_here
        from gpubench.cli.sides import Sides

        return Sides(self.base, self.base_name, new, from_here(self.runs[0][1]), self.notes)
