"""Draws the tables of docs/explain.md on the falls of a sweep: what the run file says of each, and what was made of it.

A table stands between <!-- falls: FILE every --> (or `aligned`: the sizes whose rows are aligned to 16 bytes) and
<!-- end -->. All but its last column is drawn from the run file; the last is kept, and begins with a new fall as "?".
Without arguments the tables are redrawn; with --check nothing is written, and the exit status is 1 where a table
differs or a fall has not been looked at.

The column "waste × waves × rest" is no model: the tiles that the grid shows, their elements beyond C, and the
multiprocessors that have none. What these do not account for is the rest.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpubench.explain.drops import Drop
    from gpubench.explain.fitted import Fitted
    from gpubench.model.matmul_time import Product

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/explain.md"
SHOWN = 10
TABLE = re.compile(
    r"(?P<opening><!-- falls: (?P<file>\S+) (?P<which>every|aligned) -->\n)(?P<body>.*?)<!-- end -->", re.DOTALL
)
HEADING = (
    "| fall | times | waste × waves × rest | kernel | tiles → waves, idle | said | why we believe it |\n"
    "|---|---|---|---|---|---|---|\n"
)
OPEN = "?"


def drawn(page: str) -> str:
    """The page with every table drawn anew, what people wrote kept."""

    def again(table: re.Match[str]) -> str:
        kept = dict(_written(table["body"]))
        rows = [f"| {' | '.join([*row, kept.get(row[0], OPEN)])} |\n" for row in falls(table["file"], table["which"])]
        return f"{table['opening']}{HEADING}{''.join(rows)}<!-- end -->"

    return TABLE.sub(again, page)


def _written(body: str) -> Iterator[tuple[str, str]]:
    """The last cell of each row, by the first."""
    for line in body.splitlines()[2:]:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        yield cells[0], cells[-1]


def falls(file: str, which: str) -> list[list[str]]:
    """The largest falls of a run's first sweep of products, a row of cells each, without the last."""
    from gpubench.explain import drops
    from gpubench.explain.fitted import Fitted
    from gpubench.report.sweep import sweeps
    from gpubench.store.folder import read_run

    run = read_run(ROOT / file)
    fitted = Fitted(run)
    records = sweeps(run)[0].records
    found = drops.of(drops.aligned(records, fitted) if which == "aligned" else records, fitted)
    return [_row(drop, fitted) for drop in found[:SHOWN]]


def _row(drop: Drop, fitted: Fitted) -> list[str]:
    before, after = (fitted.products[record.id] for record in (drop.before, drop.after))
    waste = after.waste / before.waste
    waves = (1 - before.cover.idle) / (1 - after.cover.idle)
    return [
        f"{before.n}→{after.n}", f"{drop.times:.2f}", f"{waste:.2f} × {waves:.2f} × {drop.times / waste / waves:.2f}",
        f"{_kernel(before)} → {_kernel(after)}", f"{_tiles(before)} → {_tiles(after)}", " + ".join(drop.causes),
    ]  # fmt: skip


def _kernel(product: Product) -> str:
    """Tile, cluster, and how rows are read: `256×128 in 1×2, TMA`."""
    facts = product.facts
    cluster = f" in {facts.cluster[0]}×{facts.cluster[1]}" if facts.cluster != (1, 1) else ""
    read = f"TMA, {product.alignment} B" if product.tma else f"sm{facts.generation}, {product.load_bytes} B a load"
    return f"{facts.tile[0]}×{facts.tile[1]}{cluster}, {read}" if facts.tile else "?"


def _tiles(product: Product) -> str:
    cover = product.cover
    slices = f"×{cover.splits}" if cover.splits > 1 else ""
    return f"{cover.tiles}{slices}: {cover.turns}, {100 * cover.idle:.0f} %"


def main(arguments: list[str]) -> int:
    """Redraw the page, or check it."""
    sys.path.insert(0, str(ROOT))
    old = PAGE.read_text(encoding="utf-8")
    new = drawn(old)
    if "--check" in arguments:
        return int(new != old or f"| {OPEN} |" in new)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
