"""Pictures: what is described is what the run holds; what is drawn is a whole SVG or PNG."""

from __future__ import annotations

import dataclasses
import struct
import xml.etree.ElementTree as ET
from math import atan2, degrees, log
from pathlib import Path
from typing import Any

import pytest
from builders import CPU, make_bandwidth, make_ceilings, make_matmul, make_record, make_run, make_sweep

from gpubench.errors import UsageError
from gpubench.report import charts
from gpubench.report.sweep import drops, sweeps
from gpubench.result import Ceiling, Run

WHEN = "2026-07-12T10:15:00Z"
SIZES = [248, 256, 512, 1024, 1788, 1792, 1793, 1794, 2048, 3072, 4096, 4097]


def described(chart: Any) -> dict[str, Any]:
    """The description, its data put back where they are used."""
    found = chart.to_dict()
    sets = found.pop("datasets", {})
    for layer in found["layer"]:
        data = layer.get("data", found.get("data"))
        layer["rows"] = data["values"] if "values" in data else sets[data["name"]]
    return found


def marks(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows that are drawn as marks."""
    return [row for layer in found["layer"] if layer["mark"]["type"] == "point" for row in layer["rows"]]


def lines(found: dict[str, Any], dashed: bool = False) -> list[list[tuple[float, float]]]:
    """The lines, as places."""
    drawn = [layer for layer in found["layer"] if layer["mark"]["type"] == "line"]
    return [
        [(row["x"], row["y"]) for row in layer["rows"]] for layer in drawn if ("strokeDash" in layer["mark"]) == dashed
    ]


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


def test_a_class_has_a_shape_or_a_filling_of_its_own_and_a_colour(curve: dict[str, Any]):
    (layer,) = (layer for layer in curve["layer"] if layer["mark"]["type"] == "point")
    scales = [layer["encoding"][channel]["scale"] for channel in ("shape", "stroke", "fill")]
    assert [scale["domain"] for scale in scales] == [["256 B", "16 B", "8 B", "4 B", "2 B"]] * 3
    shapes, strokes, fills = (scale["range"] for scale in scales)
    hollow = [fill == charts.GROUND for fill in fills]
    assert len(set(zip(shapes, hollow, strict=True))) == 5
    assert len(set(strokes)) == 5
    assert layer["encoding"]["shape"]["title"] == "alignment"


def test_steps_of_a_quantity_run_from_dark_to_light_and_names_take_other_colours():
    def brightness(colour: str) -> int:
        return 2 * int(colour[1:3], 16) + 5 * int(colour[3:5], 16) + int(colour[5:7], 16)

    assert sorted(charts.ORDERED, key=brightness) == list(charts.ORDERED)
    rows = [make_record(params={"n": n}, flops=n, labels={"kernel": name}) for n, name in ((1, "a"), (2, "b"))]
    (layer,) = (each for each in described(charts.curve(make_run(rows)))["layer"] if each["mark"]["type"] == "point")
    assert layer["encoding"]["stroke"]["scale"] == {"domain": ["a", "b"], "range": list(charts.NAMED[:2])}


def test_the_curve_lies_under_the_ceiling_of_its_dtype(curve: dict[str, Any]):
    assert "ceiling measured here: 800 TFLOP/s" in words(curve)
    level = [line for line in lines(curve) if line[0][1] == line[1][1] == 800]
    (low, high) = curve["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert level == [[(pytest.approx(low, rel=1e-5), 800), (pytest.approx(high, rel=1e-5), 800)]]
    assert curve["layer"][0]["encoding"]["y"]["scale"]["domain"][1] > 800


def test_the_largest_drop_is_drawn_and_named(run: Run, curve: dict[str, Any]):
    before, after, ratio = drops(sweeps(run)[0])[0]
    assert f"{before} → {after}: {ratio:.1f}× slower" in words(curve)
    assert [before, after] in [[x for x, _ in line] for line in lines(curve)]
    assert sum("slower" in text for text in words(curve)) <= charts.DROPS


def test_a_curve_that_only_rises_names_no_drop():
    found = described(charts.curve(make_run([make_bandwidth(rate=1e12 * mib, mib=mib) for mib in (1, 2, 4)])))
    assert words(found) == []


def test_sizes_are_ticked_at_multiples_of_a_power_of_two_and_the_title_says_what_was_measured(curve: dict[str, Any]):
    axis = curve["layer"][0]["encoding"]["x"]["axis"]
    assert axis["values"] == [512 * step for step in range(1, 9)]
    assert '["512", "1024", ' in axis["labelExpr"]
    assert curve["title"]["text"] == "matmul-sweep/matmul · NVIDIA H200"
    assert curve["title"]["subtitle"] == ["bf16 · layout=nn · cold, burst · 12 rows, n from 248 to 4097"]


def test_the_sweeps_that_are_not_drawn_are_named():
    rows = [*make_sweep([256, 512, 1024]), *make_sweep([256, 512], dtype="float16")]
    found = described(charts.curve(make_run(rows)))
    assert found["title"]["subtitle"][1] == "not drawn: matmul-sweep/matmul · dtype=float16"
    assert len(marks(found)) == 3


@pytest.mark.parametrize(
    "rows", [[], [make_matmul(1024)], [make_record(params={"n": n}, status="oom") for n in (1, 2)]]
)
def test_no_curve_without_two_rows(rows: list[Any]):
    with pytest.raises(UsageError, match="no curve in this run: it takes two rows"):
        charts.curve(make_run(rows))


def test_the_roofline_has_its_roofs_its_ridge_and_its_rows(run: Run, roofline: dict[str, Any]):
    assert {"bf16 800 TFLOP/s", "DRAM 4600 GB/s", "ridge 174 FLOP/B"} == set(words(roofline))
    slope, peak = lines(roofline)
    for x, y in slope:
        assert y == pytest.approx(4.6 * x, rel=1e-4)
    ridge = pytest.approx(800 / 4.6, rel=1e-5)
    assert slope[1] == (ridge, pytest.approx(800, rel=1e-5))
    assert (peak[0], peak[1][1]) == ((ridge, 800), 800)
    ((top, foot),) = lines(roofline, dashed=True)
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
    (left, low), (right, high) = lines(roofline)[0]
    (x0, x1), (y0, y1) = (roofline["layer"][0]["encoding"][axis]["scale"]["domain"] for axis in "xy")
    run, rise = charts.WIDTH * log(right / left) / log(x1 / x0), charts.HEIGHT * log(high / low) / log(y1 / y0)
    assert angles == [pytest.approx(360 - degrees(atan2(rise, run)), abs=0.06)] * 2


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
    assert "fp16 805 TFLOP/s · bf16 800 TFLOP/s" in words(found), "two peaks within a line of text share one"
    assert {"ridge 13.0 FLOP/B", "ridge 174, 175 FLOP/B"} < set(words(found))


def test_a_roofline_of_one_row_without_ceilings_says_what_is_missing():
    found = described(charts.roofline(make_run([make_matmul(1024)])))
    assert len(marks(found)) == 1
    assert (lines(found), words(found)) == ([], [])
    assert found["title"]["subtitle"][1] == "no ceilings in this run: gpubench roofline --measure"


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


@pytest.mark.parametrize("gone", ["altair", "vl_convert"])
def test_a_missing_library_is_one_line_with_the_command(gone: str, run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(charts, "find_spec", lambda name: None if name == gone else object())
    with pytest.raises(UsageError) as caught:
        charts.curve(run)
    assert str(caught.value) == f"pictures need {gone}, not installed here (pip install altair vl-convert-python)"
