"""Finds suites and plans. Suites are always loaded as files, under the module name gpubench.suites.<stem>.

Ours lie beside the package in a checkout and inside it when installed; others come from an entry point of the group
`gpubench.suites` (its value is a module, or a package whose .py files are suites) or from a path on the command line.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType

from gpubench.claims.statements import Statement, load
from gpubench.errors import UsageError
from gpubench.nearest import did_you_mean
from gpubench.plan import Plan, load_plan
from gpubench.suite import Suite

GROUP = "gpubench.suites"
_PACKAGE = Path(__file__).parent
_STEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class _Source:
    """Where a suite is; `plugin` names the entry point it came from, if it did."""

    file: Path
    plugin: str | None = None


class Library:
    """The suites and plans there are. A suite is loaded when it is asked for; names cost no import.

    `warnings` gathers one line for each entry point that is broken: it costs its own suites and nothing else.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = built_in() if folder is None else folder
        self.warnings: list[str] = []
        self._sources: dict[str, _Source] | None = None
        self._loaded: dict[str, Suite] = {}

    def names(self) -> list[str]:
        """The names of the suites, in alphabetical order, without loading them."""
        return sorted(self._index())

    def suites(self) -> dict[str, Suite]:
        """Every suite by name. One that cannot be loaded is an error; an entry point's only costs a warning."""
        found = {}
        for name in self.names():
            try:
                found[name] = self.suite(name)
            except UsageError as error:
                plugin = self._index()[name].plugin
                if plugin is None:
                    raise
                self._warn(f"entry point {plugin}: {error}")
        return found

    def suite(self, name: str) -> Suite:
        """The suite of that name; - and _ are alike."""
        name = name.replace("_", "-")
        if name not in self._loaded:
            source = self._index().get(name)
            if source is None:
                raise UsageError(f"no suite {name!r}{did_you_mean(name, self.names())}", "gpubench list")
            self._loaded[name] = load_suite(source.file)
        return self._loaded[name]

    def add_file(self, path: Path) -> Suite:
        """The suite of a file of the user's; UsageError where another file's suite has its name."""
        self._add(self._index(), _Source(_suite_file(path)))
        return self.suite(path.stem)

    def plans(self) -> dict[str, Path]:
        """The plans by name."""
        return {path.stem: path for path in sorted(self.folder.glob("plans/*.yaml"))}

    def plan(self, name: str) -> Plan:
        """The plan of that name."""
        plans = self.plans()
        if name not in plans:
            raise UsageError(f"no plan {name!r}{did_you_mean(name, plans)}", "gpubench list")
        return load_plan(plans[name])

    def claims(self) -> dict[str, Statement]:
        """The lecture's claims by id, in its order; none where the suites are somebody else's."""
        file = self.folder / "claims.yaml"
        return load(file) if file.is_file() else {}

    def _index(self) -> dict[str, _Source]:
        """Name → file of every suite; found once."""
        if self._sources is None:
            self._sources = {}
            for file in _suites_in(self.folder):
                self._add(self._sources, _Source(file))
            for source in self._plugins():
                self._add(self._sources, source)
        return self._sources

    def _add(self, sources: dict[str, _Source], source: _Source) -> None:
        name = source.file.stem.replace("_", "-")
        other = sources.setdefault(name, source)
        if not _same(other.file, source.file):
            raise UsageError(f"two suites are named {name}: {other.file} and {source.file}", "rename one of the files")

    def _plugins(self) -> Iterator[_Source]:
        from importlib.metadata import entry_points

        for point in entry_points(group=GROUP):
            try:
                spec = importlib.util.find_spec(point.module)
            except Exception as error:  # the parent package is imported to find it, and may raise anything
                self._warn(f"entry point {point.name}: {_in_a_line(error)}")
                continue
            if spec is None:
                self._warn(f"entry point {point.name}: there is no module {point.module}")
            elif spec.submodule_search_locations is not None:
                for folder in spec.submodule_search_locations:
                    yield from (_Source(file, point.name) for file in _suites_in(Path(folder)))
            elif spec.origin is not None and spec.origin.endswith(".py"):
                yield _Source(Path(spec.origin), point.name)
            else:
                self._warn(f"entry point {point.name}: {point.module} is not a .py file")

    def _warn(self, line: str) -> None:
        if line not in self.warnings:
            self.warnings.append(line)


def built_in() -> Path:
    """The folder of our own suites: inside the installed package, or beside it in a checkout."""
    installed = _PACKAGE / "suites"
    return installed if installed.is_dir() else _PACKAGE.parent / "suites"


def load_suite(path: Path) -> Suite:
    """The suite that a file declares as `suite = Suite(__file__)`.

    UsageError, with file and line, where the file is missing, does not run, or declares no suite.
    """
    file = _suite_file(path).absolute()
    suite = getattr(_module(file), "suite", None)
    if not isinstance(suite, Suite):
        raise UsageError(f"{path}: declares no suite", "it needs the line: suite = Suite(__file__)")
    if not _same(suite.file, file):
        raise UsageError(f"{path}: its suite is of another file, {suite.file}", "suite = Suite(__file__)")
    if not suite.benchmarks:
        raise UsageError(f"{path}: the suite has no benchmark", "declare one with @suite.benchmark(...)")
    return suite


def _suite_file(path: Path) -> Path:
    if not os.path.isfile(path):
        raise UsageError(f"{path}: no such file", "a suite is a Python file")
    if path.suffix != ".py" or not _STEM.fullmatch(path.stem):
        raise UsageError(f"{path}: a suite is a .py file named in letters, digits, - and _", "rename it")
    return path


def _module(file: Path) -> ModuleType:
    """The file as a module. It is registered, so that its functions can be traced back to their source."""
    name = f"{GROUP}.{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a suite is somebody's code: it may raise anything
        del sys.modules[name]
        line = _line_of(error, file)
        place = f"{file}:{line}" if line else str(file)
        raise UsageError(f"{place}: {_in_a_line(error)}", "the suite cannot be loaded") from error
    return module


def _line_of(error: BaseException, file: Path) -> int | None:
    """The last line of the file that was being executed, or that did not parse."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return error.lineno
    line = None
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _in_a_line(error: BaseException) -> str:
    words = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {' '.join(words.split())}" if words else type(error).__name__


def _suites_in(folder: Path) -> list[Path]:
    """The .py files of a folder that are suites: all but those with a leading _ or . in their name."""
    return [file for file in sorted(folder.glob("*.py")) if _STEM.fullmatch(file.stem)]


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()
