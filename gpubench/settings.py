"""Settings, each value with its origin: flag > plan > environment > gpubench.yaml or pyproject.toml > default."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gpubench import yamlfile
from gpubench.errors import UsageError
from gpubench.keys import KEYS, PREFIX, QUICK_CASE_TIME, Folder, Key
from gpubench.nearest import nearest
from gpubench.node import Node
from gpubench.plan import Plan, plan_from
from gpubench.result import CONDITIONS, Cache, Data, Load

PROJECT_FILE, PYPROJECT = "gpubench.yaml", "pyproject.toml"
DEFAULT = "default"
"""The origin of a value that nobody set."""
PLAN = "plan "
"""What the origin of a plan's value begins with."""
MOST_BYTES = 2**24
"""Of a pyproject.toml that is looked into."""


@dataclass(frozen=True)
class Setting:
    """A value and where it came from: `--samples`, `plan quick`, `GPUBENCH_SAMPLES`, `gpubench.yaml`, `default`."""

    value: Any
    origin: str


@dataclass(frozen=True)
class Settings:
    """What every key of `gpubench.keys` came to: times in seconds, `max_noise` a fraction, `results` absolute."""

    results: Path | None
    device: str
    cache: Cache
    load: Load
    data: Data
    seed: int
    timer: Literal["auto", "cupti", "graph", "event", "host"]
    samples: int | None
    max_noise: float
    max_time: float | None
    case_time: float
    timeout: float
    quick: bool
    ceilings: Literal["stored", "measure", "none"]
    counters: bool
    energy: bool
    in_process: bool
    tags: tuple[str, ...]
    baseline: str | None
    margin: float
    margins: Mapping[str, float] | None
    fail_on: str
    host_mismatch: Literal["error", "warn"]
    base: tuple[str, ...]
    confirm: Literal["auto", "none"]
    annotate: Literal["github", "none", "auto"]
    plain: bool
    no_plot: bool
    quiet: bool
    verbose: bool
    no_color: bool
    debug: bool
    resolved: Mapping[str, Setting]
    """The same values, each with its origin."""
    project: Path
    """The folder of the file of settings in force, else the current one."""
    warnings: tuple[str, ...] = ()
    """Variables of the environment that look like a setting misspelt."""

    def of_plan(self, name: str) -> bool:
        """Whether that setting is as the plan has it, or the project's file, which is one: nobody said otherwise."""
        origin = self.resolved[name].origin
        return origin.startswith(PLAN) or origin in (PROJECT_FILE, PYPROJECT)

    @property
    def conditions(self) -> dict[str, str]:
        """The conditions that somebody set, by name: the others are for a suite to choose."""
        return {
            name: str(setting.value)
            for name, setting in self.resolved.items()
            if name in CONDITIONS and setting.origin != DEFAULT
        }

    def origins(self) -> dict[str, dict[str, object]]:
        """Value and origin of every setting of measuring, as JSON, for the run file. Of a path only its last part is
        kept."""
        return {
            name: {"value": _public(each.value), "origin": each.origin}
            for name, each in self.resolved.items()
            if not KEYS[name].judging
        }


def resolve(flags: Mapping[str, object], plan: Plan | None, environ: Mapping[str, str], cwd: Path) -> Settings:
    """The settings of one command.

    `flags` maps names of keys to what the command line gave: text as typed, or a value; None, False and an empty list
    mean not given. An empty variable counts as unset. UsageError names the origin of a value that cannot be taken.
    """
    for name in flags:
        if name not in KEYS:
            raise TypeError(f"{name} is not a setting")
    project = find_project(cwd)
    found = {name: _setting(key, flags.get(name), plan, environ, project, cwd) for name, key in KEYS.items()}
    if found["quick"].value and found["case_time"].origin == DEFAULT:
        found["case_time"] = Setting(QUICK_CASE_TIME, "quick")
    values = {name: setting.value for name, setting in found.items()}
    folder = cwd.absolute() if project is None or project.path is None else project.path.parent
    return Settings(**values, resolved=found, project=folder, warnings=tuple(_misspelt(environ)))


def find_project(cwd: Path) -> Plan | None:
    """What the nearest gpubench.yaml, or pyproject.toml with a [tool.gpubench], says: of `cwd` or a folder above it."""
    cwd = cwd.absolute()
    for folder in (cwd, *cwd.parents):
        yaml, toml = folder / PROJECT_FILE, folder / PYPROJECT
        table = _tool_table(toml)
        if os.path.lexists(yaml):
            if table is not None:
                raise UsageError(f"{folder}: both {PROJECT_FILE} and pyproject.toml hold settings", "keep one of them")
            return plan_from(yamlfile.load(yaml), yaml, project=True)
        if table is not None:
            return plan_from(table, toml, project=True)
    return None


def _setting(
    key: Key, flag: object, plan: Plan | None, environ: Mapping[str, str], project: Plan | None, cwd: Path
) -> Setting:
    """One key's value from the first place that has it."""
    folder = cwd
    if flag is not None and flag is not False and flag not in ((), [], {}):
        setting = Setting(_from_flag(key, flag), key.flag)
    elif plan is not None and key.name in plan.values:
        setting = Setting(plan.values[key.name], f"{PLAN}{plan.name}")
        folder = plan.path.parent if plan.path else cwd
    elif environ.get(key.variable):
        value = key.from_text(environ[key.variable], key.variable)
        setting = Setting([value] if key.many else value, key.variable)
    elif project is not None and key.name in project.values:
        assert project.path is not None
        setting = Setting(project.values[key.name], project.path.name)
        folder = project.path.parent
    else:
        setting = Setting(key.default, DEFAULT)
    if key.many:
        return Setting(tuple(setting.value), setting.origin)
    if isinstance(key.kind, Folder) and setting.value is not None:
        return Setting((cwd / folder / setting.value).absolute(), setting.origin)
    return setting


def _from_flag(key: Key, flag: object) -> object:
    """A flag's value; one that may be repeated comes as a list."""
    if key.many and isinstance(flag, list | tuple):
        return [key.from_text(str(item), key.flag) for item in flag]
    value = key.from_text(str(flag), key.flag)
    return [value] if key.many else value


def _misspelt(environ: Mapping[str, str]) -> list[str]:
    """A line for each GPUBENCH_ variable that is not a setting and is nearly the name of one."""
    known = {key.variable.removeprefix(PREFIX) for key in KEYS.values()}
    names = sorted(name.removeprefix(PREFIX) for name in environ if name.startswith(PREFIX))
    near = [(name, nearest(name, known)) for name in names if name not in known]
    return [f"{PREFIX}{name} is not a setting; did you mean {PREFIX}{meant}?" for name, meant in near if meant]


def _tool_table(path: Path) -> Node | None:
    """The [tool.gpubench] of a pyproject.toml. One that is not readable or not TOML is another tool's concern."""
    if not path.is_file():
        return None
    try:
        text = yamlfile.read_text(path, MOST_BYTES)
    except UsageError:
        return None
    if "gpubench" not in text:
        return None
    import tomllib

    try:
        table = tomllib.loads(text).get("tool", {}).get("gpubench")
    except (ValueError, RecursionError) as error:  # also of a number too long, and of lists too deep
        if "tool.gpubench" not in text:
            return None
        raise UsageError(f"{path}: not TOML: {error}") from None
    return None if table is None else _node(str(path), "tool.gpubench", table)


def _node(file: str, key: str, value: Any) -> Node:
    """A value of TOML as a Node, so that both files are read by the same rules."""
    if isinstance(value, dict):
        return Node(file, key, None, {name: _node(file, f"{key}.{name}", each) for name, each in value.items()})
    if isinstance(value, list):
        return Node(file, key, None, tuple(_node(file, key, each) for each in value))
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return Node(file, key, None, text, quoted=isinstance(value, str))


def _public(value: Any) -> object:
    """A value without what would tell whose machine this is."""
    if isinstance(value, Path):
        home = Path(os.path.expanduser("~")).name
        return "~" if value.name in ("", home) else value.name
    return list(value) if isinstance(value, tuple) else value
