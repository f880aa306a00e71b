"""Suite, Axis, Benchmark, Case: what can be measured, and which rows a sweep has.

A suite is one Python file. Its benchmarks are functions of a device and of axis values; an axis has default values per
kind of device, so the same suite runs on a GPU and, with smaller sizes, on a CPU. The conditions cache, load and data
are axes of every benchmark; a suite may say under which of their values it is measured.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpubench.definition import definition_of
from gpubench.errors import UsageError
from gpubench.finding import Rule
from gpubench.result import CONDITIONS, USUAL, WAY, Conditions, Param, Record
from gpubench.workload import DeclaredKernel, Define, Workload

Function = Callable[..., Workload]


class Axis:
    """The values one parameter of a benchmark takes.

    `values` are the defaults; `cpu` replaces them on a CPU; `quick` (and `quick_cpu`) replace them under `--quick`.
    A user may ask for other values: any integer ≥ `minimum` on an axis of integers, one of `choices` on one of names
    (by default every name given here). `same_as="n"` makes the axis follow axis n unless it is asked for.
    """

    def __init__(
        self,
        values: Sequence[Param] = (),
        *,
        cpu: Sequence[Param] | None = None,
        quick: Sequence[Param] | None = None,
        quick_cpu: Sequence[Param] | None = None,
        choices: Sequence[str] | None = None,
        same_as: str | None = None,
        minimum: int = 1,
    ) -> None:
        self.values = tuple(values)
        self.cpu = self.values if cpu is None else tuple(cpu)
        self.quick = self.values if quick is None else tuple(quick)
        self.quick_cpu = tuple(quick_cpu) if quick_cpu is not None else (self.quick if cpu is None else self.cpu)
        self.same_as = same_as
        self.minimum = minimum
        given = dict.fromkeys((*self.values, *self.cpu, *self.quick, *self.quick_cpu))
        if bool(given) == bool(same_as):
            raise TypeError("an Axis takes either values or same_as")
        self.of_names = any(isinstance(value, str) for value in given)
        if self.of_names and not all(isinstance(value, str) for value in given):
            raise TypeError("an Axis holds either integers or names, not both")
        self.choices = tuple(choices) if choices else tuple(str(value) for value in given) if self.of_names else ()

    def defaults(self, kind: str, quick: bool) -> tuple[Param, ...]:
        """The values for a kind of device ("cuda", "cpu", …)."""
        if kind == "cpu":
            return self.quick_cpu if quick else self.cpu
        return self.quick if quick else self.values

    def accept(self, name: str, value: Param) -> Param:
        """The value if this axis can take it; else a UsageError that says what it takes."""
        if self.of_names:
            if value in self.choices:
                return value
            raise UsageError(f"axis {name}: no value {str(value)!r}", f"one of {', '.join(self.choices)}")
        if isinstance(value, bool) or not isinstance(value, int):
            raise UsageError(f"axis {name}: {str(value)!r} is not a plain decimal integer", f"such as {name}=1024")
        if value < self.minimum:
            raise UsageError(f"axis {name}: {value} is below {self.minimum}", f"an integer from {self.minimum} up")
        return value


@dataclass(frozen=True)
class Benchmark:
    """One function of a suite, and its axes: `axes` are its arguments, `conditions` those that the suite declares, and
    `fixed` those of the rows of each `way` that nobody can ask otherwise."""

    suite: str
    name: str
    function: Function
    axes: Mapping[str, Axis]
    conditions: Mapping[str, Axis] = field(default_factory=dict)
    fixed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """Its name on the command line: suite/benchmark."""
        return f"{self.suite}/{self.name}"

    @property
    def file(self) -> Path:
        """The suite's file."""
        return Path(inspect.getfile(self.function)).absolute()

    @property
    def doc(self) -> str:
        """The first paragraph of its docstring, in one line."""
        return " ".join((inspect.getdoc(self.function) or "").split("\n\n", 1)[0].split())

    @property
    def definition(self) -> str:
        """A hash of what it computes: rows with different definitions are not comparable."""
        return definition_of(self.function)

    def axis(self, name: str) -> Axis | None:
        """What a user may ask of an axis: one of its own, or a condition, which every benchmark has; None without."""
        return self.axes.get(name, CONDITION_AXES.get(name))

    def conditions_of(
        self, kind: str, quick: bool, asked: Mapping[str, Sequence[Param]], usual: Mapping[str, str]
    ) -> list[Conditions]:
        """The conditions under which each of its rows is measured: the product of the three, without repeats.

        The values of each are those `asked`, else the one that `usual` names, else those the suite declares, else the
        default.
        """
        values: dict[str, Sequence[Param]] = {}
        for name, axis in CONDITION_AXES.items():
            if name in asked:
                values[name] = [axis.accept(name, value) for value in asked[name]]
            elif name in usual:
                values[name] = [usual[name]]
            elif name in self.conditions:
                values[name] = self.conditions[name].defaults(kind, quick)
            else:
                values[name] = axis.values
        product = itertools.product(*(dict.fromkeys(each) for each in values.values()))
        return [Conditions(**dict(zip(values, chosen, strict=True))) for chosen in product]  # type: ignore[arg-type]

    def under(self, params: Mapping[str, Param], conditions: Conditions) -> Conditions:
        """The conditions of one row: those of the product, but for what its way fixes."""
        return replace(conditions, **self.fixed.get(str(params.get(WAY)), {}))  # type: ignore[arg-type]

    def cases(
        self, kind: str, quick: bool = False, asked: Mapping[str, Sequence[Param]] | None = None
    ) -> Iterator[dict[str, Param]]:
        """The rows of its sweep: the product of the axes, in the order they were declared, without repeats.

        `asked` replaces the values of the axes it names and must name no other.
        """
        asked = asked or {}
        for name in asked:
            if name not in self.axes:
                raise UsageError(f"{self.path} has no axis {name!r}", f"its axes: {', '.join(self.axes)}")
        free: dict[str, tuple[Param, ...]] = {}
        for name, axis in self.axes.items():
            if name in asked:
                free[name] = tuple(axis.accept(name, value) for value in asked[name])
            elif axis.same_as is None:
                free[name] = axis.defaults(kind, quick)
        seen = set()
        for values in itertools.product(*(dict.fromkeys(values) for values in free.values())):
            chosen = dict(zip(free, values, strict=True))
            for name, axis in self.axes.items():
                if axis.same_as is not None and name not in chosen:
                    chosen[name] = chosen[axis.same_as]
            params = {name: chosen[name] for name in self.axes}
            if (key := tuple(params.values())) not in seen:
                seen.add(key)
                yield params


class Suite:
    """The benchmarks of one file, and named after it: memory_hierarchy.py is `memory-hierarchy`."""

    def __init__(self, file: str) -> None:
        self.file = Path(file)
        self.name = self.file.stem.replace("_", "-")
        self.benchmarks: dict[str, Benchmark] = {}
        self.kernels: list[DeclaredKernel] = []
        self.claims: dict[str, Rule] = {}

    def kernel(
        self,
        name: str,
        *,
        defines: Mapping[str, Define | Sequence[Define]] | None = None,
        arch: str | None = None,
        source: str | None = None,
        options: Sequence[str] = (),
    ) -> DeclaredKernel:
        """Declare a kernel, at the top of the file: entry `name` of `source`, a file beside the suite's.

        `source` is by default named after the suite: bandwidth.cu for bandwidth.py. `defines` gives each -D name the
        value or values it may take, such as {"REAL": ["float", "double"], "UNROLL": [1, 2, 4]}; a launch chooses one.
        What is declared can be compiled on any machine, and is, by `make kernels`.
        """
        values = {
            define: (given,) if isinstance(given, int | str) else tuple(given)
            for define, given in (defines or {}).items()
        }
        made = DeclaredKernel(name, source or f"{self.file.stem}.cu", values, arch, tuple(options))
        self.kernels.append(made)
        return made

    def benchmark(
        self, *, fixed: Mapping[str, Mapping[str, str]] | None = None, **axes: Axis
    ) -> Callable[[Function], Function]:
        """Declare a benchmark: a function of `device` and one argument per axis that returns a Workload.

        `cache`, `load` and `data` are the conditions of a row, and no arguments: `cache=Axis(["cold", "hot"])` measures
        each row under both, one after the other, unless somebody asks for other conditions. `fixed` maps a value of the
        axis `way` to conditions that its rows always have: where a condition is what is wrong with a way of measuring,
        or a stopwatch of the suite's own takes no notice of what is asked.
        """
        parameters = {name: axis for name, axis in axes.items() if name not in CONDITIONS}
        conditions = {name: axis for name, axis in axes.items() if name in CONDITIONS}

        def declare(function: Function) -> Function:
            name = function.__name__.replace("_", "-")
            path = f"{self.name}/{name}"
            wanted = list(inspect.signature(function).parameters)[1:]
            if taken := [argument for argument in wanted if argument in CONDITIONS]:
                raise TypeError(f"{path}: {taken[0]} is a condition, which is no argument")
            if sorted(wanted) != sorted(parameters):
                raise TypeError(f"{path}: arguments {wanted} and axes {sorted(parameters)} differ")
            for axis_name, axis in parameters.items():
                leader = None if axis.same_as is None else parameters.get(axis.same_as)
                if axis.same_as is not None and (leader is None or leader.same_as is not None):
                    raise TypeError(f"{path}: axis {axis_name} follows {axis.same_as}, which has no values")
            for axis_name, axis in conditions.items():
                _check_condition(path, axis_name, axis)
            for way, held in (fixed or {}).items():
                _check_fixed(path, parameters.get(WAY), way, held)
            if name in self.benchmarks:
                raise TypeError(f"{path} is declared twice")
            self.benchmarks[name] = Benchmark(self.name, name, function, parameters, conditions, fixed or {})
            return function

        return declare

    def claim(self, *ids: str) -> Callable[[Rule], Rule]:
        """Declare the rule of a claim, or of several that it settles: a pure function of a View of the suite's rows
        that returns a Finding. Its limits are constants beside it, each with its reason."""

        def declare(function: Rule) -> Rule:
            for name in ids:
                if name in self.claims:
                    raise TypeError(f"{self.name}: the claim {name} has two rules")
                self.claims[name] = function
            return function

        return declare


CONDITION_AXES: Mapping[str, Axis] = {name: Axis(values[:1], choices=values) for name, values in CONDITIONS.items()}
"""The axis that each condition is: its default, and what may be asked for."""


def _check_condition(path: str, name: str, axis: Axis) -> None:
    """TypeError unless an axis that a suite declares holds values of that condition."""
    if axis.same_as is not None:
        raise TypeError(f"{path}: {name} is a condition, which follows no axis")
    for value in (*axis.values, *axis.cpu, *axis.quick, *axis.quick_cpu, *axis.choices):
        if value not in CONDITIONS[name]:
            raise TypeError(f"{path}: the condition {name} has no value {value!r}, only {', '.join(CONDITIONS[name])}")


def _check_fixed(path: str, ways: Axis | None, way: str, held: Mapping[str, str]) -> None:
    """TypeError unless what a suite fixes for a way are conditions, and the benchmark has that way."""
    if ways is None or way not in ways.choices:
        raise TypeError(f"{path}: conditions are fixed for {WAY}={way}, which it does not have")
    for name, value in held.items():
        if name not in CONDITIONS:
            raise TypeError(f"{path}: {name} is no condition to be fixed, only {', '.join(CONDITIONS)}")
        _check_condition(path, name, Axis([value]))


@dataclass(frozen=True)
class Case:
    """One row to measure: a benchmark, its parameters, and the conditions asked for."""

    suite: str
    benchmark: str
    params: Mapping[str, Param]
    conditions: Conditions
    by_hand: bool = False
    """True where the user named the size: running out of memory is then a failure of the run, not a row to skip."""

    @property
    def id(self) -> str:
        """Its name, unique among the rows of a run."""
        return record_id(self.suite, self.benchmark, self.params, self.conditions)


def record_id(suite: str, benchmark: str, params: Mapping[str, Param], conditions: Conditions) -> str:
    """suite/benchmark[a=1,b=x,cache=hot]: parameters, and conditions that are not the default, in alphabetical order.

    The default conditions stay out of it, so that most names are short.
    """
    named = params if conditions == USUAL else {**params, **conditions.unusual}
    inside = ",".join([f"{name}={named[name]}" for name in sorted(named)])
    return f"{suite}/{benchmark}[{inside}]"


def name_of(record: Record) -> str:
    """suite/benchmark[a=1,b=x], without conditions: what rows have in common that are the same but for those. With the
    conditions it is a row's key, in files of every age: older ones have this name as the id under any conditions."""
    return record_id(record.suite, record.benchmark, record.params, USUAL)
