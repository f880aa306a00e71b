"""What is said of advice: a sentence for each verdict, within 80 columns, and nothing of a name that moves a cursor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders import make_record, make_run
from rich.console import Console

from gpubench import advise
from gpubench.finding import Estimate, exactly
from gpubench.model.linear import Layer, Network, Product, Shapes
from gpubench.model.transformer_shapes import Transformer
from gpubench.report import advise as report
from gpubench.report.advise import Source
from gpubench.store.folder import read_run

GPU = Source("GPU", "bfloat16", 2, "cold, burst")


def times(network: Network, slow: int, by: float, half: float = 0.001) -> dict[Product, Estimate]:
    """Times at one rate, of products with the size `slow` so many times as long."""
    found = {}
    for product in advise.products(network):
        ns = product.flops / 700e3 * (by if slow in product else 1)
        found[product] = Estimate(ns, ns * (1 - half), ns * (1 + half))
    return found


def said(network: Network, known: dict[Product, Estimate], source: Source = GPU, least: float = 1.03) -> list[str]:
    return report.lines(advise.advice(network, known, least), source)


def text(network: Network, known: dict[Product, Estimate], source: Source = GPU) -> str:
    console = Console(width=80, color_system=None)
    with console.capture() as captured:
        console.print(report.table(advise.advice(network, known), known, source, 80))
    return str(captured.get())


ONE = Shapes((Layer("x", 8192, 1008, 768),))


def test_padding_says_alignment_gain_and_cost() -> None:
    line, *_ = said(ONE, times(ONE, 1008, 2))
    assert line == (
        "pad n 1008 → 1024, rows aligned to 32 B → 256 B: the products of x are 1.97× [1.97, 1.97] as fast; "
        "12,288 more parameters (+1.59 %)"
    )


def test_a_part_of_a_step_gains_less_than_its_own_products() -> None:
    gpt2 = Transformer(768, 12, 12, 64, 3072, 50257, 12, 8192)
    line, *_ = said(gpt2, times(gpt2, 50257, 6))
    assert "the products of output are 5.99× [5.99, 6.00] as fast, all of a step 2.56× [2.56, 2.56];" in line


def test_what_is_kept_has_its_reason() -> None:
    first, second, last = said(ONE, times(ONE, 0, 1))
    assert first == (
        "keep n 1008, rows aligned to 32 B: nothing to gain, with 1024 a step is 0.984× [0.984, 0.985] as fast, "
        "less than 1.03×"
    )
    assert second == "keep k 768, rows aligned to 256 B: nothing to gain, and no better aligned size is close"
    assert last == "nothing to gain by padding"


def test_a_gain_that_may_be_is_undecided() -> None:
    line, *rest = said(ONE, times(ONE, 1008, 1.06, half=0.05))
    assert line.startswith("keep n 1008, rows aligned to 32 B: undecided, with 1024 a step is 1.04× [")
    assert line.endswith("; --case-time 2s knows better")
    assert "nothing to gain by padding" not in rest


def test_without_times_nothing_is_decided() -> None:
    lines = said(
        ONE, {}, Source("GPU", "bfloat16", 2, "cold, burst", failed=("8192x1008x768 nt: out of\x1b[31m memory",))
    )
    assert lines[0] == "keep n 1008, rows aligned to 32 B: undecided, a product that it takes has no time"
    assert lines[-1].startswith("no time: 8192x1008x768 nt: out of")
    assert lines[-1].isprintable()
    assert "a step" in text(ONE, {})


def test_undecided_by_prediction_is_to_be_measured() -> None:
    network = Shapes((Layer("x", 8192, 4001, 768),))
    predicted = Source("GPU", "bfloat16", 2, "by a model", predicted=True)
    line, *_ = report.lines(advise.advice(network, times(network, 0, 1), 1.25, 2.0), predicted)
    assert "undecided, with 4" in line
    assert line.endswith("; it must be measured there")


def test_a_gain_that_rounds_to_the_least_is_said_to_be_less() -> None:
    line, *_ = said(ONE, times(ONE, 1008, 1.03 * 1024 / 1008 * 0.999))
    assert "is 1.03× [1.03, 1.03] as fast, just less than 1.03×" in line


def test_a_size_without_a_time_may_have_gained() -> None:
    network = Shapes((Layer("x", 8192, 1001, 768),))
    known = times(network, 0, 1)
    assert "nothing to gain by padding" in said(network, known)
    del known[Layer("x", 8192, 1024, 768).products["forward"]]
    lines = said(network, known)
    assert lines[0] == "keep n 1001, rows aligned to 2 B: undecided, a product that it takes has no time"
    assert "nothing to gain by padding" not in lines
    known = times(network, 1001, 6)
    del known[Layer("x", 8192, 1024, 768).products["forward"]]
    assert said(network, known)[0].startswith("pad n 1001 → 1008"), "what gains is advised"


def test_a_row_without_a_time_says_why() -> None:
    sizes = {"m": 8, "n": 16, "k": 32, "layout": "nt", "dtype": "tf32"}
    rows = [
        make_record(params=sizes),
        make_record(params=sizes | {"n": 17}, status="oom", reason="out of memory"),
        make_record(params=sizes | {"n": 18}, status="skipped"),
        make_record(params=sizes | {"n": 19}, flags=["throttled"]),
        make_record(params=sizes | {"n": 20}, half=None),
    ]
    found = report.source(make_run(rows), "tf32")
    assert found.itemsize == 4
    assert found.failed == (
        "8x17x32 nt: out of memory", "8x18x32 nt: skipped", "8x19x32 nt: throttled",
        "8x20x32 nt: too few samples for an interval",
    )  # fmt: skip


ROOT = Path(__file__).parents[1]
KEPT = {
    "advise-gpt2": Transformer(768, 12, 12, 64, 3072, 50257, 12, 8192, tied=True),
    "advise-llama3-8b": Transformer(4096, 32, 8, 128, 14336, 128256, 32, 8192, gated=True),
}


@pytest.mark.parametrize("name", KEPT)
def test_the_page_shows_what_follows_from_the_kept_run(name: str) -> None:
    run = read_run(ROOT / f"results/reference/h200/{name}.json.gz")
    network, known = KEPT[name], advise.measured(run)
    assert set(known) == set(advise.products(network))
    console = Console(width=80, color_system=None)
    with console.capture() as captured:
        console.print(report.table(advise.advice(network, known), known, report.source(run, "bfloat16"), 80))
    shown = "\n".join(line.rstrip() for line in captured.get().splitlines())
    page = (ROOT / "docs" / "advise.md").read_text(encoding="utf-8")
    assert f"<!-- {name}: gpubench {' '.join(run.argv[1:-3])} -->\n```text\n{shown}\n```" in page


def test_the_matrices_of_known_networks_have_their_parameters() -> None:
    """What is published counts norms, biases and GPT-2's positions too."""
    gpt2, llama = KEPT.values()
    rest = 1024 * 768 + 12 * (4 * 768 + 2304 + 768 + 3072 + 768) + 2 * 768
    assert gpt2.parameters + rest == 124_439_808
    assert llama.parameters + (2 * 32 + 1) * 4096 == 8_030_261_248


def test_a_small_predicted_gain_is_none() -> None:
    predicted = Source("GPU", "bfloat16", 2, "by a model", predicted=True)
    known = {product: exactly(time.value) for product, time in times(ONE, 1008, 1.1).items()}
    line, *_, last = said(ONE, known, predicted, advise.PREDICTED_GAIN)
    assert line.endswith("with 1024 a step is 1.08× as fast, too little to be predicted")
    assert last == "predicted, not measured: by a model"
    assert text(ONE, known, predicted).startswith("advise · GPU · bf16 · 8192 tokens · predicted, not measured\n")


def test_odd_rows_without_a_size_close_by_are_not_called_good() -> None:
    network = Transformer(1001, 7, 7, 143, 3072, 50304, 1, 64)
    assert network.candidates("hidden") == (1008,)
    lone = Transformer(1001, 13, 13, 77, 3072, 50304, 1, 64)
    assert lone.candidates("hidden") == (1040,)
    prime = Transformer(1009, 1009, 1009, 1, 3072, 50304, 1, 64)
    assert prime.candidates("hidden") == ()
    lines = said(prime, times(prime, 0, 1))
    assert "keep hidden 1009, rows aligned to 2 B: no better aligned size is close" in lines
    assert "nothing to gain by padding" not in lines


@pytest.mark.parametrize("by", [1, 6])
def test_everything_fits_into_80_columns(by: int) -> None:
    big = Transformer(16384, 128, 8, 128, 53001, 1_280_001, 126, 16_777_216, gated=True)
    for network in (big, Shapes((Layer("16777216x1280001x16384", 16_777_216, 1_280_001, 16384), ONE.layers[0]))):
        for line in text(network, times(network, 53001, by)).splitlines():
            assert len(line) <= 80, line


def test_json_has_every_time_and_gain() -> None:
    known = times(ONE, 1008, 2)
    found: dict[str, Any] = report.to_json(advise.advice(ONE, known), known, GPU)
    assert found["padded"] == {"n": 1024}
    assert found["layers"][0]["products"]["weight-gradient"]["layout"] == "tn"
    (tried,) = found["dimensions"][0]["tried"]
    assert tried["both"].keys() == {"value", "low", "high"}
    assert found["step_ns"]["value"] == pytest.approx(sum(time.value for p, time in known.items() if 1008 in p))
