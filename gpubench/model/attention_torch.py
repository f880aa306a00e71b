"""Attention in torch: by its definition step by step, by tiles, by each of torch's own kernels; and exactly.

The model loads no library: torch is handed in, by the suite that imports it. Q is batch × heads × n × d, K and V are
batch × kv_heads × n × d; queries of as many heads as there are for one of K share it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from gpubench.errors import Skip, Unsupported
from gpubench.model import attention_traffic as traffic
from gpubench.model import precision
from gpubench.model.attention_traffic import NAIVE, Shape

BACKENDS = {
    "flash": "FLASH_ATTENTION", "cudnn": "CUDNN_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "math": "MATH",
}  # fmt: skip
"""torch's own ways, by the name of the back-end that each is pinned to."""
OPERATORS = {
    "_scaled_dot_product_flash_attention": "flash",
    "_scaled_dot_product_flash_attention_for_cpu": "flash for CPU",
    "_scaled_dot_product_cudnn_attention": "cudnn",
    "_scaled_dot_product_efficient_attention": "efficient",
    "_scaled_dot_product_fused_attention_overrideable": "another device's",
}
"""What torch's dispatcher is seen to run, and the way that it is. None of them: the definition, "math"."""
NAMES = {"flash": r"^(?!.*cudnn).*flash_(fwd|bwd)", "cudnn": r"cudnn", "efficient": r"fmha"}
"""What the names of each way's kernels have in them: pytorch_flash::flash_fwd_kernel, cudnn_generated_…_sdpa_…,
fmha_cutlassF_…"""
REFUSALS = ("No available kernel", "No viable backend", "Invalid backend", "cuDNN Frontend error")
"""Words of a back-end that does not take these operands, or that this torch was built without."""
TILE = 64
"""Keys of a tile of the pass by tiles."""
RAISED = 1.0
"""Added to every query and to the last key: its scores rise by √d, and hold about half of the weight of a thousand
keys."""
ROUNDINGS = 3
"""Of each pass to the operands' dtype, beside that of what comes out: scores, scaled ones and weights, and the same of
gradients."""
CHUNK = 2**26
"""Scores of the reference that are there at once, of which there are a few copies: half a GB of float64 each."""

Attention = Callable[[Any, Any, Any], Any]


def drawn(device: Any, shape: Shape, dtype: str, last: bool = False) -> tuple[Any, Any, Any]:
    """Q, K and V of normal numbers; with `last` the last key is the greatest of nearly every query."""
    sizes = shape.heads, shape.kv_heads, shape.kv_heads
    q, k, v = (device.random((shape.batch, h, shape.n, shape.d), dtype, seed=i) for i, h in enumerate(sizes))
    if last:
        q.add_(RAISED)
        k[:, :, -1].add_(RAISED)
    return q, k, v


def measured(
    torch: Any, device: Any, by: str, shape: Shape, dtype: str, backward: bool = False, last: bool = False
) -> dict[str, Any]:
    """Attention of drawn numbers by one way, the forward pass or both, as fields of a Workload. Skip where the device
    has not the memory, or a CPU would take very long; Unsupported as `chosen` says."""
    itemsize, flops = precision.BITS[dtype] // 8, traffic.flops(shape, backward)
    needed, free = traffic.needed(by, shape, itemsize, backward), device.free_bytes()
    if free is not None and needed > free:
        raise Skip(f"needs {needed / 1e9:.3g} GB, free {free / 1e9:.3g} GB")
    emulated = precision.emulated(dtype, device.facts())
    if emulated and flops > precision.EMULATED_FLOPS:
        raise Skip(f"this CPU has no instructions for {dtype} and would take very long")
    q, k, v = (operand.requires_grad_(backward) for operand in drawn(device, shape, dtype, last))
    upstream = device.random(q.shape, dtype, seed=3) if backward else None
    attend, ran = chosen(torch, by, q, k, v, shape.causal)

    def run() -> Any:
        out = attend(q, k, v)
        return (out.detach(), *torch.autograd.grad(out, (q, k, v), upstream)) if backward else out

    return {
        "run": run,
        "output": None,
        **held(torch, (q, k, v), shape, dtype, upstream),
        "labels": {"ran": ran} | ({"arithmetic": "emulated"} if emulated else {}),
        "prediction": traffic.moved(by, shape, itemsize, backward),
    }


def held(torch: Any, operands: tuple[Any, Any, Any], shape: Shape, dtype: str, upstream: Any = None) -> dict[str, Any]:
    """What attention of these operands is held against, whoever computes it, as fields of a Workload: float64, how far
    it may be off, flops and compulsory bytes; with `upstream`, the gradient that arrives at O, those of both passes."""
    itemsize, backward = precision.BITS[dtype] // 8, upstream is not None
    return {
        "reference": lambda: exact(torch, *operands, shape.causal, upstream),
        "reference_name": "float64 attention" + (" and its gradient" if backward else ""),
        "flops": traffic.flops(shape, backward),
        "bytes": traffic.compulsory_bytes(shape, itemsize, backward),
        # In sixteen bits it is scores, weights and their gradients that are rounded; sums are in float32.
        "reduction": shape.n if itemsize == 4 else ROUNDINGS * (2 if backward else 1),
        "accumulate": dtype,
        "dtype": dtype,
    }


def by_steps(torch: Any, way: str, q: Any, causal: bool) -> Attention:
    """One of NAIVE, as a function of Q, K and V: torch's eager operations, each in the operands' own dtype. `q` says
    where the mask lies and how large it is. Without causality the mask of naive-masked hides nothing."""
    n, d = q.shape[-2:]
    masked = causal or way == "naive-masked"
    mask = torch.ones((n, n), dtype=torch.bool, device=q.device).triu(1 if causal else n) if masked else None
    scale = d**-0.5

    def attend(q: Any, k: Any, v: Any) -> Any:
        shared = q.reshape(q.shape[0], k.shape[1], -1, d)  # the queries that share a head of K follow each other
        scores = (shared * scale) @ k.mT if way == "naive" else (shared @ k.mT) * scale
        if mask is not None:
            scores = scores.unflatten(2, (-1, n)).masked_fill(mask, -torch.inf).flatten(2, 3)
        return (scores.softmax(-1) @ v).reshape(q.shape)

    return attend


def pinned(torch: Any, way: str, causal: bool) -> Attention:
    """torch's scaled_dot_product_attention held to one of BACKENDS, as a function of Q, K and V."""
    backend = getattr(torch.nn.attention.SDPBackend, BACKENDS[way])

    def attend(q: Any, k: Any, v: Any) -> Any:
        with torch.nn.attention.sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1]
            )

    return attend


def dispatched(torch: Any, call: Callable[[], object]) -> str:
    """The way that torch's dispatcher ran in a call, which is made once, by the name of the operator."""
    names: list[str] = []

    class Listening(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(str(operator))
            return operator(*args, **(kwargs or {}))

    with Listening():
        call()
    operators = {name.split(".")[1] for name in names if name.startswith("aten.")}
    return next((way for name, way in OPERATORS.items() if name in operators), "math")


def chosen(torch: Any, way: str, q: Any, k: Any, v: Any, causal: bool) -> tuple[Attention, str]:
    """A way for these operands, as a function of them, and the name of what runs, read back for torch's own; "tiled" is
    `tiled`, which knows no mask.

    Unsupported where a back-end refuses, with its own reasons, or where torch ran another one than was asked for.
    """
    if way in NAIVE:
        return by_steps(torch, way, q, causal), "eager steps"
    if way == "tiled":
        return tiled(torch), "eager steps"
    attend = pinned(torch, way, causal)
    with warnings.catch_warnings(record=True) as said:  # a back-end says there why it cannot
        warnings.simplefilter("always")
        try:
            ran = dispatched(torch, lambda: attend(q, k, v))
        except RuntimeError as error:
            if not any(words in str(error) for words in REFUSALS):
                raise
            reasons = [str(each.message).split("(Triggered")[0].strip() for each in said]
            own = [words for words in reasons if not words.endswith(("because:", "runtime disabled."))]
            raise Unsupported(f"{way}: {'; '.join(own)[:300] or str(error).splitlines()[0]}") from error
    if ran.removesuffix(" for CPU") != way:
        raise Unsupported(f"asked for {way}, torch ran {ran}")
    return attend, ran


def named(way: str, name: str) -> bool:
    """Whether a kernel is one of a way's, by its name."""
    return re.search(NAMES[way], name, re.IGNORECASE) is not None


def tiled(torch: Any, rescale: bool = True) -> Attention:
    """The forward pass by tiles of keys, with a running maximum and sum (Dao, FlashAttention-2, 2023, algorithm 1), as
    a function of Q, K and V: products of the operands summed in float32, weights rounded to their dtype, as a kernel
    does it. Without `rescale` what came before a larger maximum keeps its old weights, which is wrong."""

    def attend(q: Any, k: Any, v: Any) -> Any:
        out = torch.zeros(q.shape, dtype=torch.float32, device=q.device)
        total = out[..., :1].clone()
        most = torch.full_like(total, -torch.inf)
        for keys, values in zip(k.split(TILE, -2), v.split(TILE, -2), strict=True):
            scores = (q.float() @ keys.float().mT) * q.shape[-1] ** -0.5
            greatest = torch.maximum(most, scores.amax(-1, keepdim=True))
            factor = (most - greatest).exp() if rescale else 1.0
            weights = (scores - greatest).exp()
            total = total * factor + weights.sum(-1, keepdim=True)
            out = out * factor + weights.to(q.dtype).float() @ values.float()
            most = greatest
        return (out / total).to(q.dtype)

    return attend


def exact(torch: Any, q: Any, k: Any, v: Any, causal: bool, upstream: Any = None) -> Any:
    """Attention in float64 by its definition; with `upstream`, the gradient that arrives at O, the tuple of O and the
    gradients of Q, K and V. Some heads and some queries at a time, CHUNK scores together."""
    (batch, heads, n, d), kv_heads = q.shape, k.shape[1]
    scale, rows = d**-0.5, heads // kv_heads * n

    def flat(x: Any) -> Any:
        return x.detach().reshape(batch * kv_heads, -1, d)

    q, k, v = flat(q), flat(k), flat(v)
    out, dq = (torch.empty(q.shape, dtype=torch.float64, device=q.device) for _ in range(2))
    dk, dv = (torch.zeros(k.shape, dtype=torch.float64, device=q.device) for _ in range(2))
    places = torch.arange(n, device=q.device)
    place_of = places.repeat(heads // kv_heads)[:, None]
    each, block = max(1, CHUNK // (rows * n)), max(1, min(rows, CHUNK // n))
    for first in range(0, batch * kv_heads, each):
        here = slice(first, first + each)
        keys, values = k[here].double(), v[here].double()
        for start in range(0, rows, block):
            some = here, slice(start, start + block)
            queries = q[some].double()
            weights = queries @ keys.mT * scale
            if causal:
                weights.masked_fill_(places > place_of[some[1]], -torch.inf)
            weights = weights.softmax(-1)
            out[some] = weights @ values
            if upstream is not None:
                arriving = flat(upstream)[some].double()
                dv[here] += weights.mT @ arriving
                slope = arriving @ values.mT - (arriving * out[some]).sum(-1, keepdim=True)
                slope.mul_(weights).mul_(scale)
                dq[some] = slope @ keys
                dk[here] += slope.mT @ queries
    out, dq = (x.reshape(batch, heads, n, d) for x in (out, dq))
    return out if upstream is None else (out, dq, *(x.reshape(batch, kv_heads, n, d) for x in (dk, dv)))


def error(made: Any, right: Any) -> float:
    """‖made - right‖ / ‖right‖ in float64."""
    right = right.double()
    return float((made.double() - right).norm() / right.norm())


def kept_bytes(torch: Any, call: Callable[[], Any], owned: Iterable[Any]) -> int:
    """Bytes that autograd keeps between a forward pass, which is made once, and its gradient, beside what is `owned`,
    the operands."""
    there = {x.untyped_storage().data_ptr() for x in owned}
    kept: dict[int, int] = {}

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in there:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor.detach()  # a result that knew the step that keeps it would never be given back

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = call()
    del out  # alive until here, so that no two of them had the same address
    return sum(kept.values())
