"""What lies over what in a picture: names over lines, marks over marks, and what a mark says of its prediction."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import make_ceilings, make_matmul, make_run

from gpubench.report import charts
from gpubench.report.canvas import Scale
from gpubench.report.charts.frame import WIDTH
from gpubench.report.charts.marks import NARROW, Layer
from gpubench.report.figures.shapes import Entry, Heading, Lines, Point, Quantity, Rows, Series
from gpubench.report.placing import SIZE, text_width
from gpubench.store.folder import read_run

H200 = Path(__file__).resolve().parent.parent / "results/reference/h200"
HEADING = Heading("id", "suite", "title", "Why?")


def of_kind(picture: charts.Picture, mark: str, style: str | None = None) -> list[Layer]:
    layers = [layer for layer in picture.layers if layer["mark"]["type"] == mark]
    return [layer for layer in layers if style is None or layer["mark"].get("style") == style]


@pytest.mark.parametrize("width", [NARROW, WIDTH])
@pytest.mark.parametrize("name", ["lecture", "matmul-sweep", "profile-strided-read", "bandwidth-peak"])
def test_the_names_of_ridges_lie_over_no_other_and_over_no_line(name: str, width: int) -> None:
    picture = charts.roofline(read_run(H200 / f"{name}.json.gz"))
    axes = picture.layers[0]["encoding"]
    scale, upwards = (Scale(*axes[axis]["scale"]["domain"], log=True) for axis in "xy")
    names = []
    for layer in of_kind(picture, "text", "words"):
        (row,), mark = layer["data"]["values"], layer["mark"]
        if mark["align"] == "left":
            left = width * scale.at(row["x"]) + mark["dx"]
            names.append((left, left + text_width(row["text"]), -mark["dy"]))
    lines = []
    for layer in of_kind(picture, "line", "ridge"):
        x, foot = layer["data"]["values"][1]["x"], layer["data"]["values"][1]["y"]
        lines.append((width * scale.at(x), picture.height * upwards.at(foot)))
    assert len(names) > 2
    for index, (left, right, height) in enumerate(names):
        for other_left, other_right, other_height in names[index + 1 :]:
            assert abs(height - other_height) >= SIZE or right < other_left or other_right < left
        assert not [x for x, foot in lines if left < x < right and foot < height + SIZE / 2]


def test_without_a_roof_there_is_no_roofline_among_the_pictures() -> None:
    assert "roofline" not in [each.id for each in charts.available(make_run([make_matmul(256), make_matmul(512)]))]
    assert "roofline" in [each.id for each in charts.available(make_run([make_matmul(256)], ceilings=make_ceilings()))]


def test_a_mark_that_another_hides_is_so_large_that_it_is_seen() -> None:
    both = [Series(name, [Point(1.0, 5.0), Point(2.0, 7.0 + offset)]) for name, offset in (("a", 0), ("b", 3))]
    (marks,) = of_kind(charts.of(Lines(HEADING, Quantity("n"), Quantity("rate"), both, "way"), "x"), "point")
    size = {(row["class"], row["x"]): row["size"] for row in marks["data"]["values"]}
    assert size["a", 1] > size["b", 1] == size["b", 2] == size["a", 2]
    assert marks["encoding"]["size"]["scale"] is None
    entries = [Entry("row", 5.0, kind=kind) for kind in "abc"]
    (marks,) = of_kind(charts.of(Rows(HEADING, Quantity("rate"), entries, "way"), "x"), "point")
    sizes = [row["size"] for row in marks["data"]["values"]]
    assert sizes == sorted(set(sizes), reverse=True)
    apart = [Entry("row", value, kind=kind) for value, kind in ((1.0, "a"), (2.0, "b"))]
    (marks,) = of_kind(charts.of(Rows(HEADING, Quantity("rate"), apart, "way"), "x"), "point")
    assert "size" not in marks["encoding"]


def test_a_mark_tells_what_was_predicted_for_it() -> None:
    series = [Series("a", [Point(1.0, 5e12, facts=(("rate", "5"),))]), Series("a", [Point(1.0, 6e12)], "predicted")]
    picture = charts.of(Lines(HEADING, Quantity("n"), Quantity("rate", "FLOP/s"), series), "x")
    (marks,) = of_kind(picture, "point")
    titles = {each["title"]: each["field"] for each in marks["encoding"]["tooltip"]}
    assert marks["data"]["values"][0][titles["predicted"]] == "6.00 TFLOP/s"
    (lines,) = (layer for layer in of_kind(picture, "line") if "style" not in layer["mark"])
    xs = [row["x"] for row in lines["data"]["values"] if row["role"] == "predicted"]
    assert len(xs) == 2, "a single prediction has no mark: it is a short line"
    assert xs[0] < 1 < xs[1]
    rows = Rows(HEADING, Quantity("rate", "FLOP/s"), [Entry("a", 5e12, predicted=6e12)], predicted="datasheet")
    (marks,) = of_kind(charts.of(rows, "x"), "point")
    assert [each["title"] for each in marks["encoding"]["tooltip"]] == ["datasheet"]
