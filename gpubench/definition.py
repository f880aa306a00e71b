"""The definition of a benchmark: a hash of what it computes, from the syntax trees of its file and of the model."""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from gpubench.errors import UsageError


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
        for node in _statements(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                self.imports |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    self.imports[alias.asname or first] = alias.name if alias.asname else first


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """The statements of a file, those inside others too, as `ast.walk` orders them: without the expressions, which are
    most of a tree, and of the time it takes."""
    todo = deque[ast.AST]([tree])
    while todo:
        node = todo.popleft()
        yield node
        todo.extend(
            inside
            for name in ("body", "handlers", "orelse", "finalbody", "cases")
            if isinstance(found := getattr(node, name, None), list)
            for inside in found
        )


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
