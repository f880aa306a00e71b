"""The suite padding: products whose rows lose their alignment, the output layer as autograd has it, a step of GPT-2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from builders import CPU, make_record, make_run
from machine import BENCHMARKS, LIBRARY, SUITES, Device, globals_of, judged
from torch.nn import functional as F
from worlds import STATEMENTS, Row, World
from worlds.padding import HEAD, STEP

from gpubench import check, stats
from gpubench.claims import judge as claims
from gpubench.devices.cpu import CpuDevice
from gpubench.errors import Skip, WrongResult
from gpubench.model import transformer
from gpubench.plan import cases, select
from gpubench.result import Conditions
from gpubench.runner import Effort, measure
from gpubench.sampling import Stopping
from gpubench.suite import Case
from gpubench.workload import Workload

KNOWN = globals_of("padding/train-step")
TINY = {"batch": 2, "sequence": 6, "layers": 2, "width": 128, "vocab": 11}
FORMATS = ["float32", "bfloat16"]


@pytest.fixture(scope="module")
def cpu() -> Iterator[CpuDevice]:
    device = CpuDevice()
    yield device
    device.release()


class Recorder(Device):
    """A device that keeps the matrices a benchmark drew, and whatever it wanted compiled."""

    def __init__(self, cpu: CpuDevice) -> None:
        super().__init__(cpu, CPU)
        self.drawn: list[Any] = []
        self.options: list[Any] = []

    def random(self, *args: Any, **options: Any) -> Any:
        self.drawn.append(self.cpu.random(*args, **options))
        return self.drawn[-1]

    def compile(self, function: Any, *, options: Any = None) -> Any:
        self.options.append(options)
        made = lambda *args: function(*args)  # noqa: E731
        made.metrics = list
        return made


def build(cpu: CpuDevice, name: str, /, **params: Any) -> tuple[Workload, Recorder]:
    cpu.configure("normal", 7)
    device = Recorder(cpu)
    return BENCHMARKS[f"padding/{name}"].function(device, **params), device


def step(cpu: CpuDevice, mode: str = "eager", dtype: str = "float32", **params: Any) -> tuple[Workload, Recorder]:
    return build(cpu, "train-step", mode=mode, dtype=dtype, **(TINY | params))


SMALL = [
    *(
        ("operand", {"which": which, "off": off, "n": 24, "layout": layout})
        for layout in ("nn", "nt", "tn")
        for which in "mnk"
        for off in (0, 1, 8)
    ),
    *(
        ("vocabulary", {"product": name, "vocab": vocab, "tokens": 6, "width": 8})
        for name in KNOWN["PRODUCTS"]
        for vocab in (13, 16)
    ),
    *(
        ("d-ff", {"product": name, "d_ff": d_ff, "tokens": 5, "width": 8})
        for name in ("up", "down")
        for d_ff in (11, 16)
    ),
]


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize(("name", "params"), SMALL)
def test_a_product_is_right_and_says_what_it_is(cpu: CpuDevice, name: str, params: dict[str, Any], dtype: str) -> None:
    workload, device = build(cpu, name, dtype=dtype, **params)
    a, b = device.drawn
    cpu.poison(workload.output)
    workload.call()
    judged(cpu, workload)
    workload.output[-1, -1] += 1 + workload.output.abs().max()
    with pytest.raises(WrongResult):
        judged(cpu, workload)
    stored = {"A": a, "B": b, "C": workload.output}
    assert workload.bytes == sum(tensor.nbytes for tensor in stored.values())
    (m, n), size = workload.output.shape, workload.output.element_size()
    assert workload.flops == 2 * m * n * (a.numel() // m)
    assert (workload.reduction, workload.dtype, workload.headline) == (a.numel() // m, dtype, "flops")
    classes = {operand: tensor.stride(0) * size & -tensor.stride(0) * size for operand, tensor in stored.items()}
    assert workload.prediction["alignment_bytes"] == {operand: min(found, 256) for operand, found in classes.items()}
    under = [operand for operand, tensor in stored.items() if tensor.stride(0) * size % 16]
    assert workload.prediction["misaligned"] == under
    assert workload.labels["misaligned"] == (" ".join(under) or "none")
    assert workload.labels["alignment"] == f"{min(256, *classes.values())} B"


@pytest.mark.parametrize(
    ("layout", "which", "under"),
    [
        ("nn", "m", []), ("nn", "n", ["B", "C"]), ("nn", "k", ["A"]),
        ("nt", "m", []), ("nt", "n", ["C"]), ("nt", "k", ["A", "B"]),
        ("tn", "m", ["A"]), ("tn", "n", ["B", "C"]), ("tn", "k", []),
    ],
)  # fmt: skip
def test_each_dimension_is_the_length_of_its_own_rows(
    cpu: CpuDevice, layout: str, which: str, under: list[str]
) -> None:
    for off, found in ((0, []), (1, under), (4, under), (8, [])):
        workload, _ = build(cpu, "operand", which=which, off=off, n=32, layout=layout, dtype="bfloat16")
        assert workload.prediction["misaligned"] == found
        assert ("control" in workload.labels) == (which == "m" and layout != "tn")


def test_a_dimension_that_is_gone_is_no_product(cpu: CpuDevice) -> None:
    with pytest.raises(Skip, match="24 less 24 leaves no matrix"):
        build(cpu, "operand", which="k", off=24, n=24, layout="nn", dtype="float32")


def test_the_three_products_are_those_of_autograd(cpu: CpuDevice) -> None:
    """On the numbers that each of them drew, with W of vocab × width as torch stores it."""
    tokens, vocab, width = 6, 13, 8
    made = {
        name: build(cpu, "vocabulary", product=name, vocab=vocab, tokens=tokens, width=width, dtype="float32")
        for name in KNOWN["PRODUCTS"]
    }
    for workload, _ in made.values():
        workload.call()
    x, w = made["forward"][1].drawn
    torch.testing.assert_close(made["forward"][0].output, F.linear(x, w))
    dy, w = made["input-gradient"][1].drawn
    x = torch.zeros(tokens, width, requires_grad=True)
    torch.testing.assert_close(made["input-gradient"][0].output, torch.autograd.grad(F.linear(x, w), x, dy)[0])
    dy, x = made["weight-gradient"][1].drawn
    w = torch.zeros(vocab, width, requires_grad=True)
    torch.testing.assert_close(made["weight-gradient"][0].output, torch.autograd.grad(F.linear(x, w), w, dy)[0])
    assert [workload.prediction["misaligned"] for workload, _ in made.values()] == [["C"], ["A"], ["A"]]


@pytest.mark.parametrize(("vocab", "share"), [(50256, None), (50257, 1.0), (50304, 50257 / 50304)])
def test_the_flops_of_a_padded_layer_are_its_own_and_some_are_of_no_use(
    cpu: CpuDevice, vocab: int, share: float | None
) -> None:
    workload, _ = build(cpu, "vocabulary", product="forward", vocab=vocab, tokens=1, width=1, dtype="float32")
    assert workload.flops == 2 * vocab
    assert workload.prediction.get("useful_share") == share


# A training step


def by_modules(weights: dict[str, Any], ids: Any) -> Any:
    """The loss of the same model from torch's own modules."""
    width = weights["norm"].numel()
    x = weights["tokens"][ids[:, :-1]] + weights["places"]
    for layer in range(TINY["layers"]):
        module = torch.nn.TransformerEncoderLayer(
            width, width // 64, 4 * width, dropout=0.0, batch_first=True, norm_first=True, bias=False,
            activation=lambda wide: F.gelu(wide, approximate="tanh"), dtype=x.dtype,
        )  # fmt: skip
        names = {
            "self_attn.in_proj_weight": "qkv", "self_attn.out_proj.weight": "out", "linear1.weight": "up",
            "linear2.weight": "down", "norm1.weight": "attention.norm", "norm2.weight": "mlp.norm",
        }  # fmt: skip
        module.load_state_dict({theirs: weights[f"{layer}.{ours}"] for theirs, ours in names.items()})
        length = x.shape[1]
        mask = torch.nn.Transformer.generate_square_subsequent_mask(length, dtype=x.dtype)
        x = module(x, src_mask=mask, is_causal=True)
    logits = F.layer_norm(x, (width,), weights["norm"]) @ weights["tokens"].T
    return F.nll_loss(logits.log_softmax(-1).flatten(0, 1), ids[:, 1:].flatten())


def test_the_model_is_gpt(cpu: CpuDevice) -> None:
    block = transformer.Shape("gpt2", 128, 2, 2, 512)
    named = KNOWN["shapes"](block, TINY["vocab"], TINY["sequence"], TINY["layers"])
    generator = torch.Generator().manual_seed(3)
    weights = {name: torch.randn(shape, generator=generator).double() for name, shape in named.items()}
    ids = torch.randint(TINY["vocab"], (TINY["batch"], TINY["sequence"] + 1), generator=generator)
    torch.testing.assert_close(KNOWN["loss"](weights, ids), by_modules(weights, ids))


def test_the_default_model_has_124_million_weights() -> None:
    chosen = next(BENCHMARKS["padding/train-step"].cases("cuda"))
    heads = chosen["width"] // 64
    block = transformer.Shape("gpt2", chosen["width"], heads, heads, 4 * chosen["width"])
    shapes = KNOWN["shapes"](block, chosen["vocab"], chosen["sequence"], chosen["layers"])
    assert sum(torch.Size(shape).numel() for shape in shapes.values()) == pytest.approx(124e6, rel=0.005)
    assert (chosen["layers"], chosen["width"], heads, chosen["sequence"]) == (12, 768, 12, 1024)


def test_the_flops_of_a_step_are_those_of_its_products(cpu: CpuDevice) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    workload, _ = step(cpu)
    counter = FlopCounterMode(display=False)
    with counter:
        workload.call()
    counted = counter.get_flop_counts()["Global"]
    dense = sum(flops for operation, flops in counted.items() if operation in (torch.ops.aten.mm, torch.ops.aten.addmm))
    batch, sequence, heads = TINY["batch"], TINY["sequence"], 2
    scores = batch * heads * sequence * (sequence + 1) // 2
    assert workload.flops == dense + 3 * TINY["layers"] * 4 * 64 * scores
    head = 3 * 2 * batch * sequence * 128 * TINY["vocab"]
    assert workload.prediction["output_layer_flop_share"] == pytest.approx(head / workload.flops)
    assert workload.headline == "time"


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_a_step_is_right_and_a_wrong_one_is_found(cpu: CpuDevice, mode: str, dtype: str) -> None:
    workload, _ = step(cpu, mode, dtype)
    moment, reference = workload.call(), workload.reference()
    assert check.judge(cpu.compare(moment, reference), workload).error > 0
    with pytest.raises(WrongResult):
        check.judge(cpu.compare(1.1 * moment, reference), workload)


def test_every_step_does_the_same_work(cpu: CpuDevice) -> None:
    workload, device = step(cpu)
    before = [tensor.detach().clone() for tensor in device.drawn]
    first = workload.call().clone()
    second = workload.call()
    torch.testing.assert_close(second, 1.9 * first)  # 0.9 of what it was, and the same gradient again
    assert all(torch.equal(tensor, was) for tensor, was in zip(device.drawn[:-1], before[:-1], strict=True))


def test_words_of_the_padding_are_never_in_a_text(cpu: CpuDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    loss = KNOWN["loss"]
    monkeypatch.setitem(KNOWN, "WORDS", 7)
    monkeypatch.setitem(KNOWN, "loss", lambda weights, ids: seen.append(ids) or loss(weights, ids))
    for vocab in (5, 7, 11):
        step(cpu, vocab=vocab, batch=8, sequence=32)[0].call()
    assert [int(ids.max()) for ids in seen] == [4, 6, 6]
    assert torch.equal(seen[1], seen[2])


def test_inductors_padding_is_switched_off_where_a_row_says_so(cpu: CpuDevice) -> None:
    from torch._inductor import config

    asked = {mode: step(cpu, mode)[1].options for mode in KNOWN["MODES"]}
    off = {"shape_padding": False, "comprehensive_padding": False}
    assert asked == {"eager": [], "compiled": [{}], "compiled-unpadded": [off]}
    assert all(hasattr(config, name) for name in off)


def test_a_width_without_whole_heads(cpu: CpuDevice) -> None:
    with pytest.raises(Skip, match="a width of 100 is no whole number of heads of 64"):
        step(cpu, width=100)


@pytest.mark.parametrize(("name", "params"), [SMALL[1], SMALL[-1], ("train-step", TINY | {"mode": "eager"})])
def test_a_row_of_a_cpu(cpu: CpuDevice, name: str, params: dict[str, Any]) -> None:
    case = Case("padding", name, params | {"dtype": "float32"}, Conditions(cache="hot"))
    *_, record = measure(BENCHMARKS[f"padding/{name}"], case, cpu, Effort(Stopping(samples=3)))
    assert (record.status, record.reason) == ("ok", None)


# The claim


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats, "DRAWS", 40)


@pytest.mark.usefixtures("few_draws")
def test_the_claim_names_the_kernels_and_shows_the_steps_that_ran() -> None:
    found = World("C56", HEAD + STEP, {}, None).judged()
    shown = {effect["name"]: effect["value"] for effect in found["effects"]}
    assert shown["time of all three at 50257 over 50304"] == pytest.approx(10407 / 2718)
    assert shown["forward alone"] == pytest.approx(6607 / 868)
    assert shown["training step, eager"] == pytest.approx(1.25)
    assert shown["training step, compiled-unpadded"] == pytest.approx(1.3)
    assert "training step, compiled" not in shown
    first = "forward: cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_nt_align1 at 50257, nvjet_sm90_tst_256x128_64x4_"
    assert found["note"].startswith(first)
    alone = World("C56", HEAD, {}, None).judged()
    assert (alone["verdict"], len(alone["effects"])) == ("HOLDS", 4)


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(("times", "verdict"), [(0.9, "ABSENT"), (1.0, "ABSENT"), (1.04, "HOLDS"), (2.0, "HOLDS")])
def test_a_cpu_is_judged_by_the_same_rule(times: float, verdict: str) -> None:
    odd = {row.words.replace("50304", "50257"): row.us * times for row in HEAD if "vocab=50304" in row.words}
    found = World("C56", HEAD, {}, None, device=CPU).judged(odd)
    assert found["verdict"] == verdict, found["reason"]


@pytest.mark.usefixtures("few_draws")
def test_rows_of_another_size_are_not_mixed_in() -> None:
    small = [Row(row.words.replace("tokens=8192", "tokens=16"), 1, fields=row.fields) for row in HEAD]
    assert (
        World("C56", [*HEAD, *small], {}, None).judged()["effects"]
        == (World("C56", HEAD, {}, None).judged()["effects"])
    )


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize("kind", ["cuda", "cpu"])
def test_the_long_plan_has_the_rows_of_the_claim(kind: str) -> None:
    planned = cases(select(["lecture-long"], LIBRARY), kind, False, {})
    records = [
        make_record(
            case.suite, case.benchmark, params=dict(case.params), time_ns=10**6, flops=int(case.params["vocab"])
        )
        for case in planned
    ]
    (found,) = claims.in_run(make_run(records), [STATEMENTS["C56"]], {"padding": SUITES["padding"]})
    assert found["verdict"] == "ABSENT"
    assert [effect["name"] for effect in found["effects"]][-3:] == [
        f"training step, {mode}" for mode in ("eager", "compiled", "compiled-unpadded")
    ]


def test_defaults_compile_nothing_and_are_few() -> None:
    for kind, most in (("cuda", 55), ("cpu", 22)):
        rows = [row for bench in SUITES["padding"].benchmarks.values() for row in bench.cases(kind)]
        assert {row.get("mode", "eager") for row in rows} == {"eager"}
        assert len(rows) <= most
