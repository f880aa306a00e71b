"""The times of matrix products on a GPU that is not here: by the model of `gpubench.model.matmul_time`.

The model needs a kernel, and which one a library would take is not known without asking it. A reference run of that
GPU, or of one of the same architecture, shows which kernels the library has for each alignment, and its rows give the
model's constants; of those kernels the one that is predicted to be fastest stands for the library's choice. Without
such a run there are a few usual tiles, and round constants.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpubench.errors import UsageError
from gpubench.explain.fitted import Fitted
from gpubench.finding import Estimate, exactly
from gpubench.model import catalog, launches, matmul, matmul_fit, matmul_time, precision
from gpubench.model.catalog import Chip
from gpubench.model.kernel_facts import Facts, facts
from gpubench.model.linear import Product
from gpubench.model.matmul_time import BEGIN, Constants, Machine
from gpubench.nearest import did_you_mean
from gpubench.result import USUAL, Run
from gpubench.store.folder import read_run

TILES = ((256, 128), (128, 256), (128, 128), (128, 64), (64, 64))
"""Tiles that every library has (CUTLASS: "Efficient GEMM"; NVIDIA: "Matrix Multiplication Background User's Guide")."""
HALVES = ("bfloat16", "float16")
"""The dtypes whose usual kernels are known here. Both have the same kernels at the same rate."""
ROUGH = 2.0
"""The factor by which a time of misaligned rows may be off where no kernel of theirs was seen on the architecture: how
many bytes its threads load at a time, and how well, differs from one to the next."""
RUN = "matmul-sweep"
"""The reference run that is looked into: it has products of every alignment."""


@dataclass(frozen=True)
class Predictor:
    """A GPU, the kernels its library has by the bytes that rows are aligned to (at most VECTOR), and constants."""

    device: str
    dtype: str
    on: Machine
    kernels: Mapping[int, tuple[Facts, ...]]
    constants: Constants
    how: str
    doubt: float = 1.0
    """The factor by which times of misaligned rows may be off for want of a reference run."""

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return precision.BITS[self.dtype] // 8

    def times(self, products: Iterable[Product]) -> dict[Product, Estimate]:
        """The predicted time of each product in ns, without an interval; none where no kernel takes its rows."""
        found = {product: self._time(product) for product in products}
        return {product: exactly(ns) for product, ns in found.items() if ns is not None}

    def _time(self, product: Product) -> float | None:
        m, n, k, layout = product
        aligned = min(matmul.VECTOR, product.alignment(self.itemsize))
        each = (
            matmul_time.Product(m, n, k, self.itemsize, layout, kernel, launches.planned(kernel, m, n, units))
            for units in [self.on.multiprocessors]
            for kernel in self.kernels.get(aligned, ())
        )
        return min((matmul_time.time(launch, self.on, self.constants).ns for launch in each), default=None)


def predictor(word: str, dtype: str, reference: Path | None) -> Predictor:
    """What predicts the GPU that a word means: `h200`, `a100 pcie`, or its whole name; `reference` is the folder of
    reference runs. UsageError where it is not in the catalogue, or too little is known of it."""
    chip = _chip(word)
    run = _nearest(chip, reference)
    if run is not None:
        device = run.device if _is(chip, run) else _facts(chip)
        seen, on = _seen(run, dtype), matmul_time.machine(device, dtype)
        if seen is not None and on is not None:
            kernels, constants, rows = seen
            kernels = _usual(chip) | kernels if dtype in HALVES else kernels
            how = f"by the model of explain, its kernels and constants those of {rows} rows of {run.device['name']}"
            return Predictor(chip.devices[0], dtype, on, kernels, constants, how)
    on = matmul_time.machine(_facts(chip), dtype)
    if on is None or dtype not in HALVES:
        raise UsageError(f"too little is known of {dtype} on {chip.name} to predict its products", "measure it there")
    how = "by tiles, waves and alignment alone, with round constants: there is no reference run of its architecture"
    return Predictor(chip.devices[0], dtype, on, _usual(chip), BEGIN, how, ROUGH)


def _chip(word: str) -> Chip:
    """The first GPU of the catalogue whose name begins with these words."""
    gpus = [chip for chip in catalog.chips() if chip.kind == "gpu"]
    asked = _words(word)
    for chip in gpus:
        if any(asked == _words(device) for device in chip.devices):
            return chip
    for chip in gpus:
        if asked and _words(chip.name)[: len(asked)] == asked:
            return chip
    families = dict.fromkeys(_words(chip.name)[0] for chip in gpus)
    raise UsageError(
        f"no GPU {word!r} in the catalogue{did_you_mean(word, families)}", f"such as {', '.join(families)}"
    )


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", name.lower())


def _is(chip: Chip, run: Run) -> bool:
    return run.device.get("name") in chip.devices


def _nearest(chip: Chip, reference: Path | None) -> Run | None:
    """The reference run of this GPU, else one of its architecture."""
    paths = [] if reference is None else sorted(reference.glob(f"*/{RUN}.json*"))
    runs = [run for run in map(read_run, paths) if run.device.get("compute_capability") == chip.capability]
    return next((run for run in runs if _is(chip, run)), next(iter(runs), None))


def _seen(run: Run, dtype: str) -> tuple[dict[int, tuple[Facts, ...]], Constants, int] | None:
    """The kernels of a run's products in a dtype by alignment, the constants fitted to its rows, and their number; None
    where it has too few. Products of a run are in one dtype: it is a sweep."""
    fitted = Fitted(run)
    same = HALVES if dtype in HALVES else (dtype,)
    rows = [
        record for record in run.records
        if record.id in fitted.products and record.conditions == USUAL and record.params.get("dtype") in same
    ]  # fmt: skip
    if not rows:
        return None
    constants, count = fitted.constants(rows[0])
    if count < matmul_fit.LEAST:
        return None
    kernels: dict[int, dict[str, Facts]] = {}
    for record in rows:
        product = fitted.products[record.id]
        kernels.setdefault(min(matmul.VECTOR, product.alignment), {})[product.facts.name] = product.facts
    return {aligned: tuple(each.values()) for aligned, each in kernels.items()}, constants, count


def _facts(chip: Chip) -> dict[str, object]:
    """What a device of that kind would report."""
    return {
        "kind": "cuda", "name": chip.devices[0], "compute_capability": chip.capability,
        "multiprocessors": chip.multiprocessors, "sm_mhz_max": chip.clock_mhz("tensor_bf16"),
        "memory_mhz_max": chip.memory_mhz, "memory_bus_bits": chip.memory_bits,
    }  # fmt: skip


def _usual(chip: Chip) -> dict[int, tuple[Facts, ...]]:
    """Kernels for 16-bit elements as cuBLAS has them from Turing on, by the bytes that rows are aligned to."""

    def named(form: str) -> tuple[Facts, ...]:
        return tuple(facts(form.format(f"{rows}x{columns}")) for rows, columns in TILES)

    ampere = "cutlass_80_tensorop_bf16_s16816gemm_bf16_{{}}_32x3_nn_align{}"
    hopper = "nvjet_sm90_tst_{}_64x4_1x2_h_bz_NNT"
    return {
        16: named(hopper if chip.capability == "9.0" else ampere.format(8)),
        8: named(ampere.format(4)),
        4: named(ampere.format(2)),
        2: named("cutlass_75_tensorop_bf16_s1688gemm_bf16_{}_nn_align1"),
    }
