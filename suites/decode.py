"""Decode: what does a language model pay for one token at a time?

A product with few rows costs the time of reading its weights, so that many sequences at once are nearly free, and
narrow weights save what they save in bytes. Attention to the cache of keys and values reads it once; a few long
sequences fill a GPU only if each is dealt out to many blocks.
"""

from __future__ import annotations

from typing import Any

from gpubench import Axis, Suite, Unsupported, Workload
from gpubench.model import catalog, decode
from gpubench.model import matmul as work

suite = Suite(__file__)

ATTEND, MERGE = suite.kernel("attend"), suite.kernel("merge_splits")
HEAD = 128
"""Numbers of a key, as in decode.cu, and threads of a block there."""
PRODUCT_DTYPES = ["bfloat16", "float16", "float32", "float8_e4m3"]


@suite.benchmark(
    rows=Axis([2**power for power in range(10)], cpu=[1, 4, 16, 64], quick=[1, 16, 64, 512], quick_cpu=[1, 16]),
    k=Axis([8192], cpu=[2048]),
    n=Axis([32768], cpu=[8192]),
    dtype=Axis(["bfloat16", "float8_e4m3"], cpu=["float32"], choices=PRODUCT_DTYPES),
)
def matvec(device: Any, rows: int, k: int, n: int, dtype: str) -> Workload:
    """Rows of activations times a weight matrix stored as n × k, by the library: a row for each sequence.

    float8 is scaled_mm with unit scales and fast accumulation, of float8 activations and weights into bfloat16.
    """
    import torch

    eight_bits = dtype == "float8_e4m3"
    if eight_bits and (device.kind != "cuda" or torch.cuda.get_device_capability() < (8, 9)):
        raise Unsupported("float8 matrix products need compute capability 8.9 or newer")
    stored = "bfloat16" if eight_bits else dtype
    x, weights = device.random((rows, k), stored, seed=0), device.random((n, k), stored, seed=1)
    out = device.unwritten((rows, n), stored)
    if eight_bits:
        x, weights = (tensor.to(torch.float8_e4m3fn) for tensor in (x, weights))
        unit = torch.ones((), device=x.device)

        def run() -> Any:
            return torch._scaled_mm(
                x, weights.t(), scale_a=unit, scale_b=unit, out_dtype=torch.bfloat16, use_fast_accum=True, out=out
            )
    else:

        def run() -> Any:
            return torch.mm(x, weights.t(), out=out)

    itemsize = weights.element_size()
    moved = decode.matvec_bytes(rows, n, k, itemsize, x.element_size(), out.element_size())
    flops = work.flops(rows, n, k)
    return Workload(
        run=run,
        output=out,
        reference=lambda: _product(x, weights),
        reference_name="float64 matmul",
        flops=flops,
        bytes=moved,
        reduction=k,
        dtype=dtype,
        level="DRAM",
        primary="time",
        prediction={"intensity": flops / moved, **_knee(device, dtype, itemsize)},
    )


def _product(x: Any, weights: Any) -> Any:
    """In float64; float8, which has no arithmetic, by way of float32."""
    narrow = x.element_size() == 1
    return work.reference(x.float() if narrow else x, (weights.float() if narrow else weights).t())


def _knee(device: Any, dtype: str, itemsize: int) -> dict[str, float]:
    """By the datasheet, the rows up to which the time is that of the weights; nothing where there is no datasheet."""
    chip = catalog.lookup(device.facts())
    peak = None if chip is None else chip.datasheet(dtype)
    if chip is None or peak is None:
        return {}
    return {"flat_up_to_rows": decode.rows_at_ridge(peak.value / chip.bandwidth, itemsize)}


BACKENDS = {"flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "cudnn": "CUDNN_ATTENTION", "math": "MATH"}
"""Names of torch's ways to do attention. Flash deals a long context out to several blocks, efficient does not."""
NO_KERNEL = "No available kernel", "No viable backend"
"""What torch says where the way it is held to cannot do an attention."""
CACHE_DTYPES = ["bfloat16", "float16", "float32"]


@suite.benchmark(
    by=Axis(["flash", "efficient"], cpu=["flash"], choices=list(BACKENDS)),
    batch=Axis([1, 32], cpu=[1], quick=[1]),
    kv_heads=Axis([8], cpu=[2]),
    group=Axis([1, 8], quick=[8]),
    context=Axis([4096, 32768], cpu=[4096], quick=[32768], quick_cpu=[1024]),
    dtype=Axis(["bfloat16"], cpu=["float32"], choices=CACHE_DTYPES),
)
def kv_cache(device: Any, by: str, batch: int, kv_heads: int, group: int, context: int, dtype: str) -> Workload:
    """torch's attention of one position a sequence to its cache; `group` heads of queries share keys and values.

    The queries of a group are given as positions of one head, so that nothing of the cache is repeated.
    """
    import warnings

    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    shape = (batch, kv_heads, context, HEAD)
    q = device.random((batch, kv_heads, group, HEAD), dtype, seed=0)
    k, v = (device.random(shape, dtype, seed=seed) for seed in (1, 2))
    backend = getattr(SDPBackend, BACKENDS[by])

    def run() -> Any:
        with sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # which say why each of the others is not taken
            run()
    except RuntimeError as error:
        if any(words in str(error) for words in NO_KERNEL):
            raise Unsupported(f"torch has no {by} attention for this here") from error
        raise
    blocks = batch * kv_heads
    units = device.facts().get("multiprocessors")
    return Workload(
        run=run,
        output=None,
        reference=lambda: decode.reference(q, k, v),
        reference_name="float64 attention by its definition",
        flops=decode.attention_flops(batch, kv_heads * group, context, HEAD),
        bytes=decode.cache_bytes(batch, kv_heads, context, HEAD, q.element_size()) + 2 * q.nbytes,
        reduction=context,
        dtype=dtype,
        level="DRAM",
        primary="bytes",
        prediction={"blocks_without_splits": blocks}
        | ({"busy_without_splits": decode.busy_share(blocks, units)} if units else {}),
    )


POSITIONS = 2**19
"""Keys of all heads together: at 8 heads a context of 65536, 256 MiB of keys and values."""


@suite.benchmark(
    splits=Axis([1, 2, 4, 8, 16, 32, 64], cpu=[1], quick=[1, 16]),
    heads=Axis([8, 512], cpu=[8], quick=[8]),
    positions=Axis([POSITIONS], cpu=[2**12]),
)
def split_cache(device: Any, splits: int, heads: int, positions: int) -> Workload:
    """The same by a kernel of our own in bfloat16, whose blocks share a head's keys: few heads and many, so that the
    cache of all of them is the same size."""
    import numpy as np

    context = max(1, positions // heads)
    q = device.random((1, heads, 1, HEAD), "bfloat16", seed=0)
    k, v = (device.random((1, heads, context, HEAD), "bfloat16", seed=seed) for seed in (1, 2))
    out, blocks = device.unwritten((1, heads, 1, HEAD), "float32"), heads * splits
    parts, totals = device.unwritten((blocks, HEAD), "float32"), device.unwritten((blocks, 2), "float32")
    units = device.facts().get("multiprocessors")
    return Workload(
        run=(
            ATTEND(q, k, v, parts, totals, np.int64(context), np.int32(splits), grid=blocks, block=HEAD),
            MERGE(parts, totals, out, np.int32(splits), grid=heads, block=HEAD),
        ),
        output=out,
        reference=lambda: decode.reference(q, k, v),
        reference_name="float64 attention by its definition",
        flops=decode.attention_flops(1, heads, context, HEAD),
        bytes=decode.cache_bytes(1, heads, context, HEAD, q.element_size()) + q.nbytes + out.nbytes,
        reduction=context,
        dtype="bfloat16",
        level="DRAM",
        primary="bytes",
        labels={"control": "a block for every unit without splits"} if units and heads >= 2 * units else {},
        prediction={"blocks": blocks} | ({"busy": decode.busy_share(blocks, units)} if units else {}),
    )
