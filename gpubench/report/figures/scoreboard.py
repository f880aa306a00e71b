"""The verdicts on the lecture's claims, a tile for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from gpubench.finding import TIMES
from gpubench.report.figures.shapes import Facts, Figure, Heading, Tile, Tiles
from gpubench.report.words import SEPARATOR, counted, plain
from gpubench.result import Run
from gpubench.units import three_digits

VERDICTS = ("HOLDS", "PARTLY", "INFO", "ABSENT", "INCONCLUSIVE", "INVALID", "NOT TESTABLE HERE", "NOT RUN")
"""In order of the legend, each with a shape and a colour of its own in every picture."""

LEAST = 4
"""Judged claims that a picture takes: fewer are told sooner than drawn."""
UNJUDGED = frozenset({"NOT RUN", "NOT TESTABLE HERE"})


def scoreboard(run: Run) -> Iterator[Figure]:
    """The claims that the run judged, by the first letter and the tens of their ids."""
    rows: dict[str, list[Tile]] = {}
    for claim in sorted(run.claims, key=lambda each: str(each.get("id"))):
        name = plain(claim.get("id"))
        rows.setdefault(_tens(name), []).append(Tile(name, plain(claim.get("verdict")), _facts(claim)))
    if sum(claim.get("verdict") not in UNJUDGED for claim in run.claims) >= LEAST:
        found = Counter(tile.verdict for tiles in rows.values() for tile in tiles)
        verdicts = [*VERDICTS, *(verdict for verdict in found if verdict not in VERDICTS)]
        counts = SEPARATOR.join(f"{found[verdict]} {verdict}" for verdict in verdicts if verdict in found)
        heading = Heading(
            "claims", None, "the lecture's claims", "Which claims of the lecture hold on this device?",
            (f"{counted(len(run.claims), 'claim')} judged by this run: {counts}",),
        )  # fmt: skip
        yield Tiles(heading, list(rows.items()), verdicts)


def _tens(name: str) -> str:
    """C40 of C47, X00 of X03."""
    return f"{name[:-1]}0" if name[-1:].isdigit() else name


def _facts(claim: Mapping[str, Any]) -> Facts:
    """The claim in words, its verdict and the first effect it was judged by."""
    told = [("claim", f"{claim.get('id')}: {claim.get('statement')}"), ("verdict", str(claim.get("verdict")))]
    effects = claim.get("effects")
    first = effects[0] if isinstance(effects, list) and effects else None
    if isinstance(first, Mapping) and isinstance(first.get("value"), int | float):
        unit = "×" if first.get("unit") == TIMES else "" if first.get("unit") == "1" else f" {first.get('unit')}"
        told.append((plain(first.get("name")), f"{three_digits(first['value'])}{unit}"))
    for name in ("reason", "note"):
        if claim.get(name):
            told.append((name, str(claim[name])))
    return tuple(told)
