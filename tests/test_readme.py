"""README says what is true: its figures come from the run files they name, its commands and targets exist."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
import typer.main

from gpubench.cli.app import app

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _script():
    spec = importlib.util.spec_from_file_location("readme_script", ROOT / "scripts" / "readme.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_figures_are_drawn_from_the_run_files_they_name():
    script = _script()
    assert len(script.BLOCK.findall(README)) == 7
    assert {page.name for page in script.PAGES} == {"README.md", "lecture.md"}
    assert script.main(["--check"]) == 0, "python scripts/readme.py"


def test_a_figure_typed_by_hand_is_found():
    script = _script()
    body = script.BLOCK.search(README)["body"]
    touched = README.replace(body, body.replace("600", "700"))
    assert touched != README
    assert script.drawn(touched) == README


def test_the_first_commands_are_the_two_make_targets():
    first = re.search(r"```\n(.*?)```", README, re.DOTALL)[1]
    assert [line.split("#")[0].strip() for line in first.splitlines()] == ["make run", "make test"]


@pytest.mark.parametrize("line", [line for line in README.splitlines() if line.startswith("gpubench ")])
def test_every_command_and_flag_in_it_exists(line):
    commands = typer.main.get_command(app).commands
    words = shlex.split(re.split(r"  +|\|", line.split(";")[0])[0])
    assert words[1] in commands
    known = {flag for param in commands[words[1]].params for flag in (*param.opts, *param.secondary_opts)}
    for flag in re.findall(r"(?<= )--?[a-z][a-z-]*", line.split("|")[0].split(";")[0]):
        assert flag in known, flag
