"""One row in full: figures, best neighbour, what to change; as text, as JSON, and at the command line."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import make_bandwidth, make_ceilings, make_matmul, make_record, make_run
from command import strict, within
from rich.console import Console
from worlds.matmul import DEVICE, NARROW, curve

from gpubench.cli.row import row_of
from gpubench.explain.fitted import Fitted
from gpubench.explain.rows import best_neighbour, said
from gpubench.model.kernel_facts import facts
from gpubench.report import explain as report
from gpubench.result import Ceiling, KernelSeen, Record, Run
from gpubench.store.folder import read_run
from gpubench.store.runfile import encode

SWEEP = Path(__file__).parents[1] / "results" / "reference" / "h200" / "matmul-sweep.json.gz"


def row(n: int, time_ns: int, **fields: Any) -> Record:
    params = {"n": n, "m": n, "k": n, "dtype": "bfloat16"}
    return make_record(params=params, time_ns=time_ns, flops=2 * n**3, **fields)


def neighbour(record: Record, *others: Record) -> dict[str, object] | None:
    found = best_neighbour(record, others)
    return None if found is None else dict(found.changed)


def test_the_best_neighbour_is_near_and_better() -> None:
    record = row(1793, 110_000)
    near, far, worse = row(1800, 23_000), row(4096, 177_000), row(1791, 116_000)
    assert neighbour(record, near, far, worse) == {"n": 1800, "m": 1800, "k": 1800}
    assert neighbour(record, far, worse) is None
    found = best_neighbour(record, [near])
    assert found is not None
    assert found.sooner
    smaller = best_neighbour(record, [row(1792, 22_000)])
    assert smaller is not None
    assert not smaller.sooner, "it ends sooner, and is no larger problem"


def test_rows_that_are_measured_otherwise_are_no_neighbours() -> None:
    record = row(1793, 110_000)
    hot = row(1800, 23_000)
    hot.conditions = type(hot.conditions)(cache="hot")
    assert neighbour(record, hot) is None
    assert neighbour(record, row(1800, 23_000, flags=["implausible"])) is None


def test_one_name_may_change_alone() -> None:
    eager = make_record(params={"n": 64, "by": "eager"}, time_ns=1000)
    compiled = make_record(params={"n": 64, "by": "compiled"}, time_ns=500)
    other = make_record(params={"n": 65, "by": "compiled"}, time_ns=100)
    assert neighbour(eager, compiled, other) == {"by": "compiled"}


def test_a_shape_is_near_by_its_sizes_and_a_name_by_itself() -> None:
    def shaped(shape: str, time_ns: int) -> Record:
        return make_record(params={"shape": shape}, time_ns=time_ns, flops=10**9)

    record = shaped("1000x1000x1000", 10_000)
    assert neighbour(record, shaped("1024x1024x1024", 5000)) == {"shape": "1024x1024x1024"}
    assert neighbour(record, shaped("8352x4096x1536", 50)) is None, "another problem"
    assert neighbour(shaped("d64", 10_000), shaped("d128", 5000)) == {"shape": "d128"}


def test_a_time_is_compared_with_that_of_the_same_work() -> None:
    whole = make_record(params={"n": 64, "part": "up"}, time_ns=1000, flops=10**6, primary="time")
    part = make_record(params={"n": 64, "part": "norm"}, time_ns=10, flops=10**3, primary="time")
    assert neighbour(whole, part) is None
    same = make_record(params={"n": 64, "part": "tiled"}, time_ns=10, flops=10**6, primary="time")
    assert neighbour(whole, same) == {"part": "tiled"}
    ways = [
        make_record(params={"by": by}, time_ns=ns, nbytes=b, primary="time") for by, ns, b in (("a", 9, 2), ("b", 5, 1))
    ]
    assert neighbour(*ways) == {"by": "b"}, "another way to the same, with fewer bytes"
    fewer = [make_record(params={"threads": n}, time_ns=n) for n in (64, 1)]
    assert neighbour(*fewer) is None, "of how much work nobody knows"


def test_a_better_rate_of_other_work_must_be_the_shorter_time_too() -> None:
    sparse = make_record(params={"kind": "sparse"}, time_ns=70, flops=10**4)
    dense = make_record(params={"kind": "dense"}, time_ns=2700, flops=10**8)
    assert neighbour(sparse, dense) is None
    dense.summary = type(dense.summary)(11, 60, 60, 60, 60, 59, 61)  # type: ignore[misc]
    assert neighbour(sparse, dense) == {"kind": "dense"}


def test_a_row_that_is_measured_wrong_has_no_neighbour() -> None:
    wrong, right = (
        make_record(params={"way": way}, time_ns=ns, nbytes=9) for way, ns in (("wrong", 100), ("right", 5))
    )
    assert neighbour(wrong, right) is None
    assert neighbour(right, wrong) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", "cuBLAS wgmma 256×128, 64 deep, 4 stages;"),
        ("triton_poi_fused_add_0", "Triton, computes add;"),
        ("my_kernel", "unknown;"),
    ],
)
def test_what_is_said_of_a_kernel(name: str, expected: str) -> None:
    assert said(facts(name)) == expected


def made() -> Run:
    return make_run([each.record("matmul-sweep") for each in curve()], device=DEVICE)


def test_an_explanation_has_figures_of_the_product_and_of_the_model() -> None:
    run = made()
    record = next(each for each in run.records if each.params["n"] == 1793)
    found = report.explanation(run, record)
    figures = {name: (value, of) for name, value, of in found.figures}
    assert figures["tiles"] == ("120 of 256×128", "a block each, columns first")
    assert figures["waves"] == ("1", "on 132 multiprocessors, 9 % idle")
    assert figures["alignment"] == ("2 B", "CUTLASS mma.sync, loads of 2 B")
    assert figures["predicted"][1] == f"model, constants fitted to {len(run.records)} rows"
    assert found.changes[0].startswith("pad rows to a multiple of 16 B")
    assert found.neighbour is not None
    assert found.neighbour.record.params["n"] == 1792


def test_a_suites_own_prediction_stands_beside_what_it_counted() -> None:
    predicted = {"cycles": [4, 5], "source": "x"}
    record = make_record("execution", "dependent", params={"unit": "fp32"}, prediction=predicted)
    record.metrics += [type(record.metrics[0])("cycles", 4.4, "1", "lower")]
    found = report.explanation(make_run([record]), record)
    assert ("cycles", "4.40", "predicted 4.00 to 5.00") in found.figures


def text(what: Any) -> str:
    console = Console(width=100, color_system=None)
    with console.capture() as captured:
        console.print(what)
    return str(captured.get())


def test_the_table_holds_paragraph_figures_neighbour_and_change() -> None:
    run = made()
    record = next(each for each in run.records if each.params["n"] == 1793)
    shown = text(report.table(run, report.explanation(run, record), 100))
    assert shown.startswith("matmul-sweep/matmul[")
    for words in ("product: predicted", "best neighbour: n=1792", "to change: pad rows", "mma.sync, loads of 2 B"):
        assert words in shown


def test_a_row_of_which_nothing_is_known_says_so() -> None:
    record = make_matmul(64)
    record.work = None
    found = report.explanation(make_run([record], device={"kind": "cpu", "name": "[red]"}), record)
    assert report.paragraph(found) == "Nothing in this record says more than its figures."
    assert "[red]" in text(report.table(make_run([record], device={"kind": "cpu", "name": "[red]"}), found, 80))


def ceilings() -> list[Ceiling]:
    copy, write, matmul = make_ceilings()
    return [copy, write, replace(write, name="DRAM read", value=5e12), matmul, replace(write, name="L2", level="L2")]


def rate_of(record: Record, **fields: Any) -> str:
    run = make_run([record], device=DEVICE, **fields)
    return {name: of for name, _, of in report.explanation(run, record).figures}["rate"]


@pytest.mark.parametrize(
    ("read", "write", "roof"), [(99, 1, "DRAM read"), (1, 99, "DRAM write"), (60, 40, "DRAM copy"), (0, 0, "DRAM read")]
)
def test_the_roof_of_dram_is_that_of_the_accesses_counted(read: int, write: int, roof: str) -> None:
    record = make_bandwidth(rate=1e12, counters={"dram_bytes_read": read, "dram_bytes_write": write})
    assert f"% of {roof}, measured here" in rate_of(record, ceilings=ceilings())


def test_a_roof_that_the_work_names_comes_first() -> None:
    record = make_bandwidth(rate=1e12)
    assert record.work is not None
    record.work.roof = "DRAM write"
    assert "% of DRAM write" in rate_of(record, ceilings=ceilings())


def test_without_a_ceiling_the_devices_facts_are_the_roof() -> None:
    facts = {"memory_mhz_max": 3201, "memory_bus_bits": 6016}
    record = make_bandwidth(rate=2.4e12)
    run = make_run([record], device=DEVICE | facts)
    figures = {name: of for name, _, of in report.explanation(run, record).figures}
    assert figures["rate"] == "50 % of what DRAM's pins carry, by the device's facts"


def test_a_row_past_its_ceiling_is_held_against_the_units() -> None:
    silicon = {"yardsticks": {"silicon": {"value": 1071e12, "unit": "FLOP/s", "source": "units"}}}
    record = make_matmul(4096, peak=1000e12, prediction=silicon)
    assert rate_of(record, ceilings=ceilings()).startswith("91 % of what its units can, by")
    assert "of bfloat16 matmul, measured here" in rate_of(make_matmul(4096, prediction=silicon), ceilings=ceilings())


def test_two_causes_that_are_nearly_as_large_are_both_named() -> None:
    run = read_run(SWEEP)
    document = report.curve_json(run, report.curves(run))["sweeps"][0]["falls_aligned"]
    causes = {drop["after"].partition("n=")[2].partition(",")[0].strip("]"): drop["causes"] for drop in document}
    assert [*causes.values()].count(["alignment", "tile waste"]) >= 2
    assert all(drop["cause"] == drop["causes"][0] for drop in document)


def test_the_falls_of_a_curve_as_a_table() -> None:
    run = made()
    curves = report.curves(run)
    shown = text(report.curve_table(run, curves))
    assert "rows aligned to 16 B alone" in shown
    assert "alignment" in shown
    assert "2 of 2 kernel names recognised" in shown
    assert shown.count("→") < text(report.curve_table(run, curves, all_rows=True)).count("→")
    (document,) = report.curve_json(run, curves)["sweeps"]
    assert len(document["falls"]) == len(curves.found[0].every)
    assert document["falls"][0]["cause"] == "alignment"


def test_names_that_say_nothing_are_counted() -> None:
    run = made()
    run.records[0].kernels.append(KernelSeen("of_nobody", grid=[1, 1, 1]))
    assert report.curves(run).unknown == ("of_nobody",)
    assert report.curves(run, own={"of_nobody"}).unknown == ()
    assert "unknown: of_nobody" in text(report.curve_table(run, report.curves(run)))


def test_a_run_without_products_has_no_curve() -> None:
    run = make_run([make_record("bandwidth", "copy", params={"mib": 1})])
    assert "no sweep of matrix products in this run" in text(report.curve_table(run, report.curves(run)))


def test_the_page_shows_what_the_command_prints() -> None:
    page = (SWEEP.parents[3] / "docs" / "explain.md").read_text(encoding="utf-8")
    block = re.search(r"```text\n\$ gpubench explain ref:h200/lecture (.+?)\n(.*?)\n```", page, re.DOTALL)
    assert block is not None
    run = read_run(SWEEP.parent / "lecture.json.gz")
    record = row_of(run, block[1].split(), [])
    shown = text(report.table(run, report.explanation(run, record, own={"strided_read"}), 100))
    assert [line.rstrip() for line in shown.strip().splitlines()] == block[2].splitlines()


def test_every_row_of_the_reference_sweep_is_explained() -> None:
    run = read_run(SWEEP)
    fitted = Fitted(run)
    assert {record.id for record in run.records} == fitted.products.keys()
    off = sorted(
        predicted.ns / record.summary.median_ns
        for record in run.records
        if (predicted := fitted.time(record)) is not None and record.summary is not None
    )
    assert 0.95 < off[len(off) // 2] < 1.05
    assert off[len(off) // 10] > 0.85
    assert off[-len(off) // 10] < 1.15


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "sweep.json"
    path.write_bytes(encode(made()))
    return path


def test_the_command_explains_a_row(saved: Path, tmp_path: Path) -> None:
    done = within(tmp_path, "explain", str(saved), "n=1793")
    assert done.returncode == 0, done.stderr
    assert "to change: pad rows" in done.stdout
    document = strict(within(tmp_path, "explain", str(saved), "-p", "n=1793", "--json").stdout)
    assert document["reasons"][0]["kind"] == "product"
    assert document["neighbour"]["changed"] == {"n": 1792, "m": 1792, "k": 1792}


def test_the_command_lists_the_falls(saved: Path, tmp_path: Path) -> None:
    done = within(tmp_path, "explain", str(saved), "--curve")
    assert done.returncode == 0, done.stderr
    assert "rows aligned to 16 B alone" in done.stdout
    assert json.loads(within(tmp_path, "explain", str(saved), "--curve", "--json").stdout)["kernel_names"] == 2


@pytest.mark.parametrize("words", [("n=1793", "--curve"), (), ("n=7",)])
def test_a_wrong_question_is_one_line(saved: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    done = within(tmp_path, "explain", str(saved), *words)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert NARROW not in done.stderr
