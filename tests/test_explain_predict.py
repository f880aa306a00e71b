"""Predicted times: against an H200's rows that the model has not seen, and of GPUs without a reference run."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from builders import make_run
from worlds.matmul import DEVICE, NARROW, WIDE, curve

from gpubench import advise
from gpubench.errors import UsageError
from gpubench.explain.predict import Predictor, predictor
from gpubench.model.linear import Layer, Product, Shapes
from gpubench.model.matmul_time import BEGIN
from gpubench.result import USUAL
from gpubench.store.folder import read_run, reference_folder
from gpubench.store.runfile import encode

REFERENCE = reference_folder()
LECTURE = Path(__file__).parents[1] / "results" / "reference" / "h200" / "lecture.json.gz"
OUTPUT = Shapes((Layer("output", 8192, 50257, 768),))


@cache
def of(word: str, dtype: str = "bfloat16") -> Predictor:
    """What predicts a GPU with the reference runs there are."""
    return predictor(word, dtype, REFERENCE)


@cache
def unseen() -> dict[Product, float]:
    """Medians of GPT-2's output layer, in ns: none of them is in the reference run that is fitted."""
    found = {}
    for record in read_run(LECTURE).records:
        if (record.suite, record.benchmark) == ("padding", "vocabulary") and record.conditions == USUAL:
            layer = Layer("x", *(int(record.params[name]) for name in ("tokens", "vocab", "width")))
            assert record.summary is not None
            found[layer.products[record.params["product"]]] = float(record.summary.median_ns)  # type: ignore[index]
    return found


def test_products_that_the_model_has_not_seen() -> None:
    measured = unseen()
    h200 = of("h200")
    assert h200.device == "NVIDIA H200"
    assert "250 rows of NVIDIA H200" in h200.how
    ratios = {product: time.value / measured[product] for product, time in h200.times(measured).items()}
    assert ratios.keys() == measured.keys()
    aligned = [ratio for product, ratio in ratios.items() if product.alignment(2) >= 16]
    assert all(0.8 < ratio < 1.1 for ratio in aligned)
    assert all(0.6 < ratio < 1.5 for ratio in ratios.values())


def test_the_advice_is_that_of_measured_times() -> None:
    times = of("h200").times(advise.products(OUTPUT))
    found = advise.advice(OUTPUT, times, advise.PREDICTED_GAIN)
    assert found.padded == {"n": 50304}
    (chosen,) = (each.pad_to for each in found.dimensions if each.pad_to is not None)
    measured = unseen()
    by_padding = [sum(measured[product] for product in OUTPUT.padded({"n": n}).layers[0].products.values())
                  for n in (50257, 50304)]  # fmt: skip
    assert chosen.both.value == pytest.approx(by_padding[0] / by_padding[1], rel=0.15)


def test_another_gpu_of_the_architecture_takes_its_kernels() -> None:
    h100, h200 = (of(word) for word in ("h100 pcie", "h200"))
    assert h100.device == "NVIDIA H100 PCIe"
    assert h100.how == h200.how
    assert h100.constants == h200.constants
    assert h100.on.multiprocessors == 114
    large = Product(8192, 8192, 8192, "nn")
    assert h100.times([large])[large].value > h200.times([large])[large].value


def test_a_gpu_of_another_architecture_has_round_constants() -> None:
    a100 = of("a100")
    assert a100.constants == BEGIN
    assert "no reference run of its architecture" in a100.how
    times = a100.times(advise.products(OUTPUT))
    odd, even = (times[OUTPUT.padded({"n": n}).layers[0].products["forward"]].value for n in (50257, 50304))
    assert odd > 1.5 * even
    assert predictor("h200", "bfloat16", None).constants == BEGIN
    assert (a100.doubt, of("h200").doubt, predictor("h200", "bfloat16", None).doubt) == (2.0, 1.0, 2.0)


def test_both_halves_are_predicted_alike() -> None:
    wanted = advise.products(OUTPUT)
    halves = [of("h200", dtype).times(wanted) for dtype in ("float16", "bfloat16")]
    assert halves[0] == halves[1]


@pytest.mark.parametrize(
    ("word", "dtype", "said"),
    [
        ("h300", "bfloat16", "no GPU 'h300' in the catalogue; did you mean"),
        ("l", "bfloat16", "no GPU 'l' in the catalogue"),
        ("", "bfloat16", "no GPU ''"),
        ("\x1b[31m", "bfloat16", "no GPU"),
        ("tpu v4", "bfloat16", "no GPU 'tpu v4'"),
        ("h200", "float64", "too little is known of float64 on H200 SXM"),
        ("v100", "bfloat16", "too little is known of bfloat16 on V100 SXM2"),
        ("b200", "bfloat16", "too little is known of bfloat16 on B200 SXM"),
        ("gh200", "nonsense", "too little is known of nonsense"),
    ],
)
def test_what_is_not_known_is_said(word: str, dtype: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        predictor(word, dtype, REFERENCE)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("word", "device"),
    [("l4", "NVIDIA L4"), ("L40S", "NVIDIA L40S"), ("rtx 4090", "NVIDIA GeForce RTX 4090"),
     ("a100 pcie 80", "NVIDIA A100 80GB PCIe"), ("h100_sxm", "NVIDIA H100 80GB HBM3")],
)  # fmt: skip
def test_the_names_of_gpus(word: str, device: str) -> None:
    assert predictor(word, "float16", None).device == device


def test_a_time_is_that_of_the_fastest_kernel_of_its_alignment(tmp_path: Path) -> None:
    folder = tmp_path / "somewhere"
    folder.mkdir()
    run = make_run([each.record("matmul-sweep") for each in curve()], device=DEVICE)
    (folder / "matmul-sweep.json").write_bytes(encode(run))
    found = predictor("h200", "bfloat16", tmp_path)
    assert {aligned: [kernel.name for kernel in found.kernels[aligned]] for aligned in (16, 2)} == {
        16: [WIDE], 2: [NARROW]
    }  # fmt: skip
    records = {record.params["n"]: record for record in run.records}
    for n, record in records.items():
        product = Product(int(n), int(n), int(n), "nn")
        assert record.summary is not None
        assert found.times([product])[product].value == pytest.approx(record.summary.median_ns, rel=0.05)
    unseen_class = Product(1024, 1026, 1024, "nn")
    assert found.times([unseen_class])[unseen_class].value > 0, "a usual kernel stands in"
