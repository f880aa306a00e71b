"""`gpubench check` as a build calls it: what it measures, what it is held against, and every exit code."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command import FAKE, PACED, ROOT, saved, strict, within

from gpubench import runner
from gpubench.ab import measure as ab
from gpubench.cli import confirming, session
from gpubench.cli.check import asked
from gpubench.cli.session import measure
from gpubench.cli.sides import within as within_names
from gpubench.errors import DeviceLost
from gpubench.exits import Exit
from gpubench.result import Record, Run
from gpubench.store import baseline, runfile
from gpubench.store.jsonfile import read_bytes


class Project:
    """A folder with a baseline of the toy `paced`, and the variables of its next commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {"TOY_COUNT": str(folder / "count"), "TOY_FACTORS": "1"}

    def __call__(self, *words: str, factors: str = "1", **env: str) -> Any:
        """A command; `factors` are those of the processes that measure during it, one after the other."""
        (self.folder / "count").unlink(missing_ok=True)
        return within(self.folder, *words, env=self.env | {"TOY_FACTORS": factors} | env)

    def check(self, *words: str, factors: str = "1", **env: str) -> Any:
        return self("check", PACED, *FAKE, *words, factors=factors, **env)

    def keep(self, count: int, change: Callable[[Run], Run] = lambda run: run) -> None:
        """Keep so many runs as the baseline main, a little apart from each other: copies of one that was measured."""
        assert self("run", PACED, *FAKE, "-q", "-o", "base.json").returncode == 0
        run = runfile.decode(read_bytes(self.folder / "base.json"), "base.json")
        kept = baseline.Baselines(self.folder / baseline.FOLDER)
        runs = [dataclasses.replace(run, run_id=f"{run.run_id}-{n}") for n in range(count)]
        kept.save("main", [change(each) for each in runs])

    @property
    def confirmations(self) -> list[dict[str, Any]]:
        """The runs that measured again, oldest first."""
        found = [strict(path.read_text()) for path in (self.folder / "results" / "confirmations").glob("*.json")]
        return sorted(found, key=lambda run: run["started_at"])


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_what_is_as_it_was_passes(project: Project) -> None:
    project.keep(5)
    done = project.check()
    assert (done.returncode, "5 matched · 5 same" in done.stdout) == (0, True)
    (run,) = saved(project.folder)
    assert len(run["records"]) == 5
    assert run["settings"]["ceilings"]["value"] == "none", "which no verdict needs"
    assert done.stderr.splitlines()[-1].startswith("saved results/")
    assert not (project.folder / "results" / "confirmations").exists()


def test_a_regression_is_confirmed_by_further_processes(project: Project) -> None:
    project.keep(5)
    done = project.check("--json", factors="1.1", TOY_ROW="3")
    found = strict(done.stdout)
    told = set(re.findall(r"`([a-z_]+)`", (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")))
    assert found["details"].keys() | found["details"]["confirmed"].keys() - {"rows"} <= told
    assert (done.returncode, found["counts"]) == (3, {"regression": 1, "same": 4})
    assert found["rows"][0]["id"] == "paced/paced[n=3]"
    assert found["rows"][0]["reason"].endswith("; the middle one of 5 processes")
    (row,) = found["details"]["confirmed"]["rows"]
    assert (row["first"], row["verdict"], len(row["figures"])) == ("regression", "regression", 5)
    assert [[each["id"] for each in run["records"]] for run in project.confirmations] == [["paced/paced[n=3]"]] * 4
    assert len({run["run_id"] for run in project.confirmations}) == 4
    names = {f"confirmations/{path.name}" for path in (project.folder / "results/confirmations").glob("*.json")}
    assert set(found["details"]["confirmed"]["runs"]) == names
    assert "gpubench: regression (exit 3): 5 matched · 1 regression · 4 same" in done.stderr


def test_what_only_the_first_process_showed_passes_and_is_said(project: Project) -> None:
    project.keep(5)
    done = project.check(factors="1.2 1 1 1.01 1")
    assert (done.returncode, "5 matched · 5 same" in done.stdout) == (0, True)
    said = "4 rows looked slower and were measured in 4 more processes: by the middle process of each, none still does"
    assert said in " ".join(done.stdout.split())
    assert "4 rows look slower: 4 more processes" in done.stderr
    (run,) = saved(project.folder)
    assert project("show", "latest", "-q", "--json").stdout.count(run["run_id"]) == 1


def test_one_run_of_the_base_leaves_it_suspect_and_says_what_would_decide(project: Project) -> None:
    project.keep(1)
    done = project.check(factors="1.1", TOY_ROW="2")
    assert (done.returncode, "1 suspect" in done.stdout) == (6, True)
    assert "on the evidence of one run a side; the middle one of 5 processes" in " ".join(done.stdout.split())
    assert done.stderr.splitlines()[-1] == (
        "next  5 runs of the base tell a regression (here 1; gpubench baseline save main RUN --add), "
        "or --base python=PATH measures against the base itself"
    )


def test_nobody_measures_again_who_does_not_want_to(project: Project) -> None:
    project.keep(5)
    done = project.check("--confirm", "none", factors="1.1 1")
    assert (done.returncode, "4 regression" in done.stdout) == (3, True)
    assert project.confirmations == []
    assert project.check("--fail-on", "none", factors="1.1 1").returncode == 0
    assert project.confirmations == []


def test_the_next_command_tells_why(project: Project) -> None:
    project.keep(5)
    done = project.check("--confirm", "none", factors="1.1", TOY_ROW="3")
    (next_,) = (line for line in done.stderr.splitlines() if line.startswith("next "))
    words = next_.removeprefix("next  gpubench ").replace("'paced n=3'", "").split()
    told = project(*words, "paced n=3")
    assert (told.returncode, "regression" in told.stdout) == (3, True)


def test_a_base_that_can_be_run_decides_in_turn_with_it(project: Project) -> None:
    project.keep(1)
    done = project.check("--base", "env:TOY_FACTORS=1", "--json", factors="1.1", TOY_ROW="3")
    found = strict(done.stdout)
    assert (done.returncode, found["counts"]) == (3, {"regression": 1, "same": 4})
    assert found["rows"][0]["paired"]["blocks"] >= 8
    confirmed = found["details"]["confirmed"]
    assert confirmed["rows"] == [{"id": "paced/paced[n=3]", "first": "suspect", "verdict": "regression"}]
    assert "1 row looked slower and was measured in turn with env:TOY_FACTORS=1: 1 regression" in found["notes"]
    (path,) = (project.folder / "results" / "ab").glob("*.json")
    assert confirmed["ab"] == f"ab/{path.name}"
    assert {record["id"] for record in strict(path.read_text())["records"]} == {"paced/paced[n=3]"}
    assert project.confirmations == []
    assert f"next  gpubench compare results/ab/{path.name} --why " in done.stderr
    (told,) = (line for line in done.stderr.splitlines() if line.startswith("next "))
    assert project("compare", f"results/ab/{path.name}").returncode == 3, told


def test_rows_are_asked_of_the_benchmark_that_is_named(project: Project) -> None:
    project.keep(1)
    base = runfile.decode(read_bytes(project.folder / "base.json"), "base.json")
    for names, left in (({"paced/paced"}, 4), ({"paced"}, 5), ({"other/paced"}, 0)):
        (run,), _ = within_names([base], names)
        assert len(run.records) == left


def test_what_is_measured_again_leaves_the_run_where_it_is(project: Project) -> None:
    project.keep(5)
    done = project.check("-o", "run.json", factors="1.1 1 1 1 1", TOY_ROW="3")
    assert done.returncode == 0
    assert len(strict((project.folder / "run.json").read_text())["records"]) == 5
    assert [len(run["records"]) for run in project.confirmations] == [1] * 4


def test_what_is_measured_in_turn_is_as_it_was_asked_for(project: Project) -> None:
    project.keep(1)
    words = ("--base", "env:TOY_FACTORS=1", "--margin", "4%", "--samples", "12", "--tag", "mine", "--timeout", "9s")
    more = ("--export", "x.xml", "--max-time", "1h", "-o", "run.json")
    done = project.check(*words, *more, factors="1.1", TOY_ROW="3")
    assert done.returncode == 3
    (path,) = (project.folder / "results" / "ab").glob("*.json")
    kept = strict(path.read_text())
    assert (kept["margin"], kept["base"]["what"], kept["new"]["what"]) == (0.04, ["env:TOY_FACTORS=1"], [])
    assert 'failures="1"' in (project.folder / "x.xml").read_text(), "what the pairs say, not what they were asked for"
    run = strict((project.folder / "run.json").read_text())
    assert (len(run["records"]), len({record["id"] for record in kept["records"]})) == (5, 1)
    for each in (run, kept):
        assert {len(record["samples"]["gpu_ns"]) for record in each["records"]} == {12}
        heard = {setting["origin"] for setting in each["settings"].values()}
        assert {"--samples", "--tag", "--timeout", "--max-time", "--device"} <= heard
        assert each["tags"] == ["mine"]
    assert run["ceilings"] == []


def test_a_base_that_does_not_start_takes_nothing_of_what_was_found(project: Project) -> None:
    project.keep(1)
    done = project.check("--base", "python=/bin/false", factors="1.1", TOY_ROW="3")
    assert (done.returncode, "1 suspect" in done.stdout) == (2, True), done.stderr
    assert "saved results/" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("gpubench: --base: the worker did not start: ")


def test_a_base_that_is_as_slow_clears_a_row_that_only_the_baseline_calls_slower(project: Project) -> None:
    project.keep(1)
    (project.folder / "gpubench.yaml").write_text("base: env:TOY_FACTORS=1.1\n")
    done = project.check(factors="1.1", TOY_ROW="3")
    assert (done.returncode, "1 equivalent" in done.stdout) == (0, True)


@pytest.mark.parametrize(
    ("base", "why"),
    [
        ("env:TOY_FACTORS=1", "inconclusive, 1 of 10 blocks were measured"),
        ("env:TOY_FACTORS=none", "fixed, error: ValueError"),
    ],
)
def test_pairs_that_say_nothing_clear_no_row(
    project: Project, monkeypatch: pytest.MonkeyPatch, base: str, why: str
) -> None:
    """Their time is over after a block, or their base fails."""
    measured: Any = ab.run
    monkeypatch.setattr(ab, "run", lambda *given: measured(*given[:4], 2, itertools.count().__next__))
    project.keep(5)
    done = project.check("--base", base, "--json", factors="1.1", TOY_ROW="3")
    found = strict(done.stdout)
    assert (done.returncode, found["counts"]) == (3, {"regression": 1, "same": 4})
    assert f"; nothing decided in pairs: {why}" in found["rows"][0]["reason"]
    assert found["details"]["confirmed"]["rows"][0]["verdict"] == "regression"


@pytest.mark.parametrize("stopped", [1, 3])
def test_an_interrupted_check_ends_as_interrupted_and_judges_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch, stopped: int
) -> None:
    """In the run itself, or while it measures again."""
    project.keep(5)
    calls = []

    def interrupted(request: Any) -> Exit:
        calls.append(request)
        code = measure(request)
        return Exit.SIGINT if len(calls) == stopped else code

    monkeypatch.setattr(confirming, "measure", interrupted)
    done = project.check("--json", factors="1.1", TOY_ROW="3")
    assert (done.returncode, done.stdout, len(calls)) == (130, "", stopped)
    assert done.stderr.splitlines()[-1].startswith("saved results/")


@pytest.mark.parametrize("words", [(), ("--fail-on", "regression"), ("--fail-on", "none")])
def test_a_run_that_lost_its_device_never_passes(
    project: Project, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    project.keep(5)

    def lost(*given: Any) -> Iterator[Any]:
        yield from itertools.islice(runner.run(*given), 6)
        raise DeviceLost("the device is lost", "gpubench doctor")

    monkeypatch.setattr(session, "run", lost)
    done = project.check("--json", *words)
    assert (done.returncode, strict(done.stdout)["details"]["exit_code"]) == (4, 4)
    assert "gpubench: failed (exit 4): 2 matched · 3 missing · 2 same" in done.stderr


# No baseline, no device: nothing is measured


@pytest.mark.parametrize("base", [(), ("--base", "env:TOY_FACTORS=1")], ids=["processes", "pairs"])
def test_a_folder_that_cannot_hold_what_is_measured_again_is_said_before_anything_is(
    project: Project, base: tuple[str, ...]
) -> None:
    project.keep(1)
    env = {"GPUBENCH_RESULTS": "/dev/null"}
    done = project.check(*base, "-o", "new.json", **env)
    assert (done.returncode, done.stderr) == (
        2,
        "gpubench: cannot write in /dev/null: it is no folder "
        "(another folder: --results DIR; --confirm none measures nothing again)\n",
    )
    assert not (project.folder / "count").exists()
    assert project.check("--confirm", "none", "-o", "new.json", **env).returncode == 0


def test_without_a_baseline_the_command_that_makes_one_is_said_and_nothing_measured(project: Project) -> None:
    done = project.check()
    assert done.returncode == 5
    assert done.stderr == (
        "gpubench: no baseline 'main': none is kept in gpubench-baselines "
        f"(gpubench run {PACED} --device fake && gpubench baseline save main latest)\n"
    ).replace("in gpubench-baselines", f"in {project.folder}/gpubench-baselines")
    assert not (project.folder / "count").exists()
    project.keep(1)
    done = project.check("--baseline", "mian")
    assert (done.returncode, "no baseline 'mian'; did you mean main?" in done.stderr) == (5, True)


def other(run: Run) -> Run:
    """As if measured on another device."""
    facts = dict(run.fingerprint["device"], name="Another device")
    device = dict(run.device, name="Another device")
    return dataclasses.replace(run, device=device, fingerprint={**run.fingerprint, "id": "0" * 16, "device": facts})


def test_a_baseline_of_another_device_is_7_and_nothing_measured(project: Project) -> None:
    project.keep(1, other)
    done = project.check()
    assert done.returncode == 7
    assert "'main' has no run of this device: device: Another device against Fake device (gpubench run" in done.stderr
    assert not (project.folder / "count").exists()
    done = project.check("--host-mismatch", "warn")
    assert (done.returncode, "5 not comparable" in done.stdout) == (0, True)


def test_the_baseline_of_this_device_among_several(project: Project) -> None:
    project.keep(1, other)
    project.keep(5)
    done = project.check()
    assert (done.returncode, "5 runs · Fake device" in done.stdout) == (0, True)


def test_a_device_that_is_not_here_is_7_and_no_other_is_taken(project: Project) -> None:
    project.keep(1)
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    for words in ((), ("--device", "cuda:0")):
        done = project("check", PACED, *words, **hidden)
        assert done.returncode == 7
        assert "no CUDA device" in done.stderr
        assert "a check takes no other device" in done.stderr
    assert not (project.folder / "count").exists()


# What is measured, and which rows of the baseline are asked for


def test_a_row_that_is_gone_or_fails_is_4(project: Project) -> None:
    project.keep(1, lambda run: dataclasses.replace(run, records=run.records[1:]))
    done = project.check()
    assert (done.returncode, "4 matched · 1 new · 4 same" in done.stdout) == (0, True)
    done = project.check(TOY_ROW="3", TOY_FAIL="1")
    assert (done.returncode, "1 failed" in done.stdout) == (4, True)
    done = project.check(TOY_ROW="3", TOY_FAIL="3", factors="1.1 1")
    assert (done.returncode, "error: RuntimeError: planted" in " ".join(done.stdout.split())) == (4, True)


def test_a_benchmark_that_was_changed_is_not_comparable_and_what_to_do_is_said(project: Project) -> None:
    project.keep(1, lambda run: dataclasses.replace(run, records=[_changed(each) for each in run.records]))
    done = project.check("-o", "new.json")
    assert (done.returncode, "5 not comparable" in done.stdout) == (7, True)
    assert done.stderr.splitlines()[-1] == (
        "next  gpubench baseline save main new.json --replace   if that was meant; 4 more with --add tell a regression"
    )
    assert project("baseline", "save", "main", "new.json", "--replace").returncode == 0
    assert project.check().returncode == 0


def _changed(row: Record) -> Record:
    return dataclasses.replace(row, definition="0" * 16)


def test_a_benchmark_that_its_suite_no_longer_has_is_missing(project: Project) -> None:
    project.keep(1)
    suite = project.folder / "suites" / "paced.py"
    suite.parent.mkdir()
    source = Path(PACED).read_text()
    suite.write_text(source[: source.index("@suite.benchmark(n=Axis([1]))")])
    done = project("check", str(suite), *FAKE, "-o", "new.json")
    assert (done.returncode, "1 missing" in done.stdout) == (4, True)
    assert done.stderr.splitlines()[-1].startswith("next  gpubench baseline save main new.json --replace   if that was")


def with_another_suite(run: Run) -> Run:
    """With a row of a suite that no word of these tests asks for."""
    another = dataclasses.replace(run.records[0], id="other/passed[n=1]", suite="other", benchmark="passed")
    return dataclasses.replace(run, records=[*run.records, another])


def test_words_ask_for_rows_of_what_they_name_only(project: Project) -> None:
    project.keep(1, with_another_suite)
    done = project.check()
    assert done.returncode == 0, done.stdout
    assert "1 row of the baseline, of benchmarks not asked for, is left out" in done.stdout


def test_a_run_of_a_part_of_the_baseline_is_not_what_replaces_it(project: Project) -> None:
    def with_others(run: Run) -> Run:
        return with_another_suite(dataclasses.replace(run, records=[_changed(each) for each in run.records]))

    project.keep(1, with_others)
    done = project.check()
    assert done.returncode == 7
    assert done.stderr.splitlines()[-1] == (
        "next  gpubench baseline save main RUN --replace   if that was meant; of all that it holds"
    )


def test_a_plan_asks_for_every_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert asked(["softmax/passes", "fusion/gel*"]) == (
        ["softmax/passes", "fusion/gel*"], {"softmax/passes", "fusion/gelu"},
    )  # fmt: skip
    assert asked(["softmax", "fusion/gelu"])[1] == {"softmax", "fusion/gelu"}
    assert asked([]) == (["ci"], None)
    assert asked(["ci", "softmax"]) == (["ci", "softmax"], None)
    (tmp_path / "gpubench.yaml").write_text("run: {softmax: {}}\n")
    assert asked([]) == ([], None)
    (tmp_path / "gpubench.yaml").write_text("include: [quick]\n")
    assert asked([]) == ([], None)
    (tmp_path / "gpubench.yaml").write_text("device: cpu\n")
    assert asked([]) == (["ci"], None), "settings alone say nothing of what to run"


def test_the_project_s_plan_baseline_and_margins(project: Project) -> None:
    project.keep(5)
    project.folder.joinpath("gpubench-baselines/main").rename(project.folder / "gpubench-baselines/mine")
    settings = "baseline: mine\nmargins: {paced/paced: 15%}\ndevice: fake\n"
    (project.folder / "gpubench.yaml").write_text(settings)
    done = project("check", PACED, factors="1.1")
    assert (done.returncode, "base     @mine/" in done.stdout) == (0, True)
    done = project("check", PACED, factors="1.2", GPUBENCH_CONFIRM="none")
    assert done.returncode == 3


def test_a_margin_of_no_row_and_a_base_that_is_none_are_said_where_they_stand(project: Project) -> None:
    project.keep(5)
    settings = project.folder / "gpubench.yaml"
    settings.write_text("margins: {paced/othr: 15%, paced/oth*: 15%}\n")
    done = project.check("--json")
    assert strict(done.stdout)["notes"][-1] == "margins: 'paced/othr' fits no row of the baseline"
    settings.write_text("base: pyhton=x\n")
    assert project.check().stderr.startswith("gpubench: gpubench.yaml: base pyhton=x: not a side (")


def test_without_words_the_file_is_named_after_what_the_project_runs(project: Project) -> None:
    (project.folder / "gpubench.yaml").write_text(f"run: {{{PACED}: {{}}}}\ndevice: fake\n")
    assert project("run", "-q").returncode == 0
    project.keep(1)
    assert project("check").returncode == 0
    names = [path.name for path in (project.folder / "results").glob("*.json")]
    assert len(names) == 2
    assert all("-paced-" in name for name in names)


def test_a_damaged_file_of_the_baseline_is_2_and_says_how_to_go_on(project: Project) -> None:
    project.keep(5)
    (file,) = (project.folder / "gpubench-baselines" / "main").glob("*-3.json.gz")
    file.write_text("version https://git-lfs.github.com/spec/v1\n")
    done = project.check()
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    hint = "the file from git again, git lfs pull, or gpubench baseline save main RUN --replace"
    assert f"{file}: not JSON at line 1, column 1: expecting value ({hint})" in done.stderr


def test_without_words_the_plan_of_the_project_or_ci(project: Project) -> None:
    done = project("check", *FAKE)
    assert (done.returncode, "gpubench run ci --device fake && " in done.stderr) == (5, True)
    (project.folder / "gpubench.yaml").write_text("run: {traps: {}}\n")
    done = project("check", *FAKE)
    assert (done.returncode, "(gpubench run --device fake && " in done.stderr) == (5, True)


@pytest.mark.parametrize(
    ("words", "env", "why"),
    [
        (("quick",), {}, "a quick run never gates a build"),
        ((PACED,), {"GPUBENCH_QUICK": "1"}, "a quick run never gates a build"),
        ((PACED,), {"GPUBENCH_IN_PROCESS": "1"}, "check measures in processes of its own"),
        ((PACED, "--confirm", "never"), {}, "--confirm: 'never' is not one of auto, none"),
        ((PACED, "--base", "pyhton=x"), {}, "--base pyhton=x: not a side"),
        ((PACED, "--base", "python=none"), {}, "--base python=none"),
        ((PACED, "--margin", "3"), {}, "--margin"),
        ((PACED, "--baseline", "../x"), {}, "--baseline"),
        ((PACED, "--export", "x.svg"), {}, "no export of that form"),
        (("padcet",), {}, "no suite 'padcet'"),
        (("-p", "n=1"), {}, "no such option: -p"),
    ],
    ids=str,
)
def test_what_cannot_be_checked_is_2_before_anything_is_measured(
    project: Project, words: tuple[str, ...], env: dict[str, str], why: str
) -> None:
    done = project("check", *words, *FAKE, **env)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert why in done.stderr
    assert not (project.folder / "count").exists()


# What a build is told


@pytest.mark.parametrize("base", [(), ("--base", "env:TOY_FACTORS=1")], ids=["processes", "pairs"])
def test_a_variable_misspelt_is_said_once_however_often_it_is_measured(project: Project, base: tuple[str, ...]) -> None:
    project.keep(5)
    done = project.check(*base, "--json", factors="1.1", TOY_ROW="3", GPUBENCH_FAILON="none")
    assert strict(done.stdout)["details"]["confirmed"]
    assert done.returncode == 3
    assert done.stderr.count("gpubench: GPUBENCH_FAILON is not a setting; did you mean GPUBENCH_FAIL_ON?\n") == 1


def test_files_summary_and_remarks(project: Project) -> None:
    project.keep(5)
    exports = [word for end in ("json", "xml", "md") for word in ("--export", f"c.{end}")]
    env = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(project.folder / "step.md")}
    done = project.check(*exports, "-o", "new.json", factors="1.1", TOY_ROW="3", **env)
    assert done.returncode == 3
    assert done.stderr.count("::error title=gpubench regression::paced n=3 -9.1 %25") == 1
    step = (project.folder / "step.md").read_text()
    assert step.startswith("### 5 matched · 1 regression · 4 same")
    assert "measured in 4 more processes" in step
    assert strict((project.folder / "c.json").read_text())["details"]["exit_code"] == 3
    assert 'failures="1"' in (project.folder / "c.xml").read_text()
    assert strict((project.folder / "new.json").read_text())["status"] == "complete"
    assert len(project.confirmations) == 4
    assert saved(project.folder) == []


def test_a_build_is_told_why_nothing_was_judged(project: Project) -> None:
    env = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(project.folder / "step.md")}
    done = project.check(**env)
    assert done.returncode == 5
    remark, error = done.stderr.splitlines()
    assert remark.startswith("::error title=gpubench::no baseline 'main': none is kept in ")
    assert error == f"gpubench: {remark.removeprefix('::error title=gpubench::')}"
    assert (project.folder / "step.md").read_text().startswith("### Nothing was judged\n\n- no baseline 'main'")
    assert "::" not in project.check("--annotate", "none", **env).stderr


def test_several_runs_are_kept_as_a_baseline_by_one_command(project: Project) -> None:
    for number in range(3):
        assert project("run", PACED, *FAKE, "-q", "-o", f"{number}.json").returncode == 0
    done = project("baseline", "save", "main", "0.json", "1.json", "2.json")
    assert (done.returncode, done.stderr.count("saved gpubench-baselines/main/")) == (0, 3)
    assert "next  gpubench check --baseline main" in done.stderr
    assert project("baseline", "save", "main", "2.json", "1.json", "--replace").returncode == 0
    assert len(list((project.folder / "gpubench-baselines/main").iterdir())) == 2
