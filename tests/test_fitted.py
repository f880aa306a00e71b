"""The products of a run: which rows are one, by their parameters, their flops and their kernels; and names counted."""

from __future__ import annotations

from typing import Any

import pytest
from builders import make_record, make_run
from worlds.matmul import DEVICE, NARROW, curve

from gpubench.fitted import Fitted, product, recognised, shape
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
    assert recognised(run, own={"fma_chains"}) == {NARROW: True, "fma_chains": True, "Memset (Device)": True}
    assert not recognised(run)["fma_chains"]
    records[1].kernels[0] = KernelSeen(NARROW, grid=[7, 1, 1])
    assert not recognised(run)[NARROW], "a grid that its tile does not give"
    records[1].work.flops = 1  # type: ignore[union-attr]
    assert recognised(run)[NARROW], "nor is any asked of a row whose sizes are not known"
