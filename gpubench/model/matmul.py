"""Matrix multiplication C[m,n] = A[m,k] · B[k,n]: its flops, its compulsory bytes, how its rows lie in memory, and what
a product is held against.

Storage is row-major. A layout is two letters, for A and for B: "n" is stored as written, "t" is stored transposed, so
that "nt" keeps B as [n,k]. C is always stored as [m,n].
"""

from __future__ import annotations

from math import gcd
from typing import Any, Literal, get_args

Layout = Literal["nn", "nt", "tn"]
LAYOUTS: tuple[str, ...] = get_args(Layout)

ALIGNMENT_CAP = 256
"""Bytes. No load instruction, cache line or DRAM burst asks for more; classes above would only split the best one."""
VECTOR = 16
"""Bytes that fast kernels move at a time, from a multiple of as many: a thread's load of 128 bits (PTX ISA, ld). TMA
too takes only tensors whose strides are multiples of 16 bytes (CUDA driver API, cuTensorMapEncodeTiled)."""


def flops(m: int, n: int, k: int) -> int:
    """2·m·n·k: one multiplication and one addition per term."""
    return 2 * m * n * k


def bytes(m: int, n: int, k: int, itemsize: int) -> int:
    """Compulsory bytes: A and B read once, C written once, all with elements of `itemsize` bytes."""
    return itemsize * (m * k + k * n + m * n)


def row_stride_bytes(m: int, n: int, k: int, layout: str, itemsize: int) -> dict[str, int]:
    """The distance in bytes between two rows of A, B and C as they are stored. ValueError for an unknown layout."""
    if layout not in LAYOUTS:
        raise ValueError(f"layout {layout!r} is not one of {', '.join(LAYOUTS)}")
    columns = {"A": m if layout[0] == "t" else k, "B": k if layout[1] == "t" else n, "C": n}
    return {operand: count * itemsize for operand, count in columns.items()}


def alignment(m: int, n: int, k: int, layout: str, itemsize: int) -> int:
    """The largest power of two, in bytes, that divides the row stride of A, of B and of C; at most ALIGNMENT_CAP.

    Every row of every operand starts on a multiple of it if the operands themselves do, which decides the widest load a
    kernel may use.
    """
    common = gcd(*row_stride_bytes(m, n, k, layout, itemsize).values())
    return min(common & -common, ALIGNMENT_CAP)


def alignments(m: int, n: int, k: int, layout: str, itemsize: int) -> dict[str, int]:
    """The class of each operand by itself: the largest power of two, in bytes, that divides its row stride; at most
    ALIGNMENT_CAP."""
    strides = row_stride_bytes(m, n, k, layout, itemsize)
    return {operand: min(stride & -stride, ALIGNMENT_CAP) for operand, stride in strides.items()}


def misaligned(m: int, n: int, k: int, layout: str, itemsize: int) -> tuple[str, ...]:
    """Which of A, B and C have rows that do not all begin on a multiple of VECTOR bytes."""
    classes = alignments(m, n, k, layout, itemsize)
    return tuple(operand for operand, aligned in classes.items() if aligned < VECTOR)


def operands(device: Any, m: int, n: int, k: int, dtype: str) -> tuple[Any, Any, Any]:
    """A and B of a device's random numbers, and C for their product; all stored as written."""
    a, b = device.random((m, k), dtype, seed=0), device.random((k, n), dtype, seed=1)
    return a, b, device.unwritten((m, n), dtype)


def product(a: Any, b: Any, c: Any, dtype: str) -> dict[str, Any]:
    """The product of two matrices of torch's into a third, as fields of a Workload; what runs it is not among them.

    `dtype` is what they are multiplied in: their own, or tf32.
    """
    (m, k), n = a.shape, b.shape[1]
    return {
        "output": c,
        "reference": lambda: reference(a, b),
        "reference_name": reference_name(dtype),
        "flops": flops(m, n, k),
        "bytes": bytes(m, n, k, c.element_size()),
        "reduction": k,
        "accumulate": "float64" if dtype == "float64" else "float32",
        "precision": "tf32" if dtype == "tf32" else "ieee",
        "dtype": dtype,
    }


def reference(a: Any, b: Any) -> Any:
    """The product of two matrices of torch's in float64, to hold a library's product of the same matrices against.

    For a narrower dtype that is one product: another program than the one judged, and far more precise. For float64 it
    would be the same program on the same numbers, and what that gets wrong would look right. So it is the sum of two
    products of other numbers (B rounded to float32, and what is left of B), both with their operands transposed and
    with rows, columns and terms in reverse order.
    """
    if a.element_size() < 8:
        return a.double() @ b.double()
    a, b = a.flip(0, 1), b.flip(0, 1)
    high = b.float().double()
    return (high.t() @ a.t() + (b - high).t() @ a.t()).t().flip(0, 1)


def reference_name(dtype: str) -> str:
    """What `reference` is for a product in this dtype, in a few words."""
    return "float64 matmul in two parts, reversed" if dtype == "float64" else "float64 matmul"
