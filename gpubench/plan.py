"""Plan: which suites, which axis values, under which conditions, at what cost; and what a command's words select."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Protocol

from gpubench import yamlfile
from gpubench.errors import UsageError
from gpubench.keys import KEYS
from gpubench.nearest import did_you_mean
from gpubench.node import Node
from gpubench.params import parse_values
from gpubench.result import CONDITIONS, Param
from gpubench.suite import Benchmark, Case, Suite

DEFAULT_PLAN = "quick"
"""What is run where no word says what."""
SECTIONS = ("conditions", "budget")
PLAN_SUFFIXES = (".yaml", ".yml")

Asked = Mapping[str, Sequence[Param]]


@dataclass(frozen=True)
class Plan:
    """`run` maps a suite, suite/benchmark or glob to the axis values asked of it; the rest maps setting to value.

    `include` names plans whose rows come first; of those only `run` counts, not their conditions and budget. `where`
    says on which line of the file each entry of either stands, for messages.
    """

    name: str
    path: Path | None
    run: Mapping[str, Mapping[str, list[Param]]]
    conditions: Mapping[str, object] = field(default_factory=dict)
    budget: Mapping[str, object] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    where: Mapping[str, str] = field(default_factory=dict)
    include: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, object]:
        """Every setting the plan holds, by the name of its key."""
        return {**self.settings, **self.conditions, **self.budget}


class Library(Protocol):
    """What plans are resolved against: see gpubench.discovery."""

    def names(self) -> list[str]:
        """The suites there are, without loading them."""

    def suite(self, name: str) -> Suite:
        """The suite of that name."""

    def plans(self) -> dict[str, Path]:
        """The plans there are."""

    def plan(self, name: str) -> Plan:
        """The plan of that name."""

    def add_file(self, path: Path) -> Suite:
        """The suite of a file."""


@dataclass(frozen=True)
class Selected:
    """A benchmark to run and the axis values asked of it. `by_hand`: sizes among them came from -p."""

    benchmark: Benchmark
    asked: Asked = field(default_factory=dict)
    by_hand: bool = False


def load_plan(path: Path | str) -> Plan:
    """The plan of a yaml file; a gpubench.yaml is one too. UsageError names file, line, key and what was expected."""
    path = Path(path)
    return plan_from(yamlfile.load(path), path, project=path.stem == "gpubench")


def plan_from(root: Node, path: Path, project: bool = False) -> Plan:
    """The plan a document holds. With `project` it may leave out `run` and hold the keys of gpubench.yaml alone."""
    loose = [key.name for key in KEYS.values() if not key.section and (project or not key.project)]
    known = ["run", *SECTIONS, "include", *loose]
    for name, node in root.mapping(f"a mapping of {', '.join(known[:3])} …").items():
        if name in KEYS and KEYS[name].section:
            raise UsageError(f"{node.where} stands at the top", f"write it under {KEYS[name].section}:")
    entries = root.mapping("a mapping", known)
    if not {"run", "include"} & entries.keys() and not project:
        raise UsageError(f"{root.file}: no run: in this plan", "run: {matmul-sweep: {n: [1024, 2048]}}")
    suites = _run(entries["run"]) if "run" in entries else {}
    names = entries["include"].items() if "include" in entries else []
    included = {each.text("the name of a plan"): each.where for each in names}
    if "include" in entries and not included:
        raise entries["include"].error("the name of a plan at least, such as [quick]")
    sections = {
        section: {
            name: KEYS[name].from_node(node)
            for name, node in entries[section]
            .mapping("a mapping of settings", [key.name for key in KEYS.values() if key.section == section])
            .items()
        }
        for section in SECTIONS
        if section in entries
    }
    return Plan(
        name=path.stem,
        path=path,
        run={word: axes for word, (axes, _) in suites.items()},
        conditions=sections.get("conditions", {}),
        budget=sections.get("budget", {}),
        settings={name: KEYS[name].from_node(entries[name]) for name in loose if name in entries},
        where={word: place for word, (_, place) in suites.items()} | included,
        include=tuple(included),
    )


def _run(node: Node) -> dict[str, tuple[dict[str, list[Param]], str]]:
    """Of each entry of `run`: the axis values, and the place in the file."""
    entries = node.mapping("a mapping of suites, such as {matmul-sweep: {n: [1024]}}")
    if not entries:
        raise node.error("a suite at least, such as {matmul-sweep: {}}")
    expected = "a mapping of axes, {} for the suite's own values"
    return {
        word: ({axis: _values(axis, values) for axis, values in axes.mapping(expected).items()}, axes.where)
        for word, axes in entries.items()
    }


def _values(axis: str, node: Node) -> list[Param]:
    values: list[Param] = []
    for item in node.items():
        text = item.text("integers or names")
        try:
            values.extend(parse_values(axis, text))
        except UsageError as error:
            raise UsageError(f"{item.where}: {error.message}", error.hint) from None
    if not values:
        raise node.error("at least one value")
    return values


def plan_among(words: Sequence[str], library: Library, default: Plan | None = None) -> Plan | None:
    """The plan whose conditions and budget the run is under: the one among the words; without words, `quick`.

    `default` is what gpubench.yaml runs without words; its settings are a file's, not a plan's, hence None then.
    """
    if not words:
        runs = default is not None and (default.run or default.include)
        return None if runs else library.plan(DEFAULT_PLAN)
    plans = list(dict.fromkeys(word for word in words if _is_plan(word, library)))
    if len(plans) > 1:
        raise UsageError(f"two plans, {plans[0]} and {plans[1]}; a run is under one", "run one after the other")
    return _plan(plans[0], library) if plans else None


def select(
    words: Sequence[str], library: Library, params: Asked | None = None, default: Plan | None = None
) -> list[Selected]:
    """The benchmarks that the words name, in their order, with the values a plan or -p (`params`) asks of each.

    A word is a plan, a suite, suite/benchmark, a glob, or a file (.py a suite, .yaml a plan); without words it is what
    `default` runs, else the plan `quick`. A -p replaces a plan's values, in the benchmarks that have its axis.
    """
    plan = plan_among(words, library, default)
    chosen: list[Selected] = []
    for word in words:
        if _is_plan(word, library):
            assert plan is not None
            chosen.extend(_of_plan(plan, library))
        else:
            chosen.extend(Selected(benchmark) for benchmark in _named(word, library))
    if not words:
        entire = plan or default
        assert entire is not None
        chosen.extend(_of_plan(entire, library))
    return _with_params(chosen, params or {})


def cases(
    selected: Sequence[Selected], kind: str, quick: bool = False, conditions: Mapping[str, str] | None = None
) -> list[Case]:
    """The rows to measure on a kind of device, in order; one that is selected twice is measured once.

    `conditions` are those that settings name: an entry that asks for others outranks them, what a suite declares does
    not, but what it fixes does. Conditions vary fastest, so that the rows of one size stand below each other in a
    table, cold above hot, and lie close together in time.
    """
    found: dict[str, Case] = {}
    for entry in selected:
        benchmark = entry.benchmark
        params_asked = {name: values for name, values in entry.asked.items() if name not in CONDITIONS}
        each = benchmark.conditions_of(kind, quick, entry.asked, conditions or {})
        for params, under in product(benchmark.cases(kind, quick, params_asked), each):
            held = benchmark.under(params, under)
            case = Case(benchmark.suite, benchmark.name, params, held, entry.by_hand)
            first = found.setdefault(case.id, case)
            if case.by_hand and not first.by_hand:
                found[case.id] = replace(first, by_hand=True)
    return list(found.values())


def _is_plan(word: str, library: Library) -> bool:
    return word.endswith(PLAN_SUFFIXES) or word in library.plans()


def _plan(word: str, library: Library) -> Plan:
    return load_plan(word) if word.endswith(PLAN_SUFFIXES) else library.plan(word)


def _of_plan(plan: Plan, library: Library, within: tuple[str, ...] = ()) -> Iterator[Selected]:
    """A plan's entries, checked, after those of plans it includes: an unknown plan, suite, axis or value is an error at
    its line. So is a plan that includes one of those `within` which it stands."""
    for name in plan.include:
        if name in (*within, plan.name):
            raise UsageError(f"{plan.where[name]}: the plan {name} includes itself")
        try:
            included = library.plan(name)
        except UsageError as error:
            raise UsageError(f"{plan.where[name]}: {error.message}", error.hint) from None
        yield from _of_plan(included, library, (*within, plan.name))
    for word, asked in plan.run.items():
        try:
            yield from _asked_of(_named(word, library), asked)
        except UsageError as error:
            raise UsageError(f"{plan.where.get(word, plan.name)}: {error.message}", error.hint) from None


def _asked_of(benchmarks: Sequence[Benchmark], asked: Asked) -> list[Selected]:
    """Each benchmark with the values of the axes it has; an axis that none of them has is an error."""
    for name in asked:
        if not any(benchmark.axis(name) for benchmark in benchmarks):
            own = dict.fromkeys(axis for benchmark in benchmarks for axis in benchmark.axes)
            there = [*own, *CONDITIONS]
            names = ", ".join(dict.fromkeys(benchmark.suite for benchmark in benchmarks))
            raise UsageError(f"no axis {name!r} in {names}{did_you_mean(name, there)}", f"axes: {', '.join(there)}")
    return [
        Selected(
            benchmark,
            {
                name: [axis.accept(name, value) for value in values]
                for name, values in asked.items()
                if (axis := benchmark.axis(name))
            },
        )
        for benchmark in benchmarks
    ]


def _with_params(chosen: Sequence[Selected], params: Asked) -> list[Selected]:
    entries = []
    for entry, extra in zip(chosen, _asked_of([entry.benchmark for entry in chosen], params), strict=True):
        sizes = any(isinstance(value, int) for values in extra.asked.values() for value in values)
        entries.append(Selected(entry.benchmark, {**entry.asked, **extra.asked}, by_hand=sizes))
    return entries


def _named(word: str, library: Library) -> list[Benchmark]:
    """The benchmarks of a suite, suite/benchmark, glob, or suite file; UsageError where the word names none."""
    if word.endswith(".py"):
        return list(library.add_file(Path(word)).benchmarks.values())
    name = word.replace("_", "-")
    names = library.names()
    if any(letter in name for letter in "*?["):
        every = [benchmark for suite in names for benchmark in library.suite(suite).benchmarks.values()]
        found = [each for each in every if fnmatchcase(each.suite, name) or fnmatchcase(each.path, name)]
        if not found:
            raise UsageError(f"no suite or benchmark matches {word!r}", "gpubench list")
        return found
    suite_name, slash, benchmark_name = name.partition("/")
    if suite_name not in names:
        near = did_you_mean(suite_name, names if slash else [*names, *library.plans()])
        if word and os.path.exists(word):
            raise UsageError(f"{word!r} is neither a suite nor a file of one", "a suite ends in .py, a plan in .yaml")
        hint = f"-p {word} if an axis is meant" if "=" in word else "gpubench list"
        raise UsageError(f"no suite {word!r}{near}", hint)
    suite = library.suite(suite_name)
    if not slash:
        return list(suite.benchmarks.values())
    if benchmark_name not in suite.benchmarks:
        paths = [benchmark.path for benchmark in suite.benchmarks.values()]
        raise UsageError(f"no benchmark {word!r}{did_you_mean(name, paths)}", f"gpubench list {suite_name}")
    return [suite.benchmarks[benchmark_name]]
