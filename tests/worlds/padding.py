"""The world of the padded vocabulary."""

from __future__ import annotations

from gpubench.result import KernelSeen
from worlds.made import Row, World

ODD = "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_nt_align1>(Params)"
EVEN = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT"
PRODUCTS = {"forward": (6607, 868), "input-gradient": (1800, 900), "weight-gradient": (2000, 950)}
"""µs at 50257 and at 50304, the first of an H200."""


def product(name: str, vocab: int) -> str:
    return f"vocabulary product={name} vocab={vocab} tokens=8192 width=768 dtype=bfloat16"


def seen(name: str) -> dict[str, object]:
    """The kernel of a product, and a shorter one beside it."""
    return {"kernels": [KernelSeen("splitKreduce_kernel", ns=9), KernelSeen(name, ns=800)]}


HEAD = [
    Row(product(name, vocab), us, fields={"flops": 2 * 8192 * 768 * vocab, **seen(kernel)})
    for name, (odd, even) in PRODUCTS.items()
    for vocab, us, kernel in ((50257, odd, ODD), (50304, even, EVEN), (50368, even, EVEN))
]
STEP = [
    Row(f"train-step mode={mode} vocab={vocab}", us)
    for mode, odd, even in (("eager", 30000, 24000), ("compiled-unpadded", 26000, 20000))
    for vocab, us in ((50257, odd), (50304, even))
]
ALL_ALIKE = {row.words: PRODUCTS[row.words.split()[1].removeprefix("product=")][1] for row in HEAD}

WORLDS = [
    World("C56", HEAD + STEP, ALL_ALIKE, {product("forward", 50368): 2000}, cpu=True),
]
