"""Of a sweep of matrix products: where a wave of tiles is added, and in a line why each row is as fast as it is."""

from __future__ import annotations

from itertools import pairwise

from gpubench.explain import drops
from gpubench.explain.fitted import Fitted
from gpubench.report.sweep import Sweep
from gpubench.report.words import SEPARATOR
from gpubench.result import Run
from gpubench.units import three_digits

CLOSE = 2
"""Between sizes of which one is more than this many times the other nobody can tell where a wave was added."""


def edges(run: Run, sweep: Sweep) -> list[tuple[float, str]]:
    """The values of the axis between which the aligned rows go from one number of waves to a higher one, and both
    numbers: `(1856.0, "1 → 2 waves")`. Nothing where the kernels of the rows are not known."""
    fitted = Fitted(run)
    rows = drops.aligned(sweep.records, fitted)
    found = []
    for before, after in pairwise(rows):
        old, new = (fitted.products[record.id].cover.turns for record in (before, after))
        if new > old and int(after.params[sweep.axis]) <= CLOSE * int(before.params[sweep.axis]):
            middle = (int(before.params[sweep.axis]) + int(after.params[sweep.axis])) / 2
            found.append((middle, f"{old} → {new} waves"))
    return found


def why(run: Run, sweep: Sweep) -> dict[str, str]:
    """By the id of a row: its kernel, its waves, what its tiles waste, and the time that the model predicts over the
    one that was measured."""
    fitted = Fitted(run)
    found = {}
    for record in sweep.records:
        product = fitted.products.get(record.id)
        if product is None:
            continue
        cover, time = product.cover, fitted.time(record)
        waves = f"{cover.turns} wave" if cover.turns == 1 else f"{cover.turns} waves"
        words = [
            drops.kernel_words(product),
            f"{cover.tiles} tiles of {drops.tile_words(product)}",
            f"{waves}, {100 * cover.idle:.0f} % idle",
            f"{100 * (product.waste - 1):.0f} % computed beyond the edges",
        ]
        if time is not None and record.summary is not None and record.summary.median_ns > 0:
            words.append(f"the model gives {three_digits(time.ns / record.summary.median_ns)}× its time")
        found[record.id] = SEPARATOR.join(words)
    return found
