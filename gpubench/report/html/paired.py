"""The report of an A/B measurement: what surely changed, each row with its interval, the two sides, every block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from gpubench.ab.judge import name_of_side
from gpubench.report import comparison, info
from gpubench.report.html.comparison import MEANING, changes, head, verdict
from gpubench.report.html.markup import Markup, folded, join, lines, table, tag
from gpubench.report.html.overview import MARKS, Tone
from gpubench.report.html.page import Page, Section
from gpubench.report.html.run import file_name
from gpubench.report.words import SEPARATOR, counted, device_name, plain
from gpubench.store import runfile
from gpubench.store.abfile import SIDES, AbRun, Block
from gpubench.verdict import Judged

SURELY: Mapping[str, str] = {
    **MEANING,
    "regression": "got slower, surely by more than the margin",
    "inconclusive": "are undecided: more blocks would tell",
}
"""What a verdict on paired blocks says of its rows, where that is more than of two runs."""
METHOD = (
    "A block is one fresh process of each side, back to back, with the same cases in the same order; which side begins "
    "is drawn. A row's figure in a block is the median of its samples there; its change is the mean of ln(new/base) "
    "over the blocks, with a t interval, and all rows together are wrong in 5 of 100 measurements at most."
)


def report(judged: Judged, found: AbRun) -> bytes:
    """The page; `judged` is what `gpubench.ab.judge` says of `found`, which the page holds."""
    device = device_name(found)
    drawings, sections = changes(judged, device)
    sections += [
        Section("sides", "The two sides", _sides(judged, found)),
        Section("blocks", "The blocks", _blocks(judged, found)),
        Section("method", "Method", _method(judged, found)),
    ]
    title = SEPARATOR.join(["gpubench A/B", device, found.started_at[:10]])
    top = head(judged, "GPU benchmark, A/B measurement", device, _verdict(judged, found))
    return Page(title, top, sections, drawings, [runfile.encode(found)], [file_name(found)], "measurement").html()


def _verdict(judged: Judged, found: AbRun) -> tuple[Tone, str]:
    """As of any comparison; a measurement that was broken off says so first."""
    tone, words = verdict(judged, SURELY)
    if found.status == "complete":
        return tone, words
    return ("bad" if tone == "bad" else "warn"), f"This measurement is {found.status}. {words}"


def _sides(judged: Judged, found: AbRun) -> Markup:
    """What each side is, and what differs between them."""
    rows = [
        [name, tag("code", name_of_side(side)), plain(side.device.get("name") or side.device.get("kind") or ""),
         plain(side.software.get("torch") or ""), f"{sum(record.side == name for record in found.records):,}"]
        for name, side in found.sides.items()
    ]  # fmt: skip
    told = [*judged.notes, *(f"differs: {each}" for each in comparison.subject(judged))]
    texts = [(name, file, digest) for name in SIDES for file, digest in found.sides[name].kernels.items()]
    return join(
        [
            table("The sides", ["side", "what it is", "device", "torch", "records"], rows, {"records"}),
            table("Texts in place of the suites' own", ["side", "file", "hash"], texts) if texts else None,
            lines(told, class_="notes"),
            folded("All that is known of both", _facts(found)),
        ]
    )


def _facts(found: AbRun) -> Markup:
    """The facts of both sides, those that are not the same marked."""
    rows = []
    for part in ("device", "software"):
        base, new = (dict(info.lines(getattr(side, part))) for side in found.sides.values())
        for fact in dict.fromkeys([*base, *new]):
            values = base.get(fact, ""), new.get(fact, "")
            rows.append([part, fact, *values, "yes" if values[0] == values[1] else f"{MARKS['warn']} differs"])
    return table("Facts of the sides", ["part", "fact", "base", "new", "same"], rows)


def _blocks(judged: Judged, found: AbRun) -> Markup:
    """Which blocks there are, who began, which do not count and why; and the change of each row in each of them."""
    measured = Counter((record.block, record.side) for record in found.records)
    rows = [
        [f"block {block.number + 1}", block.first, *(f"{measured[block.number, side]:,}" for side in SIDES),
         "counts" if block.unused is None else f"{MARKS['warn']} not used: {block.unused}"]
        for block in found.blocks
    ]  # fmt: skip
    columns = ["block", "first", "rows of base", "rows of new", "use"]
    counts = sum(block.unused is None for block in found.blocks)
    caption = f"{counted(counts, 'block')} of {found.planned} planned"
    return join(
        [
            table(caption, columns, rows, {"rows of base", "rows of new"}) if rows else tag("p", "No block was begun."),
            _by_block(judged, [block for block in found.blocks if block.unused is None]),
        ]
    )


def _by_block(judged: Judged, blocks: Sequence[Block]) -> Markup | None:
    """The change of time of every row in every block that counts."""
    names = comparison.naming(judged)
    columns = [f"block {block.number + 1}" for block in blocks]
    rows = []
    for row in comparison.ordered(judged.rows):
        seen = {each["block"]: each["new_ns"] / each["base_ns"] - 1 for each in row.paired.get("medians", ())}
        if seen:
            cells = [seen.get(block.number + 1) for block in blocks]
            shown = ("" if cell is None else comparison.signed_percent(cell) for cell in cells)
            rows.append([names.words[id(row)], *shown])
    if not rows:
        return None
    words = "Change of time in each block, new over base"
    return folded(words, table(words, ["case", *columns], rows, columns))


def _method(judged: Judged, found: AbRun) -> Markup:
    ending = "" if found.ending is None else f"Measuring ended with: {found.ending}. "
    drawn = f"{ending}The order of the sides is drawn from the seed {found.order_seed}"
    return join(
        [
            lines(map(plain, comparison.facts(judged, comparison.naming(judged))), class_="notes"),
            tag("p", METHOD),
            tag("p", f"{drawn}. Measured by ", tag("code", " ".join(found.argv)), class_="soft"),
        ]
    )
