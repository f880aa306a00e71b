"""The hash of a benchmark: what moves it and what does not."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import gpubench.model
from gpubench import definition as definition_module
from gpubench.definition import definition_of
from gpubench.discovery import Library, load_suite
from gpubench.errors import UsageError

NESTED = """
import a
def f(x=lambda: 1):
    import b
    if x:
        from c import d
    else:
        import e
    for _ in x:
        import g
    while x:
        import h
    with x:
        import i
class K:
    try:
        import j
    except ValueError:
        import k
    else:
        import m
    finally:
        import n
match K:
    case 1:
        async def o():
            async with o:
                import p
try:
    pass
except* OSError:
    import q
"""


def test_imports_are_found_within_every_statement_and_in_the_order_of_the_tree() -> None:
    tree = ast.parse(NESTED)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert len(imports) == NESTED.count("import")
    assert [node for node in definition_module._statements(tree) if node in imports] == imports


# Each test writes a suite, changes one thing, and asks whether the hash moved

TEXT = '''
"""A suite."""
from gpubench import Axis, Suite, Workload
from math import pi

suite = Suite(__file__)
SIZES = [1, 2]
FACTOR = 4
TABLE = {"a": max, "b": len}
UNUSED = 1
LIMITS = {"z", "y", "x", "w"}
square = lambda value: value * value


class Shape:
    """A shape."""

    def area(self):
        """Its area."""
        return 2 * FACTOR


def helper(n):
    """Help."""
    return scaled(n) + 1


def scaled(n):
    return n * FACTOR


def unused(n):
    return n


@suite.benchmark(n=Axis(SIZES))
def bench(device, n):
    """Measure."""
    # a comment
    def inner(value):
        return value + 1

    size = inner(helper(n)) + square(n) + Shape().area() + len(LIMITS)
    return Workload(lambda: TABLE["a"](n, size), None, lambda: pi, f"name of {n:d}", flops=2 * n, bytes=size)
'''


@pytest.fixture
def definition(tmp_path: Path) -> Callable[[str], str]:
    count = itertools.count()

    def definition(text: str) -> str:
        """Each in a file of its own, since a module of one name is loaded once."""
        file = tmp_path / f"suite_{next(count)}.py"
        file.write_text(text)
        return load_suite(file).benchmarks["bench"].definition

    return definition


def changed(old: str, new: str, text: str = TEXT) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    # a comment\n", ""),
        ("    # a comment\n", "    # another\n\n\n    # and more\n"),
        ('    """Measure."""\n', ""),
        ('    """Measure."""\n', '    """Measure\n\n    much."""\n'),
        ('    """Help."""\n', ""),
        ('    """Its area."""\n', ""),
        ('    """A shape."""\n', ""),
        ('"""A suite."""\n', ""),
        ("@suite.benchmark(n=Axis(SIZES))", "@suite.benchmark(n=Axis([1, 2, 3], quick=[2]))"),
        ("SIZES = [1, 2]", "SIZES = [5]"),
        ("UNUSED = 1", "UNUSED = 2"),
        ("def unused(n):\n    return n", "def unused(n):\n    return 2"),
        ("FACTOR = 4", "FACTOR = (\n    4  # four\n)"),
        ("FACTOR = 4", "FACTOR = 0x4"),
        ("flops=2 * n, bytes=size)", "flops=(2*n),\n        bytes=size,\n    )"),
        ('f"name of {n:d}"', "f'name of {n:d}'"),
        ('f"name of {n:d}"', '("name " f"of {n:d}")'),
        ("def unused(n)", "import os\n\n\ndef unused(n)"),
    ],
)
def test_not_changed_by(definition: Callable[[str], str], old: str, new: str) -> None:
    assert definition(changed(old, new)) == definition(TEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("flops=2 * n", "flops=3 * n"),
        ("flops=2 * n", "flops=n * 2"),
        ("value + 1", "value + 2"),
        ("scaled(n) + 1", "scaled(n) + 2"),
        ("return n * FACTOR", "return n / FACTOR"),
        ("FACTOR = 4", "FACTOR = 5"),
        ("FACTOR = 4", 'FACTOR = "4"'),
        ("FACTOR = 4", "FACTOR = 4.0"),
        ("value * value", "value ** 3"),
        ("return 2 * FACTOR", "return 3 * FACTOR"),
        ('{"a": max, "b": len}', '{"a": min, "b": len}'),
        ('{"z", "y", "x", "w"}', '{"z", "y", "x"}'),
        ('TABLE["a"]', 'TABLE["b"]'),
        ("{n:d}", "{n:x}"),
        ("lambda: pi", "lambda: -pi"),
        ("FACTOR = 4", "FACTOR = 4\nif pi > 3:\n    FACTOR = 5"),
        ("FACTOR = 4", "FACTOR = 4\nFACTOR += 1"),
        ("FACTOR = 4", "FACTOR: int = 5"),
    ],
)
def test_changed_by(definition: Callable[[str], str], old: str, new: str) -> None:
    assert definition(changed(old, new)) != definition(TEXT)


def test_the_name_of_a_function_is_part_of_it(definition: Callable[[str], str]) -> None:
    swapped = TEXT.replace("helper", "HELPER").replace("scaled", "helper").replace("HELPER", "scaled")
    assert definition(swapped) != definition(TEXT)


def test_functions_that_call_each_other_end(definition: Callable[[str], str]) -> None:
    text = changed("return n * FACTOR", "return n * FACTOR if n else helper(n)")
    assert definition(text) != definition(TEXT)
    assert definition(changed("scaled(n) + 1", "scaled(n) + 2", text)) != definition(text)


def test_two_lambdas_in_one_line_are_told_apart(definition: Callable[[str], str]) -> None:
    one = changed("square = lambda value: value * value", "square, cube = lambda v: v * v, lambda v: v**3")
    assert definition(one.replace("v**3", "v**4")) != definition(one)


def test_a_kernel_counts_without_the_values_its_defines_may_take(definition: Callable[[str], str]) -> None:
    text = changed("FACTOR = 4", 'KERNEL = suite.kernel("k", source="a.cu", defines={"TILE": [1, 2]})\nFACTOR = KERNEL')
    assert definition(changed("[1, 2]})", "[1, 2, 4]})", text)) == definition(text)
    assert definition(changed('"a.cu"', '"b.cu"', text)) != definition(text)


def test_a_function_that_is_defined_within_a_statement_is_found(definition: Callable[[str], str]) -> None:
    text = changed("def scaled(n):\n    return n * FACTOR", "if pi:\n    def scaled(n):\n        return n * FACTOR")
    assert definition(changed("return n * FACTOR", "return n / FACTOR", text)) != definition(text)


def test_a_wrapped_function_is_what_it_wraps(definition: Callable[[str], str]) -> None:
    wrapper = """from functools import wraps


def noted(function):
    @wraps(function)
    def inner(device, n):
        return function(device, n)

    return inner


@suite.benchmark(n=Axis(SIZES))
@noted
def bench("""
    text = changed("@suite.benchmark(n=Axis(SIZES))\ndef bench(", wrapper)
    assert definition(text) == definition(TEXT)


def test_the_folder_of_the_file_does_not_count(tmp_path: Path) -> None:
    text = changed("size = inner", "kernel = __file__\n    size = inner")
    found = set()
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "some.py").write_text(text)
        found.add(load_suite(tmp_path / folder / "some.py").benchmarks["bench"].definition)
    assert len(found) == 1


def test_the_same_in_every_process(tmp_path: Path) -> None:
    """Sets and addresses have another order and value in each; a hash of them would make no two runs comparable."""
    (tmp_path / "some.py").write_text(TEXT)
    program = (
        "import pathlib, sys\n"
        "from gpubench.discovery import load_suite\n"
        f"print(load_suite(pathlib.Path({str(tmp_path / 'some.py')!r})).benchmarks['bench'].definition)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[1])},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert re.fullmatch(r"[0-9a-f]{16}\n", found.pop())


def test_the_same_in_every_version_of_python(definition: Callable[[str], str]) -> None:
    """The value of Python 3.11; a version with other fields in its syntax tree must give it too. It changes with the
    way the hash is made, and then no row of an older run stays comparable: a decision, not a detail."""
    assert definition(TEXT) == "4a1e935c4789258c"


# Definitions that use the model

FORMULAS = '''
"""Formulas."""
from math import pi
from gpubench.model.basis import double as twice

CAP = 256
UNUSED = 1


def flops(n):
    """How many."""
    return twice(n) * CAP


def bytes(n):
    return n * pi
'''
BASIS = """
from gpubench.errors import UsageError

TWO = 2


def double(n):
    return TWO * n


def triple(n):
    return 3 * n
"""
IMPORTS = [
    ("from gpubench.model import formulas", "formulas.flops(n)"),
    ("from gpubench.model import formulas as work", "work.flops(n)"),
    ("from gpubench.model.formulas import flops", "flops(n)"),
    ("from gpubench.model.formulas import flops as count", "[count][0](n)"),
    ("import gpubench.model.formulas", "gpubench.model.formulas.flops(n)"),
    ("import gpubench.model.formulas as work", "helper(n) or work.flops(n).real"),
    ("from gpubench import model", "model.formulas.flops(n)"),
    ("", "flops(n)\n    from gpubench.model.formulas import flops"),
    ("from gpubench.model.formulas import flops", "scaled(n)"),
]


@pytest.fixture
def modelled(
    definition: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., str]]:
    """The definition of a suite whose model has these two modules, which are read but never run."""
    for name in ("basis", "formulas"):  # what the suite imports when it is loaded
        monkeypatch.setitem(sys.modules, f"gpubench.model.{name}", ModuleType(name))
        monkeypatch.setattr(gpubench.model, name, sys.modules[f"gpubench.model.{name}"], raising=False)
    monkeypatch.setattr(sys.modules["gpubench.model.formulas"], "flops", None, raising=False)
    monkeypatch.setattr(definition_module, "_MODEL", tmp_path / "model")
    (tmp_path / "model").mkdir()

    def modelled(text: str, formulas: str = FORMULAS, basis: str = BASIS) -> str:
        (tmp_path / "model/__init__.py").write_text("")
        (tmp_path / "model/formulas.py").write_text(formulas)
        (tmp_path / "model/basis.py").write_text(basis)
        definition_module._model.cache_clear()
        return definition(text)

    yield modelled
    definition_module._model.cache_clear()


def using(statement: str, call: str) -> str:
    """The suite with a call of the model in its benchmark, or in `scaled`, which the benchmark uses."""
    text = changed("from math import pi", f"from math import pi\n{statement}")
    if call == "scaled(n)":
        return changed("return n * FACTOR", "return flops(n) * FACTOR", text)
    return changed("    size = inner", f"    count = {call}\n    size = inner", text)


@pytest.mark.parametrize(("statement", "call"), IMPORTS)
def test_a_formula_of_the_model_is_part_of_what_uses_it(
    modelled: Callable[..., str], statement: str, call: str
) -> None:
    text = using(statement, call)
    before = modelled(text)
    for old, new in [("twice(n) * CAP", "twice(n) + CAP"), ("CAP = 256", "CAP = 128"), ("double as", "triple as")]:
        assert modelled(text, changed(old, new, FORMULAS)) != before, new
    for old, new in [("TWO * n", "TWO + n"), ("TWO = 2", "TWO = 3")]:
        assert modelled(text, FORMULAS, changed(old, new, BASIS)) != before, new
    for old, new in [("UNUSED = 1", "UNUSED = 2"), ("n * pi", "n"), ('    """How many."""\n', "    # so many\n")]:
        assert modelled(text, changed(old, new, FORMULAS)) == before, new
    assert modelled(text, FORMULAS, changed("3 * n", "4 * n", BASIS)) == before
    assert modelled(text) == before


def test_a_module_of_the_model_that_is_passed_on_counts_whole(modelled: Callable[..., str]) -> None:
    text = using("from gpubench.model import formulas", 'getattr(formulas, "flops")(n)')
    before = modelled(text)
    assert modelled(text, changed("n * pi", "n", FORMULAS)) != before
    assert modelled(text, FORMULAS, changed("TWO = 2", "TWO = 3", BASIS)) != before
    assert modelled(text, FORMULAS, changed("3 * n", "4 * n", BASIS)) == before


def test_formulas_of_one_name_in_two_files_are_two(modelled: Callable[..., str]) -> None:
    text = using("from gpubench.model import formulas", "formulas.helper(n)")
    with_helper = f"{FORMULAS}\n\ndef helper(n):\n    return n\n"
    before = modelled(text, with_helper)
    assert modelled(text, changed("    return n\n", "    return -n\n", with_helper)) != before
    assert modelled(changed("scaled(n) + 1", "scaled(n) + 2", text), with_helper) != before


def test_a_suites_formulas_are_found() -> None:
    """The suite that is used most: its definition holds the flops it counts."""
    library = Library()
    function = library.suite("matmul-sweep").benchmarks["matmul"].function
    file = definition_module._Source("", Path(function.__code__.co_filename).read_text())
    assert {("gpubench.model.matmul", name) for name in ("flops", "bytes", "alignment", "reference")} <= (
        definition_module._used(file, file.tree)
    )


def test_a_nested_function_is_found_by_its_line() -> None:
    def factory(kind: int) -> Callable[..., Any]:
        if kind == 0:

            def bench(device: Any) -> int:
                return 0

        else:

            def bench(device: Any) -> int:
                return 1

        return bench

    assert definition_of(factory(0)) != definition_of(factory(1))


def test_a_lambda_has_a_definition() -> None:
    one = lambda device: 1  # noqa: E731
    two = lambda device: 2  # noqa: E731
    assert definition_of(one) != definition_of(two)


def test_a_file_that_changed_since_it_was_loaded_is_said(tmp_path: Path) -> None:
    file = tmp_path / "moved.py"
    file.write_text(TEXT)
    bench = load_suite(file).benchmarks["bench"]
    file.write_text("# one line more\n" + TEXT)
    with pytest.raises(UsageError, match=r"moved.py: changed since it was loaded \(run it again\)"):
        _ = bench.definition
