"""How much of the H200's curve the model explains of sizes it has not seen, beside curves that know no kernel."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from gpubench.explain.fitted import Fitted
from gpubench.model import matmul_fit, matmul_time
from gpubench.model.kernel_facts import facts
from gpubench.model.launches import planned
from gpubench.model.matmul_fit import Left, Row, explained
from gpubench.model.matmul_time import Constants, Machine, Product
from gpubench.result import Conditions
from gpubench.store.folder import read_run

SWEEP = Path(__file__).parents[1] / "results" / "reference" / "h200" / "matmul-sweep.json.gz"
PAGE = Path(__file__).parents[1] / "docs" / "explain.md"
OVERALL, OF_THE_REST = 0.8, 0.3
"""What the model must explain of all sizes, and of what a smooth curve leaves of those that are multiples of 8."""


@cache
def reference() -> tuple[list[Row], Machine, Left]:
    fitted = Fitted(read_run(SWEEP))
    rows = fitted.rows(("bfloat16", Conditions()))
    on = matmul_time.machine(fitted.run.device, "bfloat16")
    assert on is not None
    return rows, on, matmul_fit.left_out(rows, on)


def test_the_model_explains_sizes_it_has_not_seen() -> None:
    rows, _, left = reference()
    assert len(rows) == 250
    model, classes, smooth = (explained(part, left.level) for part in (left.model, left.classes, left.smooth))
    assert model >= OVERALL
    assert model > classes > smooth
    assert 1 - model < (1 - classes) / 10, "a tenth of what alignment classes and a smooth curve leave"


def test_it_explains_what_a_smooth_curve_leaves_of_the_aligned_sizes() -> None:
    rows, _, left = reference()
    places = [place for place, (product, _) in enumerate(rows) if product.n % 8 == 0]
    assert len(places) == 119
    seen = matmul_fit.smooth_left([rows[place] for place in places])  # the cubic knows all of them, the model none
    assert explained(left.only(places).model, seen) >= OF_THE_REST


@cache
def aligned(blocks: int) -> tuple[float, float, float]:
    """Of that many blocks left out: the model on all sizes, the classes on all, and the model on the aligned ones."""
    rows, on, ten = reference()
    left = ten if blocks == matmul_fit.BLOCKS else matmul_fit.left_out(rows, on, blocks)
    places = [place for place, (product, _) in enumerate(rows) if product.n % 8 == 0]
    seen = matmul_fit.smooth_left([rows[place] for place in places])
    return (
        explained(left.model, left.level), explained(left.classes, left.level), explained(left.only(places).model, seen)
    )  # fmt: skip


@pytest.mark.parametrize("blocks", [5, 20])
def test_it_does_so_with_other_blocks_left_out(blocks: int) -> None:
    model, _, rest = aligned(blocks)
    assert model >= OVERALL
    assert rest >= OF_THE_REST


def test_the_page_says_what_the_model_explains() -> None:
    model, classes, ten = aligned(matmul_fit.BLOCKS)
    five, twenty = (100 * aligned(blocks)[2] for blocks in (5, 20))
    page = PAGE.read_text(encoding="utf-8")
    assert f"| {100 * model:.1f} % | {100 * ten:.0f} % (5 blocks: {five:.0f} %, 20 blocks: {twenty:.0f} %) |" in page
    assert f"blocks left out | {100 * classes:.0f} % |" in page


def test_fitted_to_rates_of_other_sizes_it_explains_nothing() -> None:
    rows, on, _ = reference()
    assert matmul_fit.shuffled(rows, on, "seed") < 0.1


def test_the_interval_holds_the_figure() -> None:
    _, _, left = reference()
    low, high = matmul_fit.interval(left.model, left.level, "seed")
    assert low < explained(left.model, left.level) < high < 1
    assert high - low < 0.02
    assert (low, high) == matmul_fit.interval(left.model, left.level, "seed")


def test_constants_of_made_up_rows_are_found_again() -> None:
    true = Constants(start=4000, fed=0.6, sectors=3)
    kernel = facts("nvjet_sm90_tst_128x256_64x4_1x1_h_bz_coopA_NNT")
    on = Machine(100, 2000, 1500, 2000)
    rows = []
    for n in range(256, 4096, 72):
        product = Product(n, n, n, 2, "nn", kernel, planned(kernel, n, n, 100))
        rows.append((product, matmul_time.time(product, on, true).ns))
    found = matmul_fit.fit(rows, on)
    assert (found.start, found.fed) == pytest.approx((true.start, true.fed), rel=0.05)
    assert found.lanes == pytest.approx(matmul_time.BEGIN.lanes), "no row says anything of it"
    left = matmul_fit.left_out(rows, on)
    assert explained(left.model, left.level) > 0.999


def test_few_rows_are_not_fitted() -> None:
    rows, on, _ = reference()
    assert matmul_fit.fit(rows[: matmul_fit.LEAST - 1], on) == matmul_time.BEGIN
    assert matmul_fit.fit(rows[: matmul_fit.LEAST], on) != matmul_time.BEGIN


def test_what_is_left_of_no_variance_is_nothing() -> None:
    assert explained([0.0], [0.0]) == 0
    assert matmul_fit.interval([0.0], [0.0], "seed") == (0, 0)
