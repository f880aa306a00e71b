"""Padding: why can a larger matrix product take less time?

Rows that begin on multiples of 16 bytes can be copied by the widest loads and by TMA; of rows that do not, a library
must load elements singly, with another kernel. One odd dimension is enough. So a vocabulary of 50257 words, which is
padded to 50304 = 786 · 64, does more arithmetic in less time, if anything in the product has rows of that length.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gpubench import TIMES, Axis, Effect, Finding, Skip, Suite, Workload
from gpubench.model import matmul as work
from gpubench.model import transformer

suite = Suite(__file__)

WORDS = 50257
"""GPT-2's vocabulary: 256 bytes, 50 000 merges and the end of a text; odd, and padded by nanoGPT to PADDED."""
PADDED, NEXT = 50304, 50368
"""The next multiple of 64, and the one after it."""
HEAD = 64
"""Numbers in a head of GPT-2's attention."""
DTYPES = ["float32", "float16", "bfloat16"]
DTYPE = Axis(["bfloat16"], cpu=["float32"], choices=DTYPES)


def multiply(
    device: Any, m: int, n: int, k: int, layout: str, dtype: str, prediction: Mapping[str, Any], control: str = ""
) -> Workload:
    """The library's product of an m × k and a k × n matrix, stored as the layout says. It is labelled by the alignment
    of the rows, and by the operands with rows that do not begin on multiples of 16 bytes."""
    import torch

    a = device.random((k, m), dtype, seed=0).t() if layout[0] == "t" else device.random((m, k), dtype, seed=0)
    b = device.random((n, k), dtype, seed=1).t() if layout[1] == "t" else device.random((k, n), dtype, seed=1)
    c = device.unwritten((m, n), dtype)
    shape = (m, n, k, layout, c.element_size())
    misaligned = work.misaligned(*shape)
    return Workload(
        run=lambda: torch.mm(a, b, out=c),
        labels={
            "alignment": f"{work.alignment(*shape)} B",
            "misaligned": " ".join(misaligned) or "none",
            **({"control": control} if control else {}),
        },
        prediction={"alignment_bytes": work.alignments(*shape), "misaligned": list(misaligned), **prediction},
        **work.product(a, b, c, dtype),
    )


@suite.benchmark(
    which=Axis(["m", "n", "k"]),
    off=Axis([0, 1, 2, 4, 8, 16, 32, 64], cpu=[0, 1], quick=[0, 1, 8], minimum=0),
    n=Axis([4096], cpu=[512]),
    layout=Axis(["nn"], choices=["nn", "nt", "tn"]),
    dtype=DTYPE,
)
def operand(device: Any, which: str, off: int, n: int, layout: str, dtype: str) -> Workload:
    """A square product with one dimension shortened, which is the length of other rows in each layout.

    In nn k is the length of the rows of A, n of those of B and C, m of none; in nt k is that of A and B, n of C; in tn
    m is that of A.
    """
    if off >= n:
        raise Skip(f"{n} less {off} leaves no matrix")
    m, columns, k = (n - off if which == name else n for name in "mnk")
    control = "m is the length of no row" if which == "m" and layout != "tn" else ""
    return multiply(device, m, columns, k, layout, dtype, {}, control)


PRODUCTS = ["forward", "input-gradient", "weight-gradient"]


@suite.benchmark(
    product=Axis(PRODUCTS),
    vocab=Axis([50256, WORDS, 50258, 50264, PADDED, NEXT], cpu=[WORDS, PADDED, NEXT], quick=[WORDS, PADDED, NEXT]),
    tokens=Axis([8192], cpu=[64]),
    width=Axis([768], cpu=[128]),
    dtype=DTYPE,
)
def vocabulary(device: Any, product: str, vocab: int, tokens: int, width: int, dtype: str) -> Workload:
    """The output layer of a language model: Y = X Wᵀ, and its gradients dX = dY W and dW = dYᵀ X.

    X is tokens × width, W vocab × width, Y tokens × vocab. The flops are those of the shape as it is; `useful_share`
    is what of them the 50257 words need.
    """
    m, n, k, layout = {
        "forward": (tokens, vocab, width, "nt"),
        "input-gradient": (tokens, width, vocab, "nn"),
        "weight-gradient": (vocab, width, tokens, "tn"),
    }[product]
    return multiply(device, m, n, k, layout, dtype, {"useful_share": WORDS / vocab} if vocab >= WORDS else {})


@suite.benchmark(
    product=Axis(["up", "down"]),
    d_ff=Axis([10922, 10928, 10944, 11008], cpu=[10922, 10944], quick=[10922, 10944]),
    tokens=Axis([4096], cpu=[64]),
    width=Axis([4096], cpu=[512]),
    dtype=DTYPE,
)
def d_ff(device: Any, product: str, d_ff: int, tokens: int, width: int, dtype: str) -> Workload:
    """The widening and the narrowing layer of an MLP: 10922 is 8/3 of a width of 4096, 11008 what LLaMA made of it.

    Weights are stored as torch does, output × input, so that d_ff is the length of the rows of C, or of both A and B.
    """
    m, n, k = {"up": (tokens, d_ff, width), "down": (tokens, width, d_ff)}[product]
    return multiply(device, m, n, k, "nt", dtype, {})


# A training step


INITIAL = 0.02
"""Standard deviation of GPT-2's weights before training."""
CHECKED = "0.up"
"""Every element of its gradient is a sum over all tokens; the embedding's is nearly 0 for words that do not occur."""
MODES: Mapping[str, dict[str, bool] | None] = {
    "eager": None,
    "compiled": {},
    "compiled-unpadded": {"shape_padding": False, "comprehensive_padding": False},
}
"""How the forward and the backward pass are run: torch.compile's inductor with these options, or not compiled. It pads
matrix products by itself where that is faster (the first option), and the rows of what it stores (the second)."""


def shapes(block: transformer.Shape, vocab: int, sequence: int, layers: int) -> dict[str, tuple[int, ...]]:
    """The weights of GPT-2 by name. The embedding of tokens is the output layer as well; no biases, as in nanoGPT."""
    width = block.width
    inner = {"attention.norm": (width,), "mlp.norm": (width,), **block.matrices()}
    blocks = {f"{layer}.{name}": shape for layer in range(layers) for name, shape in inner.items()}
    return {"tokens": (vocab, width), "places": (sequence, width), **blocks, "norm": (width,)}


def loss(weights: Mapping[str, Any], ids: Any) -> Any:
    """The cross entropy of GPT-2's predictions: ids are batch × (sequence + 1), each predicted from those before it."""
    from torch.nn import functional as F

    def norm(x: Any, name: str) -> Any:
        return F.layer_norm(x, x.shape[-1:], weights[name])

    x = F.embedding(ids[:, :-1], weights["tokens"]) + weights["places"]
    layers = sum(name.endswith("mlp.norm") for name in weights)
    for layer in range(layers):
        joined = F.linear(norm(x, f"{layer}.attention.norm"), weights[f"{layer}.qkv"])
        q, k, v = joined.unflatten(-1, (3, -1, HEAD)).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + F.linear(seen, weights[f"{layer}.out"])
        wide = F.gelu(F.linear(norm(x, f"{layer}.mlp.norm"), weights[f"{layer}.up"]), approximate="tanh")
        x = x + F.linear(wide, weights[f"{layer}.down"])
    logits = F.linear(norm(x, "norm"), weights["tokens"])
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def step_flops(block: transformer.Shape, vocab: int, batch: int, sequence: int, layers: int) -> int:
    """Flops of the matrix products of a step: those of the forward pass, and twice as many for the gradients of both
    operands."""
    blocks = layers * transformer.product_flops(block, batch, sequence)
    return 3 * (blocks + work.flops(batch * sequence, vocab, block.width))


@suite.benchmark(
    mode=Axis(["eager"], choices=list(MODES)),
    vocab=Axis([WORDS, PADDED]),
    batch=Axis([8], cpu=[1]),
    sequence=Axis([1024], cpu=[64]),
    layers=Axis([12], cpu=[1]),
    width=Axis([768], cpu=[128]),
    dtype=Axis(["bfloat16"], cpu=["float32"], choices=["float32", "bfloat16"]),
)
def train_step(
    device: Any, mode: str, vocab: int, batch: int, sequence: int, layers: int, width: int, dtype: str
) -> Workload:
    """A training step of GPT-2 (124 M weights): forward, backward, fused AdamW.

    The weights are float32; bfloat16 is what autocast computes the products in. The learning rate is 0, so that each
    step has the same work on the same numbers. What is checked is the optimizer's first moment of the weights CHECKED
    after one step: a tenth of a gradient that came back through every layer.
    """
    import torch

    if width % HEAD:
        raise Skip(f"a width of {width} is no whole number of heads of {HEAD}")
    heads = width // HEAD
    block = transformer.Shape("gpt2", width, heads, heads, 4 * width)
    named = shapes(block, vocab, sequence, layers)
    weights = {name: device.random(shape, "float32", seed=seed) for seed, (name, shape) in enumerate(named.items())}
    for name, weight in weights.items():
        weight.mul_(INITIAL).add_(1.0 if name.endswith("norm") else 0.0).requires_grad_()
    ids = device.random((batch, sequence + 1), "float32", seed=len(named)).abs_().mul_(WORDS).long() % min(vocab, WORDS)
    optimizer = torch.optim.AdamW(weights.values(), lr=0.0, fused=True)

    def forward(weights: Mapping[str, Any]) -> Any:
        with torch.autocast(device.kind, torch.bfloat16, enabled=dtype == "bfloat16"):
            return loss(weights, ids)

    flops = step_flops(block, vocab, batch, sequence, layers)
    options = MODES[mode]
    compiled = None if options is None else device.compile(forward, options=options)

    def run() -> Any:
        gradients = torch.autograd.grad((compiled or forward)(weights), list(weights.values()))
        for weight, gradient in zip(weights.values(), gradients, strict=True):
            weight.grad = gradient
        optimizer.step()
        return optimizer.state[weights[CHECKED]]["exp_avg"]

    def reference() -> Any:
        wider = torch.float32 if dtype == "bfloat16" else torch.float64
        precise = {name: weight.detach().to(wider).requires_grad_() for name, weight in weights.items()}
        (gradient,) = torch.autograd.grad(loss(precise, ids), precise[CHECKED])
        return (1 - optimizer.defaults["betas"][0]) * gradient

    return Workload(
        run=run,
        output=None,
        reference=reference,
        reference_name="float32 gradient" if dtype == "bfloat16" else "float64 gradient",
        flops=flops,
        # autocast rounds what each layer adds; in float32 it is the sums over all tokens that round
        reduction=layers if dtype == "bfloat16" else batch * sequence,
        accumulate=dtype,
        dtype=dtype,
        primary="time",
        prediction={"output_layer_flop_share": 3 * work.flops(batch * sequence, vocab, width) / flops},
        metrics=None if compiled is None else compiled.metrics,
    )


# The lecture's claim


FASTER = 0.97
"""The share of the time that the padded products may take: more than a clock or the order of rows moves it."""
ALIKE = 1.1
"""What two multiples of 64 may differ by: their kernels are the same, their last tiles are not."""


@suite.claim("C56")
def padded_is_faster(view: Any) -> Finding:
    """The three products of the output layer take less time with 50304 words than with 50257, which is less work."""
    odd, padded, wider = (layer(view, vocab) for vocab in (WORDS, PADDED, NEXT))
    each = zip(PRODUCTS, odd, padded, strict=True)
    steps = [(mode, [view.maybe("train-step", mode=mode, vocab=vocab) for vocab in (WORDS, PADDED)]) for mode in MODES]
    return Finding(
        effects=(
            Effect("time of all three at 50257 over 50304", view.ratio(odd, padded), TIMES, 1 / FASTER),
            *(Effect(f"{name} alone", view.ratio(over, under), TIMES) for name, over, under in each),
            *(Effect(f"training step, {mode}", view.ratio(*pair), TIMES) for mode, pair in steps if None not in pair),
        ),
        controls=(
            Effect("50368 over 50304, by time per flop", view.ratio(wider, padded, per="flops"), "1", 1 / ALIKE, ALIKE),
        ),
        prediction={
            "more_flops_at_50304": PADDED / WORDS - 1,
            "misaligned_at_50257": {row.params["product"]: row.prediction.get("misaligned") for row in odd},
        },
        note="; ".join(
            f"{name}: {kernel(over)} at 50257, {kernel(under)} at 50304"
            for name, over, under in zip(PRODUCTS, odd, padded, strict=True)
            if over.kernels and under.kernels
        ),
    )


def layer(view: Any, vocab: int) -> list[Any]:
    """The rows of the three products with so many words, in one dtype and size."""
    first = view.rows("vocabulary")[0].params
    same = {name: first[name] for name in ("tokens", "width", "dtype")}
    return [view.one("vocabulary", vocab=vocab, product=product, **same) for product in PRODUCTS]


def kernel(row: Any) -> str:
    """The kernel that a row spends most of its time in, by its longest word: a template's first argument has the name
    of what is computed."""
    longest = max(row.kernels, key=lambda seen: seen.ns or 0)
    return max(re.findall(r"\w+", longest.name), key=len)
