"""Figures of a run: every value is one of its rows, every suite has one, and words say what is drawn."""

from __future__ import annotations

import dataclasses
from functools import cache
from math import log
from pathlib import Path
from typing import Any

import comparisons
import pytest
from builders import make_bandwidth, make_record, make_run, make_sweep

from gpubench.report.figures import axes, catalogue, generic, products
from gpubench.report.figures.intervals import intervals
from gpubench.report.figures.shapes import Figure, Lines, Quantity, Rows, Strips, Tiles, say
from gpubench.report.rows import groups
from gpubench.report.sweep import main, sweeps
from gpubench.result import Metric, Record, Run
from gpubench.store.folder import read_run

H200 = Path(__file__).resolve().parent.parent / "results/reference/h200"


@cache
def stored(name: str) -> Run:
    return read_run(H200 / f"{name}.json.gz")


@cache
def of_stored(name: str) -> dict[str, Figure]:
    return {figure.heading.id: figure for figure in catalogue.figures(stored(name))}


def lines(name: str, id: str) -> Lines:
    figure = of_stored(name)[id]
    assert isinstance(figure, Lines)
    return figure


def by_name(figure: Lines, role: str = "measured") -> dict[str, dict[float, float]]:
    return {each.name: {point.x: point.y for point in each.points} for each in figure.series if each.role == role}


def test_the_lecture_has_the_figures_of_its_suites_each_once():
    figures = catalogue.figures(stored("lecture"))
    ids = [figure.heading.id for figure in figures]
    assert len(set(ids)) == len(ids)
    wanted = {
        "claims", "latency-ladder", "bandwidth-by-working-set", "bytes-in-flight", "stride", "offset",
        "bank-conflicts", "divergence", "divergence-switch", "tiling", "tiling-loads", "tile-size", "formats", "fusion",
        "occupancy", "samples",
    }  # fmt: skip
    assert wanted <= set(ids)
    suites = list(dict.fromkeys(figure.heading.suite for figure in figures if figure.heading.suite))
    assert [suite for suite in dict.fromkeys(r.suite for r in stored("lecture").records) if suite in suites] == suites


@pytest.mark.parametrize("name", ["lecture", "lecture-attention", "sustained", "traps", "data-pattern", "matmul-sweep"])
def test_every_figure_says_what_it_is_and_has_finite_marks(name: str):
    for id, figure in of_stored(name).items():
        heading = figure.heading
        assert heading.title, id
        assert heading.question.endswith("?"), id
        assert 20 < len(figure.alt) < 3000, id
        assert "None" not in figure.alt, id
        if isinstance(figure, Lines):
            values = [value for each in figure.series for point in each.points for value in (point.x, point.y)]
        elif isinstance(figure, Rows):
            values = [entry.value for entry in figure.entries]
        else:
            continue
        assert values, id
        assert all(abs(value) < float("inf") for value in values), id


def test_a_line_has_the_rows_values_and_the_model_beside_them():
    figure = lines("lecture", "stride")
    rows = [r for r in stored("lecture").records if (r.suite, r.benchmark) == ("coalescing", "strided-read")]
    expected = {float(str(r.params["stride"])): r.metric("bandwidth").value for r in rows}  # type: ignore[union-attr]
    assert by_name(figure)["read"] == expected
    first = expected[1.0]
    assert by_name(figure, "predicted")["read"][8.0] == pytest.approx(first / 8, rel=0.01)


def test_the_latency_ladder_climbs_from_level_to_level_and_names_their_ends():
    figure = lines("lecture", "latency-ladder")
    found = by_name(figure)["through every cache"]
    sizes = sorted(found)
    assert found[sizes[0]] < 50 < 200 < found[2.0**22] < 400 < found[sizes[-1]]
    assert {level.words for level in figure.levels} == {"L1: 256 KiB", "L2: 60 MiB"}
    assert sizes[0] == 4096


def test_attention_has_time_memory_and_bytes_forward_and_with_the_gradient():
    ids = {f"attention-{what}{both}" for what in ("time", "memory", "traffic") for both in ("", "-backward")}
    assert ids <= set(of_stored("lecture-attention"))
    traffic = lines("lecture-attention", "attention-traffic")
    naive, foretold = (by_name(traffic, role)["naive"] for role in ("measured", "predicted"))
    assert naive[16384.0] == pytest.approx(foretold[16384.0], rel=0.05)
    assert by_name(traffic)["flash"][16384.0] < naive[16384.0] / 50


def test_sustained_is_a_share_of_burst_and_settles_in_time():
    rows = of_stored("sustained")["sustained"]
    assert isinstance(rows, Rows)
    shares = {entry.name: entry.value for entry in rows.entries if entry.kind == "rate"}
    assert shares["matmul n=4096"] == pytest.approx(100 * 656.5 / 749.4, rel=0.001)
    in_time = lines("sustained", "sustained-in-time-1")
    assert not in_time.points
    names = [each.name.split(",")[0] for each in in_time.series]
    assert names == ["rate", "SM clock", "power", "temperature"]
    clock = in_time.series[1]
    assert clock.points[-1].y == pytest.approx(75, abs=2)
    assert clock.points[0].x < 1 < 20 < clock.points[-1].x, "in seconds"


def test_wrong_ways_to_measure_stand_over_the_right_one():
    figure = of_stored("traps")["traps"]
    assert isinstance(figure, Rows)
    found = {entry.name: entry.value for entry in figure.entries}
    assert len(found) == 8
    assert found["missing-sync"] < 0.3 < 1 < found["host-clock"]


def test_errors_grow_with_the_length_of_sums_as_the_model_says():
    figure = lines("lecture", "rounding")
    narrow, foretold = (by_name(figure, role)["float16-fp16-accum"] for role in ("measured", "predicted"))
    assert narrow[65536] > 20 * narrow[64]
    assert narrow[65536] == pytest.approx(foretold[65536], rel=0.2)
    assert by_name(figure)["fp32"][64] < 1e-6


def test_conditions_tell_rows_apart_where_parameters_do_not():
    figure = of_stored("data-pattern")["data-pattern/matmul"]
    assert isinstance(figure, Rows)
    assert figure.kind == "load"
    assert {entry.kind for entry in figure.entries} == {"burst", "sustained"}
    assert len(figure.names) == 9


def test_formats_stand_beside_their_datasheet():
    figure = of_stored("lecture")["formats"]
    assert isinstance(figure, Rows)
    found = {entry.name: entry for entry in figure.entries}
    assert found["bf16"].predicted == pytest.approx(989.4e12, rel=0.01)
    assert found["fp64"].value < found["tf32"].value < found["bf16"].value


def test_waves_are_added_where_the_aligned_rows_take_more_of_them():
    run = stored("matmul-sweep")
    sweep = main(sweeps(run))[0]
    edges = products.edges(run, sweep)
    assert edges[0] == (2268.0, "1 → 2 waves")
    why = products.why(run, sweep)
    assert len(why) == len(sweep.records)
    row = next(record for record in sweep.records if record.params["n"] == 4096)
    assert "tiles of" in why[row.id]
    assert "waves" in why[row.id]
    assert "the model gives" in why[row.id]


def test_the_curve_is_the_one_of_matrix_products_and_else_the_longest():
    assert main(sweeps(stored("lecture")))[0].group.path == "matmul-sweep/matmul"
    longer, shorter = (
        [make_bandwidth(name, mib=mib) for mib in sizes] for name, sizes in (("a", range(1, 20)), ("b", range(1, 10)))
    )
    assert main(sweeps(make_run([*shorter, *longer])))[0].group.benchmark == "a"


def test_samples_are_over_their_median_and_the_widest_are_there():
    figure = of_stored("lecture")["samples"]
    assert isinstance(figure, Strips)
    assert 2 <= len(figure.strips) <= 12
    for strip in figure.strips:
        assert min(strip.values) <= 1 <= max(strip.values)
        assert len(strip.values) <= 200
    assert max(max(strip.values) for strip in figure.strips) > 1.3


def test_tiles_are_the_claims_with_their_verdicts():
    run = stored("lecture")
    figure = of_stored("lecture")["claims"]
    assert isinstance(figure, Tiles)
    assert {tile.name: tile.verdict for tile in figure.tiles} == {c["id"]: c["verdict"] for c in run.claims}
    assert "62 HOLDS · 1 PARTLY · 3 INFO" in figure.heading.facts[0]
    assert dict(figure.tiles[0].facts)["claim"].startswith("C01: ")
    assert not list(catalogue.scoreboard.scoreboard(make_run()))


def own(params: list[dict[str, Any]], **fields: Any) -> list[Record]:
    return [
        make_record("mine", "b", params=each, time_ns=1000 * (index + 1), **fields) for index, each in enumerate(params)
    ]


def test_any_other_benchmark_has_lines_along_its_longest_integer_axis():
    rows = own([{"size": size, "way": way} for way in ("a", "b") for size in (1, 2, 4, 8)])
    figure = generic.of(groups(make_run(rows))[0])
    assert isinstance(figure, Lines)
    assert (figure.x.name, figure.kind) == ("size", "way")
    assert by_name(figure) == {"a": {1: 1000, 2: 2000, 4: 3000, 8: 4000}, "b": {1: 5000, 2: 6000, 4: 7000, 8: 8000}}


def test_or_its_rows_beside_each_other():
    rows = own([{"way": way, "dtype": dtype} for way in ("a", "b", "c") for dtype in ("float32", "float16")])
    figure = generic.of(groups(make_run(rows))[0])
    assert isinstance(figure, Rows)
    assert (figure.names, figure.kind) == (["a", "b", "c"], "dtype")
    assert [(entry.kind, entry.value) for entry in figure.entries[:2]] == [("fp32", 1000), ("fp16", 2000)]


@pytest.mark.parametrize("params", [[], [{"n": 1}], [{"n": 1}, {"n": 2}]])
def test_and_none_where_there_is_nothing_to_see(params: list[dict[str, Any]]):
    assert [generic.of(group) for group in groups(make_run(own(params)))] in ([], [None])


def test_failed_rows_and_wrong_ones_are_in_no_figure():
    rows = own([{"n": n} for n in (1, 2, 4, 8)])
    rows[0] = make_record("mine", "b", params={"n": 1}, status="oom")
    rows[1] = dataclasses.replace(rows[1], params={"n": 2, "way": "wrong"})
    assert generic.of(groups(make_run(rows))[0]) is None, "two are left"


def test_a_figure_of_strange_values_is_still_one():
    rows = [
        *own([{"n": n} for n in (-4, 0, 7)]),
        make_record("mine", "b", params={"n": 9}, metrics=[Metric("time", float("nan"), "ns", "lower", True)]),
        make_record("mine", "c", params={"n": 9}, time_ns=0),
    ]
    (figure,) = (each for each in catalogue.figures(make_run(rows)) if isinstance(each, Lines))
    assert by_name(figure) == {"": {-4: 1000, 0: 2000, 7: 3000}}


def test_what_a_run_file_claims_does_not_break_a_figure():
    spoilt = dataclasses.replace(
        stored("lecture"),
        records=[
            dataclasses.replace(
                record, prediction=dict.fromkeys(record.prediction, "?"), counters={}, telemetry={"series": 3}
            )
            for record in stored("lecture").records
        ],
        claims=[{"id": "C1", "verdict": None}, *[{"verdict": "HOLDS", "effects": "?"}] * 3],
    )
    figures = catalogue.figures(spoilt)
    assert {"stride", "formats", "samples", "claims"} <= {figure.heading.id for figure in figures}
    assert all(figure.alt for figure in figures)


def test_a_comparison_is_how_much_worse_each_row_got_over_the_margin():
    judged = comparisons.judged(
        comparisons.run(comparisons.rate(100_000, 1), comparisons.record(100_000, 2)),
        comparisons.run(comparisons.rate(110_000, 1), comparisons.record(95_000, 2), run_id="new"),
    )
    figure = intervals(judged)
    assert figure is not None
    assert [entry.value for entry in figure.entries] == pytest.approx([10, -5])
    assert [entry.kind for entry in figure.entries] == ["suspect", "better"]
    assert figure.names == ["n=1", "n=2"]
    for entry in figure.entries:
        assert entry.low is not None
        assert entry.high is not None
        assert entry.low < entry.value < entry.high
    assert figure.band == (pytest.approx(-2.913, abs=0.001), pytest.approx(3), "margin ± 3 %")
    assert intervals(dataclasses.replace(judged, rows=[])) is None


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (3620, "ns", "3.62 µs"), (7.81e14, "FLOP/s", "781 TFLOP/s"), (262144, "iB", "256 KiB"), (2.0112, "×", "2.01×"),
        (17e9, "B", "17.0 GB"), (97.31, "%", "97.3 %"), (16777216, "", "16777216"), (0.1234, "", "0.123"),
    ],
)  # fmt: skip
def test_values_in_words(value: float, unit: str, words: str):
    assert say(value, unit) == words


@pytest.mark.parametrize("values", [[5.0], [5.0, 5.0], [0.0], [1.0, 1e9], [3.0, 4.0], [-2.0, 3.0], [0.001, 0.002]])
@pytest.mark.parametrize("unit", ["", "ns", "B/s", "iB", "×"])
def test_axes_hold_their_values_with_room_and_a_few_ticks(values: list[float], unit: str):
    if unit == "iB":
        values = [abs(value) + 1 for value in values]
    quantity = Quantity("size", unit, log=True if unit == "iB" else None)
    for axis in (axes.across(quantity, values, 8), axes.upwards(quantity, values, 8), axes.around(quantity, values, 8)):
        scale = axis.scale
        assert scale.low < scale.high
        assert all(-1e-9 <= scale.at(value) <= 1 + 1e-9 for value in values)
        inside = [tick for tick in axis.ticks if scale.low <= tick * (1 + 1e-9) and tick <= scale.high * (1 + 1e-9)]
        assert 1 <= len(inside) <= 12
        assert len(set(axis.ticks.values())) == len(axis.ticks), "each tick has a name of its own"


def test_an_axis_is_logarithmic_where_values_are_far_apart():
    assert axes.upwards(Quantity("time", "ns"), [10.0, 1e6], 8).scale.log
    assert not axes.upwards(Quantity("time", "ns"), [10.0, 30.0], 8).scale.log
    assert not axes.upwards(Quantity("time", "ns", log=False), [10.0, 1e6], 8).scale.log
    assert axes.across(Quantity("n"), [1.0, 2.0, 4.0, 8.0, 16.0, 1024.0], 8).scale.log
    assert axes.upwards(Quantity("rate", "FLOP/s"), [3e14], 8).title == "rate, TFLOP/s"
    wide = axes.upwards(Quantity("time", "ns"), [10.0, 1e9], 8)
    assert (wide.title, {"10 µs", "1 ms"} <= set(wide.ticks.values())) == ("time", True)
    assert log(wide.scale.high / wide.scale.low, 10) < 9.5


def test_the_rows_of_a_sweep_have_no_figure_beside_their_curve():
    assert [figure for figure in catalogue.figures(make_run(make_sweep())) if figure.heading.suite] == []


def test_a_few_claims_and_claims_that_nobody_judged_have_no_picture():
    claims = [{"id": f"C0{index}", "verdict": "HOLDS"} for index in range(4)]
    assert len(list(catalogue.scoreboard.scoreboard(make_run(claims=claims)))) == 1
    assert not list(catalogue.scoreboard.scoreboard(make_run(claims=claims[:3])))
    assert not list(catalogue.scoreboard.scoreboard(make_run(claims=[c | {"verdict": "NOT RUN"} for c in claims])))


@pytest.mark.parametrize("name", ["lecture", "lecture-attention", "data-pattern", "sustained"])
def test_no_two_figures_of_a_suite_ask_the_same(name: str):
    asked = [(figure.heading.suite, figure.heading.question) for figure in of_stored(name).values()]
    assert len(set(asked)) == len(asked)


def test_the_name_of_a_row_is_as_short_as_tells_it_apart():
    sparse = of_stored("lecture")["precision/sparse"]
    assert isinstance(sparse, Rows)
    assert sparse.names[:2] == ["4096x4096x4096 unpruned", "4096x4096x4096 dense"], "it would be cut with its axes"
    kv = of_stored("lecture")["decode/kv-cache"]
    assert isinstance(kv, Rows)
    assert kv.names[0] == "batch=1 group=1 context=4096", "numbers keep theirs"
    samples = of_stored("sustained")["samples"]
    assert isinstance(samples, Strips)
    names = [strip.name for strip in samples.strips]
    assert "matmul n=4096 load=burst" in names
    assert "attention load=sustained" in names
    held = of_stored("data-pattern")["sustained"]
    assert isinstance(held, Rows)
    assert held.names[0] == "pattern=zeros", "its only benchmark needs no name"


def test_what_was_predicted_is_only_spoken_of_where_it_is_shown():
    alone = make_record("coalescing", "strided-read", params={"stride": 8}, nbytes=10**9)
    (figure,) = (each for each in catalogue.figures(make_run([alone])) if each.heading.id == "stride")
    assert figure.heading.facts == ()
    dtypes = ("float32", "float16")
    rows = [make_record("precision", "matmul", params={"n": 64, "dtype": name}, flops=10**9) for name in dtypes]
    (figure,) = (each for each in catalogue.figures(make_run(rows)) if each.heading.id == "formats")
    assert isinstance(figure, Rows)
    assert "datasheet" not in " ".join([figure.predicted, figure.heading.question, *figure.heading.facts])


def test_counts_have_no_halves_and_a_wave_is_added_between_close_sizes_alone():
    ticks = axes.across(Quantity("full"), [1.0, 2.0, 3.0], 9).ticks
    assert list(ticks.values()) == ["1", "2", "3"]
    assert "1.5" in axes.across(Quantity("full"), [1.0, 2.5, 3.0], 9).ticks.values()
    sweep = main(sweeps(stored("advise-gpt2")))[0]
    assert [at for at, _ in products.edges(stored("advise-gpt2"), sweep) if 4096 < at < 50_000] == []
