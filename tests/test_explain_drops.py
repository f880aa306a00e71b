"""Causes of falls: the lecture's example on two GPUs, and the largest falls of the H200's curve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from builders import make_record, make_run

from gpubench.explain import drops
from gpubench.explain.fitted import Fitted
from gpubench.model import catalog
from gpubench.result import KernelSeen, Record, Samples
from gpubench.store.folder import read_run

SWEEP = Path(__file__).parents[1] / "results" / "reference" / "h200" / "matmul-sweep.json.gz"
A100 = {
    "kind": "cuda", "name": "NVIDIA A100-SXM4-40GB", "compute_capability": "8.0", "multiprocessors": 108,
    "memory_bytes": 42_285_268_992, "sm_mhz_max": 1410, "memory_mhz_max": 1215, "memory_bus_bits": 5120,
}  # fmt: skip
H200 = A100 | {
    "name": "NVIDIA H200", "compute_capability": "9.0", "multiprocessors": 132, "memory_bytes": 150_109_880_320,
    "sm_mhz_max": 1980, "memory_mhz_max": 3201, "memory_bus_bits": 6016,
}  # fmt: skip
AMPERE = "ampere_bf16_s16816gemm_bf16_256x128_ldg1_f2f_stages_64x3_nn"
"""The lecture's tile; one kernel for all sizes, as it assumes."""
NVJET = "nvjet_sm90_tst_256x128_64x4_1x4_h_bz_coopA_NNT"
NARROW = "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_nn_align1>"


def row(n: int, us: float, name: str, grid: list[int], **fields: Any) -> Record:
    return make_record(
        params={"n": n, "m": n, "k": n, "dtype": "bfloat16", "layout": "nn"}, time_ns=round(1000 * us),
        flops=2 * n**3, nbytes=6 * n * n, kernels=[KernelSeen(name, grid=grid)], **fields,
    )  # fmt: skip


def fall(before: Record, after: Record, device: dict[str, Any]) -> drops.Drop:
    (found,) = drops.of([before, after], Fitted(make_run([before, after], device=device)))
    return found


def test_the_lectures_cliff_on_an_a100_is_a_second_wave() -> None:
    assert catalog.lookup(A100) is not None
    found = fall(row(1792, 55, AMPERE, [98, 1, 1]), row(1793, 110, AMPERE, [120, 1, 1]), A100)
    assert found.cause == "waves"
    assert found.parts[0].words == (
        "1 → 2 waves on 108 multiprocessors (98 → 120 tiles of 256×128, 9 % → 44 % idle)"
    )  # fmt: skip
    assert [part.cause for part in found.worth_a_word] == ["waves", "tile waste"]
    assert found.predicted == pytest.approx(2, rel=0.1)


def test_the_same_cliff_on_an_h200_is_alignment_within_one_wave() -> None:
    found = fall(row(1792, 21.8, NVJET, [4, 28, 1]), row(1793, 110.6, NARROW, [120, 1, 1]), H200)
    assert found.cause == "alignment"
    assert found.parts[0].words == (
        "rows aligned to 256 B → 2 B: cuBLAS wgmma, fed by TMA → CUTLASS mma.sync, loads of 2 B"
    )  # fmt: skip
    waves = next(part for part in found.parts if part.cause == "waves")
    assert waves.times < 1
    assert waves.words == "1 wave on 132 multiprocessors (98 → 120 tiles of 256×128, 26 % → 9 % idle)"


def test_the_parts_and_what_is_left_over_multiply_to_the_fall() -> None:
    found = fall(row(1792, 21.8, NVJET, [4, 28, 1]), row(1793, 110.6, NARROW, [120, 1, 1]), H200)
    assert found.left_over is not None
    assert math.prod(part.times for part in found.parts) * found.left_over == pytest.approx(found.times)


def test_a_clock_that_fell_is_a_cause_of_its_own() -> None:
    slow = Samples([30_000] * 11, [1] * 11, [0] * 11, [1320.0] * 11)
    kernels = [row(1792, 20, NVJET, [4, 28, 1]), row(1800, 30, NVJET, [4, 30, 1], samples=slow)]
    found = fall(*kernels, H200)
    assert found.cause == "clock"
    assert found.parts[0].words == "SM clock 1980 → 1320 MHz"


def test_a_fall_that_the_model_does_not_see_has_no_cause() -> None:
    found = fall(row(1792, 20, NVJET, [4, 28, 1]), row(1800, 60, NVJET, [4, 30, 1]), H200)
    assert found.cause == "unknown"
    assert found.left_over == pytest.approx(found.times, rel=0.4)


def test_a_fall_between_kernels_of_nobody_has_no_cause() -> None:
    found = fall(row(1792, 20, "mine", [98, 1, 1]), row(1793, 60, "mine", [120, 1, 1]), H200)
    assert (found.cause, found.predicted, found.parts) == ("unknown", None, ())


@pytest.mark.parametrize(
    ("us", "half"), [(20.5, 0.003), (25.0, 0.3), (19.0, 0.003), (25.0, None)], ids=["small", "noisy", "rise", "few"]
)
def test_no_fall_where_it_is_small_or_in_doubt(us: float, half: float | None) -> None:
    rows = [row(1792, 20, NVJET, [4, 28, 1]), row(1793, us, NARROW, [120, 1, 1], half=half)]
    assert drops.of(rows, Fitted(make_run(rows, device=H200))) == []


@cache
def reference(aligned: bool) -> Sequence[drops.Drop]:
    run = read_run(SWEEP)
    fitted = Fitted(run)
    records = sorted(run.records, key=lambda record: int(record.params["n"]))
    return drops.of(drops.aligned(records, fitted) if aligned else records, fitted)


def ends(drop: drops.Drop) -> tuple[object, object]:
    return drop.before.params["n"], drop.after.params["n"]


def test_the_ten_largest_falls_of_the_h200_are_all_alignment() -> None:
    assert [ends(drop) for drop in reference(aligned=False)[:10]] == [
        (n, n + 1) for n in (2048, 3584, 1536, 3072, 2304, 4096, 2816, 4352, 2560, 3840)
    ]
    assert {drop.cause for drop in reference(aligned=False)[:10]} == {"alignment"}


def test_the_ten_largest_falls_among_the_aligned_sizes() -> None:
    """Checked by hand, see docs/explain.md."""
    assert {ends(drop): drop.cause for drop in reference(aligned=True)[:10]} == {
        (3840, 3848): "alignment",
        (2816, 2824): "alignment",
        (1536, 1544): "alignment",
        (1024, 1032): "waves",
        (3584, 3592): "alignment",
        (3072, 3080): "alignment",
        (2240, 2296): "waves",
        (3328, 3336): "unknown",
        (2304, 2312): "alignment",
        (768, 776): "unknown",
    }


def test_most_of_the_largest_falls_are_predicted_within_a_fifth() -> None:
    off = sorted(abs(math.log(drop.predicted / drop.times)) for drop in reference(aligned=False)[:10] if drop.predicted)
    assert len(off) == 10
    assert off[7] < math.log(1.2)
    assert off[-1] < math.log(1.5), "2816→2817: a kernel of 128×128 of which two share a multiprocessor"
