"""What a profile shows beyond counters: ncu's sections, and the hottest lines of a kernel's source.

ncu saves a report beside the table of counters; its other pages are printed from there, which needs no GPU.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gpubench.errors import UsageError
from gpubench.profiling import detailspage, ncu, sourcepage
from gpubench.profiling.matching import base_name
from gpubench.profiling.rawpage import Counted
from gpubench.profiling.sourcepage import Line

REPORT = "report.ncu-rep"
PRINTING_S = 120.0
"""Seconds that ncu may take to print a page of a report; it takes one or two."""
MOST_BYTES = 2**28
MOST_SOURCES = 16
"""Kernels whose lines are looked at: each distinct one costs a start of ncu. Those after them say so."""
SECTIONS = (
    "SpeedOfLight",
    "MemoryWorkloadAnalysis",
    "ComputeWorkloadAnalysis",
    "SchedulerStats",
    "WarpStateStats",
    "InstructionStats",
    "LaunchStats",
    "Occupancy",
)
"""Those that are named to who asks for none; `ncu --list-sections` has all of an installation."""
LINES, LINES_TITLE = "SourceCounters", "Source Counters"
"""The section that brings the figures of lines, and its title."""
NO_LINES = "no line information, as of a library's kernel"
OURS_WITHOUT = "no lines: ncu shows none, though the source is here"
NOT_LOOKED_AT = f"not looked at: the lines of {MOST_SOURCES} kernels are"

_SECTION = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,80}")


@dataclass(frozen=True)
class Profile:
    """What `gpubench profile` asks for beyond counters: sections, by ncu's identifiers, and the lines of the source.

    With one, kernels that differ from the record's are said and shown; without, they make counters void.
    """

    sections: tuple[str, ...] = ()
    source: bool = False

    @property
    def printed(self) -> bool:
        """Whether a report is needed."""
        return bool(self.sections) or self.source


def chosen(sections: Sequence[str], source: bool) -> Profile:
    """The profile of `--section A --section B --source`. UsageError for what cannot be a section's name."""
    for name in sections:
        if not _SECTION.fullmatch(name):
            raise UsageError(f"--section {name!r} is not the name of a section", ", ".join(SECTIONS))
    return Profile(tuple(dict.fromkeys(sections)), source)


def words(profile: Profile, report: Path, suite: Path) -> list[str]:
    """What ncu's command line has more, for a report with these pages. `suite` is the file beside which sources lie."""
    if not profile.printed:
        return []
    sections = [*profile.sections, *([LINES] if profile.source else [])]
    return [
        *(word for name in dict.fromkeys(sections) for word in ("--section", name)),
        *(("--import-source", "yes", "--source-folders", str(suite.parent)) if profile.source else ()),
        *("--apply-rules", "no"),
        *("--export", str(report)),
        "--force-overwrite",
    ]


def attach(
    profile: Profile, kernels: Sequence[Counted], program: str, report: Path, suite: Path, environ: Mapping[str, str]
) -> list[Counted]:
    """The kernels of a report, those of a case with their pages: `sections`, where any were asked for, and `source`,
    a list of lines or the reason why there are none."""
    if not profile.printed:
        return list(kernels)

    def page(*asked: str) -> str:
        return _page(program, report, environ, *asked)

    details = detailspage.read(page("--page", "details", "--print-units", "base")) if profile.sections else {}
    texts = _Texts(suite)
    sources: dict[tuple[str, str], Any] = {}
    found = []
    for place, kernel in enumerate(kernels):
        pages: dict[str, Any] = {}
        if kernel.label is not None and kernel.label.isdigit():
            if profile.sections:
                pages["sections"] = [
                    asdict(section)
                    for section in details.get(kernel.id, ())
                    if section.name != LINES_TITLE or LINES in profile.sections
                ]
            if profile.source:
                same = kernel.name, str(kernel.grid)
                if same not in sources:
                    sources[same] = NOT_LOOKED_AT
                    if len(sources) <= MOST_SOURCES:
                        sources[same] = _lines(
                            page(*ncu.source_words(place, texts.files)), base_name(kernel.name), texts
                        )
                pages["source"] = sources[same]
        found.append(replace(kernel, pages=pages))
    return found


def _lines(page: str, kernel: str, texts: _Texts) -> list[dict[str, Any]] | str:
    """The lines of a kernel's source page, or why there are none: in words of ncu, or whether it is one of ours."""
    lines = sourcepage.read(page)
    if lines:
        return [asdict(texts.of(line)) for line in lines]
    said = re.search(r"^==(?:ERROR|WARNING)==[ \t]*(.+)$", page, re.MULTILINE)
    if said:
        return f"no lines: ncu: {said[1].strip()[: ncu.LONGEST]}"
    return OURS_WITHOUT if texts.hold(kernel) else NO_LINES


class _Texts:
    """The files of a suite, by name: a line is shown as it stands there, as far as it does, else as ncu has it."""

    def __init__(self, suite: Path) -> None:
        folder = suite.absolute().parent
        found = (file for pattern in ("*.cu", "include/*.cuh") for file in sorted(folder.glob(pattern)))
        self._files = {file.name: file for file in found}
        self._lines: dict[str, list[str]] = {}

    @property
    def files(self) -> list[Path]:
        """All of them, by their whole paths."""
        return list(self._files.values())

    def hold(self, kernel: str) -> bool:
        """Whether one of them has a function of that name."""
        named = re.compile(rf"\b{re.escape(kernel)}\s*\(")
        return any(named.search(line) for file in self._files for line in self._of(file))

    def of(self, line: Line) -> Line:
        """The line with its text."""
        if line.file not in self._files:
            return line
        lines = self._of(line.file)
        text = lines[line.line - 1] if 0 < line.line <= len(lines) else line.text
        return replace(line, text=text.strip()[: sourcepage.LONGEST])

    def _of(self, file: str) -> list[str]:
        if file not in self._lines:
            self._lines[file] = self._files[file].read_text(encoding="utf-8", errors="replace").split("\n")
        return self._lines[file]


def _page(program: str, report: Path, environ: Mapping[str, str], *asked: str) -> str:
    """A page of a report as CSV; nothing where it cannot be had."""
    words = [program, "--import", str(report), *asked, "--csv"]
    env = {**environ, "LC_ALL": "C.UTF-8"}  # no thousands separators
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=PRINTING_S, check=False, env=env
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout[:MOST_BYTES].decode(errors="replace")
