from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from gpubench.errors import UsageError
from gpubench.keys import KEYS
from gpubench.plan import Plan, load_plan
from gpubench.settings import Settings, find_project, resolve


def settle(
    tmp_path: Path,
    flags: dict[str, object] | None = None,
    plan: Plan | None = None,
    environ: dict[str, str] | None = None,
) -> Settings:
    return resolve(flags or {}, plan, environ or {}, tmp_path)


def project(tmp_path: Path, text: str) -> None:
    (tmp_path / "gpubench.yaml").write_text(text)


def test_the_attributes_are_the_table(tmp_path: Path) -> None:
    fields = {field.name for field in dataclasses.fields(Settings)}
    assert fields - {"project", "resolved", "warnings"} == set(KEYS)
    assert all(key.help and key.section in ("", "conditions", "budget") for key in KEYS.values())


def test_defaults(tmp_path: Path) -> None:
    settings = settle(tmp_path)
    assert settings.conditions == {}
    assert (settings.cache, settings.load, settings.data) == ("cold", "burst", "normal")
    assert (settings.device, settings.timer, settings.ceilings, settings.seed) == ("auto", "auto", "stored", 0)
    assert (settings.max_noise, settings.case_time, settings.timeout) == (0.005, 0.5, 120.0)
    assert (settings.samples, settings.max_time, settings.results, settings.tags) == (None, None, None, ())
    assert (settings.margin, settings.host_mismatch, settings.confirm) == (0.03, "error", "auto")
    assert settings.fail_on == "regression,suspect,failed,missing"
    assert {setting.origin for setting in settings.resolved.values()} == {"default"}


def test_no_setting_of_judging_is_in_a_run_file() -> None:
    judging = {"baseline", "margin", "margins", "fail_on", "host_mismatch", "base", "confirm", "annotate"}
    assert {key.name for key in KEYS.values() if key.judging} == judging
    assert {key.name for key in KEYS.values() if key.project} == {*judging, "results"}


def test_who_wins(tmp_path: Path) -> None:
    plan = Plan("mine", None, {}, budget={"samples": 2})
    flags: dict[str, object] = {"samples": "1"}
    environ = {"GPUBENCH_SAMPLES": "3"}
    project(tmp_path, "budget: {samples: 4}\n")
    assert settle(tmp_path, flags, plan, environ).resolved["samples"] == _setting(1, "--samples")
    assert settle(tmp_path, {}, plan, environ).resolved["samples"] == _setting(2, "plan mine")
    assert settle(tmp_path, {}, plan, environ).of_plan("samples")
    assert not any(settle(tmp_path, flags, plan, environ).of_plan(name) for name in ("samples", "seed"))
    assert settle(tmp_path, {}, None, environ).resolved["samples"] == _setting(3, "GPUBENCH_SAMPLES")
    assert settle(tmp_path).resolved["samples"] == _setting(4, "gpubench.yaml")
    assert settle(tmp_path).of_plan("samples")
    assert not settle(tmp_path, {}, None, environ).of_plan("samples")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert settle(below).samples == 4


def test_the_conditions_that_somebody_set(tmp_path: Path) -> None:
    project(tmp_path, "conditions: {data: zeros}\n")
    plan = Plan("mine", None, {}, conditions={"cache": "cold"})
    settings = settle(tmp_path, {}, plan, {"GPUBENCH_LOAD": "sustained"})
    assert settings.conditions == {"cache": "cold", "load": "sustained", "data": "zeros"}
    assert settle(tmp_path, {"data": "normal"}).conditions == {"data": "normal"}, "the default, but asked for"


def _setting(value: object, origin: str) -> object:
    from gpubench.settings import Setting

    return Setting(value, origin)


def test_flags_that_were_not_given(tmp_path: Path) -> None:
    environ = {"GPUBENCH_QUICK": "yes", "GPUBENCH_TAG": "a", "GPUBENCH_SEED": "5"}
    settings = settle(tmp_path, {"quick": False, "tags": [], "seed": None}, None, environ)
    assert (settings.quick, settings.tags, settings.seed) == (True, ("a",), 5)
    assert settle(tmp_path, {"seed": 0}, None, environ).resolved["seed"] == _setting(0, "--seed")


def test_lists_replace(tmp_path: Path) -> None:
    project(tmp_path, "tags: [a, b]\n")
    assert settle(tmp_path).tags == ("a", "b")
    assert settle(tmp_path, {"tags": ["c", "d"]}).tags == ("c", "d")
    assert settle(tmp_path, {"tags": "c"}).tags == ("c",)


def test_quick_cases_are_shorter_unless_somebody_said_otherwise(tmp_path: Path) -> None:
    assert settle(tmp_path, {"quick": True}).resolved["case_time"] == _setting(0.2, "quick")
    assert settle(tmp_path, {"quick": True}, None, {"GPUBENCH_CASE_TIME": "1s"}).case_time == 1.0


@pytest.mark.parametrize(
    ("variable", "text", "says"),
    [
        ("GPUBENCH_SAMPLES", "abc", "GPUBENCH_SAMPLES: 'abc' is not an integer from 1 to 1000000"),
        ("GPUBENCH_SAMPLES", "0", "GPUBENCH_SAMPLES: '0' is not an integer from 1 to 1000000"),
        ("GPUBENCH_SAMPLES", "True", "GPUBENCH_SAMPLES: 'True' is not an integer from 1 to 1000000"),
        ("GPUBENCH_SAMPLES", "1e2", "GPUBENCH_SAMPLES: '1e2' is not an integer from 1 to 1000000"),
        ("GPUBENCH_SAMPLES", "9" * 5000, "GPUBENCH_SAMPLES: '999"),
        ("GPUBENCH_SAMPLES", "1000001", "GPUBENCH_SAMPLES: '1000001' is not an integer from 1 to 1000000"),
        ("GPUBENCH_SEED", "-1", "GPUBENCH_SEED: '-1' is not an integer from 0"),
        ("GPUBENCH_MAX_NOISE", "3", "GPUBENCH_MAX_NOISE: '3' is neither a percentage nor a fraction below 1 (3% if"),
        ("GPUBENCH_MAX_NOISE", "200%", "GPUBENCH_MAX_NOISE: '200%' is not a percentage below 100%"),
        ("GPUBENCH_MAX_NOISE", "100%", "GPUBENCH_MAX_NOISE: '100%' is not a percentage below 100%"),
        ("GPUBENCH_MAX_NOISE", "nan", "GPUBENCH_MAX_NOISE: 'nan' is not a percentage"),
        ("GPUBENCH_MAX_TIME", "60", "GPUBENCH_MAX_TIME: the duration '60' has no unit"),
        ("GPUBENCH_CASE_TIME", "0s", "GPUBENCH_CASE_TIME: '0s' is not a duration above 0"),
        ("GPUBENCH_TIMEOUT", "721h", "GPUBENCH_TIMEOUT: '721h' is not a duration above 0 and up to 30 days"),
        ("GPUBENCH_TIMEOUT", "1e9h", "GPUBENCH_TIMEOUT: '1e9h' is not a duration above 0 and up to 30 days"),
        ("GPUBENCH_LOAD", "steady", "GPUBENCH_LOAD: 'steady' is not one of burst, sustained"),
        ("GPUBENCH_TIMER", "gpu", "GPUBENCH_TIMER: 'gpu' is not one of auto, cupti, graph, event, host"),
        ("GPUBENCH_DEVICE", "gpu0", "GPUBENCH_DEVICE: 'gpu0' is not auto, cpu, cuda:N or a GPU's UUID"),
        ("GPUBENCH_QUICK", "perhaps", "GPUBENCH_QUICK: 'perhaps' is not true or false"),
        ("GPUBENCH_TAG", "a\nb", "GPUBENCH_TAG: 'a\\nb' is not a line of at most 200 characters"),
        ("GPUBENCH_RESULTS", "~nobody-of-that-name/x", "GPUBENCH_RESULTS: '~nobody-of-that-name/x' is not the path"),
        ("GPUBENCH_RESULTS", " ", "GPUBENCH_RESULTS: ' ' is not the path of a folder"),
    ],
)
def test_a_wrong_value_names_its_origin(tmp_path: Path, variable: str, text: str, says: str) -> None:
    key = next(key for key in KEYS.values() if key.variable == variable)
    with pytest.raises(UsageError) as error:
        settle(tmp_path, environ={variable: text})
    assert str(error.value).startswith(says)
    assert "\n" not in str(error.value)
    with pytest.raises(UsageError) as error:
        settle(tmp_path, {key.name: text})
    assert str(error.value).startswith(says.replace(variable, key.flag, 1))


def test_the_most_that_a_setting_takes(tmp_path: Path) -> None:
    settings = settle(tmp_path, {"timeout": "720h", "samples": "1000000", "max_noise": "99.9%"})
    assert (settings.timeout, settings.samples, settings.max_noise) == (30 * 24 * 3600.0, 10**6, 0.999)


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda:0", "cuda:7", "GPU-8932f937-d72c", "MIG-89c850dc"])
def test_devices(tmp_path: Path, device: str) -> None:
    assert settle(tmp_path, {"device": device}).device == device


def test_an_empty_variable_is_unset_and_a_misspelt_one_is_mentioned(tmp_path: Path) -> None:
    environ = {"GPUBENCH_SAMPLES": "", "GPUBENCH_SAMPELS": "3", "GPUBENCH_SOMETHING_QUITE_ELSE": "1", "TIMEOUTS": "2"}
    settings = settle(tmp_path, environ=environ)
    assert settings.samples is None
    assert settings.warnings == ("GPUBENCH_SAMPELS is not a setting; did you mean GPUBENCH_SAMPLES?",)


def test_a_key_that_does_not_exist_is_our_own_mistake(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="smaples is not a setting"):
        settle(tmp_path, {"smaples": 3})


# Files


def test_results_are_relative_to_who_named_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = tmp_path / "below"
    below.mkdir()
    project(tmp_path, "results: runs\n")
    assert settle(below).results == tmp_path / "runs"
    assert settle(below, environ={"GPUBENCH_RESULTS": "here"}).results == below / "here"
    assert settle(below, {"results": Path("there")}).results == below / "there"
    assert settle(below, {"results": "/abs/there"}).results == Path("/abs/there")
    assert settle(below, plan=load_plan(tmp_path / "gpubench.yaml")).results == tmp_path / "runs"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert settle(below, {"results": "~/runs"}).results == tmp_path / "home" / "runs"


def test_pyproject(tmp_path: Path) -> None:
    text = """
[tool.gpubench]
results = "runs"
quick = true
[tool.gpubench.budget]
samples = 7
max_time = "2m"
[tool.gpubench.run.matmul-sweep]
n = [1, "4:8:*2"]
"""
    (tmp_path / "pyproject.toml").write_text(text)
    settings = settle(tmp_path)
    assert (settings.results, settings.quick, settings.max_time) == (tmp_path / "runs", True, 120.0)
    assert settings.of_plan("samples")
    assert settings.resolved["samples"] == _setting(7, "pyproject.toml")
    found = find_project(tmp_path)
    assert found is not None
    assert found.run == {"matmul-sweep": {"n": [1, 4, 8]}}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[tool.gpubench]\nsampels = 3\n", "tool.gpubench.sampels is not a known key"),
        ("[tool.gpubench.budget]\nsamples = true\n", "tool.gpubench.budget.samples: 'true' is not an integer"),
        ("[tool.gpubench.budget]\nmax_noise = nan\n", "tool.gpubench.budget.max_noise: 'nan' is not a percentage"),
        ("[tool.gpubench]\ntags = [false]\n", "tool.gpubench.tags is 'false'; expected a line"),
        ("[tool]\ngpubench = 3\n", "tool.gpubench is '3'; expected a mapping"),
        ("[tool.gpubench\n", "not TOML"),
        ("[tool.gpubench]\ntags = " + "[" * 100_000, "not TOML"),
        ("[tool.gpubench]\nseed = " + "9" * 5000, "not TOML"),
    ],
)
def test_a_broken_pyproject_of_ours(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(UsageError) as error:
        settle(tmp_path)
    assert str(error.value).startswith(f"{tmp_path / 'pyproject.toml'}: {says}")


@pytest.mark.parametrize("text", [b"[tool.ruff\n", b"[tool.ruff]\n", b"dependencies = ['gpubench-suite']\n[x", b"\xff"])
def test_a_pyproject_of_somebody_else_is_passed_by(tmp_path: Path, text: bytes) -> None:
    project(tmp_path, "quick: on\n")
    below = tmp_path / "below"
    below.mkdir()
    (below / "pyproject.toml").write_bytes(text)
    assert settle(below).quick is True


def test_two_files_in_one_folder_are_refused(tmp_path: Path) -> None:
    project(tmp_path, "quick: on\n")
    (tmp_path / "pyproject.toml").write_text("[tool.gpubench]\nquick = true\n")
    with pytest.raises(UsageError, match=r"both gpubench\.yaml and pyproject\.toml hold settings \(keep one"):
        settle(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "baseline: ../main\n",
        "margins: [3%]\n",
        "margins: {bandwidth: 10}\n",
        "margin: -5\n",
        "margin: .nan\n",
        "margin: 10\n",
        "fail_on: off\n",
        "resutls: x\n",
        "results: off\n",
        "results:\n",
    ],
)
def test_a_broken_gpubench_yaml(tmp_path: Path, text: str) -> None:
    project(tmp_path, text)
    with pytest.raises(UsageError, match=r"gpubench\.yaml"):
        settle(tmp_path)


def test_settings_of_comparing_are_the_project_s_and_in_no_run_file(tmp_path: Path) -> None:
    project(tmp_path, "baseline: main\nmargin: 2%\nmargins: {bandwidth/*: 0.5%, 'matmul-sweep': 0.01}\n")
    (tmp_path / "below").mkdir()
    settings = settle(tmp_path / "below", {"host_mismatch": "warn"})
    assert (settings.baseline, settings.margin, settings.host_mismatch) == ("main", 0.02, "warn")
    assert settings.margins == {"bandwidth/*": 0.005, "matmul-sweep": 0.01}
    assert settings.project == tmp_path
    assert {"baseline", "margin", "margins", "fail_on"} & set(settings.origins()) == set()
    with pytest.raises(UsageError, match=r"^GPUBENCH_MARGINS: 'x' is not a mapping"):
        settle(tmp_path, environ={"GPUBENCH_MARGINS": "x"})
    (tmp_path / "plan.yaml").write_text("run: {bandwidth: {}}\nmargin: 2%\n")
    with pytest.raises(UsageError, match=r"plan\.yaml"):
        load_plan(tmp_path / "plan.yaml")


def test_without_a_project_its_folder_is_the_current_one(tmp_path: Path) -> None:
    assert settle(tmp_path).project == tmp_path
    assert (settle(tmp_path).baseline, settle(tmp_path).margins, settle(tmp_path).margin) == (None, None, 0.03)


def test_the_file_of_this_checkout_is_right() -> None:
    found = find_project(Path(__file__).parent)
    assert found is not None
    assert found.values == {"results": Path("results")}


# The run file


def test_origins_are_json_and_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    project(tmp_path, "budget: {samples: 4}\ntags: [a]\n")
    origins = settle(tmp_path, {"results": tmp_path / "runs"}).origins()
    assert list(origins) == [key.name for key in KEYS.values() if not key.judging]
    assert origins["samples"] == {"value": 4, "origin": "gpubench.yaml"}
    assert origins["results"] == {"value": "runs", "origin": "--results"}
    assert origins["tags"] == {"value": ["a"], "origin": "gpubench.yaml"}
    assert str(tmp_path) not in json.dumps(origins, allow_nan=False)
    for place in ("/home/somebody", "/scratch/somebody", "~"):
        assert settle(tmp_path, {"results": place}).origins()["results"]["value"] == "~"
