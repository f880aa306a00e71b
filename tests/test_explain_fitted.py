"""The products of a run: which rows are one, by their parameters, their flops and their kernels; and names counted."""

from __future__ import annotations

from typing import Any

import pytest
from builders import make_record, make_run
from worlds.matmul import DEVICE, NARROW, curve

from gpubench.explain.fitted import Fitted, orders, product, recognised, shape
from gpubench.model.matmul_time import BEGIN
from gpubench.result import KernelSeen, Param, Record

FLOPS = 2 * 1793**3
SEEN = KernelSeen(NARROW, grid=[120, 1, 1])


def row(params: dict[str, Param] | None = None, flops: int = FLOPS, **fields: Any) -> Record:
    given = {"n": 1793, "dtype": "bfloat16"} if params is None else params
    return make_record(params=given, flops=flops, **{"kernels": [SEEN], **fields})


@pytest.mark.parametrize(
    ("params", "flops", "expected"),
    [
        ({"m": 3, "n": 4, "k": 5}, 120, (3, 4, 5)),
        ({"n": 4}, 128, (4, 4, 4)),
        ({"n": 4, "k": 5}, 160, (4, 4, 5)),
        ({"shape": "3x4x5"}, 120, (3, 4, 5)),
        ({"shape": "3x4"}, 120, None),
        ({"shape": "3x4xfive"}, 120, None),
        ({"n": 4}, 129, None),
        ({"n": 0}, 0, None),
        ({"mib": 4}, 0, None),
    ],
)
def test_the_shape_of_a_row(params: dict[str, Param], flops: int, expected: tuple[int, ...] | None) -> None:
    assert shape(make_record(params=params, flops=flops)) == expected


def test_a_product_has_the_kernels_of_one() -> None:
    found = product(row(), 132)
    assert found is not None
    assert (found.m, found.cover.tiles, found.itemsize) == (1793, 120, 2)
    assert product(row(), None) is None
    assert product(row(kernels=[]), 132) is None
    assert product(row(params={"n": 1793, "dtype": "complex64"}), 132) is None


def test_constants_are_fitted_where_there_are_rows_enough() -> None:
    records = [each.record("matmul-sweep") for each in curve()]
    fitted = Fitted(make_run(records, device=DEVICE))
    constants, rows = fitted.constants(records[0])
    assert rows == len(records)
    assert constants.start == pytest.approx(4000, rel=0.1)
    few = Fitted(make_run(records[:5], device=DEVICE))
    assert few.constants(records[0]) == (BEGIN, 0)
    assert few.time(records[0]) is not None


def test_doubtful_rows_are_not_fitted_to() -> None:
    records = [each.record("matmul-sweep") for each in curve()]
    records[0].flags = ["throttled"]
    assert Fitted(make_run(records, device=DEVICE)).constants(records[1])[1] == len(records) - 1


def test_a_device_that_is_not_known_predicts_nothing() -> None:
    record = row()
    assert Fitted(make_run([record], device={"kind": "cuda", "multiprocessors": 132})).time(record) is None


def test_names_are_recognised_by_every_row_they_are_in() -> None:
    mine = KernelSeen("fma_chains", grid=[1, 1, 1])
    records = [
        row(),
        row(params={"n": 1795, "dtype": "bfloat16"}, flops=2 * 1795**3, kernels=[SEEN, mine]),
        row(kernels=[KernelSeen("Memset (Device)", "memset")]),
    ]
    run = make_run(records, device=DEVICE)
    known = {NARROW: "grid", "fma_chains": "family", "Memset (Device)": "family"}
    assert recognised([run], own={"fma_chains"}) == known
    assert recognised([run])["fma_chains"] == "unknown"
    records[1].kernels[0] = KernelSeen(NARROW, grid=[7, 1, 1])
    assert recognised([run])[NARROW] == "unknown", "a grid that its tile does not give"
    records[1].work.flops = 1  # type: ignore[union-attr]
    assert recognised([run])[NARROW] == "grid", "nor is any asked of a row whose sizes are not known"
    assert recognised([make_run(records[1:2], device=DEVICE)])[NARROW] == "tile"


def test_a_product_of_other_names_is_held_against_its_grid_in_any_order() -> None:
    params: dict[str, Param] = {"tokens": 1793, "width": 64, "vocab": 1793, "dtype": "bfloat16"}
    flops = 2 * 1793 * 1793 * 64
    for grid, sense in (([120, 1, 1], "grid"), ([7, 1, 1], "unknown")):
        record = row(params, flops, kernels=[KernelSeen(NARROW, grid=grid)])
        assert recognised([make_run([record], device=DEVICE)])[NARROW] == sense


def test_of_two_products_in_a_call_no_grid_is_asked() -> None:
    record = row(kernels=[SEEN, KernelSeen(NARROW.replace("256x128", "64x64"), grid=[7, 1, 1])])
    assert set(recognised([make_run([record], device=DEVICE)]).values()) == {"tile"}


def test_a_persistent_product_has_a_block_a_multiprocessor_whatever_its_sizes() -> None:
    name = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT"
    for grid, sense in (([2, 66, 1], "grid"), ([2, 60, 1], "tile")):
        record = row({"batch": 7}, 1, kernels=[KernelSeen(name, grid=grid)])
        assert recognised([make_run([record], device=DEVICE)])[name] == sense


def test_the_order_of_a_shape_is_the_one_that_reproduces_grids() -> None:
    def written(shape: str, grid: list[int]) -> Record:
        m, n, k = map(int, shape.split("x"))
        params: dict[str, Param] = {"shape": shape, "dtype": "bfloat16"}
        return row(params, 2 * m * n * k, kernels=[KernelSeen(NARROW, grid=grid)])

    weights = written("512x4096x256", [8, 1, 1])  # 512 × 256: 2 × 2 tiles of 128 × 256 in the other order
    weights.kernels[0].grid = [2 * 2, 1, 1]
    usual = make_run([written("512x4096x256", [64, 1, 1])], device=DEVICE)
    other = make_run([weights], device=DEVICE)
    assert orders(usual) == {}
    assert orders(other) == {("matmul-sweep", "matmul"): "mkn"}
    (found,) = Fitted(other).products.values()
    assert (found.m, found.n, found.k) == (512, 256, 4096)
    assert shape(weights, "mkn") == (512, 256, 4096)


@pytest.mark.parametrize(("layout", "expected"), [("nn", "nn"), ("tn", "nt"), ("nt", "tn")])
def test_how_operands_lie_is_told_by_the_name_where_the_row_does_not_say(layout: str, expected: str) -> None:
    name = NARROW.replace("_nn_", f"_{layout}_")
    found = product(row(kernels=[KernelSeen(name, grid=[120, 1, 1])]), 132)
    assert found is not None
    assert found.layout == expected
    params: dict[str, Param] = {"n": 1793, "dtype": "bfloat16", "layout": "nn"}
    said = product(row(params, kernels=[KernelSeen(name, grid=[120, 1, 1])]), 132)
    assert said is not None
    assert said.layout == "nn"
