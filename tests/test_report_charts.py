"""Pictures: what is described is what the run holds; what is drawn is a whole SVG or PNG."""

from __future__ import annotations

import dataclasses
import json
import re
import struct
import xml.etree.ElementTree as ET
from math import log
from pathlib import Path
from typing import Any

import comparisons
import pytest
from builders import CPU, make_bandwidth, make_ceilings, make_matmul, make_record, make_run, make_sweep

from gpubench.errors import UsageError
from gpubench.report import charts
from gpubench.report.charts import Picture, picture, theme
from gpubench.report.charts.curve import DROPS
from gpubench.report.charts.marks import words as words_in_frame
from gpubench.report.figures.shapes import (
    MOST,
    Entry,
    Heading,
    Lines,
    Point,
    Quantity,
    Rows,
    Series,
    Strip,
    Strips,
    Tile,
    Tiles,
)
from gpubench.report.sweep import drops, sweeps
from gpubench.result import Ceiling, Run
from gpubench.store.folder import read_run

WHEN = "2026-07-12T10:15:00Z"
SIZES = [248, 256, 512, 1024, 1788, 1792, 1793, 1794, 2048, 3072, 4096, 4097]


def described(picture: Picture, **how: Any) -> dict[str, Any]:
    """The description of a whole picture, its data put back where they are used."""
    found = picture.whole(**how)
    sets = found.pop("datasets", {})
    for layer in found["layer"]:
        layer["rows"] = sets[layer["data"]["name"]]
    return found


def marks(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows that are drawn as marks."""
    return [row for layer in found["layer"] if layer["mark"]["type"] == "point" for row in layer["rows"]]


def lines(found: dict[str, Any], *styles: str) -> list[list[tuple[float, float]]]:
    """The lines of these styles, as places."""
    drawn = [layer for layer in found["layer"] if layer["mark"]["type"] == "line"]
    return [[(row["x"], row["y"]) for row in layer["rows"]] for layer in drawn if layer["mark"].get("style") in styles]


def words(found: dict[str, Any]) -> list[str]:
    """The words in the frame, each once."""
    texts = [row["text"] for layer in found["layer"] if layer["mark"]["type"] == "text" for row in layer["rows"]]
    return list(dict.fromkeys(texts))


def everything(found: dict[str, Any]) -> str:
    """Every word of a picture."""
    return " ".join([found["title"]["text"], *found["title"]["subtitle"], *words(found), str(found["layer"])])


@pytest.fixture(scope="module")
def run() -> Run:
    return make_run(make_sweep(SIZES), ceilings=make_ceilings())


@pytest.fixture(scope="module")
def curve(run: Run) -> dict[str, Any]:
    return described(charts.curve(run))


@pytest.fixture(scope="module")
def roofline(run: Run) -> dict[str, Any]:
    return described(charts.roofline(run))


def test_the_curve_has_a_mark_for_each_row_where_it_belongs(run: Run, curve: dict[str, Any]):
    rates = {record.params["n"]: record.metrics[1].value / 1e12 for record in run.records}
    found = {row["x"]: row["y"] for row in marks(curve)}
    assert found == pytest.approx(rates, rel=1e-5)
    classes = {row["x"]: row["class"] for row in marks(curve)}
    assert classes == {record.params["n"]: record.labels["alignment"] for record in run.records}


def test_a_class_has_a_shape_of_its_own_and_a_colour(curve: dict[str, Any]):
    (layer,) = (layer for layer in curve["layer"] if layer["mark"]["type"] == "point")
    scales = [layer["encoding"][channel]["scale"] for channel in ("shape", "stroke", "fill")]
    assert [scale["domain"] for scale in scales] == [["256 B", "16 B", "8 B", "4 B", "2 B"]] * 3
    assert "range" not in scales[0], "the theme's shapes, in order"
    assert len(set(curve["config"]["range"]["symbol"])) == MOST
    assert len(set(scales[1]["range"])) == 5
    assert scales[1] == scales[2]
    assert layer["encoding"]["shape"]["title"] == "alignment"


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_steps_of_a_quantity_run_from_dark_to_light_and_names_take_other_colours(run: Run, mode: theme.Mode):
    def brightness(colour: str) -> int:
        return 2 * int(colour[1:3], 16) + 5 * int(colour[3:5], 16) + int(colour[5:7], 16)

    steps = theme.COLOURS[mode].steps
    assert sorted(steps, key=brightness) == list(steps)
    found = described(charts.curve(run), mode=mode)
    (layer,) = (each for each in found["layer"] if each["mark"]["type"] == "point")
    assert set(layer["encoding"]["fill"]["scale"]["range"]) <= set(steps)
    rows = [make_record(params={"n": n}, flops=n, labels={"kernel": name}) for n, name in ((1, "a"), (2, "b"))]
    (layer,) = (each for each in described(charts.curve(make_run(rows)))["layer"] if each["mark"]["type"] == "point")
    assert layer["encoding"]["stroke"]["scale"] == {"domain": ["a", "b"], "range": "category"}


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_colours_stand_out_from_their_ground(mode: theme.Mode):
    def luminance(colour: str) -> float:
        channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(one: str, other: str) -> float:
        low, high = sorted((luminance(one), luminance(other)))
        return (high + 0.05) / (low + 0.05)

    colours = theme.COLOURS[mode]
    for text in (colours.ink, colours.soft):
        assert contrast(text, colours.ground) >= 4.5, "WCAG 2.2, 1.4.3"
    for mark in (colours.roof, *colours.named, *colours.steps):
        assert contrast(mark, colours.ground) >= 2, f"{mark}: its shape is there too"
    assert len({*colours.named}) == len({*colours.steps}) == MOST


def test_the_curve_lies_under_the_ceiling_of_its_dtype(curve: dict[str, Any]):
    assert "ceiling measured here: 800 TFLOP/s" in words(curve)
    level = [line for line in lines(curve, "roof") if line[0][1] == line[1][1] == 800]
    (low, high) = curve["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert level == [[(pytest.approx(low, rel=1e-5), 800), (pytest.approx(high, rel=1e-5), 800)]]
    assert curve["layer"][0]["encoding"]["y"]["scale"]["domain"][1] > 800


def test_the_largest_drop_is_drawn_and_named(run: Run, curve: dict[str, Any]):
    before, after, ratio = drops(sweeps(run)[0])[0]
    assert f"{before} → {after}: {ratio:.1f}× slower" in words(curve)
    assert [before, after] in [[x for x, _ in line] for line in lines(curve, "fall")]
    assert sum("slower" in text for text in words(curve)) <= DROPS


def test_a_curve_that_only_rises_names_no_drop():
    found = described(charts.curve(make_run([make_bandwidth(rate=1e12 * mib, mib=mib) for mib in (1, 2, 4)])))
    assert words(found) == []


def test_sizes_are_ticked_at_multiples_of_a_power_of_two_and_the_title_says_what_was_measured(curve: dict[str, Any]):
    axis = curve["layer"][0]["encoding"]["x"]["axis"]
    assert axis["values"] == [512 * step for step in range(1, 9)]
    assert '["512", "1024", ' in axis["labelExpr"]
    assert curve["title"]["text"] == "matmul-sweep/matmul · NVIDIA H200"
    assert curve["title"]["subtitle"] == [
        "Which sizes of a matrix product are fast, and which fall off a cliff?",
        "bf16 · layout=nn · cold, burst · 12 rows, n from 248 to 4097",
    ]


def test_the_sweeps_that_are_not_drawn_are_named():
    rows = [*make_sweep([256, 512, 1024]), *make_sweep([256, 512], dtype="float16")]
    found = described(charts.curve(make_run(rows)))
    assert found["title"]["subtitle"][2] == "not drawn: matmul-sweep/matmul · dtype=float16"
    assert len(marks(found)) == 3


@pytest.mark.parametrize(
    "rows", [[], [make_matmul(1024)], [make_record(params={"n": n}, status="oom") for n in (1, 2)]]
)
def test_no_curve_without_two_rows(rows: list[Any]):
    with pytest.raises(UsageError, match="no curve in this run: it takes two rows"):
        charts.curve(make_run(rows))


def test_the_roofline_has_its_roofs_its_ridge_and_its_rows(run: Run, roofline: dict[str, Any]):
    assert {"bf16 800 TFLOP/s", "DRAM 4600 GB/s", "ridge 174 FLOP/B"} == set(words(roofline))
    slope, peak = lines(roofline, "roof")
    for x, y in slope:
        assert y == pytest.approx(4.6 * x, rel=1e-4)
    ridge = pytest.approx(800 / 4.6, rel=1e-5)
    assert slope[1] == (ridge, pytest.approx(800, rel=1e-5))
    assert (peak[0], peak[1][1]) == ((ridge, 800), 800)
    ((top, foot),) = lines(roofline, "ridge")
    assert (top, foot[0]) == ((ridge, 800), ridge)
    assert len(marks(roofline)) == len(run.records)
    first = next(row for row in marks(roofline) if row["class"] == "256 B")
    assert first["x"] == pytest.approx(256 / 3, rel=1e-4)
    scales = [roofline["layer"][0]["encoding"][axis]["scale"] for axis in "xy"]
    assert [scale["type"] for scale in scales] == ["log", "log"]
    for row in marks(roofline):
        assert all(
            low < row[axis] < high for axis, (low, high) in zip("xy", (s["domain"] for s in scales), strict=True)
        )


def test_the_name_of_a_slope_lies_along_it(roofline: dict[str, Any]):
    angles = [layer["mark"]["angle"] for layer in roofline["layer"] if layer["rows"][0].get("text") == "DRAM 4600 GB/s"]
    (left, low), (right, high) = lines(roofline, "roof")[0]
    (x0, x1), (y0, y1) = (roofline["layer"][0]["encoding"][axis]["scale"]["domain"] for axis in "xy")
    expected = log(high / low) / log(y1 / y0), log(right / left) / log(x1 / x0)
    for angle in angles:
        shares = re.fullmatch(r"-atan2\(height \* (\S+), width \* (\S+)\) \* 180 / PI", angle["expr"])
        assert shares is not None
        assert tuple(map(float, shares.groups())) == pytest.approx(expected, rel=1e-3)
    assert len(angles) == 2


def test_several_dtypes_are_the_classes_and_levels_have_their_slopes():
    rows = [
        *make_sweep([256, 1024], dtype="bfloat16"),
        *make_sweep([256, 1024], dtype="float16"),
        *make_sweep([256], dtype="float32"),
    ]
    levels = [Ceiling("bandwidth", "L2 read", 9e12, "B/s", "x", WHEN, "measured", "L2")]
    peaks = [*make_ceilings("float16", 805e12)[2:], *make_ceilings("float32", 60e12)[2:]]
    found = described(charts.roofline(make_run(rows, ceilings=[*make_ceilings(), *levels, *peaks])))
    assert {row["class"] for row in marks(found)} == {"bf16", "fp16", "fp32"}
    assert {"L2 9000 GB/s", "DRAM 4600 GB/s", "fp32 60.0 TFLOP/s"} < set(words(found))
    assert "fp16 805 · bf16 800 TFLOP/s" in words(found), "two peaks within a line of text share one, and the unit"
    assert {"ridge 13.0 FLOP/B", "174, 175"} < set(words(found)), "the first says what the numbers are"


def test_a_roofline_of_one_row_without_ceilings_says_what_is_missing():
    found = described(charts.roofline(make_run([make_matmul(1024)])))
    assert len(marks(found)) == 1
    assert (lines(found, "roof"), words(found)) == ([], [])
    assert found["title"]["subtitle"][2] == "no ceilings in this run: gpubench roofline --measure"


def test_no_roofline_without_rows_and_roofs():
    with pytest.raises(UsageError, match="no roofline in this run"):
        charts.roofline(make_run([make_bandwidth()]))


def test_a_cpu_run_has_no_gpu_words():
    rows = make_sweep([64, 65, 128, 256], dtype="float32", peak=2e11)
    run = make_run(rows, device=CPU, ceilings=make_ceilings("float32", 2.1e11, 2e10))
    for chart in (charts.curve(run), charts.roofline(run)):
        text = everything(described(chart))
        assert "Example 2-core processor" in text
        assert "GPU" not in text
        assert "SM" not in text


def test_text_from_a_file_stays_text_and_in_the_picture(tmp_path: Path):
    hostile = '\x1b[31m</text><script>x</script>&"\n' + "long " * 80
    rows = [
        dataclasses.replace(record, suite=hostile, labels={hostile: f"{n} {hostile}"})
        for n, record in enumerate(make_sweep([256, 512]))
    ]
    roofs = [
        Ceiling("bandwidth", "x", 4e12, "B/s", "x", WHEN, "measured", level="DRAM"),
        Ceiling("bandwidth", "x", 9e12, "B/s", "x", WHEN, "measured", level=hostile[:24]),
        Ceiling("compute", "x", 8e14, "FLOP/s", "x", WHEN, "measured", dtype=hostile[:24]),
    ]
    run = make_run(rows, device={"kind": "cuda", "name": hostile}, ceilings=roofs)
    for name, chart in (("a.svg", charts.curve(run)), ("b.svg", charts.roofline(run))):
        charts.save(chart, tmp_path / name)
        root = ET.parse(tmp_path / name).getroot()
        assert "script" not in {element.tag.rsplit("}", 1)[-1] for element in root.iter()}
        assert int(root.attrib["width"]) < 900
        assert "\x1b" not in (tmp_path / name).read_text()


def test_an_svg_is_whole_and_holds_the_words(run: Run, tmp_path: Path):
    path = tmp_path / "curve.SVG"
    charts.save(charts.curve(run), path)
    root = ET.parse(path).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert 780 < int(root.attrib["width"]) < 860
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"matmul-sweep/matmul · NVIDIA H200", "TFLOP/s", "n", "512", "4096", "256 B", "alignment"} < texts
    assert "http" not in path.read_text().replace("http://www.w3.org/", "")


def test_a_png_has_two_pixels_to_a_css_pixel(run: Run, tmp_path: Path):
    path = tmp_path / "roofline.png"
    charts.save(charts.roofline(run), path)
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    assert 1560 < width < 1720
    assert 900 < height < 1200


def test_a_missing_library_is_one_line_with_the_command(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(picture, "find_spec", lambda name: None)
    with pytest.raises(UsageError) as caught:
        charts.save(charts.curve(run), tmp_path / "a.svg")
    assert str(caught.value) == "pictures need vl_convert, not installed here (pip install vl-convert-python)"


H200 = Path(__file__).resolve().parent.parent / "results/reference/h200"


@pytest.fixture(scope="module")
def whole() -> Run:
    return read_run(H200 / "lecture.json.gz")


@pytest.fixture(scope="module")
def lecture(whole: Run) -> list[Picture]:
    return charts.pictures(whole)


def test_all_pictures_of_a_run_are_those_there_are_each_by_its_id(whole: Run, lecture: list[Picture]):
    run = whole
    ids = [picture.heading.id for picture in lecture]
    assert [heading.id for heading in charts.available(run)] == ids
    assert ids[:3] == ["curve", "roofline", "claims"]
    for id in ("curve", "stride"):
        assert charts.draw(run, id).spec() == lecture[ids.index(id)].spec() == charts.spec(run, id)
    with pytest.raises(UsageError, match="no picture 'strid' of this run") as caught:
        charts.draw(run, "strid")
    assert "stride" in str(caught.value)


def test_a_run_of_nothing_has_no_pictures():
    assert charts.available(make_run([])) == charts.pictures(make_run([])) == []
    with pytest.raises(UsageError, match="no curve in this run"):
        charts.first(make_run([]))


def test_a_description_for_a_page_has_no_title_and_no_colours_but_those_of_steps(lecture: list[Picture]):
    steps = set(theme.COLOURS["light"].steps)
    for drawn in lecture:
        spec = drawn.spec()
        assert spec["width"] == "container"
        assert not {"title", "config", "background"} & set(spec)
        assert set(re.findall(r"#[0-9a-f]{6}\b", json.dumps(spec))) <= steps, drawn.heading.id
        styles = {layer["mark"]["style"] for layer in spec["layer"] if "style" in layer["mark"]}
        assert styles <= set(charts.config("dark")["style"]), drawn.heading.id
        told = [layer for layer in spec["layer"] if "tooltip" in layer["encoding"]]
        assert len(told) == 1 or drawn.heading.id.startswith("sustained"), drawn.heading.id
        assert "tooltip" not in json.dumps(drawn.whole())


@pytest.mark.parametrize("id", ["curve", "roofline", "claims", "latency-ladder", "formats", "samples", "tiling"])
def test_a_description_is_vega_lite(lecture: list[Picture], id: str):
    from altair import LayerChart

    drawn = next(picture for picture in lecture if picture.heading.id == id)
    spec = drawn.spec()
    kinds = {(layer["mark"]["type"], layer["mark"].get("style")): layer for layer in spec["layer"]}  # one of each
    spec |= {"layer": list(kinds.values()), "datasets": {}, "config": charts.config("dark")}
    LayerChart.from_dict(spec, validate=True)


def test_a_prediction_is_told_by_its_dashes_and_a_line_without_marks_too(lecture: list[Picture]):
    spec = next(picture for picture in lecture if picture.heading.id == "stride").spec()
    (paths,) = (layer for layer in spec["layer"] if layer["mark"]["type"] == "line" and "style" not in layer["mark"])
    dashes = paths["encoding"]["strokeDash"]
    assert dashes["scale"] == {"domain": ["measured", "predicted"], "range": [[1, 0], theme.DASHES]}
    assert dashes["legend"] is not None
    in_time = charts.draw(read_run(H200 / "sustained.json.gz"), "sustained-in-time-1").spec()
    (traces,) = (
        layer for layer in in_time["layer"] if layer["mark"]["type"] == "line" and "style" not in layer["mark"]
    )
    patterns = traces["encoding"]["strokeDash"]["scale"]["range"]
    assert len({str(pattern) for pattern in patterns}) == len(patterns) == 4


@pytest.mark.parametrize("count", [2, 3, 500])
def test_few_and_many_rows_lie_in_the_frame(count: int):
    run = make_run([make_bandwidth(rate=1e12 * (index + 1), mib=8 + index) for index in range(count)])
    found = described(charts.curve(run))
    for row in marks(found):
        for axis in "xy":
            low, high = found["layer"][0]["encoding"][axis]["scale"]["domain"]
            assert low <= row[axis] <= high
    assert len(marks(found)) == count
    ticks = found["layer"][0]["encoding"]["x"]["axis"]["values"]
    assert 1 <= len(ticks) <= 10


def test_one_mark_lies_in_the_middle_of_a_frame_with_ticks():
    figure = Lines(
        Heading("one", None, "one", "Is one enough?"), Quantity("n"), Quantity("time", "ns"),
        [Series("", [Point(4096.0, 176_000.0, 175_000.0, 177_000.0)])],
    )  # fmt: skip
    found = described(charts.of(figure, "NVIDIA H200"))
    (mark,) = marks(found)
    axes = [found["layer"][0]["encoding"][axis] for axis in "xy"]
    assert [mark["x"], mark["y"]] == [4096, 176_000]
    assert axes[0]["scale"]["domain"] == [3072, 5120]
    assert all(len(axis["axis"]["values"]) >= 3 for axis in axes)
    assert axes[1]["axis"]["title"] == "time, µs"


def test_a_comparison_is_drawn_over_its_margin():
    rows = (
        [comparisons.rate(100_000, n) for n in (1, 2)],
        [comparisons.rate(ns, n) for ns, n in ((110_000, 1), (99_000, 2))],
    )
    judged = comparisons.judged(comparisons.run(*rows[0]), comparisons.run(*rows[1], run_id="new"))
    drawn = charts.comparison(judged, "NVIDIA H200")
    assert drawn is not None
    found = described(drawn)
    (band,) = (layer["rows"][0] for layer in found["layer"] if layer["mark"].get("style") == "band")
    assert (band["x"], band["to"]) == (pytest.approx(-2.913, abs=0.001), pytest.approx(3))
    assert [row["x"] for row in marks(found)] == pytest.approx([10, -1])
    assert {row["class"] for row in marks(found)} == {"suspect", "same"}
    assert charts.comparison(dataclasses.replace(judged, rows=[]), "x") is None


def test_text_from_a_file_stays_text_in_every_form_of_figure(tmp_path: Path):
    hostile = "</text><script>x</script>&\x1b[31m\n"
    heading = Heading("a", None, hostile, hostile, (hostile,))
    point, facts = Point(1.0, 2.0, facts=((hostile, hostile),)), ((hostile, hostile),)
    figures = [
        Lines(heading, Quantity(hostile), Quantity(hostile), [Series(hostile, [point]), Series("b", [point])], hostile),
        Rows(
            heading,
            Quantity(hostile),
            [Entry(hostile, 1.0, predicted=2.0, kind=hostile, facts=facts)],
            hostile,
            hostile,
        ),
        Strips(heading, Quantity(hostile), [Strip(hostile, [1.0, 2.0], 1.5, 1.2, 1.7, facts)]),
        Tiles(heading, [(hostile, [Tile(hostile, hostile, facts)])], [hostile]),
    ]
    for number, figure in enumerate(figures):
        charts.save(charts.of(figure, hostile), tmp_path / f"{number}.svg")
        root = ET.parse(tmp_path / f"{number}.svg").getroot()
        assert "script" not in {element.tag.rsplit("}", 1)[-1] for element in root.iter()}
        assert "\x1b" not in (tmp_path / f"{number}.svg").read_text()


def test_words_left_out_of_a_narrow_frame_take_no_room_from_it():
    for layer in words_in_frame("a name", {}, {"x": 1}, always=False):
        assert layer["mark"]["text"] == {"expr": "width < 480 ? '' : datum.text"}
        assert "text" not in layer["encoding"]
