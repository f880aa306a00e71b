from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpubench.discovery import Library, built_in, load_suite
from gpubench.errors import UsageError

SUITE = '''
from gpubench import Axis, Suite

suite = Suite(__file__)


@suite.benchmark(n=Axis([1, 2]))
def add(device, n):
    """Add."""
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of two suites."""
    folder = tmp_path / "ours"
    (folder / "plans").mkdir(parents=True)
    (folder / "memory_hierarchy.py").write_text(SUITE)
    (folder / "fusion.py").write_text(SUITE)
    (folder / "__init__.py").write_text("raise RuntimeError")
    (folder / "plans" / "quick.yaml").write_text("run: {fusion: {n: [3]}}\n")
    return folder


def plug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, name: str = "theirs") -> Path:
    """A distribution with one entry point, on the path; its folder."""
    site = tmp_path / "site"
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[gpubench.suites]\n{name} = {value}\n")
    monkeypatch.syspath_prepend(str(site))
    return site


def test_names_cost_no_import_and_both_spellings_work(folder: Path) -> None:
    (folder / "broken.py").write_text("raise RuntimeError")
    library = Library(folder)
    assert library.names() == ["broken", "fusion", "memory-hierarchy"]
    suite = library.suite("memory_hierarchy")
    assert suite is library.suite("memory-hierarchy")
    assert suite.file == folder / "memory_hierarchy.py"
    function = suite.benchmarks["add"].function
    assert function.__module__ == "gpubench.suites.memory_hierarchy"
    assert sys.modules[function.__module__].suite is suite
    assert len(suite.benchmarks["add"].definition) == 16  # the source is found


def test_our_own_suites_load_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "numpy", "cupy"):
        monkeypatch.setitem(sys.modules, name, None)  # to import it is an error
    library = Library()
    assert {"bandwidth", "matmul-sweep"} <= set(library.suites())
    assert library.folder == built_in()
    assert library.warnings == []


def test_an_unknown_name_says_what_is_near(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"no suite 'fushion'; did you mean fusion\? \(gpubench list\)"):
        Library(folder).suite("fushion")
    with pytest.raises(UsageError, match=r"no plan 'quik'; did you mean quick\?"):
        Library(folder).plan("quik")


def test_plans(folder: Path) -> None:
    library = Library(folder)
    assert library.plans() == {"quick": folder / "plans" / "quick.yaml"}
    assert library.plan("quick").run == {"fusion": {"n": [3]}}


def test_a_file_on_the_command_line(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "my_own.py"
    mine.write_text(SUITE)
    library = Library(folder)
    assert library.add_file(mine).name == "my-own"
    assert "my-own" in library.suites()
    monkeypatch.chdir(tmp_path)
    assert library.add_file(Path("my_own.py")) is library.suite("my-own")
    assert library.add_file(folder / "fusion.py") is library.suite("fusion")
    assert load_suite(Path("my_own.py")).name == "my-own"


def test_two_suites_of_one_name_are_refused_with_both_files(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "fusion.py"
    other.write_text(SUITE)
    with pytest.raises(UsageError, match="two suites are named fusion") as error:
        Library(folder).add_file(other)
    assert str(other) in str(error.value)
    assert str(folder / "fusion.py") in str(error.value)
    (folder / "memory-hierarchy.py").write_text(SUITE)
    with pytest.raises(UsageError, match="two suites are named memory-hierarchy"):
        Library(folder).names()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x = 1\nsuite = (\n", ":2: SyntaxError: '(' was never closed"),
        ("\nimport no_such_module\n", ":2: ModuleNotFoundError: No module named 'no_such_module'"),
        ("def f():\n    raise ValueError('two\\nlines')\n\n\nf()\n", ":2: ValueError: two lines"),
        ("import json\n\njson.loads('{')\n", ":3: JSONDecodeError"),
        ("import sys\nsys.exit(3)\n", ":2: SystemExit: 3"),
        ("assert False\n", ":1: AssertionError"),
        ("x = '\0'\n", ": "),
        ("x = 1\n", ": declares no suite"),
        ("", ": declares no suite"),
        ("suite = 'matmul'\n", ": declares no suite"),
        ("from gpubench import Suite\nsuite = Suite('other.py')\n", ": its suite is of another file, other.py"),
        ("from gpubench import Suite\nsuite = Suite(__file__)\n", ": the suite has no benchmark"),
        (SUITE.replace("device, n", "device, m"), ":7: TypeError: bad/add: arguments"),
    ],
)
def test_a_broken_suite_is_one_line_with_its_place(folder: Path, text: str, says: str) -> None:
    bad = folder / "bad.py"
    bad.write_text(text)
    with pytest.raises(UsageError) as error:
        Library(folder).suites()
    message = str(error.value)
    assert message.startswith(f"{bad}{says}")
    assert error.value.hint
    assert "\n" not in message


def test_a_broken_suite_leaves_no_module_behind(folder: Path) -> None:
    (folder / "bad.py").write_text("1 / 0\n")
    with pytest.raises(UsageError):
        load_suite(folder / "bad.py")
    assert "gpubench.suites.bad" not in sys.modules
    (folder / "bad.py").write_text(SUITE)
    assert load_suite(folder / "bad.py").name == "bad"


@pytest.mark.parametrize("name", ["none.py", "plans", "notes.txt", "two words.py", "[x].py"])
def test_what_cannot_be_a_suite_file(folder: Path, name: str) -> None:
    if name not in ("none.py", "plans"):
        (folder / name).write_text(SUITE)
    with pytest.raises(UsageError):
        Library(folder).add_file(folder / name)


def test_an_entry_point_may_be_a_module(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = plug(tmp_path, monkeypatch, "their_sweep")
    (site / "their_sweep.py").write_text(SUITE)
    library = Library(folder)
    assert library.suite("their-sweep").file == site / "their_sweep.py"
    assert library.suite("their-sweep").benchmarks["add"].function.__module__ == "gpubench.suites.their_sweep"
    assert "their_sweep" not in sys.modules


def test_an_entry_point_may_be_a_package(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = plug(tmp_path, monkeypatch, "their_suites")
    (site / "their_suites").mkdir()
    for name in ("one", "two", "_shared"):
        (site / "their_suites" / f"{name}.py").write_text(SUITE)
    (site / "their_suites" / "__init__.py").write_text("")
    library = Library(folder)
    assert sorted(library.suites()) == ["fusion", "memory-hierarchy", "one", "two"]
    assert library.warnings == []


@pytest.mark.parametrize(
    ("value", "file", "text", "says"),
    [
        ("not_there", None, "", "entry point theirs: there is no module not_there"),
        ("not_there.suites", None, "", "entry point theirs: ModuleNotFoundError"),
        ("bad_parent.suites", "bad_parent/__init__.py", "1 / 0", "entry point theirs: ZeroDivisionError"),
        ("math", None, "", "entry point theirs: math is not a .py file"),
        ("bad_sweep", "bad_sweep.py", "1 / 0", "bad_sweep.py:1: ZeroDivisionError"),
        ("empty_sweep", "empty_sweep.py", "", "empty_sweep.py: declares no suite"),
    ],
)
def test_a_broken_entry_point_costs_one_warning(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, file: str | None, text: str, says: str
) -> None:
    site = plug(tmp_path, monkeypatch, value)
    if file:
        (site / file).parent.mkdir(exist_ok=True)
        (site / file).write_text(text)
    library = Library(folder)
    library.suites()
    assert sorted(library.suites()) == ["fusion", "memory-hierarchy"]
    assert len(library.warnings) == 1
    assert says in library.warnings[0]
    assert "\n" not in library.warnings[0]
