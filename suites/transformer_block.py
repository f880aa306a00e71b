"""Transformer block: which share of its flops, and which of its time, are matrix products?

A block of a language model, forward alone and with its gradient, one operation after the other and compiled. Nearly all
flops are products, but the rest waits for memory. The parts by themselves say which of them memory limits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpubench import TIMES, Axis, Effect, Estimate, Finding, Metric, RowsMissing, Suite, Workload, exactly
from gpubench.model import kernel_names, transformer
from gpubench.model import matmul as work
from gpubench.model.transformer import MODELS, Shape

suite = Suite(__file__)

DTYPES = ["bfloat16", "float16", "float32"]
EPS = 1e-5
"""Added to the variance by either normalisation, as the published models do."""
BASE = 10000.0
"""Of the angles of rotary positions."""
Weights = dict[str, Any]


@suite.benchmark(
    model=Axis(
        ["gpt2-medium", "llama3-8b"], cpu=["gpt2-small"], quick=["gpt2-medium"], quick_cpu=["llama-tiny"],
        choices=list(MODELS),
    ),
    by=Axis(["eager", "compiled"], cpu=["eager"], choices=["eager", "compiled"]),
    passes=Axis(["forward", "both"], quick=["forward"]),
    batch=Axis([8], cpu=[1]),
    n=Axis([1024], cpu=[64]),
    dtype=Axis(["bfloat16"], cpu=["float32"], choices=DTYPES),
)  # fmt: skip
def block(device: Any, model: str, by: str, passes: str, batch: int, n: int, dtype: str) -> Workload:
    """A block over batch × n positions, forward alone, or both passes: the gradients of input and weights too.

    Causal attention by torch's flash kernel on a GPU, by the one torch chooses on a CPU. The rate counts products only.
    """
    import torch

    shape = MODELS[model]
    weights = _weights(device, shape, dtype)
    x, upstream = (device.random((batch, n, shape.width), dtype, seed=seed) for seed in (0, 1))
    tables = _rotations(x, n, shape) if shape.style == "llama" else {}
    names = (*weights, *tables)
    whole = _forward(shape, _library_attention, names)
    called = device.compile(whole) if by == "compiled" else whole
    backward = passes == "both"
    learnt = [tensor.requires_grad_(backward) for tensor in (x, *weights.values())]

    def run() -> Any:
        with _flash(device.kind):
            out = called(*learnt, *tables.values())
            return (out.detach(), *torch.autograd.grad(out, learnt, upstream)) if backward else out

    def reference() -> Any:
        exact = [tensor.detach().double().requires_grad_(backward) for tensor in learnt]
        out = _forward(shape, _plain_attention, names)(*exact, *(table.double() for table in tables.values()))
        return (out.detach(), *torch.autograd.grad(out, exact, upstream.double())) if backward else out

    times = 3 if backward else 1
    moved = (shape.parameters + 2 * x.numel()) * (2 if backward else 1)
    products, other = (times * count(shape, batch, n) for count in (transformer.product_flops, transformer.other_flops))
    return Workload(
        run=run,
        output=None,
        reference=reference,
        reference_name="float64 block" + (" and its gradient" if backward else ""),
        flops=products,
        bytes=x.element_size() * moved,
        reduction=max(shape.hidden, batch * n if backward else n),
        dtype=dtype,
        primary="time",
        labels={"by": by},
        prediction={
            "product_flops": products,
            "other_flops": other,
            "product_flop_share": transformer.product_share(shape, batch, n),
        },
        of_kernels=_time_shares,
    )


def _weights(device: Any, shape: Shape, dtype: str) -> Weights:
    """Every weight by its name. Matrices are scaled so that what comes out of them is as large as what went in."""
    made: Weights = {}
    for place, (name, (rows, columns)) in enumerate(shape.matrices().items()):
        made[name] = device.random((rows, columns), dtype, seed=2 + place).mul_(columns**-0.5)
        if shape.style == "gpt2":
            made[f"{name}_bias"] = device.random(rows, dtype, seed=10 + place).mul_(0.1)
    for place, name in enumerate(("attention_norm", "mlp_norm")):
        made[name] = device.random(shape.width, dtype, seed=20 + place).mul_(0.1).add_(1)
        if shape.style == "gpt2":
            made[f"{name}_bias"] = device.random(shape.width, dtype, seed=22 + place).mul_(0.1)
    return made


def _forward(shape: Shape, attend: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    """The block as a function of its input and of the weights of these names, in this order."""
    layer = _gpt2 if shape.style == "gpt2" else _llama
    heads, kv_heads = shape.heads, shape.kv_heads

    def forward(x: Any, *weights: Any) -> Any:
        return layer(x, dict(zip(names, weights, strict=True)), heads, kv_heads, attend)

    return forward


def _gpt2(x: Any, w: Weights, heads: int, kv_heads: int, attend: Callable[..., Any]) -> Any:
    """LayerNorm, attention, LayerNorm, GELU between two products; biases everywhere."""
    import torch.nn.functional as F

    width = (x.shape[-1],)
    inner = F.layer_norm(x, width, w["attention_norm"], w["attention_norm_bias"], EPS)
    q, k, v = (_heads(part, heads) for part in F.linear(inner, w["qkv"], w["qkv_bias"]).chunk(3, dim=-1))
    x = x + F.linear(_joined(attend(q, k, v)), w["out"], w["out_bias"])
    inner = F.layer_norm(x, width, w["mlp_norm"], w["mlp_norm_bias"], EPS)
    inner = F.gelu(F.linear(inner, w["up"], w["up_bias"]), approximate="tanh")
    return x + F.linear(inner, w["down"], w["down_bias"])


def _llama(x: Any, w: Weights, heads: int, kv_heads: int, attend: Callable[..., Any]) -> Any:
    """RMSNorm, attention with rotary positions and fewer keys than queries, RMSNorm, SwiGLU; no biases."""
    import torch.nn.functional as F

    width = (x.shape[-1],)
    head = x.shape[-1] // heads
    inner = F.rms_norm(x, width, w["attention_norm"], EPS)
    sizes = [heads * head, kv_heads * head, kv_heads * head]
    q, k, v = F.linear(inner, w["qkv"]).split(sizes, dim=-1)
    q, k = (_rotated(part, w["cos"], w["sin"]) for part in (_heads(q, heads), _heads(k, kv_heads)))
    v = _heads(v, kv_heads)
    x = x + F.linear(_joined(attend(q, k, v)), w["out"])
    inner = F.rms_norm(x, width, w["mlp_norm"], EPS)
    return x + F.linear(F.silu(F.linear(inner, w["gate"])) * F.linear(inner, w["up"]), w["down"])


def _heads(x: Any, heads: int) -> Any:
    """batch × n × width as batch × heads × n × head."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def _joined(x: Any) -> Any:
    """The way back."""
    return x.transpose(1, 2).flatten(-2)


def _rotations(x: Any, n: int, shape: Shape) -> Weights:
    """The cosines and sines of rotary positions (Su and others, 2021), n × half a head, in the dtype of x."""
    import torch

    half = shape.head // 2
    speeds = BASE ** (torch.arange(half, device=x.device, dtype=torch.float64) / -half)
    angles = torch.arange(n, device=x.device, dtype=torch.float64)[:, None] * speeds
    return {"cos": angles.cos().to(x.dtype), "sin": angles.sin().to(x.dtype)}


def _rotated(x: Any, cos: Any, sin: Any) -> Any:
    """Each pair of an element of the first half of a head and one of the second, turned by its angle."""
    import torch

    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def _library_attention(q: Any, k: Any, v: Any) -> Any:
    """torch's causal attention; the queries of a group share their keys and values."""
    import torch.nn.functional as F

    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])


def _plain_attention(q: Any, k: Any, v: Any) -> Any:
    """The same by its definition, for the reference."""
    import torch

    group = q.shape[1] // k.shape[1]
    k, v = (each.repeat_interleave(group, dim=1) for each in (k, v))
    future = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool, device=q.device).triu(1)
    scores = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).masked_fill(future, float("-inf"))
    return scores.softmax(-1) @ v


def _flash(kind: str) -> Any:
    """Holds torch to its flash kernel on a GPU: the choice varies by version, and with it the kinds of kernel."""
    import contextlib

    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel(SDPBackend.FLASH_ATTENTION) if kind == "cuda" else contextlib.nullcontext()


def _time_shares(kernels: Sequence[Any]) -> list[Metric]:
    """The shares of kinds of kernels in the time that all take; attention's flops are products, but for the softmax."""
    shares = kernel_names.time_shares((each.name, each.kind, each.ns) for each in kernels)
    if shares is None:
        return []
    products = shares.get("matmul", 0.0) + shares.get("attention", 0.0)
    return [
        Metric("product_time_share", products, "1", "higher"),
        Metric("unknown_time_share", shares.get("unknown", 0.0), "1", "lower"),
    ]


PARTS = ["up", "scores", "gelu", "layer-norm", "residual", "decode"]


@suite.benchmark(
    part=Axis(PARTS),
    model=Axis(
        ["llama3-8b"], cpu=["gpt2-small"], quick=["gpt2-medium"], quick_cpu=["llama-tiny"], choices=list(MODELS)
    ),
    batch=Axis([8], cpu=[1]),
    n=Axis([1024], cpu=[64]),
    dtype=Axis(["bfloat16"], cpu=["float32"], choices=DTYPES),
)
def operation(device: Any, part: str, model: str, batch: int, n: int, dtype: str) -> Workload:
    """One operation of a block by itself: a product of its MLP, the scores of all heads, GELU, LayerNorm, the residual
    sum; and the product for one position alone, as in decoding."""
    import torch
    import torch.nn.functional as F

    shape, positions = MODELS[model], batch * n
    width, hidden = shape.width, shape.hidden

    def tensor(*sizes: int, seed: int = 0) -> Any:
        return device.random(sizes, dtype, seed=seed)

    if part in ("up", "decode"):
        rows = positions if part == "up" else 1
        x, w = tensor(rows, width), tensor(hidden, width, seed=1)
        return _part(
            x, w, run=F.linear, reference=lambda x, w: work.reference(x, w.t()), dtype=dtype, reduction=width,
            flops=work.flops(rows, hidden, width), moved=rows * width + hidden * width + rows * hidden,
            of_kernels=_time_shares,
        )  # fmt: skip
    if part == "scores":
        q, k = (tensor(batch * shape.heads, n, shape.head, seed=seed) for seed in (0, 1))
        return _part(
            q, k, run=lambda q, k: torch.bmm(q, k.transpose(1, 2)), reference=lambda q, k: q @ k.transpose(1, 2),
            dtype=dtype, reduction=shape.head, flops=batch * shape.heads * work.flops(n, n, shape.head),
            moved=2 * q.numel() + batch * shape.heads * n * n, of_kernels=_time_shares,
        )  # fmt: skip
    x = tensor(positions, hidden if part == "gelu" else width)
    if part == "gelu":
        run = lambda x: F.gelu(x, approximate="tanh")  # noqa: E731
        return _part(x, run=run, reference=run, dtype=dtype, flops=transformer.GELU * x.numel(), moved=2 * x.numel())
    if part == "layer-norm":
        run = lambda x: F.layer_norm(x, (width,), eps=EPS)  # noqa: E731
        each = transformer.LAYER_NORM - 2  # neither scale nor shift
        return _part(
            x, run=run, reference=run, dtype=dtype, flops=each * x.numel(), moved=2 * x.numel(), reduction=width
        )
    y = tensor(positions, width, seed=1)
    return _part(x, y, run=torch.add, reference=torch.add, dtype=dtype, flops=x.numel(), moved=3 * x.numel())


def _part(*inputs: Any, run: Any, reference: Any, dtype: str, flops: int, moved: int, **more: Any) -> Workload:
    """The workload of one operation, which moves so many elements at least."""
    return Workload(
        run=lambda: run(*inputs),
        output=None,
        reference=lambda: reference(*(tensor.double() for tensor in inputs)),
        reference_name="float64 operation",
        flops=flops,
        bytes=moved * inputs[0].element_size(),
        primary="time",
        dtype=dtype,
        **more,
    )


# The lecture's claims.

PRODUCTS, GAP = 0.97, 10
"""The least share of products in the flops, and of the rest in time over that in flops. In 2020 Ivanov and others
measured 99.8 % and a hundred times of BERT."""
ALONE = 0.05
"""Of a product alone all time is the product's, but for what clears its workspace."""
OLD_RIDGE = 8.73e12 / 480e9
"""FLOP/B of a Tesla K80: both chips' peak in float32 at the boost clock over their bandwidth (NVIDIA's board
specification BD-07317)."""
NEAR = 0.5
"""A row that one roof holds reaches half of it at least, or something else does."""


def share(row: Any) -> Estimate:
    """The share of products and attention in the time of a row's kernels. Those of unknown kind may be either."""
    known, unknown = row.metric("product_time_share"), row.metric("unknown_time_share")
    if known is None or unknown is None:
        raise RowsMissing(f"the kernels of {row.id} have no times")
    return Estimate(known.value, known.value, min(known.value + unknown.value, 1.0))


def rest(row: Any) -> Estimate:
    """The share that the other kernels take."""
    found = share(row)
    return Estimate(1 - found.value, 1 - found.high, 1 - found.low)


def gap(row: Any) -> Estimate:
    """The share of what is no product in the time of a block, over its share in the flops."""
    return rest(row).times(1 / (1 - row.prediction["product_flop_share"]))


@suite.claim("C26")
def the_rest_is_slow(view: Any) -> Finding:
    """Nearly all flops of a block are products, and the few others take many times their share of its time."""
    view.needs_gpu("which kernels a call ran, and for how long, is seen on a GPU only")
    wanted = {"model": "gpt2-medium", "passes": "both"}
    eager, compiled = view.one("block", by="eager", **wanted), view.maybe("block", by="compiled", **wanted)
    alone = view.one("operation", part="up")
    shown = [] if compiled is None else [Effect("the same, compiled", gap(compiled), TIMES)]
    return Finding(
        effects=(
            Effect("share of products in the flops", exactly(eager.prediction["product_flop_share"]), "1", PRODUCTS),
            Effect("share of the rest in time over that in flops", gap(eager), TIMES, GAP),
            Effect("share of the rest in time", rest(eager)),
            *shown,
        ),
        controls=(Effect("share of the rest in the time of a product alone", rest(alone), "1", 0, ALONE),),
        prediction=eager.prediction,
    )


@suite.claim("C28")
def sides_change(view: Any) -> Finding:
    """Operations that a K80's arithmetic would have limited wait for memory here."""
    view.needs_gpu("the ridge of an old GPU is no measure for a CPU")
    copy, products = view.ceiling("DRAM copy").value, view.ceiling("bfloat16 matmul").value
    ridge = products / copy
    rows = {row.params["part"]: row for row in view.rows("operation")}
    intensity = {part: row.work.flops / row.work.bytes for part, row in rows.items()}
    if missing := [part for part in PARTS if part not in rows]:
        raise RowsMissing(f"no row operation part={missing[0]}")
    between = [part for part, found in intensity.items() if OLD_RIDGE <= found < ridge]
    held = [view.median(rows[part], per="bytes") for part in between]
    of_memory = [Estimate(*(1e9 / each / copy for each in (ns.value, ns.high, ns.low))) for ns in held]
    large = view.median(rows["up"], per="flops")
    of_units = Estimate(*(1e9 / each / products for each in (large.value, large.high, large.low)))
    left = [part for part in ("layer-norm", "residual", "decode") if intensity[part] < OLD_RIDGE]
    return Finding(
        effects=(
            Effect("operations that change sides", exactly(len(between)), "1", 1),
            *(
                Effect(f"share of the memory's roof that {part} reaches", found, "1", NEAR)
                for part, found in zip(between, of_memory, strict=True)
            ),
        ),
        controls=(
            Effect("share of the products' roof that the large product reaches", of_units, "1", NEAR),
            Effect("operations that memory limited before, too", exactly(len(left)), "1", 3, 3),
        ),
        prediction={"ridge": ridge, "ridge_of_a_k80": OLD_RIDGE, "intensity": intensity},
    )
