"""The rules of the repository, each seen to fail: a violation is planted in a copy of the tree and must be named."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LONGEST_MODULE = 450

# contract, the module that gets the import, what it imports
PLANTS = [
    ("layers", "stats", "gpubench.store.folder"),
    ("layers-of-ab", "ab.paired", "gpubench.ab.judge"),
    ("layers-of-claims", "claims.view", "gpubench.claims.judge"),
    ("layers-of-compare", "compare.judge", "gpubench.compare.runs"),
    ("layers-of-explain", "explain.fitted", "gpubench.explain.rows"),
    ("layers-of-selfcheck", "selfcheck.pool", "gpubench.selfcheck.splits"),
    ("layers-of-store", "store.jsonfile", "gpubench.store.folder"),
    ("without-torch", "units", "torch"),
    ("light-names", "suite", "numpy"),
    ("pure-model", "model.roofline", "gpubench.yamlfile"),
    ("cli-is-the-edge", "runner", "gpubench.cli"),
    ("device-in-the-worker", "executor", "gpubench.devices.cpu"),
    ("worker-behind-a-pipe", "cli", "gpubench.worker"),
    ("door-typer", "executor", "typer"),
    ("door-yaml", "plan", "yaml"),
    ("door-rich", "store.runfile", "rich.table"),
    ("door-torch", "check", "torch"),
    ("door-cupy", "devices.cuda", "cupy"),
    ("door-cupti", "devices.timers", "cupti"),
    ("door-pynvml", "devices.cuda", "pynvml"),
    ("door-pydantic", "report", "pydantic"),
    ("door-scipy", "compare.runs", "scipy.special"),
    ("door-vl-convert", "report.curve", "vl_convert"),
    ("door-platformdirs", "environment", "platformdirs"),
]


def tool(name: str, *words: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a tool of this interpreter's environment in a folder that is imported from first."""
    return subprocess.run(
        [Path(sys.executable).with_name(name), *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return tool("lint-imports", "--no-cache", "--no-logo", folder=folder)


def plant_import(tree: Path, module: str, imported: str) -> None:
    """Append a function that imports something: an import inside a function counts as one."""
    path = tree / "gpubench" / module.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    name = re.sub(r"\W", "_", imported)
    assert path.is_file()
    with path.open("a") as file:
        file.write(f"\n\ndef _planted_{name}() -> None:\n    import {imported}  # noqa\n")


def contracts() -> dict[str, str]:
    """The names of the import contracts by id."""
    return {contract["id"]: contract["name"] for contract in PROJECT["tool"]["importlinter"]["contracts"]}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what the linters read."""
    for folder in ("gpubench", "suites"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_contract_has_a_plant():
    assert sorted(contract for contract, _, _ in PLANTS) == sorted(contracts())


def test_contracts_hold_and_each_names_what_is_planted_against_it(tree: Path):
    clean = lint_imports(tree)
    assert clean.returncode == 0, clean.stdout + clean.stderr
    for _, module, imported in PLANTS:
        plant_import(tree, module, imported)
    planted = lint_imports(tree)
    assert planted.returncode != 0
    details = planted.stdout.split("Broken contracts", 1)[1]
    for contract, module, imported in PLANTS:
        link = f"gpubench.{module} -> {imported if imported.startswith('gpubench') else imported.partition('.')[0]}"
        name = contracts()[contract]
        assert f"{name} BROKEN" in planted.stdout
        section = re.split(r"\n-{3,}\n", details.split(f"{name}\n---", 1)[1].lstrip("-"), maxsplit=1)[0]
        assert link in section, f"{contract} does not name {link}:\n{section}"


def test_a_module_without_a_layer_is_an_error(tree: Path):
    (tree / "gpubench/unplaced.py").touch()
    done = lint_imports(tree)
    assert done.returncode != 0
    assert "unplaced" in done.stdout + done.stderr


def findings(done: subprocess.CompletedProcess[str]) -> set[tuple[str, int, str]]:
    """(file name, line, code) of each of ruff's findings."""
    found = re.findall(r"^(\S+?):(\d+):\d+: (\S+)", done.stdout, re.MULTILINE)
    return {(Path(file).name, int(line), code) for file, line, code in found}


def test_ruff_holds_the_package(tree: Path):
    clean = tool("ruff", "check", "--no-cache", ".", folder=tree)
    assert clean.returncode == 0, clean.stdout
    (tree / "gpubench/planted.py").write_text(
        '"""Planted."""\n\nimport sys\nimport os\n\n\ndef undocumented() -> None:\n    print(\'no\')\n    sys.exit(1)\n'
    )
    planted = tool("ruff", "check", "--no-cache", "--output-format", "concise", "gpubench", folder=tree)
    wanted = {(3, "I001"), (4, "F401"), (7, "D103"), (8, "T201"), (9, "TID251")}
    assert findings(planted) == {("planted.py", line, code) for line, code in wanted}
    assert planted.returncode != 0


def test_ruff_holds_the_suites(tree: Path):
    (tree / "suites/planted.py").write_text(
        '"""Planted."""\n'
        "\n"
        "import cupy\n"
        "import torch\n"
        "\n"
        "import gpubench.suites.peak\n"
        "from gpubench import Suite, devices\n"
        "from gpubench.model import roofline\n"
        "from gpubench.suite import Axis\n"
        "\n"
        "from . import bandwidth\n"
        "\n"
        "\n"
        "def needs_torch():\n"
        '    """Imports where it is used."""\n'
        "    import torch\n"
        "    print(torch)\n"
    )
    planted = tool("ruff", "check", "--no-cache", "--output-format", "concise", "suites/planted.py", folder=tree)
    held = {(line, code) for _, line, code in findings(planted) if code.startswith("T")}
    assert held == {
        (3, "TID253"),
        (4, "TID253"),
        (6, "TID251"),
        (7, "TID251"),
        (9, "TID251"),
        (11, "TID252"),
        (17, "T201"),
    }
    assert planted.returncode != 0


def test_suites_are_held_from_every_module_but_the_model():
    rules = tomllib.loads((ROOT / "suites/ruff.toml").read_text())
    banned = set(rules["lint"]["flake8-tidy-imports"]["banned-api"])
    modules = {path.stem for path in (ROOT / "gpubench").iterdir() if path.suffix == ".py" or path.is_dir()}
    modules = {name for name in modules if not name.startswith("__")} - {"model"} | {"suites"}
    assert banned == {f"gpubench.{name}" for name in modules}


def test_mypy_is_strict_on_the_package(tmp_path: Path):
    settings = PROJECT["tool"]["mypy"]
    assert settings["strict"] is True
    assert settings["files"] == ["gpubench"]
    (tmp_path / "planted.py").write_text(
        "def typed(values: list[int]) -> int:\n"
        "    return len(values)\n"
        "\n"
        "def untyped(value):\n"
        "    return value\n"
        "\n"
        "def wrong() -> int:\n"
        "    return 'no'\n"
        "\n"
        "def bare(values: list) -> None: ...\n"
    )
    config = ROOT / "pyproject.toml"
    done = tool("mypy", "--config-file", config, "--cache-dir", tmp_path / "cache", "planted.py", folder=tmp_path)
    found = re.findall(r"^planted\.py:(\d+): error: .*\[(\S+)\]$", done.stdout, re.MULTILINE)
    assert found == [("4", "no-untyped-def"), ("8", "return-value"), ("10", "type-arg")], done.stdout + done.stderr


def source_files() -> list[Path]:
    """Every file of the package and the suites that git would keep."""
    files = [path for folder in ("gpubench", "suites") for path in (ROOT / folder).rglob("*") if path.is_file()]
    return [path for path in files if not {"__pycache__", ".ruff_cache"} & set(path.parts)]


def test_package_list_is_the_tree():
    folders = {path.parent.relative_to(ROOT) for path in source_files() if path.suffix == ".py"}
    in_tree = {str(folder).replace("/", ".") for folder in folders if folder != Path("suites")} | {"gpubench.suites"}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == in_tree


def test_every_data_file_is_in_the_wheel():
    data = PROJECT["tool"]["setuptools"]["package-data"]
    patterns = [
        f"{'suites' if package == 'gpubench.suites' else package.replace('.', '/')}/{pattern}"
        for package, globs in data.items()
        for pattern in globs
    ]
    others = {str(path.relative_to(ROOT)) for path in source_files() if path.suffix != ".py"} - {"suites/ruff.toml"}
    forgotten = {name for name in others if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns)}
    assert not forgotten
    unused = [pattern for pattern in patterns if not fnmatch.filter(others, pattern)]
    assert not unused


def test_no_module_has_grown_two_subjects():
    modules = [path for path in source_files() if path.suffix not in (".yaml", ".gz")]  # data is as long as it is
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules}
    assert {name: length for name, length in lengths.items() if length > LONGEST_MODULE} == {}
