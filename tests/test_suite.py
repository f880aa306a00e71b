"""Axis, Benchmark, Case, and the definition: the hash that says whether two rows measured the same thing."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.errors import UsageError
from gpubench.plan import Selected, cases
from gpubench.result import CONDITIONS, Conditions
from gpubench.suite import Axis, Benchmark, Case, Suite, record_id
from gpubench.workload import Workload

# Axes


def test_defaults_by_kind_of_device_and_effort() -> None:
    axis = Axis([1, 2, 4], cpu=[1, 2], quick=[4], quick_cpu=[2])
    assert axis.defaults("cuda", quick=False) == (1, 2, 4)
    assert axis.defaults("cuda", quick=True) == (4,)
    assert axis.defaults("cpu", quick=False) == (1, 2)
    assert axis.defaults("cpu", quick=True) == (2,)
    assert axis.defaults("fake", quick=False) == (1, 2, 4)


def test_what_is_not_said_follows_what_is() -> None:
    plain = Axis([1, 2])
    assert {plain.defaults(kind, quick) for kind in ("cuda", "cpu") for quick in (True, False)} == {(1, 2)}
    assert Axis([1, 2], quick=[2]).defaults("cpu", quick=True) == (2,)
    assert Axis([1024], cpu=[8], quick=[512]).defaults("cpu", quick=True) == (8,), "a GPU's size is not for a CPU"


def test_an_axis_of_integers_accepts_any_from_its_minimum() -> None:
    axis = Axis([64, 128])
    assert axis.accept("n", 1) == 1
    assert axis.accept("n", 10**15) == 10**15
    assert Axis([0], minimum=0).accept("n", 0) == 0


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "axis n: 0 is below 1 (an integer from 1 up)"),
        (-5, "axis n: -5 is below 1 (an integer from 1 up)"),
        ("abc", "axis n: 'abc' is not a plain decimal integer (such as n=1024)"),
        ("1e9", "axis n: '1e9' is not a plain decimal integer (such as n=1024)"),
        (True, "axis n: 'True' is not a plain decimal integer (such as n=1024)"),
        (2.0, "axis n: '2.0' is not a plain decimal integer (such as n=1024)"),
    ],
)
def test_an_axis_of_integers_refuses(value: Any, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        Axis([64]).accept("n", value)
    assert str(caught.value) == said


def test_an_axis_of_names_accepts_its_choices() -> None:
    axis = Axis(["bfloat16"], cpu=["float32"], choices=["bfloat16", "float32", "float64"])
    assert axis.accept("dtype", "float64") == "float64"
    assert Axis(["nn"], cpu=["nt"]).choices == ("nn", "nt")
    for wrong in ("float8", 32, ""):
        with pytest.raises(UsageError, match=r"axis dtype: no value '.*' \(one of bfloat16, float32, float64\)"):
            axis.accept("dtype", wrong)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "either values or same_as"),
        ({"values": []}, "either values or same_as"),
        ({"values": [1], "same_as": "n"}, "either values or same_as"),
        ({"values": [1, "x"]}, "either integers or names"),
        ({"values": [1], "cpu": ["x"]}, "either integers or names"),
    ],
)
def test_axes_that_say_too_little_or_too_much(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        Axis(**arguments)


# Benchmarks


def made(**axes: Axis) -> Benchmark:
    return Benchmark("some-suite", "bench", lambda device: Workload(print, None, print, "none"), axes)


def rows(benchmark: Benchmark, *arguments: Any, **more: Any) -> list[tuple[Any, ...]]:
    return [tuple(params.values()) for params in benchmark.cases(*arguments, **more)]


def test_rows_are_the_product_in_the_order_declared() -> None:
    bench = made(a=Axis([1, 2]), b=Axis(["x", "y"]))
    assert rows(bench, "cuda") == [(1, "x"), (1, "y"), (2, "x"), (2, "y")]
    assert [list(params) for params in bench.cases("cuda")] == [["a", "b"]] * 4


def test_an_axis_follows_another_unless_it_is_asked_for() -> None:
    bench = made(m=Axis(same_as="n"), n=Axis([4, 8]), k=Axis(same_as="n"))
    assert rows(bench, "cuda") == [(4, 4, 4), (8, 8, 8)]
    assert rows(bench, "cuda", asked={"k": [1, 2]}) == [(4, 4, 1), (4, 4, 2), (8, 8, 1), (8, 8, 2)]
    assert rows(bench, "cuda", asked={"n": [5]}) == [(5, 5, 5)]
    assert list(next(bench.cases("cuda", asked={"k": [1]}))) == ["m", "n", "k"], "the order stays the declared one"


def test_rows_by_kind_and_quick() -> None:
    bench = made(n=Axis([1, 2, 3], cpu=[1], quick=[2, 3]), d=Axis(["a"], cpu=["b"]))
    assert rows(bench, "cuda") == [(1, "a"), (2, "a"), (3, "a")]
    assert rows(bench, "cuda", True) == [(2, "a"), (3, "a")]
    assert rows(bench, "cpu") == rows(bench, "cpu", True) == [(1, "b")]


def test_no_row_twice() -> None:
    assert rows(made(n=Axis([2, 1, 2, 1])), "cuda") == [(2,), (1,)]
    assert rows(made(n=Axis([1])), "cuda", asked={"n": [3, 3, 3]}) == [(3,)]


def test_what_is_asked_of_an_axis_that_is_not_there() -> None:
    bench = made(n=Axis([1]), dtype=Axis(["x"]))
    with pytest.raises(UsageError) as caught:
        rows(bench, "cuda", asked={"N": [1]})
    assert str(caught.value) == "some-suite/bench has no axis 'N' (its axes: n, dtype)"
    with pytest.raises(UsageError, match="axis n: 0 is below 1"):
        rows(bench, "cuda", asked={"n": [4, 0]})


@given(
    st.dictionaries(
        st.sampled_from("abcd"), st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=1, max_size=4
    )
)
def test_the_product_by_brute_force(values: dict[str, list[int]]) -> None:
    bench = made(**{name: Axis(numbers) for name, numbers in values.items()})
    found = rows(bench, "cuda")
    assert set(found) == set(itertools.product(*values.values()))
    assert len(found) == len(set(found))


# Suites


def test_a_suite_is_named_after_its_file() -> None:
    assert Suite("/some/where/memory_hierarchy.py").name == "memory-hierarchy"


def test_a_benchmark_is_declared() -> None:
    suite = Suite(__file__)

    @suite.benchmark(n=Axis([1]), m=Axis(same_as="n"))
    def row_sums(device: Any, n: int, m: int) -> Workload:
        """Sum rows,
        one after the other.

        More.
        """
        raise NotImplementedError

    bench = suite.benchmarks["row-sums"]
    assert (bench.path, bench.doc, bench.file) == (
        "test-suite/row-sums", "Sum rows, one after the other.", Path(__file__),
    )  # fmt: skip
    assert bench.function is row_sums
    with pytest.raises(TypeError, match="test-suite/row-sums is declared twice"):
        suite.benchmark(n=Axis([1]), m=Axis([1]))(row_sums)


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ({"n": Axis([1])}, r"arguments \['n', 'm'\] and axes \['n'\] differ"),
        ({"n": Axis([1]), "m": Axis([1]), "k": Axis([1])}, r"axes \['k', 'm', 'n'\] differ"),
        ({"n": Axis([1]), "m": Axis(same_as="k")}, "axis m follows k, which has no values"),
        ({"n": Axis(same_as="m"), "m": Axis(same_as="n")}, "axis n follows m, which has no values"),
        ({"n": Axis([1]), "m": Axis(same_as="m")}, "axis m follows m, which has no values"),
    ],
)
def test_axes_that_do_not_fit_the_function(axes: dict[str, Axis], said: str) -> None:
    def bench(device: Any, n: int, m: int) -> Workload:
        raise NotImplementedError

    with pytest.raises(TypeError, match=said):
        Suite(__file__).benchmark(**axes)(bench)


def test_ids() -> None:
    assert record_id("s", "b", {"n": 2, "a": "x", "k": 1}, Conditions()) == "s/b[a=x,k=1,n=2]"
    assert record_id("s", "b", {}, Conditions()) == "s/b[]"
    assert Case("s", "b", {"n": 2}, Conditions()).id == "s/b[n=2]"


def test_conditions_that_are_not_the_default_are_part_of_an_id_in_the_order_of_the_alphabet() -> None:
    assert Case("s", "b", {"n": 2, "a": "x"}, Conditions(cache="hot")).id == "s/b[a=x,cache=hot,n=2]"
    assert (
        record_id("s", "b", {"k": 1}, Conditions("cold", "sustained", "zeros")) == "s/b[data=zeros,k=1,load=sustained]"
    )
    every = [Conditions(*values) for values in itertools.product(*CONDITIONS.values())]  # type: ignore[arg-type]
    assert len({record_id("s", "b", {"n": 1}, each) for each in every}) == len(every) == 12


# Conditions


def declared(**axes: Axis) -> Benchmark:
    suite = Suite(__file__)

    @suite.benchmark(n=Axis([1, 2]), **axes)
    def bench(device: Any, n: int) -> Workload:
        raise NotImplementedError

    return suite.benchmarks["bench"]


def under(benchmark: Benchmark, *arguments: Any, asked: Any = None, usual: Any = None) -> list[str]:
    kind, quick = arguments or ("cuda", False)
    found = benchmark.conditions_of(kind, quick, asked or {}, usual or {})
    return [" ".join(each.by_name.values()) for each in found]


def test_conditions_are_axes_but_no_arguments() -> None:
    bench = declared(cache=Axis(["cold", "hot"]), load=Axis(["burst", "sustained"], quick=["burst"], cpu=["burst"]))
    assert (list(bench.axes), list(bench.conditions)) == (["n"], ["cache", "load"])
    assert rows(bench, "cuda") == [(1,), (2,)]
    assert under(bench) == [
        "cold burst normal",
        "cold sustained normal",
        "hot burst normal",
        "hot sustained normal",
    ]
    assert under(bench, "cuda", True) == under(bench, "cpu", False) == ["cold burst normal", "hot burst normal"]
    assert under(declared()) == ["cold burst normal"]


def test_what_is_asked_outranks_what_is_usual_and_that_what_a_suite_declares() -> None:
    bench = declared(load=Axis(["burst", "sustained"]))
    assert under(bench, usual={"load": "sustained"}) == ["cold sustained normal"]
    assert under(bench, usual={"cache": "hot"}) == ["hot burst normal", "hot sustained normal"]
    assert under(bench, usual={"load": "sustained"}, asked={"load": ["burst", "burst"]}) == ["cold burst normal"]
    assert under(declared(data=Axis(["normal"])), asked={"data": ["zeros", "uniform"]}) == [
        "cold burst zeros",
        "cold burst uniform",
    ], "a suite limits nothing"
    with pytest.raises(UsageError, match="axis load: no value 'hot'"):
        under(bench, asked={"load": ["hot"]})


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ({"cache": Axis(["warm"])}, "test-suite/bench: the condition cache has no value 'warm', only cold, hot"),
        ({"cache": Axis(["cold"], quick=["hot"], choices=["lukewarm"])}, "no value 'lukewarm'"),
        ({"load": Axis([1])}, "the condition load has no value 1"),
        ({"load": Axis(["burst"], quick_cpu=["cold"])}, "the condition load has no value 'cold'"),
        ({"data": Axis(same_as="n")}, "data is a condition, which follows no axis"),
        ({"m": Axis(same_as="cache"), "cache": Axis(["hot"])}, r"arguments \['n'\] and axes \['m', 'n'\] differ"),
    ],
)
def test_an_axis_that_is_no_condition(axes: dict[str, Axis], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        declared(**axes)


FIXED = {"right": {"load": "sustained"}, "wrong": {"cache": "hot", "load": "burst"}}


def by_way(fixed: Any, **axes: Axis) -> Benchmark:
    suite = Suite(__file__)

    @suite.benchmark(fixed=fixed, **axes)
    def bench(device: Any, way: str) -> Workload:
        raise NotImplementedError

    return suite.benchmarks["bench"]


def test_a_way_has_the_conditions_that_are_fixed_for_it() -> None:
    bench = by_way(FIXED, way=Axis(["right", "wrong", "other"]))
    asked = Conditions("cold", "burst", "zeros")
    held = [bench.under({"way": way}, asked) for way in ("right", "wrong", "other")]
    assert held == [Conditions("cold", "sustained", "zeros"), Conditions("hot", "burst", "zeros"), asked]
    assert declared().under({"n": 1}, asked) == asked
    rows = cases([Selected(bench, {"data": ["zeros"], "cache": ["cold"], "load": ["burst"]})], "cuda")
    assert [row.conditions for row in rows] == held


@pytest.mark.parametrize(
    ("fixed", "said"),
    [
        ({"left": {"load": "burst"}}, "test-suite/bench: conditions are fixed for way=left, which it does not have"),
        ({"right": {"warmth": "hot"}}, "warmth is no condition to be fixed, only cache, load, data"),
        ({"right": {"cache": "burst"}}, "the condition cache has no value 'burst', only cold, hot"),
    ],
)
def test_what_cannot_be_fixed(fixed: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        by_way(fixed, way=Axis(["right", "wrong"]))


def test_a_function_does_not_take_a_condition() -> None:
    def bench(device: Any, n: int, cache: str) -> Workload:
        raise NotImplementedError

    with pytest.raises(TypeError, match="test-suite/bench: cache is a condition, which is no argument"):
        Suite(__file__).benchmark(n=Axis([1]), cache=Axis(["hot"]))(bench)
