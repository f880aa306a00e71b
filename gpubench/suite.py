"""Suite, Axis, Benchmark, Case: what can be measured, and which rows a sweep has.

A suite is one Python file. Its benchmarks are functions of a device and of axis values; an axis has default values per
kind of device, so the same suite runs on a GPU and, with smaller sizes, on a CPU.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gpubench.errors import UsageError
from gpubench.result import Conditions, Param
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
    """One function of a suite and its axes."""

    suite: str
    name: str
    function: Function
    axes: Mapping[str, Axis]

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
        """The first line of its docstring."""
        return (inspect.getdoc(self.function) or "").split("\n", 1)[0]

    @property
    def definition(self) -> str:
        """A hash of what it computes: rows with different definitions are not comparable."""
        return definition_of(self.function)

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

    def benchmark(self, **axes: Axis) -> Callable[[Function], Function]:
        """Declare a benchmark: a function of `device` and one argument per axis that returns a Workload."""

        def declare(function: Function) -> Function:
            name = function.__name__.replace("_", "-")
            wanted = list(inspect.signature(function).parameters)[1:]
            if sorted(wanted) != sorted(axes):
                raise TypeError(f"{self.name}/{name}: arguments {wanted} and axes {sorted(axes)} differ")
            for axis_name, axis in axes.items():
                if axis.same_as is not None and (axis.same_as not in axes or axes[axis.same_as].same_as is not None):
                    raise TypeError(f"{self.name}/{name}: axis {axis_name} follows {axis.same_as}, which has no values")
            if name in self.benchmarks:
                raise TypeError(f"{self.name}/{name} is declared twice")
            self.benchmarks[name] = Benchmark(self.name, name, function, axes)
            return function

        return declare


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
        """Its name: suite/benchmark[parameters by name]. Conditions are beside it, in the record."""
        return record_id(self.suite, self.benchmark, self.params)


def record_id(suite: str, benchmark: str, params: Mapping[str, Param]) -> str:
    """suite/benchmark[a=1,b=x], parameters in alphabetical order."""
    inside = ",".join(f"{name}={params[name]}" for name in sorted(params))
    return f"{suite}/{benchmark}[{inside}]"


@cache
def definition_of(function: Callable[..., Any]) -> str:
    """Sixteen hex digits that change when what the function computes changes.

    The hash covers the function and whatever it uses, directly or not, of the same file and of the formulas of
    gpubench.model: functions, classes, constants. Comments, docstrings, decorators and layout do not count, nor do the
    default values of axes, which select rows, nor the values a kernel's defines may take, nor what a closure holds. It
    is taken from the syntax tree, so that it is the same in every process and Python version. UsageError where the file
    has changed since it was loaded.
    """
    function = inspect.unwrap(function)
    lines, _ = inspect.findsource(function)
    file = _Source("", "".join(lines))
    chosen = _strip(_find(function, file.tree))
    todo, used = [(file, chosen)], {("", function.__name__)}
    parts = [_canonical(chosen)]
    while todo:
        for module, name in sorted(_used(*todo.pop()) - used):
            used.add((module, name))
            source = _model(module) if module else file
            statements = [_strip(statement) for statement in source.bound.get(name, [])]
            parts += [f"{source.prefix}{name}:{_canonical(statement)}" for statement in statements]
            todo += [(source, statement) for statement in statements]
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()[:16]


_MODEL = Path(__file__).parent / "model"


class _Source:
    """A file's syntax: by name, the statements at its top that bind it, and the dotted names that it imports.

    `module` is empty for a suite's file, and else a module of gpubench.model.
    """

    def __init__(self, module: str, text: str) -> None:
        self.module = module
        self.prefix = f"{module}." if module else ""
        self.tree = ast.parse(text)
        self.bound: dict[str, list[ast.stmt]] = {}
        for statement in self.tree.body:
            for name in _names_bound(statement):
                self.bound.setdefault(name, []).append(statement)
        self.imports: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self.imports |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    self.imports[alias.asname or first] = alias.name if alias.asname else first


def _model_file(module: str) -> Path | None:
    """The file of a module of gpubench.model; None for any other name."""
    parts = module.split(".")
    if parts[:2] != ["gpubench", "model"]:
        return None
    place = _MODEL.joinpath(*parts[2:])
    return next(filter(Path.is_file, (Path(f"{place}.py"), place / "__init__.py")), None)


@cache
def _model(module: str) -> _Source:
    file = _model_file(module)
    assert file is not None
    return _Source(module, file.read_text(encoding="utf-8"))


def _used(source: _Source, tree: ast.AST) -> set[tuple[str, str]]:
    """The names that a tree of this file reads, of the top of this file or of the model's, each with its module."""
    return {found for chain in _chains(tree) for found in _resolved(source, chain)}


def _resolved(source: _Source, chain: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The names that a chain of attributes (`work.flops`) may stand for. A module by itself is all of its names."""
    yield source.module, chain[0]
    if chain[0] not in source.imports:
        return
    parts = (*source.imports[chain[0]].split("."), *chain[1:])
    for size in range(len(parts), 1, -1):
        module, rest = ".".join(parts[:size]), parts[size:]
        if _model_file(module) is not None:
            inside = _model(module)
            yield from _resolved(inside, rest) if rest else ((module, name) for name in inside.bound)
            return


def _chains(node: ast.AST) -> Iterator[tuple[str, ...]]:
    """The names that a tree reads, each with the attributes it takes of it."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.insert(0, node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load):
            yield (node.id, *attributes)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _chains(child)


_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _find(function: Callable[..., Any], file: ast.Module) -> ast.AST:
    """The node of a function in the tree of its file, by the line its code begins on: that of its first decorator."""
    line = function.__code__.co_firstlineno
    for node in ast.walk(file):
        if isinstance(node, ast.FunctionDef) and node.name == function.__name__:
            if line in (node.lineno, *(decorator.lineno for decorator in node.decorator_list)):
                return node
        elif isinstance(node, ast.Lambda) and function.__name__ == "<lambda>" and node.lineno == line:
            return node
    raise UsageError(f"{function.__code__.co_filename}: changed since it was loaded", "run it again")


def _names_bound(statement: ast.stmt) -> set[str]:
    """The names that a statement at the top of a file defines or assigns; imports are another file's matter."""
    if isinstance(statement, _Definition):
        return {statement.name}
    nodes = list(ast.walk(statement))
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return stored | {node.name for node in nodes if isinstance(node, _Definition)}


def _canonical(node: object) -> str:
    """A syntax tree as text, without places and without fields that are empty: newer Pythons have more of them."""
    if isinstance(node, ast.AST):
        fields = [(name, value) for name, value in ast.iter_fields(node) if name not in ("ctx", "kind", "type_comment")]
        inside = ",".join(f"{name}={_canonical(value)}" for name, value in fields if value is not None and value != [])
        return f"{type(node).__name__}({inside})"
    if isinstance(node, list):
        return f"[{','.join(map(_canonical, node))}]"
    return repr(node)


def _strip(tree: ast.AST) -> ast.AST:
    """Take decorators and docstrings out of every function and class of the tree, and the values that defines may take
    out of every declaration of a kernel: another variant to choose from leaves the others what they were."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "kernel":
            node.keywords = [keyword for keyword in node.keywords if keyword.arg != "defines"]
        if isinstance(node, _Definition):
            node.decorator_list = []
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:] or [ast.Pass()]
    return tree
