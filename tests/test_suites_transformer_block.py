"""The suite transformer-block on a CPU: the blocks against other programs, gradients, checks, parts, shares of time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from machine import BENCHMARKS, Device, globals_of

from gpubench import check
from gpubench.errors import WrongResult
from gpubench.model.transformer import MODELS, Shape
from gpubench.result import KernelSeen

BLOCK, OPERATION = BENCHMARKS["transformer-block/block"], BENCHMARKS["transformer-block/operation"]
SHAPES = {"gpt2-medium": Shape("gpt2", 16, 2, 2, 24), "llama3-8b": Shape("llama", 16, 4, 2, 24)}
N = 5


@pytest.fixture(autouse=True)
def small_models(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, shape in SHAPES.items():
        monkeypatch.setitem(MODELS, name, shape)


class Compiling(Device):
    """Keeps what it was given to compile, and returns it."""

    def __init__(self, cpu: Any) -> None:
        super().__init__(cpu, {"kind": "cpu"})
        self.compiled: list[Any] = []

    def compile(self, function: Any, *, options: Any = None) -> Any:
        self.compiled.append(function)
        return lambda *args: function(*args)


def block(cpu: Any, model: str, passes: str = "forward", dtype: str = "float32", by: str = "eager") -> Any:
    cpu.configure("normal", 7)
    return BLOCK.function(Compiling(cpu), model=model, by=by, passes=passes, batch=2, n=N, dtype=dtype)


def judged(cpu: Any, workload: Any, output: Any) -> None:
    check.judge(cpu.compare(output, workload.reference()), workload)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("passes", ["forward", "both"])
@pytest.mark.parametrize("model", SHAPES)
def test_a_block_passes_its_check_and_a_wrong_one_does_not(cpu: Any, model: str, passes: str, dtype: str) -> None:
    workload = block(cpu, model, passes, dtype)
    output = workload.call()
    judged(cpu, workload, output)
    tensors = [output] if passes == "forward" else list(output)
    tensors[-1] *= 2
    with pytest.raises(WrongResult):
        judged(cpu, workload, tensors)


@pytest.mark.parametrize("model", SHAPES)
def test_bytes_are_those_of_what_goes_in_and_comes_out(cpu: Any, model: str) -> None:
    forward, both = block(cpu, model), block(cpu, model, "both")
    out, gradients = both.call()[0], both.call()[1:]
    parameters = sum(each.nbytes for each in gradients[1:])
    assert parameters == 4 * SHAPES[model].parameters
    assert forward.bytes == parameters + 2 * out.nbytes
    assert both.bytes == 2 * parameters + 4 * out.nbytes
    assert both.flops == 3 * forward.flops
    assert both.prediction["product_flops"] == both.flops


def named(workload: Any, model: str) -> dict[str, Any]:
    """The tensors a block was built from, by name, out of the closure of its run."""
    cells = dict(zip(workload.run.__code__.co_freevars, workload.run.__closure__, strict=True))
    names = ["x", *globals_of("transformer-block/block")["_weights"](Zeros(), SHAPES[model], "float32")]
    return dict(zip(names, (each.detach() for each in cells["learnt"].cell_contents), strict=True))


class Zeros:
    def random(self, shape: Any, dtype: str, seed: int = 0) -> Any:
        import torch

        return torch.zeros(shape)


def test_the_style_of_gpt2_is_the_layer_of_torch(cpu: Any) -> None:
    import torch

    workload = block(cpu, "gpt2-medium")
    w, shape = named(workload, "gpt2-medium"), SHAPES["gpt2-medium"]
    layer = torch.nn.TransformerEncoderLayer(
        shape.width, shape.heads, shape.hidden, dropout=0.0, batch_first=True, norm_first=True,
        activation=lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    )  # fmt: skip
    given = {
        "self_attn.in_proj_weight": "qkv", "self_attn.in_proj_bias": "qkv_bias", "self_attn.out_proj.weight": "out",
        "self_attn.out_proj.bias": "out_bias", "linear1.weight": "up", "linear1.bias": "up_bias",
        "linear2.weight": "down", "linear2.bias": "down_bias", "norm1.weight": "attention_norm",
        "norm1.bias": "attention_norm_bias", "norm2.weight": "mlp_norm", "norm2.bias": "mlp_norm_bias",
    }  # fmt: skip
    layer.load_state_dict({name: w[ours] for name, ours in given.items()})
    mask = torch.nn.Transformer.generate_square_subsequent_mask(N)
    torch.testing.assert_close(workload.call(), layer(w["x"], src_mask=mask).detach(), rtol=1e-4, atol=1e-4)


def test_the_style_of_llama_one_position_and_head_at_a_time(cpu: Any) -> None:
    workload = block(cpu, "llama3-8b")
    shape = SHAPES["llama3-8b"]
    w = {name: np.asarray(tensor, dtype=float) for name, tensor in named(workload, "llama3-8b").items()}

    def normed(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return x / np.sqrt((x * x).mean() + 1e-5) * scale

    def turned(x: np.ndarray, position: int) -> np.ndarray:
        half, made = len(x) // 2, x.copy()
        for i in range(half):
            angle = position * 10000.0 ** (-2 * i / len(x))
            made[i] = x[i] * math.cos(angle) - x[i + half] * math.sin(angle)
            made[i + half] = x[i + half] * math.cos(angle) + x[i] * math.sin(angle)
        return made

    found = np.asarray(workload.call(), dtype=float)
    for sequence in range(2):
        x = w["x"][sequence]
        parts = [w["qkv"] @ normed(row, w["attention_norm"]) for row in x]
        for position in range(N):
            joined = []
            for head in range(shape.heads):
                group = head // (shape.heads // shape.kv_heads)
                at = shape.head * head
                q = turned(parts[position][at : at + shape.head], position)
                weights, values = [], []
                for seen in range(position + 1):
                    at = shape.width + shape.head * group
                    k = turned(parts[seen][at : at + shape.head], seen)
                    weights.append(math.exp(q @ k / math.sqrt(shape.head)))
                    values.append(parts[seen][at + shape.kv_width : at + shape.kv_width + shape.head])
                joined += list(np.average(values, axis=0, weights=weights))
            y = x[position] + w["out"] @ np.array(joined)
            inner = normed(y, w["mlp_norm"])
            gate = w["gate"] @ inner
            expected = y + w["down"] @ (gate / (1 + np.exp(-gate)) * (w["up"] @ inner))
            np.testing.assert_allclose(found[sequence, position], expected, rtol=1e-4, atol=1e-4)


def test_gradients_are_slopes(cpu: Any) -> None:
    """Of the sum of outputs times what came from above, along one direction through the input and all weights."""
    import torch

    workload = block(cpu, "llama3-8b", "both")
    run = workload.run
    cells = {name: cell.cell_contents for name, cell in zip(run.__code__.co_freevars, run.__closure__, strict=True)}
    learnt, upstream = cells["learnt"], cells["upstream"]
    _, *gradients = run()
    torch.manual_seed(0)
    step = [torch.randn_like(each) for each in learnt]
    values = []
    for sign in (1, -1):
        with torch.no_grad():
            for tensor, one in zip(learnt, step, strict=True):
                tensor += sign * 1e-3 * one
            values.append(float((run_forward(run) * upstream).double().sum()))
            for tensor, one in zip(learnt, step, strict=True):
                tensor -= sign * 1e-3 * one
    slope = sum(float((one * gradient).double().sum()) for one, gradient in zip(step, gradients, strict=True))
    assert (values[0] - values[1]) / 2e-3 == pytest.approx(slope, rel=0.02, abs=0.2)


def run_forward(run: Any) -> Any:
    import torch

    with torch.enable_grad():
        return run()[0]


def test_what_is_compiled_is_the_whole_block(cpu: Any) -> None:
    cpu.configure("normal", 7)
    device = Compiling(cpu)
    made = {
        by: BLOCK.function(device, model="gpt2-medium", by=by, passes="both", batch=2, n=N, dtype="float32")
        for by in ("eager", "compiled")
    }
    assert len(device.compiled) == 1
    plain, compiled = made["eager"].call(), made["compiled"].call()
    assert all((one == other).all() for one, other in zip(plain, compiled, strict=True))
    assert made["compiled"].labels == {"by": "compiled"}


@pytest.mark.parametrize("part", OPERATION.axes["part"].values)
def test_a_part_is_right_and_counts_its_bytes(cpu: Any, part: str) -> None:
    cpu.configure("normal", 7)
    taken: list[Any] = []

    class Recorder(Device):
        def random(self, *args: Any, **options: Any) -> Any:
            taken.append(self.cpu.random(*args, **options))
            return taken[-1]

    device = Recorder(cpu, {"kind": "cpu"})
    workload = OPERATION.function(device, part=part, model="gpt2-medium", batch=2, n=N, dtype="float32")
    output = workload.call()
    judged(cpu, workload, output)
    assert workload.bytes == sum(each.nbytes for each in taken) + output.nbytes
    output += 1
    with pytest.raises(WrongResult):
        judged(cpu, workload, output)


def seen(name: str, ns: int | None) -> KernelSeen:
    return KernelSeen(name, ns=ns)


def test_shares_of_time_from_the_kernels(cpu: Any) -> None:
    workload = block(cpu, "gpt2-medium")
    kernels = [seen("nvjet_x", 60), seen("flash_fwd_kernel", 20), seen("elementwise_kernel", 15), seen("mine", 5)]
    found = {metric.name: metric.value for metric in workload.of_kernels(kernels)}
    assert found == {"product_time_share": pytest.approx(0.8), "unknown_time_share": pytest.approx(0.05)}
    assert workload.of_kernels([seen("nvjet_x", None)]) == []


def test_default_rows() -> None:
    gpu, cpu = list(BLOCK.cases("cuda")), list(BLOCK.cases("cpu"))
    assert {(case["model"], case["by"], case["passes"]) for case in gpu} == {
        (model, by, passes)
        for model in ("gpt2-medium", "llama3-8b") for by in ("eager", "compiled") for passes in ("forward", "both")
    }  # fmt: skip
    assert [case["by"] for case in cpu] == ["eager"] * 2
    assert len(list(BLOCK.cases("cuda", quick=True))) == 2
