"""Number formats: what fewer bits and 2:4 sparsity promise, which shapes libraries refuse, what a CPU can do itself.

Formats are named as dtypes are, "tf32" for float32 whose products are rounded to TF32. `facts` are the facts of a
device as a run file holds them; what is not known of them is left out, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpubench.model import catalog
from gpubench.model import matmul as work

BITS: Mapping[str, int] = {
    "float64": 64, "float32": 32, "tf32": 32, "float16": 16, "bfloat16": 16, "float8_e4m3": 8, "int8": 8,
}  # fmt: skip
"""What an element takes in memory."""

NATIVE: Mapping[str, frozenset[str]] = {
    "float16": frozenset({"avx512_fp16", "amx_fp16", "fp16"}),
    "bfloat16": frozenset({"avx512_bf16", "amx_bf16", "bf16", "sve_bf16"}),
    "int8": frozenset({"avx_vnni", "avx512_vnni", "amx_int8", "dotprod", "i8mm"}),
    "float8_e4m3": frozenset(),
}
"""Instructions of a CPU that multiply and add in a format, by the names of its facts; float32 and float64 every CPU
has."""
EMULATED_FLOPS = work.flops(512, 512, 512)
"""The most that is asked of a CPU in a format it emulates: a quarter of a second on two cores that convert every
element on its way (pytorch#146508 saw a hundredfold)."""


def rate(dtype: str, facts: Mapping[str, Any], matrix: bool = True) -> dict[str, Any]:
    """What a multiprocessor does in a format, in FLOP a clock: its matrix units, or without `matrix` the others, and
    how many times what its matrix units do in TF32. Empty where not known."""
    known, chip = catalog.architectures().get(str(facts.get("compute_capability"))), catalog.lookup(facts)
    if known is None:
        return {}
    rates = known.rates if chip is None else chip.rates
    unit = catalog.unit_of(dtype, rates, matrix)
    if unit is None or (chip is None and unit in known.varies):
        return {}
    found: dict[str, Any] = {"flop_per_clock": rates[unit], "source": known.source}
    if "tensor_tf32" in rates:
        found["over_tf32"] = rates[unit] / rates["tensor_tf32"]
    return found


def kept_share(bits: int) -> float:
    """Bytes of a 2:4 sparse matrix over those of the dense one: of four elements two are kept, with two bits each that
    say which (PTX ISA, "Sparse matrix storage"): 9/16 with 16 bits, 5/8 with 8."""
    return (2 * bits + 4) / (4 * bits)


def sparse_gain(m: int, k: int, n: int, dtype: str, out_bits: int, facts: Mapping[str, Any]) -> dict[str, Any]:
    """How many times as fast a product of 2:4 sparse weights m × k and k × n may be as the dense one: `most` 2 where
    arithmetic is the limit, less where memory is, by the roofline of the fastest units and of the memory's pins.
    Empty where either is not known."""
    flops, bytes_ = catalog.compute_bound(facts, dtype), catalog.memory_bound(facts)
    if flops is None or bytes_ is None:
        return {}
    weights, others = m * k * BITS[dtype] / 8, (k * n * BITS[dtype] + m * n * out_bits) / 8

    def seconds(share: float, kept: float) -> float:
        return max(share * work.flops(m, n, k) / flops.value, (kept * weights + others) / bytes_.value)

    gain = seconds(1, 1) / seconds(0.5, kept_share(BITS[dtype]))
    return {"most": gain, "source": f"roofline of {flops.source} and {bytes_.source}"}


def broken_rules(dtype: str, m: int, k: int, n: int) -> list[str]:
    """The documented rules of torch's narrow products on a GPU that a product of m × k and k × n breaks, in words.

    Versions differ, so this explains a refusal and decides none. Rules of torch._scaled_mm and torch._int_mm: ATen,
    native/cuda/Blas.cpp.
    """
    step = {"float8_e4m3": 16, "int8": 8}.get(dtype)
    if step is None:
        return []
    off = " and ".join(f"{name} = {size}" for name, size in (("k", k), ("n", n)) if size % step)
    broken = [f"{dtype} products take k and n in multiples of {step}, not {off}"] if off else []
    return broken + ([f"int8 products take m above 16, not m = {m}"] if dtype == "int8" and m <= 16 else [])


def emulated(dtype: str, facts: Mapping[str, Any]) -> bool:
    """Whether a CPU must convert a format to another one to multiply in it; False on a GPU, and where the CPU does not
    tell its instructions."""
    isa = facts.get("isa")
    return facts.get("kind") == "cpu" and isa is not None and dtype in NATIVE and not NATIVE[dtype] & set(isa)
