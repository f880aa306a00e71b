from __future__ import annotations

from pathlib import Path

import pytest

from gpubench.discovery import Library
from gpubench.errors import UsageError
from gpubench.params import parse_params
from gpubench.plan import Plan, Selected, cases, load_plan, plan_among, select
from gpubench.result import Conditions

SWEEP = """
from gpubench import Axis, Suite

suite = Suite(__file__)


DTYPE = Axis(["half"], choices=["half", "single"])


@suite.benchmark(n=Axis([1, 2], cpu=[1], quick=[2]), m=Axis(same_as="n"), dtype=DTYPE)
def matmul(device, n, m, dtype):
    pass
"""
BANDWIDTH = """
from gpubench import Axis, Suite

suite = Suite(__file__)


@suite.benchmark(mib=Axis([8, 16]))
def copy(device, mib):
    pass


@suite.benchmark(mib=Axis([8]), stride=Axis([1], minimum=0))
def strided_read(device, mib, stride):
    pass
"""


@pytest.fixture
def library(tmp_path: Path) -> Library:
    folder = tmp_path / "suites"
    (folder / "plans").mkdir(parents=True)
    (folder / "matmul_sweep.py").write_text(SWEEP)
    (folder / "bandwidth.py").write_text(BANDWIDTH)
    (folder / "plans" / "quick.yaml").write_text(
        "run: {bandwidth/copy: {}, matmul_sweep: {n: [4, 5], dtype: single}}\n"
    )
    (folder / "plans" / "ci.yaml").write_text("run: {bandwidth: {}}\n")
    return Library(folder)


def paths(selected: list[Selected]) -> list[str]:
    return [entry.benchmark.path for entry in selected]


def asked(selected: list[Selected]) -> dict[str, dict[str, list[object]]]:
    return {entry.benchmark.path: {axis: list(values) for axis, values in entry.asked.items()} for entry in selected}


def write(tmp_path: Path, text: str, name: str = "mine.yaml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


# Reading


def test_a_whole_plan(tmp_path: Path) -> None:
    text = """
run:
  matmul-sweep: {n: [256, 256:1024:256], dtype: bfloat16}
  bandwidth/copy: {}
  "*fusion": {n: 1:8:*2, m: "1,2"}
conditions: {cache: hot, data: zeros, seed: 3}
budget: {max_time: 60s, max_noise: 0.5%, case_time: 200ms, samples: 20, timeout: 1m}
device: cuda:1
tags: [nightly, "off"]
"""
    plan = load_plan(write(tmp_path, text))
    assert plan.name == "mine"
    assert plan.run == {
        "matmul-sweep": {"n": [256, 256, 512, 768, 1024], "dtype": ["bfloat16"]},
        "bandwidth/copy": {},
        "*fusion": {"n": [1, 2, 4, 8], "m": [1, 2]},
    }
    assert plan.conditions == {"cache": "hot", "data": "zeros", "seed": 3}
    assert plan.budget == {"max_time": 60.0, "max_noise": 0.005, "case_time": 0.2, "samples": 20, "timeout": 60.0}
    assert plan.settings == {"device": "cuda:1", "tags": ["nightly", "off"]}
    assert plan.values == {**plan.settings, **plan.conditions, **plan.budget}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("runs: {a: {}}\n", ":1: runs is not a known key; did you mean run?"),
        ("run: {a: {}}\nbugdet: {}\n", ":2: bugdet is not a known key; did you mean budget?"),
        ("run: {a: {}}\nbudget:\n  max_tiem: 3s\n", ":3: budget.max_tiem is not a known key; did you mean max_time?"),
        ("run: {a: {}}\nbudget:\n  max-time: 3s\n", ":3: budget.max-time is not a known key; did you mean max_time?"),
        ("run: {a: {}}\nmax_noise: 1%\n", ":2: max_noise stands at the top (write it under budget:)"),
        ("run: {a: {}}\nconditions: {samples: 3}\n", ":2: conditions.samples is not a known key"),
        ("run: {a: {}}\nresults: here\n", ":2: results is not a known key"),
        ("run: {a: {}}\nbaseline: main\n", ":2: baseline is not a known key"),
        ("- run\n", ":1 is a list; expected a mapping"),
        ("run\n", ":1 is 'run'; expected a mapping"),
        ("budget: {max_time: 1s}\n", ": no run: in this plan"),
        ("run:\n", ":1: run is empty; expected a mapping of suites"),
        ("run: [matmul-sweep]\n", ":1: run is a list; expected a mapping of suites"),
        ("run: {}\n", ":1: run is a mapping; expected a suite at least"),
        ("run:\n  matmul-sweep:\n", ":2: run.matmul-sweep is empty; expected a mapping of axes, {} for"),
        ("run:\n  matmul-sweep: [n]\n", ":2: run.matmul-sweep is a list; expected a mapping of axes"),
        ("run:\n  a:\n    n: []\n", ":3: run.a.n is a list; expected at least one value"),
        ("run:\n  a:\n    n:\n", ":3: run.a.n is empty; expected integers or names"),
        ("run:\n  a:\n    n: {b: 1}\n", ":3: run.a.n is a mapping; expected integers or names"),
        ("run:\n  a:\n    n: [1, [2]]\n", ":3: run.a.n is a list; expected integers or names"),
        ("run:\n  a:\n    n: [1e2]\n", ":3: run.a.n: axis n: '1e2' is neither a plain decimal integer nor a name"),
        ("run:\n  a:\n    n:\n      - 1\n      - 010\n", ":5: run.a.n: axis n: '010' is neither"),
        ("run:\n  a:\n    n: 1k\n", ":3: run.a.n: axis n: '1k' is neither"),
        ("run:\n  a:\n    n: 1:30\n", ":3: run.a.n: axis n: the range '1:30' is not FIRST:LAST:STEP"),
        ("run:\n  a:\n    n: 1_000\n", ":3: run.a.n: axis n: '1_000' is neither"),
        ("run:\n  a:\n    n: .nan\n", ":3: run.a.n: axis n: '.nan' is neither"),
        (
            "run:\n  a:\n    n: true\n",
            ":3: run.a.n is 'true'; expected integers or names (YAML reads it as true or false",
        ),
        ("run:\n  a:\n    p: [no]\n", ":3: run.a.p is 'no'; expected integers or names"),
        ("run:\n  a:\n    n: 1\n    n: 2\n", ":4: the key n in run.a is already on line 3"),
        ("run: {a: {}}\nbudget: {max_noise: 3}\n", ":2: budget.max_noise: '3' is neither a percentage nor a fraction"),
        ("run: {a: {}}\nbudget: {max_noise: .nan}\n", ":2: budget.max_noise: '.nan' is not a percentage"),
        ("run: {a: {}}\nbudget: {max_time: 60}\n", ":2: budget.max_time: the duration '60' has no unit"),
        ("run: {a: {}}\nbudget: {samples: true}\n", ":2: budget.samples: 'true' is not an integer from 1"),
        ("run: {a: {}}\nbudget: {samples: 1e2}\n", ":2: budget.samples: '1e2' is not an integer from 1"),
        ("run: {a: {}}\nbudget: {samples: 0}\n", ":2: budget.samples: '0' is not an integer from 1"),
        ("run: {a: {}}\nbudget: {samples: [3]}\n", ":2: budget.samples is a list; expected an integer from 1"),
        ("run: {a: {}}\nbudget: {samples: }\n", ":2: budget.samples is empty; expected an integer from 1"),
        ("run: {a: {}}\nconditions: {cache: off}\n", ":2: conditions.cache: 'off' is not one of cold, hot"),
        ("run: {a: {}}\nconditions: {load: steady}\n", ":2: conditions.load: 'steady' is not one of burst, sustained"),
        ("run: {a: {}}\nconditions: hot\n", ":2: conditions is 'hot'; expected a mapping of settings"),
        ("run: {a: {}}\ndevice: ~\n", ":2: device is empty; expected auto, cpu"),
        ("run: {a: {}}\ntags: [NO]\n", ":2: tags is 'NO'; expected a line of at most 200 characters (YAML reads it"),
    ],
)
def test_a_broken_plan_is_one_line_with_key_and_place(tmp_path: Path, text: str, says: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(UsageError) as error:
        load_plan(path)
    message = str(error.value)
    assert message.startswith(f"{path}{says}")
    assert "\n" not in message


def test_small_numbers_are_the_numbers_meant(tmp_path: Path) -> None:
    plan = load_plan(write(tmp_path, "run: {a: {}}\nbudget: {max_noise: 1e-3, case_time: 5e-1s}\n"))
    assert plan.budget == {"max_noise": 0.001, "case_time": 0.5}


def test_numbers_in_quotes_and_lists_in_a_string(tmp_path: Path) -> None:
    plan = load_plan(write(tmp_path, 'run: {a: {n: ["1024", 2048], m: 256,512}}\n'.replace("256,512", '"256,512"')))
    assert plan.run == {"a": {"n": [1024, 2048], "m": [256, 512]}}


@pytest.mark.parametrize("word", ["true", "yes", "On", '"off"', "no", "FALSE"])
def test_both_spellings_of_a_truth_value(tmp_path: Path, word: str) -> None:
    plan = load_plan(write(tmp_path, f"run: {{a: {{}}}}\nquick: {word}\n"))
    assert plan.settings == {"quick": word.strip('"').lower() in ("true", "yes", "on")}


# Selecting


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["matmul-sweep"], ["matmul-sweep/matmul"]),
        (["matmul_sweep"], ["matmul-sweep/matmul"]),
        (["bandwidth"], ["bandwidth/copy", "bandwidth/strided-read"]),
        (["bandwidth/strided_read"], ["bandwidth/strided-read"]),
        (["matmul-sweep", "bandwidth/copy"], ["matmul-sweep/matmul", "bandwidth/copy"]),
        (["*"], ["bandwidth/copy", "bandwidth/strided-read", "matmul-sweep/matmul"]),
        (["*/copy"], ["bandwidth/copy"]),
        (["mat*"], ["matmul-sweep/matmul"]),
        (["*-sweep"], ["matmul-sweep/matmul"]),
        (["bandwidth/s*"], ["bandwidth/strided-read"]),
        (["quick"], ["bandwidth/copy", "matmul-sweep/matmul"]),
        ([], ["bandwidth/copy", "matmul-sweep/matmul"]),
    ],
)
def test_words(library: Library, words: list[str], found: list[str]) -> None:
    assert paths(select(words, library)) == found


def test_a_plan_asks_for_values_and_a_param_replaces_them(library: Library) -> None:
    assert asked(select(["quick"], library)) == {
        "bandwidth/copy": {},
        "matmul-sweep/matmul": {"n": [4, 5], "dtype": ["single"]},
    }
    chosen = select(["quick"], library, parse_params(["n=7"]))
    assert asked(chosen)["matmul-sweep/matmul"] == {"n": [7], "dtype": ["single"]}
    assert [entry.by_hand for entry in chosen] == [False, True]
    assert not any(entry.by_hand for entry in select(["quick"], library, parse_params(["dtype=half"])))


def test_a_file_of_a_suite_or_a_plan(library: Library, tmp_path: Path) -> None:
    mine = write(tmp_path, BANDWIDTH, "mine.py")
    assert paths(select([str(mine)], library)) == ["mine/copy", "mine/strided-read"]
    plan = write(tmp_path, "run: {matmul-sweep: {n: [9]}}\n")
    assert asked(select([str(plan)], library)) == {"matmul-sweep/matmul": {"n": [9]}}


@pytest.mark.parametrize(
    ("words", "params", "says"),
    [
        (["matmull"], [], "no suite 'matmull'; did you mean matmul-sweep? (gpubench list)"),
        (["quik"], [], "no suite 'quik'; did you mean quick? (gpubench list)"),
        (["Bandwidth"], [], "no suite 'Bandwidth'; did you mean bandwidth? (gpubench list)"),
        (["zzz"], [], "no suite 'zzz' (gpubench list)"),
        ([""], [], "no suite '' (gpubench list)"),
        (["[/bold]"], [], "no suite or benchmark matches '[/bold]' (gpubench list)"),
        (["bandwith/copy"], [], "no suite 'bandwith/copy'; did you mean bandwidth? (gpubench list)"),
        (
            ["bandwidth/coppy"],
            [],
            "no benchmark 'bandwidth/coppy'; did you mean bandwidth/copy? (gpubench list bandwidth)",
        ),
        (["x*"], [], "no suite or benchmark matches 'x*' (gpubench list)"),
        (["none.py"], [], "none.py: no such file (a suite is a Python file)"),
        (["none.yaml"], [], "none.yaml: cannot be read: No such file or directory"),
        (["quick", "ci"], [], "two plans, quick and ci; a run is under one (run one after the other)"),
        (["bandwidth"], ["n=4"], "no axis 'n' in bandwidth (axes: mib, stride, cache, load, data)"),
        (
            ["bandwidth"],
            ["lod=burst"],
            "no axis 'lod' in bandwidth; did you mean load? (axes: mib, stride, cache, load, data)",
        ),
        (["*"], ["cache=warm"], "axis cache: no value 'warm' (one of cold, hot)"),
        (["*"], ["load=1"], "axis load: no value '1' (one of burst, sustained)"),
        (
            ["*"],
            ["dtyp=half"],
            "no axis 'dtyp' in bandwidth, matmul-sweep; did you mean dtype? "
            "(axes: mib, stride, n, m, dtype, cache, load, data)",
        ),
        (["x" * 5000 + "/y"], [], f"no suite '{'x' * 5000}/y' (gpubench list)"),
        (["*"], ["n=0"], "axis n: 0 is below 1 (an integer from 1 up)"),
        (["*"], ["n=-5"], "axis n: -5 is below 1 (an integer from 1 up)"),
        (["*"], ["n=abc"], "axis n: 'abc' is not a plain decimal integer (such as n=1024)"),
        (["*"], ["dtype=hlaf"], "axis dtype: no value 'hlaf' (one of half, single)"),
        (["*"], ["dtype=16"], "axis dtype: no value '16' (one of half, single)"),
    ],
)
def test_unknown_words_axes_and_values(library: Library, words: list[str], params: list[str], says: str) -> None:
    with pytest.raises(UsageError) as error:
        select(words, library, parse_params(params))
    assert str(error.value) == says


def test_a_param_applies_to_the_benchmarks_that_have_its_axis(library: Library) -> None:
    assert asked(select(["*"], library, parse_params(["stride=0", "n=3"]))) == {
        "bandwidth/copy": {},
        "bandwidth/strided-read": {"stride": [0]},
        "matmul-sweep/matmul": {"n": [3]},
    }


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("matmull: {}", "no suite 'matmull'; did you mean matmul-sweep? (gpubench list)"),
        ("bandwidth: {n: 3}", "no axis 'n' in bandwidth (axes: mib, stride, cache, load, data)"),
        ("matmul-sweep: {load: steady}", "axis load: no value 'steady' (one of burst, sustained)"),
        ("matmul-sweep: {dtype: hlaf}", "axis dtype: no value 'hlaf' (one of half, single)"),
        ("matmul-sweep: {n: [1, 0]}", "axis n: 0 is below 1 (an integer from 1 up)"),
    ],
)
def test_a_plan_that_does_not_fit_says_where(library: Library, tmp_path: Path, entry: str, says: str) -> None:
    path = write(tmp_path, f"run:\n  bandwidth/copy: {{}}\n  {entry}\n")
    with pytest.raises(UsageError) as error:
        select([str(path)], library)
    word = entry.split(":")[0]
    assert str(error.value) == f"{path}:3: run.{word}: {says}"


def test_the_plan_a_run_is_under(library: Library, tmp_path: Path) -> None:
    def name(words: list[str], default: Plan | None = None) -> str | None:
        plan = plan_among(words, library, default)
        return plan.name if plan else None

    project = load_plan(write(tmp_path, "run: {matmul-sweep: {n: [8]}}\n", "gpubench.yaml"))
    settings_only = load_plan(write(tmp_path, "results: here\n", "gpubench.yaml"))
    assert name([]) == "quick"
    assert name([], settings_only) == "quick"
    assert name([], project) is None
    assert name(["bandwidth"]) is None
    assert name(["bandwidth", "ci"]) == "ci"
    assert name(["ci", "ci"]) == "ci"
    assert asked(select([], library, default=project)) == {"matmul-sweep/matmul": {"n": [8]}}
    assert paths(select([], library, default=settings_only)) == ["bandwidth/copy", "matmul-sweep/matmul"]


# Rows


def test_rows_keep_their_order_and_come_once(library: Library) -> None:
    chosen = select(["matmul-sweep", "bandwidth/copy", "quick", "mat*"], library)
    rows = cases(chosen, "cuda")
    assert [row.id for row in rows] == [
        "matmul-sweep/matmul[dtype=half,m=1,n=1]",
        "matmul-sweep/matmul[dtype=half,m=2,n=2]",
        "bandwidth/copy[mib=8]",
        "bandwidth/copy[mib=16]",
        "matmul-sweep/matmul[dtype=single,m=4,n=4]",
        "matmul-sweep/matmul[dtype=single,m=5,n=5]",
    ]
    assert {row.conditions for row in rows} == {Conditions()}
    hot = cases(chosen, "cuda", conditions={"cache": "hot"})
    assert {row.conditions for row in hot} == {Conditions(cache="hot")}
    assert hot[0].id == "matmul-sweep/matmul[cache=hot,dtype=half,m=1,n=1]"
    assert [row.params for row in hot] == [row.params for row in rows]


def test_rows_by_kind_and_under_quick(library: Library) -> None:
    chosen = select(["matmul-sweep"], library)
    assert [row.params["n"] for row in cases(chosen, "cpu")] == [1]
    assert [row.params["n"] for row in cases(chosen, "cuda", quick=True)] == [2]
    by_hand = select(["matmul-sweep"], library, parse_params(["n=3"]))
    assert [(row.params["n"], row.by_hand) for row in cases(by_hand, "cuda", quick=True)] == [(3, True)]
    both = [*select(["matmul-sweep"], library), *select(["matmul-sweep"], library, parse_params(["n=2"]))]
    assert [(row.params["n"], row.by_hand) for row in cases(both, "cuda")] == [(1, False), (2, True)]


def ids(selected: list[Selected], **more: object) -> list[str]:
    return [case.id.partition("[")[2].rstrip("]") for case in cases(selected, "cuda", **more)]  # type: ignore[arg-type]


def test_conditions_are_axes_of_every_benchmark_and_vary_fastest(library: Library) -> None:
    chosen = select(["bandwidth/copy"], library, parse_params(["cache=cold,hot", "load=sustained"]))
    assert ids(chosen) == [
        "load=sustained,mib=8",
        "cache=hot,load=sustained,mib=8",
        "load=sustained,mib=16",
        "cache=hot,load=sustained,mib=16",
    ]
    assert not any(case.by_hand for case in cases(chosen, "cuda")), "no size was named"
    every = cases(select(["*"], library, parse_params(["data=zeros"])), "cuda")
    assert {case.conditions.data for case in every} == {"zeros"}


def test_the_same_row_under_other_conditions_is_another_row_and_comes_once(library: Library) -> None:
    copy = "bandwidth/copy"
    hot, both = ["cache=hot"], ["cache=cold,hot"]
    chosen = [selected for texts in (hot, both, hot) for selected in select([copy], library, parse_params(texts))]
    assert ids(chosen) == ["cache=hot,mib=8", "cache=hot,mib=16", "mib=8", "mib=16"]


def test_who_says_under_which_conditions(library: Library, tmp_path: Path) -> None:
    path = write(tmp_path, "run: {bandwidth/copy: {mib: 8, load: [burst, sustained]}}\nconditions: {cache: hot}\n")
    plan = load_plan(path)
    assert plan.run == {"bandwidth/copy": {"mib": [8], "load": ["burst", "sustained"]}}
    chosen = select([str(path)], library)
    assert ids(chosen) == ["mib=8", "load=sustained,mib=8"]
    usual = {"cache": "hot", "load": "burst"}
    assert ids(chosen, conditions=usual) == ["cache=hot,mib=8", "cache=hot,load=sustained,mib=8"], "the entry wins"
    asked_for = select([str(path)], library, parse_params(["load=sustained", "cache=cold"]))
    assert ids(asked_for, conditions=usual) == ["load=sustained,mib=8"], "-p wins"


def test_a_suite_says_under_which_conditions_unless_somebody_else_does(library: Library, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(BANDWIDTH.replace("mib=Axis([8, 16])", 'mib=Axis([8]), cache=Axis(["cold", "hot"], quick=["hot"])'))
    chosen = [entry for entry in select([str(file)], library) if entry.benchmark.name == "copy"]
    assert ids(chosen) == ["mib=8", "cache=hot,mib=8"]
    assert ids(chosen, quick=True) == ["cache=hot,mib=8"]
    assert ids(chosen, conditions={"cache": "cold"}) == ["mib=8"]
    assert ids(chosen, conditions={"load": "sustained"}) == ["load=sustained,mib=8", "cache=hot,load=sustained,mib=8"]


# Plans of plans


def include(library: Library, **texts: str) -> None:
    for name, text in texts.items():
        (library.folder / "plans" / f"{name}.yaml").write_text(text)


def test_a_plan_may_include_others(library: Library) -> None:
    include(
        library,
        one="run: {bandwidth/copy: {mib: 8}}\nconditions: {cache: hot}\nbudget: {samples: 3}\n",
        two="include: [one]\nrun: {matmul-sweep: {n: 1}}\n",
        all="include: [two, ci]\nbudget: {samples: 9}\n",
    )
    assert ids(select(["all"], library)) == ["mib=8", "dtype=half,m=1,n=1", "mib=16", "mib=8,stride=1"]
    plan = plan_among(["all"], library)
    assert plan is not None
    assert plan.values == {"samples": 9}, "conditions and budget are its own"
    only = load_plan(write(library.folder, "include: one\n", "gpubench.yaml"))
    assert plan_among([], library, only) is None, "it says what to run"
    assert ids(select([], library, default=only)) == ["mib=8"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("include: [all]\n", "all.yaml:1: include: the plan all includes itself"),
        ("include:\n- ci\n- mid\n", "mid.yaml:1: include: the plan all includes itself"),
        ("include: [cii]\n", "all.yaml:1: include: no plan 'cii'; did you mean ci?"),
        ("include: []\n", "all.yaml:1: include is a list; expected the name of a plan at least"),
        ("include: {ci: {}}\n", "all.yaml:1: include is a mapping; expected the name of a plan"),
        ("include: [bad]\n", "bad.yaml:1: run.bandwidth/cpoy: no benchmark 'bandwidth/cpoy'"),
    ],
)
def test_what_cannot_be_included(library: Library, text: str, says: str) -> None:
    include(library, mid="include: [all]\n", bad="run: {bandwidth/cpoy: {}}\n", all=text)
    with pytest.raises(UsageError) as caught:
        select(["all"], library)
    assert says in str(caught.value)
