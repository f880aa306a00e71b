"""What `list` and `info` show."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from gpubench import Axis, Suite, Workload
from gpubench.report import info, listing


def printed(renderable: Any, width: int = 80) -> str:
    text = io.StringIO()
    Console(file=text, width=width, color_system=None).print(renderable)
    return text.getvalue()


def make_suite() -> Suite:
    suite = Suite("/x/example_suite.py")

    @suite.benchmark(
        n=Axis(range(256, 4353, 64), cpu=[1, 2]),
        m=Axis(same_as="n"),
        dtype=Axis(["bfloat16"], cpu=["float32"], choices=["bfloat16", "float32", "tf32"]),
        mode=Axis(["[/red]"]),
        load=Axis(["sustained"], quick=["burst"]),
    )
    def product(device: Any, n: int, m: int, dtype: str, mode: str) -> Workload:
        """Multiply [bold]two matrices, which takes a sentence that is longer than any line of eighty columns is."""
        raise NotImplementedError

    return suite


PLANS = {"quick": Path("suites/plans/quick.yaml"), "[b]odd": Path("/tmp/[/bold]/plan.yaml")}


def test_axes_are_shortened() -> None:
    axes = make_suite().benchmarks["product"].axes
    assert listing.axis_words(axes["n"]) == "256…4352 (65 values); on a CPU 1, 2"
    assert listing.axis_words(axes["m"]) == "as n"
    assert listing.axis_words(axes["dtype"]) == "bfloat16; on a CPU float32; or tf32"
    assert listing.axis_words(Axis([3, 1, 2])) == "3, 1, 2"
    assert listing.axis_words(Axis(range(6))) == "0, 1, 2, 3, 4, 5"
    assert listing.axis_words(Axis(range(7))) == "0…6 (7 values)"
    assert listing.axis_words(Axis([], cpu=[4])) == "on a CPU 4"


def test_the_listing_is_literal_and_fits() -> None:
    text = printed(listing.table({"example-suite": make_suite()}, PLANS))
    assert "example-suite/product" in text
    assert "[bold]two" in text
    assert "-p mode=" in text
    assert "[/red]" in text
    assert "/tmp/[/bold]/plan.yaml" in text
    assert re.search(r"^  -p load= +sustained", text, re.MULTILINE)
    assert "-p cache=" not in text.split("every benchmark")[0], "only what the suite declares"
    taken = re.findall(r"^  -p (\w+)= +(.+)$", text.split("every benchmark")[1], re.MULTILINE)
    assert taken == [("cache", "cold, hot"), ("load", "burst, sustained"), ("data", "normal, uniform, zeros")]
    assert max(map(cell_len, text.split("\n"))) <= 80


def test_a_plan_is_said_in_a_sentence(tmp_path: Path) -> None:
    for name, text in {"a": "# Two words,\n# and more. Not this.\nrun: {}\n# nor\n", "b": "run: {}\n"}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "c").write_bytes(b"# caf\xe9")
    assert listing.purpose(tmp_path / "a") == "Two words, and more."
    for name in "bcd":
        assert listing.purpose(tmp_path / name) == str(tmp_path / name), "no comment, no text, no file"


def test_an_empty_listing_says_so() -> None:
    assert printed(listing.table({}, {})) == "nothing to list\n"
    assert printed(listing.table({}, PLANS)).startswith("plan")
    assert "plan" not in printed(listing.table({"example-suite": make_suite()}, {}))


def test_listing_as_json_has_every_value() -> None:
    content = json.loads(json.dumps(listing.to_json({"example-suite": make_suite()}, PLANS), allow_nan=False))
    (suite,) = content["suites"]
    (benchmark,) = suite["benchmarks"]
    assert (suite["name"], benchmark["name"]) == ("example-suite", "example-suite/product")
    assert benchmark["axes"][0]["values"] == list(range(256, 4353, 64))
    assert benchmark["axes"][0]["cpu"] == [1, 2]
    assert benchmark["axes"][1] == {"name": "m", "same_as": "n"}
    assert [each["name"] for each in benchmark["axes"]] == ["n", "m", "dtype", "mode"]
    (load,) = benchmark["conditions"]
    assert (load["name"], load["values"], load["quick"]) == ("load", ["sustained"], ["burst"])
    assert content["conditions"][1] == {"name": "load", "values": ["burst", "sustained"]}
    assert content["plans"][0]["file"] == "suites/plans/quick.yaml"


FACTS: dict[str, Any] = {
    "device": {
        "name": "X [/red]\x1b[2J",
        "memory_bytes": 150_754_820_096,
        "power_limit_w": 700,
        "mig": None,
        "ecc": True,
        "caches": {"l2_bytes": 62_914_560, "lines": [64, 128]},
        "extra": {},
    },
    "version": "0.1.0",
}


def test_facts_are_literal_have_units_and_unknown_is_said() -> None:
    lines = {
        line[: line.find("  ", 3)].strip(): line.split("  ")[-1].strip()
        for line in printed(info.table(FACTS)).split("\n")
    }
    assert lines["name"] == "X [/red]�[2J"
    assert lines["memory"] == "151 GB"
    assert lines["power limit"] == "700 W"
    assert lines["mig"] == "unknown"
    assert lines["ecc"] == "yes"
    assert lines["caches l2"] == "62.9 MB"
    assert lines["caches lines"] == "64, 128"
    assert lines["extra"] == "none"
    assert lines["version"] == "0.1.0"
    assert printed(info.table({})) == "no facts\n"


def test_what_is_unknown_has_its_reason_and_values_below_a_unit_have_it() -> None:
    facts = {
        "device": {
            "power_w": None,
            "mig": None,
            "ecc": True,
            "sm_mhz_max": 1980,
            "power_average_w": 123.0364,
            "caches": {"L2": {"bytes": 62_914_560}},
            "event_ns": {"hardware power brake": 3_200_000, "software power cap": None},
            "unavailable": {"power_w": "Not Supported\x1b[2J"},
        },
        "now": {"sm_mhz": None, "power_w": None, "unavailable": {"nvml": "NVML: Driver Not Loaded"}},
    }
    text = printed(info.table(facts))
    lines = [re.split(r" {2,}", line.strip()) for line in text.splitlines()[2:]]
    assert lines == [
        ["device"],
        ["power", "unknown: Not Supported\ufffd[2J"],
        ["mig", "unknown"],
        ["ecc", "yes"],
        ["sm max", "1980 MHz"],
        ["power average", "123 W"],
        ["caches L2", "62.9 MB"],
        ["event hardware power brake", "3.20 ms"],
        ["event software power cap", "unknown"],
        ["now"],
        ["sm", "unknown: NVML: Driver Not Loaded"],
        ["power", "unknown: NVML: Driver Not Loaded"],
    ]


def test_a_number_without_a_unit_or_not_finite_is_printed_as_it_is() -> None:
    text = printed(info.table({"host": {"cores": 2, "load_w": float("nan"), "wide_bytes": "many"}}))
    assert "nan" in text
    assert "many" in text


def test_facts_as_json_are_strict() -> None:
    facts = {"a": {"x": float("inf"), "path": Path("p/q"), "list": (1, None, "s"), "raw": b"\x00"}, "b": 1.5}
    content = json.loads(json.dumps(info.to_json(facts), allow_nan=False))
    assert content == {"a": {"x": None, "path": "p/q", "list": [1, None, "s"], "raw": "b'\\x00'"}, "b": 1.5}
