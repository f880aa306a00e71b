"""The composite action run as a workflow runs it, and the workflows of docs/ci.md, whose every line exists."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from command import LIMIT, PACED, ROOT, STEPWISE, Gates, environment, gone, strict
from packaging.requirements import Requirement
from test_cli_check import Project

from gpubench.cli.app import app
from gpubench.discovery import Library
from gpubench.exits import Exit
from gpubench.plan import load_plan

ACTION = ROOT / ".github" / "actions" / "gpubench"
DOCS = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
EXPRESSION = re.compile(r"\$\{\{\s*([a-z.-]+)\s*\}\}")


def action() -> dict[str, Any]:
    """The action's own description."""
    found = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


class Runner:
    """What a runner does with a step `uses: ./.github/actions/gpubench`, in a project's folder."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.folder = project.folder
        self.command = self.folder / "bin" / "gpubench"
        self.command.parent.mkdir()
        self.command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m gpubench "$@"\n')
        self.command.chmod(0o755)
        self.outputs: dict[str, str] = {}

    def __call__(self, factors: str = "1", **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run the step to its end; its outputs are in `outputs`."""
        step = self.start(inputs, TOY_FACTORS=factors, TOY_ROW="3")
        out, said = step.communicate(timeout=120)
        lines = (self.folder / "github_output").read_text().splitlines()
        self.outputs = dict(line.split("=", 1) for line in lines)
        assert len(self.outputs) == len(lines)
        self.summary = (self.folder / "github_step_summary").read_text()
        return subprocess.CompletedProcess(step.args, step.returncode, out, said)

    def start(self, inputs: Mapping[str, str], **variables: str) -> subprocess.Popen[str]:
        """Begin the step with inputs, whose names have _ in place of -."""
        described = action()
        given = {name.replace("_", "-"): text for name, text in {"command": str(self.command), **inputs}.items()}
        assert given.keys() <= described["inputs"].keys()
        values = {f"inputs.{name}": given.get(name, each["default"]) for name, each in described["inputs"].items()}
        (step,) = described["runs"]["steps"]
        assert (described["runs"]["using"], step["shell"]) == ("composite", "bash")
        script = self.folder / "step.sh"
        script.write_text(step["run"])
        files = {name: self.folder / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        for path in files.values():
            path.write_text("")
        (self.folder / "count").unlink(missing_ok=True)
        env = environment(
            self.folder,
            GITHUB_ACTIONS="true",
            CI="true",
            GITHUB_ACTION_PATH=str(ACTION),
            **{name: str(path) for name, path in files.items()},
            **self.project.env | variables,
            **{name: EXPRESSION.sub(lambda found: values[found[1]], text) for name, text in step["env"].items()},
        )
        return subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
            cwd=self.folder / EXPRESSION.sub(lambda found: values[found[1]], step["working-directory"]),
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def runner(project: Project) -> Runner:
    return Runner(project)


def test_a_build_that_passes(project: Project, runner: Runner) -> None:
    project.keep(5)
    done = runner(words=PACED, device="fake")
    assert done.returncode == 0, done.stderr
    assert runner.outputs == {
        "exit-code": "0",
        "run": "gpubench-check/run.json",
        "comparison": "gpubench-check/comparison.json",
        "junit": "gpubench-check/junit.xml",
    }
    assert strict((runner.folder / runner.outputs["run"]).read_text())["ci"] == {"provider": "github-actions"}
    assert strict((runner.folder / runner.outputs["comparison"]).read_text())["counts"] == {"same": 5}
    assert (runner.folder / "gpubench-check/comparison.md").read_text().startswith("### 5 matched · 5 same")
    assert runner.summary.startswith("### 5 matched · 5 same")


def test_a_build_that_got_slower_fails_with_the_code_of_the_check(project: Project, runner: Runner) -> None:
    project.keep(5)
    done = runner(words=PACED, device="fake", factors="1.1")
    assert done.returncode == Exit.REGRESSION
    assert runner.outputs["exit-code"] == "3"
    assert done.stderr.count("::error title=gpubench regression::paced n=3") == 1
    assert runner.summary.startswith("### 5 matched · 1 regression · 4 same")
    assert runner(words=PACED, device="fake", factors="1.1", margin="15%").returncode == 0
    assert runner(words=PACED, device="fake", factors="1.1", fail_on="failed,missing").returncode == 0


def test_a_build_without_a_baseline_says_so_and_has_no_files(runner: Runner) -> None:
    (runner.folder / "gpubench-check").mkdir()
    for name in ("run.json", "comparison.json", "comparison.md", "junit.xml"):
        (runner.folder / "gpubench-check" / name).write_text("of an earlier build")
    done = runner(words=PACED, device="fake", baseline="nightly")
    assert done.returncode == Exit.NOTHING
    assert runner.outputs == {"exit-code": "5", "run": "", "comparison": "", "junit": ""}
    assert done.stderr.startswith("::error title=gpubench::no baseline 'nightly'")
    assert runner.summary.startswith("### Nothing was judged")
    assert list((runner.folder / "gpubench-check").iterdir()) == []


def test_a_project_in_a_folder_of_its_own_measures_what_its_file_says(project: Project, runner: Runner) -> None:
    inner = runner.folder / "inner [x]"
    inner.mkdir()
    (inner / "gpubench.yaml").write_text("run: {softmax: {}}\ndevice: fake\nbaseline: mine\n")
    done = runner(working_directory="inner [x]", folder="out put")
    assert (done.returncode, "no baseline 'mine'" in done.stderr) == (5, True)
    assert (inner / "out put").is_dir()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_cancelled_step_ends_at_once_and_keeps_what_was_measured(
    project: Project, runner: Runner, tmp_path: Path, number: signal.Signals
) -> None:
    """A runner signals the first process of the step, and kills the others after some seconds."""
    project.keep(1)
    gates = Gates(tmp_path)
    step = runner.start({"words": STEPWISE, "device": "fake"}, **gates.env)
    worker = gates.told()
    step.send_signal(number)
    _, said = step.communicate(timeout=LIMIT)
    gates.close()
    assert step.returncode == Exit.SIGTERM, said
    assert gone(worker)
    assert "exit-code=143\nrun=gpubench-check/run.json\n" in (runner.folder / "github_output").read_text()
    assert strict((runner.folder / "gpubench-check/run.json").read_text())["status"] == "interrupted"
    assert "saved gpubench-check/run.json" in said


NASTY = [
    "$(touch {pwned})",
    "`touch {pwned}`",
    '"; touch {pwned}; "',
    "'; touch {pwned}; '",
    "x\ntouch {pwned}",
    "x\n::error::y\nexit-code=0",
    "${{IFS}}$(touch {pwned})",
    "--fail-on=none",
    "-h",
    "*",
    "\\",
]


TEXTS = ("baseline", "device", "margin", "fail_on", "max_time", "base")


@pytest.mark.parametrize("text", NASTY, ids=repr)
def test_no_text_of_an_input_is_read_as_a_command_or_a_flag(runner: Runner, text: str) -> None:
    runner.command.write_text('#!/bin/sh\nprintf "%s\\0" "$@" >given\n')
    pwned = runner.folder / "pwned"
    text = text.format(pwned=pwned)
    done = runner(words=f"{text}  b\nc", **dict.fromkeys(TEXTS, text))
    assert (done.returncode, runner.outputs["exit-code"]) == (0, "0")
    given = (runner.folder / "given").read_text().removesuffix("\0").split("\0")
    at = given.index("--")
    assert given[at - len(TEXTS) : at] == [f"--{name.replace('_', '-')}={text}" for name in TEXTS]
    assert given[at + 1 :] == [*text.split(), "b", "c"]
    assert given[0] == "check"
    assert not pwned.exists()


@pytest.mark.parametrize("name", ["words", *TEXTS])
def test_the_command_refuses_what_is_no_value(runner: Runner, name: str) -> None:
    done = runner(**{"words": PACED, "device": "fake", name: "--fail-on=none\n::error::x"})
    assert (done.returncode, runner.outputs["exit-code"]) == (2, "2")
    assert not [line for line in done.stderr.splitlines() if line.startswith("::error::")]


@pytest.mark.parametrize("folder", ["", "a\nexit-code=0", "a\rb"], ids=repr)
def test_a_folder_that_would_be_another_output_is_refused(runner: Runner, folder: str) -> None:
    done = runner(words=PACED, device="fake", folder=folder)
    assert (done.returncode, runner.outputs) == (2, {})
    assert "::error title=gpubench::folder" in done.stderr


@pytest.mark.parametrize("command", ["", "no-such-program", "./gone"])
def test_a_command_that_is_not_there_is_said_on_the_page_of_the_build(runner: Runner, command: str) -> None:
    done = runner(words=PACED, device="fake", command=command)
    assert (done.returncode, done.stderr) == (2, "::error title=gpubench::command: there is no such program\n")


def test_no_expression_stands_in_the_script() -> None:
    described = action()
    (step,) = described["runs"]["steps"]
    assert "${{" not in step["run"] + (ACTION / "check.sh").read_text(encoding="utf-8")
    named = {found[1] for text in step["env"].values() if (found := EXPRESSION.fullmatch(text))}
    assert len(named) == len(step["env"])
    assert {f"inputs.{name}" for name in described["inputs"]} == {*named, "inputs.working-directory"}
    outputs = {EXPRESSION.fullmatch(each["value"])[1] for each in described["outputs"].values()}  # type: ignore[index]
    assert outputs == {f"steps.{step['id']}.outputs.{name}" for name in described["outputs"]}
    assert os.access(ACTION / "check.sh", os.X_OK)


# docs/ci.md

BLOCKS = re.findall(r"^```(yaml)?\n(.*?)^```", DOCS, re.MULTILINE | re.DOTALL)
YAML = [text for kind, text in BLOCKS if kind]
PARSED = [yaml.load(text, Loader=yaml.BaseLoader) for text in YAML]
WORKFLOWS = [each for each in PARSED if "jobs" in each]
ELSEWHERE = next(each for each in PARSED if isinstance(each, list))
"""The steps of a job in another repository."""
STEPS = [step for flow in WORKFLOWS for job in flow["jobs"].values() for step in job["steps"]]


def commands() -> list[str]:
    """Every line of docs/ci.md that calls gpubench, without what is said beside it."""
    plain = [line for kind, text in BLOCKS if not kind for line in text.splitlines()]
    run = [line for step in STEPS for line in step.get("run", "").splitlines()]
    lines = [line.removeprefix(".venv/bin/") for line in (*plain, *run)]
    return [re.split(r" {3,}", line)[0] for line in lines if line.startswith("gpubench ")]


def test_there_are_four_workflows_and_each_is_whole() -> None:
    assert [flow["name"] for flow in WORKFLOWS] == [
        *("gpubench", "gpubench baseline", "gpubench nightly", "gpubench smoke")
    ]
    for flow in WORKFLOWS:
        assert set(flow) <= {"name", "on", "permissions", "concurrency", "jobs"}
        assert flow["permissions"] == {"contents": "read"}
        for job in flow["jobs"].values():
            assert set(job) <= {"if", "runs-on", "timeout-minutes", "steps"}
            assert int(job["timeout-minutes"]) > 0
    for step in (*STEPS, *ELSEWHERE):
        assert ("run" in step) != ("uses" in step)
        assert set(step) <= {"run", "uses", "with", "id", "if"}
        assert "${{" not in step.get("run", "")


def test_only_a_newer_run_of_the_same_branch_ends_one() -> None:
    """A group that several share is no lock: GitHub cancels all that wait for it but the last."""
    for flow in WORKFLOWS:
        assert flow.get("concurrency", {"group": "${{ github.ref }}"})["group"].endswith("${{ github.ref }}")


def test_in_another_repository_the_distribution_and_its_extra_are_ours() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (line,) = (step["run"] for step in ELSEWHERE if "pip install" in step.get("run", ""))
    wanted = Requirement(shlex.split(line)[-1])
    assert wanted.name == project["name"]
    assert wanted.extras <= project["optional-dependencies"].keys()
    (used,) = (step for step in ELSEWHERE if "gpubench" in step.get("uses", ""))
    assert (ROOT / used["uses"].removeprefix("OWNER/gpubench/").partition("@")[0] / "action.yml").is_file()
    assert used["with"].keys() <= action()["inputs"].keys()


def test_steps_use_what_is_there() -> None:
    used = [step for step in STEPS if step.get("uses", "").startswith("./")]
    assert used
    for step in used:
        assert (ROOT / step["uses"] / "action.yml").is_file()
        assert step["with"].keys() <= action()["inputs"].keys()
        for word in step["with"]["words"].split():
            assert word in {*Library().plans(), *Library().names()}
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    made = [step["run"].split()[1] for step in STEPS if step.get("run", "").startswith("make ")]
    assert made
    assert set(made) <= set(targets)
    assert all("@" in step["uses"] for step in STEPS if "uses" in step and step not in used)


@pytest.mark.parametrize("line", commands())
def test_every_command_and_flag_exists(line: str) -> None:
    words = shlex.split(line)
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):
        words = words[1:]
        command = command.commands[words[0]]
    context = command.make_context(words[0], words[1:])
    with context:
        for word in context.params.get("words") or []:
            assert word in {*Library().plans(), *Library().names()}


def test_the_file_of_settings_in_it_is_one(tmp_path: Path) -> None:
    (text,) = (text for text, each in zip(YAML, PARSED, strict=True) if "baseline" in each)
    (tmp_path / "gpubench.yaml").write_text(text)
    plan = load_plan(tmp_path / "gpubench.yaml")
    assert plan.settings["baseline"] == "main"
    assert "bench/kernels.py" in plan.run
    for word, axes in plan.run.items():
        if word == "bench/kernels.py":
            continue
        suite = Library().suite(word)
        assert all(any(benchmark.axis(name) for benchmark in suite.benchmarks.values()) for name in axes)


def test_the_exit_codes_in_it_are_those_of_the_table() -> None:
    rows = re.findall(r"^\| ([\d, ]+) \|", DOCS, re.MULTILINE)
    listed = {int(code) for row in rows for code in row.split(",")}
    assert listed == {int(code) for code in Exit} - {Exit.SLOW_GPU, Exit.PIPE}
