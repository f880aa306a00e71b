"""Advice from times: rows that an H200 measured of GPT-2's output layer, and made-up machines with one rule each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_record, make_run

from gpubench import advise
from gpubench.advise import Dimension, Times, advice, measured, products, ready, spent
from gpubench.finding import Estimate, exactly
from gpubench.model.linear import PASSES, Layer, Network, Product, Shapes
from gpubench.model.transformer_shapes import Transformer
from gpubench.result import Record, Run
from gpubench.stats import trusted_median
from gpubench.store.folder import read_run

LECTURE = Path(__file__).parents[1] / "results" / "reference" / "h200" / "lecture.json.gz"
GPT2 = Transformer(768, 12, 12, 64, 3072, 50257, 12, 8192, tied=True)
LLAMA = Transformer(4096, 32, 8, 128, 14336, 128256, 32, 8192, gated=True)
ODD = Transformer(1000, 10, 10, 100, 4001, 50257, 12, 8192)


def at(rate: Callable[[Product], float], half: float = 0.0) -> Callable[[Network], Times]:
    """Times of every product that advice asks for, of a machine with that rate in FLOP a ns, each known to ± half."""

    def times(network: Network) -> Times:
        found = {}
        for product in products(network):
            ns = product.flops / rate(product)
            found[product] = Estimate(ns, ns * (1 - half), ns * (1 + half))
        return found

    return times


SMOOTH = at(lambda product: 700e3, half=0.002)
CLIFF = at(lambda product: 700e3 if product.alignment(2) >= 16 else 100e3, half=0.002)
"""A machine whose rate falls to a seventh where rows are not aligned to 16 bytes."""
BY_CLASS = at(lambda product: 100e3 * math.log2(product.alignment(2)), half=0.002)


def by_name(network: Network, times: Times, least: float = advise.LEAST_GAIN) -> dict[str, Dimension]:
    return {found.name: found for found in advice(network, times, least).dimensions}


# What an H200 measured


@pytest.fixture(scope="module")
def lecture() -> Run:
    return read_run(LECTURE)


def rows(run: Run, benchmark: str) -> list[Record]:
    return [each for each in run.records if (each.suite, each.benchmark) == ("padding", benchmark)]


def vocabulary(run: Run) -> Times:
    """The output layer's products as `padding` measured them; 50272 it has not: its time is put between those of its
    neighbours."""
    times = {}
    for record in rows(run, "vocabulary"):
        tokens, words, width = (int(record.params[name]) for name in ("tokens", "vocab", "width"))
        low, middle, high = trusted_median(record) or pytest.fail(record.id)
        product = Layer("output", tokens, words, width).products[record.params["product"]]  # type: ignore[index]
        times[product] = Estimate(middle, low, high)
    for name in PASSES:
        sides = [times[Layer("output", 8192, words, 768).products[name]] for words in (50264, 50304)]
        between = exactly(sum(side.value for side in sides) / 2)
        times[Layer("output", 8192, 50272, 768).products[name]] = between
    return times


def test_gpt2s_vocabulary_is_padded_to_50304_for_what_padding_measured(lecture: Run) -> None:
    found = by_name(Shapes((Layer("output", 8192, 50257, 768),)), vocabulary(lecture))["n"]
    assert found.pad_to is not None
    assert found.pad_to.size == 50304
    medians = {
        (record.params["vocab"], record.params["product"]): record.summary.median_ns
        for record in rows(lecture, "vocabulary")
        if record.summary is not None
    }
    by_padding = sum(medians[50257, name] for name in PASSES) / sum(medians[50304, name] for name in PASSES)
    assert found.pad_to.both.value == pytest.approx(by_padding)
    assert found.pad_to.step == found.pad_to.both, "the layer is the whole step"
    assert found.pad_to.both.low > 6
    assert found.pad_to.forward.value > found.pad_to.backward.value
    assert found.pad_to.parameters == 47 * 768


def test_the_rest_of_gpt2_is_kept(lecture: Run) -> None:
    times = {**CLIFF(GPT2), **vocabulary(lecture)}
    found = by_name(GPT2, times)
    assert {name: each.verdict for name, each in found.items()} == {
        "vocab": "pad", "d_ff": "nothing to gain", "hidden": "aligned"
    }  # fmt: skip
    to = found["vocab"].pad_to
    assert to is not None
    assert (to.size, found["vocab"].layers) == (50304, ("output",))
    assert 1 < to.step.value < to.both.value


# Rules


def test_nothing_to_gain_for_llama() -> None:
    for machine in (SMOOTH, CLIFF):
        found = advice(LLAMA, machine(LLAMA))
        assert {each.verdict for each in found.dimensions} == {"nothing to gain", "aligned"}
        assert found.padded == {}
        assert found.together is None
    d_ff = by_name(LLAMA, SMOOTH(LLAMA))["d_ff"]
    assert d_ff.layers == ("gate, up", "down")
    assert [each.size for each in d_ff.tried] == [14464], "what is aligned is tried once more, as a control"


def test_a_machine_without_a_cliff_pads_nothing() -> None:
    assert advice(ODD, SMOOTH(ODD)).padded == {}
    best = by_name(ODD, SMOOTH(ODD))["vocab"].best
    assert best is not None
    assert best.both.value == pytest.approx(50257 / 50264)


def test_of_two_odd_sizes_each_is_judged_with_the_other_padded() -> None:
    two = Shapes((Layer("x", 8192, 4001, 2001),))
    found = by_name(two, CLIFF(two))
    assert ready(two) == {"n": 4096, "k": 2048}
    assert {name: each.verdict for name, each in found.items()} == {"n": "pad", "k": "pad"}
    assert spent(two.padded({"n": 4008}).layers, CLIFF(two)) is None, "one alone is not measured: it gains nothing"


def test_sizes_that_were_measured_together_stand_for_those_that_were_not() -> None:
    two = Shapes((Layer("x", 8192, 4001, 2001),))
    found = advice(two, CLIFF(two))
    assert found.padded == {"n": 4008, "k": 2008}
    assert found.together is not None
    assert found.together.sizes == {"n": 4096, "k": 2048}
    assert 6 < found.together.step.value < 7


def test_sizes_that_are_aligned_stay_while_others_are_judged() -> None:
    assert ready(ODD) == {"vocab": 50304, "d_ff": 4096}
    assert ready(LLAMA) == {}
    found = advice(ODD, CLIFF(ODD))
    assert found.padded.keys() == {"vocab", "d_ff"}
    assert found.together is not None
    assert found.together.sizes == found.padded
    by_hand = [spent(network.layers, CLIFF(ODD)) for network in (ODD, ODD.padded(found.padded))]
    assert found.together.step.value == pytest.approx(by_hand[0].value / by_hand[1].value)  # type: ignore[union-attr]
    assert found.together.parameters == ODD.padded(found.padded).parameters - ODD.parameters


def test_of_sizes_alike_the_best_aligned_is_taken_if_it_is_cheap() -> None:
    vocab = Shapes((Layer("output", 8192, 50257, 768),))
    assert by_name(vocab, CLIFF(vocab))["n"].pad_to.size == 50304  # type: ignore[union-attr]
    small = Shapes((Layer("x", 8192, 1001, 768),))
    chosen = by_name(small, CLIFF(small))["n"].pad_to
    assert chosen is not None
    assert chosen.size == 1008, "1024 costs 1.6 % more parameters"


def test_a_better_class_is_worth_its_parameters_where_it_is_faster() -> None:
    network = Shapes((Layer("x", 8192, 1001, 768),))
    chosen = by_name(network, BY_CLASS(network))["n"].pad_to
    assert chosen is not None
    assert chosen.size == 1024


def test_a_gain_that_is_not_certain_is_none() -> None:
    network = Shapes((Layer("x", 8192, 1008, 768),))
    slow = at(lambda product: 700e3 * (0.95 if 1008 in product else 1), half=0.1)
    assert by_name(network, slow(network))["n"].verdict == "uncertain"
    known = at(lambda product: 700e3 * (0.95 if 1008 in product else 1), half=0.001)
    assert by_name(network, known(network))["n"].verdict == "pad"


def test_a_gain_on_a_small_part_of_a_step_is_none() -> None:
    deep = replace(GPT2, vocab=1001, blocks=2000)
    found = by_name(deep, CLIFF(deep))["vocab"]
    assert found.best is not None
    assert found.best.both.value > 6
    assert found.best.step.value < advise.LEAST_GAIN
    assert found.verdict == "nothing to gain"


def test_a_predicted_gain_must_be_larger() -> None:
    network = Shapes((Layer("x", 8192, 1008, 768),))
    times = at(lambda product: 700e3 * (0.9 if 1008 in product else 1))(network)
    assert by_name(network, times)["n"].verdict == "pad"
    assert by_name(network, times, advise.PREDICTED_GAIN)["n"].verdict == "nothing to gain"


def test_times_of_misaligned_rows_that_may_be_off_do_not_say_that_there_is_nothing_to_gain() -> None:
    network = Shapes((Layer("x", 8192, 4001, 768), Layer("y", 8192, 3072, 768)))
    times = SMOOTH(network)
    for doubt, verdict in ((1.0, "nothing to gain"), (2.0, "uncertain")):
        found = {each.name: each.verdict for each in advice(network, times, advise.PREDICTED_GAIN, doubt).dimensions}
        assert (found["x n"], found["x k"], found["y n"]) == (verdict, "aligned", "nothing to gain")


def test_without_a_time_there_is_no_verdict() -> None:
    network = Shapes((Layer("output", 8192, 50257, 768),))
    times = dict(CLIFF(network))
    del times[Layer("output", 8192, 50257, 768).products["forward"]]
    found = advice(network, times)
    assert found.step is None
    assert by_name(network, times)["n"].verdict == "not measured"
    assert by_name(network, {})["n"].verdict == "not measured"
    times = dict(CLIFF(network))
    del times[Layer("output", 8192, 50304, 768).products["forward"]]
    judged = by_name(network, times)["n"]
    assert [each.size for each in judged.tried] == [50264, 50272]
    assert judged.pad_to is not None


# Times


def test_a_sum_has_the_distances_of_its_parts_as_the_root_of_squares() -> None:
    layer = Layer("x", 8, 16, 32)
    times = dict.fromkeys(layer.products.values(), Estimate(100, 97, 104))
    assert spent([layer], times) == Estimate(
        300, pytest.approx(300 - math.hypot(3, 3, 3)), pytest.approx(306.93, abs=0.01)
    )
    often = replace(layer, count=5)
    found = spent([often], times, ["forward"])
    assert found == Estimate(500, 485, 520), "a product that occurs often is one row"
    assert spent([layer, layer], times, ["forward"]) == Estimate(200, 194, 208)
    assert spent([], times) is None


def test_every_product_that_advice_needs_is_measured_once() -> None:
    for network in (GPT2, LLAMA, ODD, Shapes((Layer("x", 8, 7, 5), Layer("y", 8, 7, 9)))):
        needed = products(network)
        assert len(needed) == len(set(needed))
        found = advice(network, {product: exactly(1.0) for product in needed})
        assert all(
            [each.size for each in dimension.tried] == list(network.candidates(dimension.name))
            for dimension in found.dimensions
        )
        assert found.step is not None
    assert len(products(LLAMA)) == 3 * 5 + 3 * 1 + 3 * 2


def product_row(m: int, n: int, k: int, layout: str, time_ns: int = 100_000, **fields: object) -> Record:
    params = {"m": m, "n": n, "k": k, "layout": layout, "dtype": "bfloat16"}
    return make_record(params=params, time_ns=time_ns, flops=2 * m * n * k, **fields)  # type: ignore[arg-type]


def test_the_times_of_a_run_are_those_of_rows_without_doubt() -> None:
    run = make_run([
        product_row(8, 16, 32, "nt"),
        product_row(8, 16, 64, "nt", flags=["throttled"]),
        product_row(8, 16, 65, "nt", flags=["noisy"]),
        product_row(8, 16, 66, "nt", status="oom"),
        product_row(8, 16, 67, "nt", half=None),
        make_record("bandwidth", "copy", params={"mib": 1}),
    ])  # fmt: skip
    assert measured(run) == {
        Product(8, 16, 32, "nt"): Estimate(100_000, 99_700, 100_300),
        Product(8, 16, 65, "nt"): Estimate(100_000, 99_700, 100_300),
    }
