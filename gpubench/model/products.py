"""Matrix products of torch's in every number format: operands, calls, references, and whether the library takes them.

The model loads no library: torch is handed in, by the suite that imports it. The right side is stored transposed, as
float8 demands, in every format alike.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpubench.errors import Skip, Unsupported
from gpubench.model import matmul, precision

DRAWN = {"tf32": "float32", "float8_e4m3": "bfloat16", "int8": "float32"}
"""What the numbers of a format are drawn in, where that is not the format itself."""
INTEGER_SCALE = 32
"""Normal numbers times this are cut to int8: nearly four standard deviations fit."""
NO_REFUSAL = ("out of memory", "allocate memory", "not enough memory")
"""Words of errors that are about room, not about the operation."""
REFUSALS = (
    "CUBLAS_STATUS_NOT_SUPPORTED", "CUBLAS_STATUS_INVALID_VALUE",
    "operation not supported", "architecture mismatch", "invalid value",
)  # fmt: skip
"""What cuBLAS and cuSPARSELt, in torch's words, answer to a format or a shape that they do not take; any other error of
CUDA is one."""
CUSPARSELT, CUTLASS = "cusparselt", "cutlass"
SPARSE = (CUSPARSELT, CUTLASS)
"""The libraries with products of 2:4 sparse weights that torch can call."""

Call = Callable[[], object]


@dataclass(frozen=True)
class Products:
    """The products of one device."""

    torch: Any
    device: Any

    def product(self, m: int, k: int, n: int, dtype: str, fast: bool = True) -> dict[str, Any]:
        """The product of m × k and k × n, once tried, as fields of a Workload."""
        flops = matmul.flops(m, n, k)
        labels = self.labels(dtype, flops)
        a, b = self.drawn(m, k, dtype, 0), self.drawn(n, k, dtype, 1)
        run, c = self.dense(a, b, dtype, fast)
        if dtype != "tf32":  # that a CPU has none is said where the mode is set
            self.tried(run, precision.broken_rules(dtype, m, k, n))
        return self._checked(a, b, dtype) | {
            "run": run, "output": c, "flops": flops, "bytes": a.nbytes + b.nbytes + c.nbytes, "labels": labels,
        }  # fmt: skip

    def weighted(self, m: int, k: int, n: int, dtype: str, weights: str) -> dict[str, Any]:
        """The same of m × k weights of which half are zero: "dense", or compressed for one of SPARSE; or "unpruned",
        dense and without zeros. Flops are of the terms that are multiplied, bytes of what is kept."""
        flops = matmul.flops(m, n, k)
        labels = self.labels(dtype, flops)
        compressed = weights in SPARSE
        if compressed and self.device.kind != "cuda":
            raise Unsupported("torch has products of 2:4 sparse weights for CUDA devices only")
        a, b = self.drawn(m, k, dtype, 0, pruned=weights != "unpruned"), self.drawn(n, k, dtype, 1)
        if compressed:
            run, labels = self.tried(lambda: self.sparse(a, b, dtype, weights), [])
            output, flops, share = None, flops // 2, precision.kept_share(precision.BITS[dtype])
        else:
            run, output = self.dense(a, b, dtype)
            share = 1
        self.tried(run, [] if compressed else precision.broken_rules(dtype, m, k, n))
        made = m * n * (4 if dtype == "int8" else 2)
        return self._checked(a, b, dtype) | {
            "run": run, "output": output, "flops": flops, "bytes": round(share * a.nbytes) + b.nbytes + made,
            "labels": labels,
        }  # fmt: skip

    def _checked(self, a: Any, b: Any, dtype: str) -> dict[str, Any]:
        """What the product of a and the transpose of b is held against, and how exact it must be."""
        return {
            "reference": lambda: reference(a, b),
            "reference_name": matmul.reference_name(dtype),
            "reduction": a.shape[1],
            "accumulate": {"int8": "exact", "float64": "float64"}.get(dtype, "float32"),
            "precision": "tf32" if dtype == "tf32" else "ieee",
            "dtype": dtype,
        }

    def drawn(self, rows: int, columns: int, dtype: str, seed: int, pruned: bool = False) -> Any:
        """A matrix of normal numbers; with `pruned` the two smaller of each four along a row are zero."""
        x = self.device.random((rows, columns), DRAWN.get(dtype, dtype), seed=seed)
        if pruned:
            fours = x.view(-1, 4)
            fours.scatter_(1, fours.abs().argsort(1)[:, :2], 0.0)
        if dtype == "int8":
            return x.mul_(INTEGER_SCALE).clamp_(-127, 127).to(self.torch.int8)
        return x.to(self.torch.float8_e4m3fn) if dtype == "float8_e4m3" else x

    def dense(self, a: Any, b: Any, dtype: str, fast: bool = True) -> tuple[Call, Any]:
        """The product of a and the transpose of b, as a call, and the matrix that it writes.

        int_mm sums into int32, scaled_mm with unit scales into bfloat16; `fast` lets the latter keep its sums short.
        """
        torch, made = self.torch, self._made(dtype) or a.dtype
        c = torch.empty((a.shape[0], b.shape[0]), dtype=made, device=a.device)
        if dtype == "int8":
            return lambda: torch._int_mm(a, b.t(), out=c), c
        if dtype == "float8_e4m3":
            unit = torch.ones((), device=a.device)
            return lambda: torch._scaled_mm(
                a, b.t(), scale_a=unit, scale_b=unit, out_dtype=made, use_fast_accum=fast, out=c
            ), c
        return lambda: torch.mm(a, b.t(), out=c), c

    def sparse(self, a: Any, b: Any, dtype: str, library: str) -> tuple[Call, dict[str, str]]:
        """The product of 2:4 sparse a, compressed here, and the transpose of b, as a call that returns it, and
        labels. cuSPARSELt's algorithm is the one that its own search finds."""
        torch, made = self.torch, self._made(dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that these functions may change
            if library == CUTLASS:
                left = torch.sparse.SparseSemiStructuredTensorCUTLASS.from_dense(a)
                packed, meta = left.packed, left.meta
                return lambda: torch._sparse_semi_structured_mm(packed, meta, b.t(), out_dtype=made), {}
            packed = torch.sparse.SparseSemiStructuredTensorCUSPARSELT.from_dense(a).packed
            best = torch._cslt_sparse_mm_search(packed, b.t(), out_dtype=made)
        return lambda: torch._cslt_sparse_mm(packed, b.t(), out_dtype=made, alg_id=best), {"algorithm": str(best)}

    def _made(self, dtype: str) -> Any:
        """The dtype of a product whose operands have another one; None for any other."""
        return {"int8": self.torch.int32, "float8_e4m3": self.torch.bfloat16}.get(dtype)

    def tried(self, call: Callable[[], Any], rules: list[str]) -> Any:
        """What one call returns, before anything is timed. Unsupported where the library refuses it, with the `rules`
        that it breaks or the library's own words; any other error goes on."""
        try:
            made = call()
            self.device.synchronize()
        except (NotImplementedError, RuntimeError, ValueError) as error:
            words = " ".join(str(error).split("\n\n")[0].split())
            if isinstance(error, self.torch.OutOfMemoryError) or any(cause in words for cause in NO_REFUSAL):
                raise
            if "CUDA error" in words and not any(status in words for status in REFUSALS):
                raise
            raise Unsupported("; ".join(rules) or f"refused: {words[:200]}") from error
        return made

    def labels(self, dtype: str, flops: int) -> dict[str, str]:
        """Labels of a product: whether a CPU emulates its format. Skip where that would take very long."""
        if not precision.emulated(dtype, self.device.facts()):
            return {}
        if flops > precision.EMULATED_FLOPS:
            raise Skip(f"this CPU has no instructions for {dtype} and would take very long; 512x512x512 is the most")
        return {"arithmetic": "emulated"}


def reference(a: Any, b: Any) -> Any:
    """The product of a and the transpose of b in float64."""
    a, b = (x.float() if x.element_size() == 1 else x for x in (a, b))
    return matmul.reference(a, b.t())
